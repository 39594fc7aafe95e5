"""Values that Spark SQL expressions parse or write, with the conditions that make them invalid: :class:`Checked`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any, NamedTuple, TypeVar

from letterhead.spark.sql_text import F, Sql, bound

__all__ = [
    "Check",
    "Checked",
    "check",
    "case_when",
    "either",
    "first_valid",
    "value_unless_failed",
    "raise_expression",
    "error_expression",
]

ExpressionT = TypeVar("ExpressionT")


class Check(NamedTuple):
    """Condition that makes a value invalid, with the core's error code and message."""

    when: Sql
    code: str
    message: Sql


class Checked(NamedTuple):
    """Parsed or written value, defined only if no check fails, with its checks; the first failed check is reported."""

    checks: Sequence[Check]
    value: Sql


def check(when: Sql, code: str, message: str) -> Check:
    """Return a check with a constant message."""
    return Check(when, code, F.lit(message))


def value_unless_failed(checks: Sequence[Check], value: Sql, fail: Callable[[Check], Sql]) -> Sql:
    """Return the value, or the result of ``fail`` for the first check that fails."""
    return case_when([(check.when, fail(check)) for check in checks], value)


def case_when(
    choices: Sequence[tuple[ExpressionT, ExpressionT]], otherwise: ExpressionT, when: Callable[..., Any] = F.when
) -> ExpressionT:
    """Return the value of the first true condition, as one flat CASE because Spark Connect rejects deep nesting.

    ``when`` starts a CASE; for Columns it is PySpark's.
    """
    if not choices:
        return otherwise
    case = when(*choices[0])
    for condition, value in choices[1:]:
        case = case.when(condition, value)
    result: ExpressionT = case.otherwise(otherwise)
    return result


def raise_expression(prefix: str, check: Check, suffix: str = "") -> Sql:
    """Return the expression that fails the query with the error of a check, enclosed in ``prefix`` and ``suffix``."""
    return F.raise_error(F.concat(F.lit(prefix), check.message, F.lit(f" ({check.code}){suffix}")))


def error_expression(
    code: str,
    message: Sql,
    *,
    byte: int | None = None,
    header: Sql | None = None,
    key: str | None = None,
    column: str | None = None,
) -> Sql:
    """Return an error as an element of an error column."""
    return F.struct(
        code=F.lit(code),
        message=message,
        byte_offset=F.lit(byte).cast("bigint"),
        header=F.lit(None).cast("int") if header is None else header,
        key=F.lit(key).cast("string"),
        column=F.lit(column).cast("string"),
    )


def either(condition: Sql, if_true: Checked, if_false: Checked) -> Checked:
    """Return one of two results. Checks are not combined with `&`, because Spark may evaluate both operands."""
    no = F.lit(False)
    return Checked(
        [
            *(check._replace(when=F.when(condition, check.when).otherwise(no)) for check in if_true.checks),
            *(check._replace(when=F.when(condition, no).otherwise(check.when)) for check in if_false.checks),
        ],
        F.when(condition, if_true.value).otherwise(if_false.value),
    )


def first_valid(results: Sequence[Checked]) -> Checked:
    """Return the first valid result. If all results are invalid, the error combines their distinct messages."""
    *before, last = results
    if not before:
        return last
    no, value = F.lit(False), last.value
    messages = [
        bound(value_unless_failed(result.checks, F.lit(None), lambda check: check.message).cast("string"))
        for result in before
    ]
    all_bad = reduce(and_, (message.is_not_null() for message in messages))
    for result, message in zip(reversed(before), reversed(messages), strict=True):
        value = F.when(message.is_null(), result.value).otherwise(value)

    def joined(own: Sql) -> Sql:
        return F.array_join(F.array_distinct(F.array(*messages, own)), "; ")

    checks = [
        Check(F.when(all_bad, check.when).otherwise(no), check.code, joined(check.message)) for check in last.checks
    ]
    return Checked(checks, value)
