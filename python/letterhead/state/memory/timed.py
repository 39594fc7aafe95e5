"""In-memory window and session stores; rows older than the retention are removed, and rejected if they arrive later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from letterhead.state.base import ValueFormat, check_session_format, check_time
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.reads import SessionReads, StoreScan, WindowReads
from letterhead.state.storage.keys import (
    MAX_SEQUENCE,
    MAX_TIME,
    SessionKey,
    WindowedKey,
    make_windowed,
    session_parts,
    window_parts,
    within,
)

__all__ = ["InMemorySessionStore", "InMemoryWindowStore"]

K = TypeVar("K")
R = TypeVar("R")


class _TimedStore(InMemoryStore, Generic[K]):
    """Store of rows grouped by the start of a window or the end of a session; ``K`` is the type of keys in a group."""

    segment_interval = 1
    _observed: int
    _parts: Callable[[bytes], tuple[K, int]]
    """Function that splits the key of a changelog record into the map key and the time."""

    def __init__(self, name: str, retention: int, format: ValueFormat) -> None:
        super().__init__(name, format)
        self.retention = retention
        self._clear()

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Write the records of a changelog."""
        self._check_open()
        for record in records:
            self._put(*self._parts(record.key), record.value)

    def _put_or_drop(self, key: K, time: int, value: bytes | None) -> None:
        if not self._put(key, time, value):
            self._count_expired("segment")
        self._update_position()

    def _put(self, key: K, time: int, value: bytes | None) -> bool:
        """Write a row if its time is within the retention; return whether it was written."""
        self._expire()
        self._observed = max(self._observed, time)
        if time < self._oldest():
            return False
        self._write(key, time, value)
        return True

    def _write(self, key: K, time: int, value: bytes | None) -> None:
        rows = self._rows.get(time)
        if value is not None:
            if rows is None:
                rows = self._rows[time] = SortedMap()
            rows[key] = value
        elif rows is not None:
            rows.remove(key)
            if not rows:
                del self._rows[time]

    def _get(self, key: K, time: int) -> bytes | None:
        self._expire()
        rows = self._rows.get(time) if time >= self._oldest() else None
        return None if rows is None else rows.get(key)

    def _oldest(self) -> int:
        """Return the time of the oldest readable rows."""
        return self._observed - self.retention + 1

    def _expire(self) -> None:
        """Remove expired rows, except those that open iterators still need."""
        self._check_open()
        for iterator in [iterator for iterator in self._oldest_by_iterator if iterator._is_closed]:
            del self._oldest_by_iterator[iterator]
        oldest_kept = min([max(0, self._oldest()), *self._oldest_by_iterator.values()])
        for time in self._rows.between(None, oldest_kept - 1):
            del self._rows[time]

    def _read(
        self, times: list[int], first: K | None, last: K | None, backward: bool
    ) -> Iterator[tuple[int, K, bytes]]:
        """Yield rows in a range of times and keys, skipping rows that are deleted in the meantime."""
        for time in reversed(times) if backward else times:
            rows = self._rows.get(time)
            if rows is None:
                continue
            keys = rows.between(first, last)
            for key in reversed(keys) if backward else keys:
                value = rows.get(key)
                if value is not None:
                    yield time, key, value

    def _iterate_from(self, oldest: int, rows: Iterator[tuple[R, bytes]]) -> StoreIterator[R, bytes]:
        """Return an iterator that prevents rows from time ``oldest`` on from being removed until it is closed."""
        iterator = self._iterate(rows)
        self._oldest_by_iterator[iterator] = oldest
        return iterator

    def _clear(self) -> None:
        self._rows: SortedMap[int, SortedMap[K, bytes]] = SortedMap()
        self._observed = -1
        self._oldest_by_iterator: WeakKeyDictionary[StoreIterator[Any, bytes], int] = WeakKeyDictionary()


