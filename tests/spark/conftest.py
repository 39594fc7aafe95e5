"""One Spark session for all tests here, and time limits that say where everything stood.

Once, before this project, a job stopped for minutes with the machine idle, and no stack was taken. So a test that
takes too long prints the threads of the JVM first, and those of Python when it is ended.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key  # standard error before it was captured

from cells import EXAMPLES

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

LIMIT = 180 + 10 * EXAMPLES
"""Seconds a test may take, unless it has a ``timeout`` mark of its own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Print the stacks of the JVMs shortly before pytest-timeout ends the test and prints Python's."""
    mark = item.get_closest_marker("timeout")
    limit = mark.args[0] if mark and mark.args else LIMIT
    screen = item.config.stash[fault_handler_stderr_fd_key]
    watch = threading.Timer(max(limit - 10, 1), print_jvm_stacks, [item.nodeid, screen])
    watch.daemon = True
    watch.start()
    # Where no thread of Python gets to run, as in C code that never lets go, this still ends the process.
    faulthandler.dump_traceback_later(limit + 60, exit=True, file=screen)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        watch.cancel()


def print_jvm_stacks(test: str, screen: int) -> None:
    """Print what every thread of every Java process below this one is doing."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() != "java":
                continue
            stacks = subprocess.run(
                ["jstack", str(process.pid)], check=False, capture_output=True, text=True, timeout=8
            ).stdout
        except (OSError, psutil.Error, subprocess.SubprocessError) as error:
            stacks = repr(error)
        os.write(screen, f"\n{test} is at its time limit; JVM {process.pid}:\n{stacks}\n".encode())


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("letterhead tests")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        # Small, so that a partition has several batches.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .config("spark.python.worker.faulthandler.enabled", "true")
        .config("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
