"""Polled messages, and the reply to a poll."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Self

import letterhead.iggy.json_transport as transport
import letterhead.iggy.message_headers as message_headers
from letterhead.errors import DecodeError, EncodeError
from letterhead.iggy.errors import need_unsigned, shift_errors
from letterhead.iggy.formats import POLLED, Format, ReadFormat, check_format
from letterhead.iggy.message_headers import MessageHeaders
from letterhead.iggy.wire import Cursor, Frame, begins_batch, read_batches, write_batch
from letterhead.message import bytes_of
from letterhead.one_message import decode
from letterhead.one_message import messages as messages_of

__all__ = ["MessageState", "PolledMessage", "PolledMessages"]

_HEADER_FIELDS = ("checksum", "id", "offset", "timestamp", "origin_timestamp", "user_headers_length", "payload_length")


class MessageState(Enum):
    """State of a message in releases 0.0.40 to 0.6."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    POISONED = "poisoned"
    MARKED_FOR_DELETION = "marked_for_deletion"

    def as_code(self) -> int:
        """Return the code on the wire."""
        return {"available": 1, "unavailable": 10, "poisoned": 20, "marked_for_deletion": 30}[self._value_]

    def __str__(self) -> str:
        return self._value_


_STATES = {state.as_code(): state for state in MessageState}


