"""The batches of one segment: which of them are whole, in their order, and where to go on after one that is not."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from letterhead import arrow as lha
from letterhead.errors import DecodeError, counted
from letterhead.read.log_directory import Segment
from letterhead.read.record_sets import Batch, batches_of

__all__ = ["Damage", "Flaw", "SegmentFile"]

PIECE_LEN = 4 << 20
"""Bytes of batches that are looked at together: what comes out of their codecs is held at one time."""

_FRAME_LEN = 12
_MAGIC_AT = 16
_LEAST_LEN = 26
"""Bytes of a message of magic 0 that has neither key nor value: no batch takes less."""

_CODEC_BITS = 0x07

_MOST_OFFSETS = (1 << 31) - 1
"""A segment holds no more of them: its index has no place for others."""

_SEARCH_LEN = 1 << 20

_FRAMING = ("bad_crc", "bad_magic", "wrong_size")
"""What is wrong with a batch as a whole; any other fault is one of a record."""


class Flaw(NamedTuple):
    """What is wrong with a batch as a whole.

    Attributes
    ----------
    code, why : str
        In a word and in words.
    beyond : int, optional
        Nothing before this byte can be believed, either.
    of_file : bool, default False
        The file is no segment at all.
    """

    code: str
    why: str
    beyond: int = 0
    of_file: bool = False


class Damage(NamedTuple):
    """Bytes that are no batch, or not the one that belongs there.

    Attributes
    ----------
    position, end : int
        Where they are in the file.
    torn : bool
        They are the end of the log, as a broker leaves it that stopped while it wrote.
    """

    position: int
    end: int
    torn: bool


class SegmentFile:
    """A segment that is mapped into memory.

    Parameters
    ----------
    segment : Segment
        Which one. What a broker appends after this is not seen.

    Attributes
    ----------
    data : mmap or bytes
        All of it.
    """

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        with segment.path.open("rb") as file:
            # An empty file cannot be mapped.
            empty = file.seek(0, 2) == 0
            self.data: Any = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def batches(self, position: int, least: int) -> tuple[list[Batch], Flaw | None]:
        """Give some batches that look whole by their headers.

        Parameters
        ----------
        position : int
            Byte where the first one begins.
        least : int
            No offset can be before this one.

        Returns
        -------
        batches : list of Batch
            At most a few MiB, and no more than a single one where that is larger.
        flaw : Flaw or None
            What is wrong with what comes after them.
        """
        found, end = batches_of(self.data, position, PIECE_LEN)
        if not found:
            return [], self._why_none(end)
        after = least
        for at, batch in enumerate(found):
            if batch.magic < 2 and batch.attributes & _CODEC_BITS and batch.base_offset >= after:
                # A compressed set says where it ends: it begins somewhere behind what was before it.
                found[at] = batch._replace(base_offset=after)
            flaw = self._misfit(batch, after)
            if flaw is not None:
                # Either of two that overlap may be the wrong one.
                both = at > 0 and batch.base_offset < after
                return found[: at - both], flaw._replace(beyond=batch.position + batch.size) if both else flaw
            after = batch.last_offset + 1
        following = batches_of(self.data, end, 1)[0][:1]
        if following and following[0].base_offset < after:
            why = f"it ends at offset {after - 1}, and the next one begins at {following[0].base_offset}"
            return found[:-1], Flaw("not_in_order", why, following[0].position + following[0].size)
        return found, None

    def damage(self, position: int, least: int, flaw: Flaw) -> Damage:
        """Say how far the bytes from a position on cannot be believed."""
        after = self._next_sound(position, least, flaw.beyond)
        # Whole batches in a wrong order are not what a broker leaves, and neither is another file.
        left_so = flaw.code != "not_in_order" and not flaw.of_file
        torn = after is None and self.segment.next_offset is None and left_so
        return Damage(position, len(self.data) if after is None else after, torn)

    def flaws(self, batches: Sequence[Batch]) -> list[Flaw | None]:
        """Say what is wrong with each batch as a whole, its checksum above all; of its records nothing is said."""
        cells = [self.data[batch.position : batch.position + batch.size] for batch in batches]
        # Messages are counted from the batch: what is wrong with it is wrong with the first.
        return [
            next((Flaw(fault["code"], fault["message"].removeprefix("message 0: "))
                  for fault in faults or () if fault["code"] in _FRAMING), None)
            for faults in lha.validate(pa.array(cells, pa.binary()), "record-batch").to_pylist()
        ]  # fmt: skip

    def _misfit(self, batch: Batch, least: int) -> Flaw | None:
        """Say why a batch cannot stand where it stands."""
        most = self.segment.base_offset + _MOST_OFFSETS
        if self.segment.next_offset is not None:
            most = min(most, self.segment.next_offset - 1)
        if batch.base_offset < least:
            return Flaw(
                "not_in_order", f"it begins at offset {batch.base_offset}, and {least} is the least there can be"
            )
        if not batch.base_offset <= batch.last_offset <= most:
            return Flaw("not_in_order", f"it ends at offset {batch.last_offset}, and {most} is the most there can be")
        return None

    def _why_none(self, position: int) -> Flaw:
        """Say why no batch begins at a position."""
        left = len(self.data) - position
        if position == 0 and left <= _MAGIC_AT:
            why = f"not a log segment: its {counted(left, 'byte')} end before the magic byte of a batch"
            return Flaw("truncated", why, of_file=True)
        if position == 0 and not self._begins_as_a_batch():
            return Flaw("bad_magic", "no log segment: its first bytes are no batch of magic 0, 1 or 2", of_file=True)
        if not self._has_more_than_zeros(position):
            return Flaw("truncated", f"{counted(left, 'byte')} of zeros are left")
        if left < _FRAME_LEN:
            return Flaw("truncated", f"{counted(left, 'byte')} of a batch are left")
        length = int.from_bytes(self.data[position + 8 : position + _FRAME_LEN], "big", signed=True)
        if length > left - _FRAME_LEN:
            return Flaw("truncated", f"the batch takes {counted(length + _FRAME_LEN, 'byte')} and {left} are left")
        return Flaw("bad_magic", "no batch of magic 0, 1 or 2 begins here")

    def _begins_as_a_batch(self) -> bool:
        """Say whether the file may begin with a batch, be it one of which not all was written."""
        begin = self.data[: _MAGIC_AT + 1]
        if not any(begin):
            return True  # room that was made and never written to
        offset = int.from_bytes(begin[:8], "big", signed=True)
        length = int.from_bytes(begin[8:_FRAME_LEN], "big", signed=True)
        return (
            0 <= offset - self.segment.base_offset <= _MOST_OFFSETS
            and length >= _LEAST_LEN - _FRAME_LEN
            and begin[_MAGIC_AT] <= 2
        )

    def _has_more_than_zeros(self, position: int) -> bool:
        while position < len(self.data):
            if any(self.data[position : position + _SEARCH_LEN]):
                return True
            position += _SEARCH_LEN
        return False

    def _next_sound(self, position: int, least: int, beyond: int) -> int | None:
        """Find the next batch that belongs there and whose checksum holds."""
        # The batch that is wrong may say all the same how long it is: what is in it is not looked into then.
        whole = batches_of(self.data, position, 1)[0][:1]
        after = beyond or (whole[0].position + whole[0].size if whole else 0)
        if after and self._is_sound(after, least):
            return after
        return next((at for at in self._candidates(max(position + 1, beyond)) if self._is_sound(at, least)), None)

    def _candidates(self, position: int) -> Iterator[int]:
        """Give the places that have a magic, behind a length that could be, where a batch would have them."""
        while position < len(self.data) - _MAGIC_AT:
            window = np.frombuffer(self.data[position : position + _SEARCH_LEN + _MAGIC_AT], np.uint8)
            places = np.flatnonzero(window[_MAGIC_AT:] <= 2)
            lengths: Any = sum(window[places + 8 + byte].astype(np.int64) << 8 * (3 - byte) for byte in range(4))
            lengths += _FRAME_LEN
            fits = (lengths >= _LEAST_LEN) & (lengths <= len(self.data) - position - places)
            yield from (position + int(place) for place in places[fits])
            position += _SEARCH_LEN

    def _is_sound(self, position: int, least: int) -> bool:
        found = batches_of(self.data, position, 1)[0][:1] if position < len(self.data) else []
        return bool(found) and self._misfit(found[0], least) is None and self.flaws(found) == [None]

    def error(self, position: int, offset: int, flaw: Flaw) -> DecodeError:
        """Make the error that names the file, the offset and the place."""
        of = "" if flaw.of_file else f"the batch at offset {offset}: "
        message = f"{self.segment.path}: {of}{flaw.why}"
        return DecodeError(message, format="record-batch", code=flaw.code, byte_offset=position)
