"""Suppliers and builders of stores, with the names of Kafka Streams in Python style.

A supplier creates a byte store, and a builder adds the layers around it::

    metered → caching, if enabled → change-logging, unless disabled → adapter, if the format is older → store of bytes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from letterhead._names import check_name
from letterhead.errors import TopologyError
from letterhead.limits import Limits
from letterhead.state import memory, suppliers
from letterhead.state.base import FORMATS, StoreType, ValueFormat
from letterhead.state.converters import split_for
from letterhead.state.durations import Milliseconds
from letterhead.state.layers import caching, change_logging, typed
from letterhead.state.layers.conversion import adapt
from letterhead.state.layers.metered import Metered, ScanErrors
from letterhead.state.serdes import Serde
from letterhead.state.storage.database import RocksDBOptions
from letterhead.state.suppliers import Supplier, supply

__all__ = ["Builder", "Stores", "Supplier"]


class Builder:
    """Builder of a store with its layers, returned by :class:`Stores`.

    Each method changes the builder and returns it, so that calls can be chained.
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
        self._errors: ScanErrors = "skip"
        self._limits: Limits | None = None

    def with_caching_enabled(self) -> Self:
        """Cache writes until the next commit. This has no effect for stores with duplicates, and fails for versioned stores."""
        if self.supplier.store_type == "versioned":
            raise TopologyError(f"store {self.name} keeps versions, and cannot be cached")
        self.cached = True
        return self

    def with_caching_disabled(self) -> Self:
        """Write through to the store and its changelog."""
        self.cached = False
        return self

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> Self:
        """Write every change to a changelog; ``config`` contains settings for its topic."""
        self.logged = True
        self.changelog_config = dict(config or {})
        return self

    def with_logging_disabled(self) -> Self:
        """Write no changelog, so that a lost store cannot be restored."""
        self.logged = False
        self.changelog_config = {}
        return self

    def with_errors(self, errors: ScanErrors) -> Self:
        """Set what scans do with rows that cannot be read.

        Parameters
        ----------
        errors : {"skip", "raise"}
            ``skip`` logs a warning, counts the row and continues; ``raise`` raises :class:`DamagedRowError`.
        """
        check_name("errors value", errors, ("skip", "raise"))
        self._errors = errors
        return self

    def with_limits(self, limits: Limits) -> Self:
        """Limit the size of values and headers on reading; writes are not limited.

        Parameters
        ----------
        limits : Limits
            The limits. Unset fields use the process-wide defaults. A row over a limit counts as damaged.
        """
        if not isinstance(limits, Limits):
            raise TypeError(f"limits must be letterhead.Limits, not {type(limits).__name__}")
        self._limits = limits
        return self

    def build(self, make: Callable[[Supplier, ValueFormat], Any] | None = None) -> Any:
        """Create the store without opening it.

        Parameters
        ----------
        make : callable, optional
            Creates the byte store below the layers, given the supplier and the value format, for an engine that keeps
            rows elsewhere. By default the supplier creates the byte store.
        """
        bottom = make(self.supplier, self._format) if make else self.supplier.get(self._format)
        store = adapt(bottom, self.supplier.store_type, self._format)
        if self.logged:
            store = _logging_options(store, bottom, self.supplier.store_type, self._format)
        if self.cached and not getattr(bottom, "retain_duplicates", False):
            store = _wrap_in_cache(store, bottom, self.supplier)
        return self._store(store, *self._serdes, errors=self._errors, limits=self._limits)


def _logging_options(store: Any, bottom: Any, store_type: StoreType, format: ValueFormat) -> Any:
    options: dict[str, Any] = {"headers": format == "headers"}
    if store_type == "window":
        options["retain_duplicates"] = bottom.retain_duplicates
    return _CHANGE_LOGGING[store_type](store, split_for(store_type, format), **options)


_CHANGE_LOGGING: dict[StoreType, Callable[..., Any]] = {
    "key-value": change_logging.ChangeLoggingKeyValueStore,
    "window": change_logging.ChangeLoggingWindowStore,
    "session": change_logging.ChangeLoggingSessionStore,
    "versioned": change_logging.ChangeLoggingVersionedStore,
}


def _wrap_in_cache(store: Any, bottom: Any, supplier: Supplier) -> Any:
    if supplier.store_type == "key-value":
        return caching.CachingKeyValueStore(store)
    segments = {"segment_interval": bottom.segment_interval, "order": supplier.order}
    if supplier.store_type == "session":
        return caching.CachingSessionStore(store, **segments)
    return caching.CachingWindowStore(store, window_size=bottom.window_size, **segments)


