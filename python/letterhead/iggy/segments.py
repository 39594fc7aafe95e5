"""Read the log files that a server of Apache Iggy keeps of its partitions: :class:`IggySegmentsReader`.

::

    streams/0/topics/0/partitions/0/00000000000000000000.log      batches, one after the other
                                    00000000000000000000.index    ┌────────────┬───────────────┬──────────────┐
                                                                  │ u64 offset │ u64 timestamp │ u64 position │ …
                                                                  └────────────┴───────────────┴──────────────┘

Little-endian. An entry of the index is the first offset, the time in microseconds and the first byte of a batch; not
every batch has one. A missing or invalid index counts as empty: it saves time and never decides which messages are read.
"""

from __future__ import annotations

import os
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from letterhead import arrow as lha
from letterhead._formatting import counted
from letterhead.errors import DecodeError, HeaderError, replaced
from letterhead.file_window import FileWindow, check_regular, open_regular
from letterhead.iggy.batch_header import BATCH_HEADER_LEN, BATCH_LENGTH_AT, FIRST_MESSAGE_LEN, BatchHeader
from letterhead.iggy.rows import IggyRowReader, topic_in_errors
from letterhead.kafka.indexes import index_entries
from letterhead.kafka.log_directory import Paths
from letterhead.kafka.segment_file import LARGEST_CHECKED, DamagedRange
from letterhead.kafka.segments_reader import DamagedBatches, SegmentsReader, TruncatedTail
from letterhead.limits import how_to_raise
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange, TopicPartition
from letterhead.offsets.ranges import EndOfFiles, TimeInFiles, check_range_of_files, range_of_files
from letterhead.offsets.specs import OffsetBounds

__all__ = [
    "IggySegment",
    "IggySegmentsReader",
    "check_bounds",
    "iggy_partitions",
    "is_iggy_log",
    "requested_range",
    "truncated_tail",
]

PIECE_LEN = 4 << 20
"""Bytes of batches that are decoded together."""

_LOG = re.compile(r"\d{20}\.log")


class IggySegment(NamedTuple):
    """One file of a partition."""

    path: Path
    stream: str | None  # stream, topic and partition are the numbers in the path
    topic: str | None
    partition: int | None
    base_offset: int
    next_offset: int | None  # where the next file of the partition begins
    last: bool  # the last file of its partition is the only one that may be truncated

    @property
    def size(self) -> int:
        """The current size of the file in bytes."""
        return self.path.stat().st_size


class BatchRange(NamedTuple):
    """Where a batch is in its file, and which messages it has."""

    position: int
    end: int
    first_offset: int
    last_offset: int
    time: int  # at which the server stored its messages, in microseconds since 1970


