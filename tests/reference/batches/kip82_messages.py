"""``kip82-messages``, ``kip82-messages-int``, ``kip82-messages-wrapper``: sets of the messages of the KIP-82 drafts.

::

    set      ┌─────────┬─────────┬ ─ ─
             │ message │ message │
             └─────────┴─────────┴ ─ ─
    message  as in kip82-message, kip82-message-int and kip82-message-wrapper; where it is compressed, its value is

             ┌───────────────────────────────────┐
             │ gzip, snappy or lz4 of another set│
             └───────────────────────────────────┘

A compressed message stands for the messages of its set and is none itself. Offsets inside are absolute in magic 0; from
magic 1 on they are relative, and the outer offset is that of the last message inside. With log append time (bit 3, from
magic 1 on) the outer timestamp is that of every message inside.

A message that cannot be read leaves the next ones readable, unless it hides where they begin. Places inside a compressed
set mean nothing to who has the message: its errors are said to be where the set begins.

Differences from the reference implementation (``MemoryRecords`` of Kafka 4.3.1, for magic 0 and 1): a message that is
cut off at the end is an error, which a lenient cursor lets go; a compressed set without messages is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.reference import codecs
from tests.reference.cursor import Broken, Cursor
from tests.reference.messages.kip82_message import (
    CODEC_BITS,
    FLAGGED,
    LOG_APPEND_BIT,
    MAGIC,
    WRAPPED,
    Message,
    take_frame,
)
from tests.reference.protocols import Fields, Opened, Refused

FRAME_LEN = 12
"""Offset and size, which the size does not count."""

MAGIC_WITHIN = 4
"""Position of the magic in a message: after its checksum."""

ATTRIBUTES_WITHIN = 5
"""Where the attributes stand in a message: after its checksum and its magic."""

KNOWN_CODECS = (1, 2, 3)
"""Zstandard came with batches of magic 2."""


class MessageSet:
    """A set in one of the layouts.

    Parameters
    ----------
    layout : Message
        The layout of its messages.
    """

    def __init__(self, layout: Message) -> None:
        self.layout = layout

    def messages(self, cursor: Cursor) -> Iterator[Opened]:
        """Return every message up to the cursor's end; one that hides where the next begins is the last."""
        while cursor.left and not (cursor.options.lenient and is_cut_off(cursor)):
            cursor.details = []
            try:
                offset, message = take_frame(cursor)
            except Broken as end:
                yield unreadable(cursor, end)
                return
            attributes_at = message.at + ATTRIBUTES_WITHIN
            try:
                fields, block, value_at = self.layout.read_framed(offset, message)
                codec = fields["attributes"] & CODEC_BITS
                if not codec:
                    inside = None
                elif value_at is None:  # Nowhere in the message, and that was noted.
                    yield Opened({}, None, cursor.details, broken=True)
                    continue
                else:
                    inside = _decompress(cursor, codec, fields, attributes_at, value_at)
            except Broken as end:
                yield unreadable(cursor, end)
                continue
            if inside is None:
                yield Opened(fields, block, cursor.details)
            else:
                yield from self._inside(inside, fields)

    def _inside(self, cursor: Cursor, outer: Fields) -> Iterator[Opened]:
        """Return the messages of a compressed set as if they stood in its place."""
        base = outer["offset"] - _last_offset(cursor) if outer["magic"] else 0
        appended = outer["magic"] and outer["attributes"] & LOG_APPEND_BIT
        while cursor.left:
            try:
                offset, message = take_frame(cursor)
            except Broken as end:
                yield unreadable(cursor, end)
                return
            try:
                _check_magic(message, outer)
                fields, block, _ = self.layout.read_framed(wrapped(offset + base), message)
                _check_inside(cursor, fields)
            except Broken as end:
                yield unreadable(cursor, end)
            else:
                if appended:
                    fields["timestamp"] = outer["timestamp"]
                yield Opened(fields, block, cursor.details)
            # What is wrong with the outer message was told with the first one inside.
            cursor.details = []
        if cursor.details:  # there was none
            yield Opened({}, None, cursor.details, broken=True)


FLAGGED_SET = MessageSet(FLAGGED)
WRAPPED_SET = MessageSet(WRAPPED)


