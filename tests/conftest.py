"""What all Python tests share: the data, the number of examples that Hypothesis draws, and time limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from time_limits import watched

# One setting scales every property: LETTERHEAD_EXAMPLES=20000 is a good night's work. The examples are the same in every
# run, so that a change fails by what it does and not by luck; LETTERHEAD_RANDOM=1 looks for new ones (`tools/fuzz properties`),
# and with --hypothesis-seed for those of that seed (`make test-long`).
settings.register_profile(
    "letterhead",
    max_examples=int(os.environ.get("LETTERHEAD_EXAMPLES", "40")),
    deadline=None,  # two cores shared with a JVM make times mean nothing
    derandomize=not os.environ.get("LETTERHEAD_RANDOM"),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("letterhead")

TESTS = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with watched(item):
        return (yield)


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The directory of the cases that the real systems made."""
    return TESTS / "vectors"


@pytest.fixture(scope="session")
def samples() -> Path:
    """The directory of the data of a real topic and a real store."""
    return TESTS / "samples"
