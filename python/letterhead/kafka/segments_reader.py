"""The stream of records that :func:`letterhead.read.segments` returns, and its reports of damage and open transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from letterhead._formatting import counted, printable
from letterhead._warnings import warn
from letterhead.errors import ErrorDetail, HeaderError, TruncatedTailWarning, replaced
from letterhead.kafka.log_directory import LogSegment
from letterhead.kafka.record_sets import (
    WHERE_FIELDS,
    BatchHeader,
    KafkaRowReader,
    StoredBatches,
    aborted_batches,
    next_pieces,
)
from letterhead.kafka.segment_file import BatchError, DamagedRange, KafkaSegmentFile, verified_position
from letterhead.kafka.transactions import OpenTransaction, Transactions, read_transactions
from letterhead.limits import Limits
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange, TopicPartition
from letterhead.offsets.ranges import EndOfFiles, TimeInFiles, check_range_of_files, range_of_files
from letterhead.offsets.reading import last_of_range
from letterhead.offsets.specs import OffsetBounds
from letterhead.output_columns import Dialect, with_errors
from letterhead.reader import Reader
from letterhead.where.program import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.where.conditions import Where

__all__ = ["DamagedBatches", "OpenTransaction", "SegmentRowReader", "SegmentsReader", "TruncatedTail", "truncated_tail"]


class Invalid(NamedTuple):
    """The first invalid batch among several."""

    number: int  # counted from 0
    error: BatchError


class TruncatedTail(NamedTuple):
    """An incomplete batch at the end of a log, as a broker leaves it if it stops while it writes."""

    file: str
    position: int  # byte at which the first incomplete batch begins: a broker would truncate the file there
    bytes_left: int  # bytes from there to the end of the file
    reason: str

    @classmethod
    def in_file(cls, path: Path, error: BatchError, damage: DamagedRange) -> TruncatedTail:
        """Return the truncated end of a file."""
        return cls(str(path), damage.position, damage.end - damage.position, error.reason)

    def __str__(self) -> str:
        return f"{printable(self.file)}: truncated at byte {self.position}, {counted(self.bytes_left, 'byte')} before its end: {self.reason}"


class DamagedBatches(NamedTuple):
    """Bytes of a segment whose records are missing."""

    file: str
    position: int  # the first of the bytes
    end: int  # the byte after the last
    first: int  # the least offset that is missing
    last: int | None  # the largest; None if it is unknown
    missing: str  # the offsets and the number of records
    reason: str

    @classmethod
    def in_file(cls, path: Path, damage: DamagedRange, reason: str) -> DamagedBatches:
        """Return the damage of a file."""
        return cls(str(path), damage.position, damage.end, *damage.offsets, damage.missing, reason)

    def __str__(self) -> str:
        return f"{printable(self.file)}: {self.missing}: bytes {self.position} to {self.end} are damaged: {self.reason}"


class SegmentsReader(Reader):
    """A stream of the records of log segments.

    With ``committed``, aborted transactions are left out, and each partition ends at its first open one; ``transactions`` are
    the transactions of the only partition, if they were read before. With ``marks_aborted``, rows of aborted
    transactions are returned and marked.

    Attributes
    ----------
    truncated : list of TruncatedTail
        Truncated ends of logs found so far, after the last batch also of those beyond the requested offsets. A
        ``TruncatedTailWarning`` was emitted for each.
    damaged : list of DamagedBatches
        Damaged batches found so far, unless ``errors="raise"``.
    open_transactions : list of OpenTransaction
        Transactions at which reading committed records has stopped so far.
    total, done : int
        Bytes of all files, and bytes read so far.
    """

    def __init__(
        self,
        partitions: Sequence[Sequence[LogSegment]],
        rows: SegmentRowReader,
        bounds: OffsetBounds,
        *,
        committed: bool = False,
        transactions: Transactions | None = None,
        truncated_rows: bool = False,
        last: int | None = None,
        marks_aborted: bool = False,
        ignore_crc: bool = False,
    ) -> None:
        if ignore_crc and rows.errors != "column":
            raise ValueError(
                "ignore_crc= needs errors='column': records of a batch with a wrong checksum have an error"
            )
        for segments in partitions:
            bounds.of_partition(segments[0].partition)  # raises if a mapping lacks it
        super().__init__(rows.schema, self._records)
        self.truncated: list[TruncatedTail] = []
        self.damaged: list[DamagedBatches] = []
        self.open_transactions: list[OpenTransaction] = []
        self._examined: set[Path] = set()  # files whose end was read
        # A broker may delete a file while it is read.
        self._sizes = {segment.path: segment.size for segments in partitions for segment in segments}
        self.total = sum(self._sizes.values())
        self.done = 0
        self._partitions = partitions
        self._row_reader = rows
        self._bounds = bounds
        self._committed = committed
        self._transactions = Transactions([], []) if transactions is None else transactions
        self._truncated_rows = truncated_rows
        self._last = last
        self._marks_aborted = marks_aborted
        self._ignores_checksums = ignore_crc
        self._reported: OffsetRange
        """The requested range of the current partition. Reports name it, even if ``last`` reads only a part of it."""

    def _records(self) -> Iterator[pa.RecordBatch]:
        self._check_bounds()
        for segments in self._partitions:
            requested = self._reported = self._requested(segments)
            if self._last is None:
                yield from self._partition(segments, requested)
            else:
                yield from self._last_of_partition(segments, requested, self._last)
        self.check_ends()

    def check_ends(self) -> None:
        """Report the truncated ends of partitions that were not read to their end."""
        for segments in self._partitions:
            last = segments[-1]
            # The driver of Spark has examined the ends.
            if last.path not in self._examined and not self._truncated_rows:
                self._examined.add(last.path)
                truncated = self._truncated_end(last)
                if truncated is not None:
                    self._report_truncated(truncated)

    def deleted_offsets(self) -> list[str]:
        """Return remarks on partitions that begin after the requested offset."""
        remarks = (
            self._bounds.deleted_before(segments[0].partition, segments[0].base_offset) for segments in self._partitions
        )
        return [*filter(None, remarks)]

    def _truncated_end(self, last: LogSegment) -> TruncatedTail | None:
        return truncated_tail(last)

    def _last_of_partition(
        self, segments: Sequence[LogSegment], requested: OffsetRange, count: int
    ) -> list[pa.RecordBatch]:
        reports: tuple[list[Any], ...] = self.truncated, self.damaged, self.open_transactions
        before, done_before = [len(report) for report in reports], self.done

        def read(part: OffsetRange) -> Iterator[pa.RecordBatch]:
            # This part contains the earlier, shorter one: drop what that one reported.
            self.done = done_before
            for report, length in zip(reports, before, strict=True):
                del report[length:]
            # Damaged bytes after the last batch may hold the last records, so reading goes on to the requested end.
            return self._partition(segments, part._replace(end=requested.end))

        start, end = max(requested.start, segments[0].base_offset), min(requested.end, self._end(segments).offset)
        return last_of_range(read, requested._replace(start=start, end=max(start, end)), count)

    def _requested(self, segments: Sequence[LogSegment]) -> OffsetRange:
        """Return the offsets of a partition to read."""
        return self._row_reader.narrowed(
            requested_range(segments, self._bounds, self._row_reader, committed=self._committed)
        )

    def _check_bounds(self) -> None:
        check_bounds(self._partitions, self._bounds)

    def _end(self, segments: Sequence[LogSegment]) -> EndOfFiles:
        """Return where the records of a partition end."""
        return _end_of_log(segments[-1])

    def _partition(self, segments: Sequence[LogSegment], requested: OffsetRange) -> Iterator[pa.RecordBatch]:
        transactions = self._transactions
        if self._committed or self._marks_aborted:
            transactions = read_transactions(segments, requested.start, strict=self._row_reader.errors == "raise")
        begun = transactions.open if self._committed else []
        bounds = requested._replace(end=min([requested.end, *(transaction.first_offset for transaction in begun)]))
        self.open_transactions += [transaction for transaction in begun if transaction.first_offset < requested.end]
        done_before = self.done
        for segment in segments:
            if segment.base_offset < bounds.end and bounds.start < (segment.next_offset or LAST_OFFSET):
                with KafkaSegmentFile(segment, self._row_reader.message_bytes) as file:
                    yield from self._segment(file, bounds, transactions)
            self.done = done_before = done_before + self._sizes[segment.path]

    def _report_truncated(self, truncated: TruncatedTail) -> None:
        self.truncated.append(truncated)
        warn(str(truncated), TruncatedTailWarning)

    def _segment(
        self, file: KafkaSegmentFile, bounds: OffsetRange, transactions: Transactions
    ) -> Iterator[pa.RecordBatch]:
        position, min_offset, done_before = verified_position(file, bounds.start), file.segment.base_offset, self.done
        pieces = 1
        while position < file.size:
            batches, error = file.batches(position, min_offset, pieces)
            selected = 0
            for result in self._row_reader.rows(file, batches, bounds, transactions):
                if isinstance(result, Invalid):
                    batches, error = batches[: result.number], result.error
                else:
                    selected += len(result)
                    yield result
            if self._row_reader.where is not None:
                pieces = next_pieces(pieces, batches, selected)
            if batches:
                position, min_offset = batches[-1].end, batches[-1].last_offset + 1
                self.done = done_before + position
            if min_offset >= bounds.end:
                return
            if error is not None:
                damage = file.damage(position, min_offset, error)
                if damage.truncated:
                    self._examined.add(file.segment.path)
                    self._report_truncated(TruncatedTail.in_file(file.segment.path, error, damage))
                    if self._truncated_rows and self._row_reader.errors == "column":
                        yield self._row_reader.error_row(file, error, damage)
                    return
                damage = damage._replace(bounds=(bounds.start, bounds.end))
                repaired = file.with_checksum(error, damage) if self._ignores_checksums else None
                if repaired is not None:
                    yield from self._row_reader.unchecked(file, repaired, error, bounds)
                elif damage.hides_records or error.is_not_a_segment:
                    damage = damage._replace(bounds=(self._reported.start, self._reported.end))
                    if self._row_reader.errors == "raise":
                        raise file.error(error, damage)
                    self.damaged.append(DamagedBatches.in_file(file.segment.path, damage, error.reason))
                    if self._row_reader.keeps_error_rows(file):
                        yield self._row_reader.error_row(file, error, damage)
                position = damage.end
        self._examined.add(file.segment.path)


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

    def narrowed(self, requested: OffsetRange) -> OffsetRange:
        """Return a range without records that the condition excludes by their offsets."""
        if self.where is None:
            return requested
        where = self.where.bind(requested.partition._asdict())
        low, high = where.bounds("offset")
        end = requested.start if where.constant is False else LAST_OFFSET if high is None else high + 1
        return requested._replace(start=max(requested.start, low or 0), end=min(requested.end, end))

    def rows(
        self, file: KafkaSegmentFile, batches: Sequence[BatchHeader], bounds: OffsetRange, transactions: Transactions
    ) -> Iterator[pa.RecordBatch | Invalid]:
        """Yield the rows of batches with valid headers; at the end, the first invalid batch, if any."""
        if not batches:
            return
        try:
            rows, invalid = self._read(file, batches, bounds, transactions)
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
            return
        if rows is not None and len(rows):
            yield rows
        if invalid is not None:
            yield invalid

    def _read(
        self, file: KafkaSegmentFile, batches: Sequence[BatchHeader], bounds: OffsetRange, transactions: Transactions
    ) -> tuple[pa.RecordBatch | None, Invalid | None]:
        aborted = transactions.aborted_among(batches)
        options: Any = {
            "start": bounds.start, "end": bounds.end,
            "skipped": set(aborted_batches(batches, aborted)) if aborted else (), "partition_values": _partition_values(file),
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
                    partition_values=_partition_values(file),
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
        rows = self._lax(batch, start=bounds.start, end=bounds.end, partition_values=_partition_values(file))
        if rows is None:
            return []
        index = rows.schema.get_field_index(self._error_column)
        detail = ErrorDetail(error.code, error.reason)
        errors = with_errors(rows.column(index), pa.repeat(pa.scalar(True), len(rows)), detail)
        return [rows.set_column(index, rows.schema.field(index), errors)]

    def keeps_error_rows(self, file: KafkaSegmentFile) -> bool:
        """Return whether the result has rows for damaged batches."""
        return self._lax.keeps_error_rows(_partition_values(file))

    def error_row(self, file: KafkaSegmentFile, error: BatchError, damage: DamagedRange) -> pa.RecordBatch:
        """Return the row that represents a damaged batch. Its message begins with the reason."""
        batch = "" if error.is_not_a_segment else f": {damage.missing} (the batch at offset {damage.first})"
        message = f"{error.reason}{batch}: {file.segment.path}"
        return self._lax.error_row(_partition_values(file), error.code, message, damage.position)


def check_bounds(partitions: Sequence[Sequence[LogSegment]], bounds: OffsetBounds) -> None:
    """Raise ValueError if ``start`` is after the end of all partitions, or ``end`` before their beginning."""
    check_range_of_files(partitions, bounds, lambda segments, enough: _end_of_log(segments[-1], enough))


def requested_range(
    segments: Sequence[LogSegment], bounds: OffsetBounds, rows: SegmentRowReader, *, committed: bool = False
) -> OffsetRange:
    """Resolve ``start`` and ``end`` to offsets in the segments of a partition."""

    def end_offset() -> int:
        begun = read_transactions(segments, strict=rows.errors == "raise").open if committed else []
        return min([_end_of_log(segments[-1]).offset, *(transaction.first_offset for transaction in begun)])

    return range_of_files(
        TopicPartition(segments[0].topic, segments[0].partition),  # type: ignore[arg-type]
        bounds,
        end_offset=end_offset,
        since=lambda time: _first_since(segments, time, rows),
    )


def _end_of_log(last: LogSegment, enough: int = LAST_OFFSET) -> EndOfFiles:
    """Return where the records of a log end, or any offset after ``enough`` if that one is in the log."""
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
                truncated = TruncatedTail.in_file(last.path, error, damage)
            elif damage.last is None:
                is_certain = False
            else:
                end = damage.last + 1
    return EndOfFiles(end, is_certain, truncated)


def _first_since(segments: Sequence[LogSegment], time: int, rows: SegmentRowReader) -> TimeInFiles:
    """Find the first record that is not older than a time, by the headers of all batches before it."""
    reader = KafkaRowReader(["offset", "timestamp"], errors="null", limits=rows.limits)
    hidden: int | None = None
    for segment in segments:
        with KafkaSegmentFile(segment, rows.message_bytes) as file:
            for batches, invalid in file.walk(0, validates_last=True):
                for batch in batches:
                    if batch.control:
                        continue
                    if batch.max_timestamp < time:
                        hidden = None
                        continue
                    records = reader(file.stored([batch]), partition_values=_partition_values(file))
                    if records is None:
                        continue
                    times = records.column("timestamp").cast(pa.int64()).to_pylist()
                    for row, record_time in enumerate(times):
                        if record_time is not None and record_time >= time:
                            return TimeInFiles(int(records.column("offset")[row].as_py()), hidden)
                if invalid is not None and not invalid[1].truncated and hidden is None:
                    hidden = invalid[1].first
    return TimeInFiles(None, hidden)


def truncated_tail(last: LogSegment) -> TruncatedTail | None:
    """Return the truncated end of the last segment of a partition."""
    truncated: TruncatedTail | None = _end_of_log(last).truncated
    return truncated


def _partition_values(file: KafkaSegmentFile) -> dict[str, Any]:
    return {"topic": file.segment.topic, "partition": file.segment.partition}


def _first_invalid(file: KafkaSegmentFile, batches: Sequence[BatchHeader], indexes: Sequence[int]) -> Invalid | None:
    errors = zip(indexes, file.batch_errors([batches[at] for at in indexes]), strict=True)
    return next((Invalid(at, error) for at, error in errors if error is not None), None)


def _placed(file: KafkaSegmentFile, batch: BatchHeader, error: HeaderError) -> HeaderError:
    """Return the error of a batch with its place in the file."""
    message = f"{file.segment.path}: the batch at offset {batch.base_offset}: {error.message}"
    return replaced(error, message, byte_offset=batch.position + (error.byte_offset or 0), row=None)
