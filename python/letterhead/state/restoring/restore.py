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
"""Size of the rows of a partition that are written at once. With more, RocksDB merges fewer files later, and a
killed restore repeats more."""
MEMORY_BYTES = 4 * WRITE_BYTES
"""Limit of bytes of rows of all partitions that are queued or being written."""


@dataclass
class Restored:
    """The result of :func:`restore`.

    Attributes
    ----------
    directories : dict of int to Path
        The directory of the store, by partition.
    offsets : dict of int to int
        The offset of the last record in the store, by partition; -1 if there was none.
    records : int
        Number of records that were read, without the records that an interrupted restore had written.
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

    Use it after a disk was lost, to inspect a store as it was at an offset, or to move a store between layouts: from one
    with headers to one without, or back. Kafka Streams opens the directory and reads the changelog from there on.

    A restore that was interrupted continues where it was when it is repeated with the same options: until it is complete,
    the rows are in the hidden directory ``.<store>.restoring`` beside the other directories.

    Parameters
    ----------
    source : Arrow stream or path
        The records: an Arrow stream such as :func:`letterhead.read.topic` or a table, a Parquet file, or an
        argument of :func:`letterhead.read.segments`. It has the columns ``key``, ``value``, ``offset``, ``timestamp``,
        ``headers`` (unless the layout has none), ``partition`` and ``topic``, with the offsets of a partition in order.
        Log segments are read up to the first open transaction, without records of aborted ones, as Kafka Streams does
        under exactly-once. Read a topic with ``isolation_level="read_committed"`` for the same.
    directory : path
        The directory of the task, ``<state>/<application>/<subtopology>_<partition>``. For all partitions of a changelog
        it contains ``{partition}``: ``state/orders-app/0_{partition}``. Partitions are written in parallel. One without
        records gets no directory: Kafka Streams creates it.
    store : str
        Name of the store.
    store_type : str, default "key-value"
        ``key-value``, ``window``, ``session``, ``versioned``, ``time-ordered-window`` or ``time-ordered-session``.
    layout : {"headers", "timestamped", "plain"}, default "headers"
        The parts of a value besides its payload. Headers that the layout cannot hold are only in the changelog.
    retention : int or timedelta, optional
        Milliseconds for which the store keeps rows, or the history retention of a versioned store. Required for all
        types except key-value. Expired rows are skipped.
    segment_interval : int or timedelta, optional
        Length of a segment in milliseconds; by default derived from the retention, as in Kafka Streams.
    topic : str, optional
        Name of the changelog, under which the offset is stored; by default that in the column ``topic``.
    partition : int, optional
        The partition to restore; by default the only one of the source.
    start : "earliest", int or mapping of int to int, optional
        The offset to begin with, or one for each partition. By default, a window or session store begins where Kafka
        Streams 4.4 begins to restore it: at the first record that is not older than the timestamp of the last record
        minus the retention. Other stores, and streams that can be read only once, begin with the first record. Kafka
        Streams 4.3 begins with ``"earliest"``, and so keeps rows that 4.4 skips: rows of the oldest segments, and
        newer ones whose records have old timestamps.
    end : int or datetime, optional
        Where to stop: before an offset, or before the first record at or after a datetime with a time zone.
    force : bool, default False
        Restore even if names contradict each other: the topic is not ``<application>-<store>-changelog`` or not the one
        in the column ``topic``, or a partition is not the one in the name of the task. Kafka Streams with
        ``topology.optimization`` uses an input topic as the changelog of its table.
    progress : callable, optional
        Called with the number of records after each batch.

    Returns
    -------
    Restored
        Directories, offsets, and the number of records.

    Raises
    ------
    FileExistsError
        If the directory already contains the store; nothing is changed.
    ValueError
        If an option is invalid, a column is missing, the source has several partitions and the directory is one, or
        names contradict each other.
    ProcessorStateError
        If an interrupted restore had other options or rows of records after the end of the source, or the files cannot be
        written.
    DamagedRowError
        If a key is too short for its times.
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
            # Only after all stores were moved, because the next restore recognizes its stores by the hidden directory.
            for target in targets.values():
                target.clean()
        except BaseException:
            # The next restore reads queued rows again; running writes must end before the stores are closed.
            pool.shutdown()
            for target in targets.values():
                with suppress(Exception):
                    target.close()
            raise
    return restored


def _first_offsets(
    source: Source, plan: RestorePlan, start: Start, partition: int | None, end: int | datetime | None
) -> Callable[[int], int]:
    """Return a function from a partition to the offset of its first record to restore."""
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
    """Queues rows, and writes them in threads: one write at a time for each partition."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._waiting: dict[_PartitionRestore, list[RowBatch]] = {}
        self._bytes: dict[_PartitionRestore, int] = {}
        self._running: dict[_PartitionRestore, tuple[Future[None], int]] = {}

    def add(self, target: _PartitionRestore, rows: RowBatch) -> None:
        """Queue rows of a partition; write them when there are enough, or when all queued rows take too much memory."""
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
        """Bytes of rows that are queued or being written."""
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
    """Build the plan of a restore; raise ValueError if the options do not fit."""
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

    The file ``options.json`` in it contains the options, and whether all rows are written.
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
        """Return whether this restore created the existing store, and only has to remove the hidden directory."""
        if not any(self._hidden.iterdir()):
            return True
        return self._begin() and not (self._hidden / self._plan.path).exists()

    def _begin(self) -> bool:
        """Create the hidden directory, or check the options of an interrupted restore; return whether it was complete."""
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
        """Return the rows of the records, without positions."""
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
            # On disk before the hidden directory is removed, or a crash of the machine could lose both.
            sync_directory(self._directory.parent)
        return self._directory

    def clean(self) -> None:
        """Remove the hidden directory, with the options last, so that an interrupted removal can still check them."""
        for path in self._hidden.iterdir():
            if path != self._file:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self._hidden)

    def _check_rows(self, target: RestoreTarget) -> None:
        """Raise if a process that died may have written rows of records after the offset."""
        if target.added > target.offset:
            raise ProcessorStateError(
                f"the source ends at offset {target.offset}, but an interrupted restore of store {self._plan.name} may have "
                f"written rows up to offset {target.added}: repeat it with the whole source, or delete {self._hidden}"
            )

    def close(self) -> None:
        """Close the store, so that the restore can be continued."""
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
