"""The versions of produce and fetch requests, the messages that each of them carries, and the ways between these.

========  =====================================  =======================================================
version   its sets hold messages of              from
========  =====================================  =======================================================
0, 1      magic 0: no timestamp                  Kafka 0.8, 0.9
2         magic 1 (magic 0 is taken, too)        Kafka 0.10 (KIP-32)
3         magic 2 in the integer layout          the second draft of KIP-82
4         magic 2, typed or with a wrapper       the first draft; the alternative, where the log is one of these
========  =====================================  =======================================================

A log writes the magic of its ``message_format_version``, as brokers do since KIP-32. An older message is *converted up* when
it is appended: magic 1 has the timestamp -1 if there was none, and magic 2 has no headers. A message is *converted down* when
a fetch of an older version asks for it, or when the log writes an older magic: its headers are dropped, magic 0 has no
timestamp, and in the wrapper layout the value leaves its wrapper and a delete that had a value becomes null, as an old client
could not see bit 4. A fetch never converts up: every client reads older messages.
"""

from __future__ import annotations

from typing import Any, Literal

from letterhead.errors import EncodeError
from letterhead.headers import Headers
from letterhead.kip82.compaction import is_delete
from letterhead.kip82.layouts import CODECS, MESSAGES, SETS, Layout
from letterhead.message import Message
from letterhead.operations import batch, convert, encode, messages
from letterhead.results import Types

__all__ = [
    "MAGIC",
    "VERSIONS",
    "carry",
    "check_version",
    "convert_down",
    "convert_up",
    "layout_of",
    "pack",
    "set_format",
    "write_message",
]

MAGIC = {0: 0, 1: 0, 2: 1, 3: 2, 4: 2}
"""The magic that a fetch of each version gives."""

VERSIONS = tuple(MAGIC)

CODEC_BITS, LOG_APPEND_BIT = 0x07, 0x08
"""The attribute bits that say how a set is compressed, and that a timestamp is the log's."""


def check_version(version: int) -> None:
    """Raise if a request has no such version."""
    if isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(f"a version must be int, not {version.__class__.__name__}")
    if version not in MAGIC:
        raise ValueError(f"there is no version {version}: requests have the versions {', '.join(map(str, VERSIONS))}")


def layout_of(version: int, layout: Layout) -> Layout | None:
    """Return the layout of the messages that a version of a request carries; None if they have no headers."""
    check_version(version)
    if MAGIC[version] < 2:
        return None
    if version == 3:
        return "int"
    return "wrapper" if layout == "wrapper" else "typed"


def set_format(version: int, layout: Layout = "typed") -> str:
    """Give the format of the sets in requests of a version, for :func:`letterhead.messages`."""
    return SETS[layout_of(version, layout) or "typed"]


def convert_up(message: Message, layout: Layout) -> Message:
    """Make a message of magic 2 from one of any magic.

    Parameters
    ----------
    message : Message
        A message as ``kip82-message*`` has it. Null fields are as when it is written.
    layout : {"typed", "int", "wrapper"}
        Layout of what is made.

    Returns
    -------
    Message
        The message: of magic 0 and 1 with no headers, and a null value as the delete that it was.

    Raises
    ------
    EncodeError
        If it is a compressed set.
    """
    if (message.attributes or 0) & CODEC_BITS:
        reason = "a compressed set is no message: open it with lh.messages"
        raise EncodeError(reason, format=MESSAGES[layout], code="bad_attributes")
    old = message.magic is not None and message.magic < 2
    tombstone = (message.value is None if old else message.tombstone) if layout == "wrapper" else None
    headers: Headers | None = Headers() if old and message.value is not None else message.headers
    return message._replace(magic=2, crc=None, headers=headers, tombstone=tombstone)


def convert_down(message: Message, magic: int) -> Message:
    """Make a message of an older magic.

    Parameters
    ----------
    message : Message
        A message as ``kip82-message*`` has it.
    magic : int
        0 or 1.

    Returns
    -------
    Message
        The message without its headers; magic 0 has no timestamp either. A delete has no value.
    """
    attributes = (message.attributes or 0) & LOG_APPEND_BIT if magic else 0
    value = None if is_delete(message) else message.value
    return message._replace(magic=magic, crc=None, attributes=attributes, headers=None, value=value, tombstone=None)


def carry(
    message: Message,
    layout: Layout,
    target: Layout,
    *,
    on_loss: Literal["raise", "drop"] = "raise",
    types: Types | None = None,
) -> bytes:
    """Write a message of one layout in another one."""
    # The wrapper layout says with a bit what the others say with a null value: this is no loss, but what a delete is.
    if layout == "wrapper" and target != "wrapper" and is_delete(message):
        message = message._replace(value=None, tombstone=False)
    # Only across layouts do losses and types mean anything: as it was sent, a message goes in or is refused.
    data = write_message(message, layout)
    if target == layout:
        return data
    options: dict[str, Any] = {"on_loss": on_loss, "types": types}
    return _whole(convert(data, MESSAGES[layout], target=MESSAGES[target], **options))


def write_message(message: Message, layout: Layout) -> bytes:
    """Write a message of a layout."""
    return _whole(encode(message, MESSAGES[layout]))


def pack(data: bytes, layout: Layout, attributes: int) -> bytes:
    """Compress messages into one set."""
    timed = attributes & LOG_APPEND_BIT
    given = [
        message._replace(attributes=message.attributes & ~LOG_APPEND_BIT | (timed if message.magic else 0))
        for message in messages(data, SETS[layout])
    ]
    return batch(given, SETS[layout], codec=CODECS[attributes & CODEC_BITS])


def _whole(data: bytes | None) -> bytes:
    # No message of these formats is without bytes; the type of the verbs allows for those that can be.
    if data is None:
        raise EncodeError("the message has no bytes", format=None, code="null_field")
    return data
