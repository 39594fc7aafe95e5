"""`letterhead diff` of topics of a broker, with their copies in files and in another topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import letterhead as lh
from tests.helpers.command import Result
from tests.kafka.topics import Record
from tests.kafka.written import create_with, producer, send

pytestmark = pytest.mark.broker

Run = Callable[..., Result]


def records(count: int, prefix: str = "value") -> list[Record]:
    headers = [("tenant", b"acme"), ("tenant", b"b"), ("n", None)]
    return [Record(b"k", f"{prefix} {number}".encode(), headers) for number in range(count)]


@pytest.fixture
def topic(broker: str) -> str:
    create_with(broker, "diffed", 3)
    for partition, count in enumerate((40, 5)):
        send(producer(broker), "diffed", records(count), partition)
    return f"kafka://{broker}/diffed"


def test_topic_equals_its_copies_until_it_changes(run: Run, topic: str, broker: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"copy.{ending}" for ending in ("parquet", "jsonl", "arrow")]
    for path in paths:
        assert run("read", topic, "-o", path).code == 0
        assert run("diff", topic, path).lines == ["no record differs; 45 equal"]
    create_with(broker, "diffed-copy", 3)
    lh.write.topic(lh.open(paths[0]), "diffed-copy", bootstrap_servers=broker, partition="partition")
    copy = f"kafka://{broker}/diffed-copy"
    assert run("diff", topic, copy).lines == ["no record differs; 45 equal"]
    send(producer(broker), "diffed", records(1, "new"), 1)
    for other in (*paths, copy):
        result = run("diff", topic, other, "--json")
        assert result.code == 1
        assert [(row["partition"], row["offset"]) for row in map(json.loads, result.lines)] == [(1, 5)]
        assert run("diff", topic, other, "--where", "offset < 5").code == 0
