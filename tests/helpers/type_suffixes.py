"""Suffixes of types that tests try."""

from __future__ import annotations

from letterhead.types import ORDERS, UUID_ORDERS


def orders_of(name: str) -> tuple[str, ...]:
    """Return the suffixes that say how the bytes of a type are ordered, or that they are digits."""
    if name in ("string", "binary"):
        return ()
    return ("be", *UUID_ORDERS, "text") if name == "uuid" else ORDERS
