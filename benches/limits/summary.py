"""The tables with which docs/benchmarks.md begins: what matters to a user, and where other programs are faster."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from benches import run
from benches.limits import goals
from benches.limits.report import BATCH, Record
from benches.machine import load_text

Line = Sequence[str]
DIRECT_JOBS = (
    ("all columns in Spark, Parquet sink", "Spark's source kafka", "Copy a topic to Parquet in Spark"),
    (
        "three typed headers in Spark, noop sink",
        "Spark's source kafka, typed",
        "Read three headers of a topic in Spark, noop sink",
    ),
    ("offset and amount to Arrow, one core", "confluent-kafka", "Read a header of a topic into Arrow"),
)
PYTHON_JOBS = (("select", "Select three headers of a column"), ("encode", "Encode a column of headers"))
TIE = 0.91  # less than 10 % apart
SPARK_SOURCE = "store values (streams-timestamped)"
SPARK_LISTS = "Select three headers of a list in Spark, noop sink"
SPARK_BYTES = "Select three headers of state-store bytes in Spark, noop sink"
LIST_SIDES = {
    "checked Java UDF": "Java UDF, same checks",
    "Spark SQL": "SQL by hand, no checks",
    "Arrow UDF": "Arrow UDF",
    "Python UDF": "Python UDF",
}
README = {
    ("Copy a topic to Parquet in Spark", "Spark's source"),
    ("Read three headers of a topic in Spark, noop sink", "Spark's source"),
    *((SPARK_LISTS, side) for side in LIST_SIDES.values()),
    (SPARK_BYTES, "Java UDF"),
}
HEADLINE = (SPARK_LISTS, "Python UDF")
HEADERS = 10  # of a message of corpus A, and of the benchmarks of one message


class Comparison(NamedTuple):
    """How long a job takes with letterhead, and with an alternative."""

    job: str
    side: str
    ratio: float  # time of the alternative, ours = 1
    seconds: float  # ours, for a million messages
    condition: str  # number of cores and, after a comma, the data: a key of `conditions`, or their description
    part: str  # of tools/bench, which repeats it
    spread: tuple[float, float] | None = None  # the least and the greatest ratio of a round, where rounds are recorded


def speed(ratio: float) -> str:
    """Return how fast letterhead is, from the time of an alternative where ours is 1."""
    if TIE < ratio < 1 / TIE:
        return "as fast"
    times = max(ratio, 1 / ratio)
    return f"{times:.{0 if times >= 10 else 1}f} times {'faster' if ratio > 1 else 'slower'}"


def speed_beside(comparison: Comparison) -> str:
    """Return how fast letterhead is, and compared with what."""
    text = speed(comparison.ratio)
    return f"{text} {'as' if text.startswith('as') else 'than'} {comparison.side}"


def matters(record: Record, rows: list[run.Row], other: Callable[[str], Any]) -> Iterator[Comparison]:
    """Yield the comparisons that matter to a user, jobs of most users first."""
    yield from directly(other("direct.json"))
    yield from of_lists(other("spark-lists.json"))
    yield from in_spark(other("spark.json"))
    for job, title in PYTHON_JOBS:
        ours, theirs = plain_times(record, job)
        yield compared(title, ours, "plain Python", theirs, "one core, corpus A", "limits", HEADERS)
    for job, title in (("decode", "Decode a column of headers"), ("encode", "Encode a column of headers")):
        theirs = record.ns(job, "A", BATCH, "garbage", "Kafka's Java")
        yield compared(
            title, record.ns(job, "A", BATCH), "Kafka's Java", theirs, "one core, corpus A", "limits", HEADERS
        )
    for (job, corpus), pair in goals.crates(rows).items():
        if (job, corpus) == ("decode", "iggy"):
            crate = pair[False]
            ours = crate.ns / crate.times
            yield compared(
                "Decode Iggy's headers", ours, "Iggy's crate", crate.ns, "one core, five typed headers", "iggy", 5
            )
    for row, plain in goals.messages(rows):
        if row.job == "decode one message" and row.side == "letterhead":
            condition = "one core, one call a message"
            yield compared(
                "Decode one message to objects", row.ns, "plain Python", plain.ns, condition, "python", HEADERS
            )
    for store in goals.compared(rows, ("get a row",)):
        if store.side.endswith("metrics at INFO"):
            side, condition = "Kafka Streams' Java store", "one core, five headers and 100 bytes"
            ours = store.ns / store.times
            yield compared("Get a row of a state store", ours, side, store.ns, condition, "python jvm", 1)


def conditions(other: Callable[[str], Any]) -> dict[str, str]:
    """Return what the conditions of several lines mean."""
    meanings = {}
    if (record := other("direct.json")) is not None:
        meanings["topic"] = f"{record['rows']:,} records; broker on the same machine"
    if (record := other("spark.json")) is not None:
        meanings["store"] = f"{record['rows']:,} values of a state store, Parquet to a sink that discards"
    if (record := other("spark-lists.json")) is not None:
        load = load_text(record["load"])
        rows = " or ".join(f"{rows:,}" for rows in sorted({result["rows"] for result in record["results"]}))
        meanings["list column"] = (
            f"{rows} rows as Spark's Kafka source returns them, Parquet to the noop sink, which discards; two cores, CPU "
            f"time of all processes; Spark {record['spark']}, load {load}"
        )
    meanings["corpus A"] = f"headers of a real state store, ten a message, {BATCH:,} rows a call"
    return meanings


def plain_times(record: Record, job: str) -> tuple[float, float]:
    """Return our time from Python and that of plain Python, on corpus A."""
    theirs = record.plain(job, "A")
    ours = record.ns(job, "A", BATCH, side="letterhead, from Python")
    return ours, ours * theirs


def directly(record: Any) -> Iterator[Comparison]:
    """Yield the comparisons of reading topics; ratios are medians of those within a round."""
    if record is None:
        return
    taken = {(result["job"], result["side"]): statistics.median(result["seconds"]) for result in record["results"]}
    ratios = {(job, side): of_rounds for job, side, name, of_rounds in goals.rounds(record) if name == "topic"}
    for job, side, title in DIRECT_JOBS:
        ratio = statistics.median(ratios[job, side])
        seconds = taken[job, "letterhead"] * 1e6 / record["rows"]
        cores = "one core" if job.endswith("one core") else "two cores"
        yield Comparison(
            title,
            "Spark's source" if side.startswith("Spark's source") else side,
            ratio,
            seconds,
            f"{cores}, topic",
            "direct",
            (min(ratios[job, side]), max(ratios[job, side])),
        )


def in_spark(record: Any) -> Iterator[Comparison]:
    """Yield the comparisons of functions in Spark on bytes."""
    if record is None:
        return
    (ours,) = (
        result
        for result in record["results"]
        if (result["job"], result["source"], result["side"]) == ("select 3 in Spark", SPARK_SOURCE, "letterhead")
    )
    seconds = statistics.median(ours["seconds"]) * 1e6 / ours["rows"]
    spreads = {
        result["side"]: spread(result["seconds"], result["ours_beside"])
        for result in record["results"]
        if (result["job"], result["source"]) == (ours["job"], SPARK_SOURCE)
    }
    for row in run.read_spark(run.RECORD / "spark.json"):
        if (row.job, row.source) == (ours["job"], SPARK_SOURCE) and row.side.endswith("UDF") and row.ratio is not None:
            yield Comparison(SPARK_BYTES, row.side, row.ratio, seconds, "two cores, store", "spark", spreads[row.side])


def of_lists(record: Any) -> Iterator[Comparison]:
    """Yield the comparisons of selecting from a list column in Spark."""
    if record is None:
        return
    results = {result["side"]: result for result in record["results"]}
    seconds = cpu_seconds(results["letterhead"])
    for side, title in LIST_SIDES.items():
        ratios = spread(cpu_times(results[side]), cpu_times(results["letterhead"]))
        ratio = results[side]["cpu_ratio"]
        yield Comparison(SPARK_LISTS, title, ratio, seconds, "CPU time, list column", "spark", ratios)


def spread(theirs: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest ratio of the rounds that both sides have."""
    ratios = [their / our for their, our in zip(theirs, ours, strict=False)]
    return min(ratios), max(ratios)


