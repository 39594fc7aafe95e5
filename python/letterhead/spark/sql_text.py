"""Expressions of Spark SQL: :class:`Sql` with Column's operators, the functions :data:`F`, and :func:`projections`.

An expression is a graph: :func:`bound` marks an expression that is used several times, but written once.
:func:`projections` writes the graph as lists of columns, each of which reads the previous one, so the text grows with
the graph; a tree, such as a single Column, grows with the product of all uses. Spark parses text in one step, but a
Column takes a call of the JVM for each node.

Strings with a backslash or a quote are written as bytes, because a setting of Spark determines what a backslash means.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as spark_functions

__all__ = [
    "F",
    "Sql",
    "as_subquery",
    "attribute",
    "bound",
    "combine",
    "literal",
    "column_by_name",
    "projections",
    "quote",
]


class Sql:
    """Expression of Spark SQL.

    Attributes
    ----------
    parts : tuple of str or Sql
        The text of the expression, with its operands.
    variables : frozenset of str
        Free variables: variables that only a lambda around this expression declares.
    """

    is_bound = False

    def __init__(
        self, parts: tuple[str | Sql, ...], build: Callable[[], Column], variables: frozenset[str] | None = None
    ) -> None:
        self.parts = parts
        self._build = build
        inner = (part.variables for part in self.operands)
        self.variables: frozenset[str] = frozenset[str]().union(*inner) if variables is None else variables

    @property
    def operands(self) -> Iterable[Sql]:
        """Operands of the expression; an operand that is used several times is repeated."""
        return (part for part in self.parts if isinstance(part, Sql))

    @cached_property
    def column(self) -> Column:
        """Column with the expression; it repeats shared parts."""
        return self._build()

    def __getitem__(self, field: str) -> Sql:
        return _Operator(_FIELD, (self, f".{field}"), lambda: self.column[field])

    def cast(self, type: str) -> Sql:
        """Return the expression cast to a type of Spark SQL."""
        return Sql(("cast(", self, f" as {type})"), lambda: self.column.cast(type))

    def is_null(self) -> Sql:
        """Return whether the value is null."""
        return _Operator(_COMPARISON, (self, " is null"), lambda: self.column.isNull())

    def is_not_null(self) -> Sql:
        """Return whether the value is not null."""
        return _Operator(_COMPARISON, (self, " is not null"), lambda: self.column.isNotNull())

    def isin(self, *values: object) -> Sql:
        """Return whether the value is one of some constants."""
        texts = ", ".join(map(_literal_text, values))
        return _Operator(_COMPARISON, (self, f" in ({texts})"), lambda: self.column.isin(*values))

    def between(self, low: object, high: object) -> Sql:
        """Return whether the value is in a range, including its limits."""
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
        """Return the integer quotient."""
        return _operator(self, "div", divisor, lambda left, right: spark_functions.call_function("div", left, right))

    def bits_and(self, other: object) -> Sql:
        """Return the bitwise AND."""
        return _operator(self, "&", other, lambda left, right: left.bitwiseAND(right))

    def bits_or(self, other: object) -> Sql:
        """Return the bitwise OR."""
        return _operator(self, "|", other, lambda left, right: left.bitwiseOR(right))

    def __neg__(self) -> Sql:
        return _Operator(_UNARY, ("- ", self), lambda: -self.column)

    def __invert__(self) -> Sql:
        return _Operator(_NOT, ("not ", self), lambda: ~self.column)

    def __and__(self, other: object) -> Sql:
        return _operator(self, "and", other, operator.and_)

    def __or__(self, other: object) -> Sql:
        return _operator(self, "or", other, operator.or_)

    __hash__ = object.__hash__

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


class _Operator(Sql):
    """Expression with an operator. Operands of lower precedence than ``level`` get parentheses."""

    def __init__(self, level: int, parts: tuple[str | Sql, ...], build: Callable[[], Column]) -> None:
        super().__init__(parts, build)
        self.level = level


_LEVELS = {"or": 0, "and": 1, "|": 4, "&": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "div": 7}
"""Precedences of operators; all others are comparisons."""

_AND, _NOT, _COMPARISON, _UNARY, _FIELD = 1, 2, 3, 8, 9


class _Bound(Sql):
    """Expression that may become a separate column: it must not fail, because it is evaluated for every row."""

    is_bound = True


def bound(expression: Sql) -> Sql:
    """Mark an expression that :func:`projections` may write once; it must not fail for any value."""
    return _Bound((expression,), lambda: expression.column)


def column_by_name(name: str) -> Sql:
    """Return a column by its complete name, which may contain any characters."""
    return Sql((quote(name),), lambda: spark_functions.col(quote(name)))


def attribute(column: str | Column) -> Sql:
    """Return a Column, which has no text, or a column by its name for ``F.col``: ``struct.field``, parts in backticks."""
    if not isinstance(column, str):
        return Sql((), lambda: column)
    parts = _PART.findall(column) if _NAME.fullmatch(column) else []
    text = ".".join(part if part.startswith("`") else quote(part) for part in parts)
    return Sql((text,) if text else (), lambda: spark_functions.col(column))


_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")

_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


def as_subquery(expression: Sql) -> str:
    """Return the complete text of an expression: a query of :func:`projections` if it uses some parts several times.

    When Spark plans the query, it inlines these expressions without a join.
    """
    *steps, last = projections({"result": expression}, ())
    if not steps:
        return last["result"]
    query = ""
    for step in (*steps, last):
        items = ", ".join(f"{text} as {name}" for name, text in step.items())
        query = f"select {items} from ({query})" if query else f"select {items}"
    return f"({query})"


def combine(sign: Literal["and", "or"], operands: Sequence[Sql]) -> Sql:
    """Return operands joined by AND or OR, in one flat expression."""
    by = operator.and_ if sign == "and" else operator.or_
    separated = [part for operand in operands for part in (f" {sign} ", operand)][1:]
    return _Operator(_LEVELS[sign], tuple(separated), lambda: reduce(by, (operand.column for operand in operands)))


def literal(value: object) -> Sql:
    """Return a literal of Spark SQL, typed as ``F.lit`` types it."""
    return Sql((_literal_text(value),), lambda: spark_functions.lit(value))


class _Case(Sql):
    """``CASE`` without ELSE, to which ``when`` and ``otherwise`` add branches."""

    def __init__(self, choices: tuple[tuple[Sql, Sql], ...]) -> None:
        self.choices = choices
        super().__init__((*self._parts(), " end"), self._column)

    def when(self, condition: Sql, value: object) -> _Case:
        """Add a branch, for rows in which no earlier condition is true."""
        return _Case((*self.choices, (condition, _operand(value))))

    def otherwise(self, value: object) -> Sql:
        """Add the value for all other rows."""
        last = _operand(value)
        return Sql((*self._parts(), " else ", last, " end"), lambda: self._column().otherwise(last.column))

    def _parts(self) -> list[str | Sql]:
        parts: list[str | Sql] = ["case"]
        for condition, value in self.choices:
            parts += [" when ", condition, " then ", value]
        return parts

    def _column(self) -> Column:
        case: Any = spark_functions
        for condition, value in self.choices:
            case = case.when(condition.column, value.column)
        column: Column = case
        return column


class _Functions:
    """Functions of Spark SQL, by name. Arguments other than expressions are constants."""

    def __getattr__(self, name: str) -> Callable[..., Sql]:
        if not hasattr(spark_functions, name):
            raise AttributeError(name)
        return lambda *arguments: _call(name, *arguments)

    def lit(self, value: object) -> Sql:
        return literal(value)

    def when(self, condition: Sql, value: object) -> _Case:
        """Return a value where a condition is true; null elsewhere, unless ``when`` or ``otherwise`` follows."""
        return _Case(((condition, _operand(value)),))

    def regexp_extract(self, text: Sql, pattern: str, group: int) -> Sql:
        """Return a group of the first match of a pattern, or an empty string without a match."""
        return _call("regexp_extract", text, _without_backslashes(pattern), group)

    def struct(self, **fields: Sql) -> Sql:
        """Return a struct."""
        return _call("named_struct", *(part for name, value in fields.items() for part in (name, value)))

    def mapped(self, function: str, array: Sql, variable: str, body: Callable[[Sql], Sql]) -> Sql:
        """Return ``transform``, ``filter`` or ``exists`` of an array."""

        def of_element(element: Column) -> Column:
            return body(attribute(element)).column

        return _with_lambda(function, array, (variable,), body, of_element)

    def numbered(self, array: Sql, body: Callable[[Sql, Sql], Sql]) -> Sql:
        """Return ``transform`` of an array, over elements and their positions."""

        def of_element(element: Column, position: Column) -> Column:
            return body(attribute(element), attribute(position)).column

        return _with_lambda("transform", array, ("element", "position"), body, of_element)


F = _Functions()
"""Functions of Spark SQL."""


def projections(columns: Mapping[str, Sql], taken: Iterable[str]) -> list[dict[str, str]]:
    """Return expressions as lists of columns by name: each reads the previous list, and the last one has the results.

    A bound expression that is used more than once becomes a column of an earlier list, under a name that is not in
    ``taken``. A list repeats the columns of the previous one that later lists need.
    """
    return _Projections(columns, taken).lists()


class _Projections:
    def __init__(self, columns: Mapping[str, Sql], taken: Iterable[str]) -> None:
        self.columns = columns
        self.prefix = "_bound"
        while any(name.lower().startswith(self.prefix) for name in (*taken, *columns)):
            self.prefix += "_"
        self.uses: dict[Sql, Counter[Sql]] = {}
        total: Counter[Sql] = Counter()
        pending, known = list(columns.values()), set[Sql]()
        while pending:
            used = self._uses(pending.pop())
            total.update(used)
            for expression in used:
                if expression not in known:
                    known.add(expression)
                    pending.append(*expression.operands)
        self.names = {
            expression: f"{self.prefix}{number}"
            for number, expression in enumerate(expression for expression, count in total.items() if count > 1)
        }
        self.levels: dict[Sql, int] = {}

    def _uses(self, expression: Sql) -> Counter[Sql]:
        """Count how often the text of an expression uses bound expressions."""
        if expression not in self.uses:
            uses: Counter[Sql] = Counter()
            for operand in expression.operands:
                uses.update({operand: 1} if _is_liftable(operand) else self._uses(operand))
            self.uses[expression] = uses
        return self.uses[expression]

    def _level(self, expression: Sql) -> int:
        if expression not in self.levels:
            inner = max(map(self._level, expression.operands), default=0)
            self.levels[expression] = inner + (expression in self.names)
        return self.levels[expression]

    def lists(self) -> list[dict[str, str]]:
        depth = max(map(self._level, self.names), default=0)
        lists: list[dict[str, str]] = [{} for _ in range(depth + 1)]
        lists[depth] = {name: self._text(expression) for name, expression in self.columns.items()}
        last_use = dict.fromkeys(self.names, 0)
        for user, level in [
            *((user, self._level(user) - 1) for user in self.names),
            *((user, depth) for user in self.columns.values()),
        ]:
            for used in self._named(user):
                last_use[used] = max(last_use[used], level)
        for expression, name in self.names.items():
            first = self._level(expression) - 1
            lists[first][name] = self._text(*expression.operands)
            for repeated in range(first + 1, last_use[expression]):
                lists[repeated][name] = name
        return lists

    def _named(self, expression: Sql) -> Iterator[Sql]:
        """Return the columns in the text of an expression."""
        for used in self._uses(expression):
            if used in self.names:
                yield used
            else:
                yield from self._named(used)

    def _text(self, expression: Sql) -> str:
        texts: list[str] = []
        _write(expression, self.names, texts)
        return "".join(texts)


def _write(expression: Sql, names: Mapping[Sql, str], texts: list[str], outer: int = 0) -> None:
    """Append the text of an expression, with some parts by name; at the level ``outer``, it needs no parentheses.

    Parentheses are avoided, because Spark's parser looks ahead from each one to its end.
    """
    level = expression.level if isinstance(expression, _Operator) else None
    inner = level + (level > _AND) if level is not None else outer if expression.is_bound else 0
    is_enclosed = level is not None and level < outer
    texts.append("(" if is_enclosed else "")
    for part in expression.parts:
        if isinstance(part, str):
            texts.append(part)
        elif part in names:
            texts.append(names[part])
        else:
            _write(part, names, texts, inner)
    texts.append(")" if is_enclosed else "")


def _is_liftable(expression: Sql) -> bool:
    return expression.is_bound and not expression.variables


def _call(name: str, *arguments: object) -> Sql:
    operands = [_operand(argument) for argument in arguments]
    separated = [part for operand in operands for part in (", ", operand)][1:]
    return Sql(
        (f"{name}(", *separated, ")"),
        lambda: spark_functions.call_function(name, *(operand.column for operand in operands)),
    )


def _with_lambda(
    function: str, array: Sql, variables: tuple[str, ...], body: Callable[..., Sql], of_element: Callable[..., Column]
) -> Sql:
    inner = body(*(Sql((name,), lambda: spark_functions.lit(None), frozenset([name])) for name in variables))
    names = variables[0] if len(variables) == 1 else f"({', '.join(variables)})"
    return Sql(
        (f"{function}(", array, f", {names} -> ", inner, ")"),
        lambda: getattr(spark_functions, function)(array.column, of_element),
        array.variables | (inner.variables - {*variables}),
    )


def _operator(left: Sql, sign: str, right: object, build: Callable[[Any, Any], Column]) -> Sql:
    other = _operand(right)
    level = _LEVELS.get(sign, _COMPARISON)
    return _Operator(level, (left, f" {sign} ", other), lambda: build(left.column, other.column))


def _operand(value: object) -> Sql:
    return value if isinstance(value, Sql) else literal(value)


def _without_backslashes(pattern: str) -> str:
    r"""Return a pattern in which ``\A``, ``\z`` and ``\.`` are written without a backslash.

    ``$`` would also match before a last newline.
    """
    return pattern.replace(r"\A", "^").replace(r"\z", "(?![^.]|[.])").replace(r"\.", "[.]")


def quote(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def _literal_text(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -(1 << 31) <= value < 1 << 31 else f"{value}L"
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
