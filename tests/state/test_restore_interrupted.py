"""Restores that end early, at places that a kill seldom hits: what the next one finds, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.errors import ProcessorStateError
from letterhead.state import ChangelogRecord, restore
from letterhead.state.context import with_position
from letterhead.state.restoring import bulk_rows
from letterhead.state.restoring import restore as restoring
from letterhead.state.storage.database import Database, RocksDBOptions, StoredFamilies
from letterhead.state.storage.keys import window_key
from letterhead.state.storage.layouts import HEADERS
from letterhead.state.storage.position import Position
from tests.state import changelogs, traces

EACH = 20
"""Records of a batch, which is written when the next one arrives."""

DATE = datetime.fromtimestamp(0.009, UTC)


@pytest.fixture(autouse=True)
def small_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "WRITE_BYTES", 1)


def record(key: bytes, value: bytes | None, timestamp: int = 5, headers: lh.Headers | None = None) -> ChangelogRecord:
    return ChangelogRecord(key, value, timestamp, headers or lh.Headers())


def table(count: int) -> pa.Table:
    return changelogs.table([record(b"k%d" % (n % 7), b"%d" % n) for n in range(count)])


def source(whole: pa.Table, ends: Exception | None = None) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from whole.to_batches(max_chunksize=EACH)
        if ends is not None:
            raise ends

    return pa.RecordBatchReader.from_batches(whole.schema, batches())


def interrupted(whole: pa.Table, task: Path, **options: Any) -> None:
    """Restore all batches but the last, which waits when the source fails."""
    with pytest.raises(OSError, match="gone"):
        restore(source(whole, ConnectionError("gone")), task, "store", **options)


def raise_at(monkeypatch: pytest.MonkeyPatch, method: str, when: Callable[..., bool]) -> None:
    """Let a method of a database raise where a condition on its arguments holds."""
    original = getattr(Database, method)

    def broken(self: Database, *arguments: Any) -> Any:
        if when(self, *arguments):
            raise ProcessorStateError("cut")
        return original(self, *arguments)

    monkeypatch.setattr(Database, method, broken)


@pytest.mark.parametrize(
    ("before", "after", "had"),
    [({}, {"end": 30}, "end=None"), ({"end": 90}, {"end": 30}, "end=90"), ({"end": DATE}, {}, f"end='{DATE}'")],
)
def test_bounds_other_than_interrupted_restore_had_are_rejected(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], had: str
) -> None:
    interrupted(table(100), tmp_path / "task", **before)
    with pytest.raises(ProcessorStateError, match=re.escape(f"was interrupted that had {had}: repeat it with that")):
        restore(table(100), tmp_path / "task", "store", **after)
    restore(table(100), tmp_path / "task", "store", **before)
    restore(table(100), tmp_path / "whole", "store", **before)
    assert traces.databases(tmp_path / "task") == traces.databases(tmp_path / "whole")


@pytest.mark.parametrize("end", [30, 39])
def test_file_added_without_its_offset_is_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    offsets = []

    def is_second(_database: Database, _rows: Any, marks: list[tuple[bytes, bytes]], *_dropped: Any) -> bool:
        offsets.extend(key for key, _ in marks if key.endswith(b"changelog-0"))
        return len(offsets) == 2 and marks[0][0].endswith(b"changelog-0")

    with monkeypatch.context() as patched:
        raise_at(patched, "write", is_second)
        with pytest.raises(ProcessorStateError, match="cut"):
            restore(source(table(100)), tmp_path / "task", "store")
    # The rows of the second file are there, and the offset is that of the first one.
    with pytest.raises(ProcessorStateError, match=rf"ends at offset {end - 1}.* may have written rows up to offset 39"):
        restore(table(end), tmp_path / "task", "store")
    assert restore(table(100), tmp_path / "task", "store").records == 100 - end
    restore(table(100), tmp_path / "whole", "store")
    assert traces.databases(tmp_path / "task") == traces.databases(tmp_path / "whole")


@pytest.mark.parametrize("layout", ["headers", "plain"])
def test_file_deletes_rows_of_earlier_files(tmp_path: Path, layout: Any) -> None:
    first = [record(b"k%d" % n, b"1") for n in range(EACH)]
    second = [record(b"k%d" % n, None) for n in range(0, EACH, 2)] + [record(b"k1", b"2"), record(b"k1", None)] * 5
    third = [record(b"k0", b"3")]
    done = restore(source(changelogs.table([*first, *second, *third])), tmp_path, "store", layout=layout)
    assert done.records == 41
    rows = lh.read.state(tmp_path).read_all().select(["key", "value"]).to_pylist()
    kept = {b"k%d" % n: b"1" for n in range(3, EACH, 2)} | {b"k0": b"3"}
    assert {row["key"]: row["value"] for row in rows} == kept


def test_position_of_written_rows_is_kept(tmp_path: Path) -> None:
    records = [
        record(b"k", b"%d" % n, headers=with_position(lh.Headers(), Position({f"in-{n // EACH}": {0: n}})))
        for n in range(3 * EACH)
    ]
    interrupted(changelogs.table(records), tmp_path / "task")
    assert restore(changelogs.table(records), tmp_path / "task", "store").records == EACH
    (store,) = (tmp_path / "task").glob("rocksdb/store")
    with restoring.StoredFamilies(store) as families:
        assert families.position() == Position({"in-0": {0: 19}, "in-1": {0: 39}, "in-2": {0: 59}})


def test_largest_time_is_kept_until_all_segments_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"store_type": "window", "retention": 120_000}
    times = (10_000, 70_000, 130_000, 400_000, 460_000)
    records = [record(window_key(b"k", time), b"1", time) for time in times]
    late = record(window_key(b"k", 200_000), b"too late", 470_000)
    commits: list[Database] = []

    def is_second(database: Database, *_arguments: Any) -> bool:
        commits.append(database)
        return len(commits) == 2

    with monkeypatch.context() as patched:
        raise_at(patched, "commit", is_second)
        with pytest.raises(ProcessorStateError, match="cut"):
            restore(changelogs.table(records), tmp_path / "task", "store", **options)
    whole = changelogs.table([*records, late])
    assert restore(whole, tmp_path / "task", "store", **options).records == 1
    restore(whole, tmp_path / "whole", "store", **options)
    assert traces.databases(tmp_path / "task") == traces.databases(tmp_path / "whole")


def test_complete_partitions_are_kept_when_another_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = pa.concat_tables([changelogs.table([record(b"k", b"1")] * 3, partition=part) for part in range(3)])
    finish = restoring._PartitionRestore.finish

    def broken(self: Any) -> Path:
        if self._options["partition"] == 2:
            raise ProcessorStateError("cut")
        return finish(self)

    with monkeypatch.context() as patched:
        patched.setattr(restoring._PartitionRestore, "finish", broken)
        with pytest.raises(ProcessorStateError, match="cut"):
            restore(parts, tmp_path / "0_{partition}", "store")
    assert (tmp_path / "0_0" / "rocksdb" / "store").exists()
    assert restore(parts, tmp_path / "0_{partition}", "store").offsets == {0: 2, 1: 2, 2: 2}
    assert not [*tmp_path.glob("*/.*")]


def test_store_created_meanwhile_by_application_is_kept(tmp_path: Path) -> None:
    interrupted(table(40), tmp_path / "task")
    restore(table(20), tmp_path / "other", "store")
    (tmp_path / "other" / "rocksdb").rename(tmp_path / "task" / "rocksdb")
    with pytest.raises(FileExistsError, match="store store exists"):
        restore(table(40), tmp_path / "task", "store")


def test_interrupt_waits_for_pending_write_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = [], []
    write = bulk_rows.IngestedKeyValueTarget.write

    def slow(self: bulk_rows.IngestedKeyValueTarget, some: list[bulk_rows.RowBatch]) -> None:
        begun.append(some[-1].offset)
        time.sleep(0.1)
        write(self, some)
        ended.append(self.offset)

    monkeypatch.setattr(bulk_rows.IngestedKeyValueTarget, "write", slow)
    batches = 0

    def progress(_records: int) -> None:
        nonlocal batches
        batches += 1
        if batches == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(source(table(5 * EACH)), tmp_path, "store", progress=progress)
    assert begun == ended == [19, 39, 59]  # the rows of the fourth batch wait
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("letterhead-restore")]


def test_pending_rows_need_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [
        batch
        for part in range(8)
        for batch in changelogs.table([record(b"%d" % n, bytes(1000)) for n in range(200)], partition=part).to_batches(
            max_chunksize=EACH
        )
    ]
    size = 21_000
    monkeypatch.setattr(restoring, "WRITE_BYTES", 3 * size)
    monkeypatch.setattr(restoring, "MEMORY_BYTES", 8 * size)
    memory, files = [], []
    add, add_file = restoring._WriteQueue.add, Database.add_file

    def measured(self: Any, target: Any, rows: Any) -> None:
        add(self, target, rows)
        memory.append(self.memory)

    def slow(self: Database, file: Path, rows: Any) -> None:
        time.sleep(0.02)
        add_file(self, file, rows)
        files.append(self.directory)

    monkeypatch.setattr(restoring._WriteQueue, "add", measured)
    monkeypatch.setattr(Database, "add_file", slow)
    # One partition after the other, as from a topic; then in turns.
    for name, order in (("one", batches), ("turns", sorted(batches, key=lambda batch: batch["offset"][0].as_py()))):
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, order)
        assert restore(reader, tmp_path / name / "0_{partition}", "store").records == 1600
    assert len(memory) == 160
    assert max(memory) <= 8 * size
    assert max(memory) > 4 * size  # writes run beside each other


def recorded(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[tuple[str, str]]:
    """Record some calls of `os` and `shutil`, which run, with the name of the file of each."""
    calls: list[tuple[str, str]] = []

    def recording(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_call(file: Any, *args: Any, **kwargs: Any) -> Any:
            path = Path(os.readlink(f"/proc/self/fd/{file}") if isinstance(file, int) else file)
            calls.append((name, path.name))
            return call(file, *args, **kwargs)

        return record_and_call

    for name in names:
        module = shutil if name == "rmtree" else os
        monkeypatch.setattr(module, name, recording(name, getattr(module, name)))
    return calls


@pytest.mark.skipif(sys.platform != "linux", reason="names files by /proc")
def test_options_are_synced_before_replacing_former_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch, "fsync", "replace")
    restore(table(3), tmp_path, "store")
    saved = [("fsync", "options.json.new"), ("replace", "options.json.new"), ("fsync", ".store.restoring")]
    of_options = [call for call in calls if call[1] in ("options.json.new", ".store.restoring")]
    assert of_options == [*saved, *saved]  # at the beginning, and when all rows are written


@pytest.mark.skipif(sys.platform != "linux", reason="names files by /proc")
def test_store_rename_is_synced_before_hidden_directory_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = recorded(monkeypatch, "fsync", "rename", "rmtree")
    restore(table(3), tmp_path / "task", "store")
    assert ("fsync", tmp_path.name) in calls  # the new directory of the task
    last = [call for call in calls if call != ("rmtree", "rocksdb")][-4:]
    assert last == [("fsync", "task"), ("rename", "store"), ("fsync", "rocksdb"), ("rmtree", ".store.restoring")]


def steps_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what a restore writes to its databases, in order."""
    steps: list[str] = []

    def recording(method: str, name_of: Callable[..., str]) -> None:
        call = getattr(Database, method)

        def record_and_call(self: Database, *arguments: Any) -> None:
            steps.append(name_of(*arguments))
            call(self, *arguments)

        monkeypatch.setattr(Database, method, record_and_call)

    def written(rows: Any, entries: list[tuple[bytes, bytes | None]], *_dropped: Any) -> str:
        if entries[0] == (bulk_rows.OBSERVED, None):
            return "end"
        return "announce" if entries[0][0] == bulk_rows.ADDED else "rows" if rows else "offset"

    recording("write", written)
    recording("add_file", lambda *_: "file")
    recording("flush", lambda: "flush")
    recording("commit", lambda *_: "commit")
    save = restoring.replace_file
    monkeypatch.setattr(restoring, "replace_file", lambda *file: (steps.append("options"), save(*file)))
    return steps


