"""One file of a log: concatenated messages.

::

    ┌──────────────┬────────────┬───────┬──────────────────────────────────────────────┬─ ─
    │ int64 offset │ int32 size │ crc32 │ magic, attributes, timestamp, key, … value   │ the next message
    └──────────────┴────────────┴───────┴──────────────────────────────────────────────┴─ ─
     ◀──────── frame ─────────▶ ◀───────────────── size bytes ────────────────────────▶

A file is a batch of ``kip82-messages``, ``kip82-messages-int`` or ``kip82-messages-wrapper``, and the core decodes its
messages. This module only follows the frames from message to message, and decides how to continue after damage. A
message may be a compressed set; its frame has the offset of its last message.

Notes for the next reader:

* The checksum covers neither offset nor size. Both are checked separately: offsets increase by one, or by more where
  compaction removed messages, and a message does not extend past the end of the file.
* A message with a valid checksum is never damage, even if it cannot be decoded here: it may have another header format, an
  unknown codec, or a size above the limits.
* After bytes that are not a message, the next message is searched for byte by byte, because the size may be wrong. A
  candidate counts only if its offset is plausible and its checksum is valid.
* A size in the file never causes an allocation beyond the size of the file: reads end at the end of the file.
* Time is proportional to the size of the file, whatever is damaged: overlapping candidates share their checksums, and
  chunks after damage start small.
"""

from __future__ import annotations

import os
import re
import struct
import threading
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from letterhead._durable_files import sync_directory
from letterhead.errors import Damage, DecodeError
from letterhead.kip82.checksums import Checksums
from letterhead.kip82.header_formats import BATCH_FORMATS, MESSAGE_FORMATS, HeaderFormat
from letterhead.kip82.versions import CODEC_BITS
from letterhead.message import Message
from letterhead.one_message import messages, validate

__all__ = ["SegmentFile", "StoredMessages", "segment_name"]

FRAME = struct.Struct(">qi")
MIN_SIZE = 14
"""Size of the smallest message, of magic 0: checksum, magic, attributes, and two lengths."""

MIN_BYTES = FRAME.size + MIN_SIZE
CRC_AT, MAGIC_AT, ATTRIBUTES_AT = 12, 16, 17
MAGICS = (0, 1, 2)

MAX_RATIO = 1032
"""Maximum compression ratio of all codecs: the ratio of deflate."""

CHUNK = 1 << 20
"""Bytes read at a time, unless a message is larger."""

SMALLEST_CHUNK = 1 << 12
"""Chunk size after damage, in bytes; it doubles with each clean chunk."""

INDEX_EVERY = 1 << 14
"""Minimum number of bytes between two index entries."""


def segment_name(base: int) -> str:
    """Return Kafka's name for a segment file with the given base offset."""
    return f"{base:020}.log"


class StoredMessages(NamedTuple):
    """Message or compressed set in a file, from ``position`` to ``end``.

    ``expected`` is the smallest possible offset of the first message, and ``offset`` is the offset of the last message.
    ``messages`` is empty if only frames were read.
    """

    expected: int
    offset: int
    position: int
    end: int
    data: bytes
    messages: tuple[Message, ...]

    @property
    def attributes(self) -> int:
        """Attributes of the message, or of the set."""
        return self.data[ATTRIBUTES_AT]

    @property
    def magic(self) -> int:
        """Message format."""
        return self.data[MAGIC_AT]


