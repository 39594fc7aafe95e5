"""Ways to select three of ten headers from a list column, which Spark's Kafka source returns, in one session.

Rows come from Parquet and go to the noop sink. Sides take turns, there and back, and each gives its answer first. What is
compared is the CPU time of all processes, as a ratio to ours within a round, because it depends less than the clock on what
else the machine does; both are recorded. :mod:`benches.spark.sides` says what each side is, with these differences:

* `letterhead` is `lhs.select_headers` as it is called without `engine=`: expressions of Spark.
* `letterhead, Arrow` is the same with `engine="arrow"`.
* `checked Java UDF` is `Java UDF` with letterhead's checks: keys that are null, sizes of numbers, and UTF-8.

    python -m benches.spark.lists [--record FILE]     LETTERHEAD_BENCH=quick: 2,000 rows, each side once
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

from benches import data
from benches.machine import features, processor
from benches.spark import sides
from benches.spark.session import start_spark
from benches.spark.sides import LISTS, OURS, Family
from benches.spark.transforms import ROUNDS, ROWS, Taken, generate, in_turns, result, show

FAST_ROUNDS = 7


def main() -> None:
    """Check every side's answer, time them in turns, print and record the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    record = parser.parse_args().record
    spark = start_spark(sides.CLASSPATH)
    measured: dict[str, Any] = {"rows": ROWS, "spark": spark.version, "cores": len(os.sched_getaffinity(0))}
    measured |= {"processor": processor(), "features": features()}
    measured |= {"load": [os.getloadavg()], "results": [], "bars": []}
    try:
        (family,) = (family for family in sides.families(spark, ROWS) if family.source == LISTS)
        family = family._replace(sides=named_sides(family))
        frame = spark.read.parquet(str(generate(family))).select(family.column)
        fast = [name for name in family.sides if name not in SLOW]
        for names, rounds in ((fast, FAST_ROUNDS), ([OURS, *SLOW], ROUNDS)):
            taken = in_turns(family, frame, names, rounds)
            known = {row["side"] for row in measured["results"]}
            measured["results"] += [
                result(family, name, taken[name], taken[OURS]) | {"cpu_ratio": cpu_ratio(taken[name], taken[OURS])}
                for name in names
                if name not in known
            ]
            measured["load"].append(os.getloadavg())
            # After each step: what was measured stays if the other one does not end.
            if record is not None:
                record.write_text(json.dumps(measured, indent=1) + "\n")
    finally:
        spark.stop()
    if not data.QUICK:
        show(measured)


SLOW = ("Arrow UDF", "Python UDF")


def named_sides(family: Family) -> dict[str, sides.Job]:
    """Return the sides that are compared."""
    from letterhead import spark as lhs

    names = ("letterhead header", "Spark SQL", "Java UDF", *SLOW)
    return {
        OURS: lambda df: lhs.select_headers(df, data.COLUMNS),
        "letterhead, Arrow": family.sides[OURS],
        "checked Java UDF": sides.java_udf("SelectFromListChecked", "headers"),
        **{name: family.sides[name] for name in names},
    }


def cpu_ratio(theirs: list[Taken], ours: list[Taken]) -> float:
    """Return the median of the ratios of CPU times within rounds."""
    return statistics.median(
        (run.jvm + run.workers) / (our.jvm + our.workers) for run, our in zip(theirs, ours, strict=True)
    )


if __name__ == "__main__":
    main()
