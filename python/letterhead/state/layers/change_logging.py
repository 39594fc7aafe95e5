"""Layer that writes every change of a store to its changelog topic.

A change is written to the store first and then to the changelog. A change that cannot be written to the changelog is
rejected before both writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from letterhead.errors import InvalidTimestampError
from letterhead.headers import Headers
from letterhead.state.context import StoreContext, changelog_topic, with_position
from letterhead.state.converters import ChangelogFields, Split
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.layers.base import Layer
from letterhead.state.storage import keys
from letterhead.state.storage.keys import SessionKey

__all__ = [
    "ChangeLogging",
    "ChangeLoggingKeyValueStore",
    "ChangeLoggingSessionStore",
    "ChangeLoggingVersionedStore",
    "ChangeLoggingWindowStore",
]


class ChangeLogging(Layer):
    """Base class of the layers for the four types of stores; it has no read methods, because reads skip these layers.

    ``headers`` is whether the store keeps headers; if not, tombstones in the changelog have none.
    """

    _answers_reads = False

    def __init__(self, inner: Any, split: Split, *, headers: bool, retain_duplicates: bool = False) -> None:
        super().__init__(inner)
        self.retain_duplicates = retain_duplicates
        self._split = split
        self._headers = headers

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store."""
        super().open(directory, context)
        self._topic = changelog_topic(context.application_id, self.name)

    def _fields(self, value: bytes | None) -> ChangelogFields:
        record = self.context.record or self.context.current()
        if value is not None:
            fields = self._split(value, record)
        else:
            fields = None, record.timestamp, Headers(record.headers) if self._headers else Headers()
        _, timestamp, _ = fields
        if timestamp < 0:
            raise _negative_timestamp_error(timestamp)
        return fields

    def check(self, value: bytes) -> None:
        """Raise an :class:`InvalidTimestampError` for a value that cannot be logged, before it enters a cache."""
        self._fields(value)

    def _change(self, key: bytes, fields: ChangelogFields, write: Callable[..., Any], *arguments: Any) -> Any:
        """Write to the store, log the change, and return the result of the write."""
        result = write(*arguments)
        self._log(key, fields)
        return result

    def _log(self, key: bytes, fields: ChangelogFields) -> None:
        context = self.context
        value, timestamp, headers = fields
        if context.consistency_vectors:
            headers = with_position(headers, self.inner.position)
        record = _new_record(ChangelogRecord, (key, value, timestamp, headers))
        context.changelog.send(self._topic, context.partition, record)


_new_record = tuple.__new__  # faster than ChangelogRecord(...), which adds a Python call to each write


class ChangeLoggingKeyValueStore(ChangeLogging):
    """Layer that logs the changes of a key-value store."""

    def put(self, key: bytes, value: bytes | None, fields: ChangelogFields | None = None) -> None:
        """Put a value, or delete the key; ``fields`` are the fields of the value, if the caller has already split it."""
        if fields is None:
            fields = self._fields(value)
        else:
            _, timestamp, _ = fields
            if timestamp < 0:
                raise _negative_timestamp_error(timestamp)
        self.inner.put(key, value)
        self._log(key, fields)

    def put_if_absent(self, key: bytes, value: bytes | None) -> bytes | None:
        """Put a value and log the change, if the key has no value."""
        fields = self._fields(value)
        before: bytes | None = self.inner.put_if_absent(key, value)
        if before is None:
            self._log(key, fields)
        return before

    def put_all(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Put many values, and log each change."""
        entries = list(entries)
        changes = [(key, self._fields(value)) for key, value in entries]
        self.inner.put_all(entries)
        for key, fields in changes:
            self._log(key, fields)

    def delete(self, key: bytes) -> bytes | None:
        """Delete a key, and log a tombstone even if the key had no value."""
        before: bytes | None = self._change(key, self._fields(None), self.inner.delete, key)
        return before


class ChangeLoggingWindowStore(ChangeLogging):
    """Layer that logs the changes of a window store.

    A store with duplicates adds sequence numbers to its keys, and keys in the changelog have the same numbers. Such a store
    ignores null values, so they are neither logged nor numbered.
    """

    _sequence = 0

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Put the value of a window, or delete it."""
        fields = self._fields(value)
        self.inner.put(key, value, start)
        if self.retain_duplicates:
            if value is None:
                return
            self._sequence = (self._sequence + 1) & keys.MAX_SEQUENCE
        self._log(keys.window_key(key, start, self._sequence), fields)


class ChangeLoggingSessionStore(ChangeLogging):
    """Layer that logs the changes of a session store."""

    def put(self, session: SessionKey, value: bytes | None) -> None:
        """Put the aggregation of a session, or delete it."""
        self._change(keys.session_key(*session), self._fields(value), self.inner.put, session, value)

    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        self._change(keys.session_key(*session), self._fields(None), self.inner.remove, session)


class ChangeLoggingVersionedStore(ChangeLogging):
    """Layer that logs the changes of a versioned store; each record has the timestamp of its version."""

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> Any:
        """Put a version, or a tombstone; return the end of its validity."""
        return self._change(key, self._fields_at(value, timestamp), self.inner.put, key, value, timestamp)

    def delete(self, key: bytes, timestamp: int) -> Any:
        """Put a tombstone; return the version that was valid before."""
        return self._change(key, self._fields_at(None, timestamp), self.inner.delete, key, timestamp)

    def _fields_at(self, value: bytes | None, timestamp: int) -> ChangelogFields:
        if timestamp < 0:
            raise InvalidTimestampError(timestamp)
        plain, _, headers = self._fields(value)
        return plain, timestamp, headers


def _negative_timestamp_error(timestamp: int) -> InvalidTimestampError:
    error = InvalidTimestampError(timestamp)
    if timestamp == -1:
        error.add_note(
            "rows of an upgraded store that had no timestamps are read with the timestamp -1: "
            "put such a value with a timestamp of its own, for example the timestamp of the current record"
        )
    return error