@dataclass
class PolledMessage(transport.JsonModel):
    """A polled message.

    In JSON, it is an object with the fields of the message; in ``iggy``, all fields except payload and headers are in
    ``header``.

    Parameters
    ----------
    offset : int
        Offset in the partition, less than 2⁶³.
    timestamp : int
        Time at which the server received the message, in microseconds since 1970, less than 2⁶³.
    id : int
        Id of the message.
    payload : bytes
        The payload.
    headers : HeaderMap, bytes or None
        The headers; bytes if they cannot be parsed, for example because they are encrypted.
    state : MessageState, optional
        Only in ``iggy-2023``, from 0.0.40 on.
    checksum : int, optional
        In ``iggy-2023``, from 0.0.40 on, the CRC-32 of the payload; in ``iggy`` the XXH3 of the message.
    origin_timestamp : int, optional
        Time at which the sender created the message, in microseconds since 1970, less than 2⁶³; only in ``iggy``.

    Raises
    ------
    EncodeError
        If a number does not fit its field (``out_of_range``).

    Examples
    --------
    >>> from letterhead.iggy import PolledMessage
    >>> message = PolledMessage(offset=5, timestamp=1767225600000000, id=7, payload=b"hello")
    >>> message.length, PolledMessage.from_bytes(message.to_bytes()) == message
    (5, True)
    """

    offset: int
    timestamp: int
    id: int
    payload: bytes
    headers: MessageHeaders = None
    state: MessageState | None = None
    checksum: int | None = None
    origin_timestamp: int | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        self.payload = bytes_of(self.payload, "the payload")

    def _check_numbers(self) -> None:
        """Raise EncodeError if a number does not fit its field; called on writing, because attributes can be assigned."""
        for name, number, bits in (
            ("the offset", self.offset, 63),
            ("the timestamp", self.timestamp, 63),
            ("the id", self.id, 128),
            ("the checksum", self.checksum or 0, 64 if self.state is None else 32),
            ("the origin timestamp", self.origin_timestamp or 0, 63),
        ):
            need_unsigned(number, bits, name)

    @classmethod
    def from_bytes(cls, data: bytes, format: Format = "iggy-2023", *, validate: bool = True) -> PolledMessage:
        """Read one message; options are as in :mod:`letterhead.iggy`.

        In ``iggy-2023``, the bytes are a message of a reply, with or without state and checksum. In ``iggy``, the message
        begins with the 64-byte header of replies of 0.8.3 to 0.10; its checksum is not verified.

        Raises
        ------
        DecodeError
            If the bytes are not one message.
        """
        check_format(format)
        if format == "iggy":
            return cls._from_message(decode(data, "iggy-message"))
        messages = _read_2023(bytes_of(data, "a message"), validate=validate)
        if len(messages) != 1:
            message = f"{len(messages)} messages where one was expected"
            raise DecodeError(message, format=POLLED["iggy-2023"], code="wrong_size")
        return messages[0]

    def to_bytes(self, format: Format = "iggy-2023") -> bytes:
        """Return the message as a server writes it; in ``iggy``, with the 64-byte header.

        In ``iggy-2023``, state and checksum are written if :attr:`state` is set.

        Raises
        ------
        EncodeError
            If a number does not fit its field (``out_of_range``), or the headers are too large (``too_large``).
        ConversionError
            If the format does not support a key or a kind.
        """
        check_format(format)
        self._check_numbers()
        headers, identity = message_headers.encode_headers(self.headers, format), self.id.to_bytes(16, "little")
        if format == "iggy":
            times = self.offset, self.timestamp, self.origin_timestamp or 0
            sizes = len(headers), len(self.payload)
            return struct.pack("<Q16s3Q2I8x", self.checksum or 0, identity, *times, *sizes) + self.payload + headers
        if self.state is None:
            head = struct.pack("<QQ16s", self.offset, self.timestamp, identity)
        else:
            state = self.state.as_code()
            head = struct.pack("<QBQ16sI", self.offset, state, self.timestamp, identity, self._crc())
        payload_size = len(self.payload).to_bytes(4, "little")
        return head + len(headers).to_bytes(4, "little") + headers + payload_size + self.payload

    @property
    def length(self) -> int:
        """Size of the payload in bytes."""
        return len(self.payload)

    @classmethod
    def _from_frame(cls, frame: Frame) -> PolledMessage:
        return cls(**{**frame._asdict(), "headers": message_headers.map_or_bytes(frame.headers)})

    @classmethod
    def _from_message(cls, message: Any) -> PolledMessage:
        fields = message._asdict()
        state, checksum = fields.get("state"), fields.get("checksum")
        return cls(
            offset=message.offset,
            timestamp=message.timestamp,
            id=int.from_bytes(message.id, "big"),
            payload=message.payload,
            headers=message_headers.normalize_headers(message.headers),
            state=None if state is None else MessageState(state),
            checksum=None if checksum is None else int(checksum),
            origin_timestamp=fields.get("origin_timestamp"),
        )

    def _crc(self) -> int:
        return zlib.crc32(self.payload) if self.checksum is None else self.checksum

    @classmethod
    def _read_unverified(cls, cursor: Cursor, *, with_state: bool) -> PolledMessage:
        offset, state = cursor.natural("offset"), None
        if with_state:
            code = cursor.number(1, "state")
            state = _STATES.get(code)
            if state is None:
                cursor.refuse("bad_attributes", f"state {code} is unknown", back=1)
        timestamp, identity = cursor.natural("timestamp"), cursor.number(16, "id")
        checksum = cursor.number(4, "checksum") if with_state else None
        headers = message_headers.read_headers(cursor)
        payload = cursor.take(cursor.number(4, "payload length"), "payload")
        return cls(offset, timestamp, identity, payload, headers, state, checksum)

    def _to_tree(self, format: Format, *, canonical: bool = False) -> dict[str, Any]:
        payload = transport.to_base64(self.payload)
        headers = message_headers.headers_tree(self.headers, format, canonical=canonical)
        if format == "iggy-2023":
            state = {} if self.state is None else {"state": str(self.state)}
            checksum = {} if self.state is None else {"checksum": self._crc()}
            front = {"offset": self.offset, **state, "timestamp": self.timestamp, "id": self.id, **checksum}
            return {**front, "headers": headers, "payload": payload}
        header = {
            "checksum": self.checksum or 0,
            "id": self.id,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "origin_timestamp": self.origin_timestamp or 0,
            "user_headers_length": len(message_headers.encode_headers(self.headers, "iggy")),
            "payload_length": len(self.payload),
            "reserved": 0,
        }
        return {"header": header, "payload": payload, "user_headers": headers or []}

    @classmethod
    def _from_tree(cls, tree: Any, format: ReadFormat, *, validate: bool) -> Self:
        names = ("header", "offset", "state", "timestamp", "id", "checksum", "headers", "user_headers", "payload")
        fields = transport.fields_of(tree, "a message", names, format)
        is_iggy = format == "iggy" or (format == "iggy-auto" and "header" in fields)
        header = fields
        if is_iggy:
            header = transport.fields_of(fields.need("header"), "the field header", _HEADER_FIELDS, format)
        has_state = not is_iggy and fields.get("state") is not None
        headers = message_headers.read_headers_tree(fields, "iggy" if is_iggy else "iggy-2023", validate=validate)
        return cls(
            offset=header.number("offset", 63),
            timestamp=header.number("timestamp", 63),
            id=header.identity(),
            payload=fields.base64("payload", padded=is_iggy),
            headers=(headers or None) if is_iggy else headers,
            state=MessageState(fields.one_of("state", map(str, MessageState))) if has_state else None,
            checksum=header.number("checksum", 64 if is_iggy else 32) if is_iggy or has_state else None,
            origin_timestamp=header.number("origin_timestamp", 63) if is_iggy else None,
        )


