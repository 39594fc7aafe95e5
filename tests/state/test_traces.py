"""Every trace of Kafka Streams' own stores, replayed on ours."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.state import PUT_NOT_VALID, ChangelogRecord, TopologyTestDriver
from letterhead.state.storage.versioned_rows import LATEST, Latest, SegmentRow, Version
from tests.state import deviations
from tests.state.traces import VECTORS, Families, headers_of, replay, shown, shown_headers
from tests.state.traces import traces as all_traces


@pytest.mark.parametrize("trace", all_traces())
def test_trace_replays_like_java(trace: str, tmp_path: Path) -> None:
    compared = replay(trace, tmp_path)
    steps = [line for line in all_traces()[trace] if line["type"] == "step"]
    refused = [line for line in all_traces()[trace] if line["type"] == "open_error"]
    assert compared["results"] + compared["quirks"] == sum(len(line["ops"]) for line in steps) + len(refused)
    assert compared["databases"] == sum(
        len(line["databases"]) for line in all_traces()[trace] if line["type"] == "close"
    )


def test_operations_in_traces_are_complete() -> None:
    ops = Counter(op["op"] for lines in all_traces().values() for line in lines for op in line.get("ops", ()))
    marked = Counter(
        op["java_quirk"]
        for lines in all_traces().values()
        for line in lines
        for op in line.get("ops", ())
        if "java_quirk" in op
    )
    assert len(all_traces()) == 64
    assert sum(ops.values()) == 2427
    assert set(marked) == set(deviations.QUIRKS)


def test_every_deviation_belongs_to_trace() -> None:
    assert set(deviations.DEFECTS) <= set(all_traces())


# The versioned trace again, with headers at every version.


Given = dict[tuple[str, str], list[dict[str, Any]]]


def with_headers_of_their_own(trace: str, source: Given) -> list[dict[str, Any]]:
    """The lines of a trace, with headers at each put, and in the results where these come back; notes them in `given`."""
    lines: list[dict[str, Any]] = json.loads(json.dumps(all_traces()[trace]))
    count = 0
    for line in lines:
        if line["type"] == "open":
            line["config"]["supplier"] = "rocksdb-versioned-headers"
        if line["type"] == "close":
            line["databases"] = [in_their_own_family(database) for database in line["databases"]]
        if line["type"] != "step":
            continue
        # Every write logs one record.
        logged = iter(line["changelog"])
        for op in line["ops"]:
            if op["op"] in ("put", "delete"):
                record = next(logged)
                record["headers"] = line["record"]["headers"]
                if op.get("value") is not None:
                    count += 1
                    op["headers"] = [{"key": "n", "value": f"{count:04x}"}, {"key": "null", "value": None}]
                    source[op["key"], op["timestamp"]] = record["headers"] = op["headers"]
            if isinstance(op.get("result"), dict):
                op["result"]["headers"] = source[op["key"], op["result"]["timestamp"]]
    return lines


def in_their_own_family(database: dict[str, Any]) -> dict[str, Any]:
    families = {family["name"]: family["entries"] for family in database["column_families"]}
    families["versionedKeyValueWithHeaders"], families["default"] = families["default"], []
    return {**database, "column_families": [{"name": name, "entries": rows} for name, rows in families.items()]}


class VersionsWithHeaders(deviations.HistoryAfterReopening):
    """The expected results for these lines: every version has its headers and, once another follows it, its end."""

    def __init__(self, trace: str, changelog: list[ChangelogRecord]) -> None:
        super().__init__(trace, changelog)
        self.headers: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.starts: dict[str, set[int]] = {}
        for record in changelog:
            self.headers[record.key.hex(), str(record.timestamp)] = shown_headers(record.headers)
            self.starts.setdefault(record.key.hex(), set()).add(record.timestamp)

    def result(self, phase: int, op: dict[str, Any], java: Any) -> Any:
        if "headers" in op:
            self.headers[op["key"], op["timestamp"]] = op["headers"]
        right = super().result(phase, op, java)
        starts = self.starts.setdefault(op["key"], set())
        if isinstance(right, dict):
            end = min((start for start in starts if start > int(right["timestamp"])), default=None)
            right |= {"headers": self.headers[op["key"], right["timestamp"]], "valid_to": end and str(end)}
        if op["op"] in ("put", "delete") and java != str(PUT_NOT_VALID):
            starts.add(int(op["timestamp"]))
        return right

    def family(
        self, phase: int, name: str, entries: list[tuple[str, str]], families: Families
    ) -> list[tuple[str, str]]:
        if name == "offsets":
            return sorted([*entries, (b"letterhead-format".hex(), f"{1:016x}")])
        if name != "versionedKeyValueWithHeaders":
            return entries
        return [(key, self._row(bytes.fromhex(key), bytes.fromhex(row)).hex()) for key, row in entries]

    def _row(self, key: bytes, row: bytes) -> bytes:
        if key.startswith(LATEST):
            latest = Latest.read(row)
            return latest._replace(value=self._value(key, latest.timestamp, latest.value)).write()
        old = SegmentRow.read(row)
        versions = [Version(at, None if value is None else self._value(key, at, value)) for at, value in old.versions]
        return SegmentRow(old.next, versions).write()

    def _value(self, key: bytes, at: int, value: bytes) -> bytes:
        headers = headers_of(self.headers[key[8:].hex(), str(at)])
        data = lh.encode(lh.Message(headers=headers, payload=value), "streams")
        assert data is not None
        return data


def test_versions_replay_with_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = "versioned-rocksdb"
    monkeypatch.setitem(deviations.DEFECTS, trace, VersionsWithHeaders)
    lines = with_headers_of_their_own(trace, {})
    compared = replay(trace, tmp_path, lines=lines)
    assert compared["results"] == sum(len(line["ops"]) for line in lines if line["type"] == "step")
    assert compared["databases"] == 2


def test_versions_with_headers_restore_from_changelog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = "versioned-rocksdb-restored"
    source: Given = {}
    original = with_headers_of_their_own("versioned-rocksdb", source)
    monkeypatch.setitem(deviations.DEFECTS, trace, VersionsWithHeaders)
    monkeypatch.setitem(all_traces(), "with-headers", original)
    lines = with_headers_of_their_own(trace, source)
    for line in lines:
        if line["type"] == "restore":
            line["changelog_of"] = "with-headers"
    compared = replay(trace, tmp_path, lines=lines)
    assert compared["results"] == sum(len(line["ops"]) for line in lines if line["type"] == "step")
    assert (compared["restored"], compared["databases"]) == (66, 1)


# What the test driver gives for a store.


def accessors() -> list[dict[str, Any]]:
    lines_read = []
    for family in ("queries", "queries_window", "queries_session"):
        with (VECTORS / f"{family}.jsonl").open(encoding="ascii") as lines:
            lines_read += [line for line in map(json.loads, lines) if line.get("accessors")]
    return lines_read


@pytest.mark.parametrize("line", accessors(), ids=lambda line: line["trace"])
def test_accessors_match_test_driver(line: dict[str, Any], tmp_path: Path) -> None:
    checked = 0

    def check(driver: TopologyTestDriver) -> None:
        nonlocal checked
        for accessor, expected in line.items():
            if accessor in ("trace", "accessors"):
                continue
            name, _, key = accessor.removesuffix(")").partition(".get(")
            get = getattr(driver, snake(name))
            if isinstance(expected, bool):
                assert (get("store") is not None) is expected, accessor
            elif isinstance(expected, dict) and "exception" in expected:
                with pytest.raises(deviations.ERRORS[expected["exception"]]) as raised:
                    get("store")
                assert str(raised.value) == re.sub(
                    "`([a-zA-Z]+)", lambda java: "`" + snake(java[1]), expected["message"]
                )
            else:
                assert shown(get("store").get(bytes.fromhex(key))) == expected, accessor
            checked += 1

    replay(line["trace"], tmp_path, before_close=check)
    assert checked == len(line) - 2


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def test_accessors_in_all_lines_are_complete() -> None:
    assert len(accessors()) == 8
