"""``edit_headers``: what stays, under which key, in which order, and the bytes of what is inserted."""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import struct
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import spark as lhs
from letterhead.operations import DecodeOptions, Select
from letterhead.types import SELECT_TYPES
from letterhead.values import VALUE_TYPES
from tests.reference import editing
from tests.spark.frames import HEADERS, collected, explained, failure, plain
from tests.spark.sample_values import TYPES, many_rows, values

ROWS = [[("a", b"1"), ("b", None), ("a", b"2"), ("κ", b"\xff"), ("", b"")], [("b", b"3")], [], None]


def frame_of(spark, rows, **others):
    source = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    return spark.createDataFrame(pa.table({"headers": pa.array(source, HEADERS), **others}))


def edited(df, **edits):
    """Return the headers of every row after edits, as pairs."""
    rows = lhs.edit_headers(df, **edits).select("headers").toArrow()["headers"].to_pylist()
    return [None if row is None else [(header["key"], header["value"]) for header in row] for row in rows]


# Rules ----------------------------------------------------------------------------------------------------------------


def rule(headers, change):
    """Return the headers that the reference implementation makes of others; a null list stays null if none are added."""
    result = editing.edit_headers([(key, None, value) for key, value in headers or []], change, typed=False)
    return None if headers is None and not result else [(key, value) for key, _, value in result]


def arguments(change):
    """Return the arguments of ``edit_headers`` for an edit of the reference implementation."""

    def value(new):
        return new if isinstance(new, str) else lh.lit(new[1])

    return {
        "only": change.only, "drop": change.drop or None, "rename": dict(change.rename) or None,
        "replace": {key: value(new) for key, new in change.replace}, "set": {key: value(new) for key, new in change.set},
        "append": [(key, value(new)) for key, new in change.append],
    }  # fmt: skip


ALL_KEYS = ["a", "b", "κ", "", "A", "a "]
KEYS = st.sampled_from(ALL_KEYS)
VALUES = st.none() | st.binary(max_size=9) | st.binary(min_size=6, max_size=9).map(lambda b: bytes(x & 0x7F for x in b))
HEADER_LISTS = st.none() | st.lists(st.tuples(KEYS, VALUES), max_size=6)


NEW_VALUES = VALUES.map(lambda value: (None, value))
MASKS = st.sampled_from(["hash", "redact", "last4"])


@st.composite
def edits(draw):
    """Draw an edit without contradictions."""
    keys = draw(st.permutations(ALL_KEYS))
    drop, set = (
        keys[: draw(st.integers(0, 2))],
        [(key, draw(NEW_VALUES)) for key in keys[2 : 2 + draw(st.integers(0, 1))]],
    )
    stay = keys[3:]
    only = draw(st.none() | st.just(stay))
    rename = draw(st.dictionaries(st.sampled_from(stay), st.sampled_from([*keys[:2], *stay]), max_size=3))
    replace = draw(st.dictionaries(st.sampled_from(stay), MASKS | NEW_VALUES, max_size=2))
    append = draw(st.lists(st.tuples(KEYS, NEW_VALUES), min_size=1, max_size=2))
    return editing.PlainEdit(only, drop, [*rename.items()], [*replace.items()], set, append[: draw(st.integers(0, 2))])


def is_edit(change):
    return change.only is not None or any(change[1:])


@pytest.mark.hypothesis
@many_rows
@given(st.lists(HEADER_LISTS, min_size=10, max_size=40), st.lists(edits().filter(is_edit), min_size=12, max_size=12))
def test_edits_match_reference(spark, rows, many):
    """A dozen edits in one job, each of a copy of the headers."""
    df = frame_of(spark, rows)
    df = df.select(*(F.col("headers").alias(f"h{n}") for n in range(len(many))))
    for n, edit in enumerate(many):
        df = lhs.edit_headers(df, column=f"h{n}", **arguments(edit))
    result = df.toArrow()
    for n, edit in enumerate(many):
        results = [
            None if row is None else [(header["key"], header["value"]) for header in row]
            for row in result[f"h{n}"].to_pylist()
        ]
        assert results == [rule(row, edit) for row in rows], edit


