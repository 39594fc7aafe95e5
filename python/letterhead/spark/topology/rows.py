"""Rows of a store for the current group: all rows of a key (`SomeRows`), or the pages of a partition (`PagedRows`).

Changes are collected, and written to Spark's state after the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from letterhead.state.memory.sorted_map import SortedMap

__all__ = ["PAGE_ROWS", "Page", "PagedRows", "SomeRows"]

PAGE_ROWS = 64
"""Maximum number of rows of a page: reading them takes about as long as the round trip to Spark's state."""

Page = list[tuple[bytes, bytes]]


class _WritableRows(ABC):
    @abstractmethod
    def put(self, key: bytes, value: bytes | None) -> None: ...

    @abstractmethod
    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]: ...

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows."""
        for key, value in changes:
            self.put(key, value)

    def key_from(self, key: bytes) -> bytes | None:
        """Return the first key that is not smaller than ``key``."""
        row = next(self.scan(key), None)
        return None if row is None else row[0]

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Delete the rows with keys in [``first``, ``end``)."""
        for key, _ in self.scan(first, end):
            if key < end:
                self.put(key, None)


class SomeRows(_WritableRows):
    """Rows by key, all in memory; ``changed`` tells whether a row was written.

    Examples
    --------
    >>> rows = SomeRows([(b"b", b"2"), (b"a", b"1")])
    >>> rows.put(b"c", b"3")
    >>> list(rows.scan(b"b")), rows.changed
    ([(b'b', b'2'), (b'c', b'3')], True)
    """

    def __init__(self, rows: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._rows: SortedMap[bytes, bytes] = SortedMap()
        for key, value in rows:
            self._rows[key] = value
        self.changed = False

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""
        return self._rows.get(key)

    peek = get

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` removes it."""
        if value is not None:
            self._rows[key] = value
        elif self._rows.remove(key) is None:
            return
        self.changed = True

    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read the current rows with keys in [``first``, ``last``]."""
        keys = self._rows.between(first, last)
        if backward:
            keys.reverse()
        return iter([(key, self._rows[key]) for key in keys])

    def estimate(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def copy(self) -> SomeRows:
        """Return a copy."""
        rows = SomeRows(self.scan())
        rows.changed = self.changed
        return rows


class PagedRows(_WritableRows):
    """Rows by key, in pages: each has the rows from its first key up to the first key of the next page.

    A page is read when one of its rows is requested, and written after the group if a row has changed. So a group costs
    one round trip to Spark's state per page rather than per row; a scan keeps one page in memory at a time. ``firsts``
    are the first keys of the pages, in order; ``read`` reads a page by its first key.

    Examples
    --------
    >>> rows = PagedRows([b"b", b"m"], {b"b": [(b"b", b"2")], b"m": [(b"m", b"3"), (b"n", b"4")]}.__getitem__)
    >>> rows.put(b"a", b"1")
    >>> list(rows.scan(None, b"m"))
    [(b'a', b'1'), (b'b', b'2'), (b'm', b'3')]
    >>> list(rows.changes()), rows.firsts
    ([(b'b', None), (b'a', [(b'a', b'1'), (b'b', b'2')])], [b'a', b'm'])
    """

    def __init__(self, firsts: list[bytes], read: Callable[[bytes], Page]) -> None:
        self.firsts = firsts
        self._read = read
        self._pages: dict[bytes, SomeRows] = {}
        self._scanned: set[bytes] = set()  # pages that a scan may still read

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""
        return self._page(key).get(key) if self.firsts else None

    peek = get

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` removes it."""
        if not self.firsts:
            if value is None:
                return
            self.firsts.append(key)
            self._pages[key] = SomeRows()
        page = self._page(key)
        first = self._first(key)
        if first in self._scanned:
            self._scanned.remove(first)
            page = self._pages[first] = page.copy()
        page.put(key, value)

    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read the current rows with keys in [``first``, ``last``]."""
        low = 0 if first is None else self._page_index(first)
        high = len(self.firsts) if last is None else bisect_right(self.firsts, last)
        # Pages that are not in memory are read from the state, which does not change during the scan.
        pages = [(page_key, self._pages.get(page_key)) for page_key in self.firsts[low : max(high, low + 1)]]
        self._scanned.update(page_key for page_key, page in pages if page is not None)
        if backward:
            pages.reverse()
        return self._rows_of(pages, first, last, backward)

    def estimate(self) -> int:
        """Estimate the number of rows; pages that were not read are assumed to be half full."""
        unread = len(self.firsts) - len(self._pages)
        return sum(map(len, self._pages.values())) + unread * PAGE_ROWS // 2

    def changes(self) -> Iterator[tuple[bytes, Page | None]]:
        """Return the changed pages by their first keys, ``None`` for a removed page, and update the first keys."""
        for first, page in self._pages.items():
            if not page.changed:
                continue
            rows = list(page.scan())
            # A page with too many rows is split into halves, which leaves room in each.
            size = len(rows) if len(rows) <= PAGE_ROWS else PAGE_ROWS // 2
            parts = [rows[start : start + size] for start in range(0, len(rows), size or 1)]
            firsts = [part[0][0] for part in parts]
            if first not in firsts:
                yield first, None
            yield from zip(firsts, parts, strict=True)
            index = bisect_left(self.firsts, first)
            self.firsts[index : index + 1] = firsts

    def _rows_of(
        self, pages: list[tuple[bytes, SomeRows | None]], first: bytes | None, last: bytes | None, backward: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        for page_key, page in pages:
            # Pages are not cached: a full scan would hold all rows in memory.
            yield from (SomeRows(self._read(page_key)) if page is None else page).scan(first, last, backward=backward)

    def _page(self, key: bytes) -> SomeRows:
        first = self._first(key)
        page = self._pages.get(first)
        if page is None:
            page = self._pages[first] = SomeRows(self._read(first))
        return page

    def _first(self, key: bytes) -> bytes:
        return self.firsts[self._page_index(key)]

    def _page_index(self, key: bytes) -> int:
        """Return the index of the page of a key; keys before the first one belong to the first page."""
        return max(bisect_right(self.firsts, key) - 1, 0)
