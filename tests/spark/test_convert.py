"""``convert_headers``: from each format, into each, there and back, and what is lost on the way."""

from __future__ import annotations

import re
from functools import partial

import pytest
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import spark as lhs
from tests.spark.formats import ERROR, EXAMPLES, LOSSES
from tests.spark.frames import collected, failure, values_of

HEADERS = [("tenant", b"acme"), ("retry", b"\0\0\0\3"), ("retry", b"4"), ("7", b"x")]

VALUE_TYPES = {"tenant": "string", "retry": ["int32", "int8:text"], "7": "binary"}

WITH_TYPES = [("tenant", lh.String("acme")), ("retry", lh.Int32(3)), ("retry", lh.Int8(4)), ("7", lh.Binary(b"x"))]


def headers_of(message: bytes, format: str):
    read = lh.decode(message, format)
    return list(read if isinstance(read, lh.Headers) else read.headers)


# Values ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [name for name in EXAMPLES if name != "iggy-auto"])
def test_kafka_headers_are_written_in_every_format(spark, target):
    headers = EXAMPLES[target].types["headers"]
    types, written = (VALUE_TYPES, WITH_TYPES) if "type:" in headers else (None, HEADERS)
    if "key:int" in headers:
        # The other keys are no numbers.
        written = [(7, b"x")]
    df = values_of(spark, [lh.encode(HEADERS, "kafka"), None, b""]).transform(
        lhs.convert_headers, "kafka", column="data", target=target, types=types, on_loss="drop"
    )
    assert df.dtypes == [("number", "bigint"), ("data", "binary")]
    result = collected(df)
    assert result["number"] == [0, 1, 2]
    whole, null, empty = result["data"]
    assert headers_of(whole, target) == written
    assert null is None
    assert headers_of(empty, target) == []


@pytest.mark.parametrize("format", EXAMPLES)
def test_headers_of_every_format_are_written_for_kafka(spark, format):
    text = {
        "array<struct<key:string,value:binary>>": [("tenant", b"acme"), ("route", b"a"), ("route", b"b"), ("note", None)],
        "array<struct<key:string,type:string,value:binary>>": [
            ("tenant", b"acme"), ("retry", b"3"), ("at", b"1767225600000"), ("raw", b"\0\1"),
        ],
        "array<struct<key:int,value:binary>>": [("7", b"\0\0\0\3"), ("1000001", b"acme"), ("7", None)],
        "array<struct<key_type:string,key:binary,type:string,value:binary>>": [
            ("tenant", b"acme"), ("3", str(2**64 - 1).encode()), ("flag", b"x"),
        ],
    }  # fmt: skip
    df = values_of(spark, [EXAMPLES[format].value]).transform(
        lhs.convert_headers, format, column="data", target="kafka", types="text", on_loss="drop", into="block", keep=[]
    )
    (message,) = collected(df)["block"]
    assert headers_of(message, "kafka") == text[EXAMPLES[format].types["headers"]]


def test_headers_survive_round_trip_through_iggy(spark):
    messages = [lh.encode(HEADERS, "kafka"), b"", None]
    there = partial(
        lhs.convert_headers, column="data", format="kafka", target="iggy", types=VALUE_TYPES, into="iggy", keep=["data"]
    )
    restored = partial(
        lhs.convert_headers, column="iggy", format="iggy", target="kafka", types="be", on_loss="report", into="back"
    )
    df = values_of(spark, messages).transform(there).transform(restored)
    assert df.dtypes == [("data", "binary"), ("back", "binary"), ("losses", LOSSES)]
    result = collected(df)
    expected = [(key, b"\4" if value == b"4" else value) for key, value in HEADERS]
    assert [message and headers_of(message, "kafka") for message in result["back"]] == [expected, b"", None]
    assert [losses and [(loss["key"], loss["type"], loss["written"]) for loss in losses] for losses in result["losses"]] == [
        [("tenant", "string", "as it is"), ("retry", "int32", "big-endian"), ("retry", "int8", "big-endian"),
         ("7", "binary", "as it is")],
        None,
        None,
    ]  # fmt: skip


def test_losses_name_the_options_that_restore_the_headers(spark):
    """Iggy to Kafka and back with the types that were reported."""
    message = lh.encode([*WITH_TYPES, ("big", lh.UInt128(2**100)), ("f", lh.Float32(0.1))], "iggy")
    there = partial(
        lhs.convert_headers, column="data", format="iggy", target="kafka", types="text", on_loss="report", keep=[]
    )
    result = collected(values_of(spark, [message]).transform(there))
    types = {}
    for loss in result["losses"][0]:
        types.setdefault(loss["key"], []).append(loss["type"])
    assert types == {
        "tenant": ["string"], "retry": ["int32:text", "int8:text"], "7": ["binary"], "big": ["uint128:text"],
        "f": ["float32:text"],
    }  # fmt: skip
    restored = partial(lhs.convert_headers, column="data", format="kafka", target="iggy", types=types)
    assert collected(values_of(spark, result["data"]).transform(restored))["data"] == [message]


