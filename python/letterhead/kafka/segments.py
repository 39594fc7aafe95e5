"""Log segments of Kafka: :class:`KafkaSegments`, and the rows of their batches, :class:`KafkaSegmentRowReader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from letterhead import arrow as lha
from letterhead._row_request import RowRequest
from letterhead.errors import ErrorDetail
from letterhead.kafka.batch_rows import SegmentBatchReader
from letterhead.kafka.control_rows import ControlRowReader
from letterhead.kafka.log_directory import LogSegment
from letterhead.kafka.record_sets import BatchHeader, KafkaRowReader, find_aborted_batches
from letterhead.kafka.segment_file import KafkaSegmentFile
from letterhead.kafka.transactions import Transactions, read_transactions
from letterhead.limits import Limits
from letterhead.offsets.damage import BatchError, DamagedRange, Invalid
from letterhead.offsets.output_columns import Dialect, with_errors
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from letterhead.offsets.segment_rows import SegmentRowReader
from letterhead.offsets.segments import Repaired, SegmentLog, SegmentReports, SegmentRows
from letterhead.offsets.stored_batches import StoredBatches

__all__ = ["KafkaSegments", "KafkaSegmentRowReader"]


class KafkaSegmentRows(SegmentRows, Protocol):
    """Converts batches of segment files to rows."""

    limits: Limits | None
    message_bytes: int

    def rows(
        self, file: Any, batches: Sequence[BatchHeader], bounds: OffsetRange, transactions: Any
    ) -> Iterator[pa.RecordBatch | Invalid]:
        """Yield the rows of batches with valid headers; at the end, the first invalid batch, if any."""


class KafkaSegments(SegmentLog[LogSegment, BatchHeader]):
    """Log segments of Kafka.

    If a request is for committed records, aborted transactions are omitted, and each partition ends at its first open
    transaction. ``transactions`` may contain the transactions of a single partition, if already read.
    """

    def __init__(
        self,
        request: RowRequest,
        *,
        dialect: Dialect = "arrow",
        transactions: Transactions | None = None,
        truncated_rows: bool = False,
    ) -> None:
        if request.ignore_crc and request.errors != "column":
            raise ValueError(
                "ignore_crc= needs errors='column': records of a batch with a wrong checksum have an error"
            )
        rows: KafkaSegmentRows
        if request.view == "batches":
            rows = SegmentBatchReader(request)
        else:
            rows = KafkaSegmentRowReader(request, dialect=dialect)
        super().__init__(rows, truncated_rows=truncated_rows)
        self._rows = rows
        self._committed = bool(request.committed) and transactions is None
        self._transactions = Transactions([], []) if transactions is None else transactions
        self._marks_aborted = request.view == "control"
        self._unchecked = rows.unchecked if request.ignore_crc and isinstance(rows, KafkaSegmentRowReader) else None
        self._times = KafkaRowReader(RowRequest(("offset", "timestamp"), errors="null", limits=rows.limits))

    def open(self, segment: LogSegment) -> KafkaSegmentFile:
        """Open a file."""
        return KafkaSegmentFile(segment, self._rows.message_bytes)

    def topic_partition(self, segment: LogSegment) -> TopicPartition:
        """Return the partition of a file."""
        return TopicPartition(segment.topic, segment.partition)  # type: ignore[arg-type]

    def end_offset(self, segments: Sequence[LogSegment]) -> int:
        """Return the offset after the last record, or the offset of the first open transaction."""
        unfinished = self.transactions(segments).open if self._committed else []
        return min([self.end_of(segments[-1]).offset, *(transaction.first_offset for transaction in unfinished)])

    def transactions(self, segments: Sequence[LogSegment], start: int = 0) -> Transactions:
        """Read the transactions with records at or after an offset."""
        return read_transactions(segments, start, strict=self._rows.errors == "raise")

    def first_since(self, file: KafkaSegmentFile, batch: BatchHeader, time: int) -> tuple[bool, int | None]:
        """Return whether all records of a batch are older than a time; if not, also the offset of the first newer record."""
        if batch.control:
            return False, None
        if batch.max_timestamp < time:
            return True, None
        records = self._times(file.stored([batch]), partition_values=file.segment.partition_values)
        if records is None:
            return False, None
        offsets, times = records.column("offset"), records.column("timestamp").cast(pa.int64())
        since = (row for row, timestamp in enumerate(times.to_pylist()) if timestamp is not None and timestamp >= time)
        row = next(since, None)
        return False, None if row is None else int(offsets[row].as_py())

    def read(
        self, segments: Sequence[LogSegment], requested: OffsetRange, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of the offsets of a partition."""
        transactions = self._transactions
        if self._committed or self._marks_aborted:
            transactions = self.transactions(segments, requested.start)
        unfinished = transactions.open if self._committed else []
        bounds = requested._replace(end=min([requested.end, *(transaction.first_offset for transaction in unfinished)]))
        reports.open_transactions += [
            transaction for transaction in unfinished if transaction.first_offset < requested.end
        ]
        return self.read_files(
            segments, bounds, lambda file, batches, part: self._rows.rows(file, batches, part, transactions), reports
        )

    def repaired(
        self, file: KafkaSegmentFile, error: BatchError, damage: DamagedRange, bounds: OffsetRange
    ) -> Repaired | None:
        """Return the records of a batch with a wrong checksum, if the request ignores wrong checksums."""
        stored = file.with_checksum(error, damage) if self._unchecked is not None else None
        if self._unchecked is None or stored is None:
            return None
        return Repaired(self._unchecked(file, stored, error, bounds), self._unread(stored, damage))

    def _unread(
        self, stored: StoredBatches[BatchHeader], damage: DamagedRange
    ) -> tuple[BatchError, DamagedRange] | None:
        """Return the error and the damaged range from the first unreadable record of a batch; None if all are readable."""
        batch = pa.array([bytes(stored.data)], pa.binary())
        options: Any = {"errors": "column", "limits": self._rows.limits}
        read = lha.messages(batch, "record-batch", columns=["offset"], **options)
        known = read.field("offset").drop_null()
        if len(known) == len(read):
            return None
        error = read.filter(pc.is_null(read.field("offset"))).field("error")[0].as_py()[0]
        first = known[-1].as_py() + 1 if len(known) else damage.first
        return BatchError(error["code"], error["message"]), damage._replace(first=first)


