"""The request to append messages to a topic."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import letterhead.iggy.json_transport as transport
from letterhead.errors import DecodeError, EncodeError
from letterhead.iggy.carried import as_map, map_or_bytes
from letterhead.iggy.faults import need_bytes, placed
from letterhead.iggy.formats import MESSAGES, Format, ReadFormat, check_format, check_read_format
from letterhead.iggy.headers import HeaderMap
from letterhead.iggy.limits import check_header_bytes, check_payload
from letterhead.iggy.message import Message
from letterhead.iggy.routing import Identifier, Partitioning, as_identifier
from letterhead.iggy.wire import Cursor, read_batches, write_batch
from letterhead.operations import messages as messages_of

__all__ = ["SendMessages"]


@dataclass(init=False)
class SendMessages:
    """A request to append messages to a topic.

    Parameters
    ----------
    stream_id, topic_id : Identifier, int or str
        Where to.
    partitioning : Partitioning
        How the partition is chosen.
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
        """Read the body of a request.

        Parameters
        ----------
        data : bytes-like
            The body, without the frame of the protocol around it.
        format : {"iggy-2023", "iggy"}, default "iggy-2023"
            How it is written: ``iggy-2023`` up to 0.6, ``iggy`` since 0.11.
        validate : bool, default True
            Whether wrong checksums, which ``iggy`` has, are refused, and headers that cannot be read. Without, such
            headers are given as bytes.

        Returns
        -------
        SendMessages
            The request. A message without identity keeps 0.

        Raises
        ------
        DecodeError
            If the bytes are not that.
        """
        check_format(format)
        data = need_bytes(data, "a request")
        return cls._read_batch(data, validate=validate) if format == "iggy" else cls._read(data)

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
        """Read the body of a request as JSON has it.

        Parameters
        ----------
        text : str or bytes
            An object with ``partitioning`` and ``messages``.
        stream_id, topic_id : Identifier, int or str
            Where to: the path of the request says it, its body does not.
        format : {"iggy-auto", "iggy-2023", "iggy"}, default "iggy-auto"
            Which format the messages have to have.
        validate : bool, default True
            Whether headers are checked as those in bytes are.

        Returns
        -------
        SendMessages
            The request.

        Raises
        ------
        DecodeError
            If the text is not that.
        """
        check_read_format(format)
        fields = transport.fields_of(transport.load(text), "the request", ("partitioning", "messages"), format)
        partitioning = Partitioning._from_tree(fields.need("partitioning"), format)
        messages = []
        for index, tree in enumerate(transport.list_of(fields.need("messages"), "the field messages", format)):
            with placed(0, f"message {index}: "):
                messages.append(Message._from_tree(tree, format, validate=validate))
        return cls(stream_id, topic_id, partitioning, messages)

    def to_bytes(self, format: Format = "iggy-2023", *, validate: bool = True) -> bytes:
        """Write the body of the request.

        Parameters
        ----------
        format : {"iggy-2023", "iggy"}, default "iggy-2023"
            How: ``iggy-2023`` up to 0.6, ``iggy`` since 0.11.
        validate : bool, default True
            Whether to refuse first what servers refuse.

        Returns
        -------
        bytes
            The body, without the frame of the protocol around it.

        Raises
        ------
        EncodeError
            If servers refuse the request.
        ConversionError
            If the format has no place for a key or a kind.
        """
        check_format(format)
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
        """Write the body of the request as JSON has it; stream and topic belong into its path.

        Parameters
        ----------
        format : {"iggy-2023", "iggy"}, default "iggy-2023"
            How.
        canonical : bool, default False
            Whether headers are written in canonical order.

        Returns
        -------
        str
            The text, without spaces.
        """
        check_format(format)
        messages = [message._to_tree(format, canonical=canonical) for message in self.messages]
        return transport.dump({"partitioning": self.partitioning._to_tree(), "messages": messages})

    def validate(self, format: Format = "iggy-2023") -> None:
        """Refuse a request that servers refuse.

        Parameters
        ----------
        format : {"iggy-2023", "iggy"}, default "iggy-2023"
            Whose limits: in ``iggy-2023`` 100,000 bytes of header values and 10,000,000 of payload in all messages
            together, and no number 0 for a stream or topic; in ``iggy`` 100,000 bytes of headers and 64,000,000 of
            payload in each, and no message without payload.

        Raises
        ------
        EncodeError
            If there are no messages (``empty_value``), no payload (``empty_value``), or too much (``too_large``).
        """
        check_format(format)
        if not self.messages:
            raise EncodeError("the request has no messages", format=MESSAGES[format], code="empty_value")
        if format == "iggy-2023":
            self._validate_2023()
            return
        for index, message in enumerate(self.messages):
            with placed(0, f"message {index}: "):
                message.validate(format)

    def _validate_2023(self) -> None:
        self.stream_id._check_2023("stream", MESSAGES["iggy-2023"])
        self.topic_id._check_2023("topic", MESSAGES["iggy-2023"])
        maps = [message.headers for message in self.messages if isinstance(message.headers, HeaderMap)]
        check_header_bytes(sum(headers.value_bytes() for headers in maps), "iggy-2023")
        check_payload(sum(message.length for message in self.messages), "iggy-2023")

    @classmethod
    def _read(cls, data: bytes) -> SendMessages:
        cursor = Cursor(data, MESSAGES["iggy-2023"])
        stream, topic = Identifier._read(cursor, "stream id"), Identifier._read(cursor, "topic id")
        partitioning = Partitioning._read(cursor)
        messages: list[Message] = []
        while cursor.left:
            cursor.what = f"message {len(messages)}: "
            messages.append(Message._read(cursor))
        return cls(stream, topic, partitioning, messages)

    @classmethod
    def _read_batch(cls, data: bytes, *, validate: bool) -> SendMessages:
        cursor = Cursor(data, MESSAGES["iggy"])
        size = cursor.number(4, "metadata length")
        start = cursor.at
        stream, topic = Identifier._read(cursor, "stream id"), Identifier._read(cursor, "topic id")
        partitioning = Partitioning._read(cursor)
        count = cursor.number(4, "messages count")
        if cursor.at - start != size:
            cursor.refuse("wrong_size", f"metadata of {size} bytes has {cursor.at - start}", back=cursor.at)
        if validate:
            with placed(cursor.at):
                messages = [_from_message(read) for read in messages_of(data[cursor.at :], MESSAGES["iggy"])]
        else:
            messages = [
                Message(frame.id, frame.payload, map_or_bytes(frame.headers), origin_timestamp=frame.origin_timestamp)
                for frame in read_batches(cursor)
            ]
        if len(messages) != count:
            message = f"{count} messages are announced and {len(messages)} are there"
            raise DecodeError(message, format=MESSAGES["iggy"], code="wrong_size", byte_offset=size)
        return cls(stream, topic, partitioning, messages)


def _from_message(read: Any) -> Message:
    identity = int.from_bytes(read.id, "big")
    return Message(identity, read.payload, as_map(read.headers), origin_timestamp=read.origin_timestamp)
