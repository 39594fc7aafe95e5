"""``iggy-batch``: the messages of Apache Iggy 0.11, as a client sends them, as they are stored and as a poll gives them.

::

    prefix of a poll     u32 partition_id, u64 current_offset, u32 message_count; later releases: 24 bytes more

    batch header, 256 bytes
      0 ┌──────────────────┬─────────────────┬────────────────────┬──────────────────────┐
        │ u64 partition_id │ u64 base_offset │ u64 base_timestamp │ u64 origin_timestamp │
     32 ├──────────────────┼─────────────────┴──┬─────────────────┴─┬────────────────────┘
        │ u64 batch_length │ u64 batch_checksum │ u32 message_count │
     52 ├──────────────────┴──────┬─────────────┴───┬───────────────┴─┬──────────────┐
        │ u8 producer flag, 0 0 0 │ u64 producer_id │ u16 epoch, 0 0  │ u32 sequence │
     72 ├────────────────┬────────┴─────────────────┴─────────────────┴──────────────┘
        │ 184 bytes of 0 │
        └────────────────┘
    frame, 48 bytes, then its payload and its headers
      0 ┌──────────────┬─────────┬──────────────────┬─────────────────────┐
        │ u64 checksum │ u128 id │ u32 offset_delta │ u32 timestamp_delta │
     32 ├──────────────┴──┬──────┴──────────┬───────┼─────────────────────┘
        │ u32 headers_len │ u32 payload_len │ u64 0 │
     48 ├─────────┬───────┴────┬────────────┴───────┘
        │ payload │ iggy block │
        └─────────┴────────────┘

Little-endian, times in microseconds. The length of a batch counts its header.

* offset = base_offset + offset_delta;
* timestamp = base_timestamp: the server stamps a batch once, and no delta applies to it;
* origin_timestamp = origin_timestamp of the batch + timestamp_delta.

A client sends 0 for the three fields that the server stamps: partition_id, base_offset and base_timestamp.

The checksum of a frame is XXH3-64 of the rest of it, payload and headers included. That of a batch is XXH3-64 of its
first 40 bytes, the message_count, where there is a producer its flag, id, epoch and sequence, and the checksums of its
frames. Servers make it anew when they stamp a batch, and when they give a part of one.

Where the first batch begins is not said: it is where a batch header stands whose checksum holds, or at least one whose
length and zeros are right.

Differences from the reference implementation (``iggy_binary_protocol`` 0.11.1): those of the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from letterhead._formatting import count_noun
from tests.reference.cursor import Broken, Cursor
from tests.reference.messages.iggy_message import take_body
from tests.reference.parts import as_int64, take_id
from tests.reference.protocols import Fields, Opened
from tests.reference.xxh3 import xxh3_64

HEADER_LEN = 256
FRAME_LEN = 48
PREFIX_LENS = (0, 16, 40)
"""What may stand before the first batch."""

_CHECKSUM_AT = 40
_COUNT_AT = 48
_PRODUCER_AT = 52
_RESERVED_AT = 72


class Base(NamedTuple):
    """What the messages of a batch count from."""

    offset: int
    timestamp: int
    origin_timestamp: int


def messages(cursor: Cursor) -> Iterator[Opened]:
    """Return every message up to the cursor's end; one that hides where the next begins is the last."""
    cursor.at += prefix_len(cursor.data[cursor.at : cursor.end])
    while cursor.left:
        cursor.details = []
        try:
            base, count, count_at, frames = _take_header(cursor)
        except Broken as end:
            yield Opened({}, None, [*cursor.details, end.detail], broken=True)
            return
        messages_read = 0
        while frames.left:
            try:
                opened = _take_frame(frames, base)
            except Broken as end:
                yield Opened({}, None, [*frames.details, end.detail], broken=True)
                return
            # What is wrong with the batch is told with its first message.
            frames.details = []
            yield opened
            messages_read += 1
        if messages_read != count:
            message = f"the batch announces {count_noun(count, 'message')} and has {messages_read}"
            frames.soft("count_too_large", message, count_at)
        if frames.details:
            yield Opened({}, None, frames.details, broken=True)
            if messages_read != count:
                return


def prefix_len(data: bytes) -> int:
    """Return where the first batch begins; 0 where none can be found, so that the error is told of the first bytes."""
    if len(data) in PREFIX_LENS and not any(data[12:16]):
        return len(data)  # a poll that found nothing
    for looks_right in (_checksum_holds, _is_plausible):
        for at in PREFIX_LENS:
            if looks_right(data[at:]):
                return at
    return 0


