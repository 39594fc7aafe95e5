"""Layer that caches writes: a commit writes only the last value of each key to the store and its changelog.

Reads merge cached and stored rows. The retention of a store does not apply to entries while they are cached.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias

from letterhead.errors import InvalidStateStoreError, forked_store_error
from letterhead.state.base import KeyValueWrites
from letterhead.state.context import StoreContext
from letterhead.state.interfaces import StoreIterator
from letterhead.state.layers.base import Layer, chain
from letterhead.state.layers.cache import CacheEntry, Namespace, RecordCache
from letterhead.state.layers.change_logging import ChangeLogging
from letterhead.state.layers.rows import merge_rows
from letterhead.state.processor import RecordContext
from letterhead.state.reads import StoreScan
from letterhead.state.storage import keys
from letterhead.state.storage.keys import MAX_TIME, SessionKey, WindowedKey, make_windowed

__all__ = ["CachingKeyValueStore", "CachingSessionStore", "CachingWindowStore", "FlushListener", "Order"]

FlushListener: TypeAlias = Callable[[Any, bytes | None, bytes | None, RecordContext], None]
"""Callback for each change written to the store: key, new value, old value (if requested), and record."""

Order: TypeAlias = Literal["segments", "memory", "time", "time-only"]
"""Order of rows in the inner store: by segment and key; as in memory stores; by segment and time, except in scans by
key; or always by segment and time."""

_CachedRows: TypeAlias = list[tuple[Any, Any, bytes | None]]
"""Sort key, key and value of each cached row; a value of ``None`` means that the stored row is deleted."""


class _Caching(Layer):
    """Base class of caches; subclasses define which row of the inner store a cache key identifies."""

    cache: Namespace
    """Entries of this store, with counts of hits and misses."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._listener: FlushListener | None = None
        self._send_old_values = False
        self._check = inner.check if isinstance(inner, ChangeLogging) else None

    def set_flush_listener(self, listener: FlushListener | None, *, send_old_values: bool = False) -> bool:
        """Set the function to call for each change; return True, because there is a cache."""
        self._listener = listener
        self._send_old_values = send_old_values
        return True

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store and its namespace in the cache."""
        super().open(directory, context)
        self._bottom = chain(self)[-1]
        if context.cache is None:
            context.cache = RecordCache(0)
        try:
            self.cache = context.cache.namespace(self._namespace(), self._write)
        except ValueError:
            self.inner.close()
            raise

    def flush(self) -> None:
        """Write cached changes to the store below."""
        self.cache.flush()
        super().flush()

    def close(self) -> None:
        """Write cached changes and close the store."""
        try:
            if self.inner.is_open and not getattr(self._bottom, "opened_by_parent", False):
                self.cache.flush()
        finally:
            if self.context.cache is not None:
                self.context.cache.close(self._namespace())
            self.inner.close()

    # Implemented by the cache of each type of store.

    def _key(self, cache_key: bytes) -> Any:
        """Return the key of a row in the store below from its key in the cache."""
        raise NotImplementedError

    def _get_below(self, cache_key: bytes) -> bytes | None:
        """Read a row from the store below."""
        raise NotImplementedError

    def _put_below(self, cache_key: bytes, value: bytes | None) -> None:
        """Write a row to the store below; ``None`` deletes it."""
        raise NotImplementedError

    def _namespace(self) -> str:
        return f"{self.context.task_id}-{self.name}"

    def _check_open(self) -> None:
        """Raise InvalidStateStoreError if the store is closed, or was opened by a parent process, which has its own cache."""
        if not self._bottom.is_open:
            raise InvalidStateStoreError(f"Store {self.name} is currently closed")
        if getattr(self._bottom, "opened_by_parent", False):  # missing in stores of an application
            raise forked_store_error(self.name)

    def _read_cached(self, key: bytes) -> CacheEntry | None:
        self._check_open()
        return self.cache.get(key)

    def _write_cached(self, key: bytes, value: bytes | None) -> None:
        self._check_open()
        if value is not None and self._check is not None:
            self._check(value)  # an entry that a flush rejects would also block later entries
        self.cache.put(key, value, self.context.current())

    def _write(self, cache_key: bytes, entry: CacheEntry) -> None:
        """Write one entry to the store below, in the context of the record that wrote it."""
        new, listener = entry.value, self._listener
        old = None
        if listener is not None and (new is None or self._send_old_values):
            old = self._get_below(cache_key)
            if new is None and old is None:
                return  # the key was added and deleted in the cache only
        before = self.context.record
        self.context.record = entry.context
        try:
            self._put_below(cache_key, new)
            if listener is not None:
                listener(self._key(cache_key), new, old if self._send_old_values else None, self.context.current())
        finally:
            self.context.record = before

    def _rows(
        self, cached: _CachedRows, stored: Any, order: Callable[[Any], Any], reverse: bool
    ) -> StoreIterator[Any, bytes]:
        return StoreIterator(merge_rows(cached, stored, order, reverse), self.name, on_close=stored.close)


class CachingKeyValueStore(_Caching, KeyValueWrites):
    """Cache for the writes and reads of a key-value store."""

    def put(self, key: bytes, value: bytes | None) -> None:
        """Put a value, or delete the key."""
        self._write_cached(key, value)

    def delete(self, key: bytes) -> bytes | None:
        """Delete a key."""
        before = self.get(key)
        self._write_cached(key, None)
        return before

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, and cache it if it was read from the store."""
        entry = self._read_cached(key)
        if entry is not None:
            return entry.value
        value: bytes | None = self.reads.get(key)
        if value is not None:
            self.cache.fill(key, value)
        return value

    def scan(self, query: StoreScan) -> StoreIterator[bytes, bytes]:
        """Return the rows of a scan."""
        if query.prefix is not None:
            keys.increment(query.prefix)  # raises for the prefixes that in-memory stores reject
            entries = self.cache.beginning_with(query.prefix)
        else:
            entries = [] if query.is_reversed else self.cache.range(query.key_from, query.key_to)
        cached: _CachedRows = [(key, key, entry.value) for key, entry in entries]
        return self._rows(cached[::-1] if query.backward else cached, self.reads.scan(query), _itself, query.backward)

    def approximate_num_entries(self) -> int:
        """Return the approximate number of rows in the store below."""
        return int(self.reads.approximate_num_entries())

    def _key(self, cache_key: bytes) -> bytes:
        return cache_key

    def _get_below(self, cache_key: bytes) -> Any:
        return self.reads.get(cache_key)

    def _put_below(self, cache_key: bytes, value: bytes | None) -> None:
        self.inner.put(cache_key, value)


