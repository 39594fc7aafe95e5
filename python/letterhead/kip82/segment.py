"""One file of a log: messages one after another, as the layout has them, and nothing else.

::

    ┌──────────────┬────────────┬───────┬──────────────────────────────────────────────┬─ ─
    │ int64 offset │ int32 size │ crc32 │ magic, attributes, timestamp, key, … value   │ the next message
    └──────────────┴────────────┴───────┴──────────────────────────────────────────────┴─ ─
     ◀──────── frame ─────────▶ ◀───────────────── size bytes ────────────────────────▶

So a file is a cell of ``kip82-messages``, ``kip82-messages-int`` or ``kip82-messages-wrapper``: the native module reads the
messages. Here stand only the frames, which say where a message ends, and what to do where one does not hold.

Notes for the next reader:

* The checksum covers neither offset nor size. Both are held against what is known: offsets go up by one, and where
  compaction took messages away, they go up; a message does not go past the end of the file.
* After bytes that are no message the next one is looked for byte by byte: the size may be what is wrong. A message is only
  believed there if its offset fits and its checksum holds.
* Nothing is allocated by a size: reads end where the file does.
"""

from __future__ import annotations

import os
import re
import struct
import threading
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from letterhead.envelope import Envelope
from letterhead.errors import DecodeError
from letterhead.kip82.layouts import MESSAGES, SETS, Layout
from letterhead.kip82.log_errors import Damage
from letterhead.message import messages, validate

__all__ = ["Segment", "Stored", "name_of"]

FRAME = struct.Struct(">qi")
LEAST_SIZE = 22
"""Of a message: checksum, magic, attributes, timestamp, and two lengths."""

LEAST = FRAME.size + LEAST_SIZE
MAGIC_AT, MAGIC = 16, 2
CODEC_AT, CODEC_BITS = 17, 0x07

CHUNK = 1 << 20
"""Bytes read at a time, unless a message is larger."""

INDEX_EVERY = 1 << 14
"""Bytes between two entries of the index."""


def name_of(base: int) -> str:
    """Give the name of the file whose first offset is this, as Kafka names it."""
    return f"{base:020}.log"


class Stored(NamedTuple):
    """A message in a file.

    Attributes
    ----------
    offset : int
        Its offset.
    position, end : int
        Its first byte, and the one after its last.
    data : bytes
        Its bytes.
    message : Envelope or None
        What it says; ``None`` where only frames were looked at.
    """

    offset: int
    position: int
    end: int
    data: bytes
    message: Envelope | None


class Segment:
    """A file of a log, and where messages are in it.

    Parameters
    ----------
    directory : Path
        Where it is.
    base : int
        The offset that its first message has, or had before compaction.
    layout : {"typed", "int", "wrapper"}
        Layout of its messages.
    limit : int or None
        The offset that the next file begins with; ``None`` for the last file.
    gaps : bool
        Whether compaction may have taken messages away.
    """

    def __init__(self, directory: Path, base: int, layout: Layout, limit: int | None, gaps: bool) -> None:
        self.path = directory / name_of(base)
        self.base = base
        self.layout = layout
        self.limit = limit
        self.gaps = gaps
        # A list that is replaced, not emptied, when the file is: who reads the old file goes on with the old one.
        self._index = [(base, 0)]
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"<segment {self.path}>"

    def size(self) -> int:
        """Give the size of the file in bytes."""
        return self.path.stat().st_size

    def read(self, start: int | None = None, *, frames_only: bool = False) -> Iterator[Stored | Damage]:
        """Read messages, and what is none, in the order of the file.

        Parameters
        ----------
        start : int, optional
            Offset of the first message that is wanted.
        frames_only : bool, default False
            Do not open the messages. What is wrong inside of one does not show then.

        Yields
        ------
        Stored or Damage
            The messages; for all bytes that are no message one damage. The end of the file closes the iterator.
        """
        start = self.base if start is None else start
        with self._guard:
            opened, index = self.path.open("rb"), self._index
        with opened as file:
            reader = _Reader(self, file.fileno(), index)
            expected, position = index[max(bisect_right(index, (start, 1 << 63)) - 1, 0)]
            if expected < start and not frames_only:
                expected, position = reader.skip(expected, position, start)
            for found in reader.read(expected, position, frames_only):
                if isinstance(found, Stored):
                    _note(index, found.offset, found.position)
                    if found.offset < start:
                        continue
                yield found

    def note(self, offset: int, position: int) -> None:
        """Remember where a message begins that was appended."""
        _note(self._index, offset, position)

    def replace(self, path: Path) -> None:
        """Put another file in the place of this one."""
        with self._guard:
            os.replace(path, self.path)
            self._index = [(self.base, 0)]

    def torn(self, damage: Damage) -> bool:
        """Say whether damage at the end of the file is what a crash leaves of an append: a part of one message, or zeros.

        Parameters
        ----------
        damage : Damage
            Up to the end of the file.

        Returns
        -------
        bool
            False where it may have been a whole message once, and bits of it changed.
        """
        with self.path.open("rb") as file:
            file.seek(damage.position)
            rest = file.read()
        if not rest.strip(b"\0"):
            return True
        begun = rest[: FRAME.size]
        if not damage.offset.to_bytes(8, "big").startswith(begun[:8]):
            return False
        if len(begun) < FRAME.size:
            return True
        size = FRAME.unpack(begun)[1]
        there = len(rest) - FRAME.size
        if size <= there:
            return False
        # Where all of it is there but for a size that says more, the size is what changed.
        return not _whole_with_size_of(rest, self.layout)


