"""Log segments of Kafka: :class:`KafkaSegments`, and the rows of their batches, :class:`SegmentRowReader`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from letterhead.errors import ErrorDetail, HeaderError, replaced
from letterhead.kafka.log_directory import LogSegment
from letterhead.kafka.record_sets import (
    WHERE_FIELDS,
    BatchHeader,
    KafkaRowReader,
    StoredBatches,
    aborted_batches,
    next_pieces,
)
from letterhead.kafka.segment_file import BatchError, KafkaSegmentFile, verified_position
from letterhead.kafka.transactions import Transactions, read_transactions
from letterhead.limits import Limits
from letterhead.offsets.output_columns import Dialect, with_errors
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange, TopicPartition
from letterhead.offsets.ranges import EndOfFiles, TimeInFiles
from letterhead.offsets.reading import rows_up_to_error
from letterhead.offsets.segments import DamagedBatches, DamagedRange, SegmentLog, SegmentReports, TruncatedTail
from letterhead.where.program import resolve

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.where.conditions import Where
    from letterhead.where.program import Filter

__all__ = ["KafkaSegments", "SegmentRowReader", "SegmentRows"]


class Invalid(NamedTuple):
    """The first invalid batch among several."""

    number: int  # counted from 0
    error: BatchError


class SegmentRows(Protocol):
    """Converts batches of segment files to rows."""

    schema: pa.Schema
    errors: OnError
    where: Filter | None
    limits: Limits | None
    message_bytes: int

    def rows(
        self, file: KafkaSegmentFile, batches: Sequence[BatchHeader], bounds: OffsetRange, transactions: Transactions
    ) -> Iterator[pa.RecordBatch | Invalid]:
        """Yield the rows of batches with valid headers; at the end, the first invalid batch, if any."""

    def keeps_error_rows(self, file: KafkaSegmentFile) -> bool:
        """Return whether the result has rows for damaged batches."""

    def error_row(self, file: KafkaSegmentFile, error: BatchError, damage: DamagedRange) -> pa.RecordBatch:
        """Return the row that represents a damaged batch."""


class KafkaSegments(SegmentLog[LogSegment]):
    """Log segments of Kafka.

    With ``committed``, aborted transactions are left out, and each partition ends at its first open one; ``transactions`` are
    the transactions of the only partition, if they were read before. With ``marks_aborted``, rows of aborted
    transactions are returned and marked.
    """

    def __init__(
        self,
        rows: SegmentRows,
        *,
        committed: bool = False,
        transactions: Transactions | None = None,
        truncated_rows: bool = False,
        marks_aborted: bool = False,
        ignore_crc: bool = False,
    ) -> None:
        if ignore_crc and not (isinstance(rows, SegmentRowReader) and rows.errors == "column"):
            raise ValueError(
                "ignore_crc= needs errors='column': records of a batch with a wrong checksum have an error"
            )
        super().__init__(truncated_rows=truncated_rows)
        self.schema = rows.schema
        self.where = rows.where
        self._rows = rows
        self._committed = committed
        self._transactions = Transactions([], []) if transactions is None else transactions
        self._marks_aborted = marks_aborted
        self._unchecked = rows.unchecked if ignore_crc and isinstance(rows, SegmentRowReader) else None

    def topic_partition(self, segment: LogSegment) -> TopicPartition:
        """Return the partition of a file."""
        return TopicPartition(segment.topic, segment.partition)  # type: ignore[arg-type]

    def partition_values(self, segment: LogSegment) -> dict[str, Any]:
        """Return topic and partition."""
        return _partition_values(segment)

    def end_of(self, last: LogSegment, enough: int = LAST_OFFSET) -> EndOfFiles:
        """Return where the records of a partition end, by its last file, or any offset after ``enough`` if that one is in it."""
        end, is_certain, truncated = last.base_offset, True, None
        with KafkaSegmentFile(last) as file:
            for batches, invalid in file.walk(enough, validates_last=True):
                if batches:
                    end = batches[-1].last_offset + 1
                if end > enough:
                    break
                if invalid is None:
                    continue
                error, damage = invalid
                if damage.truncated:
                    truncated = _truncated_at(file, error, damage)
                elif damage.last is None:
                    is_certain = False
                else:
                    end = damage.last + 1
        return EndOfFiles(end, is_certain, truncated)

    def end_offset(self, segments: Sequence[LogSegment]) -> int:
        """Return the offset after the last record, or of the first open transaction."""
        begun = self.transactions(segments).open if self._committed else []
        return min([self.end_of(segments[-1]).offset, *(transaction.first_offset for transaction in begun)])

    def transactions(self, segments: Sequence[LogSegment], start: int = 0) -> Transactions:
        """Read the transactions that have records from an offset on."""
        return read_transactions(segments, start, strict=self._rows.errors == "raise")

    def since(self, segments: Sequence[LogSegment], time: int) -> TimeInFiles:
        """Find the first record that is not older than a time, by the headers of all batches before it."""
        reader = KafkaRowReader(["offset", "timestamp"], errors="null", limits=self._rows.limits)
        hidden: int | None = None
        for segment in segments:
            with KafkaSegmentFile(segment, self._rows.message_bytes) as file:
                for batches, invalid in file.walk(0, validates_last=True):
                    for batch in batches:
                        if batch.control:
                            continue
                        if batch.max_timestamp < time:
                            hidden = None
                            continue
                        records = reader(file.stored([batch]), partition_values=_partition_values(segment))
                        if records is None:
                            continue
                        times = records.column("timestamp").cast(pa.int64()).to_pylist()
                        for row, record_time in enumerate(times):
                            if record_time is not None and record_time >= time:
                                return TimeInFiles(int(records.column("offset")[row].as_py()), hidden)
                    if invalid is not None and not invalid[1].truncated and hidden is None:
                        hidden = invalid[1].first
        return TimeInFiles(None, hidden)

    def read(
        self, segments: Sequence[LogSegment], requested: OffsetRange, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of the offsets of a partition."""
        transactions = self._transactions
        if self._committed or self._marks_aborted:
            transactions = self.transactions(segments, requested.start)
        begun = transactions.open if self._committed else []
        bounds = requested._replace(end=min([requested.end, *(transaction.first_offset for transaction in begun)]))
        reports.open_transactions += [transaction for transaction in begun if transaction.first_offset < requested.end]
        done_before = reports.done
        for segment in segments:
            if segment.base_offset < bounds.end and bounds.start < (segment.next_offset or LAST_OFFSET):
                with KafkaSegmentFile(segment, self._rows.message_bytes) as file:
                    yield from self._segment(file, bounds, transactions, reports)
            reports.done = done_before = done_before + reports.sizes[segment.path]

    def _segment(
        self, file: KafkaSegmentFile, bounds: OffsetRange, transactions: Transactions, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        position, min_offset, done_before = (
            verified_position(file, bounds.start),
            file.segment.base_offset,
            reports.done,
        )
        pieces = 1
        while position < file.size:
            batches, error = file.batches(position, min_offset, pieces)
            selected = 0
            for result in self._rows.rows(file, batches, bounds, transactions):
                if isinstance(result, Invalid):
                    batches, error = batches[: result.number], result.error
                else:
                    selected += len(result)
                    yield result
            if self.where is not None:
                pieces = next_pieces(pieces, batches, selected)
            if batches:
                position, min_offset = batches[-1].end, batches[-1].last_offset + 1
                reports.done = done_before + position
            if min_offset >= bounds.end:
                return
            if error is not None:
                damage = file.damage(position, min_offset, error)
                if damage.truncated:
                    reports.examined.add(file.segment.path)
                    reports.add_truncated(_truncated_at(file, error, damage))
                    if self.truncated_rows and self._rows.errors == "column":
                        yield self._rows.error_row(file, error, damage)
                    return
                yield from self._damaged(file, error, damage, bounds, reports)
                position = damage.end
        reports.examined.add(file.segment.path)

    def _damaged(
        self,
        file: KafkaSegmentFile,
        error: BatchError,
        damage: DamagedRange,
        bounds: OffsetRange,
        reports: SegmentReports,
    ) -> Iterator[pa.RecordBatch]:
        """Raise the error of damaged bytes, or yield their records, or their row."""
        damage = damage._replace(bounds=bounds[1:])
        repaired = file.with_checksum(error, damage) if self._unchecked is not None else None
        if self._unchecked is not None and repaired is not None:
            yield from self._unchecked(file, repaired, error, bounds)
        elif damage.hides_records or error.is_not_a_segment:
            damage = damage._replace(bounds=reports.requested)
            if self._rows.errors == "raise":
                raise file.error(error, damage)
            reports.damaged.append(DamagedBatches.in_file(file.segment.path, damage, error.reason))
            if self._rows.keeps_error_rows(file):
                yield self._rows.error_row(file, error, damage)


class SegmentRowReader:
    """Converts batches of segment files to record batches of :attr:`schema`, with the options of :class:`KafkaRowReader`."""

    def __init__(
        self,
        columns: Sequence[str],
        headers: Columns | None,
        errors: OnError = "raise",
        *,
        error_column: str = "error",
        dialect: Dialect = "arrow",
        limits: Limits | None = None,
        where: Where | None = None,
        reader: type[KafkaRowReader] = KafkaRowReader,
    ) -> None:
        self.errors = errors
        self.where = resolve(where, WHERE_FIELDS, headers)
        self._error_column = error_column
        options: Any = {"dialect": dialect, "limits": limits, "where": self.where}
        # Each piece is read by the strict reader first, and after an error by the lax one, which handles it as `errors` says.
        self._strict = reader(columns, headers, **options)
        self._lax = reader(columns, headers, errors=errors, error_column=error_column, **options)
        self.schema = self._lax.schema
        self.limits = limits
        self.message_bytes = self._lax.message_bytes

    def rows(
        self, file: KafkaSegmentFile, batches: Sequence[BatchHeader], bounds: OffsetRange, transactions: Transactions
    ) -> Iterator[pa.RecordBatch | Invalid]:
        """Yield the rows of batches with valid headers; at the end, the first invalid batch, if any."""
        if not batches:
            return
        results = rows_up_to_error(
            lambda end: self._read(file, batches, bounds._replace(end=end), transactions), bounds.start, bounds.end
        )
        try:
            for rows, invalid in results:
                if rows is not None and len(rows):
                    yield rows
                if invalid is not None:
                    yield invalid
        except HeaderError as error:
            if error.code != "too_large" or len(batches) == 1:
                raise
            # The decompressed batches are larger than an Arrow column can be.
            half = len(batches) // 2
            for first, part in ((0, batches[:half]), (half, batches[half:])):
                for result in self.rows(file, part, bounds, transactions):
                    if isinstance(result, Invalid):
                        yield result._replace(number=first + result.number)
                        return
                    yield result

    def _read(
        self, file: KafkaSegmentFile, batches: Sequence[BatchHeader], bounds: OffsetRange, transactions: Transactions
    ) -> tuple[pa.RecordBatch | None, Invalid | None]:
        aborted = transactions.aborted_among(batches)
        options: Any = {
            "start": bounds.start, "end": bounds.end,
            "skipped": set(aborted_batches(batches, aborted)) if aborted else (), "partition_values": _partition_values(file.segment),
        }  # fmt: skip
        # Control batches have no rows, so nothing else validates their checksums.
        control = [at for at, batch in enumerate(batches) if batch.control]
        invalid = _first_invalid(file, batches, control) if control else None
        if invalid is not None:
            batches = batches[: invalid.number]
        if not batches:
            return None, invalid
        try:
            rows = self._strict(file.stored(batches), **options)
        except HeaderError as error:
            if error.code == "too_large":
                raise
            requested = [at for at, batch in enumerate(batches) if batch.last_offset >= bounds.start]
            invalid = _first_invalid(file, batches, requested) or invalid
            valid = batches if invalid is None else batches[: invalid.number]
            if self.errors == "raise" and error.row is not None and error.row < len(valid):
                located = self._strict.located(
                    error,
                    file.stored(batches),
                    start=bounds.start,
                    end=bounds.end,
                    partition_values=_partition_values(file.segment),
                )
                raise _placed(file, valid[error.row], located) from None
            return self._lax(file.stored(valid), **options) if valid else None, invalid
        if rows is not None and self.errors == "column":
            no_errors = pa.nulls(len(rows), self._lax.schema.field(self._error_column).type)
            rows = pa.RecordBatch.from_arrays([*rows.columns, no_errors], schema=self._lax.schema)
        return rows, invalid

    def unchecked(
        self, file: KafkaSegmentFile, batch: StoredBatches, error: BatchError, bounds: OffsetRange
    ) -> list[pa.RecordBatch]:
        """Return the records of a batch with a wrong checksum, each with that error."""
        rows = self._lax(batch, start=bounds.start, end=bounds.end, partition_values=_partition_values(file.segment))
        if rows is None:
            return []
        index = rows.schema.get_field_index(self._error_column)
        detail = ErrorDetail(error.code, error.reason)
        errors = with_errors(rows.column(index), pa.repeat(pa.scalar(True), len(rows)), detail)
        return [rows.set_column(index, rows.schema.field(index), errors)]

    def keeps_error_rows(self, file: KafkaSegmentFile) -> bool:
        """Return whether the result has rows for damaged batches."""
        return self._lax.keeps_error_rows(_partition_values(file.segment))

    def error_row(self, file: KafkaSegmentFile, error: BatchError, damage: DamagedRange) -> pa.RecordBatch:
        """Return the row that represents a damaged batch. Its message begins with the reason."""
        batch = "" if error.is_not_a_segment else f": {damage.missing} (the batch at offset {damage.first})"
        message = f"{error.reason}{batch}: {file.segment.path}"
        return self._lax.error_row(_partition_values(file.segment), error.code, message, damage.position)


def _truncated_at(file: KafkaSegmentFile, error: BatchError, damage: DamagedRange) -> TruncatedTail:
    return TruncatedTail(str(file.segment.path), damage.position, damage.end - damage.position, error.reason)


def _partition_values(segment: LogSegment) -> dict[str, Any]:
    return {"topic": segment.topic, "partition": segment.partition}


def _first_invalid(file: KafkaSegmentFile, batches: Sequence[BatchHeader], indexes: Sequence[int]) -> Invalid | None:
    errors = zip(indexes, file.batch_errors([batches[at] for at in indexes]), strict=True)
    return next((Invalid(at, error) for at, error in errors if error is not None), None)


def _placed(file: KafkaSegmentFile, batch: BatchHeader, error: HeaderError) -> HeaderError:
    """Return the error of a batch with its place in the file."""
    message = f"{file.segment.path}: the batch at offset {batch.base_offset}: {error.message}"
    return replaced(error, message, byte_offset=batch.position + (error.byte_offset or 0), row=None)
