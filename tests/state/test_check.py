"""`letterhead state check`: its rules against the results of Kafka Streams, and what it tries on copies of real stores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.cli import main
from letterhead.cli.state.check import CONVERTED, DAMAGED, KEPT, REFUSED, VERSIONS, predict_outcome
from letterhead.state import ChangelogRecord
from letterhead.state.reading.store_types import DetectedType
from letterhead.state.storage.keys import window_key
from tests.state import changelogs, traces
from tests.state.operations import Operations, config_of
from tests.state.test_java import OurStore

ROOT = Path(__file__).resolve().parents[2]
RESULTS: dict[str, Any] = json.loads((ROOT / "docs" / "store-versions.json").read_text(encoding="utf-8"))
SAMPLE = ROOT / "tests" / "samples" / "streams-state-0_0"
CHANGELOG = ROOT / "tests" / "samples" / "orders-app-latest-changelog-0"
RESULT_OF = {KEPT: {"yes"}, CONVERTED: {"yes"}, DAMAGED: {"other rows"}, REFUSED: {"ProcessorStateException"}}
KAFKAS = ("4.3.1", "4.4.0", "4.4.0, transactional")


@pytest.mark.parametrize(
    ("store_type", "stored", "opened"),
    [(name, stored, opened) for name, layouts in RESULTS.items() for stored in layouts for opened in layouts[stored]],
)
def test_predicted_outcomes_match_kafka_streams(store_type: str, stored: str, opened: str) -> None:
    assert {version.rpartition(".")[0] for version in KAFKAS[:2]} == {*VERSIONS}
    results = RESULTS[store_type][stored][opened]
    done = {results[writer][reader] for writer in KAFKAS for reader in KAFKAS}
    expected = predict_outcome(DetectedType(store_type, stored), opened)
    assert done == RESULT_OF[expected]
    assert (expected == KEPT) is (stored == opened)


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[dict[str, Any]]]:
    status = main(["state", "check", *map(str, arguments), "--json"])
    return status, json.loads(capsys.readouterr().out)


def summary(outcomes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        tuple(outcome[name] for name in ("store", "opened_as", "outcome", "tried", "agrees")) for outcome in outcomes
    ]


def test_stores_are_kept_by_next_version(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    task = shutil.copytree(SAMPLE, tmp_path / "orders-app" / "0_0")
    before = traces.databases(task)
    status, outcomes = check(capsys, task, "--to", "4.4", "--try")
    done = "opened; no row differs"
    assert (status, summary(outcomes)) == (
        0,
        [(name, "headers", "kept", done, True) for name in ("hourly", "latest", "sessions")],
    )
    assert traces.databases(task) == before


def test_downgrade_from_headers_needs_changelog(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    task = shutil.copytree(SAMPLE, tmp_path / "orders-app" / "0_0")
    arguments = (task, "-s", "latest", "--to", "4.3", "--layout", "timestamped", "--try")
    status, outcomes = check(capsys, *arguments)
    tried = "refused; pass --changelog or --bootstrap-server to restore it"
    assert (status, summary(outcomes)) == (0, [("latest", "timestamped", "rebuilt", tried, True)])
    status, outcomes = check(capsys, *arguments, "--changelog", CHANGELOG)
    tried = "10,000 records restored; no row differs"
    assert (status, summary(outcomes)) == (0, [("latest", "timestamped", "rebuilt", tried, True)])
    assert outcomes[0]["changelog"] == "orders-app-latest-changelog-0"
    assert any("ignores the headers of old values" in note for note in outcomes[0]["notes"])


def test_changelog_missing_rows_is_detected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    task = shutil.copytree(SAMPLE, tmp_path / "orders-app" / "0_0")
    with lh.read.segments(CHANGELOG, start=5000) as reader:
        import pyarrow.parquet as pq

        pq.write_table(reader.read_all(), tmp_path / "changelog.parquet")
    arguments = ("-s", "latest", "--to", "4.3", "--layout", "timestamped", "--try")
    status, outcomes = check(capsys, task, *arguments, "--changelog", tmp_path / "changelog.parquet")
    assert (status, outcomes[0]["outcome"], outcomes[0]["agrees"]) == (1, "rebuilt", False)
    assert "rows differ" in outcomes[0]["tried"]


def restored(directory: Path, store_type: Any, layout: Any) -> Path:
    records = [
        ChangelogRecord(
            window_key(b"k", 1000 * n) if "window" in store_type else b"k%d" % n, b"%d" % n, 1000 * n, lh.Headers()
        )
        for n in range(5)
    ]
    options = {} if store_type == "key-value" else {"retention": 1 << 40, "segment_interval": 1 << 40}
    task = directory / "app" / "0_0"
    lh.state.restore(changelogs.table(records), task, "store", store_type=store_type, layout=layout, **options)
    return task


@pytest.mark.parametrize(
    ("store_type", "stored"), [("key-value", "plain"), ("key-value", "timestamped"), ("window", "timestamped")]
)
def test_rows_of_older_layouts_are_converted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, store_type: str, stored: str
) -> None:
    task = restored(tmp_path, store_type, stored)
    before = traces.databases(task)
    arguments = ("--store-type", store_type, "--to", "4.4", "--layout", "headers", "--try")
    status, outcomes = check(capsys, task, *arguments)
    tried = "5 rows converted; no row differs"
    assert (status, summary(outcomes)) == (0, [("store", "headers", "converted", tried, True)])
    assert traces.databases(task) == before


def test_rejected_store_without_changelog_is_lost(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    task = tmp_path / "app" / "0_0"
    OurStore(task, config_of("kv", logging=False)).close()
    status, outcomes = check(capsys, task, "--to", "4.4", "--layout", "plain", "--try")
    assert (status, outcomes[0]["outcome"]) == (1, "lost")


def test_wrong_conversion_by_kafka_streams_counts_as_damage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    task = tmp_path / "app" / "0_0"
    config = config_of("time-ordered-session", "plain")
    store = OurStore(task, config)
    for record, ops in Operations("sessions").writes(config, 2, 5):
        store.step(record, ops)
    store.close()
    status, outcomes = check(
        capsys, task, "--to", "4.4", "--layout", "headers", "--store-type", "time-ordered-session", "--try"
    )
    assert (status, outcomes[0]["outcome"]) == (1, "damaged")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "4.2"], "--to is one of 4.3, 4.4"),
        (["--to", "4.4", "--from", "5"], "--from is one of 4.3, 4.4"),
        (["--to", "4.4", "--layout", "json"], "--layout is one of plain, timestamped, headers"),
        (["--to", "4.4", "--changelog", str(CHANGELOG)], "--changelog is of one store, and there are 3"),
        (["--to", "4.4", "--changelog", "x", "--bootstrap-server", "y"], "exclude each other"),
    ],
)
def test_unsuitable_options_are_rejected(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["state", "check", str(SAMPLE), *arguments]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
