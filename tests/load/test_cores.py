"""Two threads on two cores: the kernels let go of the interpreter, so two batches take little longer than one.

A ratio of times of the same work, side by side, is all that is measured: both batches one after the other, and both at
once. Where other processes leave less than two cores, the ratio is reported and not held to anything.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from jobs import COLUMNS, blocks_of

from letterhead import arrow as lha

pytestmark = pytest.mark.full

PAIRS = 15
AT_LEAST = 1.4
"""Of at most two: the cores share their memory, and the last cache."""

ATTEMPTS = 3
"""What else a machine does can only hide that two are faster."""

CORES_LEFT = 1.8
"""Cores that others have to leave for a ratio to say anything."""


@pytest.fixture(scope="module")
def batches(samples: Path) -> list[pa.Array]:
    return [blocks_of(samples, 10), blocks_of(samples, 10)]


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def busy() -> tuple[float, float]:
    """Give the seconds that all cores have worked, and those that this process has."""
    times, own = psutil.cpu_times(), psutil.Process().cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # Time of guests is counted as that of users, too.
    every = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return every - idle, own.user + own.system


@pytest.mark.parametrize("name", ["decode", "select", "validate", "encode", "convert"])
def test_two_threads_are_faster_than_one(
    name: str, batches: list[pa.Array], capsys: pytest.CaptureFixture[str]
) -> None:
    verbs: dict[str, Callable[[Any], Any]] = {
        "decode": lambda batch: lha.decode(batch, "kafka"),
        "select": lambda batch: lha.select(batch, "kafka", COLUMNS),
        "validate": lambda batch: lha.validate(batch, "kafka"),
        "encode": lambda batch: lha.encode(batch, "kafka"),
        "convert": lambda batch: lha.convert(batch, "kafka", target="kip82-typed", kinds="binary"),
    }
    given = [lha.decode(batch, "kafka") for batch in batches] if name == "encode" else batches
    verb = verbs[name]
    expected = [verb(batch) for batch in given]
    with ThreadPoolExecutor(2) as pool:
        assert all(one.equals(other) for one, other in zip(pool.map(verb, given), expected, strict=True))
        for _ in range(ATTEMPTS):
            ratio, said, left = compared(
                name, [lambda: [verb(batch) for batch in given], lambda: list(pool.map(verb, given))]
            )
            with capsys.disabled():
                print(f"\n  {said}", end="", flush=True)
            if left >= CORES_LEFT and ratio >= AT_LEAST:
                return
    if left < CORES_LEFT:
        pytest.skip(f"{said}: not held to {AT_LEAST}")
    pytest.fail(f"{said}: {AT_LEAST} is the least, in one of {ATTEMPTS} attempts")


def compared(name: str, turns: list[Callable[[], Any]]) -> tuple[float, str, float]:
    """Give how much longer the first takes than the second, in words too, and the cores that others left."""
    ratios = []
    all_before, own_before = busy()
    start = time.perf_counter()
    for pair in range(PAIRS):
        # Whichever comes first may find the caches another way.
        times = {turn: seconds(turns[turn]) for turn in ((0, 1) if pair % 2 else (1, 0))}
        ratios.append(times[0] / times[1])
    elapsed = time.perf_counter() - start
    all_after, own_after = busy()
    others = max(0.0, (all_after - all_before) - (own_after - own_before)) / elapsed
    left = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 64, (os.cpu_count() or 1) - others)
    ratio = statistics.median(ratios)
    said = (
        f"{name}: one thread takes {ratio:.2f} times as long as two (from {min(ratios):.2f} to {max(ratios):.2f}), "
        f"{left:.1f} cores left by others"
    )
    return ratio, said, left
