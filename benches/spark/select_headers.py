"""`select_headers` in Spark against the same job without its kernel, plain Python, and Spark SQL's own expressions.

Two million rows, two families: `bytes` (store cells, `streams-timestamped`) and `lists` (headers as Spark's Kafka
source gives them). Each job reads the one column from Parquet, makes tenant (string), retry (int) and amount_cents
(bigint), and writes to the noop sink. Jobs of a family run in turns, so that a slow minute of the machine meets all of
them; what is compared is the ratio in the same round, and of those the median.

* `letterhead`: `lhs.select_headers`.
* `letterhead header` (lists only): three times `lhs.header`, which makes expressions of Spark SQL and checks values.
* `kernel taken out`: `mapInArrow` that gets the very same input batches (the bytes do cross into the Python worker)
  and gives, for a batch of n rows, the first n rows of a record batch of the same schema that was computed beforehand
  from 10,000 rows of the same data. So reading, transport both ways and the output's size are in it; looking at the
  bytes is not.
* `plain Python`: `mapInArrow` with the loop of `benches/plain.py`, on all rows.
* `Spark SQL` (lists only; its own functions cannot read varints): `element_at(filter(headers, …), -1)`. Numbers are
  read by `conv(hex(value), 16, 10)`, which is right here because none of these numbers is negative. Nothing is
  checked.

    python -m benches.spark.select_headers [--record FILE]     LETTERHEAD_BENCH=quick: 20,000 rows, one round
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benches import data, plain

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS = 20_000 if data.QUICK else 2_000_000
ROUNDS = 1 if data.QUICK else 7
# What takes long runs less often.
ROUNDS_OF = {"letterhead header": 3, "Spark SQL": 3, "plain Python": 3, "letterhead.reference": 1}
FILES = 4
TIME_LIMIT_SECONDS = 300  # of one job; spec: a job that hangs must say where
DDL = "tenant string, retry int, amount_cents bigint"
SOURCES = {"cell": "store cells (streams-timestamped)", "headers": "orders (list column)"}
SPARK_BATCH = 10_000  # spark.sql.execution.arrow.maxRecordsPerBatch, Spark's default

LAST = "element_at(filter(headers, h -> h.key = '{}'), -1).value"
SQL = {
    "tenant": f"cast({LAST.format('tenant')} as string)",
    "retry": f"cast(conv(hex({LAST.format('retry')}), 16, 10) as int)",
    "amount_cents": f"cast(conv(hex({LAST.format('amount_cents')}), 16, 10) as bigint)",
}


def main() -> None:
    """Check every job's answer, time the jobs, print and record the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    record = parser.parse_args().record
    bytes_path = generate("bytes", "cell", data.store_cells)
    lists_path = generate("lists", "headers", data.orders_headers)
    spark = start_spark()
    try:
        results = [
            *measure(spark, bytes_path, "cell", data.store_answer(ROWS), bytes_jobs()),
            *measure(spark, lists_path, "headers", data.orders_answer(ROWS), lists_jobs()),
        ]
    finally:
        spark.stop()
    show(results)
    if record is not None:
        record.write_text(json.dumps({"rows": ROWS, "results": results}, indent=1) + "\n")


def bytes_jobs() -> dict[str, Callable[[Any], Any]]:
    """Name the jobs over store cells."""
    from letterhead import spark as lhs

    return {
        "letterhead": lambda df: df.transform(lhs.select_headers("cell", "streams-timestamped", data.COLUMNS)),
        "kernel taken out": lambda df: df.mapInArrow(without_kernel(data.store_blocks), DDL),
        "plain Python": lambda df: df.mapInArrow(plain_cells, DDL),
        "letterhead.reference": lambda df: df.mapInArrow(reference_cells, DDL),
    }


def lists_jobs() -> dict[str, Callable[[Any], Any]]:
    """Name the jobs over list columns."""
    from letterhead import spark as lhs

    return {
        "letterhead": lambda df: df.transform(lhs.select_headers("headers", "kafka", data.COLUMNS)),
        "kernel taken out": lambda df: df.mapInArrow(without_kernel(data.orders_headers), DDL),
        "letterhead header": lambda df: df.select(*(lhs.header("headers", *wanted) for wanted in data.COLUMNS.items())),
        "Spark SQL": lambda df: df.selectExpr(*(f"{expression} as {name}" for name, expression in SQL.items())),
        "plain Python": lambda df: df.mapInArrow(plain_lists, DDL),
    }


