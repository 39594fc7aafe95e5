"""`letterhead state check --try` with the changelogs of a broker."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.cli import main
from tests.kafka.test_restored_store import RETENTION, produce

pytestmark = pytest.mark.broker


def changelog_of(address: str, name: str, store_type: str) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    changelog = f"{name}-store-changelog"
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(changelog, 1, 1)])[changelog].result(30)
    produce(address, changelog, store_type, 0, 200)
    return changelog


def stored(address: str, directory: Path, name: str, store_type: Any) -> Path:
    """Fill a changelog, and make a store with headers from all of its records."""
    changelog = changelog_of(address, name, store_type)
    task = directory / name / "0_0"
    records = lh.read.topic(changelog, bootstrap_servers=address, isolation_level="read_committed")
    retention = None if store_type == "key-value" else RETENTION
    lh.state.restore(records, task, "store", store_type=store_type, retention=retention, start="earliest")
    return task


def check(capsys: pytest.CaptureFixture[str], address: str, task: Path, *arguments: object) -> tuple[int, Any]:
    capsys.readouterr()
    command = ["state", "check", str(task), *map(str, arguments), "--try", "--bootstrap-server", address, "--json"]
    status = main(command)
    return status, json.loads(capsys.readouterr().out)


def test_records_after_store_offset_are_not_restored(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = stored(broker, tmp_path, "checked-kv", "key-value")
    produce(broker, "checked-kv-store-changelog", "key-value", 200, 30)
    status, (outcome,) = check(capsys, broker, task, "--to", "4.3", "--layout", "timestamped")
    done = "200 records restored; no row differs"
    assert (status, outcome["outcome"], outcome["tried"], outcome["agrees"]) == (0, "rebuilt", done, True)


@pytest.mark.parametrize(("store_type", "layout"), [("window", "timestamped"), ("session", "plain")])
def test_only_4_4_omits_rows_of_oldest_segments(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], store_type: str, layout: str
) -> None:
    task = stored(broker, tmp_path, f"checked-{store_type}", store_type)
    arguments = ("--layout", layout, "--retention", RETENTION)
    tried = {to: check(capsys, broker, task, "--to", to, *arguments) for to in ("4.3", "4.4")}
    assert [status for status, _ in tried.values()] == [0, 0]
    before, after = (outcome["tried"] for _, (outcome,) in tried.values())
    assert before == "200 records restored; no row differs"
    # Times are 2 s apart: the last record and the 60 of the retention. The rows before them in the oldest segment are lost.
    assert after.startswith("61 records restored; 17 rows up to 1970-01-01T00:04:36.")
    assert after.endswith(" left out; no other row differs")


def test_missing_changelog_fails_only_its_store(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    task = shutil.copytree(samples / "streams-state-0_0", tmp_path / "orders-app" / "0_0")
    status, outcomes = check(capsys, broker, task, "--to", "4.3", "--layout", "timestamped", "--retention", RETENTION)
    assert (status, [outcome["agrees"] for outcome in outcomes]) == (1, [False, False, False])
    for outcome in outcomes:
        changelog = f"orders-app-{outcome['store']}-changelog"
        assert outcome["tried"].startswith(f"refused, and not restored: there is no topic '{changelog}' at {broker}")