def test_each_edit_step_applies(spark):
    df = frame_of(spark, ROWS)
    assert edited(df, drop=["a"]) == [[("b", None), ("κ", b"\xff"), ("", b"")], [("b", b"3")], [], None]
    assert edited(df, only=["a", "κ"]) == [[("a", b"1"), ("a", b"2"), ("κ", b"\xff")], [], [], None]
    assert edited(df, only=[]) == [[], [], [], None]
    assert edited(df, rename={"a": "b", "b": "a"})[:2] == [
        [("b", b"1"), ("a", None), ("b", b"2"), ("κ", b"\xff"), ("", b"")],
        [("a", b"3")],
    ]
    assert edited(df, append={"a": lh.lit("é"), "n": None, "x": b"\x80"})[1:] == [
        [("b", b"3"), ("a", "é".encode()), ("n", None), ("x", b"\x80")],
        *[[("a", "é".encode()), ("n", None), ("x", b"\x80")]] * 2,
    ]
    assert edited(df, append=[("r", b"1"), ("r", lh.lit("2"))])[3] == [("r", b"1"), ("r", b"2")]


def test_last_four_bytes_are_shown_if_ascii(spark):
    values = [b"123456789", b"\x80\x81\x82\x83\x84\x85\x86\x87", b"\xff\xfe\xfdabcdefg", b"1234567", b"12345678\n"]
    df = frame_of(spark, [[("ssn", value) for value in values]])
    masked = [b"****6789", b"****", b"****defg", b"****", b"****"]
    assert edited(df, replace={"ssn": "last4"}) == [[("ssn", value) for value in masked]]


def test_many_keys_are_edited_at_once(spark):
    keys = [f"k{n}" for n in range(24)]
    twice = [(key, value) for value in (b"old", b"again") for key in keys]
    df = frame_of(spark, [twice, [("k3", None), ("other", b"o"), ("k3", b"again"), ("k1", b"old")]])
    values = {key: lh.lit(f"new {key}") if n % 2 else None for n, key in enumerate(keys)}
    written = [(key, f"new {key}".encode() if n % 2 else None) for n, key in enumerate(keys)]
    first = [("k3", b"new k3"), ("other", b"o"), ("k1", b"new k1")]
    added = [header for header in written if header[0] not in ("k1", "k3")]
    assert edited(df, set=values) == [written, first + added]
    skipped = [(key, value or b"old") for key, value in written]
    skipped += [(key, b"again") for key, value in written if value is None]
    assert edited(df, set=values, nulls="skip") == [skipped, first + [header for header in added if header[1]]]
    assert edited(df, rename=dict(itertools.pairwise(keys)), replace=dict.fromkeys(keys, "redact"))[1] == [
        ("k4", None), ("other", b"o"), ("k4", b"***"), ("k2", b"***")
    ]  # fmt: skip


def test_steps_apply_in_order(spark):
    """Keys are asked for as they came; what is inserted is neither dropped nor renamed."""
    df = frame_of(spark, ROWS[:1])
    replaced = edited(df, drop=["a"], rename={"b": "a"}, append={"b": b"new"})
    assert replaced == [[("a", None), ("κ", b"\xff"), ("", b""), ("b", b"new")]]
    again = edited(df, only=["a"], rename={"a": "b"}, append={"a": b"new"})
    assert again == [[("b", b"1"), ("b", b"2"), ("a", b"new")]]


def test_replaced_value_keeps_position(spark):
    df = frame_of(spark, ROWS)
    assert edited(df, replace={"a": lambda value: F.sha2(value, 256), "b": "redact"}) == [
        [("a", hashlib.sha256(b"1").hexdigest().encode()), ("b", None), ("a", hashlib.sha256(b"2").hexdigest().encode()),
         ("κ", b"\xff"), ("", b"")],
        [("b", b"***")], [], None,
    ]  # fmt: skip


