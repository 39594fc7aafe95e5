"""What benchmarks compute from measured times, and the data that they measure with."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benches import instructions, plain
from benches.limits import corpus, goals, page
from benches.limits.report import Bar, Record
from benches.spark import pairs


def test_ratio_is_computed_within_each_pair():
    assert pairs.ratio([2.0, 30.0, 4.0], [1.0, 10.0, 4.0]).median == 2.0
    assert pairs.ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == (2.0, 2.0, 2.0)


def test_interval_of_fifteen_values_spans_fourth_or_fifth_ranks():
    # In a sample drawn from 15 values, the median is one of the first four with a probability of 2.54 %.
    intervals = [pairs.median([float(value) for value in range(1, 16)]) for _ in range(2)]
    median, low, high = intervals[0]
    assert (median, low in (4.0, 5.0), high in (11.0, 12.0)) == (8.0, True, True)
    assert intervals[0] == intervals[1]


@pytest.mark.parametrize(
    ("figure", "at_least", "verdict"),
    [
        (5.0, True, "reached"),
        (4.8, True, "reached, within 5 %"),
        (4.7, True, "missed"),
        (5.0, False, "reached"),
        (5.2, False, "reached, within 5 %"),
        (5.3, False, "missed"),
    ],
)
def test_goal_missed_by_over_a_twentieth_is_reported(figure: float, at_least: bool, verdict: str):
    assert Bar("", 5, figure, at_least).verdict == verdict


def test_memcpy_ratios_are_computed_within_round():
    def row(side: str, job: str, ns: list[float]) -> dict:
        return {"side": side, "corpus": "A", "job": job, "batch": 1, "buffers": "released", "ns": ns}

    record = Record({"results": [row("memcpy", "memcpy", [1, 4, 2]), row("letterhead", "decode", [3, 8, 6])]})
    assert record.to_memcpy("decode", "A", 1) == 3


def test_direct_reading_ratios_are_computed_within_round():
    def side(name: str, seconds: list[float]) -> dict:
        return {"job": "offset and amount to Arrow, one core", "side": name, "seconds": seconds}

    taken = [
        side("letterhead", [1, 1, 2]),
        side("letterhead, segments", [2, 2, 2]),
        side("confluent-kafka", [24, 30, 1]),
    ]
    assert [bar.figure for bar in goals.directly({"results": taken}).bars] == [24, 12]


def test_fitted_line_reports_largest_deviation():
    def point(at: int, ns: float) -> dict:
        return {"curve": "headers", "job": "decode", "at": at, "rows": 1, "headers": 1, "ns": [ns, ns, 1e9]}

    straight = {at: 10.0 + 2 * at for at in (1, 10, 100)}
    line = Record({"results": [point(at, ns) for at, ns in straight.items()]}).line("headers", "decode")
    assert (line.fixed, line.slope, line.deviation) == pytest.approx((10, 2, 0))
    bent = Record({"results": [point(at, ns * (1.5 if at == 10 else 1)) for at, ns in straight.items()]})
    assert bent.line("headers", "decode").at == 10


def test_corpora_match_their_description(tmp_path: Path):
    corpora = corpus.write(tmp_path, quick=True)["corpora"]
    assert list(corpora) == ["A", "B", "C"]
    for known in corpora.values():
        blocks = corpus.read_blocks(tmp_path / known["file"], known["rows"]).to_pylist()
        rows = [plain.decode_block(block) for block in blocks]
        assert [plain.encode_block(row) for row in rows] == blocks
        for first, holds in known["holds"].items():
            headers = [header for row in rows[: int(first)] for header in row]
            values = [value for _, value in headers if value is not None]
            assert holds["headers"] == len(headers)
            assert holds["key_bytes"] == sum(len(key.encode()) for key, _ in headers)
            assert holds["value_bytes"] == sum(map(len, values))
            assert holds["nulls"] == len(headers) - len(values)
            columns = [[row.get(key) for row in map(dict, rows[: int(first)])] for key, _ in known["select"]]
            counts = [sum(value is not None for value in column) for column in columns]
            assert [count for count, _ in holds["selected"]] == counts


@pytest.mark.parametrize("arguments", [[], ["--record"]])
def test_missing_valgrind_fails_instruction_comparison(monkeypatch: pytest.MonkeyPatch, arguments: list[str]):
    monkeypatch.setenv("PATH", "")
    assert instructions.main(arguments) == 1


@pytest.mark.parametrize(
    ("now", "compiler", "verdict"),
    [(103.0, "a", ""), (103.1, "a", instructions.HIGHER), (124.0, "b", ""), (97.0, "a", "lower: record it")],
)
def test_count_may_grow_by_three_percent(now: float, compiler: str, verdict: str):
    assert instructions.verdict(now, 100.0, instructions.allowed({"compiler": "a"}, compiler)) == verdict


def test_modules_imported_by_benchmarks_exist():
    # Some are imported only where a long benchmark runs.
    root = Path(__file__).parents[2]
    missing = [
        (path.name, node.module)
        for path in (root / "benches").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("benches", "tests")
        if not any((root / f"{node.module.replace('.', '/')}{end}").exists() for end in ("", ".py"))
    ]
    assert missing == []


@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: path.name)
def test_page_figures_match_record(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert page.filled(text) == text
