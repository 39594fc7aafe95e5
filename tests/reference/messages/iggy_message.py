"""``iggy-message``: one message of Apache Iggy 0.8.3 to 0.10, and what later releases give as the bytes of a message.

::

     0 ┌──────────────┬──────────────────────────────┐
       │ u64 checksum │ u128 id                      │
    24 ├──────────────┼───────────────┬──────────────┴───────┐
       │ u64 offset   │ u64 timestamp │ u64 origin_timestamp │
    48 ├──────────────┴──┬────────────┴────┬───────┬─────────┘
       │ u32 headers_len │ u32 payload_len │ u64 0 │
    64 ├─────────┬───────┴────┬────────────┴───────┘
       │ payload │ iggy block │
       └─────────┴────────────┘

Little-endian, times in microseconds. The checksum is handed on and not checked: releases differ in what it covers.

Differences from the reference implementation (``IggyMessage``): those of the block.
"""

from __future__ import annotations

from tests.reference.cursor import Cursor
from tests.reference.parts import id_of, natural, payload_of, take_id, take_int64
from tests.reference.protocols import Fields, Lose, Written


def read(cursor: Cursor) -> tuple[Fields, Cursor]:
    """Read the fields, and find the block."""
    fields: Fields = {"checksum": cursor.little("checksum", 8), "id": take_id(cursor)}
    for name in ("offset", "timestamp", "origin_timestamp"):
        fields[name] = take_int64(cursor, name.replace("_", " "))
    fields["payload"], block = take_body(cursor)
    cursor.nothing_after("headers")
    return fields, block


def write(fields: Fields, written: Written, lose: Lose) -> bytes:
    """Write fields around a block."""
    out = natural("checksum", fields["checksum"]) + id_of(fields["id"])
    for name in ("offset", "timestamp", "origin_timestamp"):
        out += natural(name.replace("_", " "), fields[name])
    payload = payload_of(fields["payload"], lose)
    lengths = len(written.block).to_bytes(4, "little") + len(payload).to_bytes(4, "little")
    return out + lengths + bytes(8) + payload + written.block


def take_body(cursor: Cursor) -> tuple[bytes, Cursor]:
    """Read lengths, reserved bytes and payload, and find the block."""
    headers_len = cursor.little("headers length", 4)
    payload_len = cursor.little("payload length", 4)
    reserved_at = cursor.at
    if cursor.little("reserved", 8):
        cursor.soft("bad_attributes", "the reserved bytes are not 0", reserved_at)
    payload = cursor.take(payload_len, "payload")
    return payload, cursor.split(headers_len, "headers block")
