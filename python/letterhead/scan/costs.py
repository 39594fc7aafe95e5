"""How many bits it takes to say some values if they are of a type: the fewer, the better the type explains them.

Each cost is that of a code that could be read back. No such code is short for most of what is random, so a type that
makes values short says something about them: as `int64` the eight bytes of 37 take few bits, as `float64` they are a
number near 1e-322 and take all of their 64. Where two types explain the values equally well, they cost the same.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence

from letterhead.scan.readings import WINDOW_MS
from letterhead.scan.sketch import Sampled

__all__ = ["cost"]

_SELDOM = 16

_NOT_OF_IT = 16
"""Bits to say that a value is none of the type; its bytes come after that."""


def cost(type: str, values: Sequence[Sampled], *, strays: bool = False) -> float:
    """Give the bits that it takes to say distinct values.

    Parameters
    ----------
    type : str
        A type as `select` spells it, other than one that is text.
    values : sequence of Sampled
        The values, of at least one byte each.
    strays : bool, default False
        Whether a value that is none of the type costs nothing but its bytes: where they are rare among all headers,
        each of them is damage, and says nothing of the type.

    Returns
    -------
    float
        Bits.

    Examples
    --------
    >>> values = [Sampled(n.to_bytes(8, "big"), 8, 1) for n in (12, 37, 499)]
    >>> [round(cost(type, values)) for type in ("int64", "float64", "int64:le", "binary")]
    [38, 195, 195, 195]
    """
    stray = 0 if strays else _NOT_OF_IT
    name, _, order = type.partition(":")
    if name == "binary":
        return sum(map(_raw, values))
    if name == "string":
        return _text(values, stray)
    width = _WIDTHS[name]
    read = [value for value in values if len(value.head) == width == value.size]
    others = sum(_raw(value) + stray for value in values if not len(value.head) == width == value.size)
    bits = [value.head[::-1] if order == "le" else value.head for value in read]
    return others + (_CODES[name](bits) if bits else 0)


def _raw(value: Sampled) -> float:
    # One bit says that the bytes come as they are, as it does in the other codes.
    return 8 * len(value.head) + 1


# Text. -----------------------------------------------------------------------------------------------------------------

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
_CHOICE = 3.0
_SPACE = frozenset(b"\t\n\r")


def _text(values: Sequence[Sampled], stray: int) -> float:
    """Say how all texts begin and end, and then the middle of each in the alphabet that is best for them."""
    texts = [_decoded(value) for value in values]
    others = sum(_raw(value) + stray for value, text in zip(values, texts, strict=True) if text is None)
    read = [text for text in texts if text is not None]
    if not read:
        return others
    # Of a value that is not kept whole the end is not known, and nor is that of all.
    start, end = _shared(read) if all(value.whole for value in values) else ("", "")
    parts = [*filter(None, (start, end)), *(text[len(start) : len(text) - len(end)] for text in read)]
    return others + min(
        _CHOICE + sum(1 + _spelt(text, alphabet) for text in parts) for alphabet in map(frozenset, _ALPHABETS)
    )


def _shared(texts: Sequence[str]) -> tuple[str, str]:
    """Give what all texts begin and end with, where there are several."""
    if len(texts) < 2:
        return "", ""
    start = _prefix(texts)
    return start, _prefix([text[len(start) :][::-1] for text in texts])[::-1]


def _prefix(texts: Sequence[str]) -> str:
    # What the first and the last in order begin with, those between them do, too.
    first, last = min(texts), max(texts)
    same = next((place for place, char in enumerate(first) if char != last[place]), len(first))
    # Small numbers all begin with zeros; in text each of those has its price.
    return first[:same] if first[:same].isprintable() else ""


def _spelt(text: str, alphabet: frozenset[int]) -> float:
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
            # Of all pairs of bytes one in 34 is a character that can be seen, of triples one in 240.
            bits += (5.5 if char.isprintable() else 9) * len(char.encode())
    return bits


def _decoded(value: Sampled) -> str | None:
    # Where only the head is kept, the last character may be cut.
    for cut in range(1 if value.whole else 4):
        try:
            return value.head[: len(value.head) - cut].decode()
        except UnicodeDecodeError:
            continue
    return None


# Numbers. --------------------------------------------------------------------------------------------------------------


def _universal(number: int) -> int:
    """Bits of a code for all whole numbers in which small ones are short."""
    return 2 * (abs(number) + 1).bit_length() - 1 + (number < 0)


def _together(numbers: Sequence[int], where: float) -> float:
    """Say where numbers lie, how far apart they are, and each of them within that."""
    low, high = min(numbers), max(numbers)
    return where + _universal(high - low) + len(numbers) * (1 + math.log2(high - low + 1))


def _numbers(numbers: Sequence[int], width: int, where: float | None = None) -> float:
    """Say each number by itself, or all of them together, whichever is shorter."""
    raw = 8 * width + 1
    each = sum(min(1 + _universal(number), raw) for number in numbers)
    if where is None:
        # Whole numbers that need all of their bits are seldom.
        where = min(_universal(min(numbers)), raw + _SELDOM)
    return min(each, _together(numbers, where))


def _signed(cells: Sequence[bytes]) -> float:
    return _numbers([int.from_bytes(cell, "big", signed=True) for cell in cells], len(cells[0]))


def _unsigned(cells: Sequence[bytes]) -> float:
    return _numbers([int.from_bytes(cell, "big") for cell in cells], len(cells[0]))


def _times(cells: Sequence[bytes]) -> float:
    times = [int.from_bytes(cell, "big", signed=True) for cell in cells]
    if all(WINDOW_MS[0] <= time < WINDOW_MS[1] for time in times):
        # One of the years that people live in is soon said.
        return _numbers(times, 8, where=math.log2(WINDOW_MS[1] - WINDOW_MS[0]))
    return _numbers(times, 8)


def _floats(cells: Sequence[bytes]) -> float:
    """Say which exponents there are, then each value's, and its fraction, or its digits where few are enough."""
    raw = 8 * len(cells[0]) + 1
    code, fraction, bias, digits = (">d", 52, 1023, 15) if len(cells[0]) == 8 else (">f", 23, 127, 6)
    exponents: Counter[int] = Counter()
    bits = 0.0
    for cell in cells:
        whole, number = int.from_bytes(cell, "big"), struct.unpack(code, cell)[0]
        exponent = (whole >> fraction & (2 * bias + 1)) - bias
        if number == 0:
            bits += 2
        elif abs(exponent) > bias // 8 + 32:
            # Nothing that is measured is of this size; whole numbers are, when they are taken for floats.
            bits += raw
        else:
            exponents[exponent if number > 0 else exponent + 4 * bias] += 1
            body = whole & ((1 << fraction) - 1)
            zeros = (body & -body).bit_length() - 1 if body else fraction
            short: float = min(fraction, fraction - zeros + 6)
            if 1e-9 < abs(number) < 1e15:
                spelt = f"{number:.{digits - 1}e}".partition("e")[0].rstrip("0").replace(".", "").lstrip("-")
                short = min(short, 3.33 * len(spelt) + 4)
            bits += 1 + short
    count = sum(exponents.values())
    # Each exponent and sign that there is, how often it is, and then the exponent of each value.
    bits += sum(_universal((exponent + bias) % (4 * bias) - bias) for exponent in exponents)
    bits += len(exponents) * math.log2(count + 1)
    bits += sum(each * math.log2(count / each) for each in exponents.values())
    if count == len(cells):
        # Floats of one sign are in the order of their bits: they can be close together, too.
        where = 1 + fraction + _universal(next(iter(exponents)))
        bits = min(bits, _together([int.from_bytes(cell, "big") for cell in cells], where))
    return min(bits, raw * len(cells))


