"""Count the values of a key that can be read as each type of `select`, with their range.

:class:`Values` uses the core to parse the values as every type that their sizes allow. The results, :class:`Tally`
objects, have a fixed size and can be merged. :mod:`letterhead.scan.guesses` ranks the types.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import _native
from letterhead.conventions.amqp import CODES, READ_AS
from letterhead.conventions.readers.column import read_values

WINDOW_MS = (946_684_800_000, 4_102_444_800_000)
"""Years 2000 to 2099 in milliseconds since 1970; other times are unusual."""


@dataclass
class Tally:
    """Number of values readable as a type, number of unusual values among them, and smallest and largest finite number.

    Unusual values are text with control characters; characters below a space; floats that are subnormal, NaN, infinite
    or extremely large or small; times outside of 2000 to 2099; UUIDs without the bits of RFC 9562; text numbers with a
    leading 0; negative integers. For types that mix digits and bytes, ``binary`` counts the values read as bytes.
    """

    fits: int = 0
    unusual: int = 0
    low: int | float | None = None
    high: int | float | None = None
    binary: int = 0

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.fits += other.fits
        self.unusual += other.unusual
        self.binary += other.binary
        self.low = min((x for x in (self.low, other.low) if x is not None), default=None)
        self.high = max((x for x in (self.high, other.high) if x is not None), default=None)


class CandidateType(NamedTuple):
    """Type of `select`, and the size of its values in bytes (None if it varies)."""

    type: str
    width: int | None


CANDIDATE_TYPES: tuple[CandidateType, ...] = (
    CandidateType("binary", None),
    CandidateType("string", None),
    CandidateType("bool", 1),
    CandidateType("char", 2),
    CandidateType("uuid", 16),
    *(
        CandidateType(f"{sign}int{width * 8}{order}", width)
        for width in (1, 2, 4, 8, 16)
        for order in ("", ":le")
        for sign in ("", "u")
        if width > 1 or not order
    ),
    *(CandidateType(f"float{width * 8}{order}", width) for width in (4, 8) for order in ("", ":le")),
    CandidateType("timestamp_ms", 8),
    CandidateType("timestamp_ms:le", 8),
    *(CandidateType(f"{type}:text", None) for type in ("int64", "float64", "bool", "uuid", "date")),
    *(CandidateType(f"timestamp:{form}", None) for form in ("iso", "s", "ms", "us", "ns")),
)
"""Candidate types; types that are equally good are shown in this order."""

_FIXED = {
    width: [candidate.type for candidate in CANDIDATE_TYPES if candidate.width == width] for width in (1, 2, 4, 8, 16)
}
_TEXTS = {
    "[-+.0-9eE]+": ["int64:text", "timestamp:s", "timestamp:ms", "timestamp:us", "timestamp:ns", "float64:text"],
    "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].*": ["timestamp:iso"],
    "[0-9]{4}-[0-9]{2}-[0-9]{2}": ["date:text"],
    "true|false|True|False|TRUE|FALSE": ["bool:text"],
    "[-0-9a-fA-F]{36}": ["uuid:text"],
}
"""Patterns of text that can be parsed as each type; other values are skipped, because they would only cause errors."""


_DIGITS, _LEADING_ZERO = "-?[0-9]+", "-?0[0-9]+"
_HEX = "(?:[0-9a-fA-F]{2}){4,}"
_TRACEPARENT = "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
_BRACKETS = r'(?s:\{.*\}|\[.*\]|".*")'
_PATTERNS = (*_TEXTS, _DIGITS, _LEADING_ZERO, _HEX, _TRACEPARENT, _TIME, _BRACKETS)
"""Patterns of complete text values, all searched in one pass."""

_MIXED = {
    f"{name}:text | {name}{order}": width
    for name, width in (("int16", 2), ("int32", 4), ("int64", 8))
    for order in ("", ":le")
}
"""Types for keys with text numbers from one producer and binary numbers from another, and the binary size."""


class Values:
    """Distinct non-null values of a key with their counts, parsed as every candidate type."""

    def __init__(self, values: Any, counts: Any) -> None:
        self.values = values
        self.counts = counts
        self.sizes = pc.binary_length(values).to_numpy()
        matches = _native.value_matches(values, [rf"\A(?:{pattern})\z" for pattern in _PATTERNS])
        self._matches = {pattern: np.frombuffer(found, bool) for pattern, found in zip(_PATTERNS, matches, strict=True)}
        self.text = _as_text(values)
        self.printable = _true(pc.utf8_is_printable(self.text))
        self._columns: dict[str, tuple[Any, Any]] = {"binary": (values, counts), "string": (self.text, counts)}
        for width, types in _FIXED.items():
            self._read(self.sizes == width, types)
        for pattern, types in _TEXTS.items():
            self._read(self.matching(pattern), types)

    def _read(self, mask: Any, types: list[str]) -> None:
        """Parse the values in a mask as each of the types."""
        if mask.any():
            values, counts = self.filtered(mask)
            columns = read_values(values, *types)
            self._columns |= {type: (columns[type], counts) for type in types}

    def filtered(self, mask: Any) -> tuple[Any, Any]:
        """Return the values in a mask, and their counts."""
        return self.values.filter(pa.array(mask)), self.counts[mask]

    def matching(self, pattern: str) -> Any:
        """Return a mask of the text values that match a pattern completely."""
        return self._matches[pattern]

    def tally(self) -> dict[str, Tally]:
        """Return a tally for each type as which at least one value can be read."""
        tallies = {type: self._tally(type, *column) for type, column in self._columns.items()} | self._mixed()
        return {type: tally for type, tally in tallies.items() if tally.fits}

    def _mixed(self) -> dict[str, Tally]:
        """Return a tally for each type that reads both text numbers and binary numbers."""
        digits = self.matching(_DIGITS)
        tallies = {}
        for type, width in _MIXED.items():
            mask = digits | ((self.sizes == width) & ~self.printable)
            if mask.any():
                values, counts = self.filtered(mask)
                column = read_values(values, type)[type]
                fits = _true(column.is_valid())
                low, high = pc.min_max(column).as_py().values()
                binary = int(counts[fits & ~digits[mask]].sum())
                tallies[type] = Tally(int(counts[fits].sum()), 0, low, high, binary)
        return tallies

    def shapes(self) -> dict[str, Tally]:
        """Return a tally for each shape."""
        counts = {
            name: int(self.counts[find(self)].sum()) for shapes in SHAPES.values() for name, find in shapes.items()
        }
        return {name: Tally(count) for name, count in counts.items() if count}

    def _tally(self, type: str, column: Any, counts: Any) -> Tally:
        tally = Tally(int(counts[_true(column.is_valid())].sum()))
        name, _, suffix = type.partition(":")
        if type == "int64:text":
            tally.unusual = int(self.counts[self.matching(_LEADING_ZERO)].sum())
        elif type == "string":
            tally.unusual = tally.fits - int(counts[self.printable].sum())
        elif tally.fits and (not suffix or suffix == "le" or name.startswith(("timestamp", "date"))):
            column = _milliseconds(column)
            unusual = _unusual(name, column)
            tally.unusual = 0 if unusual is None else int(counts[unusual].sum())
        if tally.fits and name.startswith(("int", "uint", "float", "timestamp", "date")):
            if pa.types.is_floating(column.type):
                column = column.filter(pc.is_finite(column))
            column = _milliseconds(column)
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.int64())
            span = pc.min_max(column).as_py().values()
            tally.low, tally.high = (int(x) if isinstance(x, Decimal) else x for x in span)
        return tally


def _as_text(values: Any) -> Any:
    """Convert values to text; values that are not UTF-8 become null."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return read_values(values, "string")["string"]


