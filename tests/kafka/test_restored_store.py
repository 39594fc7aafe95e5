"""A directory restored from a topic, opened by a real Kafka Streams application, which goes on from there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import letterhead as lh
from broker import QUICK_JVM, ROOT

JVM_TESTS = ROOT / "target" / "jvm-tests"
APP = "restored"
CHANGELOG = f"{APP}-store-changelog"


def produce(address: str, first: int, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for number in range(first, first + count):
        headers = [("n", b"%d" % number)] if number % 3 else None
        producer.produce(CHANGELOG, b"%d" % number, b"k%d" % (number % 50), 0, timestamp=1000 + number, headers=headers)
    assert producer.flush(60) == 0


def run_application(address: str, state: Path) -> list[dict[str, int]]:
    """Run the application until it has restored its store, and stop it."""
    java = [
        shutil.which("java") or "java",
        "-Xmx512m",
        QUICK_JVM,
        "-cp",
        f"{JVM_TESTS / 'classes'}:{JVM_TESTS / 'lib'}/*",
    ]
    command = [*java, "letterhead.testing.streams.StreamsApp", address, APP, str(state), f"{APP}-in"]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=100, check=False)
    *restored, running = done.stdout.splitlines() or [""]
    assert (done.returncode, running) == (0, "running"), done.stderr[-2000:]
    return [json.loads(line) for line in restored]


@pytest.mark.timeout(240)
def test_kafka_streams_reads_the_changelog_after_a_restored_store(broker: str, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker})
    for created in admin.create_topics([NewTopic(f"{APP}-in", 1, 1), NewTopic(CHANGELOG, 1, 1)]).values():
        created.result(30)
    produce(broker, 0, 200)
    done = lh.state.restore(
        lh.read.topic(CHANGELOG, bootstrap_servers=broker), tmp_path / "ours" / APP / "0_0", "store"
    )
    assert done.offsets == {0: 199}
    produce(broker, 200, 30)
    (ours,) = run_application(broker, tmp_path / "ours")
    assert (ours["first"], ours["records"]) == (200, 30)
    (theirs,) = run_application(broker, tmp_path / "theirs")
    assert (theirs["first"], theirs["records"]) == (0, 230)
    assert list(lh.state.diff(tmp_path / "ours", tmp_path / "theirs")) == []
    with lh.read.state(tmp_path / "ours") as rows:
        assert rows.read_all().num_rows == 50
    from letterhead.cli import main

    assert main(["state", "ls", str(tmp_path / "ours"), "--bootstrap-server", broker, "--json"]) == 0
