"""Whether a figure reaches what was aimed at: once for every table of results."""

from __future__ import annotations

ALLOWANCE = 0.05
"""A figure that is worse than its goal by less still reaches it: the same build differs from run to run by as much."""


def verdict(figure: float, goal: float, *, at_least: bool) -> str:
    """Return whether a goal is reached, or only within what runs differ by.

    Parameters
    ----------
    figure, goal : float
        What was measured, and what was aimed at, in the same unit.
    at_least : bool
        More is better.

    Returns
    -------
    str
        ``reached``, ``reached, within 5 %`` or ``missed``.
    """
    over = figure / goal if at_least else goal / figure
    if over >= 1:
        return "reached"
    return "reached, within 5 %" if over >= 1 - ALLOWANCE else "missed"
