"""Checks of column names, and timestamp columns, shared by readers and Spark data sources."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from letterhead._arrow_types import Dialect
from letterhead._names import names_of, unknown_name
from letterhead.errors import DecodeError, ErrorDetail
from letterhead.fields import check_distinct, columns_of

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns

__all__ = [
    "KAFKA_HEADERS", "TIMES", "TIME_DETAIL", "Dialect", "as_times", "check_columns",
    "first_offset_in_error", "join_errors", "time_error", "times_outside", "with_errors",
]  # fmt: skip

TIMES: dict[Dialect, pa.DataType] = {"arrow": pa.timestamp("ms", "UTC"), "spark": pa.timestamp("us", "UTC")}
"""Types of timestamp columns; Spark's only timestamp type has microseconds."""

KAFKA_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""Type of the column with Kafka headers."""

TIME_DETAIL = ErrorDetail("out_of_range", "the timestamp does not fit the microseconds of Spark")

_LARGEST_IN_MICROSECONDS = ((1 << 63) - 1) // 1000


def check_columns(
    columns: Sequence[str], known: Collection[str], headers: Columns | None, errors: OnError, error_column: str
) -> None:
    """Raise if a column is unknown, or if two output columns would have the same name."""
    for name in names_of(columns) or ():
        if name not in known:
            raise unknown_name("column", name, known)
    check_distinct([*columns, *columns_of(headers or {})], errors, error_column)


def as_times(column: pa.Array, dialect: Dialect) -> pa.Array:
    """Convert milliseconds since 1970 (int64) to timestamps; times outside the valid range become null."""
    outside = times_outside(column, dialect)
    if outside is not None:
        column = pc.if_else(outside, pa.scalar(None, pa.int64()), column)
    return column.cast(TIMES["arrow"]).cast(TIMES[dialect])


def times_outside(column: pa.Array, dialect: Dialect) -> pa.BooleanArray | None:
    """Return a mask of the times outside Spark's range of about 292,000 years around 1970; None if all times fit."""
    if dialect == "arrow":
        return None
    bounds = pc.min_max(column).as_py()
    if bounds["min"] is None or -_LARGEST_IN_MICROSECONDS <= bounds["min"] <= bounds["max"] <= _LARGEST_IN_MICROSECONDS:
        return None
    largest = _LARGEST_IN_MICROSECONDS
    return pc.fill_null(pc.or_(pc.less(column, -largest), pc.greater(column, largest)), False)


def time_error(format: str, **position: Any) -> DecodeError:
    """Return the error for a timestamp outside the valid range."""
    return DecodeError(TIME_DETAIL.message, format=format, code=TIME_DETAIL.code, **position)


def with_errors(errors: pa.Array, rows: pa.BooleanArray, detail: ErrorDetail) -> pa.Array:
    """Append an error to the error column in the rows of a mask."""
    lists = errors.to_pylist()
    for row in pc.indices_nonzero(rows).to_pylist():
        lists[row] = [*(lists[row] or ()), detail._asdict()]
    return pa.array(lists, errors.type)


def join_errors(condition: pa.Array, output: pa.Array) -> pa.Array:
    """Return the errors of both the condition and the output columns for each row; errors of the whole row occur once."""
    lists = output.to_pylist()
    for row in pc.indices_nonzero(condition.is_valid()).to_pylist():
        lists[row] = [*condition[row].as_py(), *(error for error in lists[row] or () if error["column"] is not None)]
    return pa.array(lists, output.type)


def first_offset_in_error(offsets: pa.Array, errors: pa.Array, first: int | None) -> int | None:
    """Return the offset of the first row with errors, or the smallest possible offset if the offset is unreadable."""
    row = next(iter(pc.indices_nonzero(errors.is_valid()).to_pylist()), 0)
    known: int | None = offsets[row].as_py() if row < len(offsets) else None
    if known is not None:
        return known
    before = [offset for offset in offsets[:row].to_pylist() if offset is not None]
    return before[-1] + 1 if before else first
