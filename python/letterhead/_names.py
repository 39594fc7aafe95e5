"""Check names that callers pass, such as formats and options: :func:`check_name`."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["check_name", "unknown_name"]


def check_name(name: str, value: object, names: Iterable[str]) -> None:
    """Raise TypeError if a name is not a str, ValueError if it is not in the list.

    ``name`` is what errors call it; options whose names are plural are called ``"errors value"``.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name.removesuffix(' value')} must be str, not {type(value).__name__}")
    names = list(names)
    if value not in names:
        raise unknown_name(name, value, names)


def unknown_name(noun: str, wrong: object, names: Iterable[str]) -> ValueError:
    """Return the error for a misspelt name, with the nearest name and the list of all."""
    import difflib  # only needed for errors, and this package should be fast to import

    names = list(names)
    # Ignore case, so that a name in capitals gets a suggestion.
    plain = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wrong.lower(), plain, n=1, cutoff=0.6) if isinstance(wrong, str) else []
    hint = f": did you mean '{plain[near[0]]}'?" if near else ""
    plural = noun if noun.endswith("s") else f"{noun}es" if noun.endswith("x") else f"{noun}s"
    return ValueError(f"unknown {noun} {wrong!r}{hint} ({plural}: {', '.join(names)})")
