"""Conditions on headers as expressions of Spark SQL: :class:`HeaderCondition`.

They are true, false or null for the same rows as in the core, with three differences: in Spark NaN equals itself and is
the greatest number, ``exists`` of an empty list is false, and regular expressions are Java's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from letterhead.fields import ColumnSpec
from letterhead.spark.checks import case_when
from letterhead.spark.engine import OTHER_ENGINE, NotReadBySparkError
from letterhead.spark.expressions import RANGES
from letterhead.spark.header_column import HeaderLists, check_read_by_spark, join_errors
from letterhead.spark.patterns import java_pattern
from letterhead.spark.sql_text import F, Sql, bound, combine
from letterhead.types import base_type
from letterhead.where.conditions import ANY, EVERY
from letterhead.where.program import Filter, Node, ResolvedLogic, ResolvedTest

__all__ = ["HeaderCondition", "check_tested_by_spark"]

_EXISTS = "binary:exists"

_LOCATED = ("code", "message", "byte_offset", "header", "key")


def check_tested_by_spark(condition_filter: Filter) -> None:
    """Raise ``ValueError`` for a condition that Spark's expressions do not support."""
    for test in condition_filter.tests():
        spec = test.operand
        if isinstance(spec, str):
            raise NotReadBySparkError(f"where: a list of headers has no field '{spec}'")
        if spec.type not in (ANY, EVERY, _EXISTS):
            check_read_by_spark(spec.type, spec.split)
        if test.name != "matches":
            continue
        if base_type(spec.type) == "binary":
            raise NotReadBySparkError(f"where: bytes are not matched by regular expressions of Spark: {OTHER_ENGINE}")
        if java_pattern(test.literals[0]) is None:
            raise NotReadBySparkError(
                "where: the regular expression may match other text in Java, which Spark's expressions use: "
                f"{OTHER_ENGINE}, or write it without groups, and with [0-9] for classes of characters"
            )


class HeaderCondition:
    """Condition on lists of headers.

    Attributes
    ----------
    truth : Sql
        Whether the condition is true of each list: true, false or null.
    errors : list of Sql
        Errors of the list itself, then of each tested header; each is null without errors. Empty if errors are ignored.
    """

    def __init__(self, condition_filter: Filter, lists: HeaderLists) -> None:
        self._lists = lists
        self._values: dict[ColumnSpec, Sql] = {}
        self.errors = [lists.null_keys] if lists.errors == "column" else []
        for spec in condition_filter.headers:
            self._values[spec] = self._value(spec)
        self.truth = bound(self._truth(condition_filter.node))

    def selected_with_errors(self, type: str) -> tuple[Sql, Sql]:
        """Return whether a list is selected or has errors, and its errors as a column of a type.

        Errors name the condition unless it is true.
        """
        errors = bound(join_errors(self.errors))
        condition = F.when(self.truth, F.lit(None)).otherwise("where")
        located = F.mapped(
            "transform", errors, "e", lambda e: F.struct(**{name: e[name] for name in _LOCATED}, column=condition)
        )
        return errors.is_not_null() | self.truth, located.cast(type)

    def raising(self, type: str, row: Sequence[Sql]) -> Sql:
        """Return the condition as an expression that raises the first error, whose text ends with ``row``."""

        def fail(errors: Sql) -> Sql:
            # If there are no checks, the errors are an untyped null.
            error = F.get(errors.cast(type), F.lit(0))
            column = F.when(error["column"].is_not_null(), "column where: ").otherwise("")
            header = F.coalesce(F.concat(F.lit(", header "), error["header"].cast("string")), F.lit(""))
            return F.raise_error(
                F.concat(
                    F.lit(f"{self._lists.type.format}: "), column, error["message"], F.lit(" ("), error["code"], header,
                    F.lit(")"), *row,
                )
            )  # fmt: skip

        return case_when([(errors.is_not_null(), fail(errors)) for errors in self.errors], self.truth)

    def _value(self, spec: ColumnSpec) -> Sql:
        """Return the value of a header; for a test of existence, whether the header exists."""
        if spec.type == _EXISTS:
            return self._lists.is_present(spec)
        if spec.type == EVERY:
            values = self._lists.column["value"].cast("array<binary>")
            return bound(F.when(self._lists.has_null_key(), F.lit(None)).otherwise(values))
        if spec.type == ANY:
            spec = spec._replace(type="binary")
        if self._lists.errors != "column":
            return bound(self._lists.value(spec))
        errors, value = self._lists.reported(spec)
        self.errors.append(errors)
        return bound(value)

    def _truth(self, node: Node) -> Sql:
        if isinstance(node, ResolvedLogic):
            parts = [self._truth(part) for part in node.parts]
            return ~parts[0] if node.name == "not" else combine("and" if node.name == "and" else "or", parts)
        if not isinstance(node, ResolvedTest) or isinstance(node.operand, str):
            return F.lit(None if not isinstance(node, bool) else node).cast("boolean")
        spec, value = node.operand, self._values[node.operand]
        if node.name == "exists":
            return value

        def holds(value: Sql) -> Sql:
            return _holds(node.name, node.literals, value, base_type(spec.type))

        if node.quantifier == "any":
            return _any(value, holds)
        return ~_any(value, lambda value: ~holds(value)) if node.quantifier else holds(value)