def test_file_is_announced_before_added_and_completed_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of(monkeypatch)
    restore(source(table(2 * EACH)), tmp_path, "store")
    file = ["announce", "flush", "file", "offset", "flush"]
    assert steps == ["options", *file, *file, "commit", "flush", "options", "end"]


def test_new_segment_has_synced_offset_before_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record(window_key(b"k", time), b"1", time) for time in (10_000, 70_000)]
    steps = steps_of(monkeypatch)
    restore(changelogs.table(records), tmp_path, "store", store_type="window", retention=120_000)
    assert steps == [
        "options", *["offset", "flush"] * 2, *["rows"] * 2, *["commit", "flush"] * 2, "options", *["end"] * 2
    ]  # fmt: skip


def test_options_are_never_written_in_place(tmp_path: Path) -> None:
    interrupted(table(100), tmp_path)
    before = tmp_path / "before"
    os.link(tmp_path / ".store.restoring" / "options.json", before)
    restore(table(100), tmp_path, "store")
    assert json.loads(before.read_text())["complete"] is False


def test_options_are_removed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(table(100), tmp_path)
    hidden = tmp_path / ".store.restoring"
    (hidden / "left").mkdir()
    (hidden / "rest").write_text("of a restore")
    remove, seen = shutil.rmtree, []

    def removing(path: Any, *args: Any, **kwargs: Any) -> None:
        if hidden in (Path(path), Path(path).parent):
            seen.append((Path(path).name, sorted(entry.name for entry in hidden.iterdir() if entry.is_file())))
        remove(path, *args, **kwargs)

    monkeypatch.setattr(shutil, "rmtree", removing)
    restore(table(100), tmp_path, "store")
    assert seen[-1] == (".store.restoring", ["options.json"])
    assert all("options.json" in files for _, files in seen)
    assert "left" in [name for name, _ in seen]
    assert not hidden.exists()


