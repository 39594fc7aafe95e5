"""`letterhead decode`: one cell, or a column of a Parquet file."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

import letterhead as lh
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.render import (
    console,
    counted,
    json_text,
    json_value,
    moment,
    printable,
    quoted,
    short,
    table,
    value_text,
)
from letterhead.cli.source import open_parquet, reason

if TYPE_CHECKING:
    import pyarrow as pa

ErrorPolicy: TypeAlias = Literal["raise", "null", "column"]

VALUE_LIMIT = 60
SUMMARY_LIMIT = 24
HEADERS_IN_SUMMARY = 4
ROWS_ON_SCREEN = 20
BATCH = 10_000


def run_cell(data: bytes, format: str, *, json: bool, lenient: bool, errors: ErrorPolicy, everything: bool) -> int:
    """Decode one cell and print it; with errors="null" and "column" a bad cell is printed as well."""
    found: list[dict[str, Any]] | None = None
    try:
        fields = _message_fields(lh.decode(data, format, lenient=lenient))
    except lh.errors.HeaderError:
        if errors == "raise":
            raise
        fields = None
        if errors == "column":
            row = _partly(data, format, lenient=lenient)
            found = row.pop("error")
            fields = row
    except ValueError as error:
        raise Failure(str(error)) from error
    if json:
        document = None if fields is None else {name: _json_field(name, value) for name, value in fields.items()}
        if found is not None and document is not None:
            document["error"] = found
        print(json_text(document, indent=2))
    else:
        _show_cell(data, format, fields, found, everything=everything)
    return FAULTS if fields is None or found else OK


def run_column(
    path: Path,
    column: str,
    format: str,
    *,
    json: bool,
    lenient: bool,
    errors: ErrorPolicy,
    limit: int | None,
    out: Path | None,
    everything: bool,
) -> int:
    """Decode a column of a Parquet file; say on stderr how many rows were bad, and why."""
    if json and out is not None:
        raise Failure("--json and --out exclude each other: one writes lines, the other Parquet")
    parquet = open_parquet(path, column)
    if limit is None and not json and out is None:
        limit = ROWS_ON_SCREEN
    tally = _Tally()
    batches = _decoded(parquet, column, format, lenient=lenient, errors=errors, limit=limit, tally=tally)
    if out is not None:
        _write(batches, out, path)
        console(sys.stderr).print(f"{counted(tally.rows, 'row')} written to {printable(str(out))}")
    elif json:
        for batch in batches:
            for row in batch.to_pylist():
                print(json_text({name: _json_field(name, value) for name, value in row.items()}))
    else:
        _show_rows(batches, tally, parquet.metadata.num_rows, everything=everything)
    return tally.report()


def _message_fields(message: Any) -> dict[str, Any]:
    """Name the parts of a message: its headers, and for an envelope its other fields."""
    if isinstance(message, lh.Headers):
        return {"headers": _pairs(message)}
    return {
        name: _pairs(value) if isinstance(value, lh.Headers) else value for name, value in message._asdict().items()
    }


def _pairs(headers: Any) -> list[dict[str, Any]]:
    return [{"key": header.key, "value": header.value} for header in headers]


def _partly(data: bytes, format: str, *, lenient: bool) -> dict[str, Any]:
    """Decode a bad cell as a column of one row, which keeps the fields that are whole."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise Failure("--errors column needs pyarrow: pip install 'letterhead[arrow]'") from error
    from letterhead import arrow as lha

    cells = pa.array([data], pa.binary())
    row: dict[str, Any] = pa.array(lha.decode(cells, format, errors="column", lenient=lenient)).to_pylist()[0]
    return row


def _json_field(name: str, value: Any) -> Any:
    """Spell one field for JSON: headers with their values, bytes as hex and text, the rest as it is."""
    if name == "headers" and value is not None:
        return [{"key": header["key"], "value": json_value(header["value"])} for header in value]
    if isinstance(value, bytes):
        return json_value(value)
    return value if value is None or isinstance(value, int | float | str | list) else str(value)


def _show_cell(
    data: bytes, format: str, fields: dict[str, Any] | None, found: list[dict[str, Any]] | None, *, everything: bool
) -> None:
    screen = console()
    limit = None if everything else VALUE_LIMIT
    headers = None if fields is None else fields["headers"]
    count = "null" if headers is None else counted(len(headers), "header")
    screen.print(Text(f"{format}: {counted(len(data), 'byte')}, {count}", style="bold"))
    for name, value in (fields or {}).items():
        if name != "headers":
            screen.print(Text.assemble(f"{name}: ", _field_text(name, value, limit)))
    if headers:
        view = table("header", "key", "value", "bytes", right=("header", "bytes"))
        for index, header in enumerate(headers):
            value = header["value"]
            size = "" if value is None else f"{len(value):,}"
            view.add_row(str(index), quoted(header["key"]), value_text(value, limit=limit), size)
        screen.print(view)
    for fault in found or []:
        place = "" if fault["byte"] is None else f", byte {fault['byte']}"
        screen.print(Text(f"! {printable(fault['message'])} ({fault['code']}{place})", style="bold red"))


def _field_text(name: str, value: Any, limit: int | None) -> Text:
    if isinstance(value, bytes):
        shown = value_text(value, limit=limit)
        return Text.assemble(shown, (f"  ({counted(len(value), 'byte')})", "dim"))
    if value is None:
        return value_text(None)
    date = moment(value) if name == "timestamp" else ""
    return Text.assemble(str(value), (f"  ({date})" if date else "", "dim"))


