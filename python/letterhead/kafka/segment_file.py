"""The batches of one segment file: which are whole and in order, and where reading continues after damage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from letterhead import arrow as lha
from letterhead._formatting import counted
from letterhead._invariants import present
from letterhead._optional_dependencies import needed
from letterhead.errors import DecodeError
from letterhead.kafka.indexes import position_before
from letterhead.kafka.log_directory import LogSegment
from letterhead.kafka.record_sets import BatchHeader, StoredBatches, batches_of
from letterhead.limits import how_to_raise
from letterhead.offsets.file_window import FileWindow
from letterhead.offsets.segments import DamagedRange

__all__ = ["LARGEST_CHECKED", "MAX_OFFSETS", "BatchError", "DamagedRange", "KafkaSegmentFile", "verified_position"]

PIECE_LEN = 4 << 20
"""Bytes of batches that are decoded together; the rows made of them are in memory at the same time."""

_FRAME_LEN = 12
_MAGIC_AT = 16
_MIN_BATCH_LEN = 26
"""Bytes of a message of magic 0 without key and value, the shortest batch."""

_HEADER_LEN = 61
"""Bytes of a batch of magic 2 before its records; messages of older formats have less."""

_CRC_AT = 17
_COMPUTED = re.compile(r"the bytes give ([0-9a-f]{8})$")
"""Checksum of a batch's bytes, in the error of another one."""

_MIN_RECORD_LEN = 6
"""Bytes of a record without key, value and headers, after its length."""

_MIN_ZEROS = 16
"""A batch that ends with at least this many zeros may not have been written to its end."""

LARGEST_CHECKED = 128 << 20
"""Largest end of a log that is read to find out whether it is whole, in bytes."""

_MAX_SEARCHED = 128 << 20
"""Bytes of candidates that may be read to find the next batch after damage, beyond four times the size of the file."""

MAX_OFFSETS = (1 << 31) - 1
"""Offsets that a segment can hold: its index stores them as int32."""

_SEARCH_LEN = 1 << 20

MAX_BATCH_BYTES = (1 << 31) - 1
"""The largest batch that the size in its header can describe, in bytes."""

_BATCH_ERRORS = ("bad_crc", "bad_magic", "wrong_size")
"""Codes of errors of a whole batch; other errors concern one record."""


class BatchError(NamedTuple):
    """An error of a whole batch."""

    code: str
    reason: str
    beyond: int = 0  # no batch that begins before this byte can be trusted
    is_not_a_segment: bool = False  # the file is not a log segment


