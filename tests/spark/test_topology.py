"""A topology on Spark: what it writes and what its stores hold is what the test driver says, by key or by partition."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from letterhead import spark as lhs
from letterhead.spark.topology.rows import PAGE_ROWS
from letterhead.state import Topology
from tests.spark import topology_app as app
from tests.spark.frames import failure

MODULES = ["engine", "plan", "rows", "state", "stores"]
SCOPES = ["key", "partition"]
KILLS = 3
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture
def rocksdb(spark: Any) -> Iterator[Any]:
    """The session, with its state in RocksDB."""
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    yield spark
    spark.conf.unset(PROVIDER)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(rocksdb, samples, name):
    orders = rocksdb.read.parquet(str(samples / "orders-0.parquet"))
    result = doctest.testmod(
        importlib.import_module(f"letterhead.spark.topology.{name}"), extraglobs={"orders": orders}
    )
    assert result.failed == 0
    assert result.attempted > 0 or name in ("state", "stores")


# The same as on the driver.


def written_to(directory: Path) -> list[app.Out]:
    """What the sink has, in the order in which it was written: that of its batches, files and rows."""
    return [
        app.Out(
            row["topic"],
            row["partition"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
            round(row["timestamp"].timestamp() * 1000),
            row["changelog"],
        )
        for file in committed(directory)
        for row in pq.read_table(file).to_pylist()
    ]


def committed(directory: Path) -> Iterator[Path]:
    """The files of the batches that ended, by the log of the sink, which sums up what came before now and then."""
    logs = {int(path.name.split(".")[0]): path for path in sorted((directory / "_spark_metadata").glob("[0-9]*"))}
    since = max((number for number, path in logs.items() if path.name.endswith(".compact")), default=0)
    for number in sorted(logs):
        if number >= since:
            for line in logs[number].read_text().splitlines()[1:]:
                yield Path(json.loads(line)["path"].removeprefix("file://"))


def state_of(spark: Any, scope: str, directory: Path) -> dict[Any, app.Rows]:
    """Read Spark's state with its own reader: the rows of each group, by store and segment."""
    name = "state" if scope == "key" else "pages"
    state = (
        spark.read.format("statestore")
        .option("path", str(directory / "checkpoint"))
        .option("stateVarName", name)
        .load()
    )
    stored: dict[Any, app.Rows] = {}
    for row in state.collect():
        rows = stored.setdefault(bytes(row.key[0]) if isinstance(row.key[0], bytearray) else row.key[0], {})
        if scope == "key":
            for store, part in row.value.stores.items():
                for segment, key, value in part.rows:
                    rows.setdefault((store, segment), []).append((bytes(key), bytes(value)))
        else:
            store, segment, first = row.user_map_key
            page = [(bytes(key), bytes(value)) for key, value in row.user_map_value.rows]
            assert page[0][0] == bytes(first)
            assert len(page) <= PAGE_ROWS
            rows.setdefault((store, segment), []).extend(page)
    return {group: {place: sorted(pages) for place, pages in rows.items()} for group, rows in stored.items()}


def check_alike(spark: Any, scope: str, directory: Path, records: list[app.Input]) -> dict[Any, app.Rows]:
    """Compare everything that was written, and everything that is stored, with the test driver; return what is stored."""
    written, state = app.expected(scope, records)
    arrived = written_to(directory / "out")
    assert len(arrived) == sum(map(len, written.values()))
    for group, result in written.items():
        # Groups of a batch are written one after the other: in between nothing of another group is.
        assert subsequence(result, arrived), group
    assert sorted(map(repr, arrived)) == sorted(repr(output) for result in written.values() for output in result)
    stored = {group: rows for group, rows in state_of(spark, scope, directory).items() if rows}
    assert stored == {group: rows for group, rows in state.items() if rows}
    return stored


def subsequence(expected: list[app.Out], messages: list[app.Out]) -> bool:
    rest = iter(messages)
    return all(any(expected_message == message for message in rest) for expected_message in expected)


