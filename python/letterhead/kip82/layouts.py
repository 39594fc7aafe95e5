"""The three layouts of the drafts, and the formats that have their bytes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from letterhead.errors import check_name

__all__ = ["BLOCKS", "CODECS", "MESSAGES", "SETS", "WRAPPER", "Codec", "Layout", "check_layout"]

Layout: TypeAlias = Literal["typed", "int", "wrapper"]

BLOCKS: dict[Layout, str] = {"typed": "kip82-typed", "int": "kip82-int", "wrapper": "kip82-int"}
"""The format of the headers of a message, alone."""

MESSAGES: dict[Layout, str] = {"typed": "kip82-message", "int": "kip82-message-int", "wrapper": "kip82-message-wrapper"}
"""The format of one message."""

SETS: dict[Layout, str] = {"typed": "kip82-messages", "int": "kip82-messages-int", "wrapper": "kip82-messages-wrapper"}
"""The format of many, one after another."""

Codec: TypeAlias = Literal["none", "gzip", "snappy", "lz4"]

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4")
"""How a set is compressed, by the three lowest attribute bits."""

WRAPPER = "kip82-wrapper"
"""The format of a value with its headers."""


def check_layout(layout: str) -> None:
    """Refuse what is not the name of a layout."""
    check_name("layout", layout, BLOCKS)
