"""Read log files of partitions without a server: :class:`SegmentsReader`, based on the :class:`SegmentLog` of a system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias

from letterhead._table_batches import split_batches
from letterhead._warnings import warn
from letterhead.errors import TruncatedTailWarning
from letterhead.offsets.damage import BatchError, DamagedBatches, DamagedRange, Invalid, TruncatedTail
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange, TopicPartition
from letterhead.offsets.ranges import EndOfFiles, TimeInFiles, check_range_of_files, range_of_files
from letterhead.offsets.reading import last_of_range
from letterhead.offsets.segment_file import SegmentFile, SegmentT
from letterhead.offsets.specs import OffsetBounds
from letterhead.offsets.stored_batches import BatchT, next_pieces
from letterhead.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from letterhead._arrow_types import OnError
    from letterhead.kafka.transactions import OpenTransaction
    from letterhead.limits import Limits
    from letterhead.where.program import Filter

__all__ = ["Repaired", "SegmentLog", "SegmentReports", "SegmentRows", "SegmentsReader"]


@dataclass
class SegmentReports:
    """Damage and open transactions found in files, and the progress of reading."""

    truncated: list[TruncatedTail] = field(default_factory=list)
    damaged: list[DamagedBatches] = field(default_factory=list)
    open_transactions: list[OpenTransaction] = field(default_factory=list)
    examined: set[Path] = field(default_factory=set)
    """Files that were read up to their end."""
    requested: tuple[int, int] = (0, LAST_OFFSET)
    """Full range requested for the current partition. Reports use it even while reading is limited to a part of it."""
    sizes: Mapping[Path, int] = field(default_factory=dict)
    """Size of each file at the start of reading; a server may delete files later."""
    done: int = 0

    def add_truncated(self, truncated: TruncatedTail) -> None:
        """Record a truncated end, and emit a warning."""
        self.truncated.append(truncated)
        warn(str(truncated), TruncatedTailWarning)


ReadBatches: TypeAlias = Callable[[Any, Sequence[BatchT], OffsetRange], Iterator["pa.RecordBatch | Invalid"]]
"""Function that yields the rows of batches in a file, and finally the first invalid batch, if any."""


class Repaired(NamedTuple):
    """Readable rows of a damaged batch, and the remaining damage, if any."""

    rows: Sequence[pa.RecordBatch]
    unread: tuple[BatchError, DamagedRange] | None


class SegmentRows(Protocol):
    """Converter from batches of segment files to rows."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""

    @property
    def errors(self) -> OnError:
        """What to do with rows that cannot be read."""

    @property
    def limits(self) -> Limits | None:
        """Limits on records and headers that are read."""

    @property
    def where(self) -> Filter | None:
        """Condition on the records."""

    def keeps_error_rows(self, file: Any) -> bool:
        """Return whether the result includes a row for each damaged batch."""

    def error_row(self, file: Any, error: BatchError, damage: DamagedRange) -> pa.RecordBatch:
        """Return the row for a damaged batch."""


