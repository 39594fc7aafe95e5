"""The formats of Iggy's headers, and those of the messages around them.

``iggy-auto`` tells the two formats apart and is for reading only.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from letterhead.errors import check_name

__all__ = ["MESSAGES", "POLLED", "Format", "ReadFormat", "check_format", "check_read_format"]

Format: TypeAlias = Literal["iggy-2023", "iggy"]
ReadFormat: TypeAlias = Literal["iggy-2023", "iggy", "iggy-auto"]

MESSAGES: dict[str, str] = {"iggy-2023": "iggy-message-2023", "iggy": "iggy-batch"}
"""The format of messages as they are sent."""

POLLED: dict[str, str] = {"iggy-2023": "iggy-polled-2023", "iggy": "iggy-batch"}
"""The format of messages as they are polled."""


def check_format(format: str) -> None:
    """Refuse what is not the name of a format to write."""
    check_name("format", format, ("iggy-2023", "iggy"))


def check_read_format(format: str) -> None:
    """Refuse what is not the name of a format to read."""
    check_name("format", format, ("iggy-2023", "iggy", "iggy-auto"))
