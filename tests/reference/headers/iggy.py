"""``iggy``: the headers of Apache Iggy since 0.8.2, typed keys and typed values.

::

    header   ┌─────────────┬─────────────┬─────┬─────────┬───────────────┬───────┐
             │ u8 key_type │ u32 key_len │ key │ u8 type │ u32 value_len │ value │
             └─────────────┴─────────────┴─────┴─────────┴───────────────┴───────┘
               1–255         1–255               1–255     1–255

Little-endian, repeated to the end of the block. Type codes from 16 on have no name yet and pass through.

Differences from the reference implementation (``iggy_common`` 0.11.1): repeats and the order on the wire are kept. As
there, a value of fixed width has just as many bytes, while a boolean other than 0 and 1 and a string that is not UTF-8
pass, and show when they are read as one. That implementation refuses types without a name when it reads a map of
headers, as ``strict_types`` does, and takes them when it checks the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.reference import keys, types
from tests.reference.cursor import Cursor
from tests.reference.keys import Key
from tests.reference.parts import misfit_of_length
from tests.reference.protocols import Entry, Outgoing, Refused
from tests.reference.value_types import IGGY, IGGY_NAMED, code_of, turned

LENGTHS = range(1, 256)
"""The bytes that a key or a value can have."""

MAX_BLOCK_LEN = 100_000
"""The most bytes that the headers of a message may take where they are written."""


def read(cursor: Cursor) -> Iterator[Entry]:
    """Return the headers between the cursor and its end; note soft errors, raise the hard one."""
    types = IGGY_NAMED if cursor.options.strict_types else IGGY
    index = 0
    while cursor.left:
        cursor.enter_header(index)
        cursor.check_header(index)
        key = _key(cursor, types)
        value = take_value(cursor, types)
        if value is not None:
            type, bits, value_at = value
            sized = _has_size(cursor, type, bits, value_at)
            if sized and key is not None:
                yield Entry(index, key, type, bits, value_at)
        index += 1
    cursor.enter_header(None)


def write(headers: list[Outgoing]) -> bytes:
    """Write headers that have a type beside every key and every value."""
    block = b"".join(tag(*header.key) + tag(header.type or "", header.value or b"") for header in headers)
    if len(block) > MAX_BLOCK_LEN:
        raise Refused("too_large", f"the headers take {len(block)} bytes, more than {MAX_BLOCK_LEN}")
    return block


def canonical(header: Outgoing) -> tuple[int, bytes]:
    """Return what headers are sorted by in the reference implementation: the code of the key's type, then its bytes.

    Integers are sorted as they lie on the wire, least significant byte first, and not by what they are.
    """
    type, bits = header.key
    return code_of(type, IGGY), turned(type, bits)


def tag(type: str, bits: bytes) -> bytes:
    """Write a type, a length and a value."""
    return bytes([code_of(type, IGGY)]) + len(bits).to_bytes(4, "little") + turned(type, bits)


def take_value(cursor: Cursor, types: Mapping[int, str]) -> tuple[str, bytes, int] | None:
    """Read a type and a value, and return the type, the bits and the byte of the value; none if there is an error."""
    type = _type(cursor, "value", types)
    size, fits = length(cursor, "value")
    value_at = cursor.at
    value = cursor.take(size, "value")
    return (type, turned(type, value), value_at) if type is not None and fits else None


def length(cursor: Cursor, part: str) -> tuple[int, bool]:
    """Read the length of a key or a value, and say whether it is one that it may have."""
    start = cursor.at
    size = cursor.little(f"{part} length", 4)
    detail = misfit_of_length(part, size, LENGTHS)
    if detail is not None:
        cursor.soft(*detail, start)
    return size, detail is None


def _type(cursor: Cursor, part: str, types: Mapping[int, str]) -> str | None:
    start = cursor.at
    code = cursor.little(f"{part} type", 1)
    if code not in types:
        cursor.soft("unknown_type", f"{part} type code {code} is unknown", start)
    return types.get(code)


def _key(cursor: Cursor, types: Mapping[int, str]) -> Key | None:
    type = _type(cursor, "key", types)
    size, fits = length(cursor, "key")
    key_at = cursor.at
    bits = cursor.take(size, "key")
    if type is None or not fits:
        return None
    bits = turned(type, bits)
    if not _has_size(cursor, type, bits, key_at, "key of "):
        return None
    key = keys.plain(type, bits)
    cursor.name_header(key)
    return key


def _has_size(cursor: Cursor, type: str, bits: bytes, start: int, prefix: str = "") -> bool:
    try:
        types.check("size", type, bits)
    except types.Misfit as misfit:
        cursor.soft(misfit.code, prefix + misfit.message, start)
        return False
    return True
