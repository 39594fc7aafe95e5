"""The batches of one segment file: which are whole and in order, and where reading continues after damage."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from letterhead import arrow as lha
from letterhead._invariants import present
from letterhead.errors import DecodeError, counted
from letterhead.read.log_directory import Segment
from letterhead.read.record_sets import Batch, batches_of

__all__ = ["Damage", "Flaw", "SegmentFile"]

PIECE_LEN = 4 << 20
"""Bytes of batches that are decoded together; the rows made of them are in memory at the same time."""

_FRAME_LEN = 12
_MAGIC_AT = 16
_LEAST_LEN = 26
"""Bytes of a message of magic 0 without key and value, the shortest batch."""

_CODEC_BITS = 0x07

_MOST_OFFSETS = (1 << 31) - 1
"""Offsets that a segment can hold: its index stores them as int32."""

_SEARCH_LEN = 1 << 20

_BATCH_ERRORS = ("bad_crc", "bad_magic", "wrong_size")
"""Codes of errors of a whole batch; other errors concern one record."""


class Flaw(NamedTuple):
    """An error of a whole batch."""

    code: str
    why: str
    beyond: int = 0  # no batch that begins before this byte can be trusted
    of_file: bool = False  # the file is not a log segment


class Damage(NamedTuple):
    """Bytes that are not a batch, or not the batch that belongs there."""

    position: int
    end: int
    torn: bool  # they are the end of the log, as a broker leaves it if it stops while it writes


class SegmentFile:
    """A segment mapped into memory as :attr:`data`. Bytes that a broker appends later are not read."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        with segment.path.open("rb") as file:
            # An empty file cannot be mapped.
            empty = file.seek(0, 2) == 0
            self.data: Any = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def batches(self, position: int, least: int, pieces: int = 1) -> tuple[list[Batch], Flaw | None]:
        """Read the headers of batches of a few MiB together, or of one larger batch, from a byte on.

        ``least`` is the least offset that can follow. Returns the batches with valid headers, and what is wrong with
        the bytes after them.
        """
        found, end = batches_of(self.data, position, pieces * PIECE_LEN)
        if not found:
            return [], self._flaw_at(end)
        after, most = least, self._most()
        for at, batch in enumerate(found):
            if batch.magic < 2 and batch.attributes & _CODEC_BITS and batch.base_offset >= after:
                # The offset of a compressed message set is its last one: its first record follows the previous batch.
                found[at] = batch._replace(base_offset=after)
            if not after <= batch.base_offset <= batch.last_offset <= most:
                flaw = present(self._misplaced(batch, after), "the flaw of a batch")
                # If two batches overlap, either can be the wrong one.
                both = at > 0 and batch.base_offset < after
                return found[: at - both], flaw._replace(beyond=batch.end) if both else flaw
            after = batch.last_offset + 1
        following = self._batch_at(end)
        if following is not None and following.base_offset < after:
            why = f"it ends at offset {after - 1}, and the next one begins at {following.base_offset}"
            return found[:-1], Flaw("not_in_order", why, following.end)
        return found, None

    def damage(self, position: int, least: int, flaw: Flaw) -> Damage:
        """Find the end of the damage that begins at a position."""
        after = self._next_valid(position, least, flaw.beyond)
        # A broker that stops while it writes leaves neither whole batches in a wrong order nor another file.
        unfinished = flaw.code != "not_in_order" and not flaw.of_file
        torn = after is None and self.segment.next_offset is None and unfinished
        return Damage(position, len(self.data) if after is None else after, torn)

    def flaws(self, batches: Sequence[Batch]) -> list[Flaw | None]:
        """Validate each batch as a whole, above all its checksum; errors of single records are not reported."""
        if not batches:
            return []
        column = pa.array([self.data[batch.position : batch.end] for batch in batches], pa.binary())
        # An error of a batch is reported for its first message.
        return [
            next((Flaw(error["code"], error["message"].removeprefix("message 0: "))
                  for error in errors or () if error["code"] in _BATCH_ERRORS), None)
            for errors in lha.validate(column, "record-batch").to_pylist()
        ]  # fmt: skip

    def error(self, position: int, offset: int, flaw: Flaw) -> DecodeError:
        """Return the error that names the file, the offset and the byte."""
        of = "" if flaw.of_file else f"the batch at offset {offset}: "
        message = f"{self.segment.path}: {of}{flaw.why}"
        return DecodeError(message, format="record-batch", code=flaw.code, byte_offset=position)

    def _batch_at(self, position: int) -> Batch | None:
        return next(iter(batches_of(self.data, position, 1)[0]), None)

    def _most(self) -> int:
        """Return the largest offset that the segment can have."""
        most = self.segment.base_offset + _MOST_OFFSETS
        return most if self.segment.next_offset is None else min(most, self.segment.next_offset - 1)

    def _misplaced(self, batch: Batch, least: int) -> Flaw | None:
        """Check the offsets of a batch against the previous batch and the segment."""
        most = self._most()
        if batch.base_offset < least:
            return Flaw("not_in_order", f"it begins at offset {batch.base_offset}, but the least possible is {least}")
        if not batch.base_offset <= batch.last_offset <= most:
            return Flaw("not_in_order", f"it ends at offset {batch.last_offset}, but the largest possible is {most}")
        return None

    def _flaw_at(self, position: int) -> Flaw:
        """Return the reason why no batch begins at a position."""
        left = len(self.data) - position
        if position == 0 and left <= _MAGIC_AT:
            why = f"not a log segment: its {counted(left, 'byte')} end before the magic byte of a batch"
            return Flaw("truncated", why, of_file=True)
        if position == 0 and not self._begins_as_a_batch():
            why = "not a log segment: it does not begin with a batch of magic 0, 1 or 2"
            return Flaw("bad_magic", why, of_file=True)
        if not any(any(self.data[at : at + _SEARCH_LEN]) for at in range(position, len(self.data), _SEARCH_LEN)):
            return Flaw("truncated", f"{counted(left, 'byte')} of zeros are left")
        if left < _FRAME_LEN:
            return Flaw("truncated", f"{counted(left, 'byte')} of a batch are left")
        length = int.from_bytes(self.data[position + 8 : position + _FRAME_LEN], "big", signed=True)
        if length > left - _FRAME_LEN:
            return Flaw("truncated", f"the batch takes {counted(length + _FRAME_LEN, 'byte')} and {left} are left")
        return Flaw("bad_magic", "no batch of magic 0, 1 or 2 begins here")

    def _begins_as_a_batch(self) -> bool:
        """Return whether the file can begin with a batch, even one that was not written to its end."""
        begin = self.data[: _MAGIC_AT + 1]
        if not any(begin):
            return True  # preallocated and never written
        offset = int.from_bytes(begin[:8], "big", signed=True)
        length = int.from_bytes(begin[8:_FRAME_LEN], "big", signed=True)
        return (
            0 <= offset - self.segment.base_offset <= _MOST_OFFSETS
            and length >= _LEAST_LEN - _FRAME_LEN
            and begin[_MAGIC_AT] <= 2
        )

    def _next_valid(self, position: int, least: int, beyond: int) -> int | None:
        """Return the position of the next batch that belongs there and has a valid checksum."""
        # The length of an invalid batch may still be right: its content is not searched then.
        batch = self._batch_at(position)
        after = beyond or (batch.end if batch is not None else 0)
        if after and self._is_valid(after, least):
            return after
        return next((at for at in self._candidates(max(position + 1, beyond)) if self._is_valid(at, least)), None)

    def _candidates(self, position: int) -> Iterator[int]:
        """Yield the positions at which a possible length and magic are where a batch has them."""
        while position < len(self.data) - _MAGIC_AT:
            window = np.frombuffer(self.data[position : position + _SEARCH_LEN + _MAGIC_AT], np.uint8)
            places = np.flatnonzero(window[_MAGIC_AT:] <= 2)
            lengths: Any = sum(window[places + 8 + byte].astype(np.int64) << 8 * (3 - byte) for byte in range(4))
            lengths += _FRAME_LEN
            fits = (lengths >= _LEAST_LEN) & (lengths <= len(self.data) - position - places)
            yield from (position + int(place) for place in places[fits])
            position += _SEARCH_LEN

    def _is_valid(self, position: int, least: int) -> bool:
        batch = self._batch_at(position) if position < len(self.data) else None
        return batch is not None and self._misplaced(batch, least) is None and self.flaws([batch]) == [None]
