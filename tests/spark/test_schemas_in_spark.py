"""Values decoded by schema in Spark: the how-to page on what Confluent's serializers wrote, and what is set aside."""

from __future__ import annotations

import datetime
import decimal
import sys
from contextlib import nullcontext
from functools import partial

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import types as T

import letterhead as lh
from letterhead import spark as lhs
from letterhead.schemas import AvroDecoder, JsonDecoder, ProtobufDecoder, RegisteredSchema
from tests.helpers import memory_registry
from tests.helpers.pages import run
from tests.spark.frames import failure

PAGE = "docs/how-to/decode-avro.md"

# Workers do not have the modules of tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(memory_registry)


HEADER = "__value_schema_id"


def prefixed(id, body=b""):
    return b"\0" + id.to_bytes(4, "big") + body


def encoded(*messages):
    return pa.array([lh.encode(headers, "kafka") for headers in messages])


def lengths(group):
    if group.schema_id == 9:
        return None
    return [{"schema": group.schema_id, "length": len(value)} for value in group.values.to_pylist()]


def frame_of(spark, values, headers=None):
    columns = {"n": list(range(len(values))), "value": pa.array(values, pa.binary())}
    return spark.createDataFrame(pa.table(columns if headers is None else {**columns, "headers": headers}))


def test_avro_page_decodes_in_spark(spark) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka, which writes the topic, is not installed")
    from tests.conventions.test_schemas import topic

    registry, values, headers, orders = topic(2_500)
    table = pa.table({"offset": list(range(len(values))), "value": values, "headers": headers})
    # A value of no schema, and one of a schema that the registry does not have.
    more = pa.table({"offset": [2500, 2501], "value": [b"{}", prefixed(99)], "headers": encoded([], [])})
    names = {
        "registry": registry,
        "table": table,
        "nullcontext": nullcontext,
        "topic": spark.createDataFrame(pa.concat_tables([table, more])),
    }
    there = {
        'lh.read.topic("orders", bootstrap_servers="localhost:9092")': "nullcontext(table)",
        'lh.write.topic(encoded, "orders", bootstrap_servers="localhost:9092")': "encoded.num_rows",
    }
    run(PAGE, names, "python", there)
    run(PAGE, names, "python spark")
    rows = names["orders"].orderBy("offset").collect()
    assert names["orders"].columns == ["offset", "id", "city", "error"]
    assert [(row.id, row.city, row.error) for row in rows[:-2]] == [(row["id"], row["city"], None) for row in orders]
    assert [(row.id, row.error[0].code) for row in rows[-2:]] == [(None, "bad_magic"), (None, "unknown_type")]


def test_values_without_schema_fail_query_or_are_set_aside(spark) -> None:
    values = [prefixed(7, b"abc"), b"{}", None, prefixed(9), b"ab"]
    headers = encoded([], [], [], [], [(HEADER, prefixed(8))])
    frame = frame_of(spark, values, headers)
    options = {"headers": "headers", "keep": ["n"]}
    schema = T.StructType().add("schema", T.IntegerType(), False).add("length", T.LongType())
    read = partial(
        lhs.decode_by_schema, decode=lengths, schema=schema, errors="column", error_column="problem", **options
    )
    result = frame.transform(read)
    assert result.columns == ["n", "schema", "length", "problem"]
    rows = [(row.schema, row.length, row.problem and row.problem[0].code) for row in result.orderBy("n").collect()]
    nothing = (None, None)
    assert rows == [(7, 3, None), (*nothing, "bad_magic"), (*nothing, None), (*nothing, "unknown_type"), (8, 2, None)]
    without_id = frame.where("n < 3")
    stopped = failure(lhs.decode_by_schema(without_id, lengths, "schema int, length int", identify=["n"], **options))
    assert "no header __value_schema_id, and the value begins with 123" in stopped
    assert "in the row with n=1" in stopped


def test_all_other_columns_are_kept_by_default(spark) -> None:
    frame = frame_of(spark, [prefixed(7, b"abc")])
    read = partial(lhs.decode_by_schema, column=frame["value"], decode=lengths, schema="schema int", errors="null")
    assert frame.transform(read).first().asDict() == {"n": 0, "value": prefixed(7, b"abc"), "schema": 7}


