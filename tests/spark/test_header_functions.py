"""The operations on DataFrames: values, errors, and what is checked before a job runs."""

from __future__ import annotations

import inspect
import pickle
import re
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.operations import Decode, Select
from tests.spark.frames import HEADERS, Recorder, batches_of, collected, explained, failure, plain

ORDERS = {
    "tenant": "string",
    "retry": "int32",
    "amount_cents": "int64",
    "weight_kg": "float64",
    "route": "array<string>",
    "event": lh.field("string", key="ce_type", repeat="last"),
}


@pytest.fixture(scope="module")
def orders(spark, samples):
    """Read a partition of a real topic, as Spark's Kafka source gives it."""
    # Sail reads times of this file, which are INT96, without their zone.
    return spark.read.parquet(str(samples / "orders-0.parquet")).withColumn(
        "timestamp", F.col("timestamp").cast("timestamp")
    )


@pytest.fixture(scope="module")
def latest(spark, samples):
    """Read a real state store: raw keys and ``streams-timestamped`` values."""
    return spark.read.parquet(str(samples / "store-latest-0.parquet"))


@pytest.fixture
def messages(spark):
    """One good value, null, and three bad ones, with a number and a name."""
    values = [
        lh.encode([("k", b"\0\0\0\1"), ("n", None)], "kafka"),
        None,
        b"\x01",
        b"\x02\x02k\x02a",
        b"\x02\x02k\x09a",
    ]
    table = pa.table(
        {
            "id": pa.array(range(len(values)), pa.int64()),
            "name": ["a" * 99 if number == 2 else f"row {number}" for number in range(len(values))],
            "value": pa.array(values, pa.binary()),
        }
    )
    return spark.createDataFrame(table)


# Values ---------------------------------------------------------------------------------------------------------------


def test_real_topic_headers_are_selected(orders, samples):
    df = lhs.select_headers(orders, ORDERS, keep=["offset"])
    assert df.columns == ["offset", *ORDERS]
    assert dict(df.dtypes) == {
        "offset": "bigint", "tenant": "string", "retry": "int", "amount_cents": "bigint", "weight_kg": "double",
        "route": "array<string>", "event": "string",
    }  # fmt: skip
    result = collected(df)
    table = pq.read_table(samples / "orders-0.parquet")
    expected = lha.select(table["headers"].combine_chunks(), ORDERS)
    assert result["offset"] == table["offset"].to_pylist() == sorted(result["offset"])
    for name in ORDERS:
        assert result[name] == plain(expected.field(name)), name
    assert sum(value is not None for value in result["tenant"]) > 9_000


def test_real_state_store_is_decoded_and_written_back(latest, samples):
    df = lhs.decode_headers(latest, "streams-timestamped", column="value", keep=["key", "value"])
    assert df.columns == ["key", "value", "headers", "timestamp", "payload"]
    table = pq.read_table(samples / "store-latest-0.parquet")
    expected = lha.decode(table["value"].combine_chunks(), "streams-timestamped")
    result = collected(df)
    assert result["key"] == table["key"].to_pylist()
    for name in ("headers", "timestamp", "payload"):
        assert result[name] == expected.field(name).to_pylist(), name
    assert len(result["key"]) > 100
    assert None not in result["timestamp"]

    written = df.withColumnRenamed("timestamp", "ts_ms").withColumnRenamed("value", "before").transform(lhs.encode_headers, "streams-timestamped", fields={"timestamp": "ts_ms"}, into="after", keep=["key", "before"])  # fmt: skip
    assert written.columns == ["key", "before", "after"]
    assert written.where("before is distinct from after").count() == 0
    assert written.count() == len(result["key"])


def test_encoded_headers_are_written_and_read_back(orders):
    blocks = lhs.encode_headers(orders, "kafka", into="block", keep=["offset", "headers"])
    assert blocks.columns == ["offset", "headers", "block"]
    restored = lhs.decode_headers(blocks, "kafka", column="block", into="again")
    assert restored.columns == ["offset", "headers", "again"]
    # Null is written as none, which is read as empty.
    assert restored.where("coalesce(headers, array()) is distinct from again").count() == 0
    assert restored.where("size(again) > 0").count() > 9_000


