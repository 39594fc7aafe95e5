"""What is kept and where: suppliers of stores of bytes, and what makes those that are in RocksDB.

What makes suppliers of one kind has one signature, and says once what its parameters are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from letterhead.state.base import ValueFormat
from letterhead.state.layers.caching import Order
from letterhead.state.rocksdb.key_value import RocksDBKeyValueStore
from letterhead.state.rocksdb.session import RocksDBSessionStore
from letterhead.state.rocksdb.time_ordered import RocksDBTimeOrderedSessionStore, RocksDBTimeOrderedWindowStore
from letterhead.state.rocksdb.versioned import RocksDBVersionedStore
from letterhead.state.rocksdb.window import RocksDBWindowStore
from letterhead.storage.database import RocksDBOptions

__all__ = [
    "Family",
    "KeyValueSuppliers",
    "Milliseconds",
    "SessionSuppliers",
    "Supplier",
    "TimeOrderedSessionSuppliers",
    "TimeOrderedWindowSuppliers",
    "VersionedSuppliers",
    "WindowSuppliers",
    "milliseconds",
    "named",
    "retention_of",
    "versioned_times",
    "window_times",
]

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
        """Make the store of bytes, not yet open.

        Parameters
        ----------
        format : str, optional
            What the values are to have beside the payload, where the supplier leaves that open.
        """
        return self.make(self.format or format or "headers")


@dataclass(frozen=True)
class KeyValueSuppliers:
    """Makes suppliers of key-value stores in RocksDB."""

    format: ValueFormat

    def __call__(self, name: str, *, options: RocksDBOptions | None = None) -> Supplier:
        """Make a supplier.

        Parameters
        ----------
        name : str
            Name of the store.
        options : RocksDBOptions, optional
            How to open the database.

        """
        named(name)

        def make(_: ValueFormat) -> Any:
            return RocksDBKeyValueStore(name, format=self.format, options=options)

        return Supplier(name, "kv", "rocksdb", make, format=self.format)


@dataclass(frozen=True)
class WindowSuppliers:
    """Makes suppliers of window stores in RocksDB."""

    format: ValueFormat

    def __call__(
        self,
        name: str,
        retention_period: Milliseconds,
        window_size: Milliseconds,
        retain_duplicates: bool = False,
        *,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Make a supplier.

        Parameters
        ----------
        name : str
            Name of the store.
        retention_period : int or timedelta
            How long windows are kept, by the time of the records; no less than the size.
        window_size : int or timedelta
            Length of a window.
        retain_duplicates : bool, default False
            Keep every value that is put, and not the last one of a window.
        options : RocksDBOptions, optional
            How to open the databases.

        Raises
        ------
        TypeError
            If the name is ``None``.
        ValueError
            If a duration is negative, or the size larger than the retention.
        """
        retention, size = window_times(name, retention_period, window_size)

        def make(_: ValueFormat) -> Any:
            return RocksDBWindowStore(name, retention, size, retain_duplicates, format=self.format, options=options)

        return Supplier(name, "window", "rocksdb-window", make, format=self.format)


