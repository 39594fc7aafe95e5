"""``kip82-message``, ``kip82-message-int``, ``kip82-message-wrapper``: one message as the KIP-82 drafts have it in a log.

::

    ┌──────────────┬────────────┬─────────┬────────────┬─────────────────┬─────────────────┬─────┬───────────┬───────┐
    │ int64 offset │ int32 size │ u32 crc │ int8 magic │ int8 attributes │ int64 timestamp │ key │ [headers] │ value │
    └──────────────┴────────────┴─────────┴────────────┴─────────────────┴─────────────────┴─────┴───────────┴───────┘
                                 ◀─────────────────────────────── size ──────────────────────────────────────────────▶
                                           ◀──────────────────────── covered by the crc ──────────────────────────────▶

Big-endian. Key and value stand behind an int32 length, -1 for null; the checksum is CRC-32. Magic 0 has no timestamp,
and neither 0 nor 1 has headers.

::

    attributes   bits 0–2  codec: 0 for none, else the value is a compressed set of messages
                 bit 3     the timestamp is that of the log; from magic 1 on
                 bit 4     magic 2 only. Typed and integer layout: an int32 length and a block follow the key.
                           Wrapper layout: the message is a tombstone, whatever its value.

In the wrapper layout the value of magic 2, where it is not null and no compressed set, is a ``kip82-wrapper``. The drafts
exclude each other, so each layout has a name of its own; the first two differ in nothing but their block.

Magic 0 and 1 are Kafka's own; of magic 2 there is no reference implementation.
"""

from __future__ import annotations

import zlib

from letterhead.results import Loss
from tests.reference.cursor import Broken, Cursor
from tests.reference.messages import kip82_wrapper
from tests.reference.parts import check_crc, fixed, nullable
from tests.reference.protocols import Fields, Lose, Refused, Written

MAGIC = 2
"""The message format of the drafts."""

CODEC_BITS = 0x07
LOG_APPEND_BIT = 0x08
BIT_4 = 0x10
DEFINED_BITS = {0: CODEC_BITS, 1: CODEC_BITS | LOG_APPEND_BIT, MAGIC: CODEC_BITS | LOG_APPEND_BIT | BIT_4}
"""The attribute bits that mean something, by magic."""


