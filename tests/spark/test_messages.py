"""``messages``: a row of many messages becomes as many rows, with what was kept beside each."""

from __future__ import annotations

import gzip
import json
import re
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import letterhead as lh
from letterhead import _native
from letterhead import spark as lhs
from letterhead.operations import DecodeOptions, ExplodeBatches
from tests.spark.formats import BATCHES, ERROR, EXAMPLES, TYPED, TYPED_KEYS
from tests.spark.frames import batches_of, collected, failure, values_of

IDS = [bytes(range(number, number + 16)) for number in range(3)]


def sent(number: int, **fields) -> bytes:
    fields = {"offset": number, "timestamp": 1000 + number, "key": b"k", "value": b"v%d" % number, **fields}
    return lh.encode(
        lh.Message(headers={"n": lh.Int8(number), "t": lh.String("a" * number)}, **fields), "kip82-message"
    )


# Values ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["kip82-messages", "kip82-messages-int", "kip82-messages-wrapper"])
def test_messages_of_set_become_rows(spark, format):
    example = EXAMPLES[format.replace("messages", "message")]
    df = values_of(spark, [example.value * 2, None, b"", example.value]).transform(
        lhs.explode_batches, format, column="data"
    )
    assert df.dtypes == [("number", "bigint"), *example.types.items()]
    result = collected(df)
    assert result.pop("number") == [0, 0, 3]
    assert result == {name: [example.row[name]] * 3 for name in example.types}


@pytest.fixture(scope="module")
def captured(vectors) -> dict[str, bytes]:
    """What went between clients of Iggy and a server: a batch as it was sent, and messages as they were polled."""
    lines = [json.loads(line) for line in (vectors / "iggy_wire_capture.jsonl").read_text().splitlines()]
    request = bytes.fromhex(lines[0]["request"])[256:]
    return {
        "iggy-batch": request[4 + int.from_bytes(request[:4], "little") :],
        "iggy-polled-2023": bytes.fromhex(lines[3]["response"])[24:],
    }


def test_iggy_batch_becomes_rows(spark, captured):
    """Every type, under keys of every type."""
    types = {
        "offset": "bigint", "timestamp": "bigint", "origin_timestamp": "bigint", "id": "binary",
        "checksum": "decimal(20,0)", "headers": TYPED_KEYS, "payload": "binary",
    }  # fmt: skip
    columns = {
        "text": lh.field("string", key="s"), "low": lh.field("int64", key=lh.Int64(-4)),
        "high": lh.field("uint64", key=lh.UInt64(4)), "raw": lh.field("binary", key=b"\0\xff"),
        "retries": lh.field("uint8"), "big": lh.field("uint128"),
    }  # fmt: skip
    df = values_of(spark, [captured["iggy-batch"]]).transform(
        lhs.explode_batches, "iggy-batch", column="data", headers=columns, keep=[]
    )
    assert df.dtypes == [
        *types.items(), ("text", "string"), ("low", "bigint"), ("high", "decimal(20,0)"), ("raw", "binary"),
        ("retries", "smallint"), ("big", "decimal(38,0)"),
    ]  # fmt: skip
    result = collected(df)
    assert result["payload"] == [b"hello", b"world", b"no headers"]
    assert result["id"][0] == (1234).to_bytes(16, "big")
    assert result["checksum"][0] == Decimal(11678843338983664554)
    assert [len(headers) for headers in result["headers"]] == [15, 8, 0]
    assert {header["type"] for header in result["headers"][0]} == {
        type["name"] for type in _native.types() if type["iggy"] is not None
    }
    assert {name: result[name] for name in columns} == {
        "text": ["text", None, None], "low": [-(2**63), None, None], "high": [Decimal(2**64 - 1), None, None],
        "raw": [b"\0\1\2\3\4", None, None], "retries": [None, 7, None], "big": [None, Decimal(2**64), None],
    }  # fmt: skip


