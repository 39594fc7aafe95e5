"""How much a message or a request may have."""

from __future__ import annotations

from letterhead.errors import EncodeError
from letterhead.iggy.formats import MESSAGES, Format

__all__ = ["LONGEST", "MOST_HEADER_BYTES", "MOST_PAYLOAD_BYTES", "check_header_bytes", "check_payload"]

LONGEST = 255
"""A key and a value have 1 to this many bytes."""

MOST_HEADER_BYTES = 100_000
"""In ``iggy-2023`` of the values of a request together, in ``iggy`` of the headers of one message as they are written."""

MOST_PAYLOAD_BYTES: dict[Format, int] = {"iggy-2023": 10_000_000, "iggy": 64_000_000}
"""In ``iggy-2023`` of the payloads of a request together, in ``iggy`` of one payload."""


def check_header_bytes(size: int, format: Format) -> None:
    """Refuse more bytes of headers than a format allows, counted as it counts them."""
    if size > MOST_HEADER_BYTES:
        what = "values" if format == "iggy-2023" else "headers"
        message = f"the {what} take {size} bytes, more than {MOST_HEADER_BYTES}"
        raise EncodeError(message, format=format, code="too_large")


def check_payload(size: int, format: Format) -> None:
    """Refuse a payload that is empty or too large."""
    if size == 0:
        raise EncodeError("the payload has no bytes", format=MESSAGES[format], code="empty_value")
    most = MOST_PAYLOAD_BYTES[format]
    if size > most:
        raise EncodeError(
            f"the payload takes {size} bytes, more than {most}", format=MESSAGES[format], code="too_large"
        )
