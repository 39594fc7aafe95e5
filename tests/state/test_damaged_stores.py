"""What can happen to the files and rows of a store: a full disk, a directory that is gone or read-only, damaged rows."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from letterhead import Headers
from letterhead.errors import DamagedRowError, InvalidTimestampError, ProcessorStateError, StoreLockedError
from letterhead.state import AggregationWithHeaders, ChangelogRecord, SessionKey, Stores, ValueTimestampHeaders, base
from letterhead.state.context import ChangelogList, StoreContext
from letterhead.state.layers.base import chain
from letterhead.state.rocksdb import (
    RocksDBKeyValueStore,
    RocksDBTimeOrderedWindowStore,
    RocksDBVersionedStore,
    RocksDBWindowStore,
)
from letterhead.state.storage import keys
from letterhead.state.storage.database import RocksDBOptions, StoredFamilies
from letterhead.state.storage.keys import session_key, window_key
from letterhead.state.storage.versioned_rows import LATEST
from tests.state import killed
from tests.state.killed import PLACE, STORE_TYPES, operations
from tests.state.undisturbed import Undisturbed, check, stored

RETENTION, WINDOW, INTERVAL = 240_000, 10_000, 120_000

# --- the disk --------------------------------------------------------------------------------------------------------

FILLING = """
import json, pathlib, resource, signal, sys
from tests.state import killed
from letterhead.errors import ProcessorStateError
from letterhead.state.context import ChangelogList

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store_type, task, said, done = sys.argv[1], pathlib.Path(sys.argv[2]), [], 0
work = killed.operations(store_type, 0, larger=10)
store = killed.opened(store_type, task, ChangelogList(), write_ahead_log=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, resource.RLIM_INFINITY))
try:
    while done < 5000:
        killed.perform(store_type, store, next(work), done)
        done += 1
