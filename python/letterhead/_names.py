"""Check names that callers pass, such as formats and options: :func:`check_name`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "check_name",
    "first_repeated",
    "join_names",
    "names_of",
    "shorten",
    "suggestion",
    "unknown_argument",
    "unknown_name",
]

MOST_LISTED = 50
"""Maximum number of names in an error; the rest are counted."""

MOST_QUOTED = 60
"""Maximum number of characters of a wrong name in an error."""

MOST_COMPARED = 1000
"""Maximum number of names to compare, and of characters of each; the time grows with their product."""


def check_name(name: str, value: object, names: Iterable[str]) -> None:
    """Raise TypeError if a name is not a str, ValueError if it is not in the list.

    ``name`` names the argument in errors; for an option with a plural name, pass for example ``"errors value"``.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name.removesuffix(' value')} must be str, not {type(value).__name__}")
    names = list(names)
    if value not in names:
        raise unknown_name(name, value, names)


def names_of(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return column names as a tuple; reject a plain str, which is a sequence of letters."""
    if isinstance(columns, str):
        raise TypeError("columns must be a list of column names, not str")
    if isinstance(columns, Mapping):
        raise TypeError("columns must be a list of column names: headers= makes columns of headers, by name and type")
    return None if columns is None else tuple(columns)


def unknown_name(noun: str, wrong: object, names: Iterable[str], suggested: Iterable[str] = ()) -> ValueError:
    """Return the error for a misspelt name, with all ``names``, and the closest match among ``names`` and ``suggested``."""
    names = list(names)
    hint = suggestion(wrong, [*names, *suggested])
    plural = noun if noun.endswith("s") else f"{noun}es" if noun.endswith("x") else f"{noun}s"
    return ValueError(f"unknown {noun} {shorten(wrong)}{hint} ({plural}: {join_names(names)})")


def suggestion(wrong: object, names: Iterable[str]) -> str:
    """Return the part of an error that suggests the closest name; empty if none is close."""
    import difflib  # only needed for errors, and this package should be fast to import

    # The comparison ignores case, because names may be written in capitals.
    plain = {name.lower(): name for name in names if name != wrong}
    is_name = isinstance(wrong, str) and len(wrong) <= MOST_COMPARED and len(plain) <= MOST_COMPARED
    near = difflib.get_close_matches(str(wrong).lower(), plain, n=1, cutoff=0.6) if is_name else []
    return f": did you mean '{plain[near[0]]}'?" if near else ""


def unknown_argument(name: str, options: Iterable[str], suggested: Iterable[str]) -> TypeError:
    """Return the error for an unknown keyword argument, with all options and the closest name."""
    return TypeError(str(unknown_name("option", name, options, suggested)))


def shorten(name: object) -> str:
    """Return the ``repr`` of a wrong name, cut if it is long."""
    return f"{name[:MOST_QUOTED]!r}…" if isinstance(name, str) and len(name) > MOST_QUOTED else repr(name)


def join_names(names: Iterable[str]) -> str:
    """Join names with commas; names after the first fifty are only counted."""
    names = list(names)
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)
