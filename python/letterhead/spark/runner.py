"""What workers run: one call of an operation for each Arrow batch.

These objects are pickled on the driver: they hold names and options only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from letterhead._formatting import as_text, printable
from letterhead.errors import HeaderError, replaced
from letterhead.spark.schemas import operation_of

__all__ = ["ArrowFunction", "Runner"]


@dataclass(frozen=True)
class Runner:
    """Turn batches of the transferred columns into batches of the declared columns.

    Attributes
    ----------
    operation : {"decode", "select", "encode", "convert", "messages", "where", "decode_by_schema"}
        Name of the function of :mod:`letterhead.arrow`; ``"where"`` keeps the rows that a condition selects.
    format : str
        Name of the format.
    options : mapping
        Options of the operation.
    kept : tuple of str
        The first columns of a batch, by their names in the frame; they are returned in the same buffers, except by
        ``messages``.
    inputs : int, or mapping of str to int or pyarrow.DataType
        Position of the column to read; for a message format to write, the position of each field, or the type of a field
        that is null; for ``decode_by_schema`` the positions of ``value`` and ``headers``.
    made : pyarrow.DataType
        The type that the operation has to return, as declared on the driver: a struct of columns, or a single column.
    names : tuple of str
        Names of the new columns. ``messages`` returns the row number first, ``where`` whether a row is selected; these have
        none.
    identify : mapping of str to int
        Columns whose values an error quotes, and their positions in a batch.
    """

    operation: str
    format: str
    options: Mapping[str, Any]
    kept: tuple[str, ...]
    inputs: int | Mapping[str, int | pa.DataType]
    made: pa.DataType
    names: tuple[str, ...]
    identify: Mapping[str, int]

    @property
    def multiplies(self) -> bool:
        """Whether a row becomes any number of rows; the first new column is then the number of its row."""
        return self.operation == "messages"

    @property
    def selects(self) -> bool:
        """Whether the first column that the operation returns only selects rows."""
        return self.operation in ("messages", "where")

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the operation on the batches of a partition."""
        for batch in batches:
            yield from self._run(batch)

    def _run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Run the operation on a batch; returns several where one would be too large."""
        kept, row = batch.columns[: len(self.kept)], 0
        try:
            for chunk in operation_of(self.operation)(self._input(batch), self.format, **self.options):
                made = self._columns(pa.array(chunk))
                if self.multiplies:
                    parts = _repeated(kept, made[0], made[1:])
                elif self.selects:
                    rows = [*(column.slice(row, len(chunk)) for column in kept), *made[1:]]
                    parts = iter([[column.filter(made[0]) for column in rows]])
                else:
                    parts = iter([[*(column.slice(row, len(chunk)) for column in kept), *made]])
                for columns in parts:
                    yield pa.RecordBatch.from_arrays(columns, [*self.kept, *self.names])
                row += len(chunk)
        except HeaderError as error:
            raise _in_row(error, batch, self.identify) from None

    def _input(self, batch: pa.RecordBatch) -> _Unread:
        if isinstance(self.inputs, int):
            values = batch.column(self.inputs)
        else:
            columns = [
                batch.column(place) if isinstance(place, int) else pa.nulls(len(batch), place)
                for place in self.inputs.values()
            ]
            values = pa.StructArray.from_arrays(columns, list(self.inputs))
        # Exploded batches can be many times as large as their input: a few rows are read at a time.
        rows = len(values) * _BYTES_READ // max(values.nbytes, 1) if self.multiplies else len(values)
        rows = max(rows, 1)
        return _Unread(
            pa.chunked_array([values.slice(row, rows) for row in range(0, max(len(values), 1), rows)], values.type)
        )

    def _columns(self, made: pa.Array) -> list[pa.Array]:
        """Split the result into columns; their types are checked, as Spark matches them by position."""
        # As text, because `==` ignores the names of nested fields.
        if str(made.type) != str(self.made):
            raise RuntimeError(
                f"{self.operation} of {self.format} made {made.type} on this worker where the driver declared "
                f"{self.made}: install the same version of letterhead on both"
            )
        return list(made.flatten()) if pa.types.is_struct(made.type) else [made]


@dataclass(frozen=True)
class ArrowFunction:
    """The function of an Arrow UDF, with its options; ``only`` selects the first field of a struct that it returns."""

    function: Callable[..., pa.Array]
    options: Mapping[str, Any]
    only: bool = False

    def read(self, values: pa.Array) -> pa.Array:
        """Read the values of a batch; Spark takes the type of UDF from the type hints."""
        try:
            made = self.function(values, **self.options)
        except HeaderError as error:
            # The row number is that within an Arrow batch, and does not identify a row of the frame.
            raise replaced(error, row=None) from None
        return made.flatten()[0] if self.only else made

    def of(self, column: str | Column, type: DataType, instead: str = "") -> Column:
        """Return the UDF of a column, of a type of Spark; ``instead`` names the remedy where Spark is too old."""
        if not hasattr(F, "arrow_udf"):
            raise ValueError(
                f"this needs Arrow UDFs, which came with Spark 4.1, and this is {pyspark.__version__}{instead}"
            )
        return F.arrow_udf(self.read, type)(column)


@dataclass(frozen=True)
class _Unread:
    """A column that is converted chunk by chunk: a pyarrow column would be converted as a whole."""

    column: pa.ChunkedArray

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.column.__arrow_c_stream__(requested_schema)


# Exploded batches -----------------------------------------------------------------------------------------------------

_BYTES_READ = 8 << 20
_BYTES_KEPT = 256 << 20


def _repeated(kept: list[pa.Array], rows: pa.Array, made: list[pa.Array]) -> Iterator[list[pa.Array]]:
    """Repeat the kept columns for each message of their row, split into parts so that they stay small."""
    if len(rows) > 1:
        first, last = rows[0].as_py(), rows[-1].as_py()
        # Rows are in order, and none is repeated more often than there are messages.
        if sum(column.slice(first, last - first + 1).nbytes for column in kept) * len(rows) > _BYTES_KEPT:
            half = len(rows) // 2
            yield from _repeated(kept, rows[:half], [column[:half] for column in made])
            yield from _repeated(kept, rows[half:], [column[half:] for column in made])
            return
    yield [*(column.take(rows) for column in kept), *made]


# Errors ---------------------------------------------------------------------------------------------------------------

_MOST_CHARACTERS = 40


def _in_row(error: HeaderError, batch: pa.RecordBatch, identify: Mapping[str, int]) -> HeaderError:
    """Return an error with the columns that identify its row, as its number in an Arrow batch does not identify it."""
    message = error.message
    if error.row is not None and identify:
        values = [f"{name}={_formatted(batch.column(at)[error.row])}" for name, at in identify.items()]
        message = f"{message} in the row with {', '.join(values)}"
    return replaced(error, message, row=None)


def _formatted(value: pa.Scalar) -> str:
    """Format a value for a message: shortened, without control characters, and nested values by their types only."""
    if not value.is_valid:
        return "null"
    of = value.type
    if pa.types.is_nested(of):
        return f"<{str(of).partition('<')[0]}>"
    if pa.types.is_binary(of) or pa.types.is_large_binary(of):
        data = value.as_py()
        text = as_text(data)
        return _short(data.hex(), "") if text is None else _short(text, "'")
    try:
        text = str(value.as_py())
    except (OverflowError, ValueError):
        # A time outside the range of Python's datetime.
        text = str(value.value)
    return _short(text, "'" if pa.types.is_string(of) or pa.types.is_large_string(of) else "")


def _short(text: str, mark: str) -> str:
    return mark + printable(text[:_MOST_CHARACTERS]) + ("…" if len(text) > _MOST_CHARACTERS else "") + mark
