"""Use a store of one value format as a store of another format.

:func:`adapt` puts an :class:`Adapter` around a byte store whose format is older than the application needs:

======================  ==========================  ======================
store                   drops on write              returns on read
======================  ==========================  ======================
timestamped             headers                     ``00 ‖ v``
plain                   headers and timestamp       ``00 ‖ ff × 8 ‖ v``
session, no headers     headers                     ``00 ‖ v``
versioned, no headers   headers                     ``00 ‖ v``
plain, for timestamps   timestamp                   ``ff × 8 ‖ v``
======================  ==========================  ======================

The changelog keeps headers and timestamps; a restore drops them again.

A facade is the reverse: it makes a store with headers or timestamps available as a store of an older format. A value
written through a facade has no headers. If the older format has no timestamp, the value gets the timestamp -1, which a
changelog rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from letterhead.headers import Headers
from letterhead.state.base import HeadersBytesStore
from letterhead.state.interfaces import StoreIterator, VersionedBytes
from letterhead.state.layers.base import Layer, restores_as
from letterhead.state.layers.rows import map_values
from letterhead.state.layers.typed import KeyValueStore, SessionStoreWithHeaders, WindowStore
from letterhead.state.reads import KeyValueReads, SessionReads, StoreScan, WindowReads
from letterhead.state.storage.raw import (
    convert_to_timestamped_format,
    raw_aggregation,
    raw_plain_value,
    raw_timestamped_value,
)
from letterhead.state.values import AggregationWithHeaders, ValueAndTimestamp, ValueTimestampHeaders

__all__ = ["Adapter", "KeyValueFacade", "SessionFacade", "WindowFacade", "adapt"]

Convert: TypeAlias = Callable[[Any], Any]


class _Converting:
    """Operations of all types of stores, with values converted on write and read."""

    inner: Any
    name: str
    _to_inner: Convert
    """Function that converts a value to the format of the inner store."""
    _from_inner: Convert
    """Function that converts a value of the inner store to the requested format."""

    def put(self, key: Any, value: Any, *time: int) -> Any:
        """Put a value, or delete it if it is ``None``; windows and versions have a time."""
        return self.inner.put(key, self._to_inner(value), *time)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Put a value if the key has none; return the existing value."""
        return self._from_inner(self.inner.put_if_absent(key, self._to_inner(value)))

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Put many values."""
        self.inner.put_all([(key, self._to_inner(value)) for key, value in entries])

    def delete(self, key: Any, *time: int) -> Any:
        """Delete a key (in a versioned store, from a time on), and return the previous value."""
        return self._result(self.inner.delete(key, *time))

    def remove(self, session: Any) -> None:
        """Delete a session."""
        self.inner.remove(session)

    def get(self, key: Any) -> Any:
        """Return the value of a key, or its latest version."""
        return self._result(self.inner.get(key))

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """Return the aggregation of a session."""
        return self._from_inner(self.inner.fetch_session(key, start, end))

    def scan(self, query: StoreScan) -> StoreIterator[Any, Any]:
        """Return the rows of a scan."""
        return map_values(self.inner.scan(query), self.name, self._from_inner)

    def approximate_num_entries(self) -> int:
        """Return the approximate number of rows."""
        return int(self.inner.approximate_num_entries())

    def _result(self, result: Any) -> Any:
        """Convert a result of reading, or the value of a version."""
        if isinstance(result, VersionedBytes):
            return result._replace(value=self._from_inner(result.value) or b"")
        return self._from_inner(result)


class Adapter(_Converting, Layer):
    """Persistent store of an older format with the interface of a newer format; ``name`` is its name in Kafka Streams."""

    def __init__(self, inner: Any, name: str, on_write: Convert, on_read: Convert) -> None:
        if not inner.persistent:
            raise ValueError("Provided store must be a persistent store, but it is not.")
        Layer.__init__(self, inner)
        self.layer_name, self._to_inner, self._from_inner = name, on_write, on_read

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Return the value of a window."""
        value: bytes | None = self._from_inner(self.inner.fetch(key, start))
        return value

    def get_as_of(self, key: bytes, timestamp: int) -> Any:
        """Return the version that was valid at a time."""
        return self._result(self.inner.get_as_of(key, timestamp))

    def versions(
        self, key: bytes, time_from: int | None = None, time_to: int | None = None, ascending: bool = False
    ) -> StoreIterator[bytes, VersionedBytes]:
        """Return the versions that were valid at any time in a range."""
        return map_values(self.inner.versions(key, time_from, time_to, ascending), self.name, self._result)