def batch_checksum(batch: bytes) -> int | None:
    """Make the checksum of a batch, if its frames can be told apart."""
    covered = batch[:_CHECKSUM_AT] + batch[_COUNT_AT:_PRODUCER_AT]
    if batch[_PRODUCER_AT] == 1:
        covered += batch[52:53] + batch[56:66] + batch[68:72]
    frames = batch[HEADER_LEN:]
    while frames:
        if len(frames) < FRAME_LEN:
            return None
        covered += frames[:8]
        length = FRAME_LEN + int.from_bytes(frames[32:36], "little") + int.from_bytes(frames[36:40], "little")
        if length > len(frames):
            return None
        frames = frames[length:]
    return xxh3_64(covered)


def _is_plausible(data: bytes) -> bool:
    """Return whether these bytes could begin with a whole batch."""
    return (
        len(data) >= HEADER_LEN
        and HEADER_LEN <= int.from_bytes(data[32:_CHECKSUM_AT], "little") <= len(data)
        and not any(data[_RESERVED_AT:HEADER_LEN])
    )


def _checksum_holds(data: bytes) -> bool:
    if not _is_plausible(data):
        return False
    batch = data[: int.from_bytes(data[32:_CHECKSUM_AT], "little")]
    return batch_checksum(batch) == int.from_bytes(batch[_CHECKSUM_AT:_COUNT_AT], "little")


def _take_header(cursor: Cursor) -> tuple[Base, int, int, Cursor]:
    """Read a batch header; give what its messages count from, how many there are and where that stands, and them."""
    start, left = cursor.at, cursor.left
    header = cursor.split(HEADER_LEN, "batch header")
    header.little("partition id", 8)
    base = Base(
        header.little("base offset", 8), header.little("base timestamp", 8), header.little("origin timestamp", 8)
    )
    length_at = header.at
    length = header.little("batch length", 8)
    checksum_at = header.at
    checksum = header.little("batch checksum", 8)
    count_at = header.at
    count = header.little("message count", 4)
    _check_zeros(header)
    if length < HEADER_LEN:
        raise cursor.hard("wrong_size", f"batch of {count_noun(length, 'byte')} where its header takes 256", length_at)
    if length > left:
        message = f"the batch takes {count_noun(length, 'byte')} and {left} {'is' if left == 1 else 'are'} left"
        raise cursor.hard("truncated", message, length_at)
    frames = cursor.split(length - HEADER_LEN, "frames")
    result = batch_checksum(cursor.data[start : cursor.at])
    if result is not None:
        _check(cursor, checksum, result, checksum_at)
    return base, count, count_at, frames


def _check_zeros(header: Cursor) -> None:
    """Record what is neither a producer nor nothing in the rest of a batch header."""
    producer_at = header.at
    flag = header.little("producer flag", 1)
    section = header.take(_RESERVED_AT - _PRODUCER_AT - 1, "producer")
    if flag > 1:
        header.soft("bad_attributes", f"producer flag {flag} is unknown", producer_at)
    elif any(section) if flag == 0 else any(section[:3] + section[13:15]):
        header.soft("bad_attributes", "the reserved bytes are not 0", producer_at)
    reserved_at = header.at
    if any(header.take_rest()):
        header.soft("bad_attributes", "the reserved bytes are not 0", reserved_at)


def _take_frame(cursor: Cursor, base: Base) -> Opened:
    start = cursor.at
    checksum = cursor.little("checksum", 8)
    id = take_id(cursor)
    offset_delta = cursor.little("offset delta", 4)
    timestamp_delta = cursor.little("timestamp delta", 4)
    payload, block = take_body(cursor)
    _check(cursor, checksum, xxh3_64(cursor.data[start + 8 : cursor.at]), start)
    # Sums stand nowhere: one that is too large is said to be where the frame begins.
    fields: Fields = {
        "offset": as_int64(cursor, base.offset + offset_delta, "offset", start),
        "timestamp": as_int64(cursor, base.timestamp, "timestamp", start),
        "origin_timestamp": as_int64(cursor, base.origin_timestamp + timestamp_delta, "origin timestamp", start),
        "id": id,
        "checksum": checksum,
        "payload": payload,
    }
    return Opened(fields, block, cursor.details)


def _check(cursor: Cursor, source: int, result: int, start: int) -> None:
    if source != result:
        cursor.soft("bad_crc", f"the checksum is {source:016x} and the bytes give {result:016x}", start)
