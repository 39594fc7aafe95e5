"""Determine the end offsets of changelogs, from a broker or from files, to compute the lag of stores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from letterhead.cli.brokers import BrokerSettings
from letterhead.cli.exits import Failure
from letterhead.cli.state.options import ChangelogSource
from letterhead.offsets.partition_log import TopicPartition

__all__ = ["end_offsets"]


def end_offsets(partitions: Iterable[str], changelogs: ChangelogSource | None) -> dict[str, int]:
    """Return the offset after the last record of each ``topic-partition`` in the changelogs."""
    requested = set(partitions)
    ends: dict[str, int] = {}
    if changelogs is None:
        return ends
    if changelogs.brokers is not None:
        return _read_broker_lag(requested, changelogs.brokers)
    from letterhead.state.restoring.changelog_records import read_path

    columns = ["topic", "partition", "offset"]
    for batch in read_path(Path(changelogs.path), columns):
        import pyarrow as pa

        if missing := {*columns} - {*batch.schema.names}:
            raise Failure(f"{changelogs.path} has no column {min(missing)}: it needs {', '.join(columns)}")
        groups = pa.Table.from_batches([batch]).group_by(["topic", "partition"]).aggregate([("offset", "max")])
        for row in groups.to_pylist():
            partition = f"{row['topic']}-{row['partition']}"
            ends[partition] = max(ends.get(partition, 0), row["offset_max"] + 1)
    return {partition: end for partition, end in ends.items() if partition in requested}


def _read_broker_lag(requested: set[str], brokers: BrokerSettings) -> dict[str, int]:
    from letterhead.kafka.client import LATEST_TIME, KafkaClient
    from letterhead.kafka.settings import reader_settings

    topics = sorted({TopicPartition.parse(partition).topic for partition in requested})
    try:
        with KafkaClient(reader_settings(None, brokers)) as client:
            partitions = [partition for partition in client.partitions(topics) if str(partition) in requested]
            ends = client.offsets(dict.fromkeys(partitions, LATEST_TIME), "read_committed")
    except RuntimeError as error:  # a response is invalid or rejects the request
        raise Failure(str(error)) from error
    return {str(partition): end for partition, end in ends.items()}
