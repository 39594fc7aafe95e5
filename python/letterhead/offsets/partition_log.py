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
    """Range [``start``, ``end``) of the offsets of a partition."""

    partition: TopicPartition
    start: int = 0
    end: int = LAST_OFFSET


class Reply(NamedTuple):
    """Reply to a request for records of a range."""

    records: Any  # None if there are none
    next_offset: int  # offset after the records, or the end of the range if there are no more records
    can_follow: bool = True  # whether missing records may still arrive
    lost: OffsetsGone | None = None  # set if records that were read before are no longer in the log


class _Client(Protocol):
    timeout: float

    def close(self) -> None: ...


ClientT = TypeVar("ClientT", bound=_Client)


class PartitionLog(Closing, ABC, Generic[ClientT]):
    """Partitions with offsets, read with a client that is closed together with this object.

    Each method returns or raises within ``timeout`` seconds.
    """

    pause: ClassVar[float] = 0.0
    """Seconds to wait after a reply without records."""

    ticks_per_ms: ClassVar[int] = 1
    """Number of units per millisecond in column ``timestamp``."""

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
        """Return the offset of the first record at or after a time for each partition; None if all records are older."""

    @abstractmethod
    def partition_values(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the values of the columns that are constant within a partition."""

    @abstractmethod
    def start_range(self, requested: OffsetRange) -> None:
        """Prepare for requests for another range."""

    @abstractmethod
    def request(self, remaining: OffsetRange) -> Any:
        """Send a request for the next records of the remaining range, and return a handle for :meth:`receive`."""

    @abstractmethod
    def receive(self, handle: Any, remaining: OffsetRange) -> Reply:
        """Wait for the reply to a request."""

    @abstractmethod
    def rows(self, records: Any, remaining: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Convert the records of a reply to rows."""
