"""The two ways in which Iggy has written headers, and the formats that have them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from letterhead.errors import check_name

__all__ = ["BLOCKS", "MESSAGES", "POLLED", "Layout", "ReadLayout", "check_layout", "check_read_layout"]

Layout: TypeAlias = Literal["2023", "tlv"]
ReadLayout: TypeAlias = Literal["2023", "tlv", "auto"]

BLOCKS: dict[str, str] = {"2023": "iggy-2023", "tlv": "iggy", "auto": "iggy-auto"}
"""The format that the headers of a layout have; ``auto`` tells the two apart and is for reading only."""

MESSAGES: dict[str, str] = {"2023": "iggy-message-2023", "tlv": "iggy-batch"}
"""The format of messages as they are sent."""

POLLED: dict[str, str] = {"2023": "iggy-polled-2023", "tlv": "iggy-batch"}
"""The format of messages as they are polled."""


def check_layout(layout: str) -> None:
    """Refuse what is not the name of a layout to write."""
    check_name("layout", layout, ("2023", "tlv"))


def check_read_layout(layout: str) -> None:
    """Refuse what is not the name of a layout to read."""
    check_name("layout", layout, BLOCKS)
