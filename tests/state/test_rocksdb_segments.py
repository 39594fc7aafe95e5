"""Window and session stores in RocksDB: segments, retention, keys, time-ordered stores."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from letterhead import Headers
from letterhead.errors import (
    DamagedRowError,
    ProcessorStateError,
    UnexpectedColumnFamilyError,
    UnsupportedOperationError,
)
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.memory import InMemorySessionStore, InMemoryWindowStore
from letterhead.state.rocksdb import (
    RocksDBSessionStore,
    RocksDBTimeOrderedSessionStore,
    RocksDBTimeOrderedWindowStore,
    RocksDBWindowStore,
)
from letterhead.state.storage import keys
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.keys import MAX_TIME, SessionKey
from letterhead.state.storage.position import Position
from letterhead.state.storage.segments import segment_interval

RETENTION, WINDOW, INTERVAL = 240_000, 10_000, 120_000

Rows = list[tuple[bytes, bytes]]


def names(task: Path, store: str = "store") -> list[str]:
    return sorted(path.name for path in (task / store).iterdir())


def families(task: Path, segment: int) -> dict[str, Rows]:
    with StoredFamilies(task / "store" / f"store.{segment}") as families_read:
        return {name: list(families_read.rows(name)) for name in families_read.names if name != "offsets"}


def windows(task: Path, *, ordered: bool = False, duplicates: bool = False, format: Any = "headers") -> Any:
    make = RocksDBTimeOrderedWindowStore if ordered else RocksDBWindowStore
    store = make("store", RETENTION, WINDOW, duplicates, format=format)
    store.open(task)
    return store


def sessions(task: Path, *, ordered: bool = False, format: Any = "headers") -> Any:
    store = (RocksDBTimeOrderedSessionStore if ordered else RocksDBSessionStore)("store", RETENTION, format=format)
    store.open(task)
    return store


def logged(key: bytes, value: bytes | None) -> ChangelogRecord:
    return ChangelogRecord(key, value, 5, Headers())


@pytest.fixture(params=[False, True], ids=["by-key", "time-ordered"])
def ordered(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


# --- segments --------------------------------------------------------------------------------------------------------


def test_segment_interval_is_half_of_retention_but_a_minute() -> None:
    assert [segment_interval(retention) for retention in (1000, 120_000, 240_000)] == [60_000, 60_000, 120_000]


def test_segment_is_created_for_first_row_of_its_time(tmp_path: Path, ordered: bool) -> None:
    store = windows(tmp_path, ordered=ordered)
    assert names(tmp_path) == []
    store.put(b"a", b"1", 5)
    store.put(b"a", b"2", INTERVAL)
    store.put(b"b", b"3", INTERVAL + 5)
    assert names(tmp_path) == ["store.0", "store.120000"]
    store.close()
    family = "windowKeyValueWithHeaders" if ordered else "keyValueWithTimestampAndHeaders"
    assert sorted(families(tmp_path, 0)) == ["default", family]
    assert families(tmp_path, 0)["default"] == []
    stored = keys.window_key(b"a", 5)
    rows = [(b"\0" + stored[1:9] + b"a" + bytes(4), b"1"), (b"\1" + stored, b"")] if ordered else [(stored, b"1")]
    assert families(tmp_path, 0)[family] == rows


def test_segments_past_retention_are_removed_with_files(tmp_path: Path, ordered: bool) -> None:
    store = windows(tmp_path, ordered=ordered)
    for start in (0, INTERVAL, 2 * INTERVAL):
        store.put(b"a", b"v", start)
    rows = store.all()
    next(rows)
    store.put(b"a", b"v", 4 * INTERVAL)
    assert names(tmp_path) == ["store.240000", "store.480000"]
    # What is left of the segments that are gone is left out.
    assert [row.start for row, _ in rows] == [2 * INTERVAL]
    store.put(b"late", b"v", INTERVAL)
    assert store.expired_records == 1
    assert names(tmp_path) == ["store.240000", "store.480000"]
    store.close()


def test_retention_is_exact_to_millisecond(tmp_path: Path) -> None:
    store = windows(tmp_path / "by-key")
    ordered = windows(tmp_path / "ordered", ordered=True)
    for layered, oldest in ((store, 1001), (ordered, 1000)):
        for start in (999, 1000, 1001):
            layered.put(b"a", b"v", start)
        layered.put(b"a", b"v", RETENTION + 1000)
        assert [layered.fetch(b"a", start) is not None for start in (999, 1000, 1001)] == [
            start >= oldest for start in (999, 1000, 1001)
        ]
        assert [row.start for row, _ in layered.all()] == [*range(oldest, 1002), RETENTION + 1000]
        assert [row.start for row, _ in layered.fetch_key(b"a", 0, 1000)] == [*range(oldest, 1001)]
        assert list(layered.fetch_all(0, 999)) == []
        layered.close()


def test_nothing_expires_after_open_until_records_arrive(tmp_path: Path, ordered: bool) -> None:
    store = windows(tmp_path, ordered=ordered)
    store.put(b"a", b"v", 10 * INTERVAL)
    store.close()
    store.open(tmp_path)
    store.put(b"a", b"old", 0)
    assert store.fetch(b"a", 0) == b"old"
    assert [row.start for row, _ in store.all()] == [0, 10 * INTERVAL]
    store.put(b"a", b"new", 10 * INTERVAL)
    assert names(tmp_path) == ["store.1200000"]
    store.close()


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("store.120000", "store.120000"),
        ("store:120000", "store.120000"),
        ("store.130000", None),
        ("store-197001010002", "store.120000"),
        ("store-yesterday", None),
    ],
)
def test_segment_names_of_older_versions_are_migrated(tmp_path: Path, name: str, new: str | None) -> None:
    store = windows(tmp_path)
    store.put(b"a", b"1", INTERVAL + 5)
    store.close()
    (tmp_path / "store" / "store.120000").rename(tmp_path / "store" / name)
    store.open(tmp_path)
    if new is not None:
        assert names(tmp_path) == [new]
        assert store.fetch(b"a", INTERVAL + 5) == b"1"
    else:
        assert store.fetch(b"a", INTERVAL + 5) is None
    store.close()


@pytest.mark.parametrize("name", ["store.x", "store.", "rocksdict-config.json", "store"])
def test_directory_that_is_no_segment_is_rejected(tmp_path: Path, name: str) -> None:
    store = windows(tmp_path)
    store.put(b"a", b"1", 5)
    store.close()
    (tmp_path / "store" / name).mkdir()
    with pytest.raises(ProcessorStateError) as raised:
        store.open(tmp_path)
    assert str(raised.value) == f"Unable to parse segment id as long from segmentName: {name}"
    (tmp_path / "store" / name).rmdir()
    store.open(tmp_path)  # nothing of it was left open
    assert store.fetch(b"a", 5) == b"1"
    store.close()


def test_every_segment_stores_offset_and_position(tmp_path: Path) -> None:
    class Task:
        topic, partition, offset = "in", 0, 7

        @property
        def record(self) -> Task:
            return self

    store = RocksDBWindowStore("store", RETENTION, WINDOW)
    store.open(tmp_path, Task())
    store.put(b"a", b"1", 5)
    store.put(b"a", b"1", INTERVAL)
    store.commit({("app-store-changelog", 0): 1})
    store.close()
    for segment in (0, INTERVAL):
        with StoredFamilies(tmp_path / "store" / f"store.{segment}") as stored:
            offsets = dict(stored.rows("offsets"))
        assert offsets[b"app-store-changelog-0"] == bytes(7) + b"\1"
        assert Position.deserialize(offsets[b"position"]) == Position({"in": {0: 7}})
    store.open(tmp_path)
    assert store.position == Position({"in": {0: 7}})
    assert store.committed_offsets() == {"app-store-changelog-0": 1}
    store.close()


def test_dropped_and_removed_rows_do_not_move_position(tmp_path: Path) -> None:
    class Task:
        topic, partition, offset = "in", 0, 0

        @property
        def record(self) -> Task:
            return self

    task = Task()
    store = RocksDBSessionStore("store", RETENTION)
    store.open(tmp_path, task)
    store.put(SessionKey(b"a", 0, 10 * INTERVAL), b"1")
    task.offset = 1
    store.put(SessionKey(b"a", 0, 0), b"late")
    store.remove(SessionKey(b"a", 0, 10 * INTERVAL))
    assert store.position == Position({"in": {0: 0}})
    store.close()


@pytest.mark.parametrize(
    ("newer", "older", "message"),
    [
        (
            lambda task: windows(task),
            lambda task: windows(task, format="timestamped"),
            "Store store.0 is a headers-aware store and cannot be opened as a timestamped store.",
        ),
        (
            lambda task: windows(task),
            lambda task: windows(task, format="plain"),
            "Store store.0 is a headers-aware store and cannot be opened as a regular key-value store.",
        ),
        (
            lambda task: windows(task, format="timestamped"),
            lambda task: windows(task, format="plain"),
            "Store store.0 is a timestamped key-value store and cannot be opened as a regular key-value store.",
        ),
        (
            lambda task: sessions(task),
            lambda task: sessions(task, format="plain"),
            "Unexpected column family 'sessionKeyValueWithHeaders' found in store store.0.",
        ),
        (
            lambda task: windows(task, ordered=True),
            lambda task: windows(task, ordered=True, format="timestamped"),
            "Unexpected column family 'windowKeyValueWithHeaders' found in store store.0.",
        ),
    ],
)
def test_downgrade_is_rejected(tmp_path: Path, newer: Any, older: Any, message: str) -> None:
    store = newer(tmp_path)
    store.put(*((SessionKey(b"a", 0, 5), b"1") if isinstance(store, RocksDBSessionStore) else (b"a", b"1", 5)))
    store.close()
    with pytest.raises(UnexpectedColumnFamilyError) as raised:
        older(tmp_path)
    assert str(raised.value).startswith(message)
    newer(tmp_path).close()  # nothing was changed, nothing is locked


# --- windows ---------------------------------------------------------------------------------------------------------


def test_windows_are_ordered_by_segment_then_stored_key(tmp_path: Path) -> None:
    store = windows(tmp_path)
    written = [(b"b", 7), (b"a", 9), (b"a", 7), (b"a\x00", 8), (b"a", INTERVAL)]
    for key, start in written:
        store.put(key, key, start)
    # Keys that begin with each other stand among each other: the time follows the key at once.
    in_order = sorted(written, key=lambda row: (row[1] // INTERVAL, keys.window_key(*row)))
    assert [row[:2] for row, _ in store.all()] == in_order
    assert [row[:2] for row, _ in store.backward_all()] == in_order[::-1]
    assert [row[:2] for row, _ in store.fetch_key(b"a", 7, MAX_TIME)] == [(b"a", 7), (b"a", 9), (b"a", INTERVAL)]
    assert [row[:2] for row, _ in store.backward_fetch_key(b"a", 8, 9)] == [(b"a", 9)]
    assert [row[:2] for row, _ in store.fetch_range(b"a", b"a\x00", 8, 9)] == [
        r for r in in_order if r in written[1:4:2]
    ]
    assert [row[:2] for row, _ in store.backward_fetch_range(b"b", None, 0, 9)] == [(b"b", 7)]
    assert [row[:2] for row, _ in store.fetch_all(INTERVAL, INTERVAL)] == [(b"a", INTERVAL)]
    assert [row[:2] for row, _ in store.backward_fetch_all(8, 9)] == [r for r in in_order[::-1] if r[1] in (8, 9)]
    assert list(store.fetch_range(b"b", b"a", 0, 9)) == []
    assert next(store.all())[0].end == in_order[0][1] + WINDOW
    store.put(b"a", None, 7)
    assert store.fetch(b"a", 7) is None
    store.close()


@pytest.mark.parametrize("seed", range(2))
def test_windows_in_rocksdb_match_memory(tmp_path: Path, ordered: bool, seed: int) -> None:
    choose = random.Random(seed)
    rocksdb = windows(tmp_path, ordered=ordered)
    memory = InMemoryWindowStore("store", RETENTION, WINDOW)
    memory.open()
    now = 0
    for step in range(150):
        now += choose.choice((0, 0, 1000, 40_000))
        key, start = choose.choice((b"a", b"a\x00", b"b", b"")), max(0, now - choose.choice((0, 500, 100_000)))
        value = choose.choice((None, b"", b"%d" % step, b"%d" % step))
        for store in (rocksdb, memory):
            store.put(key, value, start)
        # Where the two keep different milliseconds at the end of the retention, they are not compared.
        oldest = now - RETENTION + 1
        assert rocksdb.fetch(key, start) == memory.fetch(key, start)
        low, high = sorted(choose.choices((b"", b"a", b"a\x00", b"aa", b"b"), k=2))
        first, last = sorted(choose.choices(range(max(0, oldest), now + 2), k=2))
        for name, arguments in (
            ("fetch_key", (key, first, last)),
            ("fetch_range", (low, high, first, last)),
            ("fetch_range", (None, high, first, last)),
            ("fetch_all", (first, last)),
        ):
            expected = sorted(getattr(memory, name)(*arguments))
            rows = list(getattr(rocksdb, name)(*arguments))
            assert sorted(rows) == expected
            assert list(getattr(rocksdb, "backward_" + name)(*arguments)) == rows[::-1]
    rocksdb.close()


def test_duplicates_are_kept_and_last_one_is_found(tmp_path: Path) -> None:
    store = windows(tmp_path, duplicates=True)
    for value in (b"1", None, b"2"):
        store.put(b"a", value, 5)
    assert [value for _, value in store.fetch_key(b"a", 0, 10)] == [b"1", b"2"]
    assert store.fetch(b"a", 5) == b"2"
    store.close()
    assert [key[-4:] for key, _ in families(tmp_path, 0)["keyValueWithTimestampAndHeaders"]] == [
        bytes(3) + b"\1",
        bytes(3) + b"\2",
    ]


@pytest.mark.parametrize(
    ("before", "ordered_before", "prefix"),
    [("plain", False, b"\0" + b"\xff" * 8), ("timestamped", False, b"\0"), ("timestamped", True, b"\0")],
)
def test_windows_of_older_store_are_upgraded(tmp_path: Path, before: Any, ordered_before: bool, prefix: bytes) -> None:
    store = windows(tmp_path, ordered=ordered_before, format=before)
    for start in (5, 7, INTERVAL):
        store.put(b"a", bytes(8) + b"%d" % start, start)
    store.close()
    store = windows(tmp_path, ordered=ordered_before)
    assert store.upgrading
    expected = [(start, prefix + bytes(8) + b"%d" % start) for start in (5, 7, INTERVAL)]
    assert [(row.start, value) for row, value in store.all()] == expected
    assert [(row.start, value) for row, value in store.fetch_key(b"a", 0, MAX_TIME)] == expected
    assert store.fetch(b"a", 5) == expected[0][1]
    store.put(b"a", b"new", 7)
    store.put(b"a", None, INTERVAL)
    assert store.upgrade() == (1 if ordered_before else 0)  # the entry of the index for what was read by its key
    store.close()
    store.open(tmp_path)
    assert not store.upgrading
    assert [(row.start, value) for row, value in store.all()] == [expected[0], (7, b"new")]
    store.close()


# --- sessions --------------------------------------------------------------------------------------------------------


def test_sessions_are_ordered_by_segment_of_their_end(tmp_path: Path) -> None:
    store = sessions(tmp_path)
    for start, end in ((0, 5), (3, 5), (4, INTERVAL), (7, 9)):
        store.put(SessionKey(b"a", start, end), b"%d" % start)
    expected = [(0, 5), (3, 5), (7, 9), (4, INTERVAL)]
    assert [row[1:] for row, _ in store.fetch(b"a")] == expected
    assert [row[1:] for row, _ in store.backward_fetch(b"a")] == expected[::-1]
    assert [row[1:] for row, _ in store.find_sessions(b"a", 6, 4)] == [(4, INTERVAL)]
    assert [row[1:] for row, _ in store.backward_find_sessions(b"a", 5, 3)] == [(3, 5), (0, 5)]
    assert [row[1:] for row, _ in store.find_sessions_range(None, b"a", 6, MAX_TIME)] == expected[2:]
    assert [row[1:] for row, _ in store.backward_find_sessions_range(b"a", None, 6, MAX_TIME)] == expected[:1:-1]
    assert list(store.fetch_range(b"b", None)) == list(store.fetch_range(b"b", b"a")) == []
    assert store.fetch_session(b"a", 3, 5) == b"3"
    store.remove(SessionKey(b"a", 3, 5))
    store.put(SessionKey(b"a", 7, 9), None)
    assert [row[1:] for row, _ in store.backward_fetch_range(None, None)] == [(4, INTERVAL), (0, 5)]
    with pytest.raises(
        UnsupportedOperationError, match=r"This API is not supported by this implementation of SessionStore\."
    ):
        store.find_sessions_time(0, 5)
    store.close()


@pytest.mark.parametrize("seed", range(2))
def test_sessions_in_rocksdb_match_memory(tmp_path: Path, ordered: bool, seed: int) -> None:
    choose = random.Random(seed)
    rocksdb = sessions(tmp_path, ordered=ordered)
    memory = InMemorySessionStore("store", RETENTION)
    memory.open()
    now = 0
    for step in range(150):
        now += choose.choice((0, 0, 1000, 40_000))
        end = max(0, now - choose.choice((0, 500, 100_000)))
        key = SessionKey(choose.choice((b"a", b"a\x00", b"b", b"")), max(0, end - choose.choice((0, 300, 5000))), end)
        value = choose.choice((None, b"", b"%d" % step, b"%d" % step))
        for store in (rocksdb, memory):
            store.put(key, value)
            if step % 7 == 0:
                store.remove(key)
        assert rocksdb.fetch_session(*key) == memory.fetch_session(*key)
        low, high = sorted(choose.choices((b"", b"a", b"a\x00", b"aa", b"b"), k=2))
        earliest, latest = choose.choices(range(now + 2), k=2)
        for name, arguments in (
            ("find_sessions", (key.key, earliest, latest)),
            ("find_sessions_range", (low, high, earliest, latest)),
            ("find_sessions_range", (low, None, earliest, MAX_TIME)),
            ("fetch", (key.key,)),
        ):
            expected = sorted(getattr(memory, name)(*arguments))
            rows = list(getattr(rocksdb, name)(*arguments))
            assert sorted(rows) == expected
            assert list(getattr(rocksdb, "backward_" + name)(*arguments)) == rows[::-1]
    rocksdb.close()


def test_sessions_of_plain_store_are_upgraded(tmp_path: Path, ordered: bool) -> None:
    store = sessions(tmp_path, ordered=ordered, format="plain")
    for start in (1, 2, 3):
        store.put(SessionKey(b"a", start, 5), b"%d" % start)
    store.close()
    store = sessions(tmp_path, ordered=ordered)
    prefix = b"" if ordered else b"\0"  # in order of time, values get no headers
    assert [value for _, value in store.fetch(b"a")] == [prefix + b"1", prefix + b"2", prefix + b"3"]
    assert store.fetch_session(b"a", 1, 5) == prefix + b"1"
    store.put(SessionKey(b"a", 2, 5), b"new")
    store.remove(SessionKey(b"a", 3, 5))
    store.upgrade()
    store.close()
    store.open(tmp_path)
    assert not store.upgrading
    assert [value for _, value in store.fetch(b"a")] == [prefix + b"1", b"new"]
    store.close()


# --- time-ordered stores ---------------------------------------------------------------------------------------------


def test_time_ordered_store_returns_rows_by_time(tmp_path: Path) -> None:
    store = windows(tmp_path, ordered=True)
    for key, start in ((b"a", 9), (b"b", 5), (b"a", 5), (b"c", INTERVAL)):
        store.put(key, key, start)
    expected = [(b"a", 5), (b"b", 5), (b"a", 9), (b"c", INTERVAL)]
    assert [row[:2] for row, _ in store.all()] == expected
    assert [row[:2] for row, _ in store.backward_fetch_all(5, 9)] == expected[2::-1]
    assert [row[:2] for row, _ in store.fetch_all(6, INTERVAL)] == expected[2:]
    assert [row[:2] for row, _ in store.fetch_range(None, None, 0, 9)] == [(b"a", 5), (b"a", 9), (b"b", 5)]
    store.close()


def test_sessions_are_found_by_end_up_to_last_millisecond(tmp_path: Path) -> None:
    store = sessions(tmp_path, ordered=True)
    for key, start, end in ((b"b", 1, 5), (b"a", 2, 5), (b"a", 1, 9), (b"a", 1, INTERVAL)):
        store.put(SessionKey(key, start, end), b"v")
    expected = [(b"b", 1, 5), (b"a", 2, 5), (b"a", 1, 9), (b"a", 1, INTERVAL)]
    assert [row for row, _ in store.find_sessions_time(0, MAX_TIME)] == expected
    assert [row for row, _ in store.find_sessions_time(6, 9)] == expected[2:3]
    assert list(store.find_sessions_time(9, 6)) == []
    store.close()


def test_row_and_index_entry_are_removed_together(tmp_path: Path) -> None:
    store = windows(tmp_path, ordered=True)
    store.put(b"a", b"1", 5)
    store.put(b"a", None, 5)
    store.put(b"b", None, 5)
    store.close()
    assert families(tmp_path, 0)["windowKeyValueWithHeaders"] == []


def test_reading_an_index_entry_without_its_row_deletes_it(tmp_path: Path) -> None:
    store = windows(tmp_path, ordered=True)
    store.put(b"a", b"1", 5)
    entry = b"\1" + keys.window_key(b"b", 5)
    store._open_segments().at(0).rows.put(entry, b"")  # as Kafka Streams leaves it
    assert [row.key for row, _ in store.fetch_range(None, None, 0, 9)] == [b"a"]
    store.close()
    assert entry not in dict(families(tmp_path, 0)["windowKeyValueWithHeaders"])


# --- restore ---------------------------------------------------------------------------------------------------------


def test_windows_restore_from_changelog(tmp_path: Path, ordered: bool) -> None:
    original = windows(tmp_path / "one", ordered=ordered)
    changes = [(b"a", b"1", 5), (b"b", b"2", 7), (b"a", None, 5), (b"c", b"3", INTERVAL), (b"b", b"4", 3 * INTERVAL)]
    for change in changes:
        original.put(*change)
    restored = windows(tmp_path / "two", ordered=ordered)
    restored.restore(logged(keys.window_key(key, start), value) for key, value, start in changes)
    assert list(restored.all()) == list(original.all())
    assert list(restored.fetch_key(b"b", 0, MAX_TIME)) == list(original.fetch_key(b"b", 0, MAX_TIME))
    # Rows that are too old at the end of the batch are not put back.
    restored.restore([logged(keys.window_key(b"x", 9 * INTERVAL), b"x"), logged(keys.window_key(b"y", 5), b"y")])
    assert [row.key for row, _ in restored.all()] == [b"x"]
    assert names(tmp_path / "two") == ["store.1080000"]
    original.close()
    restored.close()


def test_sessions_restore_from_changelog(tmp_path: Path, ordered: bool) -> None:
    store = sessions(tmp_path, ordered=ordered)
    store.restore([logged(keys.session_key(b"a", 1, 5), b"1"), logged(keys.session_key(b"a", 2, 6), b"2")])
    store.restore([logged(keys.session_key(b"a", 1, 5), None)])
    assert list(store.fetch(b"a")) == [((b"a", 2, 6), b"2")]
    store.close()


# --- files -----------------------------------------------------------------------------------------------------------


def test_segment_is_renamed_before_its_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, remove, calls = os.rename, shutil.rmtree, []

    def renaming(source: Any, target: Any) -> None:
        calls.append(("rename", Path(source).name, Path(target).name))
        rename(source, target)

    def removing(path: Any, *args: Any, **kwargs: Any) -> None:
        calls.append(("remove", Path(path).name))
        remove(path, *args, **kwargs)

    store = windows(tmp_path)
    store.put(b"a", b"1", 5)
    monkeypatch.setattr(os, "rename", renaming)
    monkeypatch.setattr(shutil, "rmtree", removing)
    store.put(b"a", b"2", RETENTION + INTERVAL)
    assert calls == [("rename", "store.0", ".store.0.removed"), ("remove", ".store.0.removed")]
    store.close()


def test_rest_of_removed_segment_is_deleted_at_next_start(tmp_path: Path) -> None:
    store = windows(tmp_path)
    store.put(b"a", b"1", 5)
    store.close()
    rest, others = tmp_path / ".store.0.removed", [".other.0.removed", ".store.x.removed", ".storeX0.removed"]
    for name in (rest.name, *others):
        (tmp_path / name).mkdir()
    store.open(tmp_path)
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "store"])


def test_all_segments_close_and_first_failure_is_raised(tmp_path: Path) -> None:
    store = windows(tmp_path)
    for segment in range(3):
        store.put(b"a", b"1", segment * INTERVAL)
    databases = list(store._segments.all())

    def failing(database: Any, reason: str) -> Any:
        close = database.close

        def close_and_fail() -> None:
            close()
            raise ProcessorStateError(reason)

        return close_and_fail

    databases[0].close = failing(databases[0], "no space left")
    databases[1].close = failing(databases[1], "another")
    with pytest.raises(ProcessorStateError, match="no space left"):
        store.close()
    assert [database.is_open for database in databases] == [False] * 3
    store.open(tmp_path)
    assert len(names(tmp_path)) == 3
    store.close()


@pytest.mark.parametrize("make_store", [windows, sessions])
def test_restore_with_key_too_short_for_time_writes_nothing(tmp_path: Path, make_store: Any) -> None:
    store = make_store(tmp_path)
    suffix = {windows: 12, sessions: 16}[make_store]
    with pytest.raises(
        DamagedRowError, match=f"a stored key of {suffix - 1} bytes is too short: it has at least {suffix}"
    ):
        store.restore([logged(bytes(suffix), b"1"), logged(bytes(suffix - 1), b"2")])
    assert names(tmp_path) == []
    store.restore([logged(bytes(suffix), b"1")])
    assert names(tmp_path) == ["store.0"]
    store.close()
