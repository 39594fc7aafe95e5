"""Rebuild the directory of a store from its changelog: :func:`restore`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from letterhead.errors import ProcessorStateError, check_name
from letterhead.read.store_types import LAYOUTS, STORE_TYPES, VALUES
from letterhead.storage.database import StoredFamilies, load_rocksdict
from letterhead.storage.position import Position

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.state.bulk_rows import Plan, Target
    from letterhead.state.changelog_records import Records, Source

__all__ = ["Restored", "restore"]

StoreType: TypeAlias = Literal[
    "key-value", "window", "session", "versioned", "time-ordered-window", "time-ordered-session"
]
StoreLayout: TypeAlias = Literal["headers", "timestamped", "plain"]
Milliseconds: TypeAlias = "int | timedelta"


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
        Number of records that were read, without those that an interrupted restore had written.
    """

    directories: dict[int, Path] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    records: int = 0


def restore(
    source: Source,
    directory: str | Path,
    store: str,
    *,
    store_type: StoreType = "key-value",
    layout: StoreLayout = "headers",
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
    topic: str | None = None,
    partition: int | None = None,
    end: int | None = None,
    until: int | datetime | None = None,
    progress: Callable[[int], None] | None = None,
) -> Restored:
    """Rebuild the directory of a store from the records of its changelog.

    Use it after a disk was lost, to inspect a store as it was at an offset, or to move a store between layouts: from one
    with headers to one without, or back. Kafka Streams opens the directory and reads the changelog from there on.

    A restore that was interrupted continues where it was when it is repeated: until it is complete, the rows are in the
    hidden directory ``.<store>.restoring`` beside the others.

    Parameters
    ----------
    source : Arrow stream or path
        The records: an Arrow stream such as :func:`letterhead.read.topic` or a table, a Parquet file, or what
        :func:`letterhead.read.segments` takes. It has the columns ``key``, ``value``, ``offset``, ``timestamp``,
        ``headers`` (unless the layout has none), ``partition`` and ``topic``, with the offsets of a partition in order.
    directory : path
        The directory of the task, ``<state>/<application>/<subtopology>_<partition>``. For all partitions of a changelog
        it contains ``{partition}``: ``state/orders-app/0_{partition}``. Partitions are written in parallel.
    store : str
        Name of the store.
    store_type : str, default "key-value"
        ``key-value``, ``window``, ``session``, ``versioned``, ``time-ordered-window`` or ``time-ordered-session``.
    layout : {"headers", "timestamped", "plain"}, default "headers"
        What values have beside the payload. Headers that the layout has no place for are only in the changelog.
    retention : int or timedelta, optional
        How long the store keeps rows, in milliseconds, or the history retention of a versioned store. Required for all
        types except key-value. Expired rows are left out.
    segment_interval : int or timedelta, optional
        Length of a segment in milliseconds; by default derived from the retention, as in Kafka Streams.
    topic : str, optional
        Name of the changelog, under which the offset is stored; by default that in the column ``topic``.
    partition : int, optional
        The partition to restore; by default the only one of the source.
    end : int, optional
        Offset to stop before.
    until : int or datetime, optional
        Stop before the first record that is not older: milliseconds since 1970, or a datetime with a time zone.
    progress : callable, optional
        Called with the number of records after each batch.

    Returns
    -------
    Restored
        Directories, offsets, and the number of records.

    Raises
    ------
    FileExistsError
        If the directory has the store already; nothing is changed.
    ValueError
        If an option is invalid, a column is missing, or the source has several partitions and the directory is one.
    ProcessorStateError
        If an interrupted restore had other options, or the files cannot be written.
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
    from letterhead.state.changelog_records import Until, changelog_records, milliseconds

    restored, each = Restored(), str(directory)
    targets: dict[int, _Restoring] = {}
    writes: dict[int, Future[None]] = {}
    with ThreadPoolExecutor(thread_name_prefix="letterhead-restore") as pool:
        try:
            for records in changelog_records(source, partition=partition, until=Until(end, milliseconds(until))):
                number = records.partition
                if number not in targets:
                    if targets and "{partition}" not in each:
                        raise ValueError(
                            f"the source has partitions {next(iter(targets))} and {number}: pass partition=, or put "
                            f"{{partition}} into the directory, as in state/app/0_{{partition}}"
                        )
                    task = Path(each.replace("{partition}", str(number)))
                    targets[number] = _Restoring(plan, task, (_topic(topic, records.topic), number))
                if records.offsets[-1] > targets[number].offset and not targets[number].complete:
                    records = records.slice(int((records.offsets > targets[number].offset).argmax()))
                    records, values = targets[number].convert(records)
                    if number in writes:
                        writes[number].result()
                    # Values are encoded while those before are written, of this and of other partitions.
                    writes[number] = pool.submit(targets[number].write, records, values)
                    restored.records += len(records.offsets)
                if progress is not None:
                    progress(len(records.offsets))
            for write in writes.values():
                write.result()
            if not targets and partition is not None and topic is not None:
                targets[partition] = _Restoring(
                    plan, Path(each.replace("{partition}", str(partition))), (topic, partition)
                )
            if not targets:
                raise ValueError(
                    "the source has no record before the end: pass topic= and partition= for an empty store"
                )
            finished = {number: pool.submit(target.finish) for number, target in targets.items()}
            for number, target in targets.items():
                restored.directories[number] = finished[number].result()
                restored.offsets[number] = target.offset
        except BaseException:
            for write in writes.values():
                with suppress(Exception):
                    write.result()
            for target in targets.values():
                with suppress(Exception):
                    target.close()
            raise
    return restored


def plan_of(
    store: str,
    store_type: str,
    layout: str,
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
) -> Plan:
    """Check the options of a store; raise ValueError if they do not fit."""
    from letterhead.state.bulk_rows import Plan

    check_name("store type", store_type, STORE_TYPES)
    check_name("layout", layout, VALUES)
    if (store_type, layout) not in LAYOUTS:
        layouts = " or ".join(values for name, values in LAYOUTS if name == store_type)
        raise ValueError(f"a {store_type} store cannot be {layout}: its layout is {layouts}")
    kept, interval = _milliseconds("retention", retention), _milliseconds("segment_interval", segment_interval)
    if store_type == "key-value" and (kept is not None or interval is not None):
        raise ValueError("rows of a key-value store do not expire: leave out retention= and segment_interval=")
    if store_type != "key-value" and kept is None:
        raise ValueError(f"rows of a {store_type} store expire: pass retention=, as the application does")
    if not store or "/" in store or store.startswith("."):
        raise ValueError(f"{store!r} is not the name of a store")
    return Plan(store, store_type, layout, LAYOUTS[store_type, layout], kept, interval)


class _Restoring:
    """The restore of one partition, in a hidden directory until it is complete."""

    def __init__(self, plan: Plan, task: Path, place: tuple[str, int]) -> None:
        from letterhead.state.bulk_rows import open_target

        self._plan = plan
        self._directory = task / plan.place
        self._hidden = task / f".{plan.name}.restoring"
        options = {
            "topic": place[0],
            "partition": place[1],
            "store_type": plan.store_type,
            "layout": plan.values,
            "retention": plan.retention,
            "segment_interval": plan.segment_interval,
        }
        self._target: Target | None = None
        self._position = Position()
        if self._directory.exists():
            if not self._hidden.exists() or (self._hidden / plan.place).exists():
                raise FileExistsError(
                    f"store {plan.name} exists in {self._directory}: restore into another directory, or move this one away"
                )
            # The restore was complete, but for the removal of the hidden directory.
            self.offset = _stored_offset(self._directory, place)
            return
        self._begin(options)
        self._target = open_target(plan, self._hidden, place)
        self.offset = self._target.offset

    def _begin(self, options: dict[str, Any]) -> None:
        """Create the hidden directory, or check that an interrupted restore had the same options."""
        file = self._hidden / "options.json"
        try:
            before = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            self._hidden.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(options))
            return
        if before != options:
            other = ", ".join(f"{name}={value!r}" for name, value in before.items() if options[name] != value)
            raise ProcessorStateError(
                f"a restore of store {self._plan.name} was interrupted that had {other}: repeat it with that, or delete "
                f"{self._hidden}"
            )

    @property
    def complete(self) -> bool:
        """Whether nothing is left to write."""
        return self._target is None

    def convert(self, records: Records) -> tuple[Records, pa.BinaryArray]:
        """Return records without positions, and their values as the store has them."""
        from letterhead.state.bulk_rows import stored_values, without_positions

        if records.headers is not None:
            records = without_positions(records, self._position)
        elif self._plan.values == "headers":
            raise ValueError("the source has no column 'headers': pass layout='timestamped' or 'plain' to do without")
        return records, stored_values(records, self._plan)

    def write(self, records: Records, values: pa.BinaryArray) -> None:
        """Write records."""
        assert self._target is not None
        self._target.write(records, values)
        self.offset = self._target.offset

    def finish(self) -> Path:
        """Close the store, and move it to its place."""
        if self._target is not None:
            self._target.finish(self._position)
            self._directory.parent.mkdir(parents=True, exist_ok=True)
            (self._hidden / self._plan.place).rename(self._directory)
        shutil.rmtree(self._hidden)
        return self._directory

    def close(self) -> None:
        """Close the store, so that the restore can be continued."""
        if self._target is not None:
            self._target.close()


def _stored_offset(directory: Path, place: tuple[str, int]) -> int:
    offsets = []
    for current in directory.rglob("CURRENT"):
        with StoredFamilies(current.parent) as families:
            offsets.append(families.offsets().get(f"{place[0]}-{place[1]}", -1))
    return max(offsets, default=-1)


def _topic(given: str | None, found: str | None) -> str:
    if given is None and found is None:
        raise ValueError("the source does not name the changelog: pass topic=")
    return given or found or ""


def _milliseconds(name: str, duration: Milliseconds | None) -> int | None:
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        duration //= timedelta(milliseconds=1)
    if not isinstance(duration, int) or isinstance(duration, bool):
        raise TypeError(f"{name} must be a number of milliseconds or a timedelta, not {type(duration).__name__}")
    if duration < 0 or (duration == 0 and name == "segment_interval"):
        raise ValueError(f"{name} cannot be {'negative' if duration < 0 else '0'}")
    return duration
