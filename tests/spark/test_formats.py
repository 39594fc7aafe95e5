"""Every format in Spark: a message is read, its headers are selected, and it is written again."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead import spark as lhs
from tests.spark.formats import BATCHES, ERROR, EXAMPLES, LOSSES, TYPED
from tests.spark.frames import collected, failure, values_of

BLOCKS = [name for name, example in EXAMPLES.items() if list(example.types) == ["headers"]]
WITH_TYPES = [name for name, example in EXAMPLES.items() if "type:" in example.types["headers"]]


def test_every_format_has_an_example():
    assert [*EXAMPLES, *BATCHES] == [row["name"] for row in _native.formats()]


@pytest.mark.parametrize("format", EXAMPLES)
def test_message_is_decoded_and_rewritten(spark, format):
    example = EXAMPLES[format]
    df = values_of(spark, [example.value, example.value]).transform(
        lhs.decode_headers, format, column="data", keep=["number", "data"]
    )
    assert dict(df.dtypes) == {"number": "bigint", "data": "binary", **example.types}
    target = "iggy" if format == "iggy-auto" else format
    written = lhs.encode_headers(df, target, into="again", keep=df.columns)
    result = collected(written)
    assert {name: result[name] for name in example.types} == {name: [value] * 2 for name, value in example.row.items()}
    assert result["again"] == result["data"] == [example.value] * 2


@pytest.mark.parametrize("format", EXAMPLES)
def test_headers_are_selected_from_bytes_and_lists(spark, format):
    example = EXAMPLES[format]
    by_bytes = values_of(spark, [example.value, None]).transform(
        lhs.select_headers, example.columns, column="data", format=format, keep=[]
    )
    expected = {name: [value, None] for name, value in example.selected.items()}
    assert collected(by_bytes) == expected

    read = lha.decode(pa.array([example.value], pa.binary()), format)
    headers = read if format in BLOCKS else read.field("headers")
    by_list = spark.createDataFrame(pa.table({"headers": headers})).transform(
        lhs.select_headers, example.columns, format=format
    )
    assert by_list.dtypes == by_bytes.dtypes
    assert collected(by_list) == {name: [value] for name, value in example.selected.items()}


# Types and keys -------------------------------------------------------------------------------------------------------

VALUES = {
    "bool": (lh.Bool(True), "boolean", True),
    "int8": (lh.Int8(-128), "tinyint", -128),
    "int16": (lh.Int16(-32768), "smallint", -32768),
    "int32": (lh.Int32(-(2**31)), "int", -(2**31)),
    "int64": (lh.Int64(-(2**63)), "bigint", -(2**63)),
    "int128": (lh.Int128(-(10**38) + 1), "decimal(38,0)", Decimal(-(10**38) + 1)),
    "uint8": (lh.UInt8(255), "smallint", 255),
    "uint16": (lh.UInt16(65535), "int", 65535),
    "uint32": (lh.UInt32(2**32 - 1), "bigint", 2**32 - 1),
    "uint64": (lh.UInt64(2**64 - 1), "decimal(20,0)", Decimal(2**64 - 1)),
    "uint128": (lh.UInt128(10**38 - 1), "decimal(38,0)", Decimal(10**38 - 1)),
    "float32": (lh.Float32(0.5), "float", (0.5, 1.0)),
    "float64": (lh.Float64(-0.0), "double", (0.0, -1.0)),
    "char": (lh.Char("é"), "string", "é"),
    "string": (lh.String("📦"), "string", "📦"),
    "binary": (lh.Binary(b"\0"), "binary", b"\0"),
}


@pytest.mark.parametrize("format", ["kip82-typed", "iggy-2023", "iggy"])
def test_values_of_every_type_arrive(spark, format):
    codes = {type["name"]: type["kip82" if format == "kip82-typed" else "iggy"] for type in _native.types()}
    types = [type for type in VALUES if codes[type] is not None]
    assert len(types) == (10 if format == "kip82-typed" else 15)
    data = lh.encode([(type, VALUES[type][0]) for type in types], format)
    df = values_of(spark, [data]).transform(
        lhs.select_headers, {type: type for type in types}, column="data", format=format, keep=[]
    )
    assert df.dtypes == [(type, VALUES[type][1]) for type in types]
    assert collected(df) == {type: [VALUES[type][2]] for type in types}


def test_number_over_decimal_range_is_error_of_its_column(spark):
    rows = [lh.encode([("a", lh.UInt128(10**38)), ("b", lh.UInt128(1))], "iggy")]
    df = values_of(spark, rows).transform(
        lhs.select_headers, {"a": "uint128", "b": "uint128"}, column="data", format="iggy", keep=[], errors="column"
    )
    result = collected(df)
    assert (result["a"], result["b"]) == ([None], [Decimal(1)])
    assert [(error["code"], error["column"]) for error in result["error"][0]] == [("out_of_range", "a")]


@pytest.mark.parametrize("format", WITH_TYPES)
def test_value_of_wrong_type_is_error(spark, format):
    """Never a guess: int32 has the bytes of a float32 too."""
    first = next(name for name, type in EXAMPLES[format].columns.items() if type == "string")
    columns = {"wrong": lh.field("int32", key=first), first: "string"}
    df = values_of(spark, [EXAMPLES[format].value])
    text = failure(lhs.select_headers(df, columns, column="data", format=format, keep=["number"]))
    assert "column wrong: the value is string and int32 was requested" in text
    result = collected(lhs.select_headers(df, columns, column="data", format=format, keep=[], errors="column"))
    assert (result["wrong"], result[first]) == ([None], ["acme"])
    assert [(error["code"], error["key"], error["column"]) for error in result["error"][0]] == [
        ("wrong_type", first, "wrong")
    ]


def test_type_codes_without_name_pass_or_are_rejected(spark):
    rows = [EXAMPLES["iggy"].value]
    assert "value type code 200 is unknown" in failure(
        values_of(spark, rows).transform(lhs.decode_headers, "iggy", column="data", strict_types=True)
    )
    columns = {"tenant": "string", "flag": "binary"}
    select = partial(
        lhs.select_headers, column="data", headers=columns, format="iggy", keep=[], errors="column", strict_types=True
    )
    result = collected(values_of(spark, rows).transform(select))
    assert (result["tenant"], result["flag"]) == (["acme"], [None])
    assert [error["code"] for error in result["error"][0]] == ["unknown_type"]


@pytest.mark.parametrize("format", ["iggy", "iggy-auto", "iggy-message"])
def test_typed_keys_are_read_as_text_on_request(spark, format):
    headers = [("tenant", lh.String("acme")), ("n", lh.Int8(1))]
    message = headers if format != "iggy-message" else lh.Message(headers=headers, payload=b"p", id=bytes(16))
    good = lh.encode(message, "iggy" if format == "iggy-auto" else format)
    df = values_of(spark, [good, EXAMPLES[format].value]).transform(
        lhs.decode_headers, format, column="data", keep=["number"], text_keys=True, errors="column"
    )
    assert dict(df.dtypes)["headers"] == TYPED
    result = collected(df)
    assert result["headers"][0] == [
        {"key": "tenant", "type": "string", "value": b"acme"},
        {"key": "n", "type": "int8", "value": b"\1"},
    ]
    # A list with a hole in it would not show that there is one.
    assert result["headers"][1] is None
    assert [(error["header"], error["key"]) for error in result["error"][1]] == [(1, "int32:3"), (2, "binary:ff")]


def test_text_keys_are_written_as_typed_keys(spark):
    data = lh.encode([("tenant", lh.String("acme")), ("n", lh.Int8(1))], "iggy")
    df = values_of(spark, [data]).transform(lhs.decode_headers, "iggy", column="data", text_keys=True, keep=["data"])
    result = collected(lhs.encode_headers(df, "iggy", into="again"))
    assert result["again"] == result["data"] == [data]


# Errors ---------------------------------------------------------------------------------------------------------------


GOOD = EXAMPLES["iggy"].value

PLACES = [GOOD.index(b"\x0c\x08\0\0\0"), GOOD.index(b"\x08\x10\0\0\0")]
"""Where the types of the second and the third value are."""

ONE_BAD, TWO_BAD = (bytes(0 if at in PLACES[:bad] else byte for at, byte in enumerate(GOOD)) for bad in (1, 2))

CUT = GOOD[:-1]


def test_bad_header_does_not_hide_neighbours(spark):
    select = partial(
        lhs.select_headers, column="data", headers=EXAMPLES["iggy"].columns, format="iggy", keep=[], errors="column"
    )
    result = collected(values_of(spark, [GOOD, ONE_BAD, None, CUT]).transform(select))
    assert result["tenant"] == ["acme", "acme", None, "acme"]
    assert result["big"] == [Decimal(2**64 - 1), None, None, Decimal(2**64 - 1)]
    assert result["wide"] == [Decimal(-1), Decimal(-1), None, Decimal(-1)]
    assert result["error"][:3] == [
        None,
        [{"code": "unknown_type", "message": "value type code 0 is unknown", "byte_offset": PLACES[0], "header": 1,
          "key": "int32:3", "column": None}],
        None,
    ]  # fmt: skip
    cut, *superseded = result["error"][3]
    assert cut == {
        "code": "truncated", "message": "value takes 1 byte and 0 are left", "byte_offset": len(CUT), "header": 3,
        "key": "flag", "column": None,
    }  # fmt: skip
    # Headers after the cut may have the keys of those before it.
    assert {(error["code"], error["column"]) for error in superseded} == {
        ("incomplete", name) for name in ("tenant", "big", "wide")
    }


def test_list_with_bad_header_is_null_and_reports_all_errors(spark):
    df = values_of(spark, [GOOD, ONE_BAD, TWO_BAD, CUT]).transform(
        lhs.decode_headers, "iggy", column="data", errors="column"
    )
    assert dict(df.dtypes)["error"] == ERROR
    result = collected(df)
    assert result["headers"] == [EXAMPLES["iggy"].row["headers"], None, None, None]
    assert [error and [(detail["code"], detail["header"]) for detail in error] for error in result["error"]] == [
        None, [("unknown_type", 1)], [("unknown_type", 1), ("unknown_type", 2)], [("truncated", 3)],
    ]  # fmt: skip
    two = values_of(spark, [GOOD, ONE_BAD])
    nulls = lhs.decode_headers(two, "iggy", column="data", keep=["number"], errors="null")
    assert collected(nulls) == {"number": [0, 1], "headers": [EXAMPLES["iggy"].row["headers"], None]}
    text = failure(lhs.decode_headers(two, "iggy", column="data", keep=["number"]))
    assert f"iggy: value type code 0 is unknown (header 1, byte {PLACES[0]})" in text


def test_fields_read_before_error_are_kept(spark):
    example = EXAMPLES["kip82-message-int"]
    bad = bytearray(example.value)
    bad[12] ^= 1  # of the checksum
    df = values_of(spark, [bytes(bad)]).transform(
        lhs.decode_headers, "kip82-message-int", column="data", errors="column"
    )
    result = collected(df)
    assert result["headers"] == [example.row["headers"]]
    assert (result["offset"], result["value"]) == ([41], [b"v"])
    assert [(error["code"], error["byte_offset"], error["header"]) for error in result["error"][0]] == [
        ("bad_crc", 12, None)
    ]


@pytest.mark.parametrize("format", BATCHES)
def test_batch_is_rejected_where_message_is_expected(spark, format):
    message = re.escape(f"{format} is a batch: read it with messages")
    for make in (
        lambda df: lhs.decode_headers(df, format, column="data"),
        lambda df: lhs.select_headers(
            df, {"k": lh.field("string", key=7 if "kip82" in format else "k")}, format, column="data"
        ),
        lambda df: lhs.encode_headers(df, format),
        lambda _: lhs.header("headers", "k", "string", format=format),
        lambda _: lhs.header("headers", "k", "string", format=format, engine="spark"),
    ):
        with pytest.raises(ValueError, match=message):
            make(spark.range(1))
    with pytest.raises(ValueError, match=f"{format} is a batch: convert its messages one by one"):
        lhs.convert_headers(spark.range(1), format, column="data", target="kafka")
    with pytest.raises(ValueError, match=f"{format} is a batch and no target"):
        lhs.convert_headers(spark.range(1), "kafka", column="data", target=format)


# Writing --------------------------------------------------------------------------------------------------------------


def test_values_get_types_when_written(spark):
    df = values_of(spark, [EXAMPLES["kafka"].value]).transform(lhs.decode_headers, "kafka", column="data", keep=[])
    types = {"tenant": "string", "route": ["string", "binary"]}
    encode = partial(lhs.encode_headers, format="iggy", types=types, on_loss="report", into="data")
    result = collected(df.transform(encode))
    assert list(lh.decode(result["data"][0], "iggy")) == [
        ("tenant", lh.String("acme")), ("route", lh.String("a")), ("route", lh.Binary(b"b")),
    ]  # fmt: skip
    assert result["losses"] == [[{
        "code": "null_not_carried", "message": "the value is null", "header": 3, "key": "note", "type": None,
        "written": None,
    }]]  # fmt: skip
    text = failure(lhs.encode_headers(df, "kip82-typed"))
    assert "ConversionError: kip82-typed: kip82-typed values need a type: pass types={" in text


def test_types_option_selects_bytes_in_untyped_format(spark):
    """A list with types goes into a format without, if it is said how."""
    df = values_of(spark, [EXAMPLES["kip82-typed"].value]).transform(
        lhs.decode_headers, "kip82-typed", column="data", keep=[]
    )
    for types, retry in (("be", b"\0\0\0\3"), ("le", b"\3\0\0\0"), ("text", b"3")):
        encode = partial(lhs.encode_headers, format="kafka", types=types, on_loss="report", into="data")
        result = df.transform(encode)
        assert result.dtypes == [("data", "binary"), ("losses", LOSSES)]
        columns = collected(result)
        assert lh.decode(columns["data"][0], "kafka").get("retry") == retry
        assert [loss["type"] for loss in columns["losses"][0]][1:] == [
            *({"be": ["int32", "int64"], "le": ["int32:le", "int64:le"], "text": ["int32:text", "int64:text"]}[types]),
            "binary",
        ]


def test_headers_are_sorted_like_iggy(spark):
    df = values_of(spark, [EXAMPLES["iggy"].value]).transform(lhs.decode_headers, "iggy", column="data", keep=[])
    result = collected(lhs.encode_headers(df, "iggy", canonical=True, into="data"))
    keys = [key for key, _ in lh.decode(result["data"][0], "iggy")]
    # By the code of the type: binary 1, string 2, int32 6.
    assert keys == [lh.Binary(b"\xff"), "flag", "tenant", lh.Int32(3)]


def test_message_fields_can_be_null(spark):
    """The writer fills in what it computes, and its own defaults."""
    df = values_of(spark, [EXAMPLES["kip82-int"].value]).transform(
        lhs.decode_headers, "kip82-int", column="data", keep=["number"]
    )
    frame = df.selectExpr("headers", "cast('v' as binary) body", "1767225600000L as at", "41L as offset")
    with pytest.raises(
        ValueError, match=re.escape("unknown column 'crc' (columns: headers, body, at, offset): ")
    ) as raised:
        lhs.encode_headers(frame, "kip82-message-int")
    assert str(raised.value).endswith("pass fields={'crc': ...} with another column, or None for null")
    fields = {"value": "body", "timestamp": "at", "key": None} | dict.fromkeys(
        ["crc", "magic", "attributes", "tombstone"]
    )
    written = lhs.encode_headers(frame, "kip82-message-int", fields=fields)
    assert written.columns == ["value"]
    (data,) = collected(written)["value"]
    assert lh.decode(data, "kip82-message-int") == lh.Message(
        offset=41, crc=int.from_bytes(data[12:16], "big"), magic=2, attributes=16, timestamp=1767225600000, key=None,
        headers=[(7, b"\0\0\0\3"), (1000001, b"acme"), (7, None)], value=b"v", tombstone=False,
    )  # fmt: skip
