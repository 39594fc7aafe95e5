"""Rows of a store while a group is at hand: those of one key at once, those of a partition by the page.

Nothing is written to Spark's state before the group is done. Until then a row is what the state has, unless it was
changed here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from letterhead.state.memory.sorted_map import SortedMap

__all__ = ["PAGE_ROWS", "Page", "PagedRows", "SomeRows"]

PAGE_ROWS = 64
"""Most rows of a page. Reading one takes Spark's state about as long for its rows as for the way there and back."""

Page = list[tuple[bytes, bytes]]


class _Rows(ABC):
    """What rows at hand can do by reading a range and writing one row."""

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
        """Give the first key that is not smaller than one."""
        row = next(self.scan(key), None)
        return None if row is None else row[0]

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Remove the rows from one key up to, and without, another."""
        for key, _ in self.scan(first, end):
            if key < end:
                self.put(key, None)


class SomeRows(_Rows):
    """Rows by key, all of them at hand.

    Parameters
    ----------
    rows : iterable of (key, value)
        The rows.

    Attributes
    ----------
    changed : bool
        Whether a row was written.

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
        """Read the rows from one key to another, both included, as they are at this moment."""
        keys = self._rows.between(first, last)
        if backward:
            keys.reverse()
        return iter([(key, self._rows[key]) for key in keys])

    def estimate(self) -> int:
        """Say how many rows there are."""
        return len(self._rows)

    def copy(self) -> SomeRows:
        """Give the same rows once more."""
        made = SomeRows(self.scan())
        made.changed = self.changed
        return made


class PagedRows(_Rows):
    """Rows by key, in pages: each holds the rows from its first key up to that of the next page.

    A page is read when a row of it is asked for, and written when the group is done, if a row of it was changed. So a
    group costs a way to Spark's state and back for each page that it touches, rather than for each row; and a scan has
    one page at a time.

    Parameters
    ----------
    firsts : list of bytes
        The first keys of the pages, in order.
    read : callable
        Reads a page from the state, by its first key.

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
        self._scanned: set[bytes] = set()  # pages that a scan may still be reading

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
        """Read the rows from one key to another, both included, as they are at this moment."""
        low = 0 if first is None else self._place(first)
        high = len(self.firsts) if last is None else bisect_right(self.firsts, last)
        # A page that is not at hand now has what the state has, whatever is written while the scan goes on.
        pages = [(of, self._pages.get(of)) for of in self.firsts[low : max(high, low + 1)]]
        self._scanned.update(of for of, page in pages if page is not None)
        if backward:
            pages.reverse()
        return self._rows_of(pages, first, last, backward)

    def estimate(self) -> int:
        """Estimate how many rows there are: pages that were not read count as half full."""
        unread = len(self.firsts) - len(self._pages)
        return sum(map(len, self._pages.values())) + unread * PAGE_ROWS // 2

    def changes(self) -> Iterator[tuple[bytes, Page | None]]:
        """Give what is to be written to the state, and bring the first keys up to date.

        Returns
        -------
        iterator of (bytes, list of (key, value) or None)
            Pages by their first keys; ``None`` removes one.
        """
        for first, page in self._pages.items():
            if not page.changed:
                continue
            rows = list(page.scan())
            # Two halves where there are too many rows: each can take as many again.
            size = len(rows) if len(rows) <= PAGE_ROWS else PAGE_ROWS // 2
            parts = [rows[at : at + size] for at in range(0, len(rows), size or 1)]
            firsts = [part[0][0] for part in parts]
            if first not in firsts:
                yield first, None
            yield from zip(firsts, parts, strict=True)
            at = bisect_left(self.firsts, first)
            self.firsts[at : at + 1] = firsts

    def _rows_of(
        self, pages: list[tuple[bytes, SomeRows | None]], first: bytes | None, last: bytes | None, backward: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        for of, page in pages:
            # Not kept: a scan of everything would otherwise hold everything.
            yield from (SomeRows(self._read(of)) if page is None else page).scan(first, last, backward=backward)

    def _page(self, key: bytes) -> SomeRows:
        first = self._first(key)
        page = self._pages.get(first)
        if page is None:
            page = self._pages[first] = SomeRows(self._read(first))
        return page

    def _first(self, key: bytes) -> bytes:
        return self.firsts[self._place(key)]

    def _place(self, key: bytes) -> int:
        """Find the page of a key; what is before the first key belongs to the first page."""
        return max(bisect_right(self.firsts, key) - 1, 0)
