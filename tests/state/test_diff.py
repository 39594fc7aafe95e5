"""Differences between directories, and between a directory and its changelog."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import StoreChoiceError, StoreNotFoundError
from letterhead.state import ChangelogRecord, diff, restore
from letterhead.state.rocksdb import RocksDBKeyValueStore, RocksDBVersionedStore
from letterhead.state.storage.database import Database, RocksDBOptions
from letterhead.state.storage.keys import session_key, window_key
from letterhead.state.storage.layouts import HEADERS
from letterhead.state.storage.position import Position
from tests.state import changelogs

SAMPLES = Path(__file__).resolve().parents[1] / "samples"


def record(key: bytes, value: bytes | None, timestamp: int = 5, **headers: bytes) -> ChangelogRecord:
    return ChangelogRecord(key, value, timestamp, lh.Headers(headers.items()))


def restored(records: list[ChangelogRecord], task: Path, **options: Any) -> Path:
    restore(changelogs.table(records), task, "store", **options)
    return task


BEFORE = [record(b"a", b"1", a=b"1"), record(b"b", b"2"), record(b"c", b"3"), record(b"d", b"4")]
AFTER = [record(b"a", b"1", a=b"2"), record(b"b", b"2", 6), record(b"c", b"0"), record(b"e", b"5")]


def test_differing_rows_have_both_sides_and_difference(tmp_path: Path) -> None:
    differences = list(diff(restored(BEFORE, tmp_path / "1"), restored(AFTER, tmp_path / "2")))
    assert [(row.key, row.differs) for row in differences] == [
        (b"a", ("headers",)),
        (b"b", ("timestamp",)),
        (b"c", ("value",)),
        (b"d", ("row",)),
        (b"e", ("row",)),
    ]
    assert differences[1].first == (b"2", 5, lh.Headers())
    assert differences[1].second == (b"2", 6, lh.Headers())
    assert (differences[3].second, differences[4].first) == (None, None)
    assert list(diff(tmp_path / "1", tmp_path / "1")) == []


def test_rows_are_compared_by_fields_of_both_sides(tmp_path: Path) -> None:
    with_headers = restored(BEFORE, tmp_path / "headers")
    timestamped = restored(BEFORE, tmp_path / "timestamped", layout="timestamped")
    plain = restored(AFTER, tmp_path / "plain", layout="plain")
    assert list(diff(with_headers, timestamped)) == []
    assert [row.differs for row in diff(timestamped, plain)] == [("value",), ("row",), ("row",)]


def test_row_before_upgrade_equals_row_after_it(tmp_path: Path) -> None:
    old = restored(BEFORE, tmp_path / "old", layout="timestamped")
    new = tmp_path / "new"
    shutil.copytree(old, new)
    store = RocksDBKeyValueStore("store")
    store.open(new)
    assert store.get(b"a") is not None  # moves one row
    store.close()
    assert list(diff(old, new)) == []


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("window", window_key(b"k", 70_000)),
        ("session", session_key(b"k", 60_000, 70_000)),
        ("time-ordered-window", window_key(b"k", 70_000)),
        ("versioned", b"k"),
    ],
)
def test_store_is_compared_with_changelog_up_to_its_offset(tmp_path: Path, name: str, key: bytes) -> None:
    options: dict[str, Any] = {"store_type": name, "retention": 120_000}
    records = [record(key, b"%d" % n, 70_000 + n) for n in range(5)]
    task = restored(records[:3], tmp_path / "1", **options)
    assert list(diff(task, changelogs.table(records), **options)) == []
    changed = [*records[:2], record(key, b"other", 70_002)]
    (row,) = diff(task, changelogs.table(changed), **options)
    assert (row.key, row.differs, row.first and row.first.value, row.second and row.second.value) == (
        b"k",
        ("value",),
        b"2",
        b"other",
    )


def test_stores_are_compared_by_task_and_name(tmp_path: Path) -> None:
    state = SAMPLES / "streams-state-0_0"
    copy = tmp_path / "0_0"
    shutil.copytree(state, copy)
    assert list(diff(state, copy)) == []
    shutil.rmtree(copy / "hourly")
    with pytest.raises(StoreNotFoundError, match="only one of the directories has hourly"):
        list(diff(state, copy))
    with pytest.raises(StoreChoiceError, match="a changelog belongs to one store: choose one with store=: hourly"):
        list(diff(state, changelogs.table(BEFORE)))
    with pytest.raises(StoreChoiceError, match="is session, with headers, and the other key-value, with headers"):
        list(diff(state / "sessions", state / "rocksdb" / "latest"))


def test_store_without_offset_cannot_be_compared_with_changelog(tmp_path: Path) -> None:
    store = RocksDBVersionedStore("store", 1000)
    store.open(tmp_path)
    store.close()
    with pytest.raises(StoreChoiceError, match="has no changelog offset"):
        list(diff(tmp_path, changelogs.table(BEFORE), retention=1000))


def test_tasks_are_compared_by_name_if_one_side_has_several(tmp_path: Path) -> None:
    single, several = tmp_path / "one" / "0_0", tmp_path / "several"
    restored(BEFORE, single)
    restored(BEFORE, several / "0_0")
    restored(AFTER, several / "0_1", force=True)
    for first, second in ((single, several), (several, single)):
        with pytest.raises(StoreNotFoundError, match="only one of the directories has 0_1/store"):
            list(diff(first, second))
    assert list(diff(tmp_path / "one", several / "0_0")) == []


def test_store_offset_is_latest_of_its_segments(tmp_path: Path) -> None:
    options: dict[str, Any] = {"store_type": "window", "retention": 600_000}
    records = [record(window_key(b"k", n * 300_000), b"%d" % n) for n in range(3)]
    task = restored(records, tmp_path, **options)
    for segment, offset in zip(sorted((task / "store").iterdir()), (0, 2, 1), strict=True):
        database = Database("store", segment, HEADERS, RocksDBOptions())
        database.commit({(changelogs.TOPIC, 0): offset}, Position())
        database.close()
    # Up to an earlier offset, rows of the directory would be missing in the changelog.
    assert list(diff(task, changelogs.table(records), **options)) == []
