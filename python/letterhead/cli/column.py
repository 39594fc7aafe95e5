"""Process a column of a table batch by batch, and print or write the result in place of the column."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

import letterhead as lh
from letterhead._row_request import RowRequest
from letterhead.cli.edits import null_where_unreadable
from letterhead.cli.exits import Failure
from letterhead.cli.message_input import MessageInput
from letterhead.cli.progress import progress
from letterhead.cli.render import note
from letterhead.cli.row_counts import RowCounts
from letterhead.cli.row_options import RowOptions
from letterhead.cli.row_writers import open_writer
from letterhead.cli.screen import console
from letterhead.cli.sniff import AUTO, format_of
from letterhead.cli.sources.columns import SourceColumn, open_column
from letterhead.errors import after_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.limits import Limits

# Number of values that `--format auto` examines.
SNIFFED = 100


@dataclass
class NewColumns:
    """Columns that replace a column, with the errors of each row and, for batches, the input row of each row."""

    fields: dict[str, Any]
    errors: Any = None
    rows: Any = None

    def add_errors(self, unread: pa.Array) -> pa.Array:
        """Merge errors that the source reported for its rows; return the errors of rows that produced no message."""
        import pyarrow as pa
        import pyarrow.compute as pc

        left = unread.slice(0, 0)
        if self.rows is not None:
            left = unread.filter(
                pc.invert(pc.is_in(pa.array(range(len(unread)), self.rows.type), self.rows))
            ).drop_null()
            unread = unread.take(self.rows)
        if self.errors is None:
            self.errors = unread
        elif unread.null_count < len(unread):
            pairs = zip(unread.to_pylist(), self.errors.to_pylist(), strict=True)
            self.errors = pa.array(
                [[*(first or ()), *(second or ())] if first or second else None for first, second in pairs],
                self.errors.type,
            )
        return left


def open_values(
    source: MessageInput, format: str, rows: RowOptions, request: RowRequest, limits: Limits | None
) -> tuple[SourceColumn, str, RowOptions]:
    """Open the column of --column; return the column, its format, and row options with a default limit on a terminal."""
    rows.validate()
    rows = rows.with_screen_limit()
    request = replace(request, limits=limits)
    column = open_column(source.table, source.column or "", request, errors=rows.error_options["errors"])
    return column, column_format(format, column), rows


def column_format(format: str, column: SourceColumn) -> str:
    """Return the format of a column, detected from its bytes if it is `auto`."""
    if format != AUTO:
        return format_of(format, []) if column.is_bytes else format
    if not column.is_bytes:
        raise Failure(f"column {column.name!r} holds decoded headers: name their original --format, such as kafka")
    return format_of(format, column.first_values(SNIFFED))


def process_column(
    column: SourceColumn,
    work: Callable[[Any], NewColumns],
    rows: RowOptions,
    *,
    tally: RowCounts,
    doing: str,
    prefix: str = "",
) -> Iterator[pa.RecordBatch]:
    """Process a column in batches, and replace it by the result. ``prefix`` precedes the name of the error column."""
    limit, total = rows.limit, column.rows
    if limit is not None and total is not None:
        total = min(limit, total)
    # A source without rows has no batches, but its columns still have names and types.
    empty = column.empty()
    with progress(total, f"{doing} {column.name}", prints=rows.out is None, source=column.source) as advance:
        for batch, unread in itertools.chain([empty], column.batches() if limit != 0 else ()):
            if limit is not None:
                tally.more |= batch.num_rows > limit - tally.rows
                batch = batch.slice(0, limit - tally.rows)
                unread = None if unread is None else unread.slice(0, limit - tally.rows)
            if unread is not None and rows.errors == "null":
                batch, unread = _drop_undecided(batch, unread, tally)
            try:
                new = work(batch.column(column.name))
            except lh.errors.HeaderError as error:
                # Replace the row number in the batch by the row number in the file.
                raise after_rows(error, tally.values) from error
            except (ValueError, TypeError) as error:
                raise Failure(str(error)) from error
            if unread is not None:
                if new.rows is None:
                    values = batch.column(column.name)
                    fields = new.fields.items()
                    new.fields = {name: null_where_unreadable(array, values, unread) for name, array in fields}
                tally.add_errors(new.add_errors(unread))
                if rows.errors == "column":
                    new.fields[prefix + rows.error_column] = new.errors
            result, errors = _replace_column(batch, column.name, new), new.errors
            if limit is not None:
                tally.more |= tally.rows + result.num_rows > limit
                # Batch formats may return more rows than input values.
                result = result.slice(0, limit - tally.rows)
                errors = None if errors is None else errors.slice(0, limit - tally.rows)
            tally.values += batch.num_rows
            tally.add(result.num_rows, errors)
            yield result
            advance(batch.num_rows)
            if limit is not None and tally.rows >= limit:
                return


def _drop_undecided(batch: pa.RecordBatch, errors: pa.Array, tally: RowCounts) -> tuple[pa.RecordBatch, pa.Array]:
    """Drop rows for which the condition is null, and count them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    of_condition = pc.equal(errors.flatten().field("column"), "where")
    undecided = pc.list_parent_indices(errors).filter(of_condition)
    mask = pc.is_in(pa.array(range(len(batch)), undecided.type), undecided)
    tally.left_out += pc.sum(mask).as_py() or 0
    tally.add_errors(errors.filter(mask))
    return batch.filter(pc.invert(mask)), errors.filter(pc.invert(mask))


def new_columns(array: pa.Array, name: str, rows: RowOptions) -> NewColumns:
    """Split the result of an operation with `rows.read_options` into columns; a non-struct result is named `name`."""
    import pyarrow as pa

    if not pa.types.is_struct(array.type):
        return NewColumns({name: array})
    # flatten() applies the struct's own nulls to its fields; field() would not.
    fields = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    errors = fields.get(rows.error_column) if rows.errors != "raise" else None
    if rows.errors == "null":
        fields.pop(rows.error_column, None)
    return NewColumns(fields, errors)


def deliver(
    batches: Iterator[pa.RecordBatch], tally: RowCounts, source: Path | None, total: int | None, rows: RowOptions
) -> None:
    """Write rows to a file or as JSON lines, or show them in a table."""
    if rows.out is not None and source is not None and rows.out.exists() and source.samefile(rows.out):
        raise Failure("--out is the file that is read: give another name")
    first = next(batches)
    with open_writer(first.schema, rows.row_format(tally.noun)) as writer:
        for batch in itertools.chain([first], batches):
            writer.write(batch)
    if rows.on_screen:
        console().print(Text(tally.summary(total), style="dim"))
    elif rows.out is not None:
        note(f"{tally.counted} written to {rows.out}")


def _replace_column(batch: pa.RecordBatch, column: str, new: NewColumns) -> pa.RecordBatch:
    import pyarrow as pa

    others = batch if new.rows is None else batch.take(new.rows)
    taken = [name for name in new.fields if name in batch.schema.names and name != column]
    if taken:
        raise Failure(
            f"the file already has a column {taken[0]!r}, which decoding {column!r} would add: give a --prefix"
        )
    columns: dict[str, Any] = {}
    for name in batch.schema.names:
        columns.update(new.fields if name == column else {name: others.column(name)})
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