@dataclass
class PolledMessages(transport.JsonModel):
    """The reply to a poll.

    In JSON, it is an object with ``messages``, ``partition_id`` and ``current_offset``. Replies of the first releases with
    headers contain neither number, and are a list of messages. If only one number is missing, it is written as 0.

    Parameters
    ----------
    messages : list of PolledMessage
        The messages.
    partition_id : int, optional
        The partition of the messages; ``None`` in replies of the first releases with headers.
    current_offset : int, optional
        The last offset of the partition; ``None`` in replies of the first releases with headers.

    Examples
    --------
    >>> from letterhead.iggy import PolledMessage, PolledMessages
    >>> message = PolledMessage(offset=6, timestamp=1767225600000000, id=7, payload=b"hello")
    >>> reply = PolledMessages([message], partition_id=1, current_offset=6)
    >>> PolledMessages.from_bytes(reply.to_bytes()) == reply
    True
    """

    messages: list[PolledMessage] = field(default_factory=list)
    partition_id: int | None = None
    current_offset: int | None = None

    @classmethod
    def from_bytes(cls, data: bytes, format: Format = "iggy-2023", *, validate: bool = True) -> PolledMessages:
        """Read the body of a reply, without the protocol frame; options are as in :mod:`letterhead.iggy`.

        A reply of ``iggy-2023`` begins with the number of messages (first releases), or with partition, last offset and
        number of messages. A reply of ``iggy`` begins with these three fields; the newest releases add 24 bytes. This method
        detects the form of the prefix and, in ``iggy-2023``, whether messages have a state and a checksum.

        Raises
        ------
        DecodeError
            If the bytes are not a reply in this format.
        """
        check_format(format)
        data = bytes_of(data, "a reply")
        if format == "iggy":
            return cls._read_iggy(data, validate=validate)
        return cls._read_2023(data, validate=validate)

    @classmethod
    def _from_tree(cls, tree: Any, format: ReadFormat, *, validate: bool) -> Self:
        if isinstance(tree, list) and not isinstance(tree, transport.Pairs):
            tree = transport.Pairs([("messages", tree)])
        fields = transport.fields_of(tree, "the reply", ("partition_id", "current_offset", "messages"), format)
        messages = PolledMessage._list_from_trees(fields, format, validate=validate)
        partition = None if fields.get("partition_id") is None else fields.number("partition_id", 32)
        current = None if fields.get("current_offset") is None else fields.number("current_offset", 64)
        return cls(messages, partition, current)

    def to_bytes(self, format: Format = "iggy-2023") -> bytes:
        """Return the body of the reply as a server writes it, without the protocol frame.

        A reply of ``iggy-2023`` without partition and current offset begins with the number of messages; if only one of the
        two is missing, it is written as 0. In ``iggy``, messages with the same time and consecutive offsets share a batch,
        and all checksums are computed.

        Raises
        ------
        EncodeError
            If a number does not fit its field (``out_of_range``), only some messages have a state
            (``bad_attributes``), or headers are too large (``too_large``).
        ConversionError
            If the format does not support a key or a kind.
        """
        check_format(format)
        need_unsigned(self.partition_id or 0, 32, "the partition")
        need_unsigned(self.current_offset or 0, 64, "the current offset")
        for message in self.messages:
            message._check_numbers()
        prefix = struct.pack("<IQ", self.partition_id or 0, self.current_offset or 0)
        if format == "iggy":
            messages = b"".join(map(self._write_batch, self._batches()))
        else:
            prefix = b"" if self._is_unplaced else prefix
            if len({message.state is None for message in self.messages}) > 1:
                text = "only some messages have a state: in one reply all or none must have one"
                raise EncodeError(text, format=POLLED["iggy-2023"], code="bad_attributes")
            messages = b"".join(message.to_bytes() for message in self.messages)
        return prefix + len(self.messages).to_bytes(4, "little") + messages

    def _to_tree(self, format: Format, *, canonical: bool = False) -> Any:
        count = {"count": len(self.messages)} if format == "iggy" else {}
        front = {"partition_id": self.partition_id or 0, "current_offset": self.current_offset or 0, **count}
        messages = [message._to_tree(format, canonical=canonical) for message in self.messages]
        if format == "iggy-2023" and self._is_unplaced:
            return messages
        return {**front, "messages": messages}

    @property
    def _is_unplaced(self) -> bool:
        """Whether this is a reply of the first releases, without partition and current offset."""
        return self.partition_id is None and self.current_offset is None

    def _batches(self) -> Iterator[list[PolledMessage]]:
        """Divide the messages into batches of ``iggy``."""
        batch: list[PolledMessage] = []
        low = high = 0
        for message in self.messages:
            origin = message.origin_timestamp or 0
            low, high = (min(low, origin), max(high, origin)) if batch else (origin, origin)
            if batch and (
                message.timestamp != batch[0].timestamp
                or message.offset != batch[-1].offset + 1
                or high - low >= 1 << 32
            ):
                yield batch
                batch, low, high = [], origin, origin
            batch.append(message)
        if batch:
            yield batch

    def _write_batch(self, messages: list[PolledMessage]) -> bytes:
        frames = [
            Frame(
                message.id,
                message.origin_timestamp or 0,
                message_headers.encode_headers(message.headers, "iggy"),
                message.payload,
            )
            for message in messages
        ]
        partition, first = self.partition_id or 0, messages[0]
        return write_batch(frames, partition=partition, offset=first.offset, timestamp=first.timestamp)

    @classmethod
    def _read_2023(cls, data: bytes, *, validate: bool) -> PolledMessages:
        cursor, start = Cursor(data, POLLED["iggy-2023"]), _prefix_size(data)
        partition = None if start == 4 else cursor.number(4, "partition")
        current = None if start == 4 else cursor.number(8, "current offset")
        count = cursor.number(4, "messages count")
        with shift_errors(start):
            messages = _read_2023(data[start:], validate=validate)
        cursor.check_count(count, len(messages), start - 4)
        return cls(messages, partition, current)

    @classmethod
    def _read_iggy(cls, data: bytes, *, validate: bool) -> PolledMessages:
        cursor = Cursor(data, POLLED["iggy"])
        partition, current = cursor.number(4, "partition"), cursor.number(8, "current offset")
        count = cursor.number(4, "messages count")
        if validate:
            # The format does not include the prefix of a reply.
            messages = [PolledMessage._from_message(message) for message in messages_of(data, POLLED["iggy"])]
        else:
            if cursor.left == 24 or (begins_batch(data, 40) and not begins_batch(data, 16)):
                cursor.take(24, "partition context")
            messages = [PolledMessage._from_frame(frame) for frame in read_batches(cursor)]
        cursor.check_count(count, len(messages), 12)
        return cls(messages, partition, current)


