"""Client of an Apache Iggy server that lists partitions and offsets, and reads and appends messages.

::

    topic       identifier stream, identifier topic
    its reply   u32 id, u64 created, u32 partitions, u64 expiry, u8 compression, u64 max size, u64 size, u64 messages
                u8 length, name; u32 length, options; u32 length, derived options; then for each partition
                u32 id, u64 created, u32 segments, u64 current offset, u64 size, u64 messages
    poll        u8 1, identifier consumer, identifier stream, identifier topic, u8 1, u32 partition
                u8 strategy, u64 value, u32 count, u8 0
    its reply   u32 partition, u64 current offset, u32 count, batches as they are stored
    send        u32 length of the following, identifier stream, identifier topic, u8 2, u8 4, u32 partition, u32 count
                a batch
    its reply   u32 count, then u32 stream, u32 topic, u32 partition, u64 first offset
    me, all     nothing
    its reply   clients: this one, or all: u32 id, u32 user, u8 transport, u32 length, address, u32 groups

    identifier  u8 1, u8 4, u32 number, or u8 2, u8 length, name

Little-endian. Strategies: 1 offset, 2 time in microseconds, 3 first message, 4 last messages. The reply for a topic that
does not exist is empty. Partition, offsets and counts of a reply are compared with the request before they are used.
"""

from __future__ import annotations

import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from letterhead._context_managers import Closing
from letterhead._invariants import require
from letterhead._row_request import TIMEOUT_MS
from letterhead.errors import ProtocolError, TopicNotFoundError
from letterhead.iggy.address import Address
from letterhead.iggy.batch_header import IggyBatchHeader
from letterhead.iggy.connection import READ, SEND, SHORT_REPLY, Connection, ServerError, length_prefixed
from letterhead.offsets.partition_log import TopicPartition

__all__ = [
    "MAX_REPLY_BYTES",
    "POLL_PREFIX_LEN",
    "TIMEOUT_MS",
    "IggyClient",
    "IggyTopic",
    "UnacknowledgedBatchError",
    "Messages",
    "Poll",
]

_GET_STREAM, _GET_TOPIC, _POLL, _SEND = 200, 300, 100, 101
_GET_ME, _GET_CLIENTS = 20, 22
_BY_OFFSET, _BY_TIME, _FIRST, _LAST = 1, 2, 3, 4
_CONSUMER = struct.pack("<BBBI", 1, 1, 4, 1)
_PREFIX = struct.Struct("<IQI")
POLL_PREFIX_LEN = _PREFIX.size
"""Length of the fields before the batches in a reply to a poll."""
_END_OF_OFFSETS = 1 << 63
_NO_PARTITION = 3007

_BACKOFF = 0.05
_MAX_BACKOFF = 1.0
MAX_REPLY_BYTES = 1 << 26
"""Size limit of a reply with one message. A server accepts payloads of 64,000,000 bytes, and headers of 100,000."""

_MAX_LISTED_BYTES = 16 << 20
"""Size limit of a reply that lists topics, partitions or connections."""


class IggyTopic(NamedTuple):
    """Topic, identified by numbers or names of stream and topic."""

    stream: str | int
    topic: str | int

    def __str__(self) -> str:
        return f"{self.stream}/{self.topic}"

    def check(self) -> None:
        """Raise ``ValueError`` for an invalid name or number of a stream or topic."""
        _identifier("stream", self.stream)
        _identifier("topic", self.topic)

    @property
    def identifiers(self) -> bytes:
        """Identifiers of stream and topic, as the protocol encodes them."""
        return _identifier("stream", self.stream) + _identifier("topic", self.topic)


class Poll(NamedTuple):
    """Request for messages."""

    partition: TopicPartition
    first: int  # smallest offset to return
    max_count: int  # maximum number of messages
    body: bytes


class Messages(NamedTuple):
    """Reply to a poll."""

    message_count: int
    first: int  # offset of the first message, or the current offset of the partition if there are none
    end: int  # the offset after the last message
    data: memoryview  # complete reply, valid until the next request


