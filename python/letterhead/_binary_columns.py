"""Convert columns to the types that are written; errors name the row, but not the value."""

from __future__ import annotations

from bisect import bisect_left

import pyarrow as pa

from letterhead.errors import EncodeError

__all__ = ["binary_column", "exact_column"]

_TYPES = (
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_fixed_size_binary, pa.types.is_binary_view, pa.types.is_string_view, pa.types.is_null,
)  # fmt: skip


def binary_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a binary or string column as binary."""
    column = batch.column(name)
    if not any(test(column.type) for test in _TYPES):
        raise TypeError(f"column {name!r} must be binary or string, not {column.type}")
    return column.cast(pa.binary())


def exact_column(batch: pa.RecordBatch, name: str, type: pa.DataType, before: int, format: str) -> pa.Array:
    """Cast a column of numbers or times exactly; errors name the row, counted after ``before`` rows."""
    column = batch.column(name)
    if pa.types.is_timestamp(type) and pa.types.is_timestamp(column.type) and type.tz and not column.type.tz:
        raise TypeError(
            f"column {name!r} has times without a time zone: give it one, as "
            'pyarrow.compute.assume_timezone(column, "UTC") does'
        )
    try:
        return column.cast(type)
    except pa.ArrowInvalid:  # pyarrow's message would quote the value
        row = bisect_left(range(len(column)), True, key=lambda last: not _can_cast(column[: last + 1], type))
    except pa.ArrowNotImplementedError:
        raise TypeError(f"column {name!r} is {column.type}, and {type} is needed: cast it before") from None
    message = f"column {name!r}: the value has no exact {type}: cast the column before"
    raise EncodeError(message, format=format, code="out_of_range", row=before + row) from None


def _can_cast(column: pa.Array, type: pa.DataType) -> bool:
    try:
        column.cast(type)
    except pa.ArrowInvalid:
        return False
    return True
