"""Session stores as an application holds them: plain and with headers, and their reads alone."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, ClassVar, Generic, TypeVar

from letterhead.headers import Headers
from letterhead.state.interfaces import SessionKey, StoreIterator
from letterhead.state.layers.metered import Change, Metered
from letterhead.state.record import Record, RecordContext
from letterhead.state.serdes import AggregationWithHeadersSerde
from letterhead.state.values import AggregationWithHeaders

__all__ = ["ReadOnlySessionStore", "ReadOnlySessionStoreWithHeaders", "SessionStore", "SessionStoreWithHeaders"]

K = TypeVar("K")
V = TypeVar("V")


class ReadOnlySessionStore(Generic[K, V]):
    """The reads of a session store.

    Times are milliseconds; a session is named by its key, its start and its end. Rows come by segment and then by key,
    in order of bytes; from a store in memory by end, then by key, and then by start from last to first.

    Parameters
    ----------
    store : SessionStore
        The store that is read. A :class:`SessionStore` itself also has these methods.
    """

    def __init__(self, store: SessionStore[K, V]) -> None:
        self.name = store.name
        self._viewed = store

    @property
    def _store(self) -> SessionStore[K, V]:
        return self._viewed

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return self._store.is_open

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Give the aggregation of a session; ``None`` if there is none."""
        store, began = self._store, perf_counter_ns()
        raw_key = store._read_key(key)
        found: V | None = store._value(SessionKey(raw_key, start, end), store.inner.fetch_session(raw_key, start, end))
        store._timers["fetch"].add(perf_counter_ns() - began)
        return found

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, V]:
        """Give the sessions of a key that end no earlier, and start no later, than two times."""
        store, began = self._store, perf_counter_ns()
        found = store.inner.find_sessions(store._read_key(key), earliest_end, latest_start)
        return store._rows("find_sessions", began, found, store._row)

    def backward_find_sessions(self, key: K, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, V]:
        """Give the sessions of a key that end no earlier, and start no later, from last to first."""
        store, began = self._store, perf_counter_ns()
        found = store.inner.backward_find_sessions(store._read_key(key), earliest_end, latest_start)
        return store._rows("find_sessions", began, found, store._row)

    def find_sessions_range(
        self, low: K | None, high: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, V]:
        """Give the sessions between two keys that end no earlier, and start no later; a key of ``None`` is open."""
        store, began = self._store, perf_counter_ns()
        found = store.inner.find_sessions_range(store._bound(low), store._bound(high), earliest_end, latest_start)
        return store._rows("find_sessions", began, found, store._row)

    def backward_find_sessions_range(
        self, low: K | None, high: K | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, V]:
        """Give the sessions between two keys that end no earlier, and start no later, from last to first."""
        store, began = self._store, perf_counter_ns()
        found = store.inner.backward_find_sessions_range(
            store._bound(low), store._bound(high), earliest_end, latest_start
        )
        return store._rows("find_sessions", began, found, store._row)

    def find_sessions_time(self, earliest_end: int, latest_end: int) -> StoreIterator[SessionKey, V]:
        """Give the sessions of all keys that end between two times, both included.

        Raises
        ------
        UnsupportedOperationError
            If the store is neither in memory nor ordered by time.
        """
        store, began = self._store, perf_counter_ns()
        found = store.inner.find_sessions_time(earliest_end, latest_end)
        return store._rows("find_sessions", began, found, store._row)

    def fetch(self, key: K) -> StoreIterator[SessionKey, V]:
        """Give the sessions of a key."""
        store, began = self._store, perf_counter_ns()
        return store._rows("fetch", began, store.inner.fetch(store._read_key(key)), store._row)

    def backward_fetch(self, key: K) -> StoreIterator[SessionKey, V]:
        """Give the sessions of a key, from last to first."""
        store, began = self._store, perf_counter_ns()
        return store._rows("fetch", began, store.inner.backward_fetch(store._read_key(key)), store._row)

    def fetch_range(self, low: K | None, high: K | None) -> StoreIterator[SessionKey, V]:
        """Give the sessions between two keys, both included; ``None`` is open."""
        store, began = self._store, perf_counter_ns()
        return store._rows("fetch", began, store.inner.fetch_range(store._bound(low), store._bound(high)), store._row)

    def backward_fetch_range(self, low: K | None, high: K | None) -> StoreIterator[SessionKey, V]:
        """Give the sessions between two keys, from last to first."""
        store, began = self._store, perf_counter_ns()
        found = store.inner.backward_fetch_range(store._bound(low), store._bound(high))
        return store._rows("fetch", began, found, store._row)


