"""Stores in RocksDB, with the directories and bytes of Kafka Streams; opening a store imports ``rocksdict``."""

from __future__ import annotations

from letterhead.state.rocksdb.key_value import RocksDBKeyValueStore
from letterhead.state.rocksdb.segmented import RocksDBSessionStore, RocksDBWindowStore
from letterhead.state.rocksdb.time_ordered import RocksDBTimeOrderedSessionStore, RocksDBTimeOrderedWindowStore
from letterhead.state.rocksdb.versioned import RocksDBVersionedStore
from letterhead.state.storage.database import RocksDBOptions

__all__ = [
    "RocksDBKeyValueStore",
    "RocksDBOptions",
    "RocksDBSessionStore",
    "RocksDBTimeOrderedSessionStore",
    "RocksDBTimeOrderedWindowStore",
    "RocksDBVersionedStore",
    "RocksDBWindowStore",
]
