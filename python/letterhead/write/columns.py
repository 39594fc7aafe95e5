"""Columns of bytes that are written."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["binary_column"]

_TYPES = (
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_fixed_size_binary, pa.types.is_binary_view, pa.types.is_string_view, pa.types.is_null,
)  # fmt: skip


def binary_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column of binary or string as binary."""
    column = batch.column(name)
    if not any(test(column.type) for test in _TYPES):
        raise TypeError(f"column {name!r} must be binary or string, not {column.type}")
    return column.cast(pa.binary())
