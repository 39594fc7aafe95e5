"""Stores for applications, one class for each type of store and format of values.

The stores read and write objects; the base class :class:`~letterhead.state.layers.metered.Metered` serializes them and
records metrics.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

from letterhead._invariants import instance
from letterhead.headers import Headers
from letterhead.state.context import StoreContext
from letterhead.state.interfaces import StoreIterator, VersionedBytes
from letterhead.state.layers.change_logging import ChangeLoggingKeyValueStore
from letterhead.state.layers.metered import Change, Metered, MeteredIterator, time_calls
from letterhead.state.processor import Record, RecordContext
from letterhead.state.reads import KeyValueReads, SessionReads, StoreScan, WindowReads, not_null
from letterhead.state.serdes import AggregationWithHeadersSerde, ValueAndTimestampSerde, ValueTimestampHeadersSerde
from letterhead.state.storage.keys import SessionKey, WindowedKey
from letterhead.state.values import (
    AggregationWithHeaders,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    VersionedRecord,
    VersionedRecordWithHeaders,
)

__all__ = [
    "KeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlySessionStoreWithHeaders",
    "SessionStore",
    "SessionStoreWithHeaders",
    "TimestampedKeyValueStore",
    "TimestampedKeyValueStoreWithHeaders",
    "TimestampedWindowStore",
    "TimestampedWindowStoreWithHeaders",
    "VersionedKeyValueStore",
    "VersionedKeyValueStoreWithHeaders",
    "WindowStore",
]

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


# Key-value stores.


class KeyValueStore(Metered[K, V], KeyValueReads[K, V]):
    """A store of one value for each key. Keys must not be null."""

    _store_type = "key-value"
    _operations = ("put", "put_if_absent", "put_all", "delete", "get", "range", "all", "prefix_scan")

    @time_calls("put")
    def put(self, key: K, value: V | None) -> None:
        """Put a value; ``None`` deletes the key.

        Raises
        ------
        TypeError
            If the key is null, or the value has the wrong type for the store.
        InvalidTimestampError
            If the timestamp of the value is negative and the store has a changelog.
        """
        with self._encoded(key, value) as row:
            self.inner.put(*row)

    @time_calls("put_if_absent")
    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Put a value if the key has none; return the existing value, or ``None``."""
        with self._encoded(key, value) as (raw_key, stored):
            before = self.inner.put_if_absent(raw_key, stored)
        return self._deserialize_value(raw_key, before)

    @time_calls("put_all")
    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Put many values; ``None`` deletes a key."""
        entries = list(entries)
        for key, _ in entries:
            not_null(key)
        if any(value is None for _, value in entries):
            for key, value in entries:
                self.put(key, value)
        else:
            self.inner.put_all(
                [(self._check_and_serialize_key(key, value), self._raw_value(value)) for key, value in entries]
            )

    @time_calls("delete")
    def delete(self, key: K) -> V | None:
        """Delete a key; return the previous value, or ``None``."""
        with self._encoded(key, None) as (raw_key, _):
            before = self.inner.delete(raw_key)
        return self._deserialize_value(raw_key, before)

    def get(self, key: K) -> V | None:
        """Return the value of a key; ``None`` if there is none.

        Raises
        ------
        DamagedRowError
            If the row cannot be read.
        """
        began = perf_counter_ns()  # without the decorator, which would take 10 % longer
        raw_key = self._serialize_key_to_read(key)
        value: V | None = self._deserialize_value(raw_key, self.reads.get(raw_key))
        self._timers["get"].add(perf_counter_ns() - began)
        return value

    def approximate_num_entries(self) -> int:
        """Return the approximate number of rows."""
        return int(self.reads.approximate_num_entries())


class TimestampedKeyValueStore(KeyValueStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """A store of one value with its timestamp for each key."""

    _wrap_serde = ValueAndTimestampSerde
    _value_type = ValueAndTimestamp


class TimestampedKeyValueStoreWithHeaders(KeyValueStore[K, ValueTimestampHeaders[V]], Generic[K, V]):
    """A store of one value with its timestamp and headers for each key."""

    _wrap_serde = ValueTimestampHeadersSerde
    _value_type = ValueTimestampHeaders
    _keeps_headers = True

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store."""
        super().open(directory, context)
        serde = instance(self.serdes.value_serde, ValueTimestampHeadersSerde)
        self._join = partial(serde._encode_parts, self.serdes.topic)
        self._is_logged = isinstance(self.inner, ChangeLoggingKeyValueStore)

    def put(self, key: K, value: ValueTimestampHeaders[V] | None) -> None:
        """Put a value; ``None`` deletes the key. See :meth:`KeyValueStore.put`."""
        if value is None:
            super().put(key, None)
            return
        began = perf_counter_ns()  # without the decorator, as in get
        raw_key = self._check_and_serialize_key(not_null(key), value)
        raw, payload, headers = self._join(value)
        if raw is None or not self._is_logged:
            self.inner.put(raw_key, raw)
        else:  # pass the parts to avoid splitting the value again; headers may change later
            self.inner.put(raw_key, raw, (payload, value._timestamp, Headers._with(headers._list().copy())))
        self._timers["put"].add(perf_counter_ns() - began)


