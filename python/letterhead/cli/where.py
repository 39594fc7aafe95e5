"""Warn of a name in --where that no record had: it is probably misspelt, and a condition on it selects nothing."""

from __future__ import annotations

from collections.abc import Iterable

from letterhead._formatting import printable, quoted
from letterhead.cli.render import warn
from letterhead.fields import PlainKey

__all__ = ["warn_of_unseen"]


def warn_of_unseen(keys: Iterable[PlainKey], fields: Iterable[str]) -> None:
    """Name the headers that no record had, and the names that are fields."""
    for key in keys:
        name = quoted(key) if isinstance(key, str) else printable(str(key))
        warn(f"--where: no record had a header {name}; names of fields are {', '.join(fields)}")
