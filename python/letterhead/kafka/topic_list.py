"""List the topics of a cluster as a table: :func:`read_topics`."""

from __future__ import annotations

import pyarrow as pa

from letterhead.kafka.client import EARLIEST_TIME, LATEST_TIME, KafkaClient
from letterhead.kafka.settings import Settings
from letterhead.offsets.partition_log import TopicPartition

__all__ = ["TOPIC_COLUMNS", "TOPIC_SCHEMA", "read_topics"]

TOPIC_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partitions", pa.int32()),
        ("replicas", pa.int32()),
        ("offsets", pa.int64()),
        ("internal", pa.bool_()),
    ]
)
TOPIC_COLUMNS = tuple(TOPIC_SCHEMA.names)


def read_topics(connection: Settings) -> pa.RecordBatch:
    """Return a row for each visible topic.

    ``offsets`` is the number of offsets between the first and the last record of all partitions, including those
    removed by compaction. It is null while a partition has no leader.
    """
    with KafkaClient(connection) as client:
        topics = client.described_topics()
        led = [partition for topic in topics for partition in topic.partitions if partition not in topic.leaderless]
        sizes = _sizes(client, led)
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": topic.replicas,
            "offsets": None if topic.leaderless else sum(map(sizes.__getitem__, topic.partitions)),
            "internal": topic.is_internal,
        }
        for topic in topics
    ]
    return pa.RecordBatch.from_pylist(rows, TOPIC_SCHEMA)


def _sizes(client: KafkaClient, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the number of offsets in each partition."""
    first, end = (
        client.offsets(dict.fromkeys(partitions, time), "read_uncommitted") for time in (EARLIEST_TIME, LATEST_TIME)
    )
    return {partition: end[partition] - first[partition] for partition in partitions}
