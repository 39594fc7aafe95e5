"""Outermost layer: serialization of keys and values, and metrics of operations.

A key is serialized with the headers of its value, or of the current record if the value has no headers. It
is deserialized with the headers of its row. Headers added by a serializer are stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from pathlib import Path
from time import perf_counter_ns
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

from letterhead.errors import DamagedRowError, DecodeError
from letterhead.headers import Headers
from letterhead.limits import Limits
from letterhead.state.context import StoreContext, changelog_topic, position_of
from letterhead.state.converters import converter_for
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.layers.base import Layer, chain, restores_as
from letterhead.state.layers.metrics import StoreMetrics
from letterhead.state.processor import Record, RecordContext
from letterhead.state.reads import StoreScan, not_null
from letterhead.state.serdes import (
    AggregationWithHeadersSerde,
    BytesSerde,
    Serde,
    StateSerdes,
    ValueTimestampHeadersSerde,
)
from letterhead.state.storage.keys import RowKey, encode_key
from letterhead.state.values import Origin, ValueAndTimestamp, ValueTimestampHeaders

__all__ = ["Change", "Metered", "MeteredIterator", "ScanErrors", "time_calls"]

K = TypeVar("K")
V = TypeVar("V")
Method = TypeVar("Method", bound=Callable[..., Any])

ScanErrors: TypeAlias = Literal["skip", "raise"]
"""What a scan does with rows that cannot be read."""

_log = logging.getLogger("letterhead.state")


def time_calls(operation: str) -> Callable[[Method], Method]:
    """Record the count and latency of a method's calls in the store's metrics, except calls that raise."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def call(self: Metered[Any, Any], *args: Any, **kwargs: Any) -> Any:
            began = perf_counter_ns()
            result = method(self, *args, **kwargs)
            self._timers[operation].add(perf_counter_ns() - began)
            return result

        return cast(Method, call)

    return decorate


class Change(NamedTuple):
    """Change of a row, as passed to a flush listener."""

    new_value: Any
    """New value; ``None`` if the row was deleted."""
    old_value: Any
    """Previous value, if the listener was set with ``send_old_values``."""


