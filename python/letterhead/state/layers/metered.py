"""The outermost layer: keys and values as objects, with counters and latencies. What an application holds.

A key is written with the headers of the value that it is put with, and otherwise with those of the record at hand; it is
read with the headers of its row. A value is written with its own headers. What a serializer adds to them is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from letterhead.errors import DamagedRowError, DecodeError
from letterhead.headers import Headers
from letterhead.limits import Limits
from letterhead.state.context import StoreContext, changelog_topic, position_of
from letterhead.state.converters import converter_for
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.layers.base import Layer, chain
from letterhead.state.layers.metrics import StoreMetrics
from letterhead.state.reads import Scan, not_null
from letterhead.state.record import Record, RecordContext
from letterhead.state.serdes import (
    AggregationWithHeadersSerde,
    BytesSerde,
    Serde,
    StateSerdes,
    ValueTimestampHeadersSerde,
)
from letterhead.state.values import Origin
from letterhead.storage.keys import RowKey, stored_key

__all__ = ["Change", "DamagedRows", "Metered", "MeteredIterator"]

K = TypeVar("K")
V = TypeVar("V")

DamagedRows: TypeAlias = Literal["report", "raise"]
"""What a scan does about a row that cannot be read."""

_log = logging.getLogger("letterhead.state")


class Change(NamedTuple):
    """What a flush listener is told of a row.

    Attributes
    ----------
    new_value : object
        What the row holds now; ``None`` if it was deleted.
    old_value : object
        What it held before, if the listener asked for that.
    """

    new_value: Any
    old_value: Any


class Metered(Layer, Generic[K, V]):
    """What all stores that an application holds have in common.

    Parameters
    ----------
    inner : store
        The store of bytes below.
    key_serde, value_serde : Serde, optional
        Serdes; those of the task by default.
    damaged_rows : {"report", "raise"}, default "report"
        What a scan does about a row that cannot be read: leave it out, log it as a warning, count it, and keep the error
        in the iterator's ``damaged``; or raise the error. Reading the row by its key always raises.
    limits : Limits, optional
        The most to read of a row with headers; what is not said is as the process has it.

    Attributes
    ----------
    limits : Limits
        What the store is held to. A row over a limit is a damaged row, of code ``limit_exceeded``.
    metrics : StoreMetrics
        Counters and latencies.
    serdes : StateSerdes
        The serdes of the store with the topic of its changelog; set by :meth:`open`.
    """

    operations: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str] = ""
    keeps_headers: ClassVar[bool] = False
    wrap_serde: ClassVar[type[Serde[Any]] | None] = None
    value_type: ClassVar[type | None] = None

    def __init__(
        self,
        inner: Any,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        damaged_rows: DamagedRows = "report",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(inner)
        bottom = chain(inner)[-1]
        self.metrics = StoreMetrics(self.name, self.operations, lambda: getattr(bottom, "expired_records", 0))
        self.damaged_rows = damaged_rows
        self.limits = (limits or Limits()).filled()
        self._given = key_serde, value_serde
        self._timers = {name: self.metrics[name] for name in self.operations}

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store."""
        key_serde, value_serde = self._given
        topic = changelog_topic(context.application_id, self.name)
        inner = value_serde or context.value_serde
        wrapped = (inner, self.limits) if self.keeps_headers else (inner,)
        values: Serde[Any] = inner if self.wrap_serde is None else self.wrap_serde(*wrapped)
        self.serdes: StateSerdes[Any, Any] = StateSerdes(topic, key_serde or context.key_serde, values)
        # Bytes that stay as they are, and rows with headers, take shorter ways: these run at every read and write.
        self._keys_are_bytes = type(self.serdes.key_serde) is BytesSerde
        self._raw_value = self._serialized
        if isinstance(values, ValueTimestampHeadersSerde | AggregationWithHeadersSerde):
            self._read_row = partial(values.read, topic)
            self._raw_value = partial(values.write, topic)
        super().open(directory, context)

    def flush(self) -> None:
        """Write what is held back to the store at the bottom and to the changelog."""
        began = perf_counter_ns()
        super().flush()
        self.metrics["flush"].add(perf_counter_ns() - began)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Give the store what its changelog has.

        Parameters
        ----------
        records : iterable of ChangelogRecord
            Records as they are in the changelog, in order.
        """
        began = perf_counter_ns()
        as_ = self.restores_as
        convert = converter_for(
            headers=as_ == "headers",
            timestamped=as_ != "plain",
            session=self.family == "session",
            versioned=self.family == "versioned",
        )
        if self.context.consistency_vectors:
            records = [self._placed(record) for record in records]
        super().restore(convert(record) for record in records)
        self.metrics["restore"].add(perf_counter_ns() - began)

    def _placed(self, record: ChangelogRecord) -> ChangelogRecord:
        # Kept in the record, the position would become two headers of the row.
        record, position = position_of(record)
        self.position.merge(position)
        return record

    def set_flush_listener(
        self, listener: Callable[[Record[Any, Change]], None], *, send_old_values: bool = False
    ) -> bool:
        """Let a function be told of each change that leaves the cache.

        Parameters
        ----------
        listener : callable
            Is given a record of the key and the :class:`Change`. Its timestamp is that of the new value, or of the record
            that deleted the row; the headers are those of the record. For sessions, the timestamp is the end, and the
            headers are those of the new aggregation.
        send_old_values : bool, default False
            Also read what the store had before.

        Returns
        -------
        bool
            Whether the store has a cache; without one, the listener is never called.
        """
        below = self.inner
        if not hasattr(below, "set_flush_listener"):
            return False

        def told(key: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> None:
            listener(self._change(key, new, old, context))

        return bool(below.set_flush_listener(told, send_old_values=send_old_values))

    def scan(self, asked: Scan) -> MeteredIterator[Any, V]:
        """Return the rows of a scan: what all reads of several rows do."""
        began = perf_counter_ns()
        low, high, prefix = asked.key_from, asked.key_to, asked.prefix
        first = self._bound(low)
        last = first if high is low else self._bound(high)  # a serializer sees one key once
        rows = self.inner.scan(asked._replace(key_from=first, key_to=last, prefix=self._bound(prefix)))
        self._timers[asked.operation].add(perf_counter_ns() - began)
        return MeteredIterator(self, rows, self._row)

    def layers(self) -> list[str]:
        """Return the names of the layers, outermost first."""
        return [getattr(layer, "layer_name", type(layer).__name__) for layer in chain(self)]

    def _row(self, row: Any, stored: bytes) -> tuple[Any, V]:
        raise NotImplementedError

    def _change(self, key: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> Record[Any, Change]:
        raise NotImplementedError

    # What is written.

    _raw_value: Callable[[Any], bytes | None]
    """Makes bytes of a value."""
    _read_row: Callable[[bytes, Origin], Any]
    """Makes a value with headers of bytes."""

    def _raw_key(self, key: Any, headers: Headers) -> bytes:
        if self._keys_are_bytes and type(key) is bytes:
            return key
        raw = self.serdes.raw_key(key, headers)
        if raw is None:
            raise TypeError("key cannot be null")
        return raw

    def _read_key(self, key: Any) -> bytes:
        """Make bytes of a key that is asked for."""
        if self._keys_are_bytes and type(key) is bytes:
            return key
        return self._raw_key(not_null(key), self.context.current().headers)

    def _bound(self, key: Any) -> bytes | None:
        """Make bytes of a bound; there may be none."""
        return None if key is None else self._raw_key(key, self.context.current().headers)

    def _key_of(self, key: Any, value: Any) -> bytes:
        """Make bytes of the key that a value is put with."""
        expected = self.value_type
        if expected is not None and not isinstance(value, expected):
            raise TypeError(f"store {self.name} holds {expected.__name__}, not {type(value).__name__}")
        if self._keys_are_bytes and type(key) is bytes:
            return key
        return self._raw_key(key, value.headers if self.keeps_headers else self.context.current().headers)

    def _serialized(self, value: Any) -> bytes | None:
        return self.serdes.raw_value(value, self.context.current().headers)

    def _tombstone(self, write: Callable[[bytes], Any], key: Any, headers: Headers | None = None) -> Any:
        """Write what deletes a key, with a copy of the record's headers: what is added to them does not reach the record."""
        context = self.context
        before = context.current()
        own = context.record = before.with_headers(Headers(before.headers) if headers is None else headers)
        try:
            return write(self._raw_key(key, own.headers))
        finally:
            context.record = before

    # What is read.

    def _value(self, row: RowKey, stored: bytes | None) -> Any:
        if stored is None:
            return None
        try:
            if self.keeps_headers:
                return self._read_row(stored, (self.name, row))
            return self.serdes.value_from(stored, self.context.current().headers)
        except DamagedRowError:  # of headers that the deserializer asked for
            self.metrics.damaged_rows += 1
            raise
        except DecodeError as error:
            self.metrics.damaged_rows += 1
            raise DamagedRowError(self.name, stored_key(row), error) from error

    def _key(self, raw_key: bytes, value: Any) -> Any:
        if self._keys_are_bytes:
            return raw_key
        headers = value.headers if self.keeps_headers and value is not None else self.context.current().headers
        return self.serdes.key_from(raw_key, headers)


