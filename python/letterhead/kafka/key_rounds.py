"""Rounds of the key derivation in encrypted keys: :func:`check_rounds`.

PKCS #8 (PBES1, PBES2 with PBKDF2) and PKCS #12 have them as an integer after a salt: SEQUENCE { OCTET STRING, INTEGER, … }. OpenSSL
derives the key for as many rounds as a file states, for hours, and no signal ends it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import pairwise

__all__ = ["check_rounds"]

MOST_ROUNDS = 10_000_000
"""Seconds of work; OWASP recommends 600,000 rounds."""

_SEQUENCE, _INTEGER, _OCTETS = 0x30, 0x02, 0x04
_CONSTRUCTED = 0x20
_PEM = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END")


def check_rounds(data: bytes, location: str) -> None:
    """Raise ValueError if the encryption of a key, in PEM or DER, takes more than ten million rounds."""
    parts = [base64.b64decode(match[1]) for match in _PEM.finditer(data)] or [data]
    if any(rounds > MOST_ROUNDS for part in parts for rounds in _rounds(part)):
        raise ValueError(
            f"{location}: the encryption of the key takes more than {MOST_ROUNDS:,} rounds: encrypt it again with fewer, as in "
            f"`openssl pkcs8 -topk8 -iter 600000`"
        )


def _rounds(data: bytes) -> Iterator[int]:
    """Yield integers that follow octets in a sequence."""
    pending = [data]
    while pending:
        elements = _elements(pending.pop())
        for (tag, _), (next_tag, number) in pairwise(elements):
            if (tag, next_tag) == (_OCTETS, _INTEGER):
                yield int.from_bytes(number, "big", signed=True)
        pending += [content for tag, content in elements if tag & _CONSTRUCTED or tag == _OCTETS]


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return the elements of DER, each with its tag; none if the bytes are not DER."""
    elements, position = [], 0
    while position + 2 <= len(data):
        tag, length = data[position], data[position + 1]
        position += 2
        if length == 0x80:  # of BER, up to two zeros, which are read as an element
            length = len(data) - position
        elif length > 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[position : position + size], "big")
            position += size
        if position + length > len(data):
            return []
        elements.append((tag, data[position : position + length]))
        position += length
    return elements if position == len(data) else []
