"""Stores with rows in Spark's state: :func:`spark_store`.

They are the persistent stores of any supplier, over rows that are attached for each group of records.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from letterhead.errors import InvalidStateStoreError, TopologyError, UnsupportedOperationError
from letterhead.spark.topology.state import StorePart
from letterhead.state.base import BytesStore, ValueFormat
from letterhead.state.interfaces import Context, StoreIterator
from letterhead.state.layers.base import Layer
from letterhead.state.reads import StoreScan
from letterhead.state.rocksdb import (
    RocksDBKeyValueStore,
    RocksDBSessionStore,
    RocksDBTimeOrderedSessionStore,
    RocksDBTimeOrderedWindowStore,
    RocksDBVersionedStore,
    RocksDBWindowStore,
)
from letterhead.state.storage.keys import SessionKey
from letterhead.state.storage.segments import Segments
from letterhead.state.stores import Supplier

__all__ = ["OneKey", "SparkStore", "spark_store"]


class SparkStore(BytesStore):
    """Store over the current group's rows in Spark's state."""

    def open(self, directory: Path | None = None, context: Context | None = None) -> None:
        """Open the store, without rows; there are no files, so the directory is ignored."""
        self._context = context

    def attach(self, part: StorePart) -> None:
        """Attach the rows of a group."""
        self._part = part
        self._use(part)
        self.is_open = True

    def detach(self) -> None:
        """Detach the rows, and close the iterators over them."""
        if self.is_open:
            self._part.observed = getattr(self, "_observed", -1)
        self._closed()

    def close(self) -> None:
        """Close the store, if it is open."""
        self._closed()

    def commit(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Do nothing: the progress of the query is in its checkpoint."""

    def flush(self) -> None:
        """Do nothing: Spark writes its state at the end of the micro-batch."""

    def _check_open(self) -> None:
        if not self.is_open:
            raise InvalidStateStoreError(
                f"store {self.name} has rows only while a record is processed or a punctuation called: on Spark do not "
                "use it in init and close of a processor, and do not keep iterators open"
            )

    def _use(self, part: StorePart) -> None:
        raise NotImplementedError


class _SparkKeyValueStore(SparkStore, RocksDBKeyValueStore):
    def _use(self, part: StorePart) -> None:
        self._rows = part.rows(0)


class _SparkVersionedStore(SparkStore, RocksDBVersionedStore):
    def _use(self, part: StorePart) -> None:
        self._rows = part.rows(0)
        self._find_segments()
        self._observed = part.observed


class _SparkSegmentedStore(SparkStore):
    retention: int
    segment_interval: int
    _segments: Segments[Any] | None

    def _use(self, part: StorePart) -> None:
        self._segments = _SparkSegments(part, self.retention, self.segment_interval)
        self._observed = part.observed

    def _databases(self) -> list[Any]:
        return []


class _SparkWindowStore(_SparkSegmentedStore, RocksDBWindowStore):
    pass


class _SparkTimeOrderedWindowStore(_SparkSegmentedStore, RocksDBTimeOrderedWindowStore):
    pass


class _SparkSessionStore(_SparkSegmentedStore, RocksDBSessionStore):
    pass


class _SparkTimeOrderedSessionStore(_SparkSegmentedStore, RocksDBTimeOrderedSessionStore):
    pass


class _SparkSegment:
    """Segment whose rows are read on first use."""

    def __init__(self, part: StorePart, number: int) -> None:
        self._part = part
        self._number = number
        self.is_open = True

    @property
    def rows(self) -> Any:
        return self._part.rows(self._number)


class _SparkSegments(Segments[_SparkSegment]):
    """Segments of a store for a group."""

    def __init__(self, part: StorePart, retention: int, interval: int) -> None:
        super().__init__(retention, interval)
        self._part = part
        for segment in part.segments():
            self._create(segment)

    def _make(self, segment: int) -> _SparkSegment:
        return _SparkSegment(self._part, segment)

    def _drop(self, segment: int, removed: _SparkSegment) -> None:
        removed.is_open = False
        self._part.drop(segment)


