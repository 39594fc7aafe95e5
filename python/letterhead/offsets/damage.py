"""Damage in segment files: unreadable bytes, the reason, and the missing records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from letterhead._formatting import count_noun, printable
from letterhead.offsets.partition_log import LAST_OFFSET

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BatchError", "DamagedBatches", "DamagedRange", "Invalid", "TruncatedTail"]


class BatchError(NamedTuple):
    """Error that affects a whole batch."""

    code: str
    reason: str
    beyond: int = 0  # no batch before this byte can be trusted
    is_not_a_segment: bool = False  # the file is not a log segment


class Invalid(NamedTuple):
    """First invalid batch in a sequence of batches."""

    number: int  # index among the batches
    error: BatchError


class DamagedRange(NamedTuple):
    """Bytes without a valid batch, or with a misplaced batch, and the offsets that are missing as a result."""

    position: int
    end: int
    truncated: bool  # whether this is the end of a log whose broker stopped while writing
    first: int
    last: int | None  # None if unknown
    bounds: tuple[int, int] = (0, LAST_OFFSET)  # requested offsets: first, and end (exclusive)

    @property
    def hides_records(self) -> bool:
        """Whether records within the bounds may be missing."""
        first, last = self.offsets
        return last is None or first <= last

    @property
    def offsets(self) -> tuple[int, int | None]:
        """First and last offset within the bounds."""
        start, end = self.bounds
        return max(self.first, start), None if self.last is None else min(self.last, end - 1)

    @property
    def missing(self) -> str:
        """Text with the offsets and number of missing records; some of them may have been removed by compaction earlier."""
        first, last = self.offsets
        if last is None:
            return f"the records from offset {first} on are missing"
        return f"offsets {first} to {last} are missing, at most {count_noun(last - first + 1, 'record')}"


class TruncatedTail(NamedTuple):
    """Incomplete batch at the end of a log, left by a broker that stopped while writing."""

    file: str
    position: int  # first byte of the incomplete batch, where a broker would truncate the file
    bytes_left: int  # bytes from there to the end of the file
    reason: str

    def __str__(self) -> str:
        return f"{printable(self.file)}: truncated at byte {self.position}, {count_noun(self.bytes_left, 'byte')} before its end: {self.reason}"


class DamagedBatches(NamedTuple):
    """Bytes of a segment whose records are missing."""

    file: str
    position: int  # first damaged byte
    end: int  # position after the last damaged byte
    first: int  # smallest missing offset
    last: int | None  # largest missing offset; None if unknown
    missing: str  # offsets and number of the missing records
    reason: str

    @classmethod
    def in_file(cls, path: Path, damage: DamagedRange, reason: str) -> DamagedBatches:
        """Create the report for damage in a file."""
        return cls(str(path), damage.position, damage.end, *damage.offsets, damage.missing, reason)

    def __str__(self) -> str:
        return f"{printable(self.file)}: {self.missing}: bytes {self.position} to {self.end} are damaged: {self.reason}"
