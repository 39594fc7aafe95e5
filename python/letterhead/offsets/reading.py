"""Read ranges of offsets from a server, one after the other, as Arrow record batches: :func:`read_ranges`."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from letterhead._context_managers import Closing
from letterhead.errors import OffsetsGone
from letterhead.offsets.ranges import OffsetRange, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PartitionLog", "Reply", "read_ranges"]

_log = logging.getLogger(__name__)


class Reply(NamedTuple):
    """The reply to a request for the records of a range."""

    records: Any  # None if there are none
    next_offset: int  # where reading continues: after the records, or at the end of the range if it has no more
    can_follow: bool = True  # the records can still arrive, if there are none
    lost: OffsetsGone | None = None  # records that were read before, and are not in the log any more


class _Client(Protocol):
    timeout: float

    def close(self) -> None: ...


ClientT = TypeVar("ClientT", bound=_Client)


class PartitionLog(Closing, ABC, Generic[ClientT]):
    """Partitions with offsets, read by a client that is closed with this object.

    Each method ends within ``timeout`` seconds.
    """

    pause: ClassVar[float] = 0.0
    """Seconds to wait after a reply without records."""

    ticks_per_ms: ClassVar[int] = 1
    """Units of the column ``timestamp`` in a millisecond."""

    def __init__(self, client: ClientT) -> None:
        self.client = client
        self.timeout = client.timeout

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    @abstractmethod
    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition, or the next offset if it is empty."""

    @abstractmethod
    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset that the next record of each partition gets."""

    @abstractmethod
    def offsets_since(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        """Return the offset of the first record of each partition that is not older than a time; None if all are older."""

    @abstractmethod
    def constants(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the values of the columns that are the same in all rows of a partition."""

    @abstractmethod
    def enter(self, requested: OffsetRange) -> None:
        """Prepare for the requests of another range."""

    @abstractmethod
    def request(self, rest: OffsetRange) -> Any:
        """Send the request for the next records of a range, of which ``rest`` is left, and return a handle."""

    @abstractmethod
    def receive(self, handle: Any, rest: OffsetRange) -> Reply:
        """Wait for the reply to a request."""

    @abstractmethod
    def rows(self, records: Any, rest: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Convert the records of a reply to rows."""


def read_ranges(
    log: PartitionLog[Any], ranges: Iterable[OffsetRange], *, skip_lost: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read ranges in order; the next request is answered while the rows of the current reply are made.

    Records that were deleted before they were read, or removed from the log afterwards, raise OffsetsGone, unless
    ``skip_lost`` is true.
    """
    for rest, records in _replies(log, ranges, skip_lost):
        yield from log.rows(records, rest)


def _replies(
    log: PartitionLog[Any], ranges: Iterable[OffsetRange], skip_lost: bool
) -> Iterator[tuple[OffsetRange, Any]]:
    """Yield the records of each reply, with the range from the requested offset on, once the next request is sent."""
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
        if reply.records is not None:
            yield rest, reply.records


def _skipped(log: PartitionLog[Any], rest: OffsetRange) -> tuple[int, OffsetsGone]:
    """Return the offset after the records that are gone, and the error that names these."""
    partition, offset = rest.partition, rest.start
    first, end = log.first_offsets([partition])[partition], log.end_offsets([partition])[partition]
    if offset < first:
        return min(first, rest.end), OffsetsGone(partition, offset, f"it was deleted, and the first one is {first}")
    return rest.end, OffsetsGone(partition, offset, f"the partition ends at {end}")
