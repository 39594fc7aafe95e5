"""What is aimed at, section by section of the page, and which sides are faster than ours: from the records alone."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benches import run, typed
from benches.limits.report import JAVA_BATCHES, OURS, Bar, Record
from benches.spark import pairs, sides

CRATES = {("decode", "iggy"): 4.0, ("decode", "iggy-2023"): 6.0}
"""Of the crate as it comes; what `benches.run` aims at is for any crate."""
CRATE_JOBS = ("decode", "encode", "select 3", "validate")
CRATE_CORPORA = ("iggy", "iggy-2023", typed.SHUFFLED)
ONE_MESSAGE = {"decode one message": 3.0, "one header of one message": 5.0}
ONE_MESSAGE_SOURCE = "store blocks (kafka), one call each"
ENCODE_ONE = ("encode one message",)
STORE_JOBS = ("put a row", "get a row", "scan a store")
DIRECT = {OURS: "topic", f"{OURS}, segments": "segments"}
SAIL_AT_LEAST = 4.0
JAVA_AT_LEAST = 1.0
LESS = re.compile(rf"{OURS}.*|kernel taken out|rocksdict .*|.*, no headers")
"""Not another way to do the work: one more of ours, or what does less of it and is beside us to say what the rest costs."""


@dataclass(frozen=True)
class Compared:
    """Another side beside ours, on the same work."""

    job: str
    side: str
    ns: float
    times: float  # its time as a multiple of ours
    aimed: float | None = None  # at least, or nothing

    @property
    def bar(self) -> Bar | None:
        """Return what is aimed at; of less than once our time, the other way round."""
        if self.aimed is None:
            return None
        if self.aimed < 1:
            return Bar(f"{self.job}, ours to {self.side}", 1 / self.aimed, 1 / self.times, False)
        return Bar(f"{self.job}, {self.side} to ours", self.aimed, self.times, True)


class Faster(NamedTuple):
    """Another side that is faster than ours."""

    side: str
    job: str
    times: float  # its time as a multiple of ours


@dataclass(frozen=True)
class Section:
    """All bars of a section, and each side that is faster than ours."""

    name: str
    bars: list[Bar]
    faster: list[Faster] = field(default_factory=list)
    is_measured: bool = True


def sections(record: Record, rows: list[run.Row], other: Callable[[str], Any]) -> Iterator[Section]:
    """Return every section that aims at something."""
    yield one_core(record)
    yield of_rows("Iggy's crates", [comparison for pair in crates(rows).values() for comparison in pair.values()])
    yield of_rows(
        "One message at a time", [*(comparison for _, comparison in messages(rows)), *compared(rows, ENCODE_ONE)]
    )
    yield of_rows("State stores", compared(rows, STORE_JOBS))
    yield in_spark(other("spark.json"), other("engines.json"), other("from-your-query.json"))
    yield directly(other("direct.json"))
    yield opponents(other("opponents.json"))


def one_core(record: Record) -> Section:
    """Return the goals of one core; Java is the only other side that could be faster."""
    java = (
        Faster("Kafka's Java", f"{job} {corpus}, {batch:,} rows", record.java(job, corpus, batch))
        for job in ("decode", "encode", "select")
        for corpus in ("A", "B")
        for batch in JAVA_BATCHES
    )
    return Section("One core", record.bars(), below_one(java))


def of_rows(name: str, all_of_it: Sequence[Compared]) -> Section:
    """Return a section whose figures are rows of the table."""
    bars = [comparison.bar for comparison in all_of_it if comparison.bar is not None]
    others = (
        Faster(comparison.side, comparison.job, comparison.times)
        for comparison in all_of_it
        if not LESS.fullmatch(comparison.side)
    )
    faster = below_one(others)
    return Section(name, bars, faster, is_measured=bool(all_of_it))


def below_one(sides: Iterable[Faster]) -> list[Faster]:
    """Return those that take less time than ours."""
    return [side for side in sides if side.times < 1]


def crates(rows: list[run.Row]) -> dict[tuple[str, str], dict[bool, Compared]]:
    """Return what Iggy's crates took, by job and corpus, as they come and with our allocator (mimalloc)."""
    pairs_of_sides: dict[tuple[str, str], dict[bool, Compared]] = {}
    aimed = {(row.job, row.source, row.side): bar.times for bar, row, _ in run.aimed_at(rows)}
    for job in CRATE_JOBS:
        for corpus in CRATE_CORPORA:
            source = typed.source(corpus)
            sides = {row.side: row.ns for row in rows if (row.job, row.source) == (job, source)}
            for side, ns in sides.items():
                if side.startswith("crate") and OURS in sides:
                    mimalloc = side.endswith("mimalloc")
                    least = aimed.get((job, source, side))
                    if not mimalloc:
                        least = CRATES.get((job, corpus), least)
                    pair = pairs_of_sides.setdefault((job, corpus), {})
                    pair[mimalloc] = Compared(f"{job}, {corpus}", side, ns, ns / sides[OURS], least)
    return pairs_of_sides


