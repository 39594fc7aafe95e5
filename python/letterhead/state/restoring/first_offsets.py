"""Choose the start offset for restoring a windowed store: :func:`find_retained_offsets`, :func:`topic_retained_from`.

Kafka Streams 4.4 subtracts the retention of the store from the timestamp of the last record in the changelog, and begins
at the first record that is not older than this time. It begins with the first record of the changelog if this time is
not after 1970, or if the last offset is not a record but a transaction marker (under exactly-once). Kafka Streams 4.3
always begins with the first record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from letterhead._optional_dependencies import install_hint

with install_hint("the records of a changelog", "letterhead[arrow,state]"):
    import numpy as np
    import pyarrow as pa

from letterhead.state.restoring.changelog_records import (
    EndTracker,
    Integers,
    Source,
    milliseconds_of,
    read_batches,
    records_by_partition,
)

__all__ = ["can_be_read_again", "find_retained_offsets", "topic_retained_from"]

COLUMNS = ("partition", "offset", "timestamp")
TRANSACTIONAL = "transactional"


class _RecordTimes(NamedTuple):
    """Offsets and timestamps of records of one partition."""

    partition: int
    offsets: Integers
    timestamps: Integers
    transactional: bool
    """Whether the last record belongs to a transaction."""


def can_be_read_again(source: object) -> bool:
    """Return whether a source can be read twice: a file, a directory, or an in-memory table."""
    return isinstance(source, str | Path | pa.Table | pa.RecordBatch)


def find_retained_offsets(
    source: Source, retention: int, *, partition: int | None = None, end: int | datetime | None = None
) -> dict[int, int]:
    """Return the offset of the first record to restore, for partitions in which this is not the first record.

    This function reads the source twice; keys and values of files are not read.

    Parameters
    ----------
    source : Arrow table or path
        The records, in the form that :func:`letterhead.state.restore` accepts.
    retention : int
        Retention of the store in milliseconds.
    partition : int, optional
        The partition to restore; all by default.
    end : int or datetime, optional
        End of every partition, exclusive.
    """
    last: dict[int, _RecordTimes] = {}
    for records in _record_times(source, partition, end):
        last[records.partition] = records
    times = seek_times(last.values(), retention)
    first: dict[int, int] = {}
    for records in _record_times(source, partition, end):
        number = records.partition
        if number in times and number not in first:
            retained = np.flatnonzero(records.timestamps >= times[number])
            if len(retained):
                first[number] = int(records.offsets[retained[0]])
    return first


def topic_retained_from(
    topic: str,
    settings: Mapping[str, str],
    retention: int,
    partition: int | None = None,
    end: int | datetime | None = None,
) -> dict[int, int]:
    """Return the offsets of :func:`find_retained_offsets` for a topic; brokers find records by time.

    Only the last record of each partition is read. ``settings`` must contain ``bootstrap.servers``; see
    :func:`letterhead.read.topic`.
    """
    from letterhead._row_request import RowRequest
    from letterhead.kafka.client import EARLIEST_TIME, LATEST_TIME, KafkaClient
    from letterhead.kafka.settings import reader_settings
    from letterhead.kafka.topic_reader import read_topic
    from letterhead.offsets.partition_log import TopicPartition

    with KafkaClient(reader_settings(None, settings)) as client:
        partitions = [
            topic_partition
            for topic_partition in client.partitions([topic])
            if partition in (None, topic_partition.partition)
        ]
        begins = client.offsets(dict.fromkeys(partitions, EARLIEST_TIME), "read_committed")
        ends = client.offsets(dict.fromkeys(partitions, LATEST_TIME), "read_committed")
        if isinstance(end, datetime):
            late = client.offsets(dict.fromkeys(partitions, round(end.timestamp() * 1000)), "read_committed")
            ends |= {topic_partition: offset for topic_partition, offset in late.items() if offset >= 0}
        elif end is not None:
            ends = {topic_partition: min(offset, end) for topic_partition, offset in ends.items()}
        last = {
            topic_partition.partition: ends[topic_partition] - 1
            for topic_partition in partitions
            if ends[topic_partition] > begins[topic_partition]
        }
        request = RowRequest(
            columns=(*COLUMNS, TRANSACTIONAL),
            start=last,
            end={number: offset + 1 for number, offset in last.items()},
            partitions=frozenset(last),
            committed=True,
        )
        with read_topic(topic, lambda: reader_settings(None, settings), request) as reader:
            times = seek_times(_record_times(reader, None, None), retention)
        offsets = client.offsets(
            {TopicPartition(topic, number): time for number, time in times.items()}, "read_committed"
        )
    return {topic_partition.partition: offset for topic_partition, offset in offsets.items() if offset >= 0}


def seek_times(last: Iterable[_RecordTimes], retention: int) -> dict[int, int]:
    """Return, for each partition, the time from which to restore records, based on its last records."""
    times = {
        records.partition: int(records.timestamps[-1]) - retention for records in last if not records.transactional
    }
    return {number: time for number, time in times.items() if time > 0}


def _record_times(source: Source, partition: int | None, end: int | datetime | None) -> Iterator[_RecordTimes]:
    tracker = EndTracker(end)
    for batch in read_batches(source, (*COLUMNS, TRANSACTIONAL)):
        names = batch.schema.names
        for name in ("offset", "timestamp"):
            if name not in names:
                raise ValueError(f"the source has no column {name!r}: a changelog has offset and timestamp")
        for number, records in records_by_partition(batch, partition):
            offsets = records.column("offset").cast(pa.int64()).to_numpy()
            timestamps = milliseconds_of(records.column("timestamp"))
            stop = tracker.count(number, offsets, timestamps)
            if stop:
                transactional = TRANSACTIONAL in names and records.column(TRANSACTIONAL)[stop - 1].as_py()
                yield _RecordTimes(number, offsets[:stop], timestamps[:stop], bool(transactional))