def test_string_argument_names_column(spark):
    df = frame_of(spark, ROWS, tenant=pa.array(["t1", None, "t3", "t4"]))
    assert edited(df, only=[], append={"tenant": "tenant"}) == [
        [("tenant", b"t1")], [("tenant", None)], [("tenant", b"t3")], [("tenant", b"t4")]
    ]  # fmt: skip
    assert edited(df, only=[], set={"a": "tenant"}, nulls="skip")[:2] == [[("a", b"t1")], []]
    assert edited(df, set={"b": "tenant"}, nulls="skip")[1] == [("b", b"3")]


def test_functions_select_and_rename_by_key(spark):
    df = frame_of(spark, [[("ce_id", b"1"), ("id", b"2"), ("ce_", None)]])
    assert edited(df, drop=lambda key: key.startswith("ce_")) == [[("id", b"2")]]
    assert edited(df, only=lambda key: key.startswith("ce_")) == [[("ce_id", b"1"), ("ce_", None)]]
    renamed = edited(df, rename=lambda key: F.concat(F.lit("old."), key))
    assert renamed == [[("old.ce_id", b"1"), ("old.id", b"2"), ("old.ce_", None)]]


def test_header_with_null_key_is_never_matched(spark):
    """Nothing that is named touches it, and a key is never lost."""
    df = frame_of(spark, [[(None, b"1"), ("a", b"2")]])
    assert edited(df, drop=["a"], rename={"b": "c"}) == [[(None, b"1")]]
    assert edited(df, only=["a"]) == [[("a", b"2")]]
    assert edited(df, rename=lambda key: F.upper(key)) == [[(None, b"1"), ("A", b"2")]]
    bad = lhs.edit_headers(df, rename=lambda key: F.nullif(key, F.lit("a")))
    assert "rename makes the key of a header null (null_key)" in failure(bad)


def test_null_column_values_are_null_headers_or_skipped(spark):
    others = {"n": pa.array([1, None, None, None], pa.int32())}
    df = frame_of(spark, ROWS, **others)
    assert edited(df, only=["b"], append={"n": ("n", "int16")}) == [
        [("b", None), ("n", b"\0\1")], [("b", b"3"), ("n", None)], [("n", None)], [("n", None)],
    ]  # fmt: skip
    assert edited(df, only=["b"], append={"n": ("n", "int16")}, nulls="skip") == [
        [("b", None), ("n", b"\0\1")], [("b", b"3")], [], None,
    ]  # fmt: skip


def test_other_dataframe_columns_stay(spark, samples):
    orders = spark.read.parquet(str(samples / "orders-0.parquet"))
    same = lhs.edit_headers(orders, append={"x": b"1"}).transform(lhs.edit_headers, drop=["x"])
    assert same.schema.simpleString() == orders.schema.simpleString()
    # Only a list that was null has become one without headers.
    before = orders.withColumn("headers", F.coalesce("headers", F.array()))
    assert same.toArrow().to_pylist() == before.toArrow().to_pylist()
    assert orders.where("headers is null").count() == 300


def test_column_names_may_have_any_characters(spark):
    df = frame_of(spark, [[("k", b"v")]], **{"a.b`c": pa.array([5], pa.int8()), "inserted_0": pa.array(["mine"])})
    df = df.withColumnRenamed("headers", "h.`s")
    result = lhs.edit_headers(df, column="h.`s", append={"n": ("a.b`c", "int8"), "t": (F.col("inserted_0"), "string")})
    assert result.columns == ["h.`s", "a.b`c", "inserted_0"]
    assert [(header.key, bytes(header.value)) for header in result.first()[0]] == [
        ("k", b"v"), ("n", b"\5"), ("t", b"mine"),
    ]  # fmt: skip


@pytest.mark.spark_only
def test_edits_run_no_python(spark, samples):
    orders = spark.read.parquet(str(samples / "orders-0.parquet"))
    edit = partial(
        lhs.edit_headers,
        drop=lambda key: key.startswith("ce_"),
        rename={"retry": "attempt"},
        append={"at": ("timestamp", "timestamp_ms"), "f": (F.lit(1.5), "float64")},
    )
    plan = explained(orders.transform(edit), "extended")
    assert "attempt" in plan
    assert "Python" not in plan
    assert "MapInArrow" not in plan