class _Run(NamedTuple):
    """Frames one after another that fit, and what is wrong with the bytes after them."""

    frames: list[tuple[int, int, int]]
    code: str
    reason: str


class _Reader:
    """The bytes of a segment, by its file descriptor."""

    def __init__(self, segment: Segment, descriptor: int, index: list[tuple[int, int]]) -> None:
        self.segment = segment
        self.descriptor = descriptor
        self.index = index
        self.size = os.fstat(descriptor).st_size

    def read(self, expected: int, position: int, frames_only: bool) -> Iterator[Stored | Damage]:
        """Read from a position on, where the message with an offset is expected."""
        want = CHUNK
        while position < self.size:
            chunk = os.pread(self.descriptor, want, position)
            run = self.run(chunk, expected, position)
            if not run.frames and not run.reason:
                # A message that is larger than what was read, and not larger than the file.
                want = FRAME.size + FRAME.unpack_from(chunk)[1]
                continue
            want = CHUNK
            code, reason = run.code, run.reason
            opened = iter(() if frames_only else self.opened(chunk, run))
            for offset, begin, end in run.frames:
                data = chunk[begin - position : end - position]
                message = None
                if not frames_only:
                    try:
                        message = next(opened)
                    except DecodeError:
                        code, reason = self.why(data)
                        break
                yield Stored(offset, begin, end, data, message)
                expected = offset + 1
            else:
                begin = run.frames[-1][2] if run.frames else position
            if not reason:
                position = begin
                continue
            position = self.next_whole(begin, expected)
            yield Damage(str(self.segment.path), begin, position, expected, reason, code)
            # How many are missing is not known: the next one says.
            if position < self.size:
                expected = int.from_bytes(os.pread(self.descriptor, 8, position), "big")

    def skip(self, expected: int, position: int, start: int) -> tuple[int, int]:
        """Go from frame to frame up to an offset, as far as they fit; give the message that is then expected, and where."""
        while position < self.size:
            chunk = os.pread(self.descriptor, CHUNK, position)
            run = self.run(chunk, expected, position)
            for offset, begin, end in run.frames:
                if offset >= start:
                    return expected, position
                _note(self.index, offset, begin)
                expected, position = offset + 1, end
            if run.reason or not run.frames:
                break
        return expected, position

    def run(self, chunk: bytes, expected: int, position: int) -> _Run:
        """Find the frames in a chunk, up to one that does not fit or is not there as a whole."""
        frames: list[tuple[int, int, int]] = []
        at = 0
        while at < len(chunk):
            left = self.size - position - at
            if left < FRAME.size:
                return _Run(frames, "truncated", "the file ends inside the offset or the size of a message")
            if len(chunk) - at < FRAME.size:
                break
            offset, size = FRAME.unpack_from(chunk, at)
            fault = self.fault(offset, size, expected, left)
            if fault is not None:
                return _Run(frames, *fault)
            end = at + FRAME.size + size
            if end > len(chunk):
                break
            if chunk[at + CODEC_AT] & CODEC_BITS:
                return _Run(frames, "bad_attributes", "a compressed set, where there are only single messages")
            frames.append((offset, position + at, position + end))
            expected, at = offset + 1, end
        return _Run(frames, "", "")

    def fault(self, offset: int, size: int, expected: int, left: int) -> tuple[str, str] | None:
        """Say what is wrong with a frame."""
        limit = self.segment.limit
        if self.segment.gaps and offset != expected:
            if offset < expected or (limit is not None and offset >= limit):
                upper = "" if limit is None else f" and below {limit}"
                return "out_of_range", f"the offset is {offset}, and it must be {expected} or more{upper}"
        elif offset != expected:
            return "out_of_range", f"the offset is {offset} where {expected} comes next"
        if size < LEAST_SIZE:
            return "negative_length" if size < 0 else "truncated", f"a size of {size} bytes is too small for a message"
        if size > left - FRAME.size:
            return "truncated", f"the message has {size} bytes, and {left - FRAME.size} are left in the file"
        return None

    def opened(self, chunk: bytes, run: _Run) -> Iterator[Envelope]:
        """Open the messages of a run."""
        if not run.frames:
            return iter(())
        begin, end = run.frames[0][1], run.frames[-1][2]
        return messages(chunk[: end - begin], SETS[self.segment.layout])

    def why(self, data: bytes) -> tuple[str, str]:
        """Say what is wrong with a message."""
        faults = validate(data, MESSAGES[self.segment.layout])
        place = "" if faults[0].offset is None else f" (byte {faults[0].offset} of the message)"
        return faults[0].code, f"{faults[0].message}{place}"

    def next_whole(self, begin: int, expected: int) -> int:
        """Find where the next whole message begins after one that is none; the end of the file if there is no more."""
        found = self.search(begin, expected)
        frame = os.pread(self.descriptor, FRAME.size, begin)
        if len(frame) < FRAME.size:
            return found
        # A value may hold messages of its own, so what is found first is right only if the message before it is whole but
        # for its size; otherwise the size is right, if a message stands where it says.
        end: int = begin + FRAME.size + FRAME.unpack(frame)[1]
        if found < self.size and self.is_but_for_its_size(begin, found):
            return found
        if end == self.size or (begin < end < self.size and self.is_whole(end, begin, expected)):
            return end
        return found

    def search(self, begin: int, expected: int) -> int:
        """Find the first place where a whole message stands."""
        position = begin + 1
        pattern = _frames_like(expected, self.highest(expected, self.size - begin))
        while position < self.size:
            window = os.pread(self.descriptor, CHUNK, position)
            for candidate in pattern.finditer(window):
                if self.is_whole(position + candidate.start(), begin, expected):
                    return position + candidate.start()
            if len(window) < CHUNK:
                break
            position += CHUNK - CODEC_AT  # a frame that the window cuts lies in the next one as a whole
        return self.size

    def is_whole(self, position: int, begin: int, expected: int) -> bool:
        """Say whether a message that fits stands at a position."""
        frame = os.pread(self.descriptor, FRAME.size, position)
        if len(frame) < FRAME.size:
            return False
        offset, size = FRAME.unpack(frame)
        if not expected <= offset <= self.highest(expected, position - begin):
            return False
        if not LEAST_SIZE <= size <= self.size - position - FRAME.size:
            return False
        return not validate(os.pread(self.descriptor, FRAME.size + size, position), MESSAGES[self.segment.layout])

    def is_but_for_its_size(self, begin: int, end: int) -> bool:
        """Say whether a message would be whole if its size said that it ends where it does."""
        data = os.pread(self.descriptor, end - begin, begin)
        return _whole_with_size_of(data, self.segment.layout)

    def highest(self, expected: int, between: int) -> int:
        """Give the highest offset that a message can have after some bytes that are none."""
        if self.segment.gaps:
            return (self.segment.limit or 1 << 63) - 1
        return expected + between // LEAST + 1


def _note(index: list[tuple[int, int]], offset: int, position: int) -> None:
    """Remember where a message begins, now and then."""
    if position >= index[-1][1] + INDEX_EVERY:
        index.append((offset, position))


def _whole_with_size_of(data: bytes, layout: Layout) -> bool:
    """Say whether bytes are a message, whatever size stands in them."""
    if len(data) < LEAST:
        return False
    sized = data[:8] + (len(data) - FRAME.size).to_bytes(4, "big") + data[FRAME.size :]
    return not validate(sized, MESSAGES[layout])


def _frames_like(low: int, high: int) -> re.Pattern[bytes]:
    """Make a pattern for frames with an offset in a range: it looks at what all of these have in common."""
    lowest, highest = low.to_bytes(8, "big"), high.to_bytes(8, "big")
    same = next(count for count in range(8, -1, -1) if lowest[:count] == highest[:count])
    # A lookahead, as one candidate may begin inside another.
    pattern = b"(?=%b.{%d}[\x00-\x7f].{7}%b)" % (re.escape(lowest[:same]), 8 - same, re.escape(bytes([MAGIC])))
    return re.compile(pattern, re.DOTALL)
