"""Suppliers of byte stores; :class:`~letterhead.state.Stores` lists the functions that create them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from letterhead.state import rocksdb
from letterhead.state.base import StoreType, ValueFormat
from letterhead.state.durations import Milliseconds, milliseconds
from letterhead.state.layers.caching import Order
from letterhead.state.storage.database import RocksDBOptions

__all__ = ["Supplier"]


@dataclass(frozen=True)
class Supplier:
    """Supplier of a byte store for a builder; ``persistent_`` and ``in_memory_`` methods of :class:`Stores` return suppliers.

    Create a supplier to use your own byte store below the layers. A store whose values have headers must subclass
    :class:`HeadersBytesStore`. Every store has the attributes ``name``, ``persistent``, ``timestamped``, ``is_open`` and
    ``position``, and the methods ``open``, ``close``, ``commit`` and ``restore``. In addition, each type of store has the
    following methods; see the stores in ``letterhead.state.memory`` for examples:

    =========  ===============================================================================================
    store type methods
    =========  ===============================================================================================
    key-value  ``put put_if_absent put_all delete get scan approximate_num_entries``
    window     ``put fetch scan``, attributes ``window_size retention segment_interval retain_duplicates``
    session    ``put remove fetch_session scan``, attributes ``retention segment_interval``
    versioned  ``put delete get get_as_of versions``, attributes ``history_retention segment_interval``
    =========  ===============================================================================================

    Parameters
    ----------
    name : str
        Name of the store.
    store_type : {"key-value", "window", "session", "versioned"}
        The type of the store.
    make : callable
        Function that creates a store without opening it; its argument is the value format.
    order : {"segments", "memory", "time", "time-only"}, default "segments"
        The order in which the store returns its rows.
    format : {"plain", "timestamped", "headers"}, optional
        The value format; by default the format required by the builder.

    Examples
    --------
    >>> from letterhead.state import Stores, Supplier
    >>> from letterhead.state.memory import InMemoryKeyValueStore
    >>> supplier = Supplier("latest", "key-value", lambda format: InMemoryKeyValueStore("latest", format=format))
    >>> Stores.timestamped_key_value_store_with_headers_builder(supplier).build().layers()[-1]
    'InMemoryKeyValueStore'
    """

    name: str
    store_type: StoreType
    make: Callable[[ValueFormat], Any]
    order: Order = "segments"
    format: ValueFormat | None = None

    def get(self, format: ValueFormat | None = None) -> Any:
        """Create the byte store without opening it; ``format`` applies if the supplier does not set a format."""
        return self.make(self.format or format or "headers")


def supply(
    store_type: StoreType,
    store: Callable[..., Any],
    name: str,
    *arguments: Any,
    order: Order = "segments",
    format: ValueFormat | None = None,
    **options: Any,
) -> Supplier:
    """Return a supplier that calls a store class with the given arguments and the value format."""

    def make(values: ValueFormat) -> Any:
        if store_type == "versioned":
            return store(name, *arguments, headers=values == "headers", **options)
        return store(name, *arguments, format=values, **options)

    return Supplier(name, store_type, make, order, format)


# Suppliers of each type of store; Stores documents the parameters.


def key_value(format: ValueFormat, name: str, options: RocksDBOptions | None) -> Supplier:
    """Return a supplier of a key-value store in RocksDB."""
    check_store_name(name)
    return supply("key-value", rocksdb.RocksDBKeyValueStore, name, format=format, options=options)


def window(
    format: ValueFormat,
    name: str,
    retention_period: Milliseconds,
    window_size: Milliseconds,
    retain_duplicates: bool,
    options: RocksDBOptions | None,
) -> Supplier:
    """Return a supplier of a window store in RocksDB."""
    times = window_times(name, retention_period, window_size)
    return supply("window", rocksdb.RocksDBWindowStore, name, *times, retain_duplicates, format=format, options=options)


def time_ordered_window(
    format: ValueFormat,
    name: str,
    retention_period: Milliseconds,
    window_size: Milliseconds,
    retain_duplicates: bool,
    with_index: bool,
    options: RocksDBOptions | None,
) -> Supplier:
    """Return a supplier of a window store in RocksDB whose rows are in order of time."""
    times = window_times(name, retention_period, window_size)
    store, order = rocksdb.RocksDBTimeOrderedWindowStore, _time_order(with_index)
    return supply(
        "window", store, name, *times, retain_duplicates,
        order=order, format=format, with_index=with_index, options=options,
    )  # fmt: skip


def session(format: ValueFormat, name: str, retention_period: Milliseconds, options: RocksDBOptions | None) -> Supplier:
    """Return a supplier of a session store in RocksDB."""
    return supply(
        "session",
        rocksdb.RocksDBSessionStore,
        name,
        session_time(name, retention_period),
        format=format,
        options=options,
    )


def time_ordered_session(
    format: ValueFormat, name: str, retention_period: Milliseconds, with_index: bool, options: RocksDBOptions | None
) -> Supplier:
    """Return a supplier of a session store in RocksDB whose rows are in order of time."""
    retention = session_time(name, retention_period)
    store, order = rocksdb.RocksDBTimeOrderedSessionStore, _time_order(with_index)
    return supply("session", store, name, retention, order=order, format=format, with_index=with_index, options=options)


def versioned(
    format: ValueFormat,
    name: str,
    history_retention: Milliseconds,
    segment_interval: Milliseconds | None,
    options: RocksDBOptions | None,
) -> Supplier:
    """Return a supplier of a versioned store in RocksDB."""
    times = versioned_times(name, history_retention, segment_interval)
    return supply("versioned", rocksdb.RocksDBVersionedStore, name, *times, format=format, options=options)


def _time_order(with_index: bool) -> Order:
    return "time" if with_index else "time-only"


# Checks of names and durations, with the messages of Kafka Streams.


def check_store_name(name: str) -> None:
    """Raise ``TypeError`` if a store has no name."""
    if name is None:
        raise TypeError("name cannot be null")


def window_times(name: str, retention_period: Milliseconds, window_size: Milliseconds) -> tuple[int, int]:
    """Return the retention and the length of the windows of a store, in milliseconds."""
    check_store_name(name)
    retention = milliseconds("retentionPeriod", retention_period)
    size = milliseconds("windowSize", window_size)
    if size > retention:
        raise ValueError(
            f"The retention period of the window store {name} must be no smaller than its window size. "
            f"Got size=[{size}], retention=[{retention}]"
        )
    return retention, size


def session_time(name: str, retention_period: Milliseconds) -> int:
    """Return the retention of a session store, in milliseconds."""
    check_store_name(name)
    return milliseconds("retentionPeriod", retention_period)


def versioned_times(
    name: str, history_retention: Milliseconds, segment_interval: Milliseconds | None
) -> tuple[int, int | None]:
    """Return the history retention and the length of the segments of a store, in milliseconds."""
    check_store_name(name)
    retention = milliseconds("historyRetention", history_retention)
    if segment_interval is None:
        return retention, None
    interval = milliseconds("segmentInterval", segment_interval)
    if interval < 1:
        raise ValueError("segmentInterval cannot be zero or negative")
    return retention, interval