class SegmentFile:
    """Segment file of a log, with a sparse index of its messages.

    ``base`` is the offset of the first message before compaction; ``limit`` is the base of the next file, or None for
    the last file. With ``gaps``, compaction may have removed messages.
    """

    def __init__(self, directory: Path, base: int, header_format: HeaderFormat, limit: int | None, gaps: bool) -> None:
        self.path = directory / segment_name(base)
        self.base = base
        self.header_format = header_format
        self.limit = limit
        self.gaps = gaps
        # When the file is replaced, a new list is assigned, so that readers of the old file keep the old index.
        self._index = [(base, 0)]
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"<segment {self.path}>"

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self.path.stat().st_size

    def read(self, start: int | None = None, *, frames_only: bool = False) -> Iterator[StoredMessages | Damage]:
        """Yield messages in file order, and one :class:`Damage` for each run of bytes that are not a message.

        With ``frames_only``, messages are not decoded, so damage inside a message is not detected.
        """
        start = self.base if start is None else start
        with self._guard:
            opened, index = self.path.open("rb"), self._index
        with opened as file:
            reader = _SegmentReader(self, file.fileno(), index)
            expected, position = index[max(bisect_right(index, (start, 1 << 63)) - 1, 0)]
            if expected < start and not frames_only:
                expected, position = reader.skip(expected, position, start)
            for entry in reader.read(expected, position, frames_only):
                if isinstance(entry, StoredMessages):
                    _note(index, entry.expected, entry.position)
                    if entry.offset < start:
                        continue
                yield entry

    def note(self, expected: int, position: int) -> None:
        """Add an appended message to the index, if it is far enough from the last entry."""
        _note(self._index, expected, position)

    def replace(self, path: Path) -> None:
        """Replace the file by another one."""
        self.drop_kafka_indexes()
        with self._guard:
            os.replace(path, self.path)
            self._index = [(self.base, 0)]

    def drop_kafka_indexes(self) -> None:
        """Delete Kafka's index files of the segment, because they are wrong for the changed file."""
        indexes = [path for suffix in (".index", ".timeindex") if (path := self.path.with_suffix(suffix)).exists()]
        for path in indexes:
            path.unlink(missing_ok=True)
        if indexes:
            sync_directory(self.path.parent)

    def fits(self, stored: StoredMessages) -> bool:
        """Return whether the checksum is valid and, for a compressed set, whether it begins with the expected offset."""
        if not _has_valid_checksum(stored.data):
            return False
        return self.gaps or first_offset(stored.data, self.header_format) in (None, stored.expected)

    def has_whole_message(self, damage: Damage) -> bool:
        """Return whether damaged bytes contain a message with a valid checksum but a wrong offset."""
        with self.path.open("rb") as file:
            reader = _SegmentReader(self, file.fileno(), self._index)
            position = damage.position
            while position < damage.end:
                if reader.message_at(position) is not None:
                    return True
                frame = os.pread(file.fileno(), FRAME.size, position)
                if len(frame) < FRAME.size:
                    return False
                position += FRAME.size + max(FRAME.unpack(frame)[1], 0)
        return False

    def is_truncated(self, damage: Damage) -> bool:
        """Return whether damage at the end of the file is an interrupted append: part of a message, or zeros."""
        with self.path.open("rb") as file:
            file.seek(damage.position)
            rest = file.read()
        if not rest.strip(b"\0"):
            return True
        lowest, highest = (int.from_bytes(rest[:8].ljust(8, fill), "big") for fill in (b"\0", b"\xff"))
        # The offset of a single message is known, but not the offset of a compressed set or after a gap.
        is_single = len(rest) > ATTRIBUTES_AT and not rest[ATTRIBUTES_AT] & CODEC_BITS
        limit = damage.offset if is_single and not self.gaps else (1 << 63) - 1
        if not (lowest <= limit and damage.offset <= highest) or rest[MAGIC_AT : MAGIC_AT + 1] > b"\2":
            return False
        if len(rest) < FRAME.size:
            return True
        size = FRAME.unpack_from(rest)[1]
        if size <= len(rest) - FRAME.size:
            return False
        # With a valid checksum, only the size is wrong, which an interrupted append cannot cause.
        return not _has_valid_checksum(rest)


class _Run(NamedTuple):
    """Consecutive valid frames, and the error of the bytes after them."""

    frames: list[tuple[int, int, int]]
    code: str
    reason: str


