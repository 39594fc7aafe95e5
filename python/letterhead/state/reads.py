"""Methods that read many rows. Each builds a :class:`StoreScan`, so stores and layers implement only ``scan``."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from letterhead.state.interfaces import StoreIterator
from letterhead.state.storage.keys import MAX_TIME, SessionKey, WindowedKey

__all__ = ["KeyValueReads", "SessionReads", "StoreScan", "WindowReads"]

K = TypeVar("K")
V = TypeVar("V")


class StoreScan(NamedTuple):
    """Specification of the rows to read, and of their order.

    Examples
    --------
    >>> StoreScan.of_key("fetch", b"k", 0, 10).one_key
    True
    """

    operation: str
    """Name of the operation in the metrics of a store."""
    key_from: Any = None
    """First key, inclusive; ``None`` means no bound."""
    key_to: Any = None
    """Last key, inclusive; ``None`` means no bound."""
    time_from: int = 0
    """Earliest start of a window, or earliest end of a session, in milliseconds, inclusive."""
    time_to: int = MAX_TIME
    """Latest start of a window or session (latest end of a session if ``by_time``), in milliseconds, inclusive."""
    backward: bool = False
    """Whether the order is reversed."""
    by_time: bool = False
    """Whether to read the rows of all keys, in order of time if the store supports it."""
    prefix: Any = None
    """Prefix of the keys, in place of bounds; for key-value stores only."""

    @classmethod
    def of_key(
        cls, operation: str, key: Any, time_from: int = 0, time_to: int = MAX_TIME, backward: bool = False
    ) -> StoreScan:
        """Create a scan of one key, which must not be null."""
        return cls(operation, not_null(key), key, time_from, time_to, backward)

    @property
    def bounds(self) -> tuple[Any, Any, int, int]:
        """First and last key, and first and last time."""
        return self.key_from, self.key_to, self.time_from, self.time_to

    @property
    def one_key(self) -> bool:
        """Whether the scan reads the rows of one key only."""
        return self.key_from is not None and bool(self.key_from == self.key_to)

    @property
    def is_reversed(self) -> bool:
        """Whether the first key is greater than the last."""
        return self.key_from is not None and self.key_to is not None and bool(self.key_from > self.key_to)


class KeyValueReads(Generic[K, V]):
    """Reads of key-value stores, in order of the bytes of the keys."""

    def scan(self, query: StoreScan) -> StoreIterator[K, V]:
        """Return the rows of a scan."""
        raise NotImplementedError

    def range(self, low: K | None, high: K | None) -> StoreIterator[K, V]:
        """Return the rows with keys in [``low``, ``high``]; ``None`` means no bound."""
        return self.scan(StoreScan("range", low, high))

    def reverse_range(self, low: K | None, high: K | None) -> StoreIterator[K, V]:
        """Return the rows with keys in [``low``, ``high``], in reverse order."""
        return self.scan(StoreScan("range", low, high, backward=True))

    def all(self) -> StoreIterator[K, V]:
        """Return all rows."""
        return self.scan(StoreScan("all"))

    def reverse_all(self) -> StoreIterator[K, V]:
        """Return all rows, in reverse order."""
        return self.scan(StoreScan("all", backward=True))

    def prefix_scan(self, prefix: K) -> StoreIterator[K, V]:
        """Return the rows whose keys begin with the bytes of a prefix.

        Raises
        ------
        PrefixError
            If the store is in memory or has a cache, and the prefix is empty or all ``ff``; use a range instead.
        """
        return self.scan(StoreScan("prefix_scan", prefix=not_null(prefix)))


class WindowReads(Generic[K, V]):
    """Reads of window stores.

    Times are milliseconds; a window is identified by its start. Rows are ordered by segment and then by the bytes of the
    key; in memory, by start and then by key.
    """

    def scan(self, query: StoreScan) -> StoreIterator[WindowedKey, V]:
        """Return the rows of a scan."""
        raise NotImplementedError

    def fetch_key(self, key: K, first: int, last: int) -> StoreIterator[WindowedKey, V]:
        """Return the windows of a key that start in [``first``, ``last``]."""
        return self.scan(StoreScan.of_key("fetch", key, first, last))

    def backward_fetch_key(self, key: K, first: int, last: int) -> StoreIterator[WindowedKey, V]:
        """Return the windows of a key that start in [``first``, ``last``], in reverse order."""
        return self.scan(StoreScan.of_key("fetch", key, first, last, backward=True))

    def fetch_range(self, low: K | None, high: K | None, first: int, last: int) -> StoreIterator[WindowedKey, V]:
        """Return the windows with keys in [``low``, ``high``] that start in [``first``, ``last``]; ``None`` means no bound."""
        return self.scan(StoreScan("fetch", low, high, first, last))

    def backward_fetch_range(
        self, low: K | None, high: K | None, first: int, last: int
    ) -> StoreIterator[WindowedKey, V]:
        """Return the windows of :meth:`fetch_range` in reverse order."""
        return self.scan(StoreScan("fetch", low, high, first, last, backward=True))

    def fetch_all(self, first: int, last: int) -> StoreIterator[WindowedKey, V]:
        """Return the windows of all keys that start in [``first``, ``last``]."""
        return self.scan(StoreScan("fetch", time_from=first, time_to=last, by_time=True))

    def backward_fetch_all(self, first: int, last: int) -> StoreIterator[WindowedKey, V]:
        """Return the windows of all keys that start in [``first``, ``last``], in reverse order."""
        return self.scan(StoreScan("fetch", time_from=first, time_to=last, backward=True, by_time=True))

    def all(self) -> StoreIterator[WindowedKey, V]:
        """Return all windows."""
        return self.scan(StoreScan("all", by_time=True))

    def backward_all(self) -> StoreIterator[WindowedKey, V]:
        """Return all windows, in reverse order."""
        return self.scan(StoreScan("all", backward=True, by_time=True))


class SessionReads(Generic[K, V]):
    """Reads of session stores.

    Times are milliseconds; a session is identified by its key, its start and its end. Rows are ordered by segment and then
    by the bytes of the key; in memory, by end, then by key, and then by descending start.
    """

    def scan(self, query: StoreScan) -> StoreIterator[SessionKey, V]:
        """Return the rows of a scan."""
        raise NotImplementedError

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, V]:
        """Return the sessions of a key that end at or after ``earliest_end``, and start at or before ``latest_start``."""
        return self.scan(StoreScan.of_key("find_sessions", key, earliest_end, latest_start))

    def backward_find_sessions(self, key: K, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, V]:
        """Return the sessions of :meth:`find_sessions` in reverse order."""
        return self.scan(StoreScan.of_key("find_sessions", key, earliest_end, latest_start, backward=True))

    def find_sessions_range(
        self, low: K | None, high: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, V]:
        """Return the sessions of keys in [``low``, ``high``], as :meth:`find_sessions` does; ``None`` means no bound."""
        return self.scan(StoreScan("find_sessions", low, high, earliest_end, latest_start))

    def backward_find_sessions_range(
        self, low: K | None, high: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, V]:
        """Return the sessions of :meth:`find_sessions_range` in reverse order."""
        return self.scan(StoreScan("find_sessions", low, high, earliest_end, latest_start, backward=True))

    def find_sessions_time(self, earliest_end: int, latest_end: int) -> StoreIterator[SessionKey, V]:
        """Return the sessions of all keys that end in [``earliest_end``, ``latest_end``].

        Raises
        ------
        UnsupportedOperationError
            If the store is neither in memory nor time-ordered.
        """
        return self.scan(StoreScan("find_sessions", time_from=earliest_end, time_to=latest_end, by_time=True))

    def fetch(self, key: K) -> StoreIterator[SessionKey, V]:
        """Return the sessions of a key."""
        return self.scan(StoreScan.of_key("fetch", key))

    def backward_fetch(self, key: K) -> StoreIterator[SessionKey, V]:
        """Return the sessions of a key, in reverse order."""
        return self.scan(StoreScan.of_key("fetch", key, backward=True))

    def fetch_range(self, low: K | None, high: K | None) -> StoreIterator[SessionKey, V]:
        """Return the sessions with keys in [``low``, ``high``]; ``None`` means no bound."""
        return self.scan(StoreScan("fetch", low, high))

    def backward_fetch_range(self, low: K | None, high: K | None) -> StoreIterator[SessionKey, V]:
        """Return the sessions with keys in [``low``, ``high``], in reverse order."""
        return self.scan(StoreScan("fetch", low, high, backward=True))


def not_null(key: K | None) -> K:
    """Return a key; raise a ``TypeError`` if it is ``None``."""
    if key is None:
        raise TypeError("key cannot be null")
    return key