class IggySegmentsReader(SegmentsReader):
    """A stream of the messages of log segments."""

    def __init__(
        self,
        partitions: Sequence[Sequence[IggySegment]],
        reader: IggyRowReader,
        bounds: OffsetBounds,
        *,
        truncated_rows: bool = False,
        last: int | None = None,
    ) -> None:
        super().__init__(partitions, reader, bounds, truncated_rows=truncated_rows, last=last)  # type: ignore[arg-type]
        self._reader = reader
        self._message_bytes = reader.message_bytes

    def _requested(self, segments: Sequence[Any]) -> OffsetRange:
        return requested_range(segments, self._bounds, self._message_bytes)

    def _check_bounds(self) -> None:
        check_bounds(self._partitions, self._bounds, self._message_bytes)

    def _end(self, segments: Sequence[Any]) -> EndOfFiles:
        return _end_of_log(segments[-1], self._message_bytes)

    def _truncated_end(self, last: Any) -> TruncatedTail | None:
        return truncated_tail(last, self._message_bytes)

    def _partition(self, segments: Sequence[Any], requested: OffsetRange) -> Iterator[pa.RecordBatch]:
        self._range = requested
        done_before = self.done
        for segment in segments:
            with FileWindow(segment.path) as file:
                yield from self._file(segment, file)
            self.done = done_before = done_before + self._sizes[segment.path]

    def _file(self, segment: IggySegment, file: FileWindow) -> Iterator[pa.RecordBatch]:
        position = _position_before(segment, file, self._range.start)
        next_offset, done_before = segment.base_offset, self.done
        partition_values = {"stream": segment.stream, "topic": segment.topic, "partition": segment.partition}
        previous: BatchRange | None = None
        while position < file.size:
            batches = _batches(file, position, self._message_bytes)
            requested = [batch for batch in batches if batch.last_offset >= self._range.start]
            if requested and requested[0].first_offset >= self._range.end:
                return
            rows = self._decoded(segment, file, requested, partition_values) if requested else None
            if rows is not None:
                yield rows
            if batches:
                previous = batches[-1]
                position, next_offset = previous.end, previous.last_offset + 1
                self.done = done_before + position
                continue
            self._examined.add(segment.path)
            code, reason = _error_after(file, position, previous, self._message_bytes)
            if segment.last and code == "truncated":
                self._report_truncated(_truncated_at(file, segment, position, reason))
                if not self._truncated_rows or self._reader.errors != "column":
                    return
            last = None if segment.next_offset is None else segment.next_offset - 1
            damage = DamagedRange(position, file.size, segment.last and code == "truncated", next_offset, last)
            yield from self._damaged(segment, damage, code, reason, partition_values)
            return
        self._examined.add(segment.path)

    def _decoded(
        self, segment: IggySegment, file: FileWindow, batches: Sequence[BatchRange], partition_values: dict[str, Any]
    ) -> pa.RecordBatch | None:
        data = file.view(batches[0].position, batches[-1].end)
        try:
            return self._reader(data, start=self._range.start, end=self._range.end, partition_values=partition_values)
        except HeaderError as error:
            if len(batches) > 1:
                for batch in batches:
                    self._decoded(segment, file, [batch], partition_values)
            located = self._reader.located(
                error, data, start=self._range.start, end=self._range.end, partition_values=partition_values
            )
            message = f"{segment.path}: the batch at offset {batches[0].first_offset}: {error.message}"
            raise replaced(located, message, byte_offset=batches[0].position + (error.byte_offset or 0)) from None

    def _damaged(
        self, segment: IggySegment, damage: DamagedRange, code: str, reason: str, partition_values: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Raise the error of a damaged batch, or yield its row."""
        damage = damage._replace(bounds=(self._range.start, self._range.end))
        if not damage.hides_records:
            return
        damage = damage._replace(bounds=(self._reported.start, self._reported.end))
        if self._reader.errors == "raise":
            message = f"{segment.path}: the batch at offset {damage.first}: {reason}: {damage.missing}"
            raise DecodeError(
                message, format="iggy-batch", code=code, byte_offset=damage.position, offset=damage.offsets[0],
                topic=topic_in_errors(partition_values), partition=segment.partition,
            )  # fmt: skip
        if not damage.truncated:
            self.damaged.append(DamagedBatches.in_file(segment.path, damage, reason))
        if self._reader.keeps_error_rows(partition_values):
            message = f"{reason}: {damage.missing} (the batch at offset {damage.first}): {segment.path}"
            yield self._reader.error_row(partition_values, code, message, damage.position)


def check_bounds(partitions: Sequence[Sequence[Any]], bounds: OffsetBounds, message_bytes: int) -> None:
    """Raise ValueError if ``start`` is after the end of all partitions, or ``end`` before their beginning."""
    check_range_of_files(partitions, bounds, lambda segments, _: _end_of_log(segments[-1], message_bytes))


def requested_range(segments: Sequence[IggySegment], bounds: OffsetBounds, message_bytes: int) -> OffsetRange:
    """Resolve ``start`` and ``end`` to offsets in the segments of a partition."""
    stream, topic, partition = segments[0][1:4]
    return range_of_files(
        TopicPartition(None if topic is None else f"{stream}/{topic}", partition),  # type: ignore[arg-type]
        bounds,
        end_offset=lambda: _end_of_log(segments[-1], message_bytes).offset,
        since=lambda time: _first_since(segments, 1000 * time, message_bytes),
    )


def _end_of_log(last: IggySegment, message_bytes: int) -> EndOfFiles:
    """Return where the messages of a partition end."""
    end, position, previous = last.base_offset, 0, None
    with FileWindow(last.path) as file:
        position = _position_before(last, file, LAST_OFFSET)
        for previous in _headers(file, position, message_bytes):
            end, position = previous.last_offset + 1, previous.end
        if position == file.size:
            return EndOfFiles(end)
        code, reason = _error_after(file, position, previous, message_bytes)
        if not last.last or code != "truncated":
            return EndOfFiles(end, is_certain=False)
        return EndOfFiles(end, truncated=_truncated_at(file, last, position, reason))


def _first_since(segments: Sequence[IggySegment], micros: int, message_bytes: int) -> TimeInFiles:
    """Find the first message that was not stored before a time; a batch is stored at once."""
    hidden: int | None = None
    for segment in segments:
        following = segment.base_offset
        with FileWindow(segment.path) as file:
            position, previous = 0, None
            for previous in _headers(file, 0, message_bytes):
                if previous.time >= micros:
                    return TimeInFiles(previous.first_offset, hidden)
                hidden, following, position = None, previous.last_offset + 1, previous.end
            if position < file.size and hidden is None:
                code, _ = _error_after(file, position, previous, message_bytes)
                hidden = None if segment.last and code == "truncated" else following
    return TimeInFiles(None, hidden)


def iggy_partitions(path: Paths) -> list[list[IggySegment]]:
    """Find the segments of each partition in a path, in order."""
    files: set[Path] = set()
    for root in map(Path, [path] if isinstance(path, str | os.PathLike) else path):
        if not root.exists():
            raise FileNotFoundError(f"{root}: there is no such file or directory")
        segments = [file for file in root.rglob("*.log") if _LOG.fullmatch(file.name)] if root.is_dir() else [root]
        if not segments:
            raise FileNotFoundError(f"{root} has no log segments (00000000000000000000.log and the like)")
        files.update(segments)
    for file in files:
        check_regular(file)
    groups = [[*group] for _, group in groupby(sorted(files, key=_sort_key), key=lambda file: file.parent)]
    return [
        [_segment(file, following) for file, following in pairwise([*group, None]) if file is not None]
        for group in groups
    ]


def is_iggy_log(file: Path) -> bool:
    """Return whether a log file is of a server of Iggy, by its first batch, or by its path if it is empty."""
    with open_regular(file) as data:
        head = data.read(BATCH_HEADER_LEN)
    if not BatchHeader.is_within(head):
        return file.absolute().parent.parts[-6::2] == ("streams", "topics", "partitions")
    header = BatchHeader.unpack_from(head)
    is_first = _base_offset(file) in (None, header.base_offset)
    return is_first and BATCH_HEADER_LEN <= header.length <= file.stat().st_size and bool(header.message_count)


def _sort_key(file: Path) -> tuple[list[tuple[int, str]], str]:
    # Numbers are in order of their value.
    return [(int(part) if part.isdecimal() else -1, part) for part in file.parent.parts], file.name


def _segment(file: Path, following: Path | None) -> IggySegment:
    parts = file.absolute().parent.parts[-6:]
    numbers: tuple[str | None, str | None, int | None] = (None, None, None)
    if parts[::2] == ("streams", "topics", "partitions") and parts[5].isdecimal():
        numbers = (parts[1], parts[3], int(parts[5]))
    return IggySegment(
        file,
        *numbers,
        _base_offset(file) or 0,
        None if following is None else _base_offset(following),
        following is None,
    )


def _base_offset(file: Path) -> int | None:
    return int(file.stem) if _LOG.fullmatch(file.name) else None


def _batches(file: FileWindow, position: int, message_bytes: int) -> list[BatchRange]:
    """Read the headers of whole batches of a few MiB together, or of one larger batch, from a byte on."""
    data, origin = file.view(position, position + PIECE_LEN), position
    batches: list[BatchRange] = []
    at = 0
    while (batch := _batch_in(data, at, origin, file.size)) is not None:
        if batch.end - origin > len(data) and (batches or batch.end - batch.position > message_bytes):
            break
        batches.append(batch)
        at = batch.end - origin
    return batches


def _headers(file: FileWindow, position: int, message_bytes: int) -> Iterator[BatchRange]:
    """Yield the headers of batches up to the first byte at which none begins."""
    while batches := _batches(file, position, message_bytes):
        yield from batches
        position = batches[-1].end


def _batch_in(data: Any, at: int, origin: int, size: int) -> BatchRange | None:
    """Read the header of the batch at a place of bytes that begin at ``origin`` of a file of ``size`` bytes."""
    if at + FIRST_MESSAGE_LEN > len(data):
        return None
    header = BatchHeader.unpack_from(data, at)
    position = origin + at
    if not BATCH_HEADER_LEN <= header.length <= size - position or not header.message_count:
        return None
    first = header.first_offset(data, at)
    return BatchRange(
        position, position + header.length, first, first + header.message_count - 1, header.base_timestamp
    )


def _error_at(file: FileWindow, position: int, message_bytes: int) -> tuple[str, str]:
    """Return the code and the reason why no batch is read at a position."""
    left = file.size - position
    if not any(any(file.peek(at, at + PIECE_LEN)) for at in range(position, file.size, PIECE_LEN)):
        return "truncated", f"{counted(left, 'byte')} of zeros are left"
    head = file.peek(position, position + BATCH_HEADER_LEN)
    if not BatchHeader.is_within(head):
        return "truncated", f"no whole batch begins here: {counted(left, 'byte')} of a batch are left"
    header = BatchHeader.unpack_from(head)
    length, count = header.length, header.message_count
    if length > left:
        if BATCH_HEADER_LEN <= left <= LARGEST_CHECKED and _is_valid(file, position, left):
            return "wrong_size", f"its length is {length}, and a whole batch of {counted(left, 'byte')} begins here"
        return "truncated", f"no whole batch begins here: it takes {counted(length, 'byte')} and {left} are left"
    if length > message_bytes:
        reason = f"a batch of {length} bytes is over the limit of {message_bytes}: {how_to_raise('message_bytes')}"
        return "limit_exceeded", reason
    return "wrong_size", f"no whole batch begins here: {counted(length, 'byte')} for {counted(count, 'message')}"


def _error_after(file: FileWindow, position: int, previous: BatchRange | None, message_bytes: int) -> tuple[str, str]:
    """Return the code of the error, and the reason, why no batch begins after another one."""
    code, reason = _error_at(file, position, message_bytes)
    if previous is not None and not _is_valid(file, previous.position, previous.end - previous.position):
        # Where a batch ends is uncertain if it is damaged.
        code = "wrong_size"
    return code, reason


def _is_valid(file: FileWindow, position: int, length: int) -> bool:
    """Return whether a valid batch of this length begins at a position; the length in its header is ignored."""
    data = bytearray(file.peek(position, position + length))
    struct.pack_into("<Q", data, BATCH_LENGTH_AT, length)
    return bool(lha.validate(pa.array([bytes(data)], pa.binary()), "iggy-batch").null_count)


def truncated_tail(segment: IggySegment, message_bytes: int) -> TruncatedTail | None:
    """Return the truncated end of the last segment of a partition."""
    truncated: TruncatedTail | None = _end_of_log(segment, message_bytes).truncated
    return truncated


def _truncated_at(file: FileWindow, segment: IggySegment, position: int, reason: str) -> TruncatedTail:
    return TruncatedTail(str(segment.path), position, file.size - position, reason)


def _position_before(segment: IggySegment, file: FileWindow, offset: int) -> int:
    """Return the byte of a valid batch that is not after an offset, as the index names it; 0 without one."""
    offsets, _, positions = index_entries(segment.path.with_suffix(".index"), "Q", "little", 3)
    before = bisect_right(offsets, offset)
    if not before:
        return 0
    position = positions[before - 1]
    batches = _batches(file, position, LAST_OFFSET)[:1] if position < file.size else []
    if not batches or not segment.base_offset <= batches[0].first_offset <= offset:
        return 0
    return position if _is_valid(file, position, batches[0].end - position) else 0
