"""The data source ``letterhead-iggy`` against a server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import letterhead as lh
from letterhead import spark as lhs
from tests.iggy.server import Server
from tests.iggy.test_write import table

pytestmark = pytest.mark.iggy_server

KILLS = int(os.environ.get("LETTERHEAD_DRIVER_KILLS", "1"))
"""How often the driver is killed. A start of Spark takes long."""

APP = Path(__file__).with_name("stream_app.py")


def fill(server: Server, topic: str, count: int, first: int = 0) -> None:
    data = table(first + count).drop_columns("key").slice(first)
    lh.write.iggy(data, server.address, stream="tests", topic=topic)


def options(server: Server, topic: str, **more: str) -> dict[str, str]:
    return {"address": server.address, "stream": "tests", "topic": topic, **more}


def retries(rows: list[Any]) -> list[int]:
    return sorted(row.retry for row in rows)


def test_batch_query_reads_all_rows(server: Server, create: Callable[..., str], spark: Any) -> None:
    topic = create(2)
    fill(server, topic, 3000)
    frame = (
        spark.read.format("letterhead-iggy")
        .options(**options(server, topic, minPartitions="5"))
        .options(**lhs.options(headers={"tenant": "string", "retry": "int32"}))
        .load()
    )
    assert frame.columns == [
        "stream", "topic", "partition", "offset", "timestamp", "origin_timestamp", "id", "payload", "tenant", "retry",
    ]  # fmt: skip
    assert frame.rdd.getNumPartitions() == 5
    rows = frame.collect()
    assert retries(rows) == list(range(3000))
    assert {row.tenant for row in rows} == {"acme"}
    for partitions in ("[1]", "1"):
        some = spark.read.format("letterhead-iggy").options(
            **options(server, topic, partitions=partitions, startingOffsets='{"1": 10}', endingOffsets='{"1": 15}')
        )
        assert [row.offset for row in some.load().collect()] == [10, 11, 12, 13, 14]


def test_address_is_read_and_written_as_options_are(server: Server, create: Callable[..., str], spark: Any) -> None:
    source, target = create(2), create(2)
    fill(server, source, 100)
    rows = spark.read.format("letterhead").load(f"{server.address}/tests/{source}")
    rows.write.format("letterhead").mode("append").option("partition", "partition").save(
        f"{server.address}/tests/{target}"
    )
    written = spark.read.format("letterhead").load(f"{server.address}/tests/{target}/0")
    compared = ["id", "payload"]
    assert sorted(written.select(compared).collect()) == sorted(rows.where("partition = 0").select(compared).collect())
    assert written.count() > 0


def test_batch_query_writes_rows_with_ids(server: Server, create: Callable[..., str], spark: Any) -> None:
    source, target = create(2), create(2)
    fill(server, source, 2000)
    (
        spark.read.format("letterhead-iggy").options(**options(server, source)).load()
        .write.format("letterhead-iggy").mode("append").options(**options(server, target, partition="partition")).save()
    )  # fmt: skip
    tables = []
    for topic in (source, target):
        with lh.read.iggy(server.address, stream="tests", topic=topic) as reader:
            tables.append(reader.read_all().select(["partition", "id", "origin_timestamp", "headers", "payload"]))
    order = [("id", "ascending")]
    assert tables[0].sort_by(order).equals(tables[1].sort_by(order))


def test_stream_continues_from_checkpoint(
    server: Server, create: Callable[..., str], spark: Any, tmp_path: Path
) -> None:
    source, target = create(2), create()
    counts = []
    for first, count in ((0, 700), (700, 0), (700, 900)):
        if count:
            fill(server, source, count, first)
        query = (
            spark.readStream.format("letterhead-iggy")
            .options(**options(server, source, startingOffsets="earliest", maxOffsetsPerTrigger="500"))
            .load()
            .writeStream.format("letterhead-iggy")
            .options(**options(server, target, partition="0"))
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(540)
        assert query.exception() is None
        counts.append(sum(progress.numInputRows for progress in query.recentProgress))
    assert counts == [700, 0, 900]
    with lh.read.iggy(server.address, stream="tests", topic=target, headers={"retry": "int32"}) as reader:
        assert sorted(reader.read_all()["retry"].to_pylist()) == list(range(1600))


def test_key_selects_partition_of_written_row(server: Server, create: Callable[..., str], spark: Any) -> None:
    ours, direct = create(5), create(5)
    rows = table(200).select(["payload", "key"])
    frame = spark.createDataFrame(rows.to_pylist(), "payload binary, key string").repartition(2)
    writer = frame.write.format("letterhead-iggy").mode("append")
    writer.options(**options(server, ours, partitionKey="key")).save()
    lh.write.iggy(rows, server.address, stream="tests", topic=direct, partition_key="key")
    written = []
    for topic in (ours, direct):
        with lh.read.iggy(server.address, stream="tests", topic=topic, columns=["partition", "payload"]) as reader:
            written.append(sorted(map(tuple, (row.values() for row in reader.read_all().to_pylist()))))
    assert written[0] == written[1]
    assert len({partition for partition, _ in written[0]}) > 1


def test_timestamps_bound_a_batch_query(server: Server, create: Callable[..., str], spark: Any) -> None:
    topic = create(2)
    fill(server, topic, 2000)
    time.sleep(0.01)
    since = time.time_ns() // 1_000_000
    time.sleep(0.01)
    fill(server, topic, 500, 2000)

    def count(**more: object) -> int:
        settings = {name: str(value) for name, value in more.items()}
        return spark.read.format("letterhead-iggy").options(**options(server, topic, **settings)).load().count()

    assert count(startingTimestamp=since) == 500
    assert count(endingTimestamp=since) == 2000
    assert count(startingTimestamp=since, endingTimestamp=since) == 0
    assert count(startingTimestamp=0, endingTimestamp=since + 3_600_000) == 2500


def test_checkpoint_of_another_topic_is_rejected(server: Server, create: Callable[..., str]) -> None:
    from letterhead.spark.sources.iggy import IggySource

    reader = IggySource(options(server, create(), startingOffsets="earliest"))._query()
    from letterhead.spark.sources.offset_queries import OffsetStreamReader

    with pytest.raises(ValueError, match="the checkpoint is of topic tests/other"):
        OffsetStreamReader(reader).latestOffset({"tests/other": {"0": 1}})


@pytest.mark.full
@pytest.mark.timeout(300 + 120 * KILLS)
def test_killed_driver_loses_and_repeats_nothing(
    server: Server, create: Callable[..., str], spark: Any, tmp_path: Path
) -> None:
    count = 10_000 + 10_000 * KILLS
    topic = create(2)
    fill(server, topic, count)
    rows = str(count // (4 * KILLS + 2))
    commits = tmp_path / "checkpoint" / "commits"
    moments = random.Random(1)
    for _ in range(KILLS):
        before = len(list(commits.glob("[0-9]*")))
        with started(server, topic, tmp_path, rows) as driver:
            while driver.poll() is None and len(list(commits.glob("[0-9]*"))) <= before:
                time.sleep(0.02)
            time.sleep(moments.random())  # into the next batch
            os.killpg(driver.pid, signal.SIGKILL)
            assert driver.wait(30) == -signal.SIGKILL, "the stream ended before it was killed"
    with started(server, topic, tmp_path, rows) as driver:
        assert driver.wait(540) == 0, (tmp_path / "log").read_text()[-4000:]
    assert retries(spark.read.parquet(str(tmp_path / "table")).select("retry").collect()) == list(range(count))


def started(server: Server, topic: str, directory: Path, rows: str) -> subprocess.Popen[bytes]:
    with (directory / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(APP), server.address, topic, str(directory), rows],
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def test_spark_columns_match_arrow(server: Server, create: Callable[..., str]) -> None:
    from letterhead.spark.sources.iggy import IggySource

    source = IggySource(options(server, create()))
    assert source.arrow_schema().field("timestamp").type == pa.timestamp("us", "UTC")
    assert source.schema()["id"].dataType.simpleString() == "binary"


def test_mapping_with_errors_is_rejected() -> None:
    from letterhead.spark.sources.iggy import IggySource

    where = {"address": "iggy://u:p@h", "stream": "s", "topic": "t", "mapping": "kafka-gateway"}
    assert IggySource(where).arrow_schema().names[-3:] == ["key", "value", "headers"]
    assert IggySource(where | {"where": "tenant = 'acme'"}).arrow_schema().names[-3:] == ["key", "value", "headers"]
    with pytest.raises(ValueError, match="mapping needs errors='raise'"):
        IggySource(where | {"errors": "null"}).arrow_schema()


def test_password_is_in_no_plan_or_error(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    secret = "never-to-be-seen"
    where = {"address": f"iggy://a:{secret}@127.0.0.1:1", "stream": "s", "topic": "t", "timeoutMs": "200"}
    frame = spark.read.format("letterhead-iggy").options(**where).load()
    printed = [repr(frame), frame._jdf.queryExecution().toString()]
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1 did not answer") as raised:
        frame.collect()
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1 did not answer") as unwritten:
        spark.createDataFrame([("x",)], "payload string").write.format("letterhead-iggy").mode("append").options(
            **where
        ).save()
    frame.explain(True)
    out, err = capfd.readouterr()
    assert not any(secret in text for text in (*printed, str(raised.value), str(unwritten.value), out, err))


def followed(
    server: Server, topic: str, spark: Any, directory: Path, **more: str
) -> tuple[list[tuple[int, int]], Exception | None]:
    """Continue a stream to Parquet; return partition and offset of all rows so far, and the error."""
    query = (
        spark.readStream.format("letterhead-iggy")
        .options(**options(server, topic, startingOffsets="earliest", **more))
        .options(**lhs.options(columns=["partition", "offset"]))
        .load()
        .writeStream.format("parquet")
        .options(path=str(directory / "table"), checkpointLocation=str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    error = None
    try:
        assert query.awaitTermination(540)
    except StreamingQueryException as raised:
        error = raised
    assert list((directory / "table").glob("*.parquet")), error
    rows = spark.read.parquet(str(directory / "table")).collect()
    return sorted((row.partition, row.offset) for row in rows), error


def pairs(*counts: int) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, count in enumerate(counts) for offset in range(count)]


@pytest.mark.full
def test_partition_added_under_checkpoint_is_read_from_start(
    server: Server, create: Callable[..., str], spark: Any, tmp_path: Path
) -> None:
    topic = create()
    fill(server, topic, 300)
    assert followed(server, topic, spark, tmp_path) == (pairs(300), None)
    server.call("POST", f"/streams/tests/topics/{topic}/partitions", {"partitions_count": 1})
    lh.write.iggy(table(700).drop_columns("key"), server.address, stream="tests", topic=topic, partition=1)
    fill(server, topic, 100)
    assert followed(server, topic, spark, tmp_path) == (pairs(400, 700), None)


@pytest.mark.full
def test_purged_messages_fail_stream_unless_loss_is_accepted(
    server: Server, create: Callable[..., str], spark: Any, tmp_path: Path
) -> None:
    topic = create()
    fill(server, topic, 300)
    assert followed(server, topic, spark, tmp_path) == (pairs(300), None)
    server.call("DELETE", f"/streams/tests/topics/{topic}/purge")
    fill(server, topic, 100)
    rows, error = followed(server, topic, spark, tmp_path)
    assert rows == pairs(300)
    assert "the partition ends at 100" in str(error)
    assert "failOnDataLoss=false" in str(error)
    assert followed(server, topic, spark, tmp_path, failOnDataLoss="false") == (pairs(300), None)
    fill(server, topic, 250)
    # The purged partition has 350 messages now: those after the offset of the checkpoint are read.
    assert followed(server, topic, spark, tmp_path, failOnDataLoss="false") == (pairs(350), None)
