"""Types as users name them: our names, Spark SQL's, and the objects of PySpark and pyarrow."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

import letterhead as lh
from letterhead import arrow as lha
from letterhead.fields import field_and_default
from letterhead.types import SELECT_TYPES, type_name

MESSAGE = lh.encode([("n", b"\0\0\0\0\0\0\0\3"), ("route", b"a"), ("route", b"b")], "kafka")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        *((name, name) for name in SELECT_TYPES),
        ("bigint", "int64"),
        ("long", "int64"),
        ("BIGINT", "int64"),
        ("int", "int32"),
        ("integer", "int32"),
        ("smallint", "int16"),
        ("short", "int16"),
        ("tinyint", "int8"),
        ("byte", "int8"),
        ("double", "float64"),
        ("float", "float32"),
        ("real", "float32"),
        ("boolean", "bool"),
        ("timestamp", "timestamp_ms"),
        ("bigint:le", "int64:le"),
        (lh.Int64, "int64"),
        (lh.Bool, "bool"),
        (lh.UInt128, "uint128"),
        (lh.String, "string"),
        (T.LongType(), "int64"),
        (T.IntegerType(), "int32"),
        (T.ShortType(), "int16"),
        (T.ByteType(), "int8"),
        (T.DoubleType(), "float64"),
        (T.FloatType(), "float32"),
        (T.BooleanType(), "bool"),
        (T.TimestampType(), "timestamp_ms"),
        (T.StringType(), "string"),
        (T.BinaryType(), "binary"),
        (pa.int64(), "int64"),
        (pa.uint16(), "uint16"),
        (pa.float64(), "float64"),
        (pa.float32(), "float32"),
        (pa.bool_(), "bool"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.binary_view(), "binary"),
        (pa.timestamp("ms", "UTC"), "timestamp_ms"),
    ],
    ids=str,
)
def test_every_spelling_of_type_has_one_name(source: Any, name: str) -> None:
    assert type_name(source) == name
    assert lh.field(source) == lh.Field(name)


@pytest.mark.parametrize(
    ("source", "element"),
    [
        ("array<string>", "string"),
        ("array<bigint>", "int64"),
        ("ARRAY<INT>", "int32"),
        ("array<int32:le>", "int32:le"),
        ("array<string:amqp>", "string:amqp"),
        (T.ArrayType(T.StringType()), "string"),
        (pa.list_(pa.string()), "string"),
        (pa.large_list(pa.int64()), "int64"),
        (pa.list_(pa.field("element", pa.int8(), nullable=False)), "int8"),
    ],
    ids=str,
)
def test_array_lists_every_value(source: Any, element: str) -> None:
    assert lh.field(source, key="k") == lh.Field(element, "k", "all")
    with pytest.raises(ValueError, match="is a list where one value is expected"):
        type_name(source)


def test_array_of_arrays_or_single_value_is_rejected() -> None:
    with pytest.raises(ValueError, match="is a list of lists"):
        lh.field("array<array<string>>")
    with pytest.raises(ValueError, match="leave out repeat='first'"):
        lh.field("array<string>", repeat="first")


@pytest.mark.parametrize("types", [("bigint", "array<string>"), (T.LongType(), T.ArrayType(T.StringType())),
                                   (pa.int64(), pa.list_(pa.string()))], ids=str)  # fmt: skip
def test_columns_are_selected_by_any_type_name(types: tuple[Any, Any]) -> None:
    columns = {"n": types[0], "route": types[1]}
    assert lh.select(MESSAGE, columns) == {"n": 3, "route": ["a", "b"]}
    assert lha.select(pa.array([MESSAGE]), columns).to_pylist() == [{"n": 3, "route": ["a", "b"]}]


@pytest.mark.parametrize("source", ["int", "INTEGER", T.IntegerType(), pa.int32()], ids=str)
def test_conversions_and_values_accept_any_type_name(source: Any) -> None:
    message = lh.encode([("retry", b"\0\0\0\3")], "kafka")
    result = lh.convert(message, "kafka", target="iggy", types={"retry": source})
    assert lh.decode(result, "iggy") == lh.Headers([("retry", lh.Int32(3))])
    assert lha.convert(pa.array([message]), "kafka", target="iggy", types={"retry": [source]}).to_pylist() == [result]
    assert lh.Value(source, 3) == lh.Int32(3)
    assert lh.Value.from_bits(source, b"\0\0\0\3").type == "int32"
    assert lha.amqp(pa.array([b"\x54\x03"]), source).to_pylist() == [3]


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("bigin", "bigint"),
        ("bint", "bigint"),
        ("biint", "bigint"),
        ("lnog", "long"),
        ("smalint", "smallint"),
        ("tinint", "tinyint"),
        ("int46", "int64"),
        ("int33", "int32"),
        ("uint46", "uint64"),
        ("dobule", "double"),
        ("floot64", "float64"),
        ("strnig", "string"),
        ("integer64", "int64"),
        ("u64", "uint64"),
        ("uint", "uint64"),
        ("ulong", "uint64"),
        ("hugeint", "int128"),
        ("bytes", "binary"),
        ("VARCHAR(10)", "string"),
    ],
)
def test_suggested_type_is_never_narrower(wrong: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"unknown type '{re.escape(wrong)}': did you mean '{near}'"):
        lh.field(wrong)


@pytest.mark.parametrize(
    "wrong",
    ["int256", "float128", "timestamp_ns", "timestamp_ntz", "char(3)", "byts", "uinteger", T.CharType(3),
     T.TimestampNTZType(), pa.timestamp("us", "UTC"), pa.float16()],
    ids=str,
)  # fmt: skip
def test_no_narrower_type_is_suggested_for_unsupported_one(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^unknown type ") as caught:
        lh.field(wrong)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "lists_spark"),
    [
        ("strin", False),
        ("flaot64", False),
        ("BIGINTT", True),
        ("bigintt", True),
        ("decimal(x)", True),
        ("nothing", False),
    ],
)
def test_error_lists_type_names_of_the_dialect_used(wrong: str, lists_spark: bool) -> None:
    with pytest.raises(ValueError, match=r"^unknown type ") as caught:
        lh.field(wrong)
    assert ("bigint" in str(caught.value).partition("types: ")[2]) == lists_spark


@pytest.mark.parametrize(
    ("bare", "type"),
    [
        ("date", "date:text"),
        (T.DateType(), "date:text"),
        (pa.date32(), "date:text"),
        ("decimal(10, 2)", "decimal(10,2):text"),
        (T.DecimalType(10, 2), "decimal(10,2):text"),
        (pa.decimal128(38, 2), "decimal(38,2):text"),
    ],
    ids=str,
)
def test_type_without_binary_form_suggests_text(bare: Any, type: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"pass '{type}'")):
        lh.field(bare)
    assert lh.field(type) == lh.Field(type)


def test_alternatives_must_be_types_of_same_values() -> None:
    assert lh.field("int|int:text", key="k") == lh.Field("int32 | int32:text", "k")
    assert lh.field("array<int | int:text>").type == "int32 | int32:text"
    assert lh.field("timestamp | timestamp:iso").type == "timestamp_ms | timestamp:iso"
    assert lh.field("int32 | int64:text").type == "int32 | int64:text"
    with pytest.raises(ValueError, match="return int and double"):
        lh.field("int32 | float64:text")
    with pytest.raises(ValueError, match="unknown type 'foo'"):
        lh.field("int32 | foo")


def test_unknown_nested_type_is_named_completely() -> None:
    with pytest.raises(ValueError, match="unknown type 'struct<a: int8>'"):
        lh.field(pa.struct([("a", pa.int8())]))


def test_unknown_suffix_lists_suffixes() -> None:
    with pytest.raises(
        ValueError,
        match=r"unknown suffix 'ge' \(suffixes: be, le, text, guid, reversed, json, connect, varlen, amqp, utf-16le, utf-16be, latin-1, iso, s, ms, us, ns, base64, hex\)",
    ):
        lh.field("int16:ge")


@pytest.mark.parametrize(
    ("type", "message"), [("string:varlen", "only integers"), ("int128:amqp", "AMQP has no int128")]
)
def test_types_missing_from_notation_are_rejected(type: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"type '{type}': {message}"):
        lh.select(b"", {"k": type})


@pytest.mark.parametrize(
    ("source", "sql", "listed"),
    [
        ("int46", False, "types: string, binary, bool,"),
        ("bigit", False, "types: string, binary, boolean, tinyint, smallint, int, bigint,"),
        ("VARCHAR", False, "types: string, binary, boolean,"),
        (T.NullType(), False, "types: string, binary, boolean,"),
        ("int46", True, "types: string, binary, boolean,"),
        (pa.float16(), False, "types: string, binary, bool, int8, .*, timestamp\\[ms, tz=UTC\\], list<...>"),
        (pa.list_(pa.timestamp("us", "UTC")), True, "types: string, binary, bool, int8,"),
    ],
    ids=str,
)
def test_unknown_type_lists_names_of_dialect(source: Any, sql: bool, listed: str) -> None:
    with pytest.raises(ValueError, match=listed) as caught:
        field_and_default(source, sql=sql)
    assert str(caught.value).endswith("<...>)")


def test_unknown_written_type_lists_library_names() -> None:
    with pytest.raises(ValueError, match="types: string, binary, bool, char, int8"):
        lh.encode([("retry", b"1")], "iggy", types={"retry": "int46"})


@pytest.mark.parametrize("source", [3, None, int, T.LongType, b"int64"], ids=str)
def test_non_type_raises_type_error(source: Any) -> None:
    with pytest.raises(TypeError, match="a type such as 'int64'"):
        lh.field(source)
