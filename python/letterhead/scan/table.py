"""The fields of a table of keys, the same in text and on a page."""

from __future__ import annotations

from collections.abc import Mapping

from letterhead.scan.key import KeyScan
from letterhead.scan.sketch import EXACT, Histogram

__all__ = ["percent", "summary"]


def percent(part: int, whole: int) -> str:
    """Format a share in percent; only none of `whole` is 0 %, and only all of it 100 %."""
    if not whole:
        return "-"
    rounded = f"{100 * part / whole:.0f}"
    if 0 < part < whole and rounded in ("0", "100"):
        rounded = f"{100 * part / whole:.1f}"
        if rounded in ("0.0", "100.0"):
            return "<0.1 %" if rounded == "0.0" else ">99.9 %"
    return f"{rounded} %"


def summary(key: KeyScan) -> Mapping[str, str]:
    """Return the fields of a key's row."""
    found = key.statistics
    types = key.tied_types
    return {
        "key": key.name + ("" if found.exact else "+"),
        "rows": percent(found.rows, key.of_rows),
        "null": percent(found.nulls, found.headers),
        "repeated": percent(found.repeated, found.rows),
        "bytes": _spread(found.sizes),
        "position": _spread(found.positions, most=True),
        "type": " or ".join(types[:3]) + (" or …" if len(types) > 3 else "") + f", {key.guesses[0].confidence}",
    }


def _spread(histogram: Histogram, *, most: bool = False) -> str:
    """Format the least and the greatest number; with `most`, only the most frequent one if others are rare."""
    low, high = histogram.low, histogram.high
    if low is None or high is None:
        return "-"
    number, count = histogram.most()
    if most and number < EXACT and count > histogram.count / 2:
        return f"{number}"
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"
