"""The data source ``letterhead-kafka``, next to Spark's own source ``kafka``: the same options, the same rows."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

import letterhead as lh
from letterhead import spark as lhs
from letterhead.spark.sources.kafka import KafkaSource
from tests.helpers import pages
from tests.kafka.broker import Broker
from tests.kafka.topics import Record, create, orders, produce
from tests.kafka.written import CODECS, TOPICS, create_with, ends, numbered, producer, send, write_all

pytestmark = pytest.mark.broker

OWN, OURS = "kafka", "letterhead-kafka"
ISOLATIONS = ("read_uncommitted", "read_committed")


@pytest.fixture(scope="module")
def spark(spark):
    """The session, to which both sources are known."""
    lhs.register(spark)
    return spark


def collected(spark, source: str, **options: Any) -> list:
    """All rows of a batch query, in the order of their places."""
    reader = spark.read.format(source)
    for name, value in options.items():
        reader = reader.option(_name(name), value)
    return sorted(reader.load().collect(), key=lambda row: (row.topic, row.partition, row.offset))


def _name(name: str) -> str:
    return {"servers": "kafka.bootstrap.servers", "isolation": "kafka.isolation.level"}.get(name, name)


def same(spark, **options: Any) -> list:
    """The rows that both sources give."""
    expected = collected(spark, OWN, **options)
    assert collected(spark, OURS, **options) == expected
    return expected


# --- without a session -----------------------------------------------------------------------------------------------

WHERE = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "a"}, r"kafka\.bootstrap\.servers"),
        ({"kafka.bootstrap.servers": "a:1"}, "exactly one of the options assign, subscribe, subscribePattern"),
        (WHERE | {"subscribePattern": "o.*"}, "not subscribe and subscribePattern"),
        (WHERE | {"startingOffset": "earliest"}, "unknown option 'startingOffset': did you mean 'startingOffsets'"),
        (WHERE | {"kafka.sasl.mechanis": "PLAIN"}, r"did you mean 'kafka\.sasl\.mechanism'"),
        (WHERE | {"kafka.auto.offset.reset": "latest"}, "startingOffsets"),
        (WHERE | {"startingOffsets": '{"orders": 3}'}, "startingOffsets must be earliest, latest or JSON such as"),
        (WHERE | {"startingOffsets": '{"orders": {"0": 3, "0": 4}}'}, "startingOffsets must be earliest, latest or JSON"),
        (WHERE | {"startingOffsets": "earlier"}, "must be earliest, latest or JSON .* not 'earlier'"),
        (WHERE | {"startingTimestamp": "today"}, "milliseconds since 1970, not 'today'"),
        (WHERE | {"failOnDataLoss": "no"}, "true or false, not 'no'"),
        (WHERE | {"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be at least 1, not 0"),
        (WHERE | {"minPartitions": "many"}, "minPartitions must be a whole number, not 'many'"),
        (WHERE | {"minOffsetsPerTrigger": "5"}, "a trigger does not wait for records here"),
        (WHERE | {"columns": '["offsets"]'}, "offsets"),
        (WHERE | {"headers": '{"tenant": "text"}'}, "unknown type 'text'"),
        (WHERE | {"headers": '{"offset": "string"}'}, "two columns 'offset' would be made"),
        (WHERE | {"kafka.isolation.level": "committed"}, "read_committed"),
    ],
)  # fmt: skip
def test_meaningless_options_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        KafkaSource(options).schema()


def test_spark_source_options_without_effect_are_accepted():
    more = {
        "kafkaConsumer.pollTimeoutMs": "1",
        "fetchOffset.numRetries": "1",
        "groupIdPrefix": "p",
        "kafka.group.id": "g",
    }
    assert len(KafkaSource(WHERE | more).schema()) == 7


def test_columns_are_written_as_options_and_read_back():
    written = lhs.options(
        columns=["offset", "timestampType"],
        headers={"tenant": "string", "route": "array<string>", "n": lh.field("int32:le", key="retry", required=True)},
    )
    assert written == {
        "columns": '["offset", "timestampType"]',
        "headers": json.dumps({
            "tenant": {"type": "string"},
            "route": {"type": "string", "repeat": "all"},
            "n": {"type": "int32:le", "key": "retry", "required": True},
        }),
    }  # fmt: skip
    assert KafkaSource(WHERE | written).schema().simpleString() == (
        "struct<offset:bigint,timestampType:int,tenant:string,route:array<string>,n:int>"
    )
    alone = lhs.options(columns=[], headers={"tenant": "string"})
    assert KafkaSource(WHERE | alone).schema().simpleString() == "struct<tenant:string>"
    with pytest.raises(TypeError, match="column 'a': a key must be str here, not int"):
        lhs.options(headers={"a": lh.field("string", key=3)})
    with pytest.raises(TypeError, match="a list of column names"):
        lhs.options(columns="offset")


# --- batch -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_every_row_matches_spark_source(broker, written, spark, isolation):
    rows = same(spark, servers=broker, subscribePattern=f"{written}.*", includeHeaders=True, isolation=isolation)
    assert {row.topic for row in rows} == {written + topic for topic in TOPICS}
    assert {row.timestampType for row in rows} == {0, 1}
    assert {row.partition for row in rows if row.topic == f"{written}codecs"} == set(range(len(CODECS)))
    assert any(row.headers is None for row in rows)
    own, ours = (
        spark.read.format(source)
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", f"{written}codecs")
        .load()
        for source in (OWN, OURS)
    )
    assert ours.dtypes == own.dtypes


def test_address_is_read_as_options_are(broker, written, spark, tmp_path):
    def rows(frame) -> list:
        return sorted(frame.collect(), key=lambda row: (row.partition, row.offset))

    address = f"kafka://{broker}/{written}codecs"
    ours = spark.read.format("letterhead").load(address)
    theirs = (
        spark.read.format(OURS).option("kafka.bootstrap.servers", broker).option("subscribe", f"{written}codecs").load()
    )
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)
    one = rows(spark.read.format("letterhead").load(f"{address}/1"))
    assert one == [row for row in rows(theirs) if row.partition == 1] != []
    stream = spark.readStream.format("letterhead").option("startingOffsets", "earliest").load(address)
    sink = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query = sink.format("parquet").option("path", str(tmp_path / "rows")).start()
    assert query.awaitTermination(540)
    assert rows(spark.read.parquet(str(tmp_path / "rows"))) == rows(theirs)


def test_offsets_partitions_and_assignments_match_spark_source(broker, written, spark):
    topic = f"{written}codecs"
    starts = {str(partition): 10 * partition for partition in range(6)} | {"0": -2, "5": 0}
    ends = {str(partition): 10 * partition + 31 for partition in range(6)} | {"1": -1, "5": 0}
    rows = same(
        spark,
        servers=broker,
        subscribe=topic,
        startingOffsets=json.dumps({topic: starts}),
        endingOffsets=json.dumps({topic: ends}),
        minPartitions=11,
    )
    assert {(row.partition, row.offset) for row in rows} == {
        (partition, offset)
        for partition, (start, end) in enumerate([(0, 31), (10, 107), (20, 51), (30, 61), (40, 71)])
        for offset in range(start, end)
    }
    assert len(same(spark, servers=broker, assign=json.dumps({topic: [1, 3]}))) == 2 * 107
    frame = spark.read.format(OURS).options(**{"kafka.bootstrap.servers": broker, "subscribe": topic})
    assert frame.option("minPartitions", 11).load().rdd.getNumPartitions() == 11
    assert frame.option("maxRecordsPerPartition", 50).load().rdd.getNumPartitions() == 15


@pytest.mark.full
def test_times_match_spark_source(broker, spark):
    create_with(broker, "source-times", 2)
    sender = producer(broker)
    zero = 1_700_000_000_000
    for number in range(40):
        sender.produce("source-times", value=b"%d" % number, partition=number % 2, timestamp=zero + number * 1000)
    assert sender.flush(30) == 0
    where = {"servers": broker, "subscribe": "source-times"}
    times = json.dumps({"source-times": {"0": zero + 5000, "1": zero + 39_000}})
    assert len(same(spark, **where, startingOffsetsByTimestamp=times)) == 17 + 1
    rows = same(spark, **where, startingTimestamp=zero + 3500, endingTimestamp=zero + 10_001)
    assert [row.value for row in rows] == [b"4", b"6", b"8", b"10", b"5", b"7", b"9"]
    late = {"startingTimestamp": zero + 60_000}
    assert same(spark, **where, **late, startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(Exception, match="source-times-0 has no record at 1700000060000 or later"):
        collected(spark, OURS, **where, **late)


@pytest.mark.full
def test_headers_become_columns_without_building_other_columns(broker, written, spark):
    options = lhs.options(
        columns=["partition", "offset"], headers={"tenant": "string", "retry": "int32", "route": "array<string>"}
    )
    where = {"kafka.bootstrap.servers": broker, "subscribe": f"{written}codecs"}
    ours = spark.read.format(OURS).options(**where, **options).load()
    own = spark.read.format(OWN).options(**where, includeHeaders="true").load()
    columns = {"tenant": "string", "retry": "int32", "route": "array<string>"}
    expected = lhs.select_headers(own, columns, keep=["partition", "offset"])
    order = lambda row: (row.partition, row.offset)  # noqa: E731
    rows = sorted(ours.collect(), key=order)
    known = [row.asDict() for row in sorted(expected.collect(), key=order)]
    assert [row.asDict() for row in rows] == [{**row, "route": row["route"] or []} for row in known]
    assert sum(row.tenant == "acme" for row in rows) == 5 * 80


@pytest.mark.full
def test_conditions_select_same_rows_as_spark(broker, written, spark):
    pytest.importorskip("sqlglot")
    options = lhs.options(columns=["partition", "offset"], headers={"tenant": "string", "retry": "int32"})
    where = {"kafka.bootstrap.servers": broker, "subscribe": f"{written}codecs"}
    ours = spark.read.format(OURS).options(**where, **options)
    condition = "tenant = 'acme' and retry >= 0 and offset >= 5"
    order = lambda row: (row.partition, row.offset)  # noqa: E731
    expected = sorted(ours.load().where(condition).collect(), key=order)
    assert 0 < len(expected) < 5 * 80
    assert sorted(ours.option("where", condition).load().collect(), key=order) == expected
    ours = spark.read.format(OURS).options(**where, **options)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = ours.load().where(condition)
        plan = pushed._jdf.queryExecution().optimizedPlan().toString()
        assert sorted(pushed.collect(), key=order) == expected
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert "acme" not in plan


@pytest.mark.full
def test_missing_topic_or_partition_lists_existing_ones(broker, written, spark):
    topic = f"{written}headless"
    with pytest.raises(Exception, match="there is no topic 'nothing' at"):
        collected(spark, OURS, servers=broker, subscribe="nothing")
    starts = json.dumps({topic: {"0": 3}})
    with pytest.raises(Exception, match=f"{topic}-0: offset 3 cannot be read: it was deleted, and the first one is 50"):
        collected(spark, OURS, servers=broker, subscribe=topic, startingOffsets=starts)
    rows = collected(spark, OURS, servers=broker, subscribe=topic, startingOffsets=starts, failOnDataLoss=False)
    assert [row.offset for row in rows] == list(range(50, 107))
    with pytest.raises(Exception, match="endingOffsets is 500, and the partition ends at 107"):
        collected(spark, OURS, servers=broker, subscribe=topic, endingOffsets=json.dumps({topic: {"0": 500}}))
    with pytest.raises(Exception, match=r"names no offset for .*codecs-1"):
        collected(
            spark,
            OURS,
            servers=broker,
            subscribe=f"{written}codecs",
            startingOffsets=json.dumps({f"{written}codecs": {"0": 3}}),
        )
    with pytest.raises(Exception, match="startingOffsets cannot be latest in a batch query"):
        collected(spark, OURS, servers=broker, subscribe=topic, startingOffsets="latest")


def test_password_is_in_no_plan_or_error(spark, capfd):
    secret = "never-to-be-seen"
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{secret}";'
    frame = (
        spark.read.format(OURS)
        .option("kafka.bootstrap.servers", "127.0.0.1:1")
        .option("kafka.security.protocol", "SASL_PLAINTEXT")
        .option("kafka.sasl.mechanism", "PLAIN")
        .option("kafka.sasl.jaas.config", login)
        .option("kafka.default.api.timeout.ms", "200")
        .option("subscribe", "orders")
        .load()
    )
    printed = [repr(frame), frame._jdf.queryExecution().toString()]
    with pytest.raises(Exception, match=r"no answer from 127\.0\.0\.1:1") as raised:
        frame.collect()
    frame.explain(True)
    out, err = capfd.readouterr()
    assert not any(secret in text for text in (*printed, str(raised.value), out, err))


@pytest.mark.full
def test_page_lists_working_options(broker, spark, samples, tmp_path):
    create(broker, "orders-page")
    produce(broker, "orders-page", orders(samples, 1_000))
    names: dict[str, Any] = {"spark": spark}
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={broker}\n")
    there = {
        "127.0.0.1:9092": broker,
        '"orders"': '"orders-page"',
        "client.properties": str(tmp_path / "client.properties"),
    }
    pages.run("docs/how-to/read-a-topic.md", names, there=there)
    assert len(names["records"]) == 1_007
    table = names["table"]
    assert table.column_names == ["partition", "offset", "timestamp", "tenant", "amount_cents", "route", "error"]
    assert len(table) == 1_007
    by_tenant = table.group_by("tenant").aggregate([("amount_cents", "sum")]).to_pylist()
    assert {row["tenant"]: row["amount_cents_sum"] for row in by_tenant} == {
        row.tenant: row[1] for row in names["totals"].collect()
    }


# --- streams ---------------------------------------------------------------------------------------------------------


class Stream:
    """A streaming query into Parquet, run until nothing is left, again and again."""

    def __init__(self, spark, directory: Path, **options: Any) -> None:
        self._spark = spark
        self.checkpoint, self._out = directory / "checkpoint", directory / "out"
        self._options = {_name(name): value for name, value in options.items()}

    def run(self, source: str = OURS, **more: Any) -> list[int]:
        """Run it; the rows of every batch that had any."""
        frame = self._spark.readStream.format(source).options(**self._options, **more).load()
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start(str(self._out))
        )
        assert query.awaitTermination(540)
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    def rows(self) -> list[tuple[int, int, bytes]]:
        """What was written, in the order of partitions and offsets."""
        return sorted(
            (row.partition, row.offset, row.value) for row in self._spark.read.parquet(str(self._out)).collect()
        )


def expected(first: int, count: int) -> list[tuple[int, int, bytes]]:
    """What :func:`send_both` sent, from an offset on."""
    return [(partition, offset, b"%d" % offset) for partition in (0, 1) for offset in range(first, first + count)]


def send_both(broker: str, topic: str, first: int, count: int) -> None:
    """Send records whose values are their offsets to both partitions."""
    for partition in (0, 1):
        send(producer(broker), topic, [Record(None, b"%d" % n, []) for n in range(first, first + count)], partition)


def test_stream_continues_from_checkpoint_row_for_row(broker, spark, tmp_path):
    create_with(broker, "stream", 2)
    send_both(broker, "stream", 0, 500)
    stream = Stream(spark, tmp_path, servers=broker, subscribe="stream", startingOffsets="earliest")
    assert stream.run(maxOffsetsPerTrigger=400) == [400, 400, 200]
    assert stream.run() == []
    send_both(broker, "stream", 500, 100)
    assert stream.run() == [200]
    assert stream.rows() == expected(0, 600)


@pytest.mark.full
def test_job_of_spark_source_migrates_with_checkpoint(broker, spark, tmp_path):
    create_with(broker, "moved", 2)
    send_both(broker, "moved", 0, 30)
    stream = Stream(spark, tmp_path, servers=broker, subscribe="moved", startingOffsets="earliest")
    assert stream.run(OWN) == [60]
    send_both(broker, "moved", 30, 20)
    assert stream.run(OURS) == [40]
    send_both(broker, "moved", 50, 10)
    assert stream.run(OWN) == [20]
    assert stream.rows() == expected(0, 60)


@pytest.mark.full
def test_running_stream_reads_new_records_and_partitions(broker, spark, tmp_path):
    from confluent_kafka.admin import NewPartitions

    create_with(broker, "running", 1)
    send(producer(broker), "running", [Record(None, b"%d" % n, []) for n in range(50)])
    frame = spark.readStream.format(OURS).options(**{
        "kafka.bootstrap.servers": broker, "subscribe": "running", "startingOffsets": "earliest",
        "kafka.metadata.max.age.ms": "1000",
    }).load()  # fmt: skip
    query = frame.writeStream.format("memory").queryName("running").trigger(processingTime="500 milliseconds").start()
    try:
        query.processAllAvailable()
        send(producer(broker), "running", [Record(None, b"%d" % n, []) for n in range(50, 60)])
        admin = AdminClient({"bootstrap.servers": broker, "log_level": 3})
        for done in admin.create_partitions([NewPartitions("running", 2)]).values():
            done.result(timeout=300)
        send(producer(broker), "running", [Record(None, b"%d" % n, []) for n in range(5)], 1)
        query.processAllAvailable()
        arrived = sorted((row.partition, row.offset, row.value) for row in spark.table("running").collect())
    finally:
        query.stop()
    assert arrived == [
        (partition, offset, b"%d" % offset) for partition, count in ((0, 60), (1, 5)) for offset in range(count)
    ]


@pytest.mark.full
def test_stream_with_deleted_records_fails_and_can_continue(broker, spark, tmp_path):
    create_with(broker, "lossy", 1)
    send(producer(broker), "lossy", [Record(None, b"%d" % n, []) for n in range(50)])
    stream = Stream(spark, tmp_path, servers=broker, subscribe="lossy", startingOffsets="earliest")
    assert stream.run() == [50]
    send(producer(broker), "lossy", [Record(None, b"%d" % n, []) for n in range(50, 100)])
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 3})
    for done in admin.delete_records([TopicPartition("lossy", 0, 70)]).values():
        done.result(timeout=300)
    with pytest.raises(Exception, match="lossy-0: offset 50 cannot be read: it was deleted, and the first one is 70"):
        stream.run()
    assert stream.run(failOnDataLoss="false") == [30]
    assert ends(broker, "lossy") == 100


@pytest.mark.full
def test_recreated_topic_is_not_taken_for_old_one(broker, spark, tmp_path):
    create_with(broker, "anew", 1)
    send(producer(broker), "anew", [Record(None, b"%d" % n, []) for n in range(50)])
    stream = Stream(spark, tmp_path, servers=broker, subscribe="anew", startingOffsets="earliest")
    assert stream.run() == [50]
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 3})
    admin.delete_topics(["anew"])["anew"].result(timeout=300)
    time.sleep(1)
    create_with(broker, "anew", 1)
    send(producer(broker), "anew", [Record(None, b"%d" % n, []) for n in range(10)])
    with pytest.raises(
        Exception, match=r"anew-0: offset 50 cannot be read: the partition ends at 10; .* failOnDataLoss"
    ):
        stream.run()


# --- the full matrix -------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_many_rows_of_every_type_match_spark_source(broker, spark):
    keeps_open = write_all(broker, "many-", 5_000)
    for isolation in ISOLATIONS:
        for parts in (1, 13):
            rows = same(
                spark,
                servers=broker,
                subscribePattern="many-.*",
                includeHeaders=True,
                isolation=isolation,
                minPartitions=parts,
            )
            assert len(rows) > 30_000
    keeps_open.clear()


@pytest.mark.full
def test_restarted_broker_loses_nothing(spark, tmp_path):
    own = Broker(tmp_path / "broker")
    own.start()
    try:
        create_with(own.address, "orders", 2)
        for partition in (0, 1):
            send(producer(own.address), "orders", numbered(20_000), partition)
        frame = (
            spark.read.format(OURS).options(**{"kafka.bootstrap.servers": own.address, "subscribe": "orders"}).load()
        )
        planned = frame.rdd  # the offsets are known, and nothing is read
        own.stop()
        own.start_again()
        assert planned.map(lambda row: (row.partition, row.offset)).distinct().count() == 2 * 20_007
    finally:
        own.stop()
