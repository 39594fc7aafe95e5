"""Resolve the names in a condition to record fields and headers, and convert its literals to their types.

:func:`resolve` is the entry point; the compiled core evaluates what :meth:`Filter.program` returns.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from letterhead._formats import format_info
from letterhead.fields import Columns, ColumnSpec, Field, normalise, plain_key
from letterhead.types import base_type
from letterhead.where.conditions import ANY, DEPTH_HINT, EVERY, MAX_DEPTH, Condition, Logic, Test, Where
from letterhead.where.literals import as_literal, literals_of, pattern, type_of_literal
from letterhead.where.parsing import as_condition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Filter", "Program", "RecordField", "ResolvedTest", "fields_of_format", "filter_of", "resolve", "truth"]

Program: TypeAlias = tuple[list[ColumnSpec], list[str], list[tuple[str, int, str, list[Any]]]]
"""Headers, fields and steps, as the compiled core takes them."""


class RecordField(NamedTuple):
    """A field of a record: its type, and its name in the compiled core if that evaluates it."""

    type: str  # as of a header, such as int64 and timestamp_ms
    name: str | None = None


class ResolvedTest(NamedTuple):
    """A test of a header (a column as :func:`letterhead.fields.normalise` returns it) or of a field (by its name)."""

    operand: ColumnSpec | str
    field: RecordField | None
    quantifier: str
    name: str
    literals: tuple[Any, ...]


class ResolvedLogic(NamedTuple):
    """Conditions combined by ``and``, ``or`` or ``not``."""

    name: str
    parts: tuple[Any, ...]


Node: TypeAlias = "ResolvedTest | ResolvedLogic | bool | None"
"""A condition, or its truth if that is known: true, false or null."""


@lru_cache
def fields_of_format(format: str) -> Mapping[str, RecordField]:
    """Return the fields of the messages of a format, but not the headers; empty for an unknown format."""
    info = format_info(format)
    if info is None:
        return {}
    time = "timestamp" if format.startswith("iggy") else "timestamp_ms"
    return {
        name: RecordField(time if name.endswith("timestamp") else _type_of(type), name)
        for name, type in info.fields
        if name != "headers"
    }


def resolve(
    where: Where | None,
    fields: Mapping[str, RecordField],
    headers: Columns | None = None,
    *,
    columns_name: str = "headers=",
) -> Filter | None:
    """Return the filter for a source with these record fields and ``headers``, which errors call ``columns_name``."""
    if where is None:
        return None
    specs = normalise(headers) if headers else ()
    return _resolved(where, fields, specs, columns_name, format_has_types=False)


def filter_of(
    where: Where | Filter | None, format: str, specs: Sequence[ColumnSpec] = (), *, columns_name: str = "headers="
) -> Filter | None:
    """Return the filter for messages of a format; a reader passes one that it has resolved itself."""
    if where is None or isinstance(where, Filter):
        return where
    info = format_info(format)
    has_types = info is not None and info.types
    return _resolved(where, fields_of_format(format), specs, columns_name, format_has_types=has_types)


def _resolved(
    where: Where,
    fields: Mapping[str, RecordField],
    specs: Sequence[ColumnSpec],
    columns_name: str,
    *,
    format_has_types: bool,
) -> Filter:
    # If the format stores types, a header compared with a number needs no declared type.
    columns = {spec.name: spec for spec in specs}
    return Filter(_resolve_condition(as_condition(where), fields, columns, columns_name, format_has_types))


class Filter:
    """A condition whose operands have been resolved to record fields and header columns."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self._node == other._node

    def __hash__(self) -> int:
        return hash(self._node)

    def bind(self, constants: Mapping[str, Any]) -> Filter:
        """Return the filter for messages that have these values in some fields."""

        def evaluate(test: ResolvedTest) -> Node:
            if isinstance(test.operand, str) and test.operand in constants:
                return truth(test, constants[test.operand])
            return test

        return Filter(_fold(self._node, evaluate))

    @property
    def constant(self) -> bool | None:
        """True if all messages are selected, False if none are; ``None`` if that depends on the message."""
        return None if isinstance(self._node, ResolvedTest | ResolvedLogic) else bool(self._node)

    @property
    def accepts_null(self) -> bool:
        """Whether an unreadable message is selected."""
        return _fold(self._node, lambda test: {"is_null": True, "exists": False}.get(test.name)) is True

    @property
    def program(self) -> Program:
        """The condition for the compiled core."""
        steps: list[tuple[str, int, str, list[Any]]] = []
        tests = self.tests()
        headers = {spec: place for place, spec in enumerate(self.headers)}
        names = dict.fromkeys(
            test.field.name for test in tests if test.field is not None and test.field.name is not None
        )
        fields = {name: place for place, name in enumerate(names, len(headers))}

        def add(node: Node) -> None:
            if isinstance(node, ResolvedLogic):
                for part in node.parts:
                    add(part)
                # With more than two parts, each further step joins a part with the ones before it.
                steps.extend([(node.name, 0, "", [])] * max(1, len(node.parts) - 1))
            elif isinstance(node, ResolvedTest):
                place = headers[node.operand] if isinstance(node.operand, ColumnSpec) else fields[_name_in_core(node)]
                if node.name == "exists":
                    steps.extend([("is_null", place, "", []), ("not", 0, "", [])])
                else:
                    steps.append((node.name, place, node.quantifier, list(node.literals)))
            else:
                steps.append(("null", 0, "", []))

        add(self._node)
        return [*headers], [*fields], steps

    @property
    def headers(self) -> list[ColumnSpec]:
        """The headers that the condition tests, each once."""
        return list(dict.fromkeys(test.operand for test in self.tests() if isinstance(test.operand, ColumnSpec)))

    def tests(self) -> list[ResolvedTest]:
        """Return the tests of the condition."""

        def tests_in(node: Node) -> list[ResolvedTest]:
            if isinstance(node, ResolvedTest):
                return [node]
            return [test for part in node.parts for test in tests_in(part)] if isinstance(node, ResolvedLogic) else []

        return tests_in(self._node)

    def bounds(self, field: str) -> tuple[int | None, int | None]:
        """Return the least and the greatest value of an integer field that a selected message can have."""
        return _between(self._node, field, negated=False)

    def decide(self, evaluate: Callable[[ResolvedTest], bool | None]) -> bool | None:
        """Evaluate the condition for a row. ``evaluate`` decides each test in it; None stands for unknown."""
        decided = _fold(self._node, evaluate)
        if isinstance(decided, ResolvedTest | ResolvedLogic):
            raise AssertionError("a test of the condition was not decided")
        return decided

    def decide_columns(self, evaluate: Callable[[ResolvedTest], pa.BooleanArray], rows: int) -> pa.BooleanArray:
        """Evaluate the condition for all rows. ``evaluate`` decides each test in it, row by row; null stands for unknown."""
        return _decide_columns(self._node, evaluate, rows)


