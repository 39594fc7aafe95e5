"""Policies for rows that cannot be read, beyond the public values of ``errors=``."""

from __future__ import annotations

from typing import Any

__all__ = ["NULL_COLUMN", "counting_policy", "has_error_column"]

NULL_COLUMN: Any = "null-column"
"""Policy like ``errors="null"``, with an error column that counts rows set to null or dropped."""


def has_error_column(errors: str) -> bool:
    """Return whether a result has an error column."""
    return errors in ("column", NULL_COLUMN)


def counting_policy(errors: str) -> Any:
    """Return the policy of a reader for a value of ``--errors``: all but ``raise`` count errors in an error column."""
    return {"raise": "raise", "null": NULL_COLUMN}.get(errors, "column")
