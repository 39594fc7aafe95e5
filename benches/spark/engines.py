"""The same jobs on Spark and on Sail, by every way to run them, on one core; and with batches of 1,000 to 64,000 rows.

The jobs and sides are those of :mod:`benches.spark.sides`; rows come from Parquet and go to the noop sink. Sail has a
process of its own, as it needs another version of pyspark, and the sides of both engines take turns, there and back. Every
side gives its answer before it is timed. What is compared are the ratios to `letterhead` in Spark, within a round.

* `letterhead` is `mapInArrow`, as the library has it; `letterhead, arrow_udf` the same kernel in a scalar Arrow UDF.
* `kernel taken out` moves the same rows and computes nothing, on both engines.
* All of these read rows. By default Spark 4.3 passes columns of Parquet to an `arrow_udf` as they are: both ways take turns
  with `mapInArrow`, separately.
* The size of a batch is a setting of a session of Spark, and of the process of Sail.

Everything shares one core if the process may use only one: `tools/bench engines` does that with `taskset`.

    python -m benches.spark.engines [--record FILE] [--only PART]     LETTERHEAD_BENCH=quick: 2,000 rows, each side once
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benches import data
from benches.machine import ran_on
from benches.spark import sides
from benches.spark.session import BATCH, ROOT, start_spark, time_limit
from benches.spark.sides import BY_UDF, EMPTY, OURS, Family
from benches.spark.transforms import ROWS, generate, to_noop

SAIL_PYTHON = os.environ.get("PYTHON_SAIL", str(ROOT / ".venv-sail" / "bin" / "python"))
ROUNDS = 1 if data.QUICK else 7
SIZES = (1_000, BATCH) if data.QUICK else (1_000, 4_000, BATCH, 16_000, 64_000)
SAIL_BATCH = 8_192  # execution.batch_size, the default of Sail
SLOW = ("Python UDF", "Arrow UDF")  # of which three rounds are enough
ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
INPUTS = {"rows": "false", "columns": "true"}
COLUMNAR_INPUT = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"


def main() -> None:
    """Check every side's answer, time them in turns, print and record the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    parser.add_argument("--only", choices=PARTS, help="renew this part of the record")
    parser.add_argument("--sail", action="store_true", help="be the process of Sail: jobs on stdin, times on stdout")
    options = parser.parse_args()
    if options.sail:
        serve()
        return
    spark = start_spark(sides.CLASSPATH, cores=1)
    spark.conf.set(COLUMNAR_INPUT, "false")
    record: dict[str, Any] = {}
    if options.only and options.record is not None and options.record.exists():
        record = json.loads(options.record.read_text())
    try:
        families = list(sides.families(spark, ROWS, java=options.only in (None, "engines")))
        for part in (options.only,) if options.only else PARTS:
            result = about(spark)
            record[part] = result
            for number, family in enumerate(families[:1] if data.QUICK and part == "sizes" else families):
                PARTS[part](spark, number, family, result)
                result["load"].append(os.getloadavg())
                if options.record is not None:
                    options.record.write_text(json.dumps(record, indent=1) + "\n")
    finally:
        spark.stop()
    show(record)


def about(spark: Any) -> dict[str, Any]:
    """Describe a measurement: its rows, versions, sources and machine."""
    result: dict[str, Any] = {"rows": ROWS, "batch": BATCH, "sail_batch": SAIL_BATCH, "spark": spark.version}
    result |= {"cores": len(os.sched_getaffinity(0)), "machine": ran_on("src", "python", "benches/spark")}
    return result | {"load": [os.getloadavg()], "results": []}


def engines(spark: Any, number: int, family: Family, record: dict[str, Any]) -> None:
    """Run all sides of both engines in turns."""
    frame = spark.read.parquet(str(generate(family))).select(family.column)
    with sail(SAIL_BATCH) as ask:
        record["sail"] = ask(number, "version")
        # With little data nothing is compared, and benches.spark.transforms runs the other sides.
        names = (OURS, EMPTY) if data.QUICK else family.sides
        runs = {("Spark", side): partial(once, family, side, frame) for side in names}
        runs |= {("Sail", side): partial(ask, number, side) for side in (OURS, EMPTY)}
        for (_, side), run in runs.items():
            check(family, side, run(answer=True))
        taken = in_turns(runs)
    ours = taken["Spark", OURS]
    for (engine, side), seconds in taken.items():
        record["results"].append(
            {"job": family.job, "source": family.source, "engine": engine, "side": side, "seconds": seconds}
            | {"headers": family.headers, "ratio": ratio(seconds, ours)}
        )


def sizes(spark: Any, number: int, family: Family, record: dict[str, Any]) -> None:
    """Run ours on both engines with each size of batches."""
    frame = spark.read.parquet(str(generate(family))).select(family.column)
    runs = {("Spark", size): partial(sized, spark, size, family, frame) for size in SIZES}
    seconds = in_turns(runs)
    for size in SIZES:
        with sail(size) as ask:
            ask(number, OURS)
            seconds["Sail", size] = [ask(number, OURS) for _ in range(ROUNDS)]
    for (engine, size), taken in seconds.items():
        base = seconds[engine, BATCH]
        record["results"].append(
            {"job": family.job, "source": family.source, "engine": engine, "rows": size, "seconds": taken}
            | {"ratio": ratio(taken, base)}
        )


