"""Let a store of an older format stand where headers or timestamps are wanted; :func:`adapted` is the entry point.

======================  ==========================  ======================
store                   written                     read
======================  ==========================  ======================
timestamped             without headers             ``00 ‖ v``
plain                   without headers, timestamp  ``00 ‖ ff × 8 ‖ v``
session without         without headers             ``00 ‖ v``
versioned without       without headers             ``00 ‖ v``
plain, for timestamps   without timestamp           ``ff × 8 ‖ v``
======================  ==========================  ======================

The changelog keeps headers and timestamps; a restore from there drops them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from letterhead.state.base import HeadersBytesStore
from letterhead.state.interfaces import StoreIterator, VersionedBytes
from letterhead.state.layers.base import Layer, restores_as
from letterhead.state.layers.rows import mapped
from letterhead.state.reads import Scan
from letterhead.storage.raw import (
    convert_to_timestamped_format,
    raw_aggregation,
    raw_plain_value,
    raw_timestamped_value,
)

__all__ = ["Adapter", "adapted"]


class _Conversion(NamedTuple):
    name: str
    """What Kafka Streams calls the adapter."""
    written: Callable[[bytes | None], bytes | None]
    """Makes an older value of a newer one."""
    read: Callable[[bytes | None], bytes | None]
    """Makes a newer value of an older one."""


def _without_timestamp(value: bytes | None) -> bytes | None:
    return None if value is None else value[8:]


_no_headers = HeadersBytesStore.convert_to_header_format
_neither = HeadersBytesStore.convert_from_plain_to_header_format

_CONVERSIONS: dict[tuple[str, str, bool], _Conversion] = {
    ("kv", "headers", True): _Conversion("TimestampedToHeadersStoreAdapter", raw_timestamped_value, _no_headers),
    ("kv", "headers", False): _Conversion("PlainToHeadersStoreAdapter", raw_plain_value, _neither),
    ("kv", "timestamped", False): _Conversion(
        "PlainToTimestampedStoreAdapter", _without_timestamp, convert_to_timestamped_format
    ),
    ("window", "headers", True): _Conversion(
        "TimestampedToHeadersWindowStoreAdapter", raw_timestamped_value, _no_headers
    ),
    ("window", "headers", False): _Conversion("PlainToHeadersWindowStoreAdapter", raw_plain_value, _neither),
    ("window", "timestamped", False): _Conversion(
        "PlainToTimestampedWindowStoreAdapter", _without_timestamp, convert_to_timestamped_format
    ),
    ("session", "headers", False): _Conversion("SessionToHeadersStoreAdapter", raw_aggregation, _no_headers),
    ("versioned", "headers", False): _Conversion("VersionedToHeadersStoreAdapter", raw_aggregation, _no_headers),
}
"""By the family of the store, the wanted format, and whether the store has timestamps."""


def adapted(store: Any, family: str, format: str) -> Any:
    """Return a store of the wanted format: the given one, or an adapter around it if it keeps less.

    Parameters
    ----------
    store : store
        A store of bytes.
    family : {"kv", "window", "session", "versioned"}
        Its family.
    format : {"plain", "timestamped", "headers"}
        The wanted format.

    Raises
    ------
    ValueError
        If the store needs an adapter and is not persistent.
    """
    if format == "plain" or restores_as(store) == "headers" or (format == "timestamped" and store.timestamped):
        return store
    return Adapter(store, _CONVERSIONS[family, format, store.timestamped])


class Adapter(Layer):
    """Convert values on the way to an older store of any family, and back."""

    passes = ("approximate_num_entries", "remove")

    def __init__(self, inner: Any, conversion: _Conversion) -> None:
        if not inner.persistent:
            raise ValueError("Provided store must be a persistent store, but it is not.")
        super().__init__(inner)
        self.layer_name, self._written, self._read = conversion

    def put(self, key: Any, value: bytes | None, *time: int) -> Any:
        """Put a value, or delete it; a window and a version have a time."""
        return self.inner.put(key, self._written(value), *time)

    def put_if_absent(self, key: bytes, value: bytes | None) -> bytes | None:
        """Put a value if the key has none."""
        return self._read(self.inner.put_if_absent(key, self._written(value)))

    def put_all(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Put many values."""
        self.inner.put_all([(key, self._written(value)) for key, value in rows])

    def delete(self, key: bytes, *time: int) -> Any:
        """Delete a key, in a versioned store from a time on."""
        return self._found(self.inner.delete(key, *time))

    def get(self, key: bytes) -> Any:
        """Return the value of a key, or its latest version."""
        return self._found(self.inner.get(key))

    def get_as_of(self, key: bytes, timestamp: int) -> Any:
        """Return the version that was valid at a time."""
        return self._found(self.inner.get_as_of(key, timestamp))

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Return the value of a window."""
        return self._read(self.inner.fetch(key, start))

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Return the aggregation of a session."""
        return self._read(self.inner.fetch_session(key, start, end))

    def scan(self, asked: Scan) -> StoreIterator[Any, Any]:
        """Return the rows of a scan."""
        return mapped(self.inner.scan(asked), self.name, self._read)

    def versions(
        self, key: bytes, time_from: int | None = None, time_to: int | None = None, ascending: bool = False
    ) -> StoreIterator[bytes, VersionedBytes]:
        """Return the versions that were valid at some time between two."""
        return mapped(self.inner.versions(key, time_from, time_to, ascending), self.name, self._found)

    def _found(self, found: Any) -> Any:
        if isinstance(found, VersionedBytes):
            return found._replace(value=self._read(found.value) or b"")
        return self._read(found)
