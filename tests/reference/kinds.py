"""The table of kinds: the type tags that typed formats put beside a value, and their codes.

Typed by hand, as the table of the Rust core is; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """One row: name, type code of the typed KIP-82 draft, kind code of Iggy, bytes of a value."""

    name: str
    kip82: int | None
    iggy: int | None
    width: int | None


KINDS: tuple[Kind, ...] = (
    Kind("bool", 0, 3, 1),
    Kind("int8", 1, 4, 1),
    Kind("int16", 3, 5, 2),
    Kind("int32", 4, 6, 4),
    Kind("int64", 5, 7, 8),
    Kind("int128", None, 8, 16),
    Kind("uint8", None, 9, 1),
    Kind("uint16", None, 10, 2),
    Kind("uint32", None, 11, 4),
    Kind("uint64", None, 12, 8),
    Kind("uint128", None, 13, 16),
    Kind("float32", 6, 14, 4),
    Kind("float64", 7, 15, 8),
    Kind("char", 2, None, 2),
    Kind("string", 8, 2, None),
    Kind("binary", 9, 1, None),
)

UNNAMED: dict[int, str] = {code: f"kind-{code}" for code in range(16, 256)}
"""Codes of Iggy that have no name yet."""

KIP82: Mapping[int, str] = {row.kip82: row.name for row in KINDS if row.kip82 is not None}
"""The kinds of the typed KIP-82 draft by their codes."""

IGGY_NAMED: Mapping[int, str] = {row.iggy: row.name for row in KINDS if row.iggy is not None}
"""The kinds of Iggy by their codes."""

IGGY: Mapping[int, str] = {**IGGY_NAMED, **UNNAMED}
"""The kinds of Iggy by their codes, those to come as well."""

_WIDTHS = {row.name: row.width for row in KINDS}
_NAMES = set(_WIDTHS) | set(UNNAMED.values())


def is_kind(name: str) -> bool:
    """Say whether there is a kind of this name; a code without one is ``kind-16`` to ``kind-255``."""
    return name in _NAMES


def code_of(kind: str, kinds: Mapping[int, str]) -> int:
    """Give the code that a format has for a kind."""
    return next(code for code, name in kinds.items() if name == kind)


def turned(kind: str, data: bytes) -> bytes:
    """Turn a little-endian value into its bits, or bits into a little-endian value.

    Only kinds of fixed width have an order of bytes, and they have it even where a value has another size.
    """
    return data if _WIDTHS.get(kind) is None else data[::-1]
