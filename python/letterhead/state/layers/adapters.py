"""An older store where one with headers, or with timestamps, is wanted: what it cannot keep is left out on the way down.

======================  ==========================  ======================
store                   on the way down             on the way up
======================  ==========================  ======================
timestamped             headers go                  ``00 ‖ v``
plain                   headers and timestamp go    ``00 ‖ ff × 8 ‖ v``
session without         headers go                  ``00 ‖ v``
versioned without       headers go                  ``00 ‖ v``
plain, for timestamps   timestamp goes              ``ff × 8 ‖ v``
======================  ==========================  ======================

The changelog above still has it all; after a restore from there it is gone again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from letterhead.state.interfaces import SessionKey, StoreIterator, VersionedBytes, WindowedKey
from letterhead.state.layers.base import Layer, restores_as
from letterhead.state.layers.rows import mapped
from letterhead.state.raw import (
    HeadersBytesStore,
    convert_to_timestamped_format,
    raw_aggregation,
    raw_plain_value,
    raw_timestamped_value,
)

__all__ = [
    "PlainToHeadersStoreAdapter",
    "PlainToHeadersWindowStoreAdapter",
    "PlainToTimestampedStoreAdapter",
    "PlainToTimestampedWindowStoreAdapter",
    "SessionToHeadersStoreAdapter",
    "TimestampedToHeadersStoreAdapter",
    "TimestampedToHeadersWindowStoreAdapter",
    "VersionedToHeadersStoreAdapter",
]

_Convert: TypeAlias = Callable[[Any], bytes | None]


class _Adapter(Layer):
    """What is common to all: how a value goes down and comes up."""

    takes_timestamped = False
    what = "key value store"
    down: _Convert
    up: _Convert

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        if not inner.persistent:
            raise ValueError("Provided store must be a persistent store, but it is not.")
        if restores_as(inner) == "headers":
            raise ValueError(f"Provided store must be an older {self.what}, but it keeps headers.")
        if inner.timestamped and not self.takes_timestamped:
            raise ValueError(f"Provided store must be a plain (non-timestamped) {self.what}, but it is timestamped.")
        if self.takes_timestamped and not inner.timestamped:
            raise ValueError("Provided store must be a timestamped store, but it is not.")

    def _up(self, rows: StoreIterator[Any, bytes]) -> StoreIterator[Any, Any]:
        return mapped(rows, self.name, self.up)


class _KeyValueAdapter(_Adapter):
    passes = ("approximate_num_entries",)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Put a value, or delete the key."""
        self.inner.put(key, self.down(value))

    def put_if_absent(self, key: bytes, value: bytes | None) -> bytes | None:
        """Put a value if the key has none."""
        return self.up(self.inner.put_if_absent(key, self.down(value)))

    def put_all(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Put many values."""
        self.inner.put_all([(key, self.down(value)) for key, value in rows])

    def delete(self, key: bytes) -> bytes | None:
        """Delete a key."""
        return self.up(self.inner.delete(key))

    def get(self, key: bytes) -> bytes | None:
        """Give the value of a key."""
        return self.up(self.inner.get(key))

    def range(self, start: bytes | None, end: bytes | None) -> StoreIterator[bytes, bytes]:
        """Give the rows between two keys."""
        return self._up(self.inner.range(start, end))

    def reverse_range(self, start: bytes | None, end: bytes | None) -> StoreIterator[bytes, bytes]:
        """Give the rows between two keys, from last to first."""
        return self._up(self.inner.reverse_range(start, end))

    def all(self) -> StoreIterator[bytes, bytes]:
        """Give all rows."""
        return self._up(self.inner.all())

    def reverse_all(self) -> StoreIterator[bytes, bytes]:
        """Give all rows, from last to first."""
        return self._up(self.inner.reverse_all())

    def prefix_scan(self, prefix: bytes) -> StoreIterator[bytes, bytes]:
        """Give the rows whose keys begin with some bytes."""
        return self._up(self.inner.prefix_scan(prefix))


class _WindowAdapter(_Adapter):
    what = "window store"

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Put the value of a window, or delete it."""
        self.inner.put(key, self.down(value), start)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Give the value of a window."""
        return self.up(self.inner.fetch(key, start))

    def fetch_key(self, key: bytes, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Give the windows of a key."""
        return self._up(self.inner.fetch_key(key, time_from, time_to))

    def backward_fetch_key(self, key: bytes, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Give the windows of a key, from last to first."""
        return self._up(self.inner.backward_fetch_key(key, time_from, time_to))

    def fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int
    ) -> StoreIterator[WindowedKey, bytes]:
        """Give the windows of a range of keys."""
        return self._up(self.inner.fetch_range(key_from, key_to, time_from, time_to))

    def backward_fetch_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int
    ) -> StoreIterator[WindowedKey, bytes]:
        """Give the windows of a range of keys, from last to first."""
        return self._up(self.inner.backward_fetch_range(key_from, key_to, time_from, time_to))

    def fetch_all(self, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Give the windows of a time."""
        return self._up(self.inner.fetch_all(time_from, time_to))

    def backward_fetch_all(self, time_from: int, time_to: int) -> StoreIterator[WindowedKey, bytes]:
        """Give the windows of a time, from last to first."""
        return self._up(self.inner.backward_fetch_all(time_from, time_to))

    def all(self) -> StoreIterator[WindowedKey, bytes]:
        """Give all windows."""
        return self._up(self.inner.all())

    def backward_all(self) -> StoreIterator[WindowedKey, bytes]:
        """Give all windows, from last to first."""
        return self._up(self.inner.backward_all())


def _no_headers(value: bytes | None) -> bytes | None:
    return HeadersBytesStore.convert_to_header_format(value)


def _no_headers_no_timestamp(value: bytes | None) -> bytes | None:
    return HeadersBytesStore.convert_from_plain_to_header_format(value)


class TimestampedToHeadersStoreAdapter(_KeyValueAdapter):
    """A timestamped key-value store where one with headers is wanted."""

    takes_timestamped = True
    down = staticmethod(raw_timestamped_value)
    up = staticmethod(_no_headers)


class PlainToHeadersStoreAdapter(_KeyValueAdapter):
    """A plain key-value store where one with headers is wanted."""

    down = staticmethod(raw_plain_value)
    up = staticmethod(_no_headers_no_timestamp)


class TimestampedToHeadersWindowStoreAdapter(_WindowAdapter):
    """A timestamped window store where one with headers is wanted."""

    takes_timestamped = True
    down = staticmethod(raw_timestamped_value)
    up = staticmethod(_no_headers)


class PlainToHeadersWindowStoreAdapter(_WindowAdapter):
    """A plain window store where one with headers is wanted."""

    down = staticmethod(raw_plain_value)
    up = staticmethod(_no_headers_no_timestamp)


def _without_timestamp(value: bytes | None) -> bytes | None:
    return None if value is None else value[8:]


class PlainToTimestampedStoreAdapter(_KeyValueAdapter):
    """A plain key-value store where a timestamped one is wanted."""

    down = staticmethod(_without_timestamp)
    up = staticmethod(convert_to_timestamped_format)


class PlainToTimestampedWindowStoreAdapter(_WindowAdapter):
    """A plain window store where a timestamped one is wanted."""

    down = staticmethod(_without_timestamp)
    up = staticmethod(convert_to_timestamped_format)


class SessionToHeadersStoreAdapter(_Adapter):
    """A session store without headers where one with headers is wanted."""

    what = "session store"
    down = staticmethod(raw_aggregation)
    up = staticmethod(_no_headers)
    passes = ("remove",)

    def put(self, key: SessionKey, value: bytes | None) -> None:
        """Put the aggregation of a session, or delete it."""
        self.inner.put(key, self.down(value))

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Give the aggregation of a session."""
        return self.up(self.inner.fetch_session(key, start, end))

    def find_sessions(self, key: bytes, earliest_end: int, latest_start: int) -> StoreIterator[SessionKey, bytes]:
        """Give sessions of a key."""
        return self._up(self.inner.find_sessions(key, earliest_end, latest_start))

    def backward_find_sessions(
        self, key: bytes, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, bytes]:
        """Give sessions of a key, from last to first."""
        return self._up(self.inner.backward_find_sessions(key, earliest_end, latest_start))

    def find_sessions_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, bytes]:
        """Give sessions of a range of keys."""
        return self._up(self.inner.find_sessions_range(key_from, key_to, earliest_end, latest_start))

    def backward_find_sessions_range(
        self, key_from: bytes | None, key_to: bytes | None, earliest_end: int, latest_start: int
    ) -> StoreIterator[SessionKey, bytes]:
        """Give sessions of a range of keys, from last to first."""
        return self._up(self.inner.backward_find_sessions_range(key_from, key_to, earliest_end, latest_start))

    def find_sessions_time(self, earliest_end: int, latest_end: int) -> StoreIterator[SessionKey, bytes]:
        """Give the sessions that end in a time."""
        return self._up(self.inner.find_sessions_time(earliest_end, latest_end))

    def fetch(self, key: bytes) -> StoreIterator[SessionKey, bytes]:
        """Give the sessions of a key."""
        return self._up(self.inner.fetch(key))

    def backward_fetch(self, key: bytes) -> StoreIterator[SessionKey, bytes]:
        """Give the sessions of a key, from last to first."""
        return self._up(self.inner.backward_fetch(key))

    def fetch_range(self, key_from: bytes | None, key_to: bytes | None) -> StoreIterator[SessionKey, bytes]:
        """Give the sessions of a range of keys."""
        return self._up(self.inner.fetch_range(key_from, key_to))

    def backward_fetch_range(self, key_from: bytes | None, key_to: bytes | None) -> StoreIterator[SessionKey, bytes]:
        """Give the sessions of a range of keys, from last to first."""
        return self._up(self.inner.backward_fetch_range(key_from, key_to))


class VersionedToHeadersStoreAdapter(_Adapter):
    """A versioned store without headers where one with headers is wanted."""

    what = "versioned store"
    down = staticmethod(raw_aggregation)

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Put a version, or a tombstone."""
        valid_to: int = self.inner.put(key, self.down(value), timestamp)
        return valid_to

    def delete(self, key: bytes, timestamp: int) -> VersionedBytes | None:
        """Delete a key from a time on, and return the version that was valid then."""
        return self._version(self.inner.delete(key, timestamp))

    def get(self, key: bytes) -> VersionedBytes | None:
        """Return the latest version."""
        return self._version(self.inner.get(key))

    def get_as_of(self, key: bytes, timestamp: int) -> VersionedBytes | None:
        """Return the version that was valid at a time."""
        return self._version(self.inner.get_as_of(key, timestamp))

    def versions(
        self, key: bytes, time_from: int | None = None, time_to: int | None = None, ascending: bool = False
    ) -> StoreIterator[bytes, VersionedBytes]:
        """Return the versions that were valid at some time between two."""
        found = self.inner.versions(key, time_from, time_to, ascending)
        return mapped(found, self.name, self._version)  # type: ignore[arg-type]  # no row is null

    @staticmethod
    def _version(version: VersionedBytes | None) -> VersionedBytes | None:
        return version and version._replace(value=HeadersBytesStore.convert_to_header_format(version.value))
