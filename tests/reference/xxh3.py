"""The checksums of xxHash that layouts use: XXH3 of 64 bits (Iggy's batches) and XXH32 (LZ4 frames), with seed 0.

Written from the specification (``xxhash_spec.md`` of the xxHash project). XXH3 goes by the length of the input:

::

    0        a constant
    1–16     one or two words, mixed
    17–128   pairs of 16 bytes from both ends towards the middle, mixed with the secret
    129–240  16 bytes after 16 bytes, mixed with the secret
    241–     eight accumulators of 64 bits take stripes of 64 bytes; after 16 stripes they are scrambled
"""

from __future__ import annotations

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
"""192 bytes that are part of the algorithm."""

_PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_PRIME64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_PRIME_MX1 = 0x165667919E3779F9
_PRIME_MX2 = 0x9FB21C651E98DF25

_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1

_STRIPE_LEN = 64
_STRIPES_A_BLOCK = (len(_SECRET) - _STRIPE_LEN) // 8


def xxh3_64(data: bytes) -> int:
    """Return the XXH3 of some bytes, 64 bits."""
    size = len(data)
    if size == 0:
        return _avalanche64(_word(_SECRET, 56) ^ _word(_SECRET, 64))
    if size <= 3:
        return _upto_3(data)
    if size <= 8:
        return _upto_8(data)
    if size <= 16:
        return _upto_16(data)
    if size <= 128:
        return _upto_128(data)
    return _upto_240(data) if size <= 240 else _long(data)


def xxh32(data: bytes) -> int:
    """Return the XXH32 of some bytes, 32 bits."""
    prime1, two, three, four, five = _PRIME32
    at = 0
    if len(data) >= 16:
        lanes = [prime1 + two, two, 0, -prime1]
        while len(data) - at >= 16:
            for lane in range(4):
                mixed = (lanes[lane] + _half(data, at + 4 * lane) * two) & _MASK32
                lanes[lane] = _rotated(mixed, 13, 32) * prime1 & _MASK32
            at += 16
        accumulator = sum(_rotated(lane, turn, 32) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        accumulator = five
    accumulator += len(data)
    while len(data) - at >= 4:
        accumulator = _rotated((accumulator + _half(data, at) * three) & _MASK32, 17, 32) * four
        at += 4
    for byte in data[at:]:
        accumulator = _rotated((accumulator + byte * five) & _MASK32, 11, 32) * prime1
    accumulator &= _MASK32
    accumulator = (accumulator ^ accumulator >> 15) * two & _MASK32
    accumulator = (accumulator ^ accumulator >> 13) * three & _MASK32
    return accumulator ^ accumulator >> 16


def _upto_3(data: bytes) -> int:
    combined = data[-1] | len(data) << 8 | data[0] << 16 | data[len(data) >> 1] << 24
    return _avalanche64(combined ^ _half(_SECRET, 0) ^ _half(_SECRET, 4))


def _upto_8(data: bytes) -> int:
    combined = _half(data, len(data) - 4) | _half(data, 0) << 32
    mixed = combined ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
    mixed ^= _rotated(mixed, 49, 64) ^ _rotated(mixed, 24, 64)
    mixed = mixed * _PRIME_MX2 & _MASK64
    mixed ^= (mixed >> 35) + len(data)
    mixed = mixed * _PRIME_MX2 & _MASK64
    return mixed ^ mixed >> 28


def _upto_16(data: bytes) -> int:
    low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
    high = _word(data, len(data) - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche3(len(data) + swapped + high + _folded(low, high))


def _upto_128(data: bytes) -> int:
    size = len(data)
    mixed = size * _PRIME64[0]
    for pair in range((size - 1) // 32 + 1):
        mixed += _mix16(data, 16 * pair, 32 * pair) + _mix16(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche3(mixed)


def _upto_240(data: bytes) -> int:
    size = len(data)
    mixed = size * _PRIME64[0] + sum(_mix16(data, 16 * part, 16 * part) for part in range(8))
    mixed = _avalanche3(mixed)
    mixed += sum(_mix16(data, 16 * part, 16 * (part - 8) + 3) for part in range(8, size // 16))
    return _avalanche3(mixed + _mix16(data, size - 16, 136 - 17))


def _long(data: bytes) -> int:
    accumulators = [
        _PRIME32[2], *_PRIME64[:4], _PRIME32[1], _PRIME64[4], _PRIME32[0]
    ]  # fmt: skip
    stripes = (len(data) - 1) // _STRIPE_LEN  # the last one, whole or not, is taken from the end below
    for stripe in range(stripes):
        place = stripe % _STRIPES_A_BLOCK
        _accumulate(accumulators, data, stripe * _STRIPE_LEN, 8 * place)
        if place == _STRIPES_A_BLOCK - 1:
            _scramble(accumulators)
    _accumulate(accumulators, data, len(data) - _STRIPE_LEN, len(_SECRET) - _STRIPE_LEN - 7)
    mixed = len(data) * _PRIME64[0]
    for pair in range(4):
        left = accumulators[2 * pair] ^ _word(_SECRET, 11 + 16 * pair)
        right = accumulators[2 * pair + 1] ^ _word(_SECRET, 11 + 16 * pair + 8)
        mixed += _folded(left, right)
    return _avalanche3(mixed)


def _accumulate(accumulators: list[int], data: bytes, at: int, secret_at: int) -> None:
    for lane in range(8):
        word = _word(data, at + 8 * lane)
        key = word ^ _word(_SECRET, secret_at + 8 * lane)
        accumulators[lane ^ 1] = accumulators[lane ^ 1] + word & _MASK64
        accumulators[lane] = accumulators[lane] + (key & _MASK32) * (key >> 32) & _MASK64


def _scramble(accumulators: list[int]) -> None:
    for lane, accumulator in enumerate(accumulators):
        mixed = accumulator ^ accumulator >> 47 ^ _word(_SECRET, len(_SECRET) - _STRIPE_LEN + 8 * lane)
        accumulators[lane] = mixed * _PRIME32[0] & _MASK64


def _mix16(data: bytes, at: int, secret_at: int) -> int:
    low = _word(data, at) ^ _word(_SECRET, secret_at)
    high = _word(data, at + 8) ^ _word(_SECRET, secret_at + 8)
    return _folded(low, high)


def _folded(left: int, right: int) -> int:
    product = left * right
    return product & _MASK64 ^ product >> 64


def _avalanche64(mixed: int) -> int:
    mixed = (mixed ^ mixed >> 33) * _PRIME64[1] & _MASK64
    mixed = (mixed ^ mixed >> 29) * _PRIME64[2] & _MASK64
    return mixed ^ mixed >> 32


def _avalanche3(mixed: int) -> int:
    mixed &= _MASK64
    mixed = (mixed ^ mixed >> 37) * _PRIME_MX1 & _MASK64
    return mixed ^ mixed >> 32


def _rotated(word: int, left: int, width: int) -> int:
    word &= (1 << width) - 1
    return (word << left | word >> width - left) & (1 << width) - 1


def _half(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")
