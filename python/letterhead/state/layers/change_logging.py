"""The layer that writes every change to the store's changelog, as the older stores do, and with the headers of the row.

A change goes to the store first and to the changelog then; what the changelog could not take is refused before either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from letterhead.errors import InvalidTimestampError
from letterhead.headers import Headers
from letterhead.state.context import StoreContext, changelog_topic, with_position
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.layers.base import Layer
from letterhead.state.record import RecordContext
from letterhead.storage import keys
from letterhead.storage.keys import SessionKey

__all__ = [
    "ChangeLogging",
    "ChangeLoggingKeyValueStore",
    "ChangeLoggingSessionStore",
    "ChangeLoggingVersionedStore",
    "ChangeLoggingWindowStore",
    "Split",
]

Parts: TypeAlias = tuple[bytes | None, int, Headers]
Split: TypeAlias = Callable[[bytes, RecordContext], Parts]
"""Takes a stored value apart: the plain value, the timestamp and the headers that its record has in the changelog."""


class ChangeLogging(Layer):
    """What is common to all four.

    Parameters
    ----------
    inner : store
        The store below.
    split : callable
        Takes a stored value apart.
    headers : bool
        Whether the store keeps headers. Tombstones of those that do not have none in the changelog.
    """

    def __init__(self, inner: Any, split: Split, *, headers: bool) -> None:
        super().__init__(inner)
        self._split = split
        self._headers = headers

    def open(self, directory: Path | None, context: StoreContext) -> None:
        """Open the store below."""
        super().open(directory, context)
        self._topic = changelog_topic(context.application_id, self.name)

    def _parts(self, value: bytes | None) -> Parts:
        record = self.context.record or self.context.current()
        if value is not None:
            parts = self._split(value, record)
        else:
            parts = None, record.timestamp, Headers(record.headers) if self._headers else Headers()
        if parts[1] < 0:
            raise _refused(parts[1])
        return parts

    def check(self, value: bytes) -> None:
        """Refuse a value that cannot be logged, so that a cache need not hold it.

        Raises
        ------
        InvalidTimestampError
            If its timestamp is negative.
        """
        self._parts(value)

    def _log(self, key: bytes, parts: Parts) -> None:
        context = self.context
        value, timestamp, headers = parts
        if context.consistency_vectors:
            headers = with_position(headers, self.inner.position)
        record = _new_record(ChangelogRecord, (key, value, timestamp, headers))
        context.changelog.send(self._topic, context.partition, record)


_new_record = tuple.__new__  # what the class of a named tuple does, without a call of its own


class ChangeLoggingKeyValueStore(ChangeLogging):
    """Logs the changes of a key-value store."""

    passes = ("scan", "get", "approximate_num_entries")

    def put(self, key: bytes, value: bytes | None, parts: Parts | None = None) -> None:
        """Put a value, or delete the key.

        A layer that has just put the value together can say what it is made of: it need not be taken apart again.
        """
        if parts is None:
            parts = self._parts(value)
        elif parts[1] < 0:
            raise _refused(parts[1])
        self.inner.put(key, value)
        self._log(key, parts)

    def put_if_absent(self, key: bytes, value: bytes | None) -> bytes | None:
        """Put a value if the key has none; logged only then."""
        parts = self._parts(value)
        before: bytes | None = self.inner.put_if_absent(key, value)
        if before is None:
            self._log(key, parts)
        return before

    def put_all(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Put many values; each is logged."""
        entries = list(entries)
        parts = [(key, self._parts(value)) for key, value in entries]
        self.inner.put_all(entries)
        for key, of in parts:
            self._log(key, of)

    def delete(self, key: bytes) -> bytes | None:
        """Delete a key; logged even if it had no value."""
        parts = self._parts(None)
        before: bytes | None = self.inner.delete(key)
        self._log(key, parts)
        return before


class ChangeLoggingWindowStore(ChangeLogging):
    """Logs the changes of a window store.

    Where a store keeps duplicates, its keys are numbered, and those in the changelog have the same numbers: a null,
    which such a store ignores, is not logged and does not count.
    """

    passes = ("scan", "fetch")

    def __init__(self, inner: Any, split: Split, *, headers: bool, retain_duplicates: bool) -> None:
        super().__init__(inner, split, headers=headers)
        self._retain_duplicates = retain_duplicates
        self._sequence = 0

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Put the value of a window, or delete it."""
        parts = self._parts(value)
        self.inner.put(key, value, start)
        if self._retain_duplicates:
            if value is None:
                return
            self._sequence = (self._sequence + 1) & 0x7FFFFFFF
        self._log(keys.window_key(key, start, self._sequence), parts)


class ChangeLoggingSessionStore(ChangeLogging):
    """Logs the changes of a session store."""

    passes = ("scan", "fetch_session")

    def put(self, session: SessionKey, value: bytes | None) -> None:
        """Put the aggregation of a session, or delete it."""
        parts = self._parts(value)
        self.inner.put(session, value)
        self._log(keys.session_key(session.key, session.start, session.end), parts)

    def remove(self, session: SessionKey) -> None:
        """Delete a session."""
        parts = self._parts(None)
        self.inner.remove(session)
        self._log(keys.session_key(session.key, session.start, session.end), parts)


class ChangeLoggingVersionedStore(ChangeLogging):
    """Logs the changes of a versioned store; the timestamp of a record is that of its version."""

    passes = ("get", "get_as_of", "versions")

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Put a version, or a tombstone; gives until when it is valid."""
        parts = self._at(value, timestamp)
        valid_to: int = self.inner.put(key, value, timestamp)
        self._log(key, parts)
        return valid_to

    def delete(self, key: bytes, timestamp: int) -> Any:
        """Put a tombstone; gives the version that was valid before."""
        parts = self._at(None, timestamp)
        before = self.inner.delete(key, timestamp)
        self._log(key, parts)
        return before

    def _at(self, value: bytes | None, timestamp: int) -> Parts:
        if timestamp < 0:
            raise InvalidTimestampError(timestamp)
        plain, _, headers = self._parts(value)
        return plain, timestamp, headers


def _refused(timestamp: int) -> InvalidTimestampError:
    error = InvalidTimestampError(timestamp)
    if timestamp == -1:
        error.add_note(
            "rows of an upgraded store that had no timestamps are read with the timestamp -1: "
            "put such a value with a timestamp of its own, for example that of the record being processed"
        )
    return error
