"""A directory restored from a topic, opened by a real Kafka Streams application, which goes on from there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.versions import built

import letterhead as lh
import traces
from broker import QUICK_JVM
from letterhead.state.storage.keys import session_key, window_key

JVM_TESTS = built("jvm-tests")
RETENTION = 120_000

KEYS: dict[str, Callable[[int], bytes]] = {
    "key-value": lambda number: b"k%d" % (number % 50),
    "versioned": lambda number: b"k%d" % (number % 50),
    # The time advances, and the first segments expire.
    "window": lambda number: window_key(b"k%d" % (number % 50), 2000 * number),
    "session": lambda number: session_key(b"k%d" % (number % 50), 2000 * number, 2000 * number + 500),
}
FAMILIES = {"key-value": "kv"}


def produce(address: str, changelog: str, store_type: str, first: int, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for number in range(first, first + count):
        headers = [("n", b"%d" % number)] if number % 3 else None
        value = None if number % 11 == 10 else b"%d" % number
        key = KEYS[store_type](number)
        producer.produce(changelog, value, key, 0, timestamp=1000 + 2000 * number, headers=headers)
    assert producer.flush(60) == 0


def run_application(address: str, name: str, state: Path, config: dict[str, Any]) -> dict[str, int]:
    """Run an application until it has restored its store, and stop it."""
    java = [
        shutil.which("java") or "java",
        "-Xmx512m",
        QUICK_JVM,
        "-cp",
        f"{JVM_TESTS / 'classes'}:{JVM_TESTS / 'lib'}/*",
    ]
    program = "letterhead.testing.streams.StreamsApp"
    command = [*java, program, address, name, str(state), f"{name}-in", json.dumps(config)]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=300, check=False)
    *restored, running = done.stdout.splitlines() or [""]
    assert (done.returncode, running) == (0, "running"), done.stderr[-2000:]
    (lines,) = (json.loads(line) for line in restored)
    return lines


@pytest.mark.parametrize(
    ("store_type", "layout"),
    [
        ("key-value", "headers"),
        pytest.param("key-value", "timestamped", marks=pytest.mark.full),
        pytest.param("window", "headers", marks=pytest.mark.full),
        pytest.param("session", "headers", marks=pytest.mark.full),
        pytest.param("versioned", "plain", marks=pytest.mark.full),
    ],
)
def test_kafka_streams_reads_the_changelog_after_a_restored_store(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], store_type: Any, layout: Any
) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    from letterhead.cli import main

    name = f"restored-{store_type}-{layout}"
    changelog = f"{name}-store-changelog"
    config = {"family": FAMILIES.get(store_type, store_type), "format": layout, "caching": False, "logging": True}
    options: dict[str, Any] = {"store_type": store_type, "layout": layout}
    if store_type != "key-value":
        options["retention"] = RETENTION
        config |= {"retention_ms": RETENTION, "window_size_ms": 500, "retain_duplicates": False}
        config |= {"history_retention_ms": RETENTION, "segment_interval_ms": 60_000}
    if store_type == "versioned":
        options["segment_interval"] = 60_000
    admin = AdminClient({"bootstrap.servers": broker})
    for created in admin.create_topics([NewTopic(f"{name}-in", 1, 1), NewTopic(changelog, 1, 1)]).values():
        created.result(30)
    produce(broker, changelog, store_type, 0, 200)
    records = lh.read.topic(changelog, bootstrap_servers=broker, isolation_level="read_committed")
    done = lh.state.restore(records, tmp_path / "ours" / name / "0_0", "store", **options)
    assert done.offsets == {0: 199}
    produce(broker, changelog, store_type, 200, 30)

    def lag(state: Path) -> dict[str, int]:
        capsys.readouterr()
        assert main(["state", "ls", str(state), "--bootstrap-server", broker, "--json"]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        found: dict[str, int] = listed["lag"]
        return found

    assert lag(tmp_path / "ours") == {f"{changelog}-0": 30}
    ours = run_application(broker, name, tmp_path / "ours", config)
    assert (ours["first"], ours["records"]) == (200, 30)
    theirs = run_application(broker, name, tmp_path / "theirs", config)
    assert (theirs["first"], theirs["records"]) == (0, 230)
    assert lag(tmp_path / "ours") == {f"{changelog}-0": 0}
    expected = traces.databases(tmp_path / "theirs")
    assert max(len(rows) for families in expected.values() for rows in families.values()) > 20
    if store_type != "versioned":  # Kafka Streams does not delete segments that expire after it opened such a store
        assert traces.databases(tmp_path / "ours") == expected
        assert list(lh.state.diff(tmp_path / "ours", tmp_path / "theirs")) == []
    records = lh.read.topic(changelog, bootstrap_servers=broker, isolation_level="read_committed")
    lh.state.restore(records, tmp_path / "whole" / name / "0_0", "store", **options)
    assert traces.databases(tmp_path / "whole") == expected
