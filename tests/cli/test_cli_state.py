"""`letterhead state`: directories of Kafka Streams and of ours, looked at, verified and upgraded, and all that goes wrong.

The real state directory in tests/samples and the fixtures in tests/vectors were made by Kafka Streams 4.3.1; what is in
them is known from Parquet files and JSON that other programs made of them.
"""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.errors import DamagedRowError
from letterhead.state import SessionKey
from letterhead.state.reading.store_types import value_format_of
from letterhead.state.rocksdb import (
    RocksDBKeyValueStore,
    RocksDBTimeOrderedWindowStore,
    RocksDBVersionedStore,
    RocksDBWindowStore,
)
from letterhead.state.storage.database import StoredFamilies
from tests.helpers import archives
from tests.helpers.command import bytes_of, milliseconds
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
from tests.helpers.terminal import read_to_end

pytest.importorskip("rocksdict")

MAIN = "import sys; from letterhead.cli import main; sys.exit(main())"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The state directory of a real application's task, to be changed."""
    return Path(shutil.copytree(SAMPLES / "streams-state-0_0", tmp_path / "app" / "0_0"))


@pytest.fixture
def fixture(tmp_path: Path) -> Any:
    def unpack(name: str) -> Path:
        archives.unpack(VECTORS / "rocksdb" / f"{name}.tar.gz", tmp_path / name)
        return tmp_path / name / "0_0"

    return unpack


