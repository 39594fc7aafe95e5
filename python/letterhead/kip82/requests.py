"""Produce and fetch requests, and their responses, encoded to and decoded from the bytes of their bodies.

::

    produce request  int16 acks, int32 timeout_ms, [topic, [int32 partition, int32 size, message set]]
    produce response [topic, [int32 partition, int16 error_code, int64 offset, int64 timestamp]], int32 throttle_time_ms
                                                                               ◀── since 2 ──▶    ◀───── since 1 ──────▶
    fetch request    int32 replica_id, int32 max_wait_ms, int32 min_bytes,
                     [topic, [int32 partition, int64 offset, int32 max_bytes]]
    fetch response   int32 throttle_time_ms, [topic, [int32 partition, int16 error_code, int64 high_watermark,
                     ◀───── since 1 ──────▶           int32 size, message set]]

Versions 0 to 2 come from Kafka 0.10. The drafts of KIP-82 add versions 3 and 4 for their messages, with the fields
of version 2. Kafka's own versions 3 and 4 came later and differ.

Between a client and a broker, the transport adds the request header (size, API key, version, correlation id, client
id). A body does not contain its version, so the reader must know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

from letterhead._read_once import ReadOnce
from letterhead.errors import ConversionError, RequestError
from letterhead.kip82 import wire
from letterhead.kip82.header_formats import MESSAGE_FORMATS, Codec, HeaderFormat, check_header_format
from letterhead.kip82.versions import MAGIC, VERSIONS, check_version, header_format_of, set_format
from letterhead.kip82.wire import BYTES, INT16, INT32, INT64
from letterhead.message import Message
from letterhead.one_message import batch, messages

__all__ = [
    "ErrorCode",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchResult",
    "ProducePartition",
    "ProduceRequest",
    "ProduceResponse",
    "ProduceResult",
    "TopicPartitions",
]

T = TypeVar("T")


class ErrorCode(IntEnum):
    """Error codes of Kafka's protocol that can occur in responses of a log."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43


@dataclass(frozen=True)
class TopicPartitions(Generic[T]):
    """Topic in a request or a response, with one object per partition."""

    topic: str
    partitions: tuple[T, ...]


def _topics(partition_class: type[Any], *fields: tuple[str, wire.Type]) -> tuple[str, wire.ArrayType]:
    """Return the field ``topics`` of a schema, with partitions of the given class and fields."""
    partition = (("partition", INT32), *fields)
    return "topics", wire.ArrayType(
        TopicPartitions, (("topic", wire.STRING), ("partitions", wire.ArrayType(partition_class, partition)))
    )


_THROTTLE = ("throttle_time_ms", INT32)


@dataclass(frozen=True, repr=False)
class _Body:
    """Body of a request or a response, with a schema for each version."""

    _NAME: ClassVar[str]
    _SCHEMAS: ClassVar[dict[int, wire.Schema]]

    version: int
    topics: tuple[TopicPartitions[Any], ...]

    def __post_init__(self) -> None:
        check_version(self.version)

    def encode(self) -> bytes:
        """Encode the body with the schema of its version.

        Raises
        ------
        EncodeError
            If a value does not fit its field.
        """
        return wire.write(self._format(self.version), self._SCHEMAS[self.version], self)

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """Decode a body; message sets are kept as bytes.

        Raises
        ------
        DecodeError
            If the bytes are not a body of this version.
        ValueError
            If the version is unknown.
        """
        check_version(version)
        return cls(version=version, **wire.read(cls._format(version), cls._SCHEMAS[version], bytes(data)))

    @classmethod
    def _format(cls, version: int) -> str:
        return f"{cls._NAME} {version}"

    def partitions(self) -> Iterator[tuple[str, Any]]:
        """Iterate over all partitions, each with the name of its topic."""
        for topic in self.topics:
            for partition in topic.partitions:
                yield topic.topic, partition

    def _answer(self, answer: Callable[[str, Any], T]) -> tuple[TopicPartitions[T], ...]:
        """Return the topics of a response, with the result of ``answer`` for each partition."""
        return tuple(
            TopicPartitions(topic.topic, tuple(answer(topic.topic, partition) for partition in topic.partitions))
            for topic in self.topics
        )

    def __repr__(self) -> str:
        parts = [f"{topic}-{partition.partition}: {partition._summary()}" for topic, partition in self.partitions()]
        return f"<{self._format(self.version)}: {', '.join(parts) or 'no partitions'}>"


class _PartitionResult:
    """Error of a partition in a response."""

    partition: int
    error_code: int
    reason: str | None

    def raise_for_error(self, topic: str) -> None:
        """Raise ``RequestError`` if the partition has an error code."""
        if self.error_code:
            reason = f": {self.reason}" if self.reason else ""
            raise RequestError(f"{topic}-{self.partition}: {_name_of(self.error_code)}{reason}", self.error_code)


def _name_of(error_code: int) -> str:
    return ErrorCode(error_code).name if error_code in list(ErrorCode) else f"error {error_code}"


