"""Text with a form of its own, alternatives, defaults and lists in one header, by Spark's expressions and by Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import spark as lhs
from tests.spark.frames import HEADERS, collected

COLUMNS = {
    "at": lh.field("timestamp:iso | timestamp:ms | timestamp_ms"),
    "n": lh.field("int32:text | int32", default=7),
    "day": lh.field("date:text", default="2026-01-31"),
    "price": lh.field("decimal(9,2):text"),
    "token": lh.field("binary:base64 | binary:hex"),
    "sent": lh.field("int32:base64", key="token"),
    "city": lh.field("string:utf-16le | string:latin-1"),
    "codes": lh.field("array<int8:hex>", key="tags", split=","),
    "tags": lh.field("array<string>", split=","),
    "sizes": lh.field("array<int8:text>", key="tags", split=".\\E"),
}
ROWS: list[Any] = [
    {"at": b"2026-01-31T09:30:00.1234567+01:00", "n": b"42", "day": b"1969-12-31", "price": b"-12.5e-1", "token": b"-_8",
     "tags": b"a,b,,c"},
    {"at": b"1769848200123", "n": b"\0\0\0\5", "price": b".5", "token": b"AP8=", "tags": b""},
    {"at": (1769848200123).to_bytes(8, "big"), "n": None, "day": None, "price": b"10000000", "token": b"0", "tags": b"1.\\E2"},
    {"at": b"soon", "n": b"abc", "day": b"2026-02-29", "price": b"1.005", "token": b"A", "tags": b"\xff,a"},
    {},
    None,
]  # fmt: skip


def headers_of(row: Any) -> Any:
    return None if row is None else [{"key": key, "value": value} for key, value in row.items()]


@pytest.mark.spark_only
@pytest.mark.parametrize("ansi", [True, False])
def test_expressions_read_what_native_module_reads(spark: Any, ansi: bool) -> None:
    df = spark.createDataFrame(pa.table({"headers": pa.array([headers_of(row) for row in ROWS], HEADERS)}))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        by_arrow = collected(lhs.select_headers(df, COLUMNS, errors="null"))
        for engine in ("spark", "arrow"):
            columns = [
                lhs.header("headers", field.key or name, f"array<{field.type}>" if field.split else field.type,
                           default=field.default, split=field.split, errors="null", engine=engine).alias(name)
                for name, field in COLUMNS.items()
            ]  # fmt: skip
            assert collected(df.select(*columns)) == by_arrow
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.spark_only
@pytest.mark.parametrize("name", ["at", "n", "day", "price", "token"])
def test_both_engines_raise_the_same_error(spark: Any, name: str) -> None:
    df = spark.createDataFrame(pa.table({"headers": pa.array([headers_of(ROWS[3])], HEADERS)}))
    field = COLUMNS[name]
    with pytest.raises(Exception, match=f"kafka: column {name}: ") as by_spark:
        df.select(lhs.header("headers", name, field.type)).collect()
    with pytest.raises(lh.DecodeError) as native:
        lh.select(lh.encode([(name, ROWS[3][name])], "kafka"), {name: field})
    message = str(native.value).partition(": ")[2].partition(" (")[0].removeprefix(f"column {name}: ")
    assert f"column {name}: {message} ({native.value.code}, header " in str(by_spark.value)
    assert ROWS[3][name].decode() not in message or name == "token"


@pytest.mark.spark_only
def test_stored_string_is_read_and_number_is_not(spark: Any) -> None:
    typed = lh.encode([("at", lh.String("2026-01-31T08:30:00Z")), ("n", lh.Int32(5))], "iggy")
    df = spark.createDataFrame([(typed,)], "data binary").transform(
        lhs.decode_headers, "iggy", column="data", text_keys=True
    )
    at = lhs.header("headers", "at", "timestamp:iso", format="iggy-2023", engine="spark").cast("long").alias("at")
    assert df.select(at).first().at == 1769848200
    with pytest.raises(Exception, match="the value is int32 and timestamp:iso was requested"):
        df.select(lhs.header("headers", "n", "timestamp:iso", format="iggy-2023", engine="spark")).collect()


def test_columns_of_these_types_are_packed(spark: Any) -> None:
    df = spark.createDataFrame(pa.table({"headers": pa.array([headers_of(ROWS[0])], HEADERS)}))
    columns = {name: COLUMNS[name] for name in ("at", "day", "price", "token", "tags")}
    typed = lhs.select_headers(df, columns)
    [row] = lhs.pack_headers(typed, columns).collect()
    assert [(header.key, bytes(header.value)) for header in row.headers] == [
        ("at", b"2026-01-31T08:30:00.123456Z"), ("day", b"1969-12-31"), ("price", b"-1.25"), ("token", b"+/8="),
        ("tags", b"a,b,,c"),
    ]  # fmt: skip
