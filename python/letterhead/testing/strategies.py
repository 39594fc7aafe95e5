"""Hypothesis strategies for headers, and for messages of a format.

What is drawn fits its format: it can be written without a loss, and is read as it was.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from letterhead.errors import check_name
from letterhead.headers import Header, HeaderKey, Headers, HeaderValue
from letterhead.message import Message
from letterhead.operations import encode
from letterhead.testing import plain
from letterhead.values import of_message

__all__ = ["cells", "headers", "keys", "messages", "values"]


def keys(format: str = "kafka") -> st.SearchStrategy[Any]:
    """Draw keys that a format has.

    Parameters
    ----------
    format : str, default "kafka"
        Name of a format.

    Returns
    -------
    SearchStrategy of str, int or Value
        Text; numbers of 32 bits where keys are integers; of any type where they are typed.

    Raises
    ------
    ValueError
        If there is no such format, or it holds many messages.

    Examples
    --------
    >>> from letterhead import testing
    >>> testing.keys("kip82-int").map(type).example()  # doctest: +SKIP
    <class 'int'>
    """
    traits = _traits(format)
    return plain.keys(traits.keys, traits.least).map(_key)


def values(format: str = "kafka") -> st.SearchStrategy[HeaderValue]:
    """Draw values that a format has.

    Parameters
    ----------
    format : str, default "kafka"
        Name of a format.

    Returns
    -------
    SearchStrategy of bytes, Value or None
        Bytes, or values of every type where the format has types; null where it can be.

    Raises
    ------
    ValueError
        If there is no such format, or it holds many messages.
    """
    return plain.header_values(_traits(format)).map(lambda drawn: _value(*drawn))


def headers(format: str = "kafka") -> st.SearchStrategy[Headers]:
    """Draw the headers of a message; in half of the draws the same two keys stand again and again.

    Parameters
    ----------
    format : str, default "kafka"
        Name of a format, whose keys and values they have.

    Returns
    -------
    SearchStrategy of Headers
        None to six of them.

    Raises
    ------
    ValueError
        If there is no such format, or it holds many messages.

    Examples
    --------
    >>> from hypothesis import given
    >>> import letterhead as lh
    >>> from letterhead import testing
    >>> @given(testing.headers())
    ... def test_nothing_is_lost(headers):
    ...     assert lh.decode(lh.encode(headers, "kafka"), "kafka") == headers
    >>> test_nothing_is_lost()
    """
    _traits(format)
    return plain.headers(format).map(_headers)


def messages(format: str) -> st.SearchStrategy[Headers | Message]:
    """Draw messages of a format.

    Parameters
    ----------
    format : str
        Name of a format that holds one message.

    Returns
    -------
    SearchStrategy of Headers or Message
        What :func:`letterhead.encode` takes: headers for a block, else the fields of the format. A checksum that the
        format computes is null. One is not read quite as it was: a message of the KIP-82 drafts with neither value nor
        headers has headers that are null.

    Raises
    ------
    ValueError
        If there is no such format, or it holds many messages.
    """
    if _traits(format).fields == ["headers"]:
        return headers(format)
    return plain.messages(format).map(lambda fields: Message(**{**fields, "headers": _headers(fields["headers"])}))


def cells(format: str) -> st.SearchStrategy[bytes | None]:
    """Draw the bytes of messages of a format.

    Parameters
    ----------
    format : str
        Name of a format that can be written.

    Returns
    -------
    SearchStrategy of bytes or None
        ``None`` only where the format has no bytes for a message, as ``streams`` for a null payload.

    Raises
    ------
    ValueError
        If there is no such format, or it holds many messages.

    Examples
    --------
    >>> from hypothesis import given
    >>> import letterhead as lh
    >>> from letterhead import testing
    >>> @given(testing.cells("streams-timestamped"))
    ... def test_the_bytes_are_whole(cell):
    ...     assert lh.validate(cell, "streams-timestamped") == []
    >>> test_the_bytes_are_whole()
    """
    return messages(format).map(lambda message: encode(message, format))


def _traits(format: str) -> plain.Traits:
    check_name("format", format, plain.FORMATS)
    return plain.FORMATS[format]


def _headers(drawn: Any) -> Headers:
    return Headers([Header(_key(key), _value(type, bits)) for key, type, bits in drawn])


def _key(key: Any) -> HeaderKey:
    given: HeaderKey = of_message(*key) if isinstance(key, tuple) else key
    return given


def _value(type: str | None, bits: bytes | None) -> HeaderValue:
    return bits if type is None or bits is None else of_message(type, bits)
