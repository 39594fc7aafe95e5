"""How much a message or a request may have."""

from __future__ import annotations

from letterhead.errors import EncodeError
from letterhead.iggy.layouts import BLOCKS, MESSAGES, Layout

__all__ = ["LONGEST", "MOST_HEADER_BYTES", "MOST_PAYLOAD_BYTES", "check_header_bytes", "check_payload"]

LONGEST = 255
"""A key and a value have 1 to this many bytes."""

MOST_HEADER_BYTES = 100_000
"""In ``2023`` of the values of a request together, in ``tlv`` of the headers of one message as they are written."""

MOST_PAYLOAD_BYTES: dict[Layout, int] = {"2023": 10_000_000, "tlv": 64_000_000}
"""In ``2023`` of the payloads of a request together, in ``tlv`` of one payload."""


def check_header_bytes(size: int, layout: Layout) -> None:
    """Refuse more bytes of headers than a layout allows, counted as it counts them."""
    if size > MOST_HEADER_BYTES:
        what = "values" if layout == "2023" else "headers"
        message = f"the {what} take {size} bytes, more than {MOST_HEADER_BYTES}"
        raise EncodeError(message, format=BLOCKS[layout], code="too_large")


def check_payload(size: int, layout: Layout) -> None:
    """Refuse a payload that is empty or too large."""
    if size == 0:
        raise EncodeError("the payload has no bytes", format=MESSAGES[layout], code="empty_value")
    most = MOST_PAYLOAD_BYTES[layout]
    if size > most:
        raise EncodeError(
            f"the payload takes {size} bytes, more than {most}", format=MESSAGES[layout], code="too_large"
        )
