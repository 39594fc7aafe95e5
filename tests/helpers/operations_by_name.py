"""Operations of the core by their names, with all options as keywords, for tests that run over several of them."""

from __future__ import annotations

from typing import Any

from letterhead import operations
from letterhead.fields import ColumnSpec
from letterhead.operations import DecodeOptions, WriteOptions

__all__ = ["apply", "made"]

READING = ("errors", "error_column", "lenient", "strict_types", "text_keys", "limits")
WRITING = ("on_loss", "types", "nulls", "canonical")
CLASSES = {"messages": "ExplodeBatches"}


def made(operation: str, format: str, **options: Any) -> Any:
    """Return an operation, such as ``"decode"``."""
    reading = {name: options.pop(name) for name in READING if name in options}
    writing = {name: options.pop(name) for name in WRITING if name in options}
    if operation == "convert":
        options |= {"reading": DecodeOptions(**reading), "writing": WriteOptions(**writing)}
    else:
        options["options"] = WriteOptions(**writing) if operation == "encode" else DecodeOptions(**reading)
    if "columns" in options and operation == "select":
        options["columns"] = tuple(ColumnSpec(*column) for column in options["columns"])
    return getattr(operations, CLASSES.get(operation, operation.capitalize()))(format, **options)


def apply(
    operation: str, column: Any, format: str, *, threads: int = 1, max_offset: int | None = None, **options: Any
) -> Any:
    """Return the result of an operation for a column, as an object of the core."""
    return made(operation, format, **options).apply(column, threads=threads, max_offset=max_offset)
