"""``streams-timestamped``: key-value and window values of Kafka Streams stores that keep headers (KIP-1271).

::

    ┌──────────────┬───────────────────┬─────────────────┬─────────┐
    │ varint size  │ kafka block       │ int64 timestamp │ payload │
    └──────────────┴───────────────────┴─────────────────┴─────────┘
                    ◀──── size ───────▶  big-endian, ms

No headers are size 0 and no block. A message without a payload is a tombstone: it has no cell.
"""

from __future__ import annotations

from letterhead.reference import varint
from letterhead.reference.cursor import Cursor, too_short
from letterhead.reference.envelopes.streams import is_absent, unseal_block
from letterhead.reference.walk import Fields, Refused

__all__ = ["is_absent", "seal", "unseal"]

TIMESTAMP_LEN = 8


def unseal(cursor: Cursor) -> tuple[Fields, Cursor]:
    """Read the fields, and find the block."""
    block = unseal_block(cursor)
    if cursor.left < TIMESTAMP_LEN:
        # The headers stand before it and can be read all the same.
        cursor.soft("truncated", too_short("timestamp", TIMESTAMP_LEN, cursor.left), cursor.at)
        return {"timestamp": None, "payload": None}, block
    timestamp = int.from_bytes(cursor.take(TIMESTAMP_LEN, "timestamp"), "big", signed=True)
    return {"timestamp": timestamp, "payload": cursor.take_rest()}, block


def seal(fields: Fields, block: bytes) -> bytes:
    """Write fields around a block."""
    timestamp: int | None = fields["timestamp"]
    payload: bytes = fields["payload"]
    if timestamp is None:
        raise Refused("null_field", "the timestamp is null and the payload is not")
    return varint.write(len(block)) + block + timestamp.to_bytes(TIMESTAMP_LEN, "big", signed=True) + payload
