"""What the record of the limits says: ratios, bars, and straight lines through the curves.

A figure is the median of its rounds. What was timed in the same rounds is compared within each of them, and the ratio is
the median of those; letterhead and Java took turns, and their ratio is that of their medians.

    python -m benches.limits.report      prints the bars
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benches.goal import verdict

RECORD = Path(__file__).resolve().parents[1] / "record" / "limits.json"
OURS, MEMCPY, JAVA, PYTHON, PLAIN = "letterhead", "memcpy", "Kafka's Java", "letterhead, from Python", "plain Python"
WIDE = "letterhead, compiled for AVX-512"

BATCH = 64_000  # rows: the size at which operations are compared with each other
JAVA_BATCHES = (16_000, 64_000)


@dataclass(frozen=True)
class Bar:
    """A ratio that is aimed at."""

    job: str
    goal: float
    figure: float
    at_least: bool

    @property
    def verdict(self) -> str:
        """Return whether it is reached, or only within what runs differ by."""
        return verdict(self.figure, self.goal, at_least=self.at_least)


@dataclass(frozen=True)
class Line:
    """A cost of `fixed + slope * x` nanoseconds, and the point that is farthest from it."""

    fixed: float
    slope: float
    deviation: float  # of the measured cost from the line's, as a share of that
    at: int

    def __call__(self, x: float) -> float:
        return self.fixed + self.slope * x


class Record:
    """What `benches.limits.measure` wrote."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.document = result
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {
            (row["side"], row["corpus"], row["job"], row["batch"], row["buffers"]): row
            for row in result["results"]
            if "curve" not in row
        }

    @classmethod
    def read(cls, path: Path = RECORD) -> Record:
        """Read a record."""
        return cls(json.loads(path.read_text()))

    def whole(self, corpus: str) -> int:
        """Return the rows of a corpus, which are also the rows of its largest batch."""
        return self.document["corpora"][corpus]["rows"]

    def batches(self, corpus: str) -> list[int]:
        """Return the sizes of batches, in rows."""
        description = (MEMCPY, corpus, MEMCPY, "released")
        return sorted(
            batch for side, name, job, batch, buffers in self.rows if (side, name, job, buffers) == description
        )

    def taken(self, job: str, corpus: str, batch: int, buffers: str = "released", side: str = OURS) -> list[float]:
        """Return nanoseconds a header, round by round."""
        return self.rows[side, corpus, job, batch, buffers]["ns"]

    def ns(self, job: str, corpus: str, batch: int, buffers: str = "released", side: str = OURS) -> float:
        """Return the median."""
        return median(self.taken(job, corpus, batch, buffers, side))

    def faults(self, job: str, corpus: str, batch: int, buffers: str = "released", side: str = OURS) -> float:
        """Return the pages that the system had to find for a million rows."""
        row = self.rows[side, corpus, job, batch, buffers]
        return median(row["faults"]) * 1e6 / row["rows"]

    def to_memcpy(self, job: str, corpus: str, batch: int, buffers: str = "released") -> float:
        """Return the time of a job as a multiple of the copy of what decode moves."""
        return within(self.taken(job, corpus, batch, buffers), self.taken(MEMCPY, corpus, batch, buffers, MEMCPY))

    def against_copies(self, job: str, corpus: str) -> float:
        """Return the time of all rows at once as a multiple of the copy, where both write to memory that is new."""
        return self.to_memcpy(job, corpus, self.whole(corpus), "fresh")

    def to_decode(self, job: str, corpus: str) -> float:
        """Return the time of a job as a multiple of decode's."""
        return within(self.taken(job, corpus, BATCH), self.taken("decode", corpus, BATCH))

    def java(self, job: str, corpus: str, batch: int, side: str = OURS) -> float:
        """Return Java's time as a multiple of ours."""
        return self.ns(job, corpus, batch, "garbage", JAVA) / self.ns(job, corpus, batch, side=side)

    @property
    def has_wide(self) -> bool:
        """Return whether the core was there a second time, compiled for AVX-512."""
        return any(side == WIDE for side, *_ in self.rows)

    def plain(self, job: str, corpus: str) -> float:
        """Return plain Python's time as a multiple of ours, both called from Python."""
        (batch,) = {key[3] for key in self.rows if key[0] == PLAIN and key[1:3] == (corpus, job)}
        return self.ns(job, corpus, batch, side=PLAIN) / self.ns(job, corpus, BATCH, side=PYTHON)

    def fresh(self, corpus: str) -> float:
        """Return the time of one big batch whose output is kept as a multiple of that of batches whose output is released."""
        return self.ns("decode", corpus, self.whole(corpus), "fresh") / self.ns("decode", corpus, BATCH)

    def curve(self, name: str, job: str) -> list[tuple[int, float]]:
        """Return the points of a curve: nanoseconds for all rows, for one row, or for one header."""
        points = []
        for row in self.document["results"]:
            if (row.get("curve"), row["job"]) == (name, job):
                a_row = row["headers"] / row["rows"]
                per_row = {"rows": row["at"] * a_row, "headers": a_row, "value bytes": 1}[name]
                points.append((row["at"], median(row["ns"]) * per_row))
        return points

    def line(self, name: str, job: str) -> Line:
        """Fit a line to a curve, each point weighed by its size, as costs span four orders of magnitude."""
        x, y = (np.array(numbers, float) for numbers in zip(*self.curve(name, job), strict=True))
        (fixed, slope), *_ = np.linalg.lstsq(np.stack([1 / y, x / y], axis=1), np.ones(len(x)), rcond=None)
        off = y / (fixed + slope * x) - 1
        worst = int(np.argmax(abs(off)))
        return Line(float(fixed), float(slope), float(off[worst]), int(x[worst]))

    def bars(self) -> list[Bar]:
        """Return everything that is aimed at."""
        bars = [
            Bar(f"{job} {corpus}, Kafka's Java to ours, {batch:,} rows", goal, self.java(job, corpus, batch), True)
            for job, corpus, goal in (("decode", "A", 5), ("decode", "B", 5.5), ("encode", "A", 5.5))
            for batch in JAVA_BATCHES
        ]
        if self.has_wide:
            bars += [
                Bar(
                    f"{job} {corpus}, Kafka's Java to ours compiled for AVX-512, {batch:,} rows",
                    goal,
                    self.java(job, corpus, batch, WIDE),
                    True,
                )
                for job, corpus, goal in (("decode", "A", 6), ("decode", "B", 6.5), ("encode", "A", 6.3))
                for batch in JAVA_BATCHES
            ]
        for job, corpus, goal in (("decode", "A", 3.2), ("decode", "C", 3.2), ("encode", "A", 2.2)):
            whole = self.whole(corpus)
            bars.append(
                Bar(f"{job} {corpus}, ours to memcpy, {whole:,} rows", goal, self.to_memcpy(job, corpus, whole), False)
            )
        for job, goal in (("select", 1.2), ("validate", 0.9)):
            for corpus in self.document["corpora"]:
                title = f"{job} {corpus}, to decode, {BATCH:,} rows"
                bars.append(Bar(title, goal, self.to_decode(job, corpus), False))
        for corpus in self.document["corpora"]:
            title = f"decode {corpus}, {self.whole(corpus):,} rows into fresh memory, to batches of {BATCH:,}"
            bars.append(Bar(title, 1.6, self.fresh(corpus), False))
        return bars


def within(theirs: list[float], ours: list[float]) -> float:
    """Return the median of the ratios within a round."""
    return median(their_ns / our_ns for their_ns, our_ns in zip(theirs, ours, strict=True))


def lines(record: Record) -> Iterator[str]:
    """Lay the bars out as `benches.run` does its own."""
    yield f"{'limits of one core, aimed at':72} {'':8} {'goal':>5} {'x':>7}"
    for bar in record.bars():
        sign = "at least" if bar.at_least else "at most"
        yield f"  {bar.job:70} {sign} {bar.goal:5.2f} {bar.figure:7.2f}  {bar.verdict}"


if __name__ == "__main__":
    print(*lines(Record.read()), sep="\n")
