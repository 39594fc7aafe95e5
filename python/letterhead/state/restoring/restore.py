"""Rebuild the directory of a store from its changelog: :func:`restore`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from letterhead._durable_files import make_directory, replace_file, sync_directory
from letterhead._invariants import require
from letterhead._names import check_name
from letterhead.errors import ProcessorStateError
from letterhead.offsets.partition_log import TopicPartition
from letterhead.state.base import FORMATS
from letterhead.state.durations import Milliseconds, milliseconds
from letterhead.state.reading.directory import task_partition
from letterhead.state.reading.store_types import STORE_TYPES, value_format_of
from letterhead.state.storage.database import StoredFamilies, load_rocksdict
from letterhead.state.storage.files import read_text
from letterhead.state.storage.layouts import LAYOUTS
from letterhead.state.storage.position import Position

if TYPE_CHECKING:
    from letterhead.state.restoring.bulk_rows import RestorePlan, RestoreTarget, RowBatch
    from letterhead.state.restoring.changelog_records import Records, Source

__all__ = ["Restored", "restore"]

PersistentStoreType: TypeAlias = Literal[
    "key-value", "window", "session", "versioned", "time-ordered-window", "time-ordered-session"
]
StoreLayout: TypeAlias = Literal["headers", "timestamped", "plain"]
Start: TypeAlias = "Literal['earliest'] | int | Mapping[int, int] | None"

WRITE_BYTES = 64 << 20
"""Size of the rows of a partition that are written at once. With a larger size, RocksDB has to merge fewer files later,
but an interrupted restore has to repeat more."""
MEMORY_BYTES = 4 * WRITE_BYTES
"""Total size limit of the rows of all partitions that are queued or being written, in bytes."""


@dataclass
class Restored:
    """Result of :func:`restore`.

    Attributes
    ----------
    directories : dict of int to Path
        Directory of the store for each partition.
    offsets : dict of int to int
        Offset of the last record in the store for each partition; -1 if there are no records.
    records : int
        Number of records read, excluding records that an interrupted restore had already written.
    """

    directories: dict[int, Path] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    records: int = 0


def restore(
    source: Source,
    directory: str | Path,
    store: str,
    *,
    store_type: PersistentStoreType = "key-value",
    layout: StoreLayout = "headers",
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
    topic: str | None = None,
    partition: int | None = None,
    start: Start = None,
    end: int | datetime | None = None,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Restored:
    """Rebuild the directory of a store from the records of its changelog.

    Use it after the loss of a disk, to inspect a store as of an offset, or to convert a store to a layout with or without
    headers. Kafka Streams can open the directory, and continues to read the changelog after the restored offset.

    To continue an interrupted restore, repeat the call with the same options. Until the restore is complete, the rows are
    in the hidden directory ``.<store>.restoring`` next to the other directories.

    Parameters
    ----------
    source : Arrow stream or path
        The records: an Arrow stream such as :func:`letterhead.read.topic` or a table, a Parquet file, or an
        argument of :func:`letterhead.read.segments`. Columns are ``key``, ``value``, ``offset``, ``timestamp``,
        ``headers`` (unless the layout has none), ``partition`` and ``topic``; the offsets of a partition must be in order.
        As in Kafka Streams under exactly-once, log segments are read up to the first open transaction, without records of
        aborted transactions. To do the same for a topic, read it with ``isolation_level="read_committed"``.
    directory : path
        The directory of the task, ``<state>/<application>/<subtopology>_<partition>``. For all partitions of a changelog,
        use the placeholder ``{partition}``: ``state/orders-app/0_{partition}``. Partitions are written in parallel. For a
        partition without records, no directory is created; Kafka Streams creates it.
    store : str
        Name of the store.
    store_type : str, default "key-value"
        ``key-value``, ``window``, ``session``, ``versioned``, ``time-ordered-window`` or ``time-ordered-session``.
    layout : {"headers", "timestamped", "plain"}, default "headers"
        What the store keeps in addition to values. With a layout without headers, the headers remain in the changelog
        only.
    retention : int or timedelta, optional
        Retention of the store in milliseconds, or the history retention of a versioned store. Required for all types
        except key-value. Expired rows are skipped.
    segment_interval : int or timedelta, optional
        Length of a segment in milliseconds; by default derived from the retention, as in Kafka Streams.
    topic : str, optional
        Name of the changelog topic, under which the offset is stored; by default the name in the column ``topic``.
    partition : int, optional
        The partition to restore; by default the only partition of the source.
    start : "earliest", int or mapping of int to int, optional
        The offset to begin with, or an offset for each partition. By default, window and session stores begin where
        Kafka Streams 4.4 does: at the first record that is not older than the timestamp of the last record minus the
        retention. Other stores, and streams that can be read only once, begin with the first record. Kafka Streams 4.3
        begins with ``"earliest"``, and therefore keeps rows that 4.4 skips: rows of the oldest segments, and newer rows
        whose records have old timestamps.
    end : int or datetime, optional
        End, exclusive: an offset, or the first record at or after a datetime with a time zone.
    force : bool, default False
        Restore even if names contradict each other: the topic is not named ``<application>-<store>-changelog`` or differs
        from the column ``topic``, or a partition differs from the name of the task. This is necessary if Kafka Streams uses
        an input topic as the changelog of a table (``topology.optimization``).
    progress : callable, optional
        Called with the number of records read after each batch.

    Returns
    -------
    Restored
        Directories, offsets, and the number of records.

    Raises
    ------
    FileExistsError
        If the directory already contains the store; nothing is changed.
    ValueError
        If an option is invalid, a column is missing, names contradict each other, or the source has several partitions
        and ``directory`` has no placeholder.
    ProcessorStateError
        If an interrupted restore had other options or has written rows of records after the end of the source, or if
        the files cannot be written.
    DamagedRowError
        If a key is too short to contain its times.
    ModuleNotFoundError
        If pyarrow or rocksdict is not installed.

    Examples
    --------
    >>> import letterhead as lh, pathlib, tempfile
    >>> task = pathlib.Path(tempfile.mkdtemp(), "orders-app", "0_0")
    >>> done = lh.state.restore("tests/samples/orders-app-latest-changelog-0", task, "latest")
    >>> done.records, done.offsets, done.directories[0].relative_to(task).as_posix()
    (10000, {0: 9999}, 'rocksdb/latest')
    >>> lh.read.state(task).read_all().num_rows
    6643
    """
    plan = plan_of(store, store_type, layout, retention, segment_interval)
    load_rocksdict()
    from letterhead.state.restoring.changelog_records import changelog_records, check_end

    restored, pattern = Restored(), str(directory)
    check_end(end)
    first = _first_offsets(source, plan, start, partition, end)
    targets: dict[int, _PartitionRestore] = {}

    def target_of(number: int, topic_of_source: str | None) -> _PartitionRestore:
        if number not in targets:
            if targets and "{partition}" not in pattern:
                raise ValueError(
                    f"the source has partitions {next(iter(targets))} and {number}: pass partition=, or put {{partition}} "
                    "into the directory, as in state/app/0_{partition}"
                )
            task = Path(pattern.replace("{partition}", str(number)))
            changelog = TopicPartition(_topic(topic, topic_of_source), number)
            if not force:
                _check_names(plan.name, task, changelog, topic_of_source)
            targets[number] = _PartitionRestore(plan, task, changelog, end)
        return targets[number]

    with ThreadPoolExecutor(thread_name_prefix="letterhead-restore") as pool:
        writes = _WriteQueue(pool)
        try:
            for records in changelog_records(source, partition=partition, end=end):
                target = target_of(records.partition, records.topic)
                before = max(target.offset, first(records.partition) - 1)
                if records.offsets[-1] > before and not target.complete:
                    records = records.slice(int((records.offsets > before).argmax()))
                    writes.add(target, target.rows(records))
                    restored.records += len(records.offsets)
                if progress is not None:
                    progress(len(records.offsets))
            writes.finish()
            if not targets and partition is not None and topic is not None:
                target_of(partition, None)
            if not targets:
                raise ValueError(
                    "the source has no record before the end: pass topic= and partition= for an empty store"
                )
            finished = {number: pool.submit(target.finish) for number, target in targets.items()}
            for number, target in targets.items():
                restored.directories[number] = finished[number].result()
                restored.offsets[number] = target.offset
            # Clean up after all stores have been moved: until then, the hidden directories identify the stores of this
            # restore.
            for target in targets.values():
                target.clean()
        except BaseException:
            # Discard queued rows, which the next restore reads again. Running writes must end before stores are closed.
            pool.shutdown()
            for target in targets.values():
                with suppress(Exception):
                    target.close()
            raise
    return restored


def _first_offsets(
    source: Source, plan: RestorePlan, start: Start, partition: int | None, end: int | datetime | None
) -> Callable[[int], int]:
    """Return a function that returns the offset of the first record to restore in a partition."""
    if isinstance(start, Mapping):
        offsets = dict(start)
    elif isinstance(start, int) and not isinstance(start, bool):
        return lambda _: start
    elif start is not None and start != "earliest":
        raise TypeError('start must be "earliest", an offset or a mapping of partition to offset')
    else:
        from letterhead.state.restoring.first_offsets import can_be_read_again, find_retained_offsets

        offsets = {}
        if start is None and plan.segmented and plan.retention and can_be_read_again(source):
            offsets = find_retained_offsets(source, plan.retention, partition=partition, end=end)
    return lambda number: offsets.get(number, 0)


class _WriteQueue:
    """Queue of rows that are written in threads, with one write at a time for each partition."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._waiting: dict[_PartitionRestore, list[RowBatch]] = {}
        self._bytes: dict[_PartitionRestore, int] = {}
        self._running: dict[_PartitionRestore, tuple[Future[None], int]] = {}

    def add(self, target: _PartitionRestore, rows: RowBatch) -> None:
        """Queue rows of a partition, and write them once there are enough, or once the queue takes too much memory."""
        if self._bytes.get(target, 0) and self._bytes[target] + rows.memory > WRITE_BYTES:
            self._write(target)
        self._waiting.setdefault(target, []).append(rows)
        self._bytes[target] = self._bytes.get(target, 0) + rows.memory
        if sum(self._bytes.values()) > MEMORY_BYTES // 2:
            self._write(max(self._bytes, key=self._bytes.__getitem__))
        while self._running and self.memory > MEMORY_BYTES:
            self._wait(next(iter(self._running)))

    @property
    def memory(self) -> int:
        """Size of the rows that are queued or being written, in bytes."""
        return sum(self._bytes.values()) + sum(size for _, size in self._running.values())

    def finish(self) -> None:
        """Write all rows."""
        for target in [*self._waiting]:
            self._write(target)
        for target in [*self._running]:
            self._wait(target)

    def _write(self, target: _PartitionRestore) -> None:
        if target in self._running:
            self._wait(target)
        rows, size = self._waiting.pop(target), self._bytes.pop(target)
        self._running[target] = self._pool.submit(target.write, rows), size

    def _wait(self, target: _PartitionRestore) -> None:
        self._running[target][0].result()
        del self._running[target]


