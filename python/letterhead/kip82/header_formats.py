"""The three layouts of the drafts, and the formats of their bytes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from letterhead.errors import check_name

__all__ = ["BLOCKS", "CODECS", "MESSAGES", "SETS", "WRAPPER", "Codec", "Layout", "check_layout"]

Layout: TypeAlias = Literal["typed", "int", "wrapper"]

BLOCKS: dict[Layout, str] = {"typed": "kip82-typed", "int": "kip82-int", "wrapper": "kip82-int"}
"""The headers format of each layout."""

MESSAGES: dict[Layout, str] = {"typed": "kip82-message", "int": "kip82-message-int", "wrapper": "kip82-message-wrapper"}
"""The message format of each layout."""

SETS: dict[Layout, str] = {"typed": "kip82-messages", "int": "kip82-messages-int", "wrapper": "kip82-messages-wrapper"}
"""The batch format of each layout: concatenated messages."""

Codec: TypeAlias = Literal["none", "gzip", "snappy", "lz4"]

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4")
"""Codecs of a compressed set, by the three lowest attribute bits."""

WRAPPER = "kip82-wrapper"
"""The format of a value with its headers, in the layout ``wrapper``."""


def check_layout(layout: str) -> None:
    """Raise if there is no such layout."""
    check_name("layout", layout, BLOCKS)