except ProcessorStateError as error:
    said.append(str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    store.close()
except ProcessorStateError as error:
    said.append(str(error))
print(json.dumps([done, said]))
"""


@pytest.mark.parametrize("store_type", STORE_TYPES)
def test_full_disk_raises_and_loses_no_written_row(tmp_path: Path, store_type: str) -> None:
    # A limit of the size of files stands in for the disk: what is beyond it is refused in the same way.
    task = tmp_path / "task"
    command = [sys.executable, "-c", FILLING, store_type, str(task)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    done, output = json.loads(ran.stdout)
    assert 10 < done < 5000
    for message in output:
        assert message.startswith("Error ")
        assert " store s" in message
        assert message.endswith("File too large (make room, close the store and open it again)")
    work, undisturbed = (
        list(islice(operations(store_type, 0, larger=10), done + 1)),
        Undisturbed(store_type, tmp_path / "undisturbed"),
    )
    before, then = undisturbed.after(work[:-1]), undisturbed.after(work)
    check(stored(task), before, then, store_type)
    store = killed.opened(store_type, task, ChangelogList(), write_ahead_log=True)
    chain(store)[-1]._observed = undisturbed.observed
    killed.perform(store_type, store, work[-1], done)
    store.close()
    assert stored(task) == then


WINDOWS = RocksDBWindowStore("s", RETENTION, WINDOW)


def test_missing_directory_is_detected_at_next_commit(tmp_path: Path) -> None:
    for log in (False, True):
        store = RocksDBKeyValueStore("s", options=RocksDBOptions(write_ahead_log=log))
        store.open(tmp_path)
        store.put(b"a", b"1")
        shutil.rmtree(tmp_path / "rocksdb")
        assert store.get(b"a") == b"1"
        with pytest.raises(
            ProcessorStateError, match=r"Error while committing store s: its directory .*rocksdb/s is gone"
        ):
            store.commit({PLACE: 1})
        with pytest.raises(ProcessorStateError, match=r"Error while executing flush from store s: .*No such file"):
            store.flush()
        with pytest.raises(ProcessorStateError, match=r"Error while closing store s: .*No such file"):
            store.close()
        store.open(tmp_path)
        assert list(store.all()) == []  # what is lost comes from the changelog
        store.close()


def test_segments_with_missing_directory_do_not_block_later_ones(tmp_path: Path) -> None:
    store = RocksDBWindowStore("s", RETENTION, WINDOW)
    store.open(tmp_path)
    store.put(b"a", b"1", 0)
    shutil.rmtree(tmp_path / "s" / "s.0")
    with pytest.raises(ProcessorStateError, match=r"committing store s\.0: its directory .* is gone"):
        store.commit({PLACE: 1})
    store.put(b"a", b"2", 9 * INTERVAL)
    assert [row.start for row, _ in store.all()] == [9 * INTERVAL]
    store.commit({PLACE: 2})
    store.close()


READ_ONLY = """
import os, pathlib, pickle, sys
import rocksdict
from letterhead.state.rocksdb import *

task, user = pathlib.Path(sys.argv[1]), int(sys.argv[2])
stores = [RocksDBKeyValueStore("k"), RocksDBWindowStore("w", 1000, 10), RocksDBKeyValueStore("new"), RocksDBWindowStore("none", 1000, 10)]
if user:
    os.setuid(user)  # nobody, whom the system keeps from writing
for store in stores:
    try:
        store.open(task)
        print("opened", store.name)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_read_only_directory_is_rejected_by_name() -> None:
    with tempfile.TemporaryDirectory() as directory:
        task = Path(directory)
        for store in (RocksDBKeyValueStore("k"), RocksDBWindowStore("w", 1000, 10)):
            store.open(task)
            store.put(b"a", b"1", *([5] if store.name == "w" else []))
            store.close()
        before = stored(task)
        everything = [task, *task.rglob("*")]
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        user = 0 if os.getuid() else 65534
        command = [sys.executable, "-c", READ_ONLY, str(task), str(user)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        for path in everything:
            path.chmod(0o755 if path.is_dir() else 0o644)
        lines = ran.stdout.splitlines()
        assert len(lines) == 4, ran.stderr
        places = ("k", "rocksdb/k"), ("w.0", "w/w.0"), ("new", "rocksdb/new"), ("none", "none")
        for line, (name, place) in zip(lines, places, strict=True):
            assert line.startswith(f"ProcessorStateError Error opening store {name} at location {task / place}: "), line
            assert line.endswith("(this process may not write there)"), line
        assert stored(task) == before


def test_open_failure_other_than_lock_is_not_reported_as_lock(tmp_path: Path) -> None:
    task = tmp_path / "clock"
    task.mkdir()
    for name in ("rocksdb", "w"):
        (task / name).write_text("a file")
    for store in (RocksDBKeyValueStore("k"), RocksDBWindowStore("w", 1000, 10)):
        with pytest.raises(ProcessorStateError, match=r"Error opening store . at location .*clock.*: ") as raised:
            store.open(task)
        assert not isinstance(raised.value, StoreLockedError)


def test_damaged_position_names_store(tmp_path: Path) -> None:
    store = RocksDBKeyValueStore("s")
    store.open(tmp_path)
    store._database._families["offsets"].put(b"position", b"\x07")
    store.close()
    with pytest.raises(ProcessorStateError, match="Error reading the position of store s: Unknown version 7"):
        store.open(tmp_path)


def test_store_offset_is_that_of_oldest_database(tmp_path: Path) -> None:
    store = RocksDBWindowStore("s", RETENTION, WINDOW)
    store.open(tmp_path)
    store.put(b"a", b"1", 0)
    store.put(b"a", b"2", INTERVAL)
    store.commit({PLACE: 7})
    oldest = store._databases()[0]
    assert store.committed_offsets() == {"app-s-changelog-0": 7}
    oldest.commit({PLACE: 5}, store.position)  # as a process leaves it that dies after it wrote one of them to files
    assert store.committed_offsets() == {"app-s-changelog-0": 5}
    store.put(b"a", b"3", 2 * INTERVAL)
    assert store.committed_offsets() == {}  # nobody knows of a new one how far it is
    store.close()


def test_segment_marked_as_removed_is_gone_after_open(tmp_path: Path) -> None:
    store = RocksDBWindowStore("s", RETENTION, WINDOW)
    store.open(tmp_path)
    for start in (0, INTERVAL):
        store.put(b"a", b"1", start)
    store.close()
    (tmp_path / "s" / "s.0").rename(tmp_path / ".s.0.removed")
    (tmp_path / ".s.0.removed" / "CURRENT").unlink()
    (tmp_path / ".s.x.0.removed").mkdir()  # of a store with another name
    store.open(tmp_path)
    assert [row.start for row, _ in store.all()] == [INTERVAL]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".s.x.0.removed", "s"]
    store.close()


def test_row_written_while_moving_is_not_overwritten(tmp_path: Path) -> None:
    names = [b"%05d" % n for n in range(3000)]
    older = RocksDBKeyValueStore("s", format="timestamped")
    older.open(tmp_path)
    older.put_all((name, bytes(8) + b"old") for name in names)
    older.close()
    store = RocksDBKeyValueStore("s")
    store.open(tmp_path)
    readers = [threading.Thread(target=lambda: [store.get(name) for name in names]) for _ in range(2)]
    mover = threading.Thread(target=store.upgrade)
    for thread in (*readers, mover):
        thread.start()
    for name in names[::-1]:
        store.put(name, b"\0" + bytes(8) + b"new")
    for thread in (*readers, mover):
        thread.join()
    assert [value for _, value in store.all()] == [b"\0" + bytes(8) + b"new"] * len(names)
    store.close()


def test_unclosed_store_keeps_upgraded_rows_and_offset(tmp_path: Path) -> None:
    older = RocksDBKeyValueStore("s", format="plain")
    older.open(tmp_path)
    older.put_all((b"%04d" % n, b"v") for n in range(500))
    older.close()
    code = (
        "import pathlib, sys; from letterhead.state.rocksdb import *; s = RocksDBKeyValueStore('s'); "
        "s.open(pathlib.Path(sys.argv[1])); s.upgrade(); s.commit({('t', 0): 9})"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    with StoredFamilies(tmp_path / "rocksdb" / "s") as families:
        assert len(list(families.rows("keyValueWithTimestampAndHeaders"))) == 500
        assert list(families.rows("default")) == []
        assert (families.offsets(), families.dirty) == ({"t-0": 9}, True)


# --- rows ------------------------------------------------------------------------------------------------------------

BROKEN = b"\x10\x02"
"""A block of 8 bytes is announced, and one is there."""


class Damaged:
    """A store of one type with three rows, of which the second is damaged."""

    def __init__(self, name: str, task: Path, *, caching: bool = False, raising: bool = False) -> None:
        family, _, order = name.partition(" ")
        headers = Headers({"n": b"1"})
        match family:
            case "key-value":
                supplier = Stores.persistent_timestamped_key_value_store_with_headers("s")
                builder = Stores.timestamped_key_value_store_with_headers_builder(supplier)
            case "window":
                make = (
                    Stores.persistent_time_ordered_window_store_with_headers
                    if order
                    else Stores.persistent_timestamped_window_store_with_headers
                )
                builder = Stores.timestamped_window_store_with_headers_builder(make("s", RETENTION, WINDOW))
            case "session":
                builder = Stores.session_store_with_headers_builder(
                    Stores.persistent_session_store_with_headers("s", RETENTION)
                )
            case _:
                supplier = Stores.persistent_versioned_key_value_store_with_headers("s", RETENTION, 10)
                builder = Stores.versioned_key_value_store_with_headers_builder(supplier)
        builder = builder.with_caching_enabled() if caching else builder
        self.store = builder.with_errors("raise" if raising else "skip").build()
        self.store.open(task, StoreContext("app", changelog=ChangelogList()))
        self.bottom = chain(self.store)[-1]
        for n, key in enumerate((b"a", b"b", b"c")):
            value = ValueTimestampHeaders.make(key, n, headers)
            match family:
                case "key-value":
                    self.store.put(key, value)
                case "window":
                    self.store.put(key, value, 5)
                case "session":
                    self.store.put(SessionKey(key, 5, 6), AggregationWithHeaders.make(key, headers))
                case _:
                    self.store.put(b"k", key, 10 * n, headers)
        self.store.flush()
        self.scan: Callable[[], Any] = {
            "key-value": lambda: self.store.all(),
            "window": lambda: self.store.all(),
            "session": lambda: self.store.fetch_range(None, None),
            "versioned": lambda: self.store.versions(b"k"),
        }[family]
        self.family = family

    def break_value(self) -> bytes:
        """Damage the second row; gives the key that the error names."""
        match self.family:
            case "key-value":
                self.bottom.put(b"b", BROKEN)
            case "window":
                self.bottom.put(b"b", BROKEN, 5)
                return window_key(b"b", 5)
            case "session":
                self.bottom.put(SessionKey(b"b", 5, 6), BROKEN)
                return session_key(b"b", 5, 6)
            case _:
                key = (20 // 10).to_bytes(8, "big") + b"k"  # the version that ends at 20
                self.bottom._write([(key, b"\0" * 20)])
                return key
        return b"b"


FAMILIES = ["key-value", "window", "window by time", "session", "versioned"]


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Callable[..., Damaged]]:
    result: list[Damaged] = []

    def make(name: str, **source: Any) -> Damaged:
        result.append(Damaged(name, tmp_path, **source))
        return result[-1]

    yield make
    for opened in result:
        opened.store.close()


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_damaged_row_is_named_and_scan_continues(
    damaged: Any, caplog: pytest.LogCaptureFixture, name: str, caching: bool
) -> None:
    if caching and name == "versioned":
        return  # versions are not cached
    harmed = damaged(name, caching=caching)
    key = harmed.break_value()
    values = [b"c", b"a"] if name == "versioned" else [b"a", b"c"]
    with harmed.scan() as rows:
        assert [getattr(value, "value", None) or value.aggregation for _, value in rows] == values
        (error,) = rows.damaged
    assert (error.store, error.key, error.code) == ("s", key, "truncated")
    assert isinstance(error.byte_offset, int)
    assert str(error) == f"store s: {error.reason} (key {key.hex()}, byte {error.byte_offset})"
    assert caplog.messages == [str(error)]


@pytest.mark.parametrize("name", FAMILIES)
def test_damaged_row_ends_raising_scan(damaged: Any, name: str) -> None:
    harmed = damaged(name, raising=True)
    harmed.break_value()
    with harmed.scan() as rows:
        next(rows)
        with pytest.raises(DamagedRowError, match=r"^store s: .* \(key "):
            next(rows)


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize(("name", "prefix"), [("window", b""), ("window by time", b"\0"), ("session", b"")])
def test_key_too_short_for_its_times_is_damaged_row(damaged: Any, name: str, prefix: bytes, caching: bool) -> None:
    harmed = damaged(name, caching=caching)
    (segment,) = harmed.bottom._databases()
    key = prefix + b"b" * 9
    segment.rows.put(key, b"v")
    with harmed.scan() as rows:
        assert [row.key for row, _ in rows] == [b"a", b"b", b"c"]
        (error,) = rows.damaged
    assert (error.store, error.key, error.code, error.byte_offset) == ("s", key, "truncated", len(key))
    assert f"a stored key of {len(key)} bytes is too short" in str(error)
    rows = harmed.bottom.all() if name != "session" else harmed.bottom.fetch_range(None, None)
    seen = []
    while rows.has_next():
        try:
            seen.append(rows.peek_next_key().key)
            next(rows)
        except DamagedRowError:
            seen.append(b"damaged")
    assert sorted(seen) == [b"a", b"b", b"c", b"damaged"]


def test_short_key_in_versioned_store_does_not_prevent_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = RocksDBVersionedStore("s", 100, 20)
    store.open(tmp_path)
    for time in (10, 30, 50):
        store.put(b"k", b"\0%d" % time, time)
    store._write([(b"\0", b"what"), (b"\xff", b"what")])
    store.close()
    store.open(tmp_path)
    assert [store.get_as_of(b"k", time).value for time in (15, 35, 55)] == [b"\x0010", b"\x0030", b"\x0050"]
    assert caplog.messages == [
        f"store s: a stored key of 1 bytes is too short: its segment takes 8 (key {key}, byte 1)"
        for key in ("00", "ff")
    ]
    store.close()


def test_damaged_row_of_older_store_stays_and_others_move(tmp_path: Path) -> None:
    older = RocksDBVersionedStore("s", 100, 20, headers=False)
    older.open(tmp_path)
    for n in range(2500):
        older.put(b"%04d" % n, b"v%d" % n, 50)
    older._write([(LATEST + b"0007", b"short"), (LATEST + b"2400", b"")])
    older.close()
    store = RocksDBVersionedStore("s", 100, 20)
    store.open(tmp_path)
    with pytest.raises(DamagedRowError, match=r"^store s: .*inside the timestamp.*key ffffffffffffffff30303037"):
        store.upgrade()
    store.close()
    with StoredFamilies(tmp_path / "rocksdb" / "s") as families:
        assert [key for key, _ in families.rows("default")] == [LATEST + b"0007", LATEST + b"2400"]
        assert len(list(families.rows("versionedKeyValueWithHeaders"))) == 2498
    store.open(tmp_path)
    with pytest.raises(DamagedRowError):
        store.get(b"0007")
    assert store.get(b"0008").value == b"\0v8"
    store.close()


def test_changelog_record_without_time_names_store(tmp_path: Path) -> None:
    store = RocksDBWindowStore("s", RETENTION, WINDOW)
    store.open(tmp_path)
    good = ChangelogRecord(keys.window_key(b"a", 5), b"1", 5, Headers())
    with pytest.raises(DamagedRowError, match=r"store s: a stored key of 2 bytes is too short.*\(key 6162"):
        store.restore([good, good._replace(key=b"ab")])
    assert list(store.all()) == []
    store.close()


# --- records that come too late, or before time ----------------------------------------------------------------------

SUPPLIERS = {
    "window": (
        lambda: Stores.persistent_timestamped_window_store_with_headers("s", RETENTION, WINDOW),
        lambda: Stores.in_memory_window_store("s", RETENTION, WINDOW),
    ),
    "session": (
        lambda: Stores.persistent_session_store_with_headers("s", RETENTION),
        lambda: Stores.in_memory_session_store("s", RETENTION),
    ),
    "versioned": (
        lambda: Stores.persistent_versioned_key_value_store_with_headers("s", RETENTION),
        lambda: Stores.in_memory_versioned_key_value_store("s", RETENTION),
    ),
}
BUILDERS = {
    "window": Stores.timestamped_window_store_with_headers_builder,
    "session": Stores.session_store_with_headers_builder,
    "versioned": Stores.versioned_key_value_store_with_headers_builder,
}


def put(store: Any, family: str, time: int) -> None:
    headers = Headers()
    if family == "window":
        store.put(b"k", ValueTimestampHeaders.make(b"v", 5, headers), time)
    elif family == "session":
        store.put(SessionKey(b"k", time, time), AggregationWithHeaders.make(b"v", headers))
    else:
        store.put(b"k", b"v", time, headers)


@pytest.fixture(params=[(family, n) for family in SUPPLIERS for n in range(2)], ids=str)
def timed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    family, n = request.param
    store = BUILDERS[family](SUPPLIERS[family][n]()).with_logging_disabled().build()
    store.open(tmp_path, StoreContext("app", changelog=ChangelogList()))
    yield store, family
    store.close()


def test_late_records_are_counted_with_rate_limited_warning(
    timed: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, family = timed
    now = 1000.0
    monkeypatch.setattr(base, "monotonic", lambda: now)
    caplog.set_level(logging.WARNING, "letterhead.state")
    put(store, family, 9 * INTERVAL)
    assert store.metrics.expired_records == 0
    for _ in range(3):
        put(store, family, 1)
    now += 61
    put(store, family, 1)
    assert store.metrics.expired_records == store.metrics.as_dict()["expired_records"] == 4
    expired = "put" if family == "versioned" else "segment"
    assert caplog.messages == [f"store s: Skipping record for expired {expired} ({n} so far)" for n in (1, 4)]


def test_time_before_1970_is_rejected_without_changes(timed: Any) -> None:
    store, family = timed
    put(store, family, 5)
    with pytest.raises(InvalidTimestampError, match="Invalid timestamp: -5"):
        put(store, family, -5)
    if family == "versioned":
        assert store.get(b"k").timestamp == 5
    else:
        with store.fetch_range(None, None, *((0, 100) if family == "window" else ())) as rows:
            assert len(list(rows)) == 1


# --- stores in order of time, without an index -----------------------------------------------------------------------


def windows(task: Path, with_index: bool) -> RocksDBTimeOrderedWindowStore:
    store = RocksDBTimeOrderedWindowStore("s", RETENTION, WINDOW, with_index=with_index)
    store.open(task)
    return store


def test_store_without_index_finds_rows_by_key_in_time_order(tmp_path: Path) -> None:
    store = windows(tmp_path, False)
    for key, start in ((b"b", 5), (b"a", 9), (b"a", 5), (b"c", 7), (b"a", INTERVAL)):
        store.put(key, b"%d" % start, start)
    store.put(b"c", None, 7)
    assert [row.start for row, _ in store.fetch_key(b"a", 0, INTERVAL)] == [5, 9, INTERVAL]
    assert [row.start for row, _ in store.backward_fetch_key(b"a", 6, INTERVAL)] == [INTERVAL, 9]
    assert [row[:2] for row, _ in store.fetch_range(None, b"b", 0, 9)] == [(b"a", 5), (b"b", 5), (b"a", 9)]
    assert store.fetch(b"a", 9) == b"9"
    store.close()
    with StoredFamilies(tmp_path / "s" / "s.0") as families:
        assert [key[:1] for key, _ in families.rows("windowKeyValueWithHeaders")] == [b"\0"] * 3


def test_index_is_built_or_removed_when_store_opens(tmp_path: Path) -> None:
    def index() -> list[bytes]:
        with StoredFamilies(tmp_path / "s" / "s.0") as families:
            return [key[1:-12] for key, _ in families.rows("windowKeyValueWithHeaders", b"\1")]

    store = windows(tmp_path, False)
    for key in (b"a", b"b"):
        store.put(key, b"1", 5)
    store.close()
    assert index() == []
    store = windows(tmp_path, True)
    assert [row.key for row, _ in store.fetch_range(b"a", None, 0, 9)] == [b"a", b"b"]
    store.put(b"c", b"1", 5)
    store.close()
    assert index() == [b"a", b"b", b"c"]
    store = windows(tmp_path, False)
    store.put(b"a", None, 5)
    store.put(b"d", b"1", 5)
    store.close()
    assert index() == []
    store = windows(tmp_path, True)
    assert [row.key for row, _ in store.fetch_range(None, None, 0, 9)] == [b"b", b"c", b"d"]
    store.close()
