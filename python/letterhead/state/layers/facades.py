"""A store with headers as an older one: what reads it sees no headers, what writes through it writes none.

A value written without a timestamp gets -1, which a changelog does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from letterhead.headers import Headers
from letterhead.state.interfaces import SessionKey, StoreIterator, WindowedKey
from letterhead.state.layers.key_value import KeyValueStore, TimestampedKeyValueStoreWithHeaders
from letterhead.state.layers.rows import mapped
from letterhead.state.layers.session import SessionStoreWithHeaders
from letterhead.state.layers.window import TimestampedWindowStoreWithHeaders, WindowStore
from letterhead.state.values import AggregationWithHeaders, ValueAndTimestamp, ValueTimestampHeaders

__all__ = ["KeyValueFacade", "SessionFacade", "WindowFacade", "shows"]


def shows(store: Any, timestamps: bool) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Choose how values of a store are shown, and how what is written becomes one of them."""
    with_headers = isinstance(store, TimestampedKeyValueStoreWithHeaders | TimestampedWindowStoreWithHeaders)
    if timestamps:
        return _timestamped, _from_timestamped
    return _plain, _from_plain_to_headers if with_headers else _from_plain_to_timestamped


class _Facade:
    def __init__(self, store: Any, show: Callable[[Any], Any], make: Callable[[Any], Any]) -> None:
        self.store = store
        self.name: str = store.name
        self._show = show
        self._make = make

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return bool(self.store.is_open)

    def _shown(self, rows: StoreIterator[Any, Any]) -> StoreIterator[Any, Any]:
        return mapped(rows, self.name, self._show)


class KeyValueFacade(_Facade):
    """A key-value store as an older one.

    Parameters
    ----------
    store : KeyValueStore
        The store, with timestamps or headers.
    timestamps : bool
        Whether values are :class:`~letterhead.state.ValueAndTimestamp`, and not plain.
    """

    def __init__(self, store: KeyValueStore[Any, Any], *, timestamps: bool) -> None:
        super().__init__(store, *shows(store, timestamps))

    def put(self, key: Any, value: Any) -> None:
        """Put a value; ``None`` deletes the key."""
        self.store.put(key, self._make(value))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Put a value if the key has none; gives the one it has."""
        return self._show(self.store.put_if_absent(key, self._make(value)))

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Put many values."""
        self.store.put_all([(key, self._make(value)) for key, value in entries])

    def delete(self, key: Any) -> Any:
        """Delete a key; gives the value it had."""
        return self._show(self.store.delete(key))

    def get(self, key: Any) -> Any:
        """Give the value of a key."""
        return self._show(self.store.get(key))

    def range(self, low: Any, high: Any) -> StoreIterator[Any, Any]:
        """Give the rows between two keys."""
        return self._shown(self.store.range(low, high))

    def reverse_range(self, low: Any, high: Any) -> StoreIterator[Any, Any]:
        """Give the rows between two keys, from last to first."""
        return self._shown(self.store.reverse_range(low, high))

    def all(self) -> StoreIterator[Any, Any]:
        """Give all rows."""
        return self._shown(self.store.all())

    def reverse_all(self) -> StoreIterator[Any, Any]:
        """Give all rows, from last to first."""
        return self._shown(self.store.reverse_all())

    def prefix_scan(self, prefix: Any) -> StoreIterator[Any, Any]:
        """Give the rows whose keys begin with a prefix."""
        return self._shown(self.store.prefix_scan(prefix))

    def approximate_num_entries(self) -> int:
        """Give about how many rows there are."""
        return int(self.store.approximate_num_entries())


