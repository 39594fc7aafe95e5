"""The page of benchmarks says what the records say, and the records say it of corpora that hold what they claim."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benches import plain, run, typed
from benches.limits import corpus, goals, page, report
from benches.limits.report import Bar, Record

AGAIN = "write them anew: python -m benches.limits.page"


def test_figures_of_the_page_are_those_of_the_records():
    text = page.PAGE.read_text()
    assert page.filled(text) == text, AGAIN


def test_every_section_stands_in_the_page_once():
    named = [found["name"] for found in page.SECTION.finditer(page.PAGE.read_text())]
    assert sorted(named) == sorted(page.SECTIONS)


def test_every_plot_is_drawn_and_linked_from_the_page():
    drawn = page.drawn_plots()
    assert {path.name for path in page.PLOTS.glob("*.svg")} == set(drawn)
    for name, plot in drawn.items():
        ElementTree.fromstring(plot)
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
    assert all(said in sections["losses"] for said in page.named(missed))
    assert next(iter(sections)) == "losses"


def test_a_missed_goal_is_named_with_its_figure_once_for_all_numbers_of_rows():
    bars = [
        Bar("decode, Java to ours, 16,000 rows", 5, 4, True),
        Bar("decode, Java to ours, 64,000 rows", 5, 4.45, True),
        Bar("decode, fresh memory, to batches of 64,000", 1.6, 2, False),
        Bar("validate", 5, 4.6, True),
        Bar("encode", 5, 6, True),
    ]
    space = "\N{NO-BREAK SPACE}"
    assert page.of_section(goals.Section("One core", bars)) == (
        f"**One core**: 3 of 5 goals are **missed**: decode, Java to ours (≥{space}5): 4.00 with 16,000 rows, 4.45 with "
        f"64,000 rows; decode, fresh memory, to batches of 64,000 (≤{space}1.6): 2.00. 2 are reached, 1 of them only within "
        "10 %."
    )


def test_what_any_table_calls_missed_is_among_the_losses():
    text = page.PAGE.read_text()
    sections = {found["name"]: found[0] for found in page.SECTION.finditer(text)}
    in_tables = sum(found.count("**missed**") for name, found in sections.items() if name != "losses")
    listed = [int(number) for number in re.findall(r"(\d+) of \d+ goals (?:is|are) \*\*missed\*\*", sections["losses"])]
    assert sum(listed) == in_tables > 0


def test_whoever_is_faster_in_spark_is_among_the_losses():
    found = page.other("spark.json")["results"]
    faster = [row for row in found if row["ratio"] < 1 and row["side"] not in ("letterhead", "kernel taken out")]
    queries = [row for row in page.other("from-your-query.json")["results"] if row["ratio"] < 1]
    losses = page.losses()
    for row in faster:
        assert f"{row['side']}, {row['job']}, {row['source']}: {page.digits(row['ratio'])} of our time" in losses
    for row in queries:
        assert f"{row['title']} (which gets {row['differ']:,} rows of 10,000 wrong)" in losses


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


SOURCE, MADE = goals.ONE_MESSAGE_SOURCE, "values made before (iggy), one call each"


def row(job: str, source: str, side: str, ns: float, ratio: float | None = None) -> run.Row:
    return run.Row(job, source, side, ns, 4_000, "objects", "", ratio)


def sections_of(rows: list[run.Row]) -> dict[str, goals.Section]:
    return {section.name: section for section in goals.sections(Record.read(), rows, lambda name: None)}


def test_sections_that_were_not_measured_say_so():
    found = sections_of([])
    unmeasured = ["Iggy's crates", "One message at a time", "State stores", "Spark", "Reading directly"]
    assert list(found) == ["One core", *unmeasured]
    assert [name for name, section in found.items() if not section.is_measured] == unmeasured
    assert page.of_section(found["Spark"]) == "**Spark**: not measured."


def test_a_crate_is_held_to_the_goal_of_its_corpus_and_with_our_allocator_to_that_of_any():
    source = typed.source("iggy-2023")
    rows = [
        row("decode", source, "letterhead", 10),
        row("decode", source, "crate iggy 0.6.210", 50),
        row("decode", source, "crate iggy 0.6.210, mimalloc", 29),
        row("validate", source, "letterhead", 10),
        row("validate", source, "crate iggy 0.6.210", 9),
    ]
    found = sections_of(rows)["Iggy's crates"]
    assert [(bar.goal, bar.figure, bar.verdict) for bar in found.bars] == [
        (6, 5, "missed"),
        (3, pytest.approx(2.9), "reached, within 10 %"),
    ]
    assert found.faster == [("crate iggy 0.6.210, validate, iggy-2023", 0.9)]


def test_one_message_is_compared_with_the_fastest_plain_python_and_with_iggys_package():
    rows = [
        row("decode one message", SOURCE, "letterhead", 100),
        row("decode one message", SOURCE, "plain Python", 300),
        row("decode one message", SOURCE, "plain Python, unrolled", 250),
        row("decode one message", SOURCE, "tests/reference", 2_000),
        row("encode one message", MADE, "letterhead", 200),
        row("encode one message", MADE, "letterhead, from lh.Headers", 100),
        row("encode one message", MADE, "apache-iggy 0.9.0 SendMessage", 150),
        row("encode one message", MADE, "apache-iggy 0.9.0 SendMessage, no headers", 50),
        row("encode one message", MADE, "letterhead, a column at once", 10),
    ]
    found = sections_of(rows)["One message at a time"]
    assert [(bar.goal, bar.figure, bar.verdict) for bar in found.bars] == [
        (3, 2.5, "missed"),
        (3, 0.75, "missed"),
        (3, 15, "reached"),
    ]
    assert found.faster == [(f"apache-iggy 0.9.0 SendMessage, encode one message, {MADE}", 0.75)]
    assert page.of_section(found).startswith("**One message at a time**: 2 of 3 goals are **missed**: ")
    assert page.of_section(found).endswith("0.750 of our time.")


def test_a_store_is_held_to_three_times_what_is_below_it():
    rows = [
        row("put a row", "rows", "letterhead", 8_000),
        row("put a row", "rows", "rocksdict 0.3.29 alone, the stored bytes", 2_000, ratio=0.2),
        row("put a row", "rows", "Kafka Streams' Java store, metrics at INFO", 4_000),
    ]
    found = sections_of(rows)["State stores"]
    assert [(bar.goal, bar.figure, bar.verdict) for bar in found.bars] == [(3, 5, "missed")]
    assert found.faster == [("Kafka Streams' Java store, metrics at INFO, put a row, rows", 0.5)]
    assert page.goal_of(found.bars[0]) == "ours to it 5.00, ≤\N{NO-BREAK SPACE}3: **missed**"


def test_every_round_of_reading_directly_is_a_ratio():
    def side(name: str, seconds: list[float]) -> dict:
        return {"job": "offset and amount to Arrow, one core", "side": name, "seconds": seconds}

    taken = [
        side("letterhead", [1, 1, 2]),
        side("letterhead, segments", [2, 2, 2]),
        side("confluent-kafka", [24, 30, 1]),
    ]
    found = goals.directly({"results": taken})
    assert [(bar.figure, bar.verdict) for bar in found.bars] == [(24, "reached, within 10 %"), (12, "missed")]


def test_medians_are_kept_with_the_days_and_the_machine_that_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    result = {"job": "decode", "corpus": "iggy", "side": "crate iggy_common", "ns_per_header": [70.0, 90.0, 80.0]}
    crate = {"allocator": "mimalloc", "results": [{**result, "reads": 1, "messages": 1}]}
    path = tmp_path / "iggy-mimalloc.json"
    path.write_text(json.dumps(crate))
    os.utime(path, (0, 86_400))
    monkeypatch.setattr(run, "RECORD", tmp_path)
    monkeypatch.setattr(run, "ROWS", tmp_path / "rows.json")
    run.main()
    assert "crate iggy_common, mimalloc" in capsys.readouterr().out
    kept = page.other("rows.json")
    assert kept["taken"] == ["1970-01-02"]
    assert {"processor", "cores", "system", "python", "rust", "commit", "changed"} < kept["machine"].keys()
    (median,) = page.kept_rows()
    assert (median.side, median.ns) == ("crate iggy_common, mimalloc", 80)

    ours = {**kept["rows"][0], "side": "letterhead", "ns": 10.0}
    (tmp_path / "rows.json").write_text(json.dumps({**kept, "rows": [*kept["rows"], ours]}))
    said = page.crates()
    assert said.startswith("Taken 1970-01-02 on ")
    assert "| decode, iggy | 10.0 |  |  |  | 80.0 | 8.00 | ≥\N{NO-BREAK SPACE}3: reached |" in said


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


@pytest.fixture
def limits_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict], Record]:
    """Give the record with what a machine with AVX-512 adds: the core, compiled for it, in 5 ns a header."""

    def use(machine: dict) -> Record:
        made = json.loads(report.RECORD.read_text())
        rest = [row for row in made["results"] if row["side"] != report.WIDE]
        wide = [
            {**found, "side": report.WIDE, "ns": [5.0]}
            for found in rest
            if found["side"] == "letterhead" and "curve" not in found and found["buffers"] == "released"
            if found["job"] in ("decode", "encode")
            and found["corpus"] in "AB"
            and found["batch"] in report.JAVA_BATCHES
        ]
        record = Record({
            **made, "machine": {**made["machine"], **machine}, "results": [*rest, *(wide if machine["wide"] else [])],
        })  # fmt: skip
        monkeypatch.setattr(page, "limits", lambda: record)
        return record

    return use


def test_bars_with_avx512_are_held_by_the_core_compiled_for_it(limits_with: Callable[[dict], Record]):
    record = limits_with({"wide": "x86-64-v4"})
    wide = [bar for bar in record.bars() if "compiled for AVX-512" in bar.what]
    assert [bar.goal for bar in wide] == [6, 6, 6.5, 6.5, 6.3, 6.3]
    java = record.ns("encode", "A", 64_000, "garbage", report.JAVA)
    assert (wide[-1].figure, wide[-1].what) == (
        java / 5,
        "encode A, Kafka's Java to ours compiled for AVX-512, 64,000 rows",
    )
    assert f"| 5.00 | {page.digits(java / 5)} |" in page.java()
    ours = [
        record.ns(job, corpus, batch) for job in ("decode", "encode") for corpus in "AB" for batch in (16_000, 64_000)
    ]
    assert f"take {5 / max(ours):.2f} to {5 / min(ours):.2f} times as long" in page.java()
    assert "a second time for AVX-512 (`x86-64-v4`)" in page.machine()


def test_without_avx512_the_page_says_so_and_has_no_bars_for_it(limits_with: Callable[[dict], Record]):
    record = limits_with({"wide": None})
    assert not any("AVX-512" in bar.what for bar in record.bars())
    assert "AVX-512" not in page.java()
    assert "AVX-512, which this one does not have" in page.machine()


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
