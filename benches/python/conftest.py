"""How a Python benchmark is measured: answer first, then time, then a row that says what the time was of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
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
    """Return the rows per batch."""
    return SIZES


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., None]:
    """Return the function that checks an answer and then takes the time."""

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
        per: str = "header",
        beside: Callable[[], Any] | None = None,
    ) -> None:
        """Assert `check(run())`, then time `run`.

        Parameters
        ----------
        run, check
            The work, and the assertions on its result.
        job, source, side
            Which work, on which data, by whom. Rows of one `job` and `source` are compared with each other.
        rows
            In one call.
        headers
            In one run, which may be several calls.
        reads
            Bytes of input that one call reads.
        writes
            Bytes of output, from the result; None where the output is Python objects.
        buffers
            How the output's memory came about.
        rounds
            Calls to time; the median is what is reported.
        per
            What the time is divided by: `header` or `row`.
        beside
            Letterhead's own work, timed before each round: what else the machine does then slows both, and the ratio is
            the median of those within a round.
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
            per=per,
        )
        del result
        taken: list[float] = []

        def time_beside() -> None:
            if beside is not None:
                began = perf_counter()
                beside()
                taken.append(perf_counter() - began)

        rounds, warm = (1, 0) if data.QUICK else (rounds, 2)
        benchmark.pedantic(run, setup=time_beside, rounds=rounds, iterations=1, warmup_rounds=warm)
        if beside is not None:
            pairs = zip(benchmark.stats.stats.data, taken[warm:], strict=True)
            benchmark.extra_info["ratio"] = median(theirs / ours for theirs, ours in pairs)

    return measure


def measure_column(
    measure: Callable[..., None], column: Any, run: Callable[[], Any], check: Callable[[Any], None], **options: Any
) -> None:
    """Measure work on a whole column of the store, whose output is Arrow data."""
    kept, _ = data.store_answer(len(column))
    measure(
        run,
        check,
        rows=len(column),
        headers=kept.headers,
        reads=column.nbytes,
        writes=lambda result: result.nbytes,
        **options,
    )
