"""Read log files of partitions without their server: :class:`SegmentsReader`, over the :class:`SegmentLog` of a system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from letterhead._formatting import counted, printable
from letterhead._table_batches import bounded_batches
from letterhead._warnings import warn
from letterhead.errors import TruncatedTailWarning
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange, TopicPartition
from letterhead.offsets.ranges import EndOfFiles, TimeInFiles, check_range_of_files, range_of_files
from letterhead.offsets.reading import last_of_range
from letterhead.offsets.specs import OffsetBounds
from letterhead.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from letterhead.kafka.transactions import OpenTransaction
    from letterhead.where.program import Filter

__all__ = [
    "DamagedBatches", "DamagedRange", "Segment", "SegmentLog", "SegmentReports", "SegmentsReader", "TruncatedTail",
]  # fmt: skip


class DamagedRange(NamedTuple):
    """Bytes without a valid batch, or with a batch in the wrong place, and the offsets that are missing because of them."""

    position: int
    end: int
    truncated: bool  # they are the end of the log, as a broker leaves it if it stops while it writes
    first: int
    last: int | None  # None if it is unknown
    bounds: tuple[int, int] = (0, LAST_OFFSET)  # the offsets to read: the first one, and the one to stop before

    @property
    def hides_records(self) -> bool:
        """Whether records within the bounds can be in it."""
        first, last = self.offsets
        return last is None or first <= last

    @property
    def offsets(self) -> tuple[int, int | None]:
        """The first and the last of the offsets within the bounds."""
        start, end = self.bounds
        return max(self.first, start), None if self.last is None else min(self.last, end - 1)

    @property
    def missing(self) -> str:
        """The offsets and the number of the records that cannot be read. Compaction may have removed some before."""
        first, last = self.offsets
        if last is None:
            return f"the records from offset {first} on are missing"
        return f"offsets {first} to {last} are missing, at most {counted(last - first + 1, 'record')}"


class TruncatedTail(NamedTuple):
    """An incomplete batch at the end of a log, as a broker leaves it if it stops while it writes."""

    file: str
    position: int  # byte at which the first incomplete batch begins: a broker would truncate the file there
    bytes_left: int  # bytes from there to the end of the file
    reason: str

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


class Segment(Protocol):
    """One file of a partition."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def partition(self) -> int | None:
        """The number of the partition, if the path tells it."""

    @property
    def base_offset(self) -> int:
        """The offset at which the file begins."""

    @property
    def next_offset(self) -> int | None:
        """The offset at which the next file of the partition begins; None for the last one."""

    @property
    def size(self) -> int:
        """The current size of the file in bytes."""


@dataclass
class SegmentReports:
    """Damage and open transactions found in files, and progress of reading them."""

    truncated: list[TruncatedTail] = field(default_factory=list)
    damaged: list[DamagedBatches] = field(default_factory=list)
    open_transactions: list[OpenTransaction] = field(default_factory=list)
    examined: set[Path] = field(default_factory=set)
    """Files whose end was read."""
    requested: tuple[int, int] = (0, LAST_OFFSET)
    """The requested offsets of the current partition. Reports name them, even if only a part of them is read."""
    sizes: Mapping[Path, int] = field(default_factory=dict)
    """Size of each file when reading began; a server may delete files meanwhile."""
    done: int = 0

    def add_truncated(self, truncated: TruncatedTail) -> None:
        """Note a truncated end, and warn of it."""
        self.truncated.append(truncated)
        warn(str(truncated), TruncatedTailWarning)


SegmentT = TypeVar("SegmentT", bound=Segment)


