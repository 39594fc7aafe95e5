"""What stands around the headers on the wire: fields that are read, and the batch that is written.

::

    batch    ┌───────────┬──────────────────────────────────────────────────────────────────────────────┐
             │ 256 bytes │ u64 partition, base offset, base timestamp, origin timestamp, length, checksum │
             │           │ u32 count, zeros                                                               │
             ├───────────┼────────────────────────────────────────────────────────────────────────────────┤
    frame    │ 48 bytes  │ u64 checksum, u128 id, u32 offset delta, u32 timestamp delta,                   │
             │           │ u32 headers length, u32 payload length, u64 zero                                │
             │           │ payload, headers                                                                │
             └───────────┴────────────────────────────────────────────────────────────────────────────────┘

Little-endian. The checksum of a frame is the XXH3 of all that follows it in the frame; that of a batch is the XXH3 of
its other header fields and then of every frame's checksum. A server fills in partition, base offset and base timestamp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from letterhead.errors import counted
from letterhead.iggy.faults import refuse_bytes, refuse_value, too_short

__all__ = ["Cursor", "Frame", "StoredFrame", "begins_batch", "read_batches", "write_batch"]

_BATCH_HEADER_BYTES = 256
_FRAME = struct.Struct("<16sIIIIQ")
_BATCH = struct.Struct("<QQQQQ")
_WHOLE_FRAME = struct.Struct("<Q16sIIIIQ")


class Cursor:
    """A place in bytes that are read field by field; a field that is not there whole is an error that names it."""

    def __init__(self, data: bytes, format: str) -> None:
        self.data = data
        self.format = format
        self.at = 0
        self.what = ""

    @property
    def left(self) -> int:
        """How many bytes may still be read."""
        return len(self.data) - self.at

    def take(self, size: int, field: str) -> bytes:
        """Take bytes."""
        if size > self.left:
            self.refuse("truncated", too_short(field, size, self.left))
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def number(self, size: int, field: str) -> int:
        """Take an unsigned number."""
        return int.from_bytes(self.take(size, field), "little")

    def natural(self, field: str) -> int:
        """Take an unsigned number of 64 bits, and refuse one that does not fit int64."""
        number = self.number(8, field)
        self.check_int64(number, field, back=8)
        return number

    def check_int64(self, number: int, field: str, *, back: int) -> None:
        """Refuse a number that is read or summed up here and does not fit int64."""
        if number >= 1 << 63:
            self.refuse("out_of_range", f"{field} does not fit int64", back=back)

    def end(self, last: str) -> None:
        """Refuse bytes that are left."""
        if self.left:
            self.refuse("trailing_bytes", f"{counted(self.left, 'byte')} left after the {last}")

    def refuse(self, code: str, message: str, *, back: int = 0) -> None:
        """Raise for what stands here, or some bytes before."""
        refuse_bytes(code, self.what + message, self.format, self.at - back)


class Frame(NamedTuple):
    """One message of a batch to write."""

    id: int
    origin_timestamp: int
    headers: bytes
    payload: bytes


class StoredFrame(NamedTuple):
    """One message of a batch that was read."""

    offset: int
    timestamp: int
    id: int
    origin_timestamp: int
    checksum: int
    headers: bytes
    payload: bytes


def read_batches(cursor: Cursor) -> Iterator[StoredFrame]:
    """Read batches to the end, neither checksums verified nor headers parsed."""
    index = 0
    while cursor.left:
        start = cursor.at
        head = cursor.take(_BATCH_HEADER_BYTES, "batch header")
        _, offset, timestamp, origin, length = _BATCH.unpack_from(head)
        if not _BATCH_HEADER_BYTES <= length <= len(cursor.data) - start:
            left = len(cursor.data) - start
            cursor.refuse(
                "truncated", f"the batch takes {length} bytes and {left} are left", back=cursor.at - start - 32
            )
        while cursor.at < start + length:
            cursor.what = f"message {index}: "
            frame = _WHOLE_FRAME.unpack(cursor.take(_WHOLE_FRAME.size, "frame header"))
            checksum, identity, offset_delta, origin_delta, headers_length, payload_length, _ = frame
            for field, number in (
                ("offset", offset + offset_delta),
                ("timestamp", timestamp),
                ("origin timestamp", origin + origin_delta),
            ):
                cursor.check_int64(number, field, back=_WHOLE_FRAME.size)
            payload = cursor.take(payload_length, "payload")
            headers = cursor.take(headers_length, "headers block")
            # A server stamps the whole batch with one time; the differences are those of the sender's times.
            yield StoredFrame(
                offset + offset_delta,
                timestamp,
                int.from_bytes(identity, "little"),
                origin + origin_delta,
                checksum,
                headers,
                payload,
            )
            index += 1
        cursor.what = ""


def begins_batch(data: bytes, at: int) -> bool:
    """Say whether a whole batch could begin somewhere."""
    head = data[at : at + _BATCH_HEADER_BYTES]
    if len(head) < _BATCH_HEADER_BYTES or any(head[72:]):
        return False
    return _BATCH_HEADER_BYTES <= int.from_bytes(head[32:40], "little") <= len(data) - at


def write_batch(frames: Sequence[Frame], *, partition: int = 0, offset: int = 0, timestamp: int = 0) -> bytes:
    """Write a batch of at least one message with its checksums; in a request partition, offset and timestamp are 0."""
    from letterhead._native import xxh3_64 as checksum  # as in the verbs, loaded when it is needed

    origin = min(frame.origin_timestamp for frame in frames)
    written = []
    for index, frame in enumerate(frames):
        delta = frame.origin_timestamp - origin
        if delta >= 1 << 32:
            refuse_value("out_of_range", f"message {index}: its time is too far from that of the earliest message")
        identity = frame.id.to_bytes(16, "little")
        head = _FRAME.pack(identity, index, delta, len(frame.headers), len(frame.payload), 0)
        body = head + frame.payload + frame.headers
        written.append(checksum(body).to_bytes(8, "little") + body)
    length = _BATCH_HEADER_BYTES + sum(map(len, written))
    head = _BATCH.pack(partition, offset, timestamp, origin, length)
    count = len(frames).to_bytes(4, "little")
    sums = b"".join(frame[:8] for frame in written)
    head += checksum(head + count + sums).to_bytes(8, "little") + count
    return head.ljust(_BATCH_HEADER_BYTES, b"\0") + b"".join(written)
