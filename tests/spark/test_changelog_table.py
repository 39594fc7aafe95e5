"""A changelog topic as a table: what it says is in a store is what is there, byte for byte."""

from __future__ import annotations

import doctest
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import spark as lhs
from letterhead.spark import changelog
from letterhead.spark import restore as restoring
from letterhead.state import TopologyTestDriver
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.storage.keys import session_parts, window_parts
from letterhead.state.storage.versioned_rows import LATEST
from tests.spark import topology_app as app
from tests.spark.frames import failure

TABLES: dict[str, dict[str, Any]] = {
    "counts": {},
    "windows": {"store_type": "window", "retention": 4 * app.MINUTE},
    "sessions": {"store_type": "session", "retention": timedelta(minutes=4)},
    "versions": {"store_type": "versioned", "retention": 3 * app.MINUTE},
}
NOT_ON_SAIL = ("windows", "sessions")
"""Their keys are cut by expressions that Sail refuses, see test_sail.py."""


@pytest.fixture
def orders(spark, samples):
    # Sail reads times of this file, which are INT96, without their zone.
    return spark.read.parquet(str(samples / "orders-0.parquet")).withColumn(
        "timestamp", F.col("timestamp").cast("timestamp")
    )


def test_record_without_key_raises_and_is_named(orders):
    """Its rows would all become one."""
    log = orders.select("partition", "offset", "timestamp", "key", "value", "headers")
    without = log.withColumn("key", F.expr("if(offset in (41, 42), null, key)"))
    text = failure(without.where("offset < 42").transform(lhs.changelog_table))
    assert "the record at offset 41 of partition 0 has no key" in text
    kept = without.where("key is not null").transform(lhs.changelog_table).where("key is null")
    assert kept.count() == 0


def test_changelog_table_example_runs(orders):
    result = doctest.testmod(changelog, extraglobs={"orders": orders})
    assert result.attempted > 0
    assert result.failed == 0


@pytest.fixture(scope="module")
def logged() -> dict[int, tuple[dict[str, list[ChangelogRecord]], app.Rows, app.Rows]]:
    """The changelogs of the application on the test driver; what its stores hold, and what they hold when restored."""
    apps = {}
    records = app.inputs(500)
    for partition in range(app.PARTITIONS):
        with TopologyTestDriver(app.topology("partition"), application_id="app") as driver:
            for record in records:
                if record.partition == partition:
                    driver.pipe("in", app.raw(record))
            logs = {name: driver.take_changelog(name) for name in TABLES}
            kept = app.rows_of(driver)
        with TopologyTestDriver(app.topology("partition"), application_id="app") as driver:
            for name, log in logs.items():
                driver.restore(name, log)
            apps[partition] = logs, kept, app.rows_of(driver)
    return apps


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.spark_only] * (name in NOT_ON_SAIL)) for name in TABLES]
)
def test_table_has_rows_of_store(spark, tmp_path: Path, logged, name):
    sent = [
        app.Input(
            f"app-{name}-changelog",
            partition,
            offset,
            record.timestamp,
            record.key,
            record.value,
            [tuple(header) for header in record.headers] or None,
        )
        for partition, (logs, _, _) in logged.items()
        for offset, record in enumerate(logs[name])
    ]
    app.write_files(sent, tmp_path / "changelog", 3)
    frame = spark.read.parquet(str(tmp_path / "changelog"))
    table = lhs.changelog_table(frame, **TABLES[name]).collect()

    stored_rows: dict[int, list[tuple[bytes, bytes]]] = {}
    for row in table:
        stored_rows.setdefault(row.partition, []).append((bytes(row.stored_key), bytes(row.stored)))
    deleted = 0
    for partition, (logs, kept, restored) in logged.items():
        for rows in (kept, restored):
            expected = sorted(row for (store, _), rows in rows.items() if store == name for row in rows)
            if name == "versions":
                expected = [row for row in expected if row[0].startswith(LATEST)]
            assert len(expected) >= 3
            assert sorted(stored_rows[partition]) == expected
        deleted += len({record.key for record in logs[name]}) - len(stored_rows[partition])
    # What was deleted, or has expired, is in the changelog and not in the table.
    assert deleted > 0

    by_place = {(record.partition, record.offset): record for record in sent}
    for row in table:
        record = by_place[row.partition, row.offset]
        assert bytes(row.payload) == record.value
        assert round(row.timestamp.timestamp() * 1000) == record.timestamp
        assert [(header.key, header.value and bytes(header.value)) for header in row.headers] == (record.headers or [])
        if name in ("counts", "windows"):
            value = lh.decode(bytes(row.stored), "streams-timestamped")
            assert value.timestamp == record.timestamp
        else:
            value = lh.decode(bytes(row.stored)[8 if name == "versions" else 0 :], "streams")
        assert [tuple(header) for header in value.headers] == (record.headers or [])
        assert value.payload == record.value
        key = bytes(row.key)
        if name == "windows":
            assert (key, row.window_start, 0) == window_parts(record.key)
        elif name == "sessions":
            assert (key, row.session_start, row.session_end) == session_parts(record.key)
        else:
            assert key == record.key


