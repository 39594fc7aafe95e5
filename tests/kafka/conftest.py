"""One broker, and one Spark session that can reach it, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import broker as kafka
from spark_session import local_session


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker."""
    running = kafka.Broker(tmp_path_factory.mktemp("broker"))
    running.start()
    yield running.address
    running.stop()


@pytest.fixture(scope="session")
def written(broker: str) -> Iterator[str]:
    """What the names of the topics of :mod:`written` begin with, which are there while this is."""
    from written import write_all

    keeps_open = write_all(broker, "written-", 100)
    yield "written-"
    keeps_open.clear()


@pytest.fixture(scope="session")
def spark():
    from pyspark import SparkContext

    # The connector is loaded when the JVM starts, and a process has one.
    if SparkContext._active_spark_context is not None:
        raise RuntimeError("tests/kafka needs a Spark session with the connector: run it in a process of its own")
    session = local_session(
        "letterhead tests with Kafka",
        {"spark.jars": kafka.connector(), "spark.driver.extraJavaOptions": kafka.QUICK_JVM},
    )
    yield session
    session.stop()
