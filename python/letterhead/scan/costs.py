"""Number of bits needed to encode values as a type; fewer bits mean that the type explains the values better.

All codes are decodable. Most random values have no short code, so short codes are evidence for a type. For example, the
eight bytes of the integer 37 take few bits as `int64`; as `float64`, they are a number near 1e-322 and take all 64
bits. Types that explain the values equally well have equal costs.
"""

from __future__ import annotations

import math
import struct
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Sequence

from letterhead.scan.readings import CANDIDATE_TYPES, WINDOW_MS
from letterhead.scan.sketch import Sampled

_RARE = 16

_STRAY_BITS = 16
"""Cost of marking a value of another type in bits; the bytes of the value are added."""


def cost(type: str, values: Sequence[Sampled], *, strays: bool = False) -> float:
    """Return the number of bits needed to encode distinct, non-empty values as a type; not for types that parse text.

    With `strays`, a value of another type costs only its bytes, because rare values of another type are damage rather than
    evidence against the type.

    Examples
    --------
    >>> values = [Sampled(n.to_bytes(8, "big"), 8, 1) for n in (12, 37, 499)]
    >>> [round(cost(type, values)) for type in ("int64", "float64", "int64:le", "binary")]
    [38, 195, 195, 195]
    """
    stray = 0 if strays else _STRAY_BITS
    name, _, order = type.partition(":")
    if name == "binary":
        return sum(map(_raw_cost, values))
    if name == "string":
        return _text_cost(values, stray)
    width = _WIDTHS[name]
    whole_values = [value.head for value in values if len(value.head) == width == value.size]
    others = sum(_raw_cost(value) + stray for value in values if not len(value.head) == width == value.size)
    if not whole_values:
        return others
    return others + _number_cost(name, [head[::-1] for head in whole_values] if order == "le" else whole_values)


_WIDTHS = {reading.type: reading.width or 0 for reading in CANDIDATE_TYPES}


def _raw_cost(value: Sampled) -> float:
    # As in the other codes, one bit marks raw bytes.
    return 8 * len(value.head) + 1


_ALPHABETS = (
    b"0123456789",
    b"0123456789abcdef",
    b"0123456789ABCDEF",
    b"abcdefghijklmnopqrstuvwxyz",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    b"0123456789abcdefghijklmnopqrstuvwxyz-_.",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:/",
    bytes(range(0x20, 0x7F)),
)
_ALPHABET_BITS = 3.0
_SPACE = frozenset(b"\t\n\r")


def _text_cost(values: Sequence[Sampled], stray: int) -> float:
    """Return the cost of encoding the common prefix and suffix of all texts, and the rest in the best alphabet."""
    texts = [_decode(value) for value in values]
    others = sum(_raw_cost(value) + stray for value, text in zip(values, texts, strict=True) if text is None)
    valid_texts = [text for text in texts if text is not None]
    if not valid_texts:
        return others
    # The end of a truncated value is unknown.
    start, end = _find_common_affixes(valid_texts) if all(value.whole for value in values) else ("", "")
    parts = [*filter(None, (start, end)), *(text[len(start) : len(text) - len(end)] for text in valid_texts)]
    return others + min(
        _ALPHABET_BITS + sum(1 + _alphabet_cost(text, alphabet) for text in parts)
        for alphabet in map(frozenset, _ALPHABETS)
    )


def _find_common_affixes(texts: Sequence[str]) -> tuple[str, str]:
    """Return the common prefix and suffix of several texts."""
    if len(texts) < 2:
        return "", ""
    start = _prefix(texts)
    return start, _prefix([text[len(start) :][::-1] for text in texts])[::-1]


def _prefix(texts: Sequence[str]) -> str:
    # The common prefix of the smallest and the largest text is the common prefix of all texts.
    first, last = min(texts), max(texts)
    start = first[: next((index for index, char in enumerate(first) if char != last[index]), len(first))]
    # Reject an unprintable prefix: zero bytes indicate small binary numbers rather than text.
    return start if start.isprintable() else ""


def _alphabet_cost(text: str, alphabet: frozenset[int]) -> float:
    common, rare = math.log2(len(alphabet)) + 0.1, math.log2(95) + 3.8
    bits = 0.0
    for char in text:
        code = ord(char)
        if code in alphabet:
            bits += common
        elif 0x20 <= code < 0x7F:
            bits += rare
        elif code < 0x80:
            bits += 10 if code in _SPACE else 16
        else:
            # One in 34 random pairs of bytes is a printable character, and one in 240 triples.
            bits += (5.5 if char.isprintable() else 9) * len(char.encode())
    return bits


