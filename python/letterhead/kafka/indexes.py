"""The index file that a broker writes for each segment: byte positions of offsets.

::

    .index   ┌───────────────────────┬────────────────┐
             │ int32 relative_offset │ int32 position │  a batch that is not after this offset begins at this byte
             └───────────────────────┴────────────────┘

Integers are big-endian, and entries repeat to the end of the file. Relative offsets count from the segment's base offset.
A broker preallocates the file, so zeros can follow its entries.

A position only says where to begin looking, and the batch there is verified. A missing or invalid file counts as empty.
The indexes of timestamps and of aborted transactions are not read, because the log does not confirm that they omit nothing:
the headers of its batches say both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from letterhead.file_window import open_regular
from letterhead.kafka.log_directory import LogSegment

__all__ = ["index_entries", "offsets_every", "position_before"]

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])

_MAX_BYTES = 16 << 20
"""Bytes that are read of an index. A broker gives it 10 MiB unless its configuration has another size."""


def position_before(segment: LogSegment, offset: int) -> int:
    """Return the position of a batch that begins at or before an offset; 0 if the index has no such entry."""
    entries = _offset_entries(segment)
    before = int(np.searchsorted(entries["offset"], offset - segment.base_offset, "right"))
    return int(entries["position"][before - 1]) if before else 0


def offsets_every(segment: LogSegment, size: int) -> list[int]:
    """Return offsets that cut a segment into pieces of about ``size`` bytes; none without an index."""
    entries = _offset_entries(segment)
    cuts = np.unique(np.searchsorted(entries["position"], np.arange(size, segment.size - size // 2, size)))
    return [segment.base_offset + int(entries["offset"][at]) for at in cuts if at < len(entries)]


def index_entries(path: Path, entry: np.dtype[Any]) -> Any:
    """Read the complete entries of an index; none if the file does not exist or is not a regular file."""
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_BYTES)
    except OSError:
        data = b""
    return np.frombuffer(data[: len(data) // entry.itemsize * entry.itemsize], entry)


def _offset_entries(segment: LogSegment) -> Any:
    entries = index_entries(segment.path.with_suffix(".index"), _OFFSET_ENTRY)
    return entries[: _rising(entries["position"], entries["offset"])]


def _rising(*columns: Any) -> int:
    """Count the entries before a column stops rising, which is where zeros or damaged entries begin."""
    if not len(columns[0]) or columns[0][0] <= 0:
        return 0
    falls = np.any([np.diff(column.astype(np.int64)) <= 0 for column in columns], axis=0)
    return int(np.argmax(falls)) + 1 if falls.any() else len(columns[0])
