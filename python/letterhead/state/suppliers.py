"""Suppliers, which create stores of bytes; :class:`~letterhead.state.Stores` lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from letterhead.state import rocksdb
from letterhead.state.base import ValueFormat
from letterhead.state.layers.caching import Order
from letterhead.state.storage.database import RocksDBOptions

__all__ = ["Family", "Milliseconds", "Supplier"]

Family: TypeAlias = Literal["kv", "window", "session", "versioned"]
Milliseconds: TypeAlias = "int | timedelta"


@dataclass(frozen=True)
class Supplier:
    """Makes stores of bytes for a builder; the ``persistent_`` and ``in_memory_`` methods of :class:`Stores` return suppliers.

    Make one yourself to put a store of bytes of your own below the layers. A store whose values have headers subclasses
    :class:`HeadersBytesStore`. Every store has the attributes ``name``, ``persistent``, ``timestamped``, ``is_open`` and
    ``position``, and the methods ``open``, ``close``, ``commit`` and ``restore``; for the rest the stores in
    ``letterhead.state.memory`` are examples:

    =========  ===============================================================================================
    family     methods
    =========  ===============================================================================================
    kv         ``put put_if_absent put_all delete get scan approximate_num_entries``
    window     ``put fetch scan``, attributes ``window_size retention segment_interval retain_duplicates``
    session    ``put remove fetch_session scan``, attributes ``retention segment_interval``
    versioned  ``put delete get get_as_of versions``, attributes ``history_retention segment_interval``
    =========  ===============================================================================================

    Parameters
    ----------
    name : str
        Name of the store.
    family : {"kv", "window", "session", "versioned"}
        The family of the store.
    metrics_scope : str
        The scope of its metrics, for example ``rocksdb``.
    make : callable
        Makes a store, not yet open; it is passed the format of the values.
    order : {"segments", "memory", "time", "time-only"}, default "segments"
        The order in which the store returns its rows.
    format : {"plain", "timestamped", "headers"}, optional
        The format of the values; by default the one that the builder asks for.

    Examples
    --------
    >>> from letterhead.state import Stores, Supplier
    >>> from letterhead.state.memory import InMemoryKeyValueStore
    >>> supplier = Supplier("latest", "kv", "mine", lambda format: InMemoryKeyValueStore("latest", format=format))
    >>> Stores.timestamped_key_value_store_with_headers_builder(supplier).build().layers()[-1]
    'InMemoryKeyValueStore'
    """

    name: str
    family: Family
    metrics_scope: str
    make: Callable[[ValueFormat], Any]
    order: Order = "segments"
    format: ValueFormat | None = None

    def get(self, format: ValueFormat | None = None) -> Any:
        """Make the store of bytes, not yet open; ``format`` applies if the supplier has none of its own."""
        return self.make(self.format or format or "headers")


def supply(
    family: Family,
    store: Callable[..., Any],
    name: str,
    *arguments: Any,
    order: Order = "segments",
    format: ValueFormat | None = None,
    **options: Any,
) -> Supplier:
    """Return a supplier that calls the class of a store with some arguments and the format of the values."""

    def make(values: ValueFormat) -> Any:
        if family == "versioned":
            return store(name, *arguments, headers=values == "headers", **options)
        return store(name, *arguments, format=values, **options)

    scope = "in-memory" if order == "memory" else "rocksdb"
    return Supplier(name, family, scope if family == "kv" else f"{scope}-{family}", make, order, format)


# Suppliers of stores in RocksDB; Stores documents the parameters.


def key_value(format: ValueFormat, name: str, *, options: RocksDBOptions | None = None) -> Supplier:
    """Return a supplier of a key-value store."""
    check_name(name)
    return supply("kv", rocksdb.RocksDBKeyValueStore, name, format=format, options=options)


def window(
    format: ValueFormat,
    name: str,
    retention_period: Milliseconds,
    window_size: Milliseconds,
    retain_duplicates: bool = False,
    *,
    options: RocksDBOptions | None = None,
) -> Supplier:
    """Return a supplier of a window store."""
    times = window_times(name, retention_period, window_size)
    return supply("window", rocksdb.RocksDBWindowStore, name, *times, retain_duplicates, format=format, options=options)


def time_ordered_window(
    format: ValueFormat,
    name: str,
    retention_period: Milliseconds,
    window_size: Milliseconds,
    retain_duplicates: bool = False,
    *,
    with_index: bool = True,
    options: RocksDBOptions | None = None,
) -> Supplier:
    """Return a supplier of a window store whose rows are in order of time."""
    times = window_times(name, retention_period, window_size)
    index: dict[str, Any] = {"order": "time" if with_index else "time-only", "with_index": with_index}
    store = rocksdb.RocksDBTimeOrderedWindowStore
    return supply("window", store, name, *times, retain_duplicates, format=format, options=options, **index)


def session(
    format: ValueFormat, name: str, retention_period: Milliseconds, *, options: RocksDBOptions | None = None
) -> Supplier:
    """Return a supplier of a session store."""
    retention = milliseconds(name, retention_period, "retentionPeriod")
    return supply("session", rocksdb.RocksDBSessionStore, name, retention, format=format, options=options)


def time_ordered_session(
    format: ValueFormat,
    name: str,
    retention_period: Milliseconds,
    *,
    with_index: bool = True,
    options: RocksDBOptions | None = None,
) -> Supplier:
    """Return a supplier of a session store whose rows are in order of time."""
    retention = milliseconds(name, retention_period, "retentionPeriod")
    index: dict[str, Any] = {"order": "time" if with_index else "time-only", "with_index": with_index}
    return supply(
        "session", rocksdb.RocksDBTimeOrderedSessionStore, name, retention, format=format, options=options, **index
    )


def versioned(
    format: ValueFormat,
    name: str,
    history_retention: Milliseconds,
    segment_interval: Milliseconds | None = None,
    *,
    options: RocksDBOptions | None = None,
) -> Supplier:
    """Return a supplier of a versioned store."""
    times = versioned_times(name, history_retention, segment_interval)
    return supply("versioned", rocksdb.RocksDBVersionedStore, name, *times, format=format, options=options)


# Checks of names and durations. The messages are those of Kafka Streams.


def check_name(name: str) -> None:
    """Raise a ``TypeError`` if a store has no name."""
    if name is None:
        raise TypeError("name cannot be null")


def milliseconds(name: str, duration: Milliseconds, parameter: str) -> int:
    """Check the name and a duration of a store, and return the duration in milliseconds."""
    check_name(name)
    if isinstance(duration, timedelta):
        duration = duration // timedelta(milliseconds=1)
    if duration < 0:
        raise ValueError(f"{parameter} cannot be negative")
    return duration


def window_times(name: str, retention_period: Milliseconds, window_size: Milliseconds) -> tuple[int, int]:
    """Return the retention and the length of the windows of a store, in milliseconds."""
    retention = milliseconds(name, retention_period, "retentionPeriod")
    size = milliseconds(name, window_size, "windowSize")
    if size > retention:
        raise ValueError(
            f"The retention period of the window store {name} must be no smaller than its window size. "
            f"Got size=[{size}], retention=[{retention}]"
        )
    return retention, size


def versioned_times(
    name: str, history_retention: Milliseconds, segment_interval: Milliseconds | None
) -> tuple[int, int | None]:
    """Return the history retention and the length of the segments of a store, in milliseconds."""
    retention = milliseconds(name, history_retention, "historyRetention")
    if segment_interval is None:
        return retention, None
    interval = milliseconds(name, segment_interval, "segmentInterval")
    if interval < 1:
        raise ValueError("segmentInterval cannot be zero or negative")
    return retention, interval
