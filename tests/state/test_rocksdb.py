"""Databases of RocksDB, and key-value stores in them: families, upgrades, errors, what is kept."""

from __future__ import annotations

import os
import random
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead import Headers
from letterhead.errors import (
    InvalidStateStoreError,
    ProcessorStateError,
    StoreLockedError,
    StoreNotFoundError,
    UnexpectedColumnFamilyError,
)
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.rocksdb import (
    RocksDBKeyValueStore,
    RocksDBSessionStore,
    RocksDBTimeOrderedWindowStore,
    RocksDBVersionedStore,
    RocksDBWindowStore,
)
from letterhead.state.storage import database
from letterhead.state.storage.database import Database, RocksDBOptions, StoredFamilies
from letterhead.state.storage.layouts import HEADERS
from letterhead.state.storage.position import Position
from tests.helpers.extras import spelled_out

Rows = list[tuple[bytes, bytes]]
NOW = struct.pack(">q", 5)
OLD = b"\xff" * 8


def families(task: Path, path: str = "rocksdb/latest") -> dict[str, Rows]:
    with StoredFamilies(task / path) as stored:
        return {name: list(stored.rows(name)) for name in stored.names}


def rows_of(task: Path) -> dict[str, Rows]:
    """Return the families that have rows, without the offsets."""
    return {name: rows for name, rows in families(task).items() if rows and name != "offsets"}


def opened(task: Path, format: Any = "headers", **options: Any) -> RocksDBKeyValueStore:
    store = RocksDBKeyValueStore("latest", format=format, options=RocksDBOptions(**options))
    store.open(task)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksDBKeyValueStore]:
    store = opened(tmp_path)
    yield store
    store.close()


class Task:
    """The task of a store, at a record."""

    def __init__(self, offset: int) -> None:
        self.record = self
        self.topic, self.partition, self.offset = "in", 0, offset


# --- rows ------------------------------------------------------------------------------------------------------------


def test_rows_are_ordered_by_key(store: RocksDBKeyValueStore) -> None:
    rows = [(b"", b"0"), (b"a", b"1"), (b"ab", b""), (b"b", b"3"), (b"\xff", b"4"), (b"\xff\x00", b"5")]
    store.put_all(random.Random(1).sample(rows, len(rows)))
    assert list(store.all()) == rows
    assert list(store.reverse_all()) == rows[::-1]
    assert list(store.range(b"aa", b"b")) == rows[2:4]
    assert list(store.range(None, b"a")) == rows[:2]
    assert list(store.reverse_range(b"ab", None)) == rows[:1:-1]
    assert list(store.reverse_range(b"", b"aa")) == rows[1::-1]
    assert list(store.range(b"b", b"a")) == list(store.reverse_range(b"b", b"a")) == []
    assert list(store.prefix_scan(b"a")) == rows[1:3]
    assert list(store.prefix_scan(b"\xff")) == rows[4:]
    assert list(store.prefix_scan(b"")) == rows
    assert store.approximate_num_entries() == len(rows)


def test_writes_are_read(store: RocksDBKeyValueStore) -> None:
    assert store.put_if_absent(b"a", b"1") is None
    assert store.put_if_absent(b"a", b"2") == b"1"
    store.put_all([(b"a", b"3"), (b"b", b"4"), (b"c", None)])
    assert store.delete(b"a") == b"3"
    assert store.delete(b"a") is None
    store.put(b"b", None)
    assert list(store.all()) == []


def test_iterator_has_rows_from_its_start(store: RocksDBKeyValueStore) -> None:
    store.put_all([(b"a", b"1"), (b"b", b"2")])
    rows = store.all()
    store.put(b"aa", b"new")
    store.put(b"b", b"changed")
    assert list(rows) == [(b"a", b"1"), (b"b", b"2")]


