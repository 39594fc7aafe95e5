"""Batches of Iggy as rows: errors name stream, topic, partition and offset, and times outside of a range follow errors."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

import letterhead as lh
from letterhead._row_request import RowRequest
from letterhead.errors import DecodeError
from letterhead.iggy import kafka_gateway
from letterhead.iggy.client import IggyTopic, Messages
from letterhead.iggy.kafka_rows import MappedRowReader
from letterhead.iggy.partitions import IggyPartitions
from letterhead.iggy.rows import IggyRowReader
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from tests.helpers.batch_bytes import batch, frame

PLACE = {"stream": "shop", "topic": "orders", "partition": 3}


def mapped(time: int) -> bytes:
    """Write the headers of a Kafka record with a timestamp in milliseconds."""
    return kafka_gateway._encode([("kafka.v", 1, b"\1"), ("kafka.ts", 7, struct.pack("<q", time))])


def test_message_errors_name_offset_and_can_be_grouped() -> None:
    data = batch(*(frame(at, b"x", b"\1\2" if at in (2, 4) else b"") for at in range(6)), base=40)
    rows = IggyRowReader(RowRequest(("offset",)))
    with pytest.raises(DecodeError) as raised:
        rows(data, partition_values=PLACE)
    located = rows.located(raised.value, data, partition_values=PLACE)
    assert f"(topic shop/orders, partition 3, offset 42, header 0, byte {located.byte_offset})" in str(located)
    assert not located.message.startswith("message ")
    rows_read = IggyRowReader(RowRequest(("offset",), errors="column"))(data, partition_values=PLACE).to_pylist()  # type: ignore[union-attr]
    assert [row["offset"] for row in rows_read if row["error"]] == [42, 44]
    assert len({row["error"][0]["message"] for row in rows_read if row["error"]}) == 1


@pytest.mark.parametrize("dialect", ["arrow", "spark"])
def test_time_out_of_timestamp_range_follows_errors(dialect: Any) -> None:
    data = batch(frame(0)) + batch(frame(0), base=1, timestamp=(1 << 64) - 1) + batch(frame(0), base=2)
    columns = ("offset", "timestamp")
    rows = IggyRowReader(RowRequest(columns), dialect=dialect)
    with pytest.raises(DecodeError) as raised:
        rows(data, partition_values=PLACE)
    located = rows.located(raised.value, data, partition_values=PLACE)
    assert (located.code, located.topic, located.partition, located.offset) == ("out_of_range", "shop/orders", 3, 1)
    result: Any = IggyRowReader(RowRequest(columns, errors="null"), dialect=dialect)(data, partition_values=PLACE)
    assert [row["timestamp"] is None for row in result.to_pylist()] == [False, True, False]
    result = IggyRowReader(RowRequest(columns, errors="column"), dialect=dialect)(data, partition_values=PLACE)
    assert [row["error"] and row["error"][0]["code"] for row in result.to_pylist()] == [None, "out_of_range", None]


def test_kafka_record_time_out_of_spark_range_names_offset() -> None:
    times = (1000, 1_700_000_000_000_000_000, 2000)
    data = batch(*(frame(at, b"v", mapped(time)) for at, time in enumerate(times)), base=7)
    with pytest.raises(DecodeError, match=r"does not fit .* \(topic shop/orders, partition 3, offset 8\)"):
        MappedRowReader(RowRequest(("offset", "timestamp")), dialect="spark")(data, partition_values=PLACE)
    result: Any = MappedRowReader(RowRequest(("offset", "timestamp")))(data, partition_values=PLACE)
    assert result.column("timestamp").cast("int64").to_pylist() == list(times)
    broken = batch(frame(0, b"v", kafka_gateway._encode([("kafka.v", 1, b"\7")])), base=7)
    with pytest.raises(lh.DecodeError, match="version 7 of the mapping is unknown") as raised:
        MappedRowReader(RowRequest(("offset",)))(broken, partition_values=PLACE)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("shop/orders", 3, 7)


@pytest.mark.parametrize("errors", ["column", "null"])
def test_damaged_batch_in_poll_is_reported_as_one_row(errors: Any) -> None:
    client: Any = SimpleNamespace(timeout=1.0)
    batches = [batch(*(frame(at) for at in range(3)), base=first) for first in (3, 6, 9)]
    for at, code in ((16, "bad_crc"), (40, "bad_crc"), (292, "wrong_size")):
        damaged = bytearray(batches[1])
        damaged[at] ^= 4
        data = bytes(16) + batches[0] + damaged + batches[2]
        log = IggyPartitions(client, IggyRowReader(RowRequest(("offset",), errors=errors)))
        polled = Messages(9, 3, 12, memoryview(data))
        partition = TopicPartition(IggyTopic("shop", "orders"), 3)
        for start, end in ((3, 12), (5, 10), (7, 8)):
            result = [row for part in log.rows(polled, OffsetRange(partition, start, end)) for row in part.to_pylist()]
            before, after = range(start, 6), range(9, end)
            assert [row["offset"] for row in result] == [*before, None, *after]
            if errors == "column":
                [error] = [row["error"][0] for row in result if row["error"]]
                first, last = max(6, start), min(8, end - 1)
                assert (error["code"], error["byte_offset"]) == (code, 0)
                assert f"offsets {first} to {last} are missing" in error["message"]
        untouched = [row for part in log.rows(polled, OffsetRange(partition, 9, 12)) for row in part.to_pylist()]
        assert [row["offset"] for row in untouched] == [9, 10, 11]
