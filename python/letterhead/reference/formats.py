"""The table of formats. A new format is its file and one row here; no verb knows a format by name.

Typed by hand, as the table of the Rust core is; a test holds the two together.
"""

from __future__ import annotations

from typing import NamedTuple

from letterhead.errors import check_name
from letterhead.reference.blocks import kafka
from letterhead.reference.envelopes import streams, streams_timestamped
from letterhead.reference.walk import Block, Envelope


class Format(NamedTuple):
    """One row: what a user is told, the Arrow types of the fields, and what reads and writes the bytes."""

    name: str
    is_: str
    source: str
    layout: str
    fields: tuple[tuple[str, str], ...]
    block: Block
    envelope: Envelope | None


HEADERS = "list<element: struct<key: string, value: binary>>"

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            name="kafka",
            is_="block",
            source="KIP-82 as shipped (record format 2), KIP-1271 headers_bytes",
            layout="varint count, then varint key_len, key UTF-8, varint value_len or -1, value; zig-zag varints",
            fields=(("headers", HEADERS),),
            block=kafka,
            envelope=None,
        ),
        Format(
            name="streams",
            is_="envelope",
            source="KIP-1271: session aggregations and versioned values",
            layout="varint size, kafka block, payload",
            fields=(("headers", HEADERS), ("payload", "binary")),
            block=kafka,
            envelope=streams,
        ),
        Format(
            name="streams-timestamped",
            is_="envelope",
            source="KIP-1271: key-value and window values",
            layout="varint size, kafka block, int64 timestamp (ms, big-endian), payload",
            fields=(("headers", HEADERS), ("timestamp", "int64"), ("payload", "binary")),
            block=kafka,
            envelope=streams_timestamped,
        ),
    )
}


def named(name: str) -> Format:
    """Find a format by its name."""
    check_name("format", name, FORMATS)
    return FORMATS[name]