def test_bytes_and_lists_select_equally(orders):
    columns = {"tenant": "string", "route": "array<string>"}
    by_list = lhs.select_headers(orders, columns, keep=[])
    blocks = lhs.encode_headers(orders, "kafka", keep=[])
    by_bytes = lhs.select_headers(blocks, columns)
    result = collected(by_list)
    assert result == collected(by_bytes)
    assert len(result["tenant"]) == 10_000


def test_every_type_of_select_arrives(spark):
    from tests.spark.sample_values import TYPES, WIDTHS

    texts = {"bool": b"true", "char": b"x", "uuid": b"00010203-0405-0607-0809-0a0b0c0d0e0f"}
    value = {
        type: texts.get(type[:-5], b"7") if type.endswith(":text") else bytes(WIDTHS.get(type.partition(":")[0], 2))
        for type in TYPES
    }
    row = pa.array([[{"key": type, "value": message} for type, message in value.items()]], HEADERS)
    columns = {
        f"{type} {repeat}": lh.field(type, key=type, repeat=repeat) for type in TYPES for repeat in ("last", "all")
    }
    df = spark.createDataFrame(pa.table({"headers": row})).transform(lhs.select_headers, columns)
    expected = Select("kafka", columns, dialect="spark")(row)
    assert collected(df) == {name: plain(expected.field(name)) for name in columns}


def test_empty_dataframe_returns_columns(orders):
    empty = orders.where("offset < 0")
    df = lhs.select_headers(empty, ORDERS, keep=["key"])
    assert collected(df) == {name: [] for name in ("key", *ORDERS)}


def test_only_new_columns_remain_if_none_are_kept(latest):
    df = lhs.decode_headers(latest, "streams-timestamped", column="value", keep=[])
    assert df.columns == ["headers", "timestamp", "payload"]
    assert df.count() == latest.count()


def test_all_other_columns_are_kept_by_default(orders):
    df = lhs.select_headers(orders, {"tenant": "string"})
    assert df.columns == [*(name for name in orders.columns if name != "headers"), "tenant"]
    rest = [name for name in orders.columns if name != "headers"]
    assert df.select(rest).exceptAll(orders.select(rest)).count() == 0


def test_names_with_dots_and_backticks_are_quoted(spark):
    table = pa.table({"a.b": pa.array([b"\x02\x02k\x02a"]), "c`d": [1]})
    df = spark.createDataFrame(table).transform(lhs.select_headers, {"x.y": lh.field("string", key="k")}, column="a.b")
    assert collected(df) == {"c`d": [1], "x.y": ["a"]}


def test_kept_columns_keep_their_schema(spark):
    frame = spark.range(2).select(
        F.col("id").alias("id", metadata={"from": "here"}), F.lit(None).cast("binary").alias("value")
    )
    kept = lhs.decode_headers(frame, "kafka", column="value").schema["id"]
    assert (kept, kept.nullable, kept.metadata) == (frame.schema["id"], False, {"from": "here"})


# Errors ---------------------------------------------------------------------------------------------------------------


def test_raised_error_quotes_identifying_columns(messages):
    bad = messages.where("id = 2")
    text = failure(lhs.decode_headers(bad, "kafka", column="value", keep=["name"], identify=["id", "name"]))
    name = "a" * 40 + "…"
    assert f"DecodeError: kafka: header count -1 is negative in the row with id=2, name='{name}' (byte 0)" in text
    assert ", row " not in text


CONFIDENTIAL = {"email": "jane.doe@example.org", "iban": "DE02120300000000202051", "age": 41, "key": b"jane"}


