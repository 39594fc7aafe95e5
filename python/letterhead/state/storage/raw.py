"""Parts of stored values with headers, and conversions between value formats.

Only :func:`headers` decodes headers; the other functions skip them. A wrong size of the headers, or a missing timestamp,
raises :class:`~letterhead.errors.DecodeError`. Functions that accept ``None`` return it unchanged.
"""

from __future__ import annotations

from letterhead._native import split_value
from letterhead.errors import DecodeError, copy_error
from letterhead.headers import Headers
from letterhead.one_message import decode

__all__ = [
    "convert_to_timestamped_format", "headers", "headers_end", "raw_aggregation", "raw_plain_value",
    "raw_timestamped_value", "timestamp",
]  # fmt: skip

NO_TIMESTAMP = b"\xff" * 8  # -1


def convert_to_timestamped_format(value: bytes | None) -> bytes | None:
    """Prepend the timestamp -1 to a payload."""
    return None if value is None else NO_TIMESTAMP + value


def headers(value: bytes | None) -> Headers | None:
    """Decode the headers of a value of any store with headers."""
    return None if value is None else decode(value, "streams").headers


def raw_plain_value(value: bytes | None) -> bytes | None:
    """Return the payload of a value with headers and a timestamp.

    Examples
    --------
    >>> import letterhead as lh
    >>> value = lh.encode(lh.Message(headers={"tenant": b"acme"}, timestamp=5, payload=b"42"), "streams-timestamped")
    >>> raw_plain_value(value), timestamp(value)
    (b'42', 5)
    """
    return None if value is None else split_value(value, True)[0]


def raw_timestamped_value(value: bytes | None) -> bytes | None:
    """Return the timestamp and the payload of a value with headers, as bytes."""
    return None if value is None else value[split_value(value, True)[3] :]


def raw_aggregation(value: bytes | None) -> bytes | None:
    """Return the payload of a value with headers and without a timestamp."""
    return None if value is None else split_value(value, False)[0]


def timestamp(value: bytes) -> int:
    """Return the timestamp of a value with headers."""
    return split_value(value, True)[1]


def headers_end(value: bytes) -> int:
    """Return the position of the first byte after the headers."""
    return split_value(value, False)[3]


def shift_error(error: DecodeError, by: int) -> DecodeError:
    """Convert an error in a part of a value to an error in the whole value: shift its position."""
    return copy_error(error, byte_offset=None if error.byte_offset is None else error.byte_offset + by)
