"""Produce requests and responses.

::

    request    int16 acks, int32 timeout_ms, [topic, [int32 partition, int32 size, message set]]
    response   [topic, [int32 partition, int16 error_code, int64 offset, int64 timestamp]], int32 throttle_time_ms
                                                                         ◀─ from 2 on ─▶    ◀──── from 1 on ────▶

Versions 0 to 2 are Kafka 0.10's. The drafts of KIP-82 add versions 3 and 4 for their messages and change no field, so
these have those of version 2. (Kafka's own versions 3 and 4 came later, with record batches, and are other ones.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from letterhead.errors import ConversionError, check_name
from letterhead.kip82 import wire
from letterhead.kip82.layouts import CODECS, MESSAGES, Codec, Layout, check_layout
from letterhead.kip82.requests import Body, Partition, Topic, name_of, topics_of
from letterhead.kip82.versions import MAGIC, VERSIONS, layout_of, set_format
from letterhead.message import Message
from letterhead.operations import batch, messages

__all__ = ["ProduceRequest", "ProduceResponse", "ProducedPartition", "SentPartition"]


@dataclass(frozen=True, repr=False)
class SentPartition:
    """Messages for a partition.

    Attributes
    ----------
    partition : int
        Its number.
    message_set : bytes
        The messages, one after another, in the layout of the request's version.
    """

    partition: int
    message_set: bytes

    def messages(self, version: int, layout: Layout = "typed") -> Iterator[Message]:
        """Open the set, as :func:`letterhead.messages` does."""
        return messages(self.message_set, set_format(version, layout))

    def said(self) -> str:
        """Say in short what is in it."""
        return f"{len(self.message_set)} bytes"


_REQUEST: wire.Schema = (
    ("acks", wire.INT16),
    ("timeout_ms", wire.INT32),
    ("topics", topics_of(SentPartition, (("partition", wire.INT32), ("message_set", wire.BYTES)))),
)


@dataclass(frozen=True, repr=False)
class ProduceRequest(Body):
    """Messages to append.

    Attributes
    ----------
    version : int
        0 to 4: what kind of messages there are in the sets.
    topics : tuple of Topic of SentPartition
        The messages.
    acks : int, default -1
        -1: the response says that they are on disk. 1 and 0: that they are written, see ``sync`` of
        :class:`~letterhead.kip82.MessageLog`.
    timeout_ms : int, default 1500
        How long the other side may take. A log takes what it takes.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.kip82 import ProduceRequest
    >>> sent = [lh.Message(key=b"k", value=b"v", headers={"n": lh.Int8(1)})]
    >>> request = ProduceRequest.of("orders", 0, sent, version=4)
    >>> request
    <produce request 4: orders-0: 51 bytes>
    >>> ProduceRequest.decode(request.encode(), 4) == request
    True
    """

    NAME = "produce request"
    SCHEMAS = dict.fromkeys(VERSIONS, _REQUEST)

    topics: tuple[Topic[SentPartition], ...]
    acks: int = -1
    timeout_ms: int = 1500

    @classmethod
    def of(
        cls,
        topic: str,
        partition: int,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        version: int,
        layout: Layout = "typed",
        codec: Codec = "none",
        acks: int = -1,
    ) -> Self:
        """Make a request for one partition.

        Parameters
        ----------
        topic : str
            Name of the topic.
        partition : int
            Number of the partition.
        messages : iterable of Message or mapping
            The messages. Offsets are 0, 1, … as the log gives its own.
        version : int
            0 to 4. Up to 2, messages carry no headers, and one with headers is refused.
        layout : {"typed", "int", "wrapper"}, default "typed"
            Which of the two drafts version 4 is of.
        codec : {"none", "gzip", "snappy", "lz4"}, default "none"
            How the messages are compressed: all of them together, as one set.
        acks : int, default -1
            What a response says.

        Returns
        -------
        ProduceRequest
            The request.

        Raises
        ------
        EncodeError, ConversionError
            If a message cannot be written, or has headers where there are none.
        """
        check_layout(layout)
        sent_in = layout_of(version, layout) or "typed"
        check_name("codec", codec, CODECS)
        sent = []
        for offset, given in enumerate(messages):
            fields = given._asdict() if isinstance(given, Message) else dict(given)
            message = Message(**{**fields, "offset": offset, "magic": MAGIC[version], "crc": None})
            if MAGIC[version] < 2 and fields.get("headers") is not None and message.headers:
                raise ConversionError(
                    f"message {offset} has headers, and version {version} writes message format {MAGIC[version]}, which "
                    f"carries none: use version={3 if layout == 'int' else 4}, or remove the headers",
                    format=MESSAGES[sent_in],
                    code="field_not_carried",
                )
            sent.append(message)
        message_set = batch(sent, set_format(version, layout), codec=codec) if sent else b""
        topics = (Topic(topic, (SentPartition(partition, message_set),)),)
        return cls(version=version, topics=topics, acks=acks)


@dataclass(frozen=True, repr=False)
class ProducedPartition(Partition):
    """What became of the messages for a partition.

    Attributes
    ----------
    partition : int
        Its number.
    error_code : int
        0, or what is wrong.
    offset : int
        Offset of the first message; -1 where none was appended.
    timestamp : int, default -1
        When they were appended, where the log counts by that; otherwise -1.
    reason : str or None
        What is wrong, in words. Not part of the bytes.
    """

    partition: int
    error_code: int
    offset: int
    timestamp: int = -1
    reason: str | None = field(default=None, compare=False)

    def said(self) -> str:
        """Say in short what became of them."""
        return name_of(self.error_code) if self.error_code else f"offset {self.offset}"


_RESULT: wire.Schema = (("partition", wire.INT32), ("error_code", wire.INT16), ("offset", wire.INT64))
_TIMED: wire.Schema = (*_RESULT, ("timestamp", wire.INT64))
_THROTTLE: wire.Schema = (("throttle_time_ms", wire.INT32),)
_TIMED_RESPONSE: wire.Schema = (("topics", topics_of(ProducedPartition, _TIMED)), *_THROTTLE)


@dataclass(frozen=True, repr=False)
class ProduceResponse(Body):
    """Where messages were appended.

    Attributes
    ----------
    version : int
        That of the request.
    topics : tuple of Topic of ProducedPartition
        What became of the messages.
    throttle_time_ms : int, default 0
        How long the client was held back: a log does not.
    """

    NAME = "produce response"
    SCHEMAS: ClassVar[dict[int, wire.Schema]] = {
        0: (("topics", topics_of(ProducedPartition, _RESULT)),),
        1: (("topics", topics_of(ProducedPartition, _RESULT)), *_THROTTLE),
        **dict.fromkeys((2, 3, 4), _TIMED_RESPONSE),
    }

    topics: tuple[Topic[ProducedPartition], ...]
    throttle_time_ms: int = 0

    def raise_for_error(self) -> Self:
        """Raise the first error there is.

        Returns
        -------
        ProduceResponse
            This object, where there is none.

        Raises
        ------
        RequestError
            If a partition has one.
        """
        for topic, partition in self.partitions():
            partition.raise_for_error(topic)
        return self
