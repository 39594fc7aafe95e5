"""Options of the command line at their bounds: limits that are reached exactly, and options that exclude each other."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from tests.cli.test_cli_state import WITH_HEADERS, write_raw

pytest.importorskip("rocksdict")

from letterhead.state.rocksdb import RocksDBKeyValueStore, RocksDBWindowStore

SAMPLES = Path(__file__).parents[1] / "samples"
LOG = str(SAMPLES / "orders-0")
STATE = str(SAMPLES / "streams-state-0_0")
DAY = 86_400_000


@pytest.mark.parametrize(("limit", "more"), [(3, True), (4, False), (5, False)])
def test_read_reports_more_records_only_if_they_exist(limit: int, more: bool, run: Any) -> None:
    result = run("read", LOG, "--end", "4", "-n", str(limit))
    count = min(limit, 4)
    assert result.lines[-1] == f"{count} records" + (", and there are more" if more else "")


@pytest.mark.parametrize("others", [["--from-key", "a"], ["--to-key", "z"], ["--from-key", "a", "--to-key", "z"]])
def test_read_rejects_prefix_with_bounds(others: list[str], run: Any) -> None:
    result = run("read", STATE, "--store", "latest", "--prefix", "k", *others)
    assert (result.code, "exclude each other" in result.err) == (2, True)


@pytest.mark.parametrize(
    "others", [["--json", "-o", "x"], ["--hex", "00", "--base64", "AA=="], ["--explain", "--json"]]
)
def test_contradictory_options_are_rejected(others: list[str], run: Any, tmp_path: Path) -> None:
    command = ["scan", str(SAMPLES / "orders-0.parquet")] if "--explain" in others else ["decode", "-f", "kafka"]
    if "-o" in others:
        command = ["read", LOG]
        others = ["--json", "-o", str(tmp_path / "x.parquet")]
    result = run(*command, *others)
    assert (result.code, "exclude each other" in result.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def message(payload: bytes) -> bytes:
    return lh.encode(lh.Message(headers=[], timestamp=1, payload=payload), "streams-timestamped")


def test_get_of_duplicates_excludes_windows_of_longer_keys(tmp_path: Path, run: Any) -> None:
    store = RocksDBWindowStore("store", retention=DAY, window_size=1000, retain_duplicates=True)
    store.open(tmp_path / "0_0")
    # The stored key of the longer one lies between two windows of the other, which differ in their numbers.
    start = 5
    store.put(b"k", message(b"1"), start)
    store.put(b"k", message(b"2"), start)
    store.put(b"k" + struct.pack(">qi", start, 1)[:4], message(b"other"), start)
    store.put(b"k" + struct.pack(">q", start), message(b"other"), start)
    store.close()
    result = run("state", "get", tmp_path, "k", "--start", str(start), "--json")
    decoder, rows, text = json.JSONDecoder(), [], result.out.strip()
    while text:
        row, end = decoder.raw_decode(text)
        rows.append(row["value"])
        text = text[end:].strip()
    assert rows == ["1", "2"]


@pytest.mark.parametrize(("size", "errors"), [(7, 1), (8, 0), (9, 1)])
def test_verify_checks_offset_size(size: int, errors: int, tmp_path: Path, run: Any) -> None:
    store = RocksDBKeyValueStore("store")
    store.open(tmp_path / "0_0")
    store.put(b"k", message(b"v"))
    store.close()
    write_raw(tmp_path / "0_0" / "rocksdb" / "store", "offsets", (b"topic-0", bytes(size)))
    [document] = json.loads(run("state", "verify", tmp_path, "--json").out)
    assert [error["code"] for error in document["errors"]] == ["wrong_size"] * errors


@pytest.mark.parametrize("place", ["start", "before end", "end", "before start"])
def test_verify_checks_row_time_against_segment(place: str, tmp_path: Path, run: Any) -> None:
    store = RocksDBWindowStore("store", retention=10 * DAY, segment_interval=DAY, window_size=1000)
    store.open(tmp_path / "0_0")
    for number in (1, 2):
        store.put(b"k", message(b"v"), number * DAY)
    store.close()
    segments = {int(segment.name.rpartition(".")[2]): segment for segment in (tmp_path / "0_0" / "store").iterdir()}
    begin = min(segments)
    first = segments[begin]
    time = {"start": begin, "before end": begin + DAY - 1, "end": begin + DAY, "before start": begin - 1}[place]
    write_raw(first, WITH_HEADERS, (b"x" + struct.pack(">qi", time, 0), message(b"v")))
    [document] = json.loads(run("state", "verify", tmp_path, "--json").out)
    expected = [f"the time {time} of its key is not in segment {first.name}"] * (place in ("end", "before start"))
    assert [error["reason"] for error in document["errors"]] == expected
