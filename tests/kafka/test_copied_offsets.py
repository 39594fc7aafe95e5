"""Offsets of records in the copy of a topic: the file that a copy writes, and groups that move to the copy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.copies.offset_map import OffsetMap, Run, read_runs, translate
from tests.helpers.command import Result
from tests.helpers.killed_commands import run_with_kills
from tests.kafka.written import create_with, numbered, producer, send, write_all

pytestmark = pytest.mark.broker

Run_ = Callable[..., Result]


def pairs(file: Path) -> dict[tuple[int, int], int]:
    """The offset in the copy of each partition and offset."""
    return {
        (number, run.offset + index): run.target_offset + index
        for number, runs in read_runs(file).items()
        for run in runs
        for index in range(run.records)
    }


def by_position(source: str, target: str, **options: Unpack[lh.ReadOptions]) -> dict[tuple[int, int], int]:
    """The same from the records of both topics, of which the copy has all, in order."""
    found: dict[tuple[int, int], int] = {}
    tables = [
        lh.open(name, columns=["partition", "offset"], **own).read_all()
        for name, own in ((source, options), (target, lh.ReadOptions()))
    ]
    for number in range(3):
        offsets = [sorted(row["offset"] for row in table.to_pylist() if row["partition"] == number) for table in tables]
        assert len(offsets[0]) == len(offsets[1])
        found |= {(number, before): after for before, after in zip(*offsets, strict=True)}
    return found


def test_offsets_of_a_topic_with_gaps_are_noted_and_continued(run: Run_, broker: str, tmp_path: Path) -> None:
    producers = write_all(broker, "mapped-", 100)
    file = tmp_path / "offsets.jsonl"
    source, target = f"kafka://{broker}/mapped-transactions", f"kafka://{broker}/mapped-copy"
    command = ["copy", source, target, "--create", "--committed", "--offsets", file, "--verify"]
    assert run(*command).code == 0
    expected = by_position(source, target, isolation_level="read_committed")
    assert pairs(file) == expected
    assert any(before != after for (_, before), after in expected.items())
    result = run(*command)
    assert (result.code, "0 records copied" in result.err) == (0, True), result.err
    assert pairs(file) == expected
    file.unlink()  # it is made from the records that the topic has
    assert run(*command).code == 0
    assert pairs(file) == expected
    producers.clear()


def test_copy_continues_from_the_file_and_not_from_the_beginning(run: Run_, broker: str, tmp_path: Path) -> None:
    create_with(broker, "mapped-short", 1)
    send(producer(broker), "mapped-short", numbered(10))
    count = len(numbered(10))
    file = tmp_path / "offsets.jsonl"
    source, target = f"kafka://{broker}/mapped-short", f"kafka://{broker}/mapped-long"
    assert run("copy", source, target, "--create", "--offsets", file).code == 0
    assert read_runs(file) == {0: [Run(0, 0, count)]}
    send(producer(broker), "mapped-short", numbered(5, 50))
    delete_before(broker, "mapped-short", count - 1)
    assert "more than the source: it is no copy" in run("copy", source, target).err
    assert run("copy", source, target, "--offsets", file).code == 0
    total = lh.open(target).read_all().num_rows
    assert total == count + len(numbered(5, 50))
    assert read_runs(file) == {0: [Run(0, 0, total)]}


def delete_before(broker: str, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker})
    for done in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        done.result(60)


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.full)])
def test_offsets_of_a_killed_copy_are_complete(kills: int, run: Run_, broker: str, tmp_path: Path) -> None:
    topic = f"mapped-killed-{kills}"
    source, target, file = f"kafka://{broker}/{topic}", f"kafka://{broker}/{topic}-copy", tmp_path / "offsets.jsonl"
    create_with(broker, topic, 2)
    rows = 200_000 * kills
    table = pa.table(
        {
            "value": [b"%d" % number for number in range(rows)],
            "partition": pa.array([number % 2 for number in range(rows)], pa.int32()),
        }
    )
    lh.write.topic(table, topic, bootstrap_servers=broker, partition="partition")
    # Some records are left out, so that offsets differ.
    command = [sys.executable, "-m", "letterhead", "copy", source, target, "--create", "--offsets", str(file)]
    command += ["--where", "not value like '%3'"]
    run_with_kills(command, kills, (0.5, 1.5), kills)
    copied = lh.open(source, columns=["partition", "offset"], where="not value like '%3'").read_all()
    positions: dict[int, int] = {}
    expected = {}
    for row in sorted(copied.to_pylist(), key=lambda row: row["offset"]):
        number = row["partition"]
        expected[number, row["offset"]] = positions.get(number, 0)
        positions[number] = positions.get(number, 0) + 1
    assert pairs(file) == expected
    assert lh.open(target, columns=["offset"]).read_all().num_rows == len(expected)


def test_file_of_another_copy_is_refused(run: Run_, broker: str, tmp_path: Path) -> None:
    for name in ("mapped-one", "mapped-two"):
        create_with(broker, name, 1)
    send(producer(broker), "mapped-one", numbered(5))
    file = tmp_path / "offsets.jsonl"
    source = f"kafka://{broker}/mapped-one"
    file.write_text('{"partition":0,"offset":0,"target_offset":0,"records":900}\n')
    refused = run("copy", source, f"kafka://{broker}/mapped-two", "--offsets", file)
    assert (refused.code, "is of another copy: partition 0 of" in refused.err) == (2, True), refused.err
    file.write_text('{"partition":0}\n')
    refused = run("copy", source, f"kafka://{broker}/mapped-two", "--offsets", file)
    assert (refused.code, "line 1 of" in refused.err) == (2, True)
    for arguments in ((tmp_path / "copy",), (f"kafka://{broker}/mapped-two", "--append")):
        refused = run("copy", source, *arguments, "--offsets", tmp_path / "new.jsonl")
        assert (refused.code, "--offsets" in refused.err) == (2, True)
    assert not (tmp_path / "new.jsonl").exists()


def test_groups_continue_in_the_copy_where_they_were(run: Run_, broker: str, tmp_path: Path) -> None:
    producers = write_all(broker, "moved-", 100)
    file = tmp_path / "offsets.jsonl"
    source, target = f"kafka://{broker}/moved-transactions", f"kafka://{broker}/moved-copy"
    assert run("copy", source, target, "--create", "--committed", "--offsets", file).code == 0
    read = run(
        "read", source, "--committed", "--limit", "37", "--commit-group", "mover", "--json", "--columns", "value"
    )
    rest = run("read", source, "--committed", "--start", "group:mover", "--json", "--columns", "value")
    assert read.code == rest.code == 0, rest.err
    shown = run("group", "translate", "mover", source, target, "--offsets", file, "--json")
    assert json.loads(shown.out)["committed"] is False
    moved = run("group", "translate", "mover", source, target, "--offsets", file, "--execute")
    assert (moved.code, "committed to group mover" in moved.err) == (0, True), moved.err
    again = run("read", target, "--start", "group:mover", "--json", "--columns", "value")
    assert sorted(again.lines) == sorted(rest.lines)
    assert 0 < len(rest.lines) < len(read.lines) + len(rest.lines)
    other = run("group", "translate", "nobody", source, target, "--offsets", file)
    assert (other.code, "group 'nobody' has no committed offsets" in other.err) == (2, True)
    missing = run("group", "translate", "mover", source, target, "--offsets", tmp_path / "absent")
    assert (missing.code, "letterhead copy --offsets writes it" in missing.err) == (2, True)
    producers.clear()


def test_translation_skips_no_record() -> None:
    runs = [Run(10, 0, 5), Run(20, 5, 2)]
    assert [translate(runs, offset) for offset in (0, 10, 14, 15, 19, 20, 21, 22, 99)] == [0, 0, 4, 5, 5, 5, 6, 7, 7]
    assert translate([], 5) == 0


def test_truncated_last_line_is_written_again(tmp_path: Path) -> None:
    file = tmp_path / "offsets.jsonl"
    with OffsetMap(file) as written:
        written.note(0, pa.array([3, 4, 7], pa.int64()), 0)
        written.note(1, pa.array([0], pa.int64()), 5)
    whole = file.read_bytes()
    file.write_bytes(whole[:-4])
    with OffsetMap(file) as written:
        assert written.runs == {0: [Run(3, 0, 2), Run(7, 2, 1)]}
        written.note(1, pa.array([0], pa.int64()), 5)
    assert file.read_bytes() == whole
