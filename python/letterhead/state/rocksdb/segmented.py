"""Rows with a time, in segments: what window and session stores do alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from letterhead.errors import DamagedRowError, DecodeError
from letterhead.state.base import ValueFormat, check_time
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.reads import Scan
from letterhead.state.rocksdb.store import PersistentStore
from letterhead.storage.database import Database, RocksDBOptions
from letterhead.storage.keys import MAX_TIME, KeySchema, Range
from letterhead.storage.layouts import Layout
from letterhead.storage.segments import Segments, segment_interval

__all__ = ["SegmentedStore"]

K = TypeVar("K")


class SegmentedStore(PersistentStore, Generic[K]):
    """A store whose rows are in segments of time. Rows come by segment, and in a segment by their stored keys.

    Parameters
    ----------
    name : str
        Name of the store.
    retention : int
        How many milliseconds of the time of its records the store keeps.
    interval : int, optional
        Length of a segment in milliseconds.
    format : str
        What values have beside the payload.
    layout : Layout
        The families of the databases.
    keys : type of KeySchema
        How keys are laid out.
    options : RocksDBOptions, optional
        How to open the databases.
    """

    def __init__(
        self,
        name: str,
        retention: int,
        interval: int | None,
        format: ValueFormat,
        layout: Layout,
        keys: type[KeySchema],
        options: RocksDBOptions | None,
    ) -> None:
        super().__init__(name, format, options)
        self.retention = retention
        self.segment_interval = interval or segment_interval(retention)
        self._layout = layout
        self._keys = keys
        self._segments: Segments | None = None
        self._observed = -1

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Put back what a changelog holds, in one batch for each segment.

        Raises
        ------
        DamagedRowError
            If the key of a record has no time; nothing is put back then.
        """
        self._check_open()
        records = list(records)
        for record in records:
            if len(record.key) < self._keys.suffix:
                raise self._damaged(record.key, self._keys.suffix)
        self._observed = max([self._observed, *(self._keys.time(record.key) for record in records)])
        changes: dict[Database, list[tuple[bytes, bytes | None]]] = {}
        for record in records:
            segment = self._open_segments().live(self._keys.time(record.key), self._observed)
            if segment is not None:
                changes.setdefault(segment, []).extend(self._changes(record.key, record.value))
        for segment, rows in changes.items():
            segment.rows.write(rows)

    # Rows by the keys that changelogs have.

    def _put_stored(self, stored: bytes, value: bytes | None) -> None:
        self._check_open()
        time = self._keys.time(stored)
        check_time(time)
        self._observed = max(self._observed, time)
        segment = self._open_segments().live(time, self._observed)
        if segment is None:
            self._expired("segment")
            return
        self._update_position()
        self._write(segment, stored, value)

    def _remove_stored(self, stored: bytes) -> None:
        self._check_open()
        time = self._keys.time(stored)
        self._observed = max(self._observed, time)
        segment = self._open_segments().of(time)
        if segment is not None:
            self._write(segment, stored, None)

    def _get_stored(self, stored: bytes) -> bytes | None:
        self._check_open()
        time = self._keys.time(stored)
        segment = self._open_segments().of(time) if time >= self._oldest() else None
        return None if segment is None else segment.rows.get(self._row_key(stored))

    def scan(self, asked: Scan) -> StoreIterator[K, bytes]:
        """Return the rows of a scan."""
        self._check_open()
        time_from, time_to = max(asked.time_from, self._oldest()), min(asked.time_to, MAX_TIME)
        by_start = self._keys.bounded_by_start
        if (by_start and time_to < time_from) or time_to < 0 or time_from > MAX_TIME or asked.is_reversed:
            return self._iterate(iter(()))
        segments = self._open_segments().between(time_from, time_to if by_start else None, backward=asked.backward)
        return self._iterate(self._read(segments, asked._replace(time_from=time_from, time_to=time_to)))

    def _read(self, segments: list[Database], asked: Scan) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        bounds = asked[1:5]
        first, last = self._between(asked)
        key_of, holds, suffix = self._key_of, self._keys.holds, self._keys.suffix
        for segment in segments:
            for stored, value in each_row(segment, first, last, asked.backward):
                if len(stored) < suffix:
                    yield self._damaged(stored, suffix)
                elif holds(stored, *bounds):
                    yield key_of(stored), value

    def _between(self, asked: Scan) -> Range:
        if asked.one_key:
            return self._keys.fixed(asked.key_from, asked.time_from, asked.time_to)
        return self._keys.between(*asked[1:5])

    def _key_of(self, stored: bytes) -> K:
        """Make the key of a row as the store gives it."""
        raise NotImplementedError

    def _damaged(self, stored: bytes, least: int) -> DamagedRowError:
        """Make the error for a key that is too short to say its time."""
        reason = f"a stored key of {len(stored)} bytes is too short: it has {least} at least"
        error = DecodeError(reason, format=None, code="truncated", byte_offset=len(stored))
        return DamagedRowError(self.name, stored, error)

    # What time-ordered stores do another way.

    def _oldest(self) -> int:
        """Give the oldest time whose rows can be read."""
        return self._observed - self.retention + 1

    def _row_key(self, stored: bytes) -> bytes:
        return stored

    def _changes(self, stored: bytes, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
        return [(stored, value)]

    def _write(self, segment: Database, stored: bytes, value: bytes | None) -> None:
        segment.rows.put(stored, value)

    # Files.

    def _open_segments(self) -> Segments:
        assert self._segments is not None
        return self._segments

    def _open_files(self, directory: Path) -> None:
        self._observed = -1
        self._segments = Segments(
            self.name, directory / self.name, self.retention, self.segment_interval, self._layout, self._options
        )

    def _close_files(self) -> None:
        if self._segments is not None:
            segments, self._segments = self._segments, None
            segments.close()

    def _databases(self) -> list[Database]:
        return [] if self._segments is None else self._segments.all()


def each_row(
    segment: Database, first: bytes | None, last: bytes | None, backward: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Read rows of a segment, for as long as it is there: it is removed when time has moved past it."""
    if not segment.is_open:
        return
    rows = segment.rows.scan(first, last, backward=backward)
    while segment.is_open:
        row = next(rows, None)
        if row is None:
            return
        yield row