class WindowFacade(_Facade):
    """A window store as an older one.

    Parameters
    ----------
    store : WindowStore
        The store, with timestamps or headers.
    timestamps : bool
        Whether values are :class:`~letterhead.state.ValueAndTimestamp`, and not plain.
    """

    def __init__(self, store: WindowStore[Any, Any], *, timestamps: bool) -> None:
        super().__init__(store, *shows(store, timestamps))

    def put(self, key: Any, value: Any, start: int) -> None:
        """Put the value of a window; ``None`` deletes it."""
        self.store.put(key, self._make(value), start)

    def fetch(self, key: Any, start: int) -> Any:
        """Give the value of a window."""
        return self._show(self.store.fetch(key, start))

    def fetch_key(self, key: Any, first: int, last: int) -> StoreIterator[WindowedKey, Any]:
        """Give the windows of a key."""
        return self._shown(self.store.fetch_key(key, first, last))

    def backward_fetch_key(self, key: Any, first: int, last: int) -> StoreIterator[WindowedKey, Any]:
        """Give the windows of a key, from last to first."""
        return self._shown(self.store.backward_fetch_key(key, first, last))

    def fetch_range(self, low: Any, high: Any, first: int, last: int) -> StoreIterator[WindowedKey, Any]:
        """Give the windows of a range of keys."""
        return self._shown(self.store.fetch_range(low, high, first, last))

    def backward_fetch_range(self, low: Any, high: Any, first: int, last: int) -> StoreIterator[WindowedKey, Any]:
        """Give the windows of a range of keys, from last to first."""
        return self._shown(self.store.backward_fetch_range(low, high, first, last))

    def fetch_all(self, first: int, last: int) -> StoreIterator[WindowedKey, Any]:
        """Give the windows of a time."""
        return self._shown(self.store.fetch_all(first, last))

    def backward_fetch_all(self, first: int, last: int) -> StoreIterator[WindowedKey, Any]:
        """Give the windows of a time, from last to first."""
        return self._shown(self.store.backward_fetch_all(first, last))

    def all(self) -> StoreIterator[WindowedKey, Any]:
        """Give all windows."""
        return self._shown(self.store.all())

    def backward_all(self) -> StoreIterator[WindowedKey, Any]:
        """Give all windows, from last to first."""
        return self._shown(self.store.backward_all())


class SessionFacade(_Facade):
    """A session store with headers as one without.

    Parameters
    ----------
    store : SessionStoreWithHeaders
        The store.
    """

    def __init__(self, store: SessionStoreWithHeaders[Any, Any]) -> None:
        super().__init__(store, AggregationWithHeaders.get_aggregation_or_null, _from_aggregation)

    def put(self, session: SessionKey, aggregation: Any) -> None:
        """Put the aggregation of a session; ``None`` deletes it."""
        self.store.put(session, self._make(aggregation))

    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        self.store.remove(session)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """Give the aggregation of a session."""
        return self._show(self.store.fetch_session(key, start, end))

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, Any]:
        """Give sessions of a key."""
        return self._shown(self.store.find_sessions(key, earliest_end, latest_start))

    def backward_find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, Any]:
        """Give sessions of a key, from last to first."""
        return self._shown(self.store.backward_find_sessions(key, earliest_end, latest_start))

    def find_sessions_range(
        self, low: Any, high: Any, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, Any]:
        """Give sessions of a range of keys."""
        return self._shown(self.store.find_sessions_range(low, high, earliest_end, latest_start))

    def backward_find_sessions_range(
        self, low: Any, high: Any, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, Any]:
        """Give sessions of a range of keys, from last to first."""
        return self._shown(self.store.backward_find_sessions_range(low, high, earliest_end, latest_start))

    def find_sessions_time(self, earliest_end: int, latest_end: int) -> StoreIterator[SessionKey, Any]:
        """Give the sessions that end in a time."""
        return self._shown(self.store.find_sessions_time(earliest_end, latest_end))

    def fetch(self, key: Any) -> StoreIterator[SessionKey, Any]:
        """Give the sessions of a key."""
        return self._shown(self.store.fetch(key))

    def backward_fetch(self, key: Any) -> StoreIterator[SessionKey, Any]:
        """Give the sessions of a key, from last to first."""
        return self._shown(self.store.backward_fetch(key))

    def fetch_range(self, low: Any, high: Any) -> StoreIterator[SessionKey, Any]:
        """Give the sessions of a range of keys."""
        return self._shown(self.store.fetch_range(low, high))

    def backward_fetch_range(self, low: Any, high: Any) -> StoreIterator[SessionKey, Any]:
        """Give the sessions of a range of keys, from last to first."""
        return self._shown(self.store.backward_fetch_range(low, high))


def _plain(value: Any) -> Any:
    return None if value is None else value.value


def _timestamped(value: Any) -> Any:
    return None if value is None else ValueAndTimestamp.make(value.value, value.timestamp)


def _from_plain_to_headers(value: Any) -> Any:
    return ValueTimestampHeaders.make(value, -1, Headers())


def _from_plain_to_timestamped(value: Any) -> Any:
    return ValueAndTimestamp.make(value, -1)


def _from_timestamped(value: Any) -> Any:
    return None if value is None else ValueTimestampHeaders.make(value.value, value.timestamp, Headers())


def _from_aggregation(aggregation: Any) -> Any:
    return AggregationWithHeaders.make(aggregation, Headers())
