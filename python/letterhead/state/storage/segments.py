"""Databases of a window or session store: one for each time segment, ``<store>/<store>.<first millisecond>``.

A segment is created when its first row is written, and removed with all its rows when it is older than the retention of
the store. The latest time is not stored: after a store is opened, no record is too old until newer records arrive.
"""

from __future__ import annotations

import calendar
import os
import re
import shutil
import time
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from letterhead.errors import ProcessorStateError
from letterhead.state.storage.database import Database, RocksDBOptions
from letterhead.state.storage.keys import segment_of
from letterhead.state.storage.layouts import Layout
from letterhead.state.storage.rows import operation_error

__all__ = ["Segments", "StoredSegments", "segment_interval", "segment_start"]


def segment_interval(retention: int) -> int:
    """Return the default length of a segment for a retention, both in milliseconds."""
    return max(retention // 2, 60_000)


def segment_start(store: str, name: str) -> int | None:
    """Return the first millisecond of a segment from the name of its directory, or None for other names.

    Kafka Streams before 1.1 used a colon before the number; before 1.0, names were ``<store>-yyyyMMddHHmm``.

    Examples
    --------
    >>> segment_start("hourly", "hourly.1483228800000"), segment_start("hourly", "hourly-201701010000")
    (1483228800000, 1483228800000)
    """
    separator, start = name[len(store) : len(store) + 1], name[len(store) + 1 :]
    if not name.startswith(store):
        return None
    if separator == "-" and re.fullmatch(r"[0-9]{12}", start):
        with suppress(ValueError):
            return calendar.timegm(time.strptime(start, "%Y%m%d%H%M")) * 1000
    return int(start) if separator in (".", ":") and re.fullmatch(r"-?[0-9]+", start) else None


SegmentT = TypeVar("SegmentT")


class Segments(ABC, Generic[SegmentT]):
    """Open segments of a store.

    Parameters
    ----------
    retention, interval : int
        Retention of rows, and length of a segment, in milliseconds.
    """

    def __init__(self, retention: int, interval: int) -> None:
        self._retention = retention
        self._interval = interval
        self._ids: list[int] = []
        self._open: dict[int, SegmentT] = {}

    def id(self, time: int) -> int:
        """Return the number of the segment that contains a time."""
        return segment_of(time, self._interval)

    def at(self, time: int) -> SegmentT | None:
        """Return the segment that contains a time, if it exists."""
        return self._open.get(self.id(time))

    def live(self, time: int, observed: int) -> SegmentT | None:
        """Return the segment that contains a time, for writing, and remove expired segments.

        ``observed`` is the latest time so far. Returns ``None`` if the requested segment has expired.
        """
        segment, oldest = self.id(time), self.id(observed - self._retention)
        if segment < oldest:
            return None
        database = self._open.get(segment) or self._create(segment)
        while self._ids[0] < oldest:
            self._remove(self._ids[0])
        return database

    def between(self, first: int, last: int | None, *, backward: bool) -> list[SegmentT]:
        """Return the segments with times in [``first``, ``last``]; ``None`` means no bound."""
        low = bisect_left(self._ids, self.id(first))
        high = len(self._ids) if last is None else bisect_right(self._ids, self.id(last))
        databases = [self._open[segment] for segment in self._ids[low:high]]
        return databases[::-1] if backward else databases

    def all(self) -> list[SegmentT]:
        """Return all segments, oldest first."""
        return [self._open[segment] for segment in self._ids]

    def _create(self, segment: int) -> SegmentT:
        created = self._open[segment] = self._make(segment)
        insort(self._ids, segment)
        return created

    def _remove(self, segment: int) -> None:
        self._ids.remove(segment)
        self._drop(segment, self._open.pop(segment))

    def close(self) -> None:
        """Discard the list of segments."""
        self._ids.clear()
        self._open.clear()

    @abstractmethod
    def _make(self, segment: int) -> SegmentT:
        """Create a segment."""

    @abstractmethod
    def _drop(self, segment: int, removed: SegmentT) -> None:
        """Delete a segment and its rows."""


class StoredSegments(Segments[Database]):
    """Open segments of a store in a directory.

    Parameters
    ----------
    store : str
        Name of the store.
    directory : Path
        The directory of the segments.
    retention, interval : int
        Retention of rows, and length of a segment, in milliseconds.
    layout, options
        Column families and options of each database.

    Raises
    ------
    ProcessorStateError
        If a file in the directory is not a segment of this store, or a segment cannot be opened.
    """

    def __init__(
        self, store: str, directory: Path, retention: int, interval: int, layout: Layout, options: RocksDBOptions
    ) -> None:
        super().__init__(retention, interval)
        self._store = store
        self._directory = directory
        self._layout = layout
        self._options = options
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._sweep()
            for segment in sorted(self._existing()):
                self._create(segment)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise operation_error(f"Error opening store {store} at location {directory}", error) from error
            raise

    def close(self) -> None:
        """Close all segments, even if one of them cannot be closed cleanly."""
        first_error: Exception | None = None
        for database in self.all():
            try:
                database.close()
            except Exception as error:
                first_error = first_error or error
        super().close()
        if first_error is not None:
            raise first_error

    def _make(self, segment: int) -> Database:
        name = f"{self._store}.{segment * self._interval}"
        return Database(name, self._directory / name, self._layout, self._options)

    def _drop(self, segment: int, removed: Database) -> None:
        with suppress(ProcessorStateError):
            removed.close()  # errors such as a full disk do not matter, because the rows are deleted anyway
        # Rename first: if the process dies after deleting some of the files, the segment could not be opened again.
        unused = self._directory.with_name(f".{removed.name}.removed")
        try:
            with suppress(FileNotFoundError):
                os.rename(removed.directory, unused)
                shutil.rmtree(unused)
        except OSError as error:
            raise operation_error(
                f"Error while removing segment {removed.name} of store {self._store}", error
            ) from error

    def _sweep(self) -> None:
        """Complete interrupted removals of segments."""
        removed = re.compile(re.escape(f".{self._store}.") + r"-?[0-9]+\.removed")
        for path in self._directory.parent.iterdir():
            if removed.fullmatch(path.name):
                shutil.rmtree(path)

    def _existing(self) -> list[int]:
        numbers = (self._parse(path) for path in self._directory.iterdir())
        return [segment for segment in numbers if segment is not None and segment >= 0]

    def _parse(self, path: Path) -> int | None:
        """Return the number of a segment from its name, and rename the directory if the name has an older form."""
        start = segment_start(self._store, path.name)
        if start is None and path.name.startswith(f"{self._store}-"):
            return None  # Kafka Streams ignores such a directory
        if start is None:
            raise ProcessorStateError(f"Unable to parse segment id as long from segmentName: {path.name}")
        segment = self.id(start)
        return segment if path.name.startswith(f"{self._store}.") else self._rename(path, segment)

    def _rename(self, path: Path, segment: int) -> int:
        new = path.with_name(f"{self._store}.{segment * self._interval}")
        try:
            os.rename(path, new)
        except OSError as error:
            raise operation_error(
                f"Unable to rename old style segment from: {path} to new name: {new}", error
            ) from error
        return segment
