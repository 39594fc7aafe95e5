"""``kip82-wrapper``: a value with its headers, as the alternative to KIP-82 wraps them on the client's side.

::

    ┌────────────┬───────────────────┬─────────────────┬────────────────────────────┬───────┐
    │ int8 magic │ int32 headers_len │ kip82-int block │ int32 value_len, -1 = null │ value │
    └────────────┴───────────────────┴─────────────────┴────────────────────────────┴───────┘
      0                               ◀─ headers_len ─▶

Big-endian. There is no reference implementation.
"""

from __future__ import annotations

from tests.reference.cursor import Cursor
from tests.reference.parts import fixed, nullable
from tests.reference.protocols import Fields, Lose, Written

MAGIC = 0

LENGTH_LEN = 4
"""Bytes of the length before a value."""


def read(cursor: Cursor) -> tuple[Fields, Cursor]:
    """Read the fields, and find the block."""
    magic_at = cursor.at
    magic = cursor.big("magic", 1)
    if magic != MAGIC:
        raise cursor.hard("bad_magic", f"magic {magic} is unknown: a wrapper has {MAGIC}", magic_at)
    block = cursor.split(cursor.length32("headers length"), "headers block")
    fields: Fields = {"value": None}
    with cursor.softly():
        fields["value"] = take_value(cursor)
        cursor.nothing_after("value")
    return fields, block


def write(fields: Fields, written: Written, lose: Lose) -> bytes:
    """Write fields around a block."""
    magic = fixed("magic", MAGIC, 1)
    return magic + fixed("length", len(written.block), 4) + written.block + nullable(fields["value"])


def take_value(cursor: Cursor) -> bytes | None:
    """Read a value behind its length, which is -1 for null."""
    size = cursor.nullable_length32("value length")
    return None if size is None else cursor.take(size, "value")