class SegmentLog(ABC, Generic[SegmentT]):
    """Log files of one system, and conversion of their records to rows.

    With ``truncated_rows``, a truncated end is a row in a result with a column of errors.
    """

    schema: pa.Schema
    where: Filter | None

    def __init__(self, *, truncated_rows: bool = False) -> None:
        self.truncated_rows = truncated_rows

    @abstractmethod
    def topic_partition(self, segment: SegmentT) -> TopicPartition:
        """Return the partition of a file."""

    @abstractmethod
    def partition_values(self, segment: SegmentT) -> Mapping[str, Any]:
        """Return the values of the columns that are the same in all rows of a file."""

    @abstractmethod
    def end_of(self, last: SegmentT, enough: int = LAST_OFFSET) -> EndOfFiles:
        """Return where the records of a partition end, by its last file, or any offset after ``enough`` if that one is in it."""

    @abstractmethod
    def since(self, segments: Sequence[SegmentT], time: int) -> TimeInFiles:
        """Find the first record that is not older than a time in milliseconds."""

    @abstractmethod
    def read(
        self, segments: Sequence[SegmentT], requested: OffsetRange, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of the offsets of a partition."""

    def end_offset(self, segments: Sequence[SegmentT]) -> int:
        """Return the offset that ``end="latest"`` and points before the end count from."""
        return self.end_of(segments[-1]).offset

    def check_bounds(self, partitions: Sequence[Sequence[SegmentT]], bounds: OffsetBounds) -> None:
        """Raise ValueError if ``start`` is after the end of all partitions, or ``end`` before their beginning."""
        check_range_of_files(partitions, bounds, lambda segments, enough: self.end_of(segments[-1], enough))

    def requested(self, segments: Sequence[SegmentT], bounds: OffsetBounds) -> OffsetRange:
        """Resolve ``start`` and ``end`` to offsets of a partition, without records that the condition excludes by these."""
        requested = range_of_files(
            self.topic_partition(segments[0]),
            bounds,
            end_offset=lambda: self.end_offset(segments),
            since=lambda time: self.since(segments, time),
        )
        if self.where is None:
            return requested
        where = self.where.bind(self.partition_values(segments[0]))
        low, high = where.bounds("offset")
        end = requested.start if where.constant is False else LAST_OFFSET if high is None else high + 1
        return requested._replace(start=max(requested.start, low or 0), end=min(requested.end, end))


class SegmentsReader(Reader):
    """A stream of the records of log segments.

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
        log: SegmentLog[Any],
        partitions: Sequence[Sequence[Any]],
        bounds: OffsetBounds,
        *,
        last: int | None = None,
    ) -> None:
        for segments in partitions:
            bounds.of_partition(segments[0].partition)  # raises if a mapping lacks it
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
        """Bytes read so far."""
        return self._reports.done

    def _records(self) -> Iterator[pa.RecordBatch]:
        self._log.check_bounds(self._partitions, self._bounds)
        for segments in self._partitions:
            requested = self._log.requested(segments, self._bounds)
            self._reports.requested = requested[1:]
            batches: Iterable[pa.RecordBatch]
            if self._last is None:
                batches = self._log.read(segments, requested, self._reports)
            else:
                batches = self._last_of_partition(segments, requested, self._last)
            for batch in batches:
                yield from bounded_batches(batch)
        self.check_ends()

    def check_ends(self) -> None:
        """Report the truncated ends of partitions that were not read to their end."""
        for segments in self._partitions:
            last = segments[-1]
            # The driver of Spark has examined the ends.
            if last.path not in self._reports.examined and not self._log.truncated_rows:
                self._reports.examined.add(last.path)
                truncated = self._log.end_of(last).truncated
                if truncated is not None:
                    self._reports.add_truncated(truncated)

    def deleted_offsets(self) -> list[str]:
        """Return remarks on partitions that begin after the requested offset."""
        remarks = (
            self._bounds.deleted_before(segments[0].partition, segments[0].base_offset) for segments in self._partitions
        )
        return [*filter(None, remarks)]

    def _last_of_partition(self, segments: Sequence[Any], requested: OffsetRange, count: int) -> list[pa.RecordBatch]:
        found = self._reports
        reports: tuple[list[Any], ...] = found.truncated, found.damaged, found.open_transactions
        before, done_before = [len(report) for report in reports], found.done

        def read(part: OffsetRange) -> Iterator[pa.RecordBatch]:
            # This part contains the earlier, shorter one: drop what that one reported.
            found.done = done_before
            for report, length in zip(reports, before, strict=True):
                del report[length:]
            # Damaged bytes after the last batch may hold the last records, so reading goes on to the requested end.
            return self._log.read(segments, part._replace(end=requested.end), found)

        start = max(requested.start, segments[0].base_offset)
        end = min(requested.end, self._log.end_of(segments[-1]).offset)
        return last_of_range(read, requested._replace(start=start, end=max(start, end)), count)
