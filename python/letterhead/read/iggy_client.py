"""The requests that read and write a topic of Apache Iggy: its partitions, offsets, and messages as they are stored.

::

    topic       identifier stream, identifier topic
    its reply   u32 id, u64 created, u32 partitions, u64 expiry, u8 compression, u64 most size, u64 size, u64 messages
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
does not exist is empty.
"""

from __future__ import annotations

import ssl
import struct
import time
from typing import NamedTuple

from letterhead._context_managers import Closing
from letterhead.read.iggy_connection import READ, SEND, Address, Connection, Refused, TooLarge, text_of

__all__ = ["Client", "Lost", "Messages", "Place", "Topic"]

_GET_STREAM, _GET_TOPIC, _POLL, _SEND = 200, 300, 100, 101
_GET_ME, _GET_CLIENTS = 20, 22
_BY_OFFSET, _BY_TIME, _FIRST, _LAST = 1, 2, 3, 4
_CONSUMER = struct.pack("<BBBI", 1, 1, 4, 1)
_PREFIX = struct.Struct("<IQI")
_BASE_OFFSET_AT, _FIRST_DELTA_AT = _PREFIX.size + 8, _PREFIX.size + 256 + 24
_NO_PARTITION = 3007

_BACKOFF = 0.05
_MOST_BACKOFF = 1.0
MOST_BYTES = 1 << 30
"""Bytes of a reply that is read although it is larger than requested, as it has one message."""


class Topic(NamedTuple):
    """A topic, by numbers or names."""

    stream: str | int
    topic: str | int

    def __str__(self) -> str:
        return f"{self.stream}/{self.topic}"

    @property
    def identifiers(self) -> bytes:
        """Both as the protocol writes them."""
        return _identifier("stream", self.stream) + _identifier("topic", self.topic)


class Place(NamedTuple):
    """A partition of a topic."""

    stream: str | int
    topic: str | int
    partition: int

    def __str__(self) -> str:
        return f"{self.stream}/{self.topic}-{self.partition}"


class Messages(NamedTuple):
    """The reply to a poll."""

    number: int
    first: int  # offset of the first message; that of the request if there are none
    data: memoryview  # the whole reply, until the next request


class Lost(ConnectionError):
    """The connection ended before a batch was acknowledged: the server may have appended it, or append it yet.

    ``session`` is how the server lists the connection, see :meth:`Client.lists`.
    """

    def __init__(self, message: str, session: bytes) -> None:
        super().__init__(message)
        self.session = session