def lay_out(messages: Iterable[Mapping[str, Any]], codec: int) -> Iterator[Fields]:
    """Return the fields of messages as a set has them: with their offsets, relative ones in a compressed set.

    Raises
    ------
    Refused
        If a message does not fit behind those before it.
    """
    first: Fields | None = None
    last = 0
    for message in messages:
        fields = dict(message)
        if fields["offset"] is None:
            fields["offset"] = 0 if first is None else wrapped(last + 1)
        if first is not None and fields["offset"] <= last:
            raise Refused("out_of_range", f"offset {fields['offset']} is not after {last}")
        if (fields["attributes"] or 0) & CODEC_BITS:
            raise Refused("bad_attributes", "a compressed set is no message of a set: give its messages")
        first, last = first or dict(fields), fields["offset"]
        if codec:
            magic, appended = _common(fields)
            if magic != _common(first)[0]:
                raise Refused("bad_magic", f"magic {magic} inside a set of magic {_common(first)[0]}")
            if appended != _common(first)[1]:
                text = "a compressed set has one timestamp type, and with log append time one timestamp"
                raise Refused("field_not_carried", text)
            if magic > 0:
                fields["offset"] = wrapped(last - first["offset"])
        yield {**fields, "last_offset": last}


def compressed(messages: Sequence[Fields], data: bytes, codec: int) -> Fields:
    """Return the fields of the message that holds a set, from the messages as :func:`lay_out` gave them and their bytes."""
    magic, appended = _common(messages[0])
    largest = max(_timestamp(message) for message in messages)
    return {
        "offset": messages[-1]["last_offset"],
        "magic": magic,
        "attributes": codec | (0 if appended is None else LOG_APPEND_BIT),
        "timestamp": largest if appended is None else appended,
        "key": None,
        "headers": [],
        "value": codecs.compress(codec, data, legacy=magic == 0),
        "tombstone": None,
    }


def _common(fields: Fields) -> tuple[int, int | None]:
    """Return what the messages of a compressed set share: the magic, and with log append time the timestamp."""
    magic: int = MAGIC if fields["magic"] is None else fields["magic"]
    appended = magic > 0 and (fields["attributes"] or 0) & LOG_APPEND_BIT
    return magic, _timestamp(fields) if appended else None


def _timestamp(fields: Fields) -> int:
    return -1 if fields["timestamp"] is None else fields["timestamp"]


def unreadable(cursor: Cursor, end: Broken) -> Opened:
    """Return a message that could not be read."""
    return Opened({}, None, [*cursor.details, end.detail], broken=True)


def _decompress(cursor: Cursor, codec: int, outer: Fields, attributes_at: int, value_at: int) -> Cursor:
    """Make a cursor over the set in a message."""
    if codec not in KNOWN_CODECS:
        raise cursor.hard("unknown_codec", f"codec {codec} is unknown", attributes_at)
    try:
        data = cursor.options.decompress(codec, outer["value"] or b"", legacy=outer["magic"] == 0)
    except codecs.Undecodable as error:
        raise cursor.hard(error.code, error.message, value_at) from None
    return Cursor(data, options=cursor.options, place=value_at, details=cursor.details)


def _check_magic(message: Cursor, outer: Fields) -> None:
    if message.left <= MAGIC_WITHIN:
        return
    magic = int.from_bytes(message.data[message.at + MAGIC_WITHIN :][:1], "big", signed=True)
    if magic != outer["magic"]:
        raise message.hard("bad_magic", f"magic {magic} inside a set of magic {outer['magic']}", message.at)


def _check_inside(cursor: Cursor, fields: Fields) -> None:
    if fields["attributes"] & CODEC_BITS:
        raise cursor.hard("bad_attributes", "a compressed set inside a compressed set", cursor.at)


def is_cut_off(cursor: Cursor) -> bool:
    """Return whether the bytes end inside the next message."""
    frame = cursor.data[cursor.at : cursor.end][:FRAME_LEN]
    return len(frame) < FRAME_LEN or cursor.left - FRAME_LEN < int.from_bytes(frame[8:], "big", signed=True)


def _last_offset(cursor: Cursor) -> int:
    """Return the offset of the last message that is there as a whole, by the frames alone."""
    frames = Cursor(cursor.data, cursor.at, cursor.end)
    last = 0
    try:
        while frames.left:
            offset = frames.big("offset", 8)
            frames.split(frames.length32("message size"), "message")
            last = offset
    except Broken:
        pass
    return last


def wrapped(number: int) -> int:
    """Cut a sum to 64 bits, as Java's arithmetic does."""
    return int.from_bytes((number & (1 << 64) - 1).to_bytes(8, "big"), "big", signed=True)
