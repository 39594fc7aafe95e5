"""Request to append messages to a topic."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import letterhead.iggy.formats as formats
import letterhead.iggy.json_transport as transport
from letterhead.errors import EncodeError
from letterhead.iggy.errors import shift_errors
from letterhead.iggy.formats import MESSAGES, Format, ReadFormat
from letterhead.iggy.headers import HeaderMap
from letterhead.iggy.message import Message
from letterhead.iggy.message_headers import map_or_bytes, normalize_headers
from letterhead.iggy.routing import Identifier, Partitioning, as_identifier
from letterhead.iggy.wire import Cursor, read_batches, write_batch
from letterhead.message import bytes_of
from letterhead.one_message import messages as messages_of

__all__ = ["SendMessages"]


@dataclass(init=False)
class SendMessages:
    """A request to append messages to a topic.

    Parameters
    ----------
    stream_id, topic_id : Identifier, int or str
        The topic.
    partitioning : Partitioning
        Rule that chooses the partition.
    messages : iterable of Message
        The messages.

    Examples
    --------
    >>> from letterhead.iggy import Identifier, Message, Partitioning, SendMessages
    >>> request = SendMessages(1, "sample", Partitioning.balanced(), [Message(None, b"hello-world")])
    >>> SendMessages.from_bytes(request.to_bytes()) == request
    True
    """

    stream_id: Identifier
    topic_id: Identifier
    partitioning: Partitioning
    messages: list[Message]

    def __init__(
        self,
        stream_id: Identifier | int | str,
        topic_id: Identifier | int | str,
        partitioning: Partitioning,
        messages: Iterable[Message],
    ) -> None:
        self.stream_id = as_identifier(stream_id)
        self.topic_id = as_identifier(topic_id)
        self.partitioning = partitioning
        self.messages = list(messages)

    @classmethod
    def from_bytes(cls, data: bytes, format: Format = "iggy-2023", *, validate: bool = True) -> SendMessages:
        """Read the body of a request, without the protocol frame; options are as in :mod:`letterhead.iggy`.

        Raises
        ------
        DecodeError
            If the bytes are not a request in this format.
        """
        formats.check_format(format)
        cursor = Cursor(bytes_of(data, "a request"), MESSAGES[format])
        size = cursor.number(4, "metadata length") if format == "iggy" else 0
        stream, topic = Identifier._read(cursor, "stream id"), Identifier._read(cursor, "topic id")
        partitioning = Partitioning._read(cursor)
        messages = _read_batch(cursor, size, validate=validate) if format == "iggy" else _read_2023(cursor)
        return cls(stream, topic, partitioning, messages)

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        stream_id: Identifier | int | str,
        topic_id: Identifier | int | str,
        format: ReadFormat = "iggy-auto",
        validate: bool = True,
    ) -> SendMessages:
        """Read the body of a request of the HTTP interface; options are as in :mod:`letterhead.iggy`.

        Parameters
        ----------
        text : str or bytes
            An object with ``partitioning`` and ``messages``.
        stream_id, topic_id : Identifier, int or str
            The topic, from the path of the request.

        Raises
        ------
        DecodeError
            If the text is not such an object, or the messages have another format.
        """
        formats.check_format(format, read=True)
        fields = transport.fields_of(transport.load(text), "the request", ("partitioning", "messages"), format)
        partitioning = Partitioning._from_tree(fields.need("partitioning"), format)
        messages = Message._list_from_trees(fields, format, validate=validate)
        return cls(stream_id, topic_id, partitioning, messages)

    def to_bytes(self, format: Format = "iggy-2023", *, validate: bool = True) -> bytes:
        """Return the body of the request, without the protocol frame.

        Parameters
        ----------
        format : {"iggy-2023", "iggy"}, default "iggy-2023"
            The format; see :mod:`letterhead.iggy`.
        validate : bool, default True
            Whether to call :meth:`validate` first.

        Raises
        ------
        EncodeError
            If servers would reject the request.
        ConversionError
            If the format does not support a key or a kind.
        """
        formats.check_format(format)
        if validate:
            self.validate(format)
        routing = self.stream_id.to_bytes() + self.topic_id.to_bytes() + self.partitioning.to_bytes()
        if format == "iggy-2023":
            return routing + b"".join(message.to_bytes() for message in self.messages)
        now = time.time_ns() // 1000
        metadata = routing + len(self.messages).to_bytes(4, "little")
        batch = write_batch([message._frame(now) for message in self.messages])
        return len(metadata).to_bytes(4, "little") + metadata + batch

    def to_json(self, format: Format = "iggy-2023", *, canonical: bool = False) -> str:
        """Return the body of the request as JSON, without spaces; options are as in :mod:`letterhead.iggy`.

        Stream and topic are part of the path of the request.
        """
        formats.check_format(format)
        messages = [message._to_tree(format, canonical=canonical) for message in self.messages]
        return transport.dump({"partitioning": self.partitioning._to_tree(), "messages": messages})

    def validate(self, format: Format = "iggy-2023") -> None:
        """Raise if servers would reject the request in a format.

        In ``iggy-2023``, all messages together may have 100,000 bytes of header values and 10,000,000 bytes of payload, and
        stream and topic numbers start at 1. In ``iggy``, each message may have 100,000 bytes of headers, and must have a
        payload of at most 64,000,000 bytes.

        Raises
        ------
        EncodeError
            If there are no messages or a payload is empty (``empty_value``), or a limit is exceeded (``too_large``).
        """
        formats.check_format(format)
        if not self.messages:
            raise EncodeError("the request has no messages", format=MESSAGES[format], code="empty_value")
        if format == "iggy":
            for index, message in enumerate(self.messages):
                with shift_errors(0, f"message {index}: "):
                    message.validate(format)
            return
        self.stream_id._check_2023("stream", MESSAGES["iggy-2023"])
        self.topic_id._check_2023("topic", MESSAGES["iggy-2023"])
        maps = [message.headers for message in self.messages if isinstance(message.headers, HeaderMap)]
        formats.check_header_bytes(sum(headers._value_bytes() for headers in maps), "iggy-2023")
        formats.check_payload(sum(message.length for message in self.messages), "iggy-2023")


def _read_2023(cursor: Cursor) -> list[Message]:
    messages: list[Message] = []
    while cursor.left:
        cursor.prefix = f"message {len(messages)}: "
        messages.append(Message._read(cursor))
    return messages


def _read_batch(cursor: Cursor, metadata_size: int, *, validate: bool) -> list[Message]:
    count = cursor.number(4, "messages count")
    actual_size = cursor.at - 4
    if actual_size != metadata_size:
        cursor.refuse("wrong_size", f"metadata of {metadata_size} bytes has {actual_size}", back=cursor.at)
    if validate:
        with shift_errors(cursor.at):
            messages = [_from_message(message) for message in messages_of(cursor.data[cursor.at :], MESSAGES["iggy"])]
    else:
        messages = [
            Message(frame.id, frame.payload, map_or_bytes(frame.headers), origin_timestamp=frame.origin_timestamp)
            for frame in read_batches(cursor)
        ]
    cursor.check_count(count, len(messages), metadata_size)
    return messages


def _from_message(message: Any) -> Message:
    identity = int.from_bytes(message.id, "big")
    return Message(
        identity, message.payload, normalize_headers(message.headers), origin_timestamp=message.origin_timestamp
    )