class Metered(Layer, Generic[K, V]):
    """Base class of all stores that an application uses.

    Parameters
    ----------
    inner : store
        The store of bytes below.
    key_serde, value_serde : Serde, optional
        Serdes; by default the serdes of the task.
    errors : {"skip", "raise"}, default "skip"
        What a scan does with an unreadable row: skip it, log a warning, count it, and append the error to the
        iterator's ``damaged``; or raise the error. Reading the row by its key always raises.
    limits : Limits, optional
        Limits on rows with headers. Unset fields use the process-wide defaults.

    Attributes
    ----------
    limits : Limits
        The limits of the store. A row over a limit is a damaged row, with the code ``limit_exceeded``.
    metrics : StoreMetrics
        Counters and latencies.
    serdes : StateSerdes
        The serdes of the store with the topic of its changelog; set by :meth:`open`.
    """

    _operations: ClassVar[tuple[str, ...]] = ()
    _store_type: ClassVar[str] = ""
    _keeps_headers: ClassVar[bool] = False
    _wrap_serde: ClassVar[type[Serde[Any]] | None] = None
    _value_type: ClassVar[type | None] = None

    def __init__(
        self,
        inner: Any,
        key_serde: Serde[K] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        errors: ScanErrors = "skip",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(inner)
        bottom = chain(inner)[-1]
        self.metrics = StoreMetrics(self.name, self._operations, lambda: getattr(bottom, "expired_records", 0))
        self.errors: ScanErrors = errors
        self.limits = (limits or Limits()).filled()
        self._own_serdes = key_serde, value_serde
        self._timers = {name: self.metrics[name] for name in (*self._operations, "flush", "restore")}

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store."""
        key_serde, value_serde = self._own_serdes
        topic = changelog_topic(context.application_id, self.name)
        values: Serde[Any] = value_serde or context.value_serde
        if self._wrap_serde is not None:
            values = self._wrap_serde(*((values, self.limits) if self._keeps_headers else (values,)))
        self.serdes: StateSerdes[Any, Any] = StateSerdes(topic, key_serde or context.key_serde, values)
        # Byte keys and rows with headers bypass StateSerdes, because this runs at every read and write.
        self._keys_are_bytes = type(self.serdes.key_serde) is BytesSerde
        self._raw_value = self._serialized
        if isinstance(values, ValueTimestampHeadersSerde | AggregationWithHeadersSerde):
            self._read_row = partial(values._decode, topic)
            self._raw_value = partial(values._encode, topic)
        super().open(directory, context)

    @time_calls("flush")
    def flush(self) -> None:
        """Write cached changes to the store of bytes and to the changelog."""
        super().flush()

    @time_calls("restore")
    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Restore the store from the records of its changelog, in order."""
        convert = converter_for(self._store_type, restores_as(self))
        if self.context.consistency_vectors:
            records = [self._without_position(record) for record in records]
        super().restore(convert(record) for record in records)

    def _without_position(self, record: ChangelogRecord) -> ChangelogRecord:
        # Remove the position, which would otherwise become two headers of the row.
        record, position = position_of(record)
        self.position.merge(position)
        return record

    def set_flush_listener(
        self, listener: Callable[[Record[Any, Change]], None], *, send_old_values: bool = False
    ) -> bool:
        """Set the function to call for each change written from the cache to the store.

        Parameters
        ----------
        listener : callable
            Receives a record with the key and a :class:`Change`. The record has the timestamp of the new value, or of
            the input record that deleted the row, and the headers of the input record. For sessions, it has the end of the
            session as its timestamp, and the headers of the new aggregation.
        send_old_values : bool, default False
            Whether to also read the previous value from the store.

        Returns
        -------
        bool
            Whether the store has a cache; without one, the listener is never called.
        """
        if not hasattr(self.inner, "set_flush_listener"):
            return False

        def notify(row: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> None:
            listener(self._change(row, new, old, context))

        return bool(self.inner.set_flush_listener(notify, send_old_values=send_old_values))

    def scan(self, query: StoreScan) -> MeteredIterator[Any, V]:
        """Return the rows of a scan; all methods that read several rows call this method."""
        began = perf_counter_ns()
        low, high, prefix = query.key_from, query.key_to, query.prefix
        first = self._serialize_bound(low)
        last = first if high is low else self._serialize_bound(high)  # for one key, call the serializer once
        rows = self.reads.scan(query._replace(key_from=first, key_to=last, prefix=self._serialize_bound(prefix)))
        self._timers[query.operation].add(perf_counter_ns() - began)
        return MeteredIterator(self, rows, self._row)

    def layers(self) -> list[str]:
        """Return the names of the layers, outermost first."""
        return [getattr(layer, "layer_name", type(layer).__name__) for layer in chain(self)]

    def _row(self, row: Any, stored: bytes) -> tuple[Any, V]:
        value: Any = self._deserialize_value(row, stored)
        return self._deserialize_key(row, value), value

    def _change(self, row: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> Record[Any, Change]:
        value, before = self._deserialize_value(row, new), self._deserialize_value(row, old)
        # Values of other classes, such as datetime, may also have an attribute `timestamp`.
        is_ours = isinstance(value, ValueAndTimestamp | ValueTimestampHeaders)
        timestamp = value.timestamp if is_ours else context.timestamp  # type: ignore[union-attr]
        key = self._deserialize_key(row, before if value is None else value)
        return Record(key, Change(value, before), timestamp, context.headers)

    # Serializing.

    _raw_value: Callable[[Any], bytes | None]
    """Serialize a value."""
    _read_row: Callable[[bytes, Origin], Any | None]
    """Deserialize a value with headers."""

    def _serialize_key(self, key: Any, headers: Headers) -> bytes:
        if self._keys_are_bytes and type(key) is bytes:
            return key
        raw = self.serdes.raw_key(key, headers)
        if raw is None:
            raise TypeError("key cannot be null")
        return raw

    def _serialize_key_to_read(self, key: Any) -> bytes:
        """Serialize a key for a read."""
        if self._keys_are_bytes and type(key) is bytes:
            return key
        return self._serialize_key(not_null(key), self.context.current().headers)

    def _serialize_bound(self, key: Any) -> bytes | None:
        """Serialize a bound of a scan; ``None`` means no bound."""
        return None if key is None else self._serialize_key(key, self.context.current().headers)

    def _check_and_serialize_key(self, key: Any, value: Any) -> bytes:
        """Serialize a key for a write, and check the type of the value."""
        expected = self._value_type
        if expected is not None and not isinstance(value, expected):
            raise TypeError(f"store {self.name} holds {expected.__name__}, not {type(value).__name__}")
        if self._keys_are_bytes and type(key) is bytes:
            return key
        return self._serialize_key(key, value.headers if self._keeps_headers else self.context.current().headers)

    def _serialized(self, value: Any) -> bytes | None:
        return self.serdes.raw_value(value, self.context.current().headers)

    def _encoded(self, key: Any, value: Any, headers: Headers | None = None) -> _WriteScope:
        """Serialize a key and a value for use in a ``with`` statement; a value of ``None`` is a tombstone.

        While a tombstone is written, the current record is replaced by a copy with ``headers``, by default a copy of the
        record's headers, because headers added by serializers must not change the original record.
        """
        return _WriteScope(self, not_null(key), value, headers)

    # Deserializing.

    def _deserialize_value(self, row: RowKey, stored: bytes | None) -> V | None:
        if stored is None:
            return None
        try:
            if self._keeps_headers:
                return self._read_row(stored, (self.name, row))
            return self.serdes.value_from(stored, self.context.current().headers)
        except DamagedRowError:  # raised when the deserializer accesses damaged headers
            self.metrics.damaged_rows += 1
            raise
        except DecodeError as error:
            self.metrics.damaged_rows += 1
            raise DamagedRowError(self.name, encode_key(row), error) from error

    def _deserialize_key(self, row: Any, value: Any) -> Any:
        """Deserialize the key of a row: bytes, or the key of a window or session."""
        if self._keys_are_bytes:
            return row
        headers = value.headers if self._keeps_headers and value is not None else self.context.current().headers
        key: Any = self.serdes.key_from(row if isinstance(row, bytes) else row.key, headers)
        return key if isinstance(row, bytes) else row._replace(key=key)


class _WriteScope:
    """Context manager of :meth:`Metered._encoded`; a generator would take 0.6 µs longer per write than this class."""

    __slots__ = ("_before", "_headers", "_key", "_store", "_value")

    def __init__(self, store: Metered[Any, Any], key: Any, value: Any, headers: Headers | None) -> None:
        self._store, self._key, self._value, self._headers = store, key, value, headers
        self._before: RecordContext | None = None

    def __enter__(self) -> tuple[bytes, bytes | None]:
        store = self._store
        if self._value is not None:
            return store._check_and_serialize_key(self._key, self._value), store._raw_value(self._value)
        self._before = store.context.current()
        headers = Headers(self._before.headers) if self._headers is None else self._headers
        store.context.record = self._before.with_headers(headers)
        try:
            return store._serialize_key(self._key, headers), None
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self._store.context.record = self._before


class MeteredIterator(StoreIterator[K, V]):
    """Iterator over the rows of a store as objects. Close it, or use it in ``with``.

    Attributes
    ----------
    damaged : list of DamagedRowError
        Errors of the unreadable rows so far.
    """

    __slots__ = ("damaged",)

    def __init__(
        self, store: Metered[Any, Any], rows: StoreIterator[Any, Any], parse: Callable[[Any, Any], tuple[K, V]]
    ) -> None:
        self.damaged: list[DamagedRowError] = []
        metrics, began = store.metrics, perf_counter_ns()
        metrics.open_iterators += 1

        def close() -> None:
            rows.close()
            metrics.open_iterators -= 1
            metrics["iterator"].add(perf_counter_ns() - began)

        super().__init__(self._parsed(store, rows, parse), store.name, on_close=close)

    def _parsed(
        self, store: Metered[Any, Any], rows: StoreIterator[Any, Any], parse: Callable[[Any, Any], tuple[K, V]]
    ) -> Iterator[tuple[K, V] | DamagedRowError]:
        # An error of the inner store or of a serde affects one row only, so the scan continues.
        while True:
            try:
                for key, stored in rows:
                    yield parse(key, stored)
                return
            except DamagedRowError as error:
                if store.errors == "raise":
                    yield error  # yielded, because raising would end this generator and hide the remaining rows
                    continue
                self.damaged.append(error)
                _log.warning("%s", error)