def _unusual(name: str, column: Any) -> Any:
    """Return a mask of the values that are unusual for a type, or None for a type without unusual values."""
    if name == "uuid":
        return _true(pc.invert(pc.match_substring_regex(column, "^.{14}[1-8].{4}[89ab]")))
    if name == "char":
        return _true(pc.less(column, " "))
    if name.startswith("int"):
        return _true(pc.less(column, pa.scalar(0).cast(column.type)))
    if name.startswith("float"):
        size, largest = pc.abs(column), 1e30 if name == "float64" else 1e20
        usual = pc.and_(pc.greater_equal(size, 1 / largest), pc.less_equal(size, largest))
        return _true(pc.invert(pc.or_(pc.equal(size, 0), usual)))
    if name.startswith(("timestamp", "date")):
        times = column.cast(pa.int64())
        return _true(pc.or_(pc.less(times, WINDOW_MS[0]), pc.greater_equal(times, WINDOW_MS[1])))
    return None


def _milliseconds(column: Any) -> Any:
    """Convert times and dates to milliseconds; return other columns unchanged."""
    is_time = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    return column.cast(pa.timestamp("ms", "UTC"), safe=False) if is_time else column


def _true(mask: Any) -> Any:
    known = pc.fill_null(mask, False) if mask.null_count else mask
    return np.asarray(known.to_numpy(zero_copy_only=False), bool)


