"""Write changelog records to the databases of a store in bulk: :class:`RestoreTarget`.

The offset of the last record is written together with its rows, or after them if writing them again has no effect. If a
process dies, the last rows are lost together with their offset. The next process continues after the stored offset, with
the position and the largest time that belong to it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import arrow
from letterhead._invariants import require
from letterhead.errors import DamagedRowError, DecodeError
from letterhead.headers import Headers
from letterhead.offsets.partition_log import TopicPartition
from letterhead.state.context import CONSISTENCY_POSITION, position_of
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.reading.store_types import TIME_ORDERED_KEYS
from letterhead.state.restoring.changelog_records import Records
from letterhead.state.storage.database import POSITION, Database, RocksDBOptions
from letterhead.state.storage.keys import KeySchema, SessionKeys, WindowKeys
from letterhead.state.storage.layouts import Layout
from letterhead.state.storage.position import Position
from letterhead.state.storage.segments import StoredSegments, segment_interval
from letterhead.state.versioned import VersionedStore

__all__ = ["RestorePlan", "RowBatch", "RestoreTarget", "open_target", "rows_of", "without_positions"]

Changes = Iterable[tuple[bytes, "bytes | None"]]

OPTIONS = RocksDBOptions(write_buffer_bytes=64 << 20)
PAIRS = 8192
"""Maximum number of rows that are converted to Python objects at once."""
OBSERVED = b"letterhead-observed"
"""Key of the largest time so far, in the offsets family during a restore."""
ADDED = b"letterhead-added"
"""Key of the offset up to which files may have been added, in the offsets family during a restore."""


class RestorePlan(NamedTuple):
    """Properties of the store to restore: type, names of layout and value format, and durations in milliseconds."""

    name: str
    store_type: str
    layout_name: str
    value_format: str
    layout: Layout
    retention: int | None
    segment_interval: int | None

    @property
    def segmented(self) -> bool:
        """Whether the store has one database for each time segment."""
        return self.store_type not in ("key-value", "versioned")

    @property
    def path(self) -> Path:
        """Directory of the store, relative to the task directory."""
        return Path(self.name) if self.segmented else Path("rocksdb", self.name)


class RowBatch(NamedTuple):
    """Rows of a store.

    Attributes
    ----------
    keys, values : pyarrow.BinaryArray
        Keys, and values in the store's format; a null value deletes the row.
    times : numpy.ndarray of int64
        Timestamps of the records.
    offset : int
        Offset of the last record.
    position : Position
        Position of the store after these rows.
    """

    keys: pa.BinaryArray
    values: pa.BinaryArray
    times: np.ndarray[Any, np.dtype[np.int64]]
    offset: int
    position: Position

    @property
    def memory(self) -> int:
        """Approximate memory size in bytes."""
        return int(self.keys.nbytes + self.values.nbytes)

    def pairs(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the key and value of each row."""
        for rows in _pairs(self.keys, self.values):
            yield from rows


def _pairs(keys: pa.BinaryArray, values: pa.BinaryArray) -> Iterator[list[tuple[bytes, bytes | None]]]:
    for start in range(0, len(keys), PAIRS):
        part = slice(start, start + PAIRS)
        yield list(zip(keys[part].to_pylist(), values[part].to_pylist(), strict=True))


def rows_of(records: Records, plan: RestorePlan, position: Position) -> RowBatch:
    """Convert records to rows of the store."""
    return RowBatch(records.keys, _values(records, plan), records.timestamps, int(records.offsets[-1]), position)


def _values(records: Records, plan: RestorePlan) -> pa.BinaryArray:
    if plan.value_format == "headers":
        fields = {"headers": records.headers, "payload": records.values}
        with_time = plan.store_type in ("key-value", "window", "time-ordered-window")
        if with_time:
            fields["timestamp"] = pa.array(records.timestamps)
        messages = pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=records.values.is_null())
        return arrow.encode(messages, "streams-timestamped" if with_time else "streams")
    if plan.value_format == "timestamped":
        big_endian = pa.py_buffer(records.timestamps.astype(">i8"))
        times = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(records.timestamps), [None, big_endian])
        return pc.binary_join_element_wise(times.cast(pa.binary()), records.values, b"")
    return records.values


