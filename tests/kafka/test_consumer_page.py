"""The consumer of `docs/how-to/consumer-loop.md` handles every good record, and sets aside every bad one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

import letterhead as lh
from tests.helpers import pages
from tests.kafka.topics import create, damage, orders, place, produce

pytestmark = pytest.mark.broker


def test_consumer_on_page_sets_damaged_records_aside(broker: str, samples: Path) -> None:
    records, harmed = damage(orders(samples, 1_000))
    create(broker, "orders-consumer")
    produce(broker, "orders-consumer", records)
    names: dict[str, Any] = {}
    there = {"127.0.0.1:9092": broker, '"orders"': '"orders-consumer"', '"billing"': '"billing-consumer"'}
    pages.run("docs/how-to/consumer-loop.md", names, there=there)
    good, bad = {}, {}
    names["consume"](
        lambda message, row: good.update({(message.partition(), message.offset()): (message, row)}),
        lambda message, error: bad.update({(message.partition(), message.offset()): (message, error)}),
        lambda: len(good) + len(bad) < len(records),
    )
    assert set(good) | set(bad) == {place(number) for number in range(len(records))}
    columns = {place(number): column for number, column in harmed.items() if column in names["COLUMNS"]}
    assert {at: error[0]["column"] for at, (_, error) in bad.items()} == columns
    for message, row in good.values():
        assert names["headers_of"](message) == {name: value for name, value in row.items() if name != "error"}
    for message, error in bad.values():
        with pytest.raises(lh.DecodeError) as raised:
            names["headers_of"](message)
        assert raised.value.column == error[0]["column"]


def test_producer_on_page_writes_typed_headers(broker: str) -> None:
    create(broker, "orders-produced")
    there = {"127.0.0.1:9092": broker, '"orders-clean"': '"orders-produced"'}
    pages.run("docs/how-to/consumer-loop.md", {}, "python produce", there=there)
    columns = {"tenant": "string", "retry": "int32", "route": "array<string>"}
    with lh.read.topic("orders-produced", broker, columns=["value"], headers=columns) as reader:
        assert reader.read_all().to_pylist() == [
            {"value": b"2 pens", "tenant": "acme", "retry": 3, "route": ["eu", "us"]}
        ]


def test_producer_without_topic_fails(broker: str) -> None:
    there = {"127.0.0.1:9092": broker, '"orders-clean"': '"no-such-topic"'}
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        pages.run("docs/how-to/consumer-loop.md", {}, "python produce", there=there)
