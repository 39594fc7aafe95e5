"""What workers run: one call of a kernel for each batch.

These objects travel from the driver to the workers: they hold names and options only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from letterhead import arrow as lha
from letterhead.columns import Columns
from letterhead.errors import HeaderError

__all__ = ["HeaderKernel", "Runner"]


@dataclass(frozen=True)
class Runner:
    """Turn batches of the columns that are needed into batches of the columns that were declared.

    Attributes
    ----------
    verb : {"decode", "select", "encode"}
        What is done.
    format : str
        Name of the format.
    options : mapping
        Those of the verb.
    kept : tuple of str
        The first columns of a batch, by their names in the frame: they leave as they came, in the same buffers.
    inputs : mapping of str to int, or int
        Where the column to read is; for an envelope to write, where each of its fields is.
    made : pyarrow.DataType
        What the driver declared the kernel to make: a struct of columns, or the type of the only one.
    names : tuple of str
        Names under which that leaves.
    """

    verb: str
    format: str
    options: Mapping[str, Any]
    kept: tuple[str, ...]
    inputs: int | Mapping[str, int]
    made: pa.DataType
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the kernel over the batches of a partition."""
        for batch in batches:
            yield from self.run(batch)

    def run(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Run the kernel over a batch: one batch comes out, or more where a column would pass 2 GiB."""
        try:
            made = getattr(lha, self.verb)(pa.chunked_array([self._input(batch)]), self.format, **self.options)
        except HeaderError as error:
            raise _in_row(error, batch, self.kept) from None
        row = 0
        for chunk in made.chunks:
            kept = [column.slice(row, len(chunk)) for column in batch.columns[: len(self.kept)]]
            yield pa.RecordBatch.from_arrays([*kept, *self._columns(chunk)], [*self.kept, *self.names])
            row += len(chunk)

    def _input(self, batch: pa.RecordBatch) -> pa.Array:
        if isinstance(self.inputs, int):
            return batch.column(self.inputs)
        return pa.StructArray.from_arrays([batch.column(index) for index in self.inputs.values()], list(self.inputs))

    def _columns(self, made: pa.Array) -> list[pa.Array]:
        """Check what the kernel made, as Spark matches columns by position and ignores names; and take it apart."""
        # As text, because `==` does not look at the names of nested fields.
        if str(made.type) != str(self.made):
            raise RuntimeError(
                f"{self.verb} of {self.format} made {made.type} on this worker where the driver declared {self.made}: "
                "are the versions of letterhead the same?"
            )
        return made.flatten() if pa.types.is_struct(made.type) else [made]


@dataclass(frozen=True)
class HeaderKernel:
    """Read one header of every row: the function of an Arrow UDF.

    Attributes
    ----------
    format : str
        Name of the format.
    columns : mapping
        The one column that ``select`` is asked for.
    errors : {"raise", "null"}
        What to do with bad rows.
    """

    format: str
    columns: Columns
    errors: Literal["raise", "null"]

    def header(self, cells: pa.Array) -> pa.Array:
        """Read the header in every row of a batch; Spark takes the kind of UDF from the type hints."""
        try:
            made = lha.select(cells, self.format, self.columns, errors=self.errors, dialect="spark")
        except HeaderError as error:
            raise _without_row(error) from None
        return made.flatten()[0]


# A row is named by the columns that were kept, as its number in a batch says nothing. --------------------------------

_MOST_COLUMNS = 8

_MOST_CHARACTERS = 40


def _in_row(error: HeaderError, batch: pa.RecordBatch, kept: tuple[str, ...]) -> HeaderError:
    if error.row is None or not kept:
        return _without_row(error)
    values = [f"{name}={_shown(batch.column(index)[error.row])}" for index, name in enumerate(kept[:_MOST_COLUMNS])]
    more = ", …" if len(kept) > _MOST_COLUMNS else ""
    return _without_row(error, f"{error.message} in the row with {', '.join(values)}{more}")


def _without_row(error: HeaderError, message: str | None = None) -> HeaderError:
    return type(error)(
        error.message if message is None else message,
        format=error.format,
        code=error.code,
        offset=error.offset,
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
