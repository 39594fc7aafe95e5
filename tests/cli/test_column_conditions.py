"""Commands that read a column handle rows that leave the condition undecided as ``--errors`` says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
# The header "q", which the condition compares with "1", and the value of each row.
ROWS = [
    (b"2", lh.encode([("a", b"0")], "kafka")),
    (b"1", lh.encode([("a", b"1")], "kafka")),
    (b"\xff", lh.encode([("a", b"2")], "kafka")),
    (b"1", b"\x07\x01"),
    (b"2", b"\x07\x01"),
    (b"1", lh.encode([("a", b"5")], "kafka")),
]


@pytest.fixture(params=["table", "segments"])
def source(request: Any, tmp_path: Path) -> Path:
    if request.param == "table":
        table = pa.table({
            "value": pa.array([value for _, value in ROWS], pa.binary()),
            "headers": pa.array([[{"key": "q", "value": q}] for q, _ in ROWS], HEADERS),
        })  # fmt: skip
        pq.write_table(table, tmp_path / "t.parquet")
        return tmp_path / "t.parquet"
    (tmp_path / "t-0").mkdir()
    messages = [lh.Message(offset=at, value=value, headers=[("q", q)]) for at, (q, value) in enumerate(ROWS)]
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(lh.batch(messages, "record-batch"))
    return tmp_path / "t-0"


WHERE = ("--where", "q::string = '1'")


@pytest.mark.parametrize("command", [("decode", "--prefix", "p_"), ("convert", "--to", "iggy", "--types", "binary")])
def test_undecided_condition_follows_errors_option(
    command: tuple[str, ...], source: Path, run: Callable[..., Any]
) -> None:
    args = (command[0], str(source), "-c", "value", "-f", "kafka", *command[1:], *WHERE, "--json")
    stopped = run(*args)
    assert (stopped.code, "the value is not UTF-8" in stopped.err) == (1, True)
    assert "--errors column" in stopped.err
    nulls = run(*args, "--errors", "null")
    assert (nulls.code, len(nulls.out.splitlines())) == (1, 3)
    assert "1 row left out, as --where is null where a header or value cannot be read" in nulls.err
    column = run(*args, "--errors", "column")
    rows = [json.loads(line) for line in column.out.splitlines()]
    name = "p_error" if command[0] == "decode" else "error"
    errors = [[(error["code"], error["column"]) for error in row[name] or []] for row in rows]
    assert errors == [[], [("value_not_utf8", "where")], [("negative_count", None)], []]
    assert (column.code, "value_not_utf8 1" in column.err, "negative_count 1" in column.err) == (1, True, True)


def test_decoded_headers_get_error_column(source: Path, run: Callable[..., Any]) -> None:
    args = ("decode", str(source), "-c", "headers", "-f", "kafka", *WHERE, "--json", "--errors", "column")
    rows = [json.loads(line) for line in run(*args, "--error-column", "wrong").out.splitlines()]
    assert [row["wrong"] and row["wrong"][0]["column"] for row in rows] == [None, "where", None, None]


def test_scan_counts_rows_with_undecided_condition(source: Path, run: Callable[..., Any]) -> None:
    result = run("scan", str(source), *WHERE)
    assert "Scan of 3 rows" in result.out
    assert (result.code, "1 of 4 rows did not decode: value_not_utf8 1" in result.err) == (1, True)


def test_rows_before_error_are_printed_up_to_limit(source: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    args = ("read", str(source), "--headers", "q", "--columns", "headers")
    for limit, count in ((1, 1), (2, 2)):
        result = run(*args, "-n", str(limit), "--json")
        assert (result.code, len(result.out.splitlines())) == (0, count), result.err
        out = tmp_path / f"{limit}.parquet"
        assert run(*args, "-n", str(limit), "-o", str(out)).code == 0
        assert pq.read_metadata(out).num_rows == count
    stopped = run(*args, "--json")
    assert (stopped.code, len(stopped.out.splitlines())) == (1, 2)


def test_condition_tests_other_columns_but_not_binary_headers(run: Callable[..., Any], tmp_path: Path) -> None:
    encoded = [lh.encode([("a", text)], "kafka") for text in (b"0", b"1")]
    pq.write_table(pa.table({"id": [0, 1], "headers": pa.array(encoded, pa.binary())}), tmp_path / "t.parquet")
    decoded = run("decode", tmp_path / "t.parquet", "-c", "headers", "-f", "kafka", "--where", "id = 1", "--json")
    assert [json.loads(line)["id"] for line in decoded.out.splitlines()] == [1]
    on_headers = run("decode", tmp_path / "t.parquet", "-c", "headers", "-f", "kafka", "--where", "a = '1'")
    assert (on_headers.code, "column 'headers' is binary" in on_headers.err) == (2, True)


def test_condition_on_table_without_headers_is_usage_error(run: Callable[..., Any], tmp_path: Path) -> None:
    pq.write_table(pa.table({"b": [lh.encode([("q", b"1")], "kafka")]}), tmp_path / "b.parquet")
    for command in (("decode",), ("convert", "--to", "kafka"), ("scan",)):
        result = run(command[0], str(tmp_path / "b.parquet"), "-c", "b", "-f", "kafka", *command[1:], *WHERE)
        error = "--where needs a column of headers: there is no column 'q': there are b"
        assert (result.code, result.err) == (2, f"letterhead: {error}\n")