def families_of(directory: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    with StoredFamilies(directory) as families:
        return {name: list(families.rows(name)) for name in families.names}


def document(result: Any) -> Any:
    return json.loads(result.out)


def rows_of(result: Any) -> list[Any]:
    return [json.loads(line) for line in result.out.splitlines()]


# ls ------------------------------------------------------------------------------------------------------------------


def test_ls_counts_rows_bytes_and_headers_of_task(run):
    result = run("state", "ls", SAMPLES / "streams-state-0_0")
    assert result.out.splitlines()[2:5] == [
        "hourly     window, with headers        300    6,000     103,717      85,717 (83 %)       ",
        "latest     key-value, with headers   6,643   73,073   2,318,146   1,919,566 (83 %)       ",
        "sessions   session, with headers       300    7,200      88,117      85,717 (97 %)       ",
    ]
    assert (result.code, result.err) == (0, "")


def test_ls_of_two_stores_is_a_table(run, task):
    shutil.rmtree(task / "rocksdb" / "latest")
    result = run("state", "ls", task)
    assert [line.split()[:2] for line in result.lines[2:4]] == [["0_0", "hourly"], ["0_0", "sessions"]]


def test_ls_counts_the_bytes_of_rows(run):
    rows = pq.read_table(SAMPLES / "store-latest-0.parquet").to_pylist()
    payloads = [lh.decode(row["value"], "streams-timestamped").payload for row in rows]
    [latest] = document(run("state", "ls", SAMPLES / "streams-state-0_0" / "rocksdb" / "latest", "--json"))
    assert latest["rows"] == len(rows)
    assert latest["key_bytes"] == sum(len(row["key"]) for row in rows)
    assert latest["value_bytes"] == sum(len(row["value"]) for row in rows)
    assert latest["header_bytes"] == latest["value_bytes"] - sum(8 + len(payload) for payload in payloads)
    assert latest["families"] == ["default", WITH_HEADERS, "offsets"]
    assert (latest["store_type"], latest["values"], latest["assumed"]) == ("key-value", "headers", None)
    assert (latest["older_rows"], latest["damaged_rows"], latest["closed"]) == (0, 0, True)
    assert latest["offsets"] == {"orders-app-latest-changelog-0": 9999}
    assert latest["position"] == {"orders": {"0": 9999}}


def test_ls_of_one_store_shows_all_details(run, monkeypatch):
    monkeypatch.chdir(SAMPLES / "streams-state-0_0")
    result = run("state", "ls", "hourly")
    assert result.lines == [
        "hourly: window, with headers",
        "  directory  hourly",
        "  rows       300",
        "  keys       6,000 bytes",
        "  values     103,717 bytes",
        "  headers    85,717 bytes (83 %) of the values",
        f"  families   default, {WITH_HEADERS}, offsets",
        "  closed     yes",
        "  changelog  orders-app-hourly-changelog-0: 9,800",
        "  inputs     orders-0: 9,999",
        "  segment                rows   first time                 last time",
        "─" * 83,
        "  hourly.1728000000000    300   2026-01-01T00:00:00.000Z   2026-01-01T00:24:00.000Z",
    ]


@pytest.mark.parametrize(
    ("source", "tasks"),
    [
        (".", ["app/0_0"]),
        ("app", ["0_0"]),
        ("app/0_0", ["0_0"]),
        ("app/0_0/rocksdb", ["0_0"]),
        ("app/0_0/rocksdb/latest", ["0_0"]),
        ("app/0_0/hourly", ["0_0"]),
        ("app/0_0/hourly/hourly.1728000000000", ["0_0"]),
    ],
)
def test_every_directory_from_state_dir_to_segment_is_accepted(run, task, source, tasks):
    listed = document(run("state", "ls", task.parents[1] / source, "--json"))
    names = {"latest", "hourly", "sessions"} & set(Path(source).parts) or {"hourly", "latest", "sessions"}
    names = {"latest"} if source.endswith("rocksdb") else names
    assert {store["store"] for store in listed} == names
    assert sorted({store["task"] for store in listed}) == tasks


def test_ls_reports_an_unfinished_upgrade(run, fixture):
    result = run("state", "ls", fixture("kv-mid-upgrade"))
    older = len(described("kv-mid-upgrade")["rocksdb/store"]["keyValueWithTimestamp"])
    assert f"  upgrade    not finished: {older} rows still in keyValueWithTimestamp" in result.lines
    assert "  rows       8" in result.lines


def test_ls_reports_a_store_that_was_not_closed(run, task):
    write_raw(task / "rocksdb" / "latest", "offsets", (b"status", struct.pack(">q", 1)))
    [latest] = document(run("state", "ls", task, "-s", "latest", "--json"))
    assert latest["closed"] is False
    assert "  closed     no: it is open, or its process died" in run("state", "ls", task, "-s", "latest").lines


def test_ls_quick_marks_its_estimates(run):
    result = run("state", "ls", SAMPLES / "streams-state-0_0", "-s", "latest", "--quick")
    assert "  rows       about 6,508 (an estimate)" in result.lines
    [latest] = document(run("state", "ls", SAMPLES / "streams-state-0_0", "-s", "latest", "--quick", "--json"))
    assert (latest["rows"], latest["rows_are_estimated"]) == (6508, True)
    assert (latest["key_bytes"], latest["header_bytes"], latest["damaged_rows"]) == (None, None, None)


# Reading changes nothing ---------------------------------------------------------------------------------------------


def test_reading_changes_nothing_in_a_directory(run, task, fixture):
    older = fixture("kv-mid-upgrade")
    for directory, store in ((task, "latest"), (older, "store")):
        before = snapshot(directory)
        for args in (
            ["ls", directory, "--all"],
            ["ls", directory, "--quick"],
            ["get", directory, "-s", store, "a"],
            ["verify", directory],
            ["upgrade", directory, "--dry-run"],
        ):
            run("state", *args)
        run("read", directory, "-s", store, "--json")
        assert snapshot(directory) == before


def test_read_only_directory_is_read_and_upgrade_rejected(run, tmp_path, fixture):
    task = fixture("kv-timestamped")
    before = families_of(task / "rocksdb" / "store")
    with read_only(task, tmp_path / "mounted") as mounted:
        assert rows_of(run("read", mounted, "--json"))[0]["key"] == "a"
        result = run("state", "upgrade", mounted, "--yes")
        assert result.code == 1
        assert "(this process may not write there)" in result.err
        assert "0 of 6 rows were moved, the others are unchanged, and none is lost" in result.err
    assert families_of(task / "rocksdb" / "store") == before


@contextmanager
def read_only(directory: Path, mounted: Path) -> Iterator[Path]:
    """Make a directory that cannot be written: mounted so for root, whom rights do not stop; for others by rights."""
    if os.geteuid() == 0:
        mounted.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "none", mounted], check=False).returncode:
            pytest.skip("root may not mount here")
        try:
            shutil.copytree(directory, mounted / "0_0")
            subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
            yield mounted / "0_0"
        finally:
            subprocess.run(["umount", mounted], check=True)
        return
    paths = [directory, *directory.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    yield directory
    for path in paths:
        path.chmod(path.stat().st_mode | 0o200)


# get -----------------------------------------------------------------------------------------------------------------


def test_get_returns_the_row_that_kafka_streams_wrote(run):
    row = next(row for row in pq.read_table(SAMPLES / "store-latest-0.parquet").to_pylist() if row["key"])
    key: bytes = row["key"]
    expected: Any = lh.decode(row["value"], "streams-timestamped")
    printed = document(run("state", "get", SAMPLES / "streams-state-0_0", key.decode(), "-s", "latest", "--json"))
    assert printed["store"] == "latest"
    assert bytes_of(printed["key"]) == key
    assert milliseconds(printed["timestamp"]) == expected.timestamp
    assert bytes_of(printed["value"]) == expected.payload
    assert [(header["key"], bytes_of(header["value"])) for header in printed["headers"]] == [*expected.headers]


@pytest.mark.parametrize("spelling", ["a7", "hex:6137", "hex:61 37", "base64:YTc=", "string:a7", "int16:24887"])
def test_key_accepts_several_spellings(run, tmp_path, spelling):
    store = RocksDBKeyValueStore("store")
    store.open(tmp_path)
    store.put(b"a7", message(b"42", headers=[("tenant", b"acme"), ("note", None)]))
    store.close()
    result = run("state", "get", tmp_path, spelling)
    assert result.out == (
        "store: key-value, with headers\n"
        'key: "a7"\n'
        "timestamp: 1767225600000  (2026-01-01T00:00:00.000Z)\n"
        'value: "42"  (2 bytes)\n'
        "header   key        value    bytes\n"
        "──────────────────────────────────\n"
        '     0   "tenant"   "acme"       4\n'
        '     1   "note"     null          \n'
    )


def test_get_returns_older_family_row_as_newer(run, fixture):
    [(key, value)] = described("kv-mid-upgrade")["rocksdb/store"]["keyValueWithTimestamp"][:1]
    row = document(run("state", "get", fixture("kv-mid-upgrade"), f"hex:{key.hex()}", "--json"))
    assert (row["headers"], milliseconds(row["timestamp"])) == ([], struct.unpack(">q", value[:8])[0])
    assert bytes_of(row["value"]) == value[8:]


@pytest.mark.parametrize(
    "time", ["1767225660000", "@1767225660000", "2026-01-01T00:01:00", "2026-01-01 00:01:00.000 UTC"]
)
def test_get_of_window_needs_start(run, time):
    task = SAMPLES / "streams-state-0_0"
    row = document(run("state", "get", task, "order-00", "-s", "hourly", "--start", time, "--json"))
    assert (row["window_start"], row["timestamp"]) == ("2026-01-01T00:01:00.000Z", "2026-01-01T00:01:59.140Z")
    result = run("state", "get", task, "order-00", "-s", "hourly")
    assert (result.code, result.out) == (2, "")
    assert "store hourly is a window store: give --start too" in result.err


def test_get_of_session_needs_start_and_end(run):
    args = ("state", "get", SAMPLES / "streams-state-0_0", "order-00", "-s", "sessions", "--start", NEW_YEAR)
    row = document(run(*map(str, args), "--end", str(NEW_YEAR + 30_000), "--json"))
    assert (row["session_start"], row["session_end"]) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:30.000Z")
    assert bytes_of(row["value"]) == bytes(7) + b"\x1c"
    assert "timestamp" not in row
    assert "give --start and --end too" in run(*map(str, args)).err
    assert "it has no --as-of" in run(*map(str, args), "--end", "5", "--as-of", "5").err


def test_missing_row_exits_1(run):
    result = run("state", "get", SAMPLES / "streams-state-0_0", "nobody", "-s", "latest")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("letterhead: there is no row of key 'nobody' in ")


@pytest.fixture
def versioned(tmp_path: Path) -> Iterator[Path]:
    store = RocksDBVersionedStore("prices", 86_400_000)
    store.open(tmp_path)
    for key, value, minutes in [(b"pen", b"1.00", 0), (b"pen", b"1.20", 60), (b"ink", b"9", 1), (b"ink", None, 2)]:
        stored = None if value is None else aggregation(value, [("minute", str(minutes).encode())])
        store.put(key, stored, NEW_YEAR + minutes * MINUTE)
    store.close()
    return tmp_path


@pytest.mark.parametrize(
    ("key", "as_of", "value"),
    [
        ("pen", None, "1.20"),
        ("pen", "2026-01-01T00:59:59.999", "1.00"),
        ("pen", "2026-01-01T01:00:00", "1.20"),
        ("pen", "2025-12-31T23:59:59.999", None),
        ("ink", None, None),
        ("ink", "2026-01-01T00:01:30", "9"),
        ("ink", "2026-01-01T00:02:00", None),
    ],
)
def test_get_of_versioned_store_returns_valid_version(run, versioned, key, as_of, value):
    result = run("state", "get", versioned, key, *([] if as_of is None else ["--as-of", as_of]), "--json")
    assert result.code == (1 if value is None else 0)
    if value is not None:
        row = document(result)
        assert row["value"] == value
        minute = {"1.00": 0, "1.20": 60, "9": 1}[value]
        assert row["headers"] == [{"key": "minute", "value": str(minute)}]
        assert milliseconds(row["valid_from"]) == NEW_YEAR + minute * MINUTE


@pytest.mark.parametrize("options", [[], ["--epoch-ms"]])
@pytest.mark.parametrize("store", ["latest", "hourly", "sessions"])
def test_get_and_read_print_same_row_form(run, store, options):
    task = SAMPLES / "streams-state-0_0"
    row = json.loads(run("read", task, "-s", store, "-n", "1", "--json", *options).out)
    times = [
        word
        for option, name in (("--start", "start"), ("--end", "end"))
        for prefix in ("window_", "session_")
        if prefix + name in row
        for word in (option, str(row[prefix + name]))
    ]
    printed = document(run("state", "get", task, row["key"], "-s", store, "--json", *times, *options))
    assert printed.pop("store") == store
    assert list(printed.items()) == list(row.items())


# read ----------------------------------------------------------------------------------------------------------------


def test_read_returns_every_row_that_kafka_streams_wrote(run):
    rows = pq.read_table(SAMPLES / "store-latest-0.parquet").to_pylist()
    printed = rows_of(run("read", SAMPLES / "streams-state-0_0", "-s", "latest", "--json"))
    assert [bytes_of(row["key"]) for row in printed] == [row["key"] for row in rows]
    for row, expected in zip(printed, rows, strict=True):
        headers = [(header["key"], bytes_of(header["value"])) for header in row["headers"]]
        message = lh.Message(headers=headers, timestamp=milliseconds(row["timestamp"]), payload=bytes_of(row["value"]))
        assert lh.encode(message, "streams-timestamped") == expected["value"]


@pytest.mark.parametrize("name", ["window-headers", "session-headers"])
def test_read_returns_rows_by_segment_with_their_times(run, fixture, name):
    databases = described(name)
    segments = sorted(databases, key=lambda path: int(path.rpartition(".")[2]))
    family = WITH_HEADERS if name == "window-headers" else "sessionKeyValueWithHeaders"
    stored = [key for segment in segments for key, _ in databases[segment][family]]
    rows_read = rows_of(run("read", fixture(name), "--json"))
    if name == "window-headers":
        keys = [bytes_of(row["key"]) + struct.pack(">qi", milliseconds(row["window_start"]), 0) for row in rows_read]
    else:
        keys = [
            bytes_of(row["key"])
            + struct.pack(">qq", milliseconds(row["session_end"]), milliseconds(row["session_start"]))
            for row in rows_read
        ]
    assert keys == stored
    backward = rows_of(run("read", fixture(name), "--json", "--reverse"))
    assert backward == rows_read[::-1]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ([], ["a", "ab", "b", "ba", "c"]),
        (["--reverse"], ["c", "ba", "b", "ab", "a"]),
        (["--from-key", "ab", "--to-key", "b"], ["ab", "b"]),
        (["--from-key", "ab", "--to-key", "b", "--reverse"], ["b", "ab"]),
        (["--prefix", "b"], ["b", "ba"]),
        (["--prefix", "b", "--reverse", "--limit", "1"], ["ba"]),
        (["--limit", "2"], ["a", "ab"]),
        (["--limit", "0"], []),
        (["--from-key", "x"], []),
        (["--columns", "key"], ["a", "ab", "b", "ba", "c"]),
    ],
)
@pytest.mark.parametrize("store_type", ["key-value", "window", "session", "time-ordered-window", "versioned"])
def test_read_returns_the_selected_keys(run, tmp_path, store_type, options, keys):
    store = rocksdb_store(store_type)
    store.open(tmp_path)
    for key in (b"c", b"ab", b"ba", b"a", b"b"):
        if store_type == "session":
            store.put(SessionKey(key, NEW_YEAR, NEW_YEAR + 5), aggregation(b"v"))
        elif store_type == "versioned":
            store.put(key, aggregation(b"v"), NEW_YEAR)
        else:
            store.put(key, message(b"v"), *([] if store_type == "key-value" else [NEW_YEAR]))
    store.close()
    rows_read = rows_of(run("read", tmp_path, "--json", *options))
    assert [row["key"] for row in rows_read] == keys
    if "--columns" in options:
        assert all(row.keys() == {"key"} for row in rows_read)
    else:
        name = {"key-value": None, "session": "session_start", "versioned": "valid_from"}.get(
            store_type, "window_start"
        )
        assert all(name is None or row[name] == "2026-01-01T00:00:00.000Z" for row in rows_read)


