"""Window stores as an application holds them: plain, with timestamps, and with headers."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, ClassVar, Generic, TypeVar

from letterhead.state.layers.metered import Change, Metered
from letterhead.state.reads import WindowReads, not_null
from letterhead.state.record import Record, RecordContext
from letterhead.state.serdes import ValueAndTimestampSerde, ValueTimestampHeadersSerde
from letterhead.state.values import ValueAndTimestamp, ValueTimestampHeaders
from letterhead.storage.keys import WindowedKey

__all__ = ["TimestampedWindowStore", "TimestampedWindowStoreWithHeaders", "WindowStore"]

K = TypeVar("K")
V = TypeVar("V")


class WindowStore(Metered[K, V], WindowReads[K, V]):
    """A store of one value for each key and window; where duplicates are kept, of many."""

    family = "window"
    operations: ClassVar[tuple[str, ...]] = ("put", "fetch", "all")

    def put(self, key: K, value: V | None, start: int) -> None:
        """Put the value of a window.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        value : object
            The value; ``None`` deletes the window, and does nothing where duplicates are kept.
        start : int
            Start of the window; one older than the store's retention is dropped.
        """
        not_null(key)
        began = perf_counter_ns()
        if value is None:
            self._tombstone(lambda raw_key: self.inner.put(raw_key, None, start), key)
        else:
            raw_key = self._key_of(key, value)
            self.inner.put(raw_key, self._raw_value(value), start)
        self._timers["put"].add(perf_counter_ns() - began)

    def fetch(self, key: K, start: int) -> V | None:
        """Give the value of a window; ``None`` if there is none."""
        began = perf_counter_ns()
        raw_key = self._read_key(key)
        row = WindowedKey(raw_key, start, start)  # for an error, which does not say the end
        found: V | None = self._value(row, self.inner.fetch(raw_key, start))
        self._timers["fetch"].add(perf_counter_ns() - began)
        return found

    def _row(self, row: WindowedKey, stored: bytes) -> tuple[WindowedKey, V]:
        value = self._value(row, stored)
        return WindowedKey(self._key(row.key, value), row.start, row.end), value

    def _change(self, key: Any, new: bytes | None, old: bytes | None, context: RecordContext) -> Record[Any, Change]:
        value, before = self._value(key, new), self._value(key, old)
        timestamp = context.timestamp if value is None else getattr(value, "timestamp", context.timestamp)
        window = WindowedKey(self._key(key.key, value or before), key.start, key.end)
        return Record(window, Change(value, before), timestamp, context.headers)


class TimestampedWindowStore(WindowStore[K, ValueAndTimestamp[V]], Generic[K, V]):
    """A store of one value with its timestamp for each key and window."""

    wrap_serde = ValueAndTimestampSerde
    value_type = ValueAndTimestamp


class TimestampedWindowStoreWithHeaders(WindowStore[K, ValueTimestampHeaders[V]], Generic[K, V]):
    """A store of one value with its timestamp and headers for each key and window."""

    wrap_serde = ValueTimestampHeadersSerde
    value_type = ValueTimestampHeaders
    keeps_headers = True
