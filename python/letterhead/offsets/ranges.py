"""Choose, narrow and divide ranges of offsets: :func:`resolve_ranges`, :func:`narrow_ranges`, :func:`divide_ranges`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead.errors import OffsetsGone, ProtocolError
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange, PartitionLog, TopicPartition
from letterhead.offsets.specs import LATEST, OffsetBounds, OffsetPoint

if TYPE_CHECKING:
    from letterhead.where.program import Filter

__all__ = [
    "EndOfFiles", "TimeInFiles", "check_range_of_files", "choose_partitions", "divide_ranges", "limit_ends", "narrow_ranges", "range_of_files", "resolve_ranges",
    "resolve_offsets",
]  # fmt: skip


def choose_partitions(
    available: Sequence[TopicPartition], topic: Any, numbers: Iterable[int] | None, bounds: OffsetBounds | None = None
) -> list[TopicPartition]:
    """Return the partitions with the given numbers, or all; raise ValueError if any of them, or of ``bounds``, is missing."""
    if bounds is not None:
        bounds.check_partitions((partition.partition for partition in available), f"topic {str(topic)!r}")
    if numbers is None:
        return [*available]
    chosen = [TopicPartition(topic, number) for number in sorted(set(numbers))]
    for partition in chosen:
        if partition not in available:
            raise ValueError(
                f"topic {str(topic)!r} has no partition {partition.partition}: it has {len(available)}, counted from 0"
            )
    return chosen


def resolve_ranges(
    log: PartitionLog[Any], partitions: Sequence[TopicPartition], bounds: OffsetBounds
) -> list[OffsetRange]:
    """Resolve ``start`` and ``end`` to offsets, and check that these exist.

    An offset in a mapping must exist in its partition. An offset for all partitions is a bound: a partition that ends
    before ``start``, or begins after ``end``, has no rows. ValueError is raised if no partition has rows in the range.
    """
    points = {partition: bounds.of_partition(partition.partition) for partition in partitions}
    first, last = log.first_offsets(partitions), log.end_offsets(partitions)
    starts, ends = (
        resolve_offsets(
            log, {partition: start_and_end[side] for partition, start_and_end in points.items()}, first, last
        )
        for side in (0, 1)
    )
    for partition, start_and_end in points.items():
        if first[partition] > last[partition]:
            raise ProtocolError(f"{partition} begins at offset {first[partition]} and ends at {last[partition]}")
        if start_and_end[0].exact and starts[partition] < first[partition]:
            raise OffsetsGone(partition, starts[partition], f"it was deleted, and the first one is {first[partition]}")
        for name, point in zip(bounds.names, start_and_end, strict=True):
            if point.exact and point.value > last[partition]:
                raise ValueError(
                    f"{partition}: {name} is offset {point.value}, but the partition ends at {last[partition]}"
                )
    if partitions and all(starts[partition] > last[partition] for partition in partitions):
        raise bounds.unreachable_error(f"the end of every partition: the last one ends at offset {max(last.values())}")
    if points and all(end.kind == "offset" and end.value < first[partition] for partition, (_, end) in points.items()):
        raise bounds.too_early_error(min(first.values()))
    return [
        OffsetRange(partition, max(starts[partition], first[partition]), min(ends[partition], last[partition]))
        for partition in partitions
    ]


class EndOfFiles(NamedTuple):
    """End of a partition's records in files."""

    offset: int  # offset after the last record
    is_certain: bool = True  # False if damaged bytes follow that may contain more records
    truncated: Any = None  # report of an incomplete batch at the end


class TimeInFiles(NamedTuple):
    """Offset of the first record at or after a time in files."""

    found: int | None  # offset of the first readable record at or after the time
    hidden: int | None = None  # first damaged offset between older records and ``found``

    @property
    def first_possible(self) -> int | None:
        """Smallest possible offset of a record at or after the time; the record at this offset may be damaged."""
        return self.found if self.hidden is None else self.hidden


def check_range_of_files(
    partitions: Sequence[Sequence[Any]], bounds: OffsetBounds, end_of: Callable[[Sequence[Any], int], EndOfFiles]
) -> None:
    """Raise ValueError if ``start`` is after the end of all partitions in files, or ``end`` before their beginning.

    ``end_of`` returns the end offset of a partition's segments; if the end is after its second argument, it may return any
    offset between this argument and the end. Nothing is checked if a partition continues in a segment that was not passed,
    because its end is then unknown.
    """
    if any(segments[-1].next_offset is not None for segments in partitions):
        return
    points = [bounds.of_partition(segments[0].partition) for segments in partitions]
    if all(end.kind == "offset" and end.value < segments[0].base_offset
           for segments, (_, end) in zip(partitions, points, strict=True)):  # fmt: skip
        raise bounds.too_early_error(min(segments[0].base_offset for segments in partitions))
    ends = []
    for segments, (start, _) in zip(partitions, points, strict=True):
        if start.kind != "offset" or start.value <= segments[-1].base_offset:
            return
        end = end_of(segments, start.value)
        if start.value <= end.offset or not end.is_certain:
            return
        if start.exact:
            raise ValueError(
                f"partition {segments[0].partition}: {bounds.names[0]} is offset {start.value}, but the partition ends at "
                f"{_describe_end(end)}"
            )
        ends.append(end)
    last = max(ends, key=lambda end: end.offset)
    raise bounds.unreachable_error(f"the end of every partition: the last one ends at offset {_describe_end(last)}")


