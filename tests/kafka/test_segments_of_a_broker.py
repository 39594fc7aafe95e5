"""The files that a broker writes, its indexes among them, against what a consumer reads from that broker."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import letterhead as lh
from letterhead.kafka.indexes import offsets_every, position_before
from letterhead.kafka.log_directory import partitions
from letterhead.kafka.transactions import Aborted, read_transactions
from tests.kafka import broker as kafka

pytestmark = pytest.mark.broker

TOPIC = "kept"
FIRST = 1_767_225_600_000


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Write transactions into small segments: committed, aborted, side by side, and one that stays open."""
    running = kafka.Broker(tmp_path_factory.mktemp("segments"))
    running.start()
    admin = AdminClient({"bootstrap.servers": running.address, "log_level": 3})
    config = {"segment.bytes": str(1 << 20), "index.interval.bytes": "4096", "compression.type": "producer"}
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(timeout=300)
    draw = random.Random(7)
    number = 0

    def producer(name: str, codec: str = "none") -> Any:
        result = Producer({
            "bootstrap.servers": running.address, "transactional.id": name, "linger.ms": 5, "compression.type": codec,
            "batch.size": 8000,
        })  # fmt: skip
        result.init_transactions(30)
        return result

    def send(to: Any, count: int) -> None:
        nonlocal number
        for _ in range(count):
            to.produce(
                TOPIC, draw.randbytes(700), str(number), timestamp=FIRST + number, headers=[("n", str(number).encode())]
            )
            number += 1
        to.flush(30)

    first, second = producer("one"), producer("other", "zstd")
    for turn in range(6):
        first.begin_transaction()
        second.begin_transaction()
        send(first, 300)
        send(second, 200)
        send(first, 100)
        (first.abort_transaction if turn % 3 == 1 else first.commit_transaction)(30)
        send(second, 100)
        (second.abort_transaction if turn % 2 else second.commit_transaction)(30)
    open_one = producer("open")
    open_one.begin_transaction()
    send(open_one, 50)
    first.begin_transaction()
    send(first, 50)
    first.commit_transaction(30)
    yield running.address, running.directory / "data" / f"{TOPIC}-0"
    del open_one
    running.stop()


def consumed(address: str, level: str) -> list[tuple[int, int, bytes, bytes, list[Any]]]:
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": "g", "isolation.level": level, "enable.auto.commit": False,
        "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    records = []
    until = time.monotonic() + 300
    while time.monotonic() < until:
        message = consumer.poll(5)
        if message is None:
            continue
        if message.error():
            if message.error().name() == "_PARTITION_EOF":
                consumer.close()
                return records
            raise KafkaException(message.error())
        records.append(
            (message.offset(), message.timestamp()[1], message.key(), message.value(), message.headers() or [])
        )
    raise TimeoutError("no end of the partition in 300 s")


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_segment_files_match_broker_records(written: tuple[str, Path], level: Any) -> None:
    address, folder = written
    expected = consumed(address, level)
    with lh.read.segments(folder, isolation_level=level) as reader:
        table = reader.read_all()
        opened, truncated = reader.open_transactions, reader.truncated
    at = table.schema.get_field_index("timestamp")
    rows = table.set_column(at, "timestamp", table["timestamp"].cast("int64")).to_pylist()
    assert [
        (row["offset"], row["timestamp"], row["key"], row["value"], [(h["key"], h["value"]) for h in row["headers"]])
        for row in rows
    ] == expected
    assert len(expected) == (4300 if level == "read_uncommitted" else 2500)
    # What a broker has not filled yet of a file that it made longer is no part of the log.
    assert all("zeros" in warning.reason for warning in truncated)
    assert len(opened) == (level == "read_committed")


def test_broker_indexes_locate_first_record(written: tuple[str, Path]) -> None:
    _, folder = written
    [segments] = partitions(folder)
    assert len(segments) > 2
    with lh.read.segments(folder, columns=["offset", "timestamp"]) as reader:
        rows = reader.read_all().to_pylist()
    for row in rows[500::400]:
        with lh.read.segments(folder, columns=["offset"], start=row["offset"], end=row["offset"] + 1) as reader:
            assert reader.read_all().to_pylist() == [{"offset": row["offset"]}]
        with lh.read.segments(folder, columns=["offset"], start=row["timestamp"]) as reader:
            offsets_read = reader.read_all().column("offset").to_pylist()
        assert offsets_read == [later["offset"] for later in rows if later["timestamp"] >= row["timestamp"]]
    first = segments[0]
    size = first.size
    cuts = offsets_every(first, size // 4)
    assert 2 <= len(cuts) <= 5
    assert 0 < position_before(first, cuts[0]) < position_before(first, cuts[1]) < size


def test_control_records_match_the_index_of_transactions(written: tuple[str, Path]) -> None:
    _, folder = written
    [segments] = partitions(folder)
    entry = struct.Struct(">hqqqq")
    by_index = {
        Aborted(producer, first, last)
        for segment in segments
        if (index := segment.path.with_suffix(".txnindex")).exists()
        for _, producer, first, last, _ in entry.iter_unpack(index.read_bytes())
    }
    assert len(by_index) == 5
    assert sorted(read_transactions(segments).aborted) == sorted(by_index)
