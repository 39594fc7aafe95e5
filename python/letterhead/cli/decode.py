"""`letterhead decode`: decode one message or batch, or a column of a Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text

import letterhead as lh
from letterhead._error_policies import counting_policy
from letterhead._formatting import printable
from letterhead._optional_dependencies import how_to_install
from letterhead._row_request import RowRequest
from letterhead.cli.column import NewColumns, deliver, new_columns, open_values, process_column
from letterhead.cli.document import headers_of, is_time, to_json
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.formats import ReadArguments, in_microseconds, is_batch
from letterhead.cli.headers import VALUE_LIMIT, headers_table
from letterhead.cli.message_input import MessageInput
from letterhead.cli.options import Format, group_options, option, reading, rows, source
from letterhead.cli.render import ROWS_ON_SCREEN, count_text, print_json
from letterhead.cli.row_counts import RowCounts
from letterhead.cli.row_options import RowOptions
from letterhead.cli.screen import console, format_with_size, time_text, value_text
from letterhead.cli.sniff import format_of
from letterhead.cli.sources.options import check_unused, selection
from letterhead.conventions.profiles import PROFILES
from letterhead.fields import Columns
from letterhead.operations import ColumnOperation, Decode, DecodeOptions, ExplodeBatches, Select, Validate

if TYPE_CHECKING:
    import pyarrow as pa

Fields = dict[str, Any]


@group_options(source=source, rows=rows, request=selection, options=reading)
def decode_command(
    *,
    format: Format,
    source: MessageInput,
    rows: RowOptions,
    prefix: Annotated[
        str | None, option("--prefix", "With --column: a prefix of the new columns' names.", "TEXT")
    ] = None,
    profile: Annotated[
        str | None,
        option(
            "--profile",
            "With --column: read the headers of a convention as typed columns, instead of the list. "
            f"One of: {', '.join(PROFILES)}.",
            "NAME",
        ),
    ] = None,
    request: RowRequest,
    options: ReadArguments,
) -> int:
    """Decode one message or batch, or a column of a source.

    One message is shown as a table, or with --json as a document from which
    `letterhead encode` restores the same bytes, except for overlong varints and
    an explicit count of 0 headers. For a batch, every message is shown. A column
    is shown as a table of its first rows, or written as JSON lines (--json) or
    Parquet (--out); the decoded fields replace the column, and each message of a
    batch is a row. --profile reads only the headers of a convention, each into a
    column of its own.

    \b
    Examples:
      letterhead decode message.bin --format kafka
      letterhead decode --format kafka --base64 AgZrZXkCdg== --json
      letterhead decode polled.bin --format iggy-batch
      letterhead decode store.parquet -c value -f streams-timestamped --limit 5
      letterhead decode store.parquet --column value -f streams-timestamped \\
                 --errors column --out decoded.parquet
      letterhead decode orders.parquet -c headers -f kafka --profile opentelemetry
      letterhead decode kafka://broker/app-latest-changelog -c value --prefix v_ \\
                 -f streams-timestamped --last 10
    """
    rows.check_column(source.column)
    if source.column is not None:
        return _decode_column(source, format, rows, prefix or "", profile, request, options)
    if rows.limit is not None or rows.out is not None or prefix is not None or profile is not None:
        raise Failure("--limit, --out, --prefix and --profile need --column: they are for a column of a source")
    check_unused(request)
    return _decode_message(source.read(options["limits"]), format, rows, options)


def _decode_message(data: bytes, format: str, rows: RowOptions, options: ReadArguments) -> int:
    format, code = format_of(format, [data]), OK
    try:
        with usage_errors():
            messages = _messages(data, format, options)
    except lh.errors.HeaderError:
        if rows.errors == "raise":
            raise
        messages, code = _decode_readable_parts(data, format, rows, options), BAD_DATA
    if rows.json:
        documents = [None if fields is None else to_json(fields, format, epoch_ms=rows.epoch_ms) for fields in messages]
        print_json({"messages": documents} if is_batch(format) else documents[0])
    else:
        _show(data, format, messages, everything=rows.everything)
    return code


def _messages(data: bytes, format: str, options: ReadArguments) -> list[Fields | None]:
    if is_batch(format):
        return [message._asdict() for message in lh.messages(data, format, **options)]
    message = lh.decode(data, format, **options)
    return [{"headers": message} if isinstance(message, lh.Headers) else message._asdict()]


def _decode_readable_parts(data: bytes, format: str, rows: RowOptions, options: ReadArguments) -> list[Fields | None]:
    """Decode an invalid message as a column of one row, which preserves the readable fields and messages.

    With --errors null, an entirely unreadable message is None.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        if rows.errors == "null" and not is_batch(format):
            return [None]
        raise Failure(how_to_install(f"--errors {rows.errors}", "pyarrow", "letterhead[arrow]")) from error
    read_options = DecodeOptions(errors=counting_policy(rows.errors), **options)
    decode = ExplodeBatches(format, options=read_options) if is_batch(format) else Decode(format, read_options)
    messages: list[Fields] = decode(pa.array([data], pa.binary())).to_pylist()
    for fields in messages:
        fields.pop("row", None)
        fields["headers"] = None if fields["headers"] is None else headers_of(fields["headers"])
        if rows.errors == "null":
            del fields["error"]
    return [fields if any(value is not None for value in fields.values()) else None for fields in messages]