def _any(values: Sql, holds: Any) -> Sql:
    """Return whether a test is true for any element; null for an empty list, or if it is true for none and null for some."""
    is_true = F.mapped("exists", values, "v", lambda value: F.coalesce(holds(value), F.lit(False)))
    is_null = (F.size(values) <= 0) | F.mapped("exists", values, "v", lambda value: holds(value).is_null())
    return F.when(values.is_null(), F.lit(None)).when(is_true, True).when(is_null, F.lit(None)).otherwise(False)


def _holds(name: str, literals: Sequence[Any], value: Sql, type: str) -> Sql:
    """Return whether a test is true for a value."""
    if name == "is_null":
        return value.is_null()
    if name == "matches":
        return value.rlike(str(java_pattern(literals[0])))
    if name in ("starts_with", "contains"):
        return (F.startswith if name == "starts_with" else F.contains)(value, literals[0])
    if type in ("float32", "float64"):
        return _float_holds(name, literals, value)
    if type in ("timestamp", "date"):
        value = (F.unix_micros if type == "timestamp" else F.unix_date)(value)
    low, high = _range(type)
    if name == "in":
        within = [_constant(literal, type) for literal in literals if low is None or low <= literal <= high]
        return value.isin(*within) if within else _true_unless_null(value, False)
    [literal] = literals
    if low is not None and not low <= literal <= high:
        return _true_unless_null(value, name == "!=" or ((name in ("<", "<=")) == (literal > high) and name != "=="))
    return _compare(name, value, _constant(literal, type))


def _compare(name: str, value: Sql, literal: object) -> Sql:
    comparisons = {
        "==": value.__eq__, "!=": value.__ne__, "<": value.__lt__, "<=": value.__le__, ">": value.__gt__, ">=": value.__ge__,
    }  # fmt: skip
    return comparisons[name](literal)


def _true_unless_null(value: Sql, truth: bool) -> Sql:
    """Return a constant, or null where the value is null."""
    return F.when(value.is_not_null(), truth).otherwise(None)


def _range(type: str) -> tuple[Any, Any]:
    """Return the bounds for literals compared with a number column; no value equals a literal outside of them."""
    if type.startswith("decimal"):
        limit = 10**38 - 1
        return -limit, limit
    if type in ("timestamp", "timestamp_ms"):
        return RANGES["int64"]
    return RANGES.get(type, (None, None))


def _constant(literal: Any, type: str) -> Any:
    """Return a literal as a constant of Spark SQL."""
    if type.startswith("decimal"):
        # Digits are passed one by one, because arithmetic in a decimal context of Python rounds.
        scale = int(type[:-1].partition(",")[2])
        return Decimal((int(literal < 0), tuple(map(int, str(abs(literal)))), -scale))
    if isinstance(literal, int) and not isinstance(literal, bool) and not -(1 << 63) <= literal < 1 << 63:
        return Decimal(literal)
    return literal


def _float_holds(name: str, literals: Sequence[float], value: Sql) -> Sql:
    """Return whether a test is true for a float: NaN is unequal to everything, and unordered."""
    value = bound(value.cast("double"))
    is_nan = F.isnan(value)
    numbers = [float(literal) for literal in literals if not math.isnan(literal)]
    if name == "in":
        # Positive and negative zero are equal, but not as elements of a Java set.
        signs = (0.0, -0.0) if 0.0 in numbers else ()
        return (
            value.isin(*(number for number in numbers if number), *signs)
            if numbers
            else _true_unless_null(value, False)
        )
    if not numbers:
        return _true_unless_null(value, name == "!=")
    compared = _compare(name, value, numbers[0])
    return compared & ~is_nan if name in (">", ">=") else compared