def _uuids(cells: Sequence[bytes]) -> float:
    raw = 129.0 * len(cells)
    sound = [cell[8] >> 6 == 2 and 1 <= cell[6] >> 4 <= 8 for cell in cells]
    # RFC 9562 fixes two bits and leaves half of the versions; others are said to be none.
    return min(raw, sum(126.0 if each else 129.0 + _NOT_OF_IT for each in sound))


def _bools(cells: Sequence[bytes]) -> float:
    return sum(2 if cell[0] <= 1 else 9 + _NOT_OF_IT for cell in cells)


def _chars(cells: Sequence[bytes]) -> float:
    # Java's char is rare in headers: the ASCII ones are said in about as many bits as the number that they are.
    return sum(15 if 0x20 <= int.from_bytes(cell, "big") < 0x7F else 17 for cell in cells)


_CODES: dict[str, Callable[[Sequence[bytes]], float]] = {
    "bool": _bools, "char": _chars, "uuid": _uuids, "timestamp_ms": _times, "float32": _floats, "float64": _floats,
    **{f"int{8 * width}": _signed for width in (1, 2, 4, 8, 16)},
    **{f"uint{8 * width}": _unsigned for width in (1, 2, 4, 8, 16)},
}  # fmt: skip

_WIDTHS: dict[str, int] = {
    "bool": 1, "char": 2, "uuid": 16, "timestamp_ms": 8, "float32": 4, "float64": 8,
    **{f"{sign}int{8 * width}": width for sign in ("", "u") for width in (1, 2, 4, 8, 16)},
}  # fmt: skip
