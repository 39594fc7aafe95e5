"""Key-value stores as an application holds them: plain, with timestamps, and with headers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any, ClassVar, Generic, TypeVar

from letterhead.headers import Headers
from letterhead.state.context import StoreContext
from letterhead.state.layers.change_logging import ChangeLoggingKeyValueStore
from letterhead.state.layers.metered import Change, Metered
from letterhead.state.reads import KeyValueReads, not_null
from letterhead.state.record import Record, RecordContext
from letterhead.state.serdes import ValueAndTimestampSerde, ValueTimestampHeadersSerde
from letterhead.state.values import ValueAndTimestamp, ValueTimestampHeaders

__all__ = ["KeyValueStore", "TimestampedKeyValueStore", "TimestampedKeyValueStoreWithHeaders"]

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(Metered[K, V], KeyValueReads[K, V]):
    """A store of one value for each key."""

    family = "kv"
    operations: ClassVar[tuple[str, ...]] = (
        "put",
        "put_if_absent",
        "put_all",
        "delete",
        "get",
        "range",
        "all",
        "prefix_scan",
    )

    def put(self, key: K, value: V | None) -> None:
        """Put a value.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        value : object
            The value; ``None`` deletes the key.

        Raises
        ------
        TypeError
            If the key is null, or the value not what the store holds.
        InvalidTimestampError
            If the value's timestamp is negative, and the store has a changelog.
        """
        not_null(key)
        began = perf_counter_ns()
        if value is None:
            self._tombstone(self._put_null, key)
        else:
            self._put(self._key_of(key, value), value)
        self._timers["put"].add(perf_counter_ns() - began)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Put a value if the key has none.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        value : object
            The value.

        Returns
        -------
        object
            The value that the key has already; ``None`` if it had none.
        """
        not_null(key)
        began = perf_counter_ns()
        if value is None:
            raw_key, before = self._tombstone(self._put_null_if_absent, key)
        else:
            raw_key = self._key_of(key, value)
            before = self.inner.put_if_absent(raw_key, self._raw_value(value))
        found: V | None = self._value(raw_key, before)
        self._timers["put_if_absent"].add(perf_counter_ns() - began)
        return found

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Put many values; ``None`` deletes a key."""
        entries = list(entries)
        if any(key is None for key, _ in entries):
            raise TypeError("key cannot be null")
        began = perf_counter_ns()
        if any(value is None for _, value in entries):
            for key, value in entries:
                self.put(key, value)
        else:
            self.inner.put_all([(self._key_of(key, value), self._raw_value(value)) for key, value in entries])
        self._timers["put_all"].add(perf_counter_ns() - began)

    def delete(self, key: K) -> V | None:
        """Delete a key.

        Returns
        -------
        object
            The value it had; ``None`` if it had none.
        """
        not_null(key)
        began = perf_counter_ns()
        raw_key, before = self._tombstone(self._delete, key)
        found: V | None = self._value(raw_key, before)
        self._timers["delete"].add(perf_counter_ns() - began)
        return found

    def get(self, key: K) -> V | None:
        """Give the value of a key; ``None`` if it has none.

        Raises
        ------
        DamagedRowError
            If the row cannot be read.
        """
        began = perf_counter_ns()
        raw_key = self._read_key(key)
        found: V | None = self._value(raw_key, self.inner.get(raw_key))
        self._timers["get"].add(perf_counter_ns() - began)
        return found

    def approximate_num_entries(self) -> int:
        """Give about how many rows there are."""
        count: int = self.inner.approximate_num_entries()
        return count

    def _put(self, raw_key: bytes, value: Any) -> None:
        self.inner.put(raw_key, self._raw_value(value))

    def _put_null(self, raw_key: bytes) -> None:
        self.inner.put(raw_key, None)

    def _put_null_if_absent(self, raw_key: bytes) -> tuple[bytes, bytes | None]:
        return raw_key, self.inner.put_if_absent(raw_key, None)

    def _delete(self, raw_key: bytes) -> tuple[bytes, bytes | None]:
        return raw_key, self.inner.delete(raw_key)

    def _row(self, raw_key: bytes, stored: bytes) -> tuple[K, V]:
        value = self._value(raw_key, stored)
        return self._key(raw_key, value), value

    def _change(self, key: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> Record[Any, Change]:
        value, before = self._value(key, new), self._value(key, old)
        timestamp = context.timestamp if value is None else getattr(value, "timestamp", context.timestamp)
        return Record(self._key(key, value or before), Change(value, before), timestamp, context.headers)


class TimestampedKeyValueStore(KeyValueStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """A store of one value with its timestamp for each key."""

    wrap_serde = ValueAndTimestampSerde
    value_type = ValueAndTimestamp


class TimestampedKeyValueStoreWithHeaders(KeyValueStore[K, ValueTimestampHeaders[V]], Generic[K, V]):
    """A store of one value with its timestamp and headers for each key."""

    wrap_serde = ValueTimestampHeadersSerde
    value_type = ValueTimestampHeaders
    keeps_headers = True

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store."""
        super().open(directory, context)
        assert isinstance(self.serdes.value_serde, ValueTimestampHeadersSerde)
        self._join = partial(self.serdes.value_serde.join, self.serdes.topic)
        self._is_logged = isinstance(self.inner, ChangeLoggingKeyValueStore)

    def _put(self, raw_key: bytes, value: ValueTimestampHeaders[V]) -> None:
        raw, payload, headers = self._join(value)
        if raw is None or not self._is_logged:
            self.inner.put(raw_key, raw)
        else:
            self.inner.put(raw_key, raw, (payload, value._timestamp, Headers._with(headers._list().copy())))
