"""Kafka's internal topics as columns, of a broker and of the files that it has written, compared with what clients did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

import letterhead as lh
from letterhead.kafka.internal_topics import internal_topic
from letterhead.kafka.record_sets import COLUMNS as RECORD_COLUMNS
from tests.helpers.command import Result, rows_of
from tests.helpers.log_bytes import batch, record, write_segments
from tests.kafka.broker import Broker
from tests.kafka.test_group_command import commit, reading
from tests.kafka.topics import Record
from tests.kafka.written import create_with, producer, send

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def topic(broker: str) -> str:
    create_with(broker, "watched", 2)
    send(producer(broker), "watched", [Record(b"k", b"v", [])] * 9, 0)
    return "watched"


@pytest.mark.broker
def test_committed_offsets_are_columns(run: Run, broker: str, running_broker: Broker, topic: str) -> None:
    commit(broker, "watcher", topic, {0: 5, 1: 0})
    commit(broker, "watcher", topic, {0: 8})
    read = ["read", f"kafka://{broker}/__consumer_offsets", "--where", "group = 'watcher'"]
    columns = ["record", "committed_topic", "committed_partition", "committed_offset", "deleted"]
    found = rows_of(run(*read, "--columns", ",".join(columns), "--json"))
    expected = [("offset-commit", topic, partition, offset, False) for partition, offset in ((0, 5), (1, 0), (0, 8))]
    assert [tuple(row.values()) for row in found] == expected
    [last] = rows_of(run(*read, "--last", "1", "--json"))
    assert (last["topic"], last["group"], last["committed_offset"], last["undecoded"]) == (
        "__consumer_offsets", "watcher", 8, None,
    )  # fmt: skip
    assert rows_of(run(*read, "--count-by", "committed_partition", "--json")) == [
        {"committed_partition": 0, "count": 2}, {"committed_partition": 1, "count": 1},
    ]  # fmt: skip
    [partition] = {row["partition"] for row in rows_of(run(*read, "--columns", "partition", "--json"))}
    files = running_broker.directory / "data" / f"__consumer_offsets-{partition}"
    assert rows_of(run("read", files, *read[2:], "--json")) == rows_of(run(*read, "--json"))
    with lh.open(f"kafka://{broker}/__consumer_offsets", where="group = 'watcher' and committed_offset > 5") as reader:
        assert reader.read_all()["committed_offset"].to_pylist() == [8]
    # What is stored can still be read.
    raw = rows_of(run(*read, "--columns", "key", "--json"))
    assert [row["key"] for row in raw] != [None] * 3
    with lh.read.topic("__consumer_offsets", broker, columns=["key", "value"], last=1) as reader:
        assert reader.read_all().schema.types == [pa.binary(), pa.binary()]
    with lh.read.topic("__consumer_offsets", broker, where="group = 'watcher' and committed_offset > 5") as reader:
        assert reader.read_all()["committed_offset"].to_pylist() == [8]


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_groups_are_columns(run: Run, broker: str, topic: str, protocol: str) -> None:
    with reading(broker, f"members-{protocol}", topic, protocol):
        command = ["read", f"kafka://{broker}/__consumer_offsets", "--where", f"group = 'members-{protocol}'", "--json"]
        found = [row for row in rows_of(run(*command)) if row["members"]]
    [member] = found[-1]["members"]
    assert (member["client"], member["topics"]) == ("reader", [topic])
    record = "group-metadata" if protocol == "classic" else "consumer-group-member-metadata"
    assert found[-1]["record"] == record
    if protocol == "classic":
        assert member["partitions"] == [f"{topic}-0", f"{topic}-1"]
        assert (found[-1]["generation"], found[-1]["leader"]) == (1, member["member"])


@pytest.mark.broker
def test_transactions_are_columns(run: Run, broker: str, topic: str) -> None:
    sender = Producer({"bootstrap.servers": broker, "transactional.id": "watched-transaction"})
    sender.init_transactions(30)
    for ends in (sender.commit_transaction, sender.abort_transaction):
        sender.begin_transaction()
        sender.produce(topic, b"v", partition=1)
        sender.flush()
        ends(30)
    where = ["--where", "transactional_id = 'watched-transaction'"]
    found = rows_of(run("read", f"kafka://{broker}/__transaction_state", *where, "--json"))
    states = [row["state"] for row in found]
    assert states[0] == "Empty"
    assert {"Ongoing", "PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort"} <= {*states}
    assert {tuple(row["partitions"]) for row in found if row["state"] == "Ongoing"} == {(f"{topic}-1",)}
    assert all(row["timeout_ms"] > 0 and row["undecoded"] is None for row in found)
    result = run("read", f"kafka://{broker}/__transaction_state", *where)
    assert (result.code, "watched-transaction" in result.out) == (0, True)


@pytest.mark.broker
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--where", "grup = 'a'"], "--where names a header, which internal topics lack: names of fields are topic,"),
        (["--commit-group", "g"], "--commit-group is not for internal topics"),
        (["--columns", "grup"], "grup"),
    ],
)
def test_invalid_options_for_internal_topic_are_named(
    run: Run, broker: str, topic: str, options: list[str], message: str
) -> None:
    commit(broker, "watcher", topic, {0: 5})
    result = run("read", f"kafka://{broker}/__consumer_offsets", *options)
    assert (result.code, message in result.err) == (2, True), result.err


def test_segments_are_decoded_by_every_function(tmp_path: Path) -> None:
    key = b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\3"
    value = b"\0\3" + (7).to_bytes(8, "big") + b"\xff" * 4 + b"\0\1m" + (5).to_bytes(8, "big")
    committed = batch(record(key=key, value=value), base_offset=0)
    directory = write_segments(
        tmp_path / "__consumer_offsets-0", [committed + batch(record(), base_offset=1)[:20]], [0]
    )
    where = "\"group\" = 'g' and committed_offset > 5"
    for read in (lh.open, lh.read.segments):
        with pytest.warns(lh.errors.TruncatedTailWarning):
            assert read(directory, columns=["value"]).read_all()["value"].to_pylist() == [value]
        with pytest.warns(lh.errors.TruncatedTailWarning), read(directory, where=where) as reader:
            [row] = reader.read_all().to_pylist()
        assert (row["group"], row["committed_topic"], row["committed_partition"]) == ("g", "t", 3)
        assert len(reader.truncated) == 1
    # Records of other topics are not taken for those of the first one.
    write_segments(tmp_path / "orders-0", [batch(record(key=b"k", value=b"v"), base_offset=0)], [0])
    for read in (lh.open, lh.read.segments):
        with pytest.warns(lh.errors.TruncatedTailWarning), read(tmp_path) as reader:
            assert reader.read_all()["value"].to_pylist() == [value, b"v"]


def test_unreadable_records_keep_their_bytes() -> None:
    offsets, transactions = internal_topic("__consumer_offsets"), internal_topic("__transaction_state")
    assert offsets is not None
    assert transactions is not None
    assert internal_topic("orders") is None
    key = b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\3"
    value = b"\0\3" + (7).to_bytes(8, "big") + b"\xff" * 4 + b"\0\1m" + (5).to_bytes(8, "big")
    [row] = offsets.columns_of(pa.array([key]), pa.array([value])).to_pylist()
    assert (row["group"], row["committed_offset"], row["leader_epoch"], row["metadata"]) == ("g", 7, None, "m")
    bad = [
        (key, value[:-1]),
        (key, b"\0\x09" + value[2:]),
        (key[:5], value),
        (b"\x7f\xff" + key[2:], value),
        (None, value),
        (key, b"\0\4" + b"\xff" * 20),
    ]
    for parts in bad:
        [row] = offsets.columns_of(*(pa.array([part], pa.binary()) for part in parts)).to_pylist()
        assert (row["committed_offset"], row["undecoded"], row["deleted"]) == (None, parts[1], False)
    [row] = offsets.columns_of(pa.array([key]), pa.array([None], pa.binary())).to_pylist()
    assert (row["committed_partition"], row["undecoded"], row["deleted"]) == (3, None, True)
    [row] = transactions.columns_of(pa.array([b"\0\0\0\1t"]), pa.array([b"\0\1\0"])).to_pylist()
    assert (row["transactional_id"], row["undecoded"]) == ("t", b"\0\1\0")


def test_values_of_internal_topic_are_compared_with_a_copy(tmp_path: Path) -> None:
    key, value = b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\3", b"\0\3" + bytes(22)
    committed = batch(record(key=key, value=value), base_offset=0)
    changed = batch(record(key=key, value=value[:-1] + b"\1"), base_offset=0)
    topic = write_segments(tmp_path / "__consumer_offsets-0", [committed], [0])
    for number, (stored, differing) in enumerate(((committed, []), (changed, [["value"]]))):
        copied = write_segments(tmp_path / str(number) / "__consumer_offsets-0", [stored], [0])
        table = lh.read.segments(copied, columns=RECORD_COLUMNS).read_all()
        assert lh.diff(topic, table).read_all()["differs"].to_pylist() == differing