def plan_of(
    store: str,
    store_type: str,
    layout: str,
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
) -> RestorePlan:
    """Build the plan of a restore; raise ValueError for invalid options."""
    from letterhead.state.restoring.bulk_rows import RestorePlan

    check_name("store type", store_type, STORE_TYPES)
    check_name("layout", layout, FORMATS)
    if (store_type, layout) not in LAYOUTS:
        layouts = " or ".join(values for name, values in LAYOUTS if name == store_type)
        raise ValueError(f"a {store_type} store cannot be {layout}: its layout is {layouts}")
    retention_ms = None if retention is None else milliseconds("retention", retention)
    interval_ms = None if segment_interval is None else milliseconds("segment_interval", segment_interval)
    if interval_ms == 0:
        raise ValueError("segment_interval cannot be 0")
    if store_type == "key-value" and (retention_ms is not None or interval_ms is not None):
        raise ValueError("rows of a key-value store do not expire: leave out retention= and segment_interval=")
    if store_type != "key-value" and retention_ms is None:
        raise ValueError(f"rows of a {store_type} store expire: pass retention=, as the application does")
    if not store or "/" in store or store.startswith("."):
        raise ValueError(f"{store!r} is not the name of a store")
    values, families = value_format_of(store_type, layout), LAYOUTS[store_type, layout]
    return RestorePlan(store, store_type, layout, values, families, retention_ms, interval_ms)


