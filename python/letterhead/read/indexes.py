"""The files that a broker keeps beside a segment: where offsets and times are in it, and which transactions were aborted.

::

    .index       ┌───────────────────────┬────────────────┐
                 │ int32 relative_offset │ int32 position │  the batch that has the offset begins there
                 └───────────────────────┴────────────────┘
    .timeindex   ┌─────────────────┬───────────────────────┐
                 │ int64 timestamp │ int32 relative_offset │  no record up to the offset has a later time
                 └─────────────────┴───────────────────────┘
    .txnindex    ┌─────────┬───────────────────┬────────────────────┬───────────────────┬──────────────────────────┐
                 │ int16 0 │ int64 producer_id │ int64 first_offset │ int64 last_offset │ int64 last_stable_offset │
                 └─────────┴───────────────────┴────────────────────┴───────────────────┴──────────────────────────┘

Big-endian, repeated to the end; offsets are relative to that of the segment, and the last one of a transaction is its
mark. The first two files are made longer than they need be while a broker writes them: zeros follow.

Where a file is missing, or is not in order, it says nothing: an index saves time, and never decides what is read.
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
    """A transaction that was aborted.

    Attributes
    ----------
    producer_id : int
        Its producer.
    first_offset, last_offset : int
        Its first record, and the mark of its end.
    """

    producer_id: int
    first_offset: int
    last_offset: int


def position_before(segment: Segment, offset: int) -> int:
    """Find where to begin in order to meet an offset.

    Parameters
    ----------
    segment : Segment
        The segment.
    offset : int
        The offset.

    Returns
    -------
    int
        Byte where a batch begins that is not behind the offset; 0 where nothing is known.
    """
    entries = _offset_entries(segment)
    before = int(np.searchsorted(entries["offset"], offset - segment.base_offset, "right"))
    return int(entries["position"][before - 1]) if before else 0


def first_offset_since(segment: Segment, time: int) -> int:
    """Find the offset before which every record is older than a time, in milliseconds since 1970."""
    entries = _entries(segment.path.with_suffix(".timeindex"), _TIME_ENTRY)
    entries = entries[: _rising(entries["time"], None)]
    before = int(np.searchsorted(entries["time"], time, "left"))
    return segment.base_offset + (int(entries["offset"][before - 1]) if before else 0)


def offsets_every(segment: Segment, size: int) -> list[int]:
    """Give offsets that cut a segment into pieces of about so many bytes; none where nothing is known."""
    entries = _offset_entries(segment)
    cuts = np.unique(np.searchsorted(entries["position"], np.arange(size, segment.size - size // 2, size)))
    return [segment.base_offset + int(entries["offset"][at]) for at in cuts if at < len(entries)]


def aborted(segment: Segment) -> list[Aborted]:
    """Give the aborted transactions whose end is in a segment, as far as its file tells of them."""
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


def _rising(numbers: Any, others: Any) -> int:
    """Say how many entries there are before the numbers, and the others, stop rising: zeros, or damage."""
    if not len(numbers) or numbers[0] <= 0:
        return 0
    falls = np.diff(numbers.astype(np.int64)) <= 0
    if others is not None:
        falls |= np.diff(others.astype(np.int64)) <= 0
    return int(np.argmax(falls)) + 1 if falls.any() else len(numbers)
