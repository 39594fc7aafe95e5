"""The table of formats. A new format is its file and one row here; no operation knows a format by name.

Typed by hand, as the table of the Rust core is; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from letterhead._names import check_name
from tests.reference.batches import iggy_batch, iggy_polled_2023, kip82_messages, record_batch
from tests.reference.headers import iggy, iggy_2023, iggy_auto, kafka, kip82_int, kip82_typed
from tests.reference.messages import (
    iggy_message,
    iggy_message_2023,
    kip82_message,
    kip82_wrapper,
    streams,
    streams_timestamped,
)
from tests.reference.parts import MAX_LEN
from tests.reference.protocols import BatchFormat, HeadersFormat, MessageFormat, Outgoing
from tests.reference.value_types import IGGY, IGGY_NAMED, KIP82


class Traits(NamedTuple):
    """What the headers of a format can be: the same for a block and for everything around it.

    Attributes
    ----------
    keys : {"text", "int", "typed"}
        The form of the keys.
    types : mapping of int to str, or None
        The types of values by their codes; ``None`` where values have none.
    nulls : bool
        A value can be null.
    lengths : range
        The bytes that a key or a value can have.
    checks : {"nothing", "size", "value"}
        How closely the reader looks at a value that has a type.
    canonical : callable, optional
        What headers are sorted by in the one order that the format has for them.
    instead : tuple of str
        The formats to write instead, where this one only reads.
    """

    keys: str = "text"
    types: Mapping[int, str] | None = None
    nulls: bool = True
    lengths: range = range(MAX_LEN + 1)
    checks: str = "nothing"
    canonical: Callable[[Outgoing], Any] | None = None
    instead: tuple[str, ...] = ()


class Format(NamedTuple):
    """One row: what a user is told, the Arrow types of the fields, and what reads and writes the bytes."""

    name: str
    is_: str
    source: str
    layout: str
    fields: tuple[tuple[str, str], ...]
    block: HeadersFormat
    message: MessageFormat | None = None
    batch: BatchFormat | None = None
    traits: Traits = Traits()
    micros: bool = False
    """Times are microseconds, not milliseconds."""
    marks_tombstones: bool = False
    """A tombstone is a mark of its own, and may have a value."""
    null_deletes: bool = False
    """A message whose value or payload is null is a tombstone."""


TYPED = Traits(types=KIP82, checks="value")
INT = Traits(keys="int")
IGGY_2023 = Traits(types=IGGY_NAMED, nulls=False, lengths=iggy_2023.LENGTHS)
IGGY_TLV = Traits(keys="typed", types=IGGY, nulls=False, lengths=iggy.LENGTHS, checks="size", canonical=iggy.canonical)

HEADERS = ("headers", "list<element: struct<key: string, value: binary>>")
TYPED_HEADERS = ("headers", "list<element: struct<key: string, type: string, value: binary>>")
INT_HEADERS = ("headers", "list<element: struct<key: int32, value: binary>>")
IGGY_HEADERS = ("headers", "list<element: struct<key_type: string, key: binary, type: string, value: binary>>")


def _message_fields(headers: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return (
        ("offset", "int64"),
        ("crc", "int64"),
        ("magic", "int8"),
        ("attributes", "int8"),
        ("timestamp", "int64"),
        ("key", "binary"),
        headers,
        ("value", "binary"),
        ("tombstone", "bool"),
    )


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            name="kafka",
            is_="headers",
            source="KIP-82 as shipped (record format 2), KIP-1271 headers_bytes",
            layout="varint count, then varint key_len, key UTF-8, varint value_len or -1, value; zig-zag varints",
            fields=(HEADERS,),
            block=kafka,
        ),
        Format(
            name="kip82-typed",
            is_="headers",
            source="KIP-82 draft, typed string keys",
            layout="int32 key_len, key UTF-8, int32 value_len (0: null), type byte, value; big-endian, "
            "repeated to the end",
            fields=(TYPED_HEADERS,),
            block=kip82_typed,
            traits=TYPED,
        ),
        Format(
            name="kip82-int",
            is_="headers",
            source="KIP-82 draft, integer keys",
            layout="int32 key, int32 value_len or -1, value; big-endian, repeated to the end",
            fields=(INT_HEADERS,),
            block=kip82_int,
            traits=INT,
        ),
        Format(
            name="iggy",
            is_="headers",
            source="Apache Iggy 0.8.2 and later: typed keys and values",
            layout="u8 key_type, u32 key_len, key, u8 type, u32 value_len, value; little-endian, repeated to the end",
            fields=(IGGY_HEADERS,),
            block=iggy,
            traits=IGGY_TLV,
            micros=True,
        ),
        Format(
            name="iggy-2023",
            is_="headers",
            source="Apache Iggy 0.0.30 to 0.8.1: message headers",
            layout="u32 key_len, key UTF-8, u8 type, u32 value_len, value; little-endian, repeated to the end",
            fields=(TYPED_HEADERS,),
            block=iggy_2023,
            traits=IGGY_2023,
            micros=True,
        ),
        Format(
            name="iggy-auto",
            is_="headers",
            source="Apache Iggy, either layout",
            layout="iggy or iggy-2023, as the second byte tells",
            fields=(IGGY_HEADERS,),
            block=iggy_auto,
            traits=IGGY_TLV._replace(canonical=None, instead=iggy_auto.INSTEAD),
            micros=True,
        ),
        Format(
            name="streams",
            is_="message",
            source="KIP-1271: session aggregations and versioned values",
            layout="varint size, kafka block, payload",
            fields=(HEADERS, ("payload", "binary")),
            block=kafka,
            message=streams,
            null_deletes=True,
        ),
        Format(
            name="streams-timestamped",
            is_="message",
            source="KIP-1271: key-value and window values",
            layout="varint size, kafka block, int64 timestamp (ms, big-endian), payload",
            fields=(HEADERS, ("timestamp", "int64"), ("payload", "binary")),
            block=kafka,
            message=streams_timestamped,
            null_deletes=True,
        ),
        Format(
            name="kip82-wrapper",
            is_="message",
            source="KIP-82 alternative, value message wrapper",
            layout="int8 magic 0, int32 headers_len, kip82-int block, int32 value_len or -1, value",
            fields=(INT_HEADERS, ("value", "binary")),
            block=kip82_int,
            message=kip82_wrapper,
            traits=INT,
        ),
        Format(
            name="kip82-message",
            is_="message",
            source="KIP-82 draft, typed string keys: message format 2",
            layout="int64 offset, int32 size, crc32, int8 magic, int8 attributes, int64 timestamp, key, "
            "[kip82-typed block], value",
            fields=_message_fields(TYPED_HEADERS),
            block=kip82_typed,
            message=kip82_message.FLAGGED,
            traits=TYPED,
            null_deletes=True,
        ),
        Format(
            name="kip82-message-int",
            is_="message",
            source="KIP-82 draft, integer keys: message format 2",
            layout="int64 offset, int32 size, crc32, int8 magic, int8 attributes, int64 timestamp, key, "
            "[kip82-int block], value",
            fields=_message_fields(INT_HEADERS),
            block=kip82_int,
            message=kip82_message.FLAGGED,
            traits=INT,
            null_deletes=True,
        ),
        Format(
            name="kip82-message-wrapper",
            is_="message",
            source="KIP-82 alternative, value message wrapper: message format 2",
            layout="int64 offset, int32 size, crc32, int8 magic, int8 attributes, int64 timestamp, key, kip82-wrapper",
            fields=_message_fields(INT_HEADERS),
            block=kip82_int,
            message=kip82_message.WRAPPED,
            traits=INT,
            marks_tombstones=True,
        ),
        Format(
            name="iggy-message-2023",
            is_="message",
            source="Apache Iggy 0.0.30 to 0.6: message as sent",
            layout="u128 id, u32 headers_len, iggy-2023 block, u32 payload_len, payload; little-endian",
            fields=(("id", "binary"), TYPED_HEADERS, ("payload", "binary")),
            block=iggy_2023,
            message=iggy_message_2023,
            traits=IGGY_2023,
            micros=True,
        ),
        Format(
            name="iggy-message",
            is_="message",
            source="Apache Iggy 0.8.3 to 0.10: 64-byte message header",
            layout="u64 checksum, u128 id, u64 offset, u64 timestamp, u64 origin_timestamp, u32 headers_len, "
            "u32 payload_len, u64 0, payload, iggy block; little-endian",
            fields=(
                ("checksum", "decimal128(20, 0)"),
                ("id", "binary"),
                ("offset", "int64"),
                ("timestamp", "int64"),
                ("origin_timestamp", "int64"),
                IGGY_HEADERS,
                ("payload", "binary"),
            ),
            block=iggy,
            message=iggy_message,
            traits=IGGY_TLV,
            micros=True,
        ),
        Format(
            name="kip82-messages",
            is_="batch",
            source="KIP-82 draft, typed string keys: message set",
            layout="kip82-message, repeated to the end; a compressed one holds a set of its own",
            fields=_message_fields(TYPED_HEADERS),
            block=kip82_typed,
            batch=kip82_messages.FLAGGED_SET,
            traits=TYPED,
        ),
        Format(
            name="kip82-messages-int",
            is_="batch",
            source="KIP-82 draft, integer keys: message set",
            layout="kip82-message-int, repeated to the end; a compressed one holds a set of its own",
            fields=_message_fields(INT_HEADERS),
            block=kip82_int,
            batch=kip82_messages.FLAGGED_SET,
            traits=INT,
        ),
        Format(
            name="kip82-messages-wrapper",
            is_="batch",
            source="KIP-82 alternative, value message wrapper: message set",
            layout="kip82-message-wrapper, repeated to the end; a compressed one holds a set of its own",
            fields=_message_fields(INT_HEADERS),
            block=kip82_int,
            batch=kip82_messages.WRAPPED_SET,
            traits=INT,
            marks_tombstones=True,
        ),
        Format(
            name="iggy-polled-2023",
            is_="batch",
            source="Apache Iggy 0.0.30 to 0.6: messages as polled",
            layout="u64 offset, [u8 state], u64 timestamp, u128 id, [u32 checksum], u32 headers_len, iggy-2023 block, "
            "u32 payload_len, payload; repeated to the end",
            fields=(
                ("offset", "int64"),
                ("state", "string"),
                ("timestamp", "int64"),
                ("id", "binary"),
                ("checksum", "int64"),
                TYPED_HEADERS,
                ("payload", "binary"),
            ),
            block=iggy_2023,
            batch=iggy_polled_2023,
            traits=IGGY_2023,
            micros=True,
        ),
        Format(
            name="iggy-batch",
            is_="batch",
            source="Apache Iggy 0.11: batch as sent and as polled",
            layout="[polled prefix], then 256-byte batch headers, each with its 48-byte frames",
            fields=(
                ("offset", "int64"),
                ("timestamp", "int64"),
                ("origin_timestamp", "int64"),
                ("id", "binary"),
                ("checksum", "decimal128(20, 0)"),
                IGGY_HEADERS,
                ("payload", "binary"),
            ),
            block=iggy,
            batch=iggy_batch,
            traits=IGGY_TLV,
            micros=True,
        ),
        Format(
            name="record-batch",
            is_="batch",
            source="Apache Kafka 4.3.1: record batches, message formats 0, 1 and 2",
            layout="61-byte batch headers, each with its records, compressed together; older message sets",
            fields=(
                ("offset", "int64"),
                ("timestamp", "int64"),
                ("timestamp_type", "int8"),
                ("key", "binary"),
                ("value", "binary"),
                HEADERS,
                ("producer_id", "int64"),
                ("producer_epoch", "int64"),
                ("sequence", "int64"),
                ("transactional", "bool"),
                ("control", "bool"),
            ),
            block=kafka,
            batch=record_batch,
        ),
    )
}


def named(name: str) -> Format:
    """Find a format by its name."""
    check_name("format", name, FORMATS)
    return FORMATS[name]


def of_one_message(name: str) -> Format:
    """Find a format that holds one message."""
    row = named(name)
    if row.batch is not None:
        raise ValueError(f"{name} is a batch: read it with messages")
    return row


def target(name: str) -> Format:
    """Find a format that can be written."""
    row = of_one_message(name)
    if row.traits.instead:
        instead = " or ".join(row.traits.instead)
        raise ValueError(f"{name} reads either layout and is no target: name {instead}")
    return row
