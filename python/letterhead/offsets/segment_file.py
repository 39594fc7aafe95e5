"""Read the complete batches of a segment file in order, and continue after damage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import pyarrow as pa

from letterhead import arrow as lha
from letterhead._invariants import require
from letterhead._optional_dependencies import install_hint
from letterhead.errors import DecodeError
from letterhead.limits import how_to_raise
from letterhead.offsets.damage import BatchError, DamagedRange, Invalid, TruncatedTail
from letterhead.offsets.file_window import FileWindow
from letterhead.offsets.partition_log import LAST_OFFSET
from letterhead.offsets.stored_batches import BatchT, StoredBatches

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Segment", "SegmentFile", "SegmentT", "errors_of_batches"]

PIECE_LEN = 4 << 20
"""Total size in bytes of batches that are decoded together; their rows are in memory at the same time."""

LARGEST_CHECKED = 128 << 20
"""Maximum size in bytes of the end of a log that is checked for completeness."""

_MAX_SEARCHED = 128 << 20
"""Limit of bytes to verify while searching for a batch after damage, in addition to four times the file size."""

_SEARCH_LEN = 1 << 20


class Segment(Protocol):
    """Segment file of a partition."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def partition(self) -> int | None:
        """Number of the partition, if the path contains it."""

    @property
    def partition_values(self) -> dict[str, Any]:
        """Values of the columns that are constant within the file."""

    @property
    def base_offset(self) -> int:
        """First offset of the file."""

    @property
    def next_offset(self) -> int | None:
        """First offset of the partition's next file; None for the last file."""

    @property
    def size(self) -> int:
        """Current size of the file in bytes."""


SegmentT = TypeVar("SegmentT", bound=Segment)


