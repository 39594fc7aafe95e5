"""One server of Apache Iggy for all tests here, and its log if a test fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.iggy.server import Server, program

_SERVER = pytest.StashKey[Server]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    server = item.config.stash.get(_SERVER, None)
    if report.failed and server is not None:
        report.sections.append(("log of the server", server.log()))
    return report


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that runs. One that is there but does not start fails the tests."""
    if program() is None:
        pytest.skip("no Iggy server: set IGGY_SERVER to the path of iggy-server, or add it to the PATH")
    running = Server(tmp_path_factory.mktemp("iggy"))
    running.start()
    request.config.stash[_SERVER] = running
    yield running
    running.stop()


_numbers = itertools.count()


@pytest.fixture
def create(server: Server) -> Callable[..., str]:
    """Create a topic of the stream ``tests`` with some partitions, and return its name."""

    def create(partitions: int = 1, **options: str) -> str:
        name = f"topic-{next(_numbers)}"
        server.create("tests", name, partitions, options)
        return name

    return create


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session that has the data sources."""
    from letterhead import spark as lhs
    from tests.helpers.spark_session import local_session

    session = local_session("letterhead tests with Iggy")
    lhs.register(session)
    yield session
    session.stop()
