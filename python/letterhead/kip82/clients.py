"""Producer and consumer that send and fetch records through interceptors.

Both build requests and pass them to a callable: a method of a log in the same program, or a function that sends the
bytes to a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, Generic

from letterhead._clock import now_ms
from letterhead._context_managers import Closing
from letterhead._names import check_name
from letterhead._topic_partition import TopicPartition
from letterhead.errors import DecodeError
from letterhead.kip82.draft_headers import HeaderErrors
from letterhead.kip82.header_formats import CODECS, Codec, HeaderFormat, check_header_format
from letterhead.kip82.interceptors import (
    ConsumerInterceptor,
    ConsumerInterceptors,
    ProducerInterceptor,
    ProducerInterceptors,
)
from letterhead.kip82.records import ConsumerRecord, ProducerRecord, RecordMetadata
from letterhead.kip82.requests import FetchRequest, FetchResponse, ProduceRequest, ProduceResponse
from letterhead.kip82.serializers import HeaderSerializer, K, Serializer, V

__all__ = ["Consumer", "Producer"]


class _RecordClient(Closing):
    _interceptors: ProducerInterceptors | ConsumerInterceptors
    _closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the {type(self).__name__.lower()} is closed: make another one")

    def close(self) -> None:
        """Close the interceptors; a second call does nothing. Closing a consumer does not commit its position."""
        if not self._closed:
            self._closed = True
            self._interceptors.close()


class Producer(_RecordClient):
    """Send records through interceptors.

    Parameters
    ----------
    produce : callable
        Returns the :class:`ProduceResponse` to a :class:`ProduceRequest`, as :meth:`MessageLog.produce` does.
    interceptors : ProducerInterceptors or iterable of ProducerInterceptor, optional
        Interceptors for every record before it is serialized, and for the result of sending it.
    acks : int, default -1
        When a log sends its response: with -1, after messages are on disk; with other values, after they are written. See
        ``sync`` of :class:`~letterhead.kip82.MessageLog`.
    codec : {"none", "gzip", "snappy", "lz4"}, default "none"
        Compression of each message.

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

    _interceptors: ProducerInterceptors

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
        self._interceptors = ProducerInterceptors._from(interceptors)
        self._acks = acks
        self._codec: Codec = codec

    def send(self, record: ProducerRecord[Any, Any]) -> RecordMetadata:
        """Send a record, and wait for the response.

        Unless the interceptors set them, the partition defaults to 0, and the timestamp to the current time.

        Raises
        ------
        RequestError
            If the response is an error.
        EncodeError
            If the record cannot be encoded.
        Exception
            Any exception of a required interceptor, or of ``produce``.
        """
        self._check_open()
        [metadata] = self._interceptors._around([record], lambda sent: [self._send(prepared) for prepared in sent])
        return metadata

    def _send(self, record: ProducerRecord[Any, Any]) -> RecordMetadata:
        partition = record.partition or 0
        if record.timestamp is None:
            record = record.replace(timestamp=now_ms())
        request = ProduceRequest.for_partition(
            record.topic,
            partition,
            [record.to_message()],
            version=_version(record.header_format),
            header_format=record.header_format,
            codec=self._codec,
            acks=self._acks,
        )
        [(_, written)] = self._produce(request).raise_for_error().partitions()
        timestamp = record.timestamp if written.timestamp == -1 else written.timestamp
        return RecordMetadata(record.topic, partition, written.offset, timestamp)


class Consumer(_RecordClient, Generic[K, V]):
    """Fetch the records of a partition through interceptors.

    Parameters
    ----------
    fetch : callable
        Returns the :class:`FetchResponse` to a :class:`FetchRequest`, as :meth:`MessageLog.fetch` does.
    topic : str
        The topic.
    partition : int, default 0
        The partition.
    header_format : {"typed", "int", "wrapper"}, default "typed"
        The draft: text keys and typed values, integer keys, or integer keys inside the value.
    interceptors : ConsumerInterceptors or iterable of ConsumerInterceptor, optional
        Called for records before the program receives them, and for commits.
    offsets : mutable mapping of TopicPartition to int, optional
        Where :meth:`commit` stores the offset of the next record. Reading begins with the stored offset, or with 0.
    serializers : mapping of key to HeaderSerializer, optional
        Serializers for header values, by key.
    key_serializer, value_serializer : Serializer, optional
        Serializers for keys and values that are not bytes.
    errors : {"raise", "null"}, default "raise"
        What to do if the headers of a record are accessed but cannot be parsed: raise, or return no headers.
        ``record.headers.error`` then contains the reason.
    max_bytes : int, default 1 MiB
        Number of bytes requested by each :meth:`poll`.

    Attributes
    ----------
    position : int
        Offset of the next record to be fetched. Set it to continue elsewhere.
    offsets : mutable mapping of TopicPartition to int
        The committed offsets.

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

    _interceptors: ConsumerInterceptors

    def __init__(
        self,
        fetch: Callable[[FetchRequest], FetchResponse],
        topic: str,
        partition: int = 0,
        *,
        header_format: HeaderFormat = "typed",
        interceptors: ConsumerInterceptors | Iterable[ConsumerInterceptor] = (),
        offsets: MutableMapping[TopicPartition, int] | None = None,
        serializers: Mapping[Any, HeaderSerializer] | None = None,
        key_serializer: Serializer[K] | None = None,
        value_serializer: Serializer[V] | None = None,
        errors: HeaderErrors = "raise",
        max_bytes: int = 1 << 20,
    ) -> None:
        check_header_format(header_format)
        check_name("errors", errors, ("raise", "null"))
        self._fetch = fetch
        self._partition = TopicPartition(topic, partition)
        self._interceptors = ConsumerInterceptors._from(interceptors)
        self._max_bytes = max_bytes
        self._options: dict[str, Any] = {
            "header_format": header_format,
            "serializers": serializers,
            "key_serializer": key_serializer,
            "value_serializer": value_serializer,
            "errors": errors,
        }
        self.offsets: MutableMapping[TopicPartition, int] = {} if offsets is None else offsets
        self.position = self.offsets.get(self._partition, 0)

    def poll(self) -> list[ConsumerRecord[K, V]]:
        """Fetch the next records.

        Returns the records after the interceptors; without new records, no interceptor is called.

        Raises
        ------
        RequestError
            If the response is an error.
        DecodeError
            If the next message is damaged. Earlier polls have returned the messages before it.
        Exception
            Any exception of a required interceptor, or of ``fetch``. The position does not change.
        """
        self._check_open()
        topic, partition = self._partition
        version = _version(self._options["header_format"])
        request = FetchRequest.for_partition(
            topic, partition, self.position, version=version, max_bytes=self._max_bytes
        )
        [(_, fetched)] = self._fetch(request).partitions()
        fetched.raise_for_error(topic)
        records: list[ConsumerRecord[K, V]] = []
        try:
            for record in ConsumerRecord.read(fetched.message_set, topic=topic, partition=partition, **self._options):
                # Skip earlier records: a compressed set is fetched as a whole, and may begin before the position.
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
        """Store the position in ``offsets``, and call the interceptors. Raises ``ValueError`` if closed."""
        self._check_open()
        self.offsets[self._partition] = self.position
        self._interceptors.on_commit({self._partition: self.position})


def _version(header_format: HeaderFormat) -> int:
    """Return the request version for messages of a header format."""
    return 3 if header_format == "int" else 4