class SegmentLog(ABC, Generic[SegmentT, BatchT]):
    """Log files of one system, and the conversion of their records to rows.

    With ``truncated_rows``, a result with an error column has a row for a truncated end.
    """

    def __init__(self, rows: SegmentRows, *, truncated_rows: bool = False) -> None:
        self.schema, self.where = rows.schema, rows.where
        self.segment_rows = rows
        self.truncated_rows = truncated_rows

    @abstractmethod
    def open(self, segment: SegmentT) -> SegmentFile[SegmentT, BatchT]:
        """Open a file."""

    @abstractmethod
    def topic_partition(self, segment: SegmentT) -> TopicPartition:
        """Return the partition of a file."""

    @abstractmethod
    def first_since(self, file: Any, batch: BatchT, time: int) -> tuple[bool, int | None]:
        """Return whether all records of a batch are older than a time and, if not, the offset of the first newer record."""

    def end_of(self, last: SegmentT, enough: int = LAST_OFFSET) -> EndOfFiles:
        """Return the end of a partition from its last file; if it is after ``enough``, any offset in between will do."""
        end, is_certain, truncated = last.base_offset, True, None
        with self.open(last) as file:
            for batches, invalid in file.walk(enough, validates_last=True):
                if batches:
                    end = batches[-1].last_offset + 1
                if end > enough:
                    break
                if invalid is None:
                    continue
                error, damage = invalid
                if damage.truncated:
                    truncated = file.truncated_at(error, damage)
                elif damage.last is None:
                    is_certain = False
                else:
                    end = damage.last + 1
        return EndOfFiles(end, is_certain, truncated)

    def since(self, segments: Sequence[SegmentT], time: int) -> TimeInFiles:
        """Find the first record at or after a time in milliseconds by reading the headers of all preceding batches."""
        hidden: int | None = None
        for segment in segments:
            with self.open(segment) as file:
                for batches, invalid in file.walk(0, validates_last=True):
                    for batch in batches:
                        is_older, found = self.first_since(file, batch, time)
                        if found is not None:
                            return TimeInFiles(found, hidden)
                        if is_older:
                            hidden = None
                    if invalid is not None and not invalid[1].truncated and hidden is None:
                        hidden = invalid[1].first
        return TimeInFiles(None, hidden)

    @abstractmethod
    def read(
        self, segments: Sequence[SegmentT], requested: OffsetRange, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of the offsets of a partition."""

    def read_files(
        self, segments: Sequence[SegmentT], bounds: OffsetRange, read: ReadBatches[BatchT], reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of the offsets of a partition.

        ``read`` yields the rows of batches with valid headers, and finally the first invalid batch, if any.
        """
        done_before = reports.done
        for segment in segments:
            if segment.base_offset < bounds.end and bounds.start < (segment.next_offset or LAST_OFFSET):
                with self.open(segment) as file:
                    yield from self._file(file, bounds, read, reports)
            reports.done = done_before = done_before + reports.sizes[segment.path]

    def repaired(self, file: Any, error: BatchError, damage: DamagedRange, bounds: OffsetRange) -> Repaired | None:
        """Return the rows of a damaged batch that can still be read, or None."""
        return None

    def _file(
        self,
        file: SegmentFile[SegmentT, BatchT],
        bounds: OffsetRange,
        read: ReadBatches[BatchT],
        reports: SegmentReports,
    ) -> Iterator[pa.RecordBatch]:
        position, min_offset = file.verified_position(bounds.start), file.segment.base_offset
        done_before, pieces = reports.done, 1
        while position < file.size:
            batches, error = file.batches(position, min_offset, pieces)
            selected = 0
            for result in read(file, batches, bounds):
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
                    reports.add_truncated(file.truncated_at(error, damage))
                    if self.truncated_rows and self.segment_rows.errors == "column":
                        yield self.segment_rows.error_row(file, error, damage)
                    return
                yield from self._damaged(file, error, damage, bounds, reports)
                position = damage.end
        reports.examined.add(file.segment.path)

    def _damaged(
        self,
        file: SegmentFile[SegmentT, BatchT],
        error: BatchError,
        damage: DamagedRange,
        bounds: OffsetRange,
        reports: SegmentReports,
    ) -> Iterator[pa.RecordBatch]:
        """Raise the error of damaged bytes, yield the records that can still be read, or yield an error row."""
        damage = damage._replace(bounds=bounds[1:])
        repaired = self.repaired(file, error, damage, bounds)
        if repaired is not None:
            yield from repaired.rows
            if repaired.unread is not None and repaired.unread[1].hides_records:
                error, damage = repaired.unread
                damage = damage._replace(bounds=reports.requested)
                reports.damaged.append(DamagedBatches.in_file(file.segment.path, damage, error.reason))
        elif damage.hides_records or error.is_not_a_segment:
            damage = damage._replace(bounds=reports.requested)
            if self.segment_rows.errors == "raise":
                raise file.error(error, damage)
            reports.damaged.append(DamagedBatches.in_file(file.segment.path, damage, error.reason))
            if self.segment_rows.keeps_error_rows(file):
                yield self.segment_rows.error_row(file, error, damage)

    def end_offset(self, segments: Sequence[SegmentT]) -> int:
        """Return the offset of ``"latest"``; negative points are counted back from it."""
        return self.end_of(segments[-1]).offset

    def ranges(
        self, partitions: Sequence[Sequence[SegmentT]], bounds: OffsetBounds
    ) -> Iterator[tuple[Sequence[SegmentT], OffsetRange]]:
        """Yield the files of each partition, and the offsets to read.

        Raises ValueError if ``start`` is after the end of all partitions, or ``end`` before their beginning.
        """
        check_range_of_files(partitions, bounds, lambda segments, enough: self.end_of(segments[-1], enough))
        for segments in partitions:
            yield segments, self._requested(segments, bounds)

    def _requested(self, segments: Sequence[SegmentT], bounds: OffsetBounds) -> OffsetRange:
        """Resolve ``start`` and ``end`` to offsets of a partition, narrowed by the condition."""
        requested = range_of_files(
            self.topic_partition(segments[0]),
            bounds,
            end_offset=lambda: self.end_offset(segments),
            since=lambda time: self.since(segments, time),
        )
        if self.where is None:
            return requested
        where = self.where.bind(segments[0].partition_values)
        low, high = where.bounds("offset")
        end = requested.start if where.constant is False else LAST_OFFSET if high is None else high + 1
        return requested._replace(start=max(requested.start, low or 0), end=min(requested.end, end))


class SegmentsReader(Reader):
    """Reader that streams the records of log segments.

    Attributes
    ----------
    truncated : list of TruncatedTail
        Truncated ends of logs found so far; after the last batch, also those beyond the requested offsets. A
        ``TruncatedTailWarning`` is emitted for each.
    damaged : list of DamagedBatches
        Damaged batches found so far, unless ``errors="raise"``.
    open_transactions : list of OpenTransaction
        Open transactions found so far, at which reading of committed records stopped.
    total, done : int
        Total size of the files, and number of bytes read so far.
    """

    def __init__(
        self,
        log: SegmentLog[Any, Any],
        partitions: Sequence[Sequence[Any]],
        bounds: OffsetBounds,
        *,
        last: int | None = None,
    ) -> None:
        for segments in partitions:
            bounds.of_partition(segments[0].partition)  # raises if a mapping does not contain the partition
        super().__init__(log.schema, self._records)
        sizes = {segment.path: segment.size for segments in partitions for segment in segments}
        self.total = sum(sizes.values())
        self._log = log
        self._partitions = partitions
        self._bounds = bounds
        self._last = last
        self._reports = SegmentReports(sizes=sizes)
        self.truncated = self._reports.truncated
        self.damaged = self._reports.damaged
        self.open_transactions = self._reports.open_transactions

    @property
    def done(self) -> int:
        """Number of bytes read so far."""
        return self._reports.done

    def _records(self) -> Iterator[pa.RecordBatch]:
        for segments, requested in self._log.ranges(self._partitions, self._bounds):
            self._reports.requested = requested[1:]
            batches: Iterable[pa.RecordBatch]
            if self._last is None:
                batches = self._log.read(segments, requested, self._reports)
            else:
                batches = self._last_of_partition(segments, requested, self._last)
            for batch in batches:
                yield from split_batches(batch, self._log.segment_rows.limits)
        self.check_ends()

    def check_ends(self) -> None:
        """Report truncated ends of partitions that were not read up to the end."""
        for segments in self._partitions:
            last = segments[-1]
            # With `truncated_rows`, Spark's driver has already checked the ends.
            if last.path not in self._reports.examined and not self._log.truncated_rows:
                self._reports.examined.add(last.path)
                truncated = self._log.end_of(last).truncated
                if truncated is not None:
                    self._reports.add_truncated(truncated)

    def deleted_offsets(self) -> list[str]:
        """Return remarks about partitions that begin after the requested offset."""
        remarks = (
            self._bounds.deleted_before(segments[0].partition, segments[0].base_offset) for segments in self._partitions
        )
        return [*filter(None, remarks)]

    def _last_of_partition(self, segments: Sequence[Any], requested: OffsetRange, count: int) -> list[pa.RecordBatch]:
        found = self._reports
        reports: tuple[list[Any], ...] = found.truncated, found.damaged, found.open_transactions
        before, done_before = [len(report) for report in reports], found.done

        def read(part: OffsetRange) -> Iterator[pa.RecordBatch]:
            # Drop the reports of the previous part, because this longer part includes it.
            found.done = done_before
            for report, length in zip(reports, before, strict=True):
                del report[length:]
            # Read up to the requested end, because damaged bytes after the last batch may contain the last
            # records.
            return self._log.read(segments, part._replace(end=requested.end), found)

        start = max(requested.start, segments[0].base_offset)
        end = min(requested.end, self._log.end_of(segments[-1]).offset)
        return last_of_range(read, requested._replace(start=start, end=max(start, end)), count)
