"""Topics and segments read directly, against Spark's source of Kafka and against confluent-kafka.

Starts a broker, writes the records to a topic with two partitions (`benches/direct/records.py`), and reads them:

* in Spark (`in_spark.py`): three typed headers, and all columns; into the noop sink, and into Parquet;
* in Python (`plain_python.py`): offsets and one number to Arrow, on one core and on all;
* batch by batch, for the memory it takes (`memory.py`): all records, and a tenth of them.

Every side gives its answer before it is timed. What is aimed at is in :data:`BARS`.

    python -m benches.direct.measure [--record FILE]     LETTERHEAD_BENCH_RECORDS=2000000, or LETTERHEAD_BENCH=quick: 20,000
    python -m benches.direct.measure --segments-only     no broker: segments are written by hand, and read by us alone
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benches import data, goal
from benches.direct import in_spark, records
from benches.machine import load_text
from benches.spark.session import ROOT, start_spark

ROUNDS = 1 if data.QUICK else 5
PARQUET_ROUNDS = 1 if data.QUICK else 3
PYTHON_ROUNDS = {"all cores": ROUNDS, "one core": 1 if data.QUICK else 3}
CHILD_LIMIT_SECONDS = 600

# How many times our time the other side is to take at least.
BARS = {
    (f"{in_spark.THREE} in Spark, noop sink", in_spark.THEIRS): 10,
    (f"{in_spark.ALL} in Spark, noop sink", in_spark.THEIRS): 3,
    ("offset and amount to Arrow, all cores", "confluent-kafka"): 25,
    ("offset and amount to Arrow, one core", "confluent-kafka"): 25,
}


def main() -> None:
    """Write the records, check, measure, print and record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    parser.add_argument("--segments-only", action="store_true", help="without a broker")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="letterhead-direct-") as name:
        scratch = Path(name)
        measured = without_broker(scratch) if options.segments_only else with_broker(scratch)
    show(measured)
    if options.record is not None:
        options.record.write_text(json.dumps(measured, indent=1) + "\n")


def without_broker(scratch: Path) -> dict[str, Any]:
    segments = scratch / "segments"
    records.write_segments(segments)
    return measured(segments, None, scratch)


def with_broker(scratch: Path) -> dict[str, Any]:
    from tests.kafka import broker as kafka

    broker = kafka.Broker(scratch / "broker")
    broker.start()
    try:
        started = time.perf_counter()
        records.fill(broker.address)
        print(f"{records.ROWS:,} records written in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        segments = linked_segments(broker, scratch)
        # Spark's own source comes as jars, which are said before its JVM starts.
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {kafka.connector()} pyspark-shell"
        return measured(segments, broker.address, scratch)
    finally:
        broker.stop()


def linked_segments(broker: Any, scratch: Path) -> Path:
    """Return a folder with the files of the topic alone: the broker has others in its own."""
    segments = scratch / "segments"
    segments.mkdir()
    for number in range(records.PARTITIONS):
        partition = f"{records.TOPIC}-{number}"
        (segments / partition).symlink_to(broker.directory / "data" / partition, target_is_directory=True)
    return segments


def measured(segments: Path, address: str | None, scratch: Path) -> dict[str, Any]:
    load = [os.getloadavg()]
    results = list(python_sides(segments, address))
    memory = list(memory_of(segments, address))
    load.append(os.getloadavg())
    spark = start_spark()
    try:
        jobs = in_spark.jobs(spark, segments, address)
        for job, sides in jobs.items():
            for side, frame in sides.items():
                in_spark.check(job, side, frame())
        for sink, rounds in (("noop", ROUNDS), ("Parquet", PARQUET_ROUNDS)):
            for job, sides in jobs.items():
                results += in_spark.measure(job, sink, sides, rounds, scratch / "written")
    finally:
        spark.stop()
    load.append(os.getloadavg())
    stored = sum(path.stat().st_size for path in segments.glob("*/*.log"))
    return {"rows": records.ROWS, "stored": stored, "load": load, "results": results, "memory": memory}


def python_sides(segments: Path, address: str | None) -> Any:
    where = [str(segments), *(["--address", address] if address else [])]
    for cores, rounds in PYTHON_ROUNDS.items():
        option = ["--one-core"] if cores == "one core" else []
        seconds = child("plain_python", *where, *option, "--rounds", str(rounds))
        yield from in_spark.compared(f"offset and amount to Arrow, {cores}", seconds)


def memory_of(segments: Path, address: str | None) -> Any:
    where = {in_spark.SEGMENTS: ["--directory", str(segments)]}
    if address is not None:
        where = {in_spark.OURS: ["--address", address], **where}
    for job in (in_spark.THREE, in_spark.ALL):
        for side, arguments in where.items():
            for rows in (records.ROWS // 10, records.ROWS):
                yield {"job": job, "side": side, "rows": rows, **child("memory", job, str(rows), *arguments)}


def child(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module of this package in a process of its own, and read the JSON that it prints."""
    command = [sys.executable, "-m", f"benches.direct.{module}", *arguments]
    # What it says of its progress goes where this process says it.
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=CHILD_LIMIT_SECONDS, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def show(measured: dict[str, Any]) -> None:
    """Print medians, ratios, the bars, and the memory."""
    quick = " (quick: times mean nothing)" * data.QUICK
    load = load_text(measured["load"])
    print(f"\n{measured['rows']:,} records, {measured['stored'] / 1e6:.1f} MB as stored{quick}")
    print(f"  load of the last minute: {load} (at the start, between Python and Spark, at the end)")
    print("  x is the time as a multiple of that of the topic, and of the segments, in the same round")
    by_job: dict[str, list[dict[str, Any]]] = {}
    for row in measured["results"]:
        by_job.setdefault(row["job"], []).append(row)
    for job, rows in by_job.items():
        print(f"  {job}")
        for row in rows:
            seconds = row["seconds"]
            median = statistics.median(seconds)
            bar = BARS.get((job, row["side"]))
            line = (
                f"    {row['side']:28} {median:7.3f} s ({min(seconds):.3f}-{max(seconds):.3f}, {len(seconds)} runs)"
                f" {row['rows'] / median / 1e6:6.2f} M records/s {row['ratio']:7.2f} x {row['ratio_to_segments']:7.2f} x"
            )
            if bar is not None and not data.QUICK:
                verdicts = [goal.verdict(row[ratio], bar, at_least=True) for ratio in ("ratio", "ratio_to_segments")]
                line += f"  aimed at {bar}: {', '.join(verdicts)}"
            print(line)
    print("  memory, MiB: before the first batch, the most, and the most without mapped files")
    for row in measured["memory"]:
        print(
            f"    {row['job']:20} {row['side']:22} {row['rows']:10,} records"
            f" {row['before']:7.1f} {row['peak']:7.1f} {row['own']:7.1f}"
        )


if __name__ == "__main__":
    main()
