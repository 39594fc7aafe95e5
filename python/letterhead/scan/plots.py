"""Plots as SVG, small enough to stand in a page: bars of shares, and histograms."""

from __future__ import annotations

import html
from collections.abc import Sequence

from letterhead.scan.sketch import EXACT, Histogram

__all__ = ["bar", "histogram"]

_WIDTH, _HEIGHT = 280, 76
_MOST_BARS = 32


def bar(share: float, *, label: str, kind: str = "", width: int = 160) -> str:
    """Draw a share of 1 as a bar; `kind` is the class that gives it its colour."""
    filled = max(0.0, min(1.0, share)) * width
    return (
        f'<svg class="bar" width="{width}" height="10" viewBox="0 0 {width} 10" role="img" '
        f'aria-label="{html.escape(label)}"><title>{html.escape(label)}</title>'
        f'<rect class="rest" width="{width}" height="10" rx="2"/>'
        f'<rect class="part {kind}" width="{filled:.1f}" height="10" rx="2"/></svg>'
    )


def histogram(numbers: Histogram, *, what: str) -> str:
    """Draw how often each number was seen, numbers from left to right; many of them are put together."""
    bars = _bars(numbers)
    if not bars:
        return ""
    highest = max(count for _, _, count in bars)
    step = _WIDTH / len(bars)
    drawn = []
    for place, (low, high, count) in enumerate(bars):
        height = max(1.0, count / highest * (_HEIGHT - 32)) if count else 0
        title = f"{what} {low:,}{f' to {high:,}' if high != low else ''}: {count:,}"
        drawn.append(
            f'<rect class="part" x="{place * step + 0.5:.1f}" y="{_HEIGHT - 16 - height:.1f}" '
            f'width="{min(max(step - 1, 0.5), 40):.1f}" height="{height:.1f}"><title>{title}</title></rect>'
        )
    ends = [f'<text x="0" y="{_HEIGHT - 3}">{bars[0][0]:,}</text>']
    if len(bars) > 1:
        ends.append(f'<text x="{_WIDTH}" y="{_HEIGHT - 3}" text-anchor="end">{bars[-1][1]:,}</text>')
    most = f'<text x="{_WIDTH}" y="10" text-anchor="end" class="most">most {highest:,}</text>'
    return (
        f'<svg class="plot" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{what}: {bars[0][0]:,} to {bars[-1][1]:,}">'
        f'<line x1="0" y1="{_HEIGHT - 15.5}" x2="{_WIDTH}" y2="{_HEIGHT - 15.5}"/>{"".join(drawn)}{"".join(ends)}{most}'
        "</svg>"
    )


def _bars(numbers: Histogram) -> Sequence[tuple[int, int, int]]:
    """Give the least and the greatest number of each bar, and its count: equal steps, unless the span is wide."""
    low, high = numbers.low, numbers.high
    if low is None or high is None:
        return []
    if high < EXACT and high - low < _MOST_BARS:
        return [(number, number, numbers.counts.get(number, 0)) for number in range(low, high + 1)]
    # Buckets have their steps, so bars are no narrower than the widest of them.
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
