"""A column of a Parquet file, worked on batch by batch: what is made of it stands in its place."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rich.text import Text

import letterhead as lh
from letterhead._formatting import printable
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.headers import SUMMARY_LIMIT, headers_summary
from letterhead.cli.progress import progress
from letterhead.cli.render import console, counted, json_text, short, table, value_text
from letterhead.cli.sniff import AUTO, format_of
from letterhead.cli.source import reason
from letterhead.errors import replaced

if TYPE_CHECKING:
    import pyarrow as pa

ErrorPolicy: TypeAlias = Literal["raise", "null", "column"]

ROWS_ON_SCREEN = 20
# With more, a table of the width of a screen has none that can be read.
MOST_COLUMNS = 7
BATCH = 10_000
# Cells that are looked at to tell what format they are in.
SNIFFED = 100


@dataclass
class Made:
    """What was made of the cells of a batch.

    Attributes
    ----------
    fields : dict of str to array
        The columns that take the place of the cells.
    faults : array or None
        What is wrong with each row, null where it is whole.
    rows : array or None
        The cell that each row comes from, where a cell gives many rows or none.
    """

    fields: dict[str, Any]
    faults: Any = None
    rows: Any = None


@dataclass(frozen=True)
class ErrorOptions:
    """What becomes of bad rows, and the name of the column that says why.

    Attributes
    ----------
    policy : {"raise", "null", "column"}
        What the user asked for.
    column : str
        Name of the column of errors.
    """

    policy: ErrorPolicy
    column: str = "error"

    @property
    def options(self) -> dict[str, Any]:
        """The options of an operation: rows become null here, so that the bad ones can be counted."""
        return {"errors": policy(self.policy), "error_column": self.column}


class Tally:
    """How many rows were made, of how many cells, and what was wrong with the bad ones."""

    def __init__(self, noun: str = "row") -> None:
        self.noun = noun
        self.cells = 0
        self.rows = 0
        self.bad = 0
        self.codes: Counter[str] = Counter()

    def add(self, rows: int, faults: Any) -> None:
        """Count some rows."""
        self.rows += rows
        if faults is not None:
            self.bad += len(faults) - faults.null_count
            self.codes.update(faults.flatten().field("code").to_pylist())

    def of(self, in_file: int) -> str:
        """Say how much of a file that was."""
        if self.noun == "row":
            return f"{self.rows:,} of {counted(in_file, 'row')}"
        return f"{counted(self.rows, self.noun)} from {self.cells:,} of {counted(in_file, 'row')}"

    def report(self, verb: str) -> int:
        """Say on stderr what was wrong, and give the exit code."""
        if not self.bad:
            return OK
        codes = ", ".join(f"{code} {count:,}" for code, count in self.codes.most_common())
        line = f"letterhead: {self.bad:,} of {counted(self.rows, self.noun)} did not {verb}: {codes}"
        print(line, file=sys.stderr)
        return FAULTS


def first_cells(parquet: Any, column: str) -> list[bytes]:
    """Give the first cells of a column that are not null."""
    batches = parquet.iter_batches(batch_size=SNIFFED, columns=[column])
    cells = (cell for batch in batches for cell in batch.column(0).to_pylist() if cell is not None)
    return list(itertools.islice(cells, SNIFFED))


def column_format(format: str, parquet: Any, column: str, of_bytes: bool) -> str:
    """Settle the format of a column: one of bytes can be looked at, one of headers does not say what they came in."""
    if of_bytes:
        return format_of(format, first_cells(parquet, column))
    if format == AUTO:
        raise Failure(f"column {column!r} is headers already: name the --format that they came in, as kafka")
    return format


def worked(
    parquet: Any, column: str, work: Callable[[Any], Made], *, limit: int | None, tally: Tally, doing: str
) -> Iterator[pa.RecordBatch]:
    """Work on a column batch by batch; what is made stands where the column stood."""
    total = parquet.metadata.num_rows if limit is None else min(limit, parquet.metadata.num_rows)
    size = BATCH if limit is None else max(1, min(limit, BATCH))
    # A file without rows has no batches, but its columns have names and types all the same.
    batches = parquet.iter_batches(batch_size=size) if total else [_no_rows(parquet.schema_arrow)]
    with progress(total, f"{doing} {column}") as advance:
        for batch in batches:
            if limit is not None:
                batch = batch.slice(0, limit - tally.rows)
            try:
                made = work(batch.column(column))
            except lh.errors.HeaderError as error:
                raise _in_file(error, tally.cells) from error
            except (ValueError, TypeError) as error:
                raise Failure(str(error)) from error
            placed, faults = _placed(batch, column, made), made.faults
            if limit is not None:
                # A batch in a cell has given more rows than there were cells.
                placed = placed.slice(0, limit - tally.rows)
                faults = None if faults is None else faults.slice(0, limit - tally.rows)
            tally.cells += batch.num_rows
            tally.add(placed.num_rows, faults)
            yield placed
            advance(batch.num_rows)
            if limit is not None and tally.rows >= limit:
                return


def taken_apart(made: Any, name: str, errors: ErrorOptions) -> Made:
    """Take apart what an operation made of a column with `errors.options`; what is no struct gets a name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.array(made)
    if not pa.types.is_struct(array.type):
        return Made({name: array})
    # flatten() carries the struct's own nulls into its fields; field() would not.
    fields = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    faults = fields.get(errors.column) if errors.policy != "raise" else None
    if faults is not None and errors.policy == "null":
        del fields[errors.column]
        whole = pc.if_else(faults.is_null(), pa.array(range(len(array)), pa.int64()), None)
        fields = {name: array.take(whole) for name, array in fields.items()}
    return Made(fields, faults)


