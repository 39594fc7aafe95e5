"""How readers of columns are run, and how their errors are raised or returned.

A reader reads a whole column without a loop and says which rows it could not read. Only those are looked at one by one,
by the function that knows what is wrong with a single value.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import _native
from letterhead.errors import DecodeError, Fault, check_name
from letterhead.fields import ColumnSpec

__all__ = ["Bools", "Reader", "present_rows", "read_values", "result_type", "run"]

Bools: TypeAlias = npt.NDArray[np.bool_]

ERRORS = pa.list_(
    pa.field(
        "element",
        pa.struct([
            ("code", pa.string()), ("message", pa.string()), ("byte_offset", pa.int64()), ("header", pa.int32()),
            ("key", pa.string()), ("column", pa.string()),
        ]),
    )
)  # fmt: skip
"""The type of the field ``error``, that of :func:`letterhead.arrow.select`."""


_ROWS_AT_ONCE = 1 << 16


class Reader(Protocol):
    """What reads the values of a column.

    Attributes
    ----------
    name : str
        What errors name as the format.
    type : pyarrow.DataType
        What the values become.
    """

    @property
    def name(self) -> str:
        """What errors name as the format."""

    @property
    def type(self) -> pa.DataType:
        """What the values become."""

    def read(self, cells: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column; the second is where there is a value that could not be read, and there the first is null."""

    def fault(self, data: bytes) -> Fault | None:
        """Say what is wrong with one value."""


def run(column: Any, reader: Reader, errors: Literal["raise", "null", "column"]) -> Any:
    """Read a column of any Arrow library: an array gives an array, a stream a chunked array."""
    check_name("errors value", errors, ("raise", "null", "column"))
    if hasattr(column, "__arrow_c_array__"):
        return _array(pa.array(column), reader, errors, 0)
    if not hasattr(column, "__arrow_c_stream__"):
        raise TypeError(f"column must be an Arrow array or stream, not {type(column).__name__}")
    given = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array(column)
    made, row = [], 0
    for chunk in given.chunks:
        made.append(_array(chunk, reader, errors, row))
        row += len(chunk)
    return pa.chunked_array(made, type=result_type(reader.type, errors))


def read_values(values: Any, *types: str) -> dict[str, Any]:
    """Read values as ``select`` reads those of headers; null where a value is none of the type."""
    headers = pa.StructArray.from_arrays([pa.repeat("v", len(values)), values], ["key", "value"])
    lists = pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), headers)
    blocks = _native.apply("encode", lists, "kafka")
    wanted: list[ColumnSpec] = [(type, "v", type, "last", False) for type in types]
    read = pa.array(_native.apply("select", blocks, "kafka", columns=wanted, errors="column"))
    return {type: read.field(type) for type in types}


def present_rows(cells: pa.Array) -> Bools:
    """Say which cells are not null."""
    if not cells.null_count:
        return np.ones(len(cells), np.bool_)
    return np.asarray(cells.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _array(cells: pa.Array, reader: Reader, errors: str, row: int) -> pa.Array:
    # What is made of a few rows on the way stays in the caches of a processor: that is twice as fast.
    blocks = [
        _block(cells.slice(at, _ROWS_AT_ONCE), reader, errors, row + at)
        for at in range(0, max(len(cells), 1), _ROWS_AT_ONCE)
    ]
    try:
        return blocks[0] if len(blocks) == 1 else pa.concat_arrays(blocks)
    except pa.ArrowInvalid:
        raise ValueError("the values have more than 2 GiB: pass a stream of smaller arrays") from None


def _block(cells: pa.Array, reader: Reader, errors: str, row: int) -> pa.Array:
    values, bad = reader.read(_binary(cells, reader))
    rows = np.flatnonzero(bad)
    if errors == "null" or (errors == "raise" and not len(rows)):
        return values
    if errors == "raise":
        first = int(rows[0])
        raise _fault(cells, reader, first).as_error(DecodeError, reader.name, row=row + first)
    found = pa.array([[_fault(cells, reader, int(at))._asdict()] for at in rows], ERRORS)
    if len(rows) < len(cells):
        places = np.full(len(cells), -1, np.int64)
        places[rows] = np.arange(len(rows))
        found = found.take(pa.array(places, mask=~bad))
    return pa.StructArray.from_arrays([values, found], fields=list(result_type(reader.type, errors)))


def _binary(cells: pa.Array, reader: Reader) -> pa.BinaryArray:
    types = pa.types
    of = cells.type
    if types.is_string_view(of):
        cells = cells.cast(pa.string())
    elif not (types.is_binary(of) or types.is_large_binary(of) or types.is_binary_view(of) or types.is_string(of)
              or types.is_large_string(of)):  # fmt: skip
        raise TypeError(f"column is {of}, and {reader.name} is read from binary or string")
    if cells.type == pa.binary():
        return cells
    try:
        return cells.cast(pa.binary())
    except pa.ArrowInvalid:
        raise ValueError("65,536 values have more than 2 GiB: pass a stream of smaller arrays") from None


def result_type(type: pa.DataType, errors: str) -> pa.DataType:
    """Give the type of a result: that of the values, or of a struct that has the errors as well."""
    return pa.struct([("value", type), ("error", ERRORS)]) if errors == "column" else type


def _fault(cells: pa.Array, reader: Reader, row: int) -> Fault:
    data = pc.cast(cells[row : row + 1], pa.binary())[0].as_py()
    found = reader.fault(data)
    assert found is not None, f"{reader.name}: row {row} was not read, and nothing is wrong with it"
    return found
