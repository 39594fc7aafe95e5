"""The offset at which the restore of a windowed store begins, as Kafka Streams 4.4 chooses it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from letterhead.state.restoring.first_offsets import find_retained_offsets


def changelog(*timestamps: int, transactional: bool = False) -> pa.Table:
    count = len(timestamps)
    return pa.table(
        {
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(10, 10 + count), pa.int64()),
            "timestamp": pa.array(timestamps, pa.timestamp("ms", "UTC")),
            "transactional": [transactional] * count,
        }
    )


@pytest.mark.parametrize(
    ("retention", "first"), [(0, {3: 14}), (39, {3: 12}), (40, {3: 11}), (99, {3: 11}), (100, {}), (1000, {})]
)
def test_restore_starts_with_first_retained_record(retention: int, first: dict[int, int]) -> None:
    assert find_retained_offsets(changelog(-1, 60, 70, 90, 100), retention) == first


def test_restore_starts_at_first_record_if_last_is_transactional() -> None:
    assert find_retained_offsets(changelog(0, 50, 100, transactional=True), 10) == {}


def test_restore_with_earlier_end_measures_from_its_last_record() -> None:
    assert find_retained_offsets(changelog(10, 50, 60, 100), 10, end=13) == {3: 11}
    assert find_retained_offsets(changelog(10, 50, 60, 100), 10, partition=2) == {}
