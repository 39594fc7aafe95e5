"""Index files that a broker keeps beside a segment: positions of offsets, timestamps, aborted transactions.

::

    .index       ┌───────────────────────┬────────────────┐
                 │ int32 relative_offset │ int32 position │  the batch with this offset begins at this byte
                 └───────────────────────┴────────────────┘
    .timeindex   ┌─────────────────┬───────────────────────┐
                 │ int64 timestamp │ int32 relative_offset │  no record up to this offset has a later timestamp
                 └─────────────────┴───────────────────────┘
    .txnindex    ┌─────────┬───────────────────┬────────────────────┬───────────────────┬──────────────────────────┐
                 │ int16 0 │ int64 producer_id │ int64 first_offset │ int64 last_offset │ int64 last_stable_offset │
                 └─────────┴───────────────────┴────────────────────┴───────────────────┴──────────────────────────┘

Integers are big-endian, and entries repeat to the end of the file. Relative offsets count from the segment's base
offset; the last offset of a transaction is its control record. A broker preallocates the first two files, so zeros can
follow their entries.

A missing or invalid file counts as empty: positions and timestamps save time and never decide which records are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from letterhead.read.log_directory import Segment

__all__ = ["Aborted", "aborted", "first_offset_since", "offsets_every", "position_before"]

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("time", ">i8"), ("offset", ">i4")])
_TRANSACTION_ENTRY = np.dtype([
    ("version", ">i2"), ("producer_id", ">i8"), ("first", ">i8"), ("last", ">i8"), ("stable", ">i8"),
])  # fmt: skip


class Aborted(NamedTuple):
    """An aborted transaction: its producer, its first record and its control record."""

    producer_id: int
    first_offset: int
    last_offset: int


def position_before(segment: Segment, offset: int) -> int:
    """Return the byte at which a batch begins that is not after an offset; 0 if the index does not know one."""
    entries = _offset_entries(segment)
    before = int(np.searchsorted(entries["offset"], offset - segment.base_offset, "right"))
    return int(entries["position"][before - 1]) if before else 0


def first_offset_since(segment: Segment, time: int) -> int:
    """Return an offset before which every record is older than a time, in milliseconds since 1970."""
    entries = _entries(segment.path.with_suffix(".timeindex"), _TIME_ENTRY)
    entries = entries[: _rising(entries["time"])]
    before = int(np.searchsorted(entries["time"], time, "left"))
    return segment.base_offset + (int(entries["offset"][before - 1]) if before else 0)


def offsets_every(segment: Segment, size: int) -> list[int]:
    """Return offsets that cut a segment into pieces of about ``size`` bytes; none without an index."""
    entries = _offset_entries(segment)
    cuts = np.unique(np.searchsorted(entries["position"], np.arange(size, segment.size - size // 2, size)))
    return [segment.base_offset + int(entries["offset"][at]) for at in cuts if at < len(entries)]


def aborted(segment: Segment) -> list[Aborted]:
    """Return the aborted transactions that end in a segment, according to its index."""
    entries = _entries(segment.path.with_suffix(".txnindex"), _TRANSACTION_ENTRY)
    return [
        Aborted(int(entry["producer_id"]), int(entry["first"]), int(entry["last"]))
        for entry in entries
        if entry["version"] == 0 and 0 <= entry["first"] <= entry["last"]
    ]


def _offset_entries(segment: Segment) -> Any:
    entries = _entries(segment.path.with_suffix(".index"), _OFFSET_ENTRY)
    return entries[: _rising(entries["position"], entries["offset"])]


def _entries(path: Path, entry: np.dtype[Any]) -> Any:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    return np.frombuffer(data[: len(data) // entry.itemsize * entry.itemsize], entry)


def _rising(*columns: Any) -> int:
    """Count the entries before a column stops rising, which is where zeros or damaged entries begin."""
    if not len(columns[0]) or columns[0][0] <= 0:
        return 0
    falls = np.any([np.diff(column.astype(np.int64)) <= 0 for column in columns], axis=0)
    return int(np.argmax(falls)) + 1 if falls.any() else len(columns[0])