def spark_store(supplier: Supplier, format: ValueFormat) -> Any:
    """Return the unopened store of a supplier, with its rows in Spark's state.

    ``format`` is the format of its values, unless the supplier sets one. Raises ``TopologyError`` if the store keeps
    duplicates, because these are numbered across groups.
    """
    # The model is never opened; only its type and its retention are used.
    model = supplier.get(format)
    name, format = model.name, model.format
    if supplier.store_type == "key-value":
        return _SparkKeyValueStore(name, format=format)
    if supplier.store_type == "versioned":
        return _SparkVersionedStore(name, model.history_retention, model.segment_interval, headers=model.headers)
    # In-memory stores have no segments, and expire rows by the millisecond.
    interval = model.segment_interval if model.persistent else None
    by_time = supplier.order in ("time", "time-only")
    index = {"with_index": model.with_index} if by_time else {}
    store_class: Any = _SEGMENTED[supplier.store_type, by_time]
    if supplier.store_type == "session":
        return store_class(name, model.retention, interval, format=format, **index)
    if model.retain_duplicates:
        raise TopologyError(
            f"store {name} keeps duplicates, which are numbered through the whole store: on Spark keep one row per key "
            "and window"
        )
    return store_class(name, model.retention, model.window_size, False, interval, format=format, **index)


_SEGMENTED: dict[tuple[str, bool], type] = {
    ("window", False): _SparkWindowStore,
    ("window", True): _SparkTimeOrderedWindowStore,
    ("session", False): _SparkSessionStore,
    ("session", True): _SparkTimeOrderedSessionStore,
}
"""Classes of segmented stores by type, and by whether their rows are ordered by time."""


class OneKey(Layer):
    """Store restricted to the rows of the current record's ``key``, which may be null. It rejects other keys."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.key: bytes | None = None
        self.retain_duplicates = False
        self.timestamped: bool = inner.timestamped

    def __getattr__(self, name: str) -> Any:
        # The layers above read the lengths of windows and segments.
        return getattr(self.__dict__["inner"], name)

    def put(self, key: bytes | SessionKey, *arguments: Any) -> Any:
        """Write a row."""
        return self._checked_inner(key).put(key, *arguments)

    def put_if_absent(self, key: bytes, value: bytes | None) -> Any:
        """Write a row if the key has none; return the existing value."""
        return self._checked_inner(key).put_if_absent(key, value)

    def put_all(self, rows: Any) -> None:
        """Write several rows, all with the current key."""
        rows = list(rows)
        for key, _ in rows:
            self._checked_inner(key)
        self.inner.put_all(rows)

    def delete(self, key: bytes, *arguments: Any) -> Any:
        """Delete a row."""
        return self._checked_inner(key).delete(key, *arguments)

    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        self._checked_inner(session).remove(session)

    def get(self, key: bytes) -> Any:
        """Read a row."""
        return self._checked_inner(key).get(key)

    def get_as_of(self, key: bytes, timestamp: int) -> Any:
        """Read the version that was valid at a time."""
        return self._checked_inner(key).get_as_of(key, timestamp)

    def versions(self, key: bytes, *arguments: Any) -> Any:
        """Read the versions of a key."""
        return self._checked_inner(key).versions(key, *arguments)

    def fetch(self, key: bytes, start: int) -> Any:
        """Read a window."""
        return self._checked_inner(key).fetch(key, start)

    def fetch_session(self, key: bytes, start: int, end: int) -> Any:
        """Read a session."""
        return self._checked_inner(key).fetch_session(key, start, end)

    def scan(self, query: StoreScan) -> StoreIterator[Any, bytes]:
        """Return the rows of a scan, which must cover only the current key."""
        if not query.one_key:
            raise self._refusal(query.operation)
        rows: StoreIterator[Any, bytes] = self._checked_inner(query.key_from).scan(query)
        return rows

    def approximate_num_entries(self) -> int:
        """Raise ``UnsupportedOperationError``: rows of other keys cannot be counted."""
        raise self._refusal("approximate_num_entries")

    def _refusal(self, operation: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(f"store {self.name}: {operation} would read rows of other keys: {_WHY}")

    def _checked_inner(self, key: bytes | SessionKey) -> Any:
        """Return the inner store if the key is current; raise ``UnsupportedOperationError`` otherwise."""
        if (key.key if isinstance(key, SessionKey) else key) != self.key:
            raise UnsupportedOperationError(f"store {self.name}: the key is not the key of the current record: {_WHY}")
        return self.inner


_WHY = (
    "with scope 'key' a processor sees only the rows of the record's own key; declare scope = \"partition\" on it to see "
    "the rows of the whole partition"
)
