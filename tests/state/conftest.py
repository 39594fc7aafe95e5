"""Fixtures of the tests of state stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.state.java import JavaServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    server = JavaServer(tmp_path_factory.mktemp("java"))
    yield server
    server.stop()
