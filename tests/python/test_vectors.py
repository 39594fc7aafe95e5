"""The native module against everything the real Kafka said: message by message, and as columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from implementations import NATIVE, Implementation
from vector_checks import CHECKS, check_file, count_differences, listed_differences, read_lines

every_way = pytest.mark.parametrize("implementation", NATIVE, ids=lambda way: way.name)


@every_way
@pytest.mark.parametrize("name", CHECKS)
def test_every_line_of_the_vectors_holds(vectors: Path, name: str, implementation: Implementation) -> None:
    check_file(vectors, name, implementation)


@every_way
def test_the_listed_differences_from_java_are_all_there_are(vectors: Path, implementation: Implementation) -> None:
    counts = count_differences(implementation, read_lines(vectors, "malformed"))
    assert counts == listed_differences(vectors)
