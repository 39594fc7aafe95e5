"""Window and session stores in RocksDB, with one database for each segment of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from letterhead._invariants import require
from letterhead.errors import DamagedRowError, DecodeError, UnsupportedOperationError
from letterhead.state.base import ValueFormat, check_session_format, check_time
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.reads import SessionReads, StoreScan, WindowReads
from letterhead.state.rocksdb.store import PersistentStore
from letterhead.state.storage.database import Database, RocksDBOptions
from letterhead.state.storage.keys import (
    MAX_SEQUENCE,
    MAX_TIME,
    KeySchema,
    SessionKey,
    SessionKeys,
    StoredRange,
    WindowedKey,
    WindowKeys,
    make_windowed,
    session_key,
    session_parts,
    window_key,
    window_parts,
)
from letterhead.state.storage.layouts import LAYOUTS
from letterhead.state.storage.segments import Segments, StoredSegments, segment_interval

__all__ = ["RocksDBSessionStore", "RocksDBWindowStore", "SegmentedStore", "rows_of_segment"]

K = TypeVar("K")


class SegmentedStore(PersistentStore, Generic[K]):
    """Base class of stores with time segments; rows are ordered by segment and then by stored key."""

    _keys: type[KeySchema]
    _store_type: ClassVar[str]

    def __init__(
        self, name: str, retention: int, interval: int | None, format: ValueFormat, options: RocksDBOptions | None
    ) -> None:
        super().__init__(name, format, options)
        self.retention = retention
        self.segment_interval = interval or segment_interval(retention)
        self._layout = LAYOUTS[self._store_type, format]
        self._segments: Segments[Any] | None = None
        self._observed = -1

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Write the records of a changelog, in one batch for each segment.

        Raises
        ------
        DamagedRowError
            If the key of a record is too short to contain a time; no records are written.
        """
        self._check_open()
        records = list(records)
        for record in records:
            if len(record.key) < self._keys.suffix:
                raise self._damaged_row_error(record.key, self._keys.suffix)
        self._observed = max([self._observed, *(self._keys.time(record.key) for record in records)])
        changes: dict[Database, list[tuple[bytes, bytes | None]]] = {}
        for record in records:
            segment = self._open_segments().live(self._keys.time(record.key), self._observed)
            if segment is not None:
                changes.setdefault(segment, []).extend(self._changes(record.key, record.value))
        for segment, rows in changes.items():
            segment.rows.write(rows)

    # Rows by changelog key.

    def _put_by_stored_key(self, stored_key: bytes, value: bytes | None) -> None:
        self._check_open()
        time = self._keys.time(stored_key)
        check_time(time)
        self._observed = max(self._observed, time)
        segment = self._open_segments().live(time, self._observed)
        if segment is None:
            self._count_expired("segment")
            return
        self._update_position()
        self._write(segment, stored_key, value)

    def _remove_by_stored_key(self, stored_key: bytes) -> None:
        self._check_open()
        time = self._keys.time(stored_key)
        self._observed = max(self._observed, time)
        segment = self._open_segments().at(time)
        if segment is not None:
            self._write(segment, stored_key, None)

    def _get_by_stored_key(self, stored_key: bytes) -> bytes | None:
        self._check_open()
        time = self._keys.time(stored_key)
        segment = self._open_segments().at(time) if time >= self._oldest() else None
        return None if segment is None else segment.rows.get(self._row_key(stored_key))

    def scan(self, query: StoreScan) -> StoreIterator[K, bytes]:
        """Return the rows of a scan."""
        self._check_open()
        time_from, time_to = max(query.time_from, self._oldest()), min(query.time_to, MAX_TIME)
        by_start = self._keys.bounded_by_start
        if (by_start and time_to < time_from) or time_to < 0 or time_from > MAX_TIME or query.is_reversed:
            return self._iterate(iter(()))
        segments = self._open_segments().between(time_from, time_to if by_start else None, backward=query.backward)
        return self._iterate(self._read(segments, query._replace(time_from=time_from, time_to=time_to)))

    def _read(self, segments: list[Database], query: StoreScan) -> Iterator[tuple[K, bytes] | DamagedRowError]:
        bounds = query.bounds
        first, last = self._between(query)
        key_of, contains, suffix = self._key_of, self._keys.contains, self._keys.suffix
        for segment in segments:
            for stored_key, value in rows_of_segment(segment, first, last, query.backward):
                if len(stored_key) < suffix:
                    yield self._damaged_row_error(stored_key, suffix)
                elif contains(stored_key, *bounds):
                    yield key_of(stored_key), value

    def _between(self, query: StoreScan) -> StoredRange:
        if query.one_key:
            return self._keys.bounds_of_key(query.key_from, query.time_from, query.time_to)
        return self._keys.bounds_of_range(*query.bounds)

    def _key_of(self, stored_key: bytes) -> K:
        """Return the key of a row from its stored key."""
        raise NotImplementedError

    def _damaged_row_error(self, stored_key: bytes, min_key_len: int) -> DamagedRowError:
        reason = f"a stored key of {len(stored_key)} bytes is too short: it has at least {min_key_len}"
        error = DecodeError(reason, format=None, code="truncated", byte_offset=len(stored_key))
        return DamagedRowError(self.name, stored_key, error)

    # Overridden by time-ordered stores.

    def _oldest(self) -> int:
        """Return the time of the oldest readable rows."""
        return self._observed - self.retention + 1

    def _row_key(self, stored_key: bytes) -> bytes:
        return stored_key

    def _changes(self, stored_key: bytes, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
        return [(stored_key, value)]

    def _write(self, segment: Database, stored_key: bytes, value: bytes | None) -> None:
        segment.rows.put(stored_key, value)

    # Files.

    def _open_segments(self) -> Segments[Any]:
        return require(self._segments, "the segments of an open store")

    def _open_files(self, directory: Path) -> None:
        self._observed = -1
        self._segments = StoredSegments(
            self.name, directory / self.name, self.retention, self.segment_interval, self._layout, self._options
        )

    def _close_files(self) -> None:
        if self._segments is not None:
            segments, self._segments = self._segments, None
            segments.close()

    def _databases(self) -> list[Database]:
        return [] if self._segments is None else self._segments.all()


def rows_of_segment(
    segment: Database, first: bytes | None, last: bytes | None, backward: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Read the rows of a segment; stop if the segment expires and is removed."""
    if not segment.is_open:
        return
    rows = segment.rows.scan(first, last, backward=backward)
    while segment.is_open:
        row = next(rows, None)
        if row is None:
            return
        yield row


class RocksDBWindowStore(SegmentedStore[WindowedKey], WindowReads[bytes, bytes]):
    """A window store in RocksDB.

    Parameters
    ----------
    name : str
        Name of the store.
    retention : int
        Retention in milliseconds.
    window_size : int
        Length of a window in milliseconds.
    retain_duplicates : bool, default False
        Whether to keep every value of a key and window; ``fetch`` returns the last written value.
    segment_interval : int, optional
        Length of a segment in milliseconds; derived from the retention by default.
    format : {"plain", "timestamped", "headers"}, default "headers"
        Format of the values. Rows of an older format are converted when they are read.
    options : RocksDBOptions, optional
        Options of the databases.
    """

    _keys = WindowKeys
    _store_type = "window"

    def __init__(
        self,
        name: str,
        retention: int,
        window_size: int,
        retain_duplicates: bool = False,
        segment_interval: int | None = None,
        *,
        format: ValueFormat = "headers",
        options: RocksDBOptions | None = None,
    ) -> None:
        super().__init__(name, retention, segment_interval, format, options)
        self.window_size = window_size
        self.retain_duplicates = retain_duplicates
        self._sequence = 0

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Write a row; ``None`` deletes it. A row older than the retention is dropped."""
        if self.retain_duplicates:
            if value is None:
                self._check_open()
                return  # a null value does not identify one of the duplicates
            self._sequence = (self._sequence + 1) & MAX_SEQUENCE
        self._put_by_stored_key(window_key(key, start, self._sequence), value)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Read a row."""
        return self._get_by_stored_key(window_key(key, start, self._sequence))

    def _key_of(self, stored_key: bytes) -> WindowedKey:
        key, start, _ = window_parts(stored_key)
        return make_windowed(key, start, self.window_size)


class RocksDBSessionStore(SegmentedStore[SessionKey], SessionReads[bytes, bytes]):
    """A session store in RocksDB.

    Parameters
    ----------
    name, retention, segment_interval, options
        As in :class:`RocksDBWindowStore`.
    format : {"plain", "headers"}, default "headers"
        Format of the values. Plain rows are converted when they are read.
    """

    _keys = SessionKeys
    _store_type = "session"
    _times_in_keys = True
    _key_of = staticmethod(session_parts)

    def __init__(
        self,
        name: str,
        retention: int,
        segment_interval: int | None = None,
        *,
        format: ValueFormat = "headers",
        options: RocksDBOptions | None = None,
    ) -> None:
        check_session_format(format)
        super().__init__(name, retention, segment_interval, format, options)

    def put(self, key: SessionKey, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it. A row older than the retention is dropped."""
        check_time(key.start)
        self._put_by_stored_key(session_key(*key), value)

    def remove(self, key: SessionKey) -> None:
        """Delete a row."""
        self._remove_by_stored_key(session_key(*key))

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Read a row."""
        return self._get_by_stored_key(session_key(key, start, end))

    def scan(self, query: StoreScan) -> StoreIterator[SessionKey, bytes]:
        """Return the rows of a scan.

        Raises
        ------
        UnsupportedOperationError
            If the scan is by end only, which is supported by in-memory and time-ordered stores only.
        """
        if query.by_time:
            raise UnsupportedOperationError("This API is not supported by this implementation of SessionStore.")
        return super().scan(query)
