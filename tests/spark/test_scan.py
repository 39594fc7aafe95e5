"""Scans in Spark: whatever the partitions and batches, the same as one pass over all rows."""

from __future__ import annotations

import doctest
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.spark import scan


@pytest.fixture(scope="module")
def orders(spark, samples) -> Any:
    return spark.read.parquet(str(samples / "orders-0.parquet"))


def test_scan_examples_run(orders):
    result = doctest.testmod(scan, extraglobs={"orders": orders})
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("partitions", [1, 7])
def test_dataframe_is_scanned_as_one_column(orders, samples, partitions):
    whole = lha.scan(pq.read_table(samples / "orders-0.parquet")["headers"], "kafka")
    report = lhs.scan_headers(orders.repartition(partitions), "kafka")
    assert report.to_dict() == whole.to_dict()
    assert report["amount_cents"].guesses[0].type == "int64"


def test_message_bytes_and_damaged_values_are_scanned(spark, samples):
    state = spark.read.parquet(str(samples / "store-latest-0.parquet"))
    values = pq.read_table(samples / "store-latest-0.parquet")["value"].to_pylist()
    damaged = [b"\x05\x01" if row % 10 == 0 else value for row, value in enumerate(values)]
    frame = spark.createDataFrame(pa.table({"value": pa.array(damaged, pa.binary())}))
    report = lhs.scan_headers(frame, "streams-timestamped", column="value")
    assert report.statistics.bad_rows == len(damaged[::10]) > 0
    assert report.to_dict() == {**lha.scan(pa.array(damaged, pa.binary()), "streams-timestamped").to_dict(),
                               "code": report.code()}  # fmt: skip
    assert 'select_headers(df, columns, format="streams-timestamped", column="value"' in report.code()
    assert lhs.scan_headers(state, "streams-timestamped", column="value").statistics.bad_rows == 0


def test_batches_are_scanned_by_message(spark):
    messages = [
        lh.encode(lh.Message(offset=n, key=None, value=b"v", headers={"n": lh.Int8(n)}), "kip82-message")
        for n in range(3)
    ]
    frame = spark.createDataFrame([(messages[0] + messages[1],), (messages[2],)], "value binary")
    report = lhs.scan_headers(frame, "kip82-messages", column="value")
    assert report.statistics.rows == 3
    assert [(guess.type, guess.confidence) for guess in report["n"].guesses] == [("int8", "stated")]


def test_keys_are_bounded_over_all_partitions(spark):
    rows = [([(f"key-{n}", b"v"), ("often", b"v")],) for n in range(200)]
    frame = spark.createDataFrame(rows, "headers array<struct<key: string, value: binary>>").repartition(4)
    report = lhs.scan_headers(frame, max_keys=10)
    assert len(report.statistics.keys) == 10
    assert report["often"].statistics.headers == 200
    assert report.more_keys == 191
    assert report.statistics.more_headers == 191


def test_generated_code_runs_on_dataframe(orders):
    variables: dict[str, Any] = {"df": orders}
    exec(lhs.scan_headers(orders).code(), variables)
    result = (
        variables["headers"].selectExpr("count(*)", "count(error)", "max(amount_cents)", "sum(size(route))").collect()
    )
    assert [tuple(row) for row in result] == [(10_000, 0, 4_999_974, 3824)]


def test_empty_dataframe_is_scanned(orders):
    report = lhs.scan_headers(orders.limit(0))
    assert (report.statistics.rows, report.keys) == (0, [])


def test_unsuitable_arguments_are_rejected_before_job(spark, orders, tmp_path):
    with pytest.raises(ValueError, match="unknown column 'header': did you mean 'headers'"):
        lhs.scan_headers(orders, column="header")
    with pytest.raises(TypeError, match="column 'topic' is string, and kafka is read from binary or array"):
        lhs.scan_headers(orders, column="topic")
    with pytest.raises(ValueError, match="unknown format 'kafak'"):
        lhs.scan_headers(orders, "kafak")
    stream = spark.readStream.schema("headers array<struct<key: string, value: binary>>").parquet(str(tmp_path))
    with pytest.raises(ValueError, match="a stream has no end"):
        lhs.scan_headers(stream)