def _name_in_core(test: ResolvedTest) -> str:
    return (test.field and test.field.name) or ""


def _decide_columns(node: Node, evaluate: Callable[[ResolvedTest], pa.BooleanArray], rows: int) -> pa.BooleanArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(node, ResolvedTest):
        return evaluate(node)
    if not isinstance(node, ResolvedLogic):
        return pa.repeat(pa.scalar(node, pa.bool_()), rows)
    first, *others = (_decide_columns(part, evaluate, rows) for part in node.parts)
    if node.name == "not":
        return pc.invert(first)
    combine = pc.and_kleene if node.name == "and" else pc.or_kleene
    for other in others:
        first = combine(first, other)
    return first


def _resolve_condition(
    condition: Condition,
    fields: Mapping[str, RecordField],
    columns: Mapping[str, ColumnSpec],
    columns_name: str,
    format_has_types: bool = False,
    depth: int = 0,
) -> Node:
    if isinstance(condition, Logic):
        if depth == MAX_DEPTH:
            raise ValueError(f"where: {_first_test(condition)!r} is nested too deeply: {DEPTH_HINT}")
        parts = condition.flat()
        return ResolvedLogic(
            condition.name,
            tuple(
                [_resolve_condition(part, fields, columns, columns_name, format_has_types, depth + 1) for part in parts]
            ),
        )
    if not isinstance(condition, Test):
        raise TypeError(f"where: a condition is made by letterhead.col, not a {type(condition).__name__}")
    operand = condition.operand
    name, field, quantifier = operand._name, operand._field, operand._quantifier or ""
    if field is None and isinstance(name, str) and name in fields:
        if name in columns:
            raise ValueError(
                f"where: {name!r} is a record field and a column of {columns_name}: pass col({name!r}, type) for the header "
                f"(headers['{name}']::type in SQL), or rename the column"
            )
        if quantifier:
            raise ValueError(f"where: {operand!r}: a record field has one value: leave out {quantifier}()")
        record_field = fields[name]
        return ResolvedTest(name, record_field, "", condition.name, literals_of(condition, record_field.type))
    if field is None and name == "headers" and quantifier and name not in columns:
        spec = ColumnSpec("where", "headers", EVERY, "all")
        return ResolvedTest(spec, None, quantifier, condition.name, literals_of(condition, spec.type))
    if field is None and name == "headers" and fields and name not in columns:
        raise ValueError(
            "where: 'headers' are all headers of a record: name one of them, as in headers['content-type'], or test all of "
            "them, as in ANY(headers) = 'x'"
        )
    try:
        spec = _header(condition, columns, format_has_types)
    except ValueError as error:
        if field is None and fields:
            error.add_note(f"record fields: {', '.join(fields)}")
        raise
    return ResolvedTest(spec, None, quantifier, condition.name, literals_of(condition, spec.type))


def _first_test(condition: Condition) -> Condition:
    while isinstance(condition, Logic):
        condition = condition.parts[0]
    return condition


