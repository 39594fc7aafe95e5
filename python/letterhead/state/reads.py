"""Reads of many rows that stores in memory and in RocksDB have alike: one class for each family, over one scan."""

from __future__ import annotations

from letterhead.state.interfaces import MAX_TIME, SessionKey, StoreIterator, WindowedKey

__all__ = ["KeyValueReads", "SessionReads", "WindowReads"]


class KeyValueReads:
    """Reads of rows by key."""

    def range(self, start: bytes | None, end: bytes | None) -> StoreIterator[bytes, bytes]:
        """Read the rows from one key to another, both included; ``None`` is no bound."""
        return self._scan(start, end)

    def reverse_range(self, start: bytes | None, end: bytes | None) -> StoreIterator[bytes, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan(start, end, backward=True)

    def all(self) -> StoreIterator[bytes, bytes]:
        """Read all rows."""
        return self._scan(None, None)

    def reverse_all(self) -> StoreIterator[bytes, bytes]:
        """Read all rows from the last to the first."""
        return self._scan(None, None, backward=True)

    def _scan(self, start: bytes | None, end: bytes | None, *, backward: bool = False) -> StoreIterator[bytes, bytes]:
        raise NotImplementedError


class WindowReads:
    """Reads of rows by key and window."""

    def fetch_key(self, key: bytes, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Read the rows of a key whose windows start between two times, both included."""
        return self._scan(key, key, time_from, time_to)

    def backward_fetch_key(self, key: bytes, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan(key, key, time_from, time_to, backward=True)

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int
    ) -> StoreIterator[WindowedKey, bytes]:
        """Read the rows of all keys between two; ``None`` is no bound."""
        return self._scan(key_from, key_to, time_from, time_to)

    def backward_fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int
    ) -> StoreIterator[WindowedKey, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan(key_from, key_to, time_from, time_to, backward=True)

    def fetch_all(self, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Read the rows of all keys whose windows start between two times."""
        return self._scan_times(time_from, time_to)

    def backward_fetch_all(self, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan_times(time_from, time_to, backward=True)

    def all(self) -> StoreIterator[WindowedKey, bytes]:
        """Read all rows."""
        return self._scan_times(0, MAX_TIME)

    def backward_all(self) -> StoreIterator[WindowedKey, bytes]:
        """Read all rows from the last to the first."""
        return self._scan_times(0, MAX_TIME, backward=True)

    def _scan(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, *, backward: bool = False
    ) -> StoreIterator[WindowedKey, bytes]:
        raise NotImplementedError

    def _scan_times(self, time_from: int, time_to: int, *, backward: bool = False) -> StoreIterator[WindowedKey, bytes]:
        return self._scan(None, None, time_from, time_to, backward=backward)


class SessionReads:
    """Reads of rows by key and session."""

    def find_sessions(self, key: bytes, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, bytes]:
        """Read the sessions of a key that end no earlier, and start no later."""
        return self._scan(key, key, earliest_end, latest_start)

    def backward_find_sessions(
        self, key: bytes, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan(key, key, earliest_end, latest_start, backward=True)

    def find_sessions_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, bytes]:
        """Read the sessions of all keys between two; ``None`` is no bound."""
        return self._scan(key_from, key_to, earliest_end, latest_start)

    def backward_find_sessions_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan(key_from, key_to, earliest_end, latest_start, backward=True)

    def fetch(self, key: bytes) -> StoreIterator[SessionKey, bytes]:
        """Read all sessions of a key."""
        return self._scan(key, key, 0, MAX_TIME)

    def backward_fetch(self, key: bytes) -> StoreIterator[SessionKey, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan(key, key, 0, MAX_TIME, backward=True)

    def fetch_range(self, key_from: bytes | None, key_to: bytes | None) -> StoreIterator[SessionKey, bytes]:
        """Read all sessions of all keys between two; ``None`` is no bound."""
        return self._scan(key_from, key_to, 0, MAX_TIME)

    def backward_fetch_range(self, key_from: bytes | None, key_to: bytes | None) -> StoreIterator[SessionKey, bytes]:
        """Read the same rows from the last to the first."""
        return self._scan(key_from, key_to, 0, MAX_TIME, backward=True)

    def _scan(
        self,
        key_from: bytes | None,
        key_to: bytes | None,
        earliest_end: int,
        latest_start: int,
        *,
        backward: bool = False,
    ) -> StoreIterator[SessionKey, bytes]:
        raise NotImplementedError
