"""`letterhead read` of a topic of a broker."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

import letterhead as lh
from tests.helpers.command import Result, rows_of
from tests.kafka.broker import Broker
from tests.kafka.test_group_offsets import committed
from tests.kafka.topics import Record
from tests.kafka.written import CODECS, create_with, numbered, producer, send
from tests.ports import free_ports

pytestmark = pytest.mark.broker

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def orders(broker: str) -> str:
    """A topic with three partitions, of 40 records, 5 records and none."""
    create_with(broker, "shell-orders", 3)
    sender = producer(broker)
    for partition, count in enumerate((40, 5)):
        records = [
            Record(b"key %d" % number, b"value %d" % number, headers(partition, number)) for number in range(count)
        ]
        send(sender, "shell-orders", records, partition)
    return f"kafka://{broker}/shell-orders"


def headers(partition: int, number: int) -> list[tuple[str, bytes | None]]:
    tenant = ("acme", "globex")[number % 2]
    return [("tenant", tenant.encode()), ("retry", number.to_bytes(4, "big")), ("partition", b"%d" % partition)]


def places(result: Result) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in rows_of(result)]


def test_topic_is_read_from_all_partitions(run: Run, orders: str) -> None:
    rows = rows_of(run("read", orders, "--json"))
    assert [(row["partition"], row["offset"]) for row in rows] == [(0, at) for at in range(40)] + [
        (1, at) for at in range(5)
    ]
    assert rows[41]["topic"] == "shell-orders"
    assert rows[41]["key"] == "key 1"
    assert rows[41]["headers"][0] == {"key": "tenant", "value": "globex"}


def test_open_reads_a_topic(orders: str, broker: str, tmp_path: Path) -> None:
    with lh.read.topic("shell-orders", bootstrap_servers=broker) as reader:
        expected = reader.read_all()
    assert lh.open(orders).read_all() == expected
    assert lh.open(f"{orders}/1", columns=["offset"], last=2).read_all()["offset"].to_pylist() == [3, 4]
    assert len(lh.open(orders, partitions=[1], where="tenant = 'acme'").read_all()) == 3
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker}\n")
    for settings in (file, {"bootstrap.servers": broker}):
        assert lh.open("kafka:///shell-orders", settings=settings).read_all() == expected
    with pytest.raises(ValueError, match="no brokers are named"):
        lh.open("kafka:///shell-orders")


def test_one_partition_is_selected_by_address_or_option(run: Run, orders: str) -> None:
    expected = [(1, at) for at in range(5)]
    assert places(run("read", f"{orders}/1", "--json")) == expected
    assert places(run("read", orders, "-p", "1,2", "--json")) == expected
    assert places(run("read", orders, "-p", "1-2", "--json")) == expected
    result = run("read", orders, "-p", "7", "--json")
    assert (result.code, "has no partition 7" in result.err) == (2, True)
    result = run("read", f"{orders}/1", "-p", "0", "--json")
    assert (result.code, "the address names partition 1" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--start", "38"], [(0, 38), (0, 39)]),
        (["--end", "2"], [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (["--start", "-2", "--end", "-1"], [(0, 38), (1, 3)]),
        (["--start", "0=39,1=4,2=0"], [(0, 39), (1, 4)]),
        (["--start", "2000-01-01", "--end", "2000-01-02"], []),
        (["--last", "2"], [(0, 38), (0, 39), (1, 3), (1, 4)]),
        (["--last", "1", "--where", "tenant = 'globex'"], [(0, 39), (1, 3)]),
        (["--last", "1", "--where", "retry::int32 = 3"], [(0, 3), (1, 3)]),
        (["--where", "tenant = 'acme' and retry::int32 >= 36"], [(0, 36), (0, 38)]),
        (["--where", "offset = 4"], [(0, 4), (1, 4)]),
        (["--limit", "2"], [(0, 0), (0, 1)]),
    ],
)
def test_options_select_records(run: Run, orders: str, options: list[str], expected: list[tuple[int, int]]) -> None:
    assert places(run("read", orders, "--json", *options)) == expected


def test_limit_commits_only_printed_records(run: Run, broker: str, tmp_path: Path) -> None:
    create_with(broker, "shell-pages", 2)
    sender = producer(broker)
    for partition in (0, 1):
        send(sender, "shell-pages", [Record(b"k", b"v", []) for _ in range(6)], partition)
    group = ("--start", "group:shell-pages", "--commit-group", "shell-pages")
    url, everything = f"kafka://{broker}/shell-pages", [(p, at) for p in (0, 1) for at in range(6)]
    pages = [places(run("read", url, *group, "--json", "-n", "5")) for _ in range(4)]
    assert pages == [everything[:5], everything[5:10], everything[10:], []]


def test_table_limit_commits_only_table_rows(run: Run, broker: str) -> None:
    create_with(broker, "shell-screen", 1)
    send(producer(broker), "shell-screen", [Record(b"k", b"v", []) for _ in range(30)])
    url = f"kafka://{broker}/shell-screen"
    group = ("--start", "group:shell-screen", "--commit-group", "shell-screen", "--columns", "offset")
    assert run("read", url, *group).lines[-1] == "20 records, and there are more"
    assert places(run("read", url, *group[:4], "--json")) == [(0, at) for at in range(20, 30)]


def test_skipped_records_count_as_printed(run: Run, broker: str) -> None:
    create_with(broker, "shell-skips", 1)
    values = [b"\0\0\0\1" if number % 2 else b"bad" for number in range(8)]
    send(producer(broker), "shell-skips", [Record(b"k", b"v", [("retry", value)]) for value in values])
    url = f"kafka://{broker}/shell-skips"
    group = ("--start", "group:shell-skips", "--commit-group", "shell-skips", "--headers", "retry:int32")
    for expected in ([1, 3], [5, 7]):
        result = run("read", url, *group, "--errors", "skip", "--json", "-n", "2")
        assert ([json.loads(line)["offset"] for line in result.lines], result.code) == (expected, 1)
        assert "2 records left out" in result.err


def test_deleted_offsets_are_named(run: Run, broker: str) -> None:
    create_with(broker, "shell-deleted", 1)
    send(producer(broker), "shell-deleted", [Record(b"k", b"v", []) for _ in range(10)])
    admin, place = AdminClient({"bootstrap.servers": broker, "log_level": 3}), TopicPartition("shell-deleted", 0, 6)
    [deleted] = admin.delete_records([place]).values()
    deleted.result(60)
    url = f"kafka://{broker}/shell-deleted"
    result = run("read", url, "--start", "2", "--json")
    assert [json.loads(line)["offset"] for line in result.lines] == [6, 7, 8, 9]
    assert (result.code, "partition 0 begins at offset 6: offset 2 was deleted" in result.err) == (0, True)
    result = run("inspect", url, "--offset", "2")
    assert (result.code, "offset 2 is not in" in result.err, "--end" in result.err) == (1, True, False)


def test_group_reads_records_since_its_last_run(run: Run, broker: str, tmp_path: Path) -> None:
    create_with(broker, "shell-group", 2)
    sender, url = producer(broker), f"kafka://{broker}/shell-group"
    group = ("--start", "group:shell-etl", "--commit-group", "shell-etl")
    for first, count in ((0, 3), (3, 2)):
        send(sender, "shell-group", [Record(b"k", b"v", []) for _ in range(count)], 1)
        assert places(run("read", url, *group, "--json")) == [(1, first + at) for at in range(count)]
        assert places(run("read", url, *group, "--json")) == []
    assert places(run("read", url, "--start", "group:shell-etl", "--json")) == []
    for options in (["-o", tmp_path / "o.parquet"], ["--count-by", "key"]):
        result = run("read", url, *group, *options)
        assert (result.code, "--commit-group needs rows on standard output" in result.err) == (2, True)
    result = run("read", url, *group, "--batches")
    assert (result.code, "exclude --batches" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--start", "41"], "--start is after the end of every partition: the last one ends at offset 40"),
        (["-p", "0-100000"], "--partition: 0-100000 has more than 100,000 partitions"),
    ],
)
def test_range_outside_every_partition_raises(run: Run, orders: str, options: list[str], message: str) -> None:
    result = run("read", orders, *options, "--json")
    assert (result.code, result.out, message in result.err) == (2, "", True), result.err


@pytest.mark.parametrize(
    "options", [["--start", "2100-01-01"], ["--start", "0", "--end", "0"], ["--end", "2000-01-01"]]
)
def test_empty_range_is_noted(run: Run, orders: str, options: list[str]) -> None:
    result = run("read", orders, *options, "--json")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("no records from --start ")
    assert run("read", orders, *options, "--json", "-q").err == ""


def test_last_finds_records_before_transaction_markers(run: Run, broker: str, written: str) -> None:
    rows = rows_of(run("read", f"kafka://{broker}/{written}transactions", "--last", "5", "--committed", "--json"))
    assert len(rows) == 5


def test_typed_headers_are_columns(run: Run, orders: str) -> None:
    result = run(
        "read", f"{orders}/0", "--last", "1", "--columns", "offset", "--headers", "tenant,retry:int32", "--json"
    )
    assert rows_of(result) == [{"offset": 39, "tenant": "globex", "retry": 39}]
    result = run("read", f"{orders}/0", "--last", "1", "--headers", "tenant:strng")
    assert (result.code, "unknown type 'strng'" in result.err) == (2, True)


def test_table_shows_partition_of_each_record(run: Run, orders: str) -> None:
    result = run("read", orders, "--last", "1")
    assert result.lines[0].split() == ["partition", "offset", "timestamp", "key", "headers", "value"]
    assert result.lines[-1] == "2 records"
    assert run("read", orders).lines[-1] == "20 records, and there are more"
    assert run("read", f"{orders}/1").lines[0].split()[0] == "offset"


def test_file_has_columns_of_reader(run: Run, orders: str, broker: str, tmp_path: Path) -> None:
    out = tmp_path / "orders.parquet"
    result = run("read", orders, "-o", out)
    assert (result.code, "45 records written to" in result.err) == (0, True)
    with lh.read.topic("shell-orders", bootstrap_servers=broker) as reader:
        assert pq.read_table(out) == reader.read_all()


def test_rows_are_counted_by_headers_and_columns(run: Run, orders: str) -> None:
    rows = rows_of(run("read", orders, "--count-by", "tenant,partition", "--json"))
    assert rows == [
        {"tenant": "acme", "partition": 0, "count": 20},
        {"tenant": "globex", "partition": 0, "count": 20},
        {"tenant": "acme", "partition": 1, "count": 3},
        {"tenant": "globex", "partition": 1, "count": 2},
    ]
    rows = rows_of(run("read", orders, "--count-by", "retry", "--headers", "retry:int32", "-n", "1", "--json"))
    assert rows == [{"retry": 0, "count": 2}]


@pytest.mark.parametrize("codec", CODECS)
def test_all_codecs_are_read(run: Run, broker: str, written: str, codec: str) -> None:
    partition = CODECS.index(codec)
    assert len(run("read", f"kafka://{broker}/{written}codecs/{partition}", "--json").lines) == len(numbered(100))


def test_batches_have_codecs_producers_and_checksums(run: Run, broker: str, written: str) -> None:
    rows = rows_of(run("read", f"kafka://{broker}/{written}codecs", "--batches", "--json"))
    for partition, codec in enumerate(CODECS):
        batches = [row for row in rows if row["partition"] == partition]
        assert {row["codec"] for row in batches} == {codec}
        assert sum(row["records"] for row in batches) == len(numbered(100))
        assert [row["base_offset"] for row in batches] == [0, *(row["last_offset"] + 1 for row in batches[:-1])]
    assert {row["checksum"] for row in rows} == {"ok"}
    rows = rows_of(run("read", f"kafka://{broker}/{written}transactions", "--batches", "--json"))
    assert {row["transactional"] for row in rows if row["producer_id"] is not None} == {True}
    assert {row["records"] for row in rows if row["control"]} == {1}
    assert all(row["producer_epoch"] == 0 for row in rows if row["control"])


def test_control_records_are_shown_and_aborted_records_marked(run: Run, broker: str, written: str) -> None:
    url = f"kafka://{broker}/{written}transactions"
    rows = rows_of(run("read", url, "--control", "--json"))
    assert [row["control"] for row in rows if row["control"]].count("COMMIT") == 4
    assert [row["control"] for row in rows if row["control"]].count("ABORT") == 4
    assert [row["offset"] for row in rows] == [*range(len(rows))]
    read = run("read", url, "--committed", "--json")
    committed = {row["offset"] for row in rows_of(read)}
    stable = max(committed)
    [note] = read.err.splitlines()
    assert re.fullmatch(rf".*{written}transactions-0: read up to offset \d+, where a transaction is open", note)
    assert run("read", url, "--committed", "--json", "--end", str(stable)).err == ""
    unmarked = {row["offset"] for row in rows if not row["aborted"] and not row["control"] and row["offset"] <= stable}
    assert unmarked == committed
    assert {row["aborted"] for row in rows if row["offset"] > stable} == {False}
    last = rows_of(run("read", url, "--control", "--json", "--last", "3"))
    assert last == rows[-3:]


def test_inspect_of_segments_matches_inspect_of_topic(
    run: Run, broker: str, running_broker: Broker, written: str
) -> None:
    for topic in ("transactions", "codecs"):
        path = running_broker.directory / "data" / f"{written}{topic}-0"
        for view in ("--control", "--batches"):
            of_topic = rows_of(run("read", f"kafka://{broker}/{written}{topic}/0", view, "--json"))
            of_files = rows_of(run("read", path, view, "--json"))
            if view == "--control":
                stable = max(row["offset"] for row in of_topic if row["control"] or not row["transactional"])
                of_topic, of_files = ([row for row in rows if row["offset"] <= stable] for rows in (of_topic, of_files))
            assert of_files == of_topic


def test_settings_come_from_file_in_option_or_environment(
    run: Run, orders: str, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker}\n")
    assert len(places(run("read", "kafka:///shell-orders", "--config", file, "--json"))) == 45
    monkeypatch.setenv("LETTERHEAD_CONFIG", str(file))
    assert len(places(run("read", "kafka:///shell-orders", "--json"))) == 45
    result = run("read", "kafka:///shell-orders", "-X", "isolation.levle=x")
    assert (result.code, "did you mean 'isolation.level'" in result.err) == (2, True)


def test_secret_in_argument_warns(run: Run, orders: str) -> None:
    result = run("read", orders, "-X", "sasl.password=hunter2", "--json")
    assert "the secret in -X sasl.password is visible to other users" in result.err
    assert "hunter2" not in result.err
    assert "visible" not in run("read", orders, "-X", "sasl.password=${env:HOME}", "--json").err


def test_missing_topic_exits_like_unreadable_source(run: Run, broker: str, tmp_path: Path) -> None:
    result = run("read", f"kafka://{broker}/no-such-topic", "--json")
    assert (result.code, result.out) == (run("read", tmp_path / "no-such-file").code, "")
    assert "no-such-topic" in result.err


def test_unresponsive_broker_exits_3(run: Run) -> None:
    [port] = free_ports(1)
    result = run("read", f"kafka://127.0.0.1:{port}/orders", "--timeout", "1")
    assert (result.code, result.out) == (3, "")
    assert f"127.0.0.1:{port}" in result.err


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("kafka://me:secret@h/t", "pass settings and passwords in --config"),
        ("kafka://h/t/one", "a partition is a number"),
        ("kafka://h:one/t", "the port of broker 1 is not a number"),
        ("kafka:///t", "no brokers are named: pass kafka://host:port/topic"),
        ("http://h/t", "no source begins with http://"),
    ],
)
def test_invalid_address_is_wrong_usage(run: Run, address: str, message: str) -> None:
    result = run("read", address)
    assert (result.code, message in result.err, "secret" in result.err) == (2, True, False)


def test_header_absent_from_all_records_warns(run: Run, orders: str) -> None:
    result = run("read", orders, "--json", "--where", "tenent = 'acme' or tenant = 'acme'")
    assert (result.code, len(result.lines)) == (0, 23)
    assert 'no record had a header "tenent"' in result.err


COMMAND = "import sys; from letterhead.cli import main; sys.exit(main())"


def follow(topic: str, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, "read", topic, "--follow", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": ""},
    )  # fmt: skip


def test_follow_prints_arriving_records_until_ctrl_c(broker: str) -> None:
    create_with(broker, "shell-followed", 2)
    sender = producer(broker)
    send(sender, "shell-followed", [Record(b"old", b"", [])])
    with follow(f"kafka://{broker}/shell-followed", "--json") as process:
        guard = threading.Timer(300, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline())["key"] == "old"
            for partition in (1, 0, 1):
                send(sender, "shell-followed", [Record(b"new", b"", [])], partition)
                row = json.loads(process.stdout.readline())
                assert (row["key"], row["partition"]) == ("new", partition)
            process.send_signal(signal.SIGINT)
            assert process.stdout.read() == ""
            assert re.fullmatch(
                r"connected to kafka://\S+/shell-followed, 2 partitions: waiting for records until Ctrl-C\n",
                process.stderr.read(),
            )
            assert process.wait() == 0
        finally:
            guard.cancel()


def test_follow_commits_printed_records(run: Run, broker: str) -> None:
    create_with(broker, "shell-kept", 1)
    sender, url = producer(broker), f"kafka://{broker}/shell-kept"
    with follow(url, "--json", "--commit-group", "shell-kept") as process:
        guard = threading.Timer(300, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            for _ in range(3):
                send(sender, "shell-kept", [Record(b"k", b"v", [])])
                process.stdout.readline()
            while committed(broker, "shell-kept", "shell-kept") != [3]:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
        finally:
            guard.cancel()
    send(sender, "shell-kept", [Record(b"k", b"v", [])])
    assert places(run("read", url, "--start", "group:shell-kept", "--json")) == [(0, 3)]


def test_ctrl_c_before_first_broker_response_raises() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, follow(f"kafka://127.0.0.1:{silent.getsockname()[1]}/orders") as process:
        guard = threading.Timer(300, process.kill)
        guard.start()
        try:
            silent.accept()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
            assert (process.returncode, "interrupted before kafka://" in err) == (3, True)
        finally:
            guard.cancel()


def test_follow_ends_at_its_limit(broker: str) -> None:
    create_with(broker, "shell-limited", 1)
    sender = producer(broker)
    with follow(
        f"kafka://{broker}/shell-limited", "--columns", "offset,key", "--csv", "--start", "0", "-n", "2"
    ) as process:
        guard = threading.Timer(300, process.kill)
        guard.start()
        try:
            send(sender, "shell-limited", [Record(b"%d" % number, b"", []) for number in range(3)])
            out, err = process.communicate()
            assert (process.returncode, err.count("\n")) == (0, 1)
            assert out.splitlines()[0] == '"offset","key"'
            assert len(out.splitlines()) == 3
        finally:
            guard.cancel()


def test_python_follows_a_topic(broker: str) -> None:
    create_with(broker, "shell-python", 1)
    sender = producer(broker)
    with lh.read.topic("shell-python", bootstrap_servers=broker, columns=["offset"], follow=True) as reader:
        for number in range(3):
            send(sender, "shell-python", [Record(b"k", b"v", [])])
            assert next(reader)["offset"].to_pylist() == [number]
    with pytest.raises(ValueError, match="follow has no end: leave out end"):
        lh.read.topic("shell-python", bootstrap_servers=broker, follow=True, end=5)
    with pytest.raises(ValueError, match="last must be at least 0"):
        lh.read.topic("shell-python", bootstrap_servers=broker, last=-1)


@pytest.mark.parametrize("codec", CODECS)
def test_inspect_finds_a_record_in_a_compressed_batch(run: Run, broker: str, written: str, codec: str) -> None:
    result = run("inspect", f"kafka://{broker}/{written}codecs/{CODECS.index(codec)}", "--offset", "42", "--json")
    document = json.loads(result.out)
    labels = document["labels"] if codec == "none" else document["compressed"][0]["labels"]
    [key] = [label["hex"] for label in labels if label["field"] == "key" and label["header"] is None]
    assert (result.code, bytes.fromhex(key)) == (0, b"key 42")


def test_topic_headers_are_scanned(run: Run, orders: str) -> None:
    document = json.loads(run("scan", orders, "--last", "5", "--json").out)
    assert (document["rows"], [key["key"] for key in document["keys"]]) == (10, ["tenant", "retry", "partition"])


def test_topic_column_is_decoded(run: Run, broker: str) -> None:
    create_with(broker, "shell-changelog", 1)
    value = lh.encode(lh.Message(headers=[("tenant", b"acme")], timestamp=5, payload=b"v"), "streams-timestamped")
    send(producer(broker), "shell-changelog", [Record(b"k", value, [])])
    result = run(
        "decode",
        f"kafka://{broker}/shell-changelog",
        "-c",
        "value",
        "--prefix",
        "v_",
        "-f",
        "streams-timestamped",
        "--json",
    )
    [row] = rows_of(result)
    assert (row["key"], row["v_payload"], row["v_headers"]) == ("k", "v", [{"key": "tenant", "value": "acme"}])


def test_errors_before_last_records_are_not_raised(run: Run, broker: str) -> None:
    create_with(broker, "shell-last", 1)
    sender = producer(broker, **{"transactional.id": "shell-last"})
    sender.init_transactions()
    for number in range(12):  # a marker follows each record
        sender.begin_transaction()
        value = b"\xff" if number in (2, 3, 8) else b"a"
        send(sender, "shell-last", [Record(None, b"v", [("note", value)])])
        sender.commit_transaction()
    address = f"kafka://{broker}/shell-last"

    def offsets(last: int, where: str | None = None) -> list[int]:
        with lh.open(address, columns=["offset"], headers={"note": "string"}, last=last, where=where) as reader:
            return reader.read_all()["offset"].to_pylist()  # type: ignore[no-any-return]

    assert offsets(3) == [18, 20, 22]
    assert offsets(0) == []
    for last in (4, 7, 12, 100):
        with pytest.raises(lh.DecodeError, match="is not UTF-8") as raised:
            offsets(last)
        assert raised.value.offset in (4, 16)
    assert offsets(2, "offset < 16 and note = 'a'") == [12, 14]
    assert run("read", address, "--headers", "note", "--last", "3", "--json").code == 0
