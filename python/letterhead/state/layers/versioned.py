"""Versioned stores as an application holds them: plain, and with headers."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, ClassVar, Generic, TypeVar

from letterhead.headers import Headers
from letterhead.state.interfaces import StoreIterator, VersionedBytes
from letterhead.state.layers.metered import Metered
from letterhead.state.serdes import AggregationWithHeadersSerde
from letterhead.state.values import AggregationWithHeaders, VersionedRecord, VersionedRecordWithHeaders

__all__ = ["VersionedKeyValueStore", "VersionedKeyValueStoreWithHeaders"]

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class _Versioned(Metered[K, V], Generic[K, V, R]):
    """What the two stores have in common; they differ in what a version is."""

    family = "versioned"
    operations: ClassVar[tuple[str, ...]] = ("put", "delete", "get", "get_as_of", "versions")

    def delete(self, key: K, timestamp: int) -> R | None:
        """Say that from a time on a key has no value; gives what was valid then."""
        began = perf_counter_ns()
        raw_key, before = self._tombstone(lambda raw: (raw, self.inner.delete(raw, timestamp)), _not_null(key))
        found = self._record(raw_key, before)
        self._timers["delete"].add(perf_counter_ns() - began)
        return found

    def get(self, key: K, as_of: int | None = None) -> R | None:
        """Give the latest version of a key, or the one that was valid at a time; ``None`` if there is none."""
        began = perf_counter_ns()
        raw_key = self._read_key(key)
        stored = self.inner.get(raw_key) if as_of is None else self.inner.get_as_of(raw_key, as_of)
        found = self._record(raw_key, stored)
        self._timers["get" if as_of is None else "get_as_of"].add(perf_counter_ns() - began)
        return found

    def versions(
        self, key: K, time_from: int | None = None, time_to: int | None = None, *, ascending: bool = False
    ) -> StoreIterator[K, R]:
        """Give the versions of a key that were valid at some time between two, the latest first unless told otherwise."""
        began = perf_counter_ns()
        raw_key = self._read_key(key)

        def row(raw: bytes, stored: VersionedBytes) -> tuple[K, R | None]:
            return key, self._record(raw, stored, stored.valid_to)

        return self._rows("versions", began, self.inner.versions(raw_key, time_from, time_to, ascending), row)

    def _record(self, raw_key: bytes, stored: VersionedBytes | None, valid_to: int | None = None) -> R | None:
        raise NotImplementedError


class VersionedKeyValueStore(_Versioned[K, V, VersionedRecord[V]], Generic[K, V]):
    """A store that remembers what the value of a key was at earlier times.

    Only :meth:`versions` says until when a version is valid.
    """

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Put a version.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        value : object
            The value; ``None`` says that from the timestamp on there is none.
        timestamp : int
            When the version begins to be valid.

        Returns
        -------
        int
            When it ends to be; ``VALID_TO_UNDEFINED`` if it is the latest, ``PUT_NOT_VALID`` if it is too old for the
            store, and was dropped.
        """
        began = perf_counter_ns()
        _not_null(key)
        valid_to: int
        if value is None:
            valid_to = self._tombstone(lambda raw_key: self.inner.put(raw_key, None, timestamp), key)
        else:
            raw_key = self._raw_key(key, self.context.current().headers)
            valid_to = self.inner.put(raw_key, self._raw_value(value), timestamp)
        self._timers["put"].add(perf_counter_ns() - began)
        return valid_to

    def _record(
        self, raw_key: bytes, stored: VersionedBytes | None, valid_to: int | None = None
    ) -> VersionedRecord[V] | None:
        if stored is None:
            return None
        value = self._value(raw_key, stored.value)
        return None if value is None else VersionedRecord(value, stored.timestamp, valid_to)


class VersionedKeyValueStoreWithHeaders(_Versioned[K, V, VersionedRecordWithHeaders[V]], Generic[K, V]):
    """A store that remembers what the value of a key and its headers were at earlier times.

    Only :meth:`versions` says until when a version is valid.
    """

    wrap_serde = AggregationWithHeadersSerde
    keeps_headers = True

    def put(self, key: K, value: V | None, timestamp: int, headers: Any = None) -> int:
        """Put a version.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        value : object
            The value; ``None`` says that from the timestamp on there is none.
        timestamp : int
            When the version begins to be valid.
        headers : Headers, optional
            Its headers; none by default. A version without a value has none in the store; in the changelog it has
            these, and by default those of the record at hand.

        Returns
        -------
        int
            When it ends to be; ``VALID_TO_UNDEFINED`` if it is the latest, ``PUT_NOT_VALID`` if it is too old for the
            store, and was dropped.
        """
        began = perf_counter_ns()
        _not_null(key)
        if headers is not None and not isinstance(headers, Headers):
            headers = Headers(headers)
        valid_to: int
        if value is None:
            valid_to = self._tombstone(lambda raw_key: self.inner.put(raw_key, None, timestamp), key, headers)
        else:
            own = Headers() if headers is None else headers
            raw_key = self._raw_key(key, own)
            valid_to = self.inner.put(raw_key, self._raw_value(AggregationWithHeaders(value, own)), timestamp)
        self._timers["put"].add(perf_counter_ns() - began)
        return valid_to

    def _record(
        self, raw_key: bytes, stored: VersionedBytes | None, valid_to: int | None = None
    ) -> VersionedRecordWithHeaders[V] | None:
        if stored is None:
            return None
        value = self._value(raw_key, stored.value)
        if value.aggregation is None:
            return None
        return VersionedRecordWithHeaders(value.aggregation, stored.timestamp, value.headers, valid_to)


def _not_null(key: Any) -> Any:
    if key is None:
        raise TypeError("key cannot be null")
    return key
