"""Code for workers: :class:`Runner` for `mapInArrow`, and :class:`ArrowFunction` for Arrow UDFs.

These objects are pickled on the driver: they contain an operation with only names and options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyspark
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from letterhead._formatting import as_text, printable
from letterhead._table_batches import split_batches
from letterhead.conventions.schemas import DecodeBySchema
from letterhead.errors import HeaderError, copy_error
from letterhead.limits import Limits
from letterhead.operations import ColumnOperation, ExplodeBatches, Pack, Where
from letterhead.spark.frame import quoted_column

__all__ = ["ArrowFunction", "Runner"]


@dataclass(frozen=True)
class Runner:
    """Turn batches of the transferred columns into batches of the declared columns.

    Attributes
    ----------
    operation : ColumnOperation, DecodeBySchema or Pack
        The operation that runs on every batch.
    kept : tuple of str
        The first columns of a batch, by their names in the DataFrame; they are returned in the same buffers, except by
        :class:`ExplodeBatches`.
    inputs : int, or mapping of str to int or pyarrow.DataType
        Position of the column to read; for an operation that reads a struct, the position of each field, or the type of a
        field that is null.
    result_type : pyarrow.DataType
        The type that the operation has to return, as declared on the driver: a struct of columns, or a single column.
    names : tuple of str
        Names of the new columns. :class:`ExplodeBatches` returns the row number first, and :class:`Where` whether a row is
        selected; these columns have no name.
    identify : mapping of str to int
        Columns whose values an error quotes, and their positions in a batch.
    where : Where, optional
        The condition of the operation, which returns only rows for which it is true: it selects the same rows of the kept
        columns.
    """

    operation: ColumnOperation | DecodeBySchema | Pack
    kept: tuple[str, ...]
    inputs: int | Mapping[str, int | pa.DataType]
    result_type: pa.DataType
    names: tuple[str, ...]
    identify: Mapping[str, int]
    where: Where | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the operation on the batches of a partition."""
        for batch in batches:
            yield from self._run(batch)

    def _run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Run the operation on a batch; yields several where one would be too large."""
        kept, row = batch.columns[: len(self.kept)], 0
        try:
            if self.where is not None and kept:
                selected = pa.concat_arrays([chunk.field(0) for chunk in self.where.chunks(self._input(batch))])
                kept = [column.filter(selected) for column in kept]
            for chunk in self.operation.chunks(self._input(batch)):
                columns = self._columns(chunk)
                if isinstance(self.operation, ExplodeBatches):
                    parts = _repeat_kept(kept, columns[0], columns[1:])
                else:
                    columns = [*(column.slice(row, len(chunk)) for column in kept), *columns]
                    if isinstance(self.operation, Where):
                        selected = columns.pop(len(kept))
                        columns = [column.filter(selected) for column in columns]
                    parts = iter([columns])
                for part in parts:
                    result = pa.RecordBatch.from_arrays(part, [*self.kept, *self.names])
                    yield from split_batches(result, self._limits)
                row += len(chunk)
        except HeaderError as error:
            raise _locate_error(error, batch, self.identify) from None

    @property
    def _limits(self) -> Limits | None:
        return None if isinstance(self.operation, Pack) else self.operation.limits

    def _input(self, batch: pa.RecordBatch) -> _ArrowStream:
        if isinstance(self.inputs, int):
            values = batch.column(self.inputs)
        else:
            columns = [
                batch.column(position) if isinstance(position, int) else pa.nulls(len(batch), position)
                for position in self.inputs.values()
            ]
            values = pa.StructArray.from_arrays(columns, list(self.inputs))
        rows = len(values)
        if isinstance(self.operation, ExplodeBatches):
            # Exploded batches can be many times as large as their input, so only a few rows are read at a time.
            rows = rows * _BYTES_READ // max(values.nbytes, 1)
        rows = max(rows, 1)
        return _ArrowStream(
            pa.chunked_array([values.slice(row, rows) for row in range(0, max(len(values), 1), rows)], values.type)
        )

    def _columns(self, result: pa.Array) -> list[pa.Array]:
        """Split the result into columns; their types are checked, because Spark matches them by position."""
        # Compares text, because `==` ignores the names of nested fields.
        if str(result.type) != str(self.result_type):
            raise RuntimeError(
                f"{type(self.operation).__name__} of {self.operation.format} returned {result.type} on this worker where "
                f"the driver declared {self.result_type}: install the same version of letterhead on both"
            )
        return list(result.flatten()) if pa.types.is_struct(result.type) else [result]


@dataclass(frozen=True)
class ArrowFunction:
    """Picklable Arrow UDF around a function on arrays.

    Attributes
    ----------
    name : str
        Its name in Spark, and in the default name of its column: ``name(column)``.
    function : callable
        The function.
    first_field : bool
        Whether to return the first field of the result, which is a struct.
    """

    name: str
    function: Callable[[pa.Array], pa.Array]
    first_field: bool = False

    def evaluate(self, values: pa.Array, *identify: pa.Array, names: Sequence[str] = ()) -> pa.Array:
        """Evaluate the function on a batch; an error quotes the other columns, whose names are passed."""
        try:
            result = self.function(values)
        except HeaderError as error:
            batch = pa.RecordBatch.from_arrays([*identify], [*names])
            raise _locate_error(error, batch, dict(zip(names, range(len(names)), strict=True))) from None
        return pa.array(result).flatten()[0] if self.first_field else result

    def column(self, column: str | Column, type: DataType, remedy: str = "", identify: Sequence[str] = ()) -> Column:
        """Return the result for a column, with its Spark type; an older Spark raises an error that names the remedy.

        ``identify`` names columns for errors to quote.
        """
        if not hasattr(F, "arrow_udf"):
            raise ValueError(
                f"this needs Arrow UDFs, which came with Spark 4.1, and this is {pyspark.__version__}{remedy}"
            )

        # Spark takes the type of the UDF from the type hints, and the column name from the function name.
        def evaluate(values: pa.Array, *identifying: pa.Array) -> pa.Array:
            return self.evaluate(values, *identifying, names=identify)

        evaluate.__name__ = self.name
        return F.arrow_udf(evaluate, type)(column, *map(quoted_column, identify))


@dataclass(frozen=True)
class _ArrowStream:
    """Column that operations read as a stream, chunk by chunk; they would convert a pyarrow column as a whole."""

    column: pa.ChunkedArray

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.column.__arrow_c_stream__(requested_schema)


# Exploded batches -----------------------------------------------------------------------------------------------------

_BYTES_READ = 1 << 20
"""Bytes of batches that are exploded together: compressed ones can grow several hundred times."""

_BYTES_KEPT = 256 << 20
"""Limit of bytes of the kept columns in a returned batch."""


def _repeat_kept(kept: list[pa.Array], rows: pa.Array, new: list[pa.Array]) -> Iterator[list[pa.Array]]:
    """Repeat the kept columns for each message of their row, split into small parts."""
    if len(rows) > 1:
        first, last = rows[0].as_py(), rows[-1].as_py()
        # Rows are in order, and none is repeated more often than there are messages.
        if sum(column.slice(first, last - first + 1).nbytes for column in kept) * len(rows) > _BYTES_KEPT:
            half = len(rows) // 2
            yield from _repeat_kept(kept, rows[:half], [column[:half] for column in new])
            yield from _repeat_kept(kept, rows[half:], [column[half:] for column in new])
            return
    yield [*(column.take(rows) for column in kept), *new]


# Errors ---------------------------------------------------------------------------------------------------------------

_MAX_CHARACTERS = 40


def _locate_error(error: HeaderError, batch: pa.RecordBatch, identify: Mapping[str, int]) -> HeaderError:
    """Return an error with the columns that identify its row, which its index in an Arrow batch does not."""
    message = error.message
    if error.row is not None and identify:
        values = [f"{name}={_format_value(batch.column(position)[error.row])}" for name, position in identify.items()]
        message = f"{message} in the row with {', '.join(values)}"
    return copy_error(error, message, row=None)


def _format_value(value: pa.Scalar) -> str:
    """Format a value for a message: shortened, without control characters, and nested values only by type."""
    if not value.is_valid:
        return "null"
    type = value.type
    if pa.types.is_nested(type):
        return f"<{str(type).partition('<')[0]}>"
    if pa.types.is_binary(type) or pa.types.is_large_binary(type):
        data = value.as_py()
        text = as_text(data)
        return _short(data.hex(), "") if text is None else _short(text, "'")
    try:
        text = str(value.as_py())
    except (OverflowError, ValueError):
        # A time outside the range of Python's datetime.
        text = str(value.value)
    return _short(text, "'" if pa.types.is_string(type) or pa.types.is_large_string(type) else "")


def _short(text: str, mark: str) -> str:
    return mark + printable(text[:_MAX_CHARACTERS]) + ("…" if len(text) > _MAX_CHARACTERS else "") + mark