def test_polled_iggy_messages_become_rows(spark, captured):
    df = values_of(spark, [captured["iggy-polled-2023"]]).transform(
        lhs.explode_batches, "iggy-polled-2023", column="data", keep=["number"]
    )
    assert df.dtypes == [
        ("number", "bigint"), ("offset", "bigint"), ("state", "string"), ("timestamp", "bigint"), ("id", "binary"),
        ("checksum", "bigint"), ("headers", TYPED), ("payload", "binary"),
    ]  # fmt: skip
    result = collected(df)
    assert (result["offset"], set(result["state"])) == ([0, 1, 2, 3, 4], {"available"})
    assert result["payload"] == [b"hello-world", b"all kinds", b"none", b"wrong size for kind", b"empty map"]
    assert result["headers"][0] == [{"key": "key 1", "type": "string", "value": b"value1"}]


@pytest.mark.parametrize("format", BATCHES)
def test_every_batch_matches_kernel(spark, vectors, captured, format):
    """All lines of the vectors in one frame, and some of them cut off."""
    values = [*values_in(vectors, format), captured.get(format)]
    values += [value[: len(value) * 2 // 3] for value in values if value is not None]
    df = values_of(spark, values).transform(lhs.explode_batches, format, column="data", errors="column")
    result = collected(df)
    expected = ExplodeBatches(format, options=DecodeOptions(errors="column"), dialect="spark")(
        pa.array(values, pa.binary())
    )
    for name in result:
        assert result[name] == expected.field("row" if name == "number" else name).to_pylist(), name
    assert any(error is None for error in result["error"])


def values_in(vectors, format) -> list[bytes]:
    """Return the values of a format that the vectors have."""
    if format == "record-batch":
        lines = (vectors / "record_batches.jsonl").read_text().splitlines()
        return [bytes.fromhex(json.loads(line)["hex"]) for line in lines]
    name, op = {
        "iggy-batch": ("iggy_tlv_messages", "send_messages_batch"), "iggy-polled-2023": ("iggy_seed_messages", "polled"),
    }.get(format, (format.replace("-", "_"), "messages"))  # fmt: skip
    lines = [json.loads(line) for line in (vectors / f"{name}.jsonl").read_text().splitlines()]
    return [bytes.fromhex(line["bytes"])[line.get("batch_at", 0) :] for line in lines if line["op"] == op]


def test_compressed_set_is_expanded(spark):
    inner = sent(0) + sent(1)
    outer = lh.Message(offset=8, timestamp=5, attributes=1, value=gzip.compress(inner))
    df = values_of(spark, [lh.encode(outer, "kip82-message")]).transform(
        lhs.explode_batches, "kip82-messages", column="data", columns=["offset", "value"], headers={"n": "int8"}
    )
    assert collected(df) == {"number": [0, 0], "offset": [7, 8], "value": [b"v0", b"v1"], "n": [0, 1]}


# What is kept ---------------------------------------------------------------------------------------------------------


def test_kept_columns_repeat_for_every_message(spark):
    values = [sent(0) + sent(1) + sent(2), None, b"", sent(3), sent(4) + sent(5)]
    names = pa.array(["a", "b", "c", None, "é"])
    tags = pa.array([["x"], [], ["y"], None, ["z", None]], pa.list_(pa.string()))
    nested = pa.array([{"deep": number} for number in range(5)])
    df = values_of(spark, values, name=names, tags=tags, nested=nested).repartition(2)
    result = lhs.explode_batches(
        df, "kip82-messages", column="data", columns=["offset"], keep=["nested", "tags", "name", "data"]
    )
    assert result.columns == ["nested", "tags", "name", "data", "offset"]
    repeated = collected(result.orderBy("offset"))
    assert repeated["offset"] == [0, 1, 2, 3, 4, 5]
    rows = [0, 0, 0, 3, 4, 4]
    assert repeated["name"] == [names[row].as_py() for row in rows]
    assert repeated["tags"] == [tags[row].as_py() for row in rows]
    assert repeated["nested"] == [{"deep": row} for row in rows]
    assert repeated["data"] == [values[row] for row in rows]


def test_fields_follow_requested_order_and_row_is_optional(spark):
    df = values_of(spark, [sent(0) + sent(1), sent(2)]).coalesce(1)
    requested = partial(
        lhs.explode_batches,
        column="data",
        format="kip82-messages",
        columns=["value", "row", "offset"],
        headers={"text": lh.field("string", key="t")},
    )
    assert collected(df.transform(requested)) == {
        "number": [0, 0, 1], "value": [b"v0", b"v1", b"v2"], "row": [0, 0, 1], "offset": [0, 1, 2], "text": ["", "a", "aa"],
    }  # fmt: skip
    only = partial(
        lhs.explode_batches, column="data", format="kip82-messages", columns=[], headers={"n": "array<int8>"}, keep=[]
    )
    assert collected(df.transform(only)) == {"n": [[0], [1], [2]]}
    # As many rows as there are messages, and nothing else.
    assert collected(lhs.explode_batches(df, "kip82-messages", column="data", columns=[], keep=["number"])) == {
        "number": [0, 0, 1]
    }


def test_many_rows_of_many_messages(spark):
    """Over partitions and batches: 5,000 rows of which every third is empty."""
    values = [b"".join(sent(number % 100, offset=number) for _ in range(number % 3)) for number in range(5000)]
    df = values_of(spark, values).transform(
        lhs.explode_batches, "kip82-messages", column="data", columns=["offset"], headers={"n": "int8"}, keep=["number"]
    )
    result = collected(df.orderBy("number"))
    rows = [number for number in range(5000) for _ in range(number % 3)]
    assert result == {"number": rows, "offset": rows, "n": [number % 100 for number in rows]}


def test_nested_explode_reads_messages_of_messages(spark, engines):
    """What is made can be read on: wrappers in values, headers in lists."""
    wrapper = lh.encode(lh.Message(headers=[(7, b"\0\0\0\3")], value=b"in"), "kip82-wrapper")
    df = values_of(spark, [sent(1, value=wrapper) * 2]).transform(
        lhs.explode_batches, "kip82-messages", column="data", keep=[]
    )
    inner = lhs.decode_headers(df, "kip82-wrapper", column="value", into=None, keep=["offset"])
    assert collected(inner) == {
        "offset": [1, 1],
        "headers": [[{"key": 7, "value": b"\0\0\0\3"}]] * 2,
        "value": [b"in"] * 2,
    }
    n = lhs.header("headers", "n", "int8", format="kip82-typed", engine=engines[0])
    assert collected(df.select(n)) == {"n": [1, 1]}


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hurt(spark):
    """A set whose middle message has a header that is not UTF-8; one that is cut off; and a good one."""
    bad = sent(1).replace(b"\x01t", b"\x01\xff")
    crc = _crc(bad)
    return values_of(spark, [sent(0) + crc + sent(2), sent(3) + sent(4)[:-1], sent(5)])


def _crc(message: bytes) -> bytes:
    import zlib

    return message[:12] + zlib.crc32(message[16:]).to_bytes(4, "big") + message[16:]


def test_bad_message_does_not_hide_neighbours(hurt):
    df = lhs.explode_batches(
        hurt, "kip82-messages", column="data", columns=["offset", "value"], headers={"n": "int8"}, errors="column"
    )
    assert dict(df.dtypes)["error"] == ERROR
    result = collected(df)
    assert result["number"] == [0, 0, 0, 1, 1, 2]
    assert result["offset"] == [0, 1, 2, 3, None, 5]
    assert result["value"] == [b"v0", b"v1", b"v2", b"v3", None, b"v5"]
    assert result["n"] == [0, 1, 2, 3, None, 5]
    assert [error and [detail["code"] for detail in error] for error in result["error"]] == [
        None, ["key_not_utf8"], None, None, ["truncated"], None,
    ]  # fmt: skip


def test_error_quotes_identifying_columns_of_its_row(hurt):
    for identify, where in ((["number"], " in the row with number=0"), ([], "")):
        explode = partial(
            lhs.explode_batches, column="data", format="kip82-messages", keep=["number"], identify=identify
        )
        text = failure(hurt.where("number = 0").transform(explode))
        assert re.search(
            rf"DecodeError: kip82-messages: .*message 1: the key is not UTF-8{where} \(header 1, byte \d+\)", text
        )
        assert ", row " not in text
    text = failure(
        hurt.where("number > 0").transform(lhs.explode_batches, "kip82-messages", column="data", identify=["number"])
    )
    assert "in the row with number=1 (byte" in text


def test_lenient_drops_truncated_message(hurt):
    df = hurt.where("number > 0").transform(
        lhs.explode_batches, "kip82-messages", column="data", columns=["offset"], lenient=True
    )
    assert collected(df) == {"number": [1, 2], "offset": [3, 5]}
    nulls = lhs.explode_batches(hurt, "kip82-messages", column="data", columns=["offset"], errors="null", keep=[])
    # Of the one with a bad header the offset was read.
    assert collected(nulls) == {"offset": [0, 1, 2, 3, None, 5]}


def test_typed_keys_are_read_as_text_on_request(spark, captured):
    df = values_of(spark, [captured["iggy-batch"]])
    text = partial(
        lhs.explode_batches,
        column="data",
        format="iggy-batch",
        columns=["headers"],
        keep=[],
        text_keys=True,
        errors="column",
    )
    result = df.transform(text)
    assert dict(result.dtypes)["headers"] == TYPED
    values_read = collected(result)
    assert values_read["headers"][0] is None
    assert [header["key"] for header in values_read["headers"][1]][:3] == ["big", "content-type", "flag"]
    # Fourteen of the fifteen keys are no text.
    assert [len(error or ()) for error in values_read["error"]] == [14, 0, 0]


# What crosses, and how large it gets ----------------------------------------------------------------------------------


@pytest.fixture
def batch():
    values = [b"".join(sent(number) for number in range(many)) for many in (3, 0, 1, 4)]
    return pa.record_batch({"name": ["a", "b", "c" * 99, "d"], "data": pa.array([*values], pa.binary())})


def test_values_are_read_few_at_a_time(spark, batch, monkeypatch):
    """What comes out of a value can be many times as large."""
    monkeypatch.setattr("letterhead.spark.runner._BYTES_READ", 1)
    parts = batches_of(
        partial(lhs.explode_batches, column="data", format="kip82-messages", columns=["row", "offset"], keep=["name"]),
        batch,
    )
    assert [result.num_rows for result in parts] == [3, 0, 1, 4]
    # The row counts over them all.
    assert pa.Table.from_batches(parts).to_pydict() == {
        "name": ["a"] * 3 + ["c" * 99] + ["d"] * 4, "row": [0] * 3 + [2] + [3] * 4, "offset": [0, 1, 2, 0, 0, 1, 2, 3],
    }  # fmt: skip


def test_error_names_its_row_in_any_part(spark, batch, monkeypatch):
    monkeypatch.setattr("letterhead.spark.runner._BYTES_READ", 1)
    bad = pa.record_batch({"name": batch["name"], "data": pa.array([*batch["data"].to_pylist()[:3], b"\1"])})
    with pytest.raises(lh.HeaderError, match=r"in the row with name='d' \(byte 0\)"):
        batches_of(
            partial(lhs.explode_batches, column="data", format="kip82-messages", keep=[], identify=["name"]), bad
        )


def test_repeated_columns_are_split_at_byte_limit(spark, batch, monkeypatch):
    """A large value may be kept beside each of its many messages."""
    whole = batches_of(
        partial(lhs.explode_batches, column="data", format="kip82-messages", keep=["data", "name"]), batch
    )
    assert [result.num_rows for result in whole] == [8]
    for limit in (1, 300, 2000):
        monkeypatch.setattr("letterhead.spark.runner._BYTES_KEPT", limit)
        parts = batches_of(
            partial(lhs.explode_batches, column="data", format="kip82-messages", keep=["data", "name"]), batch
        )
        assert len(parts) > 1
        assert pa.Table.from_batches(parts) == pa.Table.from_batches(whole)
        assert all(
            result.num_rows == 1 or sum(result.column(name).nbytes for name in ("data", "name")) <= limit
            for result in parts
        )


def heartbeats(count: int, records: int) -> pa.Array:
    """Return compressed batches that become hundreds of times as large."""
    data = lh.batch([lh.Message(value=b"." * 1000, headers=[]) for _ in range(records)], "record-batch", codec="zstd")
    return pa.array([data] * count, pa.binary())


def test_every_returned_batch_is_bounded(spark):
    batch = pa.record_batch({"data": heartbeats(3, 1000)})
    columns, limits = ["row", "value"], lh.Limits(arrow_batch_bytes=100_000)
    whole = batches_of(partial(lhs.explode_batches, column="data", format="record-batch", columns=columns), batch)
    parts = batches_of(
        partial(lhs.explode_batches, column="data", format="record-batch", columns=columns, limits=limits), batch
    )
    assert pa.Table.from_batches(parts) == pa.Table.from_batches(whole)
    assert len(parts) > 30
    assert all(part.nbytes <= 100_000 for part in parts)


@pytest.mark.slow
def test_batches_expanding_to_gigabytes_do_not_end_jvm(spark):
    data = heartbeats(1, 1000)[0].as_py()
    rows = spark.range(0, 1900, 1, 1).select(F.lit(bytearray(data)).alias("data"))
    result = lhs.explode_batches(rows, "record-batch", column="data", columns=["offset", "value"])
    assert result.agg(F.count("*"), F.sum(F.length("value"))).first() == (1_900_000, 1_900_000_000)


def test_no_messages_give_no_rows(spark, batch):
    empty = pa.record_batch({"name": ["a", "b"], "data": pa.array([None, b""], pa.binary())})
    for rows in (empty, batch.slice(0, 0)):
        parts = batches_of(partial(lhs.explode_batches, column="data", format="kip82-messages"), rows)
        assert sum(result.num_rows for result in parts) == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"n": "int8", "tenant": "string"},
        "n tinyint, tenant string",
        StructType().add("n", "byte").add("tenant", "string"),
        pa.schema([("n", pa.int8()), ("tenant", pa.string())]),
    ],
    ids=["mapping", "ddl", "struct", "schema"],
)
def test_headers_are_given_in_each_form_of_columns(spark, headers):
    data = lh.batch([{"value": b"v", "headers": {"n": b"\x05", "tenant": b"acme"}}])
    df = spark.createDataFrame(pa.table({"batch": pa.array([data], pa.binary())}))
    rows = lhs.explode_batches(df, "record-batch", column="batch", columns=["offset"], headers=headers)
    assert rows.collect() == [(0, 5, "acme")]


