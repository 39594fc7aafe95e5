"""Columns of numbers and times that are written: exact, or an error that names the row and not the value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from letterhead._binary_columns import exact_column
from letterhead.errors import EncodeError

MICROS = pa.timestamp("us", "UTC")


def exact(values: pa.Array, type: pa.DataType, before: int = 0) -> pa.Array:
    return exact_column(pa.record_batch({"x": values}), "x", type, before, "kafka")


def test_values_in_type_range_are_converted() -> None:
    assert exact(pa.array([1, None], pa.int64()), pa.int32()) == pa.array([1, None], pa.int32())
    assert exact(pa.array([1000, None], pa.timestamp("ns", "UTC")), MICROS).cast(pa.int64()).to_pylist() == [1, None]
    assert exact(pa.nulls(2), pa.int32()).null_count == 2


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (pa.array([1, 1 << 40, 1 << 41]), pa.int32()),
        (pa.array([1, 1 << 63, 0], pa.uint64()), pa.int64()),
        (pa.array(["1", "jane.doe", "x"]), pa.int32()),
        (pa.array([1000, 1001, 1002], pa.timestamp("ns", "UTC")), MICROS),
        (pa.array([0, 1 << 62, 0], pa.timestamp("s", "UTC")), MICROS),
        (pa.array([1.0, 1.5, 2.5]), pa.int32()),
    ],
    ids=str,
)
def test_error_for_inexact_value_names_row_and_hides_value(values: pa.Array, type: pa.DataType) -> None:
    with pytest.raises(EncodeError) as raised:
        exact(values, type, before=10)
    error = raised.value
    assert (error.code, error.row) == ("out_of_range", 11)
    assert str(error) == f"kafka: column 'x': the value has no exact {type}: cast the column before (row 11)"
    assert error.__suppress_context__ or error.__context__ is None


def test_non_numeric_column_is_rejected() -> None:
    with pytest.raises(TypeError, match="column 'x' is list<item: int64>, and int32 is needed"):
        exact(pa.array([[1]]), pa.int32())


def test_times_without_zone_are_rejected() -> None:
    with pytest.raises(TypeError, match=r"'x' has times without a time zone.*assume_timezone"):
        exact(pa.array([1000], pa.timestamp("ns")), MICROS)