def test_wrong_arguments_are_rejected_before_job(spark) -> None:
    frame = frame_of(spark, [prefixed(7)])
    with pytest.raises(TypeError, match="decode must be a function"):
        lhs.decode_by_schema(spark.range(1), "lengths", "n int")
    with pytest.raises(TypeError, match="schema must be str or StructType"):
        lhs.decode_by_schema(spark.range(1), lengths, pa.schema([]))
    with pytest.raises(ValueError, match="unknown errors value 'drop'"):
        lhs.decode_by_schema(spark.range(1), lengths, "n int", errors="drop")
    with pytest.raises(ValueError, match="unknown format 'kafak'"):
        lhs.decode_by_schema(spark.range(1), lengths, "m int", headers="headers", format="kafak")
    with pytest.raises(TypeError, match="column 'n' is bigint, and serialized values are binary"):
        lhs.decode_by_schema(frame, lengths, "m int", column="n")
    with pytest.raises(ValueError, match="column 'n' would be there twice"):
        lhs.decode_by_schema(frame, lengths, "n int")
    with pytest.raises(ValueError, match="unknown column 'header'"):
        lhs.decode_by_schema(frame, lengths, "m int", headers="header")


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW"]}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "L", "fields": [{"name": "n", "type": "int"}]}}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
    ],
}  # fmt: skip


def with_time(type):
    return {"type": "record", "name": "T", "fields": [{"name": "at", "type": type}]}


def test_avro_decoder_has_spark_columns(spark) -> None:
    pytest.importorskip("fastavro", reason="fastavro, which writes the values, is not installed")
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.UTC)
    order = {
        "id": 1,
        "at": when,
        "counts": {"a": 1},
        "state": "NEW",
        "lines": [{"n": 7}],
        "price": decimal.Decimal("1.25"),
    }
    values = [memory_registry.prefixed(1, ORDER, order), prefixed(9), None]
    decoder = AvroDecoder(memory_registry.MemoryRegistry({1: ORDER, "orders": ORDER}), subject="orders")
    result = frame_of(spark, values).transform(lhs.decode_by_schema, decoder, keep=["n"], errors="column")
    types = dict(result.drop("error").dtypes)
    assert types == {
        "n": "bigint", "id": "bigint", "at": "timestamp", "counts": "map<string,int>", "state": "string",
        "lines": "array<struct<n:int>>", "price": "decimal(5,2)",
    }  # fmt: skip
    first, second, third = result.orderBy("n").collect()
    assert (first.id, first.counts, first.state, first.lines[0].n) == (1, {"a": 1}, "NEW", 7)
    assert (first.at.astimezone(datetime.UTC), first.price) == (when, decimal.Decimal("1.25"))
    assert (second.id, second.error[0].code, third.id, third.error) == (None, "unknown_type", None, None)


def test_columns_without_spark_type_need_schema(spark) -> None:
    schema = with_time({"type": "int", "logicalType": "time-millis"})
    decoder = AvroDecoder(memory_registry.MemoryRegistry({1: schema}), schema)
    frame = frame_of(spark, [b"\0\0\0\0\1\x02"])
    with pytest.raises(TypeError, match=r"Spark has no type for time32.*pass schema="):
        lhs.decode_by_schema(frame, decoder)
    [row] = lhs.decode_by_schema(frame, decoder, "at int", keep=[]).collect()
    assert row.at == 1
    with pytest.raises(ValueError, match="pass a schema or a subject to the decoder"):
        lhs.decode_by_schema(frame, AvroDecoder(memory_registry.MemoryRegistry({1: schema})))


def test_json_and_protobuf_values_are_spark_columns(spark) -> None:
    pytest.importorskip("jsonschema_rs", reason="jsonschema-rs, which validates the values, is not installed")
    pytest.importorskip("grpc_tools", reason="grpcio-tools, which compiles the schema, is not installed")
    schema = '{"type": "object", "properties": {"id": {"type": "integer"}, "any": {}, "m": {"type": "object", "additionalProperties": {"type": "number"}}}}'
    proto = 'syntax = "proto3"; message Order { int64 id = 1; uint64 any = 2; map<string, double> m = 3; }'
    registry = memory_registry.MemoryRegistry(
        {7: RegisteredSchema("JSON", schema, {}), 8: RegisteredSchema("PROTOBUF", proto, {})}
        | {"json": RegisteredSchema("JSON", schema, {}), "protobuf": RegisteredSchema("PROTOBUF", proto, {})}
    )
    values = {
        "json": [prefixed(7, b'{"id": 7, "any": [1], "m": {"k": 2}}'), prefixed(7, b'{"id": "x"}')],
        "protobuf": [
            prefixed(8, bytes.fromhex("00 08 07 10 05 1a 0c 0a 01 6b 11 00 00 00 00 00 00 00 40")),
            prefixed(8, b"\0\xff"),
        ],
    }
    for name, decoder, any_value in (("json", JsonDecoder, "[1]"), ("protobuf", ProtobufDecoder, decimal.Decimal(5))):
        read = partial(lhs.decode_by_schema, decode=decoder(registry, subject=name), keep=["n"], errors="column")
        rows = frame_of(spark, values[name]).transform(read).orderBy("n").collect()
        assert (rows[0].id, rows[0].any, rows[0].m) == (7, any_value, {"k": 2.0})
        assert (rows[1].id, rows[1].error[0].code) == (None, "wrong_type")
