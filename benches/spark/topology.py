"""A topology on Spark against Spark's own aggregation, on the same records, and against a bare `transformWithState`.

Every side counts records by key in one micro-batch of a stream, with the state in RocksDB, two shuffle partitions, a
checkpoint on disk and a noop sink. The records have some ten headers each, and a value of 20 bytes.

* `groupBy().count()`: Spark's own aggregation; it runs in the JVM and looks at no headers.
* `transformWithState`: a Python processor that reads a count, adds the rows of the group, and writes it back: what
  Spark takes for any Python at all.
* `letterhead, by key` and `by partition`: a topology that keeps the count with the headers of the last record in a
  key-value store, and logs every change, so that a row goes out for every row that comes in.

Three sizes are run, in turns: few rows, many rows of few keys, many rows of many keys. What a row costs is the difference
of the first two, divided by the rows; what a key costs that of the last two, divided by the keys.

    python -m benches.spark.topology [--record FILE]     LETTERHEAD_BENCH=quick: 3,000 rows, one round
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benches import data
from benches.spark.session import ROOT, start_spark, time_limit

ROUNDS = 1 if data.QUICK else 3
WORK = ROOT / "target" / "benches"
PARTITIONS = 2


class Size(NamedTuple):
    """How much there is to count."""

    rows: int
    keys: int


FEW, ROWS, KEYS = (
    (Size(1_000, 100), Size(3_000, 100), Size(3_000, 1_500))
    if data.QUICK
    else (Size(10_000, 1_000), Size(210_000, 1_000), Size(210_000, 101_000))
)
SIDES = ["groupBy().count()", "transformWithState", "letterhead, by key", "letterhead, by partition"]


def main() -> None:
    """Check every side's answer, time them, print and record what a row and a key cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    record = parser.parse_args().record
    paths = {size: generate(size) for size in (FEW, ROWS, KEYS)}
    spark = start_spark()
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    try:
        seconds = measure(spark, paths)
    finally:
        spark.stop()
    results = [cost for side, taken in seconds.items() for cost in costs(side, taken)]
    show(seconds, results)
    if record is not None:
        record.write_text(json.dumps({"results": results}, indent=1) + "\n")


def measure(spark: Any, paths: dict[Size, Path]) -> dict[str, dict[Size, list[float]]]:
    """Run the sides in turns."""
    for side in SIDES:
        check(spark, side, paths[FEW], FEW)
    seconds: dict[str, dict[Size, list[float]]] = {side: {size: [] for size in paths} for side in SIDES}
    for number in range(ROUNDS):
        for size, path in paths.items():
            for side in SIDES[:: -1 if number % 2 else 1]:
                with time_limit(f"{side}, {size}"):
                    taken = run(spark, side, path, size, lambda frame: frame.writeStream.format("noop"))
                seconds[side][size].append(taken)
                print(f"round {number}: {side}, {size}: {taken:.2f} s", file=sys.stderr, flush=True)
    return seconds


