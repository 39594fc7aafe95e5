"""Divide ranges of offsets among triggers and tasks, for every source whose partitions have offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

__all__ = ["divided", "limited"]

PlaceT = TypeVar("PlaceT")


class _Span(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


SpanT = TypeVar("SpanT", bound=_Span)


def divided(spans: Sequence[SpanT], minimum: int, most: int | None) -> list[tuple[SpanT, int, int]]:
    """Divide spans into ranges of offsets: one each, or more to have a minimum of ranges or a maximum of offsets each."""
    spans = [span for span in spans if span.start < span.end]
    total = sum(span.end - span.start for span in spans)
    made = []
    for span in spans:
        size = span.end - span.start
        count = 1
        if minimum > len(spans):
            count = max(1, round(size / total * minimum))
        if most is not None:
            count = max(count, -(-size // most))
        bounds = [span.start + size * number // count for number in range(count + 1)]
        made += [(span, start, end) for start, end in pairwise(bounds) if start < end]
    return made


def limited(most: int, starts: Mapping[PlaceT, int], ends: Mapping[PlaceT, int]) -> dict[PlaceT, int]:
    """Divide the maximum number of offsets among the partitions, in proportion to their unread offsets."""
    waiting = {place: max(0, end - starts[place]) for place, end in ends.items()}
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    shares = {place: most * size / total for place, size in waiting.items()}
    # Less than one is rounded up, or a small partition would never be read.
    return {
        place: min(end, starts[place] + (-int(-share // 1) if share < 1 else int(share)))
        for (place, end), share in zip(ends.items(), shares.values(), strict=True)
    }
