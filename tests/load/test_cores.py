"""Two threads on two cores: the kernels let go of the interpreter, so two batches take little longer than one.

A ratio of times of the same work, side by side, is all that is measured: both batches one after the other, and both at
once. The least time of each counts, since whatever else a machine does only adds to a time. Beside them a hash runs the
same two ways: where even that gains nothing from a second thread there is no second core, and the test is skipped.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs import COLUMNS, blocks_of

from letterhead import arrow as lha

pytestmark = pytest.mark.full

ROUNDS = (15, 300)
"""At least so many, since the first may all be disturbed on one side; at most so many until the ratio is reached."""

AT_LEAST = 1.4
"""Of at most two: the cores share their memory, and the last cache."""

TWO_CORES = 1.7
"""What a hash, which lets go of the interpreter and needs no memory, has to gain for a ratio to say anything."""


@pytest.fixture(scope="module")
def batches(samples: Path) -> list[pa.Array]:
    return [blocks_of(samples, 5), blocks_of(samples, 5)]


class Compared:
    """The same work on one thread and on two, and the least that each has taken."""

    def __init__(self, work: Callable[[Any], Any], source: list[Any], pool: ThreadPoolExecutor) -> None:
        self._turns: list[Callable[[], Any]] = [
            lambda: [work(one) for one in source],
            lambda: list(pool.map(work, source)),
        ]
        self._least = [float("inf"), float("inf")]

    def run(self, first: int) -> None:
        # Whichever comes first may find the caches another way.
        for turn in (first, 1 - first):
            start = time.perf_counter()
            self._turns[turn]()
            self._least[turn] = min(self._least[turn], time.perf_counter() - start)

    @property
    def ratio(self) -> float:
        return self._least[0] / self._least[1]


@pytest.mark.parametrize("name", ["decode", "select", "validate", "encode", "convert"])
def test_two_threads_are_faster_than_one(
    name: str, batches: list[pa.Array], capsys: pytest.CaptureFixture[str]
) -> None:
    operations: dict[str, Callable[[Any], Any]] = {
        "decode": lambda batch: lha.decode(batch, "kafka"),
        "select": lambda batch: lha.select(batch, "kafka", COLUMNS),
        "validate": lambda batch: lha.validate(batch, "kafka"),
        "encode": lambda batch: lha.encode(batch, "kafka"),
        "convert": lambda batch: lha.convert(batch, "kafka", target="kip82-typed", types="binary"),
    }
    source = [lha.decode(batch, "kafka") for batch in batches] if name == "encode" else batches
    operation = operations[name]
    expected = [operation(batch) for batch in source]
    with ThreadPoolExecutor(2) as pool:
        assert all(one.equals(other) for one, other in zip(pool.map(operation, source), expected, strict=True))
        ours = Compared(operation, source, pool)
        control = Compared(lambda data: hashlib.sha256(data).digest(), [bytes(8_000_000)] * 2, pool)
        least, most = ROUNDS
        for done in range(1, most + 1):
            ours.run(done % 2)
            control.run(done % 2)
            if done >= least and ours.ratio >= AT_LEAST:
                break
    output = (
        f"{name}: one thread takes {ours.ratio:.2f} times as long as two; of a hash {control.ratio:.2f}, {done} rounds"
    )
    with capsys.disabled():
        print(f"\n  {output}", end="", flush=True)
    if ours.ratio < AT_LEAST and control.ratio < TWO_CORES:
        pytest.skip(f"{output}: there are no two cores to be had")
    assert ours.ratio >= AT_LEAST, output
