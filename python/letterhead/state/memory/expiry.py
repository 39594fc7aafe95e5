"""Which times a store in memory still keeps."""

from __future__ import annotations

from typing import TypeVar
from weakref import WeakKeyDictionary

from letterhead.state.interfaces import StoreIterator

__all__ = ["Expiry"]

K = TypeVar("K")
V = TypeVar("V")


class Expiry:
    """The latest time that was seen, and what is too old for it.

    Parameters
    ----------
    retention : int
        How many milliseconds are kept.

    Examples
    --------
    >>> expiry = Expiry(10)
    >>> expiry.observe(100), expiry.observe(90), expiry.observe(91), expiry.bound()
    (True, False, True, 91)
    """

    def __init__(self, retention: int) -> None:
        self._retention = retention
        self._observed = -1
        self._held: WeakKeyDictionary[StoreIterator[object, object], int] = WeakKeyDictionary()

    def observe(self, time: int) -> bool:
        """Take note of the time of a row, and say whether it is kept."""
        self._observed = max(self._observed, time)
        return self.is_live(time)

    def is_live(self, time: int) -> bool:
        """Say whether rows of a time are kept."""
        return time > self._observed - self._retention

    def oldest(self) -> int:
        """Give the oldest time whose rows can be read."""
        return self._observed - self._retention + 1

    def bound(self) -> int:
        """Give the oldest time whose rows have to stay: no later than what open iterators have yet to read."""
        for iterator in [iterator for iterator in self._held if iterator.is_closed]:
            del self._held[iterator]
        return min([max(0, self.oldest()), *self._held.values()])

    def hold(self, iterator: StoreIterator[K, V], oldest: int) -> StoreIterator[K, V]:
        """Keep the rows from a time on for as long as an iterator is open."""
        self._held[iterator] = oldest  # type: ignore[index]
        return iterator
