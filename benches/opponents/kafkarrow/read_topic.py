"""Read all records of a topic into Arrow columns with kafkarrow, which returns no headers.

python read_topic.py ADDRESS TOPIC RECORDS      prints: seconds records sum-of-offsets sum-of-timestamps
"""

import sys
import time

import pyarrow as pa
import pyarrow.compute as pc
from kafkarrow import ConsumerManager, SourceTopic


def main() -> None:
    """Read and print."""
    address, topic, records = sys.argv[1:]
    settings = {"bootstrap.servers": address, "queued.min.messages": "1000000", "fetch.queue.backoff.ms": "5"}
    started = time.perf_counter()
    manager = ConsumerManager(config=settings, topics=[SourceTopic.from_earliest(topic)], batch_size=100_000)
    batches = []
    while sum(batch.num_rows for batch in batches) < int(records):
        batches.append(manager.poll(timeout_ms=1000))
    seconds = time.perf_counter() - started
    table = pa.Table.from_batches(batches)
    print(seconds, table.num_rows, *(pc.sum(table[name].cast("int64")).as_py() for name in ("offset", "timestamp")))


main()
