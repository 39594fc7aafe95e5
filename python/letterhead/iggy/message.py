"""Messages to send: :class:`Message`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Self

import letterhead.iggy.json_transport as transport
import letterhead.iggy.message_headers as message_headers
from letterhead.headers import Headers
from letterhead.iggy.errors import need_unsigned
from letterhead.iggy.formats import MESSAGES, Format, ReadFormat, check_format, check_header_bytes, check_payload
from letterhead.iggy.headers import HeaderMap, HeadersLike
from letterhead.iggy.wire import Cursor, Frame
from letterhead.message import bytes_of

__all__ = ["Message"]


@dataclass(init=False)
class Message(transport.JsonModel):
    """A message to send.

    In JSON, it is an object with ``id`` (a number, digits or a UUID), ``payload`` in base64, and ``headers``
    (``iggy-2023``) or ``user_headers`` (``iggy``). In ``iggy``, an id of more than 64 bits is written as text, because
    servers cannot read it as a number.

    Parameters
    ----------
    id : int or uuid.UUID, optional
        Id of up to 128 bits. ``None`` is stored as 0, and the server chooses the id.
    payload : bytes-like
        The payload.
    headers : HeaderMap, mapping, pairs, Headers or bytes, optional
        The headers; the attribute is ``None`` if there are none. Bytes are encoded headers, for example encrypted ones;
        they are not parsed, and can be written in ``iggy`` only.
    origin_timestamp : int, optional
        The creation time in microseconds since 1970, less than 2⁶³; only in ``iggy``. The default is the time of writing.

    Examples
    --------
    >>> from letterhead.iggy import Message
    >>> message = Message(None, b"hello-world", {"key 1": "value1"})
    >>> message.length, message.size_bytes, message.headers["key 1"].as_str()
    (11, 55, 'value1')
    >>> print(message.to_json())
    {"id":0,"payload":"aGVsbG8td29ybGQ=","headers":{"key 1":{"kind":"string","value":"dmFsdWUx"}}}
    """

    id: int
    payload: bytes
    headers: message_headers.MessageHeaders
    origin_timestamp: int | None

    def __init__(
        self,
        id: int | uuid.UUID | None = None,
        payload: bytes = b"",
        headers: HeadersLike | Headers | bytes | None = None,
        *,
        origin_timestamp: int | None = None,
    ) -> None:
        number = id.int if isinstance(id, uuid.UUID) else id
        self.id = 0 if number is None else need_unsigned(number, 128, "the id")
        self.payload = bytes_of(payload, "the payload")
        self.headers = message_headers.normalize_headers(headers)
        if origin_timestamp is not None:
            need_unsigned(origin_timestamp, 63, "the origin timestamp")
        self.origin_timestamp = origin_timestamp

    @classmethod
    def from_bytes(cls, data: bytes) -> Message:
        """Read one message in the format ``iggy-2023``; without headers, ``headers`` is ``None``.

        Raises
        ------
        DecodeError
            If the bytes are not one message.
        """
        cursor = Cursor(bytes_of(data, "a message"), MESSAGES["iggy-2023"])
        message = cls._read(cursor)
        cursor.end("payload")
        return message

    def to_bytes(self) -> bytes:
        """Return the message in the format ``iggy-2023``; in ``iggy``, only a whole request can be encoded.

        Raises
        ------
        EncodeError
            If the header values exceed 100,000 bytes (``too_large``).
        ConversionError
            If the format does not support a key or a kind.
        """
        block = message_headers.encode_headers(self.headers, "iggy-2023")
        head = self.id.to_bytes(16, "little") + len(block).to_bytes(4, "little")
        return head + block + len(self.payload).to_bytes(4, "little") + self.payload

    def validate(self, format: Format = "iggy-2023") -> None:
        """Raise EncodeError if servers would reject the message in a format.

        They reject an empty payload (``empty_value``), and too large a payload or headers (``too_large``). The limits of
        ``iggy-2023`` apply to a whole request; see :meth:`SendMessages.validate`.
        """
        check_format(format)
        check_payload(len(self.payload), format)
        if isinstance(self.headers, HeaderMap):
            self.headers.validate(format)
        elif self.headers is not None:
            check_header_bytes(len(self.headers), format)

    @property
    def length(self) -> int:
        """Size of the payload in bytes."""
        return len(self.payload)

    @property
    def size_bytes(self) -> int:
        """Size of the result of :meth:`to_bytes` in bytes."""
        if isinstance(self.headers, HeaderMap):
            return 24 + self.headers.size_bytes("iggy-2023") + len(self.payload)
        return 24 + len(message_headers.encode_headers(self.headers, "iggy-2023")) + len(self.payload)

    @classmethod
    def _read(cls, cursor: Cursor) -> Message:
        identity = cursor.number(16, "id")
        headers = message_headers.read_headers(cursor)
        return cls(identity, cursor.take(cursor.number(4, "payload length"), "payload"), headers)

    def _frame(self, now: int) -> Frame:
        origin = now if self.origin_timestamp is None else self.origin_timestamp
        return Frame(self.id, origin, message_headers.encode_headers(self.headers, "iggy"), self.payload)

    def _to_tree(self, format: Format, *, canonical: bool = False) -> dict[str, Any]:
        tree: dict[str, Any] = {"id": self.id, "payload": transport.to_base64(self.payload)}
        if format == "iggy-2023":
            tree["headers"] = message_headers.headers_tree(self.headers, format, canonical=canonical)
            return tree
        if self.id >= 1 << 64:
            tree["id"] = str(self.id)
        if self.headers:
            tree["user_headers"] = message_headers.headers_tree(self.headers, format, canonical=canonical)
        return tree

    @classmethod
    def _from_tree(cls, tree: Any, format: ReadFormat, *, validate: bool) -> Self:
        fields = transport.fields_of(tree, "a message", ("id", "payload", "headers", "user_headers"), format)
        payload = fields.base64("payload", padded=format == "iggy")
        return cls(fields.identity(), payload, message_headers.read_headers_tree(fields, format, validate=validate))
