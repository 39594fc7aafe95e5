"""``streams-timestamped``: key-value and window values of Kafka Streams stores that keep headers (KIP-1271).

::

    ┌──────────────┬───────────────────┬─────────────────┬─────────┐
    │ varint size  │ kafka block       │ int64 timestamp │ payload │
    └──────────────┴───────────────────┴─────────────────┴─────────┘
                    ◀──── size ───────▶  big-endian, ms

No headers are size 0 and no block. A message without a payload is a tombstone: it has no bytes.
"""

from __future__ import annotations

from tests.reference import varint
from tests.reference.cursor import Cursor
from tests.reference.messages.streams import lose_headers, split_headers
from tests.reference.parts import fixed
from tests.reference.protocols import Fields, Lose, Refused, Written


def read(cursor: Cursor) -> tuple[Fields, Cursor]:
    """Read the fields, and find the block."""
    block = split_headers(cursor)
    fields: Fields = {"timestamp": None, "payload": None}
    # The headers stand before it and can be read all the same.
    with cursor.softly():
        fields["timestamp"] = cursor.big("timestamp", 8)
        fields["payload"] = cursor.take_rest()
    return fields, block


def write(fields: Fields, written: Written, lose: Lose) -> bytes | None:
    """Write fields around a block; nothing where the payload is null."""
    timestamp: int | None = fields["timestamp"]
    payload: bytes | None = fields["payload"]
    if payload is None:
        lose_headers(written, lose)
        return None
    if timestamp is None:
        raise Refused("null_field", "the timestamp is null and the payload is not")
    return varint.write(len(written.block)) + written.block + fixed("timestamp", timestamp, 8) + payload
