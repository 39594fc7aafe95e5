"""The baseline: what a data engineer writes in an afternoon, in plain Python with `struct`.

It trusts its input (no limits, no error places), which is in its favour in every comparison.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

HeaderList = list[tuple[str, bytes | None]]


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a zig-zag varint; give it and the position behind it."""
    raw = shift = 0
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7


def decode_block(data: bytes) -> HeaderList:
    """Read a `kafka` header block."""
    headers: HeaderList = []
    if not data:
        return headers
    count, position = read_varint(data, 0)
    for _ in range(count):
        length, position = read_varint(data, position)
        key = data[position : position + length].decode()
        position += length
        length, position = read_varint(data, position)
        if length < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[position : position + length]))
            position += length
    return headers


def decode_block_unrolled(data: bytes) -> HeaderList:
    """Read a `kafka` header block as fast as plain Python can: nearly every varint is one byte, which needs no call."""
    headers: HeaderList = []
    if not data:
        return headers
    append = headers.append
    count, position = read_varint(data, 0)
    for _ in range(count):
        length = data[position]
        if length < 0x80:
            position += 1
            end = position + (length >> 1)
        else:
            length, position = read_varint(data, position)
            end = position + length
        key = data[position:end].decode()
        length = data[end]
        if length == 1:
            append((key, None))
            position = end + 1
        else:
            if length < 0x80:
                end += 1
                position = end + (length >> 1)
            else:
                length, end = read_varint(data, end)
                position = end + length
            append((key, data[end:position]))
    return headers


def last_value(headers: HeaderList, key: str) -> bytes | None:
    """Return the last value of a key, and None if there is none."""
    for name, value in reversed(headers):
        if name == key:
            return value
    return None


def split_message(message: bytes) -> tuple[bytes, bytes]:
    """Split a `streams-timestamped` message into its header block and what follows (timestamp and payload)."""
    size, position = read_varint(message, 0)
    return message[position : position + size], message[position + size :]


def write_varint(value: int) -> bytes:
    """Write a zig-zag varint of 32 bits."""
    raw = (value << 1) ^ (value >> 31)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def encode_block(headers: HeaderList) -> bytes:
    """Write a `kafka` header block."""
    if not headers:
        return b""
    out = [write_varint(len(headers))]
    for key, value in headers:
        raw = key.encode()
        out += (write_varint(len(raw)), raw)
        out += (b"\x01",) if value is None else (write_varint(len(value)), value)
    return b"".join(out)


def select_three(headers: Iterable[tuple[str, bytes | None]]) -> tuple[str | None, int | None, int | None]:
    """Select the last `tenant`, `retry` (int32) and `amount_cents` (int64)."""
    last = dict(headers)
    tenant, retry, amount = last.get("tenant"), last.get("retry"), last.get("amount_cents")
    return (
        None if tenant is None else tenant.decode(),
        None if retry is None else struct.unpack(">i", retry)[0],
        None if amount is None else struct.unpack(">q", amount)[0],
    )
