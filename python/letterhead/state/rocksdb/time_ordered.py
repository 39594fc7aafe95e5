"""Window and session stores whose rows are in the order of time, as emitting closed windows wants them.

A segment holds two kinds of keys: the rows, by time, and an index by key, whose values are empty. Both are written in
one batch. What asks for keys goes through the index; what asks for times reads the rows. A store without the index writes
half as many keys, and looks through all rows of the times when it is asked for keys: they come by time then.

Whether there is an index is not in the files. A segment that was written without one gets it when it is opened by a store
that has one, and loses it when it is opened by one that would not keep it up; Kafka Streams would miss rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from letterhead.errors import DamagedRowError
from letterhead.state.base import ValueFormat
from letterhead.state.interfaces import StoreIterator
from letterhead.state.reads import Scan
from letterhead.state.rocksdb.segmented import SegmentedStore, each_row
from letterhead.state.rocksdb.session import RocksDBSessionStore
from letterhead.state.rocksdb.window import RocksDBWindowStore
from letterhead.storage.database import Database
from letterhead.storage.keys import (
    MAX_TIME,
    SessionKey,
    TimeOrderedKeys,
    TimeOrderedSessionKeys,
    TimeOrderedWindowKeys,
    WindowedKey,
)
from letterhead.storage.layouts import PLAIN, TIME_ORDERED_HEADERS, Layout

__all__ = ["RocksDBTimeOrderedSessionStore", "RocksDBTimeOrderedWindowStore"]

K = TypeVar("K")

INDEX = b"\1"
AFTER_INDEX = b"\2"


class _TimeOrdered(SegmentedStore[K], Generic[K]):
    _by_time: type[TimeOrderedKeys]

    def __init__(self, *given: Any, with_index: bool = True, **named: Any) -> None:
        super().__init__(*given, **named)
        self.with_index = with_index

    def _row_key(self, stored: bytes) -> bytes:
        return self._by_time.row(stored)

    def _changes(self, stored: bytes, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
        row = self._by_time.row(stored), value
        if not self.with_index:
            return [row]
        return [(self._by_time.index(stored), None if value is None else b""), row]

    def _write(self, segment: Database, stored: bytes, value: bytes | None) -> None:
        segment.rows.write(self._changes(stored, value))

    def scan(self, asked: Scan) -> StoreIterator[K, bytes]:
        """Return the rows of a scan: one by time in the order of the rows, others through the index."""
        if not asked.by_time:
            return super().scan(asked)
        self._check_open()
        time_from, time_to = self._earliest(asked.time_from), min(asked.time_to, MAX_TIME)
        if time_to < time_from:
            return self._iterate(iter(()))
        segments = self._open_segments().between(time_from, time_to, backward=asked.backward)
        return self._iterate(self._read_times(segments, time_from, time_to, None, asked.backward))

    def _earliest(self, time_from: int) -> int:
        """Return from when on a scan by time finds rows."""
        return time_from

    def _read(self, segments: list[Database], asked: Scan) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        bounds, backward = asked[1:5], asked.backward

        def holds(stored: bytes) -> bool:
            return self._keys.holds(stored, *bounds)

        if self.with_index:
            first, last = self._between(asked)
            lowest, highest = INDEX + (first or b""), AFTER_INDEX if last is None else INDEX + last
            return self._read_index(segments, lowest, highest, holds, backward)
        latest = asked.time_to if self._keys.bounded_by_start else MAX_TIME
        return self._read_times(segments, asked.time_from, latest, holds, backward)

    def _read_index(
        self, segments: list[Database], lowest: bytes, highest: bytes, holds: Callable[[bytes], bool], backward: bool
    ) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        least = 1 + self._keys.suffix
        for segment in segments:
            for entry, _ in each_row(segment, lowest, highest, backward):
                stored = entry[1:]
                if len(entry) < least:
                    yield self._damaged(entry, least)
                    continue
                if not holds(stored):
                    continue
                value = segment.rows.get(self._by_time.row(stored))
                if value is None:
                    segment.rows.put(entry, None)  # Kafka Streams leaves entries behind whose row is gone
                else:
                    yield self._key_of(stored), value

    def _read_times(
        self,
        segments: list[Database],
        time_from: int,
        time_to: int,
        holds: Callable[[bytes], bool] | None,
        backward: bool,
    ) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        least = 1 + self._keys.suffix
        for segment in segments:
            for row, value in each_row(segment, self._by_time.rows_from(time_from), INDEX, backward):
                if len(row) < least:
                    yield self._damaged(row, least)
                    continue
                stored = self._by_time.of_row(row)
                at = self._keys.time(stored)
                if at > time_to:
                    if backward:
                        continue
                    break
                if at >= time_from and (holds is None or holds(stored)):
                    yield self._key_of(stored), value

    def _open_files(self, directory: Path) -> None:
        super()._open_files(directory)
        for segment in self._databases():
            self._match_index(segment)

    def _match_index(self, segment: Database) -> None:
        """Make the index of a segment, or remove it, as the store is to have one or not: all of it in one batch."""
        entry = segment.rows.key_from(INDEX)
        indexed = entry is not None and entry.startswith(INDEX)
        if indexed and not self.with_index:
            segment.rows.delete_range(INDEX, AFTER_INDEX)
        elif self.with_index and not indexed:
            least, by_time = 1 + self._keys.suffix, self._by_time
            rows = (row for row, _ in segment.rows.scan(None, INDEX) if len(row) >= least)
            segment.rows.write([(by_time.index(by_time.of_row(row)), b"") for row in rows])


class RocksDBTimeOrderedWindowStore(_TimeOrdered[WindowedKey], RocksDBWindowStore):
    """A window store in RocksDB with its rows in the order of time.

    It keeps rows a millisecond longer than the other, as in Kafka Streams.

    Parameters
    ----------
    *given, **named
        Those of the other.
    with_index : bool, default True
        Whether there is an index by key.
    """

    _by_time = TimeOrderedWindowKeys

    def _oldest(self) -> int:
        return self._observed - self.retention

    def _earliest(self, time_from: int) -> int:
        return max(time_from, self._oldest())

    def _layout_of(self, format: ValueFormat) -> Layout:
        return TIME_ORDERED_HEADERS if format == "headers" else PLAIN


class RocksDBTimeOrderedSessionStore(_TimeOrdered[SessionKey], RocksDBSessionStore):
    """A session store in RocksDB with its rows in the order of time.

    It keeps the headers, which the one of Kafka Streams loses, and finds sessions by their end up to the last
    millisecond that there is.

    Parameters
    ----------
    *given, **named
        Those of the other.
    with_index : bool, default True
        Whether there is an index by key.
    """

    _by_time = TimeOrderedSessionKeys

    def scan(self, asked: Scan) -> StoreIterator[SessionKey, bytes]:
        """Return the rows of a scan."""
        return _TimeOrdered.scan(self, asked)
