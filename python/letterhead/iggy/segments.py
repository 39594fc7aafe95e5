"""Read the log files that a server of Apache Iggy keeps of its partitions: :class:`IggySegments`.

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
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from letterhead import arrow as lha
from letterhead._formatting import counted
from letterhead.errors import DecodeError, HeaderError, replaced
from letterhead.iggy.batch_header import BATCH_HEADER_LEN, BATCH_LENGTH_AT, FIRST_MESSAGE_LEN, BatchHeader
from letterhead.iggy.rows import IggyRowReader, topic_in_errors
from letterhead.kafka.indexes import index_entries
from letterhead.kafka.log_directory import Paths
from letterhead.kafka.segment_file import LARGEST_CHECKED
from letterhead.limits import how_to_raise
from letterhead.offsets.file_window import FileWindow, check_regular, open_regular
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange, TopicPartition
from letterhead.offsets.ranges import EndOfFiles, TimeInFiles
from letterhead.offsets.reading import rows_up_to_error
from letterhead.offsets.segments import DamagedBatches, DamagedRange, SegmentLog, SegmentReports, TruncatedTail

__all__ = ["IggySegment", "IggySegments", "iggy_partitions", "is_iggy_log"]

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


class IggySegments(SegmentLog[IggySegment]):
    """Log segments of Iggy."""

    def __init__(self, rows: IggyRowReader, *, truncated_rows: bool = False) -> None:
        super().__init__(truncated_rows=truncated_rows)
        self.schema = rows.schema
        self.where = rows.where
        self._rows = rows
        self._message_bytes = rows.message_bytes

    def topic_partition(self, segment: IggySegment) -> TopicPartition:
        """Return the partition of a file."""
        return TopicPartition(topic_in_errors(self.partition_values(segment)), segment.partition)  # type: ignore[arg-type]

    def partition_values(self, segment: IggySegment) -> dict[str, Any]:
        """Return stream, topic and partition."""
        return {"stream": segment.stream, "topic": segment.topic, "partition": segment.partition}

    def end_of(self, last: IggySegment, enough: int = LAST_OFFSET) -> EndOfFiles:
        """Return where the messages of a partition end."""
        end, position, previous = last.base_offset, 0, None
        with FileWindow(last.path) as file:
            position = _position_before(last, file, LAST_OFFSET)
            for previous in _headers(file, position, self._message_bytes):
                end, position = previous.last_offset + 1, previous.end
            if position == file.size:
                return EndOfFiles(end)
            code, reason = _error_after(file, position, previous, self._message_bytes)
            if not last.last or code != "truncated":
                return EndOfFiles(end, is_certain=False)
            return EndOfFiles(end, truncated=_truncated_at(file, last, position, reason))

    def since(self, segments: Sequence[IggySegment], time: int) -> TimeInFiles:
        """Find the first message that was not stored before a time; a batch is stored at once."""
        hidden: int | None = None
        for segment in segments:
            following = segment.base_offset
            with FileWindow(segment.path) as file:
                position, previous = 0, None
                for previous in _headers(file, 0, self._message_bytes):
                    if previous.time >= 1000 * time:
                        return TimeInFiles(previous.first_offset, hidden)
                    hidden, following, position = None, previous.last_offset + 1, previous.end
                if position < file.size and hidden is None:
                    code, _ = _error_after(file, position, previous, self._message_bytes)
                    hidden = None if segment.last and code == "truncated" else following
        return TimeInFiles(None, hidden)

    def read(
        self, segments: Sequence[IggySegment], requested: OffsetRange, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of the offsets of a partition."""
        done_before = reports.done
        for segment in segments:
            with FileWindow(segment.path) as file:
                yield from self._file(segment, file, requested, reports)
            reports.done = done_before = done_before + reports.sizes[segment.path]

    def _file(
        self, segment: IggySegment, file: FileWindow, bounds: OffsetRange, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        position = _position_before(segment, file, bounds.start)
        next_offset, done_before = segment.base_offset, reports.done
        previous: BatchRange | None = None
        while position < file.size:
            batches = _batches(file, position, self._message_bytes)
            requested = [batch for batch in batches if batch.last_offset >= bounds.start]
            if requested and requested[0].first_offset >= bounds.end:
                return
            if requested:
                read = partial(self._decoded, segment, file, requested, bounds.start)
                yield from filter(None, rows_up_to_error(read, bounds.start, bounds.end))
            if batches:
                previous = batches[-1]
                position, next_offset = previous.end, previous.last_offset + 1
                reports.done = done_before + position
                continue
            reports.examined.add(segment.path)
            code, reason = _error_after(file, position, previous, self._message_bytes)
            if segment.last and code == "truncated":
                reports.add_truncated(_truncated_at(file, segment, position, reason))
                if not self.truncated_rows or self._rows.errors != "column":
                    return
            last = None if segment.next_offset is None else segment.next_offset - 1
            damage = DamagedRange(
                position, file.size, segment.last and code == "truncated", next_offset, last, bounds[1:]
            )
            if damage.hides_records:
                yield from self._damaged(segment, damage._replace(bounds=reports.requested), code, reason, reports)
            return
        reports.examined.add(segment.path)

    def _decoded(
        self, segment: IggySegment, file: FileWindow, batches: Sequence[BatchRange], start: int, end: int
    ) -> pa.RecordBatch | None:
        data = file.view(batches[0].position, batches[-1].end)
        options: Any = {
            "start": start, "end": end, "partition_values": self.partition_values(segment),
        }  # fmt: skip
        try:
            return self._rows(data, **options)
        except HeaderError as error:
            if len(batches) > 1:
                for batch in batches:
                    self._decoded(segment, file, [batch], start, end)
            located = self._rows.located(error, data, **options)
            message = f"{segment.path}: the batch at offset {batches[0].first_offset}: {error.message}"
            raise replaced(located, message, byte_offset=batches[0].position + (error.byte_offset or 0)) from None

    def _damaged(
        self, segment: IggySegment, damage: DamagedRange, code: str, reason: str, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Raise the error of a damaged batch, or yield its row."""
        partition_values = self.partition_values(segment)
        if self._rows.errors == "raise":
            message = f"{segment.path}: the batch at offset {damage.first}: {reason}: {damage.missing}"
            raise DecodeError(
                message, format="iggy-batch", code=code, byte_offset=damage.position, offset=damage.offsets[0],
                topic=topic_in_errors(partition_values), partition=segment.partition,
            )  # fmt: skip
        if not damage.truncated:
            reports.damaged.append(DamagedBatches.in_file(segment.path, damage, reason))
        if self._rows.keeps_error_rows(partition_values):
            message = f"{reason}: {damage.missing} (the batch at offset {damage.first}): {segment.path}"
            yield self._rows.error_row(partition_values, code, message, damage.position)


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
