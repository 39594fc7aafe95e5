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
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

LIMIT = 120
"""Seconds a test may take, unless it has a ``timeout`` mark of its own."""

SAMPLES = Path(__file__).parent.parent / "samples"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: takes longer; left out of the first tier")
    config.addinivalue_line("markers", "spark35: runs on Spark 3.5 too")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Print the stacks of the JVMs shortly before pytest-timeout ends the test and prints Python's."""
    mark = item.get_closest_marker("timeout")
    limit = mark.args[0] if mark and mark.args else LIMIT
    watch = threading.Timer(max(limit - 10, 1), print_jvm_stacks, [item.nodeid])
    watch.daemon = True
    watch.start()
    # Where even that does not end it, as in C code that comes back from no signal, the process ends.
    faulthandler.dump_traceback_later(limit + 60, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        watch.cancel()


def print_jvm_stacks(test: str) -> None:
    """Print what every thread of every Java process below this one is doing, past pytest's capture."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() != "java":
                continue
            stacks = subprocess.run(["jstack", str(process.pid)], check=False, capture_output=True, text=True, timeout=8).stdout
        except (OSError, psutil.Error, subprocess.SubprocessError) as error:
            stacks = repr(error)
        print(f"\n{test} is at its time limit; JVM {process.pid}:\n{stacks}", file=sys.__stderr__, flush=True)


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


@pytest.fixture(scope="session")
def samples() -> Path:
    return SAMPLES


EXAMPLES = max(2, int(os.environ.get("LETTERHEAD_EXAMPLES", "100")) // 50)
"""Frames that Hypothesis makes for a test: ``LETTERHEAD_EXAMPLES`` counts rows, and a frame has many."""


def many_rows(test: Callable[..., None]) -> Callable[..., None]:
    """Settings for tests whose example is a frame: a job each, so a failure is shown as it was found."""
    from hypothesis import HealthCheck, Phase, settings

    return settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )(test)