@pytest.mark.parametrize("scope", SCOPES)
def test_outputs_changelogs_and_state_match_driver(rocksdb, tmp_path, scope):
    records = app.inputs(240)
    app.write_files(records, tmp_path / "in", 3)
    query = app.start(rocksdb, scope, tmp_path)
    assert query.awaitTermination(540)
    assert [progress["numInputRows"] for progress in query.recentProgress] == [80, 80, 80]
    if scope == "key":
        # What RocksDB itself counted. Each key is read once and written once, and looked for by Spark before it is
        # written, which counts its rows.
        for progress, batch in zip(query.recentProgress, (records[:80], records[80:160], records[160:]), strict=True):
            counts = progress["stateOperators"][0]["customMetrics"]
            keys = len({record.key for record in batch})
            assert (counts["rocksdbGetCount"], counts["rocksdbPutCount"]) == (2 * keys, keys)
    state = check_alike(rocksdb, scope, tmp_path, records)
    # It is not empty, and windows have expired: the records are of half an hour, and kept are some minutes.
    assert {store for rows in state.values() for store, _ in rows} == {"counts", "windows", "sessions", "versions"}
    assert len({segment for rows in state.values() for store, segment in rows if store == "windows"}) < 10


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("scope", SCOPES)
def test_repeatedly_killed_query_ends_like_undisturbed_one(rocksdb, tmp_path, scope):
    """Each time in the middle of a batch that has begun; then it ends here."""
    batches = 2 * KILLS + 3
    records = app.inputs(30 * batches)
    app.write_files(records, tmp_path / "in", batches)
    offsets, commits = tmp_path / "checkpoint" / "offsets", tmp_path / "checkpoint" / "commits"
    for kill in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, app.__file__, scope, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            # It ends at least one batch, so that there is a state, and begins another.
            batch = numbered(commits) + 2
            limit = time.monotonic() + 300
            while numbered(offsets) < batch or numbered(commits) >= batch:
                assert process.poll() is None, process.stdout and process.stdout.read()[-4000:]
                assert time.monotonic() < limit
                time.sleep(0.01)
            time.sleep(0.4 * kill)
        finally:
            # The JVM and the workers, too.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert numbered(commits) < batches - 1
    # As if the last one had died a moment earlier: the source has noted the next file, and no batch has it yet. Not where
    # the sink has the batch already: then Spark has written its offsets for certain, and would skip what is in it now.
    begun = offsets / str(numbered(offsets))
    if numbered(offsets) > max(numbered(commits), numbered(tmp_path / "out" / "_spark_metadata")):
        begun.unlink()
        begun.with_name(f".{begun.name}.crc").unlink(missing_ok=True)
    query = app.start(rocksdb, scope, tmp_path)
    assert query.awaitTermination(540)
    # Where a process died between the two logs, one batch takes two files.
    assert batches - 1 - KILLS <= numbered(commits) <= batches - 1
    assert len(query.recentProgress) < batches
    check_alike(rocksdb, scope, tmp_path, records)


def numbered(directory: Path) -> int:
    """The last batch in a log of a checkpoint; -1 if there is none."""
    return max((int(path.name) for path in directory.glob("[0-9]*") if path.name.isdigit()), default=-1)


def test_batch_dataframe_runs_once_from_beginning(rocksdb, tmp_path):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(app)
    records = app.inputs(60)
    app.write_files(records, tmp_path / "in", 2)
    frame = rocksdb.read.parquet(str(tmp_path / "in"))
    result = lhs.run_topology(frame, app.topology("partition"), application_id=app.APPLICATION)
    assert result.dtypes == [
        ("topic", "string"),
        ("partition", "int"),
        ("key", "binary"),
        ("value", "binary"),
        ("headers", "array<struct<key:string,value:binary>>"),
        ("timestamp", "timestamp"),
        ("changelog", "boolean"),
    ]
    written, _ = app.expected("partition", records)
    assert result.where("changelog").count() == sum(output.changelog for out in written.values() for output in out)
    bare = frame.drop("headers").transform(lhs.run_topology, app.topology("partition"), application_id=app.APPLICATION)
    assert [bare.count(), bare.where("size(headers) <> 0").count()] == [result.count(), 0]
    assert {row.topic for row in result.select("topic").collect()} == {
        output.topic for out in written.values() for output in out
    }


def test_invalid_dataframes_are_named(rocksdb, samples):
    orders = rocksdb.read.parquet(str(samples / "orders-0.parquet"))
    run = partial(lhs.run_topology, topology=Topology().add_source("in", "in"), application_id="app")
    with pytest.raises(ValueError, match="offset"):
        orders.drop("offset").transform(run)
    with pytest.raises(TypeError, match="column 'timestamp' is string, and records have timestamp"):
        orders.selectExpr("* except (timestamp)", "'5' as timestamp").transform(run)
    text = failure(orders.where("offset = 7").transform(run))
    assert "topic 'orders' has no source (topics: in)" in text
    assert "at offset 7 of orders-0" in text
    rocksdb.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    with pytest.raises(
        ValueError, match=r"HDFSBacked.* needs RocksDB: spark.conf.set\('spark.*RocksDBStateStoreProvider"
    ):
        orders.transform(run)
