"""A session of Sail, a Rust engine that implements Spark Connect: its server runs in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def sail_session() -> Iterator[Any]:
    """Start a server, and connect a session to it."""
    os.environ.setdefault("RUST_LOG", "error")
    # The main module of a process of xdist has no file, which pyspark takes for doctests that need Java.
    vars(sys.modules["__main__"]).setdefault("__file__", __file__)
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start()
    host, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    try:
        # The time zone and the batch size of the session of Spark, see spark_session.py.
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        yield session
    finally:
        session.stop()
        server.stop()
