"""Partitions of a Kafka cluster for :mod:`letterhead.offsets.reading`: :class:`KafkaPartitions`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from letterhead.errors import DecodeError, HeaderError, LogTruncated, ProtocolError, copy_error, without_message_number
from letterhead.kafka.client import EARLIEST_TIME, LATEST_TIME, KafkaClient
from letterhead.kafka.record_sets import BatchHeader, KafkaRowReader, find_aborted_batches, find_batches, leader_epoch
from letterhead.kafka.responses import Fetched, Isolation
from letterhead.offsets.partition_log import OffsetRange, PartitionLog, Reply, TopicPartition
from letterhead.offsets.reading import rows_up_to_error
from letterhead.offsets.stored_batches import StoredBatches, next_pieces

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BATCH_BYTES", "KafkaPartitions"]

BATCH_BYTES = 1 << 20
"""Size of the record batches that are converted to one batch of rows."""


class KafkaPartitions(PartitionLog[KafkaClient]):
    """Reads partitions of a cluster, one fetch at a time.

    Parameters
    ----------
    client : KafkaClient
        Connections to the cluster; closed with this object.
    reader : KafkaRowReader
        Converts record batches to rows.
    isolation : {"read_uncommitted", "read_committed"}
        Whether records of open and aborted transactions are skipped.
    batch_bytes : int
        Size of the record batches that are converted to one batch of rows, at least one record batch; the size is
        larger while a condition selects few records.
    """

    def __init__(
        self, client: KafkaClient, reader: KafkaRowReader, isolation: Isolation, batch_bytes: int = BATCH_BYTES
    ) -> None:
        super().__init__(client, reader.limits)
        self._reader = reader
        self._isolation = isolation
        self._batch_bytes = batch_bytes
        self._pieces = 1
        self._first = 0  # start of the current range
        self._epoch_ends: dict[int, int] = {}  # leader epoch: offset after the last record read of this epoch

    def first_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition, or the next offset if it is empty."""
        return self._offsets(dict.fromkeys(partitions, EARLIEST_TIME), "read_uncommitted")

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset up to which each partition can be read."""
        return self._offsets(dict.fromkeys(partitions, LATEST_TIME), self._isolation)

    def all_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the high watermark of each partition, which also covers records of open transactions."""
        return self._offsets(dict.fromkeys(partitions, LATEST_TIME), "read_uncommitted")

    def offsets_since(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        """Return the offset of the first record at or after a time, even in an open transaction."""
        offsets = self._offsets(times, "read_uncommitted")
        return {partition: None if offset < 0 else offset for partition, offset in offsets.items()}

    def partition_values(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the topic and partition, which are constant in all rows."""
        return partition._asdict()

    def start_range(self, requested: OffsetRange) -> None:
        """Discard the state of the previous range."""
        self._first, self._epoch_ends = requested.start, {}

    def request(self, remaining: OffsetRange) -> Any:
        """Start a fetch."""
        last_epoch = max(self._epoch_ends, default=-1)
        return self.client.fetch(remaining.partition, remaining.start, self._isolation, last_epoch=last_epoch)

    def receive(self, handle: Any, remaining: OffsetRange) -> Reply:
        """Wait for a fetch, and read the headers of its batches."""
        fetched = self.client.fetched(handle)
        batches, position = self._read_headers(remaining, fetched)
        self._epoch_ends |= {leader_epoch(fetched.records, batch): batch.last_offset + 1 for batch in batches}
        if fetched.diverging is not None:
            lost = LogTruncated(remaining.partition, position, self._first_removed(remaining.partition, fetched))
            self._epoch_ends = {}
            return Reply((fetched, batches) if batches else None, position, lost=lost)
        if batches:
            # Earlier records of the first batch were read before, or were deleted.
            return Reply((fetched, batches), position)
        # Records may still arrive: a new leader receives the high watermark with a delay. Below that watermark, a broker
        # has a batch at or after each offset, because compaction never removes the active segment.
        return Reply(None, position, can_follow=fetched.end >= 0)

    def rows(self, records: tuple[Fetched, list[BatchHeader]], remaining: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Convert a few batches at a time to rows."""
        fetched, batches = records
        skipped = set(find_aborted_batches(batches, fetched.aborted))
        partition_values = self.partition_values(remaining.partition)
        while batches:
            group, batches = _split(batches, self._pieces * self._batch_bytes)
            read = partial(
                self._decoded, StoredBatches(fetched.records, group), skipped, partition_values, remaining.start
            )
            for rows in rows_up_to_error(read, remaining.start, remaining.end):
                if self._reader.where is not None:
                    self._pieces = next_pieces(self._pieces, group, 0 if rows is None else len(rows))
                if rows is not None:
                    yield rows

    def _decoded(
        self,
        stored: StoredBatches[BatchHeader],
        skipped: Collection[int],
        partition_values: dict[str, Any],
        start: int,
        end: int,
    ) -> pa.RecordBatch | None:
        """Return the rows of batches; the error of a record names its location."""
        options: Any = {"start": start, "end": end, "partition_values": partition_values}
        try:
            return self._reader(stored, skipped=skipped, **options)
        except HeaderError as error:
            located = self._reader.located(error, stored, **options)
            # The offset identifies the record.
            raise copy_error(located, without_message_number(located.message), row=None) from None

    def _offsets(self, times: Mapping[TopicPartition, int], isolation: Isolation) -> dict[TopicPartition, int]:
        return self.client.offsets(times, isolation) if times else {}

    def _first_removed(self, partition: TopicPartition, fetched: Fetched) -> int:
        """Return the first offset that was read but is no longer in the leader's log."""
        first, ends = self._first, self._epoch_ends
        while fetched.diverging is not None:
            epoch, end = fetched.diverging
            shared = {known: min(last, end) for known, last in ends.items() if known <= epoch}
            if not shared:
                return self._first
            if shared == ends:  # no progress: the broker repeats its response
                break
            # The logs can differ in earlier epochs, too.
            ends, first = shared, max(shared.values())
            handle = self.client.fetch(partition, first, self._isolation, last_epoch=max(ends), wait_ms=0)
            fetched = self.client.fetched(handle)
        return max(first, self._first)

    def _read_headers(self, remaining: OffsetRange, fetched: Fetched) -> tuple[list[BatchHeader], int]:
        """Return the batches of a response and the offset after them."""
        partition, position = remaining.partition, remaining.start
        batches, whole = find_batches(fetched.records)
        if (
            (batches and batches[0].base_offset < 0)
            or any(batch.last_offset < batch.base_offset for batch in batches)
            or any(batch.base_offset <= before.last_offset for before, batch in pairwise(batches))
        ):
            raise ProtocolError(
                f"{self.client.servers} sent record batches of {partition} from offset {position} on that are not in order"
            )
        if batches and batches[-1].last_offset < position:
            raise ProtocolError(
                f"{self.client.servers} sent records of {partition} before offset {position}, the requested one"
            )
        if batches and 0 <= fetched.end <= batches[0].base_offset:
            # Records can be appended during a fetch, but the records before the reported end offset cannot all have
            # disappeared.
            raise ProtocolError(
                f"{self.client.servers} sent records of {partition} from offset {batches[0].base_offset} on, but reports the end "
                f"offset {fetched.end}"
            )
        if fetched.records and not batches:
            # A broker sends at least one complete batch. Other bytes must not be skipped silently.
            raise DecodeError(
                "the response has no whole record batch", format="record-batch", code="truncated",
                **partition._asdict(), offset=position, byte_offset=whole,
            )  # fmt: skip
        return batches, batches[-1].last_offset + 1 if batches else position


def _split(batches: list[BatchHeader], size: int) -> tuple[list[BatchHeader], list[BatchHeader]]:
    """Split batches after ``size`` bytes, but not before the first batch."""
    limit = batches[0].position + size
    count = next((index for index, batch in enumerate(batches) if index and batch.end > limit), len(batches))
    return batches[:count], batches[count:]
