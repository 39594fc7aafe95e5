"""What workers run: one call of a kernel for each batch.

These objects travel from the driver to the workers: they hold names and options only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from letterhead import arrow as lha
from letterhead.errors import HeaderError

__all__ = ["ArrowFunction", "Runner"]


@dataclass(frozen=True)
class Runner:
    """Turn batches of the columns that are needed into batches of the columns that were declared.

    Attributes
    ----------
    verb : {"decode", "select", "encode", "convert", "messages"}
        What is done.
    format : str
        Name of the format.
    options : mapping
        Those of the verb.
    kept : tuple of str
        The first columns of a batch, by their names in the frame. Where rows stay rows they leave as they came, in the
        same buffers.
    inputs : int, or mapping of str to int or pyarrow.DataType
        Where the column to read is; for a message format to write, where each of its fields is, or the type of its nulls.
    made : pyarrow.DataType
        What the driver declared the kernel to make: a struct of columns, or the type of the only one.
    names : tuple of str
        Names under which that leaves.
    multiplies : bool
        Whether a row becomes any number of rows. The first column that is made then says which row each is from; what is
        kept is repeated by it, and it does not leave.
    """

    verb: str
    format: str
    options: Mapping[str, Any]
    kept: tuple[str, ...]
    inputs: int | Mapping[str, int | pa.DataType]
    made: pa.DataType
    names: tuple[str, ...]
    multiplies: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the kernel over the batches of a partition."""
        for batch in batches:
            yield from self.run(batch)

    def run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Run the kernel over a batch: one batch comes out, or more where one would be too large."""
        kept, row = batch.columns[: len(self.kept)], 0
        try:
            for chunk in getattr(lha, self.verb)(self._cells(batch), self.format, **self.options):
                made = self._columns(pa.array(chunk))
                if self.multiplies:
                    parts = _repeated(kept, made[0], made[1:])
                else:
                    parts = iter([[*(column.slice(row, len(chunk)) for column in kept), *made]])
                for columns in parts:
                    yield pa.RecordBatch.from_arrays(columns, [*self.kept, *self.names])
                row += len(chunk)
        except HeaderError as error:
            raise _in_row(error, batch, self.kept) from None

    def _cells(self, batch: pa.RecordBatch) -> _Unread:
        if isinstance(self.inputs, int):
            cells = batch.column(self.inputs)
        else:
            columns = [
                batch.column(place) if isinstance(place, int) else pa.nulls(len(batch), place)
                for place in self.inputs.values()
            ]
            cells = pa.StructArray.from_arrays(columns, list(self.inputs))
        # What rows become when they multiply can be many times as large: a few are read at a time.
        rows = len(cells) * _BYTES_READ // max(cells.nbytes, 1) if self.multiplies else len(cells)
        rows = max(rows, 1)
        return _Unread(
            pa.chunked_array([cells.slice(row, rows) for row in range(0, max(len(cells), 1), rows)], cells.type)
        )

    def _columns(self, made: pa.Array) -> list[pa.Array]:
        """Check what the kernel made, as Spark matches columns by position and ignores names; and take it apart."""
        # As text, because `==` does not look at the names of nested fields.
        if str(made.type) != str(self.made):
            raise RuntimeError(
                f"{self.verb} of {self.format} made {made.type} on this worker where the driver declared {self.made}: "
                "are the versions of letterhead the same?"
            )
        return list(made.flatten()) if pa.types.is_struct(made.type) else [made]


@dataclass(frozen=True)
class ArrowFunction:
    """Read every value of a column: the function of an Arrow UDF.

    Attributes
    ----------
    function : callable
        What reads a :class:`pyarrow.Array`.
    options : mapping
        Its other arguments, by name.
    only : bool, default False
        Whether it makes a struct of which the first column is wanted.
    """

    function: Callable[..., pa.Array]
    options: Mapping[str, Any]
    only: bool = False

    def read(self, cells: pa.Array) -> pa.Array:
        """Read the values of a batch; Spark takes the type of UDF from the type hints."""
        with _rows_unsaid():
            made = self.function(cells, **self.options)
        return made.flatten()[0] if self.only else made


@dataclass(frozen=True)
class _Unread:
    """A column of which nothing is made before it is asked for: what pyarrow gives is read at once."""

    column: pa.ChunkedArray

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.column.__arrow_c_stream__(requested_schema)


# Rows that multiply. ---------------------------------------------------------------------------------------------------

_BYTES_READ = 8 << 20

_BYTES_KEPT = 256 << 20


def _repeated(kept: list[pa.Array], rows: pa.Array, made: list[pa.Array]) -> Iterator[list[pa.Array]]:
    """Put beside each message what was kept of its row, in parts in which that stays small."""
    if len(rows) > 1:
        first, last = rows[0].as_py(), rows[-1].as_py()
        # Rows stand in order. None of them is repeated more often than there are messages.
        if sum(column.slice(first, last - first + 1).nbytes for column in kept) * len(rows) > _BYTES_KEPT:
            half = len(rows) // 2
            yield from _repeated(kept, rows[:half], [column[:half] for column in made])
            yield from _repeated(kept, rows[half:], [column[half:] for column in made])
            return
    yield [*(column.take(rows) for column in kept), *made]


# A row is named by the columns that were kept, as its number in a batch says nothing. --------------------------------

_MOST_COLUMNS = 8

_MOST_CHARACTERS = 40


def _in_row(error: HeaderError, batch: pa.RecordBatch, kept: tuple[str, ...]) -> HeaderError:
    if error.row is None or not kept:
        return _without_row(error)
    values = [f"{name}={_shown(batch.column(index)[error.row])}" for index, name in enumerate(kept[:_MOST_COLUMNS])]
    more = ", …" if len(kept) > _MOST_COLUMNS else ""
    return _without_row(error, f"{error.message} in the row with {', '.join(values)}{more}")


@contextmanager
def _rows_unsaid() -> Iterator[None]:
    """Take the row out of an error: it is that of a batch, and says nothing to whoever has the frame."""
    try:
        yield
    except HeaderError as error:
        raise _without_row(error) from None


def _without_row(error: HeaderError, message: str | None = None) -> HeaderError:
    return type(error)(
        error.message if message is None else message,
        format=error.format,
        code=error.code,
        byte_offset=error.byte_offset,
        header=error.header,
        key=error.key,
        column=error.column,
    )


def _shown(value: pa.Scalar) -> str:
    """Make a value short enough for a message; bytes and nested values are named, not shown."""
    if not value.is_valid:
        return "null"
    of = value.type
    if pa.types.is_binary(of) or pa.types.is_large_binary(of):
        return f"<{len(value.as_buffer())} bytes>"
    if pa.types.is_nested(of):
        return f"<{str(of).partition('<')[0]}>"
    try:
        text = str(value.as_py())
    except (OverflowError, ValueError):
        # A time that Python's own cannot hold.
        text = str(value.value)
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS] + "…"
    return repr(text) if pa.types.is_string(of) or pa.types.is_large_string(of) else text
