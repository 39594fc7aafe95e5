"""Wrapper that stores headers inside the value, for messages without headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from letterhead._invariants import instance
from letterhead.kip82.draft_headers import HeadersInput
from letterhead.kip82.header_formats import WRAPPER_FORMAT
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.serializers import A, Serializer, V
from letterhead.message import Data, Message, bytes_of
from letterhead.one_message import decode, encode, validate

__all__ = ["MessageWrapper"]

_HEADERS_AT = 5
"""Position of the headers, after the version and the length field."""


class MessageWrapper(Generic[V]):
    """A value and its headers, stored together in the value of a message.

    Parameters
    ----------
    headers : IntHeaders, mapping or pairs, optional
        The headers. An :class:`IntHeaders` object is stored without a copy.
    value : object
        The value; ``None`` is null.
    serializer : Serializer, optional
        Serializer for a value that is not bytes.

    Attributes
    ----------
    headers, value
        The arguments; the headers are an :class:`IntHeaders`.

    Examples
    --------
    >>> from letterhead.kip82 import MessageWrapper, Serializer
    >>> wrapper = MessageWrapper({5: b"acme"}, b"42")
    >>> wrapper.to_bytes().hex()
    '000000000c000000050000000461636d65000000023432'
    >>> text = Serializer(str.encode, bytes.decode)
    >>> read = MessageWrapper.from_bytes(wrapper.to_bytes(), serializer=text)
    >>> read.value, read.headers.items()
    ('42', [(5, b'acme')])
    """

    __slots__ = ("_serializer", "headers", "value")
    headers: IntHeaders
    value: V | None
    _serializer: Serializer[V] | None

    def __init__(
        self, headers: HeadersInput | None, value: V | None, *, serializer: Serializer[V] | None = None
    ) -> None:
        self.headers = headers if isinstance(headers, IntHeaders) else IntHeaders(headers)
        self.value = value
        self._serializer = serializer

    @classmethod
    def from_bytes(
        cls, data: Data, *, deserialize: Callable[[bytes], A] | None = None, serializer: Serializer[A] | None = None
    ) -> MessageWrapper[A]:
        """Read a wrapper from the value of a message (format ``kip82-wrapper``), with headers parsed on first access.

        Parameters
        ----------
        data : bytes-like
            The version, the headers and the value.
        deserialize : callable, optional
            Deserializes a value that is not null; by default the function of the serializer.
        serializer : Serializer, optional
            Serializer for a value that is not bytes, stored in the wrapper.

        Raises
        ------
        DecodeError
            If the bytes are not a wrapper, or have an unknown version (``bad_magic``).
        """
        headers, value = _split(bytes_of(data))
        if deserialize is None and serializer is not None:
            deserialize = serializer.deserialize
        content: Any = value if deserialize is None or value is None else deserialize(value)
        wrapper_class: Any = cls  # the result has the type variable A of the serializer, and the class has V
        wrapper: MessageWrapper[A] = wrapper_class(IntHeaders(headers), content, serializer=serializer)
        return wrapper

    def to_bytes(self, *, serialize: Callable[[V], bytes] | None = None) -> bytes:
        """Encode the headers and the value as the value of a message (format ``kip82-wrapper``).

        Parameters
        ----------
        serialize : callable, optional
            Serializes a value that is not null; by default the function of the wrapper's serializer.

        Raises
        ------
        TypeError
            If the value is not bytes, and there is no serializer.
        """
        if serialize is None and self._serializer is not None:
            serialize = self._serializer.serialize
        value: Any = self.value if serialize is None or self.value is None else serialize(self.value)
        return encode(Message(headers=self.headers._read(), value=value), WRAPPER_FORMAT) or b""

    def get_headers(self) -> IntHeaders:
        """Return the headers, as the draft's method does."""
        return self.headers

    def get_value(self) -> V | None:
        """Return the value, as the draft's method does."""
        return self.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageWrapper):
            return NotImplemented
        return bool(self.value == other.value) and self.headers == other.headers

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MessageWrapper({self.headers!r}, {self.value!r})"


def _split(data: bytes) -> tuple[bytes, bytes | None]:
    """Return the bytes of the headers, and the value."""
    end = _HEADERS_AT + int.from_bytes(data[1:_HEADERS_AT], "big", signed=True)
    # Decode a wrapper with empty headers, because the core would parse the headers. Decode the complete wrapper only
    # to raise an error.
    bare = data[:1] + bytes(4) + data[max(end, _HEADERS_AT) :]
    message = decode(data if end < _HEADERS_AT or validate(bare, WRAPPER_FORMAT) else bare, WRAPPER_FORMAT)
    return data[_HEADERS_AT:end], instance(message, Message).value
