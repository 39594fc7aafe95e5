"""Stores in memory. They are empty when they are opened, and come back from their changelogs."""

from __future__ import annotations

from letterhead.state.memory.key_value import InMemoryKeyValueStore
from letterhead.state.memory.session import InMemorySessionStore
from letterhead.state.memory.versioned import InMemoryVersionedStore
from letterhead.state.memory.window import InMemoryWindowStore

__all__ = ["InMemoryKeyValueStore", "InMemorySessionStore", "InMemoryVersionedStore", "InMemoryWindowStore"]
