"""Kafka records in Iggy and back: the mapping of the gateway, and the one that loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead._row_request import RowRequest
from letterhead.errors import ConversionError, DecodeError
from letterhead.iggy.kafka_gateway import KafkaRecord, to_message, to_record
from letterhead.iggy.kafka_rows import MappedRowReader
from letterhead.offsets.output_columns import TIMES, Dialect
from tests.helpers.batch_bytes import batch, frame
from tests.iggy.server import Server

NOW = 1_700_000_000_123
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KEPT = ["offset", "timestamp", "key", "value", "headers"]


def back(record: KafkaRecord, *, lossless: bool) -> KafkaRecord:
    message = to_message(record, lossless=lossless)
    headers = [(header.key_bytes, header.value_bytes) for header in fields(message.headers)]
    assert all(1 <= len(part) <= 255 for header in headers for part in header)
    return to_record(headers, message.payload, message.origin_timestamp, 1000 * NOW)


class Fields(tuple[bytes, bytes]):
    @property
    def key_bytes(self) -> bytes:
        return self[0]

    @property
    def value_bytes(self) -> bytes:
        return self[1]


def fields(block: bytes) -> list[Fields]:
    rows, at = [], 0
    while at < len(block):
        parts = []
        for _ in range(2):
            size = int.from_bytes(block[at + 1 : at + 5], "little")
            parts.append(block[at + 5 : at + 5 + size])
            at += 5 + size
        rows.append(Fields(parts))
    return rows


ODD = [
    KafkaRecord(None, None, [], NOW),
    KafkaRecord(None, b"", [], NOW),
    KafkaRecord(b"", b"v", [], NOW),
    KafkaRecord(b"k", b"v", [], 0),
    KafkaRecord(b"k" * 300, b"v", [("a", b"1")], NOW),
    KafkaRecord(b"k", b"v", [("a", None), ("b", b"")], NOW),
    KafkaRecord(b"k", None, [("a", b"1" * 256)], NOW),
    KafkaRecord(b"k", b"v", [("n" * 250, b"1")], NOW),
    KafkaRecord(b"k", b"v", [("", b"1")], NOW),
    KafkaRecord(b"k", b"v", [(f"h{number:05}", b"1" * 200) for number in range(1000)], NOW),
]
LOST = [
    KafkaRecord(b"k", b"v", [("b", b"1"), ("a", b"2")], NOW),
    KafkaRecord(b"k", b"v", [("a", b"1"), ("a", b"2"), ("a", b"1")], NOW),
    KafkaRecord(b"k", b"v", [("a", b"1")], None),
]


@pytest.mark.parametrize("record", ODD)
@pytest.mark.parametrize("lossless", [False, True])
def test_records_outside_iggy_limits_survive_mapping(record: KafkaRecord, lossless: bool) -> None:
    assert back(record, lossless=lossless) == record


@pytest.mark.parametrize("record", LOST)
def test_lossless_mapping_keeps_order_repeats_and_no_time(record: KafkaRecord) -> None:
    assert back(record, lossless=True) == record


def test_gateway_mapping_rejects_repeated_name() -> None:
    with pytest.raises(ConversionError, match="use mapping='kafka-gateway-lossless'"):
        to_message(LOST[1], lossless=False)


def test_gateway_mapping_uses_gateway_names() -> None:
    message = to_message(KafkaRecord(b"k", b"", [("trace", b"t")], NOW), lossless=False)
    assert fields(message.headers) == [
        (b"kafka.h.trace", b"t"), (b"kafka.key", b"k"), (b"kafka.v", b"\1"), (b"kafka.value", b"empty"),
    ]  # fmt: skip
    assert (message.payload, message.origin_timestamp) == (b"\0", 1000 * NOW)


@pytest.mark.parametrize(
    ("headers", "payload", "why"),
    [
        ([(b"kafka.v", b"\2")], b"v", "version 2 of the mapping is unknown"),
        ([(b"kafka.v", b"\1"), (b"kafka.new", b"1")], b"v", "unknown header that begins with kafka"),
        ([(b"kafka.v", b"\1"), (b"kafka.value", b"x")], b"v", "neither null nor empty"),
        ([(b"kafka.v", b"\1"), (b"kafka.ts", b"x")], b"v", "not an int64"),
        ([(b"kafka.v", b"\1"), (b"kafka.envelope", b"\2")], b"v", "version of `kafka.envelope`"),
        ([(b"kafka.v", b"\1"), (b"kafka.envelope", b"\1")], b"\3\xff\xff\xff\xff", "truncated"),
        ([(b"kafka.v", b"\1"), (b"kafka.envelope", b"\1")], bytes(14), "bytes follow the last header"),
        ([(b"\xff", b"1")], b"v", "not UTF-8"),
    ],
)
def test_record_not_written_by_mapping_is_rejected(headers: Any, payload: bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        to_record(headers, payload, 0, 1000)


def test_message_of_another_client_is_record_without_key() -> None:
    assert to_record([(b"tenant", b"acme"), (b"kafka.key", b"k")], b"v", 0, 5000) == KafkaRecord(
        None, b"v", [("tenant", b"acme"), ("kafka.key", b"k")], 5
    )


def read(server: Server, topic: str, **options: Any) -> pa.Table:
    with lh.read.iggy(
        server.address, stream="tests", topic=topic, mapping="kafka-gateway-lossless", **options
    ) as reader:
        return reader.read_all()


@pytest.mark.parametrize(
    "where", ["stream = 's'", "partition = 1", "offset < 5", "timestamp > 0", "key is null", "value is null"]
)
def test_condition_can_test_every_record_field(where: str) -> None:
    lh.read.iggy("iggy://u:p@h", stream="s", topic="t", mapping="kafka-gateway", where=where).close()


@pytest.mark.parametrize("dialect", ["arrow", "spark"])
def test_condition_compares_milliseconds_for_any_column_unit(dialect: Dialect) -> None:
    reader = MappedRowReader(RowRequest(("timestamp",), where="timestamp = 5000"), dialect=dialect)
    data = batch(frame(0), frame(1, later=1000), origin=5_000_000)
    rows = reader(data, partition_values={"stream": "s", "topic": "t", "partition": 0})
    assert rows is not None
    assert rows.column("timestamp").cast(TIMES["arrow"]).cast(pa.int64()).to_pylist() == [5000]


@pytest.mark.iggy_server
def test_whole_sample_topic_survives_round_trip(server: Server, create: Callable[..., str], samples: Path) -> None:
    topic = create()
    with lh.read.segments(samples / "orders-0") as reader:
        table = reader.read_all()
    written = lh.write.iggy(
        table, server.address, stream="tests", topic=topic, partition="partition", mapping="kafka-gateway-lossless"
    )
    assert written.rows == len(table) == 10_000
    result = read(server, topic)
    assert result.select(KEPT).equals(table.select(KEPT))
    typed = read(server, topic, columns=["offset"], headers={"tenant": "string"})
    expected = lh.arrow.select(table["headers"].combine_chunks(), {"tenant": "string"}).field(0)
    assert typed["tenant"].to_pylist() == expected.to_pylist()


@pytest.mark.iggy_server
def test_odd_records_survive_server_round_trip(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    records = [*ODD, *LOST]
    table = pa.table(
        {
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "headers": pa.array([[{"key": k, "value": v} for k, v in record.headers] for record in records], HEADERS),
            "timestamp": pa.array([record.timestamp for record in records], pa.timestamp("ms", "UTC")),
        }
    )
    lh.write.iggy(table, server.address, stream="tests", topic=topic, mapping="kafka-gateway-lossless")
    assert read(server, topic).select(table.column_names).equals(table)
    with pytest.raises(ConversionError, match=r"row 11"):
        lh.write.iggy(table, server.address, stream="tests", topic=topic, mapping="kafka-gateway")


@pytest.mark.iggy_server
def test_condition_selects_records(server: Server, create: Callable[..., str], samples: Path) -> None:
    topic = create(2)
    with lh.read.segments(samples / "orders-0") as reader:
        table = reader.read_all().slice(0, 500)
    lh.write.iggy(
        table.set_column(table.schema.get_field_index("partition"), "partition", pa.array([0, 1] * 250, pa.int64())),
        server.address, stream="tests", topic=topic, partition="partition", mapping="kafka-gateway-lossless",
    )  # fmt: skip
    headers = {"tenant": "string", "retry": "int32"}
    rows = read(server, topic, headers=headers).to_pylist()
    middle = sorted(row["timestamp"] for row in rows)[250]
    conditions: dict[str, Callable[[dict[str, Any]], bool]] = {
        "tenant = 'acme' and partition = 1": lambda row: row["tenant"] == "acme" and row["partition"] == 1,
        "retry > 1 or offset < 5": lambda row: (row["retry"] or 0) > 1 or row["offset"] < 5,
        f"timestamp >= {int(middle.timestamp() * 1000)}": lambda row: row["timestamp"] >= middle,
        "value is null": lambda row: row["value"] is None,
        "stream = 'other'": lambda row: False,
    }
    for where, matches in conditions.items():
        expected = [row for row in rows if matches(row)]
        assert read(server, topic, headers=headers, where=where).to_pylist() == expected, where
        assert len(expected) < len(rows)
