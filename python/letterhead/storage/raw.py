"""Stored values without what surrounds the payload, and older values in a newer form.

The functions skip the headers without reading them; where the bytes are not what they should be, they raise, and never
give bytes from somewhere else. ``None`` gives ``None``.
"""

from __future__ import annotations

from typing import Any

from letterhead._native import split_value
from letterhead.errors import DecodeError
from letterhead.headers import Headers
from letterhead.operations import decode

__all__ = [
    "convert_to_timestamped_format",
    "has_empty_headers",
    "headers",
    "headers_end",
    "raw_aggregation",
    "raw_plain_value",
    "raw_timestamped_value",
    "timestamp",
]

NO_TIMESTAMP = b"\xff" * 8  # -1


def convert_to_timestamped_format(value: bytes | None) -> bytes | None:
    """Put the timestamp -1 before a payload."""
    return None if value is None else NO_TIMESTAMP + value


def has_empty_headers(value: bytes) -> bool:
    """Say whether a value has no headers, by its first byte."""
    return value[:1] == b"\0"


def headers(value: bytes | None) -> Headers | None:
    """Read the headers of a value.

    Parameters
    ----------
    value : bytes or None
        A value with headers, of any store.

    Returns
    -------
    Headers or None
        The headers.

    Raises
    ------
    DecodeError
        If the size or the headers are not what they should be.
    """
    return None if value is None else decode(value, "streams").headers


def raw_plain_value(value: bytes | None) -> bytes | None:
    """Give the payload of a value that has headers and a timestamp.

    Raises
    ------
    DecodeError
        If the size is wrong, or the timestamp not there.

    Examples
    --------
    >>> import letterhead as lh
    >>> value = lh.encode(lh.Message(headers={"tenant": b"acme"}, timestamp=5, payload=b"42"), "streams-timestamped")
    >>> raw_plain_value(value), timestamp(value)
    (b'42', 5)
    """
    return None if value is None else split_value(value, True)[0]


def raw_timestamped_value(value: bytes | None) -> bytes | None:
    """Give the timestamp and the payload of a value that has headers.

    Raises
    ------
    DecodeError
        If the size is wrong, or the timestamp not there.
    """
    return None if value is None else value[split_value(value, True)[3] :]


def raw_aggregation(value: bytes | None) -> bytes | None:
    """Give the payload of a value that has headers and no timestamp.

    Raises
    ------
    DecodeError
        If the size is wrong.
    """
    return None if value is None else split_value(value, False)[0]


def timestamp(value: bytes) -> int:
    """Give the timestamp of a value that has headers.

    Raises
    ------
    DecodeError
        If the size is wrong, or the timestamp not there.
    """
    return split_value(value, True)[1]


def headers_end(value: bytes) -> int:
    """Give the place of the first byte after the headers.

    Raises
    ------
    DecodeError
        If the size is wrong.
    """
    return split_value(value, False)[3]


def shifted(error: DecodeError, by: int) -> DecodeError:
    """Make the error of a block one of the value that the block stands in."""
    place: dict[str, Any] = {
        name: getattr(error, name) for name in ("format", "code", "row", "header", "key", "column")
    }
    offset = None if error.byte_offset is None else error.byte_offset + by
    return DecodeError(error.message, byte_offset=offset, **place)
