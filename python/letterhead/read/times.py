"""Milliseconds since 1970 as columns of times: the same in every reader and in Spark's data sources."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["TIMES", "as_times"]

TIMES: dict[Literal["arrow", "spark"], pa.DataType] = {
    "arrow": pa.timestamp("ms", "UTC"),
    "spark": pa.timestamp("us", "UTC"),
}
"""The type of a column of times. Spark has one timestamp type, which counts microseconds."""

_FURTHEST = ((1 << 63) - 1) // 1000


def as_times(column: pa.Array, type: pa.DataType, *, strict: bool = True) -> pa.Array:
    """Return milliseconds since 1970 as times.

    Parameters
    ----------
    column : pyarrow.Array
        The milliseconds: int64.
    type : pyarrow.DataType
        One of :data:`TIMES`.
    strict : bool, default True
        Whether a time that the type cannot hold is an error; it is null otherwise.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the type cannot hold a time: some 292,000 years from 1970 for microseconds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_times(pa.array([1500]), TIMES["arrow"])[0].as_py().isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    if type.unit != "ms" and not strict:
        fits = pc.and_(pc.greater_equal(column, -_FURTHEST), pc.less_equal(column, _FURTHEST))
        column = pc.if_else(fits, column, pa.scalar(None, pa.int64()))
    return column.cast(TIMES["arrow"]).cast(type)
