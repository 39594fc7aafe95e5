"""An application with a store of each type, its records, and what the test driver makes of them.

As a script it runs the application on Spark, to be killed: `python topology_app.py SCOPE DIRECTORY`.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from letterhead import Headers
from letterhead.state import (
    AggregationWithHeaders,
    Int64Serde,
    Processor,
    Record,
    SessionKey,
    Stores,
    StringSerde,
    Topology,
    TopologyTestDriver,
    ValueTimestampHeaders,
)
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.layers.base import chain

TEXT, COUNT = StringSerde(), Int64Serde()
MINUTE = 60_000
BEGIN = 1_700_000_000_000 // MINUTE * MINUTE
APPLICATION = "app"
PARTITIONS = 2


class Counts(Processor[Any, Any, Any, Any]):
    """Counts per key, per key and minute, and per session; keeps versions; says how many punctuations there were."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.counts = context.get_state_store("counts")
        self.windows = context.get_state_store("windows")
        self.sessions = context.get_state_store("sessions")
        self.versions = context.get_state_store("versions")
        self.ticks = context.schedule(2 * MINUTE, "stream_time", self.tick)

    def process(self, record: Record[str, str]) -> None:
        if record.key is None:
            self.context.forward(record)
            return
        if record.value is None:
            gone = self.counts.delete(record.key)
            self.versions.delete(record.key, record.timestamp)
            self.context.forward(record.with_value(f"gone {gone and gone.value}"))
            return
        before = self.counts.get(record.key)
        count = 1 if before is None else before.value + 1
        self.counts.put(record.key, ValueTimestampHeaders.make(count, record.timestamp, record.headers))
        start = record.timestamp // MINUTE * MINUTE
        window = ValueTimestampHeaders.get_value_or_null(self.windows.fetch(record.key, start)) or 0
        self.windows.put(record.key, ValueTimestampHeaders.make(window + 1, record.timestamp, record.headers), start)
        with self.windows.fetch_key(record.key, BEGIN, record.timestamp) as rows:
            seen = [value.value for _, value in rows]
        self.session(record)
        self.versions.put(record.key, record.value, record.timestamp, record.headers)
        was = self.versions.get(record.key, record.timestamp - MINUTE)
        self.context.forward(record.with_value(f"{count} {window + 1} {seen} {was and was.value}"))

    def session(self, record: Record[str, str]) -> None:
        start = end = record.timestamp
        total = 1
        with self.sessions.find_sessions(record.key, start - MINUTE, end + MINUTE) as rows:
            merged = list(rows)
        for session, old in merged:
            start, end, total = min(start, session.start), max(end, session.end), total + old.aggregation
            self.sessions.remove(session)
        result = AggregationWithHeaders.make(total, record.headers)
        self.sessions.put(SessionKey(record.key, start, end), result)

    def tick(self, now: int) -> None:
        self.context.forward(Record("tick", str((now - BEGIN) // MINUTE), now, {"by": b"punctuation"}))


class Ranks(Counts):
    """The same, and what only a processor can do that sees the whole partition."""

    scope = "partition"

    def tick(self, now: int) -> None:
        with self.counts.range("key-03", "key-06") as rows, self.counts.prefix_scan("key-1") as others:
            ranked = [f"{key}={value.value}" for key, value in [*rows, *others]]
        with self.counts.reverse_all() as rows:
            ranked += [key for key, _ in rows]
        with self.windows.fetch_all(now - MINUTE, now) as rows:
            ranked += [f"{window.key}@{(window.start - BEGIN) // MINUTE}={value.value}" for window, value in rows]
        self.context.forward(Record("ranks", " ".join(ranked), now))


def topology(scope: str) -> Topology:
    """The application."""
    builders = [
        Stores.timestamped_key_value_store_with_headers_builder(
            Stores.persistent_timestamped_key_value_store_with_headers("counts"), TEXT, COUNT
        ),
        Stores.timestamped_window_store_with_headers_builder(
            Stores.persistent_timestamped_window_store_with_headers("windows", 4 * MINUTE, MINUTE), TEXT, COUNT
        ),
        Stores.session_store_with_headers_builder(
            Stores.persistent_session_store_with_headers("sessions", 4 * MINUTE), TEXT, COUNT
        ),
        Stores.versioned_key_value_store_with_headers_builder(
            Stores.persistent_versioned_key_value_store_with_headers("versions", 3 * MINUTE), TEXT, TEXT
        ),
    ]
    result = Topology().add_source("source", "in", key_serde=TEXT, value_serde=TEXT)
    result.add_processor("counts", Counts if scope == "key" else Ranks, "source")
    for builder in builders:
        result.add_state_store(builder, "counts")
    return result.add_sink("sink", "out", "counts", key_serde=TEXT, value_serde=TEXT)


# Records.


class Input(NamedTuple):
    """A record as Spark's Kafka source gives it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


def inputs(count: int) -> list[Input]:
    """Make records: some are late, some delete, some have no key; a key is always in the same partition."""
    dice = random.Random(7)
    result: list[Input] = []
    offsets = [0] * PARTITIONS
    for number in range(count):
        key = dice.choice([2, 3, 4, 5, 10, 11, 12, 13, None]) if number % 7 else 3
        partition = 0 if key is None else key % PARTITIONS
        late = dice.choice([0, 0, 0, 20_000, 5 * MINUTE])
        timestamp = max(BEGIN, BEGIN + number * 7_000 - late)
        # The last ones delete.
        value = None if dice.random() < 0.08 or number >= count - 3 else f"v{number}".encode()
        headers = None if number % 5 == 0 else [("n", str(number).encode()), ("null", None), ("n", b"")]
        raw = None if key is None else f"key-{key:02}".encode()
        result.append(Input("in", partition, offsets[partition], timestamp, raw, value, headers))
        offsets[partition] += 1
    return result


_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


def write_files(records: list[Input], directory: Path, files: int, since: int = 0) -> None:
    """Write records as files, each for one micro-batch, and in each out of order."""
    directory.mkdir(exist_ok=True)
    size = -(-len(records) // files)
    for number in range(files):
        part = records[number * size : (number + 1) * size]
        random.Random(number).shuffle(part)
        rows = [
            {
                **record._asdict(),
                "timestamp": dt.datetime.fromtimestamp(record.timestamp / 1000, dt.UTC),
                "headers": record.headers and [{"key": key, "value": value} for key, value in record.headers],
            }
            for record in part
        ]
        path = directory / f"{since + number:05}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), path)
        os.utime(path, (1_700_000_000 + since + number,) * 2)  # a stream takes the oldest first


# What is to come out.


class Out(NamedTuple):
    """A record that was written."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    changelog: bool


Rows = dict[tuple[str, int], list[tuple[bytes, bytes]]]
"""Rows by store and segment, in the order of their keys."""


def expected(
    scope: str, records: list[Input], make: Callable[[], Topology] | None = None
) -> tuple[dict[Any, list[Out]], dict[Any, Rows]]:
    """Run the application on the test driver: what it writes, and what its stores hold, for each group."""
    make = make or (lambda: topology(scope))
    groups: dict[Any, list[Input]] = {}
    for record in records:
        groups.setdefault(record.key if scope == "key" else record.partition, []).append(record)
    written, state = {}, {}
    for group, outputs in groups.items():
        with TopologyTestDriver(make(), application_id=APPLICATION) as driver:
            result: list[Out] = []
            take = driver._task._emit
            send = driver.produced.send
            partition = outputs[0].partition

            def emit(topic: str, record: ChangelogRecord, result: Any = result, take: Any = take) -> None:
                result.append(out(topic, None, record, False))
                take(topic, record)

            def log(
                topic: str,
                _: int,
                record: ChangelogRecord,
                result: Any = result,
                send: Any = send,
                logged_partition: int = partition,
            ) -> None:
                if topic != "out":
                    result.append(out(topic, logged_partition, record, True))
                send(topic, 0, record)

            driver._task._emit = emit
            driver.produced.send = log  # type: ignore[method-assign]
            for record in outputs:
                driver.pipe("in", raw(record))
            written[group] = result
            state[group] = rows_of(driver)
    return written, state


def raw(record: Input) -> ChangelogRecord:
    """Return a record as the test driver takes it."""
    return ChangelogRecord(record.key, record.value, record.timestamp, Headers(record.headers or ()))  # type: ignore[arg-type]


def out(topic: str, partition: int | None, record: ChangelogRecord, changelog: bool) -> Out:
    headers = tuple((key, value) for key, value in record.headers)
    return Out(topic, partition, record.key, record.value, headers, record.timestamp, changelog)  # type: ignore[arg-type]


def rows_of(driver: TopologyTestDriver) -> Rows:
    """Read all rows of all stores, as they are stored."""
    stored: Rows = {}
    for name, store in driver._task.stores.items():
        bottom = chain(store)[-1]
        segments = getattr(bottom, "_segments", None)
        databases = dict(enumerate(bottom._databases()))
        if hasattr(segments, "_ids"):
            databases = dict(zip(segments._ids, segments.all(), strict=True))
        for segment, database in databases.items():
            rows = list(database.rows.scan())
            if rows:
                stored[name, segment] = rows
    return stored


# On Spark.


def session() -> Any:
    """Start a session as the tests have it, in a process of its own."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def start(spark: Any, scope: str, directory: Path) -> Any:
    """Start the application on the files of a directory."""
    from pyspark import cloudpickle

    from letterhead import spark as lhs

    # Workers cannot import the tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    schema = spark.read.parquet(str(directory / "in")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory / "in"))
    return (
        lhs.run_topology(stream, topology(scope), application_id=APPLICATION)
        .writeStream.format("parquet")
        .option("path", str(directory / "out"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def main() -> None:
    scope, directory = sys.argv[1:]
    spark = session()
    query = start(spark, scope, Path(directory))
    query.awaitTermination()
    print("end")


if __name__ == "__main__":
    main()
