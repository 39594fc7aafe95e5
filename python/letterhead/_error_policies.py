"""What happens to rows that cannot be read, beyond the values that ``errors=`` has in public."""

from __future__ import annotations

from typing import Any

__all__ = ["NULL_COLUMN", "has_error_column"]

NULL_COLUMN: Any = "null-column"
"""As ``errors="null"``, with a column of errors: the command line counts the rows that it makes null, or leaves out."""


def has_error_column(errors: str) -> bool:
    """Return whether a result has a column of errors."""
    return errors in ("column", NULL_COLUMN)
