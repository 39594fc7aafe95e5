"""Choose Iggy partitions by key, as the server does: :func:`partition_of`."""

from __future__ import annotations

__all__ = ["partition_of"]

_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition for a key: its XXH32 modulo the number of partitions."""
    return _xxh32(key) % partitions


def _xxh32(data: bytes) -> int:
    """Return the XXH32 of bytes with seed 0.

    Examples
    --------
    >>> hex(_xxh32(b"")), hex(_xxh32(b"abc"))
    ('0x2cc5d05', '0x32d153ff')
    """
    prime_1, prime_2, prime_3, prime_4, prime_5 = _PRIMES
    at = 0
    if len(data) >= 16:
        lanes = [(prime_1 + prime_2) & _MASK, prime_2, 0, -prime_1 & _MASK]
        while at + 16 <= len(data):
            for lane in range(4):
                word = int.from_bytes(data[at + 4 * lane : at + 4 * lane + 4], "little")
                lanes[lane] = _rotate(lanes[lane] + word * prime_2, 13) * prime_1 & _MASK
            at += 16
        digest = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        digest = prime_5
    digest = (digest + len(data)) & _MASK
    while at + 4 <= len(data):
        digest = _rotate(digest + int.from_bytes(data[at : at + 4], "little") * prime_3, 17) * prime_4 & _MASK
        at += 4
    for byte in data[at:]:
        digest = _rotate(digest + byte * prime_5, 11) * prime_1 & _MASK
    digest = (digest ^ digest >> 15) * prime_2 & _MASK
    digest = (digest ^ digest >> 13) * prime_3 & _MASK
    return digest ^ digest >> 16


def _rotate(value: int, by: int) -> int:
    value &= _MASK
    return (value << by | value >> (32 - by)) & _MASK