def test_read_shows_a_table(run, versioned):
    head, _, *rows = run("read", versioned).lines
    assert [head, *rows] == [
        "key    valid_from                valid_to                  value   headers",
        '"ink"  2026-01-01T00:01:00.000Z  2026-01-01T00:02:00.000Z  "9"     minute="1"',
        '"pen"  2026-01-01T00:00:00.000Z  2026-01-01T01:00:00.000Z  "1.00"  minute="0"',
        '"pen"  2026-01-01T01:00:00.000Z  null                      "1.20"  minute="60"',
        "3 rows",
    ]


def test_read_returns_rows_of_all_tasks(run, tmp_path):
    for number in range(3):
        store = RocksDBKeyValueStore("store")
        store.open(tmp_path / f"0_{number}")
        store.put(b"k%d" % number, message(b"v"))
        store.close()
    printed = rows_of(run("read", tmp_path, "--json"))
    assert [(row["task"], row["key"]) for row in printed] == [("0_0", "k0"), ("0_1", "k1"), ("0_2", "k2")]
    printed = rows_of(run("read", tmp_path, "--json", "--reverse"))
    assert [row["task"] for row in printed] == ["0_2", "0_1", "0_0"]
    assert document(run("state", "get", tmp_path, "k1", "--json"))["task"] == "0_1"


# Types of stores ------------------------------------------------------------------------------------------------------------------


def make(task: Path, store_type: str, values: Any, name: str = "store") -> None:
    """Make a store of one type with fifty rows, one a minute."""
    stored = {"headers": message(b"v"), "timestamped": struct.pack(">q", NEW_YEAR) + b"v", "plain": b"v"}[values]
    store = rocksdb_store(store_type, values, name)
    store.open(task)
    for number in range(50):
        key, time = b"k%02d" % number, NEW_YEAR + number * MINUTE
        if store_type == "key-value":
            store.put(key, stored)
        elif store_type.endswith("window"):
            store.put(key, stored, time)
        elif store_type == "versioned":
            store.put(key[:2], aggregation(b"v") if values == "headers" else b"v", time)
        else:
            with_headers = value_format_of(store_type, values) == "headers"
            store.put(SessionKey(key, time, time + 500), aggregation(b"v") if with_headers else b"v")
    store.close()


STORE_TYPES = [
    ("key-value", "plain", None),
    ("key-value", "timestamped", None),
    ("key-value", "headers", None),
    ("window", "plain", None),
    ("window", "timestamped", None),
    ("window", "headers", None),
    ("session", "plain", None),
    ("session", "headers", None),
    ("time-ordered-window", "timestamped", "its values may have no timestamps"),
    ("time-ordered-window", "headers", None),
    ("time-ordered-session", "plain", None),
    ("time-ordered-session", "headers", None),
    ("versioned", "plain", "its rows look like versions, and could be plain key-value"),
    ("versioned", "headers", None),
]


@pytest.mark.parametrize(("store_type", "values", "assumed"), STORE_TYPES)
def test_store_type_is_inferred_from_families_and_rows(run, tmp_path, store_type, values, assumed):
    make(tmp_path, store_type, values)
    result = run("state", "ls", tmp_path, "--json")
    [listed] = document(result)
    assert (listed["store_type"], listed["values"], listed["assumed"]) == (
        store_type,
        value_format_of(store_type, values),
        assumed,
    )
    assert listed["rows"] == (50 if store_type != "versioned" else listed["rows"])
    assert (assumed is None) == (result.err == "")
    if store_type.startswith("time-ordered"):
        assert listed["index_entries"] == 50
    verified = run("state", "verify", tmp_path)
    assert (verified.code, "no errors" in verified.out) == (0, True)


def test_store_type_option_is_accepted(run, tmp_path):
    make(tmp_path, "versioned", "plain")
    assert rows_of(run("read", tmp_path, "--json", "-n", "1"))[0]["valid_from"] == "2026-01-01T00:00:00.000Z"
    result = run("read", tmp_path, "--store-type", "key-value", "--json", "-n", "1")
    assert "valid_from" not in rows_of(result)[0]
    assert result.err == ""
    result = run("read", SAMPLES / "streams-state-0_0", "-s", "latest", "--store-type", "session")
    assert (result.code, result.out) == (2, "")
    assert f"store latest is not session: its column families are default, {WITH_HEADERS}" in result.err
    result = run("read", tmp_path, "--store-type", "sesion")
    assert result.err.startswith("letterhead: unknown store type 'sesion': did you mean 'session'? (store types: ")


