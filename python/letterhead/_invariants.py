"""Check conditions that hold by construction, also under ``python -O``, which removes ``assert``."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["instance", "require"]

T = TypeVar("T")


def require(value: T | None, name: str) -> T:
    """Return the value, or raise an error with ``name`` if it is ``None``."""
    if value is None:
        raise AssertionError(f"{name} is missing")
    return value


def instance(value: Any, expected: type[T]) -> T:
    """Return the value, or raise an error if it is not an instance of the class."""
    if not isinstance(value, expected):
        raise AssertionError(f"{expected.__name__} is needed, not {type(value).__name__}")
    return value