def _decode_column(
    source: MessageInput,
    format: str,
    rows: RowOptions,
    prefix: str,
    profile: str | None,
    request: RowRequest,
    options: ReadArguments,
) -> int:
    with usage_errors():
        columns = None if profile is None else lh.profile(profile)
    column, format, rows = open_values(source, format, rows, request, options["limits"])
    with usage_errors():
        decode = _operation(format, rows.read_options(options), columns)
    tally = RowCounts("message" if is_batch(format) else "row")

    import pyarrow as pa

    def work(values: pa.Array) -> NewColumns:
        decoded = _decode(values, decode, rows, of_bytes=column.is_bytes)
        if rows.out is None:
            unit = "us" if in_microseconds(format) else "ms"
            for name in filter(is_time, decoded.fields):
                decoded.fields[name] = decoded.fields[name].cast(pa.timestamp(unit, "UTC"))
        decoded.fields = {prefix + name: array for name, array in decoded.fields.items()}
        return decoded

    batches = process_column(column, work, rows, tally=tally, doing="decoding", prefix=prefix)
    deliver(batches, tally, column.file, column.rows, rows)
    return max(tally.report("decode", is_null=rows.errors == "null"), column.finish())


def _operation(format: str, options: DecodeOptions, columns: Columns | None) -> ColumnOperation:
    """Return the operation that reads a column: all headers, or the columns of a profile."""
    if is_batch(format):
        return ExplodeBatches(format, headers=columns, options=options)
    return Decode(format, options) if columns is None else Select(format, columns, options)


def _decode(values: pa.Array, decode: ColumnOperation, rows: RowOptions, *, of_bytes: bool) -> NewColumns:
    if isinstance(decode, Decode) and not of_bytes:
        Validate(decode.format)(values.slice(0, 0))  # raises if the lists are not headers of the format
        return NewColumns({"headers": values})
    result = decode(values)
    columns = new_columns(result, "headers", rows)
    if isinstance(decode, ExplodeBatches):
        columns.rows = result.field("row")
        del columns.fields["row"]
        if decode.headers:
            del columns.fields["headers"]
    return columns


def _show(data: bytes, format: str, messages: list[Fields | None], *, everything: bool) -> None:
    screen = console()
    limit = None if everything else VALUE_LIMIT
    if is_batch(format):
        count = count_text(len(messages), "message")
    else:
        headers = (messages[0] or {}).get("headers")
        count = "null" if headers is None else count_text(len(headers), "header")
    screen.print(Text(f"{format}: {count_text(len(data), 'byte')}, {count}", style="bold"))
    shown = messages if everything else messages[:ROWS_ON_SCREEN]
    for number, fields in enumerate(shown):
        if is_batch(format):
            screen.print(Text(f"\nmessage {number}" + (": null" if fields is None else ""), style="bold"))
        _show_message(screen, format, fields or {}, limit)
    if len(messages) > len(shown):
        screen.print(Text(f"… {count_text(len(messages) - len(shown), 'more message')} (--all)", style="dim"))


def _show_message(screen: Console, format: str, fields: Fields, limit: int | None) -> None:
    for name, value in fields.items():
        if name not in ("headers", "error"):
            screen.print(Text.assemble(f"{name}: ", _field_text(name, value, format, limit)))
    if "headers" in fields and fields["headers"] is None:
        screen.print(Text.assemble("headers: ", value_text(None)))
    elif fields.get("headers"):
        screen.print(headers_table(fields["headers"], limit=limit))
    for error in fields.get("error") or []:
        position = "" if error["byte_offset"] is None else f", byte {error['byte_offset']}"
        screen.print(Text(f"! {printable(error['message'])} ({error['code']}{position})", style="bold red"))


def _field_text(name: str, value: Any, format: str, limit: int | None) -> Text:
    if isinstance(value, bytes) or value is None:
        return format_with_size(value, limit)
    if name.endswith("timestamp"):
        return time_text(value, microseconds=in_microseconds(format))
    return Text(str(value).lower() if isinstance(value, bool) else str(value))