# Window stores.


class WindowStore(Metered[K, V], WindowReads[K, V]):
    """A store of one value for each key and window, or of several with duplicates. Keys must not be null."""

    _store_type = "window"
    _operations = ("put", "fetch", "all")

    @time_calls("put")
    def put(self, key: K, value: V | None, start: int) -> None:
        """Put the value of a window.

        Parameters
        ----------
        key : object
            The key.
        value : object
            The value; ``None`` deletes the window, or does nothing in a store that keeps duplicates.
        start : int
            Start of the window in milliseconds. A window older than the store's retention is dropped.
        """
        with self._encoded(key, value) as row:
            self.inner.put(*row, start)

    @time_calls("fetch")
    def fetch(self, key: K, start: int) -> V | None:
        """Return the value of a window; ``None`` if there is none."""
        raw_key = self._serialize_key_to_read(key)
        row = WindowedKey(raw_key, start, start)  # for errors, which do not show the end
        return self._deserialize_value(row, self.reads.fetch(raw_key, start))


class TimestampedWindowStore(WindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """A store of one value with its timestamp for each key and window."""

    _wrap_serde = ValueAndTimestampSerde
    _value_type = ValueAndTimestamp


class TimestampedWindowStoreWithHeaders(WindowStore[K, ValueTimestampHeaders[V]], Generic[K, V]):
    """A store of one value with its timestamp and headers for each key and window."""

    _wrap_serde = ValueTimestampHeadersSerde
    _value_type = ValueTimestampHeaders
    _keeps_headers = True


# Session stores.


class ReadOnlySessionStore(SessionReads[K, V]):
    """Read-only view of a session store.

    Parameters
    ----------
    store : SessionStore
        The store to read. A :class:`SessionStore` also has these methods.
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

    def scan(self, query: StoreScan) -> StoreIterator[SessionKey, V]:
        """Return the rows of a scan."""
        return self._store.scan(query)


class SessionStore(Metered[K, V], ReadOnlySessionStore[K, V]):
    """A store of one aggregation for each key and session. Neither sessions nor their keys may be null."""

    _store_type = "session"
    _operations = ("put", "remove", "fetch", "find_sessions")

    @time_calls("put")
    def put(self, session: SessionKey, value: V | None) -> None:
        """Put the aggregation of a session; ``None`` deletes the session."""
        _check_session(session)
        with self._encoded(session.key, value) as (raw_key, stored):
            self.inner.put(SessionKey(raw_key, session.start, session.end), stored)

    @time_calls("remove")
    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        _check_session(session)
        with self._encoded(session.key, None) as (raw_key, _):
            self.inner.remove(SessionKey(raw_key, session.start, session.end))

    @time_calls("fetch")
    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Return the aggregation of a session; ``None`` if there is none."""
        raw_key = self._serialize_key_to_read(key)
        return self._deserialize_value(SessionKey(raw_key, start, end), self.reads.fetch_session(raw_key, start, end))

    def _change(self, row: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> Record[Any, Change]:
        change = super()._change(row, new, old, context)
        value = change.value.new_value
        headers = value.headers if self._keeps_headers and value is not None else Headers()
        return Record(change.key, change.value, row.end, headers)


class ReadOnlySessionStoreWithHeaders(ReadOnlySessionStore[K, AggregationWithHeaders[V]], Generic[K, V]):
    """Read-only view of a session store with headers.

    :meth:`TopologyTestDriver.get_read_only_session_store_with_headers` returns this view.

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

    _wrap_serde = AggregationWithHeadersSerde
    _value_type = AggregationWithHeaders
    _keeps_headers = True


def _check_session(session: SessionKey | None) -> None:
    if session is None:
        raise TypeError("sessionKey can't be null")
    if session.key is None:
        raise TypeError("sessionKey.key() can't be null")


# Versioned stores.


class _MeteredVersions(Metered[K, V], Generic[K, V, R]):
    """Base class of versioned stores; ``R`` is the class of a version. Keys must not be null."""

    _store_type = "versioned"
    _operations = ("put", "delete", "get", "get_as_of", "versions")

    @time_calls("delete")
    def delete(self, key: K, timestamp: int) -> R | None:
        """Delete a key from a time on; return the version that was valid at that time, or ``None``."""
        with self._encoded(key, None) as (raw_key, _):
            before = self.inner.delete(raw_key, timestamp)
        return self._version(raw_key, before)

    def get(self, key: K, as_of: int | None = None) -> R | None:
        """Return the latest version of a key, or the version valid at time ``as_of``; ``None`` if there is none."""
        began = perf_counter_ns()
        raw_key = self._serialize_key_to_read(key)
        stored = self.reads.get(raw_key) if as_of is None else self.reads.get_as_of(raw_key, as_of)
        version = self._version(raw_key, stored)
        self._timers["get" if as_of is None else "get_as_of"].add(perf_counter_ns() - began)
        return version

    @time_calls("versions")
    def versions(
        self, key: K, time_from: int | None = None, time_to: int | None = None, *, ascending: bool = False
    ) -> StoreIterator[K, R]:
        """Return the versions of a key that were valid at any time in a range, the latest first by default."""
        raw_key = self._serialize_key_to_read(key)

        def row(raw: bytes, stored: VersionedBytes) -> tuple[K, Any]:
            return key, self._record(raw, stored)

        return MeteredIterator(self, self.reads.versions(raw_key, time_from, time_to, ascending), row)

    def _version(self, raw_key: bytes, stored: VersionedBytes | None) -> R | None:
        return None if stored is None else self._record(raw_key, stored)

    def _record(self, raw_key: bytes, stored: VersionedBytes) -> R | None:
        raise NotImplementedError


class VersionedKeyValueStore(_MeteredVersions[K, V, VersionedRecord[V]], Generic[K, V]):
    """A store that also keeps earlier values of each key.

    As in Kafka Streams, ``valid_to`` is set in versions from :meth:`versions`, but not from :meth:`get` and :meth:`delete`.
    """

    @time_calls("put")
    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Put a version.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        value : object
            The value; ``None`` deletes the key from the timestamp on.
        timestamp : int
            Start of the version's validity, in milliseconds.

        Returns
        -------
        int
            End of its validity; ``VALID_TO_UNDEFINED`` for the latest version, ``PUT_NOT_VALID`` if the version is
            older than the history retention and was dropped.
        """
        with self._encoded(key, value) as row:
            valid_to: int = self.inner.put(*row, timestamp)
        return valid_to

    def _version(self, raw_key: bytes, stored: VersionedBytes | None) -> VersionedRecord[V] | None:
        return super()._version(raw_key, stored and stored._replace(valid_to=None))

    def _record(self, raw_key: bytes, stored: VersionedBytes) -> VersionedRecord[V] | None:
        value = self._deserialize_value(raw_key, stored.value)
        return None if value is None else VersionedRecord(value, stored.timestamp, stored.valid_to)


class VersionedKeyValueStoreWithHeaders(_MeteredVersions[K, V, VersionedRecordWithHeaders[V]], Generic[K, V]):
    """A store that also keeps earlier values of each key, with their headers."""

    _wrap_serde = AggregationWithHeadersSerde
    _keeps_headers = True

    @time_calls("put")
    def put(self, key: K, value: V | None, timestamp: int, headers: Any = None) -> int:
        """Put a version; see :meth:`VersionedKeyValueStore.put`.

        By default, a version has no headers. For a value of ``None``, the store keeps no headers; they are only written to
        the changelog, where the default is the headers of the current record.
        """
        if headers is not None and not isinstance(headers, Headers):
            headers = Headers(headers)
        aggregation = (
            None if value is None else AggregationWithHeaders(value, Headers() if headers is None else headers)
        )
        with self._encoded(key, aggregation, headers) as row:
            valid_to: int = self.inner.put(*row, timestamp)
        return valid_to

    def _record(self, raw_key: bytes, stored: VersionedBytes) -> VersionedRecordWithHeaders[V] | None:
        value: Any = self._deserialize_value(raw_key, stored.value)
        if value.aggregation is None:
            return None
        return VersionedRecordWithHeaders(value.aggregation, stored.timestamp, value.headers, stored.valid_to)