class UnacknowledgedBatchError(ConnectionError):
    """Error for a connection that ended before a batch was acknowledged; the server may still append the batch.

    ``session`` identifies the connection in the server's list of connections; see :meth:`IggyClient.has_session`.
    """

    def __init__(self, message: str, session: bytes) -> None:
        super().__init__(message)
        self.session = session


class IggyClient(Closing):
    """Client that sends one request at a time, and reconnects when the connection ends.

    Each method returns or raises within the timeout, which includes all of its connections and requests.

    Parameters
    ----------
    address : Address
        The server.
    timeout_ms : int, optional
        Time limit in milliseconds, within which a request is retried if the server does not respond.
    """

    def __init__(self, address: Address, timeout_ms: int | None) -> None:
        self.address = address
        self.timeout = (TIMEOUT_MS if timeout_ms is None else timeout_ms) / 1000
        self._connection: Connection | None = None
        self._session: bytes | None = None
        self._unanswered: Poll | None = None  # poll without a reply so far
        self._until: float | None = None
        self._is_interrupted = False

    def interrupt(self) -> None:
        """Make requests that wait in other threads raise ConnectionError, and reject further requests."""
        self._is_interrupted = True
        connection = self._connection
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connection."""
        self._unanswered = None
        if self._connection is not None:
            self._connection.close()
            self._connection = self._session = None

    @contextmanager
    def shared_deadline(self) -> Iterator[float]:
        """Set one deadline for all requests in this block, and yield it (seconds of ``time.monotonic``)."""
        outer = self._until
        self._until = time.monotonic() + self.timeout if outer is None else outer
        try:
            yield self._until
        finally:
            self._until = outer

    def partitions(self, topic: IggyTopic) -> list[TopicPartition]:
        """Return the partitions of a topic, in order."""
        with self.shared_deadline(), self._parsing("topic"):
            reply = self._read(_GET_TOPIC, topic.identifiers, _MAX_LISTED_BYTES)
            if not reply:
                if not self._read(_GET_STREAM, _identifier("stream", topic.stream), _MAX_LISTED_BYTES):
                    raise TopicNotFoundError(f"stream {topic.stream!r} does not exist on {self.address}")
                raise TopicNotFoundError(f"stream {topic.stream!r} has no topic {topic.topic!r}")
            number, count = struct.unpack_from("<I8xI", reply)
            at = 50 + reply[49]
            name = bytes(reply[50:at])
            if topic.topic != number and topic.topic != name.decode(errors="replace"):
                raise ProtocolError(f"{self.address} sent another topic than {topic}")
            for _ in range(2):  # options
                at += 4 + struct.unpack_from("<I", reply, at)[0]
            if at + 40 * count != len(reply):
                raise ProtocolError(
                    f"{self.address} announces {count} partitions of {topic} and sent {len(reply) - at} bytes of them"
                )
            numbers = sorted(struct.unpack_from("<I", reply, at + 40 * index)[0] for index in range(count))
            if len(set(numbers)) != count:
                raise ProtocolError(f"{self.address} sent a partition of {topic} twice")
            return [TopicPartition(topic, number) for number in numbers]

    def first_offset(self, partition: TopicPartition) -> int:
        """Return the offset of the first message of a partition, or the next offset if it is empty."""
        with self.shared_deadline():
            polled = self._poll_once(partition, _FIRST, 0)
            return polled.first if polled.message_count else self.end_offset(partition)

    def end_offset(self, partition: TopicPartition) -> int:
        """Return the offset of the next message to be appended to a partition."""
        polled = self._poll_once(partition, _LAST, 0)
        # Without messages, offset 0 belongs either to a deleted message or to the next message, and no reply
        # distinguishes these cases. The smaller offset skips no messages.
        return polled.end if polled.message_count else polled.first + (polled.first > 0)

    def offset_since(self, partition: TopicPartition, micros: int) -> int:
        """Return the offset of the first message stored at or after a time, or the next offset if there is none."""
        with self.shared_deadline():
            polled = self._poll_once(partition, _BY_TIME, max(micros, 0))
            return polled.first if polled.message_count else self.end_offset(partition)

    def begin_poll(self, partition: TopicPartition, offset: int, count: int) -> Poll:
        """Send a poll without waiting for the reply, and return it for :meth:`end_poll`."""
        self._close_if_unanswered()
        poll = _poll_of(partition, _BY_OFFSET, offset, count)
        if self._connection is not None:  # without a connection, `end_poll` sends the request
            with self._closing_after_errors(), self.shared_deadline() as deadline:
                try:
                    self._connection.send(READ, _POLL, poll.body, deadline)
                    self._unanswered = poll
                except OSError:
                    self.close()
        return poll

    def end_poll(self, poll: Poll, max_bytes: int = MAX_REPLY_BYTES) -> Messages:
        """Receive the reply to a poll; send the poll again if the connection has ended.

        Raises
        ------
        TooLarge
            If the reply exceeds ``max_bytes``.
        """
        with self.shared_deadline() as deadline:
            reply = None
            if self._unanswered is poll and self._connection is not None:
                self._unanswered = None
                with self._closing_after_errors():
                    try:
                        reply = self._connection.receive(deadline, max_bytes)
                    except PermissionError:
                        raise
                    except OSError:
                        self.close()
            return self._messages(self._read(_POLL, poll.body, max_bytes) if reply is None else reply, poll)

    def send(self, partition: TopicPartition, batch: bytes, count: int) -> int:
        """Append a batch to a partition and return the offset of its first message.

        Raises
        ------
        UnacknowledgedBatchError
            If it is unknown whether the batch was appended.
        """
        metadata = partition.topic.identifiers + struct.pack("<BBII", 2, 4, partition.partition, count)
        body = len(metadata).to_bytes(4, "little") + metadata + batch
        with self.shared_deadline() as deadline:
            self._close_if_unanswered()
            if self._connection is None or self._session is None:
                self._session = bytes(self._read(_GET_ME, b"", _MAX_LISTED_BYTES))
            connection, session = require(self._connection, "the connection"), self._session
            with self._closing_after_errors(), self._parsing("acknowledgement"):
                try:
                    connection.send(SEND, _SEND, body, deadline)
                    reply = connection.receive(deadline, SHORT_REPLY)
                except PermissionError:
                    raise
                except OSError as error:
                    raise UnacknowledgedBatchError(str(error), session) from error
                except ServerError as error:
                    raise _explain(error, partition) from None
                sent_count, sent_partition, offset = struct.unpack_from("<I8xIQ", reply)
                if (sent_count, sent_partition) != (1, partition.partition) or offset + count >= _END_OF_OFFSETS:
                    raise ProtocolError(
                        f"{self.address} sent the acknowledgement of another batch than one of {partition}"
                    )
                return int(offset)

    def has_session(self, session: bytes) -> bool | None:
        """Return whether the server still lists the session of a lost connection.

        None if the user may not list connections. ``session`` is the attribute of :class:`UnacknowledgedBatchError`.
        """
        try:
            clients = self._read(_GET_CLIENTS, b"", _MAX_LISTED_BYTES)
        except PermissionError:
            return None
        at = 0
        with self._parsing("list of connections"):
            while at < len(clients):
                end = at + 17 + struct.unpack_from("<I", clients, at + 9)[0]
                if clients[at:end] == session:
                    return True
                at = end
        return False

    def _poll_once(self, partition: TopicPartition, strategy: int, value: int) -> Messages:
        poll = _poll_of(partition, strategy, value, 1)
        try:
            return self._messages(self._read(_POLL, poll.body, MAX_REPLY_BYTES), poll)
        except ServerError as error:
            raise _explain(error, partition) from None

    def _messages(self, reply: memoryview, poll: Poll) -> Messages:
        """Check that a reply belongs to a poll, and that its batches contain the announced messages."""
        partition = poll.partition
        with self._parsing("poll"):
            sent_partition, current, number = _PREFIX.unpack_from(reply)
            if sent_partition != partition.partition:
                raise ProtocolError(
                    f"{self.address} sent messages of partition {sent_partition} instead of {partition}"
                )
            if number > poll.max_count:
                raise ProtocolError(f"{self.address} sent {number} messages of {partition} instead of {poll.max_count}")
            left, at = number, _PREFIX.size
            first = end = None
            while at < len(reply):
                header = IggyBatchHeader.unpack_from(reply, at)
                offset = header.first_offset(reply, at)
                if (
                    header.partition != partition.partition or not header.fits(len(reply) - at)
                    or header.message_count > left or offset < (poll.first if end is None else end)
                ):  # fmt: skip
                    raise ProtocolError(f"{self.address} sent batches that are not the next messages of {partition}")
                first = offset if first is None else first
                end, left, at = offset + header.message_count, left - header.message_count, at + header.length
            if left:
                raise ProtocolError(
                    f"{self.address} announces {number} messages of {partition} and sent {number - left}"
                )
            first, end = (current, current) if first is None or end is None else (first, end)
            if end >= _END_OF_OFFSETS:
                raise ProtocolError(f"{self.address} sent offset {end} of {partition}, which cannot exist")
            return Messages(number, first, end, reply)

    @contextmanager
    def _parsing(self, reply: str) -> Iterator[None]:
        """Convert parsing errors of a truncated reply to ProtocolError; ``reply`` is its name in the error."""
        try:
            yield
        except (struct.error, IndexError):
            raise ProtocolError(f"{self.address} sent a reply that ends inside of the {reply}") from None

    @contextmanager
    def _closing_after_errors(self) -> Iterator[None]:
        """Close the connection after any error that the server did not send: the next reply could be for an earlier request."""
        try:
            yield
        except (ServerError, PermissionError):
            raise
        except BaseException:
            self.close()
            raise

    def _read(self, command: int, body: bytes, max_bytes: int) -> memoryview:
        """Send a read-only request, and retry it until the server replies or the deadline passes."""
        with self.shared_deadline() as deadline:
            pause = _BACKOFF
            while True:
                connection = self._connected(deadline)
                with self._closing_after_errors():
                    try:
                        connection.send(READ, command, body, deadline)
                        return connection.receive(deadline, max_bytes)
                    except PermissionError:
                        raise
                    except OSError as error:
                        self.close()
                        pause = self._wait(pause, deadline, error)

    def _close_if_unanswered(self) -> None:
        """Close the connection if a poll has no reply yet, because its reply would be taken for the reply to the next request."""
        if self._unanswered is not None:
            self.close()

    def _connected(self, deadline: float) -> Connection:
        self._close_if_unanswered()
        pause = _BACKOFF
        while self._connection is None:
            if self._is_interrupted:
                raise ConnectionError(f"requests to {self.address} were interrupted")
            try:
                self._connection = Connection(self.address, deadline)
            except PermissionError:
                raise
            except ssl.SSLCertVerificationError as error:
                why = error.verify_message
                raise ConnectionError(
                    f"the certificate of {self.address} is not trusted: {why}; set tls_ca_file or tls_domain"
                ) from None
            except OSError as error:
                pause = self._wait(pause, deadline, error)
        return self._connection

    def _wait(self, pause: float, deadline: float, error: OSError) -> float:
        if time.monotonic() + pause >= deadline:
            raise TimeoutError(f"{self.address} did not answer in {self.timeout:g} s: {error}") from error
        time.sleep(pause)
        return min(2 * pause, _MAX_BACKOFF)


def _poll_of(partition: TopicPartition, strategy: int, value: int, count: int) -> Poll:
    where = struct.pack("<BI", 1, partition.partition)
    body = _CONSUMER + partition.topic.identifiers + where + struct.pack("<BQIB", strategy, value, count, 0)
    return Poll(partition, value if strategy == _BY_OFFSET else 0, count, body)


def _explain(error: ServerError, partition: TopicPartition) -> Exception:
    if error.status == _NO_PARTITION:
        return ValueError(f"{partition.topic} has no partition {partition.partition}")
    return error


def _identifier(owner: Literal["stream", "topic"], value: str | int) -> bytes:
    if isinstance(value, str):
        if not 1 <= len(value.encode()) <= 255:
            raise ValueError(f"the name of the {owner} must have 1 to 255 bytes")
        return b"\2" + length_prefixed(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise ValueError(f"{owner} must be a name or a number of 32 bits, not {value!r}")
    return struct.pack("<BBI", 1, 4, value)
