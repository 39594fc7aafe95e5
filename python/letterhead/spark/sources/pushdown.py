"""Filters that Spark pushes into a data source: :func:`push` adds those that can be applied to a condition.

Spark refuses a reader with a method ``pushFilters`` unless ``spark.sql.python.filterPushdown.enabled`` is true, and does not
tell the reader: :func:`reader_class` returns the class with that method only where filters are pushed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from letterhead.fields import Columns
from letterhead.where.conditions import Condition, Logic, Operand, col

__all__ = ["push", "reader_class"]

T = TypeVar("T")

_WORKER = "data_source_pushdown_filters"
"""The module of pyspark that calls ``pushFilters``, in a process of its own."""

_COMPARISONS = {
    "EqualTo": "==", "EqualNullSafe": "==", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<",
    "LessThanOrEqual": "<=",
}  # fmt: skip


def reader_class(plain: type[T]) -> type[T]:
    """Return a reader's class; where Spark pushes filters, with ``pushFilters``, which calls the method ``push``."""
    if not any(_WORKER in argument for argument in sys.argv[:2]):
        return plain
    return type(plain.__name__, (plain,), {"pushFilters": lambda self, filters: self.push(filters)})


def push(
    filters: Iterable[Any],
    where: Condition | None,
    headers: Columns | None,
    apply: Callable[[Condition], object],
    *,
    keeps_errors: bool,
) -> tuple[Condition | None, list[Any]]:
    """Return a condition with the filters that it can express, and those that Spark has to evaluate.

    ``apply`` raises ValueError for a condition that the source cannot evaluate. If the source keeps rows with errors,
    Spark evaluates all filters again.
    """
    left = []
    for given in filters:
        try:
            pushed = _condition(given, headers or {})
            apply(pushed)
        except (ValueError, TypeError):
            left.append(given)
            continue
        where = pushed if where is None else where & pushed
        if keeps_errors:
            left.append(given)
    return where, left


def _condition(given: Any, headers: Columns) -> Condition:
    """Translate a filter; raise ValueError or TypeError if Spark evaluates it in another way."""
    name = type(given).__name__
    if name == "Not":
        return ~_condition(given.child, headers)
    operand = _operand(given.attribute, headers)
    if name == "IsNull":
        return operand.is_null()
    if name == "IsNotNull":
        return ~operand.is_null()
    if name == "StringStartsWith":
        return operand.starts_with(given.value)
    if name == "In":
        return operand.is_in(_checked(value) for value in given.value)
    if name not in _COMPARISONS:
        raise ValueError(name)
    condition = operand._compared(_COMPARISONS[name], _checked(given.value))
    return Logic("and", condition, ~operand.is_null()) if name == "EqualNullSafe" else condition


def _operand(attribute: tuple[str, ...], headers: Columns) -> Operand:
    (column,) = attribute
    of = headers.get(column)
    # Spark equals NaN to itself, and AMQP values have types of their own in the bytes.
    type = getattr(of, "type", of)
    if isinstance(type, str) and type.startswith(("float", "double", "real")):
        raise ValueError("NaN")
    return col(column)


def _checked(value: Any) -> Any:
    if value is None or isinstance(value, float):
        raise ValueError("a literal that is compared in another way")
    return bytes(value) if isinstance(value, bytearray) else value
