"""Rows by key and session, in memory: by end, then by key, then by start from the last to the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letterhead.state.base import ValueFormat, check_time
from letterhead.state.interfaces import MAX_TIME, ChangelogRecord, SessionKey, StoreIterator
from letterhead.state.keys import session_parts
from letterhead.state.memory.expiry import Expiry
from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.reads import SessionReads

__all__ = ["InMemorySessionStore"]


class InMemorySessionStore(InMemoryStore, SessionReads):
    """A session store in memory.

    Parameters
    ----------
    name : str
        Name of the store.
    retention : int
        How many milliseconds of the time of its records the store keeps.
    format : str, default "headers"
        What values have beside the payload.
    """

    def __init__(self, name: str, retention: int, *, format: ValueFormat = "headers") -> None:
        super().__init__(name, format)
        self.retention = retention
        self.segment_interval = 1
        self._rows: SortedMap[int, SortedMap[bytes, SortedMap[int, bytes]]] = SortedMap()
        self._expiry = Expiry(retention)

    def put(self, key: SessionKey, value: bytes | None) -> None:
        """Write a row; ``None`` removes it. One that is too old is dropped."""
        self._check_open()
        check_time(key.end)
        check_time(key.start)
        if not self._put(key, value):
            self._expired("segment")
        self._update_position()

    def remove(self, key: SessionKey) -> None:
        """Remove a row."""
        self._check_open()
        keys = self._rows.get(key.end)
        starts = None if keys is None else keys.get(key.key)
        if keys is None or starts is None:
            return
        starts.remove(key.start)
        if not starts:
            del keys[key.key]
        if not keys:
            del self._rows[key.end]

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Read a row."""
        self._expire()
        keys = self._rows.get(end) if self._expiry.is_live(end) else None
        starts = None if keys is None else keys.get(key)
        return None if starts is None else starts.get(start)

    def find_sessions_time(self, earliest_end: int, latest_end: int) -> StoreIterator[SessionKey, bytes]:
        """Read the sessions that end between two times, both included.

        Raises
        ------
        ValueError
            If the earliest is later than the latest.
        """
        if earliest_end > latest_end:
            raise ValueError("inconsistent range")
        return self._scan(None, None, earliest_end, MAX_TIME, latest_end=latest_end)

    def fetch_range(self, key_from: bytes | None, key_to: bytes | None) -> StoreIterator[SessionKey, bytes]:
        """Read all sessions of all keys between two; ``None`` is no bound.

        Raises
        ------
        ValueError
            If the first key is larger than the last, and there are sessions.
        """
        self._check_range(key_from, key_to)
        return super().fetch_range(key_from, key_to)

    def backward_fetch_range(self, key_from: bytes | None, key_to: bytes | None) -> StoreIterator[SessionKey, bytes]:
        """Read the same rows from the last to the first.

        Raises
        ------
        ValueError
            If the first key is larger than the last, and there are sessions.
        """
        self._check_range(key_from, key_to)
        return super().backward_fetch_range(key_from, key_to)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Put back what a changelog holds."""
        self._check_open()
        for record in records:
            self._put(session_parts(record.key), record.value)

    def _put(self, key: SessionKey, value: bytes | None) -> bool:
        """Write a row if its time is still kept, and say whether it is."""
        self._expire()
        if not self._expiry.observe(key.end):
            return False
        if value is None:
            self.remove(key)
            return True
        keys = self._rows.get(key.end)
        if keys is None:
            keys = self._rows[key.end] = SortedMap()
        starts = keys.get(key.key)
        if starts is None:
            starts = keys[key.key] = SortedMap()
        starts[key.start] = value
        return True

    def _scan(
        self,
        key_from: bytes | None,
        key_to: bytes | None,
        earliest_end: int,
        latest_start: int,
        *,
        latest_end: int | None = None,
        backward: bool = False,
    ) -> StoreIterator[SessionKey, bytes]:
        self._expire()
        ends = self._rows.between(earliest_end, latest_end)
        oldest = ends[0] if ends else MAX_TIME
        if key_from is not None and key_to is not None and key_from > key_to:
            ends = []
        if backward:
            ends.reverse()
        return self._expiry.hold(self._iterate(self._read(ends, key_from, key_to, latest_start, backward)), oldest)

    def _read(
        self, ends: list[int], key_from: bytes | None, key_to: bytes | None, latest_start: int, backward: bool
    ) -> Iterator[tuple[SessionKey, bytes]]:
        for end in ends:
            rows = self._rows.get(end)
            if rows is None:
                continue
            keys = rows.between(key_from, key_to)
            if backward:
                keys.reverse()
            for key in keys:
                sessions = rows.get(key)
                if sessions is None:
                    continue
                starts = sessions.between(None, latest_start)
                if not backward:
                    starts.reverse()
                for start in starts:
                    value = sessions.get(start)
                    if value is not None:
                        yield SessionKey(key, start, end), value

    def _check_range(self, key_from: bytes | None, key_to: bytes | None) -> None:
        self._expire()
        if key_from is not None and key_to is not None and key_from > key_to and self._rows:
            raise ValueError("inconsistent range")

    def _expire(self) -> None:
        self._check_open()
        for end in self._rows.between(None, self._expiry.bound() - 1):
            del self._rows[end]

    def _clear(self) -> None:
        self._rows.clear()
        self._expiry = Expiry(self.retention)
