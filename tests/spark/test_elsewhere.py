"""The same on Spark Connect and on a cluster whose executors are processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.timeout(420)]

SCRIPT = Path(__file__).parent / "elsewhere.py"


def run(kind: str, samples: Path) -> str:
    """Run the script; what it says last."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), kind, str(samples)], capture_output=True, text=True, timeout=360, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()[-1]


def test_on_spark_connect(samples):
    assert run("connect", samples) == "whole pyspark.sql.connect.session 1"


def test_on_executors_of_their_own(samples):
    import pyspark

    # Spark puts the work of such a cluster into its own directory, whatever it is told.
    work = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent)) / "work"
    before = set(work.iterdir()) if work.exists() else set()
    try:
        assert run("cluster", samples) == "whole pyspark.sql.session 2"
    finally:
        for directory in (set(work.iterdir()) if work.exists() else set()) - before:
            shutil.rmtree(directory, ignore_errors=True)
