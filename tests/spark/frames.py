"""From Arrow to frames and back, and columns that can be compared."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


def collected(df: Any) -> dict[str, list[Any]]:
    """Give the columns of a frame, comparable."""
    table = df.toArrow()
    return {name: plain(table[name]) for name in table.column_names}


def plain(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Give a column as Python values: times as microseconds, floats so that -0.0 is not 0.0 and NaN is NaN."""
    return [_plain(value) for value in _without_times(column).to_pylist()]


def _without_times(column: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        assert column.type.unit == "us"
        return column.cast(pa.int64())
    if pa.types.is_list(column.type) and pa.types.is_timestamp(column.type.value_type):
        return column.cast(pa.list_(pa.int64()))
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1.0, value))
    return value