def cpu_times(result: Any) -> list[float]:
    """Return the CPU time of all processes, for each round."""
    return [sum(times) for times in zip(*result["cpu_seconds"].values(), strict=True)]


def cpu_seconds(result: Any) -> float:
    """Return the CPU time of all processes for a million messages."""
    return statistics.median(cpu_times(result)) * 1e6 / int(result["rows"])


def compared(title: str, ours: float, side: str, theirs: float, condition: str, part: str, headers: int) -> Comparison:
    """Return a comparison from nanoseconds for a header, or for a row with ``headers=1``."""
    return Comparison(title, side, theirs / ours, ours * headers / 1000, condition, part)


def faster(record: Record, rows: list[run.Row], other: Callable[[str], Any]) -> Iterator[Line]:
    """Yield for each job the side that is faster than ours by most, if by more than runs differ; the fastest first.

    In Spark, every side that is faster.
    """
    fastest: dict[tuple[str, str], goals.Faster] = {}
    for section in goals.sections(record, rows, other):
        for comparison in sorted(section.faster, key=lambda comparison: comparison.times):
            if comparison.times < TIE:
                fastest.setdefault((comparison.job, comparison.side if section.name == "Spark" else ""), comparison)
    for comparison in sorted(fastest.values(), key=lambda comparison: comparison.times):
        yield [
            comparison.job.replace(", one call each", "").replace(", rows of ", ", "),
            comparison.side,
            speed(comparison.times),
        ]
