"""The table of types: the type tags that typed formats put beside a value, and their codes.

Typed by hand, as the table of the Rust core is; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ValueType(NamedTuple):
    """One row: name, type code of the typed KIP-82 draft, type code of Iggy, bytes of a value."""

    name: str
    kip82: int | None
    iggy: int | None
    width: int | None


VALUE_TYPES: tuple[ValueType, ...] = (
    ValueType("bool", 0, 3, 1),
    ValueType("int8", 1, 4, 1),
    ValueType("int16", 3, 5, 2),
    ValueType("int32", 4, 6, 4),
    ValueType("int64", 5, 7, 8),
    ValueType("int128", None, 8, 16),
    ValueType("uint8", None, 9, 1),
    ValueType("uint16", None, 10, 2),
    ValueType("uint32", None, 11, 4),
    ValueType("uint64", None, 12, 8),
    ValueType("uint128", None, 13, 16),
    ValueType("float32", 6, 14, 4),
    ValueType("float64", 7, 15, 8),
    ValueType("char", 2, None, 2),
    ValueType("string", 8, 2, None),
    ValueType("binary", 9, 1, None),
)

UNNAMED: dict[int, str] = {code: f"type-{code}" for code in range(16, 256)}
"""Codes of Iggy that have no name yet."""

KIP82: Mapping[int, str] = {row.kip82: row.name for row in VALUE_TYPES if row.kip82 is not None}
"""The types of the typed KIP-82 draft by their codes."""

IGGY_NAMED: Mapping[int, str] = {row.iggy: row.name for row in VALUE_TYPES if row.iggy is not None}
"""The types of Iggy by their codes."""

IGGY: Mapping[int, str] = {**IGGY_NAMED, **UNNAMED}
"""The types of Iggy by their codes, those to come as well."""

_WIDTHS = {row.name: row.width for row in VALUE_TYPES}
_NAMES = set(_WIDTHS) | set(UNNAMED.values())


def is_type(name: str) -> bool:
    """Return whether there is a type of this name; a code without one is ``type-16`` to ``type-255``."""
    return name in _NAMES


def code_of(type: str, types: Mapping[int, str]) -> int:
    """Return the code that a format has for a type."""
    return next(code for code, name in types.items() if name == type)


def turned(type: str, data: bytes) -> bytes:
    """Turn a little-endian value into its bits, or bits into a little-endian value.

    Only types of fixed width have an order of bytes, and they have it even where a value has another size.
    """
    return data if _WIDTHS.get(type) is None else data[::-1]
