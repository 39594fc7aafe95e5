"""What all Python tests share: the data, the number of examples that Hypothesis draws, and time limits."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.spark_archive import java_options
from tests.helpers.time_limits import watched

if TYPE_CHECKING:
    from tests.helpers.command import Result

# One setting scales every property: LETTERHEAD_EXAMPLES=20000 is a good night's work. The examples are the same in every
# run, so that a change fails by what it does and not by luck; LETTERHEAD_RANDOM=1 looks for new ones (`tools/fuzz properties`),
# and with --hypothesis-seed for those of that seed (`make test-long`).
settings.register_profile(
    "letterhead",
    max_examples=int(os.environ.get("LETTERHEAD_EXAMPLES", "16")),
    deadline=None,  # two cores shared with a JVM make times mean nothing
    derandomize=not os.environ.get("LETTERHEAD_RANDOM"),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("letterhead")

os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

# Processes that tests start, and workers of Spark, import the package of tests.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))

# Shells start what runs in the background with interrupts ignored, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with watched(item):
        return (yield)


@pytest.fixture
def gil_stays_disabled() -> Iterator[None]:
    """Verify that threads did not take turns where Python has no GIL: a module that needs it enables it when imported."""
    yield
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled()  # type: ignore[attr-defined]


@pytest.fixture
def threads_switch_often() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The directory of the cases that the real systems made."""
    return TESTS / "vectors"


@pytest.fixture(scope="session")
def samples() -> Path:
    """The directory of the data of a real topic and a real store."""
    return TESTS / "samples"


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command ``letterhead`` in this process: ``run("read", path).lines``."""
    from tests.helpers.command import runner  # Spark on other Pythons has no command line

    return runner(capfdbinary, monkeypatch)
