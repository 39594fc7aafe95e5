"""One header of every record or row, on one core: programs in other languages against `letterhead`.

Topic, offset and one header of five:

* `letterhead`: Arrow columns; checksums verified.
* `rust-rdkafka`, `franz-go`, `Kafka's Java consumer`: small programs in `benches/opponents` that fill two arrays of
  numbers. franz-go and Java verify checksums, librdkafka does not by default.
* `Apache Flink`: a job of one slot, in `benches/opponents/flink`, that fills the same arrays; its source and sink are
  chained. Each pass starts a cluster in the JVM.
* `confluent-kafka`: Python over librdkafka, as in `plain_python.py`.
* `Daft, without headers`: `daft.read_kafka`, which returns no headers; only offsets are taken.

Topic without headers, all other columns into Arrow: key, value, topic, partition, offset and timestamp:

* `letterhead`: checksums verified.
* `kafkarrow`: Rust over librdkafka, which verifies none by default; kafkarrow returns no headers.

Segments, the same columns from the broker's files:

* `kafka-dump-log, text`: `--deep-iteration` prints a line for each record, with its offset and the keys of its headers;
  it can print no value of a header. The time includes the start of the JVM. Lines go to `/dev/null` in timed rounds; a
  run before them verifies the offsets.

State store, timestamp and one header of five, from the files that Kafka Streams itself has restored and closed:

* `Kafka Streams, all()`: the iterator of its RocksDB store with headers, timed from `all()` to the last row.

Programs of Java repeat their work in one process, and print the time of the second pass. The other sides include
connecting, and opening files.

Sides take turns on one core. A side that returns other sums is an error. What is aimed at is in :data:`GOAL`.

    python -m benches.direct.opponents [--record FILE] [--job JOB]     LETTERHEAD_BENCH_RECORDS=2000000

With `--job`, the results of one job replace those on record, and the others stay.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import letterhead as lh
from benches import data, goal, restore
from benches.direct import plain_python, records
from benches.direct.measure import linked_segments
from benches.machine import ran_on

ROUNDS = 1 if data.QUICK else 5
LIMIT_SECONDS = 300
HERE = Path(__file__).resolve().parents[1] / "opponents"
DAFT = restore.ROOT / ".venv-daft" / "bin" / "python"
KAFKARROW = restore.ROOT / ".venv-kafkarrow" / "bin" / "python"
TOPIC, NO_HEADERS, SEGMENTS, STATE = "topic", "topic without headers", "segments", "state store"
JOBS = [TOPIC, NO_HEADERS, SEGMENTS, STATE]
OURS = "letterhead"
LESS = ("Daft, without headers", "kafka-dump-log, text")
"""Sides that return no value of a header, and so do less than the others."""
GOAL = 2.0
"""How many times our time the fastest other reader of headers of the topic takes at least."""
HEADER = "amount_cents"
ROWS_OF_STORE = records.ROWS // 2
JAVA = ("java", "-Xms1g", "-Xmx1g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")

Sums = tuple[int, int, int]
"""Records, the sum of their offsets or timestamps, and that of a header."""
Side = Callable[[], tuple[float, Sums]]
"""Runs a side once; returns seconds, and the sums."""


def main() -> None:
    """Write the records, measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    parser.add_argument("--job", choices=JOBS, help="measure this one only")
    options = parser.parse_args()
    jobs = [options.job] if options.job else JOBS
    from tests.kafka import broker as kafka

    with tempfile.TemporaryDirectory(prefix="letterhead-opponents-") as name:
        scratch = Path(name)
        broker = kafka.Broker(scratch / "broker")
        broker.start()
        try:
            if jobs != [STATE]:
                records.fill(broker.address)
            segments = linked_segments(broker, scratch) if SEGMENTS in jobs else scratch
            task = restored_store(broker.address, scratch, ROWS_OF_STORE) if STATE in jobs else scratch
            # The last core, as for other benchmarks of one core. Programs that this one starts inherit it.
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
            load = [os.getloadavg()]
            answer = records.answer()
            amounts = (answer.rows, answer.offsets, answer.amounts)
            measures: dict[str, Callable[[], list[dict[str, Any]]]] = {
                TOPIC: lambda: measured(TOPIC, topic_sides(broker.address, kafka), amounts),
                NO_HEADERS: lambda: measured(
                    NO_HEADERS, column_sides(broker.address), (answer.rows, answer.offsets, answer.timestamps)
                ),
                SEGMENTS: lambda: measured(SEGMENTS, segment_sides(segments), amounts),
                STATE: lambda: measured(STATE, state_sides(task, scratch), answer_of_store(ROWS_OF_STORE)),
            }
            results = [row for job in jobs for row in measures[job]()]
            load.append(os.getloadavg())
        finally:
            broker.stop()
    show(results)
    if options.record is not None:
        run = {"load": load, "machine": ran_on("src", "python", "benches")}
        runs = {job: {"rows": ROWS_OF_STORE if job == STATE else records.ROWS, **run} for job in jobs}
        if options.job and options.record.exists():
            before = json.loads(options.record.read_text())
            runs = before["runs"] | runs
            results = [*(row for row in before["results"] if row["job"] not in jobs), *results]
            results.sort(key=lambda row: JOBS.index(row["job"]))
        options.record.write_text(json.dumps({"goal": GOAL, "runs": runs, "results": results}, indent=1) + "\n")


