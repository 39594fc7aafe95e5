"""A producer and a consumer, which send and fetch records through interceptors.

They use produce and fetch requests, and leave the transport to a callable: the methods of a log in the same program, or a
function that sends the bytes elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, Generic

from letterhead._context_managers import Closing
from letterhead.errors import DecodeError, check_name
from letterhead.kip82.block import HeaderErrors
from letterhead.kip82.fetch import FetchRequest, FetchResponse
from letterhead.kip82.interceptors import (
    ConsumerInterceptor,
    ConsumerInterceptors,
    ProducerInterceptor,
    ProducerInterceptors,
)
from letterhead.kip82.layouts import CODECS, Codec, Layout, check_layout
from letterhead.kip82.produce import ProduceRequest, ProduceResponse
from letterhead.kip82.records import ConsumerRecord, ProducerRecord, RecordMetadata, TopicPartition
from letterhead.kip82.serializers import HeaderSerializer, K, Serializer, V

__all__ = ["Consumer", "Producer"]


class Producer(Closing):
    """Sends records through interceptors.

    Parameters
    ----------
    produce : callable
        Answers a :class:`ProduceRequest` with a :class:`ProduceResponse`, as :meth:`MessageLog.produce` does.
    interceptors : ProducerInterceptors or iterable of ProducerInterceptor, optional
        They see every record before it is serialized, and learn where it was written or why it was not.
    acks : int, default -1
        When the answer comes, see :class:`ProduceRequest`.
    codec : {"none", "gzip", "snappy", "lz4"}, default "none"
        How each message is compressed in its request.

    Examples
    --------
    >>> import tempfile
    >>> from letterhead.kip82 import Audit, Consumer, MessageLog, Producer, ProducerRecord
    >>> log = MessageLog(tempfile.mkdtemp() + "/orders-0")
    >>> with Producer(log.produce, interceptors=[Audit("shop-1", "cluster-a")]) as producer:
    ...     producer.send(ProducerRecord("orders", b"k", b"42", timestamp=1000))
    RecordMetadata(topic='orders', partition=0, offset=0, timestamp=1000)
    >>> [record] = Consumer(log.fetch, "orders").poll()
    >>> record.value, record.get_header("client-id")
    (b'42', 'shop-1')
    >>> log.close()
    """

    def __init__(
        self,
        produce: Callable[[ProduceRequest], ProduceResponse],
        *,
        interceptors: ProducerInterceptors | Iterable[ProducerInterceptor] = (),
        acks: int = -1,
        codec: Codec = "none",
    ) -> None:
        check_name("codec", codec, CODECS)
        self._produce = produce
        self._interceptors = ProducerInterceptors.of(interceptors)
        self._acks = acks
        self._codec: Codec = codec
        self._closed = False

    def send(self, record: ProducerRecord[Any, Any]) -> RecordMetadata:
        """Send a record, and wait for the answer.

        Parameters
        ----------
        record : ProducerRecord
            The record. Its partition is 0 and its timestamp the present, unless it or an interceptor says otherwise.

        Returns
        -------
        RecordMetadata
            Where it was written.

        Raises
        ------
        RequestError
            If the answer is an error.
        EncodeError
            If the record cannot be written.
        Exception
            What an interceptor raised that is required, and what ``produce`` raised.
        ValueError
            If the producer is closed.
        """
        if self._closed:
            raise ValueError("the producer is closed: make another one to send")
        [metadata] = self._interceptors.around([record], lambda sent: [self._send(each) for each in sent])
        return metadata

    def _send(self, record: ProducerRecord[Any, Any]) -> RecordMetadata:
        partition = record.partition or 0
        if record.timestamp is None:
            record = record.replace(timestamp=time.time_ns() // 1_000_000)
        request = ProduceRequest.of(
            record.topic,
            partition,
            [record.to_message()],
            version=_version(record.layout),
            layout=record.layout,
            codec=self._codec,
            acks=self._acks,
        )
        [(_, written)] = self._produce(request).raise_for_error().partitions()
        timestamp = record.timestamp if written.timestamp == -1 else written.timestamp
        return RecordMetadata(record.topic, partition, written.offset, timestamp)

    def close(self) -> None:
        """Close the interceptors. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._interceptors.close()


