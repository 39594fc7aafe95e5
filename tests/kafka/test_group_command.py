"""`letterhead group`, compared with what librdkafka reports of the same groups."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.helpers.command import Result
from tests.kafka.test_group_offsets import committed
from tests.kafka.topics import Record
from tests.kafka.written import create_with, producer, send

pytestmark = pytest.mark.broker

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def topic(broker: str) -> str:
    create_with(broker, "grouped", 3)
    for partition, count in enumerate((10, 4)):
        send(producer(broker), "grouped", [Record(b"k", b"v", [])] * count, partition)
    return "grouped"


def commit(broker: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    admin = AdminClient({"bootstrap.servers": broker})
    until = time.monotonic() + 60
    while True:
        [answer] = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)]).values()
        errors = [place.error for place in answer.result(30).topic_partitions if place.error is not None]
        if not errors:
            return
        # The first group of a broker waits until its topic of offsets exists.
        assert time.monotonic() < until, errors
        time.sleep(0.2)


@contextmanager
def reading(broker: str, group: str, topic: str, protocol: str) -> Iterator[Consumer]:
    """Read a topic in a group until all of its partitions are assigned."""
    settings = {"bootstrap.servers": broker, "group.id": group, "group.protocol": protocol, "client.id": "reader"}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        until = time.monotonic() + 60
        while not consumer.assignment() and time.monotonic() < until:
            consumer.poll(0.2)
        yield consumer
    finally:
        consumer.close()


def document(result: Result) -> Any:
    assert result.code == 0, result.err
    return json.loads(result.out)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_listed_and_described_like_librdkafka(run: Run, broker: str, topic: str, protocol: str) -> None:
    name = f"described-{protocol}"
    with reading(broker, name, topic, protocol) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
        listed = {group["group"]: group for group in document(run("group", "list", "-b", broker, "--json"))}
        admin = AdminClient({"bootstrap.servers": broker})
        expected = {group.group_id: group for group in admin.list_consumer_groups().result(30).valid}
        assert {*expected} <= {*listed}
        assert listed[name] == {"group": name, "state": "Stable", "type": protocol, "protocol": "consumer"}
        assert expected[name].state == ConsumerGroupState.STABLE
        group = document(run("group", "describe", name, "-b", broker, "--json"))
        assert (group["state"], group["protocol"]) == ("Stable", "consumer")
        [first] = [offset for offset in group["offsets"] if offset["committed"] is not None]
        assert {**first, "member": None} == {
            "topic": topic, "partition": 0, "committed": 7, "end": 10, "lag": 3, "member": None,
        }  # fmt: skip
        if protocol == "classic":
            [member] = group["members"]
            assert (member["client"], member["partitions"]) == ("reader", [f"{topic}-{number}" for number in range(3)])
            assert [offset["member"] for offset in group["offsets"]] == [member["member"]] * 3
        result = run("group", "describe", name, "-b", broker)
        assert (result.code, f"{name}: Stable" in result.lines[-1], "lag 3" in result.lines[-1]) == (0, True, True)
        # Its consumers would commit over them.
        result = run("group", "reset", name, "--to", "earliest", "-b", broker, "--execute")
        assert (result.code, "stop them first" in result.err) == (1, True)
        assert committed(broker, name, topic, 1)[0] == 7


def test_reset_is_previewed_unless_executed(run: Run, broker: str, topic: str) -> None:
    commit(broker, "reset", topic, {0: 7, 1: 4})
    for options in ([], ["--dry-run"]):
        result = run("group", "reset", "reset", "--to", "earliest", "-b", broker, *options)
        assert (result.code, "nothing was committed: --execute commits" in result.err) == (0, True)
        assert committed(broker, "reset", topic, 2) == [7, 4]
    advised = run("group", "reset", "reset", "--to", "earliest", "-b", broker, "--execute")
    assert (advised.code, committed(broker, "reset", topic, 2)) == (0, [0, 0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--to", "earliest"], {0: 0, 1: 0}),
        (["--to", "latest"], {0: 10, 1: 4}),
        (["--to", "3"], {0: 3, 1: 3}),
        (["--to", "-2"], {0: 8, 1: 2}),
        (["--to", "-1h"], {0: 0, 1: 0}),
        (["--to", "now"], {0: 10, 1: 4}),
        (["--to", "2000-01-01"], {0: 0, 1: 0}),
        (["--to", "group:pattern"], {0: 5, 1: 1}),
        (["--shift-by", "-1"], {0: 6, 1: 2}),
        (["--shift-by", "2", "--topic", "grouped:1"], {1: 4}),
        (["--to", "0=2,1=1", "--topic", "grouped:0-1"], {0: 2, 1: 1}),
        (["--to", "latest", "--topic", "grouped"], {0: 10, 1: 4, 2: 0}),
    ],
)
def test_reset_points_match_reader_positions(
    run: Run, broker: str, topic: str, options: list[str], expected: dict[int, int]
) -> None:
    commit(broker, "points", topic, {0: 7, 1: 3})
    commit(broker, "pattern", topic, {0: 5, 1: 1})
    plan = document(run("group", "reset", "points", "-b", broker, "--json", *options))
    assert plan["committed"] is False
    assert {row["partition"]: row["new"] for row in plan["offsets"]} == expected


def test_offset_missing_from_partition_is_named(run: Run, broker: str, topic: str) -> None:
    commit(broker, "nearest", topic, {0: 7, 1: 3})
    result = run("group", "reset", "nearest", "-b", broker, "--to", "6", "--json")
    assert [row["new"] for row in document(result)["offsets"]] == [6, 4]
    assert "grouped-1 has no offset 6: 4 is the nearest" in result.err


def test_new_group_copies_offsets_of_another(run: Run, broker: str, topic: str) -> None:
    commit(broker, "original", topic, {0: 5, 1: 1})
    command = ["group", "reset", "copy", "-b", broker, "--to", "group:original", "--topic", f"{topic}:0-1", "--execute"]
    assert run(*command).code == 0
    assert committed(broker, "copy", topic, 2) == [5, 1]
    rows = [json.loads(line) for line in run("read", topic, "-b", broker, "--start", "group:copy", "--json").lines]
    assert len(rows) == 8


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["describe", "no-such-group"], 3, "there is no group 'no-such-group'"),
        (["reset", "no-such-group", "--to", "earliest"], 3, "there is no group 'no-such-group'"),
        (["reset", "new", "--to", "group:no-such-group", "--topic", "grouped"], 3, "no committed offset of grouped"),
        (["reset", "new", "--to", "latest", "--topic", "no-such-topic"], 3, "there is no topic 'no-such-topic'"),
        (["reset", "new", "--to", "latest", "--topic", "grouped:9"], 2, "has no partition 9"),
        (["reset", "new", "--to", "0=1,9=1", "--topic", "grouped"], 2, "--to names partition 9, and the reset has "),
        (["reset", "new", "--shift-by", "1", "--topic", "grouped"], 2, "no committed offset of grouped-0 to shift"),
        (["reset", "new"], 2, "give one of --to POINT and --shift-by N"),
        (["reset", "new", "--to", "1", "--shift-by", "1"], 2, "give one of --to POINT and --shift-by N"),
        (["reset", "new", "--to", "x", "--topic", "grouped"], 2, "--to must be 'earliest'"),
        (["reset", "new", "--to", "0=1"], 2, "points of partitions need one --topic"),
        (["reset", "new", "--to", "1", "--topic", ":1"], 2, "--topic needs the name of a topic"),
        (["reset", "new", "--to", "1", "--topic", "grouped:a"], 2, "--topic: 'a' is neither a number nor a range"),
        (["reset", "new", "--to", "1", "--execute", "--dry-run"], 2, "exclude each other"),
    ],
)
def test_group_that_cannot_be_described_or_reset_is_named(
    run: Run, broker: str, topic: str, options: list[str], code: int, message: str
) -> None:
    result = run("group", *options, "-b", broker)
    assert (result.code, message in result.err) == (code, True), result.err


def test_group_commands_need_brokers(run: Run) -> None:
    result = run("group", "list")
    assert (result.code, "no brokers are named: pass" in result.err) == (2, True)
    assert run("group", "list", "-b", "127.0.0.1:1", "--timeout", "0.3").code == 3