def test_empty_store_is_listed(run, tmp_path):
    store = RocksDBKeyValueStore("store", format="plain")
    store.open(tmp_path)
    store.close()
    result = run("state", "ls", tmp_path, "--json")
    [listed] = document(result)
    assert (listed["store_type"], listed["rows"], listed["assumed"]) == ("key-value", 0, "there are no rows to tell by")
    assert run("read", tmp_path).out.endswith("0 rows\n")


# Damaged rows --------------------------------------------------------------------------------------------------------

DAMAGED = bytes.fromhex("0402057f00")
REASON = "timestamp takes 8 bytes and 2 are left"


def test_damaged_row_is_named_and_reading_continues(run, task):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"order-00003!", DAMAGED))
    result = run("read", task, "-s", "latest", "--json", "--errors", "skip")
    assert len(rows_of(result)) == 6643
    assert result.err == (
        f"letterhead: task 0_0, key {b'order-00003!'.hex()}: {REASON} (truncated, byte 3)\n"
        "letterhead: 1 row left out, as it could not be read\n"
    )
    assert result.code == 1


def test_reading_ends_at_a_damaged_row(run, task):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"order-00003!", DAMAGED))
    result = run("read", task, "-s", "latest", "--json", "--errors", "raise")
    assert len(rows_of(result)) < 6643
    assert (result.code, result.err) == (
        1,
        f"letterhead: store 0_0/latest: {REASON} (key {b'order-00003!'.hex()}, byte 3)\n",
    )


def test_get_of_damaged_row_reports_error(run, task):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"bad", DAMAGED))
    result = run("state", "get", task, "-s", "latest", "bad")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"letterhead: store latest: {REASON} (key 626164, byte 3)\n"


def test_ls_names_a_store_whose_position_is_damaged(run, task):
    write_raw(task / "rocksdb" / "latest", "offsets", (b"position", b"\x09"))
    result = run("state", "ls", task, "-s", "latest", "--json")
    [latest] = document(result)
    assert result.code == 1
    assert latest["error"] == "store 0_0/latest: family offsets: Unknown version 9 when deserializing Position"


def test_ls_counts_damaged_rows(run, task):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"bad", b"\x7f"))
    result = run("state", "ls", task, "-s", "latest")
    assert "  damaged    1 row: see `letterhead state verify`" in result.lines
    assert result.code == 1


def test_verify_reports_errors_with_store_key_byte_and_reason(run, task):
    write_raw(task / "rocksdb" / "latest", WITH_HEADERS, (b"bad", DAMAGED), (b"worse", b""))
    write_raw(task / "rocksdb" / "latest", "default", (b"left", b"over"))
    segment = task / "hourly" / "hourly.1728000000000"
    write_raw(segment, WITH_HEADERS, (b"short", message(b"v")), (b"k" + struct.pack(">qi", 5, 0), message(b"v")))
    write_raw(segment, "offsets", (b"position", b"\x09"), (b"topic-0", b"\0"))
    result = run("state", "verify", task, "--json")
    assert result.code == 1
    stores = {store["store"]: store for store in document(result)}
    # Families without rows are listed, too.
    assert stores["sessions"]["rows"] == {"default": 0, "offsets": 3, "sessionKeyValueWithHeaders": 300}
    errors = {name: store["errors"] for name, store in stores.items()}
    assert errors["sessions"] == []
    assert [
        (error["family"], bytes_of(error["key"]), error["byte_offset"], error["code"], error["reason"])
        for error in errors["latest"]
    ] == [
        # A row in `default` is one that a store with headers has not moved yet: there is nothing wrong with it.
        (WITH_HEADERS, b"bad", 3, "truncated", REASON),
        (WITH_HEADERS, b"worse", 0, "truncated", "the bytes end inside the headers size"),
    ]
    assert [(error["segment"], error["family"], error["code"], error["reason"]) for error in errors["hourly"]] == [
        (segment.name, WITH_HEADERS, "out_of_range", f"the time 5 of its key is not in segment {segment.name}"),
        (segment.name, WITH_HEADERS, "truncated", "a stored key of 5 bytes is too short: 12 of it are the time"),
        (segment.name, "offsets", "out_of_range", "Unknown version 9 when deserializing Position"),
        (segment.name, "offsets", "wrong_size", "1 byte where an offset or a status takes 8"),
    ]
    lines = run("state", "verify", task).lines
    assert f"! store 0_0/latest, family {WITH_HEADERS}, key 626164: {REASON} (truncated, byte 3)" in lines
    assert lines[-1] == "a store with a changelog restores itself from it when its directory is missing"


@pytest.mark.parametrize("size", [0, 7, 9])
def test_verify_reports_offset_not_of_eight_bytes(run, task, size):
    write_raw(task / "rocksdb" / "latest", "offsets", (b"topic-0", bytes(size)))
    result = run("state", "verify", task, "-s", "latest", "--json")
    [store] = document(result)
    assert [(error["family"], error["code"]) for error in store["errors"]] == [("offsets", "wrong_size")]


def test_verify_reports_rows_outside_the_times_of_their_segment(run, tmp_path):
    store = RocksDBWindowStore("store", 3_600_000, MINUTE)
    store.open(tmp_path)
    for time in (NEW_YEAR, NEW_YEAR + 30 * MINUTE):
        store.put(b"k", message(b"v"), time)
    store.close()
    first, second = (int(path.name.removeprefix("store.")) for path in sorted((tmp_path / "store").iterdir()))
    times = (first - 1, first, second - 1, second)
    keys = [b"at" + struct.pack(">qi", time, 0) for time in times]
    write_raw(tmp_path / "store" / f"store.{first}", WITH_HEADERS, *((key, message(b"v")) for key in keys))
    [store] = document(run("state", "verify", tmp_path, "--json"))
    assert [bytes_of(error["key"]) for error in store["errors"]] == [keys[0], keys[3]]


@pytest.mark.parametrize("options", [["--from-key", "a"], ["--to-key", "b"], ["--from-key", "a", "--to-key", "b"]])
def test_prefix_excludes_bounds(run, task, options):
    result = run("read", task, "-s", "latest", "--prefix", "order", *options)
    assert (result.code, result.out) == (2, "")
    assert "--prefix and --from-key, --to-key exclude each other" in result.err


@pytest.mark.parametrize("make_store", [RocksDBWindowStore, RocksDBTimeOrderedWindowStore])
def test_get_excludes_windows_with_longer_keys(run, tmp_path, make_store):
    store = make_store("store", 3_600_000, MINUTE)
    store.open(tmp_path)
    store.put(b"k", message(b"v"), NEW_YEAR)
    # Their stored keys lie between the first and the last possible window of the key at that time.
    store.put(b"k" + struct.pack(">q", NEW_YEAR) + bytes(2), message(b"other"), NEW_YEAR)
    store.put(b"k" + bytes(2), message(b"other"), NEW_YEAR)
    store.close()
    result = run("state", "get", tmp_path, "k", "--start", str(NEW_YEAR), "--json")
    assert document(result)["value"] == "v"