def policy(errors: ErrorPolicy) -> Literal["raise", "column"]:
    """Give the policy that a verb is asked for: rows become null here, so that the bad ones can be counted."""
    return "raise" if errors == "raise" else "column"


def deliver(
    batches: Iterator[pa.RecordBatch],
    tally: Tally,
    source: Path,
    in_file: int,
    *,
    out: Path | None,
    document: Callable[[dict[str, Any]], Any] | None,
    prefix: str = "",
    error_column: str = "error",
    everything: bool,
) -> None:
    """Write rows as Parquet where a file is given, as JSON lines where they are asked for, or show them."""
    if out is not None:
        _write(batches, out, source)
        print(f"{counted(tally.rows, tally.noun)} written to {printable(str(out))}", file=sys.stderr)
    elif document is not None:
        for batch in batches:
            for row in batch.to_pylist():
                print(json_text(document(row)))
    else:
        _show_rows(batches, tally, in_file, prefix=prefix, error_column=error_column, everything=everything)


def rows_wanted(limit: int | None, *, json: bool, out: Path | None) -> int | None:
    """Give how many rows are worked on: on a screen, the first ones if nothing else was said."""
    if json and out is not None:
        raise Failure("--json and --out exclude each other: one writes lines, the other Parquet")
    return ROWS_ON_SCREEN if limit is None and not json and out is None else limit


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


def _show_rows(
    batches: Iterator[pa.RecordBatch], tally: Tally, in_file: int, *, prefix: str, error_column: str, everything: bool
) -> None:
    """Show rows as a table, or one below the other where they have too many columns for one."""
    screen = console()
    view = None
    rows = ((batch.schema.names, row) for batch in batches for row in batch.to_pylist() or [None])
    for names, row in rows:
        if view is None:
            wide = len(names) > MOST_COLUMNS
            view = table("", "", head=False) if wide else table(tally.noun, *names, right=(tally.noun,))
            shown = 0
        if row is None:
            continue
        cells = {
            name: _summary(name.removeprefix(prefix), value, error_column, everything) for name, value in row.items()
        }
        if wide:
            view.add_row(Text(f"{tally.noun} {shown}", style="bold"))
            for name, cell in cells.items():
                view.add_row(f"  {name}", cell)
        else:
            view.add_row(str(shown), *cells.values())
        shown += 1
    if view is not None:
        screen.print(view)
    screen.print(Text(tally.of(in_file), style="dim"))


def _summary(name: str, value: Any, error_column: str, everything: bool) -> Text:
    """Show a cell of the table in a few words."""
    if isinstance(value, bytes) or value is None:
        return value_text(value) if everything else short(value, SUMMARY_LIMIT)
    if name == "headers" and isinstance(value, list):
        return headers_summary(value, everything=everything)
    if name == error_column and isinstance(value, list):
        return Text("\n").join(Text(f"{fault['code']}: {printable(fault['message'])}", style="red") for fault in value)
    if name == "losses":
        codes = Counter(loss["code"] for loss in value)
        return Text(", ".join(f"{code} {count:,}" for code, count in codes.items()))
    return Text(printable(str(value).lower() if isinstance(value, bool) else str(value)))


def _placed(batch: pa.RecordBatch, column: str, made: Made) -> pa.RecordBatch:
    """Put what was made where the column stood."""
    import pyarrow as pa

    others = batch if made.rows is None else batch.take(made.rows)
    taken = [name for name in made.fields if name in batch.schema.names and name != column]
    if taken:
        raise Failure(
            f"the file already has a column {taken[0]!r}, which decoding {column!r} would add: give a --prefix"
        )
    placed: dict[str, Any] = {}
    for name in batch.schema.names:
        placed.update(made.fields if name == column else {name: others.column(name)})
    return pa.RecordBatch.from_arrays(list(placed.values()), names=list(placed))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _in_file(error: Any, cells_before: int) -> Any:
    """Give an error the row of the file, not that of the batch."""
    return error if error.row is None else replaced(error, row=error.row + cells_before)
