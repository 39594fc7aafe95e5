"""Kafka topic as the target of a copy: :class:`TopicTarget`.

Records of a partition are appended in order, each once, so the records in the topic determine where a copy continues.
The last one is compared with the record of the source at the same position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from letterhead._row_request import RowRequest
from letterhead._table_batches import rows_by_partition
from letterhead.copies.target import Appender, CopyTarget, RefusedRowError, ends_of
from letterhead.errors import TopicNotFoundError
from letterhead.sources.base import Logins
from letterhead.sources.kafka import KafkaAddress, KafkaCluster, KafkaTopicSource
from letterhead.written import Appended, DeliveryError

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.copies.offset_map import OffsetMap
    from letterhead.kafka.topic_writer import TopicWriter

__all__ = ["TopicTarget", "after_last"]

COLUMNS = ("partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
"""Columns that are compared between a copied record and its source."""

WRITTEN = ("partition", "timestamp", "key", "value", "headers")
"""Columns that are written to a topic."""

_EXACT = {"enable.gapless.guarantee": "true", "max.request.size": "1000000000"}
"""Settings under which sending stops at a failed record, and brokers decide which records are too large."""


class TopicTarget(CopyTarget[KafkaTopicSource]):
    """Appends records to a topic of Kafka.

    Parameters
    ----------
    name : str
        Address of the topic.
    settings : mapping
        Settings of the connection.
    logins : Logins
        Returns passwords that the settings lack.
    timeout_ms : int or None
        Time limit of a request.
    """

    written = WRITTEN
    required = ("timestamp",)
    chunk_rows = 50_000

    def __init__(self, name: str, settings: Mapping[str, Any], logins: Logins, timeout_ms: int | None) -> None:
        address = KafkaAddress.parse(name)
        if address.topic is None or address.partition is not None:
            raise ValueError(f"a copy is written to a whole topic, kafka://host:port/topic, not to {name}")
        self.topic = address.topic
        self._servers = address.servers
        self._settings = logins.kafka_settings(settings, has_servers=address.servers is not None)
        self._timeout_ms = timeout_ms
        request = RowRequest(settings=self._settings, timeout_ms=timeout_ms)
        cluster = KafkaCluster(address.servers, Logins())
        super().__init__(KafkaTopicSource(name, address.topic, None, cluster.connection), COLUMNS, request)

    def create(self, partitions: int, settings: Mapping[str, str]) -> None:
        """Create the topic, if it does not exist, with the given settings."""
        try:
            self.partitions()
        except TopicNotFoundError:
            with self._source.admin(self._request) as admin:
                admin.create(self.topic, partitions, select_settings(settings))

    def appender(self, schema: pa.Schema, ends: Mapping[int, int] | None) -> Appender:
        """Return a producer that sends nothing after a rejected record."""
        from letterhead.kafka.settings import writer_settings
        from letterhead.kafka.topic_writer import TopicWriter

        settings = writer_settings(self._servers, {**self._settings, **_EXACT}, timeout_ms=self._timeout_ms)
        partition = "partition" if "partition" in schema.names else None
        return _KafkaAppender(TopicWriter(self.topic, settings, partition=partition))


class _KafkaAppender(Appender):
    def __init__(self, writer: TopicWriter) -> None:
        self._writer = writer

    def append(self, rows: pa.Table) -> Sequence[Appended]:
        before = self._writer.rows
        for batch in rows.to_batches():
            self._writer.add(batch)
        try:
            return self._writer.flush()
        except DeliveryError as error:
            row, reason = next(iter(error.errors.items()))
            raise RefusedRowError(row - before, reason) from error

    def interrupt(self) -> None:
        self._writer.close()

    def close(self) -> None:
        self._writer.close()


def select_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a copy keeps: all except settings that name brokers or change timestamps."""
    return {
        name: value
        for name, value in settings.items()
        if not name.startswith("confluent.") and name != "message.timestamp.type" and not name.endswith(".replicas")
    }


def after_last(
    batches: Iterable[pa.RecordBatch],
    last: Mapping[int, Mapping[str, Any]],
    offset_map: OffsetMap | None = None,
    first: Mapping[int, int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the source records that a target lacks, given the last records of the target.

    ``offset_map`` receives the offsets of records that the target has. ``first`` is the target's offset of the first
    record of each partition, by default 0.

    Raises
    ------
    ValueError
        If the records of the target differ from the records of the source.
    """
    ends = ends_of(last)
    present = {partition: end - (first or {}).get(partition, 0) for partition, end in ends.items()}
    for batch in batches:
        if not any(present.values()):
            yield batch
            continue
        for number, rows in rows_by_partition(batch):
            count = present.get(number, 0)
            skipped = min(count, len(rows))
            if count and skipped == count:
                _check_same(rows.slice(count - 1, 1).to_pylist()[0], last[number])
            if skipped and offset_map is not None:
                offset_map.note(number, rows.column("offset").slice(0, skipped), ends[number] - count)
            present[number] = count - skipped
            if skipped < len(rows):
                yield rows.slice(skipped)
    for partition, count in present.items():
        if count:
            raise ValueError(
                f"partition {partition} of the target has {count:,} records more than the source: it is no copy of it; name "
                "another topic, or pass append= to write after what it has"
            )


def _check_same(record: Mapping[str, Any], copied: Mapping[str, Any]) -> None:
    """Compare the last record of a target with the record of the source at the same position."""
    names = copied.keys() - {"partition", "offset", "timestamp_type", "headers"}
    if copied.get("timestamp_type"):  # set by the broker
        names -= {"timestamp"}
    same = all(record[name] == copied[name] for name in names if name in record)
    if not same or (record.get("headers") or []) != (copied["headers"] or []):
        raise ValueError(
            f"offset {copied['offset']} of partition {copied['partition']} of the target is not the record that the source has "
            "at this position: it is no copy of it; name another topic, or pass append= to write after what it has"
        )
