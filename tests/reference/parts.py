"""Parts that several layouts have in common: lengths, numbers, checksums, ids, payloads."""

from __future__ import annotations

import zlib
from typing import Any

from letterhead._formatting import count_noun
from letterhead.results import Loss
from tests.reference.cursor import Cursor
from tests.reference.protocols import Lose, Outgoing, Refused

MAX_LEN = 0x7FFF_FFFF
"""The longest run that a signed 32-bit length can state."""

ID_LEN = 16
"""Bytes of an id of Iggy."""


def misfit_of_length(part: str, size: int, lengths: range) -> tuple[str, str] | None:
    """Return the error of the length of a key or a value, by a code and in words."""
    if size in lengths:
        return None
    if size == 0:
        return f"empty_{part}", f"the {part} has no bytes"
    return "too_long", f"{part} of {count_noun(size, 'byte')} is longer than {lengths[-1]}"


def check_lengths(headers: list[Outgoing]) -> None:
    """Refuse keys and values that are longer than a signed 32-bit length can state."""
    for header in headers:
        for field, part in (("key", header.key), ("value", header.value)):
            if isinstance(part, bytes) and len(part) > MAX_LEN:
                raise Refused("too_long", f"{field} of {len(part)} bytes is too long", header.header, header.text)


def check_total(block: bytes) -> bytes:
    """Refuse a block that is longer than a signed 32-bit length can state."""
    if len(block) > MAX_LEN:
        raise Refused("too_large", f"the headers take {len(block)} bytes, more than 2 GiB")
    return block


def fixed(name: str, number: int, width: int) -> bytes:
    """Write a signed number, most significant byte first."""
    try:
        return number.to_bytes(width, "big", signed=True)
    except OverflowError:
        raise Refused("out_of_range", f"{name} does not fit int{8 * width}") from None


def nullable(data: bytes | None) -> bytes:
    """Write bytes behind a 32-bit length, which is -1 for null."""
    return fixed("length", -1, 4) if data is None else fixed("length", len(data), 4) + data


def check_crc(cursor: Cursor, source: int, covered: bytes, start: int) -> None:
    """Record a CRC-32 that does not match."""
    result = zlib.crc32(covered)
    if source != result:
        cursor.soft("bad_crc", f"the checksum is {source:08x} and the bytes give {result:08x}", start)


def take_id(cursor: Cursor) -> bytes:
    """Read an id."""
    return cursor.take(ID_LEN, "id")[::-1]


def take_int64(cursor: Cursor, field: str) -> int | None:
    """Read a number of 64 bits without a sign; one that does not fit a column of signed ones is noted and null."""
    start = cursor.at
    return as_int64(cursor, cursor.little(field, 8), field, start)


def as_int64(cursor: Cursor, number: int, field: str, start: int) -> int | None:
    """Return a number that fits a column of signed ones; another is noted and null."""
    if number < 1 << 63:
        return number
    cursor.soft("out_of_range", f"{field} does not fit int64", start)
    return None


def id_of(id: bytes | None) -> bytes:
    """Write an id; null is 0."""
    if id is None:
        return bytes(ID_LEN)
    if len(id) != ID_LEN:
        raise Refused("wrong_size", f"id of {count_noun(len(id), 'byte')} where {ID_LEN} are needed")
    return id[::-1]


def payload_of(payload: bytes | None, lose: Lose) -> bytes:
    """Return the payload; there is no null one."""
    if payload is None:
        lose(Loss("null_not_carried", "the payload is null", written="empty"))
        return b""
    return payload


def natural(field: str, number: Any) -> bytes:
    """Write a number of 64 bits without a sign; null is 0."""
    number = number or 0
    if number < 0:
        raise Refused("out_of_range", f"{field} {number} is negative")
    try:
        return bytes(number.to_bytes(8, "little"))
    except OverflowError:
        raise Refused("out_of_range", f"{field} does not fit uint64") from None
