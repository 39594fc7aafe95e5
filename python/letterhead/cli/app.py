"""The commands, their options and their help; each does its work in the module of its name."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from letterhead import _native
from letterhead.cli.exits import BROKEN_PIPE, FAULTS, INTERRUPTED, OK, USAGE, Failure
from letterhead.cli.render import printable
from letterhead.errors import HeaderError

EXIT_CODES = "Exit codes: 0 all is well; 1 the bytes have faults, or a check failed; 2 wrong usage."

app = typer.Typer(
    name="letterhead",
    help="Message headers of Kafka and Kafka Streams: look at the bytes, decode them, encode them.",
    epilog=EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# typer below 0.16 uses the package click, later ones carry their own copy: the base of usage errors is
# taken from whichever one this typer has.
UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


class Errors(StrEnum):
    """What to do with bytes that do not decode."""

    raise_ = "raise"
    null = "null"
    column = "column"


def _format_names() -> str:
    return ", ".join(row["name"] for row in _native.formats())


File = Annotated[str | None, typer.Argument(metavar="FILE|-", help="Raw bytes; - is standard input.")]
Format = Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help=f"One of: {_format_names()}.")]
Hex = Annotated[
    str | None,
    typer.Option("--hex", metavar="TEXT", help="The bytes as hex (spaces, 0x, colons are fine); - reads stdin."),
]
Base64 = Annotated[
    str | None, typer.Option("--base64", metavar="TEXT", help="The bytes as base64; - reads standard input.")
]
Column = Annotated[
    str | None, typer.Option("--column", "-c", metavar="NAME", help="FILE is Parquet: use this column of bytes.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Accept what Java's deserializers accept, as they read it.")]
Everything = Annotated[bool, typer.Option("--all", help="Do not fold long values.")]


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
    everything: Everything = False,
) -> int:
    """Show the bytes of one cell, every byte labelled with the field it belongs to.

    A byte that is wrong is marked, with the reason under it.

    \b
    Examples:
      letterhead inspect --format kafka --hex "02 06 6b 65 79 02 76"
      letterhead inspect cell.bin --format streams-timestamped
      letterhead inspect state.parquet --column value --row 17 --format streams
      kcat … | letterhead inspect - --format kafka --json
    """
    from letterhead.cli.inspect import run_inspect
    from letterhead.cli.source import read_cell

    data = read_cell(file, hex=hex, base64=base64, column=column, row=row)
    return run_inspect(data, format, json=json, lenient=lenient, everything=everything)


@app.command("decode", epilog=EXIT_CODES)
def decode_command(
    format: Format,
    file: File = None,
    hex: Hex = None,
    base64: Base64 = None,
    column: Column = None,
    json: Json = False,
    lenient: Lenient = False,
    errors: Annotated[
        Errors,
        typer.Option(
            "--errors", help="Bytes that do not decode: stop there, give null, or add a column that says why."
        ),
    ] = Errors.raise_,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help="With --column: the first rows only (20 on screen).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="With --column: write Parquet.")
    ] = None,
    everything: Everything = False,
) -> int:
    """Decode one cell, or a column of a Parquet file.

    One cell becomes a table, or with --json a document that `letterhead encode` turns back into the same
    bytes. A column becomes a table of its first rows, JSON lines (--json) or a Parquet file (--out), in which
    the decoded fields stand in the place of the column.

    \b
    Examples:
      letterhead decode cell.bin --format kafka
      letterhead decode --format kafka --base64 AgZrZXkCdg== --json
      letterhead decode store.parquet --column value -f streams-timestamped --limit 5
      letterhead decode store.parquet --column value -f streams-timestamped \\
                 --errors column --out decoded.parquet
    """
    from letterhead.cli import decode
    from letterhead.cli.source import read_cell

    if column is None:
        if limit is not None or out is not None:
            raise Failure("--limit and --out need --column: they are for a column of a Parquet file")
        data = read_cell(file, hex=hex, base64=base64)
        return decode.run_cell(data, format, json=json, lenient=lenient, errors=errors.value, everything=everything)
    if hex is not None or base64 is not None or file in (None, "-"):
        raise Failure("--column needs a Parquet FILE")
    return decode.run_column(
        Path(file),
        column,
        format,
        json=json,
        lenient=lenient,
        errors=errors.value,
        limit=limit,
        out=out,
        everything=everything,
    )


@app.command("encode", epilog=EXIT_CODES)
def encode_command(
    format: Format,
    file: Annotated[str | None, typer.Argument(metavar="FILE|-", help="JSON; - is standard input.")] = None,
    hex: Annotated[bool, typer.Option("--hex", help="Write hex text instead of bytes.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the bytes to a file.")] = None,
) -> int:
    """Encode JSON, as `letterhead decode --json` gives it, into bytes on standard output.

    A value is null, a string (UTF-8), or an object with "hex", "text" or "base64".

    \b
    Examples:
      echo '{"headers": [{"key": "tenant", "value": "acme"}]}' | letterhead encode -f kafka --hex
      letterhead decode cell.bin -f kafka --json | letterhead encode -f kafka > same.bin
    """
    from letterhead.cli.encode import run_encode

    return run_encode(file, format, as_hex=hex, out=out)


@app.command("demo", epilog=EXIT_CODES)
def demo_command(
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="The sample data: tests/samples in a clone.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where Parquet is written.")] = Path(
        "demo-output"
    ),
    bad_share: Annotated[
        float, typer.Option("--bad-share", min=0.0, max=1.0, help="The share of stored cells to damage.")
    ] = 0.01,
    json: Json = False,
) -> int:
    """Run the library on a real Kafka topic and a real Kafka Streams store, in Spark, and check the result.

    It needs pyspark and Java on this machine, and no broker. A mismatch ends it with exit code 1.

    \b
    Examples:
      letterhead demo --data tests/samples
      letterhead demo --data tests/samples --bad-share 0.2 --json
    """
    from letterhead.cli.demo import run_demo

    return run_demo(data, out, bad_share=bad_share, json=json)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command; every foreseen failure is one line on stderr and an exit code."""
    command = typer.main.get_command(app)
    args = sys.argv[1:] if argv is None else list(argv)
    try:
        # No command is wrong usage all the same: the exit code says so, the help says what there is.
        code = command.main(args=args or ["--help"], prog_name="letterhead", standalone_mode=False)
        sys.stdout.flush()
        if not args:
            return USAGE
        return code if isinstance(code, int) else OK
    except Failure as failure:
        return _say(str(failure), failure.exit_code)
    except HeaderError as error:
        return _say(str(error), FAULTS)
    except UsageError as error:
        return _say(_usage_message(error), USAGE)
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as leaving:
        # What typer makes of a broken pipe.
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return _reader_gone()
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted", INTERRUPTED)


def _reader_gone() -> int:
    # Python flushes stdout once more at exit; give it somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def _usage_message(error: Any) -> str:
    message = error.format_message().rstrip(".").replace("\n", " ")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "letterhead"
    return f"{message} (see {path} --help)"


def _say(message: str, code: int) -> int:
    print(f"letterhead: {printable(message)}", file=sys.stderr)
    return code