class Message:
    """One of the layouts.

    Parameters
    ----------
    wrapped : bool
        The headers are in a wrapper around the value, and bit 4 is the tombstone.
    """

    def __init__(self, *, wrapped: bool) -> None:
        self.wrapped = wrapped

    def read(self, cursor: Cursor) -> tuple[Fields, Cursor | None]:
        """Read the fields, and find the block; magic 0 and 1 have none."""
        offset, message = take_frame(cursor)
        try:
            fields, block, _ = self.read_framed(offset, message)
        except Broken as end:
            # Where the message ends is known all the same, and what is left after it is told last.
            cursor.details.append(end.detail)
            cursor.nothing_after("message")
            raise Broken(cursor.details.pop()) from None
        cursor.nothing_after("message")
        return fields, block

    def read_framed(self, offset: int, message: Cursor) -> tuple[Fields, Cursor | None, int | None]:
        """Read the message in a frame; give its fields, where its headers are and where its value begins.

        It begins nowhere when the message ends in the length before it.
        """
        crc_at = message.at
        crc = int.from_bytes(message.take(4, "crc"), "big")
        magic_at = message.at
        magic = message.big("magic", 1)
        if magic not in DEFINED_BITS:
            raise message.hard("bad_magic", _unknown(magic), magic_at)
        check_crc(message, crc, message.data[magic_at : message.end], crc_at)
        attributes_at = message.at
        attributes = message.big("attributes", 1)
        undefined = attributes & 0xFF & ~DEFINED_BITS[magic]
        if undefined:
            message.soft("bad_attributes", _undefined(undefined), attributes_at)
        if not self.wrapped and magic == MAGIC and attributes & CODEC_BITS and attributes & BIT_4:
            message.soft("bad_attributes", "a compressed set has no headers of its own", attributes_at)
        timestamp = message.big("timestamp", 8) if magic else None
        key_len = message.nullable_length32("key length")
        key = None if key_len is None else message.take(key_len, "key")
        fields: Fields = {
            "offset": offset,
            "crc": crc,
            "magic": magic,
            "attributes": attributes,
            "timestamp": timestamp,
            "key": key,
            "value": None,
            "tombstone": None,
        }
        return fields, *self._take_rest(message, fields)

    def _take_rest(self, message: Cursor, fields: Fields) -> tuple[Cursor | None, int | None]:
        """Read headers and value, and give where both are."""
        magic, bits = fields["magic"], fields["attributes"] & 0xFF
        if magic == MAGIC and self.wrapped:
            fields["tombstone"] = bool(bits & BIT_4)
            if not bits & CODEC_BITS:
                return _take_wrapper(message, fields)
        block = None
        if magic == MAGIC and not self.wrapped:
            block = _take_headers(message) if bits & BIT_4 else message.split(0, "headers block")
        length_len = kip82_wrapper.LENGTH_LEN
        value_at = message.at + length_len if message.left >= length_len else None
        with message.softly():
            fields["value"] = kip82_wrapper.take_value(message)
            if fields["tombstone"] is None:
                fields["tombstone"] = fields["value"] is None
            message.nothing_after("value")
        return block, value_at

    def write(self, fields: Fields, written: Written, lose: Lose) -> bytes:
        """Write fields around a block; the checksum and bit 4 follow from them."""
        magic = MAGIC if fields["magic"] is None else fields["magic"]
        if magic not in DEFINED_BITS:
            raise Refused("bad_magic", _unknown(magic))
        attributes = fixed("attributes", fields["attributes"] or 0, 1)[0] & ~BIT_4
        if attributes & ~DEFINED_BITS[magic]:
            raise Refused("bad_attributes", _undefined(attributes & ~DEFINED_BITS[magic]))
        if written.header_count and magic != MAGIC:
            lose(Loss("field_not_carried", f"magic {magic} has no headers"))
            written = Written(0, b"", False)
        if written.header_count and attributes & CODEC_BITS:
            raise Refused("bad_attributes", "a compressed set has no headers of its own")
        if magic == MAGIC and (fields["tombstone"] if self.wrapped else written.header_count):
            attributes |= BIT_4

        covered = fixed("magic", magic, 1) + bytes([attributes])
        if magic:
            covered += fixed("timestamp", -1 if fields["timestamp"] is None else fields["timestamp"], 8)
        covered += nullable(fields["key"])
        if self.wrapped and magic == MAGIC and not attributes & CODEC_BITS:
            # A null value without a wrapper deletes the key, even if bit 4 is clear.
            deletes = bool(fields["tombstone"]) or not written.has_headers_field
            no_wrapper = fields["value"] is None and not written.header_count and deletes
            covered += nullable(None if no_wrapper else kip82_wrapper.write(fields, written, lose))
        else:
            covered += nullable(written.block) if written.header_count else b""
            covered += nullable(fields["value"])
        crc = zlib.crc32(covered).to_bytes(4, "big")
        return fixed("offset", fields["offset"] or 0, 8) + nullable(crc + covered)


FLAGGED = Message(wrapped=False)
WRAPPED = Message(wrapped=True)


def take_frame(cursor: Cursor) -> tuple[int, Cursor]:
    """Read the offset, and step over the message behind it."""
    offset = cursor.big("offset", 8)
    return offset, cursor.split(cursor.length32("message size"), "message")


def _take_headers(message: Cursor) -> Cursor:
    """Find the block that bit 4 announces."""
    length_at = message.at
    size = message.length32("headers length")
    if size == 0:
        message.soft("bad_attributes", "bit 4 says that headers follow, and they have no bytes", length_at)
    return message.split(size, "headers block")


def _take_wrapper(message: Cursor, fields: Fields) -> tuple[Cursor | None, int]:
    """Read a value that is a wrapper or null."""
    size = message.nullable_length32("value length")
    value_at = message.at
    block = None
    if size is not None:
        wrapped, block = kip82_wrapper.read(message.split(size, "value"))
        fields |= wrapped
    message.nothing_after("value")
    return block, value_at


def _unknown(magic: int) -> str:
    return f"magic {magic} is unknown: 0, 1 and 2 are known"


def _undefined(bits: int) -> str:
    return f"attribute bits 0x{bits:02x} are not defined"
