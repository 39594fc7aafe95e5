"""Rows of versions, and stores of them."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import DamagedRowError, DecodeError, ProcessorStateError, UnexpectedColumnFamilyError
from letterhead.state import converters
from letterhead.state.interfaces import PUT_NOT_VALID, VALID_TO_UNDEFINED, ChangelogRecord, VersionedBytes
from letterhead.state.memory import InMemoryVersionedStore
from letterhead.state.rocksdb import RocksDBVersionedStore
from letterhead.state.storage import raw
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.versioned_rows import LATEST, Latest, SegmentRow, Version, bounds, with_headers
from letterhead.state.versioned import VersionedStore, default_segment_interval

RETENTION, INTERVAL = 100, 20


def encoded(headers: lh.Headers, payload: bytes | None) -> bytes | None:
    return lh.encode(lh.Message(headers=headers, payload=payload), "streams")


def some_bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


# --- rows ------------------------------------------------------------------------------------------------------------


def vector_lines(vectors: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (vectors / "versioned_segments.jsonl").read_text().splitlines()]
    assert len(lines) == 30
    return lines


def test_rows_are_written_step_by_step_like_kafka_streams(vectors: Path) -> None:
    for line in vector_lines(vectors):
        data = b""
        for step, op in enumerate(line["ops"]):
            where = f"{line['id']} step {step}"
            row = SegmentRow.read(data) if data else None
            value = some_bytes(op["value"])
            if op["op"] == "new":
                row = SegmentRow.of_version(int(op["valid_from"]), int(op["valid_to"]), value)
            elif op["op"] == "insert_as_latest":
                row.insert_as_latest(int(op["valid_from"]), int(op["valid_to"]), value)
            elif op["op"] == "insert_as_earliest":
                row.insert_as_earliest(int(op["timestamp"]), value)
            else:
                time, index, version = int(op["timestamp"]), op["index"], op["found"]
                assert row.find(time) == index == version["index"], where
                assert row.versions[index] == (int(version["valid_from"]), some_bytes(version["value"])), where
                assert row.valid_to(index) == int(version["valid_to"]), where
                change = {"find_update": row.update, "find_insert": row.insert}[op["op"]]
                change(index, time, value)
            data = row.write()
            assert data == bytes.fromhex(op["hex"]), where
            if "next_timestamp" in op:
                assert bounds(data) == (int(op["next_timestamp"]), int(op["min_timestamp"])), where
        assert [
            {"index": index, "valid_from": str(at), "valid_to": str(row.valid_to(index)), "value": value.hex()}
            for row in [SegmentRow.read(data)]
            for index, (at, value) in enumerate(row.versions)
            if value is not None
        ] == line["find_all"], line["id"]


def test_values_in_rows_of_store_with_headers_are_read(vectors: Path) -> None:
    read = 0
    for line in vector_lines(vectors):
        if line["values"] == "headers-format":
            for version in line["find_all"]:
                value = bytes.fromhex(version["value"])
                assert lh.decode(value, "streams").payload == raw.raw_aggregation(value)
                read += 1
    assert read > 10


def test_row_gets_headers_value_by_value(vectors: Path) -> None:
    for line in vector_lines(vectors):
        old = SegmentRow.read(bytes.fromhex(line["ops"][-1]["hex"]))
        new = SegmentRow.read(with_headers(bytes(8) + b"k", old.write()))
        assert new.next == old.next
        assert new.versions == [Version(at, None if v is None else b"\0" + v) for at, v in old.versions]
    assert with_headers(LATEST + b"k", Latest(5, b"v").write()) == Latest(5, b"\0v").write()


def row_of(next_time: int, min_time: int, *entries: tuple[int, int], values: bytes = b"") -> bytes:
    head = next_time.to_bytes(8, "big") + min_time.to_bytes(8, "big")
    return head + b"".join(at.to_bytes(8, "big") + n.to_bytes(4, "big", signed=True) for at, n in entries) + values


@pytest.mark.parametrize(
    ("row", "code", "offset"),
    [
        (b"", "truncated", 0),
        (row_of(20, 10), "truncated", 0),
        (row_of(20, 10, (15, 0)), "truncated", 28),
        (row_of(5, 10, (10, 0)), "out_of_range", 0),
        (row_of(20, 10, (25, 0), (10, 0)), "out_of_range", 0),
        (row_of(20, 10, (12, 0), (15, 0), (10, 0)), "out_of_range", 28),
        (row_of(20, 10, (15, 0), (9, 0)), "out_of_range", 28),
        (row_of(20, 10, (10, -2)), "negative_length", 24),
        (row_of(20, 10, (10, 3), values=b"ab"), "truncated", 28),
        (row_of(20, 10, (10, 1), values=b"ab"), "trailing_bytes", 28),
        (row_of(10, 10, (10, 1), values=b"a"), "trailing_bytes", 28),
    ],
)
def test_damaged_row_is_rejected(row: bytes, code: str, offset: int) -> None:
    with pytest.raises(DecodeError) as raised:
        SegmentRow.read(row)
    assert (raised.value.code, raised.value.byte_offset) == (code, offset)


def test_latest_row_too_short_for_its_timestamp_is_rejected() -> None:
    with pytest.raises(DecodeError) as raised:
        Latest.read(bytes(7))
    assert raised.value.code == "truncated"


def test_no_version_is_found_outside_row_times() -> None:
    row = SegmentRow(20, [Version(10, b"v")])
    for time in (9, 20):
        with pytest.raises(ValueError, match="no version of the row is valid"):
            row.find(time)


# --- stores ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "rocksdb", "memory-plain", "rocksdb-plain"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    where, _, plain = request.param.partition("-")
    result = {"memory": InMemoryVersionedStore, "rocksdb": RocksDBVersionedStore}[where](
        "history", RETENTION, INTERVAL, headers=not plain
    )
    result.open(tmp_path)
    yield result
    result.close()


class Model:
    """Every version there ever was, in a list."""

    def __init__(self) -> None:
        self.versions: dict[bytes, dict[int, bytes | None]] = {}
        self.observed = -1

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        if timestamp < self.observed - RETENTION:
            return PUT_NOT_VALID
        self.observed = max(self.observed, timestamp)
        history = self.versions.setdefault(key, {})
        history[timestamp] = value
        return min((at for at in history if at > timestamp), default=VALID_TO_UNDEFINED)

    def all(self, key: bytes) -> list[VersionedBytes]:
        history = sorted(self.versions.get(key, {}).items())
        ends = [*(at for at, _ in history[1:]), None]
        return [VersionedBytes(v, at, end) for (at, v), end in zip(history, ends, strict=False) if v is not None]

    def get_as_of(self, key: bytes, time: int) -> VersionedBytes | None:
        return next(
            (v for v in self.all(key) if v.timestamp <= time and (v.valid_to is None or time < v.valid_to)), None
        )


@pytest.mark.parametrize("seed", range(3))
def test_versioned_store_matches_list_of_versions(store: VersionedStore, seed: int) -> None:
    choose, model = random.Random(seed), Model()
    now = 0
    for step in range(200):
        now += choose.choice((0, 1, 3, 7, 40 if step % 50 == 0 else 2))
        key = choose.choice((b"a", b"ab", b"\xff"))
        time = max(0, now - choose.choice((0, 0, 0, 5, 20, 60, 90, 110)))
        value = None if choose.random() < 0.25 else b"%d" % step
        if value is None and choose.random() < 0.5:
            if time >= model.observed - RETENTION:
                existing = model.get_as_of(key, time)
                assert store.delete(key, time) == existing
            else:
                assert store.delete(key, time) is None
            model.put(key, None, time)
        else:
            assert store.put(key, value, time) == model.put(key, value, time), step
        for key in (b"a", b"ab", b"\xff"):
            for time in range(max(0, model.observed - RETENTION), now + 5, 7):
                assert store.get_as_of(key, time) == model.get_as_of(key, time), (step, key, time)
        low, high = sorted(choose.choices(range(max(0, model.observed - RETENTION), now + 2), k=2))
        expected = [v for v in model.all(key) if v.timestamp <= high and (v.valid_to is None or v.valid_to > low)]
        assert [v for _, v in store.versions(key, low, high, ascending=True)] == expected
        assert [v for _, v in store.versions(key, low, high)] == expected[::-1]


@pytest.mark.parametrize("interval", [1, 2, 10])
@pytest.mark.parametrize("times", [(0, 1, 2), (1, 2, 3)])
def test_every_short_sequence_of_puts_matches_list_of_versions(times: tuple[int, ...], interval: int) -> None:
    puts = list(itertools.product(times, (b"v", None)))
    for sequence in itertools.product(puts, repeat=4):
        store, model = InMemoryVersionedStore("history", RETENTION, interval), Model()
        store.open(Path())
        for step, (time, value) in enumerate(sequence):
            stored = None if value is None else b"%d" % step
            assert store.put(b"k", stored, time) == model.put(b"k", stored, time), sequence
        for time in range(5):
            assert store.get_as_of(b"k", time) == model.get_as_of(b"k", time), sequence
        assert [v for _, v in store.versions(b"k", ascending=True)] == model.all(b"k"), sequence


def test_delete_at_time_of_latest_version_ends_earlier_ones(store: VersionedStore) -> None:
    store.put(b"k", b"a", 1)
    assert store.put(b"k", None, 1) == VALID_TO_UNDEFINED
    assert store.put(b"k", b"c", 0) == 1
    assert store.get(b"k") is None
    assert store.get_as_of(b"k", 0) == (b"c", 0, 1)
    assert store.get_as_of(b"k", 1) is None


def test_version_is_put_between_tombstone_and_latest(store: VersionedStore) -> None:
    assert store.delete(b"k", 41) is None
    assert store.put(b"k", b"latest", 50) == VALID_TO_UNDEFINED
    assert store.put(b"k", b"between", 45) == 50
    assert store.get_as_of(b"k", 45) == (b"between", 45, 50)
    assert store.get_as_of(b"k", 42) is None


def test_late_versions_are_dropped(store: VersionedStore) -> None:
    store.put(b"k", b"v", 10)
    store.put(b"k", b"w", 200)
    assert store.put(b"k", b"late", 99) == PUT_NOT_VALID
    assert store.delete(b"k", 99) is None
    assert store.put(b"k", b"in time", 100) == 200
    assert store.get_as_of(b"k", 99) is None
    assert store.get(b"k") == (b"w", 200, None)
    assert store.get_as_of(b"k", 500) == (b"w", 200, None)


def test_latest_version_is_found_even_if_old(store: VersionedStore) -> None:
    store.put(b"old", b"v", 10)
    store.put(b"k", b"w", 1000)
    assert store.get_as_of(b"old", 20) == (b"v", 10, None)
    assert store.get_as_of(b"old", 9) is None
    assert [v for _, v in store.versions(b"old", 20, 30)] == [(b"v", 10, None)]


def test_memory_and_rocksdb_have_same_rows(tmp_path: Path) -> None:
    memory = InMemoryVersionedStore("history", RETENTION, INTERVAL)
    rocksdb = RocksDBVersionedStore("history", RETENTION, INTERVAL)
    memory.open()
    rocksdb.open(tmp_path)
    choose = random.Random(1)
    for step in range(300):
        time = max(0, step * 2 - choose.choice((0, 0, 30, 80)))
        value = choose.choice((None, b"", b"%d" % step))
        assert memory.put(b"k", value, time) == rocksdb.put(b"k", value, time)
    rows = dict(memory._rows)
    rocksdb.close()
    assert dict(families(tmp_path)["versionedKeyValueWithHeaders"]) == rows
    assert len(rows) > 4


def families(task: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    with StoredFamilies(task / "rocksdb" / "history") as stored:
        return {name: list(stored.rows(name)) for name in stored.names}


def changelog() -> list[ChangelogRecord]:
    return [
        ChangelogRecord(b"k", b"v1", 10, lh.Headers({"n": b"1"})),
        ChangelogRecord(b"k", b"v3", 30, lh.Headers({"n": b"3"})),
        ChangelogRecord(b"k", None, 20, lh.Headers({"n": b"2"})),
        ChangelogRecord(b"j", b"", 40, lh.Headers()),
        ChangelogRecord(b"k", b"late", 1, lh.Headers()),
    ]


def test_versions_restore_from_changelog_with_headers(store: VersionedStore) -> None:
    store.restore(map(converters.converter_for("versioned", store.format), changelog()))
    stored = (lambda record: encoded(record.headers, record.value)) if store.headers else (lambda r: r.value)
    first, three = stored(changelog()[0]), stored(changelog()[1])
    assert store.get_as_of(b"k", 15) == (first, 10, 20)
    assert store.get_as_of(b"k", 25) is None
    assert store.get(b"k") == (three, 30, None)
    assert store.get(b"j") == (b"\0" if store.headers else b"", 40, None)


def test_old_versions_are_readable_right_after_open(tmp_path: Path) -> None:
    store = RocksDBVersionedStore("history", RETENTION, INTERVAL)
    store.open(tmp_path)
    for time in range(0, 90, 10):
        store.put(b"k", b"%d" % time, time)
    store.close()
    store.open(tmp_path)
    assert [store.get_as_of(b"k", time).value for time in range(5, 90, 10)] == [b"%d" % t for t in range(0, 90, 10)]
    store.put(b"k", b"far", 1000)
    store.close()
    # The segments that were found at the start are dropped when time has moved past them.
    assert [key for key, _ in families(tmp_path)["versionedKeyValueWithHeaders"]] == [
        (1000 // INTERVAL).to_bytes(8, "big") + b"k",
        LATEST + b"k",
    ]


def plain_history(task: Path) -> dict[int, VersionedBytes | None]:
    store = RocksDBVersionedStore("history", RETENTION, INTERVAL, headers=False)
    store.open(task)
    for time, value in ((10, b"a"), (30, None), (50, b""), (55, b"c"), (90, b"d")):
        store.put(b"k", value, time)
    store.delete(b"gone", 60)
    answers = {time: store.get_as_of(b"k", time) for time in range(100)}
    store.close()
    return answers


def with_empty_headers(version: VersionedBytes | None) -> VersionedBytes | None:
    return None if version is None else version._replace(value=b"\0" + version.value)


def test_store_without_headers_is_upgraded_row_by_row(tmp_path: Path) -> None:
    before = plain_history(tmp_path)
    plain = families(tmp_path)["default"]
    store = RocksDBVersionedStore("history", RETENTION, INTERVAL)
    store.open(tmp_path)
    assert store.upgrading
    answers = {time: store.get_as_of(b"k", time) for time in range(100)}
    assert answers == {time: with_empty_headers(version) for time, version in before.items()}
    assert store.put(b"k", encoded(lh.Headers({"n": b"1"}), b"b"), 40) == 50
    assert store.get_as_of(b"k", 45) == (encoded(lh.Headers({"n": b"1"}), b"b"), 40, 50)
    assert store.get_as_of(b"k", 35) is None
    store.close()
    after = families(tmp_path)
    assert [key for key, _ in after["default"]] == [key for key, _ in plain if key.endswith(b"gone")]
    store.open(tmp_path)
    assert store.upgrade() == 1
    store.close()
    store.open(tmp_path)
    assert not store.upgrading
    assert store.get(b"k") == (b"\0d", 90, None)
    store.close()


def test_store_without_headers_rejects_files_with_headers(tmp_path: Path) -> None:
    store = RocksDBVersionedStore("history", RETENTION, INTERVAL)
    store.open(tmp_path)
    store.close()
    with pytest.raises(UnexpectedColumnFamilyError, match="Unexpected column family 'versionedKeyValueWithHeaders'"):
        RocksDBVersionedStore("history", RETENTION, INTERVAL, headers=False).open(tmp_path)


@pytest.mark.parametrize("row", [b"\0" * 20, row_of(60, 40, (40, 9))])
def test_damaged_row_names_store_and_key(tmp_path: Path, row: bytes) -> None:
    store = RocksDBVersionedStore("history", RETENTION, INTERVAL)
    store.open(tmp_path)
    store.put(b"k", b"\0v", 40)
    store.put(b"k", b"\0w", 60)
    key = (60 // INTERVAL).to_bytes(8, "big") + b"k"
    store._write([(key, row)])
    for read in (lambda: store.get_as_of(b"k", 45), lambda: store.put(b"k", b"\0x", 41)):
        with pytest.raises(DamagedRowError) as raised:
            read()
        assert (raised.value.store, raised.value.key) == ("history", key)
    assert store.get(b"k") == (b"\0w", 60, None)
    store._write([(LATEST + b"k", b"short")])
    with pytest.raises(DamagedRowError, match="inside the timestamp of the latest version"):
        store.get(b"k")
    store.close()


def test_segment_interval_follows_from_retention() -> None:
    seconds = {3: 2, 6: 2, 60: 20, 61: 20, 300: 60, 301: 60, 3600: 300, 3601: 300, 86_400: 3600}
    for retention, interval in seconds.items():
        assert default_segment_interval(retention * 1000) == interval * 1000


# --- the traces of Kafka Streams, plain and with headers -------------------------------------------------------------


@pytest.mark.parametrize("headers", [False, True], ids=["plain", "headers"])
def test_versioned_traces_match_with_headers_added(vectors: Path, tmp_path: Path, headers: bool) -> None:
    logs: dict[str, list[ChangelogRecord]] = {}
    store: RocksDBVersionedStore
    compared = 0

    def stored(value: str | None, time: str) -> bytes | None:
        if value is None or not headers:
            return some_bytes(value)
        return encoded(lh.Headers([("at", time), ("at", None)]), bytes.fromhex(value))

    for text in (vectors / "trace_versioned.jsonl").read_text().splitlines():
        line = json.loads(text)
        trace = line["trace"]
        log = logs.setdefault(trace, [])
        if line["type"] == "open":
            config = line["config"]
            store = RocksDBVersionedStore(
                "store", config["history_retention_ms"], config["segment_interval_ms"], headers=headers
            )
            store.open(tmp_path / trace)
        elif line["type"] == "restore":
            convert = converters.converter_for("versioned", "headers" if headers else "plain")
            store.restore([convert(record) for record in logs[line["changelog_of"]]])
        elif line["type"] == "close":
            store.close()
        else:
            for op in line["ops"]:
                key, time = bytes.fromhex(op["key"]), int(op.get("timestamp", op.get("as_of", 0)))
                if op["op"] == "put":
                    result: Any = str(store.put(key, stored(op["value"], op["timestamp"]), time))
                else:
                    read = {"getAsOf": store.get_as_of, "delete": store.delete}.get(op["op"])
                    version = store.get(key) if read is None else read(key, time)
                    result = version and described(version, headers)
                if line["phase"] == 1 and op["op"] == "getAsOf" and op["result"] is None and result is not None:
                    continue  # Java does not see its segments before something is written
                assert result == op["result"], f"{trace} phase {line['phase']} step {line['n']}: {op}"
                compared += 1
            for record in line["changelog"]:
                own = lh.Headers([("at", record["timestamp"]), ("at", None)]) if headers else lh.Headers()
                log.append(
                    ChangelogRecord(
                        bytes.fromhex(record["key"]), some_bytes(record["value"]), int(record["timestamp"]), own
                    )
                )
    assert compared == 168


def described(version: VersionedBytes, headers: bool) -> dict[str, Any]:
    value = version.value
    if headers:
        assert raw.headers(value) == lh.Headers([("at", str(version.timestamp)), ("at", None)])
        value = raw.raw_aggregation(value)
    # Kafka Streams leaves out until when a version was valid.
    return {"value": value.hex(), "timestamp": str(version.timestamp), "valid_to": None}


def test_only_versioned_stores_with_headers_have_format_version(tmp_path: Path) -> None:
    for headers in (True, False):
        store = RocksDBVersionedStore("s", RETENTION, headers=headers)
        store.open(tmp_path / str(headers))
        store.commit({})
        store.close()
        with StoredFamilies(tmp_path / str(headers) / "rocksdb" / "s") as families:
            assert families.version() == (1 if headers else None)
            assert families.offsets() == {}


def test_unknown_format_version_is_rejected(tmp_path: Path) -> None:
    store = RocksDBVersionedStore("s", RETENTION)
    store.open(tmp_path)
    assert store._database is not None
    store._database.write((), [(b"letterhead-format", (2).to_bytes(8, "big"))])
    store.close()
    with pytest.raises(
        ProcessorStateError, match="store s has version 2 of its format, and this version of letterhead reads 1"
    ):
        store.open(tmp_path)
    with pytest.raises(ProcessorStateError, match="version 2"):
        lh.read.state(tmp_path)


def test_version_inserted_as_latest_replaces_later_ones() -> None:
    row = SegmentRow(40, [Version(30, b"c"), Version(20, b"b"), Version(10, b"a")])
    row.insert_as_latest(20, 50, b"new")
    assert (row.next, row.versions) == (50, [Version(20, b"new"), Version(10, b"a")])
