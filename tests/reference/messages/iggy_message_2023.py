"""``iggy-message-2023``: one message as clients of Apache Iggy 0.0.30 to 0.6 send it.

::

    ┌─────────┬─────────────────┬─────────────────┬─────────────────┬─────────┐
    │ u128 id │ u32 headers_len │ iggy-2023 block │ u32 payload_len │ payload │
    └─────────┴─────────────────┴─────────────────┴─────────────────┴─────────┘
                                 ◀─ headers_len ─▶                   ◀─ … len ─▶

Little-endian. An id is handed over most significant byte first.

Differences from the reference implementation (``iggy`` 0.6.210): those of the block.
"""

from __future__ import annotations

from tests.reference.cursor import Cursor
from tests.reference.parts import id_of, payload_of, take_id
from tests.reference.protocols import Fields, Lose, Written


def read(cursor: Cursor) -> tuple[Fields, Cursor]:
    """Read the fields, and find the block."""
    fields: Fields = {"id": take_id(cursor)}
    block = take_block(cursor)
    fields["payload"] = None
    with cursor.softly():
        fields["payload"] = take_payload(cursor)
        cursor.nothing_after("payload")
    return fields, block


def write(fields: Fields, written: Written, lose: Lose) -> bytes:
    """Write fields around a block."""
    id = id_of(fields["id"])
    payload = payload_of(fields["payload"], lose)
    return id + _behind_length(written.block) + _behind_length(payload)


def take_block(cursor: Cursor) -> Cursor:
    """Find the block by the length before it."""
    return cursor.split(cursor.little("headers length", 4), "headers block")


def take_payload(cursor: Cursor) -> bytes:
    """Read a payload by the length before it."""
    return cursor.take(cursor.little("payload length", 4), "payload")


def _behind_length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data