def _builder(
    store: type[Metered[Any, Any]],
    format: ValueFormat,
    supplier: Supplier,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> Builder:
    """Return a builder for a store class and a value format."""
    if supplier is None:
        raise TypeError("supplier cannot be null")
    if supplier.store_type != store._store_type:
        raise TopologyError(
            f"store {supplier.name}: the supplier makes a {supplier.store_type} store, not a {store._store_type} store"
        )
    if supplier.format is not None and FORMATS.index(supplier.format) > FORMATS.index(format):
        raise TopologyError(f"store {supplier.name} keeps {supplier.format}: build a store that has them")
    return Builder(supplier, store, format, key_serde, value_serde)


class Stores:
    """Functions that create suppliers of byte stores, and builders that add layers around them.

    ``persistent_`` functions return suppliers of stores in RocksDB. ``in_memory_`` functions return suppliers of stores in
    memory, which are restored from the changelog and use the value format of the builder. ``_builder`` functions return a
    :class:`Builder`. The names contain the value format: ``timestamped``, ``with_headers``, or neither.

    Each function has the parameters needed for its type of store. Durations are milliseconds or
    :class:`~datetime.timedelta`, and refer to the timestamps of records.

    Parameters
    ----------
    name : str
        Name of the store.
    retention_period : int or timedelta
        Retention of windows and sessions; for windows, at least ``window_size``.
    window_size : int or timedelta
        Length of a window.
    retain_duplicates : bool, default False
        Whether to keep every value of a window rather than only the last.
    history_retention : int or timedelta
        Retention of a version after the end of its validity, and maximum delay of a late version.
    segment_interval : int or timedelta, optional
        Length of a segment; the versions of a segment are dropped together. Derived from the retention by default.
    with_index : bool, default True
        Whether to keep an index by key in a time-ordered store. A store without an index writes half as much, but a scan
        by key reads all rows in its time range, and returns rows in order of time.
    options : RocksDBOptions, optional
        Options of the database, such as a write-ahead log.
    supplier : Supplier
        Supplier of the byte store below the layers. A store of an older format is adapted, and keeps no headers.
    key_serde, value_serde : Serde, optional
        Serdes of keys and values; by default the serdes of the task.

    Raises
    ------
    TypeError
        If the name or the supplier is ``None``.
    TopologyError
        If the store of the supplier has another type than the builder requires, or a newer format.
    ValueError
        If a duration is negative, the window size exceeds the retention, or the segment interval is less than 1.

    Examples
    --------
    >>> from letterhead.state import Stores
    >>> supplier = Stores.persistent_timestamped_key_value_store_with_headers("latest")
    >>> builder = Stores.timestamped_key_value_store_with_headers_builder(supplier).with_caching_enabled()
    >>> builder.build().layers()[:3]
    ['TimestampedKeyValueStoreWithHeaders', 'CachingKeyValueStore', 'ChangeLoggingKeyValueStore']
    """

    @staticmethod
    def persistent_timestamped_key_value_store_with_headers(
        name: str, *, options: RocksDBOptions | None = None
    ) -> Supplier:
        """Keep values with timestamps and headers in RocksDB."""
        return suppliers.key_value("headers", name, options)

    @staticmethod
    def persistent_timestamped_key_value_store(name: str, *, options: RocksDBOptions | None = None) -> Supplier:
        """Keep values with timestamps in RocksDB."""
        return suppliers.key_value("timestamped", name, options)

    @staticmethod
    def persistent_key_value_store(name: str, *, options: RocksDBOptions | None = None) -> Supplier:
        """Keep plain values in RocksDB."""
        return suppliers.key_value("plain", name, options)

    @staticmethod
    def in_memory_key_value_store(name: str) -> Supplier:
        """Keep values in memory."""
        suppliers.check_store_name(name)
        return supply("key-value", memory.InMemoryKeyValueStore, name, order="memory")

    @staticmethod
    def persistent_timestamped_window_store_with_headers(
        name: str,
        retention_period: Milliseconds,
        window_size: Milliseconds,
        retain_duplicates: bool = False,
        *,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Keep windows of values with timestamps and headers in RocksDB."""
        return suppliers.window("headers", name, retention_period, window_size, retain_duplicates, options)

    @staticmethod
    def persistent_timestamped_window_store(
        name: str,
        retention_period: Milliseconds,
        window_size: Milliseconds,
        retain_duplicates: bool = False,
        *,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Keep windows of values with timestamps in RocksDB."""
        return suppliers.window("timestamped", name, retention_period, window_size, retain_duplicates, options)

    @staticmethod
    def persistent_window_store(
        name: str,
        retention_period: Milliseconds,
        window_size: Milliseconds,
        retain_duplicates: bool = False,
        *,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Keep windows of plain values in RocksDB."""
        return suppliers.window("plain", name, retention_period, window_size, retain_duplicates, options)

    @staticmethod
    def persistent_time_ordered_window_store_with_headers(
        name: str,
        retention_period: Milliseconds,
        window_size: Milliseconds,
        retain_duplicates: bool = False,
        *,
        with_index: bool = True,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Keep windows of values with timestamps and headers in RocksDB, in order of time."""
        return suppliers.time_ordered_window(
            "headers", name, retention_period, window_size, retain_duplicates, with_index, options
        )

    @staticmethod
    def persistent_time_ordered_window_store(
        name: str,
        retention_period: Milliseconds,
        window_size: Milliseconds,
        retain_duplicates: bool = False,
        *,
        with_index: bool = True,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Keep windows of values with timestamps in RocksDB, in order of time."""
        return suppliers.time_ordered_window(
            "timestamped", name, retention_period, window_size, retain_duplicates, with_index, options
        )

    @staticmethod
    def in_memory_window_store(
        name: str, retention_period: Milliseconds, window_size: Milliseconds, retain_duplicates: bool = False
    ) -> Supplier:
        """Keep windows in memory."""
        times = suppliers.window_times(name, retention_period, window_size)
        return supply("window", memory.InMemoryWindowStore, name, *times, retain_duplicates, order="memory")

    @staticmethod
    def persistent_session_store_with_headers(
        name: str, retention_period: Milliseconds, *, options: RocksDBOptions | None = None
    ) -> Supplier:
        """Keep sessions of aggregations with headers in RocksDB."""
        return suppliers.session("headers", name, retention_period, options)

    @staticmethod
    def persistent_session_store(
        name: str, retention_period: Milliseconds, *, options: RocksDBOptions | None = None
    ) -> Supplier:
        """Keep sessions of plain aggregations in RocksDB."""
        return suppliers.session("plain", name, retention_period, options)

    @staticmethod
    def persistent_time_ordered_session_store_with_headers(
        name: str, retention_period: Milliseconds, *, with_index: bool = True, options: RocksDBOptions | None = None
    ) -> Supplier:
        """Keep sessions in RocksDB, in order of time; as in Kafka Streams, headers are in the changelog only."""
        return suppliers.time_ordered_session("headers", name, retention_period, with_index, options)

    @staticmethod
    def persistent_time_ordered_session_store(
        name: str, retention_period: Milliseconds, *, with_index: bool = True, options: RocksDBOptions | None = None
    ) -> Supplier:
        """Keep sessions of plain aggregations in RocksDB, in order of time."""
        return suppliers.time_ordered_session("plain", name, retention_period, with_index, options)

    @staticmethod
    def in_memory_session_store(name: str, retention_period: Milliseconds) -> Supplier:
        """Keep sessions in memory."""
        retention = suppliers.session_time(name, retention_period)
        return supply("session", memory.InMemorySessionStore, name, retention, order="memory")

    @staticmethod
    def persistent_versioned_key_value_store_with_headers(
        name: str,
        history_retention: Milliseconds,
        segment_interval: Milliseconds | None = None,
        *,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Keep versions of values with headers in RocksDB."""
        return suppliers.versioned("headers", name, history_retention, segment_interval, options)

    @staticmethod
    def persistent_versioned_key_value_store(
        name: str,
        history_retention: Milliseconds,
        segment_interval: Milliseconds | None = None,
        *,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Keep versions of plain values in RocksDB."""
        return suppliers.versioned("plain", name, history_retention, segment_interval, options)

    @staticmethod
    def in_memory_versioned_key_value_store(
        name: str, history_retention: Milliseconds, segment_interval: Milliseconds | None = None
    ) -> Supplier:
        """Keep versions in memory."""
        times = suppliers.versioned_times(name, history_retention, segment_interval)
        return supply("versioned", memory.InMemoryVersionedStore, name, *times, order="memory")

    @staticmethod
    def timestamped_key_value_store_with_headers_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`TimestampedKeyValueStoreWithHeaders`."""
        return _builder(typed.TimestampedKeyValueStoreWithHeaders, "headers", supplier, key_serde, value_serde)

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`TimestampedKeyValueStore`."""
        return _builder(typed.TimestampedKeyValueStore, "timestamped", supplier, key_serde, value_serde)

    @staticmethod
    def key_value_store_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`KeyValueStore`."""
        return _builder(typed.KeyValueStore, "plain", supplier, key_serde, value_serde)

    @staticmethod
    def timestamped_window_store_with_headers_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`TimestampedWindowStoreWithHeaders`."""
        return _builder(typed.TimestampedWindowStoreWithHeaders, "headers", supplier, key_serde, value_serde)

    @staticmethod
    def timestamped_window_store_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`TimestampedWindowStore`."""
        return _builder(typed.TimestampedWindowStore, "timestamped", supplier, key_serde, value_serde)

    @staticmethod
    def window_store_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`WindowStore`."""
        return _builder(typed.WindowStore, "plain", supplier, key_serde, value_serde)

    @staticmethod
    def session_store_with_headers_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`SessionStoreWithHeaders`."""
        return _builder(typed.SessionStoreWithHeaders, "headers", supplier, key_serde, value_serde)

    @staticmethod
    def session_store_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`SessionStore`."""
        return _builder(typed.SessionStore, "plain", supplier, key_serde, value_serde)

    @staticmethod
    def versioned_key_value_store_with_headers_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`VersionedKeyValueStoreWithHeaders`."""
        return _builder(typed.VersionedKeyValueStoreWithHeaders, "headers", supplier, key_serde, value_serde)

    @staticmethod
    def versioned_key_value_store_builder(
        supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder of a :class:`VersionedKeyValueStore`."""
        return _builder(typed.VersionedKeyValueStore, "plain", supplier, key_serde, value_serde)
