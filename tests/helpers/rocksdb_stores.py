"""Stores in RocksDB by the name of their type, not yet open."""

from __future__ import annotations

from typing import Any

from letterhead.state.rocksdb import (
    RocksDBKeyValueStore,
    RocksDBSessionStore,
    RocksDBTimeOrderedSessionStore,
    RocksDBTimeOrderedWindowStore,
    RocksDBVersionedStore,
    RocksDBWindowStore,
)

TYPES = ("key-value", "window", "session", "time-ordered-window", "time-ordered-session", "versioned")
HOUR = 3_600_000


def rocksdb_store(
    store_type: str,
    values: Any = "headers",
    name: str = "store",
    *,
    window_size: int = 60_000,
    duplicates: bool = False,
) -> Any:
    """Make a store that keeps windows and sessions for an hour, and versions for a day."""
    match store_type:
        case "key-value":
            return RocksDBKeyValueStore(name, format=values)
        case "window":
            return RocksDBWindowStore(name, HOUR, window_size, duplicates, format=values)
        case "session":
            return RocksDBSessionStore(name, HOUR, format=values)
        case "time-ordered-window":
            return RocksDBTimeOrderedWindowStore(name, HOUR, window_size, format=values)
        case "time-ordered-session":
            return RocksDBTimeOrderedSessionStore(name, HOUR, format=values)
        case "versioned":
            return RocksDBVersionedStore(name, 24 * HOUR, headers=values == "headers")
    raise ValueError(f"there is no store type {store_type}")
