"""Add to the error of a row the option that keeps the other rows: :func:`noting_remedy`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from letterhead.errors import DecodeError

__all__ = ["KEEP_ROWS", "NULL_ROWS", "note_remedy", "noting_remedy"]


KEEP_ROWS = 'errors="column" returns all rows, and the errors of each in a column'
"""Remedy for an unreadable row."""

NULL_ROWS = 'errors="null" returns null for such a row'
"""Remedy for functions without an error column."""


def note_remedy(error: BaseException, remedy: str = KEEP_ROWS) -> None:
    """Add a note to a row's error, which names the option to keep the other rows. Also called by the core."""
    if isinstance(error, DecodeError) and error.row is not None and not getattr(error, "__notes__", ()):
        error.add_note(remedy)


@contextmanager
def noting_remedy(errors: str, remedy: str = KEEP_ROWS) -> Iterator[None]:
    """Add a note to a row's error, if ``errors="raise"``, which names the option to keep the other rows."""
    try:
        yield
    except DecodeError as error:
        if errors == "raise":
            note_remedy(error, remedy)
        raise
