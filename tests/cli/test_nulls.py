"""``--errors null`` gives the rows of ``errors="null"`` in Python, and counts those that have errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from tests.helpers.log_bytes import batch, record, write_segments

WHOLE = b"\x02\x02t\x02a"
BROKEN, BROKEN_AFTER = b"\2\2", b"\x04\x02t\x02a\x02"
BLOCKS = [WHOLE, BROKEN, b"\0", BROKEN_AFTER, b"\x02\x02t\x02b", b"\x02\x02n\x04\0\1", WHOLE]
CONDITIONS = [
    "offset = 3", "offset = 3 or t = 'b'", "t = 'a'", "t is null", "not (t present)", "t present", "n::int32 is null",
    "offset != 3 and t is null", "not (t = 'a')", "offset >= 2 and n::int32 = 1",
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    records = (record(at, key=b"k%d" % at, block=block) for at, block in enumerate(BLOCKS))
    return write_segments(tmp_path / "orders-0", [batch(*records, base_offset=0)], [0])


def read(run: Callable[..., Any], *args: object) -> tuple[list[dict[str, Any]], int]:
    result = run("read", *args, "--errors", "null", "--json")
    return [json.loads(line) for line in result.out.splitlines()], result.code


@pytest.mark.parametrize("where", CONDITIONS)
def test_errors_null_selects_same_rows_as_python(run: Callable[..., Any], log: Path, where: str) -> None:
    with lh.read.segments(log, columns=["offset"], errors="null", where=where) as reader:
        expected = reader.read_all().column("offset").to_pylist()
    rows, _ = read(run, log, "--columns", "offset", "--where", where)
    assert [row["offset"] for row in rows] == expected
    result = run("read", log, "--errors", "null", "--where", where, "--count-by", "offset", "--json")
    assert [json.loads(line)["offset"] for line in result.out.splitlines()] == expected


def test_values_before_damage_are_null(run: Callable[..., Any], log: Path) -> None:
    rows, code = read(run, log, "--columns", "offset,headers", "--headers", "t,n:int32")
    assert [(row["t"], row["n"]) for row in rows] == [
        ("a", None), (None, None), (None, None), (None, None), ("b", None), (None, None), ("a", None),
    ]  # fmt: skip
    assert code == 1


def test_single_batch_and_column_of_batches_decode_equally(run: Callable[..., Any], log: Path, tmp_path: Path) -> None:
    [file] = log.glob("*.log")
    table = tmp_path / "batches.parquet"
    pq.write_table(pa.table({"value": pa.array([file.read_bytes()], pa.binary())}), table)
    options = ("-f", "record-batch", "--errors", "null", "--json")
    one = run("decode", file, *options)
    column = run("decode", table, "-c", "value", *options)
    keys = [(message["key"], message["headers"]) for message in json.loads(one.out)["messages"]]
    assert [key for key, headers in keys if headers is None] == ["k1", "k3"]
    assert keys == [(row["key"], row["headers"]) for row in map(json.loads, column.out.splitlines())]
    assert (one.code, column.code) == (1, 1)


@pytest.mark.parametrize("errors", ["null", "column"])
def test_edits_leave_unreadable_headers_null(run: Callable[..., Any], log: Path, errors: str) -> None:
    result = run("read", log, "--errors", errors, "--json", "--edit", "set t=zz")
    edited = [json.loads(line)["headers"] for line in result.out.splitlines()]
    assert [row for row, headers in enumerate(edited) if headers is None] == [1, 3]
    assert edited[2] == [{"key": "t", "value": "zz"}]
    for edit in ((), ("--edit", "set t=zz")):
        result = run("convert", log, "-c", "headers", "-f", "kafka", "-t", "kafka", "--errors", errors, "--json", *edit)
        written = [json.loads(line)["headers"] for line in result.out.splitlines()]
        assert [row for row, headers in enumerate(written) if headers is None] == [1, 3]


def test_errors_name_condition_only_if_headers_decide_it(log: Path) -> None:
    where = "offset = 3 or t = 'b'"
    with lh.read.segments(log, columns=["offset"], errors="column", where=where) as reader:
        rows = reader.read_all().to_pylist()
    undecided = {row["offset"]: {error["column"] for error in row["error"] or ()} for row in rows}
    assert undecided == {1: {"where"}, 3: {None}, 4: set()}
