"""Versioned stores on top of rows in memory or in RocksDB.

The latest version of a key has its own row. Other versions are in the segment that contains the *end* of their validity;
all versions of a key in one segment share a row. Stored keys begin with the segment number, -1 for latest versions.
"""

from __future__ import annotations

import logging
import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from letterhead.errors import DamagedRowError, DecodeError
from letterhead.state.base import BytesStore, check_time
from letterhead.state.interfaces import (
    PUT_NOT_VALID,
    VALID_TO_UNDEFINED,
    ChangelogRecord,
    StoreIterator,
    VersionedBytes,
)
from letterhead.state.storage.keys import MAX_TIME, segment_of
from letterhead.state.storage.versioned_rows import LATEST, Latest, SegmentRow, bounds

__all__ = ["VersionedStore", "default_segment_interval"]

R = TypeVar("R")

_log = logging.getLogger("letterhead.state")


def default_segment_interval(history_retention: int) -> int:
    """Return the default length of a segment for a history retention, both in milliseconds.

    Examples
    --------
    >>> [default_segment_interval(seconds * 1000) for seconds in (3, 30, 300, 3600, 86400)]
    [2000, 10000, 60000, 300000, 3600000]
    """
    if history_retention <= 60_000:
        return max(history_retention // 3, 2_000)
    if history_retention <= 300_000:
        return max(history_retention // 5, 20_000)
    if history_retention <= 3_600_000:
        return max(history_retention // 12, 60_000)
    return max(history_retention // 24, 300_000)


class VersionedStore(BytesStore):
    """Base class of versioned stores; subclasses read and write the rows.

    Parameters
    ----------
    name : str
        Name of the store.
    history_retention : int
        Retention in milliseconds of a version after the end of its validity, and maximum delay of a late version.
    segment_interval : int, optional
        Length of a segment in milliseconds; derived from the retention by default.
    headers : bool, default True
        Whether values have headers.
    """

    _times_in_keys = True

    def __init__(
        self, name: str, history_retention: int, segment_interval: int | None = None, *, headers: bool = True
    ) -> None:
        super().__init__(name, "headers" if headers else "plain")
        self.history_retention = history_retention
        self.segment_interval = segment_interval or default_segment_interval(history_retention)
        self._observed = -1
        self._segments: list[int] = []

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Write a version.

        Parameters
        ----------
        key, value : bytes
            Key and value; a value of ``None`` deletes the key from the timestamp on.
        timestamp : int
            Start of the version's validity.

        Returns
        -------
        int
            End of the version's validity; ``VALID_TO_UNDEFINED`` for the latest version, ``PUT_NOT_VALID`` if the version
            was dropped because it was too late.

        Raises
        ------
        InvalidTimestampError
            If the timestamp is negative.
        """
        self._check_open()
        check_time(timestamp)
        if self._is_late(timestamp):
            self._count_expired("put")
            return PUT_NOT_VALID
        self._observed = max(self._observed, timestamp)
        valid_to = self._put(key, value, timestamp)
        self._update_position()
        return valid_to

    def delete(self, key: bytes, timestamp: int) -> VersionedBytes | None:
        """Delete a key from a time on, and return the version that was valid at that time; see :meth:`put`."""
        self._check_open()
        check_time(timestamp)
        existing = None if self._is_late(timestamp) else self.get_as_of(key, timestamp)
        self.put(key, None, timestamp)
        return existing

    def get(self, key: bytes) -> VersionedBytes | None:
        """Read the latest version."""
        self._check_open()
        latest = self._latest(key)
        return None if latest is None else VersionedBytes(latest.value, latest.timestamp)

    def get_as_of(self, key: bytes, timestamp: int) -> VersionedBytes | None:
        """Read the version that was valid at a time.

        For a time older than the history retention, only the latest version can be found.
        """
        self._check_open()
        latest = self._latest(key)
        if latest is not None and latest.timestamp <= timestamp:
            return VersionedBytes(latest.value, latest.timestamp)
        if self._is_late(timestamp):
            return None
        match, _ = self._search(key, timestamp)
        if match is None:
            return None
        row = match[1]
        index = row.find(timestamp)
        version = row.versions[index]
        return None if version.value is None else VersionedBytes(version.value, version.valid_from, row.valid_to(index))

    def versions(
        self, key: bytes, time_from: int | None = None, time_to: int | None = None, ascending: bool = False
    ) -> StoreIterator[bytes, VersionedBytes]:
        """Read the versions that were valid at any time in [``time_from``, ``time_to``], the newest first by default.

        Tombstones and expired versions are skipped. An error is raised for a damaged row; the next call continues after it.
        """
        self._check_open()
        first = max(0 if time_from is None else time_from, self._observed - self.history_retention)
        last = MAX_TIME if time_to is None else time_to
        newest_first = self._newest_first(key, first, last)
        results = newest_first if not ascending else iter(list(newest_first)[::-1])
        return self._iterate(result if isinstance(result, DamagedRowError) else (key, result) for result in results)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Write the records of a changelog: each record is a version with the timestamp of the record.

        The observed time advances with each record. (Kafka Streams starts with the time of the last record. It may drop a
        tombstone as too old, and an earlier version that was logged after the tombstone then becomes valid again.)
        """
        self._check_open()
        for record in records:
            if not self._is_late(record.timestamp):
                self._observed = max(self._observed, record.timestamp)
                self._put(record.key, record.value, record.timestamp)

    # Access to rows, implemented by subclasses.

    def _read(self, key: bytes) -> bytes | None:
        """Read a row."""
        raise NotImplementedError

    def _write(self, rows: list[tuple[bytes, bytes | None]]) -> None:
        """Write several rows atomically."""
        raise NotImplementedError

    def _drop(self, first: bytes, end: bytes) -> None:
        """Delete the rows with keys in [``first``, ``end``)."""
        raise NotImplementedError

    def _key_from(self, key: bytes) -> bytes | None:
        """Return the first key at or after ``key``, or None."""
        raise NotImplementedError

    # Segments.

    def _find_segments(self) -> None:
        """Find the existing segments by seeking to the first key of each segment in turn."""
        self._observed = -1
        self._segments = []
        key = self._key_from(b"")
        while key is not None:
            if len(key) < 8:
                reason = f"a stored key of {len(key)} bytes is too short: its segment takes 8"
                error = DecodeError(reason, format=None, code="truncated", byte_offset=len(key))
                _log.warning("%s", DamagedRowError(self.name, key, error))
                key = self._key_from(key + b"\0")
                continue
            (segment,) = _INT64.unpack_from(key)
            if segment < 0:
                break
            self._segments.append(segment)
            key = self._key_from(_INT64.pack(segment + 1))

    def _segment_of(self, time: int) -> int:
        return segment_of(time, self.segment_interval)

    def _segments_from(self, time: int) -> list[int]:
        """Return the segments from a time on, newest first."""
        return self._segments[bisect_left(self._segments, self._segment_of(time)) :][::-1]

    def _live_segment(self, time: int) -> int | None:
        """Return the segment that contains a time, or ``None`` if the segment has expired."""
        segment = self._segment_of(time)
        if segment < self._segment_of(self._observed - self.history_retention):
            return None
        index = bisect_left(self._segments, segment)
        if index == len(self._segments) or self._segments[index] != segment:
            insort(self._segments, segment)
        return segment

    def _expire(self) -> None:
        oldest = self._segment_of(self._observed - self.history_retention)
        while self._segments and self._segments[0] < oldest:
            expired = self._segments.pop(0)
            self._drop(_INT64.pack(expired), _INT64.pack(expired + 1))

    # Writing a version. All changed rows are written atomically.

    def _put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        self._expire()
        next_start = VALID_TO_UNDEFINED
        latest = self._latest(key)
        if latest is not None:
            if timestamp >= latest.timestamp:
                self._put_latest(key, value, timestamp, latest)
                return VALID_TO_UNDEFINED
            next_start = latest.timestamp
        row, later = self._search(key, timestamp)
        if row is not None:
            return self._put_between(key, value, timestamp, *row)
        next_start = next_start if later is None else later
        if next_start == VALID_TO_UNDEFINED:
            self._put_first(key, value, timestamp)
        else:
            self._put_before(key, value, timestamp, next_start)
        return next_start

    def _put_latest(self, key: bytes, value: bytes | None, timestamp: int, latest: Latest) -> None:
        """Replace the latest version, or add a newer one.

        The previous version then moves to the segment of the time at which its validity ends.
        """
        rows: list[tuple[bytes, bytes | None]] = []
        # A tombstone has no latest row. If it has the time of the latest version, no version moves, but the segment of
        # that time must still record the deletion. Otherwise, a late version with an earlier time would become the
        # latest version.
        if timestamp > latest.timestamp or value is None:
            segment = self._live_segment(timestamp)
            if segment is not None:
                rows.append(self._append_to_segment(segment, key, latest.timestamp, timestamp, latest.value))
        rows.append((LATEST + key, None if value is None else Latest(timestamp, value).write()))
        self._write(rows)

    def _put_between(self, key: bytes, value: bytes | None, timestamp: int, segment: int, row: SegmentRow) -> int:
        """Put a version among the versions of a segment."""
        index = row.find(timestamp)
        replaced, valid_to = row.versions[index], row.valid_to(index)
        rows: list[tuple[bytes, bytes | None]] = []
        if replaced.valid_from == timestamp:
            row.update(index, timestamp, value)
        elif self._segment_of(timestamp) < segment:
            # The previous version now ends in an older segment.
            older = self._live_segment(timestamp)
            if older is not None:
                rows.append(self._append_to_segment(older, key, replaced.valid_from, timestamp, replaced.value))
            row.update(index, timestamp, value)
        else:
            row.insert(index, timestamp, value)
        rows.append((_row_key(segment, key), row.write()))
        self._write(rows)
        return valid_to

    def _put_first(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Put a version after all others for a key without a latest version."""
        if value is not None:
            self._write([(LATEST + key, Latest(timestamp, value).write())])
            return
        # A tombstone has no latest row, so record the deletion in the segment of its time.
        segment = self._live_segment(timestamp)
        if segment is not None:
            self._write([self._append_to_segment(segment, key, timestamp, timestamp, None)])

    def _put_before(self, key: bytes, value: bytes | None, timestamp: int, next_start: int) -> None:
        """Put a version before the next version, into the segment that contains the start of the next version."""
        segment = self._live_segment(next_start)
        if segment is None:
            return
        row = self._row(segment, key)
        if row is None:
            row = SegmentRow.of_version(timestamp, next_start, value)
        elif row.next <= timestamp:
            # The versions in the row end earlier: the key was deleted in this segment and has had no value since.
            row.insert_as_latest(timestamp, next_start, value)
        else:
            row.insert_as_earliest(timestamp, value)
        self._write([(_row_key(segment, key), row.write())])

    def _append_to_segment(
        self, segment: int, key: bytes, valid_from: int, valid_to: int, value: bytes | None
    ) -> tuple[bytes, bytes]:
        row = self._row(segment, key)
        if row is None:
            row = SegmentRow.of_version(valid_from, valid_to, value)
        else:
            row.insert_as_latest(valid_from, valid_to, value)
        return _row_key(segment, key), row.write()

    # Reading.

    def _is_late(self, timestamp: int) -> bool:
        return timestamp < self._observed - self.history_retention

    def _latest(self, key: bytes) -> Latest | None:
        return self._read_and_parse(LATEST + key, Latest.read)

    def _row(self, segment: int, key: bytes) -> SegmentRow | None:
        return self._read_and_parse(_row_key(segment, key), SegmentRow.read)

    def _search(self, key: bytes, timestamp: int) -> tuple[tuple[int, SegmentRow] | None, int | None]:
        """Return the segment and row of the version that is valid at a time, and the start of the first version after it."""
        later = None
        for segment in self._segments_from(timestamp):
            data = self._read(_row_key(segment, key))
            if data is None:
                continue
            next_time, first = self._parse(_row_key(segment, key), bounds, data)
            if next_time <= timestamp:
                break
            if first <= timestamp:
                return (segment, self._parse(_row_key(segment, key), SegmentRow.read, data)), later
            later = first
        return None, later

    def _read_and_parse(self, key: bytes, parse: Callable[[bytes], R]) -> R | None:
        data = self._read(key)
        return None if data is None else self._parse(key, parse, data)

    def _parse(self, key: bytes, parse: Callable[[bytes], R], data: bytes) -> R:
        try:
            return parse(data)
        except DecodeError as error:
            raise DamagedRowError(self.name, key, error) from error

    def _newest_first(self, key: bytes, first: int, last: int) -> Iterator[VersionedBytes | DamagedRowError]:
        try:
            latest = self._latest(key)
        except DamagedRowError as error:
            yield error
            latest = None
        if latest is not None and latest.timestamp <= last:
            yield VersionedBytes(latest.value, latest.timestamp)
        if first > last:
            return
        for segment in self._segments_from(first):
            try:
                row = self._row(segment, key)
            except DamagedRowError as error:
                yield error
                continue
            if row is None:
                continue
            for index, version in enumerate(row.versions):
                if version.value is not None and version.valid_from <= last and row.valid_to(index) > first:
                    yield VersionedBytes(version.value, version.valid_from, row.valid_to(index))


_INT64 = struct.Struct(">q")


def _row_key(segment: int, key: bytes) -> bytes:
    return _INT64.pack(segment) + key
