"""Rows by key and window, in memory: by start, then by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letterhead.state.base import ValueFormat, check_time
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.memory.expiry import Expiry
from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.reads import Scan, WindowReads
from letterhead.storage.keys import MAX_SEQUENCE, WindowedKey, window_parts, windowed

__all__ = ["InMemoryWindowStore"]


class InMemoryWindowStore(InMemoryStore, WindowReads[bytes, bytes]):
    """A window store in memory.

    Parameters
    ----------
    name : str
        Name of the store.
    retention : int
        How many milliseconds of the time of its records the store keeps.
    window_size : int
        Length of a window in milliseconds.
    retain_duplicates : bool, default False
        Keep every row of a key and window. ``fetch`` then finds none, as in Kafka Streams.
    format : str, default "headers"
        What values have beside the payload.
    """

    def __init__(
        self,
        name: str,
        retention: int,
        window_size: int,
        retain_duplicates: bool = False,
        *,
        format: ValueFormat = "headers",
    ) -> None:
        super().__init__(name, format)
        self.retention = retention
        self.window_size = window_size
        self.retain_duplicates = retain_duplicates
        self.segment_interval = 1
        self._rows: SortedMap[int, SortedMap[bytes, bytes]] = SortedMap()
        self._expiry = Expiry(retention)
        self._sequence = 0

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Write a row; ``None`` removes it. One that is too old is dropped."""
        self._check_open()
        check_time(start)
        if not self._put(key, value, start):
            self._expired("segment")
        self._update_position()

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Read a row."""
        self._expire()
        rows = self._rows.get(start) if self._expiry.is_live(start) else None
        return None if rows is None else rows.get(key)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Put back what a changelog holds."""
        self._check_open()
        for record in records:
            key, start, _ = window_parts(record.key)
            self._put(key, record.value, start)

    def _put(self, key: bytes, value: bytes | None, start: int) -> bool:
        """Write a row if its time is still kept, and say whether it is."""
        self._expire()
        if not self._expiry.observe(start):
            return False
        if self.retain_duplicates:
            if value is None:
                return True  # which of the rows would it remove?
            self._sequence = (self._sequence + 1) & MAX_SEQUENCE
            key = _with_sequence(key, self._sequence)
        rows = self._rows.get(start)
        if value is not None:
            if rows is None:
                rows = self._rows[start] = SortedMap()
            rows[key] = value
        elif rows is not None:
            rows.remove(key)
            if not rows:
                del self._rows[start]
        return True

    def scan(self, asked: Scan) -> StoreIterator[WindowedKey, bytes]:
        """Return the rows of a scan."""
        self._expire()
        first = max(asked.time_from, self._expiry.oldest())
        starts = [] if asked.is_reversed else self._rows.between(first, asked.time_to)
        if asked.backward:
            starts.reverse()
        return self._expiry.hold(self._iterate(self._read(starts, asked)), first)

    def _read(self, starts: list[int], asked: Scan) -> Iterator[tuple[WindowedKey, bytes]]:
        duplicates, key_from, key_to = self.retain_duplicates, asked.key_from, asked.key_to
        first = _with_sequence(key_from, 0) if duplicates and key_from is not None else key_from
        last = _with_sequence(key_to, MAX_SEQUENCE) if duplicates and key_to is not None else key_to
        for start in starts:
            rows = self._rows.get(start)
            if rows is None:
                continue
            keys = rows.between(first, last)
            if asked.backward:
                keys.reverse()
            for stored in keys:
                value = rows.get(stored)
                if value is None:
                    continue
                key = stored[:-4] if duplicates else stored
                # With a sequence behind it, a key that another begins with can stand after that one.
                if duplicates and ((key_from is not None and key < key_from) or (key_to is not None and key > key_to)):
                    continue
                yield windowed(key, start, self.window_size), value

    def _expire(self) -> None:
        self._check_open()
        for start in self._rows.between(None, self._expiry.bound() - 1):
            del self._rows[start]

    def _clear(self) -> None:
        self._rows.clear()
        self._expiry = Expiry(self.retention)
        self._sequence = 0


def _with_sequence(key: bytes, sequence: int) -> bytes:
    return key + sequence.to_bytes(4, "big")
