"""Session stores as an application holds them: plain and with headers, and their reads alone."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, ClassVar, Generic, TypeVar

from letterhead.headers import Headers
from letterhead.state.interfaces import StoreIterator
from letterhead.state.layers.metered import Change, Metered
from letterhead.state.reads import Scan, SessionReads
from letterhead.state.record import Record, RecordContext
from letterhead.state.serdes import AggregationWithHeadersSerde
from letterhead.state.values import AggregationWithHeaders
from letterhead.storage.keys import SessionKey

__all__ = ["ReadOnlySessionStore", "ReadOnlySessionStoreWithHeaders", "SessionStore", "SessionStoreWithHeaders"]

K = TypeVar("K")
V = TypeVar("V")


class ReadOnlySessionStore(SessionReads[K, V]):
    """The reads of a session store.

    Parameters
    ----------
    store : SessionStore
        The store that is read. A :class:`SessionStore` itself also has these methods.
    """

    def __init__(self, store: SessionStore[K, V]) -> None:
        self.name = store.name
        self._store = store

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return self._store.is_open

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Return the aggregation of a session; ``None`` if there is none."""
        return self._store.fetch_session(key, start, end)

    def scan(self, asked: Scan) -> StoreIterator[SessionKey, V]:
        """Return the rows of a scan."""
        return self._store.scan(asked)


class SessionStore(Metered[K, V], ReadOnlySessionStore[K, V]):
    """A store of one aggregation for each key and session."""

    family = "session"
    operations: ClassVar[tuple[str, ...]] = ("put", "remove", "fetch", "find_sessions")

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

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Return the aggregation of a session; ``None`` if there is none."""
        began = perf_counter_ns()
        raw_key = self._read_key(key)
        found: V | None = self._value(SessionKey(raw_key, start, end), self.inner.fetch_session(raw_key, start, end))
        self._timers["fetch"].add(perf_counter_ns() - began)
        return found

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
