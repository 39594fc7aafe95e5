"""Convert durations from milliseconds or :class:`~datetime.timedelta`."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

__all__ = ["Milliseconds", "milliseconds"]

Milliseconds: TypeAlias = "int | timedelta"


def milliseconds(name: str, duration: object) -> int:
    """Return a duration in milliseconds; ``name`` is the parameter's name for errors.

    Raises
    ------
    TypeError
        If the duration is neither a number of milliseconds nor a timedelta.
    ValueError
        If the duration is negative.
    """
    if isinstance(duration, timedelta):
        duration //= timedelta(milliseconds=1)
    if not isinstance(duration, int) or isinstance(duration, bool):
        raise TypeError(f"{name} must be a number of milliseconds or a timedelta, not {type(duration).__name__}")
    if duration < 0:
        raise ValueError(f"{name} cannot be negative")
    return duration
