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
def test_a_restore_begins_with_the_first_record_that_is_retained(retention: int, first: dict[int, int]) -> None:
    assert find_retained_offsets(changelog(-1, 60, 70, 90, 100), retention) == first


def test_a_restore_begins_with_the_first_record_if_the_last_belongs_to_a_transaction() -> None:
    assert find_retained_offsets(changelog(0, 50, 100, transactional=True), 10) == {}


def test_a_restore_that_ends_earlier_is_measured_from_its_own_last_record() -> None:
    assert find_retained_offsets(changelog(10, 50, 60, 100), 10, end=13) == {3: 11}
    assert find_retained_offsets(changelog(10, 50, 60, 100), 10, partition=2) == {}
