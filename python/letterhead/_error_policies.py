"""Policies for rows that cannot be read, beyond the public values of ``errors=``."""

from __future__ import annotations

from typing import Any

__all__ = ["NULL_COLUMN", "counting_policy", "has_error_column"]

NULL_COLUMN: Any = "null-column"
"""As ``errors="null"``, with a column of errors, by which rows that become null or are left out can be counted."""


def has_error_column(errors: str) -> bool:
    """Return whether a result has a column of errors."""
    return errors in ("column", NULL_COLUMN)


def counting_policy(errors: str) -> Any:
    """Return the policy of a reader for a value of ``--errors``: all but ``raise`` have a column of errors to count."""
    return {"raise": "raise", "null": NULL_COLUMN}.get(errors, "column")
