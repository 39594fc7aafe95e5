"""`select_headers` and `decode_headers` in Spark with DataFusion Comet and without, on one core.

Comet 1.2.0 is made for Spark 4.1, so this needs an environment of its own, with pyspark 4.1 and pyarrow:

    mvn dependency:get -Dartifact=org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0 -Dtransitive=false
    PYTHONPATH=python BENCH_SPARK_ROWS=400000 PYTHON -m benches.spark.comet JAR [--record FILE]

Rows come from Parquet and go to the noop sink, as in :mod:`benches.spark.engines`. One session has Comet's plugin, and
sides take turns with Comet switched on and off. Every side gives its answer before it is timed. The operators of each
plan are printed: they show whether batches of Comet reach Python as they are, or by way of rows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
from functools import partial
from pathlib import Path
from typing import Any

from benches.machine import ran_on
from benches.spark import sides
from benches.spark.engines import check, in_turns, once, ratio
from benches.spark.session import start_spark
from benches.spark.sides import EMPTY, OURS, Family
from benches.spark.transforms import ROWS, generate

SETTINGS = {
    "spark.plugins": "org.apache.spark.CometPlugin",
    "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "2g",
}
COMET, ARROW = "spark.comet.enabled", "spark.comet.exec.pyarrowUDF.enabled"
SWITCHES = {
    "without Comet": {COMET: "false", ARROW: "false"},
    "Comet": {COMET: "true", ARROW: "false"},
    "Comet, pyarrowUDF": {COMET: "true", ARROW: "true"},
}
"""Settings by name; the last one passes columns to `mapInArrow`, is experimental, and is off by default."""


def main() -> None:
    """Check, measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jar", type=Path, help="comet-spark-spark4.1_2.13-1.2.0.jar")
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    # What a JVM loads as it starts.
    confs = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    jar = options.jar.resolve()
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jar} --driver-class-path {jar} {confs} pyspark-shell"
    spark = start_spark([jar], cores=1)
    record: dict[str, Any] = {
        "rows": ROWS,
        "spark": spark.version,
        "comet": jar.name,
        "machine": ran_on("src", "python"),
    }
    record |= {"load": [os.getloadavg()], "results": []}
    try:
        for family in sides.families(spark, ROWS, java=False):
            record["results"] += measured(spark, family)
            record["load"].append(os.getloadavg())
    finally:
        spark.stop()
    for row in record["results"]:
        print(
            f"  {row['job']}, {row['source']:34} {row['side']:17} {row['comet']:18}"
            f" {statistics.median(row['seconds']):6.2f} s  {row['ratio']:5.2f}  {row['plan']}"
        )
    if options.record is not None:
        options.record.write_text(json.dumps(record, indent=1) + "\n")


def measured(spark: Any, family: Family) -> list[dict[str, Any]]:
    """Run ours and the job without its kernel in turns; ratios are to ours without Comet."""
    frame = spark.read.parquet(str(generate(family))).select(family.column)
    runs = {
        (switch, side): partial(switched, spark, switch, family, side, frame)
        for side in (OURS, EMPTY)
        for switch in SWITCHES
    }
    for (_, side), run in runs.items():
        check(family, side, run(answer=True))
    plans = {name: plan(spark, name[0], family.sides[name[1]](frame)) for name in runs}
    taken = in_turns(runs)
    base = taken["without Comet", OURS]
    return [
        {"job": family.job, "source": family.source, "side": side, "comet": switch, "seconds": seconds}
        | {"ratio": ratio(seconds, base), "plan": plans[switch, side]}
        for (switch, side), seconds in taken.items()
    ]


def switched(spark: Any, switch: str, family: Family, side: str, frame: Any, *, answer: bool = False) -> Any:
    """Run a side with Comet switched on or off."""
    set_all(spark, switch)
    # A frame that was planned keeps its plan.
    return once(family, side, frame.select("*"), answer=answer)


def plan(spark: Any, switch: str, frame: Any) -> str:
    """Return the operators of a plan, first the one that comes last."""
    set_all(spark, switch)
    text = frame.select("*")._jdf.queryExecution().executedPlan().toString()
    return " < ".join(re.findall(r"^[\s:*()\d+-]*([A-Z]\w+)", text, re.MULTILINE))


def set_all(spark: Any, switch: str) -> None:
    """Change the settings of the session."""
    for name, value in SWITCHES[switch].items():
        spark.conf.set(name, value)


if __name__ == "__main__":
    main()
