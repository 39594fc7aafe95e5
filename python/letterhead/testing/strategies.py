"""Hypothesis strategies for headers, and for messages of a format.

Examples can be encoded in their format without losses, and are equal when decoded. All functions accept a headers
format or a message format by name, and raise ValueError for an unknown name, a batch format, or a read-only format.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from letterhead._names import check_name
from letterhead.headers import Header, HeaderKey, Headers, HeaderValue
from letterhead.message import Message
from letterhead.one_message import encode
from letterhead.testing import plain
from letterhead.values import value_from_message

__all__ = ["encoded", "headers", "keys", "messages", "values"]


def keys(format: str = "kafka") -> st.SearchStrategy[Any]:
    """Return a strategy for keys of a format: text, 32-bit integers, or typed values.

    Examples
    --------
    >>> from letterhead import testing
    >>> testing.keys("kip82-int").map(type).example()  # doctest: +SKIP
    <class 'int'>
    """
    traits = _traits(format)
    return plain.keys(traits.keys, traits.least).map(_key)


def values(format: str = "kafka") -> st.SearchStrategy[HeaderValue]:
    """Return a strategy for values of a format: bytes, or values of all its types; also null if it supports null."""
    return plain.header_values(_traits(format)).map(lambda drawn: _value(*drawn))


def headers(format: str = "kafka") -> st.SearchStrategy[Headers]:
    """Return a strategy for the headers of a message: up to six, in half of the examples with two keys that repeat.

    Examples
    --------
    >>> from hypothesis import given
    >>> import letterhead as lh
    >>> from letterhead import testing
    >>> @given(testing.headers())
    ... def test_encoded_headers_are_decoded(headers):
    ...     assert lh.decode(lh.encode(headers, "kafka"), "kafka") == headers
    >>> test_encoded_headers_are_decoded()
    """
    _traits(format)
    return plain.headers(format).map(_headers)


def messages(format: str) -> st.SearchStrategy[Headers | Message]:
    """Return a strategy for messages of a format, as :func:`letterhead.encode` takes them.

    A checksum that the format computes is null. One message is not equal when decoded: in the KIP-82 drafts a message with
    neither value nor headers has null headers.
    """
    if _traits(format).fields == ["headers"]:
        return headers(format)
    return plain.messages(format).map(lambda fields: Message(**{**fields, "headers": _headers(fields["headers"])}))


def encoded(format: str) -> st.SearchStrategy[bytes | None]:
    """Return a strategy for encoded messages of a format; ``None`` only for messages that it writes as null.

    Examples
    --------
    >>> from hypothesis import given
    >>> import letterhead as lh
    >>> from letterhead import testing
    >>> @given(testing.encoded("streams-timestamped"))
    ... def test_messages_are_valid(message):
    ...     assert lh.validate(message, "streams-timestamped") == []
    >>> test_messages_are_valid()
    """
    return messages(format).map(lambda message: encode(message, format))


def _traits(format: str) -> plain.Traits:
    check_name("format", format, plain.FORMATS)
    return plain.FORMATS[format]


def _headers(drawn: Any) -> Headers:
    return Headers([Header(_key(key), _value(type, bits)) for key, type, bits in drawn])


def _key(key: Any) -> HeaderKey:
    header_key: HeaderKey = value_from_message(*key) if isinstance(key, tuple) else key
    return header_key


def _value(type: str | None, bits: bytes | None) -> HeaderValue:
    return bits if type is None or bits is None else value_from_message(type, bits)
