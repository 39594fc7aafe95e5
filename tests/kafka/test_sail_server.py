"""A Sail server as a process of its own, local and with two workers, and a client in another process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from tests.kafka.broker import ROOT
from tests.kafka.sail_client import COLUMNS, TASKS
from tests.kafka.topics import create, orders, produce
from tests.ports import free_ports

pytestmark = pytest.mark.broker

SAIL = Path(os.environ.get("PYTHON_SAIL", ROOT / ".venv-sail" / "bin" / "python"))
"""The Python of an environment of its own, as Sail refuses the version of pyspark that the other tests run with."""

CLIENT = Path(__file__).with_name("sail_client.py")
TOPIC = "orders-sail"


@pytest.mark.parametrize("mode", ["local", "local-cluster"])
def test_sail_reads_topic_and_file_like_python(broker, samples, tmp_path, filled, mode):
    """`local-cluster` has two workers, which are threads that exchange data over connections: Sail has no other on one machine.

    Each has slots for two tasks. So all four tasks run at the same time only if both workers do.
    """
    scratch = tmp_path / "tasks"
    scratch.mkdir()
    workers = [str(scratch)] if mode == "local-cluster" else []
    with _server(tmp_path, mode) as address:
        command = [str(SAIL), str(CLIENT), address, broker, TOPIC, str(samples), *workers]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers["topic"] == filled
    assert {row["tenant"]: row["count"] for row in answers["tenants"]} == _tenants(samples)
    assert answers.get("met") == ([TASKS] * TASKS if workers else None)


@pytest.fixture(scope="module")
def filled(broker: str, samples: Path) -> list[dict[str, Any]]:
    """Fill the topic, and return its rows as they are read without Spark."""
    create(broker, TOPIC)
    produce(broker, TOPIC, orders(samples, 1_000))
    with lh.read.topic(TOPIC, bootstrap_servers=broker, columns=["partition", "offset"], headers=COLUMNS) as reader:
        rows = reader.read_all().to_pylist()
    assert len(rows) > 1_000
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def _tenants(samples: Path) -> dict[str | None, int]:
    headers = pq.read_table(samples / "orders-0.parquet", columns=["headers"])["headers"]
    return Counter(row["tenant"] for row in lha.select(headers, COLUMNS).to_pylist())


@contextmanager
def _server(directory: Path, mode: str) -> Iterator[str]:
    """Start `sail spark server`, and return the address to connect to."""
    (port,) = free_ports(1)
    settings = {"SAIL_MODE": mode, "SAIL_CLUSTER__WORKER_INITIAL_COUNT": "2", "SAIL_CLUSTER__WORKER_TASK_SLOTS": "2"}
    command = [str(SAIL.with_name("sail")), "spark", "server", "--port", str(port)]
    with (directory / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)
    try:
        _wait_for(port, server, directory / "server.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(120)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-3000:]}")
