"""Write the records of a changelog to the databases of a store, many at once: :class:`Target`.

The offset of the last record is written in the batch of its rows. A process that dies loses the last batches as a whole,
and the next one continues after the offset that it finds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import arrow
from letterhead.errors import DamagedRowError, DecodeError
from letterhead.headers import Headers
from letterhead.state.changelog_records import Records
from letterhead.state.context import CONSISTENCY_POSITION, position_of
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.versioned import VersionedStore
from letterhead.storage.database import Database, RocksDBOptions
from letterhead.storage.keys import (
    KeySchema,
    SessionKeys,
    TimeOrderedKeys,
    TimeOrderedSessionKeys,
    TimeOrderedWindowKeys,
    WindowKeys,
)
from letterhead.storage.layouts import Layout
from letterhead.storage.position import Position
from letterhead.storage.segments import Segments, segment_interval

__all__ = ["Plan", "Target", "open_target", "stored_values", "without_positions"]

Changes = list[tuple[bytes, "bytes | None"]]

OPTIONS = RocksDBOptions(write_buffer_bytes=64 << 20)
OBSERVED = b"letterhead-observed"
"""While a store is restored: the largest time so far, in the family of offsets."""


class Plan(NamedTuple):
    """The store to write. ``values`` is ``plain``, ``timestamped`` or ``headers``; times are in milliseconds."""

    name: str
    store_type: str
    values: str
    layout: Layout
    retention: int | None
    segment_interval: int | None

    @property
    def segmented(self) -> bool:
        """Whether the store has a database for each segment of time."""
        return self.store_type not in ("key-value", "versioned")

    @property
    def place(self) -> Path:
        """The directory of the store below that of its task."""
        return Path(self.name) if self.segmented else Path("rocksdb", self.name)


def stored_values(records: Records, plan: Plan) -> pa.BinaryArray:
    """Return the values of the records as the store has them; tombstones stay null."""
    if plan.values == "headers":
        fields = {"headers": records.headers, "payload": records.values}
        with_time = plan.store_type in ("key-value", "window", "time-ordered-window")
        if with_time:
            fields["timestamp"] = pa.array(records.timestamps)
        messages = pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=records.values.is_null())
        return arrow.encode(messages, "streams-timestamped" if with_time else "streams")
    if plan.values == "timestamped":
        big_endian = pa.py_buffer(records.timestamps.astype(">i8"))
        times = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(records.timestamps), [None, big_endian])
        return pc.binary_join_element_wise(times.cast(pa.binary()), records.values, b"")
    return records.values


def without_positions(records: Records, position: Position) -> Records:
    """Remove the positions that Kafka Streams appends to headers if it keeps reads consistent, and merge them into one.

    Left in the records, they would become two headers of each row.
    """
    assert records.headers is not None
    if not _any_ends_with(records.headers, CONSISTENCY_POSITION):
        return records
    kept = []
    for headers in records.headers.to_pylist():
        found = ChangelogRecord(b"", None, 0, Headers((each["key"], each["value"]) for each in headers or ()))
        plain, of_record = position_of(found)
        position.merge(of_record)
        kept.append([{"key": key, "value": value} for key, value in plain.headers])
    return records._replace(headers=pa.array(kept, records.headers.type))


def _any_ends_with(headers: pa.ListArray, key: str) -> bool:
    """Return whether the last header of any record has this key."""
    ends = headers.offsets.to_numpy()
    last = ends[1:][ends[1:] > ends[:-1]] - 1
    return bool(pc.any(pc.equal(headers.values.field("key").take(pa.array(last)), key)).as_py())


class Target:
    """The databases of a store that is restored; a subclass for each way in which rows are divided among them."""

    def __init__(self, plan: Plan, task: Path, place: tuple[str, int]) -> None:
        self.plan = plan
        self.place = place
        self.observed = -1
        self.offset = -1
        self._open(task)
        found = [database.offsets() for database in self.databases()]
        # A database without an offset was created in the batch that was lost, and has no rows.
        kept = [offsets for offsets in found if self._topic in offsets]
        if kept:
            behind = min(kept, key=lambda offsets: offsets[self._topic])
            self.offset = behind[self._topic]
            self.observed = behind.get(OBSERVED.decode(), -1)

    @property
    def _topic(self) -> str:
        return f"{self.place[0]}-{self.place[1]}"

    def _open(self, task: Path) -> None:
        raise NotImplementedError

    def databases(self) -> list[Database]:
        """Return the open databases."""
        raise NotImplementedError

    def write(self, records: Records, values: pa.BinaryArray) -> None:
        """Write records, with the values that :func:`stored_values` returned."""
        rows: dict[Database, Changes] = {database: [] for database in self.databases()}
        rows.update(self._rows(records, values))
        self.offset = int(records.offsets[-1])
        for database, changes in rows.items():
            if database.is_open:
                database.write(changes, self._marks(), self._dropped())

    def _rows(self, records: Records, values: pa.BinaryArray) -> dict[Database, Changes]:
        """Return the rows to write, by database."""
        raise NotImplementedError

    def _dropped(self) -> list[tuple[bytes, bytes]]:
        return []

    def _marks(self) -> Changes:
        return [(self._topic.encode(), _INT64.pack(self.offset)), (OBSERVED, _INT64.pack(self.observed))]

    def finish(self, position: Position) -> None:
        """Write what Kafka Streams writes at a commit, and close the databases."""
        offset = self.offset if self.offset >= 0 else None
        for database in self.databases():
            database.write((), [(OBSERVED, None)])
            database.commit({self.place: offset}, position)
        self.close()

    def close(self) -> None:
        """Close the databases, and write what is in memory to files."""
        for database in self.databases():
            database.close()


class KeyValueTarget(Target):
    """A key-value store."""

    def _open(self, task: Path) -> None:
        self._database = Database(self.plan.name, task / self.plan.place, self.plan.layout, OPTIONS)

    def databases(self) -> list[Database]:
        """Return the open databases."""
        return [self._database] if self._database.is_open else []

    def _rows(self, records: Records, values: pa.BinaryArray) -> dict[Database, Changes]:
        # RocksDB inserts sorted rows in half the time. The sort is stable: of equal keys the last one stays the last.
        order = pc.sort_indices(records.keys)
        keys, stored = records.keys.take(order), values.take(order)
        return {self._database: list(zip(keys.to_pylist(), stored.to_pylist(), strict=True))}


class VersionedTarget(KeyValueTarget):
    """A versioned store, whose rows depend on those that exist."""

    def _open(self, task: Path) -> None:
        super()._open(task)
        self._versions = _Versions(self.plan, self._database)

    def _rows(self, records: Records, values: pa.BinaryArray) -> dict[Database, Changes]:
        versions = self._versions
        versions.changed, versions.dropped = {}, []
        versions.observe(self.observed)
        columns = records.keys.to_pylist(), values.to_pylist(), records.timestamps.tolist()
        versions.restore(ChangelogRecord(*fields, _NO_HEADERS) for fields in zip(*columns, strict=True))
        self.observed = versions.observe(-1)
        return {self._database: list(versions.changed.items())}

    def _dropped(self) -> list[tuple[bytes, bytes]]:
        return self._versions.dropped


class _Versions(VersionedStore):
    """A versioned store that keeps its changes in memory."""

    def __init__(self, plan: Plan, database: Database) -> None:
        assert plan.retention is not None
        super().__init__(plan.name, plan.retention, plan.segment_interval, headers=plan.values == "headers")
        self._rows = database.rows
        self.changed: dict[bytes, bytes | None] = {}
        self.dropped: list[tuple[bytes, bytes]] = []
        self._find_segments()
        self._opened(None)

    def observe(self, time: int) -> int:
        """Advance the observed time, and return it."""
        self._observed = max(self._observed, time)
        return self._observed

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


class SegmentedTarget(Target):
    """A store of windows or sessions."""

    def _open(self, task: Path) -> None:
        plan, retention = self.plan, self.plan.retention
        assert retention is not None
        self._retention = retention
        self._interval = plan.segment_interval or segment_interval(retention)
        keys, by_time = _KEYS[plan.store_type]
        self._suffix, self._by_time = keys.suffix, by_time
        self._segments = Segments(plan.name, task / plan.place, retention, self._interval, plan.layout, OPTIONS)

    def databases(self) -> list[Database]:
        """Return the open databases."""
        return self._segments.all()

    def _rows(self, records: Records, values: pa.BinaryArray) -> dict[Database, Changes]:
        times = self._times(records.keys)
        self.observed = max(self.observed, int(times.max()))
        segments = np.where(times >= 0, times // self._interval, -(-times // self._interval))
        keys, stored = records.keys.to_pylist(), values.to_pylist()
        found: dict[Database, Changes] = {}
        for segment in np.unique(segments):
            wanted = np.flatnonzero(segments == segment)
            time = int(times[wanted[0]])
            is_new = self._segments.of(time) is None
            database = self._segments.live(time, self.observed)
            if database is None:
                continue
            if is_new:
                # The rows before these are not missing in it, whenever the process dies.
                database.write((), self._marks())
                database.flush()
            found[database] = [*self._stored((keys[at], stored[at]) for at in wanted)]
        return found

    def _stored(self, rows: Iterator[tuple[bytes, bytes | None]]) -> Iterator[tuple[bytes, bytes | None]]:
        if self._by_time is None:
            yield from rows
            return
        for key, value in rows:
            yield self._by_time.index(key), None if value is None else b""
            yield self._by_time.row(key), value

    def _times(self, keys: pa.BinaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the time in each key, which is the first of the integers at its end."""
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


def open_target(plan: Plan, task: Path, place: tuple[str, int]) -> Target:
    """Create the databases of a store below a task directory, or open those of an interrupted restore."""
    types: dict[str, type[Target]] = {"key-value": KeyValueTarget, "versioned": VersionedTarget}
    return types.get(plan.store_type, SegmentedTarget)(plan, task, place)


_KEYS: dict[str, tuple[type[KeySchema], type[TimeOrderedKeys] | None]] = {
    "window": (WindowKeys, None),
    "session": (SessionKeys, None),
    "time-ordered-window": (WindowKeys, TimeOrderedWindowKeys),
    "time-ordered-session": (SessionKeys, TimeOrderedSessionKeys),
}
_NO_HEADERS = Headers()
_INT64 = struct.Struct(">q")
