"""What values could be read as: for each type of `select`, how many of the values it fits, and what they would be.

A tally is of a fixed size and adds up. It is taken over every value; which reading is the likely one is for
:mod:`letterhead.scan.guesses` to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead.conventions.amqp import CONSTRUCTORS

__all__ = ["READINGS", "SHAPES", "WINDOW_MS", "Reading", "Tally", "Values"]

WINDOW_MS = (946_684_800_000, 4_102_444_800_000)
"""The years 2000 to 2099 in milliseconds since 1970: times outside of them are odd, and not impossible."""

# Nothing that text spells is longer, and a traceparent has 55 characters.
_LONGEST = 64


@dataclass
class Tally:
    """How a reading fits the values of a key.

    Attributes
    ----------
    fits : int
        Values that it reads.
    odd : int
        Of those, the ones that would be unusual: text with control characters, floats that are denormal, not a number
        or beyond any measure, times outside of 2000 to 2099, UUIDs without the bits of RFC 9562, digits after a 0; and whole
        numbers below 0.
    low, high : int, float or None
        The least and the greatest number that was read, infinities left out.
    """

    fits: int = 0
    odd: int = 0
    low: int | float | None = None
    high: int | float | None = None

    def merge(self, other: Tally) -> None:
        """Add what another one has."""
        self.fits += other.fits
        self.odd += other.odd
        self.low = min((x for x in (self.low, other.low) if x is not None), default=None)
        self.high = max((x for x in (self.high, other.high) if x is not None), default=None)


class Reading(NamedTuple):
    """One way to read a value.

    Attributes
    ----------
    type : str
        As ``select`` spells it; of a shape of text, a name.
    width : int or None
        Bytes of each value, where all have the same.
    tally : callable
        Reads the values.
    """

    type: str
    width: int | None
    tally: Callable[[Values], Tally]


class Values:
    """Distinct values of a key, none of them null, and how often each was seen."""

    def __init__(self, values: Any, counts: Any) -> None:
        self.values = values
        self.counts = counts
        offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
        self.offsets = offsets.astype(np.int64)
        self.sizes = np.diff(self.offsets)
        data = values.buffers()[2]
        self.data = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)

    def of_width(self, width: int) -> tuple[Any, Any]:
        """Give the values of so many bytes, as a matrix of bytes, and how often each was seen."""
        if width not in self._by_width:
            chosen = np.flatnonzero(self.sizes == width)
            places = self.offsets[chosen][:, None] + np.arange(width)
            self._by_width[width] = np.ascontiguousarray(self.data[places]), self.counts[chosen]
        return self._by_width[width]

    def matching(self, pattern: str) -> Any:
        """Say which values are short ASCII text that a pattern matches from end to end."""
        found = np.zeros(len(self.values), bool)
        chosen, text = self._short_ascii
        if len(chosen):
            matches = pc.match_substring_regex(text, rf"\A(?:{pattern})\z")
            found[chosen] = matches.to_numpy(zero_copy_only=False)
        return found

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first byte and the last one of each value; 0 where there is none."""
        filled = self.sizes > 0
        first, last = np.zeros(len(self.sizes), np.uint8), np.zeros(len(self.sizes), np.uint8)
        first[filled] = self.data[self.offsets[:-1][filled]]
        last[filled] = self.data[self.offsets[1:][filled] - 1]
        return first, last

    @cached_property
    def _by_width(self) -> dict[int, tuple[Any, Any]]:
        return {}

    @cached_property
    def _short_ascii(self) -> tuple[Any, Any]:
        unprintable = self.per_value((self.data < 0x20) | (self.data > 0x7E))
        chosen = np.flatnonzero((unprintable == 0) & (self.sizes > 0) & (self.sizes <= _LONGEST))
        return chosen, self.values.take(pa.array(chosen))

    def per_value(self, bytes_with: Any) -> Any:
        """Count the bytes of each value for which something holds."""
        sums = np.concatenate([[0], np.cumsum(bytes_with, dtype=np.int64)])
        return sums[self.offsets[1:]] - sums[self.offsets[:-1]]


# Bytes. ----------------------------------------------------------------------------------------------------------------


def _binary(values: Values) -> Tally:
    return Tally(int(values.counts.sum()))