def _read_2023(data: bytes, *, validate: bool) -> list[PolledMessage]:
    if validate:
        return [PolledMessage._from_message(message) for message in messages_of(data, POLLED["iggy-2023"])]
    cursor = Cursor(data, POLLED["iggy-2023"])
    with_state = _has_state(data)
    messages: list[PolledMessage] = []
    while cursor.left:
        cursor.prefix = f"message {len(messages)}: "
        messages.append(PolledMessage._read_unverified(cursor, with_state=with_state))
    return messages


class _Framing(NamedTuple):
    """Result of an attempt to parse messages of ``iggy-2023``, with or without state and checksum."""

    messages: int
    is_complete: bool
    is_plausible: bool
    """Whether all states are known and all checksums correct."""


def _framing(data: bytes, *, with_state: bool) -> _Framing:
    cursor = Cursor(data, POLLED["iggy-2023"])
    count, plausible = 0, True
    try:
        while cursor.left:
            head = cursor.take(37 if with_state else 32, "message")
            cursor.take(cursor.number(4, "headers length"), "headers block")
            payload = cursor.take(cursor.number(4, "payload length"), "payload")
            count += 1
            if with_state:
                checksum = int.from_bytes(head[33:], "little")
                plausible = plausible and head[8] in _STATES and checksum == zlib.crc32(payload)
    except DecodeError:
        return _Framing(count, False, plausible)
    return _Framing(count, True, plausible)


def _has_state(data: bytes) -> bool:
    """Return whether messages of ``iggy-2023`` have a state and a checksum, by the rule of ``iggy-polled-2023``."""
    with_state, without = _framing(data, with_state=True), _framing(data, with_state=False)
    if without.is_complete:
        return with_state.is_complete and with_state.is_plausible
    return with_state.is_complete or (with_state.messages > 0 and with_state.is_plausible)


def _prefix_size(data: bytes) -> int:
    """Return the length of the prefix before the messages of a reply: 16, or 4 in replies without a partition."""
    sizes = (16, 4) if len(data) >= 16 else (4,)
    for size in sizes:
        announced = int.from_bytes(data[size - 4 : size], "little")
        framings = [_framing(data[size:], with_state=with_state) for with_state in (True, False)]
        if any(framing.is_complete and framing.messages == announced for framing in framings):
            return size
    return sizes[0]
