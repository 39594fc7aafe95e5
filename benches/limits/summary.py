"""The two tables with which docs/benchmarks.md begins: what matters to a user, and where other programs are faster."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benches import run
from benches.limits import goals
from benches.limits.report import BATCH, Record

Line = Sequence[str]
DIRECT_JOBS = (
    (
        "three typed headers in Spark, noop sink",
        "Spark's source kafka, typed",
        "Read three typed headers of a topic in Spark",
    ),
    ("all columns in Spark, Parquet sink", "Spark's source kafka", "Copy a whole topic to Parquet in Spark"),
    ("offset and amount to Arrow, one core", "confluent-kafka", "Read offset and one header of a topic into Arrow"),
)
PYTHON_JOBS = (("select", "Select three typed headers of a column"), ("encode", "Encode a column of headers"))
TIE = 0.91  # less than 10 % apart
README = {
    ("Read three typed headers of a topic in Spark", "Spark's own source, cast"),
    ("Select three typed headers of a column", "plain Python"),
    ("Decode a column of headers", "Kafka's Java"),
}
SPARK_SOURCE = "store values (streams-timestamped)"


def matters(record: Record, rows: list[run.Row], other: Callable[[str], Any]) -> Iterator[Line]:
    """Yield a line for each job: what it is, our time, the alternative, the ratio, the condition.

    A condition is the number of cores and, after a comma, the data: a key of :func:`conditions`, or their description.
    """
    yield from directly(other("direct.json"))
    yield from in_spark(other("spark.json"))
    for job, title in PYTHON_JOBS:
        plain = plain_times(record, job)
        yield of(title, plain[0], "plain Python", plain[1], "one core, corpus A")
    for job, title in (("decode", "Decode a column of headers"), ("encode", "Encode a column of headers")):
        theirs = record.ns(job, "A", BATCH, "garbage", "Kafka's Java")
        yield of(title, record.ns(job, "A", BATCH), "Kafka's Java", theirs, "one core, corpus A")
    for (job, corpus), pair in goals.crates(rows).items():
        if (job, corpus) == ("decode", "iggy"):
            each = pair[False]
            ours = each.ns / each.times
            yield of("Decode Iggy's headers", ours, "Iggy's crate", each.ns, "one core, five typed headers")
    for ours, each in goals.messages(rows):
        if ours.job == "decode one message" and ours.side == "letterhead":
            yield of("Decode one message to objects", ours.ns, "plain Python", each.ns, "one core, one call a message")
    for each in goals.compared(rows, ("get a row",)):
        if each.side.endswith("metrics at INFO"):
            side, condition = "Kafka Streams' Java store", "one core, five headers and 100 bytes"
            yield of("Get a row of a state store", each.ns / each.times, side, each.ns, condition, "ns a row")


def conditions(other: Callable[[str], Any]) -> dict[str, str]:
    """Return what the conditions of several lines mean."""
    meanings = {}
    if (found := other("direct.json")) is not None:
        meanings["topic"] = f"{found['rows']:,} records; broker on the same machine"
    if (found := other("spark.json")) is not None:
        meanings["store"] = f"{found['rows']:,} values of a state store, Parquet to a sink that discards"
    meanings["corpus A"] = f"headers of a real state store, ten a message, {BATCH:,} rows a call"
    return meanings


def plain_times(record: Record, job: str) -> tuple[float, float]:
    """Return our time from Python and that of plain Python, on corpus A."""
    theirs = record.plain(job, "A")
    ours = record.ns(job, "A", BATCH, side="letterhead, from Python")
    return ours, ours * theirs


def directly(found: Any) -> Iterator[Line]:
    """Yield the lines of reading topics; ratios are medians of those within a round."""
    if found is None:
        return
    taken = {(result["job"], result["side"]): statistics.median(result["seconds"]) for result in found["results"]}
    ratios = {(job, side): each for job, side, name, each in goals.rounds(found) if name == "topic"}
    cores = {"offset and amount to Arrow, one core": "one core"}
    for job, side, title in DIRECT_JOBS:
        times = statistics.median(ratios[job, side])
        ours = f"{taken[job, 'letterhead']:.1f} s"
        name = {"Spark's source kafka, typed": "Spark's own source, cast", "Spark's source kafka": "Spark's own source"}
        yield [title, ours, name.get(side, side), f"**{times:.1f}**", f"{cores.get(job, 'two cores')}, topic"]


def in_spark(found: Any) -> Iterator[Line]:
    """Yield the lines of functions in Spark on bytes."""
    if found is None:
        return
    rows = [row for row in run.read_spark(run.RECORD / "spark.json") if row.source == SPARK_SOURCE]
    (ours,) = (row for row in rows if (row.job, row.side) == ("select 3 in Spark", "letterhead"))
    for row in rows:
        if row.job == ours.job and row.side.endswith("UDF") and row.ratio is not None:
            title = "Select three headers from bytes in Spark"
            yield [title, f"{ours.ns:.0f} ns", row.side, f"**{row.ratio:.2g}**", "two cores, store"]


def of(title: str, ours: float, side: str, theirs: float, condition: str, unit: str = "ns") -> Line:
    """Return a line whose ratio is that of its times."""
    time = f"{ours:,.0f} {unit}" if ours >= 100 else f"{ours:#.3g} {unit}"
    ratio = theirs / ours
    return [title, time, side, f"**{ratio:.3g}**" if ratio >= 10 else f"**{ratio:.2f}**", condition]


def faster(record: Record, rows: list[run.Row], other: Callable[[str], Any]) -> Iterator[Line]:
    """Yield for each job the side that is faster than ours by most, if by more than runs differ; the fastest first.

    In Spark, every side that is faster.
    """
    fastest: dict[tuple[str, str], goals.Faster] = {}
    for section in goals.sections(record, rows, other):
        for each in sorted(section.faster, key=lambda each: each.times):
            if each.times < TIE:
                fastest.setdefault((each.what, each.side if section.name == "Spark" else ""), each)
    for each in sorted(fastest.values(), key=lambda each: each.times):
        yield [each.what.replace(", one call each", "").replace(", rows of ", ", "), each.side, f"{each.times:.2f}"]