def _json(values: Values) -> Any:
    is_json = values.matching(_BRACKETS).copy()
    for row in np.flatnonzero(is_json):
        try:
            json.loads(values.values[int(row)].as_py())
        except (ValueError, RecursionError):
            is_json[row] = False
    return is_json


_IS_CODE = np.isin(np.arange(256), list(CODES))


def _amqp(values: Values) -> Any:
    first = _byte_at(values, 0)
    # Exclude single-byte constructors, which are too little evidence, and printable text.
    is_amqp = _IS_CODE[first] & (values.sizes == _amqp_sizes(values, first)) & ~values.printable
    if not is_amqp.any():
        return is_amqp
    amqp_values, _ = values.filtered(is_amqp)
    reads = [_true(pa.array(_native.amqp_column(amqp_values, type, errors="null")).is_valid()) for type in READ_AS]
    is_amqp[is_amqp] = np.logical_or.reduce(reads)
    return is_amqp


def _amqp_sizes(values: Values, codes: Any) -> Any:
    """Return the expected size of values that begin with the given codes; 0 for codes without data."""
    fixed = np.zeros(16, np.int64)
    fixed[[0x5, 0x6, 0x7, 0x8, 0x9]] = [2, 3, 5, 9, 17]
    sizes = fixed[codes >> 4]
    sizes = np.where(codes >> 4 == 0xA, 2 + _byte_at(values, 1).astype(np.int64), sizes)
    # For codes with a 4-byte length, accept any size, because the core verifies the length.
    return np.where((codes >> 4 == 0xB) & (values.sizes > 4), values.sizes, sizes)


def _schema_id(values: Values) -> Any:
    magic = _byte_at(values, 0)
    return ((magic == 0) & (values.sizes == 5)) | ((magic == 1) & (values.sizes == 17))


def _byte_at(values: Values, index: int) -> Any:
    """Return the byte at an index of each value; 0 if the value is shorter."""
    found = np.zeros(len(values.sizes), np.uint8)
    longer = values.sizes > index
    if longer.any():
        _, offsets, data = values.values.buffers()
        starts = np.frombuffer(offsets, np.int32)[values.values.offset :][: len(found)]
        found[longer] = np.frombuffer(data, np.uint8)[starts[longer] + index]
    return found


SHAPES: dict[str, dict[str, Callable[[Values], Any]]] = {
    "binary": {"a schema id: 00 and an int32, or 01 and 16 bytes": _schema_id, "an AMQP 1.0 primitive": _amqp},
    "string": {
        "pairs of hex digits": lambda values: values.matching(_HEX),
        "a W3C traceparent": lambda values: values.matching(_TRACEPARENT),
        "an RFC 3339 time": lambda values: values.matching(_TIME),
        "a JSON object, array or string": _json,
    },
}
"""Functions that detect shapes without their own type in `select`, by the type that reads them."""
