"""A directory restored from a topic, opened by a real Kafka Streams application, which goes on from there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.state.storage.keys import session_key, window_key
from tests.kafka.broker import QUICK_JVM
from tests.state import traces
from tests.versions import KAFKA, built

pytestmark = pytest.mark.broker

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


def rows(state: Path) -> list[bytes]:
    """Return the keys of all rows."""
    with lh.read.state(state, columns=["key"]) as reader:
        keys: list[bytes] = reader.read_all()["key"].to_pylist()
    return keys


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
def test_kafka_streams_resumes_changelog_after_restored_store(
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
        assert main(["state", "ls", str(state), "-X", f"bootstrap.servers={broker}", "--json"]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        lags: dict[str, int] = listed["lag"]
        return lags

    assert lag(tmp_path / "ours") == {f"{changelog}-0": 30}
    ours = run_application(broker, name, tmp_path / "ours", config)
    assert (ours["first"], ours["records"]) == (200, 30)
    theirs = run_application(broker, name, tmp_path / "theirs", config)
    # From 4.4 on, Kafka Streams begins with the first record that is not older than the last one minus the retention.
    by_retention = store_type in ("window", "session") and not KAFKA.startswith("4.3.")
    first = 230 - 1 - RETENTION // 2000 if by_retention else 0
    assert (theirs["first"], theirs["records"]) == (first, 230 - first)
    assert lag(tmp_path / "ours") == {f"{changelog}-0": 0}
    expected = traces.databases(tmp_path / "theirs")
    assert max(len(rows) for families in expected.values() for rows in families.values()) > 20
    if by_retention:  # ours has the rows of the oldest segments that were there before
        ours_rows, their_rows = (sum(1 for _ in rows(tmp_path / side)) for side in ("ours", "theirs"))
        assert ours_rows > their_rows
        assert all(difference.second is None for difference in lh.state.diff(tmp_path / "ours", tmp_path / "theirs"))
    elif store_type != "versioned":  # Kafka Streams does not delete segments that expire after it opened such a store
        assert traces.databases(tmp_path / "ours") == expected
        assert list(lh.state.diff(tmp_path / "ours", tmp_path / "theirs")) == []
    command = ["state", "restore", changelog, str(tmp_path / "whole" / name / "0_0"), "-s", "store"]
    command += [word for option, value in options.items() for word in (f"--{option.replace('_', '-')}", str(value))]
    command += ["--bootstrap-server", broker] + (["--start", "earliest"] if KAFKA.startswith("4.3.") else [])
    assert main(command) == 0
    assert traces.databases(tmp_path / "whole") == expected


@pytest.mark.parametrize(
    ("name", "end", "last"),
    [("all", None, 199), ("offset", 150, 149), ("time", datetime.fromtimestamp(301, UTC), 149), ("early", 40, 39)],
)
def test_windowed_topic_store_starts_where_table_store_does(
    broker: str, tmp_path: Path, name: str, end: int | datetime | None, last: int
) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    from letterhead.cli import main

    changelog = f"{name}-store-changelog"
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(changelog, 1, 1)])[changelog].result(30)
    produce(broker, changelog, "window", 0, 200)
    with lh.read.topic(changelog, bootstrap_servers=broker) as reader:
        table = reader.read_all()
    directories = [tmp_path / side / name / "0_0" for side in ("table", "topic")]
    options: dict[str, Any] = {"store_type": "window", "layout": "headers", "retention": RETENTION}
    done = lh.state.restore(table, directories[0], "store", **options, end=end)
    # Times are 2 s apart, and the retention is 120 s.
    assert (done.offsets, done.records) == ({0: last}, min(last, 60) + 1)
    command = ["state", "restore", changelog, str(directories[1]), "-s", "store", "--bootstrap-server", broker]
    command += [word for option, value in options.items() for word in (f"--{option.replace('_', '-')}", str(value))]
    if end is not None:
        command += ["--end", end.isoformat() if isinstance(end, datetime) else str(end)]
    assert main(command) == 0
    assert traces.databases(tmp_path / "table") == traces.databases(tmp_path / "topic")
