"""Versioned stores as an application holds them: plain, and with headers."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, ClassVar, Generic, TypeVar

from letterhead.headers import Headers
from letterhead.state.interfaces import StoreIterator, VersionedBytes
from letterhead.state.layers.metered import Metered, MeteredIterator
from letterhead.state.reads import not_null
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
        """Delete a key from a time on.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        timestamp : int
            The time, in milliseconds, from which the key has no value.

        Returns
        -------
        VersionedRecord or VersionedRecordWithHeaders or None
            The version that was valid at that time before the call; ``None`` if there was none.
        """
        began = perf_counter_ns()
        raw_key, before = self._tombstone(lambda raw: (raw, self.inner.delete(raw, timestamp)), not_null(key))
        found = self._found(raw_key, before)
        self._timers["delete"].add(perf_counter_ns() - began)
        return found

    def get(self, key: K, as_of: int | None = None) -> R | None:
        """Return the latest version of a key, or the one that was valid at a time.

        Parameters
        ----------
        key : object
            The key, which must not be null.
        as_of : int, optional
            A time, in milliseconds. By default the latest version is returned.

        Returns
        -------
        VersionedRecord or VersionedRecordWithHeaders or None
            The version; ``None`` if the key had no value then.
        """
        began = perf_counter_ns()
        raw_key = self._read_key(key)
        stored = self.inner.get(raw_key) if as_of is None else self.inner.get_as_of(raw_key, as_of)
        found = self._found(raw_key, stored)
        self._timers["get" if as_of is None else "get_as_of"].add(perf_counter_ns() - began)
        return found

    def versions(
        self, key: K, time_from: int | None = None, time_to: int | None = None, *, ascending: bool = False
    ) -> StoreIterator[K, R]:
        """Give the versions of a key that were valid at some time between two, the latest first unless told otherwise."""
        began = perf_counter_ns()
        raw_key = self._read_key(key)

        def row(raw: bytes, stored: VersionedBytes) -> tuple[K, Any]:
            return key, self._record(raw, stored)

        found = self.inner.versions(raw_key, time_from, time_to, ascending)
        self._timers["versions"].add(perf_counter_ns() - began)
        return MeteredIterator(self, found, row)

    def _found(self, raw_key: bytes, stored: VersionedBytes | None) -> R | None:
        return None if stored is None else self._record(raw_key, stored)

    def _record(self, raw_key: bytes, stored: VersionedBytes) -> R | None:
        raise NotImplementedError


class VersionedKeyValueStore(_Versioned[K, V, VersionedRecord[V]], Generic[K, V]):
    """A store that keeps earlier values of a key.

    As in Kafka Streams, :meth:`get` and :meth:`delete` leave ``valid_to`` of the version unset. :meth:`versions` sets it.
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
        not_null(key)
        valid_to: int
        if value is None:
            valid_to = self._tombstone(lambda raw_key: self.inner.put(raw_key, None, timestamp), key)
        else:
            raw_key = self._raw_key(key, self.context.current().headers)
            valid_to = self.inner.put(raw_key, self._raw_value(value), timestamp)
        self._timers["put"].add(perf_counter_ns() - began)
        return valid_to

    def _found(self, raw_key: bytes, stored: VersionedBytes | None) -> VersionedRecord[V] | None:
        return super()._found(raw_key, stored and stored._replace(valid_to=None))

    def _record(self, raw_key: bytes, stored: VersionedBytes) -> VersionedRecord[V] | None:
        value = self._value(raw_key, stored.value)
        return None if value is None else VersionedRecord(value, stored.timestamp, stored.valid_to)


class VersionedKeyValueStoreWithHeaders(_Versioned[K, V, VersionedRecordWithHeaders[V]], Generic[K, V]):
    """A store that keeps earlier values of a key, with their headers."""

    wrap_serde = AggregationWithHeadersSerde
    keeps_headers = True

    def put(self, key: K, value: V | None, timestamp: int, headers: Any = None) -> int:
        """Put a version; parameters and result are those of :meth:`VersionedKeyValueStore.put`, and one more.

        Parameters
        ----------
        key, value, timestamp
            As there.
        headers : Headers, optional
            The headers of the version; none by default. A version without a value has none in the store; in the
            changelog it has these, and by default those of the record at hand.
        """
        began = perf_counter_ns()
        not_null(key)
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

    def _record(self, raw_key: bytes, stored: VersionedBytes) -> VersionedRecordWithHeaders[V] | None:
        value = self._value(raw_key, stored.value)
        if value.aggregation is None:
            return None
        return VersionedRecordWithHeaders(value.aggregation, stored.timestamp, value.headers, stored.valid_to)
