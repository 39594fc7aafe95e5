"""Columns of ``select`` as schemas: DDL, ``StructType``, pyarrow and dataclasses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

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
def test_schema_maps_to_columns(columns: Any) -> None:
    assert normalise(columns) == SPECS
    assert lh.select(DATA, columns) == {"tenant": "acme", "retry": 3, "route": ["a", "b"]}
    assert lha.select(pa.array([DATA]), columns).to_pylist() == [{"tenant": "acme", "retry": 3, "route": ["a", "b"]}]


def test_struct_type_maps_to_columns() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    struct = types.StructType(
        [
            types.StructField("tenant", types.StringType()),
            types.StructField("retry", types.LongType()),
            types.StructField("route", types.ArrayType(types.StringType())),
        ]
    )
    assert normalise(struct) == SPECS


def test_dataclass_annotations_are_types() -> None:
    assert columns_of(Order) == {
        "tenant": "string", "retry": "int64", "route": "array<string>", "at": "timestamp_ms",
        "weight": lh.Field("float64", default=0.0),
    }  # fmt: skip


@dataclass
class Typed:
    retry: Annotated[int, "int32"] = 3
    sizes: list[Annotated[int, "int32:le"]] = dataclasses.field(default_factory=list)
    id: Annotated[str | None, lh.field("uuid:guid", key="x-id"), "a note of another library"] = None
    level: Annotated[int | None, pa.int16()] = None
    region: str = "eu"


def test_annotations_name_header_type() -> None:
    assert columns_of(Typed) == {
        "retry": lh.Field("int32", default=3), "sizes": "array<int32:le>", "id": lh.Field("uuid:guid", "x-id"),
        "level": pa.int16(), "region": lh.Field("string", default="eu"),
    }  # fmt: skip
    data = lh.encode([("sizes", b"\1\0\0\0"), ("level", b"\0\7")], "kafka")
    read = {"retry": 3, "sizes": [1], "id": None, "level": 7, "region": "eu"}
    assert lh.select(data, Typed) == read
    assert lha.select(pa.array([data]), Typed).to_pylist() == [read]


@pytest.mark.parametrize(
    ("annotation", "default", "message"),
    [
        (Annotated[int, "int23"], None, "column 'x': unknown type 'int23'"),
        (Annotated[int, "int32", "int64"], None, "column 'x' is annotated with 2 types"),
        (int, "three", "column 'x': default= must be a value of int64|default= is not a value"),
        (list[int], [3], "column 'x': default= is the value of a message without the header, which has an empty list"),
        (Annotated[int, lh.field("int32", default=1)], 2, "column 'x' has two defaults"),
        (list[Annotated[int, lh.field("int32")]], None, "column 'x': the elements of a list need a type"),
    ],
)
def test_unsupported_dataclass_annotation_is_rejected(annotation: Any, default: Any, message: str) -> None:
    made = dataclasses.make_dataclass("Made", [("x", annotation, dataclasses.field(default_factory=lambda: default))])
    with pytest.raises((TypeError, ValueError), match=message):
        normalise(made)


def test_non_nullable_column_is_required() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    struct = types.StructType(
        [
            types.StructField("tenant", types.StringType(), False),
            types.StructField("retry", types.LongType()),
            types.StructField("route", types.ArrayType(types.StringType()), False),
        ]
    )
    fields = [("tenant", pa.string(), False), ("retry", pa.int64(), True), ("route", pa.list_(pa.string()), False)]
    arrow = pa.schema([pa.field(name, type, nullable=nullable) for name, type, nullable in fields])
    ddl = "tenant string NOT NULL COMMENT 'who, and \\'why\\'', retry bigint COMMENT 'it''s, a number', `route` array<string> not null"
    for schema in (struct, arrow, "tenant string not null, retry bigint, route array<string>"):
        assert [(spec.name, spec.required) for spec in normalise(schema)] == [
            ("tenant", True), ("retry", False), ("route", False)
        ]  # fmt: skip
        with pytest.raises(lh.DecodeError, match="column tenant: the header is required and absent"):
            lh.select(b"", schema)
        assert lh.select(DATA, schema) == {"tenant": "acme", "retry": 3, "route": ["a", "b"]}
    # Spark writes DDL so, and a list that must not be null is one of a header that must be there.
    assert [spec.required for spec in normalise(ddl)] == [True, False, True]


def test_ddl_accepts_backticks_and_encodings() -> None:
    assert columns_of("`content-type` string, `a``b` int32:le, price int:text") == {
        "content-type": "string", "a`b": "int32:le", "price": "int:text"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ("tenant", ValueError, "at the end: column 'tenant' has no type"),
        ("tenant string,", ValueError, "at the end: a column is missing"),
        (", tenant string", ValueError, r"at character 0, ', tenant string': a column is missing"),
        ("tenant string default 'x'", ValueError, r"lh\.field\(\.\.\., default=\.\.\.\) has a default"),
        ("tenant 'string'", ValueError, "at character 7, .*: a type has no quotes"),
        ("`tenant string", ValueError, "at character 0, .*: it has no end"),
        ("a array<string, b int", ValueError, "'>' is missing"),
        ("a string>, b int", ValueError, "at character 8, .*: it closes nothing"),
        ("'a' string", ValueError, "a name is a word, or in backticks"),
        ("`` string", ValueError, "a name is a word, or in backticks"),
        ("a not null", ValueError, "column 'a': unknown type 'not null'"),
        ("a string, a int", ValueError, "two columns 'a'"),
        ("a strin", ValueError, "column 'a': unknown type 'strin': did you mean 'string'"),
        (
            ["tenant"],
            TypeError,
            "headers must be a mapping of output column to type such as {'tenant': 'string'}, Spark's DDL",
        ),
        ("", ValueError, "are not DDL"),
        (3, TypeError, "not int"),
    ],
)
def test_invalid_columns_are_rejected(columns: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lh.select(DATA, columns)


def test_annotation_without_type_is_rejected() -> None:
    @dataclass
    class Nested:
        inner: dict[str, str]

    Nested.__annotations__["inner"] = dict
    with pytest.raises(TypeError, match="column 'inner'"):
        columns_of(Nested)


def test_timestamp_as_text_needs_encoding() -> None:
    with pytest.raises(ValueError, match="pass 'timestamp:s', ':ms', ':us' or ':ns' for digits since 1970"):
        type_name("timestamp:text")
    assert type_name("timestamp_ms:text") == "timestamp_ms:text"