def test_verify_finds_rows_missing_from_index(run, tmp_path):
    make(tmp_path, "time-ordered-window", "headers")
    [segment, _] = sorted((tmp_path / "store").iterdir())
    orphan = b"\1lost" + struct.pack(">qi", NEW_YEAR, 0)
    unknown = b"\0" + struct.pack(">q", NEW_YEAR) + b"unknown" + bytes(4)
    write_raw(segment, "windowKeyValueWithHeaders", (orphan, b""), (unknown, message(b"v")))
    result = run("state", "verify", tmp_path, "--json")
    [store] = document(result)
    # Java leaves entries behind whose row is gone: they are counted, and are no errors.
    assert store["index_entries_without_row"] == 1
    assert [(bytes_of(error["key"]), error["reason"]) for error in store["errors"]] == [
        (unknown, "the index has no entry for it, so that no search by key finds it")
    ]


def test_verify_accepts_a_time_ordered_store_without_an_index(run, tmp_path):
    store = RocksDBTimeOrderedWindowStore("store", 3_600_000, MINUTE, format="timestamped", with_index=False)
    store.open(tmp_path)
    store.put(b"k", struct.pack(">q", NEW_YEAR) + b"v", NEW_YEAR)
    store.close()
    result = run("state", "verify", tmp_path)
    assert (result.code, "no errors" in result.out) == (0, True)


def test_damaged_version_is_named_with_byte(run, versioned):
    key = struct.pack(">q", -1) + b"bad"
    write_raw(versioned / "rocksdb" / "prices", "versionedKeyValueWithHeaders", (key, bytes(8) + b"\x05v"))
    result = run("state", "verify", versioned)
    assert f"family versionedKeyValueWithHeaders, key {key.hex()}: " in result.out
    assert ", byte 8)" in result.out
    assert run("read", versioned, "--json", "--errors", "skip").out.count("\n") == 3


def test_damaged_file_is_reported_and_other_stores_read(run, task):
    [table] = [
        path for path in (task / "sessions" / "sessions.1728000000000").glob("*.sst") if path.stat().st_size > 9000
    ]
    data = bytearray(table.read_bytes())
    data[4000:4200] = b"x" * 200
    table.write_bytes(data)
    result = run("state", "verify", task, "--json", "--store-type", "session", "-s", "sessions")
    [sessions] = document(result)
    [error] = sessions["errors"]
    assert (result.code, error["code"], error["family"]) == (1, None, "sessionKeyValueWithHeaders")
    assert "block checksum mismatch" in error["reason"]
    assert error["reason"].startswith("Error while iterating over store sessions.1728000000000: Corruption")
    result = run("state", "ls", task)
    assert result.code == 1
    listed = {store["store"]: store.get("rows") for store in document(run("state", "ls", task, "--json"))}
    assert listed == {"hourly": 300, "latest": 6643, "sessions": None}
    assert "! Error while iterating over store sessions.1728000000000: Corruption" in result.out
    result = run("read", task, "-s", "sessions", "--store-type", "session", "--json", "--errors", "skip")
    assert result.code == 1
    assert "the rows after it are not read" in result.err


# upgrade -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "prefix"),
    [("kv-timestamped", "keyValueWithTimestamp", b"\0"), ("kv-plain", "default", b"\0" + b"\xff" * 8)],
)
def test_upgrade_moves_every_row_that_kafka_streams_wrote(run, fixture, name, old, prefix):
    task = fixture(name)
    rows = described(name)["rocksdb/store"][old]
    planned = document(run("state", "upgrade", task, "--dry-run", "--json"))
    assert [(plan["from"], plan["to"], plan["older_rows"], plan["moved"]) for plan in planned] == [
        ([old], WITH_HEADERS, 6, 0)
    ]
    line = run("state", "upgrade", task, "--dry-run").lines[-1]
    assert line.split() == ["0_0/store", "key-value", old, WITH_HEADERS, "6"]
    assert families_of(task / "rocksdb" / "store") == described(name)["rocksdb/store"]
    result = run("state", "upgrade", task, "--yes")
    assert (result.code, result.err) == (0, "")
    assert result.lines[-1].split() == ["0_0/store", "key-value", old, WITH_HEADERS, "6"]
    after = families_of(task / "rocksdb" / "store")
    assert after[old] == []
    assert after[WITH_HEADERS] == [(key, prefix + value) for key, value in rows]
    assert dict(after["offsets"]) == dict(described(name)["rocksdb/store"]["offsets"])
    assert "0_0/store: key-value, with headers: nothing to move" in run("state", "upgrade", task, "--yes").out


def test_upgrade_continues_where_kafka_streams_stopped(run, fixture):
    task = fixture("kv-mid-upgrade")
    before = described("kv-mid-upgrade")["rocksdb/store"]
    moved = [(key, b"\0" + value) for key, value in before["keyValueWithTimestamp"]]
    run("state", "upgrade", task, "--yes")
    assert families_of(task / "rocksdb" / "store")[WITH_HEADERS] == sorted([*before[WITH_HEADERS], *moved])


@pytest.mark.parametrize(
    ("store_type", "values", "options", "family"),
    [
        ("window", "plain", [], WITH_HEADERS),
        ("window", "timestamped", [], WITH_HEADERS),
        ("session", "plain", [], "sessionKeyValueWithHeaders"),
        ("time-ordered-session", "plain", [], "sessionKeyValueWithHeaders"),
        (
            "time-ordered-window",
            "timestamped",
            ["--store-type", "time-ordered-window", "--values", "timestamped"],
            "windowKeyValueWithHeaders",
        ),
        ("versioned", "plain", ["--store-type", "versioned"], "versionedKeyValueWithHeaders"),
    ],
)
def test_every_type_of_store_is_upgraded(run, tmp_path, store_type, values, options, family):
    make(tmp_path, store_type, values)
    output = options or []
    before = rows_of(run("read", tmp_path, "--json", *output))
    result = run("state", "upgrade", tmp_path, "--yes", "--json", *options)
    [plan] = document(result)
    assert plan["to"] == family
    assert plan["moved"] == plan["older_rows"] > 0
    after = rows_of(run("read", tmp_path, "--json"))
    if store_type != "time-ordered-session":
        assert [row.pop("headers") for row in after] == [[]] * len(after)
    if (store_type, values) == ("window", "plain"):
        assert {row.pop("timestamp") for row in after} == {"1969-12-31T23:59:59.999Z"}
    assert after == before
    assert run("state", "verify", tmp_path).code == 0


def test_upgrade_needs_no_assumption(run, tmp_path):
    make(tmp_path, "versioned", "plain")
    before = snapshot(tmp_path)
    result = run("state", "upgrade", tmp_path, "--yes")
    assert result.code == 2
    assert "If it is versioned, plain, pass --store-type versioned" in result.err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(("store", "to"), [("latest", "timestamped"), ("latest", "plain"), ("sessions", "plain")])
def test_upgrade_is_irreversible(run, task, store, to):
    before = snapshot(task)
    result = run("state", "upgrade", task, "-s", store, "--to", to, "--yes")
    assert result.code == 2
    assert f"with headers: it cannot become {to} again" in result.err
    assert snapshot(task) == before


def test_plain_rows_can_get_timestamps_only(run, fixture):
    task = fixture("kv-plain")
    run("state", "upgrade", task, "--to", "timestamped", "--yes")
    rows = described("kv-plain")["rocksdb/store"]["default"]
    expected = [(key, b"\xff" * 8 + value) for key, value in rows]
    assert families_of(task / "rocksdb" / "store")["keyValueWithTimestamp"] == expected


def test_upgrade_needs_confirmation(run, fixture):
    task = fixture("kv-plain")
    result = run("state", "upgrade", task)
    assert (result.code, result.out) == (2, "")
    assert "pass --yes, or --dry-run" in result.err
    assert terminal("n\n", "state", "upgrade", str(task)) == 1
    assert families_of(task / "rocksdb" / "store") == described("kv-plain")["rocksdb/store"]
    assert terminal("y\n", "state", "upgrade", str(task)) == 0
    assert len(families_of(task / "rocksdb" / "store")[WITH_HEADERS]) == 6


