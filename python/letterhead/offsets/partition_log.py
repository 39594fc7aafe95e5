"""Partitions with offsets, implemented by Kafka and Iggy: :class:`PartitionLog`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from letterhead._context_managers import Closing
from letterhead._topic_partition import TopicPartition
from letterhead.errors import OffsetsGone

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.limits import Limits

__all__ = ["LAST_OFFSET", "OffsetRange", "PartitionLog", "Reply", "TopicPartition"]

LAST_OFFSET = (1 << 63) - 1


class OffsetRange(NamedTuple):
    """Offset range of a partition: the first one, and the one to stop before."""

    partition: TopicPartition
    start: int = 0
    end: int = LAST_OFFSET


class Reply(NamedTuple):
    """Reply to a request for records of a range."""

    records: Any  # None if there are none
    next_offset: int  # offset after the records, or the end of the range if it has no more
    can_follow: bool = True  # whether missing records may still arrive
    lost: OffsetsGone | None = None  # records that were read before, but are no longer in the log


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
    """Units of the column ``timestamp`` per millisecond."""

    def __init__(self, client: ClientT, limits: Limits | None) -> None:
        self.client = client
        self.limits = limits
        self.timeout = client.timeout

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    @abstractmethod
    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition, or the next offset if it is empty."""

    @abstractmethod
    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition."""

    @abstractmethod
    def offsets_since(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        """Return the offset of the first record of each partition at or after a time; None if all are older."""

    @abstractmethod
    def partition_values(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the columns that are constant within a partition."""

    @abstractmethod
    def start_range(self, requested: OffsetRange) -> None:
        """Prepare for requests of another range."""

    @abstractmethod
    def request(self, remaining: OffsetRange) -> Any:
        """Send a request for the next records of a range, of which ``remaining`` is left, and return a handle."""

    @abstractmethod
    def receive(self, handle: Any, remaining: OffsetRange) -> Reply:
        """Wait for the reply to a request."""

    @abstractmethod
    def rows(self, records: Any, remaining: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Convert the records of a reply to rows."""
