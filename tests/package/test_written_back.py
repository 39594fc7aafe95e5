"""What strict reading accepts is written back with the same headers, and with the same bytes but for two spellings."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import letterhead as lh
from letterhead import _native

FORMATS = [row["name"] for row in _native.formats() if row["is_"] != "batch" and row["is_target"]]


def has_longer_spelling(data: bytes, format: str) -> bool:
    """Return whether a varint has more bytes than needed, or a count of 0 could be left out."""
    block = data if format == "kafka" else data[:2]
    padded = any(data[at] >= 0x80 and data[at + 1] == 0 for at in range(len(data) - 1))
    counted = block == b"\0" if format == "kafka" else block == b"\x02\0"
    return padded or counted


@pytest.mark.parametrize("format", FORMATS)
def test_short_input_is_rewritten_unchanged_except_two_spellings(format: str) -> None:
    spelled_out = 0
    for length in range(5):
        for parts in itertools.product(b"\0\x01\x02\x03\x04\x61\x80\xff", repeat=length):
            data = bytes(parts)
            try:
                message: Any = lh.decode(data, format)
            except lh.DecodeError:
                continue
            written = lh.encode(message, format)
            assert lh.decode(written, format) == message
            if written != data:
                assert has_longer_spelling(data, format)
                assert len(written) < len(data)
                spelled_out += 1
    assert (spelled_out > 0) == (format in ("kafka", "streams"))


@pytest.mark.parametrize(
    ("format", "data", "written"),
    [
        ("kafka", "00", ""),
        ("kafka", "02008000", "020000"),
        ("streams", "0200aa", "00aa"),
        ("streams", "8000aa", "00aa"),
    ],
)
def test_longer_encoding_is_rewritten_shorter(format: str, data: str, written: str) -> None:
    assert lh.encode(lh.decode(bytes.fromhex(data), format), format).hex() == written