def columnar(spark: Any, number: int, family: Family, record: dict[str, Any]) -> None:
    """Run `mapInArrow` and an Arrow UDF in turns, the latter with rows and, as by default, with columns."""
    frame = spark.read.parquet(str(generate(family))).select(family.column)
    runs = {(OURS, ""): partial(once, family, OURS, frame)}
    runs |= {(BY_UDF, column_kind): partial(with_input, spark, column_kind, family, frame) for column_kind in INPUTS}
    for (side, _), run in runs.items():
        check(family, side, run(answer=True))
    taken = in_turns(runs)
    for (side, column_kind), seconds in taken.items():
        record["results"].append(
            {"job": family.job, "source": family.source, "side": side, "input": column_kind, "seconds": seconds}
            | {"headers": family.headers, "ratio": ratio(seconds, taken[OURS, ""])}
        )


def with_input(spark: Any, column_kind: str, family: Family, frame: Any, *, answer: bool = False) -> Any:
    """Run the Arrow UDF on rows or on columns."""
    spark.conf.set(COLUMNAR_INPUT, INPUTS[column_kind])
    try:
        return once(family, BY_UDF, frame, answer=answer)
    finally:
        spark.conf.set(COLUMNAR_INPUT, "false")


def in_turns(runs: dict[tuple[str, Any], Any]) -> dict[tuple[str, Any], list[float]]:
    """Run there and back; the slow sides less often."""
    taken: dict[tuple[str, Any], list[float]] = {name: [] for name in runs}
    for number in range(ROUNDS):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            if name[1] not in SLOW or number < 3:
                with time_limit(str(name)):
                    taken[name].append(runs[name]())
                print(*name, f"{taken[name][-1]:.2f} s", file=sys.stderr, flush=True)
    return taken


def ratio(seconds: list[float], base: list[float]) -> float:
    """Return the median of the ratios within rounds."""
    return statistics.median(
        their_seconds / our_seconds for their_seconds, our_seconds in zip(seconds, base, strict=False)
    )


def once(family: Family, side: str, frame: Any, *, answer: bool = False) -> Any:
    """Run a side on a frame; return the seconds, or its answer."""
    if answer:
        return sides.added_up(family.job, family.sides[side](frame))
    started = time.perf_counter()
    to_noop(family.sides[side](frame))
    return time.perf_counter() - started


def sized(spark: Any, size: int, family: Family, frame: Any) -> float:
    """Run ours with batches of a size."""
    spark.conf.set(ROWS_PER_BATCH, size)
    try:
        return once(family, OURS, frame)  # type: ignore[no-any-return]
    finally:
        spark.conf.set(ROWS_PER_BATCH, BATCH)


def check(family: Family, side: str, sums: dict[str, int]) -> None:
    """Compare an answer; the side with the kernel taken out only has to return all rows."""
    expected = {"rows": ROWS} if side == EMPTY else family.answer
    assert {name: sums[name] for name in expected} == expected, (family.job, family.source, side, sums, expected)


# The process of Sail. -------------------------------------------------------------------------------------------------


@contextmanager
def sail(size: int) -> Iterator[Any]:
    """Start the process of Sail, with batches of a size; return a function that runs a side of a family there."""
    settings = {"SAIL_EXECUTION__BATCH_SIZE": str(size), "RUST_LOG": "error"}
    command = [SAIL_PYTHON, "-m", "benches.spark.engines", "--sail"]
    process = subprocess.Popen(
        command, env=os.environ | settings, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(number: int, side: str, *, answer: bool = False) -> Any:
        process.stdin.write(json.dumps([number, side, answer]) + "\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        line = process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise RuntimeError(f"the process of Sail ended with {process.wait()} at {side}")
        return json.loads(line)

    try:
        yield ask
    finally:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(30)


def serve() -> None:
    """Run what is asked on stdin until it ends."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start()
    spark = SparkSession.builder.remote("sc://{}:{}".format(*server.listening_address)).getOrCreate()
    families = list(sides.families(spark, ROWS, java=False))
    for line in sys.stdin:
        number, side, answer = json.loads(line)
        if side == "version":
            result: Any = version("pysail")
        else:
            family = families[number]
            frame = spark.read.parquet(str(generate(family))).select(family.column)
            result = once(family, side, frame, answer=answer)
        print(json.dumps(result), flush=True)
    spark.stop()
    server.stop()


def show(record: dict[str, Any]) -> None:
    """Print the medians and ratios."""
    for part, result in record.items():
        print(
            f"\n{part}: {result['rows']:,} rows, {result['cores']} core(s)"
            + (" (quick: times mean nothing)" * data.QUICK)
        )
        for row in result["results"]:
            name = f"{row['side']} {row.get('input', '')}" if "side" in row else f"{row['rows']:,} rows a batch"
            print(
                f"  {row['job']}, {row['source']:34} {row.get('engine', 'Spark'):6} {name:30}"
                f" {statistics.median(row['seconds']):6.2f} s  {row['ratio']:6.2f}"
            )


PARTS = {"engines": engines, "columnar": columnar, "sizes": sizes}


if __name__ == "__main__":
    main()
