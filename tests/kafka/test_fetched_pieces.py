"""The batches of a response are turned into rows a few at a time."""

from __future__ import annotations

import pytest

from letterhead.kafka.partitions import _split
from letterhead.kafka.record_sets import BatchHeader

STARTS, END = [1000, 1100, 1200, 1400], 1900


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        (1, [1, 1, 1, 1]),
        (100, [1, 1, 1, 1]),
        (199, [1, 1, 1, 1]),
        (200, [2, 1, 1]),
        (400, [3, 1]),
        (899, [3, 1]),
        (900, [4]),
    ],
)
def test_batches_are_grouped_up_to_byte_limit_but_at_least_one(size: int, counts: list[int]) -> None:
    ends = [*STARTS[1:], END]
    batches = [BatchHeader(start, end - start, 0, 0, 2, 0, -1, -1, 1) for start, end in zip(STARTS, ends, strict=True)]
    groups = []
    while batches:
        group, batches = _split(batches, size)
        groups.append([batch.position for batch in group])
    assert [len(group) for group in groups] == counts
    assert [start for group in groups for start in group] == STARTS