class _SegmentReader:
    """Reader of a segment's messages through a file descriptor."""

    checksums: Checksums | None = None
    """Checksums of the bytes after damage, where a message may begin at any byte."""

    def __init__(self, segment: SegmentFile, descriptor: int, index: list[tuple[int, int]]) -> None:
        self.segment = segment
        self.descriptor = descriptor
        self.index = index
        self.size = os.fstat(descriptor).st_size

    def read(self, expected: int, position: int, frames_only: bool) -> Iterator[StoredMessages | Damage]:
        """Read from the position of a message; ``expected`` is the smallest possible offset of the first message."""
        chunk_size = read_size = CHUNK
        while position < self.size:
            chunk = os.pread(self.descriptor, read_size, position)
            run = self.run(chunk, expected, position)
            if not run.frames and not run.reason:
                # A message is larger than the chunk, but not larger than the file.
                read_size = FRAME.size + FRAME.unpack_from(chunk)[1]
                continue
            read_size = chunk_size = min(2 * chunk_size, CHUNK)
            code, reason = run.code, run.reason
            decoded = iter(() if frames_only else self.decode(chunk, run, position))
            after = None
            for offset, begin, end in run.frames:
                data = chunk[begin - position : end - position]
                decoded_messages: tuple[Message, ...] = ()
                if not frames_only:
                    try:
                        decoded_messages = next(decoded)
                    except DecodeError:
                        code, reason = self.error_in(data)
                    else:
                        code = "out_of_range"
                        is_set = data[ATTRIBUTES_AT] & CODEC_BITS
                        reason = self.offsets_error(decoded_messages, expected, offset) if is_set else ""
                    if reason:
                        # A valid checksum confirms the size, because the size determines the covered bytes.
                        after = end if _has_valid_checksum(data) else None
                        break
                yield StoredMessages(expected, offset, begin, end, data, decoded_messages)
                expected = offset + 1
            else:
                begin = run.frames[-1][2] if run.frames else position
            if not reason:
                position = begin
                continue
            read_size = chunk_size = SMALLEST_CHUNK
            position = after or self.next_whole(begin, expected)
            yield Damage(str(self.segment.path), begin, position, expected, reason, code)
            # Get the number of missing messages from the offset of the next message.
            following = self.message_at(position)
            if following is not None:
                first = first_offset(following, self.segment.header_format)
                expected = int.from_bytes(following[:8], "big") if first is None else first
            elif after:
                expected = offset + 1

    def skip(self, expected: int, position: int, start: int) -> tuple[int, int]:
        """Follow valid frames up to an offset, and return the expected offset and the position of the next frame."""
        while position < self.size:
            chunk = os.pread(self.descriptor, CHUNK, position)
            run = self.run(chunk, expected, position)
            for offset, begin, end in run.frames:
                if offset >= start:
                    return expected, position
                _note(self.index, expected, begin)
                expected, position = offset + 1, end
            if run.reason or not run.frames:
                break
        return expected, position

    def run(self, chunk: bytes, expected: int, position: int) -> _Run:
        """Return the frames in a chunk, up to the first frame that is invalid or extends past the chunk."""
        frames: list[tuple[int, int, int]] = []
        at = 0
        while at < len(chunk):
            left = self.size - position - at
            if left < FRAME.size:
                return _Run(frames, "truncated", "the file ends inside the offset or the size of a message")
            if len(chunk) - at < FRAME.size:
                break
            if len(chunk) - at < MIN_BYTES and left >= MIN_BYTES:
                break
            offset, size = FRAME.unpack_from(chunk, at)
            is_set = left < MIN_BYTES or bool(chunk[at + ATTRIBUTES_AT] & CODEC_BITS)
            error = self.frame_error(offset, size, expected, left, is_set)
            if error is not None:
                return _Run(frames, *error)
            end = at + FRAME.size + size
            if end > len(chunk):
                break
            frames.append((offset, position + at, position + end))
            expected, at = offset + 1, end
        return _Run(frames, "", "")

    def frame_error(self, offset: int, size: int, expected: int, left: int, is_set: bool) -> tuple[str, str] | None:
        """Return the error code and message for an invalid frame, or None for a valid one."""
        limit = self.segment.limit
        if (self.segment.gaps or is_set) and offset != expected:
            if offset < expected or (limit is not None and offset >= limit):
                upper = "" if limit is None else f" and below {limit}"
                return "out_of_range", f"the offset is {offset}, and must be {expected} or more{upper}"
        elif offset != expected:
            return "out_of_range", f"the offset is {offset}, and the next one is {expected}"
        if size < MIN_SIZE:
            return "negative_length" if size < 0 else "truncated", f"a size of {size} bytes is too small for a message"
        if size > left - FRAME.size:
            return "truncated", f"the message has {size} bytes, and {left - FRAME.size} are left in the file"
        return None

    def decode(self, chunk: bytes, run: _Run, position: int) -> Iterator[tuple[Message, ...]]:
        """Decode the messages of a run: single messages together, and each compressed set separately."""

        def is_set(frame: tuple[int, int, int]) -> bool:
            return bool(chunk[frame[1] - position + ATTRIBUTES_AT] & CODEC_BITS)

        batch_format = BATCH_FORMATS[self.segment.header_format]
        for sets, group in groupby(run.frames, is_set):
            frames = list(group)
            if sets:
                for _, begin, end in frames:
                    yield tuple(messages(chunk[begin - position : end - position], batch_format))
            else:
                for message in messages(chunk[frames[0][1] - position : frames[-1][2] - position], batch_format):
                    yield (message,)

    def offsets_error(self, messages: tuple[Message, ...], expected: int, last: int) -> str:
        """Return the error message for wrong offsets in a compressed set, or an empty string."""
        offsets = [message.offset for message in messages]
        if not messages or any(after <= before for before, after in pairwise(offsets)) or offsets[-1] > last:
            return f"the offsets in a compressed set do not increase up to its own, {last}"
        if offsets[-1] < last and not self.segment.gaps:
            return f"a compressed set ends with offset {offsets[-1]}, and its own is {last}"
        if offsets[0] < expected or (offsets[0] > expected and not self.segment.gaps):
            return f"a compressed set begins with offset {offsets[0]}, and the next one is {expected}"
        return ""

    def error_in(self, data: bytes) -> tuple[str, str]:
        """Return the error code and message for a damaged message."""
        header_format = self.segment.header_format
        # The batch format also decompresses a set, and finds errors in its messages.
        error, *_ = validate(data, MESSAGE_FORMATS[header_format]) or validate(data, BATCH_FORMATS[header_format])
        byte = "" if error.byte_offset is None else f" (byte {error.byte_offset} of the message)"
        return error.code, f"{error.message}{byte}"

    def next_whole(self, begin: int, expected: int) -> int:
        """Return the position of the next complete message after a damaged one, or the end of the file."""
        following = self.search(begin, expected)
        frame = os.pread(self.descriptor, FRAME.size, begin)
        if len(frame) < FRAME.size:
            return following
        # A value may contain messages. So the first message found is the next one only if the bytes before it have a
        # valid checksum. Otherwise the size is assumed to be right if a complete message follows at the end it implies.
        end: int = begin + FRAME.size + FRAME.unpack(frame)[1]
        if following < self.size and _has_valid_checksum(os.pread(self.descriptor, following - begin, begin)):
            return following
        if end == self.size or (begin < end < self.size and self.has_fitting_message(end, begin, expected)):
            return end
        return following

    def search(self, begin: int, expected: int) -> int:
        """Return the position of the first complete message after damaged bytes, or the end of the file."""
        position = begin + 1
        highest = self.highest(expected, self.size - begin)
        if not self.segment.gaps:
            # A compressed set has the offset of its last message, which may be much higher.
            highest += (self.size - begin) * MAX_RATIO // MIN_BYTES
        pattern = _frames_like(expected, min(highest, (1 << 63) - 1))
        size = SMALLEST_CHUNK
        while position < self.size:
            window = os.pread(self.descriptor, size, position)
            for candidate in pattern.finditer(window):
                if self.has_fitting_message(position + candidate.start(), begin, expected):
                    return position + candidate.start()
            if len(window) < size:
                break
            position += size - MAGIC_AT  # the next window contains the whole frame
            size = min(2 * size, CHUNK)
        return self.size

    def has_fitting_message(self, position: int, begin: int, expected: int) -> bool:
        """Return whether there is a complete message with a plausible offset at a position."""
        data = self.message_at(position)
        if data is None or int.from_bytes(data[:8], "big", signed=True) < expected:
            return False
        first = first_offset(data, self.segment.header_format)
        return first is None or expected <= first <= self.highest(expected, position - begin)

    def message_at(self, position: int) -> bytes | None:
        """Return the bytes of the message at a position, or ``None`` if there is no message with a valid checksum."""
        head = os.pread(self.descriptor, MAGIC_AT + 1, position)
        if len(head) <= MAGIC_AT or head[MAGIC_AT] not in MAGICS:
            return None
        size = FRAME.unpack_from(head)[1]
        if not MIN_SIZE <= size <= self.size - position - FRAME.size:
            return None
        end = position + FRAME.size + size
        if size > SMALLEST_CHUNK:
            if self.checksums is None or position < self.checksums.begin:
                self.checksums = Checksums(self.descriptor, position)
            if self.checksums.part(position + MAGIC_AT, end) != int.from_bytes(head[CRC_AT:MAGIC_AT], "big"):
                return None
        data = os.pread(self.descriptor, end - position, position)
        return data if _has_valid_checksum(data) else None

    def highest(self, expected: int, between: int) -> int:
        """Return the largest possible offset of a message that follows ``between`` damaged bytes."""
        if self.segment.gaps:
            return (self.segment.limit or 1 << 63) - 1
        return expected + between * MAX_RATIO // MIN_BYTES + 1


