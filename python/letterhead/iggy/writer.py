"""Append messages to Apache Iggy exactly once, even if connections end: :class:`IggyWriter`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from letterhead._context_managers import Closing
from letterhead._row_request import RowRequest
from letterhead.iggy.batches import EncodedBatch, MessageFields, batches_of
from letterhead.iggy.client import IggyClient, UnacknowledgedBatchError
from letterhead.iggy.partitions import IggyPartitions
from letterhead.iggy.rows import IggyRowReader
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from letterhead.offsets.reading import read_ranges
from letterhead.written import Appended

__all__ = ["IggyWriter"]

_PAUSE = 0.1
"""Seconds between two searches for a batch, and from the end of the server's connection to the last search."""

_SETTLE = 2.0
"""Seconds after which a batch counts as lost if the user has no permission to list connections."""


class IggyWriter(Closing):
    """Writer that appends messages in batches, and waits for the acknowledgement of each batch.

    If a connection ends before the acknowledgement, the batch may still be in transit. The writer waits until the server
    has closed the connection, and sends the batch again only if the partition does not contain it then. Without permission
    to list connections, it waits for two seconds instead. Batches are recognized by the checksums of their messages.
    """

    def __init__(self, client: IggyClient) -> None:
        self._client = client
        self._next: dict[TopicPartition, int] = {}

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def interrupt(self) -> None:
        """Interrupt an append that waits in another thread."""
        self._client.interrupt()

    def append(self, partition: TopicPartition, messages: Sequence[MessageFields]) -> list[Appended]:
        """Append messages to a partition, in order."""
        appended = []
        for batch in batches_of(messages):
            offset = self._append(partition, batch)
            appended.append(Appended(partition.partition, offset, len(batch.checksums)))
            self._next[partition] = offset + len(batch.checksums)
        return appended

    def _append(self, partition: TopicPartition, batch: EncodedBatch) -> int:
        if partition not in self._next:
            self._next[partition] = self._client.end_offset(partition)
        with self._client.shared_deadline() as until:
            while True:
                try:
                    return self._client.send(partition, batch.data, len(batch.checksums))
                except UnacknowledgedBatchError as error:
                    offset = self._offset_if_appended(partition, batch, error, until)
                if offset is not None:
                    return offset

    def _offset_if_appended(
        self, partition: TopicPartition, batch: EncodedBatch, lost: UnacknowledgedBatchError, until: float
    ) -> int | None:
        """Return the offset of a batch whose connection has ended, or None once the server can no longer append it."""
        try:
            return self._search(partition, batch, lost, until)
        except TimeoutError:
            raise TimeoutError(
                f"{self._client.address} did not acknowledge a batch in {self._client.timeout:g} s, and can still "
                f"append it: {lost}"
            ) from lost

    def _search(
        self, partition: TopicPartition, batch: EncodedBatch, lost: UnacknowledgedBatchError, until: float
    ) -> int | None:
        searched = self._next[partition]
        settled = time.monotonic() + _SETTLE
        last = False  # whether this search is the last, because the server can no longer append the batch
        while True:
            end = self._client.end_offset(partition)
            offset = self._offset_of(OffsetRange(partition, searched, end), batch)
            if offset is not None or last:
                return offset
            searched = end
            if time.monotonic() + _PAUSE >= until:
                raise TimeoutError
            listed = self._client.has_session(lost.session)
            last = time.monotonic() >= settled if listed is None else not listed
            time.sleep(_PAUSE)

    def _offset_of(self, searched: OffsetRange, batch: EncodedBatch) -> int | None:
        """Return the offset of a batch in a range of offsets."""
        log = IggyPartitions(self._client, IggyRowReader(RowRequest(("offset", "checksum"), errors="null")))
        for rows in read_ranges(log, [searched], skip_lost=True):
            checksums = rows.column("checksum").cast(pa.decimal128(20, 0)).to_pylist()
            for at, checksum in enumerate(checksums):
                # Compare the first checksum only: a batch is appended as a whole, and checksums cover offset deltas.
                if checksum is not None and int(checksum) == batch.checksums[0]:
                    return int(rows.column("offset")[at].as_py())
        return None
