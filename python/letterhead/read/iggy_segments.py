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

import mmap
import os
import re
import struct
import warnings
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead.errors import DecodeError, HeaderError, TornTailWarning, replaced
from letterhead.read.iggy_rows import COLUMNS, IggyRows
from letterhead.read.log_directory import Paths
from letterhead.read.segments_reader import Bounds, SegmentsReader, Torn

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns

__all__ = ["IggySegment", "IggySegmentRows", "IggySegmentsReader", "iggy_partitions"]

PIECE_LEN = 4 << 20
"""Bytes of batches that are decoded together."""

_HEADER_LEN = 256
_BATCH = struct.Struct("<8xQ16xQ8xI")
_FIRST_DELTA_AT = _HEADER_LEN + 24
_INDEX_ENTRY = np.dtype([("offset", "<u8"), ("time", "<u8"), ("position", "<u8")])
_LOG = re.compile(r"\d{20}\.log")


class IggySegment(NamedTuple):
    """One file of a partition."""

    path: Path
    stream: str | None  # stream, topic and partition are the numbers in the path
    topic: str | None
    partition: int | None
    base_offset: int
    last: bool  # the last file of its partition is the only one that may be torn

    @property
    def size(self) -> int:
        """The current size of the file in bytes."""
        return self.path.stat().st_size


class Batch(NamedTuple):
    """The header of a batch."""

    position: int
    end: int
    first_offset: int
    last_offset: int


class IggySegmentRows(NamedTuple):
    """Which rows are read of segments; it can be pickled, unlike a reader."""

    rows: IggyRows
    bounds: Bounds
    errors: OnError
    schema: pa.Schema

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | None,
        headers: Columns | None,
        bounds: Bounds,
        *,
        errors: OnError = "raise",
        **options: Any,
    ) -> IggySegmentRows:
        """Return the rows within bounds; the options are those of :class:`IggyRows`."""
        columns = COLUMNS if columns is None else columns
        also = ["timestamp"] if bounds.of_time and "timestamp" not in columns else []
        schema = IggyRows(columns, headers, errors=errors, **options).schema
        return cls(IggyRows([*columns, *also], headers, errors=errors, **options), bounds, errors, schema)


class IggySegmentsReader(SegmentsReader):
    """A stream of the messages of log segments."""

    def __init__(self, partitions: Sequence[Sequence[IggySegment]], wanted: IggySegmentRows) -> None:
        super().__init__(partitions, wanted.rows, wanted.bounds)  # type: ignore[arg-type]
        self.schema = wanted.schema
        self._rows = wanted.rows
        self._errors = wanted.errors

    def _records(self) -> Iterator[pa.RecordBatch]:
        for segments in self._partitions:
            position = self.done
            for segment in segments:
                yield from self._file(segment, position)  # type: ignore[arg-type]
                self.done = position = position + segment.size

    def _file(self, segment: IggySegment, before: int) -> Iterator[pa.RecordBatch]:
        with segment.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:  # an empty file cannot be mapped
                return
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        position = _position_before(segment, data, self._bounds)
        constants = {"stream": segment.stream, "topic": segment.topic, "partition": segment.partition}
        while position < len(data):
            batches = _batches(data, position)
            wanted = [batch for batch in batches if batch.last_offset >= self._bounds.start]
            if wanted and wanted[0].first_offset >= self._bounds.end:
                return
            try:
                rows = self._decoded(data, wanted, constants)
            except HeaderError:
                rows = None
                for batch in wanted:
                    try:
                        part = self._decoded(data, [batch], constants)
                    except HeaderError as error:
                        if segment.last and batch.end == len(data):
                            self._tear(segment, batch.position, len(data), error.message)
                            return
                        message = f"{segment.path}: the batch at offset {batch.first_offset}: {error.message}"
                        place = batch.position + (error.byte_offset or 0)
                        raise replaced(error, message, byte_offset=place, row=None) from None
                    if part is not None:
                        yield part
            if rows is not None:
                yield rows
            if batches:
                position = batches[-1].end
                self.done = before + position
                continue
            why = "no whole batch begins here"
            if not segment.last:
                message = f"{segment.path}: {why}"
                raise DecodeError(message, format="iggy-batch", code="truncated", byte_offset=position)
            self._tear(segment, position, len(data), why)
            return

    def _decoded(self, data: Any, batches: Sequence[Batch], constants: dict[str, Any]) -> pa.RecordBatch | None:
        if not batches:
            return None
        piece = pa.py_buffer(data).slice(batches[0].position, batches[-1].end - batches[0].position)
        rows = self._rows(piece, start=self._bounds.start, end=self._bounds.end, constants=constants)
        if rows is None or not self._bounds.of_time:
            return rows
        since, until = self._bounds.since, self._bounds.until
        times = rows.column("timestamp").cast(pa.int64())
        inside = pc.greater_equal(times, 0 if since is None else 1000 * since)
        if until is not None:
            inside = pc.and_(inside, pc.less(times, 1000 * until))
        rows = rows.filter(pc.fill_null(inside, True)).select(self.schema.names)
        return rows if len(rows) else None

    def _tear(self, segment: IggySegment, position: int, end: int, why: str) -> None:
        torn = Torn(str(segment.path), position, end - position, why)
        self.torn.append(torn)
        warnings.warn(str(torn), TornTailWarning, stacklevel=5)


