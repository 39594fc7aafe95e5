"""``kip82-typed``: headers with string keys and typed values, as the first KIP-82 draft has them.

::

    header   ┌───────────────┬───────────┬─────────────────┬───────────┬───────┐
             │ int32 key_len │ key UTF-8 │ int32 value_len │ byte type │ value │
             └───────────────┴───────────┴─────────────────┴───────────┴───────┘
                                                            ◀── value_len ────▶

Big-endian, repeated to the end of the block. A value length of 0 is null, without a type byte.

There is no reference implementation. Where the draft contradicts itself its table of type codes holds: a boolean is one
byte after its type, a char one UTF-16 unit.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.reference import types
from tests.reference.cursor import Cursor
from tests.reference.parts import check_lengths, check_total, fixed
from tests.reference.protocols import Entry, Outgoing
from tests.reference.value_types import KIP82, code_of


def read(cursor: Cursor) -> Iterator[Entry]:
    """Return the headers between the cursor and its end; note soft errors, raise the hard one."""
    index = 0
    while cursor.left:
        cursor.enter_header(index)
        cursor.check_header(index)
        key = cursor.text_key(cursor.length32("key length"))
        size = cursor.length32("value length")
        type_at = cursor.at
        tagged = cursor.take(size, "value")
        if not tagged:
            if key is not None:
                yield Entry(index, key, None, None, type_at)
        else:
            type = _type(cursor, tagged, type_at)
            if key is not None and type is not None:
                yield Entry(index, key, type, tagged[1:], type_at + 1)
        index += 1
    cursor.enter_header(None)


def write(headers: list[Outgoing]) -> bytes:
    """Write headers that have a type beside every value but null."""
    check_lengths(headers)
    out = bytearray()
    for header in headers:
        tagged = b"" if header.value is None else bytes([code_of(header.type or "", KIP82)]) + header.value
        out += fixed("key length", len(header.key), 4) + header.key
        out += fixed("value length", len(tagged), 4) + tagged
    return check_total(bytes(out))


def _type(cursor: Cursor, tagged: bytes, start: int) -> str | None:
    """Return the type of a value; none, and an error noted, when it has no name or the value is none of it."""
    type = KIP82.get(tagged[0])
    if type is None:
        cursor.soft("unknown_type", f"value type code {tagged[0]} is unknown", start)
        return None
    value = tagged[1:]
    try:
        types.check("value", type, value)
    except types.Misfit as misfit:
        # The draft says that a boolean has no bytes; then it has no value either.
        nothing = type == "bool" and not value
        message = "a boolean without its byte holds no value" if nothing else misfit.message
        cursor.soft(misfit.code, message, start + 1 + misfit.within)
        return None
    return type
