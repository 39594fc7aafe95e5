"""Record cache of a thread: an LRU cache with a size limit in bytes, and one namespace for each store."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, takewhile

from letterhead.state.processor import RecordContext

__all__ = ["CacheEntry", "Namespace", "RecordCache"]

ENTRY_BYTES = 128
"""Overhead of an entry in bytes, in addition to its key and value."""


@dataclass(slots=True)
class CacheEntry:
    """A cached row."""

    value: bytes | None
    """Value in the store's format; ``None`` means that the key is deleted."""
    context: RecordContext | None
    """Record that wrote the value; ``None`` if it was read from the store."""
    dirty: bool
    """Whether the value has not been written to the store yet."""


class RecordCache:
    """Cache shared by the stores of a thread, with a current size of ``size_bytes`` and a limit of ``max_bytes``.

    If a write exceeds the limit, its namespace evicts the least recently used entries. Before a dirty entry is evicted, all
    dirty entries of the namespace are written to the store.

    Examples
    --------
    >>> from letterhead.state.layers.cache import RecordCache
    >>> cache = RecordCache(1000)
    >>> written = []
    >>> names = cache.namespace("0_0-names", lambda key, entry: written.append((key, entry.value)))
    >>> names.put(b"a", b"1", None)
    >>> names.put(b"b", b"2", None)
    >>> names.put(b"a", b"3", None)
    >>> names.get(b"a").value, written
    (b'3', [])
    >>> names.flush()
    >>> written
    [(b'b', b'2'), (b'a', b'3')]
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 0:
            raise ValueError(f"max_bytes is {max_bytes}: it must not be negative")
        self.max_bytes = max_bytes
        self.size_bytes = 0
        self._namespaces: dict[str, Namespace] = {}

    def namespace(self, name: str, write: Callable[[bytes, CacheEntry], None]) -> Namespace:
        """Open the namespace ``<task>-<store>``; ``write`` writes an entry to the store when the cache is flushed."""
        if name in self._namespaces:
            raise ValueError(f"the cache has a namespace {name!r} already")
        namespace = self._namespaces[name] = Namespace(self, name, write)
        return namespace

    def close(self, name: str) -> None:
        """Discard a namespace with all its entries."""
        gone = self._namespaces.pop(name, None)
        if gone is not None:
            gone.clear()

    def __len__(self) -> int:
        return sum(len(namespace) for namespace in self._namespaces.values())


class Namespace:
    """Entries of one store, with counts of hits, misses, evictions and flushes."""

    def __init__(self, cache: RecordCache, name: str, write: Callable[[bytes, CacheEntry], None]) -> None:
        self.name = name
        self.hits = self.misses = self.evictions = self.flushes = 0
        self._cache = cache
        self._write = write
        self._entries: OrderedDict[bytes, CacheEntry] = OrderedDict()  # least recently used first
        self._dirty: dict[bytes, None] = {}  # in order of last write
        # Sorted keys of `_entries` except those in `_new`; may contain keys that were removed later.
        self._sorted: list[bytes] = []
        self._new: list[bytes] = []
        self._flushing = False

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> CacheEntry | None:
        """Return the entry of a key, and mark it as used."""
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return entry

    def put(self, key: bytes, value: bytes | None, context: RecordContext | None) -> None:
        """Add a new value; the next flush writes it to the store."""
        self._dirty.pop(key, None)
        self._dirty[key] = None
        self._keep(key, CacheEntry(value, context, True))

    def fill(self, key: bytes, value: bytes) -> None:
        """Add a value that was read from the store."""
        self._keep(key, CacheEntry(value, None, False))

    def range(self, low: bytes | None, high: bytes | None) -> list[tuple[bytes, CacheEntry]]:
        """Return the entries with keys in [``low``, ``high``], in order of key; ``None`` means no bound."""
        keys = self._in_order()
        first = 0 if low is None else bisect_left(keys, low)
        last = len(keys) if high is None else bisect_right(keys, high)
        entries = self._entries
        return [(key, entries[key]) for key in keys[first:last] if key in entries]

    def beginning_with(self, prefix: bytes) -> list[tuple[bytes, CacheEntry]]:
        """Return the entries whose keys begin with a prefix, in order of key."""
        keys, entries = self._in_order(), self._entries
        matching = takewhile(lambda key: key.startswith(prefix), islice(keys, bisect_left(keys, prefix), None))
        return [(key, entries[key]) for key in matching if key in entries]

    def first_at_least(self, low: bytes) -> bytes | None:
        """Return the first key at or after ``low``, or None."""
        keys = self._in_order()
        return next((key for key in islice(keys, bisect_left(keys, low), None) if key in self._entries), None)

    def flush(self) -> None:
        """Write the dirty entries to the store, in order of each key's last write.

        An entry stays dirty until it is written, so that no change is lost if the store fails.
        """
        if self._flushing:  # a flush listener may forward a record that causes a write to this store
            return
        self._flushing = True
        self.flushes += 1
        try:
            while self._dirty:
                key = next(iter(self._dirty))
                entry = self._entries[key]
                self._write(key, entry)
                if self._entries.get(key) is not entry:
                    continue
                del self._dirty[key]
                entry.dirty = False
                if entry.value is None:
                    self._remove(key)
        finally:
            self._flushing = False

    def clear(self) -> None:
        """Discard all entries, including dirty ones."""
        for key, entry in self._entries.items():
            self._cache.size_bytes -= _size(key, entry)
        self._entries.clear()
        self._dirty.clear()
        self._sorted.clear()
        self._new.clear()

    def _keep(self, key: bytes, entry: CacheEntry) -> None:
        entries = self._entries
        before = entries.get(key)
        if before is None:
            self._new.append(key)
        else:
            self._cache.size_bytes -= _size(key, before)
        entries[key] = entry
        entries.move_to_end(key)
        self._cache.size_bytes += _size(key, entry)
        if self._cache.size_bytes > self._cache.max_bytes:
            self._evict()

    def _evict(self) -> None:
        cache = self._cache
        while cache.size_bytes > cache.max_bytes and self._entries:
            eldest = next(iter(self._entries))
            if self._entries[eldest].dirty:
                if self._flushing:
                    return  # a flush is in progress; the next write can evict
                self.flush()
            if eldest in self._entries:
                self._remove(eldest)
                self.evictions += 1

    def _remove(self, key: bytes) -> None:
        self._cache.size_bytes -= _size(key, self._entries.pop(key))

    def _in_order(self) -> list[bytes]:
        # Sort when a range is requested rather than at each put, because most stores are only read by key.
        if self._new or len(self._sorted) > 2 * len(self._entries) + 16:
            self._sorted = sorted(self._entries)
            self._new.clear()
        return self._sorted


def _size(key: bytes, entry: CacheEntry) -> int:
    return len(key) + (0 if entry.value is None else len(entry.value)) + ENTRY_BYTES
