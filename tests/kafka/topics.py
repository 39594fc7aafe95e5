"""What is on topics: made of the bundled samples, written with librdkafka, read with Kafka's Java client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kafka.broker import java

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """What a producer sends."""

    key: bytes | None
    value: bytes | None
    headers: Headers


class Place(NamedTuple):
    """Where a record is in its topic."""

    partition: int
    offset: int


PARTITIONS = 2
DAMAGED_EVERY = 100

# What a careful codec could still get wrong. Nothing of it is damaged.
ODD = [
    Record(b"none", b"no headers", []),
    Record(b"nulls", b"v", [("note", None), ("note", b""), ("route", None)]),
    Record(b"again", b"v", [("route", b"a"), ("tenant", "Zoë".encode()), ("route", b"b"), ("route", b"a")]),
    Record(b"keys", b"v", [("señal-📦", b"1"), ("SEÑAL-📦", b"2"), ("", b"no key"), ("a b\nc", b"3")]),
    Record(b"bytes", b"v", [("any", bytes(range(256))), ("long", b"\x00" * 20_000)]),
    Record(None, None, [("tombstone", b"without a key")]),
    Record(b"", b"", [("", b"")]),
]


def orders(samples: Path, count: int) -> list[Record]:
    """Records of the bundled topic, over again where more are asked for, and behind them the odd ones."""
    import pyarrow.parquet as pq

    table = pq.read_table(samples / "orders-0.parquet", columns=["key", "value", "headers"]).slice(0, count)
    rows = [
        Record(row["key"], row["value"], [(header["key"], header["value"]) for header in row["headers"] or []])
        for row in table.to_pylist()
    ]
    whole, rest = divmod(count, len(rows))
    return rows * whole + rows[:rest] + ODD


def damage(records: Sequence[Record]) -> tuple[list[Record], dict[int, str]]:
    """Damage one record in a hundred; give all of them, and by their number the columns that cannot be read."""
    records = list(records)
    harms = {
        "amount_cents": b"\x00\x00\x00\x00\x00\x01\x02",  # a byte less than an int64
        "tenant": b"caf\xe9",  # Latin-1, not UTF-8
        "retry": b"12",  # text where four bytes are expected
    }
    harmed = {}
    for number in range(DAMAGED_EVERY // 2, len(records), DAMAGED_EVERY):
        column = list(harms)[len(harmed) % len(harms)]
        record = records[number]
        headers = [(key, value) for key, value in record.headers if key != column]
        headers.insert(len(headers) // 2, (column, harms[column]))
        records[number] = record._replace(headers=headers)
        harmed[number] = column
    return records, harmed


def place(number: int) -> Place:
    """Where the record of this number is, after :func:`produce`."""
    return Place(number % PARTITIONS, number // PARTITIONS)


def create(address: str, *topics: str) -> None:
    """Create topics, and wait until they are there."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
    for done in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
        done.result(timeout=300)


def produce(address: str, topic: str, records: Sequence[Record], first: int = 0) -> None:
    """Send records, each to the place that its number gives; the first one has the number ``first``."""
    from confluent_kafka import Producer

    failed = []
    producer = Producer({"bootstrap.servers": address, "max.in.flight": 1, "linger.ms": 20})
    for number, record in enumerate(records, first):
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            headers=record.headers,
            partition=place(number).partition,
            on_delivery=lambda error, _: error and failed.append(error),
        )
        producer.poll(0)
    left = producer.flush(300)
    if left or failed:
        raise RuntimeError(f"{topic}: {left} records were not sent in 300 s, {len(failed)} were refused: {failed[:3]}")


def consume(address: str, topic: str, limit: float = 300.0) -> dict[Place, Record]:
    """Read a whole topic with Kafka's Java consumer, in the order of the partitions and their offsets."""
    lines = java("letterhead.testing.broker.Consume", address, topic, limit=limit).split("\n")
    records = {}
    for line in filter(None, lines):
        record = json.loads(line)
        headers = [(key, _bytes(value)) for key, value in record["headers"]]
        where = Place(record["partition"], record["offset"])
        records[where] = Record(_bytes(record["key"]), _bytes(record["value"]), headers)
    return dict(sorted(records.items()))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
