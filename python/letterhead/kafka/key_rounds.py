"""Limit the rounds of key derivation in encrypted keys: :func:`check_rounds`.

PKCS #8 (PBES1, PBES2 with PBKDF2) and PKCS #12 store their number as an integer after a salt: SEQUENCE { OCTET
STRING, INTEGER, … }. OpenSSL runs as many rounds as a file states, possibly for hours, and cannot be interrupted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import pairwise

__all__ = ["check_rounds"]

MOST_ROUNDS = 10_000_000
"""Maximum number of rounds, which take a few seconds. OWASP recommends 600,000."""

_INTEGER, _OCTETS = 0x02, 0x04
_CONSTRUCTED = 0x20
_LONG_TAG = 0x1F
_TAG_NUMBER = re.compile(rb"[\x80-\xff]*[\x00-\x7f]")
_MOST_NESTED = 30
"""Maximum nesting depth of elements that OpenSSL accepts."""

# OpenSSL ends the text at any hyphen.
_PEM = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----([^-]*)")


def check_rounds(data: bytes, location: str) -> None:
    """Raise ValueError if the encryption of a key, in PEM or DER, takes more than ten million rounds."""
    parts = [_decode_pem(match[1]) for match in _PEM.finditer(data)] or [data]
    if any(rounds > MOST_ROUNDS for part in parts for rounds in _rounds(part)):
        raise ValueError(
            f"{location}: the encryption of the key takes more than {MOST_ROUNDS:,} rounds: encrypt it again with fewer, as in "
            f"`openssl pkcs8 -topk8 -iter 600000`"
        )


def _decode_pem(text: bytes) -> bytes:
    """Return the bytes of a PEM text; empty if it is not base64, which OpenSSL rejects."""
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


def _rounds(data: bytes) -> Iterator[int]:
    """Yield integers that follow an octet string in a sequence."""
    pending = [(data[: _element(data, 0)[2]], 0)]  # OpenSSL ignores bytes after the key
    while pending:
        content, depth = pending.pop()
        elements = _elements(content)
        for (tag, _), (next_tag, number) in pairwise(elements):
            if (tag & ~_CONSTRUCTED, next_tag) == (_OCTETS, _INTEGER):
                yield int.from_bytes(number, "big", signed=True)
        if depth < _MOST_NESTED:
            pending += [(inner, depth + 1) for tag, inner in elements if tag & _CONSTRUCTED or tag == _OCTETS]


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return the elements of BER, each with its tag; none if the bytes are not BER."""
    elements, position = [], 0
    while position < len(data):
        tag, start, position = _element(data, position)
        if position > len(data):
            return []
        elements.append((tag, data[start:position]))
    return elements


def _element(data: bytes, position: int) -> tuple[int, int, int]:
    """Return the tag of an element, and the start and end of its content; the end of truncated data lies beyond the data."""
    tag, start, length = _header(data, position)
    if length is not None:
        return tag, start, start + length
    # An element of indefinite length ends with two zero bytes, and may contain other such elements.
    open_elements, at = 1, start
    while open_elements and at < len(data):
        inner, at, length = _header(data, at)
        if length is None:
            open_elements += 1
        elif inner == length == 0:
            open_elements -= 1
        else:
            at += length
    return tag, start, at if not open_elements else len(data) + 1


def _header(data: bytes, position: int) -> tuple[int, int, int | None]:
    """Return tag, content start and length, or None for an indefinite length; BER has several forms of each."""
    cut = (0, len(data) + 1, 0)
    if position >= len(data):
        return cut
    tag = data[position]
    position += 1
    if tag & _LONG_TAG == _LONG_TAG:
        match = _TAG_NUMBER.match(data, position)
        if match is None:
            return cut
        tag, position = tag - _LONG_TAG + (match[0][-1] & _LONG_TAG), match.end()
    if position >= len(data):
        return cut
    length, position = data[position], position + 1
    if length == 0x80:
        return tag, position, None
    if length > 0x80:
        size = length & 0x7F
        length, position = int.from_bytes(data[position : position + size], "big"), position + size
    return tag, position, length
