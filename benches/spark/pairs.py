"""Ratios of measurements that were taken in pairs, with the interval that chance leaves open, and what was aimed at."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benches import data, goal

DRAWS = 400 if data.QUICK else 10_000
SEED = 1271


class Ratio(NamedTuple):
    """The median of the ratios of pairs, and its bootstrap interval of 95 %."""

    median: float
    low: float
    high: float


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Compare two sides pair by pair: a slow minute of the machine is in both measurements of a pair."""
    return median([mine / other for mine, other in zip(above, below, strict=True)])


def median(values: Sequence[float]) -> Ratio:
    """Return the median of values, and how far the medians of samples drawn from them (with replacement) scatter."""
    draw = random.Random(SEED)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return Ratio(statistics.median(values), medians[DRAWS // 40], medians[-1 - DRAWS // 40])


def verdicts(bars: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Return for each recorded goal whether the median reaches it."""
    yield "  at most  median  interval of 95 %"
    for bar in bars:
        ratio = Ratio(*bar["found"])
        verdict = goal.verdict(ratio.median, bar["at_most"], at_least=False)
        by_cpu = "; by CPU time {:.2f} ({:.2f} to {:.2f})".format(*bar["by_cpu"]) if "by_cpu" in bar else ""
        yield (
            f"  {bar['at_most']:7.2f} {ratio.median:7.2f}  {ratio.low:.2f} to {ratio.high:.2f}"
            f"      {verdict}: {bar['what']}{by_cpu}"
        )
