"""``iggy-auto``: reads both layouts of Apache Iggy's headers, told apart by the second byte.

A key has at most 255 bytes. In ``iggy-2023`` its length comes first, so the second byte is 0; in ``iggy`` the second
byte is the lowest of the length, which is never 0.

It is not written: of two layouts none is the one to write.
"""

from __future__ import annotations

from collections.abc import Iterator

from reference.blocks import iggy, iggy_2023
from reference.cursor import Cursor
from reference.walk import Entry, Outgoing

INSTEAD = ("iggy", "iggy-2023")
"""The formats that can be written."""


def walk(cursor: Cursor) -> Iterator[Entry]:
    """Give the headers between the cursor and its end; note soft faults, raise the hard one."""
    # A text key is a typed string already: both are a plain str.
    return iggy_2023.walk(cursor) if cursor.peek(1) == 0 else iggy.walk(cursor)


def write(headers: list[Outgoing]) -> bytes:
    """Refuse: no verb comes here, as the table says."""
    raise NotImplementedError(" or ".join(INSTEAD))
