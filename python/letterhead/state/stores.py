"""Suppliers and builders of stores, under the names of Kafka Streams in Python's spelling.

A supplier creates a store of bytes; a builder puts the layers around it::

    metered → caching, if enabled → change-logging, unless disabled → adapter, if the format is older → store of bytes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from letterhead.errors import TopologyError
from letterhead.limits import Limits
from letterhead.state import memory, suppliers
from letterhead.state.base import FORMATS, ValueFormat
from letterhead.state.converters import split_for
from letterhead.state.layers import caching, change_logging, typed
from letterhead.state.layers.conversion import adapted
from letterhead.state.layers.metered import DamagedRows, Metered
from letterhead.state.serdes import Serde
from letterhead.state.suppliers import Family, Milliseconds, Supplier, supply
from letterhead.state.topology import StoreBuilder

__all__ = ["Builder", "Stores", "Supplier"]


class Builder(StoreBuilder):
    """Creates a store with its layers; :class:`Stores` returns builders.

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
        self._damaged_rows: DamagedRows = "report"
        self._limits: Limits | None = None

    def with_caching_enabled(self) -> Self:
        """Cache writes until the next commit. A store that keeps duplicates is not cached, and a versioned one cannot be."""
        if self.supplier.family == "versioned":
            raise TopologyError(f"store {self.name} keeps versions, and cannot be cached")
        self.cached = True
        return self

    def with_caching_disabled(self) -> Self:
        """Write through to the store and its changelog."""
        self.cached = False
        return self

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> Self:
        """Write every change to a changelog; ``config`` has settings for creating its topic."""
        self.logged = True
        self.changelog_config = dict(config or {})
        return self

    def with_logging_disabled(self) -> Self:
        """Write no changelog: a lost store cannot be restored."""
        self.logged = False
        self.changelog_config = {}
        return self

    def with_damaged_rows(self, damaged_rows: DamagedRows) -> Self:
        """Choose how a scan handles a row that cannot be read: ``report`` it and continue, or ``raise``."""
        if damaged_rows not in ("report", "raise"):
            raise ValueError(f"damaged_rows must be 'report' or 'raise', not {damaged_rows!r}")
        self._damaged_rows = damaged_rows
        return self

    def with_limits(self, limits: Limits) -> Self:
        """Limit the size of values and headers that are read; writes are not limited.

        Parameters
        ----------
        limits : Limits
            The limits. Unset fields use the process-wide defaults. A row over a limit is a damaged row.
        """
        if not isinstance(limits, Limits):
            raise TypeError(f"limits must be letterhead.Limits, not {type(limits).__name__}")
        self._limits = limits
        return self

    def build(self, make: Callable[[Supplier, ValueFormat], Any] | None = None) -> Any:
        """Create the store, not yet open.

        Parameters
        ----------
        make : callable, optional
            Creates the store of bytes below the layers from the supplier and the format of the values, for an engine
            that keeps rows elsewhere. By default the supplier creates it.
        """
        bottom = make(self.supplier, self._format) if make else self.supplier.get(self._format)
        store = adapted(bottom, self.supplier.family, self._format)
        if self.logged:
            store = _logged(store, bottom, self.supplier.family, self._format)
        if self.cached and not getattr(bottom, "retain_duplicates", False):
            store = _cached(store, bottom, self.supplier)
        return self._store(store, *self._serdes, damaged_rows=self._damaged_rows, limits=self._limits)


def _logged(store: Any, bottom: Any, family: Family, format: ValueFormat) -> Any:
    options: dict[str, Any] = {"headers": format == "headers"}
    if family == "window":
        options["retain_duplicates"] = bottom.retain_duplicates
    return _CHANGE_LOGGING[family](store, split_for(family, format), **options)


_CHANGE_LOGGING: dict[Family, Callable[..., Any]] = {
    "kv": change_logging.ChangeLoggingKeyValueStore,
    "window": change_logging.ChangeLoggingWindowStore,
    "session": change_logging.ChangeLoggingSessionStore,
    "versioned": change_logging.ChangeLoggingVersionedStore,
}


def _cached(store: Any, bottom: Any, supplier: Supplier) -> Any:
    if supplier.family == "kv":
        return caching.CachingKeyValueStore(store)
    segments = {"segment_interval": bottom.segment_interval, "order": supplier.order}
    if supplier.family == "session":
        return caching.CachingSessionStore(store, **segments)
    return caching.CachingWindowStore(store, window_size=bottom.window_size, **segments)


