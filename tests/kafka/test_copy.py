"""Copies of topics: exact, continued after a kill, verified, and restored."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead._row_request import RowRequest
from letterhead.copies import topic_target
from letterhead.kafka.topic_writer import TopicWriter
from letterhead.sources.base import Logins
from letterhead.sources.kafka import KafkaTopicSource, kafka_source
from tests.helpers.command import Result
from tests.helpers.killed_commands import run_with_kills
from tests.kafka.broker import Broker
from tests.kafka.topics import ODD, Record
from tests.kafka.written import TOPICS, create_with, numbered, producer, send, write_all

pytestmark = pytest.mark.broker

Run = Callable[..., Result]

KILLS = os.environ.get("LETTERHEAD_KILLS")


@pytest.fixture(scope="module")
def odd(broker: str) -> Iterator[str]:
    """Topics with every codec, deleted heads, times of brokers, gaps, and transactions, of which one is open."""
    producers = write_all(broker, "copied-", 100)
    yield f"kafka://{broker}/copied-"
    producers.clear()


@pytest.mark.parametrize("topic", TOPICS)
def test_topic_is_copied_exactly_to_files_and_back(topic: str, run: Run, odd: str, broker: str, tmp_path: Path) -> None:
    directory, restored = tmp_path / "copy", f"kafka://{broker}/restored-{topic}"
    assert run("copy", odd + topic, directory, "--verify").code == 0
    assert run("diff", odd + topic, directory).code == 0
    result = run("copy", directory, restored, "--create", "--verify")
    assert result.code == 0, result.out + result.err
    assert run("diff", odd + topic, restored, "--by", "position", "--columns", "key,value,headers,timestamp").code == 0
    assert "0 rows copied" in run("copy", directory, restored).err


@pytest.mark.parametrize("form", ["arrow", "jsonl.gz"])
def test_topic_is_copied_exactly_to_file_and_back(form: str, run: Run, odd: str, broker: str, tmp_path: Path) -> None:
    for topic in TOPICS:
        file, restored = tmp_path / f"{topic}.{form}", f"kafka://{broker}/restored-{topic}-{form}"
        assert run("copy", odd + topic, file, "--verify").code == 0
        result = run("copy", file, restored, "--create", "--verify")
        assert result.code == 0, result.out + result.err
        compared = "key,value,headers,timestamp"
        assert run("diff", odd + topic, restored, "--by", "position", "--columns", compared).code == 0


def test_only_committed_records_are_copied(run: Run, odd: str, broker: str) -> None:
    source, target = f"{odd}transactions", f"kafka://{broker}/copied-committed"
    assert run("copy", source, target, "--committed", "--create", "--verify").code == 0
    committed = lh.open(source, isolation_level="read_committed").read_all()
    assert 0 < committed.num_rows < lh.open(source).read_all().num_rows
    assert lh.open(target).read_all()["value"].equals(committed["value"])


def test_internal_topic_is_copied_unchanged(run: Run, broker: str, tmp_path: Path) -> None:
    create_with(broker, "copy-grouped", 1)
    send(producer(broker), "copy-grouped", numbered(3))
    assert run("read", f"kafka://{broker}/copy-grouped", "--commit-group", "copied", "--json").code == 0
    source = f"kafka://{broker}/__consumer_offsets"
    assert run("copy", source, tmp_path / "copy", "--verify").code == 0
    table = lh.open(tmp_path / "copy", where="value is not null").read_all()
    assert table.num_rows
    assert {"key", "value", "headers"} <= {*table.column_names}


def test_same_call_copies_new_records(broker: str, tmp_path: Path) -> None:
    create_with(broker, "copy-growing", 2)
    source, target, directory = f"kafka://{broker}/copy-growing", f"kafka://{broker}/copy-grown", tmp_path / "copy"
    for turn, partition in enumerate((0, 1, 0)):
        send(producer(broker), "copy-growing", numbered(20, 100 * turn), partition)
        new = len(numbered(20))
        assert lh.copy(source, target, create=True).rows == new
        assert lh.copy(source, directory).rows == new
    first, second = (lh.open(name).read_all().num_rows for name in (target, directory))
    assert first == second == 3 * len(numbered(20))


def test_arrow_table_is_copied_to_a_topic(odd: str, broker: str) -> None:
    source, target = f"{odd}codecs", f"kafka://{broker}/copied-arrow"
    table = lh.open(source).read_all()
    with pytest.raises(ValueError, match="an Arrow stream is read once: pass create= with a number, or a table"):
        lh.copy(lh.open(source), target, create=True)
    partitions = len({*table["partition"].to_pylist()})
    assert lh.copy(lh.open(source), target, create=partitions).rows == table.num_rows
    assert lh.copy(table, target).rows == 0
    assert (
        lh.diff(table, target, by="position", columns=["key", "value", "headers", "timestamp"]).read_all().num_rows == 0
    )
    assert lh.copy(table, f"{target}-again", create=True).rows == table.num_rows


def test_options_of_a_connection_are_for_the_target_of_a_file(
    run: Run, broker: str, samples: Path, tmp_path: Path
) -> None:
    file = tmp_path / "orders.parquet"
    lh.copy(samples / "orders-0", file)
    for number, source in enumerate((file, samples / "orders-0")):
        target = f"kafka://{broker}/copied-connection-{number}"
        create_with(broker, target.rpartition("/")[2], 1)
        options = {"settings": {"client.id": "copier"}, "timeout_ms": 60_000}
        assert lh.copy(source, target, **options).rows == 10_000
        result = run("copy", source, target, "-X", "client.id=copier", "--timeout", "60")
        assert (result.code, "0 r" in result.err) == (0, True), result.err
        refused = run("copy", source, target, "-X", "security.protocol=SSL", "--timeout", "2")
        assert (refused.code, "it ended the TLS handshake" in refused.err) == (3, True), refused.err
    for source in (file, samples / "orders-0"):
        with pytest.raises(ValueError, match="settings= is for topics of Kafka, not for"):
            lh.copy(source, "iggy://u:p@127.0.0.1:1/s/t", settings={"client.id": "copier"})
        with pytest.raises(ValueError, match="timeout_ms= is for topics, not for"):
            lh.copy(source, "copied", timeout_ms=10)


def test_verification_covers_partitions_without_new_records(run: Run, broker: str) -> None:
    create_with(broker, "copy-uneven", 2)
    source, target = f"kafka://{broker}/copy-uneven", f"kafka://{broker}/copy-uneven-again"
    for partition in (0, 1):
        send(producer(broker), "copy-uneven", numbered(3), partition)
    assert run("copy", source, target, "--create", "--verify").code == 0
    send(producer(broker), "copy-uneven", numbered(3, 50), 1)
    result = run("copy", source, target, "--verify", "--json")
    ends = {"0": len(numbered(3)), "1": 2 * len(numbered(3))}
    assert json.loads(result.out.partition("no record")[0]) == {"rows": len(numbered(3)), "ends": ends}
    assert result.code == 0, result.out


def test_topic_that_is_not_a_copy_needs_append_option(run: Run, broker: str) -> None:
    create_with(broker, "copy-one", 1)
    create_with(broker, "copy-two", 1)
    send(producer(broker), "copy-one", numbered(5))
    send(producer(broker), "copy-two", numbered(3, 50))
    source, target = f"kafka://{broker}/copy-one", f"kafka://{broker}/copy-two"
    before = lh.open(target).read_all().num_rows
    refused = run("copy", source, target)
    assert refused.code == 2
    assert "is not the record that the source has at this position" in refused.err
    assert "--append" in refused.err
    assert lh.open(target).read_all().num_rows == before
    longer = run("copy", target, source)
    assert longer.code == 2
    assert run("copy", source, target, "--append").code == 0
    appended = lh.open(target).read_all()["value"].to_pylist()[before:]
    assert appended == [record.value for record in numbered(5)]


def test_record_rejected_by_broker_ends_copy_without_gap(run: Run, broker: str) -> None:
    create_with(broker, "copy-large", 1)
    records = [*numbered(5), Record(b"large", random.Random(1).randbytes(200_000), []), *ODD]
    send(producer(broker), "copy-large", records)
    create_with(broker, "copy-small", 1, max_message_bytes="100000")
    source, target = f"kafka://{broker}/copy-large", f"kafka://{broker}/copy-small"
    refused = run("copy", source, target)
    assert refused.code != 0
    large = len(numbered(5))
    assert (
        f"the record at offset {large} of partition 0 was not written: the broker takes no record of this size"
        in refused.err
    )
    sent = [record.value for record in records]
    present = lh.open(target).read_all()["value"].to_pylist()
    assert present == sent[: len(present)]
    assert len(present) <= len(numbered(5))
    set_topic(broker, "copy-small", max_message_bytes="1000000")
    assert run("copy", source, target, "--verify").code == 0


def test_records_of_another_writer_are_detected(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("copy-alone", "copy-shared"):
        create_with(broker, name, 1)
    send(producer(broker), "copy-alone", numbered(20))
    monkeypatch.setattr(topic_target.TopicTarget, "chunk_rows", 1)
    flush = TopicWriter.flush

    def disturbed(writer: TopicWriter) -> Any:
        result = flush(writer)
        send(producer(broker), "copy-shared", [Record(b"other", b"", [])])
        return result

    target = topic_target.TopicTarget(f"kafka://{broker}/copy-shared", {}, Logins(), None)
    monkeypatch.setattr(TopicWriter, "flush", disturbed)
    table = lh.open(f"kafka://{broker}/copy-alone").read_all().combine_chunks()
    batches = [table.slice(start, 5).to_batches()[0] for start in (0, 5)]
    with pytest.raises(ValueError, match=r"records of another writer came .* before offset 6 of partition 0"):
        target.write(batches, {})


def test_topic_with_fewer_partitions_is_rejected(run: Run, broker: str) -> None:
    create_with(broker, "copy-wide", 3)
    create_with(broker, "copy-narrow", 2)
    send(producer(broker), "copy-wide", numbered(5), 2)
    result = run("copy", f"kafka://{broker}/copy-wide", f"kafka://{broker}/copy-narrow")
    assert (result.code, "create a topic with 3 partitions or more" in result.err) == (2, True)
    missing = run("copy", f"kafka://{broker}/copy-wide", f"kafka://{broker}/copy-missing")
    assert "--create" in missing.err
    assert (
        run(
            "copy", f"kafka://{broker}/copy-wide", f"kafka://{broker}/copy-missing", "--create", "--partitions", "4"
        ).code
        == 0
    )
    rows = [json.loads(line) for line in run("read", f"kafka://{broker}", "--json").lines]
    assert [row["partitions"] for row in rows if row["topic"] == "copy-missing"] == [4]


def test_created_topic_has_source_settings(run: Run, broker: str, tmp_path: Path) -> None:
    own = {"retention.ms": "-1", "max.message.bytes": "5000000", "compression.type": "zstd"}
    timed = {"message_timestamp_type": "LogAppendTime"}
    create_with(broker, "copy-set", 3, **{name.replace(".", "_"): value for name, value in own.items()}, **timed)
    send(producer(broker), "copy-set", numbered(3), 1)
    source = f"kafka://{broker}/copy-set"
    assert run("copy", source, tmp_path / "copy").code == 0
    assert run("copy", source, f"kafka://{broker}/copy-set-again", "--create", "--verify").code == 0
    restored = run("copy", tmp_path / "copy", f"kafka://{broker}/copy-set-restored", "--create", "--verify")
    assert restored.code == 0, restored.err
    target = kafka_source(source, Logins())
    assert isinstance(target, KafkaTopicSource)
    with target.admin(RowRequest()) as admin:
        for topic in ("copy-set-again", "copy-set-restored"):
            assert admin.own_settings(topic) == own
            assert len(admin.partitions([topic])) == 3
    # Names of metrics do not tell these topics apart, so brokers refuse the second.
    create_with(broker, "copy.set", 1)
    refused = run("copy", source, f"kafka://{broker}/copy_set", "--create")
    assert refused.code == 2
    assert "cannot be created" in refused.err


def test_topic_of_another_cluster_does_not_continue_a_copy(broker: str, tmp_path: Path) -> None:
    create_with(broker, "copy-twice", 1)
    send(producer(broker), "copy-twice", numbered(3))
    lh.copy(f"kafka://{broker}/copy-twice", tmp_path / "copy")
    own = Broker(tmp_path / "broker")
    own.start(format=["--cluster-id", "b3RoZXIgY2x1c3RlciAxMg"])
    try:
        create_with(own.address, "copy-twice", 1)
        with pytest.raises(
            ValueError, match=r"is a copy with cluster .*, not .*: pass the same options to continue it"
        ):
            lh.copy(f"kafka://{own.address}/copy-twice", tmp_path / "copy")
    finally:
        own.stop()


def test_table_is_copied_by_its_partitions_or_by_keys(broker: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key":"a","value":"1","headers":{"tenant":"acme"}}\n{"key":"b","value":"2"}\n')
    create_with(broker, "copy-keyed", 3)
    target = f"kafka://{broker}/copy-keyed"
    assert lh.copy(path, target).rows == 2
    table = lh.open(target).read_all().sort_by("key")
    assert table["value"].to_pylist() == [b"1", b"2"]
    assert table["headers"].to_pylist() == [[{"key": "tenant", "value": b"acme"}], []]
    with pytest.raises(ValueError, match="the source has no column partition by which a copy continues"):
        lh.copy(path, target)
    path.write_text('{"partition":2,"timestamp":null,"key":"a"}\n')
    with pytest.raises(ValueError, match="a record has no timestamp"):
        lh.copy(path, target, append=True)


@pytest.mark.parametrize("form", ["arrow", "jsonl"])
def test_table_that_is_a_stream_is_copied_and_verified(form: str, run: Run, broker: str, tmp_path: Path) -> None:
    create_with(broker, f"copy-of-{form}", 3)
    send(producer(broker), f"copy-of-{form}", numbered(5), 2)
    source, target = f"kafka://{broker}/copy-of-{form}", f"kafka://{broker}/copy-from-{form}"
    assert run("read", source, "--out", tmp_path / f"copy.{form}").code == 0
    result = run("copy", tmp_path / f"copy.{form}", target, "--create", "--edit", "set by=copy", "--verify")
    assert result.code == 0, result.out + result.err
    assert result.lines == [f"no record differs; {len(numbered(5))} equal"]
    rows = lh.open(target, headers={"by": "string"}).read_all()
    assert rows["by"].to_pylist() == ["copy"] * len(numbered(5))
    assert set(rows["partition"].to_pylist()) == {2}


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.full)])
@pytest.mark.parametrize("form", ["files", "topic"])
def test_repeatedly_killed_copy_has_every_record_once(form: str, kills: int, broker: str, tmp_path: Path) -> None:
    topic = f"killed-{form}-{kills}"
    source = f"kafka://{broker}/{topic}"
    create_with(broker, topic, 2)
    values = pa.array([b"%d" % number for number in range(200_000 * kills)])
    table = pa.table(
        {"value": values, "partition": pa.array([number % 2 for number in range(len(values))], pa.int32())}
    )
    lh.write.topic(table, topic, bootstrap_servers=broker, partition="partition")
    target = str(tmp_path / "copy") if form == "files" else f"kafka://{broker}/{topic}-copy"
    command = [sys.executable, "-m", "letterhead", "copy", source, target, *(["--create"] if form == "topic" else [])]
    run_with_kills(command, kills, (0.5, 1.5), form)
    assert lh.open(target).read_all()["value"].combine_chunks().sort().equals(values.sort())


@pytest.mark.parametrize("form", ["files", "topic"])
def test_copy_that_follows_ends_with_ctrl_c_and_continues(form: str, broker: str, run: Run, tmp_path: Path) -> None:
    source = f"copy-followed-{form}"
    create_with(broker, source, 2)
    send(producer(broker), source, numbered(3))
    target = str(tmp_path / "copy") if form == "files" else f"kafka://{broker}/{source}-copy"
    command = [sys.executable, "-m", "letterhead", "copy", f"kafka://{broker}/{source}", target, "--follow"]

    def copied() -> int:
        try:
            return lh.open(target).read_all().num_rows
        except (ValueError, OSError):  # not there yet
            return 0

    def wait_for(rows: int) -> None:
        until = time.monotonic() + 120
        while copied() < rows:
            assert time.monotonic() < until
            time.sleep(0.2)

    for turn in (1, 2):
        create = ["--create"] if form == "topic" and turn == 1 else []
        process = subprocess.Popen([*command, *create], stderr=subprocess.PIPE, text=True)
        try:
            wait_for(turn * len(numbered(3)))
            if form == "topic":  # new records are copied at once
                send(producer(broker), source, numbered(3), 1)
                wait_for((turn + 1) * len(numbered(3)))
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0, errors
        assert "until Ctrl-C" in errors
        if form == "files":
            send(producer(broker), source, numbered(3), 1)
    assert run("copy", f"kafka://{broker}/{source}", target, "--verify").code == 0
    refused = run("copy", f"kafka://{broker}/{source}", target, "--follow", "--verify")
    assert (refused.code, "--follow and --verify exclude each other" in refused.err) == (2, True)
    ended = run("copy", f"kafka://{broker}/{source}", target, "--follow", "--end", "5")
    assert (ended.code, "leave out" in ended.err) == (2, True)


def set_topic(broker: str, topic: str, **settings: str) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": broker})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(60)


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.full)])
@pytest.mark.parametrize("form", ["files", "topic"])
def test_copy_with_killed_broker_has_every_record_once(form: str, kills: int, tmp_path: Path) -> None:
    total = int(KILLS or kills)
    own = Broker(tmp_path / "broker")
    own.start()
    try:
        source = f"kafka://{own.address}/source"
        create_with(own.address, "source", 2)
        numbers = list(range(100_000 * total))
        values = pa.array([b"%d" % number for number in numbers])
        table = pa.table({"value": values, "partition": pa.array([number % 2 for number in numbers], pa.int32())})
        lh.write.topic(table, "source", bootstrap_servers=own.address, partition="partition")
        target = str(tmp_path / "copy") if form == "files" else f"kafka://{own.address}/target"
        create_with(own.address, "target", 2)
        command = [sys.executable, "-m", "letterhead", "copy", source, target, "--timeout", "60"]
        chance = random.Random(form)
        kills = 0
        while True:
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            if kills < total:
                time.sleep(chance.uniform(0.5, 2.0))
                own.kill()
                own.start_again()
                kills += 1
            _, errors = process.communicate(timeout=300)
            if process.returncode == 0 and kills == total:
                break
            assert process.returncode in (0, 1, 3), errors
        assert lh.open(target).read_all()["value"].combine_chunks().sort().equals(values.sort())
    finally:
        own.stop()


def test_options_of_a_connection_are_for_one_of_two_sources(run: Run, odd: str, tmp_path: Path) -> None:
    backup, topic = tmp_path / "backup", f"{odd}transactions"
    lh.copy(topic, backup, isolation_level="read_committed")
    options = {"settings": {"client.id": "differ"}, "timeout_ms": 60_000, "fetch_bytes": 10_000}
    for sources in ((backup, topic), (topic, backup)):
        committed = lh.diff(*sources, **options, isolation_level="read_committed")
        assert committed.read_all().num_rows == 0
        assert lh.diff(*sources, **options).read_all().num_rows > 0
        flags = ["-X", "client.id=differ", "--timeout", "60", "--committed"]
        result = run("diff", *sources, *flags)
        assert result.code == 0, result.err
    result = run("read", backup, topic, *flags, "--count-by", "partition")
    assert result.code == 0, result.err
    with pytest.raises(ValueError, match="settings= is for topics of Kafka, not for"):
        lh.diff(backup, backup, settings={"client.id": "differ"})
