"""How a Python benchmark is measured: answer first, then time, then a row that says what the time was of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from benches import data

# How the output's memory came about; each row of the record names one of these.
RELEASED = "released: each output is freed before the next call, so its pages may come back"
KEPT = "fresh: every output is kept, so each call writes to new pages"
REUSED = "reused: one output buffer, written again and again"
OBJECTS = "released: Python objects, freed before the next call"


@dataclass(frozen=True)
class Sizes:
    """Rows a call: for native code, for one big batch, and for plain Python, which needs no more to show its speed."""

    batch: int
    big: int
    plain: int


SIZES = Sizes(batch=300, big=1_000, plain=100) if data.QUICK else Sizes(batch=16_000, big=1_000_000, plain=4_000)


@pytest.fixture
def sizes() -> Sizes:
    """Give the rows per batch."""
    return SIZES


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., None]:
    """Give the function that checks an answer and then takes the time."""

    def measure(
        run: Callable[[], Any],
        check: Callable[[Any], None],
        *,
        job: str,
        source: str,
        side: str,
        rows: int,
        headers: int,
        reads: int,
        writes: Callable[[Any], int] | None = None,
        buffers: str = RELEASED,
        rounds: int = 100,
    ) -> None:
        """Assert `check(run())`, then time `run`.

        Parameters
        ----------
        run, check
            The work, and the assertions on its result.
        job, source, side
            Which work, on which data, by whom. Rows of one `job` and `source` are compared with each other.
        rows, headers
            In one call.
        reads
            Bytes of input that one call reads.
        writes
            Bytes of output, from the result; None where the output is Python objects.
        buffers
            How the output's memory came about.
        rounds
            Calls to time; the median is what is reported.
        """
        result = run()
        check(result)
        benchmark.group = f"{job} · {source}"
        benchmark.extra_info.update(
            job=job,
            source=source,
            side=side,
            rows=rows,
            headers=headers,
            reads=reads,
            writes=None if writes is None else writes(result),
            buffers=buffers,
        )
        del result
        if data.QUICK:
            benchmark.pedantic(run, rounds=1, iterations=1)
        else:
            benchmark.pedantic(run, rounds=rounds, iterations=1, warmup_rounds=2)

    return measure
