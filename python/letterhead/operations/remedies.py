"""Add to the error of a row the option that keeps the other rows: :func:`noting_remedy`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from letterhead.errors import DecodeError, HeaderError

__all__ = ["KEEP_ROWS", "NULL_ROWS", "note_remedy", "noting_remedy", "showing_rows", "bytes_remedy"]


KEEP_ROWS = 'errors="column" returns all rows, and the errors of each in a column'
"""Remedy for an unreadable row."""

NULL_ROWS = 'errors="null" returns null for such a row'
"""Remedy for functions without an error column."""

SHOW_ROWS = 'letterhead.open with errors="column" shows such rows'
"""Remedy for functions that end at such a row."""


def note_remedy(error: BaseException, remedy: str = KEEP_ROWS) -> None:
    """Add to a row's error a note that names the option to keep the other rows. Also called by the core."""
    if isinstance(error, DecodeError) and error.row is not None and not getattr(error, "__notes__", ()):
        error.add_note(remedy)


@contextmanager
def noting_remedy(errors: str, remedy: str = KEEP_ROWS) -> Iterator[None]:
    """If ``errors="raise"``, add to a row's error a note that names the option to keep the other rows."""
    try:
        yield
    except DecodeError as error:
        if errors == "raise":
            note_remedy(error, remedy)
        raise


@contextmanager
def showing_rows(*, allows_typed: bool = False) -> Iterator[None]:
    """Replace the note in a row's error, for a function that ends at such a row.

    With ``allows_typed``, the function has an error column for typed headers.
    """
    try:
        yield
    except DecodeError as error:
        if getattr(error, "__notes__", ()) and not (allows_typed and error.column not in (None, "where")):
            error.__notes__ = [SHOW_ROWS + bytes_remedy(error)]
        raise


def bytes_remedy(error: HeaderError) -> str:
    """Return the remedy for a condition on a header whose value is not text; empty for other errors."""
    is_text = error.column == "where" and error.code == "value_not_utf8"
    return "; a test of bytes, as in tenant::binary = 'acme', decides them" if is_text else ""
