"""Formats of Iggy's headers and messages, with their size limits."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from letterhead._names import check_name
from letterhead.errors import EncodeError

__all__ = [
    "MAX_FIELD_LEN",
    "MAX_HEADER_BYTES",
    "MAX_PAYLOAD_BYTES",
    "MESSAGES",
    "POLLED",
    "Format",
    "ReadFormat",
    "check_format",
    "check_header_bytes",
    "check_payload",
]

Format: TypeAlias = Literal["iggy-2023", "iggy"]
ReadFormat: TypeAlias = Literal["iggy-2023", "iggy", "iggy-auto"]

MESSAGES: dict[str, str] = {"iggy-2023": "iggy-message-2023", "iggy": "iggy-batch"}
"""Formats of messages to send."""

POLLED: dict[str, str] = {"iggy-2023": "iggy-polled-2023", "iggy": "iggy-batch"}
"""Formats of polled messages."""

MAX_FIELD_LEN = 255
"""Maximum length of a key, value or name in bytes; the minimum is 1."""

MAX_HEADER_BYTES = 100_000
"""Size limit of all header values of a request in ``iggy-2023``, and of the encoded headers of a message in ``iggy``."""

MAX_PAYLOAD_BYTES: dict[Format, int] = {"iggy-2023": 10_000_000, "iggy": 64_000_000}
"""Size limit of all payloads of a request in ``iggy-2023``, and of each payload in ``iggy``."""


def check_format(format: str, *, read: bool = False) -> None:
    """Raise ValueError for a format that cannot be written; with ``read``, for a format that cannot be read."""
    check_name("format", format, get_args(ReadFormat if read else Format))


def check_header_bytes(size: int, format: Format) -> None:
    """Raise EncodeError if headers exceed the limit of a format."""
    if size > MAX_HEADER_BYTES:
        part = "values" if format == "iggy-2023" else "headers"
        message = f"the {part} take {size} bytes, more than {MAX_HEADER_BYTES}"
        raise EncodeError(message, format=format, code="too_large")


def check_payload(size: int, format: Format) -> None:
    """Raise EncodeError if a payload is empty or too large."""
    if size == 0:
        raise EncodeError("the payload has no bytes", format=MESSAGES[format], code="empty_value")
    limit = MAX_PAYLOAD_BYTES[format]
    if size > limit:
        message = f"the payload takes {size} bytes, more than {limit}"
        raise EncodeError(message, format=MESSAGES[format], code="too_large")