@dataclass(frozen=True)
class TimeOrderedWindowSuppliers:
    """Makes suppliers of window stores in RocksDB, in order of time."""

    format: ValueFormat

    def __call__(
        self,
        name: str,
        retention_period: Milliseconds,
        window_size: Milliseconds,
        retain_duplicates: bool = False,
        *,
        with_index: bool = True,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Make a supplier; the parameters are those of a window store, and one more.

        Parameters
        ----------
        name, retention_period, window_size, retain_duplicates, options
            As for a window store that is not in order of time.
        with_index : bool, default True
            Keep an index by key. Without it a store writes half as much, and looks through all windows of the times when
            it is asked for keys; they come in order of time then.
        """
        retention, size = window_times(name, retention_period, window_size)

        def make(_: ValueFormat) -> Any:
            return RocksDBTimeOrderedWindowStore(
                name, retention, size, retain_duplicates, format=self.format, options=options, with_index=with_index
            )

        return Supplier(name, "window", "rocksdb-window", make, "time" if with_index else "time-only", self.format)


@dataclass(frozen=True)
class SessionSuppliers:
    """Makes suppliers of session stores in RocksDB."""

    format: ValueFormat

    def __call__(self, name: str, retention_period: Milliseconds, *, options: RocksDBOptions | None = None) -> Supplier:
        """Make a supplier.

        Parameters
        ----------
        name : str
            Name of the store.
        retention_period : int or timedelta
            How long sessions are kept, by the time of the records.
        options : RocksDBOptions, optional
            How to open the databases.

        Raises
        ------
        TypeError
            If the name is ``None``.
        ValueError
            If the duration is negative.
        """
        retention = retention_of(name, retention_period)

        def make(_: ValueFormat) -> Any:
            return RocksDBSessionStore(name, retention, format=self.format, options=options)

        return Supplier(name, "session", "rocksdb-session", make, format=self.format)


@dataclass(frozen=True)
class TimeOrderedSessionSuppliers:
    """Makes suppliers of session stores in RocksDB, in order of time."""

    format: ValueFormat

    def __call__(
        self,
        name: str,
        retention_period: Milliseconds,
        *,
        with_index: bool = True,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Make a supplier; the parameters are those of a session store, and one more.

        Parameters
        ----------
        name, retention_period, options
            As for a session store that is not in order of time.
        with_index : bool, default True
            Keep an index by key; see the window stores in order of time.
        """
        retention = retention_of(name, retention_period)

        def make(_: ValueFormat) -> Any:
            return RocksDBTimeOrderedSessionStore(
                name, retention, format=self.format, options=options, with_index=with_index
            )

        return Supplier(name, "session", "rocksdb-session", make, "time" if with_index else "time-only", self.format)


@dataclass(frozen=True)
class VersionedSuppliers:
    """Makes suppliers of versioned stores in RocksDB."""

    format: ValueFormat

    def __call__(
        self,
        name: str,
        history_retention: Milliseconds,
        segment_interval: Milliseconds | None = None,
        *,
        options: RocksDBOptions | None = None,
    ) -> Supplier:
        """Make a supplier.

        Parameters
        ----------
        name : str
            Name of the store.
        history_retention : int or timedelta
            How long versions are kept after they ended to be valid, and how late one may come.
        segment_interval : int or timedelta, optional
            Length of a segment, whose versions are dropped together.
        options : RocksDBOptions, optional
            How to open the database.

        Raises
        ------
        TypeError
            If the name is ``None``.
        ValueError
            If the retention is negative, or the interval less than 1.
        """
        retention, interval = versioned_times(name, history_retention, segment_interval)

        def make(_: ValueFormat) -> Any:
            return RocksDBVersionedStore(name, retention, interval, headers=self.format == "headers", options=options)

        return Supplier(name, "versioned", "rocksdb-versioned", make, format=self.format)


# What is asked of names and durations.


def named(name: str) -> None:
    """Refuse a store without a name."""
    if name is None:
        raise TypeError("name cannot be null")


def milliseconds(duration: Milliseconds, what: str) -> int:
    """Give a duration in milliseconds; `what` is its name, for the error if it is negative."""
    if isinstance(duration, timedelta):
        duration = duration // timedelta(milliseconds=1)
    if duration < 0:
        raise ValueError(f"{what} cannot be negative")
    return duration


def retention_of(name: str, retention_period: Milliseconds) -> int:
    """Give how long a store keeps its rows."""
    named(name)
    return milliseconds(retention_period, "retentionPeriod")


def window_times(name: str, retention_period: Milliseconds, window_size: Milliseconds) -> tuple[int, int]:
    """Give how long a store keeps its windows, and how long these are."""
    retention = retention_of(name, retention_period)
    size = milliseconds(window_size, "windowSize")
    if size > retention:
        raise ValueError(
            f"The retention period of the window store {name} must be no smaller than its window size. "
            f"Got size=[{size}], retention=[{retention}]"
        )
    return retention, size


def versioned_times(
    name: str, history_retention: Milliseconds, segment_interval: Milliseconds | None
) -> tuple[int, int | None]:
    """Give how long a store keeps its versions, and the length of its segments, if that is said."""
    named(name)
    retention = milliseconds(history_retention, "historyRetention")
    if segment_interval is None:
        return retention, None
    interval = milliseconds(segment_interval, "segmentInterval")
    if interval < 1:
        raise ValueError("segmentInterval cannot be zero or negative")
    return retention, interval
