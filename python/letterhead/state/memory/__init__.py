"""In-memory stores, which are empty when opened and restored from their changelogs."""

from __future__ import annotations

from letterhead.state.memory.key_value import InMemoryKeyValueStore
from letterhead.state.memory.timed import InMemorySessionStore, InMemoryWindowStore
from letterhead.state.memory.versioned import InMemoryVersionedStore

__all__ = ["InMemoryKeyValueStore", "InMemorySessionStore", "InMemoryVersionedStore", "InMemoryWindowStore"]