class _PartitionRestore:
    """Restore of one partition, in a hidden directory until it is complete.

    The file ``options.json`` in this directory records the options, and whether all rows have been written.
    """

    def __init__(self, plan: RestorePlan, task: Path, changelog: TopicPartition, end: int | datetime | None) -> None:
        from letterhead.state.restoring.bulk_rows import open_target

        self._plan = plan
        self._directory = task / plan.path
        self._hidden = task / f".{plan.name}.restoring"
        self._file = self._hidden / "options.json"
        self._options = {
            "topic": changelog.topic,
            "partition": changelog.partition,
            "store_type": plan.store_type,
            "layout": plan.layout_name,
            "retention": plan.retention,
            "segment_interval": plan.segment_interval,
            "end": str(end) if isinstance(end, datetime) else end,
        }
        self._target: RestoreTarget | None = None
        self._position = Position()
        if self._directory.exists():
            if not self._hidden.exists() or not self._is_in_place():
                raise FileExistsError(
                    f"store {plan.name} exists in {self._directory}: restore into another directory, or move this one away"
                )
            self.complete, self.offset = True, _read_stored_offset(self._directory, changelog)
            return
        self.complete = self._begin()
        self._target = open_target(plan, self._hidden, changelog)
        self.offset, self._position = self._target.offset, self._target.position

    def _is_in_place(self) -> bool:
        """Return whether this restore has already moved its store into place, so that only the hidden directory remains."""
        if not any(self._hidden.iterdir()):
            return True
        return self._begin() and not (self._hidden / self._plan.path).exists()

    def _begin(self) -> bool:
        """Create the hidden directory, or check the options of an interrupted restore; return whether all rows are written."""
        try:
            stored_options = json.loads(read_text(self._file))
            complete: bool = stored_options.pop("complete")
        except (FileNotFoundError, ValueError):
            self._save(complete=False)
            return False
        conflicts = [f"{name}={value!r}" for name, value in stored_options.items() if self._options.get(name) != value]
        if conflicts:
            raise ProcessorStateError(
                f"a restore of store {self._plan.name} was interrupted that had {', '.join(conflicts)}: repeat it with that, "
                f"or delete {self._hidden}"
            )
        return complete

    def _save(self, *, complete: bool) -> None:
        make_directory(self._hidden)
        replace_file(self._file, json.dumps(self._options | {"complete": complete}))

    def rows(self, records: Records) -> RowBatch:
        """Remove positions from the records, and convert the records to rows."""
        from letterhead.state.restoring.bulk_rows import rows_of, without_positions

        if records.headers is not None:
            records, self._position = without_positions(records, self._position)
        elif self._plan.value_format == "headers":
            raise ValueError("the source has no column 'headers': pass layout='timestamped' or 'plain' to do without")
        return rows_of(records, self._plan, self._position)

    def write(self, rows: list[RowBatch]) -> None:
        """Write rows."""
        target = require(self._target, "the store to write")
        target.write(rows)
        self.offset = target.offset

    def finish(self) -> Path:
        """Close the store, and move it to its final directory."""
        if self._target is not None:
            if not self.complete:
                self._check_rows(self._target)
                self._target.commit()
                self._save(complete=True)
            self._target.finish()
            make_directory(self._directory.parent)
            (self._hidden / self._plan.path).rename(self._directory)
            # Sync before the hidden directory is removed; otherwise, a system crash could lose both.
            sync_directory(self._directory.parent)
        return self._directory

    def clean(self) -> None:
        """Remove the hidden directory, its options last, so that they can still be checked after an interruption."""
        for path in self._hidden.iterdir():
            if path != self._file:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self._hidden)

    def _check_rows(self, target: RestoreTarget) -> None:
        """Raise if an interrupted restore may have written rows of records after the last offset of the source."""
        if target.added > target.offset:
            raise ProcessorStateError(
                f"the source ends at offset {target.offset}, but an interrupted restore of store {self._plan.name} may have "
                f"written rows up to offset {target.added}: repeat it with the whole source, or delete {self._hidden}"
            )

    def close(self) -> None:
        """Close the store; a later call of :func:`restore` can continue."""
        if self._target is not None:
            self._target.close()


