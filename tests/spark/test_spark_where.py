"""Conditions in Spark: the option `where`, filters that Spark pushes, and `where_headers`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import spark as lhs
from letterhead._row_request import RowRequest
from tests.helpers.pages import run

HEADERS = {"tenant": "string", "retry": "int32"}


@pytest.fixture
def orders(spark: Any, samples: Path) -> Any:
    lhs.register(spark)
    return spark.read.format("letterhead-segments").options(**lhs.options(headers=HEADERS)), str(samples / "orders-0")


def test_where_option_selects_rows(spark: Any, samples: Path, orders: Any) -> None:
    source, path = orders
    selected = source.option("where", "tenant = 'acme' and offset >= 9990").load(path)
    assert sorted(row.offset for row in selected.select("offset").collect()) == [9991, 9996]
    state = spark.read.format("letterhead-state").option("store", "latest").option("where", "tenant = 'acme'")
    assert state.load(str(samples / "streams-state-0_0")).count() == 936
    with pytest.raises(Exception, match="it is not supported"):
        _ = (
            source.option("where", "length(tenant) = 4").load(path).schema
        )  # which Spark Connect asks for when it is read


@pytest.mark.spark_only
def test_pushed_filters_leave_plan_and_select_same_rows(spark: Any, orders: Any) -> None:
    source, path = orders
    condition = (F.col("tenant") == "acme") & (F.col("retry") >= 0) & (F.col("offset") > 5000) & (F.length("value") > 5)
    expected = sorted(row.offset for row in source.load(path).where(condition).select("offset").collect())
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = source.load(path).where(condition)
        plan = pushed._jdf.queryExecution().optimizedPlan().toString()
        assert sorted(row.offset for row in pushed.select("offset").collect()) == expected
        kept = source.option("errors", "column").load(path).where(condition)
        assert "acme" in kept._jdf.queryExecution().optimizedPlan().toString()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert len(expected) > 0
    assert "length(value" in plan
    assert "acme" not in plan
    assert "5000" not in plan


@pytest.mark.spark_only
def test_filters_pushed_to_stores_select_same_rows(spark: Any, samples: Path) -> None:
    lhs.register(spark)
    source = spark.read.format("letterhead-state").option("store", "latest").options(**lhs.options(headers=HEADERS))
    path = str(samples / "streams-state-0_0")
    condition = F.col("tenant").isin("acme", "zoo") & ~(F.col("retry") > 1) & (F.length("value") > 5)
    expected = sorted(bytes(row.key) for row in source.load(path).where(condition).select("key").collect())
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = source.load(path).where(condition)
        plan = pushed._jdf.queryExecution().optimizedPlan().toString()
        assert sorted(bytes(row.key) for row in pushed.select("key").collect()) == expected
        both = source.option("where", "tenant >= 'b'").load(path).where(condition)
        assert both.count() == 0
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert len(expected) > 0
    assert "length(value" in plan
    assert "acme" not in plan


def test_partially_applied_filters_are_returned_to_spark() -> None:
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        GreaterThan,
        In,
        IsNotNull,
        IsNull,
        LessThanOrEqual,
        Not,
        StringContains,
        StringEndsWith,
        StringStartsWith,
    )  # fmt: skip

    from letterhead.kafka.record_sets import WHERE_FIELDS
    from letterhead.spark.sources.pushdown import push
    from letterhead.where.program import resolve

    headers: Any = {"tenant": "string", "retry": "int32", "ratio": "float64", "route": "array<string>"}
    applied = [
        EqualTo(("tenant",), "acme"), Not(EqualTo(("retry",), 3)), EqualNullSafe(("tenant",), "acme"),
        GreaterThan(("offset",), 5), LessThanOrEqual(("retry",), 2), In(("tenant",), ("a", "b")), IsNull(("retry",)),
        IsNotNull(("key",)), StringStartsWith(("tenant",), "a"), EqualTo(("key",), bytearray(b"k")),
    ]  # fmt: skip
    others = [
        EqualTo(("ratio",), 0.5), IsNull(("ratio",)), EqualTo(("route",), ["a"]), IsNull(("route",)),
        In(("tenant",), ("a", None)), EqualTo(("tenant",), None), EqualTo(("a", "b"), 1), EqualTo(("unknown",), 1),
        StringContains(("tenant",), "a"), StringEndsWith(("tenant",), "a"), Not(StringContains(("tenant",), "a")),
        GreaterThan(("tenant",), 5), EqualTo(("headers",), []),
    ]  # fmt: skip

    def pushed(filters: list[Any], where: Any = None, *, keeps_errors: bool) -> Any:
        request = RowRequest(headers=headers, where=where, errors="column" if keeps_errors else "raise")
        new, left = push(filters, request, lambda asked: resolve(asked.where, WHERE_FIELDS, asked.headers))
        return new.where, left

    where, left = pushed([*others, *applied], keeps_errors=False)
    assert left == others
    assert str(where) == str(pushed(applied, keeps_errors=False)[0])
    for pushed_filter in applied:
        condition, left = pushed([pushed_filter], keeps_errors=False)
        assert (left, condition is None) == ([], False), pushed_filter
        # Rows with errors are returned whether they fulfil it or not.
        condition, left = pushed([pushed_filter], keeps_errors=True)
        assert (left, condition is None) == ([pushed_filter], False), pushed_filter
    for pushed_filter in others:
        assert pushed([pushed_filter], keeps_errors=False) == (None, [pushed_filter])
    before = lh.col("offset") > 7
    assert pushed(others, before, keeps_errors=False)[0] is before
    assert str(before) in str(pushed(applied[:1], before, keeps_errors=False)[0])


def test_where_headers_keeps_rows_and_columns(spark: Any, samples: Path) -> None:
    frame = spark.read.parquet(str(samples / "orders-0.parquet"))
    transform = partial(lhs.where_headers, where=(lh.col("tenant") == "acme") & (lh.col("retry", "int32") > 0))
    selected = frame.transform(transform)
    assert selected.columns == frame.columns
    typed = lhs.select_headers(frame, HEADERS, keep=["offset"])
    expected = typed.where("tenant = 'acme' and retry > 0")
    assert sorted(row.offset for row in selected.select("offset").collect()) == sorted(
        row.offset for row in expected.select("offset").collect()
    )
    bad = lhs.where_headers(frame, lh.col("tenant", "int16") > 0, keep=["offset"], errors="column")
    assert bad.columns == ["offset", "error"]
    assert bad.where("error is null").count() == 0


@pytest.mark.parametrize("serialized", [False, True])
def test_select_where_matches_filter_of_typed_columns(spark: Any, samples: Path, serialized: bool) -> None:
    frame = spark.read.parquet(str(samples / "orders-0.parquet"))
    typed = lhs.select_headers(frame, HEADERS, keep=["offset"])
    if serialized:
        frame = lhs.encode_headers(frame, "kafka", keep=["offset"])
    condition = (lh.col("tenant") == "acme") & (lh.col("retry") > 0)
    selected = lhs.select_headers(frame, HEADERS, where=condition, keep=["offset"])
    expected = typed.where("tenant = 'acme' and retry > 0")
    assert selected.columns == expected.columns
    assert sorted(selected.collect()) == sorted(expected.collect()) != []


def test_exploded_batches_have_messages_selected_by_condition(spark: Any) -> None:
    messages = [lh.Message(offset=at, headers=[("n", b"\0\0\0" + bytes([at % 3]))]) for at in range(9)]
    frame = spark.createDataFrame([("a", bytearray(lh.batch(messages, "record-batch")))], "name string, data binary")
    condition = (lh.col("n") == 1) & (lh.col("offset") > 1)
    options: Any = {"columns": ["offset"], "headers": {"n": "int32"}, "keep": ["name"]}
    rows = lhs.explode_batches(frame, "record-batch", column="data", where=condition, **options).collect()
    assert sorted(map(tuple, rows)) == [("a", 4, 1), ("a", 7, 1)]


def test_conditions_page_runs(spark: Any, samples: Path) -> None:
    lhs.register(spark)
    frame = spark.read.parquet(str(samples / "orders-0.parquet"))
    names = {"spark": spark, "frame": frame}
    run("docs/how-to/filter-by-headers.md", names)
    assert names["acme"].count() == 1390
    assert names["orders"].where("offset >= 9990").count() <= 2
