"""``iggy-auto``: reads both layouts of Apache Iggy's headers, distinguished by the second byte.

A key has at most 255 bytes. In ``iggy-2023`` its length comes first, so the second byte is 0; in ``iggy`` the second
byte is the lowest of the length, which is never 0.

It is not written: of two layouts none is the one to write.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.reference.cursor import Cursor
from tests.reference.headers import iggy, iggy_2023
from tests.reference.protocols import Entry, Outgoing

INSTEAD = ("iggy", "iggy-2023")
"""The formats that can be written."""


def read(cursor: Cursor) -> Iterator[Entry]:
    """Return the headers between the cursor and its end; note soft errors, raise the hard one."""
    # A text key is a typed string already: both are a plain str.
    return iggy_2023.read(cursor) if cursor.peek(1) == 0 else iggy.read(cursor)


def write(headers: list[Outgoing]) -> bytes:
    """Refuse: no operation comes here, as the table says."""
    raise NotImplementedError(" or ".join(INSTEAD))
