"""In-memory versioned stores."""

from __future__ import annotations

from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.versioned import VersionedStore

__all__ = ["InMemoryVersionedStore"]


class InMemoryVersionedStore(InMemoryStore, VersionedStore):
    """In-memory versioned store, with the same rows as the versioned store in RocksDB.

    Parameters are as in :class:`~letterhead.state.versioned.VersionedStore`.
    """

    def _clear(self) -> None:
        self._rows: SortedMap[bytes, bytes] = SortedMap()
        self._find_segments()

    def _read(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def _write(self, rows: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in rows:
            self._rows.put(key, value)

    def _drop(self, first: bytes, end: bytes) -> None:
        for key in self._rows.between(first, end):
            if key < end:
                del self._rows[key]

    def _key_from(self, key: bytes) -> bytes | None:
        keys = self._rows.between(key, None)
        return keys[0] if keys else None
