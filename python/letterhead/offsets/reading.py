"""Read ranges of offsets from a server, one after the other, as Arrow record batches: :func:`read_ranges`."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from letterhead.errors import OffsetsGone
from letterhead.offsets.partition_log import OffsetRange, PartitionLog, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_ranges"]

_log = logging.getLogger(__name__)


def read_ranges(
    log: PartitionLog[Any],
    ranges: Iterable[OffsetRange],
    *,
    skip_lost: bool = False,
    note_read: Callable[[TopicPartition, int], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read ranges in order; the next request is answered while the rows of the current reply are made.

    Records that were deleted before they were read, or removed from the log afterwards, raise OffsetsGone, unless
    ``skip_lost`` is true. ``note_read`` is called with a partition and the offset up to which it was read, after the
    caller has requested the batch that follows the rows of a reply.
    """
    for rest, records, position in _replies(log, ranges, skip_lost):
        if records is not None:
            yield from log.rows(records, rest)
        if note_read is not None and position > rest.start:
            note_read(rest.partition, min(position, rest.end))


def _replies(
    log: PartitionLog[Any], ranges: Iterable[OffsetRange], skip_lost: bool
) -> Iterator[tuple[OffsetRange, Any, int]]:
    """Yield each reply, once the next request is sent: the range from the requested offset on, records, and next offset."""
    waiting = deque(requested for requested in ranges if requested.start < requested.end)
    handle: Any = None
    empty_since: float | None = None
    if waiting:
        log.enter(waiting[0])
        handle = log.request(waiting[0])
    while waiting:
        rest = waiting[0]
        reply = log.receive(handle, rest)
        position, lost = reply.next_offset, reply.lost
        if reply.records is not None or position >= rest.end:
            empty_since = None
        elif lost is None:
            empty_since = empty_since or time.monotonic()
            if reply.can_follow and time.monotonic() - empty_since < log.timeout:
                time.sleep(log.pause)
            else:
                position, lost = _skipped(log, rest)
        if lost is not None:
            if not skip_lost:
                raise lost
            _log.warning("%s; continuing at %d", lost, position)
            empty_since = None
        if position < rest.end:
            waiting[0] = rest._replace(start=position)
        else:
            waiting.popleft()
            if waiting:
                log.enter(waiting[0])
        if waiting:
            handle = log.request(waiting[0])
        yield rest, reply.records, position


def _skipped(log: PartitionLog[Any], rest: OffsetRange) -> tuple[int, OffsetsGone]:
    """Return the offset after the records that are gone, and the error that names these."""
    partition, offset = rest.partition, rest.start
    first, end = log.first_offsets([partition])[partition], log.end_offsets([partition])[partition]
    if offset < first:
        return min(first, rest.end), OffsetsGone(partition, offset, f"it was deleted, and the first one is {first}")
    return rest.end, OffsetsGone(partition, offset, f"the partition ends at {end}")
