"""A client of a Sail server: `python sail_client.py ADDRESS BROKER TOPIC SAMPLES [SCRATCH]`; prints its answers as JSON.

It has a process of its own, as a process with a classic session of Spark cannot connect to a server.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from letterhead import spark as lhs

COLUMNS = {"tenant": "string", "retry": "int32", "amount_cents": "int64"}
"""Headers of the sample of orders."""
TASKS = 4


def main(address: str, broker: str, topic: str, samples: str, scratch: str | None = None) -> None:
    spark = SparkSession.builder.remote(address).getOrCreate()
    lhs.register(spark)
    options = {"kafka.bootstrap.servers": broker, "subscribe": topic}
    options |= lhs.options(columns=["partition", "offset"], headers=COLUMNS)
    read = spark.read.format("letterhead-kafka").options(**options).load()
    orders = spark.read.parquet(f"{samples}/orders-0.parquet").repartition(TASKS)
    selected = lhs.select_headers(orders, COLUMNS, keep=["offset"])
    answers = {
        "topic": read.orderBy("partition", "offset").toArrow().to_pylist(),
        "tenants": selected.groupBy("tenant").count().orderBy("tenant").toArrow().to_pylist(),
    }
    if scratch is not None:
        answers["met"] = orders.mapInArrow(meeting(scratch), "met int").toArrow()["met"].to_pylist()
    print(json.dumps(answers))


def meeting(scratch: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function whose tasks wait for each other, and count those that run at the same time."""
    tasks = TASKS

    def meet(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        Path(scratch, uuid.uuid4().hex).touch()
        until = time.monotonic() + 200
        while len(list(Path(scratch).iterdir())) < tasks and time.monotonic() < until:
            time.sleep(0.02)
        yield pa.RecordBatch.from_pydict({"met": pa.array([len(list(Path(scratch).iterdir()))], pa.int32())})

    return meet


if __name__ == "__main__":
    main(*sys.argv[1:])
