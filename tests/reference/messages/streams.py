"""``streams``: session aggregations and versioned values of Kafka Streams stores that keep headers (KIP-1271).

::

    ┌──────────────┬───────────────────┬─────────┐
    │ varint size  │ kafka block       │ payload │
    └──────────────┴───────────────────┴─────────┘
                    ◀──── size ───────▶

No headers are size 0 and no block. A message without a payload is a tombstone: it has no bytes.
"""

from __future__ import annotations

from letterhead.results import Loss
from tests.reference import varint
from tests.reference.cursor import Cursor
from tests.reference.protocols import Fields, Lose, Written


def read(cursor: Cursor) -> tuple[Fields, Cursor]:
    """Read the fields, and find the block."""
    block = split_headers(cursor)
    return {"payload": cursor.take_rest()}, block


def write(fields: Fields, written: Written, lose: Lose) -> bytes | None:
    """Write fields around a block; nothing where the payload is null."""
    payload: bytes | None = fields["payload"]
    if payload is None:
        lose_headers(written, lose)
        return None
    return varint.write(len(written.block)) + written.block + payload


def split_headers(cursor: Cursor) -> Cursor:
    """Find the block by the size before it."""
    return cursor.split(cursor.varint_length("headers size"), "headers block")


def lose_headers(written: Written, lose: Lose) -> None:
    """Lose the headers of a tombstone, which has no bytes."""
    if written.header_count:
        message = f"the payload is null, so its headers cannot be written ({written.header_count})"
        lose(Loss("null_not_carried", message))
