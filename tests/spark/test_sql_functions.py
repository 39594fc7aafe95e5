"""Functions of Spark SQL that read one header."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from letterhead import spark as lhs
from tests.spark.frames import HEADERS

pytestmark = pytest.mark.spark_only  # Sail gets no functions of SQL

ROWS = [
    [("tenant", b"acme"), ("retry", b"3"), ("amount", (5).to_bytes(8, "big")), ("at", b"2026-01-31T08:30:00Z"), ("hop", b"a"),
     ("hop", b"b"), ("day", b"2026-01-31"), ("rate", b"1.5"), ("ok", b"\1")],
    [("tenant", b"hooli"), ("retry", b"soon")],
    None,
]  # fmt: skip


@pytest.fixture
def topic(spark: Any) -> Any:
    lhs.register(spark)
    rows = [row and [{"key": key, "value": value} for key, value in row] for row in ROWS]
    topic = pa.table({"headers": pa.array(rows, HEADERS), "tenants": ["acme", "hooli", None]})
    spark.createDataFrame(topic).coalesce(1).createOrReplaceTempView("topic_of_functions")
    yield spark
    spark.catalog.dropTempView("topic_of_functions")


def test_sql_functions_read_headers(topic: Any) -> None:
    [first, second] = topic.sql("""
        select header_string(headers, 'tenant') as tenant, header_bigint(headers, 'amount') as amount,
               try_header_int(headers, 'retry', 'int32:text') as retry, header_strings(headers, 'hop') as hops,
               cast(header_timestamp(headers, 'at', 'timestamp:iso') as bigint) as at,
               cast(header_date(headers, 'day') as string) as day, header_double(headers, 'rate', 'float64:text') as rate,
               header_boolean(headers, 'ok') as ok, header_binary(headers, 'tenant') as bytes
        from topic_of_functions where header_string(headers, 'tenant') in ('acme', 'hooli')
        order by tenant
    """).collect()
    assert tuple(first) == ("acme", 5, 3, ["a", "b"], 1769848200, "2026-01-31", 1.5, True, b"acme")
    assert tuple(second) == ("hooli", None, None, [], None, None, None, None, b"hooli")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("header_int(headers, 'retry', 'int32:text')", "the text does not spell int32"),
        ("header_int(headers, 'tenant', 'string')", "header_int returns int, and a header of type 'string' is string"),
        ("header_int(headers, 'tenant', 'string')", "write header_string"),
        ("header_string(headers, 'amount', 'uint64')", r"is decimal\(20,0\): lhs.header reads every type"),
        ("header_string(headers, cast(null as string))", "the key must be one string.*and is several, or null"),
        ("header_string(headers, tenants)", "the key must be one string.*and is several, or null"),
        ("header_string(headers, 5)", "the key must be one string.*and is int32"),
        ("header_string(headers, array('tenant'))", "the key must be one string.*and is list"),
        ("header_string(headers, headers[0])", "the key must be one string.*and is struct"),
        ("header_string(headers, 'tenant', array('string'))", "the type must be one string.*and is list"),
        ("header_string()", r"header_string has 0 arguments: write header_string\(headers, 'key'\)"),
        ("header_string(headers)", "header_string has 1 argument: write"),
        ("header_string(headers, 'a', 'string', 'x')", "header_string has 4 arguments: write"),
        ("header_string('tenant', headers)", "header_string reads headers, not string: write"),
        ("header_int(headers, 'amount')", "header amount: 8 bytes where int32 takes 4: try_header_int returns null"),
    ],
)
def test_call_that_cannot_return_its_type_raises(topic: Any, call: str, message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        topic.sql(f"select {call} from topic_of_functions").collect()
    # Functions of SQL have no such options, and columns have no such names.
    assert not any(name in str(caught.value) for name in ("errors=", "_ReadHeader", "no kernel", "column value"))


def test_sql_function_makes_headers(topic: Any) -> None:
    """The bytes are those of `pack_headers`, and what it refuses is refused."""
    rows = """values (1, 'acme', 3, 1.5D, array('eu', 'us'), timestamp_millis(5), date'2026-01-31', 12.50BD, X'ff'),
        (2, null, null, null, null, null, null, null, null) as t(n, tenant, retry, rate, route, at, day, price, bytes)"""
    df = topic.sql(f"select * from {rows}")
    names = ["tenant", "retry", "rate", "route", "at", "day", "price", "bytes"]
    packed = lhs.pack_headers(df, names, keep=["n"]).orderBy("n").collect()
    fields = f"struct({', '.join(names)})"
    made = topic.sql(f"select n, header_pack({fields}) as headers from {rows} order by n")
    assert made.collect() == packed
    assert made.schema["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
    maps = topic.sql("""
        select header_pack(map('tenant', 'acme', 'none', null)) as texts, header_pack(map('retry', 3)) as numbers,
               header_pack(cast(null as map<string,string>)) as absent, header_pack(if(id > 5, struct(id), null)) as none
        from range(1)
    """).first()
    assert maps.texts == [("tenant", b"acme"), ("none", None)]
    assert maps.numbers == [("retry", b"\0\0\0\3")]
    assert (maps.absent, maps.none) == (None, None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("header_pack()", "header_pack has 0 arguments: write header_pack"),
        ("header_pack('tenant')", "takes a struct, or a map whose keys are strings, and not string"),
        ("header_pack(map(1, 'acme'))", "takes a struct, or a map whose keys are strings, and not map<int32, string"),
        (
            "header_pack(struct(timestamp_ntz'2026-01-31 00:00:00' as at))",
            "at is timestamp_ntz, and headers have points in time",
        ),
        ("header_pack(struct(timestamp_micros(5) as at))", "header_pack: .*the time has more decimals"),
        ("header_pack(struct(interval 1 day as d))", "has no type of headers"),
    ],
)
def test_values_that_cannot_become_headers_raise(topic: Any, call: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        topic.sql(f"select {call} from range(1)").collect()
