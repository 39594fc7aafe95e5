"""The Spark session of tests: on this machine alone, with small batches, and with workers that start quickly and say where they stood."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def local_session(name: str, more: Mapping[str, str] | None = None) -> Any:
    """Start a session with the settings below and ``more``."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        # If the machine pauses for longer than this, Spark declares its only executor lost, and exits ten minutes later.
        .config("spark.network.timeout", "1200s")
        # Small, so that a partition has several batches.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .config("spark.python.daemon.module", "tests.helpers.preloaded_workers")
        .config("spark.executorEnv.PYTHONPATH", str(Path(__file__).parents[2]))
        .config("spark.python.worker.faulthandler.enabled", "true")
        .config("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
    )
    for key, value in (more or {}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
