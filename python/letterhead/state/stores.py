"""Suppliers and builders of stores, under the names of Kafka Streams in Python's spelling.

A supplier says what is kept and where; a builder puts the layers around it::

    metered → caching, if enabled → change-logging, unless disabled → store, or an adapter around an older one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from letterhead._native import split_value
from letterhead.errors import TopologyError
from letterhead.headers import Headers
from letterhead.limits import Limits
from letterhead.state.base import ValueFormat
from letterhead.state.layers.adapters import adapted
from letterhead.state.layers.caching import CachingKeyValueStore, CachingSessionStore, CachingWindowStore
from letterhead.state.layers.change_logging import (
    ChangeLoggingKeyValueStore,
    ChangeLoggingSessionStore,
    ChangeLoggingVersionedStore,
    ChangeLoggingWindowStore,
    Parts,
    Split,
)
from letterhead.state.layers.key_value import (
    KeyValueStore,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
)
from letterhead.state.layers.metered import DamagedRows, Metered
from letterhead.state.layers.session import SessionStore, SessionStoreWithHeaders
from letterhead.state.layers.versioned import VersionedKeyValueStore, VersionedKeyValueStoreWithHeaders
from letterhead.state.layers.window import TimestampedWindowStore, TimestampedWindowStoreWithHeaders, WindowStore
from letterhead.state.memory import (
    InMemoryKeyValueStore,
    InMemorySessionStore,
    InMemoryVersionedStore,
    InMemoryWindowStore,
)
from letterhead.state.record import RecordContext
from letterhead.state.serdes import Serde
from letterhead.state.suppliers import (
    Family,
    KeyValueSuppliers,
    Milliseconds,
    SessionSuppliers,
    Supplier,
    TimeOrderedSessionSuppliers,
    TimeOrderedWindowSuppliers,
    VersionedSuppliers,
    WindowSuppliers,
    named,
    retention_of,
    versioned_times,
    window_times,
)
from letterhead.state.topology import StoreBuilder
from letterhead.state.values import LazyHeaders

__all__ = ["Builder", "Stores", "Supplier"]


class Builder(StoreBuilder):
    """Makes a store with its layers; :class:`Stores` makes builders.

    The methods change the builder and give it, so that calls can be chained.
    """

    def __init__(
        self,
        supplier: Supplier,
        store: Callable[..., Any],
        format: ValueFormat,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
    ) -> None:
        self.supplier = supplier
        self.name = supplier.name
        self.logged = True
        self.cached = False
        self.changelog_config: dict[str, str] = {}
        self._store = store
        self._format = format
        self._serdes = key_serde, value_serde
        self._damaged_rows: DamagedRows = "report"
        self._limits: Limits | None = None

    def with_caching_enabled(self) -> Self:
        """Hold writes back until the next commit. Stores that keep duplicates are not cached."""
        if self.supplier.family == "versioned":
            raise TopologyError(f"store {self.name} keeps versions, and cannot be cached")
        self.cached = True
        return self

    def with_caching_disabled(self) -> Self:
        """Write through."""
        self.cached = False
        return self

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> Self:
        """Write every change to a changelog.

        Parameters
        ----------
        config : mapping of str to str, optional
            Settings for the topic, for who creates it.
        """
        self.logged = True
        self.changelog_config = dict(config or {})
        return self

    def with_logging_disabled(self) -> Self:
        """Write no changelog: what is lost is lost."""
        self.logged = False
        self.changelog_config = {}
        return self

    def with_damaged_rows(self, damaged_rows: DamagedRows) -> Self:
        """Choose what a scan does about a row that cannot be read: ``report`` it and go on, or ``raise``."""
        if damaged_rows not in ("report", "raise"):
            raise ValueError(f"damaged_rows must be 'report' or 'raise', not {damaged_rows!r}")
        self._damaged_rows = damaged_rows
        return self

    def with_limits(self, limits: Limits) -> Self:
        """Limit what is read of a row: the bytes of its value, and its headers.

        Parameters
        ----------
        limits : Limits
            The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`. A row over a
            limit is a damaged row. What is put is not limited.
        """
        if not isinstance(limits, Limits):
            raise TypeError(f"limits must be letterhead.Limits, not {type(limits).__name__}")
        self._limits = limits
        return self

    def build(self, make: Callable[[Supplier, ValueFormat], Any] | None = None) -> Any:
        """Make the store, not yet open.

        Parameters
        ----------
        make : callable, optional
            Makes the store of bytes below the layers, for an engine that keeps rows in its own place; it is given the
            supplier and what values are to have beside the payload. By default the supplier makes it.
        """
        bottom = make(self.supplier, self._format) if make else self.supplier.get(self._format)
        store = adapted(bottom, self.supplier.family, self._format)
        if self.logged:
            store = _logged(store, bottom, self.supplier.family, self._format)
        if self.cached and not getattr(bottom, "retain_duplicates", False):
            store = _cached(store, bottom, self.supplier)
        return self._store(store, *self._serdes, damaged_rows=self._damaged_rows, limits=self._limits)


@dataclass(frozen=True)
class _Builders:
    """Makes builders of one kind of store."""

    store: type[Metered[Any, Any]]
    format: ValueFormat

    def __call__(
        self, supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Make a builder.

        Parameters
        ----------
        supplier : Supplier
            What is kept and where; an older kind is adapted, and keeps no headers.
        key_serde, value_serde : Serde, optional
            How keys and values become bytes; by default as the task says.

        Raises
        ------
        TypeError
            If the supplier is ``None``.
        TopologyError
            If the supplier is of another family, or keeps more than the store would have.
        """
        if supplier is None:
            raise TypeError("supplier cannot be null")
        family = self.store.family
        if supplier.family != family:
            raise TopologyError(
                f"store {supplier.name}: a supplier of the family {supplier.family!r} where {family!r} is built"
            )
        if supplier.format is not None and _FORMATS.index(supplier.format) > _FORMATS.index(self.format):
            raise TopologyError(f"store {supplier.name} keeps {supplier.format}: build a store that has them")
        return Builder(supplier, self.store, self.format, key_serde, value_serde)


_FORMATS: tuple[ValueFormat, ...] = ("plain", "timestamped", "headers")


class Stores:
    """Makes suppliers and builders.

    Durations are milliseconds or :class:`~datetime.timedelta`. ``options``, a
    :class:`~letterhead.storage.database.RocksDBOptions`, say how a database is opened, such as with a write-ahead log.

    Examples
    --------
    >>> from letterhead.state import Stores
    >>> supplier = Stores.persistent_timestamped_key_value_store_with_headers("latest")
    >>> builder = Stores.timestamped_key_value_store_with_headers_builder(supplier).with_caching_enabled()
    >>> builder.build().layers()[:3]
    ['TimestampedKeyValueStoreWithHeaders', 'CachingKeyValueStore', 'ChangeLoggingKeyValueStore']
    """

    # Key-value suppliers.

    persistent_timestamped_key_value_store_with_headers = KeyValueSuppliers("headers")
    """Keep values with timestamps and headers in RocksDB."""

    persistent_timestamped_key_value_store = KeyValueSuppliers("timestamped")
    """Keep values with timestamps in RocksDB."""

    persistent_key_value_store = KeyValueSuppliers("plain")
    """Keep plain values in RocksDB."""

    @staticmethod
    def in_memory_key_value_store(name: str) -> Supplier:
        """Keep what the builder wants in memory; it comes back from the changelog."""
        named(name)

        def make(format: ValueFormat) -> Any:
            return InMemoryKeyValueStore(name, format=format)

        return Supplier(name, "kv", "in-memory", make, "memory")

    # Window suppliers.

    persistent_timestamped_window_store_with_headers = WindowSuppliers("headers")
    """Keep windows with timestamps and headers in RocksDB."""

    persistent_timestamped_window_store = WindowSuppliers("timestamped")
    """Keep windows with timestamps in RocksDB."""

    persistent_window_store = WindowSuppliers("plain")
    """Keep plain windows in RocksDB."""

    persistent_time_ordered_window_store_with_headers = TimeOrderedWindowSuppliers("headers")
    """Keep windows with timestamps and headers in RocksDB, in order of time."""

    persistent_time_ordered_window_store = TimeOrderedWindowSuppliers("timestamped")
    """Keep windows with timestamps in RocksDB, in order of time."""

    @staticmethod
    def in_memory_window_store(
        name: str, retention_period: Milliseconds, window_size: Milliseconds, retain_duplicates: bool = False
    ) -> Supplier:
        """Keep windows of what the builder wants in memory; they come back from the changelog."""
        retention, size = window_times(name, retention_period, window_size)

        def make(format: ValueFormat) -> Any:
            return InMemoryWindowStore(name, retention, size, retain_duplicates, format=format)

        return Supplier(name, "window", "in-memory-window", make, "memory")

    # Session suppliers.

    persistent_session_store_with_headers = SessionSuppliers("headers")
    """Keep sessions with headers in RocksDB."""

    persistent_session_store = SessionSuppliers("plain")
    """Keep plain sessions in RocksDB."""

    persistent_time_ordered_session_store_with_headers = TimeOrderedSessionSuppliers("headers")
    """Keep sessions with headers in RocksDB, in order of time."""

    persistent_time_ordered_session_store = TimeOrderedSessionSuppliers("plain")
    """Keep plain sessions in RocksDB, in order of time."""

    @staticmethod
    def in_memory_session_store(name: str, retention_period: Milliseconds) -> Supplier:
        """Keep sessions of what the builder wants in memory; they come back from the changelog."""
        retention = retention_of(name, retention_period)

        def make(format: ValueFormat) -> Any:
            return InMemorySessionStore(name, retention, format=format)

        return Supplier(name, "session", "in-memory-session", make, "memory")

    # Versioned suppliers.

    persistent_versioned_key_value_store_with_headers = VersionedSuppliers("headers")
    """Keep versions with headers in RocksDB."""

    persistent_versioned_key_value_store = VersionedSuppliers("plain")
    """Keep plain versions in RocksDB."""

    @staticmethod
    def in_memory_versioned_key_value_store(
        name: str, history_retention: Milliseconds, segment_interval: Milliseconds | None = None
    ) -> Supplier:
        """Keep versions of what the builder wants in memory; they come back from the changelog."""
        retention, interval = versioned_times(name, history_retention, segment_interval)

        def make(format: ValueFormat) -> Any:
            return InMemoryVersionedStore(name, retention, interval, headers=format == "headers")

        return Supplier(name, "versioned", "in-memory-versioned", make, "memory")

    # Builders.

    timestamped_key_value_store_with_headers_builder = _Builders(TimestampedKeyValueStoreWithHeaders, "headers")
    """Build a :class:`TimestampedKeyValueStoreWithHeaders`."""

    timestamped_key_value_store_builder = _Builders(TimestampedKeyValueStore, "timestamped")
    """Build a :class:`TimestampedKeyValueStore`."""

    key_value_store_builder = _Builders(KeyValueStore, "plain")
    """Build a :class:`KeyValueStore`."""

    timestamped_window_store_with_headers_builder = _Builders(TimestampedWindowStoreWithHeaders, "headers")
    """Build a :class:`TimestampedWindowStoreWithHeaders`."""

    timestamped_window_store_builder = _Builders(TimestampedWindowStore, "timestamped")
    """Build a :class:`TimestampedWindowStore`."""

    window_store_builder = _Builders(WindowStore, "plain")
    """Build a :class:`WindowStore`."""

    session_store_with_headers_builder = _Builders(SessionStoreWithHeaders, "headers")
    """Build a :class:`SessionStoreWithHeaders`."""

    session_store_builder = _Builders(SessionStore, "plain")
    """Build a :class:`SessionStore`."""

    versioned_key_value_store_with_headers_builder = _Builders(VersionedKeyValueStoreWithHeaders, "headers")
    """Build a :class:`VersionedKeyValueStoreWithHeaders`."""

    versioned_key_value_store_builder = _Builders(VersionedKeyValueStore, "plain")
    """Build a :class:`VersionedKeyValueStore`."""


# The layers.


def _logged(store: Any, bottom: Any, family: Family, format: ValueFormat) -> Any:
    with_headers = format == "headers"
    if family == "session":
        return ChangeLoggingSessionStore(store, _SESSION_SPLITS[format], headers=with_headers)
    if family == "versioned":
        return ChangeLoggingVersionedStore(store, _SESSION_SPLITS[format], headers=with_headers)
    if family == "window":
        return ChangeLoggingWindowStore(
            store, _SPLITS[format], headers=with_headers, retain_duplicates=bottom.retain_duplicates
        )
    return ChangeLoggingKeyValueStore(store, _SPLITS[format], headers=with_headers)


def _cached(store: Any, bottom: Any, supplier: Supplier) -> Any:
    if supplier.family == "window":
        return CachingWindowStore(
            store, segment_interval=bottom.segment_interval, order=supplier.order, window_size=bottom.window_size
        )
    if supplier.family == "session":
        return CachingSessionStore(store, segment_interval=bottom.segment_interval, order=supplier.order)
    return CachingKeyValueStore(store)


def _split_plain(value: bytes, context: RecordContext) -> Parts:
    return value, context.timestamp, Headers()


def _split_timestamped(value: bytes, context: RecordContext) -> Parts:
    return value[8:], int.from_bytes(value[:8], "big", signed=True), Headers()


def _split_headers(value: bytes, context: RecordContext) -> Parts:
    payload, timestamp, start, end = split_value(value, True)
    headers = _new(LazyHeaders)  # without a call of its own: this runs at every write
    headers._block = value, start, end, None, None
    return payload, timestamp, headers


def _split_aggregation(value: bytes, context: RecordContext) -> Parts:
    payload, _, start, end = split_value(value, False)
    return payload, context.timestamp, LazyHeaders(value, start, end)


_new = object.__new__

_SPLITS: dict[ValueFormat, Split] = {
    "plain": _split_plain,
    "timestamped": _split_timestamped,
    "headers": _split_headers,
}
_SESSION_SPLITS: dict[ValueFormat, Split] = {"plain": _split_plain, "headers": _split_aggregation}
