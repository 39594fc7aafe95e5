"""``pack_headers``: headers from columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import spark as lhs
from tests.spark.frames import collected, failure

TYPES = {
    "tenant": "string", "retry": "int", "amount_cents": "bigint", "weight_kg": "double", "traceparent": "string",
}  # fmt: skip


def test_selected_columns_become_headers_again(spark, samples):
    orders = spark.read.parquet(str(samples / "orders-0.parquet"))
    typed = lhs.select_headers(orders, TYPES, keep=["offset"])
    packed = lhs.pack_headers(typed, TYPES)
    assert packed.columns == ["offset", "headers"]
    again = lhs.select_headers(packed, TYPES, keep=["offset"])
    assert collected(again.orderBy("offset")) == collected(typed.orderBy("offset"))


def test_packed_headers_are_written_for_iggy(spark):
    df = spark.createDataFrame([(1, "acme", ["a", "b"])], "id bigint, tenant string, route array<string>")
    packed = lhs.pack_headers(df, ["tenant", "route", "id"], "iggy", keep=["id"])
    [row] = lhs.encode_headers(packed, "iggy").collect()
    assert row.id == 1
    assert lh.decode(bytes(row.headers), "iggy").items() == [
        ("tenant", lh.String("acme")), ("route", lh.String("a")), ("route", lh.String("b")), ("id", lh.Int64(1))
    ]  # fmt: skip


def test_lists_of_headers_are_copied_between_columns(spark):
    lists = pa.array(
        [[{"key": "x", "value": b"1"}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    df = spark.createDataFrame(pa.table({"headers": lists, "b": ["2"]}))
    [row] = lhs.pack_headers(df, {"b": "string", "headers": "headers"}).collect()
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("b", b"2"), ("x", b"1")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["ofset"], "unknown column 'ofset': did you mean 'offset'"),
        ({"offset": "string"}, "header offset: the column is int64, and string cannot be written from it"),
        ({"offset": "int46"}, "column 'offset': unknown type 'int46'"),
        ("offset", "are not DDL"),
    ],
)
def test_unsuitable_columns_are_rejected_before_job(spark, columns, message):
    df = spark.createDataFrame([(1,)], "offset bigint")
    with pytest.raises((TypeError, ValueError), match=message):
        lhs.pack_headers(df, columns)


def test_value_out_of_range_names_header_and_record(spark):
    df = spark.createDataFrame([("t", 0, 7, 300)], "topic string, partition int, offset bigint, n int")
    output = failure(lhs.pack_headers(df, {"n": "int8"}))
    assert "header n: the number does not fit int8 in the row with topic='t', partition=0, offset=7" in output


def test_time_without_zone_is_rejected(spark):
    df = spark.sql("select timestamp_ntz'2026-01-31 08:30:00' as at")
    for columns in ({"at": "timestamp_ms"}, ["at"], {"at": "timestamp:iso"}):
        with pytest.raises(TypeError, match=r"column 'at' is timestamp_ntz.*cast it to timestamp"):
            lhs.pack_headers(df, columns)
    cast = df.selectExpr("cast(at as timestamp) as at").transform(lhs.pack_headers, ["at"])
    assert (
        cast.select(lhs.header("headers", "at", "int64")).first().at
        == df.selectExpr("unix_millis(cast(at as timestamp)) as n").first().n
    )


def test_times_are_exact_or_truncated_on_request(spark):
    df = spark.sql("select timestamp_micros(1999) as at")
    assert "the time has more decimals than timestamp_ms" in failure(lhs.pack_headers(df, ["at"]))
    packed = lhs.pack_headers(df, ["at"], truncate=True)
    assert packed.select(lhs.header("headers", "at", "int64")).first().at == 1
