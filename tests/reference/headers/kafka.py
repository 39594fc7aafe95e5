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
header, bits that a varint cannot hold and keys that are not UTF-8 are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from letterhead._formatting import count_noun
from tests.reference import varint
from tests.reference.cursor import Cursor
from tests.reference.parts import check_lengths, check_total
from tests.reference.protocols import Entry, Outgoing

MIN_HEADER_LEN = 2
"""A key length and a value length: the least that a header takes."""

# Java takes a whole encoded surrogate, or the front of one, for one mistake where Python sees two or three.
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def read(cursor: Cursor) -> Iterator[Entry]:
    """Return the headers between the cursor and its end; note soft errors, raise the hard one."""
    if cursor.left == 0:
        return
    start = cursor.at
    count = cursor.varint("header count")
    if cursor.options.lenient and count <= 0:
        return
    if count < 0:
        raise cursor.hard("negative_count", f"header count {count} is negative", start)
    # A count is a claim. Nothing is set aside for it before the bytes show that they could hold it.
    if count > cursor.left // MIN_HEADER_LEN:
        message = f"{count_noun(count, 'header')} declared and {count_noun(cursor.left, 'byte')} left for them"
        raise cursor.hard("count_too_large", message, start)
    cursor.check_count(count, start)

    for index in range(count):
        cursor.enter_header(index)
        key = _key(cursor)
        value_len = cursor.nullable_varint_length("value length")
        value_at = cursor.at
        value = None if value_len is None else cursor.take(value_len, "value")
        if key is not None:
            yield Entry(index, key, None, value, value_at)
    cursor.enter_header(None)

    if cursor.left and not cursor.options.lenient:
        message = f"{count_noun(cursor.left, 'byte')} left after the last header"
        raise cursor.hard("trailing_bytes", message, cursor.at)


def write(headers: list[Outgoing]) -> bytes:
    """Write headers whose values are bytes or null already."""
    if not headers:
        return b""
    check_lengths(headers)
    out = bytearray(varint.write(len(headers)))
    for header in headers:
        out += varint.write(len(header.key)) + header.key
        out += varint.write(-1) if header.value is None else varint.write(len(header.value)) + header.value
    return check_total(bytes(out))


def _key(cursor: Cursor) -> str | None:
    key_len = cursor.varint_length("key length")
    if not cursor.options.lenient:
        # Where the key is not UTF-8 the value is still read over: the next header is where it would be anyway.
        return cursor.text_key(key_len)
    key = _ENCODED_SURROGATE.sub("\ufffd".encode(), cursor.take(key_len, "key")).decode(errors="replace")
    cursor.name_header(key)
    return key
