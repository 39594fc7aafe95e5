"""Read the index file that a broker writes for each segment, with byte positions of offsets.

::

    .index   ┌───────────────────────┬────────────────┐
             │ int32 relative_offset │ int32 position │  a batch at or before this offset begins at this byte
             └───────────────────────┴────────────────┘

Integers are big-endian, and entries repeat to the end of the file. Relative offsets count from the segment's base offset.
A broker preallocates the file, so zeros can follow its entries.

A position is only the start of a search, and the batch there is verified. A missing or invalid file is treated as
empty. The indexes of timestamps and of aborted transactions are not read, because they may be incomplete: the headers
of batches contain both.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import compress, count
from operator import ge
from pathlib import Path
from typing import Literal

from letterhead.kafka.log_directory import LogSegment
from letterhead.offsets.file_window import open_regular

__all__ = ["index_entries", "offsets_every", "position_before"]

_MAX_BYTES = 16 << 20
"""Maximum number of bytes to read of an index. By default, brokers limit an index to 10 MiB."""


def position_before(segment: LogSegment, offset: int) -> int:
    """Return the position of a batch that begins at or before an offset; 0 if the index has no such entry."""
    offsets, positions = _offset_entries(segment)
    before = bisect_right(offsets, offset - segment.base_offset)
    return positions[before - 1] if before else 0


def offsets_every(segment: LogSegment, size: int) -> list[int]:
    """Return offsets that split a segment into pieces of about ``size`` bytes; none without an index."""
    offsets, positions = _offset_entries(segment)
    cuts = sorted({bisect_left(positions, position) for position in range(size, segment.size - size // 2, size)})
    return [segment.base_offset + offsets[index] for index in cuts if index < len(offsets)]


def index_entries(
    path: Path, integer: Literal["i", "Q"], byteorder: Literal["big", "little"], fields: int
) -> list[array[int]]:
    """Read the complete entries of an index as a column for each of ``fields`` integers, of a type of :mod:`array`.

    The result is empty if the file does not exist or is not a regular file.
    """
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_BYTES)
    except OSError:
        data = b""
    integers: array[int] = array(integer)
    integers.frombytes(data[: len(data) - len(data) % (integers.itemsize * fields)])
    if byteorder != sys.byteorder:
        integers.byteswap()
    return [integers[field::fields] for field in range(fields)]


def _offset_entries(segment: LogSegment) -> tuple[array[int], array[int]]:
    offsets, positions = index_entries(segment.path.with_suffix(".index"), "i", "big", 2)
    rising = _rising(positions, offsets)
    return offsets[:rising], positions[:rising]


def _rising(*columns: array[int]) -> int:
    """Count the entries up to which all columns increase; zeros or damaged entries follow."""
    if not columns[0] or columns[0][0] <= 0:
        return 0
    falls = (next(compress(count(1), map(ge, column, column[1:])), len(column)) for column in columns)
    return min(falls)