def terminal(answer: str, *args: str) -> int:
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", MAIN, *args], stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    os.write(leader, answer.encode())
    printed = read_to_end(leader)
    assert b"Move these rows?" in printed
    return process.wait(timeout=300)


def test_unclosed_store_stays_unclosed(run, fixture):
    """Under exactly-once Kafka Streams restores such a store: an upgrade must not hide that from it."""
    task = fixture("kv-plain")
    write_raw(task / "rocksdb" / "store", "offsets", (b"status", struct.pack(">q", 1)))
    run("state", "upgrade", task, "--yes")
    assert dict(families_of(task / "rocksdb" / "store")["offsets"])[b"status"] == struct.pack(">q", 1)


def test_full_disk_ends_upgrade_and_loses_nothing(run, tmp_path):
    store = RocksDBKeyValueStore("store", format="plain")
    store.open(tmp_path)
    rows = [(b"key-%05d" % number, os.urandom(400)) for number in range(8000)]
    store.put_all(rows)
    store.close()
    directory = tmp_path / "rocksdb" / "store"
    expected = [(key, b"\0" + b"\xff" * 8 + value) for key, value in rows]
    # A limit of the size of files ends the write as a full disk does, at a place that is known.
    full = subprocess.run(
        [sys.executable, "-c", MAIN, "state", "upgrade", str(tmp_path), "--yes"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert full.returncode == 1, full.stderr
    assert "File too large (make room" in full.stderr
    assert " of 8,000 rows were moved, the others are unchanged, and none is lost" in full.stderr
    assert [row["key"].encode() for row in rows_of(run("read", tmp_path, "--json"))] == [key for key, _ in rows]
    after = families_of(directory)
    assert sorted([*after[WITH_HEADERS], *((key, b"\0" + b"\xff" * 8 + value) for key, value in after["default"])]) == (
        expected
    )
    result = run("state", "upgrade", tmp_path, "--yes")
    assert result.code == 0, result.err
    assert families_of(directory)[WITH_HEADERS] == expected


def test_damaged_older_row_stays_and_others_move(run, tmp_path):
    make(tmp_path, "versioned", "plain")
    directory = tmp_path / "rocksdb" / "store"
    bad = struct.pack(">q", 1) + b"bad"
    write_raw(directory, "default", (bad, b"\xff"))
    total = len(families_of(directory)["default"])
    result = run("state", "upgrade", tmp_path, "--yes", "--store-type", "versioned")
    assert result.code == 1
    assert f"store store: the bytes end inside the times of a row of versions (key {bad.hex()}, " in result.err
    assert f"{total - 1} of {total} rows were moved" in result.err
    after = families_of(directory)
    assert after["default"] == [(bad, b"\xff")]
    assert len(after["versionedKeyValueWithHeaders"]) == total - 1


# A directory that is in use, is another program's, or is none ----------------------------------------------------------


@contextmanager
def held(task: Path, name: str, values: str) -> Iterator[int]:
    """Another process that has a store open, and has written a row that is not in a file yet."""
    code = (
        "import sys; from pathlib import Path; from letterhead.state.rocksdb import RocksDBKeyValueStore\n"
        "store = RocksDBKeyValueStore(sys.argv[2], format=sys.argv[3]); store.open(Path(sys.argv[1]))\n"
        "store.put(b'not yet', bytes(9)); print('open', flush=True); sys.stdin.read()"
    )
    args = [sys.executable, "-c", code, str(task), name, values]
    process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"open\n"
    yield process.pid
    process.kill()
    process.communicate(timeout=300)


def test_store_open_elsewhere_can_be_read(run, task):
    with held(task, "latest", "headers") as process:
        result = run("read", task, "-s", "latest", "--json")
        assert (result.code, len(rows_of(result))) == (0, 6643)
        assert result.err == (
            f"letterhead: store 0_0/latest is open in process {process}: rows that it has not written to files yet are "
            "missing\n"
        )
        [latest] = document(run("state", "ls", task, "-s", "latest", "--json"))
        assert latest["closed"] is False


def test_store_offset_after_crash_is_largest_of_segments(run, tmp_path):
    changelog = ("app-store-changelog", 0)
    store = RocksDBWindowStore("store", 3_600_000, MINUTE)
    store.open(tmp_path)
    store.put(b"a", message(b"v"), NEW_YEAR)
    store.put(b"b", message(b"v"), NEW_YEAR + 60 * MINUTE)
    store.commit({changelog: 9})
    store.close()
    # A process that dies between the commits of two segments leaves the later one behind.
    *_, last = sorted(path for path in (tmp_path / "store").iterdir())
    write_raw(last, "offsets", (b"app-store-changelog-0", struct.pack(">q", 4)))
    [listed] = document(run("state", "ls", tmp_path, "--json"))
    assert listed["offsets"] == {"app-store-changelog-0": 9}


def test_store_open_elsewhere_is_not_upgraded(run, tmp_path):
    make(tmp_path, "key-value", "plain")
    before = families_of(tmp_path / "rocksdb" / "store")["default"]
    with held(tmp_path, "store", "plain") as process:
        result = run("state", "upgrade", tmp_path, "--yes")
        assert result.code == 2
        assert f"store store is open in process {process}: stop it first. Nothing was changed" in result.err
        assert families_of(tmp_path / "rocksdb" / "store")["default"] == before
    assert run("state", "upgrade", tmp_path, "--yes").code == 0
    assert families_of(tmp_path / "rocksdb" / "store")["default"] == []


def test_foreign_column_family_is_rejected_and_named(run, task):
    directory = task / "rocksdb" / "latest"
    write_raw(directory, "keyValueWithEverything", (b"k", b"v"))
    before = snapshot(directory)
    words = f"column family 'keyValueWithEverything' in {directory} is of no store type known here"
    for command, *args in (["read"], ["state", "get"], ["state", "upgrade"]):
        options = {"get": ["k"], "upgrade": ["--yes"]}.get(*args, []) if args else []
        result = run(command, *args, task, *options, "-s", "latest")
        assert (result.code, result.out) == (1, "")
        assert words in result.err
    result = run("state", "ls", task, "--json")
    assert result.code == 1
    listed = {store["store"]: store for store in document(result)}
    assert words in listed["latest"]["error"]
    assert listed["hourly"]["rows"] == 300
    assert snapshot(directory) == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["ls", "empty"], "there is no store in empty: no directory in it has a file CURRENT, as RocksDB's have"),
        (["get", "0_0", "k"], "there are several stores in 0_0: choose one with --store: hourly, latest, sessions"),
        (["ls", "0_0", "-s", "last"], "there is no store last in 0_0: there are hourly, latest, sessions"),
        (["get", "0_0", "hex:0", "-s", "latest"], "hex: 1 digits; bytes have two each"),
        (["get", "0_0", "base64:!", "-s", "latest"], "base64: "),
        (
            ["get", "0_0", "k", "-s", "hourly", "--start", "noon"],
            "--start: 'noon' is neither milliseconds since 1970 nor a time like '2026-01-01T08:30:00Z'",
        ),
        (
            ["get", "0_0", "k", "-s", "hourly", "--start", "-5"],
            "--start: -5 is outside the times that a store can hold",
        ),
        (["get", "0_0", "k", "-s", "latest", "--start", "5"], "store latest is a key-value store: it has no --start"),
        (
            ["upgrade", "0_0", "--store-type", "window", "--yes"],
            "--store-type applies to one store: choose it with --store",
        ),
        (
            ["upgrade", "0_0", "-s", "sessions", "--to", "timestamped"],
            "store sessions is a session store: --to is plain or headers",
        ),
        (["ls"], "Missing argument 'DIR' (see letterhead state ls --help)"),
        (["lss", "0_0"], "No such command 'lss'"),
    ],
)
def test_wrong_usage_names_option(run, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "0_0").symlink_to(SAMPLES / "streams-state-0_0")
    result = run("state", *args)
    assert (result.code, result.out) == (3 if "there is no store" in message else 2, "")
    assert message in result.err


