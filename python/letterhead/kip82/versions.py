"""Versions of produce and fetch requests, their message formats, and the conversions between these.

========  =====================================  =======================================================
version   messages                               specified by
========  =====================================  =======================================================
0, 1      magic 0: no timestamp                  Kafka 0.8, 0.9
2         magic 1 (magic 0 is accepted, too)     Kafka 0.10 (KIP-32)
3         magic 2, ``int``                       the second draft of KIP-82
4         magic 2, ``typed`` or ``wrapper``      the first draft; the alternative, if the log has that
========  =====================================  =======================================================

A log writes the magic of its ``message_format_version``, as brokers do since KIP-32.

* An older message is *converted up* on append: in magic 1 a missing timestamp becomes -1, and in magic 2 there are no
  headers.
* A message is *converted down* if a fetch of an older version reads it, or if the log writes an older magic. It loses
  its headers, and for magic 0 its timestamp. With ``wrapper`` the value leaves its wrapper, and the value of a
  delete becomes null, as an old client ignores bit 4. A null value that deletes nothing cannot be converted down: only
  clients of version 4 would keep the key.
* A fetch never converts up: every client can read older messages.
"""

from __future__ import annotations

from typing import Any, Literal

from letterhead._invariants import instance
from letterhead._names import check_name
from letterhead.errors import ConversionError, EncodeError
from letterhead.headers import Headers
from letterhead.kip82.compaction import is_delete
from letterhead.kip82.header_formats import BATCH_FORMATS, CODECS, MESSAGE_FORMATS, HeaderFormat, check_header_format
from letterhead.message import Message
from letterhead.one_message import batch, convert, encode, messages

__all__ = [
    "MAGIC",
    "VERSIONS",
    "check_version",
    "convert_down",
    "convert_up",
    "header_format_of",
    "pack",
    "set_format",
    "write_converted",
    "write_message",
]

MAGIC = {0: 0, 1: 0, 2: 1, 3: 2, 4: 2}
"""Magic of the messages that a fetch of each version returns."""

VERSIONS = tuple(MAGIC)

CODEC_BITS, LOG_APPEND_BIT = 0x07, 0x08
"""Attribute bits for the codec of a set, and for a timestamp assigned by the log."""


def check_version(version: int) -> None:
    """Raise ``TypeError`` or ``ValueError`` for an unknown version of a request."""
    if isinstance(version, bool) or not isinstance(version, int):
        raise TypeError(f"a version must be int, not {version.__class__.__name__}")
    if version not in MAGIC:
        raise ValueError(f"unknown version {version}: requests have the versions {', '.join(map(str, VERSIONS))}")


def header_format_of(version: int, header_format: HeaderFormat, default: HeaderFormat = "typed") -> HeaderFormat:
    """Return the header format for a request version and a log; ``default`` if the version has no headers."""
    check_version(version)
    if MAGIC[version] < 2:
        return default
    if version == 3:
        return "int"
    return "wrapper" if header_format == "wrapper" else "typed"


def set_format(version: int, header_format: HeaderFormat = "typed") -> str:
    """Return the format of message sets for a request version, for use with :func:`letterhead.messages`."""
    check_header_format(header_format)
    return BATCH_FORMATS[header_format_of(version, header_format)]


def convert_up(message: Message, header_format: HeaderFormat) -> Message:
    """Convert a message to magic 2, in a header format.

    Parameters
    ----------
    message : Message
        A message of any magic, with the fields of ``kip82-message*``. Null fields get the defaults of ``encode``. A
        message of magic 0 or 1 gets no headers, and becomes a delete if its value is null.
    header_format : {"typed", "int", "wrapper"}
        Header format of the result.

    Returns
    -------
    Message
        The message with magic 2, without a checksum: ``encode`` computes it.

    Raises
    ------
    EncodeError
        If the message is a compressed set (``bad_attributes``).

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.kip82.versions import convert_up
    >>> old = lh.decode(lh.encode({"headers": None, "magic": 1, "value": b"v"}, "kip82-message"), "kip82-message")
    >>> convert_up(old, "typed").headers
    Headers([])
    """
    check_header_format(header_format)
    if (message.attributes or 0) & CODEC_BITS:
        reason = "a compressed set is not a single message: open it with lh.messages"
        raise EncodeError(reason, format=MESSAGE_FORMATS[header_format], code="bad_attributes")
    old = message.magic is not None and message.magic < 2
    tombstone = (message.value is None if old else message.tombstone) if header_format == "wrapper" else None
    headers: Headers | None = Headers() if old and message.value is not None else message.headers
    return message._replace(magic=2, crc=None, headers=headers, tombstone=tombstone)