def _header(condition: Test, columns: Mapping[str, ColumnSpec], format_has_types: bool) -> ColumnSpec:
    operand = condition.operand
    name, field, quantifier = operand._name, operand._field, operand._quantifier
    if field is None and isinstance(name, str) and name in columns:
        spec = columns[name]._replace(name="where", required=False)
        if quantifier is not None:
            return spec._replace(repeat="all", default=None)
        if spec.repeat == "all":
            raise ValueError(f"where: column {name!r} is a list: use any() or all()")
        # ``exists`` ignores the default.
        return spec._replace(default=None) if condition.name == "exists" else spec
    if condition.name == "exists" or (condition.name == "is_null" and (field is None or field.type == ANY)):
        # Any type will do. A header with a null value exists.
        header = name if field is None or field.key is None else field.key
        return ColumnSpec("where", plain_key(header), "binary:exists" if condition.name == "exists" else ANY)
    if field is None:
        field = Field(_type_of_literals(condition, format_has_types))
    if quantifier is None and field.repeat == "all":
        raise ValueError(f"where: {operand!r} is a list: use any() or all()")
    if quantifier is not None:
        field = field._replace(repeat="all", default=None)
    header = name if field.key is None else field.key
    (spec,) = normalise({"where": field._replace(key=header, required=False)})
    return spec


def _type_of_literals(condition: Test, format_has_types: bool) -> str:
    types = {type_of_literal(literal, format_has_types) for literal in condition.literals}
    type = types.pop() if len(types) == 1 else None
    if type is None:
        name = repr(condition.operand._name)
        raise ValueError(
            f"where: {condition!r}: the header needs a type, as col({name}, 'int32'), or {name[1:-1]}::int32 in SQL"
        )
    return type


def _fold(node: Node, evaluate: Callable[[ResolvedTest], Node]) -> Node:
    """Replace tests by the results of ``evaluate``, and simplify the condition."""
    if isinstance(node, ResolvedTest):
        return evaluate(node)
    if not isinstance(node, ResolvedLogic):
        return node
    parts = [_fold(part, evaluate) for part in node.parts]
    if node.name == "not":
        return (not parts[0]) if isinstance(parts[0], bool) else parts[0] and ResolvedLogic("not", (parts[0],))
    # True decides an `or`, and False an `and`; the other value changes nothing.
    decisive, neutral = (True, False) if node.name == "or" else (False, True)
    if any(part is decisive for part in parts):
        return decisive
    parts = [part for part in parts if part is not neutral]
    if all(part is None for part in parts):
        return None if parts else neutral
    return parts[0] if len(parts) == 1 else ResolvedLogic(node.name, tuple(parts))


def truth(test: ResolvedTest, value: Any) -> bool | None:
    """Return the truth of a test of a value, or of a list of values if the test has a quantifier."""
    if test.quantifier and value is not None:
        truths = [truth(test._replace(quantifier=""), element) for element in value]
        decisive = test.quantifier == "any"
        if decisive in truths:
            return decisive
        return None if None in truths or not truths else not decisive
    name = test.name
    if name in ("is_null", "exists"):
        return (value is None) == (name == "is_null")
    if value is None:
        return None
    value = as_literal(value, base_type(test.operand.type) if isinstance(test.operand, ColumnSpec) else "timestamp_ms")
    if name == "in":
        # Not `value in literals`, for which a NaN equals itself.
        return any(value == literal for literal in test.literals)
    literal = test.literals[0]
    if name == "starts_with":
        return bool(value.startswith(literal))
    if name == "contains":
        return literal in value
    if name == "matches":
        return _matches(literal, value)
    # Python and the core compare alike: NaN is unequal to everything and in no order.
    return bool(_COMPARISONS[name](value, literal))


def _matches(literal: str | bytes, value: str | bytes) -> bool:
    text = literal if isinstance(literal, str) else literal.decode()
    return pattern(text).is_match(value if isinstance(value, bytes) else value.encode())


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _between(node: Node, field: str, negated: bool) -> tuple[int | None, int | None]:
    if isinstance(node, ResolvedTest):
        if node.field is None or node.operand != field:
            return None, None
        if not node.literals:
            return None, None
        if node.name == "in" and not negated:
            return min(node.literals), max(node.literals)
        literal = node.literals[0]
        bounds_by_test: dict[str | None, tuple[int | None, int | None]] = {
            "==": (literal, literal), "<": (None, literal - 1), "<=": (None, literal),
            ">": (literal + 1, None), ">=": (literal, None),
        }  # fmt: skip
        return bounds_by_test.get(_NEGATED.get(node.name) if negated else node.name, (None, None))
    if not isinstance(node, ResolvedLogic):
        return None, None
    if node.name == "not":
        return _between(node.parts[0], field, not negated)
    bounds = [_between(part, field, negated) for part in node.parts]
    lows, highs = [low for low, _ in bounds], [high for _, high in bounds]
    # A negated `or` selects what an `and` of the negated parts selects.
    if (node.name == "and") != negated:
        return max(_not_none(lows), default=None), min(_not_none(highs), default=None)
    return (None if None in lows else min(_not_none(lows))), (None if None in highs else max(_not_none(highs)))


def _not_none(bounds: list[int | None]) -> list[int]:
    return [bound for bound in bounds if bound is not None]


def _type_of(arrow: str) -> str:
    return arrow if arrow in ("bool", "string", "binary") else "int64"