@pytest.mark.spark_only  # see NOT_ON_SAIL
def test_rows_are_kept_without_retention(spark, tmp_path: Path, logged):
    sent = [
        app.Input("log", 0, offset, record.timestamp, record.key, record.value, None)
        for offset, record in enumerate(logged[0][0]["windows"])
    ]
    app.write_files(sent, tmp_path / "changelog", 1)
    frame = spark.read.parquet(str(tmp_path / "changelog"))
    last = {record.key: record.value for record in sent}
    assert lhs.changelog_table(frame, "window").count() == sum(value is not None for value in last.values())
    whole = partial(lhs.changelog_table, store_type="window", retention=3 * app.MINUTE, segment_interval=7 * app.MINUTE)
    fine = partial(lhs.changelog_table, store_type="window", retention=3 * app.MINUTE, segment_interval=1)
    starts = [{row.window_start for row in frame.transform(table).collect()} for table in (whole, fine)]
    latest = max(window_parts(record.key)[1] for record in sent)
    assert starts[1] < starts[0]
    assert min(starts[1]) >= latest - 3 * app.MINUTE


def test_invalid_arguments_are_named(spark, samples, orders):
    with pytest.raises(ValueError, match="unknown store type 'windows': did you mean 'window'"):
        lhs.changelog_table(spark.range(1), "windows")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a versioned store drops late records: pass retention="):
        lhs.changelog_table(spark.range(1), "versioned")
    with pytest.raises(ValueError, match="rows of a key-value store do not expire"):
        lhs.changelog_table(spark.range(1), retention=5)
    with pytest.raises(ValueError, match="segment_interval= applies to window and session stores"):
        lhs.changelog_table(spark.range(1), "window", segment_interval=5)
    with pytest.raises(TypeError, match="retention must be a number of milliseconds or a timedelta, not str"):
        lhs.changelog_table(spark.range(1), "window", retention="1 hour")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="retention cannot be negative"):
        lhs.changelog_table(spark.range(1), "window", retention=-1)
    with pytest.raises(ValueError, match="headers"):
        orders.drop("headers").transform(lhs.changelog_table)
    stream = spark.readStream.schema(orders.schema).parquet(str(samples))
    with pytest.raises(ValueError, match=r"the DataFrame is a stream.*use foreachBatch"):
        lhs.changelog_table(stream)


@pytest.mark.spark_only  # Sail refuses restore_stores, see test_sail.py
def test_stores_are_restored_by_spark_tasks(spark, tmp_path: Path, logged):
    sent = [
        app.Input("app-windows-changelog", partition, offset, record.timestamp, record.key, record.value,
                  [tuple(header) for header in record.headers] or None)
        for partition, (logs, _, _) in logged.items()
        for offset, record in enumerate(logs["windows"])
    ]  # fmt: skip
    app.write_files(sent, tmp_path / "changelog", 3)
    frame = spark.read.parquet(str(tmp_path / "changelog"))
    options: dict[str, Any] = {"store_type": "window", "retention": 4 * app.MINUTE}
    with pytest.raises(ValueError, match=r"is one directory: put \{partition\} into it"):
        lhs.restore_stores(frame, tmp_path / "one", "windows", **options)
    with pytest.raises(Exception, match="topic app-windows-changelog is not named <application>-other-changelog"):
        lhs.restore_stores(frame, tmp_path / "0_{partition}", "other", **options)
    forced = lhs.restore_stores(frame, tmp_path / "forced" / "0_{partition}", "other", force=True, **options)
    assert forced.records == len(sent)
    done = lhs.restore_stores(frame, tmp_path / "0_{partition}", "windows", **options)
    assert done.records == len(sent)
    for partition, (logs, _, restored) in logged.items():
        assert done.offsets[partition] == len(logs["windows"]) - 1
        records = pq.read_table(tmp_path / "changelog", filters=[("partition", "=", partition)]).sort_by("offset")
        ours = tmp_path / "ours" / f"0_{partition}"
        lh.state.restore(records, ours, "windows", start="earliest", **options)
        assert list(lh.state.diff(done.directories[partition], ours)) == []
        expected = sum(len(rows) for (store, _), rows in restored.items() if store == "windows")
        assert lh.read.state(done.directories[partition]).read_all().num_rows == expected


@pytest.mark.spark_only
def test_restore_example_runs(orders):
    result = doctest.testmod(restoring, extraglobs={"orders": orders})
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_suppress_buffer_becomes_columns(spark, tmp_path: Path):
    # Made by hand: a record at 1000 with the header a, its old value at 900 with the header o.
    context = bytes.fromhex("00000000000003e8 0000000000000007 00000002 696e 00000000 00000001 00000001 61 00000001 31")
    values = bytes.fromhex("00000003 6f6c64 fffffffe 00000003 6e6577 0000000000001388")
    old = bytes.fromhex("0a 02 02 6f 02 78 0000000000000384")
    headers = [("v", b"\3"), ("vh.old", old)]
    sent = [
        app.Input("log", 0, 0, 5, b"gone", context + values, headers),
        app.Input("log", 0, 1, 5, b"k", context + values, headers),
        app.Input("log", 0, 2, 5, b"gone", None, None),
    ]
    app.write_files(sent, tmp_path / "changelog", 1)
    (row,) = spark.read.parquet(str(tmp_path / "changelog")).transform(lhs.changelog_table, "suppress").collect()
    assert (bytes(row.key), row.offset, row.buffer_time, bytes(row.new_payload)) == (b"k", 1, 5000, b"new")
    assert (row.new_timestamp, [(header.key, bytes(header.value)) for header in row.new_headers]) == (
        1000,
        [("a", b"1")],
    )
    for name in ("old", "prior"):
        columns_of_store = row[f"{name}_timestamp"], bytes(row[f"{name}_payload"])
        assert (*columns_of_store, [(header.key, bytes(header.value)) for header in row[f"{name}_headers"]]) == (
            900,
            b"old",
            [("o", b"x")],
        )