def test_random_values_are_drawn_once(spark):
    """A value is looked at several times while it is written."""
    result = spark.range(500).select(F.array().cast("array<struct<key:string,value:binary>>").alias("headers"))
    result = lhs.edit_headers(result, append={"f": (F.rand(7) * 1e6, "float64"), "u": (F.expr("uuid()"), "uuid")})
    # A sum of parts of different draws would not keep to the range.
    rows = result.select(lhs.header("headers", "f", "float64"), lhs.header("headers", "u", "uuid")).collect()
    assert all(0 <= row.f < 1e6 for row in rows)
    assert len({row.f for row in rows}) == len({row.u for row in rows}) == 500
    assert abs(sum(row.f for row in rows) / 500 - 5e5) < 5e4


# Types ----------------------------------------------------------------------------------------------------------------

GROUPS = [TYPES[start : start + 6] for start in range(0, len(TYPES), 6)]


@pytest.mark.hypothesis
@pytest.mark.parametrize("types", GROUPS, ids=lambda types: types[0])
def test_written_messages_are_read_back(spark, types):
    """A column that the kernel made of any bytes is written, and the kernel reads the same out of it."""
    messages = st.tuples(*(st.lists(values(type), min_size=40, max_size=40) for type in types))

    @many_rows
    @given(messages)
    def agree(drawn):
        columns = {}
        for type, column in zip(types, drawn, strict=True):
            rows = pa.array([[{"key": "k", "value": value}] for value in column], HEADERS)
            fields = {"k": lh.field(type)}
            columns[type] = Select("kafka", fields, DecodeOptions(errors="null"), dialect="spark")(rows).field("k")
        df = frame_of(spark, [[]] * 40, **{f"c{n}": columns[type] for n, type in enumerate(types)})
        result = lhs.edit_headers(df, append={type: (f"c{n}", type) for n, type in enumerate(types)})
        lists = result.select("headers").toArrow()["headers"].combine_chunks().cast(HEADERS)
        restored = Select("kafka", {type: lh.field(type) for type in types}, dialect="spark")(lists)
        for place, (type, column) in enumerate(zip(types, drawn, strict=True)):
            assert plain(restored.field(type)) == plain(columns[type]), type
            if not type.endswith(":text") and "float" not in type:
                # Other than of text and of NaN, there is one spelling: the bytes are those it was read from.
                wrote = [row[place]["value"] for row in lists.to_pylist()]
                good = columns[type].is_valid().to_pylist()
                assert [w for w, ok in zip(wrote, good, strict=True) if ok] == [
                    c for c, ok in zip(column, good, strict=True) if ok
                ], type

    agree()


LIST = "headers array<struct<key:string,value:binary>>"


def bytes_of_value(spark, value, type, value_type):
    """Return the bytes that one value is written as."""
    df = spark.createDataFrame([(None, value)], f"{LIST}, v {value_type}")
    (header,) = lhs.edit_headers(df, append={"k": ("v", type)}).first().headers
    return header.value if header.value is None else bytes(header.value)


