"""Header of a batch as stored by Apache Iggy servers: :class:`IggyBatchHeader`.

See the diagram of a batch in :mod:`letterhead.iggy.batches`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = [
    "BATCH_HEADER_LEN",
    "BATCH_LENGTH_AT",
    "CHECKSUM_LEN",
    "FIRST_MESSAGE_LEN",
    "FRAME",
    "MIN_BATCH_LEN",
    "IggyBatchHeader",
]

BATCH_HEADER_LEN = 256
BATCH_LENGTH_AT = 32
"""Position of the batch length in the header."""

FRAME = struct.Struct("<Q16sIIIIQ")
"""Checksum, id, offset delta, timestamp delta, length of headers, length of payload, and zeros."""

MIN_BATCH_LEN = BATCH_HEADER_LEN + FRAME.size
"""Length of a batch of one message without headers and payload."""

CHECKSUM_LEN = 8
_CHECKSUM_AT = BATCH_LENGTH_AT + 8
_FIELDS = struct.Struct("<QQQQQQI")
_OFFSET_DELTA = struct.Struct("<I")
_FIRST_DELTA_AT = BATCH_HEADER_LEN + 24
FIRST_MESSAGE_LEN = _FIRST_DELTA_AT + _OFFSET_DELTA.size
"""Length of a batch up to the offset delta of its first message, inclusive."""


class IggyBatchHeader(NamedTuple):
    """Fields of the header; the server sets partition, base offset and base timestamp."""

    partition: int
    base_offset: int
    base_timestamp: int  # microseconds since 1970, as in the next field
    origin_timestamp: int
    length: int
    checksum: int
    message_count: int

    @classmethod
    def unpack_from(cls, data: bytes | memoryview, at: int = 0) -> IggyBatchHeader:
        """Read the header at a position; raise ``struct.error`` if the data ends before its last field."""
        return cls._make(_FIELDS.unpack_from(data, at))

    @classmethod
    def is_within(cls, data: bytes | memoryview) -> bool:
        """Return whether the data is long enough for all fields of a header."""
        return len(data) >= _FIELDS.size

    def fits(self, left: int) -> bool:
        """Return whether the batch has messages, and is not longer than the remaining bytes."""
        return MIN_BATCH_LEN <= self.length <= left and self.message_count > 0

    def checked(self) -> bytes:
        """Return the bytes of the header that its checksum covers."""
        fields = _FIELDS.pack(*self)
        return fields[:_CHECKSUM_AT] + fields[_CHECKSUM_AT + CHECKSUM_LEN :]

    def pack(self) -> bytes:
        """Return the bytes of the header."""
        return _FIELDS.pack(*self).ljust(BATCH_HEADER_LEN, b"\0")

    def first_offset(self, data: bytes | memoryview, at: int) -> int:
        """Return the offset of the first message of the batch at a position; earlier messages may have been deleted."""
        delta: int = _OFFSET_DELTA.unpack_from(data, at + _FIRST_DELTA_AT)[0]
        return self.base_offset + delta
