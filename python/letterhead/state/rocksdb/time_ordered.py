"""Window and session stores in RocksDB with time-ordered rows, for emitting closed windows.

A segment contains rows, with keys that begin with the time, and an index by key, with empty values. Both are written in
one batch. Scans by key use the index; scans by time read the rows. A store without an index writes half as many keys, but
a scan by key has to read all rows in its time range, and returns rows in order of time.

The files do not record whether there is an index. With ``with_index``, a missing index is built when a segment is opened;
without it, an existing index is removed, because it would not be maintained. (Kafka Streams would miss rows.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from letterhead.errors import DamagedRowError
from letterhead.state.interfaces import StoreIterator
from letterhead.state.reads import StoreScan
from letterhead.state.rocksdb.segmented import RocksDBSessionStore, RocksDBWindowStore, SegmentedStore, rows_of_segment
from letterhead.state.storage.database import Database
from letterhead.state.storage.keys import (
    AFTER_INDEX,
    INDEX,
    MAX_TIME,
    SessionKey,
    TimeOrderedKeys,
    TimeOrderedSessionKeys,
    TimeOrderedWindowKeys,
    WindowedKey,
)

__all__ = ["RocksDBTimeOrderedSessionStore", "RocksDBTimeOrderedWindowStore"]

K = TypeVar("K")


class _TimeOrdered(SegmentedStore[K], Generic[K]):
    _by_time: type[TimeOrderedKeys]

    def __init__(self, *args: Any, with_index: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.with_index = with_index

    def _row_key(self, stored_key: bytes) -> bytes:
        return self._by_time.row(stored_key)

    def _changes(self, stored_key: bytes, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
        row = self._by_time.row(stored_key), value
        if not self.with_index:
            return [row]
        return [(self._by_time.index(stored_key), None if value is None else b""), row]

    def _write(self, segment: Database, stored_key: bytes, value: bytes | None) -> None:
        segment.rows.write(self._changes(stored_key, value))

    def scan(self, query: StoreScan) -> StoreIterator[K, bytes]:
        """Return the rows of a scan."""
        if not query.by_time:
            return super().scan(query)
        self._check_open()
        time_from, time_to = self._earliest(query.time_from), min(query.time_to, MAX_TIME)
        if time_to < time_from:
            return self._iterate(iter(()))
        segments = self._open_segments().between(time_from, time_to, backward=query.backward)
        return self._iterate(self._read_times(segments, time_from, time_to, None, query.backward))

    def _earliest(self, time_from: int) -> int:
        """Return the start time for a scan by time."""
        return time_from

    def _read(self, segments: list[Database], query: StoreScan) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        bounds, backward = query.bounds, query.backward

        def contains(stored_key: bytes) -> bool:
            return self._keys.contains(stored_key, *bounds)

        if self.with_index:
            first, last = self._between(query)
            lowest, highest = INDEX + (first or b""), AFTER_INDEX if last is None else INDEX + last
            return self._read_index(segments, lowest, highest, contains, backward)
        latest = query.time_to if self._keys.bounded_by_start else MAX_TIME
        return self._read_times(segments, query.time_from, latest, contains, backward)

    def _read_index(
        self, segments: list[Database], lowest: bytes, highest: bytes, contains: Callable[[bytes], bool], backward: bool
    ) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        min_key_len = 1 + self._keys.suffix
        for segment in segments:
            for entry, _ in rows_of_segment(segment, lowest, highest, backward):
                stored_key = entry[1:]
                if len(entry) < min_key_len:
                    yield self._damaged_row_error(entry, min_key_len)
                    continue
                if not contains(stored_key):
                    continue
                value = segment.rows.get(self._by_time.row(stored_key))
                if value is None:
                    segment.rows.put(entry, None)  # Kafka Streams leaves index entries of deleted rows
                else:
                    yield self._key_of(stored_key), value

    def _read_times(
        self,
        segments: list[Database],
        time_from: int,
        time_to: int,
        contains: Callable[[bytes], bool] | None,
        backward: bool,
    ) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        min_key_len = 1 + self._keys.suffix
        for segment in segments:
            for row, value in rows_of_segment(segment, self._by_time.rows_from(time_from), INDEX, backward):
                if len(row) < min_key_len:
                    yield self._damaged_row_error(row, min_key_len)
                    continue
                stored_key = self._by_time.changelog_key(row)
                time = self._keys.time(stored_key)
                if time > time_to:
                    if backward:
                        continue
                    break
                if time >= time_from and (contains is None or contains(stored_key)):
                    yield self._key_of(stored_key), value

    def _open_files(self, directory: Path) -> None:
        super()._open_files(directory)
        for segment in self._databases():
            self._match_index(segment)

    def _match_index(self, segment: Database) -> None:
        """Build or remove the index of a segment in one batch, according to ``with_index``."""
        entry = segment.rows.key_from(INDEX)
        indexed = entry is not None and entry.startswith(INDEX)
        if indexed and not self.with_index:
            segment.rows.delete_range(INDEX, AFTER_INDEX)
        elif self.with_index and not indexed:
            min_key_len, by_time = 1 + self._keys.suffix, self._by_time
            rows = (row for row, _ in segment.rows.scan(None, INDEX) if len(row) >= min_key_len)
            segment.rows.write([(by_time.index(by_time.changelog_key(row)), b"") for row in rows])


class RocksDBTimeOrderedWindowStore(_TimeOrdered[WindowedKey], RocksDBWindowStore):
    """Time-ordered window store in RocksDB.

    Parameters are as in :class:`RocksDBWindowStore`, and ``with_index`` (default ``True``) for an index by key. As in Kafka
    Streams, rows are kept a millisecond longer than in :class:`RocksDBWindowStore`.
    """

    _by_time = TimeOrderedWindowKeys
    _store_type = "time-ordered-window"

    def _oldest(self) -> int:
        return self._observed - self.retention

    def _earliest(self, time_from: int) -> int:
        return max(time_from, self._oldest())


class RocksDBTimeOrderedSessionStore(_TimeOrdered[SessionKey], RocksDBSessionStore):
    """Time-ordered session store in RocksDB.

    Parameters are as in :class:`RocksDBSessionStore`, and ``with_index`` (default ``True``) for an index by key. With
    ``format="headers"``, the store uses the column family for headers but, like Kafka Streams 4.3 and 4.4, stores
    aggregations without headers in it: ``format`` becomes ``plain``, and headers are in the changelog only. Unlike Kafka
    Streams, it does not change rows of an older family, and finds sessions that end at any possible millisecond.
    """

    _by_time = TimeOrderedSessionKeys
    _store_type = "time-ordered-session"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.format = "plain"  # the layout has already been chosen by the requested format
