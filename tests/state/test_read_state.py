"""State directories as Arrow: those of Kafka Streams 4.3.1, and those of our stores, upgraded, damaged and in use.

Directories of Kafka Streams are compared with files that other programs derived from them, all others with rows that
:mod:`letterhead.state.reading.rows` parses one by one.
"""

from __future__ import annotations

import doctest
import importlib
import struct
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import (
    CODES,
    DamagedRowError,
    ProcessorStateError,
    StoreNotFoundError,
    UnexpectedColumnFamilyError,
)
from letterhead.state import SessionKey
from letterhead.state.reading import columns as state_columns
from letterhead.state.reading.directory import find_stores
from letterhead.state.reading.store_types import value_format_of
from letterhead.state.reading.stores import open_stores
from letterhead.state.rocksdb import RocksDBKeyValueStore
from tests.helpers import archives
from tests.helpers.extras import spelled_out
from tests.helpers.rocksdb_stores import rocksdb_store
from tests.helpers.state_directories import (
    MINUTE,
    NEW_YEAR,
    SAMPLES,
    VECTORS,
    WITH_HEADERS,
    aggregation,
    described,
    message,
    snapshot,
    write_raw,
)

pytest.importorskip("rocksdict")

DAMAGED = bytes.fromhex("0402057f00")
REASON = "timestamp takes 8 bytes and 2 are left"


def read(directory: Path, **options: Any) -> pa.Table:
    with lh.read.state(directory, **options) as rows:
        table = rows.read_all()
    table.validate(full=True)
    assert table.schema == rows.schema
    return in_milliseconds(table)


def in_milliseconds(table: pa.Table) -> pa.Table:
    """Return times as integers: Python's own end in the year 9999."""
    times = pa.timestamp("ms", "UTC")
    return table.cast(
        pa.schema([(field.name, pa.int64() if field.type == times else field.type) for field in table.schema])
    )


