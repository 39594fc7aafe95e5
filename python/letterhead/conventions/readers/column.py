"""Read columns of convention values, and find the errors of unreadable rows.

A reader reads a whole column without a Python loop and marks invalid rows. Only for these rows, it then determines the
error of each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from letterhead._arrow_types import OnError, import_column
from letterhead._formatting import printable
from letterhead._invariants import require
from letterhead._names import check_name
from letterhead.errors import DecodeError, ErrorDetail, as_error
from letterhead.fields import Field
from letterhead.operations import DecodeOptions, Encode, Select
from letterhead.operations.remedies import noting_remedy

__all__ = ["Bools", "ColumnReader", "find_value_error", "present_rows", "read_values", "result_type", "run"]

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
"""Type of the field ``error``, as in :func:`letterhead.arrow.select`."""

_BLOCK_ROWS = 1 << 16


class ColumnReader(Protocol):
    """Reader of a column's values."""

    @property
    def name(self) -> str:
        """Format name in errors."""

    @property
    def type(self) -> pa.DataType:
        """Type of the result."""

    def read(self, column: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column; also return a mask of the invalid values, for which the result is null."""

    def find_error(self, data: bytes) -> ErrorDetail | None:
        """Return the error of one value, or None."""


def run(column: Any, reader: ColumnReader, errors: OnError) -> Any:
    """Read a column of any Arrow library: an array into an array, a stream into a chunked array."""
    check_name("errors value", errors, ("raise", "null", "column"))
    values = import_column(column)
    with noting_remedy(errors):
        if isinstance(values, pa.Array):
            return _read_array(values, reader, errors, 0)
        results, row = [], 0
        for chunk in values.chunks:
            results.append(_read_array(chunk, reader, errors, row))
            row += len(chunk)
    return pa.chunked_array(results, type=result_type(reader.type, errors))


def read_values(values: Any, *types: str) -> dict[str, Any]:
    """Parse values as ``select`` does header values, with null for invalid ones."""
    selected = _select(values, types, "null")
    return {type: selected.field(type) for type in types}


def find_value_error(data: bytes, type: str) -> ErrorDetail | None:
    """Return the error of parsing a value as a type, or None."""
    errors = _select(pa.array([data], pa.binary()), [type], "column").field("error")[0].as_py()
    return ErrorDetail(errors[0]["code"], errors[0]["message"], byte_offset=0) if errors else None


def _select(values: Any, types: Sequence[str], errors: OnError) -> Any:
    headers = pa.StructArray.from_arrays([pa.repeat("v", len(values)), values], ["key", "value"])
    lists = pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), headers)
    encoded = Encode("kafka")(lists)
    return Select("kafka", {type: Field(type, "v") for type in types}, DecodeOptions(errors=errors))(encoded)


def present_rows(values: pa.Array) -> Bools:
    """Return a mask of the non-null values."""
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _read_array(values: pa.Array, reader: ColumnReader, errors: str, row: int) -> pa.Array:
    # Intermediate arrays of small blocks fit in the processor's caches, which doubles the speed.
    blocks = [
        _read_block(values.slice(start, _BLOCK_ROWS), reader, errors, row + start)
        for start in range(0, max(len(values), 1), _BLOCK_ROWS)
    ]
    try:
        return blocks[0] if len(blocks) == 1 else pa.concat_arrays(blocks)
    except pa.ArrowInvalid:
        raise ValueError("the values have more than 2 GiB: pass a stream of smaller arrays") from None


def _read_block(values: pa.Array, reader: ColumnReader, errors: str, row: int) -> pa.Array:
    result, bad = reader.read(_binary(values, reader))
    rows = np.flatnonzero(bad)
    if errors == "null" or (errors == "raise" and not len(rows)):
        return result
    if errors == "raise":
        first = int(rows[0])
        raise as_error(_find_error(values, reader, first), DecodeError, reader.name, row=row + first)
    row_errors = pa.array([[_find_error(values, reader, int(index))._asdict()] for index in rows], ERRORS)
    if len(rows) < len(values):
        indexes = np.full(len(values), -1, np.int64)
        indexes[rows] = np.arange(len(rows))
        row_errors = row_errors.take(pa.array(indexes, mask=~bad))
    return pa.StructArray.from_arrays([result, row_errors], fields=list(result_type(reader.type, errors)))


def _binary(values: pa.Array, reader: ColumnReader) -> pa.BinaryArray:
    type = values.type
    if type == pa.string_view():
        values = values.cast(pa.string())
    elif type not in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string()):
        raise TypeError(f"column is {printable(str(type))}, and {reader.name} is read from binary or string")
    if values.type == pa.binary():
        return values
    try:
        return values.cast(pa.binary())
    except pa.ArrowInvalid:
        raise ValueError("65,536 values have more than 2 GiB: pass a stream of smaller arrays") from None


def result_type(type: pa.DataType, errors: str) -> pa.DataType:
    """Return the type of a result: the type of the values, or a struct of values and errors."""
    return pa.struct([("value", type), ("error", ERRORS)]) if errors == "column" else type


def _find_error(values: pa.Array, reader: ColumnReader, row: int) -> ErrorDetail:
    data = pc.cast(values[row : row + 1], pa.binary())[0].as_py()
    return require(reader.find_error(data), f"{reader.name}: the error of row {row}")
