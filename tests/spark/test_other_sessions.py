"""The same on Spark Connect and on a cluster whose executors are processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.environments import swept

SCRIPT = Path(__file__).parent / "other_sessions.py"


def run(type: str, samples: Path) -> str:
    """Run the script; what it says last."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), type, str(samples)], capture_output=True, text=True, timeout=540, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()[-1]


def test_spark_connect_accepts_column_of_every_type() -> None:
    script = SCRIPT.with_name("connect_depths.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    depths = {column: int(depth) for depth, _, column in (line.partition(" ") for line in done.stdout.splitlines())}
    assert len(depths) > 300
    # Protocol Buffers refuse messages that are nested a hundred deep, and a query puts these into others.
    assert {column: depth for column, depth in depths.items() if depth > 80} == {}


@pytest.mark.full
def test_functions_work_on_spark_connect(samples):
    assert run("connect", samples) == "whole pyspark.sql.connect.session 1"


@pytest.mark.full
def test_functions_work_on_separate_executors(samples):
    with swept():
        assert run("cluster", samples) == "whole pyspark.sql.session 2"