class SessionStore(Metered[K, V], ReadOnlySessionStore[K, V]):
    """A store of one aggregation for each key and session."""

    family = "session"
    operations: ClassVar[tuple[str, ...]] = ("put", "remove", "fetch", "find_sessions")

    @property
    def _store(self) -> SessionStore[K, V]:
        return self

    def put(self, session: SessionKey, value: V | None) -> None:
        """Put the aggregation of a session.

        Parameters
        ----------
        session : SessionKey
            Key, start and end; the key must not be null.
        value : object
            The aggregation; ``None`` deletes the session.
        """
        _not_null(session)
        began = perf_counter_ns()
        if value is None:
            self._tombstone(lambda raw_key: self.inner.put(_of(session, raw_key), None), session.key)
        else:
            raw_key = self._key_of(session.key, value)
            self.inner.put(_of(session, raw_key), self._raw_value(value))
        self._timers["put"].add(perf_counter_ns() - began)

    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        _not_null(session)
        began = perf_counter_ns()
        self._tombstone(lambda raw_key: self.inner.remove(_of(session, raw_key)), session.key)
        self._timers["remove"].add(perf_counter_ns() - began)

    def _row(self, row: SessionKey, stored: bytes) -> tuple[SessionKey, V]:
        value = self._value(row, stored)
        return SessionKey(self._key(row.key, value), row.start, row.end), value

    def _change(self, key: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> Record[Any, Change]:
        value, before = self._value(key, new), self._value(key, old)
        session = SessionKey(self._key(key.key, value or before), key.start, key.end)
        headers = value.headers if self.keeps_headers and value is not None else Headers()
        return Record(session, Change(value, before), key.end, headers)


class ReadOnlySessionStoreWithHeaders(ReadOnlySessionStore[K, AggregationWithHeaders[V]], Generic[K, V]):
    """The reads of a session store that keeps headers.

    :meth:`TopologyTestDriver.get_read_only_session_store_with_headers` returns one.

    Examples
    --------
    >>> from letterhead.state import ReadOnlySessionStoreWithHeaders, SessionKey, Stores
    >>> from letterhead.state.context import ChangelogList, StoreContext
    >>> store = Stores.session_store_with_headers_builder(Stores.in_memory_session_store("visits", 60_000)).build()
    >>> store.open(None, StoreContext("app", changelog=ChangelogList()))
    >>> store.put(SessionKey(b"ann", 10, 20), AggregationWithHeaders.make(b"3", {"tenant": b"acme"}))
    >>> reads = ReadOnlySessionStoreWithHeaders(store)
    >>> reads.fetch_session(b"ann", 10, 20)
    AggregationWithHeaders(aggregation=b'3', headers=Headers([('tenant', b'acme')]))
    >>> hasattr(reads, "put")
    False
    """


class SessionStoreWithHeaders(
    SessionStore[K, AggregationWithHeaders[V]], ReadOnlySessionStoreWithHeaders[K, V], Generic[K, V]
):
    """A store of one aggregation with its headers for each key and session."""

    wrap_serde = AggregationWithHeadersSerde
    value_type = AggregationWithHeaders
    keeps_headers = True


def _of(session: SessionKey, raw_key: bytes) -> SessionKey:
    return SessionKey(raw_key, session.start, session.end)


def _not_null(session: SessionKey | None) -> None:
    if session is None:
        raise TypeError("sessionKey can't be null")
    if session.key is None:
        raise TypeError("sessionKey.key() can't be null")
