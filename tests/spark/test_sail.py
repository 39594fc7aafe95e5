"""What is different on Sail, and what it is not used for; these tests run with ``--engine sail`` only."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import functions as F

from letterhead import spark as lhs
from letterhead.spark.sail import active_is_sail, is_sail
from letterhead.state import Processor, Topology
from tests.helpers import pages

KAFKA = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"


@pytest.fixture(scope="module", autouse=True)
def sources(spark):
    lhs.register(spark)


@pytest.fixture(scope="module")
def orders(spark, samples):
    return spark.read.parquet(str(samples / "orders-0.parquet"))


def test_sail_is_detected(spark):
    assert is_sail(spark)
    assert active_is_sail()


def test_sail_page_runs(spark, monkeypatch):
    """Its session is that of the tests: another server in this process is stopped with it."""
    monkeypatch.chdir(pages.ROOT)
    names = {}
    pages.run("docs/how-to/sail.md", names)
    try:
        assert names["tenants"].count() == 10_000
    finally:
        names["server"].stop()


def test_edited_headers_can_be_filtered(orders):
    """Sail has no lambdas in filters that it moves into the Parquet reader."""
    edited = lhs.edit_headers(orders, drop=["tenant"], append={"source": ("offset", "int64")})
    assert edited.where(lhs.header("headers", "source", "int64") == F.col("offset")).count() == 10_000
    assert edited.where(lhs.header("headers", "tenant", "string").isNotNull()).count() == 0


def test_spark_expressions_are_rejected(spark):
    with pytest.raises(ValueError, match="engine='spark' does not run on Sail"):
        lhs.header("headers", "k", "string", engine="spark")


def test_streams_are_rejected(spark):
    stream = spark.readStream.format("rate").load().withColumn("value", F.lit(b""))
    with pytest.raises(ValueError, match="Sail does not run Python on streams"):
        lhs.decode_headers(stream, "kafka", column="value")


def test_functions_reject_source_read_as_stream(spark, samples):
    """Sail passes no option or call by which a source could tell a stream from a batch."""
    stream = spark.readStream.format("letterhead-segments").load(str(samples / "orders-0"))
    assert stream.isStreaming
    with pytest.raises(ValueError, match="Sail does not run Python on streams"):
        lhs.select_headers(stream, {"tenant": "string"})


def test_source_read_as_stream_is_read_once(spark, samples):
    stream = spark.readStream.format("letterhead-segments").load(str(samples / "orders-0"))
    assert stream.count() == 10_000
    query = stream.writeStream.format("noop").start()
    while query.isActive:
        time.sleep(0.1)
    assert query.exception() is None


def test_restoring_stores_is_rejected(spark, tmp_path):
    changelog = spark.createDataFrame([], f"{KAFKA}, headers array<struct<key:string,value:binary>>")
    with pytest.raises(ValueError, match="restore_stores does not run on Sail"):
        lhs.restore_stores(changelog, tmp_path / "0_{partition}", "latest")


def test_window_stores_are_rejected(spark):
    records = spark.createDataFrame([], KAFKA)
    with pytest.raises(ValueError, match="changelog_table of a window store does not run on Sail"):
        lhs.changelog_table(records, store_type="window", retention=1)


def test_topologies_are_rejected(spark):
    class Copy(Processor):
        def process(self, record):
            self.context.forward(record)

    topology = Topology().add_source("in", "a").add_processor("copy", Copy, "in").add_sink("out", "b", "copy")
    with pytest.raises(ValueError, match="run_topology does not run on Sail"):
        spark.createDataFrame([], KAFKA).transform(lhs.run_topology, topology, application_id="app")