def _describe_end(end: EndOfFiles) -> str:
    return str(end.offset) if end.truncated is None else f"{end.offset}: {end.truncated}"


def range_of_files(
    partition: TopicPartition,
    bounds: OffsetBounds,
    *,
    end_offset: Callable[[], int],
    since: Callable[[int], TimeInFiles],
) -> OffsetRange:
    """Resolve ``start`` and ``end`` to offsets of a partition in files; the end is determined only if needed.

    If damage may hide records at the requested time, it is included in the range, so that it is reported.
    """
    start, end = bounds.of_partition(partition.partition)

    def end_by_time(time: int) -> int:
        found = since(time).found
        return LAST_OFFSET if found is None else found

    return OffsetRange(
        partition,
        start.resolve(first=lambda: 0, end=end_offset, since=lambda time: since(time).first_possible),
        LAST_OFFSET if end == LATEST else end.resolve(first=lambda: 0, end=end_offset, since=end_by_time),
    )


def resolve_offsets(
    log: PartitionLog[Any],
    points: Mapping[TopicPartition, OffsetPoint],
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return the offsets of points; ``first`` and ``last`` contain the first and end offsets of partitions."""
    times = {
        partition: max(point.value, 0) * log.ticks_per_ms for partition, point in points.items() if point.kind == "time"
    }
    since: Mapping[TopicPartition, int | None] = log.offsets_since(times) if times else {}

    def offset_of(partition: TopicPartition, point: OffsetPoint) -> int:
        # The first record at a time or later may belong to an open transaction, but committed records end before it.
        by_time = since.get(partition)
        return point.resolve(
            first=lambda: first[partition],
            end=lambda: last[partition],
            since=lambda _: None if by_time is None else min(by_time, last[partition]),
        )

    return {partition: offset_of(partition, point) for partition, point in points.items()}


def narrow_ranges(log: PartitionLog[Any], ranges: Iterable[OffsetRange], where: Filter | None) -> list[OffsetRange]:
    """Narrow ranges to the offsets that a condition can select."""
    ranges = list(ranges)
    if where is None:
        return ranges
    earliest_time, _ = where.bounds("timestamp")
    since: Mapping[TopicPartition, int | None] = {}
    if earliest_time is not None:
        since = log.offsets_since({requested.partition: max(earliest_time, 0) for requested in ranges})
    low, high = where.bounds("offset")
    narrowed = []
    for requested in ranges:
        if where.bind(log.partition_values(requested.partition)).constant is False:
            continue
        by_time = since.get(requested.partition, 0)
        start = max(requested.start, low or 0, requested.end if by_time is None else by_time)
        end = requested.end if high is None else min(requested.end, high + 1)
        narrowed.append(requested._replace(start=min(start, requested.end), end=max(end, requested.start)))
    return narrowed


def divide_ranges(ranges: Iterable[OffsetRange], minimum: int, max_offsets: int | None) -> list[OffsetRange]:
    """Divide ranges into at least ``minimum`` parts if there are enough offsets, each with at most ``max_offsets``."""
    ranges = [requested for requested in ranges if requested.start < requested.end]
    sizes = [requested.end - requested.start for requested in ranges]
    counts = [1 if max_offsets is None else -(-size // max_offsets) for size in sizes]
    # Divide the range with the largest parts until there are enough parts, or each part has one offset.
    largest = [(-size / count, index) for index, (size, count) in enumerate(zip(sizes, counts, strict=True))]
    heapq.heapify(largest)
    for _ in range(min(minimum, sum(sizes)) - sum(counts)):
        index = largest[0][1]
        counts[index] += 1
        heapq.heapreplace(largest, (-sizes[index] / counts[index], index))
    divided = []
    for requested, size, count in zip(ranges, sizes, counts, strict=True):
        bounds = [requested.start + size * number // count for number in range(count + 1)]
        divided += [requested._replace(start=start, end=end) for start, end in pairwise(bounds) if start < end]
    return divided


def limit_ends(
    max_offsets: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Divide the maximum number of offsets among the partitions, in proportion to their unread offsets."""
    unread = {partition: max(0, end - starts[partition]) for partition, end in ends.items()}
    total = sum(unread.values())
    if total <= max_offsets:
        return dict(ends)
    limited = {}
    for partition, end in ends.items():
        share = max_offsets * unread[partition] / total
        # Round a share of less than one offset up; otherwise, small partitions would never be read.
        limited[partition] = min(end, starts[partition] + (math.ceil(share) if share < 1 else int(share)))
    return limited
