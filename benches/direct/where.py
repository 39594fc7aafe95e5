"""Read records with a condition on a header, against reading all columns of all records.

* segments: the records of `tests/samples/orders-0`, repeated, by `lh.read.segments`. A further side has a condition on a
  field that no record fulfils: it maps the file, verifies checksums, decompresses and finds the fields of each record,
  but reads no header. No condition on a header can be faster.
* topic, with `--topic`: the records of `benches/direct/records.py` by `lh.read.topic`, that side among them, and in Spark
  by `letterhead-kafka` with the option `where` against Spark's own source with the same filter, into the noop sink.
  A third side in Spark is `letterhead-kafka` without a condition.

Sides take turns, and every answer is verified. Python's sides are CPU time, Spark's are wall time. What is aimed at is in
:data:`GOALS`.

    python -m benches.direct.where [--codecs none lz4 ...] [--topic] [--record FILE]
        LETTERHEAD_BENCH_RECORDS=2000000, or LETTERHEAD_BENCH=quick
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import letterhead as lh
from benches import goal
from benches.data import QUICK, SAMPLES
from benches.direct import in_spark, records
from benches.machine import load_text, ran_on
from benches.spark.session import start_spark

REPEATS = 1 if QUICK else 50
PER_BATCH = 250
ROUNDS = 1 if QUICK else 5
VALUE_LEN = 1000
LONG_ROWS = 2000

ALL = "all records"
ONE_PERCENT = "1 % by header"
FIELDS = "no record, no header read"
ONE_LONG = "1 % by header, values of 1,000 bytes"
LONG_VALUES = "100 % by header, values of 1,000 bytes"
LONG = f"{ALL}, values of {VALUE_LEN:,} bytes"

CONDITIONS = {
    ONE_PERCENT: lh.col("ce_id", "string") < "03",
    "14 % by header": lh.col("tenant") == "acme",
    "97 % by header": lh.col("ce_id", "string") >= "0",
    "1 % by offset": lh.col("offset") < 100 * REPEATS,
    FIELDS: lh.col("sequence") < 0,
}

TOPIC = f"topic, lz4, {records.ROWS:,} records"
IN_SPARK = f"{TOPIC}, Spark"
OURS, THEIRS = "letterhead-kafka with where", "Spark's source kafka with the same filter"
OURS_WHOLE = "letterhead-kafka, all records"

GOALS = {
    ("segments, none", ONE_PERCENT): 5.0,
    ("segments, lz4", ONE_PERCENT): 2.0,
    ("segments, none", "97 % by header"): 0.91,
    ("segments, lz4", "97 % by header"): 0.91,
    ("segments, none", LONG_VALUES): 0.91,
    (TOPIC, ONE_PERCENT): 3.0,
    (IN_SPARK, OURS): 15.0,
}
"""The least ratio: time without the condition, or of Spark's source, divided by time with it.

A condition that nearly all records fulfil may take 10 % more time than none: 1 / 1.1 is 0.91.
"""


def main() -> None:
    """Measure, print, and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codecs", nargs="*", default=["none", "lz4"], help="codecs of the segments")
    parser.add_argument("--topic", action="store_true", help="also read a topic of a broker, which is started")
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    options = parser.parse_args()
    load = [os.getloadavg()]
    results = [row for codec in options.codecs for row in of_segments(codec)]
    if options.topic:
        load.append(os.getloadavg())
        results += of_topic()
    load.append(os.getloadavg())
    show(results, load)
    if options.record is not None:
        machine = ran_on("src", "python", "benches")
        record = {"rows": records.ROWS, "load": load, "machine": machine, "results": results}
        options.record.write_text(json.dumps(record, indent=1) + "\n")


def of_segments(codec: Any) -> Iterator[dict[str, Any]]:
    """Measure the conditions on segments of a codec."""
    sample = sample_rows({"ce_id": "string", "tenant": "string"})
    answers = {
        ONE_PERCENT: one_of(sample),
        "14 % by header": sum(row["tenant"] == "acme" for row in sample) * REPEATS,
        "97 % by header": sum(row["ce_id"] is not None for row in sample) * REPEATS,
        "1 % by offset": len(sample) // 100 * REPEATS,
        FIELDS: 0,
    }
    with tempfile.TemporaryDirectory(prefix="letterhead-where-") as folder:
        topic = Path(folder) / "orders-0"
        rows = write_segment(topic, codec)
        sides = {name: (lambda where=where: read(topic, where), answers[name]) for name, where in CONDITIONS.items()}
        yield from compared(f"segments, {codec}", rows, {ALL: (lambda: read(topic), rows), **sides})
        long = Path(folder) / "orders-1"
        rows = write_segment(long, codec, VALUE_LEN)
        everything = {
            LONG: (lambda: read(long), rows),
            LONG_VALUES: (lambda: read(long, lh.col("n", "string") == "all"), rows),
            ONE_LONG: (lambda: read(long, CONDITIONS[ONE_PERCENT]), one_of(sample[:LONG_ROWS])),
        }
        yield from compared(f"segments, {codec}", rows, everything)


def one_of(sample: list[dict[str, Any]]) -> int:
    """Return how many records of the segment fulfil the condition that one in a hundred fulfils."""
    return sum((row["ce_id"] or "x") < "03" for row in sample) * REPEATS


def sample_rows(headers: Any = None) -> list[dict[str, Any]]:
    columns = None if headers else ["timestamp", "key", "value", "headers"]
    with lh.read.segments(SAMPLES / "orders-0", columns=columns, headers=headers) as reader:
        rows: list[dict[str, Any]] = reader.read_all().to_pylist()
    return rows