@dataclass(frozen=True)
class _Builders:
    """Makes builders of stores of one class."""

    store: type[Metered[Any, Any]]
    format: ValueFormat

    def __call__(
        self, supplier: Supplier, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> Builder:
        """Return a builder.

        Parameters
        ----------
        supplier : Supplier
            Creates the store of bytes. One of an older format is adapted, and keeps no headers.
        key_serde, value_serde : Serde, optional
            Serdes of keys and values; those of the task by default.

        Raises
        ------
        TypeError
            If the supplier is ``None``.
        TopologyError
            If the supplier is of another family, or of a newer format than the store.
        """
        if supplier is None:
            raise TypeError("supplier cannot be null")
        family = self.store.family
        if supplier.family != family:
            raise TopologyError(
                f"store {supplier.name}: the supplier is of the family {supplier.family!r}, not {family!r}"
            )
        if supplier.format is not None and FORMATS.index(supplier.format) > FORMATS.index(self.format):
            raise TopologyError(f"store {supplier.name} keeps {supplier.format}: build a store that has them")
        return Builder(supplier, self.store, self.format, key_serde, value_serde)


class Stores:
    """Makes suppliers, which create stores of bytes, and builders, which put layers around them.

    ``persistent_`` functions return suppliers of stores in RocksDB, ``in_memory_`` functions of stores in memory, which
    are restored from the changelog and have the format of values that the builder needs. ``_builder`` functions take a
    supplier and serdes of keys and values (by default those of the task), and return a :class:`Builder` of the store that
    they are named after. The names contain the format of values: ``timestamped``, ``with_headers``, or neither.

    The functions that return suppliers have these parameters, as far as the family has them. Durations are milliseconds or
    :class:`~datetime.timedelta`, and refer to the timestamps of records.

    Parameters
    ----------
    name : str
        Name of the store.
    retention_period : int or timedelta
        How long windows and sessions are kept; for windows at least ``window_size``.
    window_size : int or timedelta
        Length of a window.
    retain_duplicates : bool, default False
        Keep every value of a window, not only the last.
    history_retention : int or timedelta
        How long a version is kept after the end of its validity, and how late one may arrive.
    segment_interval : int or timedelta, optional
        Length of a segment, whose versions are dropped together; derived from the retention by default.
    with_index : bool, default True
        Keep an index by key in a time-ordered store. Without it, a store writes half as much, but a scan by key reads all
        rows of its times, and returns them in order of time.
    options : RocksDBOptions, optional
        Options of the database, such as a write-ahead log.

    Raises
    ------
    TypeError
        If the name is ``None``.
    ValueError
        If a duration is negative, the window size larger than the retention, or the segment interval less than 1.

    Examples
    --------
    >>> from letterhead.state import Stores
    >>> supplier = Stores.persistent_timestamped_key_value_store_with_headers("latest")
    >>> builder = Stores.timestamped_key_value_store_with_headers_builder(supplier).with_caching_enabled()
    >>> builder.build().layers()[:3]
    ['TimestampedKeyValueStoreWithHeaders', 'CachingKeyValueStore', 'ChangeLoggingKeyValueStore']
    """

    persistent_timestamped_key_value_store_with_headers = partial(suppliers.key_value, "headers")
    persistent_timestamped_key_value_store = partial(suppliers.key_value, "timestamped")
    persistent_key_value_store = partial(suppliers.key_value, "plain")

    persistent_timestamped_window_store_with_headers = partial(suppliers.window, "headers")
    persistent_timestamped_window_store = partial(suppliers.window, "timestamped")
    persistent_window_store = partial(suppliers.window, "plain")
    persistent_time_ordered_window_store_with_headers = partial(suppliers.time_ordered_window, "headers")
    persistent_time_ordered_window_store = partial(suppliers.time_ordered_window, "timestamped")

    persistent_session_store_with_headers = partial(suppliers.session, "headers")
    persistent_session_store = partial(suppliers.session, "plain")
    persistent_time_ordered_session_store_with_headers = partial(suppliers.time_ordered_session, "headers")
    persistent_time_ordered_session_store = partial(suppliers.time_ordered_session, "plain")

    persistent_versioned_key_value_store_with_headers = partial(suppliers.versioned, "headers")
    persistent_versioned_key_value_store = partial(suppliers.versioned, "plain")

    @staticmethod
    def in_memory_key_value_store(name: str) -> Supplier:
        """Keep values in memory."""
        suppliers.check_name(name)
        return supply("kv", memory.InMemoryKeyValueStore, name, order="memory")

    @staticmethod
    def in_memory_window_store(
        name: str, retention_period: Milliseconds, window_size: Milliseconds, retain_duplicates: bool = False
    ) -> Supplier:
        """Keep windows in memory."""
        times = suppliers.window_times(name, retention_period, window_size)
        return supply("window", memory.InMemoryWindowStore, name, *times, retain_duplicates, order="memory")

    @staticmethod
    def in_memory_session_store(name: str, retention_period: Milliseconds) -> Supplier:
        """Keep sessions in memory."""
        retention = suppliers.milliseconds(name, retention_period, "retentionPeriod")
        return supply("session", memory.InMemorySessionStore, name, retention, order="memory")

    @staticmethod
    def in_memory_versioned_key_value_store(
        name: str, history_retention: Milliseconds, segment_interval: Milliseconds | None = None
    ) -> Supplier:
        """Keep versions in memory."""
        times = suppliers.versioned_times(name, history_retention, segment_interval)
        return supply("versioned", memory.InMemoryVersionedStore, name, *times, order="memory")

    timestamped_key_value_store_with_headers_builder = _Builders(typed.TimestampedKeyValueStoreWithHeaders, "headers")
    timestamped_key_value_store_builder = _Builders(typed.TimestampedKeyValueStore, "timestamped")
    key_value_store_builder = _Builders(typed.KeyValueStore, "plain")

    timestamped_window_store_with_headers_builder = _Builders(typed.TimestampedWindowStoreWithHeaders, "headers")
    timestamped_window_store_builder = _Builders(typed.TimestampedWindowStore, "timestamped")
    window_store_builder = _Builders(typed.WindowStore, "plain")

    session_store_with_headers_builder = _Builders(typed.SessionStoreWithHeaders, "headers")
    session_store_builder = _Builders(typed.SessionStore, "plain")

    versioned_key_value_store_with_headers_builder = _Builders(typed.VersionedKeyValueStoreWithHeaders, "headers")
    versioned_key_value_store_builder = _Builders(typed.VersionedKeyValueStore, "plain")