def test_real_topic_survives_round_trip(spark, samples):
    """10,000 records of a Kafka broker: through typed headers all are equal, through Iggy those that fit."""
    orders = spark.read.parquet(str(samples / "orders-0.parquet"))
    blocks = lhs.encode_headers(orders, "kafka", into="block", keep=["offset"])
    typed = lhs.convert_headers(
        blocks, "kafka", column="block", target="kip82-typed", types="binary", into="typed", keep=["block"]
    ).transform(lhs.convert_headers, "kip82-typed", column="typed", target="kafka", types="be", into="back")
    assert (typed.count(), typed.where("block <=> back").count()) == (10_000, 10_000)

    iggy = lhs.convert_headers(
        blocks,
        "kafka",
        column="block",
        target="iggy",
        types="binary",
        on_loss="report",
        into="iggy",
        keep=["offset", "block"],
    ).transform(
        lhs.convert_headers,
        "iggy",
        column="iggy",
        target="kafka",
        types="be",
        into="back",
        keep=["offset", "block", "losses"],
    )
    results = iggy.groupBy((F.col("losses").isNull()).alias("fits"), (F.col("block") == F.col("back")).alias("equal"))
    counts = {(row.fits, row.equal): row["count"] for row in results.count().collect()}
    assert counts.keys() == {(True, True), (False, False)}
    # What Iggy has no place for: nulls, and what has no bytes or more than 255.
    misfits = F.exists(
        "headers",
        lambda header: (
            F.coalesce(~F.length(header["value"]).between(1, 255), F.lit(True))
            | ~F.octet_length(header["key"]).between(1, 255)
        ),
    )
    assert counts[False, False] == orders.select(F.count_if(misfits)).first()[0] > 0


def test_timestamp_and_payload_map_to_target_fields(spark):
    message = EXAMPLES["streams-timestamped"].value
    df = values_of(spark, [message]).transform(
        lhs.convert_headers, "streams-timestamped", column="data", target="kip82-message", types="binary"
    )
    read = lh.decode(collected(df)["data"][0], "kip82-message")
    assert (read.timestamp, read.value, read.headers["tenant"]) == (5, b"p", lh.Binary(b"acme"))


def test_headers_are_sorted_like_iggy(spark):
    df = values_of(spark, [EXAMPLES["iggy-2023"].value]).transform(
        lhs.convert_headers, "iggy-2023", column="data", target="iggy", canonical=True
    )
    assert [key for key, _ in lh.decode(collected(df)["data"][0], "iggy")] == ["at", "raw", "retry", "tenant"]


# Errors and losses ----------------------------------------------------------------------------------------------------


MANY = [(f"k{number}", b"v" * 255) for number in range(400)]
"""More than the 100,000 bytes that Iggy takes."""


@pytest.fixture(scope="module")
def mixed(spark):
    """A value that loses a header, one that cannot be read, null, a good one, and one that cannot be written."""
    lost, good = lh.encode([("tenant", b"acme"), ("none", None)], "kafka"), lh.encode([("k", b"v")], "kafka")
    return values_of(spark, [lost, b"\x01", None, good, lh.encode(MANY, "kafka")])


def test_errors_and_losses_have_own_columns(mixed):
    df = lhs.convert_headers(
        mixed, "kafka", column="data", target="iggy", types="binary", on_loss="report", errors="column"
    )
    assert df.dtypes == [("number", "bigint"), ("data", "binary"), ("losses", LOSSES), ("error", ERROR)]
    columns = collected(df)
    assert headers_of(columns["data"][0], "iggy") == [("tenant", lh.Binary(b"acme"))]
    assert headers_of(columns["data"][3], "iggy") == [("k", lh.Binary(b"v"))]
    assert [losses and [(loss["code"], loss["key"]) for loss in losses] for losses in columns["losses"]] == [
        [("null_not_carried", "none")], None, None, None, None,
    ]  # fmt: skip
    assert [error and error[0]["code"] for error in columns["error"]] == [
        None,
        "negative_count",
        None,
        None,
        "too_large",
    ]


@pytest.mark.parametrize("errors", ["null", "column"])
def test_unconvertible_value_is_null(mixed, errors):
    convert = partial(
        lhs.convert_headers, column="data", format="kafka", target="iggy", types="binary", on_loss="drop", errors=errors
    )
    result = collected(mixed.transform(convert))
    assert [message is None for message in result["data"]] == [False, True, True, False, True]


