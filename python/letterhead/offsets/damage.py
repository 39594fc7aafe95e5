"""Damage of segment files: which bytes cannot be read, why, and which records are missing because of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from letterhead._formatting import count_noun, printable
from letterhead.offsets.partition_log import LAST_OFFSET

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BatchError", "DamagedBatches", "DamagedRange", "Invalid", "TruncatedTail"]


class BatchError(NamedTuple):
    """An error of a whole batch."""

    code: str
    reason: str
    beyond: int = 0  # no batch that begins before this byte can be trusted
    is_not_a_segment: bool = False  # the file is not a log segment


class Invalid(NamedTuple):
    """The first invalid batch among several."""

    number: int  # counted from 0
    error: BatchError


class DamagedRange(NamedTuple):
    """Bytes without a valid batch, or with a batch in the wrong place, and the offsets that are missing because of them."""

    position: int
    end: int
    truncated: bool  # whether the bytes are the end of a log whose broker stopped while writing
    first: int
    last: int | None  # None if it is unknown
    bounds: tuple[int, int] = (0, LAST_OFFSET)  # the offsets to read: the first one, and the one to stop before

    @property
    def hides_records(self) -> bool:
        """Whether records within the bounds may be missing."""
        first, last = self.offsets
        return last is None or first <= last

    @property
    def offsets(self) -> tuple[int, int | None]:
        """The first and the last of the offsets within the bounds."""
        start, end = self.bounds
        return max(self.first, start), None if self.last is None else min(self.last, end - 1)

    @property
    def missing(self) -> str:
        """The offsets and the number of the records that cannot be read. Compaction may have removed some before."""
        first, last = self.offsets
        if last is None:
            return f"the records from offset {first} on are missing"
        return f"offsets {first} to {last} are missing, at most {count_noun(last - first + 1, 'record')}"


class TruncatedTail(NamedTuple):
    """An incomplete batch at the end of a log, as a broker leaves it if it stops while it writes."""

    file: str
    position: int  # byte at which the first incomplete batch begins: a broker would truncate the file there
    bytes_left: int  # bytes from there to the end of the file
    reason: str

    def __str__(self) -> str:
        return f"{printable(self.file)}: truncated at byte {self.position}, {count_noun(self.bytes_left, 'byte')} before its end: {self.reason}"


class DamagedBatches(NamedTuple):
    """Bytes of a segment whose records are missing."""

    file: str
    position: int  # the first of the bytes
    end: int  # the byte after the last
    first: int  # the least offset that is missing
    last: int | None  # the largest; None if it is unknown
    missing: str  # the offsets and the number of records
    reason: str

    @classmethod
    def in_file(cls, path: Path, damage: DamagedRange, reason: str) -> DamagedBatches:
        """Return the damage of a file."""
        return cls(str(path), damage.position, damage.end, *damage.offsets, damage.missing, reason)

    def __str__(self) -> str:
        return f"{printable(self.file)}: {self.missing}: bytes {self.position} to {self.end} are damaged: {self.reason}"