def without_kernel(source: Callable[[int], pa.Array]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the job that gives columns computed beforehand and never looks at its input."""
    ready = plain_batch(data.as_lists(source(SPARK_BATCH)))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield ready.slice(0, batch.num_rows)

    return run


def plain_cells(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode store cells in plain Python."""
    for batch in batches:
        yield plain_batch([plain.decode_block(plain.split_envelope(cell)[0]) for cell in batch.column(0).to_pylist()])


def reference_cells(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode store cells in plain Python with every check that the kernel makes."""
    from letterhead.reference import ops

    for batch in batches:
        made = ops.select_rows(batch.column(0).to_pylist(), "streams-timestamped", data.COLUMNS)
        yield pa.RecordBatch.from_pydict(made, schema=data.SELECTED_SCHEMA)


def plain_lists(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take the headers out of list columns in plain Python."""
    for batch in batches:
        rows = batch.column(0).to_pylist()
        yield plain_batch([[(header["key"], header["value"]) for header in row or ()] for row in rows])


def plain_batch(rows: list[plain.HeaderList]) -> pa.RecordBatch:
    """Build the three columns as a data engineer would."""
    columns = list(zip(*map(plain.select_three, rows), strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, data.SELECTED_SCHEMA, strict=True)],
        schema=data.SELECTED_SCHEMA,
    )


def measure(
    spark: Any, path: Path, column: str, answer: tuple[data.Held, data.Selected], jobs: dict[str, Callable[[Any], Any]]
) -> list[dict[str, Any]]:
    """Check the answers of a family, then run its jobs in turns."""
    held, selected = answer
    frame = spark.read.parquet(str(path)).select(column)
    for name, job in jobs.items():
        with time_limit(f"{path.name}: {name}: answer"):
            check(name, job(frame), selected)
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(ROUNDS + 1):
        # There and back, so that no job always follows the same other one.
        for name in list(jobs)[:: -1 if number % 2 else 1]:
            if number > ROUNDS_OF.get(name, ROUNDS):
                continue
            job = jobs[name]
            with time_limit(f"{path.name}: {name}"):
                started = time.perf_counter()
                job(frame).write.format("noop").mode("overwrite").save()
                seconds[name].append(time.perf_counter() - started)
            print(f"{path.name} round {number}: {name} {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
    for taken in seconds.values():
        del taken[0]  # the first round is for the JIT, the page cache and the start of the workers
    return [
        {
            "job": "select 3 in Spark",
            "source": SOURCES[column],
            "side": name,
            "rows": ROWS,
            "headers": held.headers,
            "batch": SPARK_BATCH,
            "seconds": taken,
            # Pairs of the same round: a slow minute of the machine is in both.
            "ratio": statistics.median(mine / ours for mine, ours in zip(taken, seconds["letterhead"], strict=False)),
        }
        for name, taken in seconds.items()
    ]


def check(name: str, result: Any, selected: data.Selected) -> None:
    """Add up a job's columns and compare; the job with the kernel taken out only has to give all rows."""
    assert result.columns == list(data.COLUMNS), (name, result.columns)
    sums = result.selectExpr(
        "count(*) as rows",
        "count(tenant) as tenants",
        "sum(octet_length(tenant)) as tenant_bytes",
        "count(retry) as retries",
        "sum(retry) as retry_sum",
        "count(amount_cents) as amounts",
        "sum(amount_cents) as amount_sum",
    ).first()
    assert sums["rows"] == ROWS, (name, sums)
    if name != "kernel taken out":
        got = data.Selected(**{field: sums[field] for field in data.Selected.__dataclass_fields__})
        assert got == selected, (name, got, selected)


def generate(name: str, column: str, source: Callable[[int], pa.Array]) -> Path:
    """Write the rows to Parquet once, in files small enough that both cores get several tasks."""
    path = ROOT / "target" / "benches" / f"{name}-{ROWS}.parquet"
    if not (path / "_SUCCESS").exists():
        path.mkdir(parents=True, exist_ok=True)
        rows = ROWS // FILES
        batch = pa.table({column: source(ROWS)})
        for number in range(FILES):
            pq.write_table(batch.slice(number * rows, rows), path / f"part-{number}.parquet", row_group_size=rows // 2)
        (path / "_SUCCESS").touch()
        source.cache_clear()  # type: ignore[attr-defined]
    return path


def start_spark() -> Any:
    """Start a session of two cores on this machine only."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # The workers import `benches`, too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .appName("letterhead select_headers")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", SPARK_BATCH)
        .getOrCreate()
    )


@contextmanager
def time_limit(what: str) -> Iterator[None]:
    """End the run, with the stacks of Python and Java, if the body takes too long."""

    def give_up() -> None:
        print(f"{what}: no end after {TIME_LIMIT_SECONDS} s", file=sys.stderr)
        faulthandler.dump_traceback(all_threads=True)
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        if gateway is not None:
            subprocess.run(["jstack", str(gateway.proc.pid)], stdout=sys.stderr, check=False, timeout=60)
        os._exit(1)

    timer = threading.Timer(TIME_LIMIT_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def show(results: list[dict[str, Any]]) -> None:
    """Print the medians, and what each is of ours in the same rounds."""
    print(f"\nselect 3 headers, {ROWS:,} rows, local[2], noop sink" + (" (quick: times mean nothing)" * data.QUICK))
    for row in results:
        taken = row["seconds"]
        print(
            f"  {row['source']:34} {row['side']:17} {statistics.median(taken):6.2f} s"
            f"  ({min(taken):.2f}-{max(taken):.2f}, {len(taken)} runs)  {row['ratio']:6.2f} x letterhead"
        )


if __name__ == "__main__":
    main()
