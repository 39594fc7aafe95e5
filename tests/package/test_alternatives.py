"""Columns of several types: the first that reads a value, in a column that holds the values of all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead.types import base_type


def messages(*values: bytes | None) -> pa.Array:
    return pa.array([lh.encode([("n", value)], "kafka") for value in values])


@pytest.mark.parametrize(
    ("type", "name", "spark", "arrow"),
    [
        ("int64 | int32", "int64", "bigint", pa.int64()),
        ("int32 | int64", "int64", "bigint", pa.int64()),
        ("int8 | int16:text | int32:le", "int32", "int", pa.int32()),
        ("uint32 | int32", "int64", "bigint", pa.int64()),
        ("uint8 | uint16", "uint16", "int", pa.uint16()),
        ("uint64 | int8", "int128", "decimal(38,0)", pa.decimal128(38, 0)),
        ("uint64 | uint8", "uint64", "decimal(20,0)", pa.uint64()),
        ("float32 | float64", "float64", "double", pa.float64()),
        ("timestamp_ms | timestamp:iso", "timestamp", "timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ms | timestamp_ms:text", "timestamp_ms", "timestamp", pa.timestamp("ms", "UTC")),
        ("decimal(9,2):text | decimal(9,2):text", "decimal(9,2)", "decimal(9,2)", pa.decimal128(9, 2)),
    ],
)
def test_column_has_values_of_all_types(type: str, name: str, spark: str, arrow: pa.DataType) -> None:
    assert base_type(type) == name
    assert _native.check_type(type)[1] == spark
    assert lha.select(messages(None), {"n": type}).type.field("n").type == arrow


def test_widened_header_is_read_in_both_widths() -> None:
    narrow, wide = (-5).to_bytes(4, "big", signed=True), (2**40).to_bytes(8, "big")
    column = messages(narrow, wide, None, b"three")
    selected = lha.select(column, {"n": "int64 | int32"}, errors="column")
    assert selected.field("n").to_pylist() == [-5, 2**40, None, None]
    [error] = selected.field("error")[3].as_py()
    assert error["message"] == "5 bytes where int64 takes 8; 5 bytes where int32 takes 4"
    assert lha.select(column[:3], {"n": "array<int64 | int32>"}).to_pylist() == [
        {"n": [-5]}, {"n": [2**40]}, {"n": [None]}
    ]  # fmt: skip
    assert lh.select(column[0].as_py(), {"n": "int64 | int32"}) == {"n": -5}
    where = lh.col("n", "int64 | int32") > 0
    assert lha.select(column[:3], {"n": "int64 | int32"}, where=where).to_pylist() == [{"n": 2**40}]


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("uint64 | int8", b"\xff", Decimal(-1)),
        ("uint64 | int8", b"\xff" * 8, Decimal(2**64 - 1)),
        ("uint32 | int16", b"\xff\xff", -1),
        ("float64 | float32", b"\x3f\xc0\0\0", 1.5),
    ],
)
def test_numbers_keep_their_values_in_a_wider_column(type: str, value: bytes, expected: Any) -> None:
    [row] = lha.select(messages(value), {"n": type}).to_pylist()
    assert row["n"] == expected


def test_default_is_value_of_column() -> None:
    columns = {"n": lh.field("int8 | int64:text", key="absent", default=2**40)}
    assert lha.select(messages(None), columns).to_pylist() == [{"n": 2**40}]
    with pytest.raises(ValueError, match="the number does not fit int64"):
        lh.field("int8 | int64:text", default=2**70)


def test_first_type_is_written() -> None:
    packed = lha.pack(pa.table({"n": pa.array([1])}), {"n": "int16 | int64"})
    assert packed.to_pylist() == [[{"key": "n", "value": b"\0\1"}]]


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("int32 | string", "return int and string, which no column has both"),
        ("int64 | timestamp_ms", "return bigint and timestamp"),
        ("int64 | float64", "return bigint and double"),
        (" | ".join(["int8"] * 17), "has 17 alternatives, and 16 are the most"),
    ],
)
def test_types_without_common_column_are_rejected(type: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lh.field(type)
