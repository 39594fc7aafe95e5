"""Columns of ``select`` as schemas: DDL, ``StructType``, pyarrow and dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.fields import columns_of, normalise
from letterhead.types import type_name


@dataclass
class Order:
    tenant: str
    retry: int | None
    route: list[str]
    at: datetime
    weight: float = 0.0


DATA = lh.encode([("tenant", "acme"), ("retry", b"\0" * 7 + b"\3"), ("route", "a"), ("route", "b")], "kafka") or b""
SPECS = [("tenant", "tenant", "string", "last", False, None, None), ("retry", "retry", "int64", "last", False, None, None),
         ("route", "route", "string", "all", False, None, None)]  # fmt: skip


@pytest.mark.parametrize(
    "columns",
    [
        "tenant string, retry bigint, route array<string>",
        "`tenant` string,retry: int64 , route array<string>",
        pa.schema([("tenant", pa.string()), ("retry", pa.int64()), ("route", pa.list_(pa.string()))]),
    ],
)
def test_a_schema_is_a_mapping_of_its_columns(columns: Any) -> None:
    assert normalise(columns) == SPECS
    assert lh.select(DATA, "kafka", columns) == {"tenant": "acme", "retry": 3, "route": ["a", "b"]}
    assert lha.select(pa.array([DATA]), "kafka", columns).to_pylist() == [
        {"tenant": "acme", "retry": 3, "route": ["a", "b"]}
    ]


def test_a_struct_type_is_a_mapping_of_its_columns() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    struct = types.StructType(
        [
            types.StructField("tenant", types.StringType()),
            types.StructField("retry", types.LongType()),
            types.StructField("route", types.ArrayType(types.StringType())),
        ]
    )
    assert normalise(struct) == SPECS


def test_annotations_of_a_dataclass_are_types() -> None:
    assert columns_of(Order) == {
        "tenant": "string", "retry": "int64", "route": "array<string>", "at": "timestamp_ms", "weight": "float64"
    }  # fmt: skip


def test_ddl_has_names_in_backticks_and_encodings() -> None:
    assert columns_of("`content-type` string, `a``b` int32:le, price int:text") == {
        "content-type": "string", "a`b": "int32:le", "price": "int:text"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ("tenant", ValueError, "are not DDL"),
        ("tenant string,", ValueError, "are not DDL"),
        ("a string, a int", ValueError, "two columns 'a'"),
        ("a strin", ValueError, "column 'a': unknown type 'strin': did you mean 'string'"),
        (["tenant"], TypeError, "columns must be a mapping of output column to type, Spark's DDL"),
        ("", ValueError, "are not DDL"),
        (3, TypeError, "not int"),
    ],
)
def test_other_columns_are_rejected(columns: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lh.select(DATA, "kafka", columns)


def test_an_annotation_without_a_type_is_rejected() -> None:
    @dataclass
    class Nested:
        inner: dict[str, str]

    Nested.__annotations__["inner"] = dict
    with pytest.raises(TypeError, match="column 'inner'"):
        columns_of(Nested)


def test_a_timestamp_in_text_needs_its_form() -> None:
    with pytest.raises(ValueError, match="pass 'timestamp:s', ':ms', ':us' or ':ns' for digits since 1970"):
        type_name("timestamp:text")
    assert type_name("timestamp_ms:text") == "timestamp_ms:text"
