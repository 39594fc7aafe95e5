"""One message as it is sent."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Self

import letterhead.iggy.json_transport as transport
from letterhead.headers import Headers
from letterhead.iggy.carried import Carried, as_map, block_of, headers_tree, read_block, read_headers_tree
from letterhead.iggy.faults import need_bytes, need_unsigned
from letterhead.iggy.formats import MESSAGES, Format, ReadFormat, check_format
from letterhead.iggy.headers import GivenMap, HeaderMap
from letterhead.iggy.limits import check_header_bytes, check_payload
from letterhead.iggy.wire import Cursor, Frame

__all__ = ["Message"]


@dataclass(init=False)
class Message(transport.JsonModel):
    """A message to be sent.

    As JSON an object with ``id`` (a number, digits or a UUID), ``payload`` in base64, and ``headers`` (``iggy-2023``) or
    ``user_headers`` (``iggy``). Numbers of more than 64 bits are written as text in ``iggy``, whose servers read no longer ones.

    Parameters
    ----------
    id : int or uuid.UUID, optional
        Up to 128 bits; ``None`` is 0, for which the server chooses one.
    payload : bytes-like
        What is sent.
    headers : HeaderMap, mapping, pairs, Headers or bytes, optional
        The headers. Bytes are headers as they are on the wire and only go into the format ``iggy``, without being
        looked at: so travel headers that the sender has encrypted.
    origin_timestamp : int, optional
        When the message was made, in microseconds since 1970, less than 2⁶³; when it is written, where none is given. Only the format
        ``iggy`` has it.

    Attributes
    ----------
    id : int
        The number; 0 for none.
    payload : bytes
        What is sent.
    headers : HeaderMap, bytes or None
        The headers; ``None`` is a message without any.
    origin_timestamp : int or None
        When the message was made.

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
    headers: Carried
    origin_timestamp: int | None

    def __init__(
        self,
        id: int | uuid.UUID | None = None,
        payload: bytes = b"",
        headers: GivenMap | Headers | bytes | None = None,
        *,
        origin_timestamp: int | None = None,
    ) -> None:
        self.id = _identity(id)
        self.payload = need_bytes(payload, "the payload")
        self.headers = as_map(headers)
        if origin_timestamp is not None:
            need_unsigned(origin_timestamp, 63, "the origin timestamp")
        self.origin_timestamp = origin_timestamp

    @classmethod
    def from_bytes(cls, data: bytes) -> Message:
        """Read one message as it is sent in the format ``iggy-2023``.

        Parameters
        ----------
        data : bytes-like
            Identity, headers and payload.

        Returns
        -------
        Message
            The message; no headers are ``None``.

        Raises
        ------
        DecodeError
            If the bytes are not that.

        Examples
        --------
        >>> from letterhead.iggy import Message
        >>> Message.from_bytes(Message(7, b"hello").to_bytes())
        Message(id=7, payload=b'hello', headers=None, origin_timestamp=None)
        """
        cursor = Cursor(need_bytes(data, "a message"), MESSAGES["iggy-2023"])
        message = cls._read(cursor)
        cursor.end("payload")
        return message

    def to_bytes(self) -> bytes:
        """Write the message as it is sent in the format ``iggy-2023``; in ``iggy`` only a whole request has bytes.

        Returns
        -------
        bytes
            Identity, headers and payload.

        Raises
        ------
        EncodeError
            If the values of the headers have more than 100,000 bytes (``too_large``).
        ConversionError
            If the format has no place for a key or a kind.

        Examples
        --------
        >>> from letterhead.iggy import Message
        >>> Message(7, b"hello").to_bytes().hex()
        '07000000000000000000000000000000000000000500000068656c6c6f'
        """
        block = block_of(self.headers, "iggy-2023")
        head = self.id.to_bytes(16, "little") + len(block).to_bytes(4, "little")
        return head + block + len(self.payload).to_bytes(4, "little") + self.payload

    def validate(self, format: Format = "iggy-2023") -> None:
        """Refuse a message that servers refuse.

        Parameters
        ----------
        format : {"iggy-2023", "iggy"}, default "iggy-2023"
            Whose limits. Those of ``iggy-2023`` hold for a whole request, see :meth:`SendMessages.validate`.

        Raises
        ------
        EncodeError
            If there is no payload (``empty_value``), or payload or headers are too large (``too_large``).
        """
        check_format(format)
        check_payload(len(self.payload), format)
        if isinstance(self.headers, HeaderMap):
            self.headers.validate(format)
        elif self.headers is not None:
            check_header_bytes(len(self.headers), format)

    @property
    def length(self) -> int:
        """How many bytes the payload has."""
        return len(self.payload)

    @property
    def size_bytes(self) -> int:
        """How many bytes :meth:`to_bytes` gives."""
        if isinstance(self.headers, HeaderMap):
            return 24 + self.headers.size_bytes("iggy-2023") + len(self.payload)
        return 24 + len(block_of(self.headers, "iggy-2023")) + len(self.payload)

    @classmethod
    def _read(cls, cursor: Cursor) -> Message:
        identity = cursor.number(16, "id")
        headers = read_block(cursor)
        return cls(identity, cursor.take(cursor.number(4, "payload length"), "payload"), headers)

    def _frame(self, now: int) -> Frame:
        origin = now if self.origin_timestamp is None else self.origin_timestamp
        return Frame(self.id, origin, block_of(self.headers, "iggy"), self.payload)

    def _to_tree(self, format: Format, *, canonical: bool = False) -> dict[str, Any]:
        tree: dict[str, Any] = {"id": self.id, "payload": transport.text_of(self.payload)}
        if format == "iggy-2023":
            tree["headers"] = headers_tree(self.headers, format, canonical=canonical)
            return tree
        if self.id >= 1 << 64:
            tree["id"] = str(self.id)
        if self.headers:
            tree["user_headers"] = headers_tree(self.headers, format, canonical=canonical)
        return tree

    @classmethod
    def _from_tree(cls, tree: Any, format: ReadFormat, *, validate: bool) -> Self:
        fields = transport.fields_of(tree, "a message", ("id", "payload", "headers", "user_headers"), format)
        payload = fields.base64("payload", padded=format == "iggy")
        return cls(fields.identity(), payload, read_headers_tree(fields, format, validate=validate))


def _identity(given: int | uuid.UUID | None) -> int:
    """Take the identity of a message as a number of 128 bits."""
    if given is None:
        return 0
    return need_unsigned(given.int if isinstance(given, uuid.UUID) else given, 128, "the id")