class SegmentFile(FileWindow, ABC, Generic[SegmentT, BatchT]):
    """Segment file, read with a few batches at a time in memory.

    Batches of more than ``message_bytes`` are not read.
    """

    format: ClassVar[str]
    """Format of a batch."""

    header_len: ClassVar[int]
    """Number of leading bytes of a batch that :meth:`headers` needs."""

    min_batch_len: ClassVar[int]
    """Length of the shortest batch."""

    candidate_len: ClassVar[int]
    """Number of bytes that :meth:`candidates_in` examines after the first byte of a batch."""

    max_offsets: ClassVar[int]
    """Maximum number of offsets after the base offset."""

    def __init__(self, segment: SegmentT, message_bytes: int) -> None:
        super().__init__(segment.path)
        self.segment = segment
        self._message_bytes = message_bytes
        self._zeros: tuple[int, int] | None = None  # start of the zeros, and size of the file
        self._searched = 0  # total size of candidates whose checksum was computed, in bytes

    @property
    @abstractmethod
    def partition_in_errors(self) -> Mapping[str, Any]:
        """Topic and partition for errors."""

    @abstractmethod
    def headers(self, data: Any, origin: int, beyond: int, *, first: bool = False) -> tuple[list[BatchT], int]:
        """Read the headers of all complete batches, or of the first batch only; also return the end position.

        ``data`` begins at position ``origin`` of the file, and is followed by ``beyond`` more bytes; the last batch may
        end within these.
        """

    @abstractmethod
    def indexed_position(self, offset: int) -> int:
        """Return the position of a batch at or before an offset from the index, or 0 without an index entry."""

    @abstractmethod
    def error_at(self, position: int, min_offset: int) -> BatchError:
        """Return the error that explains why no batch begins at a position."""

    @abstractmethod
    def with_length(self, data: bytes) -> bytes:
        """Return a batch whose header contains its actual length."""

    @abstractmethod
    def candidates_in(self, window: Any, left: int) -> Any:
        """Return the positions in a byte array at which batches may begin, ``left`` bytes before the end of the file.

        All positions except the last ``candidate_len`` are examined.
        """

    @abstractmethod
    def batch_error(self, data: bytes, errors: Sequence[Mapping[str, Any]]) -> BatchError | None:
        """Return the first error that concerns a whole batch rather than one record, or None."""

    def ends_in_zeros(self, position: int) -> bool:
        """Return whether the damaged batch at a position may be an incomplete batch in a preallocated file."""
        return False

    def with_known_offsets(self, batch: BatchT, after: int) -> BatchT:
        """Return a batch with ``after`` as its first offset if its header does not contain the first offset."""
        return batch

    def batches(self, position: int, min_offset: int, pieces: int = 1) -> tuple[list[BatchT], BatchError | None]:
        """Read consecutive batches of a few MiB in total, or one larger batch, from a position.

        ``min_offset`` is the smallest possible next offset. Returns the batches with valid headers, and the error of
        the bytes after them, if any.
        """
        window = position + len(self.view(position, position + pieces * PIECE_LEN))
        batches, end = self.headers(self.view(position, window), position, max(self.size - window, 0))
        if not batches:
            return [], self.error_at(end, min_offset)
        if end > window and (len(batches) > pieces or (batches[-1].size > self._message_bytes and len(batches) > 1)):
            # Read the last batch again together with later batches.
            end = batches.pop().position
        elif end > window and batches[-1].size > self._message_bytes:
            reason = f"a batch of {batches[-1].size} bytes is over the limit of {self._message_bytes}"
            return [], BatchError("limit_exceeded", f"{reason}: {how_to_raise('message_bytes')}", end)
        if len(self.view(position, end)) < end - position:  # the file has become shorter
            return self.batches(position, min_offset, pieces)
        after, max_offset = min_offset, self.max_offset()
        for index, batch in enumerate(batches):
            batches[index] = batch = self.with_known_offsets(batch, after)
            if not after <= batch.base_offset <= batch.last_offset <= max_offset:
                error = require(self._misplaced(batch, after), "the error of a batch")
                return self._out_of_order(batches[:index], batch, error, is_overlap=batch.base_offset < after)
            after = batch.last_offset + 1
        following = self.batch_at(end)
        if following is not None and following.base_offset < after:
            reason = f"it ends at offset {after - 1}, and the next one begins at {following.base_offset}"
            return self._out_of_order(batches, following, BatchError("not_in_order", reason), is_overlap=True)
        if following is None and end < self.size:
            # Validate the last batch, because the end of a damaged batch is uncertain.
            [last_error] = self.batch_errors(batches[-1:])
            return (batches, None) if last_error is None else (batches[:-1], last_error)
        return batches, None

    def stored(self, batches: Sequence[BatchT]) -> StoredBatches[BatchT]:
        """Read the bytes of consecutive batches."""
        first, end = batches[0].position, batches[-1].end
        following, last = self.batch_at(end), self.segment.next_offset
        next_offset = following.base_offset if following is not None else LAST_OFFSET if last is None else last
        return StoredBatches(self.view(first, end), batches, first, next_offset)

    def damage(self, position: int, min_offset: int, error: BatchError) -> DamagedRange:
        """Find the end of the damage that begins at a position."""
        after = self._next_valid(position, min_offset, error.beyond)
        following = None if after is None else self.batch_at(after)
        if following is not None and after is not None:
            return DamagedRange(position, after, False, min_offset, following.base_offset - 1)
        if self.segment.next_offset is not None:
            return DamagedRange(position, self.size, False, min_offset, self.segment.next_offset - 1)
        last = self._last_at_the_end(position, min_offset)
        truncated = not self._is_exhausted and self._is_unfinished(position, error)
        return DamagedRange(position, self.size, truncated, min_offset, last)

    def _last_at_the_end(self, position: int, min_offset: int) -> int | None:
        """Return the last offset if the file ends with a damaged batch and any oversized batches after it, otherwise None."""
        batch, last = self.batch_at(position), None
        while batch is not None and self._misplaced(batch, min_offset) is None:
            position, last = batch.end, batch.last_offset
            min_offset = last + 1
            if position >= self.size:
                return last
            batch = self.batch_at(position)
            if batch is not None and batch.size <= self._message_bytes:
                return None  # with a wrong checksum, the offsets may also be wrong
        return None

    def batch_errors(self, batches: Sequence[BatchT]) -> list[BatchError | None]:
        """Validate each batch as a whole, in particular its checksum; errors of single records are not reported."""
        return self._errors_of([self.peek(batch.position, batch.end) for batch in batches]) if batches else []

    def first_invalid(self, batches: Sequence[BatchT], indexes: Sequence[int]) -> Invalid | None:
        """Return the first invalid batch among the batches at the given indexes."""
        errors = zip(indexes, self.batch_errors([batches[index] for index in indexes]), strict=True)
        return next((Invalid(index, error) for index, error in errors if error is not None), None)

    def error(self, error: BatchError, damage: DamagedRange) -> DecodeError:
        """Return the exception for damage, with the file, the offsets and the byte position."""
        path = self.segment.path
        if error.is_not_a_segment:
            message = f"{path}: {error.reason}"
        else:
            message = f"{path}: the batch at offset {damage.first}: {error.reason}: {damage.missing}"
        return DecodeError(
            message,
            format=self.format,
            code=error.code,
            byte_offset=damage.position,
            offset=None if error.is_not_a_segment else damage.offsets[0],
            **self.partition_in_errors,
        )

    def error_text(self, error: BatchError, damage: DamagedRange) -> str:
        """Return the error message for the row of a damaged batch, beginning with the reason."""
        batch = "" if error.is_not_a_segment else f": {damage.missing} (the batch at offset {damage.first})"
        return f"{error.reason}{batch}: {self.segment.path}"

    def truncated_at(self, error: BatchError, damage: DamagedRange) -> TruncatedTail:
        """Create the report for a truncated end."""
        return TruncatedTail(str(self.segment.path), damage.position, damage.end - damage.position, error.reason)

    def verified_position(self, offset: int) -> int:
        """Return the position of a valid batch at or before an offset from the index, or 0 without an index entry."""
        position = self.indexed_position(offset)
        if not 0 < position < self.size:
            return 0
        batches = self.batches(position, self.segment.base_offset)[0][:1]
        valid = batches and batches[0].base_offset <= offset and self.batch_errors(batches) == [None]
        return position if valid else 0

    def walk(
        self, offset: int, *, validates_last: bool = False
    ) -> Iterator[tuple[list[BatchT], tuple[BatchError, DamagedRange] | None]]:
        """Yield batches in order, and the damage after them, if any; start with the batch at or before an offset.

        Damaged bytes are skipped; a truncated end of the log stops the iteration. With ``validates_last``, the last
        batch of the file is validated as a whole.
        """
        position, min_offset = self.verified_position(offset), self.segment.base_offset
        while position < self.size:
            batches, error = self.batches(position, min_offset)
            if validates_last and batches and batches[-1].end == self.size:
                [error] = self.batch_errors(batches[-1:])
                batches = batches if error is None else batches[:-1]
            if batches:
                position, min_offset = batches[-1].end, batches[-1].last_offset + 1
            if error is None:
                yield batches, None
                continue
            damage = self.damage(position, min_offset, error)
            yield batches, (error, damage)
            if damage.truncated:
                return
            position = damage.end

    def _errors_of(self, batches: list[bytes]) -> list[BatchError | None]:
        return errors_of_batches(batches, self.format, self.batch_error)

    def _out_of_order(
        self, before: list[BatchT], batch: BatchT, error: BatchError, *, is_overlap: bool
    ) -> tuple[list[BatchT], BatchError]:
        """Return the batches before the damage near a misplaced batch, and the error of the misplaced batch."""
        if not before or not is_overlap:
            return before, error
        # If two batches overlap, either of them may be misplaced.
        [previous_error] = self.batch_errors(before[-1:])
        if previous_error is not None:
            return before[:-1], previous_error
        self._searched += batch.size
        if batch.size > self._message_bytes or self._is_exhausted:
            return before, error
        [own_error] = self.batch_errors([batch])
        return (before[:-1], error._replace(beyond=batch.end)) if own_error is None else (before, own_error)

    def batch_at(self, position: int) -> BatchT | None:
        """Read the header of the complete batch at a position."""
        header = self.peek(position, position + self.header_len)
        return next(
            iter(self.headers(header, position, max(self.size - position - len(header), 0), first=True)[0]), None
        )

    def max_offset(self) -> int:
        """Return the largest possible offset in the segment."""
        max_offset = self.segment.base_offset + self.max_offsets
        return max_offset if self.segment.next_offset is None else min(max_offset, self.segment.next_offset - 1)

    def _misplaced(self, batch: BatchT, min_offset: int) -> BatchError | None:
        """Check the offsets of a batch against the previous batch and the segment; return the error, if any."""
        max_offset = self.max_offset()
        if batch.base_offset < min_offset:
            return BatchError(
                "not_in_order", f"it begins at offset {batch.base_offset}, but the least possible is {min_offset}"
            )
        if not batch.base_offset <= batch.last_offset <= max_offset:
            return BatchError(
                "not_in_order", f"it ends at offset {batch.last_offset}, but the largest possible is {max_offset}"
            )
        return None

    def _is_unfinished(self, position: int, error: BatchError) -> bool:
        """Return whether the bytes up to the end of the file are zeros, or an incomplete batch.

        A broker that stops while writing leaves no complete batch with a wrong checksum, no complete batches in the wrong
        order, and no later segment file.
        """
        if error.is_not_a_segment or error.code in ("not_in_order", "limit_exceeded"):
            return False
        if error.code == "truncated":
            return not self._is_whole_to_the_end(position)
        return self.ends_in_zeros(position)

    def _is_whole_to_the_end(self, position: int) -> bool:
        """Return whether a seemingly truncated batch has a valid checksum, which means that only its length is wrong."""
        left = self.size - position
        if not self.min_batch_len <= left <= LARGEST_CHECKED:
            return False
        data = self.peek(position, self.size)
        return any(data) and self._errors_of([self.with_length(data)]) == [None]

    def zeros_from(self) -> int:
        """Return the start position of the zeros at the end of the file."""
        if self._zeros is None or self._zeros[1] != self.size:
            self._zeros = self._find_zeros(), self.size
        return self._zeros[0]

    def _find_zeros(self) -> int:
        end, zeros = self.size, bytes(_SEARCH_LEN)
        while end > 0:
            piece = self.peek(max(end - _SEARCH_LEN, 0), end)
            if piece != zeros[: len(piece)]:
                return end - len(piece) + len(piece.rstrip(b"\0"))
            end -= max(len(piece), 1)
        return 0

    def _next_valid(self, position: int, min_offset: int, beyond: int) -> int | None:
        """Return the position of the next batch with a plausible offset and a valid checksum."""
        # Try the end of the invalid batch before searching its content, because its length may be right.
        batch = self.batch_at(position)
        after = beyond or (batch.end if batch is not None else 0)
        if after and self._is_valid(after, min_offset):
            return after
        for candidate in self._candidates(max(position + 1, beyond)):
            if self._is_exhausted:
                break
            if self._is_valid(candidate, min_offset):
                return candidate
        return None

    @property
    def _is_exhausted(self) -> bool:
        """Whether the limit for candidates is exceeded; realistic damage does not reach it."""
        return self._searched > _MAX_SEARCHED + 4 * self.size

    def _candidates(self, position: int) -> Iterator[int]:
        """Yield the positions of possible batch headers."""
        with install_hint("finding the end of damage", "letterhead[arrow]"):
            import numpy as np  # imported here, because it is only needed for damaged files

        end = min(self.size - self.candidate_len, self.zeros_from())
        while position < end:
            window = np.frombuffer(self.peek(position, position + _SEARCH_LEN + self.candidate_len), np.uint8)
            candidates = self.candidates_in(window, self.size - position)
            yield from (position + int(candidate) for candidate in candidates)
            position += _SEARCH_LEN

    def _is_valid(self, position: int, min_offset: int) -> bool:
        batch = self.batch_at(position) if position < self.size else None
        if batch is None or batch.size > self._message_bytes or self._misplaced(batch, min_offset) is not None:
            return False
        self._searched += batch.size
        return self.batch_errors([batch]) == [None]


def errors_of_batches(
    batches: list[bytes], format: str, batch_error: Callable[[bytes, Sequence[Mapping[str, Any]]], BatchError | None]
) -> list[BatchError | None]:
    """Validate each batch as a whole; ``batch_error`` selects the error of the whole batch among all of its errors."""
    errors = lha.validate(pa.array(batches, pa.binary()), format).to_pylist()
    return [batch_error(data, found) if found else None for data, found in zip(batches, errors, strict=True)]