class _CachingSegments(_Caching):
    """Base class of caches for windows and sessions; a cache key is ``int64 segment ‖ key of the store``."""

    def __init__(self, inner: Any, *, segment_interval: int, order: Order) -> None:
        super().__init__(inner)
        self._interval = segment_interval
        by_key = {"memory": self._as_in_memory, "time-only": self._by_segment_and_time}.get(
            order, self._by_segment_and_key
        )
        self._by_key, self._by_time = by_key, self._by_segment_and_time if order == "time" else by_key

    # Implemented by the cache of each type of store.

    def _last_time(self, query: StoreScan) -> int:
        """Return the last time to search: no later segment can contain a row of the scan."""
        raise NotImplementedError

    def _is_in_range(self, row: Any, query: StoreScan) -> bool:
        """Return whether the times of a row are in the range of a scan."""
        raise NotImplementedError

    def _by_segment_and_key(self, row: Any) -> Any:
        """Return the sort key of a row in a store whose rows are ordered by segment and key."""
        raise NotImplementedError

    def _as_in_memory(self, row: Any) -> Any:
        """Return the sort key of a row in an in-memory store."""
        raise NotImplementedError

    def _by_segment_and_time(self, row: Any) -> Any:
        """Return the sort key of a row in a time-ordered store."""
        raise NotImplementedError

    def _cache_key(self, key: bytes, time: int) -> bytes:
        return _SEGMENT.pack(max(time, 0) // self._interval) + key

    def scan(self, query: StoreScan) -> StoreIterator[Any, bytes]:
        """Return the rows of a scan."""
        order = self._by_time if query.by_time else self._by_key
        return self._rows(self._cached(query, order), self.reads.scan(query), order, query.backward)

    def _cached(self, query: StoreScan, order: Callable[[Any], Any]) -> _CachedRows:
        """Return the cached rows of a scan, in order."""
        first_time, last_time = query.time_from, self._last_time(query)
        if last_time < max(first_time, 0):
            return []
        first, last = max(first_time, 0) // self._interval, last_time // self._interval
        if query.one_key:
            entries = self._entries_of(query.key_from, first, last)
        else:
            entries = self.cache.range(_SEGMENT.pack(first), (last + 1).to_bytes(8, "big"))
        rows: _CachedRows = []
        for cache_key, entry in entries:
            row = self._key(cache_key)
            if self._is_in_range(row, query) and keys.within(row.key, query.key_from, query.key_to):
                rows.append((order(row), row, entry.value))
        rows.sort(key=itemgetter(0), reverse=query.backward)
        return rows

    def _entries_of(self, key: bytes, first: int, last: int) -> list[tuple[bytes, CacheEntry]]:
        """Return the entries whose keys begin with a key, segment by segment, skipping the keys in between."""
        entries: list[tuple[bytes, CacheEntry]] = []
        segment = first
        while segment <= last:
            next_key = self.cache.first_at_least(_SEGMENT.pack(segment) + key)
            if next_key is None:
                break
            segment_of_key = _SEGMENT.unpack_from(next_key)[0]
            if segment_of_key > segment:
                segment = segment_of_key
                if segment_of_key > last:
                    break
            entries += self.cache.beginning_with(_SEGMENT.pack(segment) + key)
            segment += 1
        return entries


class CachingWindowStore(_CachingSegments):
    """Cache for the writes of a window store; windows are ``window_size`` milliseconds long."""

    def __init__(self, inner: Any, *, segment_interval: int, order: Order, window_size: int) -> None:
        super().__init__(inner, segment_interval=segment_interval, order=order)
        self._size = window_size

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Put the value of a window, or delete it."""
        self._write_cached(self._cache_key(keys.window_key(key, start, 0), start), value)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Return the value of a window."""
        entry = self._read_cached(self._cache_key(keys.window_key(key, start, 0), start))
        return self.reads.fetch(key, start) if entry is None else entry.value

    def _last_time(self, query: StoreScan) -> int:
        return query.time_to

    def _is_in_range(self, row: WindowedKey, query: StoreScan) -> bool:
        return query.time_from <= row.start <= query.time_to

    def _by_segment_and_key(self, row: WindowedKey) -> Any:
        return max(row.start, 0) // self._interval, keys.window_key(row.key, row.start, 0)

    def _as_in_memory(self, row: WindowedKey) -> Any:
        return row.start, row.key

    def _by_segment_and_time(self, row: WindowedKey) -> Any:
        return max(row.start, 0) // self._interval, row.start, row.key

    def _key(self, cache_key: bytes) -> WindowedKey:
        key, start, _ = keys.window_parts(cache_key[8:])
        return make_windowed(key, start, self._size)

    def _get_below(self, cache_key: bytes) -> Any:
        row = self._key(cache_key)
        return self.reads.fetch(row.key, row.start)

    def _put_below(self, cache_key: bytes, value: bytes | None) -> None:
        row = self._key(cache_key)
        self.inner.put(row.key, value, row.start)


class CachingSessionStore(_CachingSegments):
    """Cache for the writes of a session store."""

    def put(self, session: SessionKey, value: bytes | None) -> None:
        """Put the aggregation of a session, or delete it."""
        self._write_cached(self._cache_key_of(*session), value)

    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        self.put(session, None)

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Return the aggregation of a session."""
        entry = self._read_cached(self._cache_key_of(key, start, end))
        return self.reads.fetch_session(key, start, end) if entry is None else entry.value

    def scan(self, query: StoreScan) -> StoreIterator[SessionKey, bytes]:
        """Return the rows of a scan; as in Kafka Streams, ``fetch`` is ``find_sessions`` without limits of time."""
        return super().scan(query._replace(operation="find_sessions"))

    def _last_time(self, query: StoreScan) -> int:
        return query.time_to if query.by_time else MAX_TIME

    def _is_in_range(self, row: SessionKey, query: StoreScan) -> bool:
        if query.by_time:
            return query.time_from <= row.end <= query.time_to
        return row.end >= query.time_from and row.start <= query.time_to

    def _by_segment_and_key(self, row: SessionKey) -> Any:
        return max(row.end, 0) // self._interval, keys.session_key(row.key, row.start, row.end)

    def _as_in_memory(self, row: SessionKey) -> Any:
        return row.end, row.key, -row.start

    def _by_segment_and_time(self, row: SessionKey) -> Any:
        return max(row.end, 0) // self._interval, row.end, row.start, row.key

    def _cache_key_of(self, key: bytes, start: int, end: int) -> bytes:
        return self._cache_key(keys.session_key(key, start, end), end)

    def _key(self, cache_key: bytes) -> SessionKey:
        return keys.session_parts(cache_key[8:])

    def _get_below(self, cache_key: bytes) -> Any:
        return self.reads.fetch_session(*self._key(cache_key))

    def _put_below(self, cache_key: bytes, value: bytes | None) -> None:
        self.inner.put(self._key(cache_key), value)


def _itself(key: bytes) -> bytes:
    return key


_SEGMENT = struct.Struct(">q")