class Consumer(Closing, Generic[K, V]):
    """Fetches the records of a partition through interceptors.

    Parameters
    ----------
    fetch : callable
        Answers a :class:`FetchRequest` with a :class:`FetchResponse`, as :meth:`MessageLog.fetch` does.
    topic : str
        The topic.
    partition : int, default 0
        The partition.
    layout : {"typed", "int", "wrapper"}, default "typed"
        Layout of the records.
    interceptors : ConsumerInterceptors or iterable of ConsumerInterceptor, optional
        They see the records before the program does, and learn what was committed.
    offsets : mutable mapping of TopicPartition to int, optional
        Where :meth:`commit` keeps the offset of the next record; reading begins with what it has. By default a new dict,
        and reading begins with 0.
    serializers, key_serializer, value_serializer, errors
        As :meth:`ConsumerRecord.read` takes them.
    max_bytes : int, default 1 MiB
        How many bytes a :meth:`poll` asks for.

    Attributes
    ----------
    position : int
        The offset of the next record to be fetched. Set it to read on from elsewhere.
    offsets : mutable mapping of TopicPartition to int
        What was committed.

    Examples
    --------
    >>> import tempfile
    >>> from letterhead.kip82 import Consumer, MessageLog
    >>> log = MessageLog(tempfile.mkdtemp() + "/orders-0")
    >>> consumer = Consumer(log.fetch, "orders")
    >>> log.append([{"key": b"k", "value": b"42"}])
    range(0, 1)
    >>> [record.value for record in consumer.poll()], consumer.poll()
    ([b'42'], [])
    >>> consumer.commit()
    >>> consumer.offsets
    {TopicPartition(topic='orders', partition=0): 1}
    >>> log.close()
    """

    def __init__(
        self,
        fetch: Callable[[FetchRequest], FetchResponse],
        topic: str,
        partition: int = 0,
        *,
        layout: Layout = "typed",
        interceptors: ConsumerInterceptors | Iterable[ConsumerInterceptor] = (),
        offsets: MutableMapping[TopicPartition, int] | None = None,
        serializers: Mapping[Any, HeaderSerializer] | None = None,
        key_serializer: Serializer[K] | None = None,
        value_serializer: Serializer[V] | None = None,
        errors: HeaderErrors = "raise",
        max_bytes: int = 1 << 20,
    ) -> None:
        check_layout(layout)
        check_name("errors", errors, ("raise", "null"))
        self._fetch = fetch
        self._partition = TopicPartition(topic, partition)
        self._layout: Layout = layout
        self._interceptors = ConsumerInterceptors.of(interceptors)
        self._serializers = serializers
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._errors: HeaderErrors = errors
        self._max_bytes = max_bytes
        self._closed = False
        self.offsets: MutableMapping[TopicPartition, int] = {} if offsets is None else offsets
        self.position = self.offsets.get(self._partition, 0)

    def poll(self) -> list[ConsumerRecord[K, V]]:
        """Fetch the next records.

        Returns
        -------
        list of ConsumerRecord
            What the interceptors returned for them. Empty if there are no records yet; interceptors are not called then.

        Raises
        ------
        RequestError
            If the answer is an error.
        DecodeError
            If the next message is damaged. The messages before it were returned.
        Exception
            What an interceptor raised that is required, and what ``fetch`` raised. The position stays.
        ValueError
            If the consumer is closed.
        """
        self._check_open()
        topic, partition = self._partition
        request = FetchRequest.of(
            topic, partition, self.position, version=_version(self._layout), max_bytes=self._max_bytes
        )
        response = self._fetch(request)
        [(_, fetched)] = response.partitions()
        fetched.raise_for_error(topic)
        records: list[ConsumerRecord[K, V]] = []
        try:
            for record in ConsumerRecord.read(
                fetched.message_set,
                topic=topic,
                partition=partition,
                layout=self._layout,
                serializers=self._serializers,
                key_serializer=self._key_serializer,
                value_serializer=self._value_serializer,
                errors=self._errors,
            ):
                # A compressed set is fetched as a whole, and may begin before the position.
                if record.offset >= self.position:
                    records.append(record)
        except DecodeError:
            if not records:
                raise
        if not records:
            return records
        seen = self._interceptors.on_consume(records)
        self.position = records[-1].offset + 1
        return seen

    def commit(self) -> None:
        """Commit the position, and tell the interceptors.

        Raises
        ------
        ValueError
            If the consumer is closed.
        """
        self._check_open()
        self.offsets[self._partition] = self.position
        self._interceptors.on_commit({self._partition: self.position})

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the consumer is closed: make another one to read on")

    def close(self) -> None:
        """Close the interceptors. A second call does nothing, and nothing is committed."""
        if not self._closed:
            self._closed = True
            self._interceptors.close()


def _version(layout: Layout) -> int:
    """Return the version of the requests that carry a layout."""
    return 3 if layout == "int" else 4