class KafkaSegmentFile(FileWindow):
    """A segment, of which a few batches at a time are in memory.

    A batch of more than ``message_bytes`` is not read.
    """

    def __init__(self, segment: LogSegment, message_bytes: int = MAX_BATCH_BYTES) -> None:
        super().__init__(segment.path)
        self.segment = segment
        self._message_bytes = message_bytes
        self._zeros: tuple[int, int] | None = None  # where they begin, and the size of the file
        self._searched = 0  # bytes of candidates whose checksum was computed

    def batches(self, position: int, min_offset: int, pieces: int = 1) -> tuple[list[BatchHeader], BatchError | None]:
        """Read batches of a few MiB together, or one larger batch, from a byte on.

        ``min_offset`` is the least offset that can follow. Returns the batches with valid headers, and the error of the bytes
        after them, if any.
        """
        window = position + len(self.view(position, position + pieces * PIECE_LEN))
        batches, end = batches_of(self.view(position, window), beyond=max(self.size - window, 0), origin=position)
        if not batches:
            return [], self._error_at(end, min_offset)
        if end > window and (len(batches) > pieces or (batches[-1].size > self._message_bytes and len(batches) > 1)):
            # The last batch is read with those after it.
            end = batches.pop().position
        elif end > window and batches[-1].size > self._message_bytes:
            reason = f"a batch of {batches[-1].size} bytes is over the limit of {self._message_bytes}"
            return [], BatchError("limit_exceeded", f"{reason}: {how_to_raise('message_bytes')}", end)
        if len(self.view(position, end)) < end - position:  # the file has become shorter
            return self.batches(position, min_offset, pieces)
        after, max_offset = min_offset, self._max_offset()
        for at, batch in enumerate(batches):
            if batch.magic < 2 and batch.codec and batch.base_offset >= after:
                # The offset of a compressed message set is its last one: its first record follows the previous batch.
                batches[at] = batch._replace(base_offset=after)
            if not after <= batch.base_offset <= batch.last_offset <= max_offset:
                error = present(self._misplaced(batch, after), "the error of a batch")
                # If two batches overlap, either can be the wrong one.
                both = at > 0 and batch.base_offset < after
                return batches[: at - both], error._replace(beyond=batch.end) if both else error
            after = batch.last_offset + 1
        following = self._batch_at(end)
        if following is not None and following.base_offset < after:
            reason = f"it ends at offset {after - 1}, and the next one begins at {following.base_offset}"
            return batches[:-1], BatchError("not_in_order", reason, following.end)
        if following is None and end < self.size:
            # Where a batch ends is uncertain if it is damaged.
            [last_error] = self.batch_errors(batches[-1:])
            return (batches, None) if last_error is None else (batches[:-1], last_error)
        return batches, None

    def stored(self, batches: Sequence[BatchHeader]) -> StoredBatches:
        """Return consecutive batches with their bytes."""
        first = batches[0].position
        return StoredBatches(self.view(first, batches[-1].end), batches, first)

    def damage(self, position: int, min_offset: int, error: BatchError) -> DamagedRange:
        """Find the end of the damage that begins at a position."""
        after = self._next_valid(position, min_offset, error.beyond)
        following = None if after is None else self._batch_at(after)
        if following is not None and after is not None:
            return DamagedRange(position, after, False, min_offset, following.base_offset - 1)
        if self.segment.next_offset is not None:
            return DamagedRange(position, self.size, False, min_offset, self.segment.next_offset - 1)
        batch = self._batch_at(position)
        last = batch.last_offset if batch is not None and self._misplaced(batch, min_offset) is None else None
        truncated = not self._is_exhausted and self._is_unfinished(position, error)
        return DamagedRange(position, self.size, truncated, min_offset, last)

    def batch_errors(self, batches: Sequence[BatchHeader]) -> list[BatchError | None]:
        """Validate each batch as a whole, above all its checksum; errors of single records are not reported."""
        return _errors_of([self.peek(batch.position, batch.end) for batch in batches]) if batches else []

    def with_checksum(self, error: BatchError, damage: DamagedRange) -> StoredBatches | None:
        """Return a damaged batch with the checksum of its bytes; None if more than the checksum is wrong with it."""
        batch = self._batch_at(damage.position)
        computed = _COMPUTED.search(error.reason)
        if error.code != "bad_crc" or computed is None or batch is None or batch.end != damage.end or batch.magic < 2:
            return None
        data = bytearray(self.peek(batch.position, batch.end))
        data[_CRC_AT : _CRC_AT + 4] = bytes.fromhex(computed[1])
        return StoredBatches(bytes(data), [batch], batch.position)

    def error(self, error: BatchError, damage: DamagedRange) -> DecodeError:
        """Return the error that names the file, the offsets and the byte."""
        path = self.segment.path
        if error.is_not_a_segment:
            message = f"{path}: {error.reason}"
        else:
            message = f"{path}: the batch at offset {damage.first}: {error.reason}: {damage.missing}"
        return DecodeError(
            message,
            format="record-batch",
            code=error.code,
            byte_offset=damage.position,
            topic=self.segment.topic,
            partition=self.segment.partition,
            offset=None if error.is_not_a_segment else damage.offsets[0],
        )

    def walk(
        self, offset: int, *, validates_last: bool = False
    ) -> Iterator[tuple[list[BatchHeader], tuple[BatchError, DamagedRange] | None]]:
        """Yield batches in order, from one that is not after an offset on, and the damage after them, if any.

        Damaged bytes are skipped; a truncated end of the log ends the walk. With ``validates_last``, a batch that ends the file is
        validated as a whole.
        """
        position, min_offset = verified_position(self, offset), self.segment.base_offset
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

    def _batch_at(self, position: int) -> BatchHeader | None:
        """Read the header of the whole batch that begins at a position."""
        header = self.peek(position, position + _HEADER_LEN)
        beyond = max(self.size - position - len(header), 0)
        return next(iter(batches_of(header, 0, 1, beyond, origin=position)[0]), None)

    def _max_offset(self) -> int:
        """Return the largest offset that the segment can have."""
        max_offset = self.segment.base_offset + MAX_OFFSETS
        return max_offset if self.segment.next_offset is None else min(max_offset, self.segment.next_offset - 1)

    def _misplaced(self, batch: BatchHeader, min_offset: int) -> BatchError | None:
        """Check the offsets of a batch against the previous batch and the segment."""
        max_offset = self._max_offset()
        if batch.base_offset < min_offset:
            return BatchError(
                "not_in_order", f"it begins at offset {batch.base_offset}, but the least possible is {min_offset}"
            )
        if not batch.base_offset <= batch.last_offset <= max_offset:
            return BatchError(
                "not_in_order", f"it ends at offset {batch.last_offset}, but the largest possible is {max_offset}"
            )
        return None

    def _error_at(self, position: int, min_offset: int) -> BatchError:
        """Return the reason why no batch begins at a position."""
        left = self.size - position
        if position == 0 and left <= _MAGIC_AT:
            reason = f"not a log segment: its {counted(left, 'byte')} end before the magic byte of a batch"
            return BatchError("truncated", reason, is_not_a_segment=True)
        if position == 0 and not self._begins_as_a_batch():
            reason = "not a log segment: it does not begin with a batch of magic 0, 1 or 2"
            return BatchError("bad_magic", reason, is_not_a_segment=True)
        if self._zeros_from() <= position:
            return BatchError("truncated", f"{counted(left, 'byte')} of zeros are left")
        begin = self.peek(position, position + _MAGIC_AT + 1)
        if len(begin) > _MAGIC_AT and begin[_MAGIC_AT] > 2:
            return BatchError("bad_magic", "no batch of magic 0, 1 or 2 begins here")
        offset = int.from_bytes(begin[:8], "big", signed=True)
        if len(begin) >= 8 and not min_offset <= offset <= self._max_offset():
            reason = f"it begins at offset {offset}, but the least possible is {min_offset}, the largest {self._max_offset()}"
            return BatchError("not_in_order", reason)
        if left < _FRAME_LEN:
            return BatchError("truncated", f"{counted(left, 'byte')} of a batch are left")
        length = int.from_bytes(begin[8:_FRAME_LEN], "big", signed=True)
        if length > left - _FRAME_LEN:
            return BatchError(
                "truncated", f"the batch takes {counted(length + _FRAME_LEN, 'byte')} and {left} are left"
            )
        return BatchError(
            "wrong_size", f"a batch of {counted(length + _FRAME_LEN, 'byte')} is too short for its header"
        )

    def _begins_as_a_batch(self) -> bool:
        """Return whether the file can begin with a batch, which may be incomplete."""
        begin = self.peek(0, _MAGIC_AT + 1)
        if not any(begin):
            return True  # preallocated and never written
        offset = int.from_bytes(begin[:8], "big", signed=True)
        length = int.from_bytes(begin[8:_FRAME_LEN], "big", signed=True)
        return (
            0 <= offset - self.segment.base_offset <= MAX_OFFSETS
            and length >= _MIN_BATCH_LEN - _FRAME_LEN
            and begin[_MAGIC_AT] <= 2
        )

    def _is_unfinished(self, position: int, error: BatchError) -> bool:
        """Return whether the bytes to the end of the file are zeros, or an incomplete batch.

        A broker that stops while it writes leaves neither a whole batch with a wrong checksum, nor whole batches in a
        wrong order, nor another file.
        """
        if error.is_not_a_segment or error.code in ("not_in_order", "limit_exceeded"):
            return False
        if error.code == "truncated":
            return not self._is_whole_to_the_end(position)
        # In a preallocated file, zeros follow the bytes that were written.
        batch = self._batch_at(position)
        end = self.size if batch is None else batch.end
        if self._zeros_from() > max(end - _MIN_ZEROS, position):
            return False
        return batch is None or _records_end_in_zeros(batch, self.peek(position, batch.end))

    def _is_whole_to_the_end(self, position: int) -> bool:
        """Return whether a batch that seems to be truncated has a valid checksum, so that only its length is wrong."""
        left = self.size - position
        if not _MIN_BATCH_LEN <= left <= LARGEST_CHECKED:
            return False
        data = bytearray(self.peek(position, self.size))
        data[8:_FRAME_LEN] = (left - _FRAME_LEN).to_bytes(4, "big")
        return any(data) and _errors_of([bytes(data)]) == [None]

    def _zeros_from(self) -> int:
        """Return the byte at which the zeros at the end of the file begin."""
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
        """Return the position of the next batch with a possible offset and a valid checksum."""
        # The length of an invalid batch may still be right: its content is not searched then.
        batch = self._batch_at(position)
        after = beyond or (batch.end if batch is not None else 0)
        if after and self._is_valid(after, min_offset):
            return after
        for at in self._candidates(max(position + 1, beyond)):
            if self._is_exhausted:
                break
            if self._is_valid(at, min_offset):
                return at
        return None

    @property
    def _is_exhausted(self) -> bool:
        """Whether so many candidates have claimed so many bytes that no damage explains them."""
        return self._searched > _MAX_SEARCHED + 4 * self.size

    def _candidates(self, position: int) -> Iterator[int]:
        """Yield the positions of bytes with a possible length and magic of a batch."""
        with needed("finding the end of damage", "'letterhead[arrow]'"):
            import numpy as np  # only damage needs it

        end = min(self.size - _MAGIC_AT, self._zeros_from())
        while position < end:
            window = np.frombuffer(self.peek(position, position + _SEARCH_LEN + _MAGIC_AT), np.uint8)
            places = np.flatnonzero(window[_MAGIC_AT:] <= 2)
            lengths: Any = sum(window[places + 8 + byte].astype(np.int64) << 8 * (3 - byte) for byte in range(4))
            lengths += _FRAME_LEN
            fits = (lengths >= _MIN_BATCH_LEN) & (lengths <= self.size - position - places)
            yield from (position + int(place) for place in places[fits])
            position += _SEARCH_LEN

    def _is_valid(self, position: int, min_offset: int) -> bool:
        batch = self._batch_at(position) if position < self.size else None
        if batch is None or batch.size > self._message_bytes or self._misplaced(batch, min_offset) is not None:
            return False
        self._searched += batch.size
        return self.batch_errors([batch]) == [None]


