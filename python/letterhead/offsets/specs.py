"""Where reading a topic begins and ends, as callers of its readers write it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

__all__ = ["Point", "Points", "check_points", "time_of"]

Point: TypeAlias = Literal["earliest", "latest"] | datetime | int
Points: TypeAlias = Point | Mapping[int, Point]

_FIRST_TIME = 10_000_000_000
"""Milliseconds of April 1970: a smaller number is not the time of a record, and probably an offset."""


def check_points(start: Points, end: Points) -> None:
    """Raise ValueError if ``start`` or ``end`` is neither a point nor a mapping of partition to points."""
    for name, points in (("start", start), ("end", end)):
        for point in points.values() if isinstance(points, Mapping) else [points]:
            time_of(name, point, offsets=isinstance(points, Mapping))


def time_of(name: str, point: object, *, offsets: bool = False) -> int:
    """Check ``start`` or ``end``, and return a time in milliseconds since 1970; 0 for an offset or a name."""
    if isinstance(point, str) and point in ("earliest", "latest"):
        return 0
    if isinstance(point, datetime):
        if point.tzinfo is None:
            raise ValueError(f"{name} is a datetime without a time zone: {point}")
        return round(point.timestamp() * 1000)
    if isinstance(point, int) and not isinstance(point, bool):
        if offsets and point >= 0:
            return 0
        if point >= _FIRST_TIME:
            return point
        raise ValueError(
            f"{name}={point} is not a time in milliseconds since 1970: pass an offset by partition, as "
            f"{{0: {max(point, 0)}}}"
        )
    raise ValueError(f"{name} must be 'earliest', 'latest', a time, or a mapping of partition to offset, not {point!r}")
