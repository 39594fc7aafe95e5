"""Compare `letterhead copy` with what people use instead, in one run, from one topic on one broker.

    python -m benches.copying [RECORDS]

The records are those of the bundled topic with five headers each, by default 2,000,000. To Parquet it is compared with a
consumer of confluent-kafka that writes the same file by pyarrow; both files must have equal keys, values and headers. To a
topic it is compared with `kcat -C | kcat -P`, where kcat is installed, which loses headers and whose output is not compared.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import letterhead as lh
from benches.direct.plain_python import CONSUMER
from letterhead import arrow as lha

ROOT = Path(__file__).resolve().parents[1]

HEADERS = ["traceparent", "ce_id", "ce_type", "tenant", "retry"]
PARTITIONS = 2
CHUNK = 100_000
BARS = {"Parquet": 5.0, "topic": 1.0}
SCHEMA = pa.schema(
    {
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", "UTC"),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }
)


def main() -> None:
    """Fill a topic, copy it in both ways, and print the seconds."""
    from tests.kafka.broker import Broker
    from tests.kafka.written import create_with

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=int, default=2_000_000)
    count = parser.parse_args().records
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        broker = Broker(place / "broker")
        broker.start()
        try:
            for topic in ("source", "copied", "piped"):
                create_with(broker.address, topic, PARTITIONS)
            fill(broker.address, "source", count)
            source = f"kafka://{broker.address}/source"
            target = f"kafka://{broker.address}/copied"
            # Before this process takes memory itself, which counts as that of a program that it starts.
            to_parquet = measured(lambda: command("copy", source, str(place / "copy")))
            to_topic = measured(lambda: command("copy", source, target))
            consumed = measured(lambda: consume(broker.address, "source", count, place / "consumed.parquet"))
            require_equal(place / "copy", place / "consumed.parquet")
            require_equal(source, target)
            show("Parquet", "confluent-kafka and pyarrow", to_parquet, consumed)
            if shutil.which("kcat"):
                show("topic", "kcat -C | kcat -P, without headers", to_topic, measured(lambda: pipe(broker.address)))
            else:
                print(f"topic: letterhead {to_topic:.1f} s; kcat is not installed")
        finally:
            broker.stop()


def fill(address: str, topic: str, count: int) -> None:
    """Write the records."""
    sample = pq.read_table(ROOT / "tests" / "samples" / "orders-0.parquet", columns=["key", "value", "headers"])
    headers = lha.edit(sample["headers"], only=HEADERS)
    sample = sample.set_column(2, "headers", headers)
    chunk = pa.concat_tables([sample] * (CHUNK // len(sample)))
    for start in range(0, count, CHUNK):
        lh.write.topic(chunk.slice(0, count - start), topic, bootstrap_servers=address)


def measured(run: Callable[[], None]) -> float:
    """Return the seconds that a run takes."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def command(*arguments: str) -> None:
    """Run the command, and print its largest memory."""
    process = subprocess.Popen([sys.executable, "-m", "letterhead", "-q", *arguments])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"letterhead {' '.join(arguments)}: {status}")
    print(f"  at most {usage.ru_maxrss / 1024:,.0f} MiB")


def consume(address: str, topic: str, count: int, target: Path) -> None:
    """Copy a topic to a Parquet file by confluent-kafka and pyarrow."""
    from confluent_kafka import Consumer

    consumer = Consumer({**CONSUMER, "bootstrap.servers": address})
    consumer.subscribe([topic])
    left, rows = count, []
    with pq.ParquetWriter(target, SCHEMA, compression="zstd") as writer:
        while left:
            for message in consumer.consume(10_000, timeout=10):
                if message.error() is not None:
                    raise RuntimeError(str(message.error()))
                rows.append(message)
            if len(rows) >= min(CHUNK, left):
                writer.write_table(as_table(rows))
                left -= len(rows)
                rows = []
    consumer.close()


def as_table(messages: list[object]) -> pa.Table:
    """Return messages as columns."""
    columns = [
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [message.timestamp()[1] for message in messages],
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.headers() or [] for message in messages],
    ]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def require_equal(first: Path | str, second: Path | str) -> None:
    """Raise unless two sources have the same records."""
    with lh.diff(first, second, columns=["key", "value", "headers"]) as differences:
        if differences.read_all().num_rows:
            raise RuntimeError("the copies differ")


def pipe(address: str) -> None:
    """Copy a topic by kcat."""
    read = f"kcat -q -C -b {address} -t source -e -K '|'"
    subprocess.run(f"{read} | kcat -q -P -b {address} -t piped -K '|'", shell=True, check=True)


def show(target: str, other: str, ours: float, theirs: float) -> None:
    """Print a ratio beside its goal."""
    ratio = f"{theirs / ours:.1f} times"
    print(f"{target}: letterhead {ours:.1f} s; {other} {theirs:.1f} s: {ratio}; the goal is {BARS[target]}")


if __name__ == "__main__":
    main()
