"""Compare `lh.write.topic` with confluent-kafka, in one run, from the same table on one broker.

    python -m benches.produce [RECORDS]

The records are those of the bundled topic, of eleven headers, by default 200,000. The loop over confluent-kafka gets objects
of Python that were made before, and the settings that `lh.write.topic` has; both are acknowledged by the broker. The topics
must be equal afterwards, or nothing is printed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import letterhead as lh

ROOT = Path(__file__).resolve().parents[1]

BAR = 3.0
ROUNDS = 3
PARTITIONS = 2


def main() -> None:
    """Measure both in turns, and print their rates."""
    from tests.kafka.broker import Broker
    from tests.kafka.written import create_with

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=int, default=200_000)
    count = parser.parse_args().records
    sample = pq.read_table(ROOT / "tests" / "samples" / "orders-0.parquet", columns=["key", "value", "headers"])
    table = pa.concat_tables([sample] * -(-count // len(sample))).slice(0, count).combine_chunks()
    records = [
        (row["key"], row["value"], [(header["key"], header["value"]) for header in row["headers"] or ()])
        for row in table.to_pylist()
    ]
    seconds: dict[str, list[float]] = {"confluent-kafka": [], "lh.write.topic": []}
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(Path(directory))
        broker.start()
        try:
            for turn in range(ROUNDS):
                written = []
                for side, taken in seconds.items():
                    topic = f"{side}-{turn}"
                    create_with(broker.address, topic, PARTITIONS)
                    begun = time.perf_counter()
                    if side == "confluent-kafka":
                        produce(broker.address, topic, records)
                    else:
                        lh.write.topic(table, topic, bootstrap_servers=broker.address)
                    taken.append(time.perf_counter() - begun)
                    found = lh.open(f"kafka://{broker.address}/{topic}").read_all()
                    written.append(found.select(["partition", "offset", "key", "value", "headers"]))
                if not written[0].equals(written[1]):
                    raise RuntimeError("the topics differ")
        finally:
            broker.stop()
    rates = {side: count / statistics.median(taken) for side, taken in seconds.items()}
    for side, rate in rates.items():
        print(f"{side:16} {rate:10,.0f} records/s")
    ratio = rates["lh.write.topic"] / rates["confluent-kafka"]
    print(f"{ratio:.1f} times the rate; the goal is {BAR}")


def produce(address: str, topic: str, records: list[tuple[bytes, bytes, list[tuple[str, bytes]]]]) -> None:
    """Write records by confluent-kafka."""
    from confluent_kafka import Producer

    failed: list[object] = []
    producer = Producer({
        "bootstrap.servers": address, "enable.idempotence": True, "partitioner": "murmur2_random", "linger.ms": 5, "log_level": 3,
    })  # fmt: skip
    for key, value, headers in records:
        while True:
            try:
                producer.produce(
                    topic,
                    key=key,
                    value=value,
                    headers=headers,
                    on_delivery=lambda error, _: error and failed.append(error),
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(300) or failed:
        raise RuntimeError(f"{len(failed)} records were not written")


if __name__ == "__main__":
    main()
