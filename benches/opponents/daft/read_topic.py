"""Read the offsets of all records of a topic with Daft, which returns no headers.

python read_topic.py ADDRESS TOPIC PARTITIONS RECORDS      prints: seconds records sum-of-offsets 0
"""

import sys
import time

import daft
import pyarrow.compute as pc


def main() -> None:
    """Read and print."""
    address, topic, _partitions, records = sys.argv[1:]
    settings = {"queued.min.messages": 1_000_000, "queued.max.messages.kbytes": 1_048_576, "fetch.queue.backoff.ms": 5}
    started = time.perf_counter()
    frame = daft.read_kafka(address, topic, chunk_size=100_000, kafka_client_config=settings)
    offsets = frame.select("offset").to_arrow()["offset"]
    seconds = time.perf_counter() - started
    assert len(offsets) == int(records), len(offsets)
    print(seconds, len(offsets), pc.sum(offsets).as_py(), 0)


main()