# Produce --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProducePartition:
    """Messages to be appended to a partition.

    Attributes
    ----------
    message_set : bytes
        The concatenated messages, in the format of the request's version.
    """

    partition: int
    message_set: bytes

    def messages(self, version: int, header_format: HeaderFormat = "typed") -> Iterator[Message]:
        """Decode the message set, as :func:`letterhead.messages` does."""
        return messages(self.message_set, set_format(version, header_format))

    def _summary(self) -> str:
        """Return a short summary for the representation of the request."""
        return f"{len(self.message_set)} bytes"


@dataclass(frozen=True, repr=False)
class ProduceRequest(_Body):
    """A request to append messages.

    Attributes
    ----------
    version : int
        0 to 4; determines the message format.
    topics : tuple of TopicPartitions of ProducePartition
        The messages.
    acks : int, default -1
        When a log sends its response: with -1, after messages are on disk; with other values, after they are written. See
        ``sync`` of :class:`~letterhead.kip82.MessageLog`.
    timeout_ms : int, default 1500
        Time limit of the server in milliseconds. A log ignores it.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.kip82 import ProduceRequest
    >>> sent = [lh.Message(key=b"k", value=b"v", headers={"n": lh.Int8(1)})]
    >>> request = ProduceRequest.for_partition("orders", 0, sent, version=4)
    >>> request
    <produce request 4: orders-0: 51 bytes>
    >>> ProduceRequest.decode(request.encode(), 4) == request
    True
    """

    _NAME = "produce request"
    _SCHEMAS = dict.fromkeys(
        VERSIONS, (("acks", INT16), ("timeout_ms", INT32), _topics(ProducePartition, ("message_set", BYTES)))
    )

    topics: tuple[TopicPartitions[ProducePartition], ...]
    acks: int = -1
    timeout_ms: int = 1500

    @classmethod
    def for_partition(
        cls,
        topic: str,
        partition: int,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        version: int,
        header_format: HeaderFormat = "typed",
        codec: Codec = "none",
        acks: int = -1,
    ) -> Self:
        """Create a request for one partition.

        Parameters
        ----------
        topic, partition
            The topic and the number of its partition.
        messages : iterable of Message or mapping
            The messages. Offsets are 0, 1, …: a log assigns its own.
        version : int
            0 to 4. Versions 0 to 2 do not support headers: messages with headers are rejected.
        header_format : {"typed", "int", "wrapper"}, default "typed"
            The draft; it matters for version 4, which two drafts share.
        codec : {"none", "gzip", "snappy", "lz4"}, default "none"
            Compression of the messages, as one set.
        acks : int, default -1
            When a log sends its response: with -1, after messages are on disk; with other values, after they are written.
            See ``sync`` of :class:`~letterhead.kip82.MessageLog`.

        Raises
        ------
        EncodeError, ConversionError
            If a message cannot be encoded, or has headers that the version does not support.
        """
        check_header_format(header_format)
        sent_format = header_format_of(version, header_format)
        sent = []
        for offset, item in enumerate(messages):
            fields = item._asdict() if isinstance(item, Message) else item
            message = Message(**{**fields, "offset": offset, "magic": MAGIC[version], "crc": None})
            if MAGIC[version] < 2 and "headers" in fields and message.headers:
                magic, version_with_headers = MAGIC[version], 3 if header_format == "int" else 4
                raise ConversionError(
                    f"message {offset} has headers, and version {version} writes message format {magic}, which carries "
                    f"none: use version={version_with_headers}, or remove the headers",
                    format=MESSAGE_FORMATS[sent_format],
                    code="field_not_carried",
                )
            sent.append(message)
        message_set = batch(sent, set_format(version, header_format), codec=codec) if sent else b""
        topics = (TopicPartitions(topic, (ProducePartition(partition, message_set),)),)
        return cls(version=version, topics=topics, acks=acks)


@dataclass(frozen=True, repr=False)
class ProduceResult(_PartitionResult):
    """Result of an append to a partition.

    Attributes
    ----------
    partition : int
        Number of the partition.
    error_code : int
        0 without an error.
    offset : int
        Offset of the first message; -1 if nothing was appended.
    timestamp : int, default -1
        Time of the append if the log uses it as the messages' timestamp, otherwise -1.
    reason : str or None
        Description of the error; not encoded.
    """

    partition: int
    error_code: int
    offset: int
    timestamp: int = -1
    reason: str | None = field(default=None, compare=False)

    def _summary(self) -> str:
        """Return a short summary for the representation of the response."""
        return _name_of(self.error_code) if self.error_code else f"offset {self.offset}"


_PRODUCED = (("error_code", INT16), ("offset", INT64))


