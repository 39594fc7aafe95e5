"""Formats of the compiled core: :func:`format_info` describes one of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from letterhead import _native

__all__ = ["FormatInfo", "format_info", "format_table"]


class FormatInfo(NamedTuple):
    """Properties of a format; see :func:`letterhead.formats`."""

    name: str
    is_: str  # headers, message or batch
    source: str
    layout: str
    fields: list[tuple[str, str]]  # names and types
    keys: Literal["text", "int", "typed"]
    types: bool  # whether values have types
    nulls: bool
    part_len: tuple[int, int]
    is_target: bool


@cache
def format_table() -> Mapping[str, FormatInfo]:
    """Return all formats by name."""
    return {row["name"]: FormatInfo(**row) for row in _native.formats()}


def format_info(format: str) -> FormatInfo | None:
    """Return the entry of a format; None for an unknown name, for which the compiled core raises an error."""
    return format_table().get(format)
