"""One Spark session for all tests here."""

from __future__ import annotations

import pytest

from tests.helpers.spark_session import local_session
from tests.spark.sail import sail_session

NOT_ON_SAIL = {
    "test_columnar_input": "plans of Spark",
    "test_docstrings": "not tried",
    "test_engines": "starts Spark and Spark Connect itself",
    "test_expressions": "expressions of Spark, which Sail evaluates otherwise",
    "test_from_your_query": "not tried",
    "test_other_sessions": "starts sessions of Spark itself",
    "test_readme": "not tried",
    "test_shipping": "executors of Spark",
    "test_smoke": "not tried",
    "test_streaming": "streams",
    "test_topology": "run_topology",
    "test_topology_groups": "run_topology",
}
"""Modules that do not run with ``--engine sail``, and why; nor do tests with the mark ``spark_only``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=["spark", "sail"], default="spark", help="engine that runs the frames")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    on_sail = config.getoption("--engine", "spark") == "sail"
    runs = [(_runs_on_sail(item) if on_sail else item.path.stem != "test_sail") for item in items]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, runs, strict=True) if not kept])
    items[:] = [item for item, kept in zip(items, runs, strict=True) if kept]


def _runs_on_sail(item: pytest.Item) -> bool:
    by_expression = getattr(item, "callspec", None) is not None and item.callspec.params.get("engine") == "spark"
    return item.path.stem not in NOT_ON_SAIL and item.get_closest_marker("spark_only") is None and not by_expression


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest):
    if request.config.getoption("--engine", "spark") == "sail":
        with sail_session() as session:
            yield session
        return
    session = local_session("letterhead tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def engines(request: pytest.FixtureRequest) -> list[str]:
    """Return the values of ``engine=`` of ``header`` that the session accepts."""
    return ["arrow"] if request.config.getoption("--engine", "spark") == "sail" else ["spark", "arrow"]
