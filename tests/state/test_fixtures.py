"""Databases that Kafka Streams wrote: read row by row, opened as stores, changed and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from letterhead.errors import UnexpectedColumnFamilyError
from letterhead.state.base import HeadersBytesStore
from letterhead.state.rocksdb import RocksDBKeyValueStore, RocksDBSessionStore, RocksDBWindowStore
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.keys import MAX_TIME
from letterhead.state.storage.position import Position
from tests.helpers import archives

FIXTURES = ("kv-headers", "kv-timestamped", "kv-plain", "kv-mid-upgrade", "window-headers", "session-headers")

Families = dict[str, list[tuple[bytes, bytes]]]


def fixture(vectors: Path, name: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in (vectors / "rocksdb_fixtures.jsonl").read_text().splitlines()]
    assert sorted(line["fixture"] for line in lines) == sorted(FIXTURES)
    return next(line for line in lines if line["fixture"] == name)


def unpack(vectors: Path, name: str, directory: Path) -> Path:
    archives.unpack(vectors / fixture(vectors, name)["tar"], directory)
    return directory / "0_0"


def described(vectors: Path, name: str) -> dict[str, Families]:
    return {
        database["dir"]: {
            family["name"]: [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in family["entries"]]
            for family in database["column_families"]
        }
        for database in fixture(vectors, name)["databases"]
    }


def stored(task: Path) -> dict[str, Families]:
    rows_by_segment = {}
    for current in sorted(task.rglob("CURRENT")):
        with StoredFamilies(current.parent) as families:
            rows_by_segment[str(current.parent.relative_to(task))] = {
                name: list(families.rows(name)) for name in families.names
            }
    return rows_by_segment


@pytest.mark.parametrize("name", FIXTURES)
def test_every_row_of_every_family_is_read(vectors: Path, tmp_path: Path, name: str) -> None:
    assert stored(unpack(vectors, name, tmp_path)) == described(vectors, name)


def test_store_with_headers_reads_rows_of_kafka_streams(vectors: Path, tmp_path: Path) -> None:
    expected = described(vectors, "kv-headers")["rocksdb/store"]
    rows = expected["keyValueWithTimestampAndHeaders"]
    store = RocksDBKeyValueStore("store")
    store.open(unpack(vectors, "kv-headers", tmp_path))
    assert list(store.all()) == rows
    assert list(store.reverse_all()) == rows[::-1]
    assert [store.get(key) for key, _ in rows] == [value for _, value in rows]
    assert store.position == Position.deserialize(dict(expected["offsets"])[b"position"])
    assert store.committed_offsets() == {"app-store-changelog-0": 5}
    assert not store.upgrading
    store.close()


@pytest.mark.parametrize(
    ("name", "convert"),
    [
        ("kv-timestamped", HeadersBytesStore.convert_to_header_format),
        ("kv-plain", HeadersBytesStore.convert_from_plain_to_header_format),
    ],
)
def test_store_with_headers_upgrades_rows_of_kafka_streams(
    vectors: Path, tmp_path: Path, name: str, convert: Any
) -> None:
    task = unpack(vectors, name, tmp_path)
    old = {"kv-timestamped": "keyValueWithTimestamp", "kv-plain": "default"}[name]
    before = described(vectors, name)["rocksdb/store"][old]
    after = [(key, convert(value)) for key, value in before]
    store = RocksDBKeyValueStore("store")
    store.open(task)
    assert store.upgrading
    assert list(store.all()) == after
    store.close()
    families = stored(task)["rocksdb/store"]
    assert families[old] == before  # a scan moves nothing
    assert families["keyValueWithTimestampAndHeaders"] == []
    store.open(task)
    assert [store.get(key) for key, _ in before] == [value for _, value in after]
    store.close()
    families = stored(task)["rocksdb/store"]
    assert families[old] == []
    assert families["keyValueWithTimestampAndHeaders"] == after
    store.open(task)
    assert not store.upgrading
    store.close()
    assert (old in stored(task)["rocksdb/store"]) == (old == "default")


def test_upgrade_begun_by_kafka_streams_continues(vectors: Path, tmp_path: Path) -> None:
    task = unpack(vectors, "kv-mid-upgrade", tmp_path)
    before = described(vectors, "kv-mid-upgrade")["rocksdb/store"]
    old = {key: b"\0" + value for key, value in before["keyValueWithTimestamp"]}
    new = dict(before["keyValueWithTimestampAndHeaders"])
    assert old
    assert new
    store = RocksDBKeyValueStore("store")
    store.open(task)
    assert list(store.all()) == sorted({**old, **new}.items())
    assert store.upgrade() == len(old)
    store.close()
    store.open(task)
    assert not store.upgrading
    assert list(store.all()) == sorted({**old, **new}.items())
    store.close()


def test_windows_with_headers_are_read(vectors: Path, tmp_path: Path) -> None:
    task = unpack(vectors, "window-headers", tmp_path)
    store = RocksDBWindowStore("store", 240_000, 10_000)
    store.open(task)
    rows = [
        row for families in segments(vectors, "window-headers") for row in families["keyValueWithTimestampAndHeaders"]
    ]
    assert [(row.key + row.start.to_bytes(8, "big") + bytes(4), value) for row, value in store.all()] == rows
    assert [store.fetch(key[:-12], int.from_bytes(key[-12:-4], "big")) for key, _ in rows] == [v for _, v in rows]
    store.close()
    assert stored(task) == described(vectors, "window-headers")


def test_sessions_with_headers_are_read(vectors: Path, tmp_path: Path) -> None:
    task = unpack(vectors, "session-headers", tmp_path)
    store = RocksDBSessionStore("store", 240_000)
    store.open(task)
    rows = [row for families in segments(vectors, "session-headers") for row in families["sessionKeyValueWithHeaders"]]
    sessions = [
        (row.key + row.end.to_bytes(8, "big") + row.start.to_bytes(8, "big"), value)
        for row, value in store.find_sessions_range(None, None, 0, MAX_TIME)
    ]
    assert sessions == rows
    store.close()
    assert stored(task) == described(vectors, "session-headers")


def segments(vectors: Path, name: str) -> list[Families]:
    databases = described(vectors, name)
    return [databases[path] for path in sorted(databases, key=lambda path: int(path.rpartition(".")[2]))]


@pytest.mark.parametrize("format", ["plain", "timestamped"])
def test_older_store_rejects_files_of_newer_one(vectors: Path, tmp_path: Path, format: Any) -> None:
    task = unpack(vectors, "kv-headers", tmp_path)
    with pytest.raises(UnexpectedColumnFamilyError) as raised:
        RocksDBKeyValueStore("store", format=format).open(task)
    assert raised.value.family == "keyValueWithTimestampAndHeaders"
    assert stored(task) == described(vectors, "kv-headers")
