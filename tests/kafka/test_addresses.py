"""How the command names brokers, topics and their headers: by an address, or as Kafka's own tools do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import letterhead as lh
from tests.helpers.command import Result
from tests.kafka.test_check_stores import changelog_of, stored
from tests.kafka.topics import Record
from tests.kafka.written import create_with, producer, send

pytestmark = pytest.mark.broker

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def topic(broker: str) -> str:
    create_with(broker, "addressed", 2)
    headers = [("ce_id", b"7"), ("ce_type", b"order.paid"), ("retry", b"\0\0\0\x05"), ("tenant", b"acme")]
    send(producer(broker), "addressed", [Record(b"k", b"v", headers)] * 3, 0)
    send(producer(broker), "addressed", [Record(b"k", b"v", [])], 1)
    return "addressed"


def test_broker_topics_are_listed(run: Run, broker: str, topic: str) -> None:
    everything = [json.loads(line) for line in run("read", f"kafka://{broker}", "--json").lines]
    by_name = {row["topic"]: row for row in everything}
    assert [*by_name] == sorted(by_name)
    expected = {"topic": topic, "partitions": 2, "replicas": 1, "offsets": 4, "internal": False}
    assert by_name[topic] == expected
    options = ["--where", f"topic = '{topic}' and internal = false", "--columns", "offsets,topic"]
    for arguments in (["-b", broker], [f"kafka://{broker}/"], ["kafka://", "-X", f"bootstrap.servers={broker}"]):
        rows = [json.loads(line) for line in run("read", *arguments, *options, "--json").lines]
        assert rows == [{"offsets": 4, "topic": topic}]
    assert lh.open(f"kafka://{broker}", where=f"topic = '{topic}'").read_all().to_pylist() == [expected]
    # Other tests add topics to this broker: without a condition, those that fill the screen are shown.
    result = run("read", f"kafka://{broker}", "--where", f"topic = '{topic}'")
    assert (result.code, result.lines[-1]) == (0, "1 topic")
    assert run("read", "-b", broker, "--count-by", "internal", "--json").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--start", "5"], "--start is for topics"),
        (["--follow"], "--follow is for topics"),
        (["--headers", "a"], "--headers needs a topic: kafka://host:port/topic"),
        (["--batches"], "--batches is for topics"),
        (["--columns", "a"], "there is no column 'a'"),
        (["--errors", "null"], "--errors is for a table with --headers"),
    ],
)
def test_record_options_are_rejected_for_topic_list(run: Run, broker: str, options: list[str], message: str) -> None:
    result = run("read", "-b", broker, *options)
    assert (result.code, message in result.err) == (2, True), result.err


def test_brokers_and_topic_name_form_address(run: Run, broker: str, topic: str) -> None:
    address = f"kafka://{broker}/{topic}"
    expected = run("read", address, "--json").out
    for brokers in (["-b", broker], ["--bootstrap-server", broker]):
        assert run("read", topic, *brokers, "--json").out == expected
        assert run("read", f"kafka:///{topic}", *brokers, "--json").out == expected
    scanned = run("scan", address, "--json").out
    assert run("scan", topic, "-b", broker, "--json").out == scanned
    inspected = run("inspect", address, "--offset", "1", "-p", "0").out
    assert run("inspect", topic, "-b", broker, "--offset", "1", "-p", "0").out == inspected
    decoded = run("decode", address, "-c", "headers", "-f", "kafka", "--json").out
    assert run("decode", topic, "-b", broker, "-c", "headers", "-f", "kafka", "--json").out == decoded
    for source in (address, "iggy://127.0.0.1:1/s/t"):
        result = run("read", source, "-b", broker)
        assert (result.code, "leave it out, or name the topic alone" in result.err) == (2, True)
    assert run("read", topic, "-b", broker, "-X", "bootstrap.servers=127.0.0.1:1", "--json").out == expected


def test_profile_reads_convention_headers(run: Run, broker: str, topic: str) -> None:
    options = ["-b", broker, topic, "-p", "0", "--profile", "cloudevents", "--headers", "retry:int32", "-n", "1"]
    result = run("read", *options, "--json")
    [row] = [json.loads(line) for line in result.lines]
    assert (row["ce_id"], row["ce_type"], row["ce_source"], row["retry"]) == ("7", "order.paid", None, 5)
    assert "headers" not in row
    # A convention has headers that a message may lack.
    assert (result.code, result.err) == (0, "")
    result = run("read", "-b", broker, topic, "--profile", "streams-dlq", "--json")
    assert "none of these records has a value of a header of the profile" in result.err
    result = run("read", "-b", broker, topic, "--profile", "cloudevent")
    assert (result.code, "unknown profile 'cloudevent': did you mean 'cloudevents'?" in result.err) == (2, True)
    counted = run("read", "-b", broker, topic, "--profile", "cloudevents", "--count-by", "ce_type", "--json")
    assert [json.loads(line) for line in counted.lines] == [
        {"ce_type": "order.paid", "count": 3},
        {"ce_type": None, "count": 1},
    ]


def test_state_commands_accept_addresses(run: Run, broker: str, tmp_path: Path) -> None:
    task = stored(broker, tmp_path, "addressed-kv", "key-value")
    changelog = "addressed-kv-store-changelog"
    lists = [
        json.loads(run("state", "ls", task, "--json", *source).out)
        for source in (["--changelog", f"kafka://{broker}"], ["-b", broker])
    ]
    assert lists[0] == lists[1]
    assert list(lists[0][0]["lag"].values()) == [0]
    for source in ([f"kafka://{broker}/{changelog}"], ["-b", broker, changelog]):
        assert run("state", "diff", task, *source).code == 0
        restored = tmp_path / f"restored-{len(source)}" / "0_0"
        assert run("state", "restore", *source, restored, "-s", "store", "--force", "--start", "earliest").code == 0
        assert run("state", "diff", task, restored).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["diff", "{task}", "kafka://{broker}"], "the address does not name a topic"),
        (["diff", "{task}", "kafka://{broker}/t/0"], "has no partition: pass --partition"),
        (["diff", "{task}", "kafka://{broker}/t", "-b", "{broker}"], "both name brokers: leave one of them out"),
        (["ls", "{task}", "--changelog", "kafka://{broker}/t"], "leave out the topic"),
        (["ls", "{task}", "--changelog", "x", "-b", "{broker}"], "--changelog and brokers exclude each other"),
        (["check", "{task}", "--to", "4.4", "--changelog", "kafka://{broker}/t"], "leave out the topic"),
        (["diff", "{task}", "kafka:///t"], "no brokers are named"),
    ],
)
def test_addresses_unusable_by_state_commands_are_rejected(
    run: Run, broker: str, samples: Path, arguments: list[str], message: str
) -> None:
    task = samples / "streams-state-0_0"
    result = run("state", *(part.format(task=task, broker=broker) for part in arguments))
    assert (result.code, message in result.err) == (2, True), result.err


def test_changelog_missing_from_broker_is_named(run: Run, broker: str, tmp_path: Path) -> None:
    changelog_of(broker, "unused", "key-value")
    result = run("state", "restore", f"kafka://{broker}/no-such-changelog", tmp_path / "0_0", "-s", "store")
    assert (result.code, "there is no topic 'no-such-changelog'" in result.err) == (3, True)
