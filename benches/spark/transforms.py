"""`select_headers` and `decode_headers` in Spark, against the same jobs without their kernels and against other ways.

Two million rows from Parquet to the noop sink, in one session, in three families (:mod:`benches.spark.sides`): tenant
(string), retry (int) and amount_cents (bigint) from a store's values and from headers as Spark's Kafka source gives
them; and all headers, timestamp and payload from a store's values. Every side gives its answer first.

* **Against the job without its kernel**: 15 pairs, one right after the other, there and back. What is compared is the
  ratio within a pair; of those, the median, with a bootstrap interval. The same of the CPU time of all processes.
* **Against the others**: all sides in turns, there and back, in fewer rounds.
* **Native calls**: what part of the CPU time of Python's workers is spent in them while three headers are selected
  (:mod:`benches.spark.cpu`). Of a worker that does nothing but read, call and write, it is large where the rest is small.

    python -m benches.spark.transforms [--record FILE]     LETTERHEAD_BENCH=quick: 2,000 rows, each side once
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benches import data
from benches.machine import features, load_text, processor
from benches.spark import cpu, pairs, sides
from benches.spark.session import BATCH, ROOT, start_spark, time_limit
from benches.spark.sides import EMPTY, OURS, Family

ROWS = 2_000 if data.QUICK else int(os.environ.get("BENCH_SPARK_ROWS", "2000000"))
PAIRS = 15
ROUNDS = 3  # of the sides that take longer
SHARES = 1 if data.QUICK else 5
FILES = 1 if data.QUICK else 4

# What ours may take of the job without its kernel, and native calls of the workers' CPU time.
AT_MOST = {sides.SELECT: 1.05, sides.DECODE: 1.15}
SHARE_AT_MOST = 0.1


class Taken(NamedTuple):
    """What one run took, in seconds."""

    wall: float
    jvm: float
    workers: float


def main() -> None:
    """Check every side's answer, time the sides, print and record the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    record = parser.parse_args().record
    spark = start_spark(sides.CLASSPATH)
    # All sides read rows; `benches.spark.engines` measures what Spark's default, columns as they are, saves an `arrow_udf`.
    spark.conf.set("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", "false")
    measured: dict[str, Any] = {"rows": ROWS, "batch": BATCH, "spark": spark.version}
    measured |= {"processor": processor(), "features": features()}
    measured |= {"load": [os.getloadavg()], "results": [], "bars": [], "shares": []}
    try:
        families = list(sides.families(spark, ROWS))
        for step in (against_empty, native_share, against_others):
            for family in families:
                frame = spark.read.parquet(str(generate(family))).select(family.column)
                step(spark, family, frame, measured)
                measured["load"].append(os.getloadavg())
                # After each step: what was measured stays if a later one does not end.
                if record is not None:
                    record.write_text(json.dumps(measured, indent=1) + "\n")
    finally:
        spark.stop()
    show(measured)


def against_empty(spark: Any, family: Family, frame: Any, record: dict[str, Any]) -> None:
    """Compare ours with the job without its kernel, by the clock and by CPU time."""
    taken = in_turns(family, frame, [OURS, EMPTY], PAIRS)
    record["results"] += [result(family, name, taken[name], taken[OURS]) for name in (OURS, EMPTY)]
    cpu_seconds = {name: [run.jvm + run.workers for run in runs] for name, runs in taken.items()}
    record["bars"].append(
        {
            "what": f"letterhead against the kernel taken out: {family.job}, {family.source}",
            "at_most": AT_MOST[family.job],
            "found": pairs.ratio(*([run.wall for run in taken[name]] for name in (OURS, EMPTY))),
            "by_cpu": pairs.ratio(cpu_seconds[OURS], cpu_seconds[EMPTY]),
        }
    )


def native_share(spark: Any, family: Family, frame: Any, record: dict[str, Any]) -> None:
    """Run ours with a clock around native calls; the workers' CPU time is that of the same runs."""
    if family.job != sides.SELECT:
        return
    shares = []
    for _ in range(SHARES):
        with cpu.native_calls_counted(spark) as native:
            result = family.sides[OURS](frame)
        taken = timed(family, "native calls", lambda result=result: to_noop(result))
        shares.append({"native": native.value, "workers": taken.workers, "jvm": taken.jvm})
    record["shares"].append({"job": family.job, "source": family.source, "runs": shares})
    record["bars"].append(
        {
            "what": f"native calls in the CPU time of Python's workers: {family.job}, {family.source}",
            "at_most": SHARE_AT_MOST,
            "found": pairs.median([share["native"] / share["workers"] for share in shares]),
        }
    )


