"""Damage to stored cells, of known kinds at known places, so that what the library finds can be checked.

Every cell here is whole before it is damaged: it is the value of a real store, in format `streams-timestamped`:

    varint size | varint count | header * count | int64 timestamp | payload
    header: varint key_len | key | varint value_len or -1 | value

Each kind of damage breaks one rule of that layout, which no reading of the cell can then satisfy: a damaged cell is
never valid by chance. Where a cell has nothing that a kind could damage, the next kind is taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TIMESTAMP_LEN = 8
# 0xff is in no UTF-8 text.
NOT_UTF8 = b"\xff"


@dataclass(frozen=True)
class Damage:
    """What was done to a cell, and the fault that has to be found for it."""

    row: int
    kind: str
    code: str
    byte: int
    header: int | None = None
    column: str | None = None


@dataclass(frozen=True)
class _Header:
    """Where the parts of one header begin in a block."""

    key_len_at: int
    key_at: int
    key: bytes
    value_len_at: int
    value_at: int
    value: bytes | None


@dataclass(frozen=True)
class _Cell:
    """A whole cell, taken apart."""

    block: bytes
    count_len: int
    headers: list[_Header]
    rest: bytes

    def rebuilt(self, start: int, end: int, new: bytes) -> tuple[bytes, int]:
        """Replace part of the block and correct the size before it; also give where the block now begins."""
        block = self.block[:start] + new + self.block[end:]
        size = _varint(len(block))
        return size + block + self.rest, len(size)


def damage_cells(cells: Sequence[bytes], share: float, *, seed: int = 82) -> tuple[list[bytes], list[Damage]]:
    """Damage a share of messages, the same ones for the same seed; at least one unless the share is 0."""
    rng = random.Random(seed)
    how_many = min(len(cells), max(1, round(share * len(cells)))) if share > 0 else 0
    rows = sorted(rng.sample(range(len(cells)), how_many))
    damaged = list(cells)
    done: list[Damage] = []
    for number, row in enumerate(rows):
        cell = _parse(cells[row])
        # Each row has its turn of kinds; a kind that finds nothing to damage passes it on. The first never does.
        for turn in range(number, number + len(KINDS)):
            made = KINDS[turn % len(KINDS)](row, cell, rng)
            if made is not None:
                damaged[row], damage = made
                done.append(damage)
                break
    return damaged, done


def count_headers(cell: bytes) -> int:
    """Count the headers of a whole cell."""
    return len(_parse(cell).headers)


_Made = tuple[bytes, Damage] | None


def _cut_off(row: int, cell: _Cell, rng: random.Random) -> _Made:
    """End the cell inside its headers, or inside its timestamp if it has no headers."""
    size = _varint(len(cell.block))
    whole = size + cell.block + cell.rest
    length = len(cell.block) or TIMESTAMP_LEN
    return whole[: len(size) + rng.randrange(length)], Damage(row, "cell cut off", "truncated", len(size))


def _count_negative(row: int, cell: _Cell, rng: random.Random) -> _Made:
    if not cell.headers:
        return None
    data, block_at = cell.rebuilt(0, cell.count_len, _varint(-rng.randrange(1, 9)))
    return data, Damage(row, "negative count", "negative_count", block_at)


def _count_too_large(row: int, cell: _Cell, rng: random.Random) -> _Made:
    if not cell.headers:
        return None
    data, block_at = cell.rebuilt(0, cell.count_len, _varint(rng.randrange(10**6, 10**9)))
    return data, Damage(row, "count too large", "count_too_large", block_at)


def _length_negative(row: int, cell: _Cell, rng: random.Random) -> _Made:
    if not cell.headers:
        return None
    index = rng.randrange(len(cell.headers))
    header = cell.headers[index]
    data, block_at = cell.rebuilt(header.key_len_at, header.key_at, _varint(-1))
    return data, Damage(row, "negative key length", "negative_length", block_at + header.key_len_at, index)


def _bytes_left(row: int, cell: _Cell, rng: random.Random) -> _Made:
    if not cell.headers:
        return None
    end = len(cell.block)
    data, block_at = cell.rebuilt(end, end, rng.randbytes(rng.randrange(1, 9)))
    return data, Damage(row, "bytes after headers", "trailing_bytes", block_at + end)


def _key_not_utf8(row: int, cell: _Cell, rng: random.Random) -> _Made:
    indexes = [index for index, header in enumerate(cell.headers) if header.key]
    if not indexes:
        return None
    index = rng.choice(indexes)
    header = cell.headers[index]
    data, block_at = cell.rebuilt(header.key_at, header.key_at + 1, NOT_UTF8)
    return data, Damage(row, "key not UTF-8", "key_not_utf8", block_at + header.key_at, index)


def _value_too_short(row: int, cell: _Cell, rng: random.Random) -> _Made:
    last = _last(cell, rng.choice([b"retry", b"amount_cents"]))
    if last is None:
        return None
    index, header, value = last
    short = value[:-1]
    value_end = header.value_at + len(value)
    # One byte less needs a new length before the value, which is a byte long before and after.
    data, block_at = cell.rebuilt(header.value_len_at, value_end, _varint(len(short)) + short)
    byte = block_at + header.value_at
    return data, Damage(row, "number too short", "wrong_size", byte, index, header.key.decode())


def _text_not_utf8(row: int, cell: _Cell, rng: random.Random) -> _Made:
    last = _last(cell, b"tenant")
    if last is None:
        return None
    index, header, _ = last
    data, block_at = cell.rebuilt(header.value_at, header.value_at + 1, NOT_UTF8)
    return data, Damage(row, "text not UTF-8", "value_not_utf8", block_at + header.value_at, index, "tenant")


KINDS: tuple[Callable[[int, _Cell, random.Random], _Made], ...] = (
    _cut_off,
    _length_negative,
    _count_too_large,
    _count_negative,
    _bytes_left,
    _key_not_utf8,
    _value_too_short,
    _text_not_utf8,
)


def _last(cell: _Cell, key: bytes) -> tuple[int, _Header, bytes] | None:
    """Find the last header of a key, the one that becomes a column, if it has a value."""
    found = [(index, header) for index, header in enumerate(cell.headers) if header.key == key]
    index, header = found[-1] if found else (0, None)
    return (index, header, header.value) if header is not None and header.value else None


def _parse(cell: bytes) -> _Cell:
    size, block_at = _read_varint(cell, 0)
    block = cell[block_at : block_at + size]
    headers: list[_Header] = []
    count, count_len = _read_varint(block, 0) if block else (0, 0)
    at = count_len
    for _ in range(count):
        key_len, key_at = _read_varint(block, at)
        value_len_at = key_at + key_len
        value_len, value_at = _read_varint(block, value_len_at)
        value = None if value_len < 0 else block[value_at : value_at + value_len]
        headers.append(_Header(at, key_at, block[key_at:value_len_at], value_len_at, value_at, value))
        at = value_at + max(value_len, 0)
    return _Cell(block, count_len, headers, cell[block_at + size :])


def _varint(number: int) -> bytes:
    """Write a zig-zag varint of 32 bits."""
    rest = (number << 1) ^ (number >> 31)
    written = bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    rest = shift = 0
    while True:
        byte = data[at]
        at += 1
        rest |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (rest >> 1) ^ -(rest & 1), at
