"""Two threads on two cores are faster than one: two calls, as kernels release the GIL, and one call with `threads=2`.

Only the ratio of times of the same work is measured. The least time of each side counts, as other work on a machine can only
add to it. A hash and a copy run in the same two ways beside it: where one of them gains little, the second core or the memory
is not free, and the test is skipped.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from letterhead import arrow as lha
from tests.load.jobs import COLUMNS, blocks_of

pytestmark = pytest.mark.full

ROUNDS = (15, 300)
"""At least so many, since the first may all be disturbed on one side; at most so many until the ratio is reached."""

AT_LEAST = 1.25
"""Of at most two: cores share memory, the last cache and, of a busy machine, their time. Threads that wait for each other gain
at most 1.1; a quiet machine gains 1.8."""

TWO_CORES = 1.7
"""What a hash, which needs a core and no memory, has to gain for a ratio to say anything. Like a copy by NumPy, it lets go of
the interpreter."""

FREE_MEMORY = 1.3
"""The same of a copy, which needs little else than memory: it gains 1.45 to 1.54 on a quiet machine."""

COPIED = 32_000_000
"""More bytes than the caches have."""


@pytest.fixture(scope="module")
def batches(samples: Path) -> list[pa.Array]:
    return [blocks_of(samples, 5), blocks_of(samples, 5)]


class Compared:
    """The same work on one thread and on two, and the least that each has taken."""

    def __init__(self, first: Callable[[], Any], two: Callable[[], Any]) -> None:
        self._turns = [first, two]
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


def by_pool(work: Callable[[Any], Any], source: list[Any], pool: ThreadPoolExecutor) -> Compared:
    """Compare items one after the other with all at once."""
    return Compared(lambda: [work(piece) for piece in source], lambda: list(pool.map(work, source)))


def assert_faster(name: str, ours: Compared, capsys: pytest.CaptureFixture[str]) -> None:
    """Run all in turns until two threads are faster; skip where no second core, or no memory, is free."""
    copied = [(np.ones(COPIED, np.uint8), np.ones(COPIED, np.uint8)) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        hashing = by_pool(lambda data: hashlib.sha256(data).digest(), [bytes(8_000_000)] * 2, pool)
        copying = by_pool(lambda pair: np.copyto(*pair), copied, pool)
        least, most = ROUNDS
        for done in range(1, most + 1):
            for comparison in (ours, hashing, copying):
                comparison.run(done % 2)
            if done >= least and ours.ratio >= AT_LEAST:
                break
    output = (
        f"{name}: one thread takes {ours.ratio:.2f} times as long as two; of a hash {hashing.ratio:.2f}, "
        f"of a copy {copying.ratio:.2f}, {done} rounds"
    )
    with capsys.disabled():
        print(f"\n  {output}", end="", flush=True)
    if ours.ratio < AT_LEAST and (hashing.ratio < TWO_CORES or copying.ratio < FREE_MEMORY):
        pytest.skip(f"{output}: there are no two cores, or there is no memory, to be had")
    assert ours.ratio >= AT_LEAST, output


OPERATIONS: dict[str, Callable[..., Any]] = {
    "decode": lambda column, **options: lha.decode(column, "kafka", **options),
    "select": lambda column, **options: lha.select(column, COLUMNS, **options),
    "validate": lambda column, **options: lha.validate(column, "kafka", **options),
    "encode": lambda column, **options: lha.encode(column, "kafka", **options),
    "convert": lambda column, **options: lha.convert(column, "kafka", target="kip82-typed", types="binary", **options),
}


def input_of(name: str, column: Any) -> Any:
    """Return what an operation takes: lists of headers, or their bytes."""
    return lha.decode(column, "kafka") if name == "encode" else column


@pytest.mark.parametrize("name", OPERATIONS)
def test_two_threads_are_faster_than_one(
    name: str, batches: list[pa.Array], capsys: pytest.CaptureFixture[str]
) -> None:
    source = [input_of(name, batch) for batch in batches]
    operation = OPERATIONS[name]
    expected = [operation(batch) for batch in source]
    with ThreadPoolExecutor(2) as pool:
        assert all(
            result.equals(expected_result)
            for result, expected_result in zip(pool.map(operation, source), expected, strict=True)
        )
        assert_faster(name, by_pool(operation, source, pool), capsys)


@pytest.mark.parametrize("shape", ["chunks", "array"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_two_threads_of_one_call_are_faster_than_one(
    name: str, shape: str, batches: list[pa.Array], capsys: pytest.CaptureFixture[str]
) -> None:
    column = pa.chunked_array(batches * 4) if shape == "chunks" else pa.concat_arrays(batches * 4)
    source = input_of(name, column)
    operation = OPERATIONS[name]
    ours = Compared(lambda: operation(source, threads=1), lambda: operation(source, threads=2))
    assert_faster(f"{name}, {shape}", ours, capsys)
