"""Range of keys of a store: :class:`KeyBounds`."""

from __future__ import annotations

from typing import NamedTuple

from letterhead.errors import PrefixError
from letterhead.state.reading.store_types import DetectedType
from letterhead.state.storage.keys import INDEX, MAX_TIME, SessionKeys, WindowKeys, increment, within

__all__ = ["KeyBounds"]


class KeyBounds(NamedTuple):
    """Range of keys with inclusive bounds."""

    first: bytes | None = None
    last: bytes | None = None
    prefix: bytes = b""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and key.startswith(self.prefix) and within(key, self.first, self.last)

    def stored(self, store_type: DetectedType) -> tuple[bytes | None, bytes | None]:
        """Return bounds that enclose all stored keys of the range; other keys may lie between them."""
        if store_type.time_ordered:
            return b"\0", INDEX
        if store_type.key_format == "versioned":
            return None, None
        first, last = self.first, self.last
        if self.prefix:
            first = self.prefix
            try:
                last = increment(self.prefix)
            except PrefixError:
                last = None
        if store_type.key_format == "key-value":
            return first, last
        schema = WindowKeys if store_type.key_format == "window" else SessionKeys
        return schema.bounds_of_range(first, last, 0, MAX_TIME)