def header_values(headers: Any) -> list[dict[str, Any]] | None:
    return None if headers is None else [{"key": header.key, "value": header.value} for header in headers]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task with a key-value store with headers, of three rows."""
    store = RocksDBKeyValueStore("latest")
    store.open(tmp_path / "0_0")
    for number, key in enumerate((b"a", b"b", b"c")):
        store.put(
            key, message(b"v%d" % number, headers=[("n", number.to_bytes(4, "big"))], timestamp=NEW_YEAR + number)
        )
    store.close()
    return tmp_path / "0_0"


# Directories of Kafka Streams -----------------------------------------------------------------------------------------

KEYS: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "latest": lambda key: {"key": key},
    "hourly": lambda key: {
        "key": key[:-12], "window_start": int.from_bytes(key[-12:-4], "big"), "sequence": int.from_bytes(key[-4:], "big")
    },
    "sessions": lambda key: {
        "key": key[:-16],
        "session_start": int.from_bytes(key[-8:], "big"),
        "session_end": int.from_bytes(key[-16:-8], "big"),
    },
}  # fmt: skip


@pytest.mark.parametrize(("store", "count"), [("latest", 6643), ("hourly", 300), ("sessions", 300)])
def test_real_store_matches_kafka_streams(store, count):
    raw = pq.read_table(SAMPLES / f"store-{store}-0.parquet").to_pylist()
    expected = []
    for row in raw:
        message: Any = lh.decode(row["value"], "streams" if store == "sessions" else "streams-timestamped")
        result = KEYS[store](row["key"])
        if store != "sessions":
            result["timestamp"] = message.timestamp
        expected.append({**result, "value": message.payload, "headers": header_values(message.headers)})
    table = read(SAMPLES / "streams-state-0_0", store=store)
    assert table.num_rows == len(expected) == count
    assert table.schema.names == list(expected[0])
    for name in table.schema.names:
        assert table[name].to_pylist() == [row[name] for row in expected], name


def test_column_types_match_decode():
    schema = lh.read.state(SAMPLES / "streams-state-0_0", store="hourly").schema
    headers = lha.decode(pa.array([], pa.binary()), "streams-timestamped").type.field("headers").type
    assert schema == pa.schema(
        [
            ("key", pa.binary()),
            ("window_start", pa.timestamp("ms", "UTC")),
            ("sequence", pa.int32()),
            ("timestamp", pa.timestamp("ms", "UTC")),
            ("value", pa.binary()),
            ("headers", headers),
        ]
    )
    assert all(field.nullable for field in schema)


@pytest.mark.parametrize("store", ["latest", "hourly", "sessions"])
def test_header_columns_match_select(store):
    columns = {
        "tenant": "string",
        "amount_cents": "int64",
        "route": "array<string>",
        "event": lh.field("string", key="ce_type"),
    }
    raw = pq.read_table(SAMPLES / f"store-{store}-0.parquet")["value"].combine_chunks()
    expected = lha.select(raw, columns, format="streams" if store == "sessions" else "streams-timestamped")
    table = read(SAMPLES / "streams-state-0_0", store=store, columns=["key"], headers=columns)
    assert table.schema.names == ["key", *columns]
    for name in columns:
        assert table[name].combine_chunks() == expected.field(name)
    assert sum(name is not None for name in table["tenant"].to_pylist()) > 200


@pytest.mark.parametrize("name", ["kv-headers", "kv-mid-upgrade", "kv-plain", "kv-timestamped"])
def test_older_java_rows_are_read_with_newer_ones(tmp_path, name):
    archives.unpack(VECTORS / "rocksdb" / f"{name}.tar.gz", tmp_path)
    families = described(name)["rocksdb/store"]
    newest = name.removeprefix("kv-").replace("mid-upgrade", "headers")
    rows: dict[bytes, dict[str, Any]] = {}
    for key, value in families["default"]:
        rows[key] = {"timestamp": -1, "value": value, "headers": []}
    for key, value in families.get("keyValueWithTimestamp", []):
        rows[key] = {"timestamp": struct.unpack(">q", value[:8])[0], "value": value[8:], "headers": []}
    for key, value in families.get(WITH_HEADERS, []):
        message: Any = lh.decode(value, "streams-timestamped")
        rows[key] = {
            "timestamp": message.timestamp, "value": message.payload, "headers": header_values(message.headers)
        }  # fmt: skip
    kept = {"plain": ("value",), "timestamped": ("timestamp", "value"), "headers": ("timestamp", "value", "headers")}
    expected = [{"key": key, **{field: row[field] for field in kept[newest]}} for key, row in sorted(rows.items())]
    assert len(expected) >= 6
    assert read(tmp_path).to_pylist() == expected


# Unfinished upgrades --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("older", ["plain", "timestamped"])
def test_unfinished_upgrade_is_read_as_one_store(tmp_path, older):
    stamp = struct.Struct(">q").pack
    expected = {}
    store = RocksDBKeyValueStore("store", format=older)
    store.open(tmp_path)
    for number in range(2000):
        key, payload = b"key-%05d" % number, b"v%d" % number
        store.put(key, payload if older == "plain" else stamp(number) + payload)
        expected[key] = {"timestamp": -1 if older == "plain" else number, "value": payload, "headers": []}
    store.close()
    store = RocksDBKeyValueStore("store")
    store.open(tmp_path)
    for number in range(0, 2000, 2):
        assert store.get(b"key-%05d" % number) is not None  # it moves
    for number in range(1998, 2005):
        key = b"key-%05d" % number
        store.put(key, message(b"new", headers=[("n", b"%d" % number), ("n", None)], timestamp=number))
        headers = [{"key": "n", "value": b"%d" % number}, {"key": "n", "value": None}]
        expected[key] = {"timestamp": number, "value": b"new", "headers": headers}
    store.delete(b"key-00001")
    del expected[b"key-00001"]
    store.close()
    assert read(tmp_path).to_pylist() == [{"key": key, **row} for key, row in sorted(expected.items())]
    typed = read(tmp_path, columns=["value"], headers={"n": "array<string>"})
    assert typed["n"].to_pylist() == [
        [header["value"] and header["value"].decode() for header in row["headers"]]
        for _, row in sorted(expected.items())
    ]


def test_tasks_at_different_upgrade_stages_are_read_as_newest(tmp_path):
    for task, format in (("0_0", "timestamped"), ("0_1", "headers"), ("0_2", "timestamped")):
        store = RocksDBKeyValueStore("store", format=format)
        store.open(tmp_path / task)
        value = struct.pack(">q", 5) + b"old" if format == "timestamped" else message(b"new", headers=[("k", b"x")])
        store.put(b"key", value)
        store.close()
    assert read(tmp_path).to_pylist() == [
        {"task": "0_0", "key": b"key", "timestamp": 5, "value": b"old", "headers": []},
        {
            "task": "0_1",
            "key": b"key",
            "timestamp": NEW_YEAR,
            "value": b"new",
            "headers": [{"key": "k", "value": b"x"}],
        },
        {"task": "0_2", "key": b"key", "timestamp": 5, "value": b"old", "headers": []},
    ]


# All types, compared with rows parsed one by one ----------------------------------------------------------------------

STORE_TYPES = [
    ("key-value", "plain"),
    ("key-value", "timestamped"),
    ("key-value", "headers"),
    ("window", "plain"),
    ("window", "timestamped"),
    ("window", "headers"),
    ("session", "plain"),
    ("session", "headers"),
    ("time-ordered-window", "timestamped"),
    ("time-ordered-window", "headers"),
    ("time-ordered-session", "plain"),
    ("time-ordered-session", "headers"),
    ("versioned", "plain"),
    ("versioned", "headers"),
]


def opened(task: Path, store_type: str, values: Any, name: str = "store") -> Any:
    store = rocksdb_store(store_type, values, name, window_size=10 * MINUTE, duplicates=True)
    store.open(task)
    return store


def make(task: Path, store_type: str, values: Any, rows: range = range(50), name: str = "store") -> None:
    """Write a store with one row per minute."""
    store = opened(task, store_type, values, name)
    for number in rows:
        key, time = b"k%02d" % number, NEW_YEAR + number * MINUTE
        headers = [("n", number.to_bytes(4, "big")), ("note", None)][: number % 3]
        payload = b"v" * (number % 4)
        if store_type == "versioned":
            deleted = number % 7 == 6
            value = aggregation(payload, headers) if values == "headers" else payload
            store.put(key[:2], None if deleted else value, time)
            continue
        with_time = store_type == "key-value" or store_type.endswith("window")
        stored = {
            "headers": message(payload, headers=headers, timestamp=time)
            if with_time
            else aggregation(payload, headers),
            "timestamped": struct.pack(">q", time) + payload,
            "plain": payload + b"!",
        }[value_format_of(store_type, values)]
        if store_type == "key-value":
            store.put(key, stored)
        elif store_type.endswith("window"):
            for _ in range(1 + (store_type == "window" and number % 2)):
                store.put(key, stored, time)
        else:
            store.put(SessionKey(key, time, time + 500), stored)
    store.close()


def one_by_one(directory: Path, **options: Any) -> Iterator[dict[str, Any]]:
    """Parse the rows of the stores of a directory one by one."""
    for store in open_stores(directory, None, **options):
        for segment, families in store.databases():
            for stored in store.encoded_rows(families):
                for row in store.parse_row(segment, stored)[::-1]:
                    yield {
                        "key": row.key, **row.times, "sequence": row.sequence, "timestamp": row.timestamp, "value": row.value,
                        "headers": header_values(row.headers),
                    }  # fmt: skip


@pytest.mark.parametrize(("store_type", "values"), STORE_TYPES)
@pytest.mark.parametrize("batch_rows", [7, 10_000])
@pytest.mark.filterwarnings("ignore:store .*read as")
def test_columns_equal_rows_parsed_one_by_one(tmp_path, monkeypatch, store_type, values, batch_rows):
    monkeypatch.setattr(state_columns, "BATCH_ROWS", batch_rows)
    make(tmp_path, store_type, values)
    expected = list(one_by_one(tmp_path))
    table = read(tmp_path)
    keys = store_type.removeprefix("time-ordered-")
    times = {"window": ["window_start", "sequence"], "session": ["session_start", "session_end"]}
    times["versioned"] = ["valid_from", "valid_to"]
    timestamp = ["timestamp"] if values != "plain" and keys in ("key-value", "window") else []
    headers = ["headers"] if value_format_of(store_type, values) == "headers" else []
    assert table.schema.names == ["key", *times.get(keys, []), *timestamp, "value", *headers]
    assert table.num_rows == len(expected) >= (50 if store_type != "versioned" else 49)
    for name in table.schema.names:
        assert table[name].to_pylist() == [row[name] for row in expected], name
    assert max(len(chunk) for chunk in table["key"].chunks) <= max(batch_rows, 50 * (store_type == "versioned"))


@pytest.mark.parametrize(
    ("store_type", "values"), [parameters for parameters in STORE_TYPES if parameters[1] != "headers"]
)
@pytest.mark.filterwarnings("ignore:store .*read as")
def test_columns_of_unfinished_upgrade_equal_rows_parsed_singly(tmp_path, store_type, values):
    make(tmp_path, store_type, values, range(40))
    make(tmp_path, store_type, "headers", range(30, 50))
    expected = list(one_by_one(tmp_path))
    table = read(tmp_path)
    if value_format_of(store_type, "headers") == "headers":
        older = [row for row in expected if row["headers"] == []]
        assert len(older) >= 20
        assert any(row["headers"] for row in expected)
        assert table["headers"].to_pylist() == [row["headers"] for row in expected]
    assert len(expected) >= 49
    assert table["value"].to_pylist() == [row["value"] for row in expected]
    assert table["key"].to_pylist() == [row["key"] for row in expected]


def test_versions_have_validity_times(tmp_path):
    store = opened(tmp_path, "versioned", "headers", "prices")
    for key, value, minutes in [(b"pen", b"1.00", 0), (b"pen", b"1.20", 60), (b"ink", b"9", 1), (b"ink", None, 2)]:
        stored = None if value is None else aggregation(value, [("minute", str(minutes).encode())])
        store.put(key, stored, NEW_YEAR + minutes * MINUTE)
    store.close()
    hour = NEW_YEAR + 60 * MINUTE
    table = read(tmp_path, columns=["key", "valid_from", "valid_to", "value"], headers={"minute": "string"})
    assert table.to_pylist() == [
        {
            "key": b"ink",
            "valid_from": NEW_YEAR + MINUTE,
            "valid_to": NEW_YEAR + 2 * MINUTE,
            "value": b"9",
            "minute": "1",
        },
        {"key": b"pen", "valid_from": NEW_YEAR, "valid_to": hour, "value": b"1.00", "minute": "0"},
        {"key": b"pen", "valid_from": hour, "valid_to": None, "value": b"1.20", "minute": "60"},
    ]


def test_deletion_of_missing_key_has_no_row(tmp_path):
    store = opened(tmp_path, "versioned", "headers")
    store.put(b"pen", None, NEW_YEAR)
    store.close()
    with lh.read.state(tmp_path) as rows:
        assert list(rows) == []


def test_window_end_needs_window_size(tmp_path):
    store = opened(tmp_path, "window", "plain")
    latest = (1 << 63) - 1
    store.put(b"k", b"v", NEW_YEAR)
    store.put(b"k", b"v", latest - 5)
    store.close()
    table = read(tmp_path, columns=["window_start", "window_end"], window_size=MINUTE)
    assert table.to_pylist()[-1] == {"window_start": latest - 5, "window_end": latest}
    with pytest.raises(ValueError, match="unknown column 'window_end'"):
        lh.read.state(tmp_path, columns=["window_end"])
    with pytest.raises(ValueError, match="window_size must be at least 1, not 0"):
        lh.read.state(tmp_path, window_size=0)
    with pytest.raises(ValueError, match="store latest is key-value, with headers: it has no windows"):
        lh.read.state(SAMPLES / "streams-state-0_0", store="latest", window_size=1)


# Several stores and tasks ---------------------------------------------------------------------------------------------


def test_stores_of_several_tasks_have_task_column(tmp_path):
    for number in range(3):
        make(tmp_path / "app" / f"0_{number}", "key-value", "headers", range(number, number + 2))
    table = read(tmp_path, columns=["task", "key"])
    assert table.to_pylist() == [
        {"task": f"app/0_{number}", "key": b"k%02d" % (number + more)} for number in range(3) for more in (0, 1)
    ]
    assert read(tmp_path).schema.names == ["task", "key", "timestamp", "value", "headers"]
    assert read(tmp_path / "app" / "0_1").schema.names == ["key", "timestamp", "value", "headers"]
    assert read(tmp_path / "app" / "0_1", columns=["task", "store", "key"]).to_pylist()[0] == {
        "task": "0_1", "store": "store", "key": b"k01"
    }  # fmt: skip


def test_several_stores_of_one_type_have_store_column(tmp_path):
    make(tmp_path / "0_0", "session", "headers", range(2), "b")
    make(tmp_path / "0_0", "session", "headers", range(3), "a")
    table = read(tmp_path / "0_0", columns=["store", "key"])
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("a", b"k00"), ("a", b"k01"), ("a", b"k02"), ("b", b"k00"), ("b", b"k01")
    ]  # fmt: skip
    assert read(tmp_path / "0_0").schema.names[0] == "store"
    assert read(tmp_path / "0_0", store="b").schema.names[0] == "key"


def test_stores_of_several_types_are_rejected():
    with pytest.raises(ValueError, match="say which by store=") as raised:
        lh.read.state(SAMPLES / "streams-state-0_0")
    assert str(raised.value).endswith(
        "differ in type: hourly is window, with headers; latest is key-value, with headers; sessions is session, with "
        "headers: say which by store="
    )


def test_tasks_with_stores_of_different_types_are_rejected(tmp_path):
    make(tmp_path / "0_0", "key-value", "plain")
    make(tmp_path / "0_1", "versioned", "headers")
    with pytest.raises(ValueError, match="store is key-value, plain; store is versioned, with headers: give the dir"):
        lh.read.state(tmp_path)


def test_task_without_rows_has_type_of_others(tmp_path):
    make(tmp_path / "0_0", "session", "plain", range(0))
    opened(tmp_path / "0_1", "window", "plain").close()
    make(tmp_path / "0_2", "session", "plain", range(2))
    with pytest.raises(StoreNotFoundError):
        lh.read.state(tmp_path / "0_1")  # no segment has been made
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path)["session_start"].to_pylist() == [NEW_YEAR, NEW_YEAR + MINUTE]


# Options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"columns": ["kay"]},
            ValueError,
            r"unknown column 'kay': did you mean 'key'\? \(columns: task, store, key, ti",
        ),
        ({"columns": "key"}, TypeError, "columns must be a list of column names, not str"),
        ({"columns": ["key", "key"]}, ValueError, "two columns 'key' would be made: name it once in columns="),
        ({"columns": []}, ValueError, "no columns were asked for"),
        ({"headers": {"value": "string"}}, ValueError, "two columns 'value' would be made: rename"),
        (
            {"headers": {"error": "string"}, "errors": "column"},
            ValueError,
            "two columns 'error' would be made: give error_column=",
        ),
        ({"error_column": "why"}, ValueError, "error_column= names the column of errors='column'"),
        ({"errors": "column", "error_column": 1}, TypeError, "error_column must be str, not int"),
        (
            {"errors": "column", "error_column": "key"},
            ValueError,
            "two columns 'key' would be made: give error_column=",
        ),
        ({"headers": {"n": "int31"}}, ValueError, "int31"),
        ({"errors": "ignore"}, ValueError, "unknown errors value 'ignore'"),
        ({"store_type": "sesion"}, ValueError, "unknown store type 'sesion': did you mean 'session'"),
        (
            {"store_type": "session"},
            ValueError,
            "store 0_0/latest is not session: its column families are default, keyVal",
        ),
        ({"values": "plain"}, ValueError, "is key-value, with headers, by its column families: its values cannot be"),
        ({"store": "last"}, StoreNotFoundError, "there is no store last in .*: there is latest"),
    ],
)
def test_invalid_options_are_rejected_at_once(task, options, error, message):
    with pytest.raises(error, match=message):
        lh.read.state(task, **options)


def test_header_column_may_take_name_of_unread_column(task):
    table = read(task, columns=["key"], headers={"value": lh.field("int32", key="n"), "error": "string"})
    assert table.to_pylist()[2] == {"key": b"c", "value": 2, "error": None}


def test_columns_follow_requested_order(task):
    table = read(task, columns=["value", "key"], headers={"n": "int32"})
    assert table.to_pylist()[1] == {"value": b"v1", "key": b"b", "n": 1}


def test_header_columns_of_store_without_headers_are_rejected(tmp_path):
    make(tmp_path, "key-value", "timestamped")
    with pytest.raises(
        ValueError, match="store store is key-value, with timestamps: it has no headers to make columns"
    ):
        lh.read.state(tmp_path, headers={"n": "int32"})
    with pytest.raises(ValueError, match="unknown column 'headers'"):
        lh.read.state(tmp_path, columns=["headers"])


def test_assumed_type_warns_and_can_be_set(tmp_path):
    make(tmp_path, "versioned", "plain")
    with pytest.warns(
        UserWarning,
        match=r"store store: read as versioned, plain: .* could be plain key-value \(choose with store_type=",
    ):
        assert "valid_from" in read(tmp_path).schema.names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path, store_type="key-value").schema.names == ["key", "value"]


@pytest.mark.filterwarnings("error")
def test_rows_with_negative_time_are_not_versions(tmp_path):
    store = opened(tmp_path, "key-value", "plain")
    store.put(bytes([255] * 8) + b"k", struct.pack(">q", -1))
    store.close()
    assert read(tmp_path).schema.names == ["key", "value"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("start", [0, 1])
def test_first_window_may_start_at_time_0(tmp_path, start):
    store = opened(tmp_path, "window", "plain")
    store.put(b"k", b"v", start)
    store.close()
    assert read(tmp_path, columns=["key", "window_start"]).to_pylist() == [{"key": b"k", "window_start": start}]


def test_plain_values_of_time_ordered_windows_can_be_selected(tmp_path):
    make(tmp_path, "time-ordered-window", "timestamped", range(3))
    with pytest.warns(UserWarning, match="its values may have no timestamps") as warned:
        assert read(tmp_path)["value"].to_pylist() == [b"", b"v", b"vv"]
    assert [warning.filename for warning in warned] == [__file__]
    plain = read(tmp_path, values="plain")
    assert plain["value"].to_pylist() == [struct.pack(">q", NEW_YEAR + n * MINUTE) + b"v" * n for n in range(3)]


def test_time_ordered_sessions_have_plain_aggregations(tmp_path):
    store = opened(tmp_path, "time-ordered-session", "headers")
    count = (1).to_bytes(8, "big")  # read as a value with headers, it would lose its first byte
    store.put(SessionKey(b"k", NEW_YEAR, NEW_YEAR + 500), count)
    store.close()
    assert read(tmp_path).schema.names == ["key", "session_start", "session_end", "value"]
    assert read(tmp_path)["value"].to_pylist() == [count]
    assert read(tmp_path, values="plain")["value"].to_pylist() == [count]
    with pytest.raises(ValueError, match="its values cannot be headers"):
        read(tmp_path, values="headers")
    with pytest.raises(ValueError, match="it has no headers"):
        read(tmp_path, headers={"n": "int32"})


def test_segments_named_by_older_versions_belong_to_store(tmp_path):
    make(tmp_path, "window", "plain", range(90))
    expected = read(tmp_path)
    first, second, third = sorted((tmp_path / "store").iterdir())
    minute = datetime.fromtimestamp(int(first.suffix[1:]) / 1000, UTC)
    first.rename(first.with_name(f"store-{minute:%Y%m%d%H%M}"))
    second.rename(second.with_name(f"store:{second.suffix[1:]}"))
    assert read(tmp_path) == expected
    [store] = find_stores(tmp_path)
    assert [segment.start for segment in store.segments] == [int(path.suffix[1:]) for path in (first, second, third)]


def test_key_value_stores_are_not_segments_of_each_other(tmp_path):
    for name in ("rocksdb-202601010000", "rocksdb.5", "store"):
        make(tmp_path, "key-value", "headers", range(3), name)
    assert [store.name for store in find_stores(tmp_path)] == ["rocksdb-202601010000", "rocksdb.5", "store"]


@pytest.mark.parametrize(
    ("store_type", "values"), [parameters for parameters in STORE_TYPES if parameters[0].startswith("time-ordered")]
)
@pytest.mark.filterwarnings("ignore:store .*its values may have no timestamps")
def test_index_identifies_time_ordered_store_of_ambiguous_times(tmp_path, store_type, values):
    store = opened(tmp_path, store_type, values)
    value = {"plain": b"v", "timestamped": bytes(8) + b"v", "headers": message(b"v")}[
        value_format_of(store_type, values)
    ]
    if store_type == "time-ordered-session":
        store.put(SessionKey(b"k", 5, 9), value)
    else:
        store.put(b"k", value, 5)
    store.close()
    assert read(tmp_path)["key"].to_pylist() == [b"k"]


def test_empty_store_is_empty_table(tmp_path):
    opened(tmp_path, "key-value", "headers").close()
    table = read(tmp_path, headers={"n": "int32"}, errors="column")
    assert table.num_rows == 0
    assert table.schema.names == ["key", "timestamp", "value", "n", "error"]


# Damaged rows ---------------------------------------------------------------------------------------------------------


def test_damaged_value_is_named_by_store_key_and_byte(task):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"bad", DAMAGED))
    with pytest.raises(DamagedRowError) as raised:
        read(task)
    error = raised.value
    assert str(error) == f"store 0_0/latest: {REASON} (key 626164, byte 3)"
    assert (error.store, error.key, error.code, error.byte_offset) == ("0_0/latest", b"bad", "truncated", 3)
    # What is not asked for is not read.
    assert read(task, columns=["key"]).num_rows == 4


def test_damaged_value_is_null_with_errors_null(task):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"bad", DAMAGED))
    table = read(task, headers={"n": "int32"}, errors="null")
    assert table.to_pylist()[2] == {"key": b"bad", "timestamp": None, "value": None, "n": None}
    assert table["n"].to_pylist() == [0, 1, None, 2]
    assert table["value"].null_count == 1


@pytest.mark.parametrize("headers", [None, {"n": "int32"}])
def test_value_errors_are_column_with_errors_column(task, headers):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"bad", DAMAGED))
    table = read(task, headers=headers, errors="column")
    kernel = lha.decode(pa.array([DAMAGED]), "streams-timestamped", errors="column")
    assert table.schema.field("error").type == kernel.type.field("error").type
    assert table["error"].to_pylist() == [None, None, kernel.to_pylist()[0]["error"], None]
    [first, *_] = table["error"].to_pylist()[2]
    assert (first["code"], first["message"], first["byte_offset"]) == ("truncated", REASON, 3)
    assert table["value"].to_pylist() == [b"v0", b"v1", None, b"v2"]


@pytest.mark.parametrize("headers", [None, {"error": lh.field("int32", key="n")}])
def test_error_column_has_given_name(task, headers):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"bad", DAMAGED))
    table = read(task, columns=["key"] if headers else None, headers=headers, errors="column", error_column="task")
    assert table.schema.names[-1] == "task"
    assert [errors and errors[0]["message"] for errors in table["task"].to_pylist()] == [None, None, REASON, None]
    if headers:
        assert table["error"].to_pylist() == [0, 1, None, 2]


def test_header_of_wrong_type_is_named_by_store_key_and_column(task):
    with pytest.raises(DamagedRowError) as raised:
        read(task, headers={"n": "int64"})
    message = "store 0_0/latest: column n: 4 bytes where int64 takes 8 (key 61, header 0, byte 5)"
    assert (str(raised.value), raised.value.code) == (message, "wrong_size")
    [error] = read(task, headers={"n": "int64"}, errors="column")["error"].to_pylist()[0]
    assert (error["column"], error["code"], error["byte_offset"], error["header"]) == ("n", "wrong_size", 5, 0)
    assert read(task, headers={"n": "int64"}, errors="null")["value"].to_pylist() == [b"v0", b"v1", b"v2"]


def test_damaged_older_value_is_named_by_own_byte(tmp_path):
    make(tmp_path, "key-value", "timestamped", range(2))
    make(tmp_path, "key-value", "headers", range(5, 7))
    write_raw(tmp_path / "rocksdb" / "store", "keyValueWithTimestamp", (b"bad", b"\0\0\0"))
    with pytest.raises(
        DamagedRowError, match=r"store store: timestamp takes 8 bytes and 3 are left \(key 626164, byte 0"
    ):
        read(tmp_path)
    with pytest.raises(DamagedRowError) as raised:
        list(one_by_one(tmp_path))
    assert raised.value.byte_offset == 0
    errors = read(tmp_path, errors="column")["error"].to_pylist()
    assert [error and error[0]["byte_offset"] for error in errors] == [0, None, None, None, None]


def test_short_value_in_timestamped_store_is_named(tmp_path):
    make(tmp_path, "key-value", "timestamped", range(2))
    write_raw(tmp_path / "rocksdb" / "store", "keyValueWithTimestamp", (b"bad", b"\0\0\0"))
    with pytest.raises(
        DamagedRowError, match=r"store store: timestamp takes 8 bytes and 3 are left \(key 626164, byte 0"
    ):
        read(tmp_path)
    assert read(tmp_path, columns=["key"])["key"].to_pylist() == [b"bad", b"k00", b"k01"]
    table = read(tmp_path, errors="column")
    assert table.to_pylist()[0] == {
        "key": b"bad", "timestamp": None, "value": None,
        "error": [{"code": "truncated", "message": "timestamp takes 8 bytes and 3 are left", "byte_offset": 0, "header": None,
                   "key": None, "column": None}],
    }  # fmt: skip
    assert table["timestamp"].to_pylist() == [None, NEW_YEAR, NEW_YEAR + MINUTE]
    assert table["error"].null_count == 2


@pytest.mark.parametrize(
    ("store_type", "key", "reason"),
    [
        ("window", b"short", "a stored key of 5 bytes is too short: 12 of it are the time"),
        ("session", b"0123456789abcde", "a stored key of 15 bytes is too short: 16 of it are the time"),
        ("time-ordered-window", b"\0short", "a stored key of 6 bytes is too short: 13 of it are the time"),
        ("time-ordered-session", b"\5" + bytes(20), "the key begins with neither 00 nor 01"),
        ("versioned", b"\0", "a stored key of 1 bytes is too short: 8 of it are the time"),
    ],
)
def test_damaged_key_is_named_and_its_value_read(tmp_path, store_type, key, reason):
    make(tmp_path, store_type, "headers", range(3))
    [directory] = [path.parent for path in tmp_path.rglob("CURRENT")][:1]
    [family] = {"versioned": ["versionedKeyValueWithHeaders"]}.get(
        store_type, {"window": [WITH_HEADERS], "time-ordered-window": ["windowKeyValueWithHeaders"]}.get(
            store_type, ["sessionKeyValueWithHeaders"])
    )  # fmt: skip
    value = message(b"v") if store_type.endswith("window") else aggregation(b"v")
    if store_type == "time-ordered-session":
        value = b"v"
    if store_type == "versioned":
        value = struct.pack(">qqqi", 20, 10, 10, len(value)) + value
    write_raw(directory, family, (key, value))
    with pytest.raises(DamagedRowError, match=rf"{reason} \(key {key.hex()}"):
        read(tmp_path, store_type=store_type)
    damaged = [row for row in read(tmp_path, store_type=store_type, errors="column").to_pylist() if row["error"]]
    assert [(row["key"], row["value"], row["error"][0]["message"]) for row in damaged] == [(None, b"v", reason)]
    assert damaged[0]["error"][0]["code"] in CODES
    nulls = [row for row in read(tmp_path, store_type=store_type, errors="null").to_pylist() if row["key"] is None]
    assert [row["value"] for row in nulls] == [b"v"]
    assert all(row[name] is None for row in nulls for name in row if name.startswith(("window_", "session_")))


def test_damaged_versions_are_named_by_byte_in_row(tmp_path):
    make(tmp_path, "versioned", "headers", range(3))
    directory, family = tmp_path / "rocksdb" / "store", "versionedKeyValueWithHeaders"
    write_raw(directory, family, (b"\xff" * 8 + b"pen", struct.pack(">q", 7) + b"\x7f"))
    with pytest.raises(DamagedRowError) as raised:
        read(tmp_path)
    assert (raised.value.key, raised.value.byte_offset) == (b"\xff" * 8 + b"pen", 8)
    [row] = [row for row in read(tmp_path, errors="column").to_pylist() if row["error"]]
    assert (row["key"], row["valid_from"], row["value"], row["error"][0]["byte_offset"]) == (b"pen", 7, None, 8)
    write_raw(directory, family, (b"\xff" * 8 + b"pen", b"\0"))
    with pytest.raises(
        DamagedRowError, match=r"the bytes end inside the timestamp of the latest version \(key f+70656e, byte 0\)"
    ):
        read(tmp_path)
    [row] = [row for row in read(tmp_path, errors="column").to_pylist() if row["error"]]
    assert (row["key"], row["valid_from"], row["valid_to"], row["value"]) == (b"pen", None, None, None)


def test_damaged_older_row_of_versions_is_named(tmp_path):
    make(tmp_path, "versioned", "plain", range(3))
    make(tmp_path, "versioned", "headers", range(3, 5))
    write_raw(tmp_path / "rocksdb" / "store", "default", (b"\xff" * 8 + b"pen", b"\0"))
    with pytest.raises(DamagedRowError, match="the bytes end inside the timestamp of the latest version"):
        read(tmp_path)
    assert sum(row["error"] is not None for row in read(tmp_path, errors="column").to_pylist()) == 1


def test_damaged_file_raises(task):
    store = opened(task, "key-value", "headers", "latest")
    for number in range(3000):
        store.put(b"key-%05d" % number, message(bytes(100)))
    store.close()
    tables = sorted((task / "rocksdb" / "latest").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(tables[-1].read_bytes())
    data[40_000:40_200] = b"x" * 200
    tables[-1].write_bytes(data)
    for errors in ("raise", "null", "column"):
        with pytest.raises(ProcessorStateError, match="Error while iterating over store latest: Corruption"):
            read(task, errors=errors)
        # Rows that cannot be reached would otherwise be missing without a word.
        with pytest.raises(ProcessorStateError, match="Error while iterating over store latest: Corruption"):
            lh.open(task, store="latest", errors=errors).read_all()


# The reader -----------------------------------------------------------------------------------------------------------


def test_reading_changes_nothing_in_directory(tmp_path):
    make(tmp_path, "window", "timestamped", range(30))
    make(tmp_path, "window", "headers", range(20, 50))
    before = snapshot(tmp_path)
    assert len(before) > 20
    read(tmp_path)
    with lh.read.state(tmp_path) as rows:
        next(rows)
    assert snapshot(tmp_path) == before


def test_open_store_is_read_without_unflushed_rows(task):
    store = opened(task, "key-value", "headers", "latest")
    store.put(b"d", message(b"v3"))
    assert read(task)["key"].to_pylist() == [b"a", b"b", b"c"]
    store.flush()
    assert read(task)["key"].to_pylist() == [b"a", b"b", b"c", b"d"]
    store.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not say who holds a lock")
def test_store_open_in_another_process_is_read_with_warning(task):
    program = (
        "import sys; from letterhead.state.rocksdb import RocksDBKeyValueStore\n"
        f"store = RocksDBKeyValueStore('latest'); store.open({str(task)!r})\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        with pytest.warns(
            UserWarning, match=f"store 0_0/latest is open in process {process.pid}: rows that it has not"
        ):
            assert read(task).num_rows == 3
        process.kill()


def test_batches_are_bounded_by_rows_and_bytes(tmp_path):
    store = opened(tmp_path, "key-value", "headers")
    for number in range(25_000):
        store.put(b"%05d" % number, message(b"v"))
    for number in range(96):
        store.put(b"large-%05d" % number, message(bytes(1 << 20)))
    store.close()
    tracemalloc.start()
    before, most, sizes = pa.total_allocated_bytes(), 0, []
    try:
        for batch in lh.read.state(tmp_path):
            sizes.append(len(batch))
            most = max(most, pa.total_allocated_bytes() - before)
            del batch
        _, python_most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 25_096
    assert sizes[:2] == [10_000, 10_000]
    assert max(sizes[3:]) <= 17
    # Of 96 MiB no more than some batches of 16 MiB are in memory at a time, in whatever form.
    assert most < 48 << 20
    assert python_most < 48 << 20


def test_any_arrow_library_reads_stream():
    polars = pytest.importorskip("polars")
    with lh.read.state(SAMPLES / "streams-state-0_0", store="latest", columns=["timestamp"]) as rows:
        frame = polars.DataFrame(rows)
    values = pq.read_table(SAMPLES / "store-latest-0.parquet")["value"].to_pylist()
    assert frame["timestamp"].dt.epoch("ms").to_list() == [
        lh.decode(value, "streams-timestamped").timestamp for value in values
    ]


def test_rows_are_read_lazily(task):
    rows = lh.read.state(task)
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"d", message(b"later")))
    assert rows.read_all()["value"].to_pylist() == [b"v0", b"v1", b"v2", b"later"]


def test_directories_without_stores_are_rejected(tmp_path, task):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for source, error, text in [
        ("nowhere", FileNotFoundError, "no such file or directory: .*nowhere"),
        ("file", NotADirectoryError, "not a directory: .*file"),
        ("empty", StoreNotFoundError, "there is no store in .*empty: no directory in it has a file CURRENT"),
    ]:
        with pytest.raises(error, match=text):
            lh.read.state(tmp_path / source)
    write_raw(task / "rocksdb" / "latest", "keyValueWithEverything", (b"k", b"v"))
    with pytest.raises(
        UnexpectedColumnFamilyError, match=r"column family 'keyValueWithEverything' in .* is of no store"
    ):
        lh.read.state(task)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("rocksdict", "a persistent store needs rocksdict: pip install 'letterhead[state]'"),
        ("pyarrow", "reading a state directory needs pyarrow: pip install 'letterhead[arrow,state]'"),
    ],
)
def test_missing_dependency_is_named(missing, message):
    program = (
        f"import sys; sys.modules[{missing!r}] = None; import letterhead as lh\n"
        "try:\n"
        f"    lh.read.state({str(SAMPLES / 'streams-state-0_0')!r}, store='latest')\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error, error.name)"
    )
    result = subprocess.run([sys.executable, "-c", program], check=True, timeout=300, capture_output=True, text=True)
    assert result.stdout == f"{spelled_out(message)} {missing}\n"


def test_read_state_examples_run(monkeypatch):
    monkeypatch.chdir(SAMPLES.parents[1])
    # The package has the function by the name of its module, which is found by the function.
    module = importlib.import_module(lh.read.state.__module__)
    result = doctest.testmod(module, extraglobs={"lh": lh})
    assert (result.failed, result.attempted) == (0, 2)


def test_state_page_runs(monkeypatch):
    monkeypatch.chdir(SAMPLES.parents[1])
    result = doctest.testfile(str(SAMPLES.parents[1] / "docs/how-to/read-a-state-store.md"), module_relative=False)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_last_option_returns_final_rows() -> None:
    directory = SAMPLES / "streams-state-0_0"
    with lh.read.state(directory, store="sessions") as whole, lh.open(directory, store="sessions") as opened:
        rows = whole.read_all()
        assert opened.schema == rows.schema
    for count in (0, 7, 1000):
        expected = rows.slice(max(len(rows) - count, 0))
        assert lh.read.state(directory, store="sessions", last=count).read_all() == expected
        assert lh.open(directory, store="sessions", last=count).read_all() == expected
