"""Spark's real-time mode, which accepts few operators and none that runs Python: the functions that are expressions run in it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import spark as lhs

pytestmark = [
    pytest.mark.spark_only,
    pytest.mark.skipif(tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 1), reason="came with Spark 4.1"),
]

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def source(spark: Any) -> tuple[Any, DataFrame]:
    """Return a source of real-time mode, and its messages with headers."""
    jvm = spark._jvm
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    stream = sources.LowLatencyMemoryStream.singlePartition(
        spark._jsparkSession, jvm.org.apache.spark.sql.Encoders.STRING()
    )
    headers = f"""array(named_struct('key', 'tenant', 'value', binary(value)),
        named_struct('key', 'traceparent', 'value', binary('{PARENT}'))) headers"""
    return stream, DataFrame(stream.toDF(), spark).selectExpr("value", headers)


def start(df: DataFrame, path: Path) -> Any:
    """Start a query that writes its rows to a file."""

    def write(row: Any) -> None:
        with (path / "rows").open("a", encoding="utf-8") as file:
            file.write(f"{row!r}\n")

    writer = df.writeStream.foreach(write).outputMode("update").trigger(realTime="5 seconds")
    return writer.option("checkpointLocation", str(path / "checkpoint")).start()


def test_expressions_run_in_real_time_mode(spark: Any, tmp_path: Path) -> None:
    stream, df = source(spark)
    found = lhs.where_headers(df, lh.col("tenant") == "acme", engine="spark")
    edited = lhs.edit_headers(found, drop=["other"], append={"source": ("value", "string")})
    selected = lhs.select_headers(edited, {"tenant": "string", "traceparent": "string"}, keep=["headers"], engine="spark", errors="column",)  # fmt: skip
    read = selected.select(
        "tenant",
        "error",
        lhs.header("headers", "source", "string"),
        lhs.header_columns("headers", {"tenant": "string"}).alias("h"),
        lhs.traceparent("traceparent").alias("t"),
    ).select("tenant", "error", "source", F.col("h.tenant").alias("again"), "t.parent_id")
    query = start(read, tmp_path)
    try:
        values = spark._jvm.java.util.ArrayList()
        values.add("hooli")
        values.add("acme")
        stream.addData(spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq())
        deadline = time.monotonic() + 120
        while not (tmp_path / "rows").exists() and query.exception() is None and time.monotonic() < deadline:
            time.sleep(0.5)
        assert query.exception() is None
    finally:
        query.stop()
    expected = "Row(tenant='acme', error=None, source='acme', again='acme', parent_id='b7ad6b7169203331')\n"
    assert (tmp_path / "rows").read_text() == expected


def test_python_does_not_run_in_real_time_mode(spark: Any, tmp_path: Path) -> None:
    _, df = source(spark)
    query = start(lhs.select_headers(df, {"tenant": "string"}, engine="arrow"), tmp_path)
    try:
        with pytest.raises(PySparkException, match="OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"):
            query.awaitTermination(60)
    finally:
        query.stop()
