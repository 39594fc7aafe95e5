"""Stores whose rows are in Spark's state: the persistent ones, with other rows below them.

Wherever a supplier would keep its rows, on Spark a store behaves as the persistent one of its kind. What is below is put
in place for each group of records, and taken away after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from letterhead.errors import InvalidStateStoreError, TopologyError, UnsupportedOperationError
from letterhead.spark.topology.state import StorePart
from letterhead.state.base import BytesStore, ValueFormat
from letterhead.state.interfaces import Context, StoreIterator
from letterhead.state.layers.base import Layer
from letterhead.state.reads import Scan
from letterhead.state.rocksdb import (
    RocksDBKeyValueStore,
    RocksDBSessionStore,
    RocksDBTimeOrderedSessionStore,
    RocksDBTimeOrderedWindowStore,
    RocksDBVersionedStore,
    RocksDBWindowStore,
)
from letterhead.state.stores import Supplier
from letterhead.storage.keys import SessionKey
from letterhead.storage.segments import Segments

__all__ = ["OneKey", "SparkStore", "spark_store"]


class SparkStore(BytesStore):
    """A store over what Spark's state has for the group at hand; what :func:`spark_store` makes are such."""

    def open(self, directory: Path | None = None, context: Context | None = None) -> None:
        """Open the store, with no rows yet.

        Parameters
        ----------
        directory : Path, optional
            Not used: there are no files.
        context : Context, optional
            Where the records come from that change the store.
        """
        self._context = context

    def attach(self, part: StorePart) -> None:
        """Take the rows of a group."""
        self._part = part
        self._use(part)
        self.is_open = True

    def detach(self) -> None:
        """Let go of the rows, and close the iterators over them."""
        if self.is_open:
            self._part.observed = self._latest_seen()
        self._closed()

    def close(self) -> None:
        """Let go of everything. Closing twice is fine."""
        self._closed()

    def commit(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Keep nothing: how far the query has got is in its checkpoint."""

    def flush(self) -> None:
        """Do nothing: Spark writes its state when the micro-batch is done."""

    def _check_open(self) -> None:
        if not self.is_open:
            raise InvalidStateStoreError(
                f"store {self.name} has rows only while a record is processed or a punctuation called: on Spark there "
                "are none in init and close of a processor, nor for an iterator that was left open"
            )

    def _use(self, part: StorePart) -> None:
        raise NotImplementedError

    def _latest_seen(self) -> int:
        return -1


class _KeyValue(SparkStore, RocksDBKeyValueStore):
    def _use(self, part: StorePart) -> None:
        self._rows = part.rows()


class _Versioned(SparkStore, RocksDBVersionedStore):
    def _use(self, part: StorePart) -> None:
        self._rows = part.rows()
        self._find_segments()
        self._observed = part.observed

    def _latest_seen(self) -> int:
        return self._observed


class _Segmented(SparkStore):
    retention: int
    segment_interval: int
    _segments: Segments | None

    def _use(self, part: StorePart) -> None:
        self._segments = _Segments(self.name, part, self.retention, self.segment_interval)
        self._observed = part.observed

    def _latest_seen(self) -> int:
        return self._observed

    def _databases(self) -> list[Any]:
        return []


class _Window(_Segmented, RocksDBWindowStore):
    pass


class _TimeOrderedWindow(_Segmented, RocksDBTimeOrderedWindowStore):
    pass


class _Session(_Segmented, RocksDBSessionStore):
    pass


class _TimeOrderedSession(_Segmented, RocksDBTimeOrderedSessionStore):
    pass


class _Segments(Segments):
    """The segments of a group."""

    def __init__(self, store: str, part: StorePart, retention: int, interval: int) -> None:
        self._store = store
        self._part = part
        self._retention = retention
        self._interval = interval
        self._ids: list[int] = part.segments()
        self._open: dict[int, Any] = {segment: _Segment(part, segment) for segment in self._ids}

    def _create(self, segment: int) -> Any:
        made = self._open[segment] = _Segment(self._part, segment)
        self._ids = sorted(self._open)
        return made

    def _remove(self, segment: int) -> None:
        self._ids.remove(segment)
        self._open.pop(segment).is_open = False
        self._part.drop(segment)


class _Segment:
    """One of them; its rows are looked for when they are needed."""

    def __init__(self, part: StorePart, number: int) -> None:
        self._part = part
        self._number = number
        self.is_open = True

    @property
    def rows(self) -> Any:
        return self._part.rows(self._number)


def spark_store(supplier: Supplier, format: ValueFormat) -> Any:
    """Make the store of a supplier, with its rows in Spark's state.

    Parameters
    ----------
    supplier : Supplier
        What would make the store elsewhere.
    format : str
        What its values are to have beside the payload, where the supplier leaves that open.

    Returns
    -------
    SparkStore
        The store, not yet open.

    Raises
    ------
    TopologyError
        If it keeps duplicates, which are numbered across groups.
    """
    # Not opened, it says what kind of store it is, and how long things are kept.
    model = supplier.get(format)
    name, format = model.name, model.format
    if supplier.family == "kv":
        return _KeyValue(name, format=format)
    if supplier.family == "versioned":
        return _Versioned(name, model.history_retention, model.segment_interval, headers=model.headers)
    # In memory there are no segments, and each millisecond is on its own.
    interval = model.segment_interval if model.persistent else None
    by_time = supplier.order == "time"
    index = {"with_index": model.with_index} if by_time else {}
    if supplier.family == "session":
        sessions = _TimeOrderedSession if by_time else _Session
        return sessions(name, model.retention, interval, format=format, **index)
    if model.retain_duplicates:
        raise TopologyError(
            f"store {name} keeps duplicates, which are numbered one after the other through the whole store: on Spark "
            "keep one row of a key and window"
        )
    windows = _TimeOrderedWindow if by_time else _Window
    return windows(name, model.retention, model.window_size, False, interval, format=format, **index)


class OneKey(Layer):
    """A store that holds the rows of one key, and rejects reads of others.

    Parameters
    ----------
    inner : SparkStore
        The store.
    family : {"kv", "window", "session", "versioned"}
        What kind of store it is.

    Attributes
    ----------
    key : bytes or None
        The key: that of the record at hand, which may be null.
    """

    def __init__(self, inner: Any, family: str) -> None:
        super().__init__(inner)
        self.key: bytes | None = None
        self.retain_duplicates = False
        self.timestamped: bool = inner.timestamped
        for name in _ONE[family]:
            setattr(self, name, self._checked(getattr(inner, name)))

    def __getattr__(self, name: str) -> Any:
        # Lengths of windows and segments, for the layers above.
        return getattr(self.__dict__["inner"], name)

    def put_all(self, rows: Any) -> None:
        """Write several rows, all of which must be of the key."""
        rows = list(rows)
        for key, _ in rows:
            self._check(key)
        self.inner.put_all(rows)

    def scan(self, query: Scan) -> StoreIterator[Any, bytes]:
        """Return the rows of a scan, which must be of the key alone."""
        if not query.one_key:
            raise self._refusal(query.operation)
        self._check(query.key_from)
        return self.inner.scan(query)  # type: ignore[no-any-return]

    def approximate_num_entries(self) -> int:
        """Refuse to count the rows of other keys."""
        raise self._refusal("approximate_num_entries")

    def _refusal(self, operation: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(f"store {self.name}: {operation} would read rows of other keys: {_WHY}")

    def _check(self, key: bytes | SessionKey) -> None:
        key = key.key if isinstance(key, SessionKey) else key
        if key != self.key:
            own = "null" if self.key is None else self.key.hex()
            raise UnsupportedOperationError(
                f"store {self.name}: key {key.hex()} is not that of the record at hand, {own}: {_WHY}"
            )

    def _checked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(key: Any, *args: Any, **kwargs: Any) -> Any:
            self._check(key)
            return call(key, *args, **kwargs)

        return checked


_WHY = (
    "with scope 'key' a processor sees the rows of the record's own key only; declare scope = \"partition\" on it to see "
    "those of the whole partition"
)

_ONE = {
    "kv": ("put", "put_if_absent", "delete", "get"),
    "window": ("put", "fetch"),
    "session": ("put", "remove", "fetch_session"),
    "versioned": ("put", "delete", "get", "get_as_of", "versions"),
}