class Client(Closing):
    """Sends requests one after the other, over a connection that is opened again when it ends.

    Parameters
    ----------
    address : Address
        The server.
    timeout_ms : int
        How long to retry each request while the server does not answer.
    """

    def __init__(self, address: Address, timeout_ms: int) -> None:
        self.address = address
        self.timeout = timeout_ms / 1000
        self._connection: Connection | None = None
        self._session: bytes | None = None
        self._begun: object = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = self._session = None

    def partitions(self, topic: Topic) -> list[Place]:
        """Return the partitions of a topic, in order."""
        reply = self._read(_GET_TOPIC, topic.identifiers)
        if not reply:
            if not self._read(_GET_STREAM, _identifier("stream", topic.stream)):
                raise ValueError(f"stream {topic.stream!r} does not exist on {self.address}")
            raise ValueError(f"stream {topic.stream!r} has no topic {topic.topic!r}")
        (count,) = struct.unpack_from("<I", reply, 12)
        at = 50 + reply[49]
        for _ in range(2):  # options
            at += 4 + struct.unpack_from("<I", reply, at)[0]
        numbers = [struct.unpack_from("<I", reply, at + 40 * index)[0] for index in range(count)]
        return [Place(*topic, number) for number in sorted(numbers)]

    def first_offset(self, place: Place) -> int:
        """Return the offset of the first message of a partition, or that of the next one if it has none."""
        found = self._poll_once(place, _FIRST, 0)
        return found.first if found.number else self.end_offset(place)

    def end_offset(self, place: Place) -> int:
        """Return the offset that the next message of a partition gets."""
        found = self._poll_once(place, _LAST, 0)
        current = _PREFIX.unpack_from(found.data)[1]
        # Without messages, offset 0 is that of a message that was deleted or that of the next one: no reply of the
        # server distinguishes these. The smaller one skips nothing.
        return found.first + 1 if found.number else current + (current > 0)

    def offset_since(self, place: Place, micros: int) -> int:
        """Return the offset of the first message that is not older than a time, or that of the next message."""
        found = self._poll_once(place, _BY_TIME, max(micros, 0))
        return found.first if found.number else self.end_offset(place)

    def begin_poll(self, place: Place, offset: int, count: int) -> bytes:
        """Send the request for messages, and return it."""
        self._forget()
        body = _poll_of(place, _BY_OFFSET, offset, count)
        if self._connection is not None:  # otherwise the request is sent later
            try:
                self._connection.send(READ, _POLL, body, time.monotonic() + self.timeout)
                self._begun = body
            except OSError:
                self.close()
        return body

    def end_poll(self, begun: bytes, most: int = MOST_BYTES) -> Messages:
        """Receive the reply to a request, which is repeated if the connection has ended.

        Raises
        ------
        TooLarge
            If the reply has more bytes.
        """
        if self._begun is begun and self._connection is not None:
            self._begun = None
            try:
                return _messages(self._connection.receive(time.monotonic() + self.timeout, most))
            except TooLarge:
                self.close()
                raise
            except OSError as error:
                if isinstance(error, PermissionError):
                    raise
                self.close()
        return _messages(self._read(_POLL, begun, most))

    def send(self, place: Place, batch: bytes, count: int) -> int:
        """Append a batch to a partition and return the offset of its first message.

        Raises
        ------
        Lost
            If it is not known whether the batch was appended.
        """
        metadata = Topic(*place[:2]).identifiers + struct.pack("<BBII", 2, 4, place.partition, count)
        body = len(metadata).to_bytes(4, "little") + metadata + batch
        until = time.monotonic() + self.timeout
        self._forget()
        if self._connection is None or self._session is None:
            self._session = bytes(self._read(_GET_ME, b""))
        connection, session = self._connection, self._session
        assert connection is not None
        try:
            connection.send(SEND, _SEND, body, until)
            reply = connection.receive(until)
        except PermissionError:
            raise
        except OSError as error:
            self.close()
            raise Lost(str(error), session) from error
        except Refused as error:
            raise _explained(error, place) from None
        return int(struct.unpack_from("<Q", reply, 16)[0])

    def lists(self, session: bytes) -> bool | None:
        """Return whether the server still has a connection of :class:`Lost`; None if it does not tell this user."""
        try:
            clients = self._read(_GET_CLIENTS, b"")
        except PermissionError:
            return None
        at = 0
        while at < len(clients):
            end = at + 17 + struct.unpack_from("<I", clients, at + 9)[0]
            if clients[at:end] == session:
                return True
            at = end
        return False

    def _poll_once(self, place: Place, strategy: int, value: int) -> Messages:
        try:
            return _messages(self._read(_POLL, _poll_of(place, strategy, value, 1)))
        except Refused as error:
            raise _explained(error, place) from None

    def _read(self, command: int, body: bytes, most: int = MOST_BYTES) -> memoryview:
        """Send a request that changes nothing until it is answered."""
        until = time.monotonic() + self.timeout
        pause = _BACKOFF
        while True:
            connection = self._connected(until)
            try:
                connection.send(READ, command, body, until)
                return connection.receive(until, most)
            except TooLarge:
                self.close()
                raise
            except PermissionError:
                raise
            except OSError as error:
                self.close()
                pause = self._wait(pause, until, error)

    def _forget(self) -> None:
        """End a connection on which a reply is outstanding: the next request would take it for its own."""
        if self._begun is not None:
            self._begun = None
            self.close()

    def _connected(self, until: float) -> Connection:
        self._forget()
        pause = _BACKOFF
        while self._connection is None:
            try:
                self._connection = Connection(self.address, until)
            except PermissionError:
                raise
            except ssl.SSLCertVerificationError as error:
                why = error.verify_message
                raise ConnectionError(
                    f"the certificate of {self.address} is not trusted: {why}; set tls_ca_file or tls_domain"
                ) from None
            except OSError as error:
                pause = self._wait(pause, until, error)
        return self._connection

    def _wait(self, pause: float, until: float, error: OSError) -> float:
        if time.monotonic() + pause >= until:
            raise TimeoutError(f"{self.address} did not answer in {self.timeout:g} s: {error}") from error
        time.sleep(pause)
        return min(2 * pause, _MOST_BACKOFF)


def _poll_of(place: Place, strategy: int, value: int, count: int) -> bytes:
    where = struct.pack("<BI", 1, place.partition)
    return _CONSUMER + Topic(*place[:2]).identifiers + where + struct.pack("<BQIB", strategy, value, count, 0)


def _messages(reply: memoryview) -> Messages:
    _, current, count = _PREFIX.unpack_from(reply)
    if not count:
        return Messages(0, current, reply)
    (base,), (delta,) = (
        struct.unpack_from("<Q", reply, _BASE_OFFSET_AT),
        struct.unpack_from("<I", reply, _FIRST_DELTA_AT),
    )
    return Messages(count, base + delta, reply)


def _explained(error: Refused, place: Place) -> Exception:
    if error.status == _NO_PARTITION:
        return ValueError(f"{place.stream}/{place.topic} has no partition {place.partition}")
    return error


def _identifier(what: str, value: str | int) -> bytes:
    if isinstance(value, str):
        if not 1 <= len(value.encode()) <= 255:
            raise ValueError(f"the name of the {what} must have 1 to 255 bytes")
        return b"\2" + text_of(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise ValueError(f"{what} must be a name or a number of 32 bits, not {value!r}")
    return struct.pack("<BBI", 1, 4, value)
