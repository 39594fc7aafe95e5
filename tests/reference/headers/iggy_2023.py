"""``iggy-2023``: the headers of Apache Iggy 0.0.30 to 0.8.1, string keys and typed values.

::

    header   ┌─────────────┬───────────┬─────────┬───────────────┬───────┐
             │ u32 key_len │ key UTF-8 │ u8 type │ u32 value_len │ value │
             └─────────────┴───────────┴─────────┴───────────────┴───────┘
               1–255                     1–15      1–255

Little-endian, repeated to the end of the block.

Differences from the reference implementation (``iggy`` 0.6.210): bytes that make it panic are errors, repeats and the
order on the wire are kept, and keys are not lower-cased when they are written. As there, a value may have another size
than its type: that shows when it is read as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.reference.cursor import Cursor
from tests.reference.headers import iggy
from tests.reference.protocols import Entry, Outgoing, Refused
from tests.reference.value_types import IGGY_NAMED

LENGTHS = iggy.LENGTHS

MAX_VALUES_LEN = 100_000
"""The most bytes that the values of a request may have together where they are written."""


def read(cursor: Cursor) -> Iterator[Entry]:
    """Return the headers between the cursor and its end; note soft errors, raise the hard one."""
    index = 0
    while cursor.left:
        cursor.enter_header(index)
        cursor.check_header(index)
        size, fits = iggy.length(cursor, "key")
        key = cursor.text_key(size)
        value = iggy.take_value(cursor, IGGY_NAMED)
        if key is not None and fits and value is not None:
            yield Entry(index, key, *value)
        index += 1
    cursor.enter_header(None)


def write(headers: list[Outgoing]) -> bytes:
    """Write headers that have a type beside every value."""
    values_len = sum(len(header.value or b"") for header in headers)
    if values_len > MAX_VALUES_LEN:
        raise Refused("too_large", f"the values take {values_len} bytes, more than {MAX_VALUES_LEN}")
    return b"".join(
        len(header.key).to_bytes(4, "little") + header.key + iggy.tag(header.type or "", header.value or b"")
        for header in headers
    )
