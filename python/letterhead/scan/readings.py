"""For each type of `select`, how many of the values it fits, and their range.

A tally is of a fixed size and adds up. It is taken over every value; which reading is the likely one is for
:mod:`letterhead.scan.guesses` to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import _native
from letterhead.conventions.amqp import CONSTRUCTORS, READ_AS
from letterhead.conventions.readers.column import read_values

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
        """Give the values of so many bytes, and how often each was seen."""
        chosen = np.flatnonzero(self.sizes == width)
        return self.values.take(pa.array(chosen)), self.counts[chosen]

    def read_as(self, type: str, width: int) -> tuple[Any, Any]:
        """Read the values of so many bytes as one of the types of that width; the counts are those of the values."""
        if width not in self._by_width:
            values, counts = self.of_width(width)
            types = [reading.type for reading in READINGS if reading.width == width]
            self._by_width[width] = read_values(values, *types), counts
        columns, counts = self._by_width[width]
        return columns[type], counts

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
    def _by_width(self) -> dict[int, tuple[dict[str, Any], Any]]:
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


def _tally(column: Any, counts: Any, odd: Any = None, *, number: bool = False) -> Tally:
    """Count what was read, what of it is odd, and find the least and the greatest."""
    made = Tally(int(counts[_true(column.is_valid())].sum()))
    if odd is not None:
        made.odd = int(counts[_true(odd)].sum())
    if number and made.fits:
        if pa.types.is_floating(column.type):
            column = column.filter(pc.is_finite(column))
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        span = pc.min_max(column).as_py().values()
        made.low, made.high = (int(x) if isinstance(x, Decimal) else x for x in span)
    return made


def _true(mask: Any) -> Any:
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), bool)


def _binary(values: Values) -> Tally:
    return Tally(int(values.counts.sum()))


def _string(values: Values) -> Tally:
    read = read_values(values.values, "string")["string"]
    return _tally(read, values.counts, pc.invert(pc.utf8_is_printable(read)))


def _fixed(type: str, width: int) -> Reading:
    def tally(values: Values) -> Tally:
        column, counts = values.read_as(type, width)
        return _tally(column, counts, _odd(type, column), number=type not in ("bool", "char", "uuid"))

    return Reading(type, width, tally)


def _odd(type: str, column: Any) -> Any:
    """Say which values would be unusual for their type."""
    name = type.partition(":")[0]
    if name == "uuid":
        return pc.invert(pc.match_substring_regex(column, "^.{14}[1-8].{4}[89ab]"))
    if name == "char":
        return pc.less(column, " ")
    if name.startswith("int"):
        return pc.less(column, pa.scalar(0).cast(column.type))
    if name.startswith("float"):
        size, most = pc.abs(column), 1e30 if name == "float64" else 1e20
        measured = pc.and_(pc.greater_equal(size, 1 / most), pc.less_equal(size, most))
        return pc.invert(pc.or_(pc.equal(size, 0), measured))
    return _outside(column.cast(pa.int64())) if name == "timestamp_ms" else None


def _outside(times: Any) -> Any:
    return pc.or_(pc.less(times, WINDOW_MS[0]), pc.greater_equal(times, WINDOW_MS[1]))


# Text that spells something. -------------------------------------------------------------------------------------------

_INTEGER = "-?[0-9]{1,18}"
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def _spelt(pattern: str, type: str = "", odd: str = "") -> Any:
    def tally(values: Values) -> Tally:
        found = values.matching(pattern)
        made = Tally(int(values.counts[found].sum()))
        if not made.fits:
            return made
        if odd:
            made.odd = int(values.counts[found & values.matching(odd)].sum())
        if type:
            read = read_values(values.values.filter(pa.array(found)), type)[type]
            unusual = _odd(type, read) if type == "timestamp_ms:text" else None
            counted = _tally(read, values.counts[found], unusual, number=True)
            made = Tally(made.fits, made.odd + counted.odd, counted.low, counted.high)
        return made

    return tally


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
    # A code that is a value by itself is one byte, which says too little.
    chosen = np.flatnonzero((values.sizes > 1) & np.isin(values.ends[0], list(CONSTRUCTORS)))
    coded, found = values.values.take(pa.array(chosen)), np.zeros(len(chosen), bool)
    for type in READ_AS:
        found |= _true(pa.array(_native.amqp_column(coded, type, errors="null")).is_valid())
    return Tally(int(values.counts[chosen[found]].sum()))


def _schema_id(values: Values) -> Tally:
    tally = Tally()
    for width, magic in ((5, b"\0"), (17, b"\1")):
        same, counts = values.of_width(width)
        tally.fits += int(counts[_true(pc.equal(pc.binary_slice(same, 0, 1), magic))].sum())
    return tally


READINGS: tuple[Reading, ...] = (
    Reading("binary", None, _binary),
    Reading("string", None, _string),
    _fixed("bool", 1),
    _fixed("char", 2),
    _fixed("uuid", 16),
    *(
        _fixed(f"{sign}int{width * 8}{order}", width)
        for width in (1, 2, 4, 8, 16)
        for order in ("", ":le")
        for sign in ("", "u")
        if width > 1 or not order
    ),
    *(_fixed(f"float{width * 8}{order}", width) for width in (4, 8) for order in ("", ":le")),
    _fixed("timestamp_ms", 8),
    _fixed("timestamp_ms:le", 8),
    Reading("int64:text", None, _spelt(_INTEGER, "int64:text", odd="-?0[0-9]+")),
    Reading("timestamp_ms:text", None, _spelt(_INTEGER, "timestamp_ms:text")),
    Reading("float64:text", None, _spelt(_DECIMAL, "float64:text")),
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