def _decode(value: Sampled) -> str | None:
    try:
        # The last character of a truncated value may be incomplete.
        return getincrementaldecoder("utf-8")().decode(value.head, final=value.whole)
    except UnicodeDecodeError:
        return None


def _universal_cost(number: int) -> int:
    """Return the length of an integer in a universal code in bits; small integers have short codes."""
    return 2 * (abs(number) + 1).bit_length() - 1 + (number < 0)


def _range_cost(numbers: Sequence[int], position_bits: float) -> float:
    """Return the cost of encoding the position and width of a range, and each number within the range."""
    low, high = min(numbers), max(numbers)
    return position_bits + _universal_cost(high - low) + len(numbers) * (1 + math.log2(high - low + 1))


def _integers_cost(numbers: Sequence[int], width: int, position_bits: float | None = None) -> float:
    """Return the cost of encoding each number separately, or all within their range, whichever is less."""
    raw = 8 * width + 1
    each_by_itself = sum(min(1 + _universal_cost(number), raw) for number in numbers)
    if position_bits is None:
        # Limit the cost to the cost of a raw number, plus a penalty because such large integers are rare.
        position_bits = min(_universal_cost(min(numbers)), raw + _RARE)
    return min(each_by_itself, _range_cost(numbers, position_bits))


def _number_cost(name: str, values: Sequence[bytes]) -> float:
    """Return the cost of encoding big-endian values of one size."""
    if name == "bool":
        return sum(2 if value[0] <= 1 else 9 + _STRAY_BITS for value in values)
    if name == "char":
        # Java's char is rare in headers, so an ASCII char costs about as much as the same number.
        return sum(15 if 0x20 <= int.from_bytes(value, "big") < 0x7F else 17 for value in values)
    if name == "uuid":
        # RFC 9562 fixes two bits, and defines half of the possible versions.
        has_rfc_bits = (value[8] >> 6 == 2 and 1 <= value[6] >> 4 <= 8 for value in values)
        return min(129.0 * len(values), sum(126.0 if is_rfc else 129.0 + _STRAY_BITS for is_rfc in has_rfc_bits))
    if name.startswith("float"):
        return _floats_cost(values)
    numbers = [int.from_bytes(value, "big", signed=not name.startswith("uint")) for value in values]
    usual = name == "timestamp_ms" and all(WINDOW_MS[0] <= time < WINDOW_MS[1] for time in numbers)
    return _integers_cost(numbers, len(values[0]), math.log2(WINDOW_MS[1] - WINDOW_MS[0]) if usual else None)


def _floats_cost(values: Sequence[bytes]) -> float:
    """Return the cost of encoding the exponents, and each value as exponent and fraction, or as a few decimal digits."""
    raw = 8 * len(values[0]) + 1
    code, fraction, bias, digits = (">d", 52, 1023, 15) if len(values[0]) == 8 else (">f", 23, 127, 6)
    exponents: Counter[int] = Counter()
    bits = 0.0
    for value in values:
        whole, number = int.from_bytes(value, "big"), struct.unpack(code, value)[0]
        exponent = (whole >> fraction & (2 * bias + 1)) - bias
        if number == 0:
            bits += 2
        elif abs(exponent) > bias // 8 + 32:
            # Measured values do not have this magnitude, but integers that are read as floats do.
            bits += raw
        else:
            exponents[exponent if number > 0 else exponent + 4 * bias] += 1
            body = whole & ((1 << fraction) - 1)
            zeros = (body & -body).bit_length() - 1 if body else fraction
            short: float = min(fraction, fraction - zeros + 6)
            if 1e-9 < abs(number) < 1e15:
                decimal_digits = f"{number:.{digits - 1}e}".partition("e")[0].rstrip("0").replace(".", "").lstrip("-")
                short = min(short, 3.33 * len(decimal_digits) + 4)
            bits += 1 + short
    count = sum(exponents.values())
    # Add the cost of each distinct exponent and sign with its count, and of the exponent of each value.
    bits += sum(_universal_cost((exponent + bias) % (4 * bias) - bias) for exponent in exponents)
    bits += len(exponents) * math.log2(count + 1)
    bits += sum(occurrences * math.log2(count / occurrences) for occurrences in exponents.values())
    if count == len(values):
        # Floats of one sign have the same order as their bits, so the range of the bits may be small.
        position_bits = 1 + fraction + _universal_cost(next(iter(exponents)))
        bits = min(bits, _range_cost([int.from_bytes(value, "big") for value in values], position_bits))
    return min(bits, raw * len(values))
