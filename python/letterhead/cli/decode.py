"""`letterhead decode`: one cell, or a column of a Parquet file."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

import letterhead as lh
from letterhead._formatting import printable
from letterhead._optional_dependencies import how_to_install
from letterhead.cli.column import (
    ErrorOptions,
    ErrorPolicy,
    Made,
    Tally,
    column_format,
    deliver,
    rows_wanted,
    taken_apart,
    worked,
)
from letterhead.cli.document import headers_of, plain, to_json
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.formats import Reading, in_microseconds, is_batch
from letterhead.cli.headers import headers_table
from letterhead.cli.render import console, counted, json_text, moment, value_text
from letterhead.cli.sniff import format_of
from letterhead.cli.source import open_headers
from letterhead.fields import Columns

VALUE_LIMIT = 60
MESSAGES_ON_SCREEN = 20

Fields = dict[str, Any]


def run_cell(data: bytes, format: str, *, json: bool, errors: ErrorPolicy, everything: bool, options: Reading) -> int:
    """Decode one cell and print it; with errors="null" and "column" a bad cell is printed as well."""
    format = format_of(format, [data])
    try:
        found: list[Fields | None] = (
            _messages(data, format, options) if is_batch(format) else [_message(data, format, options)]
        )
    except lh.errors.HeaderError:
        if errors == "raise":
            raise
        found = _partly(data, format, errors, options)
    except ValueError as error:
        raise Failure(str(error)) from error
    if json:
        documents = [None if fields is None else to_json(fields, format) for fields in found]
        print(json_text({"messages": documents} if is_batch(format) else documents[0], indent=2))
    else:
        _show(data, format, found, everything=everything)
    return FAULTS if any(fields is None or fields.get("error") for fields in found) else OK


def run_column(
    path: Path,
    column: str,
    format: str,
    *,
    json: bool,
    errors: ErrorPolicy,
    error_column: str,
    limit: int | None,
    out: Path | None,
    prefix: str,
    profile: str | None,
    everything: bool,
    options: Reading,
) -> int:
    """Decode a column of a Parquet file, of bytes or of headers; say on stderr how many rows were bad, and why.

    With a profile, the headers of that convention are read into columns of their own.
    """
    limit = rows_wanted(limit, json=json, out=out)
    columns = None if profile is None else _columns(profile)
    parquet, of_bytes = open_headers(path, column)
    format = column_format(format, parquet, column, of_bytes)
    read = _of_batches if is_batch(format) else _of_cells if of_bytes or columns else _of_lists
    tally = Tally("message" if is_batch(format) else "row")

    def work(cells: Any) -> Made:
        made = read(cells, format, ErrorOptions(errors, error_column), columns, options)
        made.fields = {prefix + name: array for name, array in made.fields.items()}
        return made

    batches = worked(parquet, column, work, limit=limit, tally=tally, doing="decoding")
    # With a profile no list of headers is made: one that is there came along.
    spelt = plain if columns else functools.partial(to_json, format=format, headers=prefix + "headers")
    document, in_file = spelt if json else None, parquet.metadata.num_rows
    deliver(
        batches,
        tally,
        path,
        in_file,
        out=out,
        document=document,
        prefix=prefix,
        error_column=error_column,
        everything=everything,
    )
    return tally.report("decode")


def _message(data: bytes, format: str, options: Reading) -> Fields:
    """Name the parts of a message: its headers, and for a message format its other fields."""
    message = lh.decode(data, format, **options)
    return {"headers": message} if isinstance(message, lh.Headers) else message._asdict()


def _messages(data: bytes, format: str, options: Reading) -> list[Fields | None]:
    return [message._asdict() for message in lh.messages(data, format, **options)]


def _partly(data: bytes, format: str, errors: ErrorPolicy, options: Reading) -> list[Fields | None]:
    """Decode a bad cell as a column of one row, which keeps the fields, and the messages, that are whole."""
    try:
        import pyarrow as pa
    except ImportError as error:
        if errors == "null" and not is_batch(format):
            return [None]
        raise Failure(how_to_install(f"--errors {errors}", "pyarrow", "'letterhead[arrow]'")) from error
    from letterhead import arrow as lha

    cells = pa.array([data], pa.binary())
    verb = lha.messages if is_batch(format) else lha.decode
    rows: list[Fields] = pa.array(verb(cells, format, errors="column", **options)).to_pylist()
    for row in rows:
        row.pop("row", None)
        row["headers"] = None if row["headers"] is None else headers_of(row["headers"])
    return [None if errors == "null" and row["error"] else row for row in rows]


def _columns(profile: str) -> Columns:
    try:
        return lh.profile(profile)
    except ValueError as error:
        raise Failure(str(error)) from error


def _of_cells(cells: Any, format: str, errors: ErrorOptions, columns: Columns | None, options: Reading) -> Made:
    from letterhead import arrow as lha

    if columns is None:
        made = lha.decode(cells, format, **errors.options, **options)
    else:
        made = lha.select(cells, format, columns, **errors.options, **options)
    return taken_apart(made, "headers", errors)


def _of_lists(cells: Any, format: str, errors: ErrorOptions, columns: Columns | None, options: Reading) -> Made:
    """Take headers that are decoded already, as Spark reads them from a topic."""
    from letterhead import arrow as lha

    lha.scan(cells.slice(0, 0), format)  # raises if the lists are not headers of the format
    return Made({"headers": cells})


def _of_batches(cells: Any, format: str, errors: ErrorOptions, columns: Columns | None, options: Reading) -> Made:
    import pyarrow as pa

    from letterhead import arrow as lha

    array = pa.array(lha.messages(cells, format, headers=columns, **errors.options, **options))
    made = taken_apart(array, "headers", errors)
    del made.fields["row"]
    if columns is not None:
        del made.fields["headers"]
    made.rows = array.field("row")
    return made


def _show(data: bytes, format: str, found: list[Fields | None], *, everything: bool) -> None:
    screen = console()
    limit = None if everything else VALUE_LIMIT
    head = f"{format}: {counted(len(data), 'byte')}, "
    if not is_batch(format):
        [fields] = found
        headers = None if fields is None else fields["headers"]
        count = "null" if headers is None else counted(len(headers), "header")
        screen.print(Text(head + count, style="bold"))
        _show_message(screen, format, fields or {}, limit)
        return
    screen.print(Text(head + counted(len(found), "message"), style="bold"))
    shown = found if everything else found[:MESSAGES_ON_SCREEN]
    for number, fields in enumerate(shown):
        screen.print()
        screen.print(Text(f"message {number}" + (": null" if fields is None else ""), style="bold"))
        _show_message(screen, format, fields or {}, limit)
    if len(found) > len(shown):
        screen.print(Text(f"… {counted(len(found) - len(shown), 'more message')} (--all)", style="dim"))


def _show_message(screen: Console, format: str, fields: Fields, limit: int | None) -> None:
    for name, value in fields.items():
        if name not in ("headers", "error"):
            screen.print(Text.assemble(f"{name}: ", _field_text(name, value, format, limit)))
    if "headers" in fields and fields["headers"] is None:
        screen.print(Text.assemble("headers: ", value_text(None)))
    elif fields.get("headers"):
        screen.print(headers_table(fields["headers"], limit=limit))
    for fault in fields.get("error") or []:
        place = "" if fault["byte_offset"] is None else f", byte {fault['byte_offset']}"
        screen.print(Text(f"! {printable(fault['message'])} ({fault['code']}{place})", style="bold red"))


def _field_text(name: str, value: Any, format: str, limit: int | None) -> Text:
    if isinstance(value, bytes):
        shown = value_text(value, limit=limit)
        return Text.assemble(shown, (f"  ({counted(len(value), 'byte')})", "dim"))
    if value is None:
        return value_text(None)
    date = moment(value, microseconds=in_microseconds(format)) if name.endswith("timestamp") else ""
    return Text.assemble(
        str(value).lower() if isinstance(value, bool) else str(value), (f"  ({date})" if date else "", "dim")
    )