def test_open_iterator_does_not_prevent_store_close(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put_all([(b"a", b"1"), (b"b", b"2")])
    started, fresh = store.all(), store.range(b"a", b"b")
    next(started)
    store.close()
    for rows in (started, fresh):
        with pytest.raises(InvalidStateStoreError, match="RocksDB iterator for store latest has closed"):
            next(rows)
    store.open(tmp_path)  # nothing holds the lock
    store.close()


def test_store_is_opened_once_per_directory(store: RocksDBKeyValueStore, tmp_path: Path) -> None:
    with pytest.raises(ProcessorStateError, match="store latest is open already"):
        store.open(tmp_path)
    store.close()
    store.close()
    with pytest.raises(TypeError, match="it needs a directory"):
        store.open(None)


def test_store_restores_from_changelog(store: RocksDBKeyValueStore) -> None:
    store.restore(
        ChangelogRecord(key, value, 5, Headers()) for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", None))
    )
    assert list(store.all()) == [(b"b", b"2")]


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "names"),
    [
        ("plain", ["default", "offsets"]),
        ("timestamped", ["default", "keyValueWithTimestamp", "offsets"]),
        ("headers", ["default", "keyValueWithTimestampAndHeaders", "offsets"]),
    ],
)
def test_rows_are_stored_in_family_of_their_format(tmp_path: Path, format: Any, names: list[str]) -> None:
    store = opened(tmp_path, format)
    store.put(b"a", b"1")
    store.close()
    rows_by_family = families(tmp_path)
    assert sorted(rows_by_family) == names
    assert {name: rows for name, rows in rows_by_family.items() if rows and name != "offsets"} == {
        {"plain": "default"}.get(format, names[1]): [(b"a", b"1")]
    }
    store.open(tmp_path)
    assert store.get(b"a") == b"1"
    store.close()


def test_commit_stores_offsets_and_position(tmp_path: Path) -> None:
    store = RocksDBKeyValueStore("latest")
    store.open(tmp_path, Task(7))
    store.put(b"a", b"1")
    store.commit({("app-latest-changelog", 0): 3, ("other", 1): None})
    store.put(b"a", b"2")
    assert store.position == Position({"in": {0: 7}})
    store.close()
    offsets = dict(families(tmp_path)["offsets"])
    assert offsets == {
        b"app-latest-changelog-0": struct.pack(">q", 3),
        b"other-1": struct.pack(">q", -4),
        b"position": Position({"in": {0: 7}}).serialize(),
        b"status": struct.pack(">q", 0),
    }
    store.open(tmp_path)
    assert store.position == Position({"in": {0: 7}})
    assert store.committed_offsets() == {"app-latest-changelog-0": 3, "other-1": -4}
    store.commit({})  # a store without a changelog
    assert store.committed_offsets() == {}
    store.close()
    assert list(dict(families(tmp_path)["offsets"])) == [b"position", b"status"]


def test_position_does_not_move_without_record(tmp_path: Path) -> None:
    store, task = RocksDBKeyValueStore("latest"), Task(7)
    task.topic = None
    store.open(tmp_path, task)
    store.put(b"a", b"1")
    assert store.position == Position()
    store.close()


def test_older_position_file_is_imported(tmp_path: Path) -> None:
    (tmp_path / "latest.position").write_text("0\n1\nin 0 9\n")
    store = opened(tmp_path)
    assert store.position == Position({"in": {0: 9}})
    store.close()
    (tmp_path / "latest.position").write_text("what\n")
    with pytest.raises(ProcessorStateError, match=r"Error reading .*latest\.position"):
        store.open(tmp_path)


