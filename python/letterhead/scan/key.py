"""Scan result of a key, with suggested types, and its formatting as a table row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from letterhead.errors import DecodeError
from letterhead.one_message import encode, select
from letterhead.scan.guesses import Guess, date_text, guesses_of
from letterhead.scan.sketch import EXACT, Histogram, Sampled
from letterhead.scan.statistics import Key, KeyStatistics
from letterhead.values import value_from_message

_EXAMPLES = 5


@dataclass(frozen=True)
class KeyScan:
    """Scan result of one key.

    Attributes
    ----------
    key : str, int or (str, bytes)
        The key; in formats with typed keys, its type and bytes unless it is a string.
    statistics : letterhead.scan.statistics.KeyStatistics
        Counts: ``headers`` and ``rows`` with the key; ``nulls`` and ``empty`` values; ``repeated``, the rows that repeat
        the key, and ``most``, the maximum number of its headers in one row; ``distinct`` values; histograms of ``sizes``
        and ``positions``; and ``types``.
    of_rows : int
        Number of scanned messages.
    """

    key: Key
    statistics: KeyStatistics
    of_rows: int

    @property
    def name(self) -> str:
        """Key as text."""
        if isinstance(self.key, tuple):
            type, bits = self.key
            try:
                value = value_from_message(type, bits).value
            except ValueError:
                value = bits
            return f"{type}:{value.hex() if isinstance(value, bytes) else value}"
        return str(self.key)

    @cached_property
    def guesses(self) -> list[Guess]:
        """Suggested types of the values, the most likely first."""
        return guesses_of(self.statistics)

    @property
    def examples(self) -> list[Sampled]:
        """Up to five values of the sample, the most frequent first."""
        return self.statistics.sample.commonest()[:_EXAMPLES]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        statistics = self.statistics
        headers = statistics.headers
        return {
            "key": self.key if isinstance(self.key, str | int) else {"type": self.key[0], "hex": self.key[1].hex()},
            "headers": headers,
            "rows": statistics.rows,
            "share_of_rows": _share(statistics.rows, self.of_rows),
            "nulls": statistics.nulls,
            "share_null": _share(statistics.nulls, headers),
            "empty": statistics.empty,
            "repeated_rows": statistics.repeated,
            "share_repeated": _share(statistics.repeated, statistics.rows),
            "most_in_a_row": statistics.most,
            "exact": statistics.exact,
            "bytes": _bounds(statistics.sizes) | {"total": statistics.sizes.total},
            "position": _bounds(statistics.positions) | {"most": statistics.positions.most_frequent()[0]},
            "distinct": {"count": statistics.distinct, "exact": statistics.sample.is_all},
            "examples": [
                {
                    "hex": value.head.hex(),
                    "text": _text(value.head),
                    "read": read_as_guessed(self, value),
                    "bytes": value.size,
                    "count": value.count,
                }
                for value in self.examples
            ],
            "types": dict(sorted(statistics.types.items())),
            "guesses": [guess._asdict() for guess in self.guesses],
        }


def select_type(key: KeyScan) -> str:
    """Return the first suggested type in the syntax of `select`; an array if rows repeat the key."""
    type = key.guesses[0].type
    return f"array<{type}>" if key.statistics.repeated else type


def find_tied_types(key: KeyScan) -> list[str]:
    """Return the first suggested type, and the types tied with it."""
    first, *others = key.guesses
    return [first.type, *(guess.type for guess in others if guess.confidence == first.confidence == "tie")]


def read_as_guessed(key: KeyScan, value: Sampled) -> str | None:
    """Return a value parsed as the first suggested type; None if the type is text or bytes, or the value does not fit.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> key = lha.scan(pa.array([lh.encode([("n", bytes([0, 0, 1, n]))], "kafka") for n in range(9)]), "kafka")["n"]
    >>> key.guesses[0].type, [read_as_guessed(key, value) for value in key.examples[:2]]
    ('int32', ['256', '257'])
    """
    type = key.guesses[0].type
    if not value.whole or type in ("binary", "string"):
        return None
    try:
        value_as_type = select(encode([("", value.head)], "kafka") or b"", {"": type})[""]
    except DecodeError:
        return None
    if type.startswith("timestamp_ms"):
        return date_text(int(value_as_type))
    if isinstance(value_as_type, bool):
        return str(value_as_type).lower()
    return f"{value_as_type:,}" if isinstance(value_as_type, int) else str(value_as_type)


def _share(part: int, whole: int) -> float | None:
    """Return ``part / whole``, or None if the whole is 0."""
    return None if not whole else round(part / whole, 6)


def _bounds(histogram: Histogram) -> dict[str, int | None]:
    return {"min": histogram.low, "median": histogram.median(), "max": histogram.high}


def _text(head: bytes) -> str | None:
    try:
        return head.decode()
    except UnicodeDecodeError:
        return None


def percent(part: int, whole: int) -> str:
    """Format a share in percent; 0 % and 100 % are shown only if exact."""
    if not whole:
        return "-"
    rounded = f"{100 * part / whole:.0f}"
    if 0 < part < whole and rounded in ("0", "100"):
        rounded = f"{100 * part / whole:.1f}"
        if rounded in ("0.0", "100.0"):
            return "<0.1 %" if rounded == "0.0" else ">99.9 %"
    return f"{rounded} %"


def summary(key: KeyScan) -> Mapping[str, str]:
    """Return the fields of a key's table row."""
    statistics = key.statistics
    types = find_tied_types(key)
    return {
        "key": key.name + ("" if statistics.exact else "+"),
        "rows": percent(statistics.rows, key.of_rows),
        "null": percent(statistics.nulls, statistics.headers),
        "repeated": percent(statistics.repeated, statistics.rows),
        "bytes": _format_spread(statistics.sizes),
        "position": _format_spread(statistics.positions, most=True),
        "type": " or ".join(types[:3]) + (" or …" if len(types) > 3 else "") + f", {key.guesses[0].confidence}",
    }


def _format_spread(histogram: Histogram, *, most: bool = False) -> str:
    """Format the minimum and maximum; with `most`, only the most frequent number if other numbers are rare."""
    low, high = histogram.low, histogram.high
    if low is None or high is None:
        return "-"
    number, count = histogram.most_frequent()
    if most and number < EXACT and count > histogram.count / 2:
        return f"{number}"
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"