def _string(values: Values) -> Tally:
    controls = values.per_value((values.data < 0x20) | (values.data == 0x7F)) > 0
    not_utf8 = np.zeros(len(values.values), bool)
    data, offsets = values.data.tobytes(), values.offsets.tolist()
    # ASCII is UTF-8; of the others Python knows which are, and which can be seen.
    for place in np.flatnonzero(values.per_value(values.data > 0x7F)).tolist():
        try:
            controls[place] |= not data[offsets[place] : offsets[place + 1]].decode().isprintable()
        except UnicodeDecodeError:
            not_utf8[place] = True
    fits = ~not_utf8
    return Tally(int(values.counts[fits].sum()), int(values.counts[fits & controls].sum()))


def _uuid(values: Values) -> Tally:
    matrix, counts = values.of_width(16)
    version, variant = matrix[:, 6] >> 4, matrix[:, 8] >> 6
    odd = (version < 1) | (version > 8) | (variant != 2)
    return Tally(int(counts.sum()), int(counts[odd].sum()))


def _bool(values: Values) -> Tally:
    matrix, counts = values.of_width(1)
    return Tally(int(counts[matrix[:, 0] <= 1].sum()))


def _char(values: Values) -> Tally:
    matrix, counts = values.of_width(2)
    units = matrix.view(">u2")[:, 0]
    fits = (units < 0xD800) | (units > 0xDFFF)
    return Tally(int(counts[fits].sum()), int(counts[units < 0x20].sum()))


# Numbers. --------------------------------------------------------------------------------------------------------------


def _integer(width: int, signed: bool, order: str) -> Callable[[Values], Tally]:
    code = f"{'<' if order == 'le' else '>'}{'i' if signed else 'u'}{width}"

    def tally(values: Values) -> Tally:
        matrix, counts = values.of_width(width)
        if width == 16:
            rows = matrix[:, ::-1] if order == "le" else matrix
            numbers = [int.from_bytes(row.tobytes(), "big", signed=signed) for row in rows]
            # Spark and Arrow hold 38 digits of them.
            fits = np.array([abs(number) < 10**38 for number in numbers], bool)
            read = [number for number in numbers if abs(number) < 10**38]
            negative = np.array([number < 0 for number in numbers], bool)
            return Tally(
                int(counts[fits].sum()),
                int(counts[fits & negative].sum()),
                min(read, default=None),
                max(read, default=None),
            )
        numbers = matrix.view(code)[:, 0]
        if not len(numbers):
            return Tally()
        return Tally(int(counts.sum()), int(counts[numbers < 0].sum()), int(numbers.min()), int(numbers.max()))

    return tally


