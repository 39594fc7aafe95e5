"""The page of benchmarks says what the records say, and the records say it of corpora that hold what they claim."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benches import plain
from benches.limits import corpus, page, plots
from benches.limits.report import Bar, Record

AGAIN = "write them anew: python -m benches.limits.page"


def test_figures_of_the_page_are_those_of_the_records():
    text = page.PAGE.read_text()
    assert page.filled(text) == text, AGAIN


def test_every_section_stands_in_the_page_once():
    named = [found["name"] for found in page.SECTION.finditer(page.PAGE.read_text())]
    assert sorted(named) == sorted(page.SECTIONS)


def test_plots_are_drawn_from_the_record():
    there = {path.name: path.read_text() for path in page.PLOTS.glob("*.svg")}
    assert there == page.drawn_plots(), AGAIN
    for name, drawn in there.items():
        ElementTree.fromstring(drawn)
        assert f"(plots/{name})" in page.PAGE.read_text()


def test_a_changed_figure_is_noticed():
    text = page.PAGE.read_text()
    (rows,) = re.findall(r"^\| A \| ([\d,]+) ", text, re.MULTILINE)
    forged = text.replace(f"| A | {rows} ", "| A | 12,345,678 ")
    assert forged != text
    assert page.filled(forged) == text


def test_missed_goals_are_named_before_any_figure_that_is_good():
    text = page.PAGE.read_text()
    sections = {found["name"]: found[0] for found in page.SECTION.finditer(text)}
    missed = [bar for bar in Record.read().bars() if bar.verdict == "missed"]
    assert sections["bars"].count("| **missed** |") == len(missed)
    assert all(f"{bar.what}: " in sections["losses"] for bar in missed)
    assert next(iter(sections)) == "losses"


@pytest.mark.parametrize(
    ("figure", "at_least", "verdict"),
    [
        (5.0, True, "reached"),
        (4.6, True, "reached, within 10 %"),
        (4.4, True, "missed"),
        (5.0, False, "reached"),
        (5.4, False, "reached, within 10 %"),
        (5.6, False, "missed"),
    ],
)
def test_a_goal_is_missed_when_more_than_a_tenth_is_missing(figure: float, at_least: bool, verdict: str):
    assert Bar("", 5, figure, at_least).verdict == verdict


def test_a_line_names_the_point_that_is_farthest_from_it():
    def point(at: int, ns: float) -> dict:
        return {"curve": "headers", "job": "decode", "at": at, "rows": 1, "headers": 1, "ns": [ns, ns, 1e9]}

    straight = {at: 10.0 + 2 * at for at in (1, 10, 100)}
    line = Record({"results": [point(at, ns) for at, ns in straight.items()]}).line("headers", "decode")
    assert (line.fixed, line.slope, line.deviation) == pytest.approx((10, 2, 0))

    bent = Record({"results": [point(at, ns * (1.5 if at == 10 else 1)) for at, ns in straight.items()]})
    line = bent.line("headers", "decode")
    assert line.at == 10
    assert 0.1 < line.deviation < 0.5


def test_ratios_to_memcpy_are_those_within_a_round():
    def row(side: str, job: str, ns: list[float]) -> dict:
        return {"side": side, "corpus": "A", "job": job, "batch": 1, "buffers": "released", "ns": ns}

    record = Record({"results": [row("memcpy", "memcpy", [1, 4, 2]), row("letterhead", "decode", [3, 8, 6])]})
    assert record.to_memcpy("decode", "A", 1) == 3


def test_numbers_of_an_axis_end_where_the_largest_fits():
    axis = plots.Axis([1, 7.3], 0, 100, log=False)
    assert axis.ticks() == pytest.approx([0, 1.6, 3.2, 4.8, 6.4, 8])
    assert axis(8) == 100
    assert plots.Axis([1, 1000], 0, 90, log=True)(10) == pytest.approx(30)


def test_corpora_hold_what_goes_with_them(tmp_path: Path):
    corpora = corpus.write(tmp_path, quick=True)["corpora"]
    assert list(corpora) == ["A", "B", "C"]
    for known in corpora.values():
        cells = corpus.read_blocks(tmp_path / known["file"], known["rows"]).to_pylist()
        rows = [plain.decode_block(cell) for cell in cells]
        assert [plain.encode_block(row) for row in rows] == cells
        for first, holds in known["holds"].items():
            headers = [header for row in rows[: int(first)] for header in row]
            values = [value for _, value in headers if value is not None]
            assert holds["headers"] == len(headers)
            assert holds["key_bytes"] == sum(len(key.encode()) for key, _ in headers)
            assert holds["value_bytes"] == sum(map(len, values))
            assert holds["nulls"] == len(headers) - len(values)
            found = [[row.get(key) for row in map(dict, rows[: int(first)])] for key, _ in known["select"]]
            counts = [sum(value is not None for value in column) for column in found]
            assert [count for count, _ in holds["selected"]] == counts
    regular, hard = (corpus.read_blocks(tmp_path / corpora[name]["file"], 2_000) for name in "BC")
    assert {len(cell) for cell in regular.to_pylist()} == {1 + 5 * 2 + 33 + 71}
    headers = [header for cell in hard.to_pylist() for header in plain.decode_block(cell)]
    assert {len(plain.decode_block(cell)) for cell in hard.to_pylist()} == set(range(11))
    assert {len(key.encode()) for key, _ in headers} == set(range(41))
    assert sum(not key.isascii() for key, _ in headers) / len(headers) == pytest.approx(0.10, abs=0.01)
    assert sum(value is None for _, value in headers) / len(headers) == pytest.approx(0.05, abs=0.01)
