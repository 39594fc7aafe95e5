"""Read the log files of an Apache Iggy server: :class:`IggySegments`.

::

    streams/0/topics/0/partitions/0/00000000000000000000.log      batches, one after the other
                                    00000000000000000000.index    ┌────────────┬───────────────┬──────────────┐
                                                                  │ u64 offset │ u64 timestamp │ u64 position │ …
                                                                  └────────────┴───────────────┴──────────────┘

Little-endian. An index entry contains the first offset, the time in microseconds and the position of a batch; not every
batch has an entry. The index only saves time and does not affect which messages are read, so a missing or invalid index
counts as empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import pyarrow as pa

from letterhead._row_request import RowRequest
from letterhead.iggy.batch_header import BATCH_HEADER_LEN, FIRST_MESSAGE_LEN, IggyBatchHeader
from letterhead.iggy.rows import IggyRowReader, topic_in_errors
from letterhead.iggy.segment_file import BatchRange, IggySegment, IggySegmentFile
from letterhead.kafka.log_directory import Paths
from letterhead.offsets.file_window import check_regular, open_regular
from letterhead.offsets.output_columns import Dialect
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from letterhead.offsets.segment_rows import SegmentRowReader
from letterhead.offsets.segments import SegmentLog, SegmentReports

__all__ = ["IggySegments", "iggy_partitions", "is_iggy_log"]

_LOG = re.compile(r"\d{20}\.log")


class IggySegments(SegmentLog[IggySegment, BatchRange]):
    """Log segments of Iggy."""

    def __init__(self, request: RowRequest, *, dialect: Dialect = "arrow", truncated_rows: bool = False) -> None:
        self._rows: SegmentRowReader[BatchRange] = SegmentRowReader(IggyRowReader(request, dialect=dialect))
        super().__init__(self._rows, truncated_rows=truncated_rows)

    def open(self, segment: IggySegment) -> IggySegmentFile:
        """Open a file."""
        return IggySegmentFile(segment, self._rows.message_bytes)

    def topic_partition(self, segment: IggySegment) -> TopicPartition:
        """Return the partition of a file."""
        return TopicPartition(topic_in_errors(segment.partition_values), segment.partition)  # type: ignore[arg-type]

    def first_since(self, file: IggySegmentFile, batch: BatchRange, time: int) -> tuple[bool, int | None]:
        """Return whether a batch was stored before a time and, if not, its first offset; its messages share a timestamp."""
        return (True, None) if batch.time < 1000 * time else (False, batch.base_offset)

    def read(
        self, segments: Sequence[IggySegment], requested: OffsetRange, reports: SegmentReports
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of the offsets of a partition."""
        return self.read_files(segments, requested, self._rows.rows, reports)


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
    """Return whether a log file belongs to an Iggy server; check its first batch, or its path if the file is empty."""
    with open_regular(file) as data:
        head = data.read(BATCH_HEADER_LEN)
    if not IggyBatchHeader.is_within(head):
        return file.absolute().parent.parts[-6::2] == ("streams", "topics", "partitions")
    header = IggyBatchHeader.unpack_from(head)
    is_first = _base_offset(file) in (None, header.base_offset)
    return is_first and BATCH_HEADER_LEN <= header.length <= file.stat().st_size and bool(header.message_count)


def _sort_key(file: Path) -> tuple[list[tuple[int, str]], str]:
    # Sort numbers by value, not as text.
    return [(int(part) if part.isdecimal() else -1, part) for part in file.parent.parts], file.name


def _segment(file: Path, following: Path | None) -> IggySegment:
    parts = file.absolute().parent.parts[-6:]
    numbers: tuple[str | None, str | None, int | None] = (None, None, None)
    if parts[::2] == ("streams", "topics", "partitions") and parts[5].isdecimal():
        numbers = (parts[1], parts[3], int(parts[5]))
    return IggySegment(file, *numbers, _first_offset(file), None if following is None else _first_offset(following))


def _first_offset(file: Path) -> int:
    """Return the offset in the name of a file, or else the offset of its first message; 0 without messages."""
    base_offset = _base_offset(file)
    if base_offset is not None:
        return base_offset
    with open_regular(file) as data:
        head = data.read(FIRST_MESSAGE_LEN)
    return IggyBatchHeader.unpack_from(head).first_offset(head, 0) if len(head) == FIRST_MESSAGE_LEN else 0


def _base_offset(file: Path) -> int | None:
    return int(file.stem) if _LOG.fullmatch(file.name) else None
