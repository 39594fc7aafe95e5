"""The formats of Iggy's headers and messages, and their limits."""

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
"""The format of messages to send."""

POLLED: dict[str, str] = {"iggy-2023": "iggy-polled-2023", "iggy": "iggy-batch"}
"""The format of polled messages."""

MAX_FIELD_LEN = 255
"""Bytes of the longest key, value or name; the shortest has 1."""

MAX_HEADER_BYTES = 100_000
"""In ``iggy-2023`` a limit on all header values of a request, in ``iggy`` on the encoded headers of a message."""

MAX_PAYLOAD_BYTES: dict[Format, int] = {"iggy-2023": 10_000_000, "iggy": 64_000_000}
"""In ``iggy-2023`` a limit on all payloads of a request, in ``iggy`` on each payload."""


def check_format(format: str, *, read: bool = False) -> None:
    """Raise if this is not the name of a format to write, or to read; ``iggy-auto`` detects the format."""
    check_name("format", format, get_args(ReadFormat if read else Format))


def check_header_bytes(size: int, format: Format) -> None:
    """Raise if there are more bytes of headers than a format allows."""
    if size > MAX_HEADER_BYTES:
        part = "values" if format == "iggy-2023" else "headers"
        message = f"the {part} take {size} bytes, more than {MAX_HEADER_BYTES}"
        raise EncodeError(message, format=format, code="too_large")


def check_payload(size: int, format: Format) -> None:
    """Raise if a payload is empty or too large."""
    if size == 0:
        raise EncodeError("the payload has no bytes", format=MESSAGES[format], code="empty_value")
    limit = MAX_PAYLOAD_BYTES[format]
    if size > limit:
        message = f"the payload takes {size} bytes, more than {limit}"
        raise EncodeError(message, format=MESSAGES[format], code="too_large")
