"""Window and session stores in memory. Rows older than the retention are removed, and later ones are not accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from letterhead.state.base import ValueFormat, check_time
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.reads import SessionReads, StoreScan, WindowReads
from letterhead.state.storage.keys import (
    MAX_SEQUENCE,
    MAX_TIME,
    SessionKey,
    WindowedKey,
    session_parts,
    window_parts,
    windowed,
)

__all__ = ["InMemorySessionStore", "InMemoryWindowStore"]

K = TypeVar("K")


class _TimedStore(InMemoryStore):
    """Rows in a map for each time: the start of a window, or the end of a session."""

    segment_interval = 1
    _observed: int
    _parts: Callable[[bytes], tuple[Any, int]]
    """Split the key of a changelog record into the key of a row and its time."""
    _write: Callable[[Any, int, bytes | None], None]

    def __init__(self, name: str, retention: int, format: ValueFormat) -> None:
        super().__init__(name, format)
        self.retention = retention
        self._clear()

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Write the records of a changelog."""
        self._check_open()
        for record in records:
            self._put(*self._parts(record.key), record.value)

    def _put_or_drop(self, key: Any, time: int, value: bytes | None) -> None:
        if not self._put(key, time, value):
            self._expired("segment")
        self._update_position()

    def _put(self, key: Any, time: int, value: bytes | None) -> bool:
        """Write a row if its time is within the retention; return whether it is."""
        self._expire()
        self._observed = max(self._observed, time)
        if time < self._oldest():
            return False
        self._write(key, time, value)
        return True

    def _oldest(self) -> int:
        """Return the oldest time whose rows can be read."""
        return self._observed - self.retention + 1

    def _expire(self) -> None:
        """Remove expired rows, except those that open iterators have yet to read."""
        self._check_open()
        for iterator in [iterator for iterator in self._reading if iterator.is_closed]:
            del self._reading[iterator]
        bound = min([max(0, self._oldest()), *self._reading.values()])
        for time in self._rows.between(None, bound - 1):
            del self._rows[time]

    def _iterate_from(self, oldest: int, rows: Iterator[tuple[K, bytes]]) -> StoreIterator[K, bytes]:
        """Return an iterator, and keep the rows from a time on until it is closed."""
        iterator = self._iterate(rows)
        self._reading[iterator] = oldest
        return iterator

    def _clear(self) -> None:
        self._rows: SortedMap[int, SortedMap[bytes, Any]] = SortedMap()
        self._observed = -1
        self._reading: WeakKeyDictionary[StoreIterator[Any, bytes], int] = WeakKeyDictionary()


