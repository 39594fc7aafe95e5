"""Offsets and amounts of all records into Arrow, in Python without Spark; a process of its own, on one core or on all.

* `letterhead`: `lh.read.topic`, which fetches record sets from the broker.
* `letterhead, segments`: `lh.read.segments`, on the broker's files.
* `confluent-kafka`: a consumer with the settings that make it fast (with its defaults it is several times slower), and
  the fastest loop we found: headers through a `dict`, amounts through `numpy`. It checks no checksums (its default).

Every round begins with nothing: connecting is in the time of all of them, closing in the time of none.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import letterhead as lh
from benches.direct import records

WANTED: dict[str, Any] = {"columns": ["offset"], "headers": {"amount": "int64"}}
CONSUMER = {
    "group.id": "direct",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 1_048_576,
    "fetch.queue.backoff.ms": 5,
}


def main() -> None:
    """Run every side in turns, and print the seconds as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--address", help="of the broker; without one, segments only")
    parser.add_argument("--one-core", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if options.one_core:
        # The last one, as for other benchmarks of one core; before anything has started threads.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sides: dict[str, Callable[[], pa.Table]] = {"letterhead, segments": lambda: from_segments(options.directory)}
    if options.address:
        sides = {"letterhead": lambda: from_topic(options.address), **sides}
        sides["confluent-kafka"] = lambda: from_consumer(options.address)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(options.rounds + 1):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            started = time.perf_counter()
            table = sides[name]()
            seconds[name].append(time.perf_counter() - started)
            check(name, table)
            del table
            gc.collect()
            print(f"plain Python round {number}: {name} {seconds[name][-1]:.3f} s", file=sys.stderr, flush=True)
    # The first round is for the page cache.
    print(json.dumps({name: taken[1:] for name, taken in seconds.items()}))


def from_topic(address: str) -> pa.Table:
    return lh.read.topic(records.TOPIC, bootstrap_servers=address, **WANTED).read_all()


def from_segments(directory: Path) -> pa.Table:
    return lh.read.segments(directory, **WANTED).read_all()


def from_consumer(address: str) -> pa.Table:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, **CONSUMER})
    consumer.assign([TopicPartition(records.TOPIC, number, 0) for number in range(records.PARTITIONS)])
    offsets: list[int] = []
    amounts: list[bytes] = []
    while len(offsets) < records.ROWS:
        messages = consumer.consume(10_000, 10)
        if not messages:
            raise RuntimeError(f"confluent-kafka: nothing came for 10 s, after {len(offsets)} records")
        offsets += [message.offset() for message in messages]
        amounts += [dict(message.headers())["amount"] for message in messages]
    result = np.frombuffer(b"".join(amounts), ">i8").astype("i8")
    return pa.table({"offset": pa.array(offsets, pa.int64()), "amount": pa.array(result)})


def check(name: str, table: pa.Table) -> None:
    answer = records.answer()
    assert table.column_names == ["offset", "amount"], (name, table.column_names)
    got = (table.num_rows, pc.sum(table["offset"]).as_py(), pc.sum(table["amount"]).as_py())
    assert got == (answer.rows, answer.offsets, answer.amounts), (name, got)


if __name__ == "__main__":
    main()
