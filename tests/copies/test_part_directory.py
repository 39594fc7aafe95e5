"""Copies of logs to a directory of Parquet files: what is written, and how a copy continues."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

import letterhead as lh
from letterhead.copies import part_directory
from letterhead.copies.copying import Copying
from letterhead.copies.part_directory import PartDirectory
from letterhead.sources.recognition import open_sources
from tests.helpers.command import Result
from tests.helpers.killed_commands import start_program

Run = Callable[..., Result]

KILLED = """
import sys
from letterhead.copies import part_directory
part_directory.PART_ROWS = 1000
import letterhead as lh
write = part_directory.PartDirectory.write
parts = 0
def slow(self, batch):
    for start in range(0, len(batch), 700):
        write(self, batch.slice(start, 700))
        print(len(self.ends), flush=True)
        sys.stdin.readline()
part_directory.PartDirectory.write = slow
lh.copy(sys.argv[1], sys.argv[2])
"""


def parts(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.suffix == ".parquet" and path.name[0] == "p")


def copied(directory: Path) -> pa.Table:
    return lh.open(directory).read_all().combine_chunks()


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_directory, "PART_ROWS", 3000)


def test_copy_equals_log_and_has_typed_columns(samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    result = lh.copy(samples / "orders-0", target, headers={"tenant": "string", "retry": "int32"})
    assert (result.rows, result.ends) == (10_000, {0: 10_000})
    table = copied(target)
    log = lh.open(samples / "orders-0").read_all()
    assert table.select(log.column_names).equals(log.combine_chunks())
    typed = lh.open(samples / "orders-0", columns=[], headers={"tenant": "string", "retry": "int32"}).read_all()
    assert table.select(typed.column_names).equals(typed.combine_chunks())
    assert lh.copy(samples / "orders-0", target, headers={"tenant": "string", "retry": "int32"}).rows == 0


def test_killed_copy_has_every_record_once(samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    for steps in (1, 2, 3, 7, 100):
        process, stdin, output = start_program(KILLED, samples / "orders-0", target)
        for _ in range(steps):
            if not output.readline():
                break
            stdin.write("\n")
            stdin.flush()
        else:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == 0
    assert len(parts(target)) > 3
    assert not [path for path in target.iterdir() if path.name.endswith(".unfinished")]
    assert copied(target)["offset"].to_pylist() == list(range(10_000))


@pytest.mark.usefixtures("small_parts")
def test_directory_is_table_while_it_is_written(samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with PartDirectory(target, {}) as directory:
        for batch in lh.open(samples / "orders-0").read_all().to_batches(max_chunksize=1000):
            directory.write(batch)
        assert any(path.name.endswith(".unfinished") for path in target.iterdir())
        rows = lh.open(target).read_all().num_rows
        assert 0 < rows < 10_000
        assert dataset(target, format="parquet").count_rows() == rows


@pytest.mark.usefixtures("small_parts")
def test_truncated_last_file_is_set_aside_and_copied_again(samples: Path, tmp_path: Path) -> None:
    source, target = samples / "orders-0", tmp_path / "copy"
    description = {"source": str(source), "headers": None, "where": None, "edit": None}
    with lh.open(source) as reader, PartDirectory(target, description) as directory:
        for batch in reader:
            for start in range(0, len(batch), 1000):
                directory.write(batch.slice(start, 1000))
        directory.finish(reader.schema)
    last = target / parts(target)[-1]
    os.truncate(last, last.stat().st_size // 2)
    assert lh.copy(source, target).remarks == [
        f"{last.name} was damaged: it is _damaged-{last.name} now, and its offsets are copied again"
    ]
    assert copied(target)["offset"].to_pylist() == list(range(10_000))
    first = target / parts(target)[0]
    os.truncate(first, 10)
    with pytest.raises(ValueError, match=f"{first.name} is damaged: remove it"):
        lh.copy(source, target)


def test_directory_of_another_copy_is_rejected(samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    lh.copy(samples / "orders-0", target, where="offset < 100")
    assert copied(target).num_rows == 100
    with pytest.raises(ValueError, match=r"is a copy with where .*offset'\) < 100.*, not null: pass the same options"):
        lh.copy(samples / "orders-0", target)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    with pytest.raises(ValueError, match=r"is not empty, and no copy: it has 'notes\.txt'"):
        lh.copy(samples / "orders-0", tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir() if not path.name.startswith("_")] == ["notes.txt"]


def test_copy_without_records_is_empty_table_until_some_arrive(samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    for _ in range(2):
        assert lh.copy(samples / "orders-0", target, where="offset < 0").rows == 0
        assert copied(target).num_rows == 0
        assert "headers" in copied(target).column_names
    assert lh.copy(samples / "orders-0", target, where="offset < 5").rows == 5
    assert len(parts(target)) == 1


def test_two_processes_cannot_copy_to_one_directory(samples: Path, tmp_path: Path) -> None:
    lh.copy(samples / "orders-0", tmp_path / "copy")
    with (tmp_path / "copy" / "_copy.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="another process is copying"):
            lh.copy(samples / "orders-0", tmp_path / "copy")


def test_error_keeps_complete_files(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(lh.DecodeError):
        lh.copy(samples / "orders-0", tmp_path / "copy", headers={"tenant": "int32"})
    assert parts(tmp_path / "copy") == []
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["_copy.json", "_copy.lock"]


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("ftp://host/copy", {}, "not to ftp://"),
        ("copy", {"append": True}, "append= is for topics"),
        ("copy", {"create": True}, "create= is for topics"),
    ],
)
def test_target_that_is_not_a_directory_is_rejected(
    target: str, options: dict[str, Any], message: str, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        lh.copy(samples / "orders-0", target, **options)
    with pytest.raises(ValueError, match="is no log, and cannot be copied to a file or directory"):
        lh.copy(samples / "orders-0.parquet", "copy")


def test_command_copies_edits_and_verifies(run: Run, samples: Path, tmp_path: Path) -> None:
    options = ["--edit", "drop retry", "--where", "tenant = 'acme'", "--verify"]
    result = run("copy", samples / "orders-0", tmp_path / "copy", *options)
    assert result.code == 0, result.err
    assert result.lines == [f"no record differs; {copied(tmp_path / 'copy').num_rows:,} equal"]
    keys = {header["key"] for row in copied(tmp_path / "copy")["headers"].to_pylist() for header in row}
    assert "tenant" in keys
    assert "retry" not in keys
    assert json.loads(run("copy", samples / "orders-0", tmp_path / "copy", *options[:4], "--json").out)["rows"] == 0


def test_verification_finds_later_changes(run: Run, samples: Path, tmp_path: Path) -> None:
    assert run("copy", samples / "orders-0", tmp_path / "copy").code == 0
    [name] = parts(tmp_path / "copy")
    table = pq.read_table(tmp_path / "copy" / name)
    pq.write_table(table.slice(1), tmp_path / "copy" / name)
    result = run("copy", samples / "orders-0", tmp_path / "copy", "--verify")
    assert result.code == 1
    assert result.lines[-1] == "1 only in the first source; 9,999 equal"


def test_value_errors_are_a_column(run: Run, samples: Path, tmp_path: Path) -> None:
    options = ["--headers", "tenant:int32", "--errors", "column"]
    assert run("copy", samples / "orders-0", tmp_path / "copy", *options).code == 0
    assert copied(tmp_path / "copy")["error"].null_count < 10_000
    refused = run("copy", samples / "orders-0", tmp_path / "other", "--errors", "null")
    assert (refused.code, refused.out) == (2, "")


def test_unknown_scheme_lists_targets_in_shell(run: Run, samples: Path) -> None:
    """Logins in addresses are masked, and the forms of addresses in an error must survive that."""
    refused = run("copy", samples / "orders-0", "sftp://host/orders")
    assert refused.code == 2
    for form in ("s3://bucket/path", "kafka://host:port/topic", "iggy://host:port/stream/topic", "not to sftp://"):
        assert form in refused.err


def test_copy_rejects_last_option(samples: Path, tmp_path: Path) -> None:
    [source] = open_sources([str(samples / "orders-0")])
    from letterhead._row_request import RowRequest

    with pytest.raises(ValueError, match="a copy is of all records: leave out last="):
        Copying(source, RowRequest(last=1), str(tmp_path / "copy"))


def test_directories_of_several_topics_are_refused(samples: Path, tmp_path: Path) -> None:
    for name in ("orders-0", "others-0"):
        shutil.copytree(samples / "orders-0", tmp_path / "logs" / name)
    with pytest.raises(ValueError, match="has several topics: copy the directories of one topic at a time"):
        lh.copy(tmp_path / "logs", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    (tmp_path / "logs" / "others-0").rename(tmp_path / "logs" / "orders-1")
    assert lh.copy(tmp_path / "logs", tmp_path / "copy").rows == 20_000
    assert lh.copy(tmp_path / "logs", tmp_path / "copy").rows == 0


def test_directory_of_other_files_stays_as_it_is(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"is not empty, and no copy: it has 'notes\.txt'; name a new directory"):
        lh.copy(samples / "orders-0", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_file_without_a_partition_is_refused(samples: Path, tmp_path: Path) -> None:
    [log] = (samples / "orders-0").glob("*.log")
    shutil.copy(log, tmp_path / "backup.log")
    with pytest.raises(ValueError, match="the partition of a file is unknown: move it to a directory such as orders-0"):
        lh.copy(tmp_path / "backup.log", tmp_path / "copy")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "backup.log").rename(tmp_path / "orders-0" / log.name)
    assert lh.copy(tmp_path / "orders-0" / log.name, tmp_path / "other").rows == 10_000


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ({"start": 100, "end": 200}, {}, "start"),
        ({}, {"start": 100}, "start"),
        ({"end": 100}, {"isolation_level": "read_committed"}, "isolation_level"),
    ],
)
def test_other_options_do_not_continue_a_copy(
    first: dict[str, Any], second: dict[str, Any], name: str, samples: Path, tmp_path: Path
) -> None:
    lh.copy(samples / "orders-0", tmp_path / "copy", **first)
    with pytest.raises(ValueError, match=f"is a copy with {name} .*: pass the same options to continue it"):
        lh.copy(samples / "orders-0", tmp_path / "copy", **second)
    assert lh.copy(samples / "orders-0", tmp_path / "copy", **{**first, "end": "latest"}).rows >= 0


def test_copy_that_failed_without_records_may_have_other_options(samples: Path, tmp_path: Path) -> None:
    for options, error in (
        ({"start": {0: 9000, 7: 1}}, ValueError),
        ({"headers": {"tenant": "int64"}}, lh.errors.DecodeError),
        ({"where": "retry::int64 > 1"}, lh.errors.DecodeError),
    ):
        with pytest.raises(error):
            lh.copy(samples / "orders-0", tmp_path / "copy", **options)
    assert lh.copy(samples / "orders-0", tmp_path / "copy", start={0: 9000}).rows == 1000
    with pytest.raises(ValueError, match="is a copy with start "):
        lh.copy(samples / "orders-0", tmp_path / "copy", start={0: 8000})


def test_copy_since_time_before_now_is_continued_as_error_advises(
    run: Callable[..., Any], samples: Path, tmp_path: Path
) -> None:
    command = ["copy", samples / "orders-0", tmp_path / "copy"]
    assert "10,000 records copied" in run(*command, "--start", "-9999d").err
    result = run(*command, "--start", "-9998d")
    advised = re.search(r"pass (--start @[0-9]+) to continue it", result.err)
    assert advised is not None, result.err
    assert "0 records copied" in run(*command, *advised[1].split()).err
    with pytest.raises(ValueError, match=r"pass start='@[0-9]+' to continue it"):
        lh.copy(samples / "orders-0", tmp_path / "copy", start="-9998d")


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"where": "tenant  =  'acme'"}, ["--where", "tenant = 'acme'"]),
        ({"where": lh.col("tenant") == "acme"}, ["--where", "tenant  = 'acme'"]),
        ({"start": {0: 9000}}, ["--start", "0=9000"]),
        ({"start": 9000}, ["--start", "9000"]),
        ({"start": -10}, ["--start", "-10"]),
        ({"start": "2026-01-01T00:10:00Z"}, ["--start", "2026-01-01T00:10:00Z"]),
        ({"start": datetime(2026, 1, 1, 0, 10, tzinfo=UTC)}, ["--start", "2026-01-01T01:10:00+01:00"]),
    ],
)
def test_command_continues_copy_of_function(
    options: dict[str, Any], arguments: list[str], run: Callable[..., Any], samples: Path, tmp_path: Path
) -> None:
    assert lh.copy(samples / "orders-0", tmp_path / "copy", **options).rows > 0
    result = run("copy", samples / "orders-0", tmp_path / "copy", *arguments)
    assert (result.code, "0 records copied" in result.err) == (0, True), result.err


def test_advice_for_an_error_continues_a_copy(samples: Path, tmp_path: Path) -> None:
    headers = {"retry": "int32"}
    lh.copy(samples / "orders-0", tmp_path / "copy", headers=headers, end=100)
    for errors in ("column", "null", "raise"):
        assert lh.copy(samples / "orders-0", tmp_path / "copy", headers=headers, end=200, errors=errors).rows in (
            0,
            100,
        )
    assert lh.open(tmp_path / "copy").read_all().num_rows == 200


def test_copy_continues_beyond_an_earlier_end(samples: Path, tmp_path: Path) -> None:
    assert lh.copy(samples / "orders-0", tmp_path / "copy", start=100, end=200).rows == 100
    assert lh.copy(samples / "orders-0", tmp_path / "copy", start=100).rows == 9800
