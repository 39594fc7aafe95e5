"""Copies to topics of Iggy: messages as they are, records of Kafka by a mapping, and continued after kills."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.copies.iggy_target import IggyTarget
from letterhead.copies.offset_map import read_runs
from tests.helpers.command import Result
from tests.helpers.killed_commands import run_with_kills
from tests.iggy.server import Server

pytestmark = pytest.mark.iggy_server

Run = Callable[..., Result]
Create = Callable[..., str]

TYPED = pa.list_(pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())]))

ODD_RECORDS = [
    {"key": None, "value": b"a", "headers": [("b", b"1"), ("a", None), ("b", b"")]},
    {"key": b"", "value": None, "headers": []},
    {"key": b"k", "value": b"", "headers": [("large", bytes(1000))]},
]


@pytest.fixture(autouse=True)
def login(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGGY_USERNAME", "iggy")
    monkeypatch.setenv("IGGY_PASSWORD", "p@ss/word")


def messages(server: Server, topic: str, count: int, partition: int, first: int = 0) -> None:
    """Write messages with typed headers, of which some have two of one key."""
    rows = range(first, first + count)
    table = pa.table(
        {
            "payload": [b"%d of %d" % (row, partition) for row in rows],
            "headers": pa.array(
                [
                    [("tenant", "string", b"acme"), ("retry", "int32", row.to_bytes(4, "big"))] * (1 + row % 2)
                    for row in rows
                ],
                TYPED,
            ),
        }
    )
    lh.write.iggy(table, server.address, stream="tests", topic=topic, partition=partition)


def url(server: Server, topic: str) -> str:
    return f"iggy://127.0.0.1:{server.port}/tests/{topic}"


def write_odd(path: Path, partitions: int = 2) -> Path:
    rows = [
        {**record, "partition": number % partitions, "timestamp": 1_700_000_000_000 + number}
        for number, record in enumerate(ODD_RECORDS * 4)
    ]
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    schema = pa.schema(
        [("partition", pa.int32()), ("timestamp", pa.timestamp("ms", "UTC")), ("key", pa.binary()), ("value", pa.binary()), ("headers", headers)]
    )  # fmt: skip
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write(
            pa.RecordBatch.from_pylist(
                [
                    dict(row, headers=[dict(zip(("key", "value"), pair, strict=True)) for pair in row["headers"]])
                    for row in rows
                ],
                schema,
            )
        )
    return path


def test_messages_are_copied_exactly_and_continued(server: Server, create: Create, run: Run, tmp_path: Path) -> None:
    source, target, restored = create(2), create(2), create(2)
    for turn in (0, 1):
        for partition in (0, 1):
            messages(server, source, 5, partition, 5 * turn)
        result = run("copy", url(server, source), url(server, target), "--verify")
        assert result.code == 0, result.err
        assert f"10 messages copied to {url(server, target)}" in result.err
        assert result.lines == [f"no record differs; {10 * (turn + 1)} equal"]
    kept = ["partition", "offset", "id", "origin_timestamp", "headers", "payload"]
    tables = [lh.open(url(server, topic)).read_all().select(kept) for topic in (source, target)]
    by_place = [table.sort_by([("partition", "ascending"), ("offset", "ascending")]) for table in tables]
    assert by_place[0].equals(by_place[1])
    directory = tmp_path / "copy"
    assert run("copy", url(server, source), directory, "--headers", "retry:int32", "--verify").code == 0
    assert run("copy", directory, url(server, restored), "--verify").lines == ["no record differs; 20 equal"]


def test_conditions_and_edits_keep_types_of_headers(server: Server, create: Create, run: Run) -> None:
    source, target = create(1), create(1)
    messages(server, source, 10, 0)
    options = ["--where", "retry::int32 >= 5", "--edit", "drop tenant"]
    result = run("copy", url(server, source), url(server, target), *options, "--verify")
    assert result.code == 0, result.err
    rows = lh.open(url(server, target)).read_all()["headers"].to_pylist()
    assert [{(header["key"], header["type"]) for header in headers} for headers in rows] == [{(b"retry", "int32")}] * 5


def test_records_of_kafka_are_copied_without_loss_and_back(
    server: Server, create: Create, run: Run, samples: Path, tmp_path: Path
) -> None:
    target, odd = create(1), create(2)
    result = run("copy", samples / "orders-0", url(server, target), "--end", "2000", "--verify")
    assert result.code == 0, result.err
    assert result.lines == ["no record differs; 2,000 equal"]
    compared = ["--by", "position", "--columns", "key,value,headers,timestamp", "--end", "2000"]
    found = run("diff", samples / "orders-0", url(server, target), "--mapping", "kafka-gateway-lossless", *compared)
    assert (found.code, found.lines) == (0, ["no record differs; 2,000 equal"])
    file = write_odd(tmp_path / "odd.arrow")
    result = run("copy", file, url(server, odd), "--verify")
    assert result.lines == ["no record differs; 12 equal"], result.out
    assert "0 rows copied" in run("copy", file, url(server, odd)).err
    directory = tmp_path / "copy"
    back = ["--mapping", "kafka-gateway-lossless"]
    assert run("copy", url(server, odd), directory, *back, "--verify").code == 0
    assert run("diff", file, directory, "--by", "position").lines == ["no record differs; 12 equal"]
    shown = run("read", url(server, odd), *back, "--partition", "0", "--limit", "1")
    assert (shown.code, shown.lines[0].split()) == (0, ["offset", "timestamp", "key", "headers", "value"])


def test_lossy_mapping_is_optional_and_rejects_unmappable(
    server: Server, create: Create, run: Run, tmp_path: Path
) -> None:
    target = create(2)
    file = write_odd(tmp_path / "odd.arrow")
    refused = run("copy", file, url(server, target), "--mapping", "kafka-gateway")
    assert refused.code != 0
    assert "at partition 0 was not written: the name of a header occurs again" in refused.err
    assert "use --mapping kafka-gateway-lossless" in refused.err
    assert "--on-loss" not in refused.err  # `copy` has no such option
    assert lh.open(url(server, target)).read_all().num_rows == 0
    once = ["--where", "value is null or value = ''"]
    assert run("copy", file, url(server, target), "--mapping", "kafka-gateway", *once, "--verify").code == 0


def test_messages_are_not_records_without_mapping(server: Server, create: Create, run: Run, samples: Path) -> None:
    source = create(1)
    messages(server, source, 3, 0)
    refused = run("copy", url(server, source), "kafka://127.0.0.1:1/orders")
    assert refused.code == 2, refused.err
    assert "Kafka has no types of headers: pass --mapping" in refused.err
    for arguments in ((url(server, source), url(server, source)), (samples / "orders-0", "copy")):
        refused = run("copy", *arguments, "--mapping", "kafka-gateway")
        assert (refused.code, "for copies between Kafka and Iggy" in refused.err) == (2, True)
    refused = run("copy", samples / "orders-0", url(server, source), "--create")
    assert (refused.code, "create stream and topic by a client of Iggy" in refused.err) == (2, True)


def test_password_in_the_address_of_a_target_is_warned_of(server: Server, create: Create, run: Run) -> None:
    source, target = create(1), create(1)
    messages(server, source, 3, 0)
    result = run("copy", url(server, source), f"{server.address}/tests/{target}")
    assert (result.code, "visible to other users" in result.err) == (0, True)
    assert "p%40ss" not in result.out + result.err
    assert "visible" not in run("copy", url(server, source), url(server, target)).err


def test_offsets_of_copied_messages_are_noted(server: Server, create: Create, run: Run, tmp_path: Path) -> None:
    source, target, file = create(2), create(2), tmp_path / "offsets.jsonl"
    for turn in (0, 1):
        for partition in (0, 1):
            messages(server, source, 10, partition, 10 * turn)
        command = ["copy", url(server, source), url(server, target), "--where", "retry::int32 >= 5", "--offsets", file]
        assert run(*command, "--verify").code == 0
        assert read_runs(file) == {number: [(5, 0, 5 + 10 * turn)] for number in (0, 1)}


def test_topic_that_is_not_a_copy_is_rejected(server: Server, create: Create, run: Run) -> None:
    source, target, narrow = create(2), create(2), create(1)
    messages(server, source, 5, 1)
    messages(server, target, 3, 1, 50)
    refused = run("copy", url(server, source), url(server, target))
    assert (refused.code, "is not the record that the source has at this position" in refused.err) == (2, True)
    assert run("copy", url(server, source), url(server, target), "--append").code == 0
    assert lh.open(url(server, target)).read_all().num_rows == 8
    refused = run("copy", url(server, source), url(server, narrow))
    assert (refused.code, "create a topic with 2 partitions or more" in refused.err) == (2, True)


def test_late_messages_of_killed_copy_are_detected(
    server: Server, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = create(1), create(1)
    messages(server, source, 5, 0)
    last_records = IggyTarget.last_records

    def before_the_late_ones(own: IggyTarget) -> Any:
        last = last_records(own)
        lh.copy(url(server, source), url(server, target), append=True)
        return last

    with monkeypatch.context() as patch:
        patch.setattr(IggyTarget, "last_records", before_the_late_ones)
        with pytest.raises(ValueError, match="got messages while the source was read"):
            lh.copy(url(server, source), url(server, target))
    assert lh.copy(url(server, source), url(server, target)).rows == 0


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.full)])
def test_repeatedly_killed_copy_has_every_message_once(
    kills: int, server: Server, create: Create, run: Run, samples: Path
) -> None:
    target = url(server, create(1))
    command = [sys.executable, "-m", "letterhead", "copy", samples / "orders-0", target]
    run_with_kills(command, kills, (0.6, 1.2), kills)
    options = ["--mapping", "kafka-gateway-lossless", "--columns", "key,value,headers,timestamp"]
    assert run("diff", samples / "orders-0", target, *options).lines == ["no record differs; 10,000 equal"]
