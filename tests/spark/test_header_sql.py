"""``header_columns`` and the text of ``sql``: the values and errors of ``select_headers`` and ``header``, without letterhead."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions

import letterhead as lh
from letterhead import cli
from letterhead import spark as lhs
from tests.spark.frames import HEADERS, collected, explained

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
def test_struct_has_columns_of_select_headers(orders: Any, engine: Any, errors: Any) -> None:
    struct = lhs.header_columns("headers", COLUMNS, engine=engine, errors=errors).alias("h")
    read = orders.orderBy("offset").select("offset", struct).select("offset", "h.*")
    selected = orders.orderBy("offset").transform(lhs.select_headers, COLUMNS, keep=["offset"], errors=errors)
    assert read.schema.names == selected.schema.names
    assert collected(read) == collected(selected)


def test_struct_is_planned_without_join_or_python(spark: Any) -> None:
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
        ({"headers": {"k": "int64:json"}, "engine": "spark"}, "type 'int64:json' is not read by Spark's expressions"),
        ({"engine": "spark", "format": "kip82-typed", "errors": "column"}, "and kip82-typed has others"),
    ],
)
def test_options_that_need_arrow_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lhs.header_columns("headers", **{"headers": {"k": "string"}, **options})


def test_sql_text_of_header_runs_in_persistent_view(spark: Any, orders: Any) -> None:
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


def test_command_prints_select_list_items(orders: Any, capsys: pytest.CaptureFixture[str]) -> None:
    orders.createOrReplaceTempView("printed_orders")
    assert cli.main(["sql", "--headers", "tenant,cents=amount_cents:int64", "--errors", "column"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 3
    read = orders.sparkSession.sql(f"select offset, {printed} from printed_orders order by offset")
    columns = {"tenant": "string", "cents": lh.field("int64", key="amount_cents")}
    selected = lhs.select_headers(orders, columns, keep=["offset"], errors="column")
    assert collected(read) == collected(selected.orderBy("offset"))


def test_sql_text_rejects_unreadable_values(spark: Any) -> None:
    rows = pa.array([[{"key": "k", "value": b"one"}]], HEADERS)
    df = spark.createDataFrame(pa.table({"headers": rows}))
    with pytest.raises(PySparkException, match="kafka: column k: 3 bytes where int64 takes 8"):
        df.selectExpr(lhs.sql("headers", "k", "int64")).collect()
    texts = df.selectExpr("transform(headers, h -> struct(h.key as key, string(h.value) as value)) headers")
    with pytest.raises(PySparkException, match="headers of kafka are read from array<struct<key:string,value:binary>>"):
        texts.selectExpr(lhs.sql("headers", "k", "string")).collect()
    with pytest.raises(ValueError, match=r"type 'int64:json' is not read .*: select_headers reads it in Python"):
        lhs.sql("headers", "k", "int64:json")


PACKED = {
    "tenant": "string", "retry": lh.field("int", key="attempt"), "amount": "bigint", "rate": "float64:le", "at": "timestamp_ms",
    "seen": "timestamp:iso", "day": "date:text", "price": "decimal(9,2):text", "ok": "boolean", "bytes": "binary:base64",
    "id": "uuid", "wide": "int128", "digits": "int64:text", "tags": "array<string>", "hops": "array<timestamp:iso>",
    "prices": lh.field("array<decimal(9,2):text>", key="price"), "last": "string",
}  # fmt: skip


def rows_to_pack(spark: Any) -> Any:
    row = spark.sql("""select 1 n, 'acme' tenant, -3 retry, 5L amount, -0.1D rate, timestamp_millis(5) at,
        timestamp_micros(1769848200000001) seen, date'2026-01-31' day, 12.50BD price, true ok, X'00ff' bytes,
        '00112233-4455-6677-8899-aabbccddeeff' id, cast('-12345678901234567890123456789012345678' as decimal(38,0)) wide,
        cast(7 as smallint) digits, array('a', null, '') tags, array(timestamp_micros(1769848200000001)) hops,
        array(1.50BD, -0.05BD) prices, 'z' last""")
    nulls = ", ".join(f"cast(null as {type}) {name}" for name, type in row.dtypes[1:])
    typed = row.selectExpr("n", *(f"cast({name} as {type}) {name}" for name, type in row.dtypes[1:]))
    empty = {name: functions.expr(f"cast(array() as {type})") for name, type in row.dtypes if type.startswith("array")}
    return typed.union(spark.sql(f"select 2 n, {nulls}")).union(typed.withColumns({"n": functions.lit(3), **empty}))


@pytest.mark.parametrize("nulls", ["skip", "keep"])
def test_sql_text_makes_headers_like_pack_headers(spark: Any, nulls: Any) -> None:
    df = rows_to_pack(spark)
    df = df.withColumns({"price": df.price.cast("decimal(9,2)"), "prices": df.prices.cast("array<decimal(9,2)>")})
    packed = lhs.pack_headers(df, PACKED, nulls=nulls, keep=["n"]).orderBy("n")
    written = df.selectExpr("n", f"{lhs.sql_pack(PACKED, nulls=nulls)} as headers").orderBy("n")
    assert collected(written) == collected(packed)
    assert written.schema.simpleString() == packed.schema.simpleString()


def test_persistent_view_makes_headers(spark: Any) -> None:
    """As a model of dbt: no function of the session is named, and another session reads it."""
    spark.sql("create table pack_orders as select 'acme' as tenant, 3 as retry, X'01' as value")
    try:
        headers = lhs.sql_pack({"tenant": "string", "retry": "int"})
        spark.sql(f"create view pack_view as select value, {headers} as headers from pack_orders")
        [row] = spark.newSession().sql("select * from pack_view").collect()
        assert row == (b"\1", [("tenant", b"acme"), ("retry", b"\0\0\0\3")])
    finally:
        spark.sql("drop view if exists pack_view")
        spark.sql("drop table pack_orders")


def test_sql_text_writes_only_values_in_range(spark: Any) -> None:
    for column, type, text in [
        ("'acme'", "bigint", "column k: int64 is written from .*not from string"),
        ("1.55BD", "decimal(9,1):text", r"written from decimal\(9,1\), not from decimal\(3,2\)"),
        ("300", "int8", "header k: the number does not fit int8"),
        ("timestamp_micros(1)", "timestamp_ms", "header k: the time has more decimals than timestamp_ms"),
        ("timestamp_ntz'2026-01-31 00:00:00'", "timestamp_ms", "not from timestamp_ntz"),
    ]:
        with pytest.raises(PySparkException, match=text):
            spark.sql(f"select {column} as k").selectExpr(lhs.sql_pack({"k": type})).collect()
    with pytest.raises(PySparkException, match=r"column k: int64 is written from .*not from string"):
        spark.sql("select array('acme') as k").selectExpr(lhs.sql_pack({"k": "array<bigint>"})).collect()
    with pytest.raises(ValueError, match="do not join a list by split=: pack_headers writes it"):
        lhs.sql_pack({"k": lh.field("array<string>", split=",")})
    with pytest.raises(ValueError, match="can be read, but not written"):
        lhs.sql_pack({"k": "int64:json"})