def test_raised_loss_shows_kept_columns(spark):
    df = values_of(spark, [EXAMPLES["kip82-typed"].value])
    text = failure(lhs.convert_headers(df, "kip82-typed", column="data", target="kafka", keep=["number"]))
    assert (
        'ConversionError: kafka: kafka carries no types: pass types="be", "le" or "text" (--types be) '
        "to write string values"
    ) in text
    df = values_of(spark, [b"\x01"])
    text = failure(lhs.convert_headers(df, "kafka", column="data", target="iggy", keep=["number"]))
    assert "DecodeError: kafka: header count -1 is negative (byte 0)" in text
    df = values_of(spark, [lh.encode(MANY, "kafka")])
    text = failure(lhs.convert_headers(df, "kafka", column="data", target="iggy", types="binary", keep=[]))
    assert re.search(r"EncodeError: iggy: the headers take \d+ bytes, more than 100000(\s|\Z)", text)


def test_reader_and_writer_options_are_passed_on(spark):
    lenient = partial(lhs.convert_headers, column="data", format="kafka", target="kafka", lenient=True, keep=[])
    assert collected(values_of(spark, [b"\x01"]).transform(lenient)) == {"data": [b""]}
    strict = partial(lhs.convert_headers, column="data", format="iggy", target="iggy", strict_types=True)
    assert "value type code 200 is unknown" in failure(values_of(spark, [EXAMPLES["iggy"].value]).transform(strict))
    # Null headers: there is no such field before the later of the message formats.
    old = lh.encode(lh.Message(magic=1, value=b"v", headers=None), "kip82-message")
    refused = partial(
        lhs.convert_headers, column="data", format="kip82-message", target="streams", nulls="raise", on_loss="drop"
    )
    assert 'nulls="raise" refuses that' in failure(values_of(spark, [old]).transform(refused))


# Before a job runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "igyg"}, ValueError, "did you mean 'iggy'"),
        ({"target": 7}, TypeError, "target must be str, not int"),
        ({"target": "iggy-auto"}, ValueError, "iggy-auto reads either layout and is no target"),
        ({"target": "iggy", "types": "be"}, ValueError, 'give types={key: type} or types="binary"'),
        ({"target": "streams", "types": "binary"}, ValueError, 'give types="be", "le" or "text"'),
        ({"target": "iggy", "types": {"a": "itn32"}}, ValueError, "did you mean 'int32'"),
        ({"target": "iggy", "types": {3.5: "int32"}}, TypeError, "a key of types must be str, int, bytes or a Value"),
        ({"target": "iggy", "types": {"a": 3}}, TypeError, "a type such as 'int32', or a list of them"),
        ({"target": "iggy", "types": ["int32"]}, TypeError, "types must be a word or a mapping"),
        ({"target": "kafka", "canonical": True}, ValueError, "kafka has no order of its own"),
        ({"target": "kafka", "canonical": 1}, TypeError, "canonical must be bool, not int"),
        ({"target": "kafka", "strict_types": None}, TypeError, "strict_types must be bool"),
        ({"target": "kafka", "on_loss": "keep"}, ValueError, "on_loss"),
        ({"target": "kafka", "errors": "colum"}, ValueError, "did you mean 'column'"),
        ({"target": "kafka", "nulls": "drop"}, ValueError, "nulls"),
        ({"target": "kafka", "into": 7}, TypeError, "into must be str"),
        ({"target": "kafka", "into": "error", "errors": "column"}, ValueError, "two columns 'error' would be made"),
        ({"target": "kafka", "keep": "data"}, TypeError, "keep must be a list of column names"),
    ],
)
def test_wrong_arguments_are_rejected_when_passed(spark, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        lhs.convert_headers(spark.range(1), "kafka", column="data", **options)


def test_source_column_is_replaced_unless_into_is_named(spark):
    df = values_of(spark, [b""])
    assert lhs.convert_headers(df, "kafka", column="data", target="iggy").columns == ["number", "data"]
    both = partial(lhs.convert_headers, column="data", format="kafka", target="iggy", into="iggy", keep=["data"])
    assert df.transform(both).columns == ["data", "iggy"]
    with pytest.raises(ValueError, match="column 'data' would be there twice"):
        lhs.convert_headers(df, "kafka", column="data", target="iggy", keep=["data"])
    with pytest.raises(TypeError, match="column 'number' is bigint, and kafka is read from binary"):
        lhs.convert_headers(df, "kafka", column="number", target="iggy")