def test_unclosed_store_is_dirty_when_opened(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from letterhead.state.rocksdb import *; s = RocksDBKeyValueStore('latest'); "
        "s.open(pathlib.Path(sys.argv[1])); s.put(b'a', b'1'); s.flush(); s.put(b'b', b'2'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    store = opened(tmp_path)
    assert store._database.dirty
    assert list(store.all()) == [(b"a", b"1")]  # without the log, what was not flushed comes from the changelog
    store.close()
    store.open(tmp_path)
    assert not store._database.dirty
    store.close()


def test_write_ahead_log_keeps_writes_of_killed_process(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from letterhead.state.rocksdb import *\n"
        "s = RocksDBKeyValueStore('latest', options=RocksDBOptions(write_ahead_log=True))\n"
        "s.open(pathlib.Path(sys.argv[1]))\n"
        "for n in range(1 << 30):\n"
        "    s.put(b'%06d' % n, b'%d' % n); print(n, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) >= 500:
            break
    process.send_signal(signal.SIGKILL)
    last = max([500, *(int(line) for line in process.stdout.read().split("\n")[:-1] if line.strip())])
    process.wait()
    store = opened(tmp_path)
    rows = list(store.all())
    assert rows == [(b"%06d" % n, b"%d" % n) for n in range(len(rows))]
    assert len(rows) > last
    store.close()


# --- upgrades --------------------------------------------------------------------------------------------------------

UPGRADES = [
    ("plain", "timestamped", "default", "keyValueWithTimestamp", OLD),
    ("plain", "headers", "default", "keyValueWithTimestampAndHeaders", b"\0" + OLD),
    ("timestamped", "headers", "keyValueWithTimestamp", "keyValueWithTimestampAndHeaders", b"\0"),
]


@pytest.mark.parametrize(("before", "after", "old", "new", "prefix"), UPGRADES)
def test_rows_move_when_read_by_key_or_written(
    tmp_path: Path, before: Any, after: Any, old: str, new: str, prefix: bytes
) -> None:
    store = opened(tmp_path, before)
    store.put_all([(key, NOW + key) for key in (b"a", b"b", b"c", b"d", b"e", b"f")])
    store.close()
    store = opened(tmp_path, after)
    assert store.upgrading
    assert store.approximate_num_entries() == 6
    assert store.get(b"a") == prefix + NOW + b"a"
    assert store.put_if_absent(b"b", b"other") == prefix + NOW + b"b"
    store.put(b"c", b"new")
    assert store.delete(b"d") == prefix + NOW + b"d"
    store.put_all([(b"e", None), (b"g", b"more")])
    assert store.get(b"nothing") is None
    expected = [
        (b"a", prefix + NOW + b"a"),
        (b"b", prefix + NOW + b"b"),
        (b"c", b"new"),
        (b"f", prefix + NOW + b"f"),
        (b"g", b"more"),
    ]
    assert list(store.all()) == expected
    assert list(store.reverse_all()) == expected[::-1]
    assert list(store.range(b"b", b"f")) == expected[1:4]
    assert list(store.reverse_range(b"b", b"f")) == expected[3:0:-1]
    assert list(store.prefix_scan(b"f")) == expected[3:4]
    store.close()
    assert rows_of(tmp_path) == {
        old: [(b"f", NOW + b"f")],
        new: [(b"a", prefix + NOW + b"a"), (b"b", prefix + NOW + b"b"), (b"c", b"new"), (b"g", b"more")],
    }
    store.open(tmp_path)
    store.restore([ChangelogRecord(b"f", b"restored", 5, Headers())])
    store.close()
    store.open(tmp_path)
    assert not store.upgrading
    store.close()
    assert (old in families(tmp_path)) == (old == "default")  # an empty one goes, but for the one that RocksDB needs


def test_upgrade_moves_all_rows_at_once(tmp_path: Path) -> None:
    store = opened(tmp_path, "plain")
    store.put_all([(b"%05d" % n, b"%d" % n) for n in range(2500)])
    store.close()
    store = opened(tmp_path)
    store.put(b"00007", b"new")
    assert store.upgrade() == 2499
    assert store.upgrade() == 0
    store.close()
    [(name, rows)] = rows_of(tmp_path).items()
    assert name == "keyValueWithTimestampAndHeaders"
    assert rows == [(b"%05d" % n, b"new" if n == 7 else b"\0" + OLD + b"%d" % n) for n in range(2500)]


def test_row_in_both_families_is_newer_one(tmp_path: Path) -> None:
    store = opened(tmp_path, "plain")
    store.put_all([(b"a", b"1"), (b"b", b"2")])
    store.close()
    store = opened(tmp_path)
    old = store.all()
    store._database._families["keyValueWithTimestampAndHeaders"].put(b"a", b"new")
    assert [value for _, value in store.all()] == [b"new", b"\0" + OLD + b"2"]
    assert [value for _, value in store.reverse_all()] == [b"\0" + OLD + b"2", b"new"]
    assert [value for _, value in old] == [b"\0" + OLD + b"1", b"\0" + OLD + b"2"]
    assert store.upgrade() == 2
    assert store.get(b"a") == b"new"
    store.close()


def test_random_operations_during_an_upgrade_agree_with_a_dict(tmp_path: Path) -> None:
    choose = random.Random(4)
    keys = [b"%02d" % n for n in range(40)]
    before = {key: NOW + key for key in choose.sample(keys, 25)}
    store = opened(tmp_path, "timestamped")
    store.put_all(before.items())
    store.close()
    model = {key: b"\0" + value for key, value in before.items()}
    store = opened(tmp_path)
    for step in range(400):
        key, value = choose.choice(keys), b"%d" % step
        operation = choose.choice(["put", "get", "delete", "absent", "all", "scan", "reopen"])
        if operation == "put":
            store.put(key, value)
            model[key] = value
        elif operation == "get":
            assert store.get(key) == model.get(key)
        elif operation == "delete":
            assert store.delete(key) == model.pop(key, None)
        elif operation == "absent":
            assert store.put_if_absent(key, value) == model.get(key)
            model.setdefault(key, value)
        elif operation == "all":
            changes = [(choose.choice(keys), choose.choice([None, value])) for _ in range(3)]
            store.put_all(changes)
            for changed, new in changes:
                model.pop(changed, None) if new is None else model.__setitem__(changed, new)
        elif operation == "scan":
            other = choose.choice(keys)
            expected = sorted(row for row in model.items() if key <= row[0] <= other)
            assert list(store.range(key, other)) == expected
            assert list(store.reverse_range(key, other)) == expected[::-1]
        elif step % 10 == 0:
            store.close()
            store.open(tmp_path)
    assert list(store.all()) == sorted(model.items())
    store.close()


MIXED = (
    "Inconsistent store state for latest. Cannot have both plain (DEFAULT) and timestamped data simultaneously. "
    "Headers store can upgrade from either plain or timestamped format, but not both."
)


@pytest.mark.parametrize("moved", [True, False])
def test_plain_rows_beside_timestamped_ones_are_not_upgraded(tmp_path: Path, moved: bool) -> None:
    store = opened(tmp_path, "plain")
    store.put_all([(b"a", b"1"), (b"b", b"2")])
    store.close()
    store = opened(tmp_path, "timestamped")
    if moved:
        store.get(b"a")
    store.close()
    before = families(tmp_path)
    with pytest.raises(ProcessorStateError) as raised:
        opened(tmp_path)
    assert str(raised.value) == MIXED
    assert rows_of(tmp_path) == {name: rows for name, rows in before.items() if rows and name != "offsets"}
    store = opened(tmp_path, "timestamped")  # the way on
    store.upgrade()
    store.close()
    store.open(tmp_path)
    store.close()
    store = opened(tmp_path)
    assert [value for _, value in store.all()] == [b"\0" + OLD + b"1", b"\0" + OLD + b"2"]
    store.close()


# --- what cannot be opened -------------------------------------------------------------------------------------------

DOWNGRADES = [
    (
        "timestamped",
        "plain",
        "keyValueWithTimestamp",
        "Store latest is a timestamped key-value store and cannot be opened as a regular key-value store. Downgrade from "
        "timestamped to regular store is not supported directly. To downgrade, you can delete the local state in the state "
        "directory, and rebuild the store as regular key-value store from the changelog.",
    ),
    (
        "headers",
        "timestamped",
        "keyValueWithTimestampAndHeaders",
        "Store latest is a headers-aware store and cannot be opened as a timestamped store. Downgrade from headers-aware to "
        "timestamped store is not supported. To downgrade, you can delete the local state in the state directory, and "
        "rebuild the store as timestamped store from the changelog.",
    ),
    (
        "headers",
        "plain",
        "keyValueWithTimestampAndHeaders",
        "Store latest is a headers-aware store and cannot be opened as a regular key-value store. Downgrade from "
        "headers-aware to regular store is not supported.",
    ),
]


@pytest.mark.parametrize(("newer", "older", "family", "message"), DOWNGRADES)
def test_downgrade_is_rejected(tmp_path: Path, newer: Any, older: Any, family: str, message: str) -> None:
    store = opened(tmp_path, newer)
    store.put(b"a", b"1")
    store.close()
    before = families(tmp_path)
    with pytest.raises(UnexpectedColumnFamilyError) as raised:
        opened(tmp_path, older)
    assert str(raised.value) == message
    assert (raised.value.store, raised.value.family) == ("latest", family)
    assert families(tmp_path) == before
    store = opened(tmp_path, newer)
    assert store.get(b"a") == b"1"
    store.close()


@pytest.mark.parametrize("format", ["plain", "timestamped", "headers"])
def test_column_family_of_another_store_type_is_rejected(tmp_path: Path, format: Any) -> None:
    store = RocksDBVersionedStore("latest", 1000)
    store.open(tmp_path)
    store.close()
    with pytest.raises(UnexpectedColumnFamilyError) as raised:
        opened(tmp_path, format)
    assert str(raised.value) == (
        "Unexpected column family 'versionedKeyValueWithHeaders' found in store latest. "
        "The store may have been created with incompatible settings."
    )


def test_store_in_use_is_rejected(store: RocksDBKeyValueStore, tmp_path: Path) -> None:
    store.put(b"a", b"1")
    path = tmp_path / "rocksdb" / "latest"
    with pytest.raises(StoreLockedError, match=f"Error opening store latest at location {path}: it is in use"):
        opened(tmp_path)
    code = (
        "import pathlib, sys; from letterhead.state.rocksdb import *\n"
        "RocksDBKeyValueStore('latest').open(pathlib.Path(sys.argv[1]))"
    )
    other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "StoreLockedError: Error opening store latest" in other.stderr
    assert store.get(b"a") == b"1"


def test_directory_without_database_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="there is no store in"):
        StoredFamilies(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unreadable_database_is_rejected(tmp_path: Path) -> None:
    opened(tmp_path).close()
    path = tmp_path / "rocksdb" / "latest"
    [manifest] = path.glob("MANIFEST-*")
    manifest.write_bytes(b"what")
    with pytest.raises(ProcessorStateError, match=f"Error opening store latest at location {path}") as raised:
        opened(tmp_path)
    assert raised.value.__cause__ is not None
    (path / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises(ProcessorStateError, match="Error listing column families for store latest"):
        opened(tmp_path)


def test_damaged_file_does_not_shorten_scan(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put_all([(b"%05d" % n, b"v" * 100) for n in range(1000)])
    store.close()
    largest = max((tmp_path / "rocksdb" / "latest").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[50_000:50_010] = bytes(10)
    largest.write_bytes(data)
    store = opened(tmp_path)
    for scan in (store.all, store.reverse_all, lambda: store.range(b"00000", b"00999")):
        read = []
        with pytest.raises(ProcessorStateError, match="Error while iterating over store latest") as raised:
            read.extend(scan())
        assert "checksum mismatch" in str(raised.value.__cause__)
    with pytest.raises(ProcessorStateError, match="Error while getting value for key from store latest"):
        [store.get(b"%05d" % n) for n in range(1000)]
    store.close()


def test_forked_process_cannot_use_store(store: RocksDBKeyValueStore) -> None:
    store.put(b"a", b"1")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.get(b"a")
            answer = b"it could"
        except InvalidStateStoreError as error:
            answer = str(error).encode()
        os.write(writer, answer)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    assert (
        os.read(reader, 1000)
        == b"Store latest was opened before this process was forked: open it in a process started by spawn or forkserver"
    )
    os.close(reader)
    assert store.get(b"a") == b"1"


def test_restore_without_rocksdict_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape(spelled_out("pip install 'letterhead[state]'"))):
        lh.state.restore(tmp_path / "no changelog", tmp_path / "0_0", "latest")
    assert not (tmp_path / "0_0").exists()


def test_missing_rocksdict_names_extra_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    for store in (
        RocksDBKeyValueStore("latest"),
        RocksDBWindowStore("hourly", 1000, 10),
        RocksDBVersionedStore("v", 10),
    ):
        if isinstance(store, RocksDBWindowStore):
            store.open(tmp_path)  # it has no file yet
            with pytest.raises(ModuleNotFoundError, match=re.escape(spelled_out("pip install 'letterhead[state]'"))):
                store.put(b"a", b"1", 0)
            continue
        with pytest.raises(
            ModuleNotFoundError, match=re.escape(spelled_out("pip install 'letterhead[state]'"))
        ) as raised:
            store.open(tmp_path)
        assert raised.value.name == "rocksdict"
        assert not store.is_open


def test_importing_stores_does_not_import_rocksdict() -> None:
    code = (
        "import sys, letterhead.state.rocksdb, letterhead.state.memory; "
        "print([name for name in ('rocksdict', 'pyarrow', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_options_are_set_for_each_family_of_rows(tmp_path: Path) -> None:
    seen = []
    store = opened(tmp_path, configure=lambda name, options: seen.append((name, type(options).__name__)))
    store.close()
    assert seen == [("latest", "Options")] * 2


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (lambda: RocksDBSessionStore("s", 10, format="timestamped"), "a session store is plain or has headers"),
        (lambda: RocksDBKeyValueStore("s", format="other"), "there are plain, timestamped, headers"),
        (lambda: RocksDBTimeOrderedWindowStore("s", 10, 1, format="x"), "there are plain, timestamped, headers"),
    ],
)
def test_format_unknown_to_store_is_rejected(store: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        store()


# --- order and state of a database -----------------------------------------------------------------------------------


class Recorded:
    """A family of a database that records its calls, which run."""

    def __init__(self, name: str, family: Any, calls: list[tuple[str, str]]) -> None:
        self._name, self._family, self._calls = name, family, calls

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._family, method)
        if method in ("flush", "close", "put"):
            self._calls.append((method, self._name))
        return call


def recording(database: Database) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []
    for name, family in database._families.items():
        database._families[name] = Recorded(name, family, calls)
    return calls


@pytest.fixture
def upgrading(tmp_path: Path) -> Database:
    """A database with rows of an older version in a family of their own."""
    older = opened(tmp_path, "timestamped")
    older.put(b"k", NOW + b"v")
    older.close()
    result = Database("latest", tmp_path / "rocksdb" / "latest", HEADERS, RocksDBOptions())
    assert result.upgrading
    return result


NEWEST_FIRST = ["keyValueWithTimestampAndHeaders", "keyValueWithTimestamp", "default", "offsets"]


def test_families_are_flushed_newest_first_and_offsets_last(upgrading: Database) -> None:
    calls = recording(upgrading)
    upgrading.flush()
    assert calls == [("flush", family) for family in NEWEST_FIRST]
    upgrading.close()


@pytest.mark.parametrize("clean", [True, False])
def test_closing_marks_database_and_closes_newest_family_first(upgrading: Database, clean: bool) -> None:
    calls = recording(upgrading)
    upgrading.close(clean=clean)
    assert calls == [("put", "offsets")] * clean + [("close", family) for family in NEWEST_FIRST]
    with StoredFamilies(upgrading.directory) as families:
        assert families.dirty is not clean


def test_collected_database_closes_families_newest_first(upgrading: Database) -> None:
    directory, calls = upgrading.directory, recording(upgrading)
    upgrading._finalizer()
    assert calls == [("close", family) for family in NEWEST_FIRST]
    with StoredFamilies(directory) as families:
        assert families.dirty


def test_closed_database_rejects_everything_except_close(upgrading: Database) -> None:
    rows = upgrading.rows
    upgrading.close()
    upgrading.close()
    assert (upgrading.is_open, upgrading.usable) == (False, False)
    for use in (
        upgrading.check_open,
        upgrading.flush,
        upgrading.batch,
        lambda: upgrading.commit({}, Position()),
        lambda: upgrading.write((), ()),
        lambda: upgrading.add_file(Path("rows.sst"), []),
        lambda: rows.get(b"k"),
        lambda: rows.put(b"k", b"v"),
    ):
        with pytest.raises(InvalidStateStoreError, match="Store latest is currently closed"):
            use()


@pytest.mark.parametrize(
    ("reason", "is_locked"),
    [
        ("IO error: While lock file: /d/LOCK: Resource temporarily unavailable", True),
        ("IO error: While open a file for lock: /d/LOCK: Permission denied", False),
        ("Corruption: block checksum mismatch", False),
        ("IO error: /a lock/CURRENT: No such file", False),
    ],
)
def test_only_lock_of_another_process_means_store_in_use(reason: str, is_locked: bool) -> None:
    error = database._open_error("latest", Path("/a lock"), Exception(reason))
    assert isinstance(error, StoreLockedError) is is_locked


def test_directory_inside_database_is_no_damage(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "rocksdb" / "latest" / "archive").mkdir()
    opened(tmp_path).close()
    assert families(tmp_path)["keyValueWithTimestampAndHeaders"] == []


def test_commit_fails_if_directory_was_deleted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    (tmp_path / "rocksdb" / "latest").rename(tmp_path / "elsewhere")
    with pytest.raises(ProcessorStateError, match=r"its directory .* is gone"):
        store.commit({})
    (tmp_path / "elsewhere").rename(tmp_path / "rocksdb" / "latest")
    store.close()