@pytest.mark.parametrize(
    ("value", "value_type", "type", "expected"),
    [
        (-2, "bigint", "int64", b"\xff\xff\xff\xff\xff\xff\xff\xfe"),
        (258, "int", "int32:le", b"\x02\x01\0\0"),
        (-1, "tinyint", "int16", b"\xff\xff"),
        (200, "smallint", "uint8", b"\xc8"),
        (Decimal(2**64 - 1), "decimal(20,0)", "uint64", b"\xff" * 8),
        (Decimal(-(10**38) + 1), "decimal(38,0)", "int128", (-(10**38) + 1).to_bytes(16, "big", signed=True)),
        (Decimal(10**38 - 1), "decimal(38,0)", "uint128:le", (10**38 - 1).to_bytes(16, "little")),
        (-7, "int", "int8:text", b"-7"),
        (True, "boolean", "bool", b"\1"),
        (False, "boolean", "bool:text", b"false"),
        ("é", "string", "char", b"\0\xe9"),
        ("\ufffe", "string", "char:le", b"\xfe\xff"),
        ("Zürich", "string", "string", "Zürich".encode()),
        ("00010203-0405-0607-0809-0A0B0C0D0E0F", "string", "uuid", bytes(range(16))),
        ("00010203-0405-0607-0809-0A0B0C0D0E0F", "string", "uuid:text", b"00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (datetime(2026, 1, 1, 0, 0, 0, 123000, UTC), "timestamp", "timestamp_ms", struct.pack(">q", 1767225600123)),
        (datetime(2026, 1, 1, tzinfo=UTC), "timestamp", "timestamp_ms:text", b"1767225600000"),
        (-0.0, "double", "float64", struct.pack(">d", -0.0)),
        (0.1, "double", "float64:le", struct.pack("<d", 0.1)),
        (5e-324, "double", "float64", b"\0\0\0\0\0\0\0\1"),
        (1.7976931348623157e308, "double", "float64", b"\x7f\xef" + b"\xff" * 6),
        (float("-inf"), "double", "float64", struct.pack(">d", float("-inf"))),
        (float("nan"), "double", "float64", struct.pack(">d", float("nan"))),
        (-1.5, "float", "float32", struct.pack(">f", -1.5)),
        (1.401298464324817e-45, "float", "float32", b"\0\0\0\1"),
        (0.25, "float", "float64", struct.pack(">d", 0.25)),
        (1.5, "double", "float64:text", b"1.5"),
        (None, "bigint", "int64", None),
    ],
)  # fmt: skip
def test_value_is_written_as_expected_bytes(spark, value, value_type, type, expected):
    assert bytes_of_value(spark, value, type, value_type) == expected


def test_written_bytes_match_native_types(spark):
    """Powers of two and their neighbours, in every order, against what `lh.encode` writes."""
    powers = [2.0**n for n in range(-1074, 1024)]
    doubles = [sign * number for sign in (1, -1) for p in powers for number in (p, math.nextafter(p, 0))]
    df = spark.createDataFrame(pa.table({"headers": pa.nulls(len(doubles), HEADERS), "v": pa.array(doubles)}))
    orders = ("be", "le")
    result = lhs.edit_headers(df, append={order: ("v", f"float64:{order}") for order in orders}).toArrow()
    for number, row in zip(result["v"].to_pylist(), result["headers"].to_pylist(), strict=True):
        assert [header["value"] for header in row] == [
            lh.decode(lh.encode([("k", lh.Float64(number))], "kafka", types=order), "kafka")["k"] for order in orders
        ], number


def test_every_type_is_written_from_its_read_type(spark):
    """The list of types is the reader's, so that none is forgotten."""
    columns = {name: lh.field(name) for name in SELECT_TYPES}
    df = frame_of(spark, [[]]).transform(lhs.select_headers, columns, keep=["headers"])
    result = lhs.edit_headers(df, append={name: (name, name) for name in SELECT_TYPES})
    assert [(header.key, header.value) for header in result.first().headers] == [(name, None) for name in SELECT_TYPES]
    assert set(VALUE_TYPES) <= set(SELECT_TYPES)


@pytest.mark.parametrize(
    ("value", "value_type", "type", "message"),
    [
        (128, "int", "int8", "header k: the number does not fit int8"),
        (-1, "int", "uint64", "header k: the number does not fit uint64"),
        (2**40, "bigint", "int32:text", "header k: the number does not fit int32"),
        (Decimal(2**64), "decimal(38,0)", "uint64:le", "header k: the number does not fit uint64"),
        ("ab", "string", "char", "header k: the text does not spell char"),
        ("📦", "string", "char:text", "header k: the text does not spell char"),
        ("0001", "string", "uuid", "header k: the text does not spell uuid"),
    ],
)
def test_value_out_of_range_fails_query(spark, value, value_type, type, message):
    df = spark.createDataFrame([(None, value)], f"{LIST}, v {value_type}")
    assert message in failure(lhs.edit_headers(df, append={"k": ("v", type)}))


@pytest.mark.spark_only
def test_non_utf8_text_is_not_written(spark):
    """A cast from binary makes such strings."""
    df = frame_of(spark, [None]).withColumn("v", F.lit(b"\xff").cast("string"))
    output = failure(lhs.edit_headers(df, append={"k": ("v", "string")}))
    assert "header k: the value is not UTF-8 (value_not_utf8)" in output


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no edit was requested: pass only, drop, rename, replace, set or append"),
        ({"drop": "retry"}, "drop must be a list of keys or a function of a Column, not str"),
        ({"only": [3]}, "a key of only must be str, not int"),
        ({"rename": ["a"]}, "rename must be a mapping of old key to new or a function of a Column, not list"),
        ({"rename": {"a": None}}, "a key of rename must be str, not NoneType"),
        ({"drop": ["a"], "rename": {"a": "b"}}, "drop and rename both name 'a'"),
        ({"only": ["b"], "rename": {"a": "b"}}, "rename names 'a', which only does not keep: add it to only"),
        ({"only": ["a"], "drop": ["a"]}, "only and drop both name 'a'"),
        ({"drop": ["a"], "replace": {"a": "hash"}}, "drop and replace both name 'a'"),
        ({"replace": {"a": "sha"}}, "unknown mask 'sha'"),
        ({"replace": {"a": lh.Int32(3)}}, "header 'a': pass bytes, such as lh.Int32(3).bits"),
        ({"set": ["a"]}, "set must be a mapping of keys, not list"),
        ({"append": "a"}, "append must be a mapping of keys or a list of pairs, not str"),
        ({"append": ["ab"]}, "append takes pairs of a key and a value, not str"),
        ({"append": {"a": 3}}, "header 'a': pass the name of a column, a Column, a pair (column, type), or lh.lit(...) for a "
                               "constant, not int: a number is (F.lit(3), 'int32')"),
        ({"append": {"a": ("n", "int46")}}, "header 'a': unknown type 'int46': did you mean 'int64'?"),
        ({"append": {"a": ("n", "string:le")}}, "header 'a': type 'string:le': string has neither byte order nor digits"),
        ({"append": {"a": ("n", "string:amqp")}}, "header 'a': type 'string:amqp' can be read, but not written"),
        ({"append": {"a": ("n", "int:json")}}, "header 'a': type 'int32:json' can be read, but not written"),
        ({"append": {"a": ("n", "int:varlen")}}, "header 'a': type 'int32:varlen' can be read, but not written"),
        ({"append": {"a": "b"}, "nulls": "drop"}, "unknown nulls value 'drop'"),
        ({"column": 3, "drop": ["a"]}, "column must be str or a Column, not int"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected_at_once(spark, options, message):
    with pytest.raises((TypeError, ValueError)) as raised:
        lhs.edit_headers(spark.range(1), **options)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "header"}, "unknown column 'header': did you mean 'headers'?"),
        ({"column": "text"}, "column 'text' is string, and headers are edited in array<struct<key:string,value:binary>>"),
        ({"append": {"a": ("ofset", "int64")}}, "header 'a': unknown column 'ofset': did you mean 'offset'?"),
        ({"append": {"a": ("text", "int64")}}, "header 'a': column 'text' is string, and int64 is written from tinyint, "
                                               "smallint, int, bigint or a decimal without places"),
        ({"append": {"a": ("real", "float32")}}, "header 'a': column 'real' is double, and float32 is written from float"),
        ({"append": {"a": ("price", "int64")}}, "header 'a': column 'price' is decimal(9,2), and int64 is written from"),
        ({"append": {"a": "ofset"}}, "header 'a': unknown column 'ofset': did you mean 'offset'?"),
        ({"drop": lambda key: True}, "the function of drop must return a Column, not bool"),
        ({"replace": {"a": lambda value: F.length(value)}},
         "header 'a': the function of replace returns int: cast it to string or binary"),
    ],
)  # fmt: skip
def test_unsuitable_dataframe_is_rejected(spark, options, message):
    df = frame_of(
        spark, ROWS[:1], offset=pa.array([1]), text=pa.array(["t"]), real=pa.array([0.5]),
        price=pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
    )  # fmt: skip
    with pytest.raises((TypeError, ValueError)) as raised:
        lhs.edit_headers(df, **{"drop": ["z"], **options})
    assert str(raised.value).startswith(message)