def test_errors_name_command_options(run):
    task = SAMPLES / "streams-state-0_0"
    result = run("state", "diff", task, "-s", "hourly", CHANGELOG)
    assert (result.code, "expire: pass --retention, as the application does" in result.err) == (2, True)
    result = run("state", "get", task, "-s", "hourly", "order-00", "--start", "20260101")
    assert (result.code, "write 2026-01-01 for the date" in result.err) == (2, True)
    result = run("state", "ls", task, "--bootstrap-server", "127.0.0.1:1", "-X", "default.api.timeout.ms=500")
    assert (result.code, "127.0.0.1:1" in result.err, "None" in result.err) == (3, True, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "there are several stores in 0_0: choose one with --store: hourly, latest, sessions"),
        (["-s", "last"], "there is no store last in 0_0: there are hourly, latest, sessions"),
        (["-s", "latest", "--prefix", "a", "--from-key", "b"], "--prefix and --from-key, --to-key exclude each other"),
        (["-s", "latest", "--start", "5"], "--start is for topics and log segments"),
        (["-s", "latest", "--batches"], "--batches is for topics and log segments of Kafka"),
        (["-s", "latest", "--columns", "kye"], "did you mean 'key'"),
    ],
)
def test_wrong_read_options_are_named(run, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "0_0").symlink_to(SAMPLES / "streams-state-0_0")
    result = run("read", "0_0", *options)
    assert (result.code, result.out) == (3 if "there is no store" in message else 2, "")
    assert message in result.err


def test_without_rocksdict_the_error_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    result = run("state", "ls", SAMPLES / "streams-state-0_0")
    assert (result.code, result.out) == (2, "")
    assert result.err == spelled_out(
        "letterhead: a persistent store needs rocksdict: pip install 'letterhead[state]'\n"
    )


def test_other_commands_load_no_store(tmp_path):
    code = (
        "import sys; from letterhead.cli import main; code = main(['inspect', '-f', 'kafka', '--hex', '00'])\n"
        "assert not {'rocksdict', 'letterhead.state', 'pyarrow'} & set(sys.modules); sys.exit(code)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


# help ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["ls", "get", "upgrade", "verify"])
def test_help_has_examples_and_exit_codes(run, command):
    result = run("state", command, "--help")
    assert result.code == 0
    assert f"letterhead state {command} " in result.out
    assert "Examples:" in result.out
    assert "Exit codes: 0 success" in result.out


def test_help_names_every_command(run):
    result = run("state", "--help")
    assert [name for name in ("ls", "get", "upgrade", "verify") if f" {name} " not in result.out] == []
    assert " state " in run("--help").out


# --- restore and diff ----------------------------------------------------------------------------------------------

CHANGELOG = SAMPLES / "orders-app-latest-changelog-0"


def test_restore_writes_a_store_that_equals_the_sample(tmp_path, run) -> None:
    done = run("state", "restore", CHANGELOG, tmp_path / "app" / "0_0", "--store", "latest")
    assert (done.code, done.err) == (0, "")
    assert "partition 0 up to offset 9,999" in done.out
    same = run("state", "diff", tmp_path / "app", SAMPLES / "streams-state-0_0" / "rocksdb" / "latest")
    assert (same.code, same.out) == (0, "no row differs\n")
    again = run("state", "restore", CHANGELOG, tmp_path / "app" / "0_0", "--store", "latest")
    assert again.code == 2
    assert "store latest exists in" in again.err


def test_restore_stops_at_time_and_diff_shows_later_rows(tmp_path, run) -> None:
    parquet = CHANGELOG.with_name(CHANGELOG.name + ".parquet")
    end = ("--end", "2026-01-01T00:05:00Z", "--layout", "plain", "--json")
    done = run("state", "restore", parquet, tmp_path / "0_{partition}", "-s", "latest", *end)
    (restored,) = json.loads(done.out)
    assert restored == {
        "partition": 0,
        "directory": str(tmp_path / "0_0" / "rocksdb" / "latest"),
        "offset": restored["offset"],
    }
    assert 0 < restored["offset"] < 9999
    differs = run("state", "diff", tmp_path, CHANGELOG, "--json")
    assert (differs.code, differs.out) == (0, "")  # up to the same offset
    differs = run("state", "diff", tmp_path / "0_0", SAMPLES / "streams-state-0_0" / "rocksdb" / "latest", "--json")
    assert differs.code == 1
    first = json.loads(differs.out.splitlines()[0])
    assert first["differs"] in (["row"], ["value"])
    assert "timestamp" not in first["second"] or milliseconds(first["second"]["timestamp"]) > 0
    shown = run("state", "diff", tmp_path / "0_0", SAMPLES / "streams-state-0_0" / "rocksdb" / "latest")
    assert "not shown: --all" in shown.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--store-type", "window"), "rows of a window store expire: pass --retention"),
        (("--layout", "json"), "unknown layout 'json'"),
        (("--end", "noon"), "--end: 'noon' is neither an offset nor a time"),
        (("--end", "-5"), "an offset is not negative"),
    ],
)
def test_wrong_restore_options_are_rejected(tmp_path, run, options, message) -> None:
    done = run("state", "restore", CHANGELOG, tmp_path / "0_0", "-s", "latest", *options)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "0_0").exists()


def test_ls_counts_records_missing_from_store(tmp_path, run) -> None:
    assert run("state", "restore", CHANGELOG, tmp_path / "0_0", "-s", "latest", "--end", "9000").code == 0
    listed = run("state", "ls", tmp_path, "--changelog", CHANGELOG, "--json")
    (store,) = json.loads(listed.out)
    assert (store["offsets"], store["lag"]) == (
        {"orders-app-latest-changelog-0": 8999},
        {"orders-app-latest-changelog-0": 1000},
    )
    shown = run("state", "ls", tmp_path, "--changelog", CHANGELOG.with_name(CHANGELOG.name + ".parquet"))
    assert "8,999 (1,000 records behind)" in shown.out
    missing = run("state", "ls", tmp_path, "--changelog", tmp_path / "none")
    assert (missing.code, "cannot read" in missing.err) == (3, True)


@pytest.mark.parametrize(("last", "lag"), [(9999, 1000), (99, 0)])
def test_ls_takes_a_directory_of_parquet_and_older_changelogs(tmp_path, run, last, lag) -> None:
    import pyarrow.parquet as pq

    assert run("state", "restore", CHANGELOG, tmp_path / "app" / "0_0", "-s", "latest", "--end", "9000").code == 0
    whole, parts = pq.read_table(CHANGELOG.with_name(CHANGELOG.name + ".parquet")), tmp_path / "parts"
    parts.mkdir()
    pq.write_table(whole.slice(0, 50), parts / "1.parquet")
    pq.write_table(whole.slice(50, last + 1 - 50), parts / "2.parquet")
    (store,) = json.loads(run("state", "ls", tmp_path / "app", "--changelog", parts, "--json").out)
    assert store["lag"] == {"orders-app-latest-changelog-0": lag}
    pq.write_table(whole.drop_columns(["topic"]), tmp_path / "other.parquet")
    other = run("state", "ls", tmp_path / "app", "--changelog", tmp_path / "other.parquet")
    assert (other.code, "has no column topic: it needs topic, partition, offset" in other.err) == (2, True)


