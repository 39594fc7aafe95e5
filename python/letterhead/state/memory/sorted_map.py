"""Dictionary that can return ranges of its keys in order."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from typing import Any, Generic, TypeVar

__all__ = ["SortedMap"]

K = TypeVar("K")
V = TypeVar("V")

FEW = 64
"""Maximum number of changes for which inserting into the sorted list is cheaper than sorting it again."""


class SortedMap(dict[K, V], Generic[K, V]):
    """Dictionary that can also return ranges of its keys in order.

    Reads and writes cost the same as in a dict; the keys are sorted when a range is requested. Threads may request ranges
    concurrently, but not while a thread writes.

    Examples
    --------
    >>> rows = SortedMap()
    >>> rows["b"], rows["a"] = 2, 1
    >>> rows.between("a", "b"), rows.between(None, "a")
    (['a', 'b'], ['a'])
    """

    def __init__(self) -> None:
        super().__init__()
        self._order: list[Any] = []
        self._new: set[K] = set()
        self._gone: set[K] = set()
        self._ordering = threading.Lock()

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self:
            if key in self._gone:
                self._gone.discard(key)
            else:
                self._new.add(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        if key in self._new:
            self._new.discard(key)
        else:
            self._gone.add(key)

    def put(self, key: K, value: V | None) -> None:
        """Write a value; ``None`` removes the key if it exists."""
        if value is None:
            self.remove(key)
        else:
            self[key] = value

    def remove(self, key: K) -> V | None:
        """Remove a key if it exists, and return its value."""
        if key not in self:
            return None
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all keys."""
        super().clear()
        self._order = []
        self._new.clear()
        self._gone.clear()

    def between(self, first: K | None, last: K | None) -> list[K]:
        """Return a new list of the keys in [``first``, ``last``], in order; ``None`` means no bound."""
        order = self._in_order()
        low = 0 if first is None else bisect_left(order, first)
        high = len(order) if last is None else bisect_right(order, last)
        return order[low:high]

    def _in_order(self) -> list[Any]:
        if self._new or self._gone:
            with self._ordering:
                self._update_order()
        return self._order

    def _update_order(self) -> None:
        order = self._order
        if len(self._new) + len(self._gone) <= FEW:
            for key in self._gone:
                del order[bisect_left(order, key)]
            for key in self._new:
                order.insert(bisect_left(order, key), key)
        else:
            if self._gone:
                order = [key for key in order if key not in self._gone]
            order += self._new
            order.sort()
            self._order = order
        self._new.clear()
        self._gone.clear()
