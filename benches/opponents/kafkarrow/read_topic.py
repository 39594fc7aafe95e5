"""Read the offsets of all records of a topic with kafkarrow, which returns no headers.

python read_topic.py ADDRESS TOPIC PARTITIONS RECORDS      prints: seconds records sum-of-offsets 0
"""

import sys
import time

import pyarrow.compute as pc
from kafkarrow import ConsumerManager, SourceTopic


def main() -> None:
    """Read and print."""
    address, topic, _partitions, records = sys.argv[1:]
    settings = {"bootstrap.servers": address, "queued.min.messages": "1000000", "fetch.queue.backoff.ms": "5"}
    started = time.perf_counter()
    manager = ConsumerManager(config=settings, topics=[SourceTopic.from_earliest(topic)], batch_size=100_000)
    count = total = 0
    while count < int(records):
        batch = manager.poll(timeout_ms=1000)
        count += batch.num_rows
        total += pc.sum(batch["offset"]).as_py() or 0
    seconds = time.perf_counter() - started
    print(seconds, count, total, 0)


main()