def adapt(store: Any, store_type: str, format: str) -> Any:
    """Return the byte store itself, or an adapter around it if its format is older than the requested one.

    Raises
    ------
    ValueError
        If the store needs an adapter and is not persistent.
    """
    if format == "plain" or restores_as(store) == "headers" or (format == "timestamped" and store.timestamped):
        return store
    return Adapter(store, *_ADAPTERS[store_type, format, store.timestamped])


def _without_timestamp(value: bytes | None) -> bytes | None:
    return None if value is None else value[8:]


_TIMESTAMPED = (raw_timestamped_value, HeadersBytesStore.convert_to_header_format)
_PLAIN = (raw_plain_value, HeadersBytesStore.convert_from_plain_to_header_format)
_PLAIN_TO_TIMESTAMPED = (_without_timestamp, convert_to_timestamped_format)
_AGGREGATION = (raw_aggregation, HeadersBytesStore.convert_to_header_format)

_ADAPTERS: dict[tuple[str, str, bool], tuple[str, Convert, Convert]] = {
    ("key-value", "headers", True): ("TimestampedToHeadersStoreAdapter", *_TIMESTAMPED),
    ("key-value", "headers", False): ("PlainToHeadersStoreAdapter", *_PLAIN),
    ("key-value", "timestamped", False): ("PlainToTimestampedStoreAdapter", *_PLAIN_TO_TIMESTAMPED),
    ("window", "headers", True): ("TimestampedToHeadersWindowStoreAdapter", *_TIMESTAMPED),
    ("window", "headers", False): ("PlainToHeadersWindowStoreAdapter", *_PLAIN),
    ("window", "timestamped", False): ("PlainToTimestampedWindowStoreAdapter", *_PLAIN_TO_TIMESTAMPED),
    ("session", "headers", False): ("SessionToHeadersStoreAdapter", *_AGGREGATION),
    ("versioned", "headers", False): ("VersionedToHeadersStoreAdapter", *_AGGREGATION),
}
"""Arguments of :class:`Adapter`, by type of store, requested format, and whether the store has timestamps."""


class _Facade(_Converting):
    def __init__(self, store: Any, on_write: Convert, on_read: Convert) -> None:
        self.inner = store
        self.name: str = store.name
        self._to_inner, self._from_inner = on_write, on_read

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return bool(self.inner.is_open)


class KeyValueFacade(_Facade, KeyValueReads[Any, Any]):
    """Facade of a key-value store with the interface of an older format: with ``timestamps``, or plain values."""

    def __init__(self, store: KeyValueStore[Any, Any], *, timestamps: bool) -> None:
        super().__init__(store, *_conversions(store, timestamps))


class WindowFacade(_Facade, WindowReads[Any, Any]):
    """Facade of a window store with the interface of an older format: with ``timestamps``, or plain values."""

    def __init__(self, store: WindowStore[Any, Any], *, timestamps: bool) -> None:
        super().__init__(store, *_conversions(store, timestamps))

    def fetch(self, key: Any, start: int) -> Any:
        """Return the value of a window."""
        return self._from_inner(self.inner.fetch(key, start))


class SessionFacade(_Facade, SessionReads[Any, Any]):
    """Facade of a session store with headers, with the interface of a store without headers."""

    def __init__(self, store: SessionStoreWithHeaders[Any, Any]) -> None:
        get = AggregationWithHeaders.get_aggregation_or_null
        super().__init__(store, lambda aggregation: AggregationWithHeaders.make(aggregation, Headers()), get)


def _conversions(store: Any, timestamps: bool) -> tuple[Convert, Convert]:
    if timestamps:
        return (
            lambda value: None if value is None else ValueTimestampHeaders.make(value.value, value.timestamp),
            lambda value: None if value is None else ValueAndTimestamp.make(value.value, value.timestamp),
        )
    make = ValueTimestampHeaders.make if store._keeps_headers else ValueAndTimestamp.make
    return lambda value: make(value, -1), lambda value: None if value is None else value.value
