"""Spark 4.3 passes columns of Parquet to Arrow UDFs as they are (``columnarInput``, on by default); ``mapInArrow`` gets rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.spark.frame import HEADERS as LISTS
from tests.spark.frames import HEADERS, collected, explained, plain

SETTING = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
TENANT = {"tenant": "string"}
ROWS = 10_000  # two batches of the Parquet reader and a part of one


@pytest.fixture(scope="module")
def table(samples: Path) -> pa.Table:
    """Return values of a store and lists of headers, some of them null, in row groups of another size than batches."""
    values = pq.read_table(samples / "store-latest-0.parquet")["value"].to_pylist()
    lists = pq.read_table(samples / "orders-0.parquet")["headers"].to_pylist()
    return pa.table({
        "value": pa.array([values[n % len(values)] if n % 7 else None for n in range(ROWS)], pa.binary()),
        "headers": pa.array([lists[n % len(lists)] if n % 5 else None for n in range(ROWS)], HEADERS),
    })  # fmt: skip


@pytest.fixture(scope="module")
def frame(spark: Any, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("columnar") / "both.parquet"
    pq.write_table(table, path, row_group_size=3_333)
    return spark.read.parquet(str(path))


@pytest.fixture(params=["true", "false"])
def setting(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    default = spark.conf.get(SETTING)
    spark.conf.set(SETTING, request.param)
    yield request.param
    spark.conf.set(SETTING, default)


def whole(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()


def selected(table: pa.Table, name: str, format: str) -> pa.Array:
    return pa.array(lha.select(whole(table, name), TENANT, format=format)).field("tenant")


def headers() -> list[Any]:
    return [
        lhs.header("value", "tenant", "string", format="streams-timestamped").alias("of_bytes"),
        lhs.header("headers", "tenant", "string", engine="arrow").alias("of_lists"),
    ]


def test_parquet_headers_are_read_with_default_settings(spark: Any, frame: Any, table: pa.Table) -> None:
    assert spark.conf.get(SETTING) == "true"
    expected = {
        "of_bytes": plain(selected(table, "value", "streams-timestamped")),
        "of_lists": plain(selected(table, "headers", "kafka")),
    }
    assert collected(frame.select(*headers())) == expected
    acme = sum(tenant == "acme" for tenant in expected["of_bytes"])
    assert frame.where(headers()[0] == "acme").count() == acme > 0


def test_arrow_udf_returns_lists_from_columns(frame: Any, table: pa.Table) -> None:
    # A lambda is pickled by value; workers cannot import this module.
    decoded = F.arrow_udf(lambda values: pa.array(lha.decode(values, "streams-timestamped")).field("headers"), LISTS)
    lists = collected(frame.select(decoded("value").alias("headers")))["headers"]
    assert lists == plain(pa.array(lha.decode(whole(table, "value"), "streams-timestamped")).field("headers"))


def test_arrow_udf_skips_conversion_to_rows(frame: Any, setting: str) -> None:
    for header in headers():
        plan = explained(frame.select(header))
        assert "ArrowEvalPython" in plan
        assert ("ColumnarToRow" in plan) is (setting == "false")


def test_dataframe_functions_read_rows(frame: Any, setting: str) -> None:
    plan = explained(lhs.select_headers(frame, TENANT, column="value", format="streams-timestamped"))
    assert "MapInArrow" in plan
    assert "ColumnarToRow" in plan