def verified_position(file: KafkaSegmentFile, offset: int) -> int:
    """Return the byte of a valid batch that is not after an offset, as the index of the segment names it; 0 without one."""
    position = position_before(file.segment, offset)
    if not 0 < position < file.size:
        return 0
    batches = file.batches(position, file.segment.base_offset)[0][:1]
    valid = batches and batches[0].base_offset <= offset and file.batch_errors(batches) == [None]
    return position if valid else 0


def _errors_of(batches: list[bytes]) -> list[BatchError | None]:
    # An error of a batch is reported for its first message.
    return [
        next((BatchError(error["code"], error["message"].removeprefix("message 0: "))
              for error in errors or () if error["code"] in _BATCH_ERRORS), None)
        for errors in lha.validate(pa.array(batches, pa.binary()), "record-batch").to_pylist()
    ]  # fmt: skip


def _records_end_in_zeros(batch: BatchHeader, data: bytes) -> bool:
    """Return whether a record of a batch should begin among the zeros at its end, as far as the bytes show."""
    if batch.magic < 2 or batch.codec:
        return True
    at, zeros = _HEADER_LEN, len(data.rstrip(b"\0"))
    for _ in range(batch.records):
        if at >= zeros:
            return True
        length, at = _varint(data, at)
        if length < _MIN_RECORD_LEN or at + length > len(data):
            return False
        at += length
    # Even the header is incomplete.
    return zeros <= _HEADER_LEN


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zig-zag number and the byte after it; -1 if the data ends in it."""
    number = 0
    for shift in range(0, 35, 7):
        if at == len(data):
            break
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at
    return -1, at