def messages(rows: list[run.Row]) -> Iterator[tuple[run.Row, Compared]]:
    """Return each of our ways to read one message with the fastest plain Python beside it."""
    for job, least in ONE_MESSAGE.items():
        sides = {row.side: row for row in rows if (row.job, row.source) == (job, ONE_MESSAGE_SOURCE)}
        plain = [row for side, row in sides.items() if side.startswith("plain Python")]
        if plain:
            fastest = min(plain, key=lambda row: row.ns)
            for side, ours in sorted(sides.items(), key=lambda item: item[1].ns):
                if side == OURS or side.startswith(f"{OURS},"):
                    times = fastest.ns / ours.ns
                    yield ours, Compared(f"{job} (`{side}`)", fastest.side, fastest.ns, times, least)


def compared(rows: list[run.Row], jobs: Sequence[str]) -> list[Compared]:
    """Return what each other side took as a multiple of ours, job by job and source by source."""
    comparisons = []
    for job, source in dict.fromkeys((row.job, row.source) for row in rows if row.job in jobs):
        group = [row for row in rows if (row.job, row.source) == (job, source)]
        aimed = {row.side: (bar, times) for bar, row, times in run.aimed_at(group) if bar.ours == OURS}
        ours = {row.side: row.ns for row in group if row.side == OURS}
        for row in group:
            if row.side in aimed:
                bar, times = aimed[row.side]
                comparisons.append(Compared(f"{job}, {source}", row.side, row.ns, times, bar.times))
            elif ours and row.side != OURS:
                times = row.ratio if row.ratio is not None else row.ns / ours[OURS]
                comparisons.append(Compared(f"{job}, {source}", row.side, row.ns, times))
        # What is aimed at for another of our sides.
        for bar, row, times in run.aimed_at(group):
            if bar.ours != OURS:
                comparisons.append(Compared(f"{job} (`{bar.ours}`), {source}", row.side, row.ns, times, bar.times))
    return comparisons


def in_spark(record: Any, engines: Any, queries: Any) -> Section:
    """Return the goals in Spark, and the functions, expressions and queries that are faster there."""
    bars: list[Bar] = []
    faster: list[Faster] = []
    if record is not None:
        bars = [Bar(bar["what"], bar["at_most"], pairs.Ratio(*bar["found"]).median, False) for bar in record["bars"]]
        faster = below_one(
            Faster(result["side"], f"{result['job']}, {result['source']}", result["ratio"])
            for result in record["results"]
            if result["ratio"] is not None and not LESS.fullmatch(result["side"])
        )
    if engines is not None:
        bars += [Bar(job, aimed, figure, True) for job, aimed, figure in of_engines(engines)]
        known = {(comparison.side, comparison.job) for comparison in faster}
        faster += below_one(
            Faster(result["side"], f"{result['job']}, {result['source']}, one core", result["ratio"])
            for result in engines["engines"]["results"]
            if result["engine"] == "Spark"
            and not LESS.fullmatch(result["side"])
            and (result["side"], f"{result['job']}, {result['source']}") not in known
        )
    if queries is not None:
        faster += below_one(
            Faster(
                result["title"], f"query in Spark; {result['differ']:,} of its 10,000 rows are wrong", result["ratio"]
            )
            for result in queries["results"]
        )
    return Section("Spark", bars, faster, is_measured=record is not None or engines is not None or queries is not None)


def of_engines(record: Any) -> Iterator[tuple[str, float, float]]:
    """Return what is aimed at of each way to run `select_headers`, and the time of the slower side as a multiple."""
    for result in record["engines"]["results"]:
        if result["job"] == sides.SELECT:
            job = f"{result['job']}, {result['source']}".replace(" in Spark", "")
            if (result["engine"], result["side"]) == ("Sail", OURS):
                yield f"`mapInArrow` in Spark to Sail: {job}", SAIL_AT_LEAST, 1 / result["ratio"]
            if result["side"] == "Java UDF":
                yield f"Java UDF to `mapInArrow`: {job}", JAVA_AT_LEAST, result["ratio"]


def directly(record: Any) -> Section:
    """Return the goals of reading topics and segments; every round is a ratio."""
    if record is None:
        return Section("Reading directly", [], is_measured=False)
    bars, faster = [], []
    for job, side, name, ratios in rounds(record):
        times, work = statistics.median(ratios), f"{job}, {side} to our {name}"
        least = run.direct.BARS.get((job, side))
        if least is not None:
            bars.append(Bar(work, least, times, True))
        faster += below_one([Faster(side, f"{job}, our {name}", times)])
    return Section("Reading directly", bars, faster)


def opponents(record: Any) -> Section:
    """Return which programs read a topic, segments or a store faster; their goal is beside them on the page."""
    results = [] if record is None else record["results"]
    others = (Faster(result["side"], f"read a {result['job']}, one core", result["ratio"]) for result in results)
    return Section("Other programs", [], below_one(others), is_measured=record is not None)


def rounds(record: Any) -> Iterator[tuple[str, str, str, list[float]]]:
    """Return a job, another side, which of our two it is compared with, and the ratios within each round."""
    taken = {(result["job"], result["side"]): result["seconds"] for result in record["results"]}
    for (job, side), theirs in taken.items():
        if side not in DIRECT:
            for our_side, name in DIRECT.items():
                if (job, our_side) in taken:
                    ours = taken[job, our_side]
                    yield job, side, name, [seconds / another for seconds, another in zip(theirs, ours, strict=False)]
