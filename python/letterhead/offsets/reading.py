"""Read partitions of a server as Arrow record batches: :func:`read_partitions`, and :func:`read_ranges` of their offsets."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from letterhead._table_batches import split_batches
from letterhead.errors import HeaderError, OffsetsGone
from letterhead.offsets.partition_log import OffsetRange, PartitionLog, TopicPartition
from letterhead.offsets.ranges import narrow_ranges

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.offsets.specs import OffsetBounds
    from letterhead.where.program import Filter

__all__ = ["OffsetProgress", "last_of_range", "last_rows", "read_partitions", "read_ranges", "rows_up_to_error"]

RowsT = TypeVar("RowsT")

NoteRead: TypeAlias = Callable[[TopicPartition, int], None]
"""Callback with a partition, and the offset up to which the caller has requested its rows."""

_log = logging.getLogger(__name__)

_GROWTH = 8
"""Growth factor of a range that is extended backward until it has the requested number of rows."""

_FOLLOW_PAUSE = 0.2
"""Seconds between requests for the end offsets of partitions."""


class OffsetProgress:
    """Progress of reading: offsets read, and their ``total``, which is None before the first request or without an end.

    ``when_connected`` is called with the number of partitions before the first row is read. ``remarks`` lists requested
    offsets that have been deleted, and open transactions.
    """

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self.when_connected: Callable[[int], object] | None = None
        self.remarks: list[str] = []
        self._positions: dict[TopicPartition, int] = {}

    def begin(self, ranges: Sequence[OffsetRange], *, has_end: bool) -> None:
        """Set the ranges to read, once servers have returned their bounds."""
        if has_end:
            self._positions = {requested.partition: requested.start for requested in ranges}
            self.total = sum(max(0, requested.end - requested.start) for requested in ranges)
        if self.when_connected is not None:
            self.when_connected(len(ranges))

    def note_deleted(self, ranges: Iterable[OffsetRange], bounds: OffsetBounds) -> None:
        """Record partitions that begin after the requested offset."""
        remarks = (bounds.deleted_before(requested.partition.partition, requested.start) for requested in ranges)
        self.remarks += filter(None, remarks)

    def note_open(self, ranges: Iterable[OffsetRange], ends: Mapping[TopicPartition, int]) -> None:
        """Record partitions in which reading stops at an open transaction; ``ends`` contains their high watermarks."""
        self.remarks += (
            f"{requested.partition}: read up to offset {requested.end}, where a transaction is open"
            for requested in ranges
            if requested.end < ends[requested.partition]
        )

    def note_read(self, partition: TopicPartition, offset: int) -> None:
        """Record the offset up to which a partition was read."""
        self.done += offset - self._positions.get(partition, offset)
        self._positions[partition] = offset


def read_partitions(
    log: PartitionLog[Any],
    requested: Sequence[OffsetRange],
    where: Filter | None,
    *,
    last: int | None = None,
    follow: bool = False,
    note_read: NoteRead | None = None,
    progress: OffsetProgress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read ranges, or only the last rows of each; with ``follow``, also new records as they arrive, without end.

    ``note_read`` is as in :func:`read_ranges`.
    """
    ranges = narrow_ranges(log, requested, where)
    if progress is not None:
        progress.begin(ranges, has_end=last is None and not follow)
    if last is None:
        callbacks = [note_read] if note_read is not None else []
        callbacks += [progress.note_read] if progress is not None else []

        def note_all(partition: TopicPartition, offset: int) -> None:
            for note in callbacks:
                note(partition, offset)

        yield from read_ranges(log, ranges, note_read=note_all)
    else:
        for narrowed in ranges:
            yield from last_of_range(lambda part: read_ranges(log, [part]), narrowed, last)
            if note_read is not None:
                note_read(narrowed.partition, narrowed.end)
    if follow:
        yield from _follow(log, requested, where, note_read)


def last_rows(batches: Iterable[pa.RecordBatch], count: int) -> list[pa.RecordBatch]:
    """Return the last rows of record batches, keeping only these rows and one batch in memory."""
    kept: deque[pa.RecordBatch] = deque()
    rows = 0
    for batch in batches:
        kept.append(batch)
        rows += len(batch)
        while rows - len(kept[0]) >= count and len(kept) > 1:
            rows -= len(kept.popleft())
    if kept and rows > count:
        kept[0] = kept[0].slice(rows - count)
    return [batch for batch in kept if len(batch)]