def convert_down(message: Message, magic: int, *, on_loss: Literal["raise", "drop"] = "raise") -> Message:
    """Convert a message to magic 0 or 1, for a consumer or log without support for headers.

    Parameters
    ----------
    message : Message
        A message with the fields of ``kip82-message*``.
    magic : {0, 1}
        Magic of the result.
    on_loss : {"raise", "drop"}, default "raise"
        What to do with a null value that is not a delete, as a wrapper can contain. Magic 0 and 1 do not support it;
        ``"drop"`` makes it a delete.

    Returns
    -------
    Message
        The message without headers, without a value if it is a delete, and in magic 0 without a timestamp.

    Raises
    ------
    ConversionError
        If a null value is not a delete, and ``on_loss="raise"`` (``field_not_carried``).

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.kip82.versions import convert_down
    >>> data = lh.encode({"headers": [("tenant", lh.String("acme"))], "key": b"k", "value": b"v"}, "kip82-message")
    >>> old = convert_down(lh.decode(data, "kip82-message"), magic=1)
    >>> old.magic, old.headers, old.value
    (1, None, b'v')
    """
    check_name("on_loss value", on_loss, ("raise", "drop"))
    if magic not in (0, 1):
        raise ValueError(f"unknown magic {magic!r}: messages are converted down to 0 (Kafka 0.8, 0.9) or 1 (0.10)")
    if on_loss == "raise" and message.value is None and not is_delete(message):
        reason = (
            f"magic {magic} has no null value that deletes nothing: use magic 2, or on_loss='drop' to make it a delete"
        )
        raise ConversionError(reason, format=MESSAGE_FORMATS["wrapper"], code="field_not_carried")
    attributes = (message.attributes or 0) & LOG_APPEND_BIT if magic else 0
    value = None if is_delete(message) else message.value
    return message._replace(magic=magic, crc=None, attributes=attributes, headers=None, value=value, tombstone=None)


def write_converted(message: Message, header_format: HeaderFormat, target: HeaderFormat, **options: Any) -> bytes:
    """Encode a message in a target header format; the options of ``convert`` apply only if the formats differ."""
    # The header format `wrapper` marks a delete with a bit, and the others with a null value, so the conversion is
    # lossless.
    if header_format == "wrapper" and target != "wrapper" and is_delete(message):
        message = message._replace(value=None, tombstone=True)
    data = write_message(message, header_format)
    if target == header_format:
        return data
    return instance(convert(data, MESSAGE_FORMATS[header_format], target=MESSAGE_FORMATS[target], **options), bytes)


def write_message(message: Message, header_format: HeaderFormat) -> bytes:
    """Encode a message of a header format."""
    return instance(encode(message, MESSAGE_FORMATS[header_format]), bytes)


def pack(data: bytes, header_format: HeaderFormat, attributes: int) -> bytes:
    """Compress concatenated messages into one set, with the codec and timestamp type in ``attributes``."""
    timed = attributes & LOG_APPEND_BIT
    unpacked = [
        message._replace(attributes=message.attributes & ~LOG_APPEND_BIT | (timed if message.magic else 0))
        for message in messages(data, BATCH_FORMATS[header_format])
    ]
    return batch(unpacked, BATCH_FORMATS[header_format], codec=CODECS[attributes & CODEC_BITS])
