"""Batches made by hand, of formats that this package does not write."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from tests.reference import ops
from tests.reference.batches.iggy_polled_2023 import STATES
from tests.reference.formats import FORMATS
from tests.reference.xxh3 import xxh3_64, xxh32

MESSAGE_OF = {name: name.replace("messages", "message") for name in FORMATS if name.startswith("kip82-messages")}
"""The format of one message of a set."""

CODECS = {1: "gzip", 2: "snappy", 3: "lz4"}

FRAME_LEN = 12
"""Offset and size of a message in a set."""

HEADER_LEN, SLOT_LEN = 256, 48
"""A batch header of Iggy, and the header of a frame in it."""


def message(format: str, **fields: Any) -> bytes:
    """Write a message of one of the drafts; what is not given is its own none."""
    result = ops.encode({**dict.fromkeys(name for name, _ in FORMATS[format].fields), "headers": [], **fields}, format)
    assert result is not None
    return result


# --- compressed sets -------------------------------------------------------------------------------------------------


def squeeze(codec: int, data: bytes, *, xerial: bool = False, legacy: bool = False) -> bytes:
    """Compress the bytes of a set: snappy bare or in xerial's framing, LZ4 with the right header checksum or Kafka's."""
    import pyarrow as pa

    if codec == 1:
        return gzip.compress(data, mtime=0)
    result: bytes = pa.compress(data, codec=CODECS[codec], asbytes=True)
    if codec == 2 and xerial:
        return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(result)) + result
    if codec == 3 and legacy:
        return result[:6] + bytes([xxh32(result[:6]) >> 8 & 0xFF]) + result[7:]
    return result


# --- Iggy ------------------------------------------------------------------------------------------------------------


def polled(fields: dict[str, Any], *, later: bool) -> bytes:
    """Write a message as a poll of Iggy's first releases gives it, in the later of its two eras or the earlier."""
    block = ops.encode(fields["headers"], "iggy-2023") or b""
    payload = fields["payload"]
    state = next(code for code, name in STATES.items() if name == fields["state"])
    out = struct.pack("<Q", fields["offset"]) + (bytes([state]) if later else b"")
    out += struct.pack("<Q", fields["timestamp"]) + fields["id"][::-1]
    out += struct.pack("<I", zlib.crc32(payload)) if later else b""
    return out + struct.pack("<I", len(block)) + block + struct.pack("<I", len(payload)) + payload


def frame(number: int, payload: bytes = b"x", block: bytes = b"", *, id: bytes = bytes(16), later: int = 0) -> bytes:
    """Write a frame of a batch of Iggy: its distance from the batch in messages and in microseconds."""
    rest = id[::-1] + struct.pack("<IIIIQ", number, later, len(block), len(payload), 0) + payload + block
    return xxh3_64(rest).to_bytes(8, "little") + rest


def batch(
    *frames: bytes,
    count: int | None = None,
    base: int = 0,
    timestamp: int = 1000,
    origin: int = 500,
    producer: bytes = bytes(20),
) -> bytes:
    """Write a batch of Iggy."""
    body = b"".join(frames)
    head = struct.pack("<QQQQQ", 7, base, timestamp, origin, HEADER_LEN + len(body))
    count = len(frames) if count is None else count
    return _sealed(bytearray(head + bytes(8) + struct.pack("<I", count) + producer + bytes(184) + body))


def _sealed(result: bytearray) -> bytes:
    """Write the checksum of a batch, if its frames can be told apart."""
    covered = result[:40] + result[48:52]
    if result[52] == 1:
        covered += result[52:53] + result[56:66] + result[68:72]
    at = HEADER_LEN
    while at < len(result):
        headers_len, payload_len = struct.unpack_from("<II", result[at:].ljust(SLOT_LEN, b"\0"), 32)
        covered += result[at : at + 8]
        at += SLOT_LEN + headers_len + payload_len
    result[40:48] = xxh3_64(bytes(covered)).to_bytes(8, "little")
    return bytes(result)


# --- checksums made anew ---------------------------------------------------------------------------------------------


def reseal(format: str, data: bytes) -> bytes:
    """Make the checksums of a message hold again, as far as its frames can be found."""
    result = bytearray(data)
    if format.startswith("kip82-message"):
        for start, end in _messages(data):
            result[start + 12 : start + 16] = zlib.crc32(result[start + 16 : end]).to_bytes(4, "big")
    if format == "iggy-batch":
        for start, end in _batches(data):
            at = start + HEADER_LEN
            while at + SLOT_LEN <= end:
                headers_len, payload_len = struct.unpack_from("<II", result, at + 32)
                after = at + SLOT_LEN + headers_len + payload_len
                result[at : at + 8] = xxh3_64(bytes(result[at + 8 : after])).to_bytes(8, "little")
                at = after
            result[start:end] = _sealed(result[start:end])
    return bytes(result)


def _messages(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + FRAME_LEN <= len(data):
        (size,) = struct.unpack_from(">i", data, at + 8)
        if not 5 <= size <= len(data) - at - FRAME_LEN:
            return
        yield at, at + FRAME_LEN + size
        at += FRAME_LEN + size


def _batches(data: bytes) -> Iterator[tuple[int, int]]:
    """Return the first places from which on batches follow each other to the end of the message."""
    for prefix in (0, 16, 40):
        records, at = [], prefix
        while at + HEADER_LEN <= len(data):
            (length,) = struct.unpack_from("<Q", data, at + 32)
            if not HEADER_LEN <= length <= len(data) - at:
                break
            records.append((at, at + length))
            at += length
        if records:
            yield from records
            return