@pytest.fixture
def people(spark):
    """A malformed message of a topic, beside confidential columns."""
    table = pa.table(
        {name: [value] for name, value in CONFIDENTIAL.items()}
        | {"topic": ["orders"], "partition": pa.array([3], pa.int32()), "offset": [41], "data": [b"\x02\x02k\x02a"]}
    )
    headers = [{"key": "k", "value": b"a"}]
    return spark.createDataFrame(table.append_column("headers", pa.array([headers], HEADERS)))


TRANSFORMS = {
    "decode_headers": lambda df, **names: lhs.decode_headers(df, "kafka", column="key", into="decoded", **names),
    "select_headers of bytes": lambda df, **names: lhs.select_headers(df, {"k": "int32"}, column="data", **names),
    "select_headers of lists": lambda df, **names: lhs.select_headers(df, {"k": "int32"}, **names),
    "where_headers": lambda df, **names: lhs.where_headers(df, lh.col("k", "int32") == 1, **names),
    "encode_headers": lambda df, **names: lhs.encode_headers(df, "kip82-typed", into="bytes", **names),
    "convert_headers": lambda df, **names: lhs.convert_headers(
        df, "kafka", column="data", target="iggy", into="bytes", **names
    ),
    "explode_batches": lambda df, **names: lhs.explode_batches(
        df, "kip82-messages", column="data", columns=["headers"], **{"keep": ["email", "topic", "partition"], **names}
    ),
    "decode_by_schema": lambda df, **names: lhs.decode_by_schema(df, len, "decoded int", column="data", **names),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_error_quotes_record_position_and_no_other_column(people, transform):
    text = failure(transform(people.drop("offset")))
    assert re.search(
        r"((Decode|Encode|Conversion)Error|USER_RAISED_EXCEPTION\]).+ in the row with topic='orders', partition=3\b",
        text,
    )
    for value in ("jane", "DE0212", "=41", "6a616e65"):
        assert value not in text


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_identify_columns_are_quoted_without_being_kept(people, transform):
    df = transform(people, keep=["email"], identify=["key", "offset"])
    assert not {"key", "offset", "topic"} & set(df.columns)
    text = failure(df)
    assert "in the row with key='jane', offset=41" in text
    assert "doe" not in text


@pytest.mark.spark_only
def test_error_reason_precedes_row_specific_parts(people):
    texts = {
        engine: failure(lhs.select_headers(people, {"k": "int32"}, keep=["offset"], engine=engine))
        for engine in ("arrow", "spark")
    }
    reason = "kafka: column k: 1 byte where int32 takes 4"
    assert re.search(rf"{reason} in the row with offset=41 \(header 0[,)]", texts["arrow"])
    assert f"{reason} (wrong_size, header 0) in the row with offset=41" in texts["spark"]


def test_position_columns_of_wrong_type_are_not_quoted(spark):
    table = pa.table({"topic": pa.array([1]), "offset": ["jane.doe"], "timestamp": ["yesterday"], "value": [b"\x01"]})
    text = failure(spark.createDataFrame(table).transform(lhs.decode_headers, "kafka", column="value"))
    assert "header count -1 is negative (byte 0)" in text


def test_control_characters_in_quoted_column_are_escaped(spark):
    table = pa.table({"id": ["\x1b[31m"], "key": [b"\xff\x00"], "value": [b"\x01"]})
    decode = partial(lhs.decode_headers, column="value", format="kafka", identify=["id", "key"])
    assert r"in the row with id='\x1b[31m', key=ff00 (byte 0)" in failure(
        spark.createDataFrame(table).transform(decode)
    )


def test_identify_columns_must_exist(spark, people):
    with pytest.raises(ValueError, match="unknown column 'ofset': did you mean 'offset'"):
        lhs.decode_headers(people, "kafka", column="data", keep=[], identify=["ofset"])
    with pytest.raises(TypeError, match="identify must be a list of column names"):
        lhs.decode_headers(spark.range(1), "kafka", column="data", identify="offset")


def test_raised_error_without_kept_columns_names_cause(messages):
    text = failure(messages.where("id = 3").transform(lhs.select_headers, {"k": "int32"}, column="value", keep=[]))
    assert "kafka: column k: 1 byte where int32 takes 4 (header 0, byte 4)" in text


def test_bad_rows_become_null(messages):
    decoded = lhs.decode_headers(messages, "kafka", column="value", keep=["id"], errors="null")
    whole, short = [{"key": "k", "value": b"\0\0\0\1"}, {"key": "n", "value": None}], [{"key": "k", "value": b"a"}]
    assert collected(decoded) == {"id": [0, 1, 2, 3, 4], "headers": [whole, None, None, short, None]}
    columns = {"k": "int32", "n": "array<string>"}
    selected = lhs.select_headers(messages, columns, column="value", keep=[], errors="null")
    assert collected(selected) == {"k": [1, None, None, None, None], "n": [[None], None, None, [], None]}


def test_bad_rows_have_errors_in_column(messages):
    decoded = lhs.decode_headers(messages, "kafka", column="value", keep=["id"], errors="column", into="all")
    assert decoded.columns == ["id", "all", "error"]
    assert dict(decoded.dtypes)["error"] == (
        "array<struct<code:string,message:string,byte_offset:bigint,header:int,key:string,column:string>>"
    )
    errors = [
        error and [(detail["code"], detail["byte_offset"], detail["header"], detail["key"]) for detail in error]
        for error in collected(decoded)["error"]
    ]
    assert errors == [None, None, [("negative_count", 0, None, None)], None, [("negative_length", 3, 0, "k")]]

    selected = lhs.select_headers(messages, {"k": "int32", "n": "binary"}, column="value", keep=[], errors="column")
    result = collected(selected)
    assert result["k"] == [1, None, None, None, None]
    assert [error and [(detail["code"], detail["byte_offset"], detail["column"]) for detail in error] for error in result["error"]] == [
        None, None, [("negative_count", 0, None)], [("wrong_size", 4, "k")], [("negative_length", 3, None)],
    ]  # fmt: skip


def test_message_keeps_fields_that_were_read(spark):
    good = lh.encode(lh.Message(headers=[("k", b"v")], timestamp=5, payload=b"p"), "streams-timestamped")
    bad = b"\x02\x01" + good[-9:]
    df = spark.createDataFrame(pa.table({"value": pa.array([good, None, bad])}))
    result = collected(lhs.decode_headers(df, "streams-timestamped", column="value", errors="column"))
    assert result["headers"] == [[{"key": "k", "value": b"v"}], None, None]
    assert (result["timestamp"], result["payload"]) == ([5, None, 5], [b"p", None, b"p"])
    assert [error and error[0]["code"] for error in result["error"]] == [None, None, "negative_count"]


def test_lenient_reads_what_java_reads(messages):
    result = collected(
        messages.where("id = 2").transform(lhs.decode_headers, "kafka", column="value", keep=[], lenient=True)
    )
    assert result == {"headers": [[]]}


def test_losses_are_raised_dropped_or_reported(spark):
    rows = [
        {"headers": [{"key": "k", "value": b"v"}], "payload": None},
        {"headers": [], "payload": None},
        {"headers": None, "payload": b"p"},
    ]
    df = spark.createDataFrame(
        pa.table(
            {
                "headers": pa.array([row["headers"] for row in rows], HEADERS),
                "payload": pa.array([row["payload"] for row in rows]),
            }
        )
    )
    text = failure(lhs.encode_headers(df, "streams", keep=["payload"]))
    assert re.search(r"ConversionError: streams: the payload is null", text)
    dropped = collected(lhs.encode_headers(df, "streams", on_loss="drop"))
    assert dropped == {"value": [None, None, b"\0p"]}
    reported = collected(lhs.encode_headers(df, "streams", on_loss="report", into="message"))
    assert reported["message"] == [None, None, b"\0p"]
    assert [losses and [loss["code"] for loss in losses] for losses in reported["losses"]] == [
        ["null_not_carried"],
        None,
        None,
    ]
    assert "null" in failure(lhs.encode_headers(df, "streams", on_loss="drop", nulls="raise"))


def test_headers_with_text_values_suggest_working_cast(spark):
    df = spark.sql("select array(struct('k' as key, 'v' as value)) as headers")
    assert lhs.encode_headers(df, "kafka").count() == 1
    transform = partial(lhs.edit_headers, drop=["x"])
    with pytest.raises(TypeError, match="makes it one") as raised:
        df.transform(transform)
    [cast] = re.findall(r"transform\(.*\)\)", str(raised.value))
    assert df.selectExpr(f"{cast} as headers").transform(transform).count() == 1


def test_null_key_is_not_written(spark):
    df = spark.createDataFrame(pa.table({"id": [7], "headers": pa.array([[{"key": None, "value": b""}]], HEADERS)}))
    assert re.search(
        r"EncodeError: kafka: .*null.* in the row with id=7 \(header 0",
        failure(lhs.encode_headers(df, "kafka", identify=["id"])),
    )


# What crosses into Python ---------------------------------------------------------------------------------------------


@pytest.mark.spark_only
def test_only_needed_columns_are_sent_to_python(orders):
    df = lhs.select_headers(orders, {"tenant": "string"}, keep=["offset"], engine="arrow")
    plan = explained(df)
    assert re.search(r"ReadSchema: struct<offset:bigint,headers:array<struct<key:string,value:binary>>>", plan)
    assert plan.count("MapInArrow") == 2  # in the tree and in its legend: one pass


def addresses(column: pa.Array) -> list[int | None]:
    return [buffer and buffer.address for buffer in column.buffers()]


def run_on(transform, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Run what a transform would run on a batch, without Spark."""
    (result,) = batches_of(transform, batch)
    return result


@pytest.fixture
def batch():
    message = lh.encode([("k", b"v")], "kafka")
    return pa.record_batch(
        {
            "name": pa.array(["a", None, "c", "d"]),
            "message": pa.array([message, b"", None, message]),
            "tags": pa.array([["x"], [], None, ["y", "z"]]),
            "id": pa.array([1, 2, 3, 4], pa.int64()),
        }
    )


@pytest.mark.parametrize("offset", [0, 1])
def test_kept_columns_reuse_input_buffers(spark, batch, offset):
    batch = batch.slice(offset)
    keep = ["tags", "id", "message", "name"]
    for transform in (
        partial(lhs.decode_headers, column="message", format="kafka", keep=keep),
        partial(lhs.select_headers, column="message", headers={"k": "string"}, keep=keep, errors="column"),
    ):
        result = run_on(transform, batch)
        for name in keep:
            assert addresses(result.column(name)) == addresses(batch.column(name)), name
            assert result.column(name).equals(batch.column(name))
            assert result.column(name).offset == offset


class _Cut(NamedTuple):
    """An operation as if an Arrow column could hold two bytes, which takes no 2 GiB to try."""

    operation: Decode
    limits: None = None

    def chunks(self, stream):
        return map(pa.array, self.operation.apply(stream, max_offset=1))


def test_batch_is_split_before_column_overflows(spark, batch):
    def cut(df):
        run, declared = lhs.decode_headers(df, "kafka", column="message", keep=["id"])
        return replace(run, operation=_Cut(run.operation)), declared

    parts = batches_of(cut, batch)
    assert [part.column("id").to_pylist() for part in parts] == [[1, 2, 3], [4]]
    assert [part.column("headers").to_pylist()[-1] for part in parts] == [None, [{"key": "k", "value": b"v"}]]


def test_empty_batch_returns_empty_batch(spark, batch):
    result = run_on(partial(lhs.decode_headers, column="message", format="kafka", keep=["id"]), batch.slice(0, 0))
    assert (result.num_rows, result.schema.names) == (0, ["id", "headers"])


def test_pickled_transform_is_small(spark, batch):
    from pyspark import cloudpickle

    schema = spark.createDataFrame(pa.table({"message": pa.array([b""])})).schema
    run, _ = lhs.select_headers(Recorder(schema), ORDERS, column="message")
    assert len(cloudpickle.dumps(run)) < 2_000
    assert pickle.loads(pickle.dumps(run)) == run


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (pa.array([{"b": 1, "a": 2}], pa.struct([("b", pa.int64()), ("a", pa.int64())])), "struct<b: int64, a: int64>"),
        (pa.array([{"a": 1}], pa.struct([("a", pa.int64())])), "struct<a: int64>"),
        (pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int32()), ("b", pa.int64())])), "struct<a: int32, b: int64>"),
    ],
    ids=["order", "number", "type"],
)
def test_worker_returning_other_columns_raises(spark, batch, monkeypatch, result, message):
    """Spark would take them by position: a second version of the package on a worker must not swap columns."""
    transform = partial(lhs.select_headers, column="message", headers={"a": "int64", "b": "int64"}, keep=[])
    monkeypatch.setattr(Select, "chunks", lambda self, stream: iter([result]))
    with pytest.raises(
        RuntimeError, match=f"Select of kafka returned {message} on this worker where the driver declared"
    ):
        run_on(transform, batch)


def test_error_column_has_requested_name(spark, messages):
    transforms = [
        partial(lhs.decode_headers, column="value", format="kafka", errors="column", error_column="problem"),
        partial(lhs.select_headers, column="value", headers={"error": "int8"}, errors="column", error_column="problem"),
        partial(
            lhs.convert_headers,
            column="value",
            format="kafka",
            target="iggy",
            on_loss="drop",
            errors="column",
            error_column="problem",
        ),
    ]
    for transform in transforms:
        result = messages.transform(transform)
        assert result.columns[-1] == "problem"
        assert "negative_count" in {row.problem[0].code for row in result.collect() if row.problem}
    with pytest.raises(ValueError, match="error_column= names the column of errors='column'"):
        lhs.decode_headers(spark.range(1), "kafka", column="value", error_column="problem")


def test_column_object_is_read_like_column_name(orders):
    column, headers = F.expr("filter(headers, h -> true)"), {"tenant": "string"}
    expected = lhs.select_headers(orders, headers, keep=["offset"]).limit(3).collect()
    result = lhs.select_headers(orders, headers, column=column, keep=["offset"])
    assert result.limit(3).collect() == expected
    encoded = lhs.encode_headers(orders, "kafka", column=column, into="block", keep=["offset"])
    fields = {"payload": F.lit(b"v")}
    messages = lhs.encode_headers(orders, "streams", column=column, fields=fields, into="message", keep=[])
    assert messages.first().message.endswith(b"v")
    converted = encoded.limit(3).transform(
        lhs.convert_headers, "kafka", column=F.col("block"), target="kafka", into="again"
    )
    assert [row.block for row in converted.collect()] == [row.again for row in converted.collect()]
    edited = lhs.edit_headers(orders, column=column, into="edited", only=["tenant"])
    assert edited.columns == [*orders.columns, "edited"]
    assert edited.select(lhs.header(F.col("edited"), "tenant", "string")).first()[0] == expected[0].tenant
    assert lhs.scan_headers(orders.limit(10), column=column)["tenant"].key == "tenant"
    for needs_a_name in (
        lambda df: lhs.convert_headers(df, "kafka", column=column, target="iggy"),
        lambda df: lhs.edit_headers(df, column=column, drop=["a"]),
    ):
        with pytest.raises(ValueError, match="into= names the column that is made"):
            needs_a_name(orders)


# Before a job runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda df: lhs.decode_headers(df, "kafak", column="value"), ValueError, "did you mean 'kafka'"),
        (lambda df: lhs.decode_headers(df, "kafka", column="value", errors="nul"), ValueError, "did you mean 'null'"),
        (lambda df: lhs.decode_headers(df, "kafka", column="value", lenient=1), TypeError, "lenient must be bool"),
        (
            lambda df: lhs.decode_headers(df, "streams", column="value", into="all"),
            ValueError,
            "streams returns headers, payload",
        ),
        (
            lambda df: lhs.decode_headers(df, "kafka", column="value", keep="key"),
            TypeError,
            "keep must be a list of column names, not str",
        ),
        (
            lambda df: lhs.decode_headers(df, "kafka", column="value", keep=["a", "a"]),
            ValueError,
            "keep names 'a' twice",
        ),
        (
            lambda df: lhs.decode_headers(df, "kafka", column="value", keep=[1]),
            TypeError,
            "a column of keep must be str, not int",
        ),
        (lambda df: lhs.decode_headers(df, "kafka", column=7), TypeError, "column must be str or a Column, not int"),
        (
            lambda df: lhs.decode_headers(df, "kafka", column="v", into="error", errors="column"),
            ValueError,
            "two columns 'error'",
        ),
        (lambda df: lhs.select_headers(df, {"a": "itn64"}, column="value"), ValueError, "did you mean 'int64'"),
        (lambda df: lhs.select_headers(df, {}, column="value"), ValueError, "no columns"),
        (
            lambda df: lhs.select_headers(df, {"error": "int8"}, column="value", errors="column"),
            ValueError,
            "two columns 'error'",
        ),
        (lambda df: lhs.encode_headers(df, "streams", fields={"paylod": "v"}), ValueError, "did you mean 'payload'"),
        (lambda df: lhs.encode_headers(df, "kafka", fields={"payload": "v"}), ValueError, "no fields but its headers"),
        (lambda df: lhs.encode_headers(df, "kafka", on_loss="keep"), ValueError, "on_loss"),
        (lambda df: lhs.encode_headers(df, "kafka", types="big"), ValueError, "types"),
        (lambda df: lhs.encode_headers(df, "kafka", nulls="drop"), ValueError, "nulls"),
    ],
)
def test_wrong_arguments_are_rejected_before_columns(spark, make, error, message):
    with pytest.raises(error, match=message):
        make(spark.range(1))


@pytest.mark.parametrize("name", [
    "changelog_table", "compact", "convert_headers", "decode_by_schema", "decode_headers", "edit_headers", "encode_headers",
    "explode_batches", "pack_headers", "run_topology", "scan_headers", "select_headers", "show_headers", "where_headers",
])  # fmt: skip
def test_column_passed_without_dataframe_is_rejected_with_the_call(name):
    function = getattr(lhs, name)
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty][1:]
    arguments = {parameter.name: "x" for parameter in required}
    message = rf"df must be a DataFrame, not str: lhs\.{name}\(df, \.\.\.\) takes it first"
    with pytest.raises(TypeError, match=message):
        function("headers", **arguments)


@pytest.mark.parametrize(
    ("transform", "error", "message"),
    [
        (
            partial(lhs.decode_headers, column="valeu", format="kafka"),
            ValueError,
            "unknown column 'valeu': did you mean 'value'?",
        ),
        (
            partial(lhs.decode_headers, column="value", format="kafka", keep=["offest"]),
            ValueError,
            "unknown column 'offest': did you mean 'offset'?",
        ),
        (
            partial(lhs.decode_headers, column="topic", format="kafka"),
            TypeError,
            "column 'topic' is string, and kafka is read from binary: a cast makes it one",
        ),
        (
            partial(lhs.select_headers, column="topic", headers={"a": "string"}),
            TypeError,
            "column 'topic' is string, and kafka is read from binary or array<struct<key:string,value:binary>>",
        ),
        (
            partial(lhs.decode_headers, format="kafka"),
            TypeError,
            "column 'headers' is array<struct<key:string,value:binary>>, and kafka is read from binary",
        ),
        (
            partial(lhs.encode_headers, format="streams-timestamped", fields={"payload": "value"}),
            TypeError,
            "column 'timestamp' is timestamp, and the timestamp of streams-timestamped is written from bigint: "
            "unix_millis makes it one",
        ),
        (partial(lhs.encode_headers, format="streams"), ValueError, "unknown column 'payload'"),
        (
            partial(lhs.decode_headers, column="value", format="streams-timestamped", keep=["offset", "timestamp"]),
            ValueError,
            "column 'timestamp' would be there twice, kept from the DataFrame as 'timestamp' and made here",
        ),
        (
            partial(lhs.select_headers, headers={"Topic": "string"}),
            ValueError,
            "column 'Topic' would be there twice, kept from the DataFrame as 'topic' and made here",
        ),
    ],
)
def test_unsuitable_dataframe_is_rejected_before_job(orders, transform, error, message):
    with pytest.raises(error, match=re.escape(message)):
        orders.transform(transform)


def test_dataframe_with_duplicate_column_names_is_rejected(orders):
    with pytest.raises(ValueError, match="the DataFrame has two columns 'offset'"):
        orders.select("offset", "offset", "value").transform(lhs.decode_headers, "kafka", column="value")


@pytest.mark.parametrize(
    "transform",
    [
        partial(lhs.select_headers, headers={"tenant": "string", "Tenant": "string"}, keep=[]),
        partial(lhs.select_headers, headers={"ERROR": "string"}, errors="column", keep=[]),
        partial(
            lhs.decode_headers,
            column="value",
            format="streams-timestamped",
            errors="column",
            error_column="Payload",
            keep=[],
        ),
        partial(lhs.encode_headers, format="kafka", into="Losses", on_loss="report", keep=[]),
        partial(
            lhs.convert_headers,
            column="value",
            format="kafka",
            target="iggy",
            into="LOSSES",
            on_loss="report",
            types="binary",
            keep=[],
        ),
        partial(lhs.explode_batches, column="value", format="kip82-messages", headers={"Offset": "string"}, keep=[]),
        partial(lhs.decode_by_schema, decode=len, schema="id int, ID int", keep=[]),
        partial(lhs.decode_by_schema, decode=len, schema="Error int", errors="column", keep=[]),
    ],
)
def test_new_columns_differing_only_by_case_are_rejected(orders, transform):
    with pytest.raises(ValueError, match="would be made, and Spark ignores the case of names: rename one of them"):
        orders.transform(transform)


@pytest.mark.parametrize(
    "transform",
    [
        partial(lhs.decode_headers, column="value", format="kafka", into="HEADERS"),
        partial(lhs.decode_headers, column="value", format="kafka", into="key_", keep=["key", "Key_"]),
        partial(
            lhs.explode_batches,
            column="value",
            format="kip82-messages",
            keep=["Key_"],
            columns=["key"],
            headers={"KEY_": "string"},
        ),
        partial(lhs.decode_by_schema, decode=len, schema="Key int"),
    ],
)
def test_new_column_differing_from_kept_only_by_case_is_rejected(orders, transform):
    with pytest.raises(ValueError, match="would be there twice, kept from the DataFrame as"):
        orders.withColumn("Key_", F.lit(1)).transform(transform)


def test_edited_headers_differing_only_by_case_are_rejected(orders):
    edit = {"drop": ["retry"]}
    with pytest.raises(ValueError, match="'headers' and 'Headers' would be made"):
        lhs.edit_headers(orders, into="Headers", **edit)
    assert lhs.edit_headers(orders, into="edited", **edit).columns == [*orders.columns, "edited"]


def test_names_may_differ_by_case_if_spark_is_case_sensitive(spark, orders):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        df = lhs.select_headers(orders, {"Topic": "string"}, keep=["topic"])
        assert df.columns == ["topic", "Topic"]
        tenants = lhs.select_headers(orders, {"tenant": "string", "Tenant": "string"}, keep=[])
        assert tenants.select("tenant", "Tenant").where("tenant is not null and Tenant is null").count() > 9_000
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