def topic_sides(address: str, kafka: Any) -> dict[str, Side]:
    """Return the readers of a topic."""
    topic = [address, records.TOPIC, str(records.PARTITIONS), str(records.ROWS)]
    consume = (*JAVA, "-cp", f"{kafka.BUILT}/broker/*", HERE / "java" / "ConsumeTopic.java")
    flink_classes = f"{HERE}/flink/target/classes:{HERE}/flink/target/lib/*"
    flink = (*JAVA, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", flink_classes, "ReadTopic")
    return {
        OURS: lambda: in_python(lambda: plain_python.from_topic(address)),
        "rust-rdkafka": lambda: program(HERE / "rdkafka/target/release/letterhead-bench-rdkafka", *topic),
        "franz-go": lambda: program(HERE / "franz/target/franz", *topic),
        "Kafka's Java consumer": lambda: program(*consume, *topic),
        "Apache Flink": lambda: program(*flink, *topic),
        "confluent-kafka": lambda: in_python(lambda: plain_python.from_consumer(address)),
        "Daft, without headers": lambda: program(DAFT, HERE / "daft/read_topic.py", *topic),
    }


def column_sides(address: str) -> dict[str, Side]:
    """Return the readers of all columns of a topic but its headers."""
    # The first two are added up.
    columns = ["offset", "timestamp", "topic", "partition", "key", "value"]

    def ours() -> Any:
        return lh.read.topic(records.TOPIC, bootstrap_servers=address, columns=columns).read_all()

    theirs = (KAFKARROW, HERE / "kafkarrow/read_topic.py", address, records.TOPIC, str(records.ROWS))
    return {OURS: lambda: in_python(ours), "kafkarrow": lambda: program(*theirs)}


def segment_sides(segments: Path) -> dict[str, Side]:
    """Return the readers of log segments, after a run of kafka-dump-log that verifies the offsets it prints."""
    files = ",".join(str(path) for path in sorted(segments.glob("*/*.log")))
    tool = (*JAVA, "-cp", f"{HERE}/java/target/lib/*", "org.apache.kafka.tools.DumpLogSegments")
    command = (*tool, "--deep-iteration", "--files", files)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dump:
        assert dump.stdout is not None
        lines = filter(None, map(re.compile(r"\| offset: (\d+) .*headerKeys: \[.*\bamount\b").match, dump.stdout))
        offsets = [int(line[1]) for line in lines]
    sums = (len(offsets), sum(offsets), 0)

    def dumped() -> tuple[float, Sums]:
        started = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=LIMIT_SECONDS, check=True)
        return time.perf_counter() - started, sums

    return {OURS: lambda: in_python(lambda: plain_python.from_segments(segments)), "kafka-dump-log, text": dumped}