def test_store_is_in_place_only_when_complete_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, states = Path.rename, []

    def renaming(path: Path, target: Any) -> Path:
        options = json.loads((tmp_path / ".store.restoring" / "options.json").read_text())
        with StoredFamilies(path) as families:
            states.append((options["complete"], families.dirty, families.offsets()))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", renaming)
    restore(table(3), tmp_path, "store")
    assert states == [(True, False, {"app-store-changelog-0": 2})]


def test_leftover_file_is_not_overwritten(tmp_path: Path) -> None:
    database = Database("store", tmp_path / "store", HEADERS, RocksDBOptions())
    database.add_file(tmp_path / "rows.sst", [[(b"a", b"1")]])
    [file] = (tmp_path / "store").glob("*.sst")
    os.link(file, tmp_path / "rows.sst")  # as a process leaves it that is killed while it adds the file
    before = file.read_bytes()
    database.add_file(tmp_path / "rows.sst", [[(b"b", b"2")]])
    assert file.read_bytes() == before
    assert list(database.rows.scan()) == [(b"a", b"1"), (b"b", b"2")]
    database.close()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"segment_interval": 0}, "segment_interval cannot be 0"),
        ({"segment_interval": -1}, "segment_interval cannot be negative"),
        ({"retention": -1}, "retention cannot be negative"),
        ({"retention": timedelta(milliseconds=-1)}, "retention cannot be negative"),
    ],
)
def test_invalid_durations_are_rejected(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        restore(table(1), tmp_path, "store", **{"store_type": "window", "retention": 1000} | options)


def test_shortest_durations_are_accepted(tmp_path: Path) -> None:
    rows = [record(window_key(b"k", 5), b"v")]
    options: dict[str, Any] = {"store_type": "window", "retention": 0, "segment_interval": 1}
    restore(changelogs.table(rows), tmp_path, "store", **options)
    assert lh.read.state(tmp_path).read_all()["key"].to_pylist() == [b"k"]
