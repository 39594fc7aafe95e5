"""A value with headers beside it, for a log whose messages have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic

from letterhead.kip82.block import GivenHeaders
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.layouts import WRAPPER
from letterhead.kip82.serializers import A, Serializer, V
from letterhead.message import Data, Message, bytes_of
from letterhead.operations import decode, encode, validate

__all__ = ["MessageWrapper"]

_HEADERS_AT = 5
"""Bytes of the version and the length of the headers."""


class MessageWrapper(Generic[V]):
    """A value and its headers, which go into the value of a message together.

    Parameters
    ----------
    headers : IntHeaders, mapping or pairs, optional
        The headers, kept as the very object where they are an :class:`IntHeaders`.
    value : object
        The value; ``None`` is null.
    serializer : Serializer, optional
        For a value that is not bytes.

    Attributes
    ----------
    headers : IntHeaders
        The headers.
    value : object
        The value.
    serializer : Serializer or None
        What the value is written with.
    MAGIC : int
        The version of the bytes, which is the first of them.

    Examples
    --------
    >>> from letterhead.kip82 import MessageWrapper
    >>> wrapper = MessageWrapper({5: b"acme"}, b"42")
    >>> wrapper.to_bytes().hex()
    '000000000c000000050000000461636d65000000023432'
    >>> MessageWrapper.from_bytes(wrapper.to_bytes()) == wrapper
    True
    """

    __slots__ = ("headers", "serializer", "value")
    MAGIC: ClassVar[int] = 0
    headers: IntHeaders
    value: V | None
    serializer: Serializer[V] | None

    def __init__(
        self, headers: GivenHeaders | None, value: V | None, *, serializer: Serializer[V] | None = None
    ) -> None:
        self.headers = headers if isinstance(headers, IntHeaders) else IntHeaders(headers)
        self.value = value
        self.serializer = serializer

    @classmethod
    def from_bytes(
        cls, data: Data, *, deserialize: Callable[[bytes], A] | None = None, serializer: Serializer[A] | None = None
    ) -> MessageWrapper[A]:
        """Read a wrapper from the value of a message. Its headers are parsed on first access.

        Parameters
        ----------
        data : bytes-like
            The version, the headers and the value (format ``kip82-wrapper``).
        deserialize : callable, optional
            Turns the bytes of the value into the value, unless it is null. By default that of the serializer, and
            without one the bytes are the value.
        serializer : Serializer, optional
            For a value that is not bytes; the wrapper keeps it.

        Returns
        -------
        MessageWrapper
            Both.

        Raises
        ------
        DecodeError
            If the bytes are not a wrapper, or one of another version (``bad_magic``).
        """
        headers, value = _split(bytes_of(data))
        if deserialize is None and serializer is not None:
            deserialize = serializer.deserialize
        read: Any = value if deserialize is None or value is None else deserialize(value)
        made: Any = cls  # whose type has the type variable of the class, not that of the serializer
        wrapper: MessageWrapper[A] = made(IntHeaders(headers), read, serializer=serializer)
        return wrapper

    def to_bytes(self, *, serialize: Callable[[V], bytes] | None = None) -> bytes:
        """Write both as the value of a message.

        Parameters
        ----------
        serialize : callable, optional
            Turns the value into bytes, unless it is null. By default that of the wrapper's serializer; without one
            the value must be bytes.

        Returns
        -------
        bytes
            The version, the headers and the value (format ``kip82-wrapper``).

        Raises
        ------
        TypeError
            If the value is not bytes.

        Examples
        --------
        >>> from letterhead.kip82 import MessageWrapper, Serializer
        >>> text = Serializer(str.encode, bytes.decode)
        >>> data = MessageWrapper({5: b"acme"}, "42", serializer=text).to_bytes()
        >>> read = MessageWrapper.from_bytes(data, serializer=text)
        >>> read.value, read.headers.items()
        ('42', [(5, b'acme')])
        """
        if serialize is None and self.serializer is not None:
            serialize = self.serializer.serialize
        value: Any = self.value if serialize is None or self.value is None else serialize(self.value)
        return encode(Message(headers=self.headers._read(), value=value), WRAPPER) or b""

    def get_headers(self) -> IntHeaders:
        """Give the headers."""
        return self.headers

    def get_value(self) -> V | None:
        """Give the value."""
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
    # The core would parse the headers, so it reads the wrapper without them, and the whole one to report what is wrong.
    bare = data[:1] + bytes(4) + data[max(end, _HEADERS_AT) :]
    read = decode(data if end < _HEADERS_AT or validate(bare, WRAPPER) else bare, WRAPPER)
    assert isinstance(read, Message), "a wrapper is a message"
    return data[_HEADERS_AT:end], read.value
