"""Operands and conditions as written by users; the entry point is :func:`col`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial, reduce
from typing import Any, Literal, TypeAlias

from letterhead._names import check_name
from letterhead.fields import REPEATS, Field, Repeat, check_key, check_utf8, field_and_default
from letterhead.headers import GivenKey
from letterhead.types import ValueType
from letterhead.values import Value

__all__ = ["Condition", "Logic", "Operand", "Predicate", "Where", "all_of", "col", "parts_of", "predicates_in"]

MAX_DEPTH = 30
"""Maximum nesting of ``not``, ``and`` and ``or``; the number of conditions on one level is unlimited."""

ANY = "binary:any"
"""Placeholder type of an operand that is tested only for null, and therefore needs no type."""

EVERY = "binary:every"
"""Placeholder type of the operand that represents the headers of all keys."""

DEPTH_HINT = f"use at most {MAX_DEPTH} levels of not and parentheses"

SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Operator of each comparison after swapping its operands."""

_LITERALS = (str, bytes, bool, int, float, date, datetime, Decimal, uuid.UUID, Value)


class Condition:
    """A condition on messages, which is true, false or null as in SQL. Combine conditions with ``&``, ``|`` and ``~``."""

    def __and__(self, other: Condition) -> Condition:
        return Logic("and", self, _condition(other, "&"))

    def __or__(self, other: Condition) -> Condition:
        return Logic("or", self, _condition(other, "|"))

    def __invert__(self) -> Condition:
        return Logic("not", self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition is not a bool: combine conditions with &, | and ~ (in parentheses) instead of and, or and not, "
            "and write two comparisons instead of a < b < c"
        )


Where: TypeAlias = Condition | str
"""Types accepted by ``where``: a condition, or SQL text."""


class Logic(Condition):
    """Conditions combined by ``and``, ``or`` or ``not``."""

    def __init__(self, name: Literal["and", "or", "not"], *parts: Condition) -> None:
        self.name = name
        self.parts = parts

    def flat(self) -> list[Condition]:
        """Return the parts of a chain of ``and`` or ``or`` iteratively, because chains can exceed Python's recursion limit."""
        if self.name == "not":
            return [*self.parts]
        parts: list[Condition] = []
        left: list[Condition] = [self]
        while left:
            part = left.pop()
            if isinstance(part, Logic) and part.name == self.name:
                left.extend(reversed(part.parts))
            else:
                parts.append(part)
        return parts

    def __repr__(self) -> str:
        if self.name == "not":
            return f"~({self.parts[0]!r})"
        return (" & " if self.name == "and" else " | ").join(f"({part!r})" for part in self.flat())

    def __reduce__(self) -> tuple[Any, ...]:
        return _chain, (self.name, self.flat())


def all_of(conditions: Iterable[Condition]) -> Condition | None:
    """Combine conditions with ``and``; return None if there are none."""
    parts = [*conditions]
    return _chain("and", parts) if parts else None


def parts_of(condition: Condition) -> list[Condition]:
    """Split a condition into parts that are combined with ``and``."""
    return condition.flat() if isinstance(condition, Logic) and condition.name == "and" else [condition]


def predicates_in(condition: Condition) -> Iterator[Predicate]:
    """Yield the tests of a condition."""
    left = [condition]
    while left:
        part = left.pop()
        if isinstance(part, Logic):
            left.extend(reversed(part.parts))
        elif isinstance(part, Predicate):
            yield part


def _chain(name: Literal["and", "or", "not"], parts: list[Condition]) -> Condition:
    """Combine conditions in the same way as the operators do."""
    if name == "not":
        return Logic(name, *parts)
    return reduce(partial(Logic, name), parts)