def against_others(spark: Any, family: Family, frame: Any, record: dict[str, Any]) -> None:
    """Compare ours with every other way."""
    others = [name for name in family.sides if name not in (OURS, EMPTY)]
    # With little data, ours need not run again: nothing is compared.
    taken = in_turns(family, frame, others if data.QUICK else [OURS, *others], ROUNDS)
    record["results"] += [result(family, name, taken[name], taken.get(OURS, taken[name])) for name in others]


def result(family: Family, name: str, taken: list[Taken], ours: list[Taken]) -> dict[str, Any]:
    """Report the time of a side, and that of ours in the same rounds."""
    return {
        "job": family.job,
        "source": family.source,
        "side": name,
        "rows": ROWS,
        "headers": family.headers,
        "batch": BATCH,
        "seconds": [run.wall for run in taken],
        "cpu_seconds": {"jvm": [run.jvm for run in taken], "workers": [run.workers for run in taken]},
        "ours_beside": [run.wall for run in ours],
        "ratio": statistics.median(run.wall / our.wall for run, our in zip(taken, ours, strict=True)),
    }


def in_turns(family: Family, frame: Any, names: list[str], rounds: int) -> dict[str, list[Taken]]:
    """Check the answers of sides; then run them there and back, so that no side always follows the same other one."""
    # The answers warm up; with little data, they are all there is.
    once = {name: timed(family, name, partial(check, family, name, frame)) for name in names}
    taken: dict[str, list[Taken]] = {name: [once[name]] if data.QUICK else [] for name in names}
    for number in range(0 if data.QUICK else rounds):
        for name in names[:: -1 if number % 2 else 1]:
            taken[name].append(timed(family, name, lambda name=name: to_noop(family.sides[name](frame))))
    return taken


def to_noop(result: Any) -> None:
    """Run a job, and throw away what it gives."""
    result.write.format("noop").mode("overwrite").save()


def timed(family: Family, name: str, run: Callable[[], object]) -> Taken:
    """Run a side once, with a limit."""
    subject = f"{family.job}, {family.source}: {name}"
    with time_limit(subject), cpu.counted() as spent:
        started = time.perf_counter()
        run()
        wall = time.perf_counter() - started
    taken = Taken(wall, *spent[0])
    print(f"{subject}: {taken.wall:.2f} s, CPU {taken.jvm:.2f} + {taken.workers:.2f} s", file=sys.stderr, flush=True)
    return taken


def check(family: Family, name: str, frame: Any) -> None:
    """Add up a side's columns and compare; the one with the kernel taken out only has to give all rows."""
    sums = sides.added_up(family.job, family.sides[name](frame))
    if name == EMPTY:
        assert sums["rows"] == ROWS, (family.job, family.source, name, sums)
    else:
        assert sums == family.answer, (family.job, family.source, name, sums, family.answer)


def generate(family: Family) -> Path:
    """Write the rows to Parquet once, in files small enough that both cores get several tasks."""
    path = ROOT / "target" / "benches" / f"{family.column}-{ROWS}.parquet"
    if not (path / "_SUCCESS").exists():
        path.mkdir(parents=True, exist_ok=True)
        rows = ROWS // FILES
        batch = pa.table({family.column: family.make(ROWS)})
        for number in range(FILES):
            pq.write_table(batch.slice(number * rows, rows), path / f"part-{number}.parquet", row_group_size=rows // 2)
        (path / "_SUCCESS").touch()
        family.make.cache_clear()  # type: ignore[attr-defined]
    return path


def show(record: dict[str, Any]) -> None:
    """Print the medians, what each is of ours in the same rounds, and the bars."""
    load = load_text(record["load"])
    print(f"\n{ROWS:,} rows, local[2], noop sink; load {load}" + (" (quick: times mean nothing)" * data.QUICK))
    for row in record["results"]:
        taken = row["seconds"]
        print(
            f"  {row['job']}, {row['source']:34} {row['side']:17} {statistics.median(taken):6.2f} s"
            f"  ({min(taken):.2f}-{max(taken):.2f}, {len(taken)} runs)  {row['ratio']:6.2f} x letterhead"
        )
    if not data.QUICK:
        print(*pairs.verdicts(record["bars"]), sep="\n")


if __name__ == "__main__":
    main()
