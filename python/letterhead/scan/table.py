"""What was found of a key as the cells of a table, the same on a screen and on a page."""

from __future__ import annotations

from collections.abc import Mapping

from letterhead.scan.key import KeyScan
from letterhead.scan.sketch import EXACT, Histogram

__all__ = ["percent", "spread", "summary"]


def percent(part: int, whole: int) -> str:
    """Write a share in percent, so that what is there is never 0 % and what is not all never 100 %."""
    if not whole:
        return "-"
    rounded = f"{100 * part / whole:.0f}"
    if 0 < part < whole and rounded in ("0", "100"):
        rounded = f"{100 * part / whole:.1f}"
        if rounded in ("0.0", "100.0"):
            return "<0.1 %" if rounded == "0.0" else ">99.9 %"
    return f"{rounded} %"


def summary(key: KeyScan) -> Mapping[str, str]:
    """Give the cells of a table about a key."""
    found = key.statistics
    first, *others = key.guesses
    ties = [guess.type for guess in others if guess.confidence == first.confidence == "tie"]
    types = " or ".join([first.type, *ties[:2]]) + (" or …" if len(ties) > 2 else "")
    return {
        "key": key.name + ("" if found.exact else "+"),
        "rows": percent(found.rows, key.of_rows),
        "null": percent(found.nulls, found.headers),
        "repeated": percent(found.repeated, found.rows),
        "bytes": spread(found.sizes),
        "position": spread(found.positions, most=True),
        "type": f"{types}, {first.confidence}",
    }


def spread(histogram: Histogram, *, most: bool = False) -> str:
    """Write the least and the greatest number, or the commonest one where others are rare."""
    low, high = histogram.low, histogram.high
    if low is None or high is None:
        return "-"
    number, count = histogram.most()
    if most and number < EXACT and count > histogram.count / 2:
        return f"{number}"
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"