class InMemoryWindowStore(_TimedStore, WindowReads[bytes, bytes]):
    """A window store in memory. Its rows are ordered by start, then by key.

    The parameters are those of :class:`~letterhead.state.rocksdb.RocksDBWindowStore`. As in Kafka Streams, ``fetch`` finds
    no value in a store that keeps duplicates.
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
        self._expire()
        rows = self._rows.get(start) if start >= self._oldest() else None
        return None if rows is None else rows.get(key)

    def scan(self, query: StoreScan) -> StoreIterator[WindowedKey, bytes]:
        """Return the rows of a scan."""
        self._expire()
        first = max(query.time_from, self._oldest())
        starts = [] if query.is_reversed else self._rows.between(first, query.time_to)
        if query.backward:
            starts.reverse()
        return self._iterate_from(first, self._read(starts, query))

    def _write(self, key: bytes, time: int, value: bytes | None) -> None:
        if self.retain_duplicates:
            if value is None:
                return  # it is not known which of the rows to delete
            self._sequence = (self._sequence + 1) & MAX_SEQUENCE
            key = _with_sequence(key, self._sequence)
        rows = self._rows.get(time)
        if value is not None:
            if rows is None:
                rows = self._rows[time] = SortedMap()
            rows[key] = value
        elif rows is not None:
            rows.remove(key)
            if not rows:
                del self._rows[time]

    def _read(self, starts: list[int], query: StoreScan) -> Iterator[tuple[WindowedKey, bytes]]:
        duplicates, key_from, key_to = self.retain_duplicates, query.key_from, query.key_to
        first = _with_sequence(key_from, 0) if duplicates and key_from is not None else key_from
        last = _with_sequence(key_to, MAX_SEQUENCE) if duplicates and key_to is not None else key_to
        for start in starts:
            rows = self._rows.get(start)
            if rows is None:
                continue
            keys = rows.between(first, last)
            if query.backward:
                keys.reverse()
            for stored in keys:
                value = rows.get(stored)
                if value is None:
                    continue
                key = stored[:-4] if duplicates else stored
                # With a sequence number appended, a key can sort after one that it is a prefix of.
                if duplicates and ((key_from is not None and key < key_from) or (key_to is not None and key > key_to)):
                    continue
                yield windowed(key, start, self.window_size), value

    def _parts(self, stored: bytes) -> tuple[bytes, int]:
        return window_parts(stored)[:2]

    def _clear(self) -> None:
        super()._clear()
        self._sequence = 0


class InMemorySessionStore(_TimedStore, SessionReads[bytes, bytes]):
    """A session store in memory. Its rows are ordered by end, then by key, then by descending start.

    The parameters are those of :class:`~letterhead.state.rocksdb.RocksDBSessionStore`.
    """

    def __init__(self, name: str, retention: int, *, format: ValueFormat = "headers") -> None:
        super().__init__(name, retention, format)

    def put(self, key: SessionKey, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it. A row older than the retention is dropped."""
        self._check_open()
        check_time(key.end)
        check_time(key.start)
        self._put_or_drop(key, key.end, value)

    def remove(self, key: SessionKey) -> None:
        """Delete a row."""
        self._check_open()
        keys = self._rows.get(key.end)
        starts = None if keys is None else keys.get(key.key)
        if keys is None or starts is None:
            return
        starts.remove(key.start)
        if not starts:
            del keys[key.key]
        if not keys:
            del self._rows[key.end]

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Read a row."""
        self._expire()
        keys = self._rows.get(end) if end >= self._oldest() else None
        starts = None if keys is None else keys.get(key)
        return None if starts is None else starts.get(start)

    def scan(self, query: StoreScan) -> StoreIterator[SessionKey, bytes]:
        """Return the rows of a scan.

        Raises
        ------
        ValueError
            If the earliest end is later than the latest; or if ``fetch_range`` gets a first key greater than the last, and
            the store has sessions.
        """
        if query.by_time and query.time_from > query.time_to:
            raise ValueError("inconsistent range")
        self._expire()
        if query.operation == "fetch" and query.is_reversed and self._rows:
            raise ValueError("inconsistent range")
        ends = self._rows.between(query.time_from, query.time_to if query.by_time else None)
        oldest = ends[0] if ends else MAX_TIME
        if query.is_reversed:
            ends = []
        if query.backward:
            ends.reverse()
        return self._iterate_from(oldest, self._read(ends, query))

    def _write(self, key: SessionKey, time: int, value: bytes | None) -> None:
        if value is None:
            self.remove(key)
            return
        keys = self._rows.get(time)
        if keys is None:
            keys = self._rows[time] = SortedMap()
        starts = keys.get(key.key)
        if starts is None:
            starts = keys[key.key] = SortedMap()
        starts[key.start] = value

    def _read(self, ends: list[int], query: StoreScan) -> Iterator[tuple[SessionKey, bytes]]:
        latest_start = MAX_TIME if query.by_time else query.time_to
        for end in ends:
            rows = self._rows.get(end)
            if rows is None:
                continue
            keys = rows.between(query.key_from, query.key_to)
            if query.backward:
                keys.reverse()
            for key in keys:
                sessions = rows.get(key)
                if sessions is None:
                    continue
                starts = sessions.between(None, latest_start)
                if not query.backward:
                    starts.reverse()
                for start in starts:
                    value = sessions.get(start)
                    if value is not None:
                        yield SessionKey(key, start, end), value

    def _parts(self, stored: bytes) -> tuple[SessionKey, int]:
        key = session_parts(stored)
        return key, key.end


def _with_sequence(key: bytes, sequence: int) -> bytes:
    return key + sequence.to_bytes(4, "big")