def without_positions(records: Records, position: Position) -> tuple[Records, Position]:
    """Remove the positions that Kafka Streams appends to headers for consistent reads, and merge them into ``position``.

    Without this, each position would become two headers of the row.
    """
    all_headers = require(records.headers, "the column of headers")
    if not _has_positions(all_headers):
        return records, position
    kept = []
    merged = position.copy()
    for headers in all_headers.to_pylist():
        record = ChangelogRecord(b"", None, 0, Headers((header["key"], header["value"]) for header in headers or ()))
        plain, record_position = position_of(record)
        merged.merge(record_position)
        kept.append([{"key": key, "value": value} for key, value in plain.headers])
    return records._replace(headers=pa.array(kept, all_headers.type)), merged


def _has_positions(headers: pa.ListArray) -> bool:
    """Return whether the last header of any record is a position."""
    ends = headers.offsets.to_numpy()
    last = ends[1:][ends[1:] > ends[:-1]] - 1
    return bool(pc.any(pc.equal(headers.values.field("key").take(pa.array(last)), CONSISTENCY_POSITION)).as_py())


class RestoreTarget:
    """Databases of a store during a restore; subclasses decide in which database a row is stored.

    Attributes
    ----------
    offset : int
        Offset of the last written record.
    added : int
        Offset up to which rows may have been added; larger than ``offset`` if a process died before it stored the
        offset.
    observed : int
        Largest time so far, in milliseconds.
    position : Position
        Position of the store.
    """

    def __init__(self, plan: RestorePlan, task: Path, changelog: TopicPartition) -> None:
        self.plan = plan
        self.changelog = changelog
        self.offset = self.added = self.observed = -1
        self.position = Position()
        self._open(task)
        # A database without an offset has no rows: it was created for a batch that was lost.
        offsets_of_databases = [(database.offsets(), database) for database in self.databases()]
        topic_partition = str(changelog)
        with_offset = [entry for entry in offsets_of_databases if topic_partition in entry[0]]
        if with_offset:
            offsets, behind = min(with_offset, key=lambda entry: entry[0][topic_partition])
            self.offset = max(offsets[topic_partition], -1)
            self.observed = offsets.get(OBSERVED.decode(), -1)
            self.position = behind.position()
        self.added = max([self.offset, *(offsets.get(ADDED.decode(), -1) for offsets, _ in offsets_of_databases)])

    def _open(self, task: Path) -> None:
        raise NotImplementedError

    def databases(self) -> list[Database]:
        """Return the open databases."""
        raise NotImplementedError

    def write(self, batches: list[RowBatch]) -> None:
        """Write rows, and empty the list to release memory early."""
        raise NotImplementedError

    def _progress_entries(self) -> list[tuple[bytes, bytes | None]]:
        """Return the entries for the offsets family that record the progress so far."""
        return [
            (str(self.changelog).encode(), _INT64.pack(self.offset)),
            (OBSERVED, _INT64.pack(self.observed)),
            (POSITION, self.position.serialize()),
        ]

    def commit(self) -> None:
        """Commit all databases as Kafka Streams does, and flush them to files."""
        offset = self.offset if self.offset >= 0 else None
        for database in self.databases():
            database.commit({self.changelog: offset}, self.position)
            database.flush()

    def finish(self) -> None:
        """Remove the entries needed only during a restore, and close the databases.

        Call this after :meth:`commit`; repeated calls are allowed.
        """
        for database in self.databases():
            database.write((), [(OBSERVED, None), (ADDED, None)])
        self.close()

    def close(self) -> None:
        """Flush the databases to files, and close them."""
        for database in self.databases():
            database.close()