def first_offset(data: bytes, header_format: HeaderFormat) -> int | None:
    """Return the offset of a message, or of the first message of a compressed set; ``None`` if it cannot be decoded."""
    if not data[ATTRIBUTES_AT] & CODEC_BITS:
        return int.from_bytes(data[:8], "big", signed=True)
    try:
        for message in messages(data, BATCH_FORMATS[header_format]):
            return int(message.offset)
    except DecodeError:
        pass
    return None


def _note(index: list[tuple[int, int]], expected: int, position: int) -> None:
    """Add the smallest offset and the position of a message to the index, if it is far enough from the last entry."""
    if position >= index[-1][1] + INDEX_EVERY:
        index.append((expected, position))


def _has_valid_checksum(data: bytes) -> bool:
    """Return whether the checksum of a message is valid, regardless of its offset and size."""
    if len(data) < MIN_BYTES or data[MAGIC_AT] not in MAGICS:
        return False
    return zlib.crc32(data[MAGIC_AT:]) == int.from_bytes(data[CRC_AT:MAGIC_AT], "big")


def _frames_like(low: int, high: int) -> re.Pattern[bytes]:
    """Return a pattern for frames with an offset in a range, based on the common leading bytes of these offsets."""
    lowest, highest = low.to_bytes(8, "big"), high.to_bytes(8, "big")
    same = next(count for count in range(8, -1, -1) if lowest[:count] == highest[:count])
    # Use a lookahead, because candidates may overlap.
    pattern = b"(?=%b.{%d}[\x00-\x7f].{7}[\x00-\x02])" % (re.escape(lowest[:same]), 8 - same)
    return re.compile(pattern, re.DOTALL)