def state_sides(task: Path, scratch: Path) -> dict[str, Side]:
    """Return the readers of a state store."""
    iterate = (*JAVA, f"-Djava.io.tmpdir={scratch}", "-cp", f"{restore.JVM}/lib/*")
    arguments = (HERE / "java" / "IterateStore.java", task, restore.STORE, HEADER, str(ROWS_OF_STORE))

    def ours() -> Any:
        selection: dict[str, Any] = {"columns": ["timestamp"], "headers": {HEADER: "int64"}}
        return lh.read.state(task, store=restore.STORE, **selection).read_all()

    return {OURS: lambda: in_python(ours), "Kafka Streams, all()": lambda: program(*iterate, *arguments)}


def restored_store(address: str, scratch: Path, rows: int) -> Path:
    """Write a changelog, and let Kafka Streams restore its store; return the directory of the task."""
    restore.produce(address, rows)
    restore.of_kafka_streams(address, scratch / "state")
    return scratch / "state" / restore.APP / "0_0"


def answer_of_store(rows: int) -> Sums:
    """Add up what was written to the changelog."""
    timestamps = amounts = 0
    for _, _, timestamp, headers in restore.records(rows):
        timestamps += timestamp
        amounts += struct.unpack(">q", dict(headers)[HEADER])[0]
    return rows, timestamps, amounts


def in_python(read: Callable[[], Any]) -> tuple[float, Sums]:
    started = time.perf_counter()
    table = read()
    seconds = time.perf_counter() - started
    first, second = (pc.sum(column.cast("int64")).as_py() for column in table.columns[:2])
    return seconds, (table.num_rows, first, second)


def program(*command: str | Path) -> tuple[float, Sums]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS, check=True)
    seconds, *sums = done.stdout.split()
    rows, offsets, amounts = map(int, sums)
    return float(seconds), (rows, offsets, amounts)


def measured(job: str, sides: dict[str, Side], answer: Sums) -> list[dict[str, Any]]:
    """Run the sides in turns; the first round is for the page cache."""
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(ROUNDS + 1):
        for side in list(sides)[:: -1 if number % 2 else 1]:
            taken, sums = sides[side]()
            expected = (*answer[:2], 0 if side in LESS else answer[2])
            assert sums == expected, (job, side, sums, expected)
            seconds[side].append(taken)
            print(f"{job}, round {number}: {side} {taken:.3f} s", file=sys.stderr, flush=True)
    timed = {side: taken[1:] for side, taken in seconds.items()}
    return [
        {"job": job, "side": side, "seconds": taken}
        | {"ratio": statistics.median(map(operator.truediv, taken, timed[OURS]))}
        for side, taken in timed.items()
    ]


def fastest_other(results: list[dict[str, Any]], job: str) -> dict[str, Any] | None:
    """Return the fastest of the other sides that read a header."""
    others = [row for row in results if row["job"] == job and row["side"] not in (OURS, *LESS)]
    return min(others, key=operator.itemgetter("ratio"), default=None)


def show(results: list[dict[str, Any]]) -> None:
    """Print medians, ratios, and whether the goal is reached."""
    print(f"\n{records.ROWS:,} records on one core; x is the time as a multiple of ours in the same round")
    for row in results:
        print(f"  {row['job']:12} {row['side']:24} {statistics.median(row['seconds']):7.3f} s {row['ratio']:7.2f} x")
    fastest = fastest_other(results, TOPIC)
    if fastest is not None:
        verdict = goal.verdict(fastest["ratio"], GOAL, at_least=True)
        print(f"  goal {GOAL:g} for the fastest reader of a topic: {verdict}")


if __name__ == "__main__":
    main()
