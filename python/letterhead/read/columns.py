"""Checks of column names, and timestamp columns, the same in every reader and Spark data source."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from letterhead.errors import unknown_name
from letterhead.fields import check_distinct

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns

__all__ = ["TIMES", "Dialect", "as_times", "check_columns"]

Dialect: TypeAlias = Literal["arrow", "spark"]

TIMES: dict[Dialect, pa.DataType] = {"arrow": pa.timestamp("ms", "UTC"), "spark": pa.timestamp("us", "UTC")}
"""The type of a timestamp column. Spark's only timestamp type counts microseconds."""

_LARGEST_IN_MICROSECONDS = ((1 << 63) - 1) // 1000


def check_columns(
    columns: Sequence[str], known: Collection[str], headers: Columns | None, errors: OnError, error_column: str
) -> None:
    """Raise if a column is unknown, or two output columns would have the same name."""
    if isinstance(columns, str):
        raise TypeError("columns must be a list of column names, not str")
    for name in columns:
        if name not in known:
            raise unknown_name("column", name, known)
    check_distinct([*columns, *(headers or ())], errors, error_column)


def as_times(column: pa.Array, dialect: Dialect, *, strict: bool = True) -> pa.Array:
    """Return int64 milliseconds since 1970 as timestamps.

    Milliseconds that do not fit into microseconds (about 292,000 years from 1970) raise ``pyarrow.ArrowInvalid`` if
    ``strict`` is true, and are null otherwise.
    """
    if dialect == "spark" and not strict:
        largest = _LARGEST_IN_MICROSECONDS
        fits = pc.and_(pc.greater_equal(column, -largest), pc.less_equal(column, largest))
        column = pc.if_else(fits, column, pa.scalar(None, pa.int64()))
    return column.cast(TIMES["arrow"]).cast(TIMES[dialect])
