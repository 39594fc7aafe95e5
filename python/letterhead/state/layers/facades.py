"""Show a store with headers or timestamps as one of an older format: readers see no headers, writers write none.

A value that is written without a timestamp gets -1, which a changelog does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from letterhead.headers import Headers
from letterhead.state.interfaces import StoreIterator
from letterhead.state.layers.key_value import KeyValueStore
from letterhead.state.layers.rows import mapped
from letterhead.state.layers.session import SessionStoreWithHeaders
from letterhead.state.layers.window import WindowStore
from letterhead.state.reads import KeyValueReads, Scan, SessionReads, WindowReads
from letterhead.state.values import AggregationWithHeaders, ValueAndTimestamp, ValueTimestampHeaders
from letterhead.storage.keys import SessionKey

__all__ = ["KeyValueFacade", "SessionFacade", "WindowFacade"]


class _Facade:
    def __init__(self, store: Any, shown: Callable[[Any], Any], made: Callable[[Any], Any]) -> None:
        self.store = store
        self.name: str = store.name
        self._shown = shown
        self._made = made

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return bool(self.store.is_open)

    def put(self, key: Any, value: Any, *start: int) -> None:
        """Put a value, of a window with its start; ``None`` deletes it."""
        self.store.put(key, self._made(value), *start)

    def scan(self, asked: Scan) -> StoreIterator[Any, Any]:
        """Return the rows of a scan."""
        return mapped(self.store.scan(asked), self.name, self._shown)


class KeyValueFacade(_Facade, KeyValueReads[Any, Any]):
    """A key-value store as one of an older format.

    Parameters
    ----------
    store : KeyValueStore
        The store, with timestamps or headers.
    timestamps : bool
        Whether values are :class:`~letterhead.state.ValueAndTimestamp`, and not plain.
    """

    def __init__(self, store: KeyValueStore[Any, Any], *, timestamps: bool) -> None:
        super().__init__(store, *_conversions(store, timestamps))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Put a value if the key has none; return the one it has."""
        return self._shown(self.store.put_if_absent(key, self._made(value)))

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Put many values."""
        self.store.put_all([(key, self._made(value)) for key, value in entries])

    def delete(self, key: Any) -> Any:
        """Delete a key; return the value it had."""
        return self._shown(self.store.delete(key))

    def get(self, key: Any) -> Any:
        """Return the value of a key."""
        return self._shown(self.store.get(key))

    def approximate_num_entries(self) -> int:
        """Return about how many rows there are."""
        return int(self.store.approximate_num_entries())


class WindowFacade(_Facade, WindowReads[Any, Any]):
    """A window store as one of an older format.

    Parameters
    ----------
    store : WindowStore
        The store, with timestamps or headers.
    timestamps : bool
        Whether values are :class:`~letterhead.state.ValueAndTimestamp`, and not plain.
    """

    def __init__(self, store: WindowStore[Any, Any], *, timestamps: bool) -> None:
        super().__init__(store, *_conversions(store, timestamps))

    def fetch(self, key: Any, start: int) -> Any:
        """Return the value of a window."""
        return self._shown(self.store.fetch(key, start))


class SessionFacade(_Facade, SessionReads[Any, Any]):
    """A session store with headers as one without.

    Parameters
    ----------
    store : SessionStoreWithHeaders
        The store.
    """

    def __init__(self, store: SessionStoreWithHeaders[Any, Any]) -> None:
        super().__init__(store, AggregationWithHeaders.get_aggregation_or_null, _from_aggregation)

    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        self.store.remove(session)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """Return the aggregation of a session."""
        return self._shown(self.store.fetch_session(key, start, end))


def _conversions(store: Any, timestamps: bool) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Choose how values of a store are shown, and how what is written becomes one of them."""
    if timestamps:
        return _timestamped, _from_timestamped
    return _plain, _from_plain_to_headers if store.keeps_headers else _from_plain_to_timestamped


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