def last_of_range(
    read: Callable[[OffsetRange], Iterable[pa.RecordBatch]], requested: OffsetRange, count: int
) -> list[pa.RecordBatch]:
    """Read the last ``count`` rows of a range, extending the part to read backward until it has enough rows.

    Errors of records before these rows are not raised: an unreadable part is halved until the damaged record is found.
    """
    start, too_late = max(requested.start, requested.end - count), requested.end
    unreadable: int | None = None
    while True:
        try:
            rows = last_rows(read(requested._replace(start=start)), count)
        except HeaderError:
            if too_late - start <= 1:
                raise
            unreadable = start
        else:
            if start == requested.start or sum(map(len, rows)) >= count:
                return rows
            too_late = start
        if unreadable is None:
            start = max(requested.start, requested.end - (requested.end - start) * _GROWTH)
        else:
            start = (unreadable + too_late) // 2


def rows_up_to_error(read: Callable[[int], RowsT], start: int, end: int) -> Iterator[RowsT]:
    """Yield the result of ``read``, which reads offsets from ``start`` up to its argument; yield rows before an error first.

    A record with an unreadable offset fails in every range, so no rows precede its error.
    """
    try:
        rows = read(end)
    except HeaderError as error:
        if error.offset is not None and start < error.offset < end:
            yield from rows_up_to_error(read, start, error.offset)
        raise
    yield rows


def _follow(
    log: PartitionLog[Any], ranges: Iterable[OffsetRange], where: Filter | None, note_read: NoteRead | None
) -> Iterator[pa.RecordBatch]:
    """Yield new records of the partitions after the ranges."""
    positions = {requested.partition: max(requested.start, requested.end) for requested in ranges}
    while True:
        ends = log.end_offsets(positions)
        new = [OffsetRange(partition, start, ends[partition]) for partition, start in positions.items()]
        new = [written for written in new if written.start < written.end]
        if new:
            yield from read_ranges(log, narrow_ranges(log, new, where), note_read=note_read)
            positions |= {written.partition: written.end for written in new}
        else:
            time.sleep(_FOLLOW_PAUSE)


def read_ranges(
    log: PartitionLog[Any], ranges: Iterable[OffsetRange], *, skip_lost: bool = False, note_read: NoteRead | None = None
) -> Iterator[pa.RecordBatch]:
    """Read ranges in order; while a reply is converted to rows, the next request is already pending.

    Unless ``skip_lost`` is true, OffsetsGone is raised for records that are deleted before they are read, or removed from
    the log afterwards. ``note_read`` is called with a partition and the offset up to which it was read, once the caller has
    requested the batch after the rows of a reply.
    """
    for remaining, records, position in _replies(log, ranges, skip_lost):
        if records is not None:
            for rows in log.rows(records, remaining):
                yield from split_batches(rows, log.limits)
        if note_read is not None and position > remaining.start:
            note_read(remaining.partition, min(position, remaining.end))


def _replies(
    log: PartitionLog[Any], ranges: Iterable[OffsetRange], skip_lost: bool
) -> Iterator[tuple[OffsetRange, Any, int]]:
    """Yield the requested range, records and next offset of each reply, after sending the next request."""
    waiting = deque(requested for requested in ranges if requested.start < requested.end)
    handle: Any = None
    empty_since: float | None = None
    if waiting:
        log.start_range(waiting[0])
        handle = log.request(waiting[0])
    while waiting:
        remaining = waiting[0]
        reply = log.receive(handle, remaining)
        position, lost = reply.next_offset, reply.lost
        if reply.records is not None or position >= remaining.end:
            empty_since = None
        elif lost is None:
            empty_since = empty_since or time.monotonic()
            if reply.can_follow and time.monotonic() - empty_since < log.timeout:
                time.sleep(log.pause)
            else:
                position, lost = _locate_gap(log, remaining)
        if lost is not None:
            if not skip_lost:
                raise lost
            _log.warning("%s; continuing at %d", lost, position)
            empty_since = None
        if position < remaining.end:
            waiting[0] = remaining._replace(start=position)
        else:
            waiting.popleft()
            if waiting:
                log.start_range(waiting[0])
        if waiting:
            handle = log.request(waiting[0])
        yield remaining, reply.records, position


def _locate_gap(log: PartitionLog[Any], remaining: OffsetRange) -> tuple[int, OffsetsGone]:
    """Return the offset after the missing records, and the error with their offsets."""
    partition, offset = remaining.partition, remaining.start
    first, end = log.first_offsets([partition])[partition], log.end_offsets([partition])[partition]
    if offset < first:
        return min(first, remaining.end), OffsetsGone(
            partition, offset, f"it was deleted, and the first one is {first}"
        )
    why = f"the partition ends at {end}"
    if offset < end:
        why = f"no records are sent from it on, although {why}"
    return remaining.end, OffsetsGone(partition, offset, why)
