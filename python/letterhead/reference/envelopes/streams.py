"""``streams``: session aggregations and versioned values of Kafka Streams stores that keep headers (KIP-1271).

::

    ┌──────────────┬───────────────────┬─────────┐
    │ varint size  │ kafka block       │ payload │
    └──────────────┴───────────────────┴─────────┘
                    ◀──── size ───────▶

No headers are size 0 and no block. A message without a payload is a tombstone: it has no cell.
"""

from __future__ import annotations

from letterhead.reference import varint
from letterhead.reference.cursor import Cursor
from letterhead.reference.walk import Fields


def unseal(cursor: Cursor) -> tuple[Fields, Cursor]:
    """Read the fields, and find the block."""
    block = unseal_block(cursor)
    return {"payload": cursor.take_rest()}, block


def is_absent(fields: Fields) -> bool:
    """Say whether a message with these fields is a tombstone."""
    return fields["payload"] is None


def seal(fields: Fields, block: bytes) -> bytes:
    """Write fields around a block."""
    payload: bytes = fields["payload"]
    return varint.write(len(block)) + block + payload


def unseal_block(cursor: Cursor) -> Cursor:
    """Find the block by the size before it."""
    return cursor.split(cursor.length("headers size"), "headers block")
