"""Iggy topic as the target of a copy: :class:`IggyTarget`.

Iggy messages are copied unchanged: payload, headers with order and types, id and origin timestamp. Kafka records are
mapped to messages (:mod:`letterhead.iggy.kafka_gateway`), by default without loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from letterhead._row_request import RowRequest
from letterhead.copies.target import Appender, CopyTarget, RefusedRowError
from letterhead.errors import HeaderError
from letterhead.iggy.client import TIMEOUT_MS, IggyClient
from letterhead.offsets.partition_log import TopicPartition
from letterhead.sources.base import Logins
from letterhead.sources.iggy import FORM, IggyTopicSource, iggy_source
from letterhead.written import Appended

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.iggy.topic_writer import IggySink

__all__ = ["LOSSLESS", "IggyTarget"]

LOSSLESS = "kafka-gateway-lossless"

_MESSAGE = ("partition", "id", "origin_timestamp", "headers", "payload")
_RECORD = ("partition", "timestamp", "key", "value", "headers")


class IggyTarget(CopyTarget[IggyTopicSource]):
    """Appends messages to a topic of Iggy; each batch is sent after the previous one is acknowledged.

    Parameters
    ----------
    name : str
        Address of the topic.
    logins : Logins
        Provides credentials if the address has none.
    timeout_ms : int or None
        Time limit for the acknowledgement of a batch.
    mapping : str or None
        Mapping of Kafka records to messages; None if the rows are messages.
    """

    def __init__(self, name: str, logins: Logins, timeout_ms: int | None, mapping: str | None) -> None:
        source = iggy_source(name, logins)
        if source.partition is not None:
            raise ValueError(f"a copy is written to a whole topic, {FORM}, not to {source.name}")
        self.written = _MESSAGE if mapping is None else _RECORD
        self.required = ("id", "origin_timestamp") if mapping is None else ()
        super().__init__(source, (*self.written, "offset"), RowRequest(timeout_ms=timeout_ms, mapping=mapping))
        self.has_password = source.has_password
        self._mapping: Any = mapping
        self._timeout_ms = TIMEOUT_MS if timeout_ms is None else timeout_ms

    def create(self, partitions: int, settings: Mapping[str, str]) -> None:
        """Raise ValueError, because only topics of Kafka can be created."""
        raise ValueError("create= is for topics of Kafka: create stream and topic by a client of Iggy")

    def appender(self, schema: pa.Schema, ends: Mapping[int, int] | None) -> Appender:
        """Return a writer whose batches are acknowledged one by one."""
        from letterhead.iggy.topic_writer import IggySink

        if ends is not None:
            self._check_ends(ends)
        topic = self._source.iggy_topic
        return _IggyAppender(
            IggySink(
                self._source.server, schema, stream=topic.stream, topic=topic.topic,
                partition="partition" if "partition" in schema.names else None, mapping=self._mapping,
                timeout_ms=self._timeout_ms,
            )
        )  # fmt: skip

    def _check_ends(self, ends: Mapping[int, int]) -> None:
        """Raise ValueError if messages of a killed copy were appended after the last messages were read."""
        topic = self._source.iggy_topic
        with IggyClient(self._source.server, self._timeout_ms) as client:
            for partition in client.partitions(topic):
                end = client.end_offset(TopicPartition(topic, partition.partition))
                if end != ends.get(partition.partition, 0):
                    raise ValueError(
                        f"partition {partition.partition} of {self.name} got messages while the source was read: if no other "
                        "program writes to it, call again to continue"
                    )


class _IggyAppender(Appender):
    def __init__(self, sink: IggySink) -> None:
        self._sink = sink

    def append(self, rows: pa.Table) -> Sequence[Appended]:
        before = self._sink.rows
        try:
            return [appended for batch in rows.to_batches() for appended in self._sink.write(batch)]
        except HeaderError as error:
            if error.row is None:
                raise
            raise RefusedRowError(error.row - before, error.message) from error

    def interrupt(self) -> None:
        self._sink.interrupt()

    def close(self) -> None:
        self._sink.close()