class _Tally:
    """How many rows were read, and what was wrong with the bad ones."""

    def __init__(self) -> None:
        self.rows = 0
        self.bad = 0
        self.codes: Counter[str] = Counter()

    def report(self) -> int:
        if not self.bad:
            return OK
        codes = ", ".join(f"{code} {count:,}" for code, count in self.codes.most_common())
        print(
            f"letterhead: {self.bad:,} of {counted(self.rows, 'row')} did not decode" + (f": {codes}" if codes else ""),
            file=sys.stderr,
        )
        return FAULTS


def _decoded(
    parquet: Any, column: str, format: str, *, lenient: bool, errors: ErrorPolicy, limit: int | None, tally: _Tally
) -> Iterator[pa.RecordBatch]:
    """Decode batch by batch; the decoded fields stand where the column stood."""
    import pyarrow as pa

    from letterhead import arrow as lha

    total = parquet.metadata.num_rows if limit is None else min(limit, parquet.metadata.num_rows)
    # A file without rows has no batches, but its decoded columns have names and types all the same.
    batches = parquet.iter_batches(batch_size=BATCH) if total else [_no_rows(parquet.schema_arrow)]
    with _progress(total, column) as advance:
        for batch in batches:
            if limit is not None:
                batch = batch.slice(0, limit - tally.rows)
            cells = batch.column(column)
            try:
                decoded = pa.array(lha.decode(cells, format, errors=errors, lenient=lenient))
            except lh.errors.HeaderError as error:
                raise _in_file(error, tally.rows) from error
            except ValueError as error:
                raise Failure(str(error)) from error
            _count(tally, cells, decoded, errors)
            yield _placed(batch, column, decoded)
            advance(batch.num_rows)
            if limit is not None and tally.rows >= limit:
                return


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _in_file(error: Any, rows_before: int) -> Any:
    """Give an error the row of the file, not that of the batch."""
    if error.row is None:
        return error
    return type(error)(
        error.message,
        format=error.format,
        code=error.code,
        offset=error.offset,
        row=error.row + rows_before,
        header=error.header,
        key=error.key,
        column=error.column,
    )


def _count(tally: _Tally, cells: Any, decoded: Any, errors: str) -> None:
    tally.rows += len(cells)
    if errors == "null":
        tally.bad += decoded.null_count - cells.null_count
    elif errors == "column":
        faults = decoded.field("error")
        tally.bad += len(faults) - faults.null_count
        tally.codes.update(faults.flatten().field("code").to_pylist())


def _placed(batch: pa.RecordBatch, column: str, decoded: pa.Array) -> pa.RecordBatch:
    """Put the decoded fields where the column stood; a struct gives one column a field."""
    import pyarrow as pa

    if pa.types.is_struct(decoded.type):
        names = [field.name for field in decoded.type]
        # flatten() carries the struct's own nulls into its fields; field() would not.
        arrays = decoded.flatten()
    else:
        names, arrays = ["headers"], [decoded]
    others = [name for name in batch.schema.names if name != column]
    taken = [name for name in names if name in others]
    if taken:
        raise Failure(f"the file already has a column {taken[0]!r}, which decoding {column!r} would add")
    placed: dict[str, Any] = {}
    for name in batch.schema.names:
        placed.update(zip(names, arrays, strict=True) if name == column else {name: batch.column(name)}.items())
    return pa.RecordBatch.from_arrays(list(placed.values()), names=list(placed))


@contextmanager
def _progress(total: int, what: str) -> Iterator[Any]:
    """Show a progress bar on stderr if that is a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(f"decoding {printable(what)}", total=total)
        yield lambda rows: bar.advance(task, rows)


def _write(batches: Iterator[pa.RecordBatch], out: Path, source: Path) -> None:
    """Write Parquet under another name first, so that a failure leaves no half file behind."""
    import pyarrow.parquet as pq

    if out.exists() and source.samefile(out):
        raise Failure("--out is the file that is read: give another name")
    half = out.with_name(out.name + ".part")
    try:
        first = next(batches)
        with pq.ParquetWriter(half, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        half.replace(out)
    except OSError as error:
        raise Failure(f"cannot write {out}: {reason(error)}") from error
    finally:
        half.unlink(missing_ok=True)


def _show_rows(batches: Iterator[pa.RecordBatch], tally: _Tally, in_file: int, *, everything: bool) -> None:
    screen = console()
    view = None
    for batch in batches:
        if view is None:
            view = table("row", *batch.schema.names, right=("row",))
            shown = 0
        for row in batch.to_pylist():
            view.add_row(str(shown), *(_summary(name, value, everything) for name, value in row.items()))
            shown += 1
    if view is not None:
        screen.print(view)
    screen.print(Text(f"{tally.rows:,} of {counted(in_file, 'row')}", style="dim"))


def _summary(name: str, value: Any, everything: bool) -> Text:
    """Show a cell of the table in a few words; headers as key=value."""
    if isinstance(value, bytes) or value is None:
        return value_text(value) if everything else short(value, SUMMARY_LIMIT)
    if name == "headers":
        shown = value if everything else value[:HEADERS_IN_SUMMARY]
        lines = [Text.assemble(printable(h["key"]), "=", _summary("value", h["value"], everything)) for h in shown]
        if len(value) > len(shown):
            lines.append(Text(f"… {counted(len(value) - len(shown), 'more header')}", style="dim"))
        return Text("\n").join(lines) if lines else Text("none", style="dim")
    if name == "error":
        return Text("\n").join(Text(f"{fault['code']}: {printable(fault['message'])}", style="red") for fault in value)
    return Text(printable(str(value)))
