"""The stream of records that :func:`letterhead.read.segments` returns, and what it reports beside the records."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from letterhead.errors import DecodeError, HeaderError, TornTailWarning, counted, replaced
from letterhead.read.columns import Dialect
from letterhead.read.indexes import first_offset_since, position_before
from letterhead.read.log_directory import Segment
from letterhead.read.reader import Reader
from letterhead.read.record_sets import (
    CONSTANTS,
    FIELDS,
    LAST_OFFSET,
    WHERE_FIELDS,
    Batch,
    Rows,
    aborted_batches,
    next_pieces,
)
from letterhead.read.segment_file import Flaw, SegmentFile
from letterhead.read.transactions import OpenTransaction, Transactions, transactions
from letterhead.where.program import resolve

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = ["COLUMNS", "Bounds", "OpenTransaction", "SegmentRows", "SegmentsReader", "Torn"]

COLUMNS: tuple[str, ...] = (*CONSTANTS, *FIELDS)
"""The default columns."""

Invalid: TypeAlias = tuple[int, Flaw]
"""The first invalid one of several batches, by its index, and its error."""


class Torn(NamedTuple):
    """The end of a log that is not a whole batch, as a broker leaves it if it stops while it writes."""

    file: str
    position: int  # byte at which the first batch that is not whole begins: a broker would truncate the file there
    left: int  # bytes from there to the end
    why: str  # what is wrong with them

    def __str__(self) -> str:
        return f"{self.file}: torn at byte {self.position}, {counted(self.left, 'byte')} before its end: {self.why}"


class Bounds(NamedTuple):
    """The records of a partition to read: offsets, and times in milliseconds since 1970. Both ends are excluded."""

    start: int = 0
    end: int = LAST_OFFSET
    since: int | None = None
    until: int | None = None

    @classmethod
    def of(cls, start: int | None, end: int | None, since: int | None, until: int | None) -> Bounds:
        """Return bounds of which ``None`` leaves a side open."""
        return cls(0 if start is None else start, LAST_OFFSET if end is None else end, since, until)

    @property
    def of_time(self) -> bool:
        """Whether timestamps are bounded."""
        return self.since is not None or self.until is not None


class SegmentsReader(Reader):
    """A stream of the records of log segments.

    With ``committed``, aborted transactions are left out, and each partition ends at its first open one; ``known`` are
    the transactions of the only partition, if they were read before.

    Attributes
    ----------
    torn : list of Torn
        Truncated ends of logs found so far. A ``TornTailWarning`` was emitted for each.
    open_transactions : list of OpenTransaction
        Transactions at which reading committed records has stopped so far.
    total, done : int
        Bytes of all files, and bytes read so far.
    """

    def __init__(
        self,
        partitions: Sequence[Sequence[Segment]],
        wanted: SegmentRows,
        bounds: Bounds,
        *,
        committed: bool = False,
        known: Transactions | None = None,
    ) -> None:
        super().__init__(wanted.schema, self._records)
        self.torn: list[Torn] = []
        self.open_transactions: list[OpenTransaction] = []
        self.total = sum(segment.size for segments in partitions for segment in segments)
        self.done = 0
        self._partitions = partitions
        self._wanted = wanted
        self._bounds = bounds
        self._committed = committed
        self._known = Transactions([], []) if known is None else known

    def _records(self) -> Iterator[pa.RecordBatch]:
        for segments in self._partitions:
            known = self._known
            narrowed = self._wanted.narrowed(segments[0], self._bounds)
            if self._committed:
                known = transactions(segments, narrowed.start, strict=self._wanted.errors == "raise")
            bounds = narrowed._replace(end=min([narrowed.end, *(one.first_offset for one in known.open)]))
            self.open_transactions += [one for one in known.open if one.first_offset < narrowed.end]
            before = self.done
            for segment in segments:
                if segment.base_offset < bounds.end and bounds.start < (segment.next_offset or LAST_OFFSET):
                    yield from self._segment(segment, bounds, known)
                self.done = before = before + segment.size

    def _segment(self, segment: Segment, bounds: Bounds, known: Transactions) -> Iterator[pa.RecordBatch]:
        file = SegmentFile(segment)
        position, least, before = self._first_byte(file, bounds), segment.base_offset, self.done
        pieces = 1
        while position < len(file.data):
            batches, flaw = file.batches(position, least, pieces)
            selected = 0
            for rows, invalid in self._wanted.rows(file, batches, bounds, known):
                if invalid is None:
                    selected += len(rows)
                    yield rows
                else:
                    at, flaw = invalid
                    batches = batches[:at]
            if self._wanted.where is not None:
                pieces = next_pieces(pieces, batches, selected)
            if batches:
                position, least = batches[-1].end, batches[-1].last_offset + 1
                self.done = before + position
            if least >= bounds.end:
                return
            if flaw is not None:
                damage = file.damage(position, least, flaw)
                if damage.torn:
                    torn = Torn(str(segment.path), position, damage.end - position, flaw.why)
                    self.torn.append(torn)
                    # The caller of __next__ is above _records.
                    warnings.warn(str(torn), TornTailWarning, stacklevel=4)
                    return
                error = file.error(position, least, flaw)
                if self._wanted.errors == "raise":
                    raise error
                if self._wanted.keeps_error_rows(file):
                    yield self._wanted.error_row(file, error)
                position = damage.end

    def _first_byte(self, file: SegmentFile, bounds: Bounds) -> int:
        """Return the byte to begin at. Index entries are validated before use."""
        offset = bounds.start
        for since in (bounds.since, self._wanted.since):
            if since is not None:
                offset = max(offset, first_offset_since(file.segment, since))
        position = position_before(file.segment, offset)
        batches = file.batches(position, file.segment.base_offset)[0] if 0 < position < len(file.data) else []
        valid = batches and batches[0].base_offset <= offset and file.flaws(batches[:1]) == [None]
        return position if valid else 0


class SegmentRows:
    """Converts batches of segment files to record batches of :attr:`schema`, with the options of :class:`Rows`."""

    def __init__(
        self,
        columns: Sequence[str],
        headers: Columns | None,
        bounds: Bounds,
        errors: OnError = "raise",
        *,
        error_column: str = "error",
        dialect: Dialect = "arrow",
        limits: Limits | None = None,
        where: Where | None = None,
    ) -> None:
        self.errors = errors
        self.where = resolve(where, WHERE_FIELDS, headers)
        self.since = None if self.where is None else self.where.between("timestamp")[0]
        self._columns = frozenset(columns)
        self._error_column = error_column
        on_error: Any = {"errors": errors, "error_column": error_column}
        self.schema = Rows(columns, headers, dialect=dialect, **on_error).schema
        # Rows outside of the times are removed; a row without an offset could not be read and stays.
        also = [name for name in ("offset", "timestamp") if bounds.of_time and name not in columns]
        read = [*columns, *also]
        self._strict = Rows(read, headers, dialect=dialect, limits=limits, where=self.where)
        self._lax = Rows(read, headers, dialect=dialect, limits=limits, where=self.where, **on_error)

    def narrowed(self, segment: Segment, bounds: Bounds) -> Bounds:
        """Return bounds that leave out records of a partition that the condition excludes by their offsets."""
        if self.where is None:
            return bounds
        where = self.where.bind({"topic": segment.topic, "partition": segment.partition})
        low, high = where.between("offset")
        end = bounds.start if where.known is False else LAST_OFFSET if high is None else high + 1
        return bounds._replace(start=max(bounds.start, low or 0), end=min(bounds.end, end))

    def rows(
        self, file: SegmentFile, batches: Sequence[Batch], bounds: Bounds, known: Transactions
    ) -> Iterator[tuple[pa.RecordBatch, Invalid | None]]:
        """Yield the rows of batches with valid headers, each with ``None``; last, the first batch that is invalid."""
        if not batches:
            return
        try:
            rows, invalid = self._read(file, batches, bounds, known)
        except HeaderError as error:
            if error.code != "too_large" or len(batches) == 1:
                raise
            # Decompressed, they are more than an Arrow column can hold.
            half = len(batches) // 2
            for before, part in ((0, batches[:half]), (half, batches[half:])):
                for rows, invalid in self.rows(file, part, bounds, known):
                    yield rows, invalid and (before + invalid[0], invalid[1])
                    if invalid is not None:
                        return
            return
        if rows is not None and len(rows):
            yield rows, None
        if invalid is not None:
            yield None, invalid

    def _read(
        self, file: SegmentFile, batches: Sequence[Batch], bounds: Bounds, known: Transactions
    ) -> tuple[pa.RecordBatch | None, Invalid | None]:
        aborted = known.aborted_among(batches)
        skipped = set(aborted_batches(batches, aborted)) if aborted else set()
        if bounds.since is not None:
            skipped |= {batch.base_offset for batch in batches if batch.max_timestamp < bounds.since}
        options: Any = {
            "start": bounds.start, "end": bounds.end, "skipped": skipped, "constants": _constants(file)
        }  # fmt: skip
        # Control batches have no rows, so nothing else validates their checksums.
        control = [at for at, batch in enumerate(batches) if batch.control]
        invalid = _first_invalid(file, batches, control) if control else None
        if invalid is not None:
            batches = batches[: invalid[0]]
        try:
            rows = self._strict(file.data, batches, **options) if batches else None
        except HeaderError as error:
            if error.code == "too_large":
                raise
            read = [at for at, batch in enumerate(batches) if batch.last_offset >= bounds.start]
            invalid = _first_invalid(file, batches, read) or invalid
            whole = batches if invalid is None else batches[: invalid[0]]
            if self.errors == "raise" and error.row is not None and error.row < len(whole):
                raise _placed(file, whole[error.row], error) from None
            return self._in_time(self._lax(file.data, whole, **options) if whole else None, bounds), invalid
        if rows is not None and self.errors == "column":
            no_errors = pa.nulls(len(rows), self._lax.schema.field(self._error_column).type)
            rows = pa.RecordBatch.from_arrays([*rows.columns, no_errors], schema=self._lax.schema)
        return self._in_time(rows, bounds), invalid

    def _in_time(self, rows: pa.RecordBatch | None, bounds: Bounds) -> pa.RecordBatch | None:
        if rows is None or not bounds.of_time:
            return rows
        times = rows.column("timestamp")
        times = pc.fill_null(times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()), -1)
        unread = pc.is_null(rows.column("offset"))
        since = pa.scalar(True) if bounds.since is None else pc.greater_equal(times, bounds.since)
        until = pa.scalar(True) if bounds.until is None else pc.less(times, bounds.until)
        return rows.filter(pc.or_(unread, pc.and_(since, until))).select(self.schema.names)

    def keeps_error_rows(self, file: SegmentFile) -> bool:
        """Return whether a row that could not be read is returned: with its error, or if the condition accepts nulls."""
        where = self.where and self.where.bind(_constants(file))
        return where is None or self.errors == "column" or where.accepts_null

    def error_row(self, file: SegmentFile, error: DecodeError) -> pa.RecordBatch:
        """Return the row that stands for a batch that is not whole."""
        row = {name: value for name, value in _constants(file).items() if name in self._columns}
        if self.errors == "column":
            row[self._error_column] = [{"code": error.code, "message": error.message, "byte_offset": error.byte_offset}]
        return pa.RecordBatch.from_pylist([{name: row.get(name) for name in self.schema.names}], schema=self.schema)


def _constants(file: SegmentFile) -> dict[str, Any]:
    return {"topic": file.segment.topic, "partition": file.segment.partition}


def _first_invalid(file: SegmentFile, batches: Sequence[Batch], indexes: Sequence[int]) -> Invalid | None:
    flaws = zip(indexes, file.flaws([batches[at] for at in indexes]), strict=True)
    return next(((at, flaw) for at, flaw in flaws if flaw is not None), None)


def _placed(file: SegmentFile, batch: Batch, error: HeaderError) -> HeaderError:
    """Return the error of a batch with its place in the file."""
    message = f"{file.segment.path}: the batch at offset {batch.base_offset}: {error.message}"
    return replaced(error, message, byte_offset=batch.position + (error.byte_offset or 0), row=None)
