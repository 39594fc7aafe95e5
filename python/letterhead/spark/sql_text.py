"""Expressions of Spark SQL as text: :class:`Sql`, which has the operators of Column, and :data:`F`, its functions.

Text is parsed by Spark in one step, where a tree of Columns takes a call of the JVM for each node; it also runs where no
Column can be made, in a view or in a model of dbt. An expression over a Column, which has no text, is made of Columns.

Strings with a backslash or a quote are written as bytes, because a setting of Spark decides what a backslash means.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as spark_functions

__all__ = ["F", "Sql", "attribute", "literal", "named"]


@dataclass(frozen=True, eq=False)
class Sql:
    """An expression of Spark SQL.

    Attributes
    ----------
    text : str
        The expression, in parentheses if it needs them.
    build : callable
        Makes the same expression of Columns.
    is_text : bool
        Whether ``text`` is the whole expression; false if it refers to a Column.
    """

    text: str
    build: Callable[[], Column]
    is_text: bool = True

    def column(self) -> Column:
        """Return the expression as a Column."""
        return spark_functions.expr(self.text) if self.is_text else self.build()

    def __getitem__(self, field: str) -> Sql:
        return Sql(f"{self.text}.{field}", lambda: self.build()[field], self.is_text)

    def cast(self, type: str) -> Sql:
        """Return the expression cast to a type of Spark SQL."""
        return Sql(f"cast({self.text} as {type})", lambda: self.build().cast(type), self.is_text)

    def is_null(self) -> Sql:
        """Return whether the value is null."""
        return Sql(f"({self.text} is null)", lambda: self.build().isNull(), self.is_text)

    def is_not_null(self) -> Sql:
        """Return whether the value is not null."""
        return Sql(f"({self.text} is not null)", lambda: self.build().isNotNull(), self.is_text)

    def isin(self, *values: object) -> Sql:
        """Return whether the value is one of some constants."""
        texts = ", ".join(literal(value).text for value in values)
        return Sql(f"({self.text} in ({texts}))", lambda: self.build().isin(*values), self.is_text)

    def between(self, low: object, high: object) -> Sql:
        """Return whether the value is in a range, with its limits."""
        return (self >= low) & (self <= high)

    def rlike(self, pattern: str) -> Sql:
        """Return whether a regular expression matches."""
        plain = _without_backslashes(pattern)
        return _operator(self, "rlike", plain, lambda text, _: text.rlike(plain))

    def startswith(self, text: str) -> Sql:
        """Return whether a string begins with another."""
        return F.startswith(self, text)

    def endswith(self, text: str) -> Sql:
        """Return whether a string ends with another."""
        return F.endswith(self, text)

    def div(self, divisor: object) -> Sql:
        """Return the quotient of integers."""
        return _operator(self, "div", divisor, lambda left, right: spark_functions.call_function("div", left, right))

    def bits_and(self, other: object) -> Sql:
        """Return the bits of both."""
        return _operator(self, "&", other, lambda left, right: left.bitwiseAND(right))

    def bits_or(self, other: object) -> Sql:
        """Return the bits of either."""
        return _operator(self, "|", other, lambda left, right: left.bitwiseOR(right))

    def __neg__(self) -> Sql:
        return Sql(f"(- {self.text})", lambda: -self.build(), self.is_text)

    def __invert__(self) -> Sql:
        return Sql(f"(not {self.text})", lambda: ~self.build(), self.is_text)

    def __and__(self, other: object) -> Sql:
        return _operator(self, "and", other, operator.and_)

    def __or__(self, other: object) -> Sql:
        return _operator(self, "or", other, operator.or_)

    def __eq__(self, other: object) -> Sql:  # type: ignore[override]
        return _operator(self, "=", other, operator.eq)

    def __ne__(self, other: object) -> Sql:  # type: ignore[override]
        return _operator(self, "<>", other, operator.ne)

    def __lt__(self, other: object) -> Sql:
        return _operator(self, "<", other, operator.lt)

    def __le__(self, other: object) -> Sql:
        return _operator(self, "<=", other, operator.le)

    def __gt__(self, other: object) -> Sql:
        return _operator(self, ">", other, operator.gt)

    def __ge__(self, other: object) -> Sql:
        return _operator(self, ">=", other, operator.ge)

    def __add__(self, other: object) -> Sql:
        return _operator(self, "+", other, operator.add)

    def __sub__(self, other: object) -> Sql:
        return _operator(self, "-", other, operator.sub)

    def __mul__(self, other: object) -> Sql:
        return _operator(self, "*", other, operator.mul)

    def __truediv__(self, other: object) -> Sql:
        return _operator(self, "/", other, operator.truediv)

    def __mod__(self, other: object) -> Sql:
        return _operator(self, "%", other, operator.mod)


def named(name: str) -> Sql:
    """Return a column by its whole name, whatever characters the name contains."""
    quoted = _quoted(name)
    return Sql(quoted, lambda: spark_functions.col(quoted))


def attribute(column: str | Column) -> Sql:
    """Return a Column, or a column by name as ``F.col`` reads it: a dot before a field of a struct, backticks around names.

    Examples
    --------
    >>> attribute("message.headers").text, attribute("`message.headers`").text
    ('`message`.`headers`', '`message.headers`')
    """
    if not isinstance(column, str):
        return Sql("<column>", lambda: column, is_text=False)
    parts = [""]
    is_quoted = False
    for character in column:
        if character == "`":
            is_quoted = not is_quoted
        elif character == "." and not is_quoted:
            parts.append("")
        else:
            parts[-1] += character
    text = ".".join(map(_quoted, parts))
    return Sql(text, lambda: spark_functions.col(text))


def literal(value: object) -> Sql:
    """Return a constant of Spark SQL, of the type that ``F.lit`` has for it."""
    return Sql(_literal_text(value), lambda: spark_functions.lit(value))


@dataclass(frozen=True, eq=False)
class Case(Sql):
    """A ``CASE`` without a last value, to which ``when`` and ``otherwise`` add one."""

    choices: tuple[tuple[Sql, Sql], ...] = ()

    def when(self, condition: Sql, value: object) -> Case:
        """Return the expression with another condition, for rows in which none before it holds."""
        return _case((*self.choices, (condition, _operand(value))))

    def otherwise(self, value: object) -> Sql:
        """Return the expression with the value for all other rows."""
        return _case(self.choices, _operand(value))


def _case(choices: tuple[tuple[Sql, Sql], ...], otherwise: Sql | None = None) -> Case:
    texts = " ".join(f"when {condition.text} then {value.text}" for condition, value in choices)

    def build() -> Column:
        case: Any = spark_functions
        for condition, value in choices:
            case = case.when(condition.build(), value.build())
        column: Column = case if otherwise is None else case.otherwise(otherwise.build())
        return column

    every = [part for choice in choices for part in choice] + ([] if otherwise is None else [otherwise])
    last = "" if otherwise is None else f" else {otherwise.text}"
    return Case(f"(case {texts}{last} end)", build, all(part.is_text for part in every), choices)


class _Functions:
    """The functions of Spark SQL by their names, and those with a syntax of their own. Other arguments are constants."""

    def __getattr__(self, name: str) -> Callable[..., Sql]:
        if not hasattr(spark_functions, name):
            raise AttributeError(name)
        return lambda *arguments: _call(name, *arguments)

    def lit(self, value: object) -> Sql:
        return literal(value)

    def when(self, condition: Sql, value: object) -> Case:
        """Return a value where a condition holds; null elsewhere, unless ``when`` or ``otherwise`` follows."""
        return _case(((condition, _operand(value)),))

    def regexp_extract(self, text: Sql, pattern: str, group: int) -> Sql:
        """Return a group of the first match of a pattern, an empty string without one."""
        return _call("regexp_extract", text, _without_backslashes(pattern), group)

    def struct(self, **fields: Sql) -> Sql:
        """Return a struct."""
        return _call("named_struct", *(part for name, value in fields.items() for part in (name, value)))

    def mapped(self, function: str, array: Sql, variables: str, body: Callable[..., Sql]) -> Sql:
        """Return ``transform``, ``filter`` or ``exists`` of an array; ``variables`` are the names of one or two variables."""
        names = variables.split()
        inner = body(*(Sql(name, lambda: spark_functions.lit(None)) for name in names))

        def build() -> Column:
            # Spark takes the number of parameters from the signature.
            def one(value: Column) -> Column:
                return body(attribute(value)).build()

            def two(value: Column, index: Column) -> Column:
                return body(attribute(value), attribute(index)).build()

            column: Column = getattr(spark_functions, function)(array.build(), one if len(names) == 1 else two)
            return column

        parameters = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return Sql(f"{function}({array.text}, {parameters} -> {inner.text})", build, array.is_text and inner.is_text)


F = _Functions()
"""Functions of Spark SQL."""


def _call(name: str, *arguments: object) -> Sql:
    operands = [_operand(argument) for argument in arguments]
    return Sql(
        f"{name}({', '.join(operand.text for operand in operands)})",
        lambda: spark_functions.call_function(name, *(operand.build() for operand in operands)),
        all(operand.is_text for operand in operands),
    )


def _operator(left: Sql, sign: str, right: object, build: Callable[[Any, Any], Column]) -> Sql:
    other = _operand(right)
    return Sql(
        f"({left.text} {sign} {other.text})", lambda: build(left.build(), other.build()), left.is_text and other.is_text
    )


def _operand(value: object) -> Sql:
    return value if isinstance(value, Sql) else literal(value)


def _without_backslashes(pattern: str) -> str:
    r"""Return a pattern in which ``\A``, ``\z`` and ``\.`` are written without a backslash.

    ``$`` would also match before a last newline.
    """
    return pattern.replace(r"\A", "^").replace(r"\z", "(?![^.]|[.])").replace(r"\.", "[.]")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal_text(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}BD"
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"cast('{_NOT_FINITE[str(value)]}' as double)"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            # Spark replaces ${name} in the text of a query.
            is_plain = value.isprintable() and not set(value) & set("\\'") and "${" not in value
            return f"'{value}'" if is_plain else f"cast(X'{value.encode().hex()}' as string)"
        case _:
            raise TypeError(f"no constant of Spark SQL for {value.__class__.__name__}")


_NOT_FINITE: Mapping[str, str] = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
