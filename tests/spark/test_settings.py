"""Expressions return the same values under every configuration of Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.operations import DecodeOptions, Select
from letterhead.spark import sql_text
from letterhead.spark.checks import value_unless_failed
from letterhead.spark.writing import writer, written_from
from tests.spark.frames import collected
from tests.spark.settings import ALL, EACH, configured

pytestmark = pytest.mark.spark_only

CONFIGURATIONS = [{}, ALL, *(pytest.param(setting, marks=pytest.mark.full) for setting in EACH)]

READ: dict[str, list[bytes]] = {
    **{
        f"timestamp:{unit}": [
            b"-1",
            b"-1000",
            b"-1001",
            b"0",
            b"999",
            b"1769848200123456789",
            b"-62135596800000000000",
            b"x",
        ]
        for unit in ("s", "ms", "us", "ns")
    },
    "timestamp:iso": [b"2026-01-31T08:30:00.123456789Z", b"0001-01-01T00:00:00Z", b"1969-12-31T23:59:59.9999999+05:45"],
    "timestamp_ms": [(-1).to_bytes(8, "big", signed=True), (1769848200123).to_bytes(8, "big")],
    "date:text": [b"1969-12-31", b"0001-01-01", b"9999-12-31", b"2026-02-30"],
    "decimal(38,10):text": [b"1234567890123456789012345678.0123456789", b"-0.0000000001", b"1e-10", b"1e-11"],
    "decimal(9,2):text": [b"-12.5", b"1e6", b"0.001"],
    "int128": [(-(10**37)).to_bytes(16, "big", signed=True), b"\x7f" + b"\xff" * 15],
    "uint128:le": [(10**38 - 1).to_bytes(16, "little"), b"\xff" * 16],
    "int128:text": [b"-99999999999999999999999999999999999999", b"1" + b"0" * 38],
    "uint64": [b"\xff" * 8],
    "uint64 | int8": [b"\xff" * 8, b"\xff"],
    "float64": [b"\x7f\xef" + b"\xff" * 6, b"\0" * 7 + b"\1", b"\x80" + b"\0" * 7],
    "float64:text": [b"1e-320", b"0.1", b"-Infinity"],
    "uuid:guid": [bytes(range(16)), b"short"],
    "uuid:reversed": [bytes(range(16))],
    "binary:base64": [b"AP8=", b"_-8", b"A", b"AB==", b"+_8="],
    "int32:le:base64": [b"AwAAAA==", b"AwAAAA", b"AwAA", b"\xff"],
    "timestamp:iso:hex": [b"2026-01-31T08:30Z".hex().encode(), b"00"],
    "string:utf-16le": ["A📦\ufeff".encode("utf-16-le"), b"\x3d\xd8", b"a", b"\xfe\xff"],
    "string:latin-1": [bytes(range(256)), b""],
    "string": [b"\xff", "ß".encode()],
}
"""Values of types whose expressions calculate."""

_TIMES = [
    datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 7, 1, 2, 3, 4, 120000, UTC), datetime(2026, 7, 1, 2, 3, 4, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 1, UTC), None,
]  # fmt: skip

WRITTEN: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{
        type: (pa.timestamp("us", "UTC"), _TIMES)
        for type in (
            *(f"timestamp:{form}" for form in ("iso", "s", "ms", "us", "ns")),
            "timestamp_ms",
            "timestamp_ms:text",
        )
    },
    "date:text": (pa.date32(), [time and time.date() for time in _TIMES]),
    "decimal(38,18):text": (
        pa.decimal128(38, 18),
        [Decimal("-1.5"), Decimal("1E-18"), Decimal("-12345678901234567890.25")],
    ),
    "decimal(12,4):text": (pa.decimal128(9, 2), [Decimal("-1234567.89"), Decimal("0.01"), Decimal(0), None]),
    "decimal(9,0):text": (
        pa.decimal128(38, 10),
        [Decimal("-7.0000000001"), Decimal("999999999.5"), Decimal("0.1"), Decimal(-3)],
    ),
    "decimal(2,2):text": (pa.decimal128(9, 3), [Decimal("0.5"), Decimal("-0.129"), Decimal("-0.001"), Decimal("1.5")]),
    "int64": (pa.decimal128(38, 0), [Decimal(-(2**63)), Decimal(2**63 - 1)]),
    "int128:le": (pa.decimal128(38, 0), [Decimal(-(10**38) + 1), Decimal(10**38 - 1), Decimal(-1)]),
    "uuid": (pa.string(), ["00112233-4455-6677-8899-AABBCCDDEEFF"]),
    "uuid:guid": (pa.string(), ["00112233-4455-6677-8899-AABBCCDDEEFF", "no uuid"]),
    "uuid:reversed": (pa.string(), ["00112233-4455-6677-8899-AABBCCDDEEFF", None]),
    "binary:base64": (pa.binary(), [b"", b"\0\xff", b"x" * 100, None]),
    "binary:hex": (pa.binary(), [b"", b"\0\xff\xab"]),
    "int32:le:base64": (pa.int32(), [3, -1, None]),
    "uuid:guid:hex": (pa.string(), ["00112233-4455-6677-8899-AABBCCDDEEFF"]),
    "timestamp:iso:base64": (pa.timestamp("us", "UTC"), _TIMES),
    "string:utf-16be": (pa.string(), ["A📦\ufeff\0", "", None, "\ufffe"]),
    "string:utf-16le:base64": (pa.string(), ["A📦"]),
    "string:latin-1": (pa.string(), ["", "é\x80\xff\0", "Ā"]),
    "float64": (pa.float64(), [0.1, -0.0, 5e-324, 1.7976931348623157e308]),
    "int32 | int64": (pa.int32(), [7]),
}
"""Values of columns that are written as types."""


@pytest.mark.parametrize("settings", CONFIGURATIONS, ids=lambda settings: "+".join(settings) or "default")
def test_headers_are_read_like_select(spark: Any, settings: dict[str, Any]) -> None:
    rows = [(type, value) for type, values in READ.items() for value in values]
    headers = pa.array(
        [[{"key": type, "value": value}] for type, value in rows], lha.pack(pa.table({"a": [b"1"]})).type
    )
    with configured(spark, **settings):
        df = spark.createDataFrame(pa.table({"row": range(len(rows)), "headers": headers}))
        for first in range(0, len(READ), 5):
            types = [*READ][first : first + 5]
            columns = [lhs.header("headers", type, type, errors="null").alias(type) for type in types]
            by_spark = collected(df.select("row", *columns).orderBy("row"))
            select = Select("kafka", {type: type for type in types}, DecodeOptions(errors="null"), dialect="spark")
            table = pa.Table.from_struct_array(select(headers))
            expected = collected(
                spark.createDataFrame(table.append_column("row", pa.array(range(len(rows))))).orderBy("row")
            )
            assert {type: by_spark[type] for type in types} == {type: expected[type] for type in types}


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("settings", CONFIGURATIONS, ids=lambda settings: "+".join(settings) or "default")
def test_columns_are_written_like_pack(spark: Any, settings: dict[str, Any], truncate: bool) -> None:
    table = pa.table({"row": pa.array(range(7))})
    for type, (column_type, values) in WRITTEN.items():
        table = table.append_column(type, pa.array([*values, *[None] * (7 - len(values))], column_type))
    with configured(spark, **settings):
        df = spark.createDataFrame(table)
        for first in range(0, len(WRITTEN), 6):
            types = [*WRITTEN][first : first + 6]
            columns = [column for type in types for column in write_columns(df, type, truncate)]
            result = collected(df.select("row", *columns).orderBy("row"))
            for type in types:
                got = list(zip(result[f"value {type}"], result[f"error {type}"], strict=True))
                assert got == [written(table, type, row, truncate) for row in range(7)], type


def write_columns(df: Any, type: str, truncate: bool) -> tuple[Any, Any]:
    column_type = df.schema[type].dataType
    assert written_from(type, column_type) is None
    write = writer(type, scale=getattr(column_type, "scale", 0), truncate=truncate)(sql_text.column_by_name(type))
    value = value_unless_failed(write.checks, write.value, lambda check: sql_text.literal(None))
    error = value_unless_failed(write.checks, sql_text.literal(None), lambda check: check.message)
    return value.column.alias(f"value {type}"), error.cast("string").column.alias(f"error {type}")


def written(table: pa.Table, type: str, row: int, truncate: bool) -> tuple[bytes | None, str | None]:
    """Return what `pack` writes, or the reason why it does not."""
    value = table.slice(row, 1).select([type])
    try:
        [[header]] = lha.pack(value, {type: lh.field(type, key="k")}, nulls="keep", truncate=truncate).to_pylist()
    except lh.EncodeError as error:
        return None, error.message.removeprefix("header k: ")
    return header["value"], None


def test_sample_times_span_first_to_last_year() -> None:
    assert (_TIMES[0].year, _TIMES[-2].year) == (1, 9999)  # type: ignore[union-attr]
