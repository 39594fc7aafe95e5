"""Histograms for the page of a scan, as SVG by matplotlib: they need no network and no script."""

from __future__ import annotations

import io
from collections.abc import Sequence

from letterhead._optional_dependencies import needed
from letterhead.scan.sketch import EXACT, Histogram

__all__ = ["histogram"]

_MOST_BARS = 32
_INK, _BAR = "#7a8594", "#2f6fb3"  # read on light and on dark pages


def histogram(numbers: Histogram, *, what: str) -> str:
    """Return a histogram as an SVG element.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed.
    """
    with needed("a page with plots", "'letterhead[plots]'"):
        import matplotlib
        from matplotlib.figure import Figure
    bars = _bars(numbers)
    if not bars:
        return ""
    figure = Figure(figsize=(2.9, 0.85))
    axes = figure.add_axes((0.14, 0.24, 0.82, 0.62))
    axes.bar(range(len(bars)), [count for _, _, count in bars], color=_BAR, width=0.9 if len(bars) > 1 else 0.2)
    axes.set_xlim(-0.6, max(len(bars) - 0.4, 1))
    ends = [0, len(bars) - 1] if len(bars) > 1 else [0]
    axes.set_xticks(ends, [f"{bars[0][0]:,}", f"{bars[-1][1]:,}"][: len(ends)], fontsize=7, color=_INK)
    most = max(count for _, _, count in bars)
    axes.set_yticks([most], [f"{most:,}"], fontsize=7, color=_INK)
    axes.tick_params(color=_INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(_INK)
    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": what}):
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(written, format="svg", transparent=True, metadata=nothing)
    drawn = written.getvalue()
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg class="plot" role="img" aria-label="{what}"', 1)


def _bars(numbers: Histogram) -> Sequence[tuple[int, int, int]]:
    """Return the least and the greatest number of each bar, and its count."""
    low, high = numbers.low, numbers.high
    if low is None or high is None:
        return []
    if high < EXACT and high - low < _MOST_BARS:
        return [(number, number, numbers.counts.get(number, 0)) for number in range(low, high + 1)]
    # A bar is at least as wide as the widest bucket.
    width = -(-(high - low + 1) // (_MOST_BARS // 2))
    counts: dict[int, int] = {}
    for bucket, count in numbers.counts.items():
        place = (max(bucket, low) - low) // width
        counts[place] = counts.get(place, 0) + count
    last = (high - low) // width
    return [
        (low + place * width, min(high, low + (place + 1) * width - 1), counts.get(place, 0))
        for place in range(last + 1)
    ]
