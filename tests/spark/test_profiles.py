"""Conventions in Spark: profiles in `select_headers`, and values taken apart by Arrow UDFs."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.conventions import amqp
from letterhead.conventions.profiles import PROFILES

HEADERS = "array<struct<key:string,value:binary>>"
MOMENT = datetime.datetime(2023, 11, 14, 22, 13, 20, 123000)


def test_every_profile_works_in_select_headers(spark):
    frame = spark.createDataFrame([([("x", b"1")],), (None,)], f"headers {HEADERS}")
    for name in PROFILES:
        selected = lhs.select_headers(frame, lh.profile(name))
        assert selected.columns == list(lh.profile(name))
    # The types of one in which there are several.
    selected = lhs.select_headers(frame, lh.profile("spring-dlt"))
    assert dict(selected.dtypes)["original_offset"] == "bigint"
    assert dict(selected.dtypes)["original_timestamp"] == "timestamp"
    assert selected.count() == 2


def test_iot_hub_properties_are_read(spark):
    headers = [
        ("iothub-connection-device-id", bytes.fromhex("a10764657669636531")),
        ("iothub-enqueuedtime", bytes.fromhex("830000018bcfe5687b")),
        ("mine", b"plain text"),
    ]
    frame = spark.createDataFrame([(1, headers), (2, [])], f"offset int, headers {HEADERS}")
    selected = lhs.select_headers(frame, lh.profile("eventhubs"), keep=["offset"])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    first, second = selected.orderBy("offset").select("device_id", F.col("enqueued_time").cast("string")).collect()
    assert tuple(first) == ("device1", str(MOMENT)[:-3])
    assert tuple(second) == (None, None)
    named = frame.select(
        lhs.header("headers", "iothub-connection-device-id", "string:amqp").alias("device_id"), "offset"
    )
    assert [row.device_id for row in named.orderBy("offset").collect()] == ["device1", None]
    with pytest.raises(ValueError, match="type 'string:amqp' is not read by Spark's expressions"):
        lhs.header("headers", "k", "string:amqp", engine="spark")


def test_values_of_every_type_match_arrow(spark):
    messages = {
        "bool": "5601", "char": "73000020ac", "int8": "51ff", "int16": "61fffe", "int32": "54fd", "int64": "55fc",
        "uint8": "50ff", "uint16": "60ffff", "uint32": "70ffffffff", "uint64": "80ffffffffffffffff",
        "float32": "723f000000", "float64": "82c002000000000000", "timestamp_ms": "830000018bcfe5687b",
        "uuid": "9889791762233641869674299b90a802e2", "string": "a3056669727374", "binary": "a00200ff",
    }  # fmt: skip
    assert set(messages) == set(amqp.READ_AS)
    row = spark.range(1).select(
        *(
            lhs.amqp(F.unhex(F.lit(message)), type).alias(type)
            for type, message in messages.items()
            if type != "timestamp_ms"
        ),
        F.unix_millis(lhs.amqp(F.unhex(F.lit(messages["timestamp_ms"])), "timestamp_ms")).alias("timestamp_ms"),
    )
    result = row.collect()[0].asDict()
    for type, message in messages.items():
        value = lha.amqp(pa.array([bytes.fromhex(message)]), type)
        [expected] = value.cast(pa.int64()).to_pylist() if type == "timestamp_ms" else value.to_pylist()
        assert (bytes(result[type]) if type == "binary" else result[type]) == expected, type


def test_bad_values_fail_query_are_null_or_reported(spark):
    frame = spark.createDataFrame([(1, b"\x55\x07"), (2, b"\x55"), (3, None)], "n int, value binary")
    assert [row[0] for row in frame.orderBy("n").select(lhs.amqp("value", "int64", errors="null")).collect()] == [
        7, None, None
    ]  # fmt: skip
    reported = frame.orderBy("n").select(lhs.amqp("value", "int64", errors="column").alias("c")).select("c.*").collect()
    assert [row.value for row in reported] == [7, None, None]
    assert [row.error and (row.error[0].code, row.error[0].byte_offset) for row in reported] == [
        None,
        ("truncated", 1),
        None,
    ]
    with pytest.raises(Exception, match=r"amqp: the bytes end inside the long \(byte 1\)"):
        frame.select(lhs.amqp("value", "int64")).collect()


def test_other_conventions_are_parsed(spark):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    row = (
        spark.createDataFrame(
            [(trace, bytes.fromhex("000000002a00"), "2023-11-14T23:13:20.123456789+01:00")],
            "traceparent string, id binary, time string",
        )
        .select(
            lhs.traceparent("traceparent").alias("t"),
            lhs.schema_id("id").alias("s"),
            F.unix_micros(lhs.rfc3339("time")).alias("us"),
        )
        .collect()[0]
    )
    assert (row.t.trace_id, row.t.parent_id, row.t.sampled) == (trace[3:35], trace[36:52], True)
    assert row.s.asDict() == {"id": 42, "guid": None, "message_indexes": [0]}
    assert row.us == 1_700_000_000_123_456


def test_unknown_types_and_options_are_rejected_before_job(spark):
    with pytest.raises(ValueError, match="unknown type 'itn'"):
        lhs.amqp("value", "itn")
    with pytest.raises(ValueError, match="AMQP has no int128"):
        lhs.amqp("value", "int128")
    with pytest.raises(ValueError, match="unknown errors value 'drop'"):
        lhs.schema_id("value", errors="drop")