@dataclass(frozen=True, repr=False)
class ProduceResponse(_Body):
    """The response to a produce request.

    Attributes
    ----------
    version : int
        Version of the request.
    topics : tuple of TopicPartitions of ProduceResult
        The results.
    throttle_time_ms : int, default 0
        Milliseconds for which the client was delayed. A log never delays clients.
    """

    _NAME = "produce response"
    _SCHEMAS: ClassVar[dict[int, wire.Schema]] = {
        0: (_topics(ProduceResult, *_PRODUCED),),
        1: (_topics(ProduceResult, *_PRODUCED), _THROTTLE),
        **dict.fromkeys((2, 3, 4), (_topics(ProduceResult, *_PRODUCED, ("timestamp", INT64)), _THROTTLE)),
    }

    topics: tuple[TopicPartitions[ProduceResult], ...]
    throttle_time_ms: int = 0

    def raise_for_error(self) -> Self:
        """Raise ``RequestError`` for the first partition with an error; otherwise return the response."""
        for topic, partition in self.partitions():
            partition.raise_for_error(topic)
        return self


# Fetch ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FetchPartition:
    """A partition to be read.

    Attributes
    ----------
    offset : int
        Offset of the first message.
    max_bytes : int, default 1 MiB
        Maximum number of bytes to return. A log returns complete messages, and at least one.
    """

    partition: int
    offset: int
    max_bytes: int = 1 << 20

    def _summary(self) -> str:
        """Return a short summary for the representation of the request."""
        return f"from {self.offset}"


@dataclass(frozen=True, repr=False)
class FetchRequest(_Body):
    """A request for messages.

    Attributes
    ----------
    version : int
        0 to 4; determines the message format.
    topics : tuple of TopicPartitions of FetchPartition
        The partitions to be read.
    replica_id : int, default -1
        -1 for a client.
    max_wait_ms, min_bytes : int, default 0
        Time to wait for a minimum number of bytes. A log responds at once.

    Examples
    --------
    >>> from letterhead.kip82 import FetchRequest
    >>> request = FetchRequest.for_partition("orders", 0, 42, version=2)
    >>> request
    <fetch request 2: orders-0: from 42>
    >>> FetchRequest.decode(request.encode(), 2) == request
    True
    """

    _NAME = "fetch request"
    _SCHEMAS = dict.fromkeys(
        VERSIONS,
        (
            ("replica_id", INT32),
            ("max_wait_ms", INT32),
            ("min_bytes", INT32),
            _topics(FetchPartition, ("offset", INT64), ("max_bytes", INT32)),
        ),
    )

    topics: tuple[TopicPartitions[FetchPartition], ...]
    replica_id: int = -1
    max_wait_ms: int = 0
    min_bytes: int = 0

    @classmethod
    def for_partition(cls, topic: str, partition: int, offset: int, *, version: int, max_bytes: int = 1 << 20) -> Self:
        """Create a request for one partition; see :class:`FetchPartition` for ``offset`` and ``max_bytes``."""
        return cls(version=version, topics=(TopicPartitions(topic, (FetchPartition(partition, offset, max_bytes),)),))


@dataclass(frozen=True, repr=False)
class FetchResult(_PartitionResult):
    """Messages of a partition.

    Attributes
    ----------
    partition : int
        Number of the partition.
    error_code : int
        0, or the code of the error.
    reason : str or None
        Description of the error; not encoded.
    high_watermark : int
        Offset of the next message to be appended; -1 if unknown.
    message_set : bytes
        The concatenated messages, in the format of the version.
    """

    partition: int
    error_code: int
    high_watermark: int
    message_set: bytes
    reason: str | None = field(default=None, compare=False)

    def _summary(self) -> str:
        """Return a short summary for the representation of the response."""
        return _name_of(self.error_code) if self.error_code else f"{len(self.message_set)} bytes"


_FETCHED = _topics(FetchResult, ("error_code", INT16), ("high_watermark", INT64), ("message_set", BYTES))


@dataclass(frozen=True, repr=False)
class FetchResponse(_Body):
    """The response to a fetch request.

    Attributes
    ----------
    topics : tuple of TopicPartitions of FetchResult
        The messages.
    version : int
        Version of the request.
    throttle_time_ms : int, default 0
        Milliseconds for which the client was delayed. A log never delays clients.
    """

    _NAME = "fetch response"
    _SCHEMAS: ClassVar[dict[int, wire.Schema]] = {0: (_FETCHED,), **dict.fromkeys((1, 2, 3, 4), (_THROTTLE, _FETCHED))}

    topics: tuple[TopicPartitions[FetchResult], ...]
    throttle_time_ms: int = 0

    def messages(self, header_format: HeaderFormat = "typed") -> Iterator[Message]:
        """Decode the messages of all partitions.

        ``header_format`` is the draft; it matters for version 4, which two drafts share.

        Raises
        ------
        RequestError
            If a partition has an error.
        DecodeError
            If a message set cannot be decoded.
        """
        return ReadOnce(self._messages(header_format), "the iterator of messages")

    def _messages(self, header_format: HeaderFormat) -> Iterator[Message]:
        for topic, partition in self.partitions():
            partition.raise_for_error(topic)
            yield from messages(partition.message_set, set_format(self.version, header_format))
