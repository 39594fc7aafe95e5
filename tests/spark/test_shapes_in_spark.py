"""Columns of headers in the shapes of other systems, in Spark: read as they are, or refused with an expression that fits."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import spark as lhs

SHAPES = {
    "array<struct<key:string,value:string>>": "array(struct('tenant' as key, 'acme' as value))",
    "array<struct<k:string,v:binary>>": "array(struct('tenant' as k, cast('acme' as binary) as v))",
    "array<struct<name:binary,value:binary>>": "array(struct(cast('tenant' as binary) as name, cast('acme' as binary) as value))",
    "map<string,binary>": "map('tenant', cast('acme' as binary))",
    "map<string,string>": "map('tenant', 'acme')",
}
COLUMNS: dict[str, Any] = {"tenant": "string", "n": lh.field("int32", default=7)}


def rows_of(spark: Any, expression: str, name: str = "headers") -> Any:
    return spark.sql(f"select 1 as id, {expression} as {name} union all select 2, null")


@pytest.mark.parametrize("type", SHAPES)
def test_headers_are_read_in_every_shape(spark: Any, type: str) -> None:
    rows = rows_of(spark, SHAPES[type])
    assert rows.schema["headers"].dataType.simpleString() == type
    selected = lhs.select_headers(rows, COLUMNS).orderBy("id").collect()
    assert [tuple(row) for row in selected] == [(1, "acme", 7), (2, None, 7)]
    kept = lhs.where_headers(rows, "tenant = 'acme'")
    assert [row.id for row in kept.collect()] == [1]
    assert kept.schema == rows.schema
    assert lhs.scan_headers(rows, "kafka").keys[0].key == "tenant"


@pytest.mark.spark_only
@pytest.mark.parametrize("type", SHAPES)
def test_spark_expressions_read_every_shape(spark: Any, type: str) -> None:
    rows = rows_of(spark, SHAPES[type])
    selected = lhs.select_headers(rows, COLUMNS, engine="spark").orderBy("id").collect()
    assert [tuple(row) for row in selected] == [(1, "acme", 7), (2, None, 7)]
    select = partial(lhs.select_headers, headers={"tenant": "string"}, engine="spark", keep=["headers"])
    [kept] = rows.transform(select).filter("tenant is not null").collect()
    assert rows.filter("id = 1").first().headers == kept.headers


@pytest.mark.spark_only
def test_spark_expressions_read_struct_field(spark: Any) -> None:
    headers = "array(struct('tenant' as key, cast('acme' as binary) as value))"
    rows = rows_of(spark, f"struct(5 as offset, {headers} as headers)", "redpanda")
    selected = lhs.select_headers(rows, {"tenant": "string"}, column="redpanda.headers", engine="spark")
    assert selected.columns == ["id", "redpanda", "tenant"]
    assert [row.tenant for row in selected.orderBy("id").collect()] == ["acme", None]


def test_struct_field_is_read_by_path(spark: Any) -> None:
    headers = "array(struct('tenant' as key, cast('acme' as binary) as value))"
    rows = rows_of(spark, f"struct(5 as offset, {headers} as headers)", "redpanda")
    selected = lhs.select_headers(rows, {"tenant": "string"}, column="redpanda.headers")
    assert selected.columns == ["id", "redpanda", "tenant"]
    assert [row.tenant for row in selected.orderBy("id").collect()] == ["acme", None]
    kept = lhs.where_headers(rows, "tenant = 'acme'", column="redpanda.headers")
    assert (kept.columns, kept.count()) == (["id", "redpanda"], 1)
    with pytest.raises(ValueError, match=r"unknown column 'redpanda\.header'"):
        lhs.select_headers(rows, {"tenant": "string"}, column="redpanda.header")


@pytest.mark.parametrize("type", SHAPES)
def test_expression_suggested_by_error_fixes_column(spark: Any, type: str) -> None:
    rows, edit = rows_of(spark, SHAPES[type]), partial(lhs.edit_headers, drop=["other"])
    with pytest.raises(TypeError, match=re.escape(f"column 'headers' is {type}, and ")) as refused:
        rows.transform(edit)
    expression = str(refused.value).rpartition(">>: ")[2].removesuffix(" makes it one")
    edited = rows.withColumn("headers", F.expr(expression)).transform(edit).orderBy("id").first()
    assert [(header.key, header.value) for header in edited.headers] == [("tenant", b"acme")]


@pytest.mark.spark_only
def test_non_text_keys_raise(spark: Any) -> None:
    rows = rows_of(spark, "map(cast(x'ff' as binary), cast('b' as binary))")
    for engine in ("arrow", "spark"):
        with pytest.raises(Exception, match=r"not UTF-8|INVALID_UTF8_STRING"):
            lhs.select_headers(rows, {"a": "string"}, engine=engine).collect()


def test_no_field_losing_expression_is_suggested(spark: Any) -> None:
    rows = rows_of(spark, "array(struct('a' as key, cast('b' as binary) as value, 1 as n))")
    with pytest.raises(TypeError) as refused:
        lhs.edit_headers(rows, drop=["other"])
    assert "makes it one" not in str(refused.value)
    assert lhs.select_headers(rows, {"a": "string"}).orderBy("id").first().a == "b"


@pytest.mark.spark_only
def test_map_error_names_column(spark: Any) -> None:
    frame = spark.sql("select map('tenant', cast('acme' as binary)) as headers")
    for column in (lhs.header("headers", "tenant", "string"), lhs.header_columns("headers", {"tenant": "string"})):
        with pytest.raises(
            AnalysisException, match=r'"(outer[(])?headers[)]?" due to .* cannot cast "MAP<STRING, BINARY>"'
        ):
            frame.select(column).collect()
