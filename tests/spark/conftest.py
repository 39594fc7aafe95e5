"""One Spark session for all tests here, and time limits."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from sample_values import EXAMPLES
from spark_session import local_session
from time_limits import limit_all

# Spark 3.5 has nothing of what these import.
collect_ignore = ["test_topology_groups.py"] if pyspark.__version__ < "4" else []

LIMIT = 180 + 10 * EXAMPLES
"""Seconds a test may take, unless it has a ``timeout`` mark of its own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    limit_all(items, Path(__file__).parent, LIMIT)


@pytest.fixture(scope="session")
def spark():
    session = local_session("letterhead tests")
    yield session
    session.stop()
