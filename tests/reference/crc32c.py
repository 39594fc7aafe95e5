"""CRC-32C (Castagnoli), the checksum of Kafka's record batches.

::

    polynomial   0x1EDC6F41, taken least significant bit first: 0x82F63B78
    begins with  ffffffff, and is inverted at the end
    check        e3069283 for the bytes "123456789"
"""

from __future__ import annotations

_POLYNOMIAL = 0x82F63B78


def _of_byte(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


_TABLE = tuple(_of_byte(byte) for byte in range(256))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
