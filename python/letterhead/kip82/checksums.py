"""Checksum of any part of a file in constant time: :class:`Checksums`.

After damage, a message may begin at any byte, so the candidates to verify overlap. Reading each candidate would take
quadratic time. CRC-32 is linear: the checksum of a part is computed from the checksums of all bytes before its start
and of all bytes before its end. These prefix checksums are stored for every 4 KiB.
"""

from __future__ import annotations

import os
import zlib
from array import array
from functools import lru_cache

__all__ = ["Checksums"]

_STEP = 1 << 12
_READ_BYTES = 1 << 20
_POLYNOMIAL = 0xEDB88320
_POLYNOMIAL_ONE = 1 << 31
"""Polynomial 1; the first bit is the highest power."""


class Checksums:
    """CRC-32 of any part of a file after a given position."""

    def __init__(self, descriptor: int, begin: int) -> None:
        self.descriptor = descriptor
        self.begin = begin
        self._steps = array("I", [0])

    def part(self, start: int, end: int) -> int:
        """Return the checksum of the bytes between two positions."""
        return self._before(end) ^ _product(_power(end - start), self._before(start))

    def _before(self, position: int) -> int:
        step, rest = divmod(position - self.begin, _STEP)
        while step >= len(self._steps):
            block = os.pread(self.descriptor, _READ_BYTES, self.begin + (len(self._steps) - 1) * _STEP)
            if len(block) < _STEP:
                raise OSError("the file became shorter while it was read")
            for start in range(0, len(block) - _STEP + 1, _STEP):
                self._steps.append(zlib.crc32(block[start : start + _STEP], self._steps[-1]))
        return zlib.crc32(os.pread(self.descriptor, rest, position - rest), self._steps[step])


def _product(left: int, right: int) -> int:
    """Multiply two 32-bit polynomials, modulo the polynomial of CRC-32."""
    product = 0
    while right:
        if right & _POLYNOMIAL_ONE:
            product ^= left
        right = right << 1 & 0xFFFFFFFF
        left = left >> 1 ^ (_POLYNOMIAL if left & 1 else 0)
    return product


def _power(count: int) -> int:
    """Return x^(8·count) modulo the CRC polynomial: the factor that appends ``count`` bytes to a checksum."""
    large, small = divmod(count, _STEP)
    return _product(_power_of_bytes(small), _power_of_steps(large))


@lru_cache(_STEP)
def _power_of_bytes(count: int) -> int:
    if count < 4:
        return _POLYNOMIAL_ONE >> 8 * count
    return _product(_power_of_bytes(count // 2), _power_of_bytes(count - count // 2))


@lru_cache(_STEP)
def _power_of_steps(count: int) -> int:
    if count < 2:
        return _power_of_bytes(_STEP) if count else _POLYNOMIAL_ONE
    return _product(_power_of_steps(count // 2), _power_of_steps(count - count // 2))
