"""The commands, their options and their help; each does its work in the module of its name."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Annotated

import typer

from letterhead.cli.exits import OK, Failure
from letterhead.cli.formats import Converting, Reading
from letterhead.cli.options import (
    EXIT_CODES,
    Base64,
    Canonical,
    Column,
    ErrorColumn,
    Errors,
    Everything,
    File,
    Format,
    Hex,
    Json,
    Lenient,
    Limit,
    MaxDecompressedBytes,
    MaxHeaders,
    MaxMessageBytes,
    MaxOutputBytes,
    MaxRecords,
    OnErrors,
    OnLoss,
    Refusal,
    StrictTypes,
    Target,
    Type,
    WordOfTypes,
    Written,
    format_names,
    limits_of,
)
from letterhead.cli.state.commands import state
from letterhead.conventions import PROFILES

app = typer.Typer(
    name="letterhead",
    help="Message headers of Kafka, Kafka Streams and Iggy: look at the bytes, decode, encode and convert them, and look "
    "into the stores that keep them.\n\n\b\nExamples:\n"
    "  letterhead inspect cell.bin --format kafka\n"
    "  letterhead decode --hex 0202610276 --format auto\n"
    "  letterhead scan topic.parquet",
    epilog=EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"letterhead {importlib.metadata.version('letterhead')}")
        raise typer.Exit(OK)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command("inspect", epilog=EXIT_CODES)
def inspect_command(
    format: Format,
    file: File = None,
    hex: Hex = None,
    base64: Base64 = None,
    column: Column = None,
    row: Annotated[int, typer.Option("--row", min=0, help="With --column: the row, from 0.")] = 0,
    json: Json = False,
    lenient: Lenient = False,
    strict_types: StrictTypes = False,
    everything: Everything = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_records: MaxRecords = None,
    max_output_bytes: MaxOutputBytes = None,
) -> int:
    """Show the bytes of one cell, every byte labelled with the field it belongs to.

    A byte that is wrong is marked, with the reason under it. Of a batch every
    message has a heading.

    \b
    Examples:
      letterhead inspect --format kafka --hex "02 06 6b 65 79 02 76"
      letterhead inspect cell.bin --format streams-timestamped
      letterhead inspect state.parquet --column value --row 17 --format streams
      letterhead inspect segment.bin --format kip82-messages
      kcat … | letterhead inspect - --format auto --json
    """
    from letterhead.cli.inspect import run_inspect
    from letterhead.cli.source import read_cell

    data = read_cell(file, hex=hex, base64=base64, column=column, row=row, lists=False)
    limits = limits_of(max_message_bytes, max_headers, max_decompressed_bytes, max_records, max_output_bytes)
    options: Reading = {"lenient": lenient, "strict_types": strict_types, "limits": limits}
    return run_inspect(data, format, json=json, everything=everything, options=options)


@app.command("decode", epilog=EXIT_CODES)
def decode_command(
    format: Format,
    file: File = None,
    hex: Hex = None,
    base64: Base64 = None,
    column: Column = None,
    json: Json = False,
    lenient: Lenient = False,
    strict_types: StrictTypes = False,
    errors: OnErrors = Errors.raise_,
    error_column: ErrorColumn = "error",
    limit: Limit = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="With --column: write Parquet.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", metavar="TEXT", help="With --column: what the names of new columns begin with."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="With --column, of bytes or of headers: the headers of a convention as typed columns, in place of the list. "
            f"One of: {', '.join(PROFILES)}.",
        ),
    ] = None,
    everything: Everything = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_records: MaxRecords = None,
    max_output_bytes: MaxOutputBytes = None,
) -> int:
    """Decode one cell, or a column of a Parquet file.

    One cell becomes a table, or with --json a document that `letterhead encode`
    turns back into the same bytes. A column becomes a table of its first rows,
    JSON lines (--json) or a Parquet file (--out), in which the decoded fields
    stand in the place of the column. Of a batch every message is shown, and
    every message is a row. With --profile only the headers of that convention
    are read, each into a column of its own; of a batch the other fields of its
    messages stay.

    \b
    Examples:
      letterhead decode cell.bin --format kafka
      letterhead decode --format kafka --base64 AgZrZXkCdg== --json
      letterhead decode polled.bin --format iggy-batch
      letterhead decode store.parquet -c value -f streams-timestamped --limit 5
      letterhead decode store.parquet --column value -f streams-timestamped \\
                 --errors column --out decoded.parquet
      letterhead decode orders.parquet --column headers -f kafka --profile otel
    """
    from letterhead.cli import decode
    from letterhead.cli.source import read_cell

    limits = limits_of(max_message_bytes, max_headers, max_decompressed_bytes, max_records, max_output_bytes)
    options: Reading = {"lenient": lenient, "strict_types": strict_types, "limits": limits}
    _check_error_column(error_column, column, errors)
    if column is None:
        if limit is not None or out is not None or prefix is not None or profile is not None:
            raise Failure(
                "--limit, --out, --prefix and --profile need --column: they are for a column of a Parquet file"
            )
        data = read_cell(file, hex=hex, base64=base64)
        return decode.run_cell(data, format, json=json, errors=errors.value, everything=everything, options=options)
    return decode.run_column(
        _parquet_file(file, hex, base64),
        column,
        format,
        json=json,
        errors=errors.value,
        error_column=error_column,
        limit=limit,
        out=out,
        prefix=prefix or "",
        profile=profile,
        everything=everything,
        options=options,
    )


@app.command("encode", epilog=EXIT_CODES)
def encode_command(
    format: Written,
    file: Annotated[str | None, typer.Argument(metavar="FILE|-", help="JSON; - is standard input.")] = None,
    hex: Annotated[bool, typer.Option("--hex", help="Write hex text instead of bytes.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the bytes to a file.")] = None,
    types: WordOfTypes = None,
    type: Type = None,
    on_loss: Annotated[
        Refusal, typer.Option("--on-loss", help="What the format cannot carry: stop there, or leave it out.")
    ] = Refusal.raise_,
    canonical: Canonical = False,
) -> int:
    """Encode JSON, as `letterhead decode --json` gives it, into bytes on standard output.

    A value is null, a string, or an object with "hex", "text" or "base64". A
    value with a type is a string like "int32:3", "bool:true", "string:acme" or
    "binary:00ff", or an object that has "type" as well. A format without types
    takes it only with --types; {"text": "int32:3"} is that text itself. A key
    is a string, a whole number where the format has integer keys, or in iggy
    also a string like "int32:3".

    \b
    Examples:
      echo '{"headers": [{"key": "tenant", "value": "acme"}]}' \\
                 | letterhead encode -f kafka --hex
      echo '{"headers": [{"key": "retry", "value": "int32:3"}]}' \\
                 | letterhead encode -f iggy --hex
      letterhead decode cell.bin -f kafka --json \\
                 | letterhead encode -f kafka > same.bin
    """
    from letterhead.cli.encode import run_encode
    from letterhead.cli.losses import types_option

    said = types_option(None if types is None else types.value, type)
    return run_encode(file, format, as_hex=hex, out=out, types=said, on_loss=on_loss.value, canonical=canonical)


@app.command("convert", epilog=EXIT_CODES)
def convert_command(
    format: Format,
    to: Target,
    file: File = None,
    hex: Hex = None,
    base64: Base64 = None,
    column: Column = None,
    on_loss: Annotated[
        OnLoss,
        typer.Option(
            "--on-loss",
            help="What the target cannot carry: stop there; write what is nearest or leave it out; or do that and "
            "say so, on stderr or in the JSON.",
        ),
    ] = OnLoss.raise_,
    types: WordOfTypes = None,
    type: Type = None,
    canonical: Canonical = False,
    to_hex: Annotated[bool, typer.Option("--to-hex", help="Write hex text instead of bytes.")] = False,
    json: Json = False,
    lenient: Lenient = False,
    strict_types: StrictTypes = False,
    errors: OnErrors = Errors.raise_,
    error_column: ErrorColumn = "error",
    limit: Limit = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the bytes, with --column Parquet.")
    ] = None,
    everything: Everything = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_records: MaxRecords = None,
    max_output_bytes: MaxOutputBytes = None,
) -> int:
    """Convert one cell, or a column of a Parquet file, from one format to another.

    The bytes of one cell go to standard output. A column becomes a table of its
    first rows, JSON lines (--json) or a Parquet file (--out), in which the
    converted bytes stand in the place of the column, and what was lost in a
    column `losses`. Losses that were asked to be dropped or reported are no
    failure.

    \b
    Examples:
      letterhead convert cell.bin -f kafka -t iggy --type retry=int32 -o iggy.bin
      letterhead convert cell.bin -f iggy --to kafka --types be \\
                 --on-loss report --to-hex
      letterhead convert --hex "02 06 6b 65 79 02 76" -f auto --to iggy \\
                 --types binary --json
      letterhead convert store.parquet -c value -f streams --to iggy-message \\
                 --types binary --on-loss report --errors column -o out.parquet
    """
    from letterhead.cli import convert
    from letterhead.cli.losses import types_option
    from letterhead.cli.source import read_cell

    said = types_option(None if types is None else types.value, type)
    limits = limits_of(max_message_bytes, max_headers, max_decompressed_bytes, max_records, max_output_bytes)
    options: Converting = {"lenient": lenient, "strict_types": strict_types, "limits": limits, "canonical": canonical}
    _check_error_column(error_column, column, errors)
    if column is None:
        if limit is not None or errors is not Errors.raise_:
            raise Failure("--limit and --errors need --column: they are for a column of a Parquet file")
        return convert.run_cell(
            read_cell(file, hex=hex, base64=base64),
            format,
            to,
            on_loss=on_loss.value,
            types=said,
            as_hex=to_hex,
            json=json,
            out=out,
            options=options,
        )
    if to_hex:
        raise Failure("--to-hex is for one cell, not for --column")
    return convert.run_column(
        _parquet_file(file, hex, base64),
        column,
        format,
        to,
        on_loss=on_loss.value,
        types=said,
        json=json,
        errors=errors.value,
        error_column=error_column,
        limit=limit,
        out=out,
        everything=everything,
        options=options,
    )


@app.command("scan", epilog=EXIT_CODES)
def scan_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Parquet file.")],
    column: Annotated[
        str, typer.Option("--column", "-c", metavar="NAME", help="The column: bytes, or headers as Spark reads them.")
    ] = "headers",
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"What the bytes are, or the headers were: one of {format_names()}; or auto, for bytes.",
        ),
    ] = "kafka",
    sample: Annotated[
        int | None,
        typer.Option("--sample", "-n", metavar="N", min=1, help="Scan so many rows only, evenly spaced over the file."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page for a browser, with plots, as well.")
    ] = None,
    json: Json = False,
    max_keys: Annotated[
        int, typer.Option("--max-keys", metavar="N", min=1, help="Show so many keys; others are counted.")
    ] = 1000,
    everything: Annotated[bool, typer.Option("--all", help="Show the unlikely types too.")] = False,
    lenient: Lenient = False,
    strict_types: StrictTypes = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_records: MaxRecords = None,
    max_output_bytes: MaxOutputBytes = None,
) -> int:
    """Find out what headers the messages of a Parquet file carry, and what types their values may be.

    For each key: in how many rows it is, null, repeated; sizes and positions;
    types with the evidence for each, over all rows; and code that selects them.
    A guess is shown, and never applied; where the bytes cannot tell two types
    apart, that is said. With damaged rows, which are counted, the exit code is
    1.

    \b
    Examples:
      letterhead scan orders.parquet
      letterhead scan orders.parquet --sample 100000 --html orders.html
      letterhead scan store.parquet -c value -f streams-timestamped --json
    """
    from letterhead.cli.scan import run_scan

    limits = limits_of(max_message_bytes, max_headers, max_decompressed_bytes, max_records, max_output_bytes)
    options: Reading = {"lenient": lenient, "strict_types": strict_types, "limits": limits}
    return run_scan(
        file,
        column,
        format,
        json=json,
        html=html,
        sample=sample,
        max_keys=max_keys,
        everything=everything,
        options=options,
    )


@app.command("dump", epilog=EXIT_CODES)
def dump_command(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="The folder of a partition, a broker's data folder, or .log files."),
    ],
    json: Json = False,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", "-o", metavar="FILE", help="Write the records as Parquet.")
    ] = None,
    start: Annotated[int | None, typer.Option("--start", metavar="OFFSET", help="The first offset.")] = None,
    end: Annotated[int | None, typer.Option("--end", metavar="OFFSET", help="The offset to stop before.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="No earlier records: milliseconds since 1970, or a date (UTC)."),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only records before this time.")] = None,
    committed: Annotated[
        bool, typer.Option("--committed", help="Leave out aborted transactions, and stop where one is open.")
    ] = False,
    errors: OnErrors = Errors.raise_,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help="The first records only (20 on screen).")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every record, and do not fold long values.")] = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
    max_decompressed_bytes: MaxDecompressedBytes = None,
    max_records: MaxRecords = None,
    max_output_bytes: MaxOutputBytes = None,
) -> int:
    """Show the records in the log segments of a broker, header values included; the broker is not asked.

    Checksums are held to: a batch that is damaged stops it, and --errors column
    tells of it in a row and goes on. A log whose end is torn is read up to
    there, which is said, and the exit code is 1.

    \b
    Examples:
      letterhead dump /var/lib/kafka/data/orders-0
      letterhead dump orders-0 --start 5000 --limit 5 --all
      letterhead dump orders-0 --since 2026-01-01T08:30:00Z --json
      letterhead dump /var/lib/kafka/data --committed -o everything.parquet
    """
    from letterhead.cli.dump import run_dump

    return run_dump(
        paths,
        start=start,
        end=end,
        since=since,
        until=until,
        committed=committed,
        errors=errors.value,
        limit=limit,
        json=json,
        parquet=parquet,
        everything=everything,
        limits=limits_of(max_message_bytes, max_headers, max_decompressed_bytes, max_records, max_output_bytes),
    )


@app.command("doctor", epilog=EXIT_CODES)
def doctor_command(json: Json = False) -> int:
    """Show the versions of installed components, what is missing, and how to install it.

    The exit code is 1 if there is a problem; a note is none.
    `letterhead.spark.doctor(spark)` asks the executors of a Spark session.

    \b
    Examples:
      letterhead doctor
      letterhead doctor --json
    """
    from letterhead.cli.doctor import run_doctor

    return run_doctor(json=json)


app.add_typer(state)


def _check_error_column(name: str, column: str | None, errors: Errors) -> None:
    if name != "error" and (column is None or errors is not Errors.column):
        raise Failure("--error-column needs --column and --errors column: it names the column that says why")


def _parquet_file(file: str | None, hex: str | None, base64: str | None) -> Path:
    if hex is not None or base64 is not None or file is None or file == "-":
        raise Failure("--column needs a Parquet FILE")
    return Path(file)
