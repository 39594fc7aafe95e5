"""The partitions of a topic of Apache Iggy, as :mod:`letterhead.offsets.reading` reads them: :class:`IggyPartitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from letterhead.errors import HeaderError, OffsetsGone
from letterhead.iggy.client import MAX_REPLY_BYTES, IggyClient, Messages, Poll
from letterhead.iggy.connection import TooLarge
from letterhead.offsets.partition_log import OffsetRange, PartitionLog, Reply, TopicPartition
from letterhead.offsets.reading import rows_up_to_error

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.iggy.kafka_rows import MappedRowReader
    from letterhead.iggy.rows import IggyRowReader

__all__ = ["FETCH_BYTES", "IggyPartitions"]

FETCH_BYTES = 4 << 20

# A poll requests a number of messages, not of bytes. The number follows from the size of the messages read before.
_FIRST_COUNT = 256
_MAX_COUNT = 1 << 20
_MAX_GROWTH = 8
"""How many times as many messages the next poll may request."""


class IggyPartitions(PartitionLog[IggyClient]):
    """Reads partitions of a topic, a poll at a time.

    Parameters
    ----------
    client : IggyClient
        The connection to the server; closed with this object.
    reader : IggyRowReader or MappedRowReader
        Makes rows of batches.
    fetch_bytes : int
        Approximate size of a poll; at least one message.
    """

    pause = 0.05
    ticks_per_ms = 1000

    def __init__(
        self, client: IggyClient, reader: IggyRowReader | MappedRowReader, fetch_bytes: int = FETCH_BYTES
    ) -> None:
        super().__init__(client)
        self._reader = reader
        self._fetch_bytes = fetch_bytes
        self._count = _FIRST_COUNT

    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first message of each partition, or the next offset if it is empty."""
        return {partition: self.client.first_offset(partition) for partition in partitions}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset that the next message of each partition gets."""
        return {partition: self.client.end_offset(partition) for partition in partitions}

    def offsets_since(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        """Return the offset of the first message that was not stored before a time, or the next offset."""
        return {partition: self.client.offset_since(partition, time) for partition, time in times.items()}

    def partition_values(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the columns of a partition; stream and topic can be named by their numbers."""
        topic = partition.topic
        return {"stream": str(topic.stream), "topic": str(topic.topic), "partition": partition.partition}

    def start_range(self, requested: OffsetRange) -> None:
        """Forget the size of the messages of another range."""
        self._count = _FIRST_COUNT

    def request(self, remaining: OffsetRange) -> Poll:
        """Send a poll."""
        self._count = max(1, min(self._count, remaining.end - remaining.start, _MAX_COUNT))
        return self.client.begin_poll(remaining.partition, remaining.start, self._count)

    def receive(self, handle: Poll, remaining: OffsetRange) -> Reply:
        """Wait for the messages of a poll; repeat it with a smaller count if its reply is too large."""
        try:
            polled = self.client.end_poll(
                handle, MAX_REPLY_BYTES if handle.max_count == 1 else max(4 * self._fetch_bytes, 1 << 16)
            )
        except TooLarge:
            if handle.max_count == 1:
                raise
            self._count = max(1, handle.max_count // 16)
            return self.receive(self.request(remaining), remaining)
        if not polled.message_count:
            first, end = self.client.first_offset(remaining.partition), self.client.end_offset(remaining.partition)
            return Reply(None, remaining.start, can_follow=remaining.start >= first and end >= remaining.end)
        if polled.first > remaining.start:
            why = f"it was deleted, and the first one is {polled.first}"
            return Reply(
                None, min(polled.first, remaining.end), lost=OffsetsGone(remaining.partition, remaining.start, why)
            )
        self._count = max(
            1, min(polled.message_count * self._fetch_bytes // len(polled.data), _MAX_GROWTH * polled.message_count)
        )
        return Reply(polled, max(polled.end, remaining.start + 1))

    def rows(self, records: Messages, remaining: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Convert a reply to rows."""
        partition_values = self.partition_values(remaining.partition)

        def read(end: int) -> pa.RecordBatch | None:
            options: Any = {"start": remaining.start, "end": end, "partition_values": partition_values}
            try:
                return self._reader(records.data, **options)
            except HeaderError as error:
                raise self._reader.located(error, records.data, **options) from None

        yield from filter(None, rows_up_to_error(read, remaining.start, remaining.end))