# Masks with a key, keys in any case, and what is not found -------------------------------------------------------------

SECRET = b"a key of more than sixteen bytes"


@pytest.mark.parametrize("key", [SECRET, SECRET * 4], ids=["short", "long"])
def test_hmac_matches_python(spark, key):
    df = frame_of(spark, ROWS)
    masks = {"a": lh.hmac(key), "b": lh.hmac(SECRET)}
    assert edited(df, replace=masks) == [
        None if row is None else lh.Headers(row).edit(replace=masks).items() for row in ROWS
    ]
    # Columns of the frame may have any names.
    named = frame_of(spark, ROWS, inner_0=pa.array([1] * 4), OUTER_0=pa.array([2] * 4))
    result = lhs.edit_headers(named, replace=masks, append={"n": ("inner_0", "int8")})
    assert result.columns == ["headers", "inner_0", "OUTER_0"]
    assert [row.headers[-1].value for row in result.collect()] == [b"\1"] * 4


def spellings(secret: bytes) -> list[str]:
    """Return how a plan might write bytes."""
    signed = [byte - 256 if byte > 127 else byte for byte in secret]
    return [
        secret.decode("latin-1"), secret.hex(), secret.hex().upper(), secret.hex(" ").upper(),
        base64.b64encode(secret).decode(), ",".join(map(str, signed)), ", ".join(map(str, signed)),
    ]  # fmt: skip


