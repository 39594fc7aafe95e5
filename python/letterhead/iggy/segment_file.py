"""Batches in a segment file of Iggy: :class:`IggySegmentFile`."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from letterhead._formatting import count_noun
from letterhead.errors import without_message_number
from letterhead.iggy.batch_header import (
    BATCH_HEADER_LEN,
    BATCH_LENGTH_AT,
    FIRST_MESSAGE_LEN,
    FRAME,
    MIN_BATCH_LEN,
    IggyBatchHeader,
)
from letterhead.iggy.rows import topic_in_errors
from letterhead.kafka.indexes import index_entries
from letterhead.offsets.damage import BatchError
from letterhead.offsets.segment_file import SegmentFile

__all__ = ["BatchRange", "IggySegment", "IggySegmentFile", "batch_ranges", "error_of_batch"]

MAX_OFFSETS = (1 << 32) - 1
"""Maximum number of offsets in a segment; this many messages would take at least 200 GB."""

_LENGTH_END = BATCH_LENGTH_AT + 8
_CHECKSUM_AT = _LENGTH_END
_COUNT_AT = 48


class IggySegment(NamedTuple):
    """Segment file of a partition."""

    path: Path
    stream: str | None  # stream, topic and partition are numbers from the path
    topic: str | None
    partition: int | None
    base_offset: int
    next_offset: int | None  # start of the next file of the partition

    @property
    def partition_values(self) -> dict[str, Any]:
        """Stream, topic and partition."""
        return {"stream": self.stream, "topic": self.topic, "partition": self.partition}

    @property
    def size(self) -> int:
        """Current size of the file in bytes."""
        return self.path.stat().st_size


class BatchRange(NamedTuple):
    """Position of a batch in its file, and its offsets."""

    position: int
    end: int
    base_offset: int  # offset of the first message
    last_offset: int
    time: int  # time at which the server stored the messages, in microseconds since 1970

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.end - self.position

    @property
    def records(self) -> int:
        """Number of messages."""
        return self.last_offset - self.base_offset + 1


class IggySegmentFile(SegmentFile[IggySegment, BatchRange]):
    """A segment of Iggy."""

    format = "iggy-batch"
    header_len = FIRST_MESSAGE_LEN
    min_batch_len = MIN_BATCH_LEN
    candidate_len = FIRST_MESSAGE_LEN
    max_offsets = MAX_OFFSETS

    @property
    def partition_in_errors(self) -> Mapping[str, Any]:
        """Topic and partition for errors."""
        return {"topic": topic_in_errors(self.segment.partition_values), "partition": self.segment.partition}

    def headers(self, data: Any, origin: int, beyond: int, *, first: bool = False) -> tuple[list[BatchRange], int]:
        """Read the headers of all complete batches, or of the first batch only; also return the end position."""
        return batch_ranges(data, origin, beyond, first=first)

    def indexed_position(self, offset: int) -> int:
        """Return the position of a batch at or before an offset from the index, or 0 without an index entry."""
        offsets, _, positions = index_entries(self.segment.path.with_suffix(".index"), "Q", "little", 3)
        before = bisect_right(offsets, offset)
        return positions[before - 1] if before else 0

    def error_at(self, position: int, min_offset: int) -> BatchError:
        """Return the error that explains why no batch begins at a position."""
        left = self.size - position
        if self.zeros_from() <= position:
            return BatchError("truncated", f"{count_noun(left, 'byte')} of zeros are left")
        head = self.peek(position, position + BATCH_HEADER_LEN)
        if not IggyBatchHeader.is_within(head):
            return BatchError(
                "truncated", f"no whole batch begins here: {count_noun(left, 'byte')} of a batch are left"
            )
        header = IggyBatchHeader.unpack_from(head)
        if not min_offset <= header.base_offset <= self.max_offset():
            possible = f"the least possible is {min_offset}, the largest {self.max_offset()}"
            return BatchError("not_in_order", f"it begins at offset {header.base_offset}, but {possible}")
        if header.length > left:
            taken = count_noun(header.length, "byte")
            return BatchError("truncated", f"no whole batch begins here: it takes {taken} and {left} are left")
        content = f"{count_noun(header.length, 'byte')} for {count_noun(header.message_count, 'message')}"
        return BatchError("wrong_size", f"no whole batch begins here: {content}")

    def with_length(self, data: bytes) -> bytes:
        """Return a batch whose header contains its actual length."""
        return data[:BATCH_LENGTH_AT] + struct.pack("<Q", len(data)) + data[_LENGTH_END:]

    def candidates_in(self, window: Any, left: int) -> Any:
        """Return the positions in a byte array at which a batch could begin, by its length and message count."""
        import numpy as np

        # Lengths are below 2^48, so two of their bytes are zeros.
        zeros = window[: max(len(window) - FIRST_MESSAGE_LEN, 0) + _LENGTH_END] == 0
        candidates = np.flatnonzero(zeros[_LENGTH_END - 2 : -2] & zeros[_LENGTH_END - 1 : -1])
        lengths: Any = sum(
            window[candidates + BATCH_LENGTH_AT + byte].astype(np.int64) << 8 * byte for byte in range(6)
        )
        counts: Any = sum(window[candidates + _COUNT_AT + byte].astype(np.int64) << 8 * byte for byte in range(4))
        fits = (lengths <= left - candidates) & (counts > 0) & (lengths >= BATCH_HEADER_LEN + counts * FRAME.size)
        return candidates[fits]

    def batch_error(self, data: bytes, errors: Sequence[Mapping[str, Any]]) -> BatchError | None:
        """Return the first error that concerns a whole batch rather than one message, or None."""
        return error_of_batch(data, errors)


def batch_ranges(data: Any, origin: int = 0, beyond: int = 0, *, first: bool = False) -> tuple[list[BatchRange], int]:
    """Read the headers of all complete batches, or of the first batch only; also return the end position.

    ``data`` begins at position ``origin`` of the file, and is followed by ``beyond`` more bytes.
    """
    batches: list[BatchRange] = []
    size, at = len(data) + beyond, 0
    while at + FIRST_MESSAGE_LEN <= len(data) and not (first and batches):
        header = IggyBatchHeader.unpack_from(data, at)
        if not header.fits(size - at):
            break
        offset, begin = header.first_offset(data, at), origin + at
        last_offset = offset + header.message_count - 1
        batches.append(BatchRange(begin, begin + header.length, offset, last_offset, header.base_timestamp))
        at += header.length
    return batches, origin + at


def error_of_batch(data: bytes, errors: Sequence[Mapping[str, Any]]) -> BatchError | None:
    """Return the first error that concerns a whole batch, or None if all errors concern single messages."""
    checksums = [error for error in errors if error["code"] == "bad_crc"]
    for error in checksums:
        if error["byte_offset"] == _CHECKSUM_AT:
            return BatchError(error["code"], without_message_number(error["message"]))
    frames = [*_frames(data)]
    count = IggyBatchHeader.unpack_from(data).message_count
    if None in frames:
        return BatchError("wrong_size", "its last message does not end where the batch ends")
    if len(frames) != count:
        return BatchError("wrong_size", f"it announces {count_noun(count, 'message')} and has {len(frames)}")
    first = frames[0] or 0
    if checksums and (frames != [*range(first, first + count)] or (first and count == 1)):
        return BatchError("not_in_order", "the offsets of its messages are not consecutive")
    return None


def _frames(data: bytes) -> Iterator[int | None]:
    """Yield the offset delta of each message of a batch, and None at the end if the last message is truncated."""
    at = BATCH_HEADER_LEN
    while at < len(data):
        if at + FRAME.size > len(data):
            yield None
            return
        _, _, delta, _, headers, payload, _ = FRAME.unpack_from(data, at)
        at += FRAME.size + headers + payload
        yield delta if at <= len(data) else None