class InMemoryWindowStore(_TimedStore[bytes], WindowReads[bytes, bytes]):
    """In-memory window store, with rows ordered by start and then by key.

    Parameters are as in :class:`~letterhead.state.rocksdb.RocksDBWindowStore`. As in Kafka Streams, ``fetch`` finds no value
    in a store that keeps duplicates.
    """

    _sequence: int

    def __init__(
        self,
        name: str,
        retention: int,
        window_size: int,
        retain_duplicates: bool = False,
        *,
        format: ValueFormat = "headers",
    ) -> None:
        super().__init__(name, retention, format)
        self.window_size = window_size
        self.retain_duplicates = retain_duplicates

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Write a row; ``None`` deletes it. A row older than the retention is dropped."""
        self._check_open()
        check_time(start)
        self._put_or_drop(key, start, value)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Read a row."""
        return self._get(key, start)

    def scan(self, query: StoreScan) -> StoreIterator[WindowedKey, bytes]:
        """Return the rows of a scan."""
        self._expire()
        first = max(query.time_from, self._oldest())
        starts = [] if query.is_reversed else self._rows.between(first, query.time_to)
        return self._iterate_from(first, self._windows(starts, query))

    def _write(self, key: bytes, time: int, value: bytes | None) -> None:
        if self.retain_duplicates:
            if value is None:
                return  # a null value does not identify one of the duplicates
            self._sequence = (self._sequence + 1) & MAX_SEQUENCE
            key = _with_sequence(key, self._sequence)
        super()._write(key, time, value)

    def _windows(self, starts: list[int], query: StoreScan) -> Iterator[tuple[WindowedKey, bytes]]:
        low, high = query.key_from, query.key_to
        if not self.retain_duplicates:
            for start, key, value in self._read(starts, low, high, query.backward):
                yield make_windowed(key, start, self.window_size), value
            return
        first = None if low is None else _with_sequence(low, 0)
        last = None if high is None else _with_sequence(high, MAX_SEQUENCE)
        for start, numbered, value in self._read(starts, first, last, query.backward):
            key = numbered[:-4]
            # Check the range: with a sequence number, a key can sort after a longer key with the same beginning.
            if within(key, low, high):
                yield make_windowed(key, start, self.window_size), value

    def _parts(self, stored: bytes) -> tuple[bytes, int]:
        return window_parts(stored)[:2]

    def _clear(self) -> None:
        super()._clear()
        self._sequence = 0


class InMemorySessionStore(_TimedStore[tuple[bytes, int]], SessionReads[bytes, bytes]):
    """In-memory session store, with rows ordered by end, then by key, then by descending start.

    Parameters are as in :class:`~letterhead.state.rocksdb.RocksDBSessionStore`.
    """

    _times_in_keys = True

    def __init__(self, name: str, retention: int, *, format: ValueFormat = "headers") -> None:
        check_session_format(format)
        super().__init__(name, retention, format)

    def put(self, key: SessionKey, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it. A row older than the retention is dropped."""
        self._check_open()
        check_time(key.end)
        check_time(key.start)
        self._put_or_drop((key.key, -key.start), key.end, value)

    def remove(self, key: SessionKey) -> None:
        """Delete a row."""
        self._check_open()
        self._write((key.key, -key.start), key.end, None)

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Read a row."""
        return self._get((key, -start), end)

    def scan(self, query: StoreScan) -> StoreIterator[SessionKey, bytes]:
        """Return the rows of a scan.

        Raises
        ------
        ValueError
            If the earliest end is after the latest end, or if the store has sessions and the first key of ``fetch_range``
            is greater than the last key.
        """
        if query.by_time and query.time_from > query.time_to:
            raise ValueError("inconsistent range")
        self._expire()
        if query.operation == "fetch" and query.is_reversed and self._rows:
            raise ValueError("inconsistent range")
        ends = self._rows.between(query.time_from, query.time_to if query.by_time else None)
        oldest = ends[0] if ends else MAX_TIME
        return self._iterate_from(oldest, self._sessions([] if query.is_reversed else ends, query))

    def _sessions(self, ends: list[int], query: StoreScan) -> Iterator[tuple[SessionKey, bytes]]:
        latest_start = MAX_TIME if query.by_time else query.time_to
        first = None if query.key_from is None else (query.key_from, -MAX_TIME)
        last = None if query.key_to is None else (query.key_to, 0)
        for end, (key, negative_start), value in self._read(ends, first, last, query.backward):
            if -negative_start <= latest_start:
                yield SessionKey(key, -negative_start, end), value

    def _parts(self, stored: bytes) -> tuple[tuple[bytes, int], int]:
        key, start, end = session_parts(stored)
        return (key, -start), end


def _with_sequence(key: bytes, sequence: int) -> bytes:
    return key + sequence.to_bytes(4, "big")
