"""Zig-zag varints, as ``org.apache.kafka.common.utils.ByteUtils`` writes them.

::

    value   (n << 1) ^ (n >> 31), then base 128, least significant group first
    byte    ┌───┬─────────────┐
            │ m │ seven bits  │  m = 1: more bytes follow; at most five, or ten where a number has 64 bits
            └───┴─────────────┘

A fifth byte has room for 35 bits where a number has 32. Java shifts the upper three out in silence; so does a lenient
read here, and a strict one refuses. The same goes for the tenth byte of a number of 64 bits.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_LEN = 10
"""The bytes of the longest varint there can be, of 64 bits."""


class Spelled(NamedTuple):
    """A varint that was read: its unsigned bits, its bytes, and whether bits did not fit."""

    bits: int
    size: int
    lost: bool


class Truncated(Exception):
    """The bytes end inside a varint."""


class TooLong(Exception):
    """The last byte that there can be announces another."""


def read_unsigned(data: bytes, width: int = 32) -> Spelled:
    """Read an unsigned varint of 32 or 64 bits at the front of some bytes."""
    max_len = -(-width // 7)
    bits = 0
    for index, byte in enumerate(data[:max_len]):
        bits |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return Spelled(bits & _mask(width), index + 1, bits > _mask(width))
    raise TooLong if len(data) >= max_len else Truncated


def write_unsigned(bits: int) -> bytes:
    """Write an unsigned varint in as few bytes as it takes."""
    out = bytearray()
    while bits >= 0x80:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)
    return bytes(out)


def zigzag(number: int, width: int = 32) -> int:
    """Fold a signed number into an unsigned one: 0, -1, 1, -2 … become 0, 1, 2, 3 and so on."""
    return (number << 1 ^ number >> width - 1) & _mask(width)


def unzigzag(bits: int) -> int:
    """Undo ``zigzag``."""
    return bits >> 1 ^ -(bits & 1)


def write(number: int, width: int = 32) -> bytes:
    """Write a signed number, such as a length or -1, as a zig-zag varint."""
    return write_unsigned(zigzag(number, width))


def _mask(width: int) -> int:
    return (1 << width) - 1