@pytest.mark.spark_only
def test_hmac_key_is_in_no_plan(spark):
    inner, outer = (bytes(byte ^ pad for byte in SECRET.ljust(64, b"\0")) for pad in (0x36, 0x5C))
    transform = partial(lhs.edit_headers, replace={"a": lh.hmac(SECRET)})
    df = frame_of(spark, ROWS).transform(transform)
    rows = df.collect()
    query = df._jdf.queryExecution()
    plans = [query.logical(), query.analyzed(), query.optimizedPlan(), query.sparkPlan(), query.executedPlan()]
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    texts = [
        *(explained(df, how) for how in ("simple", "extended", "codegen", "cost", "formatted")),
        query.toString(), *(plan.toJSON() for plan in plans), *(plan.treeString() for plan in plans),
        *(executions.apply(number).physicalPlanDescription() for number in range(executions.size())),
        repr(transform), str(transform), df._jdf.toString(), repr(df),
    ]  # fmt: skip
    assert any("sha2" in text for text in texts)
    for secret in (SECRET, inner, outer, inner[: len(SECRET)], outer[: len(SECRET)]):
        for spelled in spellings(secret):
            assert not any(spelled in text for text in texts), spelled
    # A constant would have been found.
    shown = explained(df.select(F.lit(SECRET)), "extended")
    assert any(spelled in shown for spelled in spellings(SECRET))
    assert len(rows) == len(ROWS)


