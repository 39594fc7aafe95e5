"""Conditions that hold by construction. They are checked with ``python -O``, too, which removes ``assert``."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["instance", "require"]

T = TypeVar("T")


def require(value: T | None, name: str) -> T:
    """Return a value that is not ``None``; ``name`` is for the error."""
    if value is None:
        raise AssertionError(f"{name} is missing")
    return value


def instance(value: Any, expected: type[T]) -> T:
    """Return a value of a class."""
    if not isinstance(value, expected):
        raise AssertionError(f"{expected.__name__} is needed, not {type(value).__name__}")
    return value
