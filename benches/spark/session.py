"""A Spark session on this machine, and a limit to the time that one of its jobs takes."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
TIME_LIMIT_SECONDS = 600  # of one job: one that hangs must say where
BATCH = 10_000  # spark.sql.execution.arrow.maxRecordsPerBatch, Spark's default


def start_spark(classpath: Sequence[Path] = (), cores: int = 2) -> Any:
    """Start a session on this machine only, with these jars and directories beside Spark's own."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # The workers import `benches`, too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("letterhead benches")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraClassPath", os.pathsep.join(map(str, classpath)))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH)
        .getOrCreate()
    )


@contextmanager
def time_limit(subject: str) -> Iterator[None]:
    """End the run, with the stacks of Python and Java, if the body takes too long."""

    def give_up() -> None:
        print(f"{subject}: no end after {TIME_LIMIT_SECONDS} s", file=sys.stderr)
        faulthandler.dump_traceback(all_threads=True)
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        if gateway is not None:
            subprocess.run(["jstack", str(gateway.proc.pid)], stdout=sys.stderr, check=False, timeout=60)
        os._exit(1)

    timer = threading.Timer(TIME_LIMIT_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