@pytest.mark.spark_only
def test_hmac_masks_headers_of_stream(spark, tmp_path):
    source = frame_of(spark, ROWS)
    source.coalesce(1).write.parquet(str(tmp_path / "source"))
    stream = spark.readStream.schema(source.schema).parquet(str(tmp_path / "source"))
    query = (
        lhs.edit_headers(stream, replace={"a": lh.hmac(SECRET)})
        .writeStream.format("parquet").option("path", str(tmp_path / "sink"))
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination(60)
    written = spark.read.parquet(str(tmp_path / "sink"))
    assert {row.headers[0].value for row in written.where("get(headers, 0).key = 'a'").collect()} == {
        lh.Headers({"a": b"1"}).edit(replace={"a": lh.hmac(SECRET)})["a"]
    }
    kept = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert not any(SECRET in data or SECRET.hex().encode() in data for data in kept)


def test_keys_are_found_in_any_case_on_request(spark):
    rows = [[("SSN", b"1"), ("Ssn", b"2"), ("É", b"3"), ("\u0130d", b"4")], None]
    df = frame_of(spark, rows)
    for changes in (
        {"replace": {"sSn": "redact"}}, {"drop": ["ssn", "é", "i\u0307d"]}, {"only": ["SSn"]}, {"rename": {"ssn": "id"}},
        {"drop": ["SSN"], "append": {"ssn": lh.lit(b"x")}},
    ):  # fmt: skip
        expected = [lh.Headers(row or ()).edit(**changes, ignore_case=True).items() for row in rows]
        assert edited(df, **changes, ignore_case=True) == [expected[0], expected[1] or None]
    with pytest.raises(ValueError, match="set= has exact keys"):
        lhs.edit_headers(spark.range(1), set={"a": lh.lit(b"1")}, ignore_case=True)


def test_empty_changes_change_nothing(spark):
    df = frame_of(spark, ROWS)
    for changes in ({"drop": []}, {"rename": {}}, {"replace": {}}, {"set": {}}, {"append": []}, {"append": {}}):
        assert edited(df, **changes) == ROWS
    assert edited(df, only=[]) == [[], [], [], None]


@pytest.mark.spark_only
def test_masked_headers_are_counted(spark):
    from pyspark.sql import Observation

    df = frame_of(spark, ROWS)
    for ignore_case, counts in ((False, {"a": 2, "A": 0, "B": 0}), (True, {"b": 2, "a": 2})):
        observation = Observation("hidden")
        changes = {"drop": ["B"]} if ignore_case else {"drop": ["A", "B"]}
        edit = partial(lhs.edit_headers, replace={"a": "hash"}, **changes, observe=observation, ignore_case=ignore_case)
        df.transform(edit).collect()
        assert observation.get == counts
    with pytest.raises(ValueError, match="observe= counts the keys in drop= and replace="):
        lhs.edit_headers(df, append={"a": lh.lit(b"1")}, observe="hidden")


@pytest.mark.spark_only
def test_python_mask_is_rejected(spark):
    mask = F.udf(lambda value: value, "binary")
    with pytest.raises(TypeError, match=r"header 'a': the function of replace runs Python.*lh\.hmac\(key\)"):
        frame_of(spark, ROWS).transform(lhs.edit_headers, replace={"a": mask})


def test_times_are_exact_or_truncated_on_request(spark):
    df = spark.createDataFrame([(None, datetime(2026, 1, 1, 0, 0, 0, 123999, UTC))], f"{LIST}, at timestamp")
    for type, written in (("timestamp_ms", struct.pack(">q", 1767225600123)), ("timestamp:s", b"1767225600")):
        change = {"k": ("at", type)}
        assert "header k: the time has more decimals than" in failure(lhs.edit_headers(df, append=change))
        assert edited(df, append=change, truncate=True) == [[("k", written)]]
    assert edited(df, set={"k": ("at", "timestamp:iso")}) == [[("k", b"2026-01-01T00:00:00.123999Z")]]
    with pytest.raises(TypeError, match="truncate must be bool"):
        lhs.edit_headers(spark.range(1), drop=["a"], truncate=1)


def test_non_binary_column_needs_type(spark):
    df = frame_of(spark, ROWS[:1], offset=pa.array([1]))
    assert edited(df, only=[], append={"o": F.col("offset").cast("string"), "b": F.lit(b"\0")}) == [
        [("o", b"1"), ("b", b"\0")]
    ]
    with pytest.raises(TypeError) as raised:
        lhs.edit_headers(df, append={"o": F.col("offset")})
    assert str(raised.value) == (
        "header 'o': the column is bigint, which needs a type to be written: pass a pair such as (column, 'int64')"
    )


def test_selected_columns_become_headers_again(spark, samples):
    """Headers into columns and columns into headers: the same bytes."""
    orders = spark.read.parquet(str(samples / "orders-0.parquet")).where("size(headers) > 3")
    types = {"tenant": "string", "retry": "int32", "amount_cents": "int64", "weight_kg": "float64"}
    typed = lhs.select_headers(orders, types, keep=["offset", "headers"])
    again = lhs.edit_headers(typed, drop=list(types), append={key: (key, type) for key, type in types.items()})
    selected_headers = F.filter("headers", lambda h: h.key.isin(*types))
    before = collected(orders.select("offset", F.array_sort(selected_headers).alias("h")).orderBy("offset"))
    after = collected(again.select("offset", F.array_sort(selected_headers).alias("h")).orderBy("offset"))
    assert len(before["h"]) == 9_700
    assert after == before
