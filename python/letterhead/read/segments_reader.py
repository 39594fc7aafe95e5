"""The stream of what is in log segments, and what it tells beside the records."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from letterhead.errors import DecodeError, HeaderError, TornTailWarning, check_name, counted, replaced
from letterhead.read.indexes import first_offset_since, position_before
from letterhead.read.log_directory import Segment
from letterhead.read.reader import Reader
from letterhead.read.record_sets import FIELDS, LAST_OFFSET, SAME, Batch, Rows, aborted_batches
from letterhead.read.segment_file import Flaw, SegmentFile
from letterhead.read.transactions import OpenTransaction, Transactions, transactions

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits

__all__ = ["COLUMNS", "Bounds", "OpenTransaction", "SegmentsReader", "Torn", "Wanted"]

COLUMNS: tuple[str, ...] = (*SAME, *FIELDS)
"""The columns that a reader gives if it is not told which."""


class Torn(NamedTuple):
    """The end of a log that is not a whole batch, as a broker leaves it when it stops while it writes.

    Attributes
    ----------
    file : str
        The file.
    position : int
        Byte where the first batch that is not whole begins: the broker would cut the file there.
    left : int
        Bytes from there to the end.
    why : str
        What is wrong with them.
    """

    file: str
    position: int
    left: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}: torn at byte {self.position}, {counted(self.left, 'byte')} before its end: {self.why}"


class Bounds(NamedTuple):
    """What of a partition is read: offsets, and times in milliseconds since 1970; the ends are no part of it."""

    start: int = 0
    end: int = LAST_OFFSET
    since: int | None = None
    until: int | None = None

    @classmethod
    def of(cls, start: int | None, end: int | None, since: int | None, until: int | None) -> Bounds:
        """Make them of what was said; nothing is bounded by what was not."""
        return cls(0 if start is None else start, LAST_OFFSET if end is None else end, since, until)

    @property
    def of_time(self) -> bool:
        """Whether times bound it."""
        return self.since is not None or self.until is not None


class SegmentsReader(Reader):
    """A stream of the records of log segments.

    Parameters
    ----------
    partitions : sequence of sequences of Segment
        The segments of each partition.
    wanted : Wanted
        What becomes of them.
    bounds : Bounds
        What of each partition is read.
    committed : bool, default False
        Leave out what was aborted, and end where a transaction is open.
    known : Transactions, optional
        Those of the only partition, where they have been read before.

    Attributes
    ----------
    torn : list of Torn
        Ends of logs that were not whole batches, found so far; a ``TornTailWarning`` was emitted for each.
    open_transactions : list of OpenTransaction
        Those at which the reading of committed records ended so far.
    total, done : int
        Bytes of all files, and of those read so far.
    """

    def __init__(
        self,
        partitions: Sequence[Sequence[Segment]],
        wanted: Wanted,
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
            bounds, known = self._bounds, self._known
            if self._committed:
                known = transactions(segments, bounds.start, strict=self._wanted.errors == "raise")
            bounds = bounds._replace(end=min([bounds.end, *(one.first_offset for one in known.open)]))
            self.open_transactions += [one for one in known.open if one.first_offset < self._bounds.end]
            before = self.done
            for segment in segments:
                if segment.base_offset < bounds.end and bounds.start < (segment.next_offset or LAST_OFFSET):
                    yield from self._segment(segment, bounds, known)
                self.done = before = before + segment.size

    def _segment(self, segment: Segment, bounds: Bounds, known: Transactions) -> Iterator[pa.RecordBatch]:
        file = SegmentFile(segment)
        position, least, before = self._begin(file, bounds), segment.base_offset, self.done
        while position < len(file.data):
            batches, flaw = file.batches(position, least)
            for rows, unsound in self._wanted.rows(file, batches, bounds, known):
                if unsound is None:
                    yield rows
                else:
                    at, flaw = unsound
                    batches = batches[:at]
            if batches:
                position, least = batches[-1].position + batches[-1].size, batches[-1].last_offset + 1
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
                yield self._wanted.report(file, error)
                position = damage.end

    def _begin(self, file: SegmentFile, bounds: Bounds) -> int:
        """Find the byte to begin at; what an index says is looked at before it is believed."""
        offset = bounds.start
        if bounds.since is not None:
            offset = max(offset, first_offset_since(file.segment, bounds.since))
        position = position_before(file.segment, offset)
        batches = file.batches(position, file.segment.base_offset)[0] if 0 < position < len(file.data) else []
        believed = batches and batches[0].base_offset <= offset and file.flaws(batches[:1]) == [None]
        return position if believed else 0


class Wanted:
    """What becomes of the batches of a segment: the columns asked for, and what is told of those that are not whole.

    Parameters
    ----------
    columns : sequence of str
        Names of :data:`COLUMNS`.
    headers : mapping of str to str or Field, optional
        Headers as typed columns.
    bounds : Bounds
        What is read.
    errors : {"raise", "null", "column"}
        What becomes of a record that is not whole.
    dialect : {"arrow", "spark"}, default "arrow"
        Types of the columns that ``headers`` asks for.
    limits : Limits, optional
        The most to read of a batch.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every record batch.
    errors : str
        As given.
    """

    def __init__(
        self,
        columns: Sequence[str],
        headers: Columns | None,
        bounds: Bounds,
        errors: OnError = "raise",
        *,
        dialect: Literal["arrow", "spark"] = "arrow",
        limits: Limits | None = None,
    ) -> None:
        check_name("errors", errors, ("raise", "null", "column"))
        self.errors = errors
        self.schema = Rows(columns, headers, errors=errors, dialect=dialect).schema
        # Rows outside the times go again; a row without an offset is one that could not be read, and stays.
        also = [name for name in ("offset", "timestamp") if bounds.of_time and name not in columns]
        read = [*columns, *also]
        self._strict = Rows(read, headers, dialect=dialect, limits=limits)
        self._lax = Rows(read, headers, errors=errors, dialect=dialect, limits=limits)

    def rows(
        self, file: SegmentFile, batches: Sequence[Batch], bounds: Bounds, known: Transactions
    ) -> Iterator[tuple[pa.RecordBatch, None] | tuple[None, tuple[int, Flaw]]]:
        """Give the rows of batches that look whole by their headers, and then the first one that is not, with its place."""
        if not batches:
            return
        try:
            made, unsound = self._made(file, batches, bounds, known)
        except HeaderError as error:
            if error.code != "too_large" or len(batches) == 1:
                raise
            # Out of their codecs they are more than a column of Arrow can hold.
            half = len(batches) // 2
            for rows, found in self.rows(file, batches[:half], bounds, known):
                yield (rows, None) if found is None else (None, found)
                if found is not None:
                    return
            for rows, found in self.rows(file, batches[half:], bounds, known):
                yield (rows, None) if found is None else (None, (found[0] + half, found[1]))
            return
        yield from ((rows, None) for rows in made)
        if unsound is not None:
            yield None, unsound

    def _made(
        self, file: SegmentFile, batches: Sequence[Batch], bounds: Bounds, known: Transactions
    ) -> tuple[list[pa.RecordBatch], tuple[int, Flaw] | None]:
        left_out = set(aborted_batches(batches, known.aborted_among(batches)))
        if bounds.since is not None:
            left_out |= {batch.base_offset for batch in batches if batch.max_timestamp < bounds.since}
        same = {"topic": file.segment.topic, "partition": file.segment.partition}
        options: Any = {"start": bounds.start, "end": bounds.end, "left_out": left_out, "same": same}
        # Marks give no rows, and nobody else looks at their checksums.
        marks = [at for at, batch in enumerate(batches) if batch.control]
        flaws = dict(zip(marks, file.flaws([batches[at] for at in marks]), strict=True))
        unsound = next(((at, flaw) for at, flaw in flaws.items() if flaw is not None), None)
        if unsound is not None:
            batches = batches[: unsound[0]]
        try:
            rows = self._strict(file.data, batches, **options) if batches else None
        except HeaderError as error:
            if error.code == "too_large":
                raise
            return self._mended(file, batches, options, bounds, error, unsound)
        if rows is not None and self.errors == "column":
            nothing = pa.nulls(len(rows), self._lax.schema.field("error").type)
            rows = pa.RecordBatch.from_arrays([*rows.columns, nothing], schema=self._lax.schema)
        return self._within(rows, bounds), unsound

    def _mended(
        self,
        file: SegmentFile,
        batches: Sequence[Batch],
        options: Any,
        bounds: Bounds,
        error: HeaderError,
        unsound: tuple[int, Flaw] | None,
    ) -> tuple[list[pa.RecordBatch], tuple[int, Flaw] | None]:
        """Make the rows up to the first batch that is not whole; a record that is not is as the policy has it."""
        read = [at for at, batch in enumerate(batches) if batch.last_offset >= options["start"]]
        flaws = zip(read, file.flaws([batches[at] for at in read]), strict=True)
        unsound = next(((at, flaw) for at, flaw in flaws if flaw is not None), unsound)
        whole = batches if unsound is None else batches[: unsound[0]]
        if self.errors == "raise" and error.row is not None and error.row < len(whole):
            raise _placed(file, whole[error.row], error) from None
        return self._within(self._lax(file.data, whole, **options) if whole else None, bounds), unsound

    def _within(self, rows: pa.RecordBatch | None, bounds: Bounds) -> list[pa.RecordBatch]:
        if rows is not None and bounds.of_time:
            times = rows.column("timestamp")
            times = pc.fill_null(times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()), -1)
            unread = pc.is_null(rows.column("offset"))
            since = pa.scalar(True) if bounds.since is None else pc.greater_equal(times, bounds.since)
            until = pa.scalar(True) if bounds.until is None else pc.less(times, bounds.until)
            rows = rows.filter(pc.or_(unread, pc.and_(since, until))).select(self.schema.names)
        return [rows] if rows is not None and len(rows) else []

    def report(self, file: SegmentFile, error: DecodeError) -> pa.RecordBatch:
        """Make the row that tells of a batch that is not whole."""
        told: dict[str, Any] = {"topic": file.segment.topic, "partition": file.segment.partition}
        if self.errors == "column":
            told["error"] = [{"code": error.code, "message": error.message, "byte_offset": error.byte_offset}]
        return pa.RecordBatch.from_pylist([{name: told.get(name) for name in self.schema.names}], schema=self.schema)


def _placed(file: SegmentFile, batch: Batch, error: HeaderError) -> HeaderError:
    """Say where in the file an error in a batch is."""
    message = f"{file.segment.path}: the batch at offset {batch.base_offset}: {error.message}"
    return replaced(error, message, byte_offset=batch.position + (error.byte_offset or 0), row=None)
