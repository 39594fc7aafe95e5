"""Copies to one file: Parquet, Arrow IPC and JSON lines."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead._table_writers import JsonLinesWriter
from tests.helpers.command import Result
from tests.helpers.killed_commands import start_program

Run = Callable[..., Result]

KILLED = """
import sys
import letterhead as lh
from letterhead._table_writers import JsonLinesWriter
from letterhead import _row_groups
_row_groups._GROUP_BYTES = 1
write = JsonLinesWriter.write_table
def told(self, table):
    write(self, table)
    print("written", flush=True)
    sys.stdin.readline()
JsonLinesWriter.write_table = told
lh.copy(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("ending", ["parquet", "pq", "arrow", "feather", "arrows", "jsonl", "jsonl.gz", "ndjson.zst"])
def test_file_has_records_and_typed_columns(ending: str, run: Run, samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / f"orders.{ending}"
    options = ["--headers", "tenant,retry:int32", "--edit", "drop ce_id", "--where", "offset >= 5", "--verify"]
    result = run("copy", samples / "orders-0", target, *options)
    assert (result.code, result.lines) == (0, ["no record differs; 9,995 equal"]), result.err
    assert f"9,995 records copied to {target}" in result.err
    columns = ["offset", "tenant", "retry"]
    log = lh.open(samples / "orders-0", {"tenant": "string", "retry": "int32"}, columns=["offset"], where="offset >= 5")
    found = lh.open(target, columns=columns).read_all()
    assert found.to_pydict() == log.read_all().select(columns).to_pydict()
    assert "ce_id" not in {header["key"] for row in lh.open(target).read_all()["headers"].to_pylist() for header in row}
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_parquet_has_large_row_groups(samples: Path, tmp_path: Path) -> None:
    lh.copy(samples / "orders-0", tmp_path / "orders.parquet")
    assert pq.ParquetFile(tmp_path / "orders.parquet").num_row_groups == 1


def test_copy_without_records_is_table(samples: Path, tmp_path: Path) -> None:
    for ending in ("parquet", "arrow"):
        target = tmp_path / f"none.{ending}"
        assert lh.copy(samples / "orders-0", target, where="tenant = 'nobody'").rows == 0
        assert lh.open(target).read_all().num_rows == 0


def test_existing_file_is_kept(samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "orders.arrow"
    target.write_bytes(b"other")
    with pytest.raises(FileExistsError, match=r"orders\.arrow exists: name another file, or a directory"):
        lh.copy(samples / "orders-0", target)
    assert target.read_bytes() == b"other"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert lh.copy(samples / "orders-0", tmp_path / "another.arrow").rows == 10_000


def test_killed_copy_leaves_no_file_and_begins_again(samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "orders.jsonl"
    process, _, output = start_program(KILLED, samples / "orders-0", target)
    assert output.readline() == "written\n"
    with pytest.raises(ValueError, match=r"another process writes .*_orders\.jsonl\.unfinished: wait until it ends"):
        lh.copy(samples / "orders-0", target)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not target.exists()
    assert lh.copy(samples / "orders-0", target).rows == 10_000
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    with lh.diff(samples / "orders-0", target) as differences:
        assert differences.read_all().num_rows == 0


def test_file_that_appears_during_copy_is_kept(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = JsonLinesWriter.write_table
    target = tmp_path / "orders.jsonl"

    def beside(*arguments: Any) -> None:
        write(*arguments)
        target.write_bytes(b"other")

    monkeypatch.setattr(JsonLinesWriter, "write_table", beside)
    with pytest.raises(FileExistsError, match="name another file"):
        lh.copy(samples / "orders-0", target)
    assert target.read_bytes() == b"other"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_error_removes_file(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(lh.DecodeError, match="errors="):
        lh.copy(samples / "orders-0", tmp_path / "orders.arrow", headers={"tenant": "int32"})
    assert not [*tmp_path.iterdir()]
    assert (
        lh.copy(samples / "orders-0", tmp_path / "a.arrow", headers={"tenant": "int32"}, errors="column").rows == 10_000
    )


@pytest.mark.parametrize(
    ("source", "target", "options", "message"),
    [
        ("orders-0", "orders.csv", {}, r"orders\.csv does not end with \.parquet, \.arrow, \.arrows or \.jsonl"),
        ("orders-0", "orders.parquet.gz", {}, r"orders\.parquet\.gz does not end with"),
        ("orders-0.parquet", "orders.arrow", {}, "is no log, and cannot be copied to a file or directory"),
        ("orders-0", "orders.arrow", {"append": True}, "append= is for topics"),
        ("orders-0", "orders.arrow", {"create": True}, "create= is for topics"),
        ("orders-0", "orders.arrow", {"offsets": "map.jsonl"}, "offsets= is for topics"),
    ],
)
def test_wrong_target_is_rejected(
    source: str, target: str, options: dict[str, object], message: str, samples: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        lh.copy(samples / source, tmp_path / target, **options)  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()]


def test_file_does_not_follow(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="follow= is for directories and topics"):
        lh.copy("kafka://127.0.0.1:1/orders", tmp_path / "orders.arrow", follow=True)