def _float(width: int, order: str) -> Callable[[Values], Tally]:
    code = f"{'<' if order == 'le' else '>'}f{width}"
    limit = 1e30 if width == 8 else 1e20

    def tally(values: Values) -> Tally:
        matrix, counts = values.of_width(width)
        with np.errstate(all="ignore"):
            # A signalling NaN would set off a warning here, and it is only counted.
            numbers = matrix.view(code)[:, 0].astype(np.float64)
        size = np.abs(numbers)
        odd = ~np.isfinite(numbers) | ((size != 0) & ((size < 1 / limit) | (size > limit)))
        finite = numbers[np.isfinite(numbers)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (None, None)
        return Tally(int(counts.sum()), int(counts[odd].sum()), low, high)

    return tally


def _timestamp(order: str) -> Callable[[Values], Tally]:
    code = f"{'<' if order == 'le' else '>'}i8"
    whole = _integer(8, True, order)

    def tally(values: Values) -> Tally:
        made = whole(values)
        matrix, counts = values.of_width(8)
        times = matrix.view(code)[:, 0]
        made.odd = int(counts[(times < WINDOW_MS[0]) | (times >= WINDOW_MS[1])].sum())
        return made

    return tally


# Text that spells something. -------------------------------------------------------------------------------------------

_INTEGER = "-?[0-9]{1,18}"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def _spelt(pattern: str, number: Callable[[bytes], int | float] | None = None, odd: str = "") -> Any:
    def tally(values: Values) -> Tally:
        found = values.matching(pattern)
        made = Tally(int(values.counts[found].sum()))
        if made.fits and odd:
            made.odd = int(values.counts[found & values.matching(odd)].sum())
        if made.fits and number is not None:
            read = [number(text.as_py()) for text in values.values.filter(pa.array(found))]
            read = [each for each in read if abs(each) != float("inf")]
            made.low, made.high = min(read, default=None), max(read, default=None)
        return made

    return tally


def _time_spelt(values: Values) -> Tally:
    made: Tally = _spelt(_INTEGER, int)(values)
    found = np.flatnonzero(values.matching(_INTEGER))
    times = [int(values.values[int(place)].as_py()) for place in found]
    odd = [not WINDOW_MS[0] <= time < WINDOW_MS[1] for time in times]
    made.odd = int(values.counts[found[np.array(odd, bool)]].sum())
    return made


def _json(values: Values) -> Tally:
    first, last = values.ends
    found = np.zeros(len(first), bool)
    for opening, closing in (b"{}", b"[]", b'""'):
        found |= (first == opening) & (last == closing)
    tally = Tally()
    for place in np.flatnonzero(found):
        try:
            json.loads(values.values[int(place)].as_py())
        except (ValueError, RecursionError):
            continue
        tally.fits += int(values.counts[place])
    return tally


def _amqp(values: Values) -> Tally:
    first, _ = values.ends
    found = np.zeros(len(values.sizes), bool)
    for code, made in CONSTRUCTORS.items():
        # A code that is a value by itself is one byte, which says too little.
        if made.length:
            sized = np.flatnonzero((first == code) & (values.sizes > made.length))
            places = values.offsets[:-1][sized][:, None] + np.arange(1, 1 + made.length)
            lengths = values.data[places].astype(np.int64) @ 256 ** np.arange(made.length - 1, -1, -1)
            found[sized] |= lengths == values.sizes[sized] - 1 - made.length
        elif made.width:
            found |= (first == code) & (values.sizes == 1 + made.width)
    return Tally(int(values.counts[found].sum()))


def _schema_id(values: Values) -> Tally:
    tally = Tally()
    for width, magic in ((5, 0), (17, 1)):
        matrix, counts = values.of_width(width)
        tally.fits += int(counts[matrix[:, 0] == magic].sum())
    return tally


READINGS: tuple[Reading, ...] = (
    Reading("binary", None, _binary),
    Reading("string", None, _string),
    Reading("bool", 1, _bool),
    Reading("char", 2, _char),
    Reading("uuid", 16, _uuid),
    *(
        Reading(f"{'' if signed else 'u'}int{width * 8}{'' if order == 'be' else ':le'}", width,
                _integer(width, signed, order))
        for width in (1, 2, 4, 8, 16)
        for order in ("be", "le")
        for signed in (True, False)
        if width > 1 or order == "be"
    ),
    *(
        Reading(f"float{width * 8}{'' if order == 'be' else ':le'}", width, _float(width, order))
        for width in (4, 8)
        for order in ("be", "le")
    ),
    Reading("timestamp_ms", 8, _timestamp("be")),
    Reading("timestamp_ms:le", 8, _timestamp("le")),
    Reading("int64:text", None, _spelt(_INTEGER, int, odd="-?0[0-9]+")),
    Reading("timestamp_ms:text", None, _time_spelt),
    Reading("float64:text", None, _spelt(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", float)),
    Reading("bool:text", None, _spelt("true|false")),
    Reading("uuid:text", None, _spelt(_UUID)),
)  # fmt: skip
"""One row for each type, in the order in which equals are shown."""

SHAPES: dict[str, tuple[Reading, ...]] = {
    "binary": (
        Reading("a schema id: 00 and an int32, or 01 and 16 bytes", None, _schema_id),
        Reading("an AMQP 1.0 primitive", None, _amqp),
    ),
    "string": (
        Reading("pairs of hex digits", None, _spelt("(?:[0-9a-fA-F]{2}){4,}")),
        Reading("a W3C traceparent", None, _spelt("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")),
        Reading("an RFC 3339 time", None, _spelt(_TIME)),
        Reading("a JSON object, array or string", None, _json),
    ),
}
"""Shapes for which `select` has no type of its own, by the type that they are read as."""
