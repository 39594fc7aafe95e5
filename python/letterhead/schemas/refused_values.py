"""Error for values that a schema or a column does not allow: :class:`RefusedValue`."""

from __future__ import annotations

from typing import Any

from letterhead.errors import ErrorDetail

__all__ = ["RefusedValue", "distinct_entries"]


class RefusedValue(Exception):
    """Error for a value that the schema, or a column, does not allow."""

    def __init__(self, code: str, message: str, byte_offset: int | None = None) -> None:
        super().__init__(message)
        self.detail = ErrorDetail(code, message, byte_offset=byte_offset)


def distinct_entries(pairs: list[tuple[Any, Any]], path: str) -> dict[Any, Any]:
    """Return the entries of a map; raise RefusedValue if a key is repeated."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise RefusedValue("repeated_key", f"field {path} has a key twice")
    return entries