def write_segment(folder: Path, codec: Any, value_len: int | None = None) -> int:
    """Write the sample's records several times; return how many there are.

    With ``value_len``, values have this length, and each record one header more.
    """
    rows = sample_rows()[: LONG_ROWS if value_len else None]
    batches = []
    for first in range(0, len(rows), PER_BATCH):
        messages = [
            lh.Message(
                offset=at,
                timestamp=round(row["timestamp"].timestamp() * 1000),
                key=row["key"],
                value=row["value"] if value_len is None else b"%08d" % at * (value_len // 8),
                headers=[(header["key"], header["value"]) for header in row["headers"]]
                + ([("n", b"all")] if value_len else []),
            )
            for at, row in enumerate(rows[first : first + PER_BATCH])
        ]
        batches.append(lh.batch(messages, "record-batch", codec=codec))
    folder.mkdir()
    with (folder / "00000000000000000000.log").open("wb") as file:
        for number in range(REPEATS * len(batches)):
            # No checksum covers the base offset.
            file.write(struct.pack(">q", number * PER_BATCH) + batches[number % len(batches)][8:])
    return REPEATS * len(rows)


def read(folder: Path, where: Any = None) -> int:
    """Read all columns; return the number of records."""
    with lh.read.segments(folder, where=where) as reader:
        return sum(len(batch) for batch in reader)


def compared(job: str, rows: int, sides: Mapping[str, tuple[Callable[[], int], int]]) -> Iterator[dict[str, Any]]:
    """Run sides in turns; ratios are those of a round to the first side."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(ROUNDS):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            run, expected = sides[name]
            start = time.process_time()
            result = run()
            seconds[name].append(time.process_time() - start)
            assert result == expected, (job, name, result, expected)
    yield from rows_of(job, rows, seconds, next(iter(sides)))


def rows_of(job: str, rows: int, seconds: Mapping[str, list[float]], whole: str) -> Iterator[dict[str, Any]]:
    for name, taken in seconds.items():
        ratio = statistics.median(full / mine for full, mine in zip(seconds[whole], taken, strict=True))
        least = GOALS.get((job, name))
        yield {"job": job, "side": name, "rows": rows, "seconds": taken, "ratio": ratio, "goal": least}


def of_topic() -> list[dict[str, Any]]:
    """Start a broker, write the records, and measure a condition that 1 % of them fulfil."""
    from tests.kafka import broker as kafka

    with tempfile.TemporaryDirectory(prefix="letterhead-where-") as name:
        broker = kafka.Broker(Path(name) / "broker")
        broker.start()
        try:
            records.fill(broker.address)
            # Spark's own source comes as jars, which are passed before its JVM starts.
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {kafka.connector()} pyspark-shell"
            return [*from_topic(broker.address), *in_spark_from_topic(broker.address, Path(name))]
        finally:
            broker.stop()


def from_topic(address: str) -> Iterator[dict[str, Any]]:
    def count(where: Any = None) -> int:
        with lh.read.topic(records.TOPIC, bootstrap_servers=address, where=where) as reader:
            return sum(len(batch) for batch in reader)

    condition = lh.col("amount", "int64") <= limit()
    none = CONDITIONS[FIELDS]
    sides = {
        ALL: (count, records.ROWS),
        ONE_PERCENT: (lambda: count(condition), records.ROWS // 100),
        FIELDS: (lambda: count(none), 0),
    }
    yield from compared(TOPIC, records.ROWS, sides)


def limit() -> int:
    """Return the largest amount of the first hundredth of the records."""
    return 3 * (records.ROWS // 100 - 1) + 1


def in_spark_from_topic(address: str, scratch: Path) -> Iterator[dict[str, Any]]:
    """Compare our source and its option with Spark's own and its filter."""
    from letterhead import spark as lhs

    spark = start_spark()
    try:
        lhs.register(spark)

        def source(name: str) -> Any:
            reader = spark.read.format(name).option("kafka.bootstrap.servers", address)
            return reader.option("subscribe", records.TOPIC).option("includeHeaders", "true")

        amount = in_spark.NUMBER.format(in_spark.BYTES.format("amount"), "bigint")
        sides = {
            OURS: lambda: source("letterhead-kafka").option("where", f"amount::bigint <= {limit()}").load(),
            THEIRS: lambda: source("kafka").load().where(f"{amount} <= {limit()}"),
        }
        answers = {name: frame().selectExpr("count(*)", "sum(offset)").first() for name, frame in sides.items()}
        assert answers[OURS] == answers[THEIRS], answers
        sides[OURS_WHOLE] = lambda: source("letterhead-kafka").load()
        assert answers[OURS][0] == records.ROWS // 100, answers
        measured = in_spark.measure(ONE_PERCENT, "noop", sides, ROUNDS, scratch / "written")
    finally:
        spark.stop()
    seconds = {row["side"]: row["seconds"] for row in measured}
    yield from rows_of(IN_SPARK, records.ROWS, {name: seconds[name] for name in (THEIRS, OURS, OURS_WHOLE)}, THEIRS)


def show(results: list[dict[str, Any]], load: list[tuple[float, float, float]]) -> None:
    """Print medians, ratios and goals."""
    quick = " (quick: times mean nothing)" * QUICK
    print(f"load of the last minute: {load_text(load)}{quick}")
    for row in results:
        ns = statistics.median(row["seconds"]) / row["rows"] * 1e9
        line = f"  {row['job']:38} {row['side']:42} {ns:7.0f} ns a record {row['ratio']:7.2f} x"
        if row["goal"] is not None and not QUICK:
            line += f"  goal {row['goal']:g}: {goal.verdict(row['ratio'], row['goal'], at_least=True)}"
        print(line)


if __name__ == "__main__":
    main()
