"""``header_columns`` and the text of ``sql``: the values and errors of ``select_headers`` and ``header``, without letterhead."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import letterhead as lh
from frames import HEADERS, collected, explained
from letterhead import cli
from letterhead import spark as lhs

pytestmark = pytest.mark.spark_only

COLUMNS = {
    "tenant": "string", "cents": lh.field("int64", key="amount_cents"), "again": lh.field("int32 | int32:text", key="retry"),
    "weight": lh.field("float64", key="weight_kg", default=0.5), "route": "array<string>",
    "time": lh.field("timestamp:iso", key="ce_time"), "type": lh.field("string", key="ce_type", required=True),
}  # fmt: skip


@pytest.fixture
def orders(spark: Any, samples: Any) -> Any:
    return spark.read.parquet(str(samples / "orders-0.parquet")).where("offset < 300")


@pytest.mark.parametrize("errors", ["null", "column"])
@pytest.mark.parametrize("engine", ["spark", "arrow"])
def test_a_struct_has_the_columns_of_select_headers(orders: Any, engine: Any, errors: Any) -> None:
    struct = lhs.header_columns("headers", COLUMNS, engine=engine, errors=errors).alias("h")
    read = orders.orderBy("offset").select("offset", struct).select("offset", "h.*")
    selected = orders.orderBy("offset").transform(
        lhs.select_headers("headers", "kafka", COLUMNS, keep=["offset"], errors=errors)
    )
    assert read.schema.names == selected.schema.names
    assert collected(read) == collected(selected)


def test_a_struct_is_planned_without_a_join_and_without_python(spark: Any) -> None:
    df = spark.range(2).selectExpr("array(named_struct('key', string(id), 'value', binary(string(id)))) headers", "id")
    struct = lhs.header_columns("headers", {"0": "string", "1": "int64"}).alias("h")
    plan = explained(df.where("id > 0").select("id", struct).where("h.`0` = 'a'").select("h.`1`"))
    assert "Join" not in plan
    assert "Python" not in plan


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"engine": "spark", "lenient": True}, "apply to binary columns"),
        ({"engine": "spork"}, "engine"),
        ({"columns": {"k": "int64:json"}, "engine": "spark"}, "type 'int64:json' is not read by Spark's expressions"),
        ({"engine": "spark", "format": "kip82-typed", "errors": "column"}, "and kip82-typed has others"),
    ],
)
def test_what_needs_arrow_is_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lhs.header_columns("headers", **{"columns": {"k": "string"}, **options})


def test_the_text_of_a_header_is_run_by_a_view_that_persists(spark: Any, orders: Any) -> None:
    orders.write.saveAsTable("sql_orders")
    try:
        items = ", ".join(
            f"{lhs.sql('t.headers', field.key or name, field.type, **_options(field))} as {name}"
            for name, field in _fields().items()
        )
        spark.sql(f"create view sql_view as select offset, {items} from sql_orders t")
        expected = [
            lhs.header("headers", field.key or name, field.type, **_options(field)).alias(name)
            for name, field in _fields().items()
        ]
        by_column = orders.orderBy("offset").select("offset", *expected)
        assert collected(spark.newSession().sql("select * from sql_view order by offset")) == collected(by_column)
    finally:
        spark.sql("drop view if exists sql_view")
        spark.sql("drop table sql_orders")


def _fields() -> dict[str, lh.Field]:
    return {name: lh.field(type) if isinstance(type, str) else type for name, type in COLUMNS.items()}


def _options(field: Any) -> dict[str, Any]:
    return {"repeat": field.repeat, "required": field.required, "default": field.default, "errors": "null"}


def test_the_command_prints_the_items_of_a_select_list(orders: Any, capsys: pytest.CaptureFixture[str]) -> None:
    orders.createOrReplaceTempView("printed_orders")
    assert cli.main(["sql", "--headers", "tenant,cents=amount_cents:int64", "--errors", "column"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 3
    read = orders.sparkSession.sql(f"select offset, {printed} from printed_orders order by offset")
    columns = {"tenant": "string", "cents": lh.field("int64", key="amount_cents")}
    selected = orders.transform(lhs.select_headers("headers", "kafka", columns, keep=["offset"], errors="column"))
    assert collected(read) == collected(selected.orderBy("offset"))


def test_the_text_rejects_what_it_cannot_read(spark: Any) -> None:
    rows = pa.array([[{"key": "k", "value": b"one"}]], HEADERS)
    df = spark.createDataFrame(pa.table({"headers": rows}))
    with pytest.raises(PySparkException, match="kafka: column k: 3 bytes where int64 takes 8"):
        df.selectExpr(lhs.sql("headers", "k", "int64")).collect()
    texts = df.selectExpr("transform(headers, h -> struct(h.key as key, string(h.value) as value)) headers")
    with pytest.raises(PySparkException, match="headers of kafka are read from array<struct<key:string,value:binary>>"):
        texts.selectExpr(lhs.sql("headers", "k", "string")).collect()
    with pytest.raises(ValueError, match=r"type 'int64:json' is not read .*: select_headers reads it in Python"):
        lhs.sql("headers", "k", "int64:json")