class MeteredIterator(StoreIterator[K, V]):
    """Rows of a store as objects. Close it, or use it in ``with``.

    Attributes
    ----------
    damaged : list of DamagedRowError
        The rows so far that could not be read.
    """

    __slots__ = ("damaged",)

    def __init__(
        self, store: Metered[Any, Any], rows: StoreIterator[Any, Any], read: Callable[[Any, Any], tuple[K, V]]
    ) -> None:
        self.damaged: list[DamagedRowError] = []
        metrics, began = store.metrics, perf_counter_ns()
        metrics.open_iterators += 1

        def close() -> None:
            rows.close()
            metrics.open_iterators -= 1
            metrics["iterator"].add(perf_counter_ns() - began)

        super().__init__(self._each(store, rows, read), store.name, on_close=close)

    def _each(
        self, store: Metered[Any, Any], rows: StoreIterator[Any, Any], read: Callable[[Any, Any], tuple[K, V]]
    ) -> Iterator[tuple[K, V]]:
        # An error stands for one row only, be it the store below that cannot read it or the serde: the scan can go on.
        while True:
            try:
                for key, stored in rows:
                    yield read(key, stored)
                return
            except DamagedRowError as error:
                if store.damaged_rows == "raise":
                    raise
                self.damaged.append(error)
                _log.warning("%s", error)
