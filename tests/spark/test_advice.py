"""What an error of the functions for Spark advises works: it is in the message, and in a call that succeeds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs

pytestmark = pytest.mark.spark_only

LISTS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Advice(NamedTuple):
    """A call that fails, what its error advises, where ``...`` is anything, and a call that follows the advice."""

    wrong: str
    advised: str
    right: str


ADVICE = [
    Advice("lha.select(df, 'k string')", "lhs.select_headers(df, ...)", "lhs.select_headers(df, 'k string')"),
    Advice("lha.select(df, 'k string')", "df.toArrow()['headers']", "lha.select(df.toArrow()['headers'], 'k string')"),
    Advice("lhs.edit_headers('headers', drop=['k'])", "lhs.edit_headers(df, ...)", "lhs.edit_headers(df, drop=['k'])"),
    Advice("df.transform(lhs.edit_headers('headers', drop=['k']))", "df.transform(lhs.edit_headers, ...)", "df.transform(lhs.edit_headers, drop=['k'])"),
    Advice("lhs.header(df, 'k', 'string')", "df.select(lhs.header(\"headers\", key, type))", "(key := 'k', type := 'string', df.select(lhs.header(\"headers\", key, type)))[2]"),
    Advice("lha.edit(df.headers, 'kafka', drop=['k'])", "df.toArrow()['headers']", "lha.edit(df.toArrow()['headers'], 'kafka', drop=['k'])"),
    Advice("lha.pack(df.select('n', 'at'))", "df.toArrow()", "(df := df.select('n', 'at'), lha.pack(df.toArrow(), truncate=True))"),
    Advice("lha.pack(stream.select('value'))", "lhs.pack_headers", "stream.select('value').transform(lhs.pack_headers, ['value'])"),
    Advice("lhs.select_headers(df, 'k int')", 'errors="column"', "lhs.select_headers(df, 'k int', errors=\"column\")"),
    Advice("lhs.select_headers(df, {'K': 'string', 'k': 'string'})", "lh.field(..., key='k')", "lhs.select_headers(df, {'K': 'string', 'k2': lh.field('string', key='k')})"),
    Advice("lhs.select_headers(df, {'n': 'string'})", "keep=", "lhs.select_headers(df, {'n': 'string'}, keep=['at'])"),
    Advice("df.select(lhs.header('headers', 'k', 'string', errors='column'))", "select_headers", "lhs.select_headers(df, 'k string', errors='column')"),
    Advice("df.select(lhs.header('headers', 'k', 'string', engine='spork'))", "'spark'", "df.select(lhs.header('headers', 'k', 'string', engine='spark'))"),
    Advice("typed.select(lhs.header('headers', 'k', 'string'))", "format='kip82-typed'", "typed.select(lhs.header('headers', 'k', 'string', format='kip82-typed'))"),
    Advice("texts.select(lhs.header('headers', 'k', 'string'))", BYTES := "transform(headers, h -> struct(h.key as key, cast(h.value as binary) as value))", f"texts.selectExpr('{BYTES} as headers').select(lhs.header('headers', 'k', 'string'))"),
    Advice("lhs.edit_headers(texts, drop=['k'])", BYTES, f"texts.selectExpr('{BYTES} as headers').transform(lhs.edit_headers, drop=['k'])"),
    Advice("lhs.edit_headers(df, replace={'k': F.udf(lambda value: value)})", "lambda value: F.sha2(value, 256)", "lhs.edit_headers(df, replace={'k': lambda value: F.sha2(value, 256)})"),
    Advice("lhs.edit_headers(df, replace={'k': F.udf(lambda value: value)})", "lh.hmac(key)", "(key := 'sixteen bytes or more', lhs.edit_headers(df, replace={'k': lh.hmac(key)}))[1]"),
    Advice("lhs.edit_headers(df, replace={'k': 'hsh'})", "lh.lit('hsh')", "lhs.edit_headers(df, replace={'k': lh.lit('hsh')})"),
    Advice("lhs.edit_headers(df, set={'k': 5})", "(F.lit(3), 'int32')", "lhs.edit_headers(df, set={'k': (F.lit(3), 'int32')})"),
    Advice("lhs.edit_headers(df, set={'k': lh.lit(lh.Int32(5))})", "lh.Int32(3).bits", "lhs.edit_headers(df, set={'k': lh.lit(lh.Int32(3).bits)})"),
    Advice("lhs.edit_headers(df, set={'k': 'n'})", "(column, 'int64')", "(column := 'n', lhs.edit_headers(df, set={'k': (column, 'int64')}))[1]"),
    Advice("lhs.edit_headers(df, set={'k': ('n', 'string:amqp')})", "'string'", "lhs.edit_headers(df, set={'k': ('text', 'string')})"),
    Advice("lhs.edit_headers(df, set={'k': ('at', 'timestamp_ms')})", '"timestamp:iso"', "lhs.edit_headers(df, set={'k': ('at', \"timestamp:iso\")})"),
    Advice("lhs.edit_headers(df, set={'k': ('at', 'timestamp_ms')})", "truncate=True", "lhs.edit_headers(df, set={'k': ('at', 'timestamp_ms')}, truncate=True)"),
    Advice("lhs.edit_headers(df, set={'k': ('d', 'decimal(3, 1):text')})", "truncate=True", "lhs.edit_headers(df, set={'k': ('d', 'decimal(3, 1):text')}, truncate=True)"),
    Advice("lhs.edit_headers(df, set={'k': (F.to_timestamp_ntz(F.lit('2026-01-31')), 'timestamp_ms')})", "cast", "lhs.edit_headers(df, set={'k': (F.to_timestamp_ntz(F.lit('2026-01-31')).cast('timestamp'), 'timestamp_ms')})"),
    Advice("df.select('at').transform(lhs.pack_headers, ['at'])", '"timestamp:iso"', "df.select('at').transform(lhs.pack_headers, {'at': \"timestamp:iso\"})"),
    Advice("df.select('at').transform(lhs.pack_headers, ['at'])", "truncate=True", "df.select('at').transform(lhs.pack_headers, ['at'], truncate=True)"),
    Advice("lhs.where_headers(df, 'k::int32 = 5')", 'errors="column"', "lhs.where_headers(df, 'k::int32 = 5', errors=\"column\")"),
    Advice("df.select(lhs.traceparent('bad'))", 'errors="column"', "df.select(lhs.traceparent('bad', errors=\"column\"))"),
    Advice("df.select(lhs.trace_links('bad'))", 'errors="null"', "df.select(lhs.trace_links('bad', errors=\"null\"))"),
    Advice("lhs.convert_headers(df, 'kafka', 'iggy')", "encode_headers", "lhs.encode_headers(df, 'iggy', types=\"binary\")"),
    Advice("lhs.encode_headers(df, 'iggy')", 'types="binary"', "lhs.encode_headers(df, 'iggy', types=\"binary\")"),
    Advice("sql(\"select header_int(headers, 'k') from advised\")", "try_header_int", "sql(\"select try_header_int(headers, 'k') from advised\")"),
    Advice("sql(\"select header_int(headers, 'k', 'string') from advised\")", "header_string", "sql(\"select header_string(headers, 'k', 'string') from advised\")"),
    Advice("sql('select header_string(headers) from advised')", "header_string(headers, 'key')", "sql(\"select header_string(headers, 'key') from advised\")"),
]  # fmt: skip


@pytest.fixture(scope="module")
def names(spark: Any) -> dict[str, Any]:
    lhs.register(spark)
    rows = pa.table({
        "headers": pa.array([[{"key": "k", "value": b"1"}]], LISTS), "bad": [b"\x02"], "n": [5], "text": ["a"],
        "at": pa.array([datetime(2026, 1, 31, 9, 30, 0, 123456, UTC)], pa.timestamp("us", "UTC")), "d": [Decimal("1.25")],
    })  # fmt: skip
    df = spark.createDataFrame(rows)
    df.createOrReplaceTempView("advised")
    typed = spark.createDataFrame(
        [([("k", "string", b"1")],)], "headers array<struct<key:string,type:string,value:binary>>"
    )
    texts = spark.createDataFrame([([("k", "1")],)], "headers array<struct<key:string,value:string>>")
    stream = spark.readStream.format("rate").load()
    return {
        "F": F, "df": df, "lh": lh, "lha": lha, "lhs": lhs, "sql": spark.sql, "stream": stream, "texts": texts, "typed": typed
    }  # fmt: skip


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.wrong)
def test_pasted_advice_works(names: dict[str, Any], advice: Advice) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011
        run(advice.wrong, names)
    assert advice.advised in "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert re.search(re.escape(advice.advised).replace(re.escape("..."), ".*"), advice.right)
    run(advice.right, names)


def run(call: str, names: dict[str, Any]) -> None:
    result = eval(call, dict(names))
    if hasattr(result, "collect") and not result.isStreaming:
        result.collect()