def test_ls_counts_versions(tmp_path, run) -> None:
    store = RocksDBVersionedStore("prices", 10_000)
    store.open(tmp_path)
    for at in (1, 2, 3):
        store.put(b"pen", b"\0%d" % at, at)
    store.close()
    (listed,) = json.loads(run("state", "ls", tmp_path, "--json").out)
    assert (listed["versions"], listed["rows"]) == (3, 2)


def store_of(task: Path, rows: dict[bytes, bytes]) -> Path:
    store = RocksDBKeyValueStore("store")
    store.open(task)
    for key, value in rows.items():
        store.put(key, value)
    store.close()
    return task


def test_diff_shows_the_headers_that_differ_among_many(tmp_path, run) -> None:
    headers = [(f"h{number}", b"%d" % number) for number in range(12)]
    changed = [*headers[:7], ("h7", b"other"), *headers[8:11], ("extra", None)]
    first = store_of(tmp_path / "1" / "0_0", {b"k": message(b"v", headers=headers)})
    second = store_of(tmp_path / "2" / "0_0", {b"k": message(b"v", headers=changed)})
    shown = run("state", "diff", first, second)
    assert shown.code == 1
    for header in ('h7="7"', 'h7="other"', 'h11="11"', "extra=null"):
        assert header in shown.out
    assert "h6" not in shown.out
    assert " more" not in shown.out


def test_times_of_diff_and_ls_are_dates_or_milliseconds(tmp_path, run) -> None:
    sides = [store_of(tmp_path / number / "0_0", {b"k": message(number.encode())}) for number in ("1", "2")]
    for options, time in ((), "2026-01-01T00:00:00.000Z"), (["--epoch-ms"], NEW_YEAR):
        [difference] = rows_of(run("state", "diff", *sides, "--json", *options))
        assert [difference[side]["timestamp"] for side in ("first", "second")] == [time, time]
        task = SAMPLES / "streams-state-0_0"
        [listing] = document(run("state", "ls", task, "-s", "hourly", "--json", *options))
        assert listing["segments"][0]["first"] == time
        assert f" {time} " in run("state", "ls", task, "-s", "hourly", *options).out


def test_diff_shows_header_present_on_one_side_only(tmp_path, run) -> None:
    first = store_of(tmp_path / "1" / "0_0", {b"k": message(b"v", headers=[("a", b"1"), ("b", b"2")])})
    second = store_of(tmp_path / "2" / "0_0", {b"k": message(b"v", headers=[("a", b"1")])})
    shown = run("state", "diff", first, second)
    assert 'b="2"' in shown.out
    assert 'a="1"' not in shown.out
    assert "no header" in shown.out


def test_diff_shows_first_differing_byte_of_long_values(tmp_path, run) -> None:
    long = b"0123456789" * 20
    rows = [
        {b"k": message(long + b"first", headers=[("a", long + b"one")])},
        {b"k": message(long + b"other", headers=[("a", long + b"two")])},
    ]
    sides = [store_of(tmp_path / str(number) / "0_0", row) for number, row in enumerate(rows)]
    shown = re.sub(r"\s", "", run("state", "diff", *sides).out)
    for part in ("first", "other", "one", "two", "byte192:"):
        assert part in shown


@pytest.mark.parametrize("damaged", [1, 2])
def test_diff_continues_after_a_damaged_row(damaged, tmp_path, run) -> None:
    rows = {b"a": message(b"1"), b"b": message(b"2"), b"c": message(b"3")}
    others = {**rows, b"c": message(b"4")}
    (rows if damaged == 1 else others)[b"b"] = b"\xff\xff\xff"
    first, second = store_of(tmp_path / "1" / "0_0", rows), store_of(tmp_path / "2" / "0_0", others)
    differs = run("state", "diff", first, second, "--json")
    assert (differs.code, [json.loads(line)["key"] for line in differs.lines]) == (1, ["c"])
    assert "key 62" in differs.err
    assert "1 damaged row" in differs.err
    with pytest.raises(DamagedRowError):
        list(lh.state.diff(first, second))
    errors: list[DamagedRowError] = []
    assert [row.key for row in lh.state.diff(first, second, on_error=errors.append)] == [b"c"]
    assert [error.key for error in errors] == [b"b"]


def test_diff_fails_if_only_damaged_rows_differ(tmp_path, run) -> None:
    first = store_of(tmp_path / "1" / "0_0", {b"a": message(b"1")})
    second = store_of(tmp_path / "2" / "0_0", {b"a": b"\xff"})
    assert run("state", "diff", first, second).code == 1


def test_verify_prints_errors_of_each_store_in_one_json_document(tmp_path, run) -> None:
    store_of(tmp_path / "0_0", {b"a": b"\xff", b"b": message(b"1"), b"c": b"\xff"})
    store_of(tmp_path / "0_1", {b"a": message(b"1")})
    result = run("state", "verify", tmp_path, "--json")
    documents = json.loads(result.out)
    assert [[error["key"] for error in document["errors"]] for document in documents] == [["a", "c"], []]
    assert result.code == 1


@pytest.mark.parametrize("command", ["ls", "get", "check", "verify", "upgrade", "diff"])
@pytest.mark.parametrize(
    ("directory", "reason"), [("nowhere", "no such file or directory"), ("file", "not a directory")]
)
def test_unreadable_directory_is_named(run, tmp_path, monkeypatch, command, directory, reason) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    more = {
        "get": ["key"],
        "check": ["--to", "4.4"],
        "upgrade": ["--yes"],
        "diff": [SAMPLES / "streams-state-0_0"],
    }.get(command, [])
    result = run("state", command, directory, *more)
    assert (result.code, result.out, result.err) == (3, "", f"letterhead: cannot read {directory}: {reason}\n")


def test_diff_names_missing_changelog(run) -> None:
    result = run("state", "diff", SAMPLES / "streams-state-0_0", "nowhere")
    assert (result.code, result.err) == (3, "letterhead: cannot read nowhere: no such file or directory\n")


def test_trial_copies_only_database_files(task: Path, tmp_path: Path, run: Any, monkeypatch: Any) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    store = task / "rocksdb" / "latest"
    (store / "sub").symlink_to(tmp_path)
    (store / "x").symlink_to(secret)
    (store / "big").write_bytes(bytes(1000))
    copied = []
    monkeypatch.setattr(
        shutil, "copy2", lambda *paths, **options: copied.append(paths[0].name) or real(*paths, **options)
    )
    result = run("state", "check", task, "--store", "latest", "--to", "4.4", "--layout", "headers", "--try")
    assert result.code == 0, result.err
    assert "no row differs" in result.out
    assert not {"sub", "x", "big", "LOCK"}.intersection(copied)
    assert "CURRENT" in copied
    (store / "999999.sst").symlink_to(secret)
    result = run("state", "check", task, "--store", "latest", "--to", "4.4", "--layout", "headers", "--try")
    assert (result.code, "999999.sst is a link" in result.err) == (1, True), result.err


real = shutil.copy2
