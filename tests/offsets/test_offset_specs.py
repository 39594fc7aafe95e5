"""Where reading begins and ends: what callers write, and the offsets of every partition that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from letterhead.errors import OffsetsGone, ProtocolError
from letterhead.offsets.partition_log import OffsetRange, Reply, TopicPartition
from letterhead.offsets.ranges import choose_partitions, divide_ranges, limit_ends, resolve_ranges
from letterhead.offsets.reading import read_ranges
from letterhead.offsets.specs import EARLIEST, LATEST, OffsetBounds, OffsetPoint

NOON = 1_767_268_800_000
"""Noon of 2026-01-01 in UTC."""

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize(
    ("spec", "point"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        (0, OffsetPoint("offset", 0)),
        ("17", OffsetPoint("offset", 17)),
        (-10, OffsetPoint("latest", 10)),
        ("-10", OffsetPoint("latest", 10)),
        (datetime(2026, 1, 1, 12, tzinfo=UTC), OffsetPoint("time", NOON)),
        (datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))), OffsetPoint("time", NOON)),
        ("2026-01-01T12:00:00Z", OffsetPoint("time", NOON)),
        ("2026-01-01 13:00+01:00", OffsetPoint("time", NOON)),
        ("2026-01-01 12:00:00.001 UTC", OffsetPoint("time", NOON + 1)),
        (f"@{NOON}", OffsetPoint("time", NOON)),
        ("@-1", OffsetPoint("time", -1)),
    ],
)
def test_position_is_offset_count_or_time(spec: Any, point: OffsetPoint) -> None:
    assert OffsetBounds.parse(spec, "latest" if spec != "latest" else spec).start == point
    exact = point._replace(exact=point.kind == "offset")
    assert OffsetBounds.parse("earliest", {3: spec}).of_partition(3)[1] == exact


@pytest.mark.parametrize("spec", ["", "@", "-", "@x", "1.5", "first", "²", "2026-13-01", 1.5, True, None, b"5", [5]])
def test_invalid_position_is_rejected_by_name(spec: Any) -> None:
    with pytest.raises(ValueError, match=r"^--end must be 'earliest', 'latest', an offset, "):
        OffsetBounds.parse("earliest", spec, ("--start", "--end"))
    with pytest.raises(ValueError, match=r"^start must be 'earliest', 'latest', an offset, "):
        OffsetBounds.parse({0: spec}, "latest")


class Log:
    """Partitions whose offsets are times, too; each reply has at most three records."""

    timeout = 0.1
    pause = 0.0
    limits = None
    ticks_per_ms = 1

    def __init__(self, bounds: Mapping[TopicPartition, tuple[int, int]]) -> None:
        self.bounds = bounds
        self.requests: list[tuple[TopicPartition, int]] = []

    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.bounds[partition][0] for partition in partitions}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.bounds[partition][1] for partition in partitions}

    def offsets_since(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        return {
            partition: max(time, self.bounds[partition][0]) if time < self.bounds[partition][1] else None
            for partition, time in times.items()
        }

    def partition_values(self, partition: TopicPartition) -> dict[str, Any]:
        return partition._asdict()

    def start_range(self, requested: OffsetRange) -> None:
        pass

    def request(self, rest: OffsetRange) -> OffsetRange:
        self.requests.append((rest.partition, rest.start))
        return rest

    def receive(self, handle: OffsetRange, rest: OffsetRange) -> Reply:
        assert handle == rest
        first, end = self.bounds[rest.partition]
        if not first <= rest.start < end:
            return Reply(None, rest.start, can_follow=False)
        offsets = range(rest.start, min(rest.start + 3, rest.end, end))
        return Reply(offsets, offsets[-1] + 1)

    def rows(self, records: range, rest: OffsetRange) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"offset": pa.array(records, pa.int64())})


def ranges(start: Any, end: Any = "latest") -> list[tuple[int, int]]:
    """The requested offsets of a partition that has 5 to 19, and of one that has 0 to 7."""
    requested = resolve_ranges(Log({A: (5, 20), B: (0, 8)}), [A, B], OffsetBounds.parse(start, end))
    return [(chosen.start, chosen.end) for chosen in requested]


def test_offset_applies_to_every_partition_within_its_range() -> None:
    assert ranges("earliest") == [(5, 20), (0, 8)]
    assert ranges(6, 10) == [(6, 10), (6, 8)]
    assert ranges(0, 100) == [(5, 20), (0, 8)]
    assert ranges(-10) == [(10, 20), (0, 8)]
    assert ranges(-100, -3) == [(5, 17), (0, 5)]
    assert ranges({0: 12, 1: -1}) == [(12, 20), (7, 8)]
    assert [start for start, _ in ranges("@7")] == [7, 7]
    assert [start for start, _ in ranges("@8")] == [8, 8]  # the second partition ends before it
    with pytest.raises(ValueError, match="start is after the end of every partition: the last one ends at offset 20"):
        ranges(21)


def test_offset_of_single_partition_must_exist() -> None:
    with pytest.raises(OffsetsGone, match=r"orders-0: offset 4 .* the first one is 5"):
        ranges({0: 4, 1: 0})
    with pytest.raises(ValueError, match="orders-1: end is offset 9, but the partition ends at 8"):
        ranges("earliest", {0: 9, 1: 9})
    with pytest.raises(ValueError, match="start has no entry for partition 1"):
        ranges({0: 5})
    with pytest.raises(ProtocolError, match="orders-0 begins at offset 9 and ends at 8"):
        resolve_ranges(Log({A: (9, 8)}), [A], OffsetBounds.parse("earliest", "latest"))


def test_partitions_are_chosen_by_number() -> None:
    assert choose_partitions([A, B], "orders", None) == [A, B]
    assert choose_partitions([A, B], "orders", [1, 1]) == [B]
    with pytest.raises(ValueError, match="topic 'orders' has no partition 2: it has 2, counted from 0"):
        choose_partitions([A, B], "orders", [0, 2])


@pytest.mark.parametrize(
    ("start", "end", "existing", "message"),
    [
        ({0: 1, 2: 5}, "latest", [0, 1], "start names partition 2, and topic 'orders' has partitions 0 to 1"),
        ("earliest", {7: 5, 3: 5}, [3], "end names partition 7, and topic 'orders' has only partition 3"),
        ({4: 5}, "latest", [1, 5, 3], "start names partition 4, and topic 'orders' has partitions 1, 3, 5"),
        ({0: 5}, "latest", range(1, 13), "start names partition 0, .* has partitions 1, 2, .*, 9, 10 and 2 more"),
    ],
)
def test_partition_of_mapping_must_exist(start: Any, end: Any, existing: Iterable[int], message: str) -> None:
    available = [TopicPartition("orders", number) for number in existing]
    with pytest.raises(ValueError, match=f"^{message}$"):
        choose_partitions(available, "orders", None, OffsetBounds.parse(start, end))


@pytest.mark.parametrize("key", ["0", None, True, 1.0])
def test_mapping_has_numbers_of_partitions(key: Any) -> None:
    message = r"^end must map numbers of partitions to points, such as \{0: 100\}, not "
    with pytest.raises(TypeError, match=message):
        OffsetBounds.parse("earliest", {key: 5})


def offsets(log: Log, *requested: OffsetRange, skip_lost: bool = False) -> list[int]:
    batches = read_ranges(log, requested, skip_lost=skip_lost)
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_ranges_are_read_in_order_with_next_request_sent_early() -> None:
    log = Log({A: (0, 20), B: (0, 8)})
    batches = read_ranges(log, [OffsetRange(A, 2, 7), OffsetRange(A, 9, 9), OffsetRange(B, 0, 2)])
    assert next(batches).column("offset").to_pylist() == [2, 3, 4]
    assert log.requests == [(A, 2), (A, 5)]
    assert next(batches).column("offset").to_pylist() == [5, 6]
    assert log.requests[2:] == [(B, 0)]
    assert next(batches).column("offset").to_pylist() == [0, 1]
    assert [*batches] == []
    assert len(log.requests) == 3


def test_lost_records_raise_or_are_skipped() -> None:
    log = Log({A: (5, 9), B: (0, 3)})
    with pytest.raises(OffsetsGone, match="orders-0: offset 2 cannot be read: it was deleted, and the first one is 5"):
        offsets(log, OffsetRange(A, 2, 7))
    assert offsets(log, OffsetRange(A, 2, 7), OffsetRange(B, 1, 6), skip_lost=True) == [5, 6, 1, 2]
    with pytest.raises(OffsetsGone, match="orders-1: offset 3 cannot be read: the partition ends at 3"):
        offsets(log, OffsetRange(B, 0, 6))


def test_ranges_are_divided_among_tasks_without_gaps() -> None:
    requested = [OffsetRange(A, 0, 90), OffsetRange(B, 10, 10), OffsetRange(B, 10, 20)]
    assert divide_ranges(requested, 0, None) == [requested[0], requested[2]]
    for minimum, most, count in ((10, None, 10), (0, 30, 4), (4, 7, 15)):
        parts = divide_ranges(requested, minimum, most)
        assert len(parts) == count
        for partition, expected in ((A, range(90)), (B, range(10, 20))):
            assert [at for part in parts if part.partition == partition for at in range(part.start, part.end)] == [
                *expected
            ]
        assert most is None or all(part.end - part.start <= most for part in parts)


@pytest.mark.parametrize(
    ("sizes", "minimum", "count"), [((50, 50), 5, 5), ((9, 9, 9), 4, 4), ((2, 1), 7, 3), ((1000, 3), 10, 10)]
)
def test_task_count_equals_requested_partitions(sizes: tuple[int, ...], minimum: int, count: int) -> None:
    requested = [OffsetRange(TopicPartition("t", number), 0, size) for number, size in enumerate(sizes)]
    parts = divide_ranges(requested, minimum, None)
    assert len(parts) == count
    assert sum(part.end - part.start for part in parts) == sum(sizes)
    lengths = [part.end - part.start for part in parts if part.partition.partition == 0]
    assert max(lengths) - min(lengths) <= 1


def test_trigger_offsets_are_shared_in_proportion() -> None:
    starts, ends = {A: 0, B: 5}, {A: 90, B: 15}
    assert limit_ends(100, starts, ends) == ends
    assert limit_ends(50, starts, ends) == {A: 45, B: 10}
    assert limit_ends(5, starts, ends) == {A: 4, B: 6}  # a share of half an offset is rounded up