def _read_stored_offset(directory: Path, changelog: TopicPartition) -> int:
    offsets = []
    for current in directory.rglob("CURRENT"):
        with StoredFamilies(current.parent) as families:
            offsets.append(families.offsets().get(str(changelog), -1))
    return max(offsets, default=-1)


def _check_names(store: str, task: Path, changelog: TopicPartition, topic_of_source: str | None) -> None:
    """Raise ValueError if names indicate that the records belong to another store or task."""
    topic, partition = changelog
    task_number = task_partition(task.absolute().name)
    problem = None
    if topic_of_source not in (None, topic):
        problem = f"the records are of topic {topic_of_source}, and not of {topic}"
    elif not re.fullmatch(rf".+-{re.escape(store)}-changelog", topic, re.DOTALL):
        problem = f"topic {topic} is not named <application>-{store}-changelog, as the changelog of store {store} is"
    elif task_number not in (None, partition):
        name = task.absolute().name
        problem = f"the records are of partition {partition}, and the task {name} is of partition {task_number}"
    if problem is not None:
        raise ValueError(
            f"{problem}: pass the changelog of this task, or force=True (--force) if the records are right"
        )


def _topic(requested: str | None, topic_of_source: str | None) -> str:
    if requested is None and topic_of_source is None:
        raise ValueError("the source does not name the changelog: pass topic=")
    return requested or topic_of_source or ""
