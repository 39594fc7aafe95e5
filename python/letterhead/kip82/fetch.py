"""Fetch requests and responses.

::

    request    int32 replica_id, int32 max_wait_ms, int32 min_bytes, [topic, [int32 partition, int64 offset, int32 max_bytes]]
    response   int32 throttle_time_ms, [topic, [int32 partition, int16 error_code, int64 high_watermark,
               ◀──── from 1 on ────▶            int32 size, message set]]

Versions 0 to 2 are Kafka 0.10's. The drafts of KIP-82 add versions 3 and 4 for their messages and change no field, so
these have those of version 2. (Kafka's own versions 3 and 4 came later and are other ones.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Self

from letterhead.kip82 import wire
from letterhead.kip82.layouts import Layout
from letterhead.kip82.requests import Body, Partition, Topic, name_of, topics_of
from letterhead.kip82.versions import VERSIONS, set_format
from letterhead.message import Message
from letterhead.operations import messages

__all__ = ["AskedPartition", "FetchRequest", "FetchResponse", "FetchedPartition"]


@dataclass(frozen=True)
class AskedPartition:
    """From where a partition is to be read.

    Attributes
    ----------
    partition : int
        Its number.
    offset : int
        Offset of the first message that is wanted.
    max_bytes : int, default 1 MiB
        How many bytes are wanted at most. A log gives whole messages, and one at least.
    """

    partition: int
    offset: int
    max_bytes: int = 1 << 20

    def said(self) -> str:
        """Say in short what is asked."""
        return f"from {self.offset}"


_REQUEST: wire.Schema = (
    ("replica_id", wire.INT32),
    ("max_wait_ms", wire.INT32),
    ("min_bytes", wire.INT32),
    (
        "topics",
        topics_of(AskedPartition, (("partition", wire.INT32), ("offset", wire.INT64), ("max_bytes", wire.INT32))),
    ),
)


@dataclass(frozen=True, repr=False)
class FetchRequest(Body):
    """A wish for messages.

    Attributes
    ----------
    version : int
        0 to 4: what kind of messages are wanted.
    topics : tuple of Topic of AskedPartition
        From where.
    replica_id : int, default -1
        -1 for a client.
    max_wait_ms, min_bytes : int
        How long to wait for how much. A log answers at once with what it has.

    Examples
    --------
    >>> from letterhead.kip82 import FetchRequest
    >>> request = FetchRequest.of("orders", 0, 42, version=2)
    >>> request
    <fetch request 2: orders-0: from 42>
    >>> FetchRequest.decode(request.encode(), 2) == request
    True
    """

    NAME = "fetch request"
    SCHEMAS = dict.fromkeys(VERSIONS, _REQUEST)

    topics: tuple[Topic[AskedPartition], ...]
    replica_id: int = -1
    max_wait_ms: int = 0
    min_bytes: int = 0

    @classmethod
    def of(cls, topic: str, partition: int, offset: int, *, version: int, max_bytes: int = 1 << 20) -> Self:
        """Make a request for one partition.

        Parameters
        ----------
        topic : str
            Name of the topic.
        partition : int
            Number of the partition.
        offset : int
            Offset of the first message that is wanted.
        version : int
            0 to 4.
        max_bytes : int, default 1 MiB
            How many bytes are wanted at most.

        Returns
        -------
        FetchRequest
            The request.
        """
        return cls(version=version, topics=(Topic(topic, (AskedPartition(partition, offset, max_bytes),)),))


@dataclass(frozen=True, repr=False)
class FetchedPartition(Partition):
    """Messages of a partition.

    Attributes
    ----------
    partition : int
        Its number.
    error_code : int
        0, or what is wrong.
    high_watermark : int
        The offset that the next message of the partition will have; -1 where that is not known.
    message_set : bytes
        The messages, one after another, in the layout of the version.
    reason : str or None
        What is wrong, in words. Not part of the bytes.
    """

    partition: int
    error_code: int
    high_watermark: int
    message_set: bytes
    reason: str | None = field(default=None, compare=False)

    def said(self) -> str:
        """Say in short what was given."""
        return name_of(self.error_code) if self.error_code else f"{len(self.message_set)} bytes"


_FETCHED: wire.Schema = (
    ("partition", wire.INT32),
    ("error_code", wire.INT16),
    ("high_watermark", wire.INT64),
    ("message_set", wire.BYTES),
)
_TOPICS: wire.Schema = (("topics", topics_of(FetchedPartition, _FETCHED)),)


@dataclass(frozen=True, repr=False)
class FetchResponse(Body):
    """The messages that were wanted.

    Attributes
    ----------
    version : int
        That of the request.
    topics : tuple of Topic of FetchedPartition
        The messages.
    throttle_time_ms : int, default 0
        How long the client was held back: a log does not.
    """

    NAME = "fetch response"
    SCHEMAS: ClassVar[dict[int, wire.Schema]] = {
        0: _TOPICS,
        **dict.fromkeys((1, 2, 3, 4), (("throttle_time_ms", wire.INT32), *_TOPICS)),
    }

    topics: tuple[Topic[FetchedPartition], ...]
    throttle_time_ms: int = 0

    def messages(self, layout: Layout = "typed") -> Iterator[Message]:
        """Read all messages of all partitions.

        Parameters
        ----------
        layout : {"typed", "int", "wrapper"}, default "typed"
            Layout of the log: version 4 is that of two drafts.

        Yields
        ------
        Message
            The messages.

        Raises
        ------
        RequestError
            If a partition could not be served.
        DecodeError
            If a set cannot be read.
        """
        for topic, partition in self.partitions():
            partition.raise_for_error(topic)
            yield from messages(partition.message_set, set_format(self.version, layout))
