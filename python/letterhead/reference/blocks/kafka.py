"""``kafka``: the headers of a Kafka record (KIP-82 as shipped, message format 2), ``headers_bytes`` of KIP-1271.

::

    block    ┌────────────────┬────────┬────────┬ ─ ─
             │ varint count   │ header │ header │
             └────────────────┴────────┴────────┴ ─ ─
    header   ┌────────────────┬───────────┬────────────────────────────┬───────┐
             │ varint key_len │ key UTF-8 │ varint value_len, -1 = null│ value │
             └────────────────┴───────────┴────────────────────────────┴───────┘

All varints are zig-zag. No headers are written as zero bytes; a single count of 0 is read as well.

Differences from Java's ``HeadersDeserializer``, which a lenient cursor undoes: a negative count, bytes after the last
header, bits that a varint cannot hold and keys that are not UTF-8 are faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from letterhead.errors import counted
from letterhead.reference import varint
from letterhead.reference.cursor import Cursor
from letterhead.reference.walk import Entry, Outgoing, Refused

MIN_HEADER_LEN = 2
"""A key length and a value length: the least that a header takes."""

MAX_LEN = 0x7FFF_FFFF
"""The longest run that a signed 32-bit length can state."""

# Java takes a whole encoded surrogate, or the front of one, for one mistake where Python sees two or three.
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def walk(cursor: Cursor) -> Iterator[Entry]:
    """Give the headers between the cursor and its end; note soft faults, raise the hard one."""
    if cursor.left == 0:
        return
    start = cursor.at
    count = cursor.varint("header count")
    if cursor.lenient and count <= 0:
        return
    if count < 0:
        raise cursor.hard("negative_count", f"header count {count} is negative", start)
    # A count is a claim. Nothing is set aside for it before the bytes show that they could hold it.
    if count > cursor.left // MIN_HEADER_LEN:
        message = f"the block announces {counted(count, 'header')} and has {counted(cursor.left, 'byte')} for them"
        raise cursor.hard("count_too_large", message, start)

    for index in range(count):
        cursor.enter_header(index)
        key_len = cursor.length("key length")
        key_at = cursor.at
        cursor.key = key = _key(cursor, cursor.take(key_len, "key"), key_at)
        value_len = cursor.nullable_length("value length")
        value_at = cursor.at
        value = None if value_len is None else cursor.take(value_len, "value")
        if key is not None:
            yield Entry(index, key, None, value, value_at)
    cursor.enter_header(None)

    if cursor.left and not cursor.lenient:
        message = f"{counted(cursor.left, 'byte')} left after the last header"
        raise cursor.hard("trailing_bytes", message, cursor.at)


def write(headers: list[Outgoing]) -> bytes:
    """Write headers whose values are bytes or null already."""
    if not headers:
        return b""
    out = bytearray(varint.write(len(headers)))
    for index, header in enumerate(headers):
        for part in (header.key, header.value):
            if part is not None and len(part) > MAX_LEN:
                raise Refused("too_long", f"{len(part)} bytes are more than a length can state", index, header.text)
        out += varint.write(len(header.key)) + header.key
        out += varint.write(-1) if header.value is None else varint.write(len(header.value)) + header.value
    if len(out) > MAX_LEN:
        raise Refused("too_large", f"the headers take {len(out)} bytes, more than 2 GiB")
    return bytes(out)


def _key(cursor: Cursor, raw: bytes, start: int) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        if cursor.lenient:
            return _ENCODED_SURROGATE.sub("\ufffd".encode(), raw).decode(errors="replace")
        # The value is still read over: the next header is where it would be anyway.
        cursor.soft("key_not_utf8", "the key is not UTF-8", start + error.start)
        return None
