"""Messages on the wire: a cursor that reads fields, and the batches of the format ``iggy``.

:mod:`letterhead.iggy.batches` documents the layout of a batch. The server sets its partition, base offset and base
timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from letterhead._formatting import count_noun
from letterhead.iggy.batch_header import BATCH_HEADER_LEN, BATCH_LENGTH_AT, FRAME, IggyBatchHeader
from letterhead.iggy.errors import refuse_bytes, refuse_value

__all__ = ["Cursor", "Frame", "begins_batch", "read_batches", "write_batch"]


class Cursor:
    """Cursor that reads bytes field by field; the error for a truncated field contains the name of the field."""

    def __init__(self, data: bytes, format: str) -> None:
        self.data = data
        self.format = format
        self.at = 0
        self.prefix = ""  # prefix of error messages, such as "message 3: "

    @property
    def left(self) -> int:
        """Number of unread bytes."""
        return len(self.data) - self.at

    def take(self, size: int, field: str) -> bytes:
        """Read a number of bytes."""
        if size > self.left:
            left = f"{self.left} {'is' if self.left == 1 else 'are'} left"
            self.refuse("truncated", f"{field} takes {count_noun(size, 'byte')} and {left}")
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def number(self, size: int, field: str) -> int:
        """Read an unsigned number."""
        return int.from_bytes(self.take(size, field), "little")

    def natural(self, field: str) -> int:
        """Read a 64-bit unsigned number that must fit int64."""
        number = self.number(8, field)
        self.check_int64(number, field, back=8)
        return number

    def check_int64(self, number: int, field: str, *, back: int) -> None:
        """Raise DecodeError if a number, or a sum of numbers, does not fit int64."""
        if number >= 1 << 63:
            self.refuse("out_of_range", f"{field} does not fit int64", back=back)

    def check_count(self, announced: int, received: int, at: int) -> None:
        """Raise DecodeError if the number of received messages differs from the announced number."""
        if received != announced:
            message = f"{announced} messages are announced and {received} are there"
            refuse_bytes("wrong_size", message, self.format, at)

    def end(self, last: str) -> None:
        """Raise DecodeError if bytes are left."""
        if self.left:
            self.refuse("trailing_bytes", f"{count_noun(self.left, 'byte')} left after the {last}")

    def refuse(self, code: str, message: str, *, back: int = 0) -> NoReturn:
        """Raise an error at the current position, or ``back`` bytes before it."""
        refuse_bytes(code, self.prefix + message, self.format, self.at - back)


class Frame(NamedTuple):
    """Message of a batch; offset, timestamp and checksum are not written."""

    id: int
    origin_timestamp: int
    headers: bytes
    payload: bytes
    offset: int = 0
    timestamp: int = 0
    checksum: int = 0


def read_batches(cursor: Cursor) -> Iterator[Frame]:
    """Read all batches, without verifying checksums and headers."""
    index = 0
    while cursor.left:
        start = cursor.at
        header = IggyBatchHeader.unpack_from(cursor.take(BATCH_HEADER_LEN, "batch header"))
        offset, timestamp, origin = header.base_offset, header.base_timestamp, header.origin_timestamp
        left = len(cursor.data) - start
        if not BATCH_HEADER_LEN <= header.length <= left:
            message = f"the batch takes {header.length} bytes and {left} are left"
            cursor.refuse("truncated", message, back=cursor.at - start - BATCH_LENGTH_AT)
        while cursor.at < start + header.length:
            cursor.prefix = f"message {index}: "
            frame = FRAME.unpack(cursor.take(FRAME.size, "frame header"))
            checksum, identity, offset_delta, origin_delta, headers_length, payload_length, _ = frame
            # All messages of a batch share the server's timestamp; the deltas apply to the origin timestamp.
            numbers = {
                "offset": offset + offset_delta,
                "timestamp": timestamp,
                "origin timestamp": origin + origin_delta,
            }
            for field, number in numbers.items():
                cursor.check_int64(number, field, back=FRAME.size)
            payload = cursor.take(payload_length, "payload")
            headers = cursor.take(headers_length, "headers block")
            id = int.from_bytes(identity, "little")
            yield Frame(id, origin + origin_delta, headers, payload, offset + offset_delta, timestamp, checksum)
            index += 1
        cursor.prefix = ""


def begins_batch(data: bytes, at: int) -> bool:
    """Return whether a complete batch may begin at a position."""
    head = data[at : at + BATCH_HEADER_LEN]
    if len(head) < BATCH_HEADER_LEN or any(head[72:]):
        return False
    return BATCH_HEADER_LEN <= IggyBatchHeader.unpack_from(head).length <= len(data) - at


def write_batch(frames: Sequence[Frame], *, partition: int = 0, offset: int = 0, timestamp: int = 0) -> bytes:
    """Return a batch of at least one message, with checksums; in a request, partition, offset and timestamp are 0."""
    from letterhead.iggy import batches  # imported on first use, as in `letterhead.one_message`

    origin = min(frame.origin_timestamp for frame in frames)
    for index, frame in enumerate(frames):
        if frame.origin_timestamp - origin > batches.MAX_DELTA:
            refuse_value("out_of_range", f"message {index}: its time is too far from the time of the earliest message")
    messages = [
        batches.MessageFields(frame.id.to_bytes(16, "big"), frame.origin_timestamp, frame.headers, frame.payload)
        for frame in frames
    ]
    return batches.batch_of(messages, origin, partition=partition, offset=offset, timestamp=timestamp).data
