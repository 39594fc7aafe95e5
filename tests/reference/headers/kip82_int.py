"""``kip82-int``: headers with integer keys, as the second KIP-82 draft and the message wrapper have them.

::

    header   ┌───────────┬──────────────────────────────┬───────┐
             │ int32 key │ int32 value_len, -1 = null   │ value │
             └───────────┴──────────────────────────────┴───────┘

Big-endian, repeated to the end of the block. The order on the wire is kept, and keys repeat.

There is no reference implementation.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.reference.cursor import Cursor
from tests.reference.parts import check_lengths, check_total, fixed, nullable
from tests.reference.protocols import Entry, Outgoing


def read(cursor: Cursor) -> Iterator[Entry]:
    """Return the headers between the cursor and its end; raise the hard error."""
    index = 0
    while cursor.left:
        cursor.enter_header(index)
        cursor.check_header(index)
        key = cursor.big("key", 4)
        cursor.name_header(key)
        size = cursor.nullable_length32("value length")
        value_at = cursor.at
        value = None if size is None else cursor.take(size, "value")
        yield Entry(index, key, None, value, value_at)
        index += 1
    cursor.enter_header(None)


def write(headers: list[Outgoing]) -> bytes:
    """Write headers whose values are bytes or null already."""
    check_lengths(headers)
    return check_total(b"".join(fixed("key", header.key, 4) + nullable(header.value) for header in headers))