# Before a job runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "options", "error", "message"),
    [
        ("kafka", {}, ValueError, "kafka is not a batch: read it with decode"),
        ("iggy-message", {}, ValueError, "iggy-message is not a batch"),
        ("iggy-bach", {}, ValueError, "did you mean 'iggy-batch'"),
        ("iggy-batch", {"columns": ["ofset"]}, ValueError, "did you mean 'offset'"),
        ("iggy-batch", {"columns": "offset"}, TypeError, "columns must be a list of column names, not str"),
        ("iggy-batch", {"columns": ["id", "id"]}, ValueError, "columns names 'id' twice"),
        ("iggy-batch", {"headers": ["n"]}, TypeError, "headers must be a mapping"),
        ("iggy-batch", {"headers": {}}, ValueError, "no columns were asked for"),
        ("iggy-batch", {"headers": {"n": "itn8"}}, ValueError, "did you mean 'int128'"),
        ("iggy-batch", {"headers": {"offset": "int8"}}, ValueError, "two columns 'offset' would be made"),
        ("kip82-messages-int", {"headers": {"n": "int8"}}, ValueError, "key n: kip82-messages-int has integer keys"),
        ("kip82-messages", {"errors": "skip"}, ValueError, "errors"),
        ("kip82-messages", {"text_keys": 1}, TypeError, "text_keys must be bool"),
        ("kip82-messages", {"lenient": "yes"}, TypeError, "lenient must be bool"),
        ("kip82-messages", {"keep": "number"}, TypeError, "keep must be a list"),
    ],
)
def test_wrong_arguments_are_rejected_when_passed(spark, format, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        lhs.explode_batches(spark.range(1), format, column="data", **options)


def test_unsuitable_dataframe_is_rejected_before_job(spark):
    df = values_of(spark, [b""], offset=pa.array([1]))
    with pytest.raises(ValueError, match="column 'offset' would be there twice"):
        lhs.explode_batches(df, "kip82-messages", column="data")
    with pytest.raises(TypeError, match="column 'number' is bigint, and kip82-messages is read from binary"):
        lhs.explode_batches(df, "kip82-messages", column="number", keep=[])
    with pytest.raises(ValueError, match="no columns would be left"):
        lhs.explode_batches(df, "kip82-messages", column="data", columns=[], keep=[])
