"""Partitions of an Apache Iggy topic for :mod:`letterhead.offsets.reading`: :class:`IggyPartitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from letterhead._invariants import require
from letterhead.errors import HeaderError, OffsetsGone
from letterhead.iggy.client import MAX_REPLY_BYTES, POLL_PREFIX_LEN, IggyClient, Messages, Poll
from letterhead.iggy.connection import TooLarge
from letterhead.iggy.rows import IggyRowReader
from letterhead.iggy.segment_file import BatchRange, batch_ranges, error_of_batch
from letterhead.offsets.damage import DamagedRange
from letterhead.offsets.partition_log import OffsetRange, PartitionLog, Reply, TopicPartition
from letterhead.offsets.reading import rows_up_to_error
from letterhead.offsets.segment_file import errors_of_batches
from letterhead.offsets.stored_batches import StoredBatches

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.iggy.kafka_rows import MappedRowReader

__all__ = ["FETCH_BYTES", "IggyPartitions"]

FETCH_BYTES = 4 << 20

# Number of messages in the first poll. A poll limits messages, not bytes, so later numbers depend on message sizes.
_FIRST_COUNT = 256
_MAX_COUNT = 1 << 20
_MAX_GROWTH = 8
"""Maximum growth factor of the number of messages from one poll to the next."""


class IggyPartitions(PartitionLog[IggyClient]):
    """Partitions of a topic on a server, read with one poll at a time.

    Parameters
    ----------
    client : IggyClient
        The connection to the server; closed with this object.
    reader : IggyRowReader or MappedRowReader
        Converts batches to rows.
    fetch_bytes : int
        Approximate size of a reply in bytes; a reply has at least one message.
    """

    pause = 0.05
    ticks_per_ms = 1000

    def __init__(
        self, client: IggyClient, reader: IggyRowReader | MappedRowReader, fetch_bytes: int = FETCH_BYTES
    ) -> None:
        super().__init__(client, reader.limits)
        self._reader = reader
        self._fetch_bytes = fetch_bytes
        self._count = _FIRST_COUNT

    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first message of each partition, or the next offset if it is empty."""
        return {partition: self.client.first_offset(partition) for partition in partitions}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last message of each partition."""
        return {partition: self.client.end_offset(partition) for partition in partitions}

    def offsets_since(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        """Return, for each partition, the offset of the first message stored at or after a time, or the next offset."""
        return {partition: self.client.offset_since(partition, time) for partition, time in times.items()}

    def partition_values(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the values of the partition columns; stream and topic may be numbers."""
        topic = partition.topic
        return {"stream": str(topic.stream), "topic": str(topic.topic), "partition": partition.partition}

    def start_range(self, requested: OffsetRange) -> None:
        """Discard message sizes of the previous range."""
        self._count = _FIRST_COUNT

    def request(self, remaining: OffsetRange) -> Poll:
        """Send a poll."""
        self._count = max(1, min(self._count, remaining.end - remaining.start, _MAX_COUNT))
        return self.client.begin_poll(remaining.partition, remaining.start, self._count)

    def receive(self, handle: Poll, remaining: OffsetRange) -> Reply:
        """Wait for the messages of a poll; repeat it with fewer messages if the reply is too large."""
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
        if isinstance(self._reader, IggyRowReader) and self._reader.errors != "raise":
            yield from self._lax_rows(self._reader, records, remaining)
            return

        def read(end: int) -> pa.RecordBatch | None:
            options: Any = {"start": remaining.start, "end": end, "partition_values": partition_values}
            try:
                return self._reader(records.data, **options)
            except HeaderError as error:
                raise self._reader.located(error, records.data, **options) from None

        yield from filter(None, rows_up_to_error(read, remaining.start, remaining.end))

    def _lax_rows(self, reader: IggyRowReader, records: Messages, remaining: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Convert a reply to rows without raising errors of damaged batches."""
        values = self.partition_values(remaining.partition)
        options: Any = {"start": remaining.start, "end": remaining.end, "partition_values": values}
        batches, _ = batch_ranges(records.data[POLL_PREFIX_LEN:], POLL_PREFIX_LEN)
        try:
            rows = reader.strict()(StoredBatches(records.data, batches), **options)
        except HeaderError:
            yield from self._rows_around_damage(reader, StoredBatches(records.data, batches), options)
        else:
            if rows is not None:
                yield reader.with_no_errors(rows)

    def _rows_around_damage(
        self, reader: IggyRowReader, stored: StoredBatches[BatchRange], options: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Convert batches, some of which may be damaged; each damaged batch becomes one row with its error."""
        data = [bytes(stored.data[batch.position : batch.end]) for batch in stored.batches]
        damaged = errors_of_batches(data, reader.format, error_of_batch)
        after, following = options["start"], [batch.base_offset for batch in stored.batches[1:]]
        parts = zip(stored.batches, damaged, [*following, stored.batches[-1].last_offset + 1], strict=True)
        for is_valid, group in groupby(parts, key=lambda part: part[1] is None):
            part = [*group]
            if is_valid:
                yield from filter(None, [reader(stored._replace(batches=[batch for batch, *_ in part]), **options)])
                after = part[-1][0].last_offset + 1
                continue
            for batch, error, end in part:
                damage = DamagedRange(0, batch.size, False, after, end - 1, (options["start"], options["end"]))
                if damage.hides_records and reader.keeps_error_rows(options["partition_values"]):
                    error = require(error, "the error of a batch")
                    text = f"{error.reason}: {damage.missing}"
                    yield reader.error_row(options["partition_values"], error.code, text, 0)
                after = end