class IngestedKeyValueTarget(RestoreTarget):
    """Restore target for a key-value store.

    Rows are sorted and added as a file, which takes RocksDB a third of the time needed for ordinary writes.
    """

    def _open(self, task: Path) -> None:
        self._database = Database(self.plan.name, task / self.plan.path, self.plan.layout, OPTIONS)
        # The file is outside the database directory, so that a file left by a killed process is not moved with it.
        self._file = task / "rows.sst"

    def databases(self) -> list[Database]:
        """Return the open databases."""
        return [self._database] if self._database.is_open else []

    def write(self, batches: list[RowBatch]) -> None:
        """Write rows."""
        keys = pa.concat_arrays([batch.keys for batch in batches])
        values = pa.concat_arrays([batch.values for batch in batches])
        offset, position = batches[-1].offset, batches[-1].position
        batches.clear()
        keys, values = _last_by_key(keys, values)
        self._database.write((), [(ADDED, _INT64.pack(offset))])
        self._database.flush()
        self._database.add_file(self._file, _pairs(keys, values))
        self.offset, self.position = offset, position
        self.added = max(self.added, offset)
        self._database.write((), self._progress_entries())
        self._database.flush()


def _last_by_key(keys: pa.BinaryArray, values: pa.BinaryArray) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return the last row of each key, sorted by key."""
    order = pc.sort_indices(keys)
    keys = keys.take(order)
    # The sort is stable.
    last = pa.concat_arrays([pc.not_equal(keys[:-1], keys[1:]), pa.array([True])])
    if not pc.all(last).as_py():
        order, keys = order.filter(last), keys.filter(last)
    return keys, values.take(order)


class BatchedTarget(RestoreTarget):
    """Restore target that writes rows in atomic batches, together with the offset."""

    def write(self, batches: list[RowBatch]) -> None:
        """Write rows."""
        for batch in batches:
            changed: dict[Database, Changes] = dict.fromkeys(self.databases(), ())
            changed.update(self._changes(batch))
            self.offset, self.position = batch.offset, batch.position
            for database, changes in changed.items():
                if database.is_open:
                    database.write(changes, self._progress_entries(), self._dropped())
        batches.clear()

    def _changes(self, rows: RowBatch) -> dict[Database, Changes]:
        """Return the changes for each database."""
        raise NotImplementedError

    def _dropped(self) -> list[tuple[bytes, bytes]]:
        return []


class VersionedTarget(BatchedTarget):
    """Restore target for a versioned store, in which new rows depend on existing rows."""

    def _open(self, task: Path) -> None:
        self._database = Database(self.plan.name, task / self.plan.path, self.plan.layout, OPTIONS)
        self._versions = _BufferedVersions(self.plan, self._database)

    def databases(self) -> list[Database]:
        """Return the open databases."""
        return [self._database] if self._database.is_open else []

    def _changes(self, rows: RowBatch) -> dict[Database, Changes]:
        versions = self._versions
        versions.changed, versions.dropped = {}, []
        versions.advance(self.observed)
        timed = zip(rows.pairs(), rows.times.tolist(), strict=True)
        versions.restore(ChangelogRecord(key, value, time, _NO_HEADERS) for (key, value), time in timed)
        self.observed = versions.observed_time
        return {self._database: versions.changed.items()}

    def _dropped(self) -> list[tuple[bytes, bytes]]:
        return self._versions.dropped


class _BufferedVersions(VersionedStore):
    """Versioned store that buffers its changes in memory."""

    def __init__(self, plan: RestorePlan, database: Database) -> None:
        retention = require(plan.retention, "the retention")
        super().__init__(plan.name, retention, plan.segment_interval, headers=plan.value_format == "headers")
        self._rows = database.rows
        self.changed: dict[bytes, bytes | None] = {}
        self.dropped: list[tuple[bytes, bytes]] = []
        self._find_segments()
        self._opened(None)

    @property
    def observed_time(self) -> int:
        """Largest time so far, in milliseconds."""
        return self._observed

    def advance(self, time: int) -> None:
        """Advance the observed time."""
        self._observed = max(self._observed, time)

    def _read(self, key: bytes) -> bytes | None:
        return self.changed[key] if key in self.changed else self._rows.get(key)

    def _write(self, rows: Changes) -> None:
        self.changed.update(rows)

    def _drop(self, first: bytes, end: bytes) -> None:
        self.dropped.append((first, end))
        for key in [key for key in self.changed if first <= key < end]:
            del self.changed[key]

    def _key_from(self, key: bytes) -> bytes | None:
        return self._rows.key_from(key)


class SegmentedTarget(BatchedTarget):
    """Restore target for a window or session store."""

    def _open(self, task: Path) -> None:
        plan, retention = self.plan, require(self.plan.retention, "the retention")
        self._retention = retention
        self._interval = plan.segment_interval or segment_interval(retention)
        keys: type[KeySchema] = WindowKeys if plan.store_type.endswith("window") else SessionKeys
        self._suffix, self._by_time = keys.suffix, TIME_ORDERED_KEYS.get(plan.store_type)
        self._segments = StoredSegments(plan.name, task / plan.path, retention, self._interval, plan.layout, OPTIONS)

    def databases(self) -> list[Database]:
        """Return the open databases."""
        return self._segments.all()

    def _changes(self, rows: RowBatch) -> dict[Database, Changes]:
        times = self._times(rows.keys)
        self.observed = max(self.observed, int(times.max()))
        segments = np.where(times >= 0, times // self._interval, -(-times // self._interval))
        pairs = list(rows.pairs())
        changes: dict[Database, Changes] = {}
        for segment in np.unique(segments):
            indexes = np.flatnonzero(segments == segment)
            time = int(times[indexes[0]])
            is_new = self._segments.at(time) is None
            database = self._segments.live(time, self.observed)
            if database is None:
                continue
            if is_new:
                # Store the current offset first: a new segment without earlier rows is complete up to this offset.
                database.write((), self._progress_entries())
                database.flush()
            changes[database] = [*self._stored(pairs[index] for index in indexes)]
        return changes

    def _stored(self, rows: Iterator[tuple[bytes, bytes | None]]) -> Iterator[tuple[bytes, bytes | None]]:
        if self._by_time is None:
            yield from rows
            return
        for key, value in rows:
            yield self._by_time.index(key), None if value is None else b""
            yield self._by_time.row(key), value

    def _times(self, keys: pa.BinaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the time in each key: the first of the integers after the key."""
        offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
        short = np.flatnonzero(np.diff(offsets) < self._suffix)
        if len(short):
            key = keys[int(short[0])].as_py()
            reason = f"a key of {len(key)} bytes is too short: the times take {self._suffix}"
            error = DecodeError(reason, format=None, code="truncated", byte_offset=len(key))
            raise DamagedRowError(self.plan.name, key, error)
        data = np.frombuffer(keys.buffers()[2], np.uint8)
        bytes_of_times = data[(offsets[1:, None] - self._suffix) + np.arange(8)]
        return np.ascontiguousarray(bytes_of_times).view(">i8")[:, 0].astype(np.int64)


def open_target(plan: RestorePlan, task: Path, changelog: TopicPartition) -> RestoreTarget:
    """Create the databases of a store in a task directory, or open the databases of an interrupted restore."""
    types: dict[str, type[RestoreTarget]] = {"key-value": IngestedKeyValueTarget, "versioned": VersionedTarget}
    return types.get(plan.store_type, SegmentedTarget)(plan, task, changelog)


_NO_HEADERS = Headers()
_INT64 = struct.Struct(">q")