def run(spark: Any, side: str, path: Path, size: Size, sink: Callable[[Any], Any]) -> float:
    """Run a side over a directory as one micro-batch; give how long the batch took, planning and commits included."""
    schema = spark.read.parquet(str(path)).schema
    frame = counted(side, spark.readStream.schema(schema).parquet(str(path)))
    checkpoint = WORK / "topology-checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    mode = "update" if side == SIDES[0] else "append"
    query = (
        sink(frame).outputMode(mode).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    assert [batch["numInputRows"] for batch in batches] == [size.rows], (side, batches)
    return batches[0]["durationMs"]["triggerExecution"] / 1000


def check(spark: Any, side: str, path: Path, size: Size) -> None:
    """Collect what a side writes, and compare the counts."""
    counts: dict[bytes, int] = {}

    def collect(batch: Any, number: int) -> None:
        for row in batch.select("key", "count").toLocalIterator():
            # Of the topology there is one for each record: the last of a key is the largest.
            counts[bytes(row["key"])] = max(counts.get(bytes(row["key"]), 0), row["count"])

    with time_limit(f"{side}: answer"):
        run(spark, side, path, size, lambda frame: answer(side, frame).writeStream.foreachBatch(collect))
    of_key, more = divmod(size.rows, size.keys)
    assert counts == {key_of(number): of_key + (number < more) for number in range(size.keys)}, side


def answer(side: str, frame: Any) -> Any:
    """Return the columns key and count of what a side writes."""
    if not side.startswith("letterhead"):
        return frame
    return frame.where("changelog").selectExpr("key", "cast(conv(hex(value), 16, 10) as bigint) as count")


def counted(side: str, records: Any) -> Any:
    """Count the records as a side does."""
    if side == "groupBy().count()":
        return records.groupBy("key").count()
    if side == "transformWithState":
        schema = "key binary, count bigint"
        return records.select("key").groupBy("key").transformWithState(bare_counter(), schema, "append", "none")
    from letterhead import spark as lhs

    return lhs.run_topology(records, topology(side.rpartition(" ")[2]), application_id="bench")


def bare_counter() -> Any:
    """Make the processor of the second side."""
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    class Counter(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.count = handle.getValueState("count", "count bigint")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            state = self.count.get()
            count = (state[0] if state else 0) + sum(1 for _ in rows)
            self.count.update((count,))
            yield Row(key=key[0], count=count)

        def close(self) -> None:
            pass

    return Counter()


def topology(scope: str) -> Any:
    """Make the topology of the other two."""
    from letterhead.state import BytesSerde, Int64Serde, Processor, Stores, Topology, ValueTimestampHeaders

    class Counter(Processor):
        def init(self, context: Any) -> None:
            super().init(context)
            self.counts = context.get_state_store("counts")

        def process(self, record: Any) -> None:
            before = self.counts.get(record.key)
            count = 1 if before is None else before.value + 1
            self.counts.put(record.key, ValueTimestampHeaders.make(count, record.timestamp, record.headers))

    Counter.scope = scope  # type: ignore[assignment]
    builder = Stores.timestamped_key_value_store_with_headers_builder(
        Stores.in_memory_key_value_store("counts"), BytesSerde(), Int64Serde()
    )
    result = Topology().add_source("source", "records").add_processor("counter", Counter, "source")
    return result.add_state_store(builder, "counter")


def generate(size: Size) -> Path:
    """Write the records to Parquet once, in as many files as there are partitions."""
    path = WORK / f"topology-{size.rows}-{size.keys}.parquet"
    if (path / "_SUCCESS").exists():
        return path
    path.mkdir(parents=True, exist_ok=True)
    headers = data.orders_headers(size.rows)
    numbers = range(size.rows)
    table = pa.table(
        {
            "topic": pa.array(["records"] * size.rows),
            "partition": pa.array([number % size.keys % PARTITIONS for number in numbers], pa.int32()),
            "offset": pa.array(numbers, pa.int64()),
            "timestamp": pa.array(
                [1_700_000_000_000_000 + 1000 * number for number in numbers], pa.timestamp("us", "UTC")
            ),
            "key": pa.array([key_of(number % size.keys) for number in numbers], pa.binary()),
            "value": pa.array([b"v" * 20] * size.rows, pa.binary()),
            "headers": headers,
        }
    )
    for part in range(PARTITIONS):
        pq.write_table(table.slice(part * size.rows // PARTITIONS, size.rows // PARTITIONS), path / f"{part}.parquet")
    (path / "_SUCCESS").touch()
    return path


def key_of(number: int) -> bytes:
    """Return a key that is in no order of its number."""
    return (number * 2_654_435_761 % (1 << 32)).to_bytes(4, "big").hex().encode()


def costs(side: str, taken: dict[Size, list[float]]) -> Iterator[dict[str, Any]]:
    """Work out what a row and a key cost: pairs of the same round, and of those the median."""
    for per, less, more, count in (
        ("row", FEW, ROWS, ROWS.rows - FEW.rows),
        ("key", ROWS, KEYS, KEYS.keys - ROWS.keys),
    ):
        differences = [after - before for after, before in zip(taken[more], taken[less], strict=True)]
        yield {
            "job": "count by key in a stream of Spark",
            "source": f"orders, {more.rows:,} rows of {more.keys:,} keys",
            "side": side,
            "per": per,
            "ns": statistics.median(differences) / count * 1e9,
            "rows": more.rows,
            "keys": more.keys,
            "seconds": {size.rows if per == "row" else size.keys: taken[size] for size in (less, more)},
        }


def show(seconds: dict[str, dict[Size, list[float]]], results: list[dict[str, Any]]) -> None:
    """Print the medians, and what a row and a key cost."""
    print("\ncounting by key, one micro-batch, local[2]" + (" (quick: times mean nothing)" * data.QUICK))
    head = "".join(f"{f'{size.rows:,} / {size.keys:,}':>20}" for size in (FEW, ROWS, KEYS))
    print(f"  {'rows / keys':28}{head}{'us/row':>10}{'us/key':>10}")
    for side, taken in seconds.items():
        medians = "".join(f"{statistics.median(taken[size]):18.2f} s" for size in (FEW, ROWS, KEYS))
        row, key = (cost["ns"] / 1000 for cost in results if cost["side"] == side)
        print(f"  {side:28}{medians}{row:10.2f}{key:10.2f}")


if __name__ == "__main__":
    main()