class Predicate(Condition):
    """A test of one operand: a comparison, ``in``, ``starts_with``, ``contains``, ``matches``, ``is_null`` or ``exists``."""

    def __init__(self, operand: Operand, name: str, literals: tuple[Any, ...] = ()) -> None:
        self.operand = operand
        self.name = name
        self.literals = literals

    def __repr__(self) -> str:
        if self.name == "in":
            return f"{self.operand!r}.isin([{', '.join(map(literal_text, self.literals))}])"
        if self.name in ("is_null", "exists", "starts_with", "contains", "matches"):
            return f"{self.operand!r}.{self.name}({', '.join(map(literal_text, self.literals))})"
        return f"{self.operand!r} {self.name} {literal_text(self.literals[0])}"


class Operand:
    """A header or a record field in a condition, created by :func:`col`.

    Compare an operand with a literal by ``==``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``.
    """

    def __init__(self, name: GivenKey, field: Field | None, quantifier: Literal["any", "all"] | None = None) -> None:
        self._name = name
        self._field = field
        self._quantifier = quantifier

    def any(self) -> Operand:
        """Return an operand for tests that are true if any header with the key passes."""
        return self._quantified("any")

    def all(self) -> Operand:
        """Return an operand for tests that are true if the key exists and all headers with the key pass."""
        return self._quantified("all")

    def is_null(self) -> Condition:
        """Return the condition that the header is missing or null, or that the field is null."""
        if self._quantifier is not None:
            raise ValueError(f"{self!r}: is_null() tests one value: leave out {self._quantifier}()")
        return Predicate(self, "is_null")

    def is_not_null(self) -> Condition:
        """Return the condition that the header exists and is not null, or that the field is not null."""
        return ~self.is_null()

    def exists(self) -> Condition:
        """Return the condition that the message has the header, even with a null value; no type is needed."""
        if self._quantifier is not None:
            raise ValueError(f"{self!r}: exists() tests all headers of the key: leave out {self._quantifier}()")
        return Predicate(self, "exists")

    def contains(self, part: str | bytes) -> Condition:
        """Return the condition that the value (text or bytes) contains a part."""
        if not isinstance(part, str | bytes):
            raise TypeError(f"a part must be str or bytes, not {type(part).__name__}")
        return Predicate(self, "contains", (self._literal(part),))

    def matches(self, pattern: str, *, ignore_case: bool = False) -> Condition:
        r"""Return the condition that a regular expression matches any part of the value (text or bytes).

        The syntax is defined by Rust's crate ``regex``, which is similar to Python's, without look-around and backreferences.
        ``^`` and ``$`` match the beginning and the end of the value.
        """
        if not isinstance(pattern, str):
            raise TypeError(f"a regular expression must be str, not {type(pattern).__name__}")
        return Predicate(self, "matches", (self._literal(f"(?i){pattern}" if ignore_case else pattern),))

    def isin(self, values: Iterable[Any]) -> Condition:
        """Return the condition that the value equals one of the literals."""
        if isinstance(values, str | bytes):
            raise TypeError(f"isin needs a list of values, not {type(values).__name__}")
        return Predicate(self, "in", tuple(self._literal(value) for value in values))

    def starts_with(self, prefix: str | bytes) -> Condition:
        """Return the condition that the value (text or bytes) starts with a prefix."""
        if not isinstance(prefix, str | bytes):
            raise TypeError(f"a prefix must be str or bytes, not {type(prefix).__name__}")
        return Predicate(self, "starts_with", (self._literal(prefix),))

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compared("==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: object) -> Condition:
        return self._compared("<", other)

    def __le__(self, other: object) -> Condition:
        return self._compared("<=", other)

    def __gt__(self, other: object) -> Condition:
        return self._compared(">", other)

    def __ge__(self, other: object) -> Condition:
        return self._compared(">=", other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} is not a condition: compare it with a literal, as in {self!r} == True")

    def __repr__(self) -> str:
        arguments = [repr(self._name)]
        if self._field is not None:
            plain = self._field.key is None and not self._field.required
            simple = plain and self._field.repeat in ("last", "all")
            arguments.append(repr(self._field.type if simple else self._field))
        quantifier = f".{self._quantifier}()" if self._quantifier else ""
        return f"col({', '.join(arguments)}){quantifier}"

    def _quantified(self, quantifier: Literal["any", "all"]) -> Operand:
        if self._quantifier is not None:
            raise ValueError(f"{self!r} has a quantifier already")
        if self._field is not None and self._field.repeat in ("first", "error"):
            raise ValueError(f"{self!r}: {quantifier}() tests all values: leave out repeat={self._field.repeat!r}")
        field = self._field and self._field._replace(repeat="all")
        return Operand(self._name, field, quantifier)

    def _compared(self, name: str, other: object) -> Condition:
        return Predicate(self, name, (self._literal(other),))

    def _literal(self, value: object) -> Any:
        if value is None:
            raise TypeError(f"{self!r}: a comparison with None is never true: use is_null()")
        if isinstance(value, Operand | Condition):
            raise TypeError(f"{self!r}: only comparisons with literals are supported, not with {value!r}")
        if not isinstance(value, _LITERALS):
            raise TypeError(
                f"{self!r}: a literal must be str, bytes, bool, int, float, Decimal, datetime, date, UUID or a letterhead.Value, "
                f"not "
                f"{type(value).__name__}"
            )
        if isinstance(value, str):
            check_utf8(f"{self!r}: the text", value)
        return value


def col(key: GivenKey, type: ValueType | Field | None = None, *, repeat: Repeat = "last") -> Operand:
    """Return a header or a record field as an operand for conditions.

    Parameters
    ----------
    key : str, int, bytes or Value
        Key of a header. Without a type, the name of a record field (``offset``, ``timestamp``, ``partition``, ``key`` and
        so on) selects that field, and the name of a column in ``headers=`` selects the header of that column.
    type : str, Field, pyspark.sql.types.DataType or pyarrow.DataType, optional
        Type of the header, as in :func:`letterhead.field`, or a field. A key with a type is always a header. By default,
        the literal determines the type: ``string`` for str, ``binary`` for bytes, and the type of a
        :class:`~letterhead.Value`.
    repeat : {"last", "first", "error"}, default "last"
        Which header to test if the key repeats. :meth:`Operand.any` and :meth:`Operand.all` test all headers with the key.

    Returns
    -------
    Operand
        The operand; its comparisons return conditions. A missing header is null.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Examples
    --------
    >>> import letterhead as lh
    >>> (lh.col("tenant") == "acme") & (lh.col("retry", "int32") > 2)
    (col('tenant') == 'acme') & (col('retry', 'int32') > 2)
    >>> lh.col("route", "string").any() == "eu"
    col('route', 'string').any() == 'eu'
    """
    check_key("key", key)
    check_name("repeat", repeat, REPEATS)
    if repeat == "all":
        raise ValueError("repeat='all' is a list: use col(...).any() or col(...).all()")
    if isinstance(type, Field):
        if repeat != "last":
            raise ValueError("repeat= is part of the field: pass lh.field(..., repeat=...)")
        return Operand(key, type)
    if type is None:
        if repeat != "last":
            raise ValueError(f"repeat={repeat!r} needs a type: pass col({key!r}, 'string', repeat={repeat!r})")
        return Operand(key, None)
    return Operand(key, field_and_default(type, None, repeat)[0])


def literal_text(literal: Any) -> str:
    """Return a literal in Python's syntax, or a description of an integer that is too large for Python to format."""
    if isinstance(literal, int) and literal.bit_length() > 200:
        return f"(an integer of {literal.bit_length():,} bits)"
    return repr(literal)


def _condition(other: object, operator: str) -> Condition:
    if isinstance(other, Condition):
        return other
    hint = ": put comparisons in parentheses" if isinstance(other, bool | int | float | str | bytes | Operand) else ""
    raise TypeError(f"{operator} combines conditions, not {type(other).__name__}{hint}")