def iggy_partitions(path: Paths) -> list[list[IggySegment]]:
    """Find the segments of each partition in a path, in order."""
    paths = [path] if isinstance(path, str | os.PathLike) else path
    files: set[Path] = set()
    for each in map(Path, paths):
        if not each.exists():
            raise FileNotFoundError(f"{each}: there is no such file or directory")
        found = [each] if each.is_file() else [file for file in each.rglob("*.log") if _LOG.fullmatch(file.name)]
        if not found:
            raise FileNotFoundError(f"{each}: no segments are there (00000000000000000000.log and the like)")
        files.update(found)
    groups = [[*group] for _, group in groupby(sorted(files, key=_order), key=lambda file: file.parent)]
    return [[_segment(file, last=file == group[-1]) for file in group] for group in groups]


def _order(file: Path) -> tuple[list[tuple[int, str]], str]:
    # Numbers are in order of their value.
    return [(int(part) if part.isdecimal() else -1, part) for part in file.parent.parts], file.name


def _segment(file: Path, *, last: bool) -> IggySegment:
    parts = file.absolute().parent.parts[-6:]
    numbers: tuple[str | None, str | None, int | None] = (None, None, None)
    if parts[::2] == ("streams", "topics", "partitions") and parts[5].isdecimal():
        numbers = (parts[1], parts[3], int(parts[5]))
    return IggySegment(file, *numbers, int(file.stem) if _LOG.fullmatch(file.name) else 0, last)


def _batches(data: Any, position: int) -> list[Batch]:
    """Read the headers of whole batches of a few MiB together, or of one larger batch, from a byte on."""
    found: list[Batch] = []
    start = position
    while position + _FIRST_DELTA_AT + 4 <= len(data) and (not found or position - start < PIECE_LEN):
        offset, length, count = _BATCH.unpack_from(data, position)
        if not _HEADER_LEN <= length <= len(data) - position or not count:
            break
        first = offset + struct.unpack_from("<I", data, position + _FIRST_DELTA_AT)[0]
        found.append(Batch(position, position + length, first, first + count - 1))
        position += length
    return found


def _position_before(segment: IggySegment, data: Any, bounds: Bounds) -> int:
    """Return the byte of a batch before the bounds. Index entries are validated before use."""
    try:
        index = segment.path.with_suffix(".index").read_bytes()
    except FileNotFoundError:
        return 0
    entries = np.frombuffer(index[: len(index) // _INDEX_ENTRY.itemsize * _INDEX_ENTRY.itemsize], _INDEX_ENTRY)
    before = int(np.searchsorted(entries["offset"], bounds.start, "right"))
    if bounds.since is not None:
        before = max(before, int(np.searchsorted(entries["time"], 1000 * max(bounds.since, 0), "left")))
    if not before:
        return 0
    entry = entries[before - 1]
    position = int(entry["position"])
    found = _batches(data, position)[:1] if position < len(data) else []
    return position if found and found[0].first_offset == int(entry["offset"]) else 0