class KafkaSegmentRowReader(SegmentRowReader[BatchHeader]):
    """Converts batches of segment files to record batches of :attr:`schema`, with the options of :class:`KafkaRowReader`."""

    def __init__(self, request: RowRequest, *, dialect: Dialect = "arrow") -> None:
        reader = ControlRowReader if request.view == "control" else KafkaRowReader
        super().__init__(reader(request, dialect=dialect))
        self._error_column = request.error_column

    def unchecked(
        self, file: KafkaSegmentFile, batch: StoredBatches[BatchHeader], error: BatchError, bounds: OffsetRange
    ) -> list[pa.RecordBatch]:
        """Return the records of a batch with a wrong checksum, each with that error."""
        values = file.segment.partition_values
        rows = self._lax(batch, start=bounds.start, end=bounds.end, partition_values=values)
        if rows is None:
            return []
        index = rows.schema.get_field_index(self._error_column)
        detail = ErrorDetail(error.code, error.reason)
        errors = with_errors(rows.column(index), pa.repeat(pa.scalar(True), len(rows)), detail)
        return [rows.set_column(index, rows.schema.field(index), errors)]

    def _without_rows(self, batches: Sequence[BatchHeader]) -> list[int]:
        return [index for index, batch in enumerate(batches) if batch.control]

    def _arguments(self, batches: Sequence[BatchHeader], context: Transactions) -> Mapping[str, Any]:
        aborted = context.aborted_among(batches)
        return {"skipped": set(find_aborted_batches(batches, aborted)) if aborted else ()}
