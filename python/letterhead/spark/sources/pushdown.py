"""Filters that Spark pushes into a data source: :func:`push` adds supported filters to a condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceReader

from letterhead._row_request import RowRequest
from letterhead.fields import Columns, columns_of
from letterhead.where.conditions import Condition, Logic, Operand, col

__all__ = ["FilterPushdown", "push"]

_COMPARISONS = {
    "EqualTo": "==", "EqualNullSafe": "==", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<",
    "LessThanOrEqual": "<=",
}  # fmt: skip


class FilterPushdown:
    """Reader that applies filters with its method ``push``.

    Unless ``spark.sql.python.filterPushdown.enabled`` is true, Spark rejects a reader that overrides ``pushFilters``,
    and the reader cannot query the setting. Spark recognizes its own method by ``__func__``, so the method is an object
    with that attribute.
    """

    @property
    def pushFilters(self) -> _PushFilters:
        """Callable through which Spark passes filters."""
        return _PushFilters(self.push)  # type: ignore[attr-defined]


class _PushFilters:
    def __init__(self, push: Callable[[list[Any]], list[Any]]) -> None:
        self._push = push
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)  # Spark 4.0 has none

    def __call__(self, filters: list[Any]) -> list[Any]:
        return self._push(filters)


def push(
    filters: Iterable[Any], request: RowRequest, apply: Callable[[RowRequest], object]
) -> tuple[RowRequest, list[Any]]:
    """Return a request with the filters that its condition can express, and the filters left to Spark.

    ``apply`` raises ValueError for a condition that the source cannot evaluate. If the source keeps rows with errors,
    Spark evaluates all filters again.
    """
    left = []
    where: Any = request.where
    for spark_filter in filters:
        try:
            pushed = _condition(spark_filter, request.headers or {})
            apply(replace(request, where=pushed))
        except (ValueError, TypeError):
            left.append(spark_filter)
            continue
        where = pushed if where is None else where & pushed
        if request.errors == "column":
            left.append(spark_filter)
    return replace(request, where=where), left


def _condition(spark_filter: Any, headers: Columns) -> Condition:
    """Translate a filter; raise ValueError or TypeError if Spark would evaluate it differently."""
    name = type(spark_filter).__name__
    if name == "Not":
        return ~_condition(spark_filter.child, headers)
    operand = _operand(spark_filter.attribute, headers)
    if name == "IsNull":
        return operand.is_null()
    if name == "IsNotNull":
        return ~operand.is_null()
    if name == "StringStartsWith":
        return operand.starts_with(spark_filter.value)
    if name == "In":
        return operand.isin(_check_literal(value) for value in spark_filter.value)
    if name not in _COMPARISONS:
        raise ValueError(name)
    condition = operand._compared(_COMPARISONS[name], _check_literal(spark_filter.value))
    return Logic("and", condition, ~operand.is_null()) if name == "EqualNullSafe" else condition


def _operand(attribute: tuple[str, ...], headers: Columns) -> Operand:
    (column,) = attribute
    spec = columns_of(headers).get(column)
    # Conditions on floats stay with Spark, where NaN equals itself. AMQP values contain their own types.
    type = getattr(spec, "type", spec)
    if isinstance(type, str) and type.startswith(("float", "double", "real")):
        raise ValueError("NaN")
    return col(column)


def _check_literal(value: Any) -> Any:
    if value is None or isinstance(value, float):
        raise ValueError("a literal that is compared in another way")
    return bytes(value) if isinstance(value, bytearray) else value
