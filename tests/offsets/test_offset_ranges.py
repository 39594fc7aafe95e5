"""Ranges of offsets of a topic at the exact ends of batches and of what can be read, from a log in memory instead of a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import letterhead as lh
from letterhead._row_request import RowRequest
from letterhead.errors import DecodeError, OffsetsGone
from tests.helpers.log_bytes import batch, record

pytest.importorskip("kafka")

from letterhead.kafka.client import EARLIEST_TIME, LATEST_TIME
from letterhead.kafka.partitions import KafkaPartitions
from letterhead.kafka.record_sets import KafkaRowReader
from letterhead.kafka.responses import Fetched
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from letterhead.offsets.ranges import narrow_ranges, resolve_ranges
from letterhead.offsets.reading import read_ranges
from letterhead.offsets.specs import OffsetBounds

PARTITION = TopicPartition("orders", 3)


def ten(first: int, **options: Any) -> bytes:
    records = (record(at, time=at) for at in range(10))
    return batch(*records, base_offset=first, **{"times": (first * 100, first * 100 + 9), **options})


class Log:
    """A partition as a client returns it: each batch is a response, and what compaction removed is an empty one."""

    timeout = 0.2

    def __init__(self, batches: Mapping[int, bytes], end: int, stable: int | None = None) -> None:
        self.batches = dict(batches)
        self.end = end
        self.stable = end if stable is None else stable
        self.asked: list[int] = []

    def fetch(self, place: TopicPartition, offset: int, isolation: str, last_epoch: int = -1, wait_ms: int = 0) -> int:
        self.asked.append(offset)
        return offset

    def fetched(self, offset: int) -> Fetched:
        first = max((base for base in self.batches if base <= offset), default=None)
        later = min((base for base in self.batches if base > offset), default=None)
        if first is not None and offset < first + 10:
            return Fetched(self.batches[first], self.end, [])
        return Fetched(b"" if later is None else self.batches[later], self.end, [])

    def offsets(self, times: Mapping[TopicPartition, int], isolation: str) -> dict[TopicPartition, int]:
        end = self.end if isolation == "read_uncommitted" else self.stable
        result = {}
        for place, time in times.items():
            if time == EARLIEST_TIME:
                result[place] = min(self.batches, default=self.end)
            elif time == LATEST_TIME:
                result[place] = end
            else:  # the first record that is not older; the records of a batch are a millisecond apart
                later = [base + at for base in self.batches for at in range(10) if base * 100 + at >= time]
                result[place] = min(later, default=-1)
        return result


def read(log: Log, start: int, end: int, **options: Any) -> list[int | None]:
    result = read_ranges(partitions(log, ["offset"], **options), [OffsetRange(PARTITION, start, end)])
    return [offset for batch in result for offset in batch.column("offset").to_pylist()]


def partitions(
    log: Log, columns: list[str], isolation: Any = "read_uncommitted", dialect: Any = "arrow", **options: Any
) -> KafkaPartitions:
    rows = KafkaRowReader(RowRequest(tuple(columns), **options), dialect=dialect)
    return KafkaPartitions(log, rows, isolation, batch_bytes=1)  # type: ignore[arg-type]


def whole(*bases: int) -> dict[int, bytes]:
    return {base: ten(base) for base in bases}


@pytest.mark.parametrize(
    ("start", "end"), [(0, 30), (0, 10), (0, 11), (9, 10), (9, 20), (10, 20), (10, 11), (29, 30), (7, 7)]
)
def test_range_includes_first_and_excludes_last_offset(start: int, end: int) -> None:
    log = Log(whole(0, 10, 20), 30)
    assert read(log, start, end) == list(range(start, end))
    assert all(offset < end for offset in log.asked)


def test_end_removed_by_compaction_is_reached() -> None:
    assert read(Log(whole(0, 20), 30), 5, 20) == list(range(5, 10))
    # Compaction keeps the segment that is written to: below the end of a partition, there is a batch at or after each offset.
    for end in (29, 30):
        with pytest.raises(OffsetsGone, match=f"the partition ends at {end}") as raised:
            read(Log(whole(0, 10), end), 0, 30)
        assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 3, 20)


def narrowed(log: Log, where: Any) -> list[tuple[int, int]]:
    reader = KafkaRowReader(RowRequest(("offset",), where=where))
    ranges = narrow_ranges(partitions(log, ["offset"]), [OffsetRange(PARTITION, 5, 25)], reader.where)
    return [(requested.start, requested.end) for requested in ranges]


def test_condition_narrows_range_to_selectable_offsets() -> None:
    log = Log(whole(0, 10, 20), 30)
    offset, time = lh.col("offset"), lh.col("timestamp")
    assert narrowed(log, (offset >= 7) & (offset <= 9)) == [(7, 10)]
    assert narrowed(log, offset == 9) == [(9, 10)]
    assert narrowed(log, offset > 9) == [(10, 25)]
    assert narrowed(log, offset < 9) == [(5, 9)]
    assert narrowed(log, time >= 1009) == [(19, 25)]
    assert narrowed(log, time > 1009) == [(20, 25)]
    assert narrowed(log, time >= 2009) == [(25, 25)]
    assert narrowed(log, time > 2009) == [(25, 25)]
    assert read(log, 5, 25, where=time == 1009) == [19]


def end_of(log: Log, end: Any, isolation: Any) -> int:
    bounds = OffsetBounds.parse("earliest", end)
    [requested] = resolve_ranges(partitions(log, ["offset"], isolation), [PARTITION], bounds)
    return requested.end


def test_time_limit_is_at_most_last_readable_offset() -> None:
    # A transaction that began at 20 is open.
    log = Log({base: ten(10**8 + base) for base in (0, 10, 20)}, 30, stable=20)

    def offsets(times: Mapping[TopicPartition, int], isolation: str) -> dict[TopicPartition, int]:
        return {
            partition: 25 if time > 0 else known[partition]
            for known in [Log.offsets(log, times, isolation)]
            for partition, time in times.items()
        }

    log.offsets = offsets  # type: ignore[method-assign]
    assert end_of(log, "@1000000000000", "read_committed") == 20
    assert end_of(log, "@1000000000000", "read_uncommitted") == 25
    assert end_of(log, "latest", "read_committed") == 20
    # A start among the records of that transaction is at the end, and not beyond it.
    bounds = OffsetBounds.parse("@1000000000000", "latest")
    assert resolve_ranges(partitions(log, ["offset"], "read_committed"), [PARTITION], bounds) == [
        OffsetRange(PARTITION, 20, 20)
    ]


def test_errors_name_topic_partition_and_offset() -> None:
    broken = [record(at, block=b"\2\2" if at in (3, 4) else b"\0") for at in range(10)]
    log = Log({0: ten(0), 10: batch(*broken, base_offset=10)}, 20)
    with pytest.raises(DecodeError, match=r"\(topic orders, partition 3, offset 13, byte \d+\)") as raised:
        read(log, 0, 20, headers={"n": "int32"})
    error = raised.value
    assert (error.topic, error.partition, error.offset, error.row) == ("orders", 3, 13, None)
    assert error.message == "1 header declared and 1 byte left for them"
    with pytest.raises(DecodeError, match="no whole record batch") as raised:
        read(Log({0: ten(0)[:50]}, 10), 2, 10)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 3, 2)


@pytest.mark.parametrize("time", [1_700_000_000_000_000_000, -(1 << 62)])
def test_timestamp_out_of_spark_range_follows_errors(time: int) -> None:
    messages: Sequence[Any] = [{"offset": at, "timestamp": time if at == 6 else 5, "value": b"v"} for at in range(10)]
    log = Log({0: lh.batch([*messages])}, 10)

    def rows(**options: Any) -> list[dict[str, Any]]:
        kafka = partitions(log, ["offset", "timestamp"], dialect="spark", **options)
        return [row for batch in read_ranges(kafka, [OffsetRange(PARTITION, 0, 10)]) for row in batch.to_pylist()]

    with pytest.raises(DecodeError, match="topic orders, partition 3, offset 6") as raised:
        rows()
    assert (raised.value.code, raised.value.offset) == ("out_of_range", 6)
    assert [row["timestamp"] is None for row in rows(errors="null")] == [at == 6 for at in range(10)]
    rows_read = rows(errors="column", error_column="why")
    assert [row["why"] and row["why"][0]["code"] for row in rows_read] == [
        "out_of_range" if at == 6 else None for at in range(10)
    ]
    assert len(KafkaRowReader(RowRequest(("offset",)), dialect="spark").schema) == 1
