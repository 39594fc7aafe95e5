"""Rows by key and session, in memory: by end, then by key, then by start from the last to the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letterhead.state.base import ValueFormat, check_time
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.memory.expiry import Expiry
from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.reads import Scan, SessionReads
from letterhead.storage.keys import MAX_TIME, SessionKey, session_parts

__all__ = ["InMemorySessionStore"]


class InMemorySessionStore(InMemoryStore, SessionReads[bytes, bytes]):
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

    def scan(self, asked: Scan) -> StoreIterator[SessionKey, bytes]:
        """Return the rows of a scan.

        Raises
        ------
        ValueError
            If the earliest end is later than the latest; or if ``fetch_range`` is given a first key that is larger than
            the last, and there are sessions.
        """
        if asked.by_time and asked.time_from > asked.time_to:
            raise ValueError("inconsistent range")
        self._expire()
        if asked.operation == "fetch" and asked.is_reversed and self._rows:
            raise ValueError("inconsistent range")
        ends = self._rows.between(asked.time_from, asked.time_to if asked.by_time else None)
        oldest = ends[0] if ends else MAX_TIME
        if asked.is_reversed:
            ends = []
        if asked.backward:
            ends.reverse()
        return self._expiry.hold(self._iterate(self._read(ends, asked)), oldest)

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

    def _read(self, ends: list[int], asked: Scan) -> Iterator[tuple[SessionKey, bytes]]:
        latest_start = MAX_TIME if asked.by_time else asked.time_to
        for end in ends:
            rows = self._rows.get(end)
            if rows is None:
                continue
            keys = rows.between(asked.key_from, asked.key_to)
            if asked.backward:
                keys.reverse()
            for key in keys:
                sessions = rows.get(key)
                if sessions is None:
                    continue
                starts = sessions.between(None, latest_start)
                if not asked.backward:
                    starts.reverse()
                for start in starts:
                    value = sessions.get(start)
                    if value is not None:
                        yield SessionKey(key, start, end), value

    def _expire(self) -> None:
        self._check_open()
        for end in self._rows.between(None, self._expiry.bound() - 1):
            del self._rows[end]

    def _clear(self) -> None:
        self._rows.clear()
        self._expiry = Expiry(self.retention)
