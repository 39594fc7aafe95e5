"""Resolve the names in a condition to record fields and headers, and convert its literals to their types.

:func:`resolve` is the entry point; the compiled core evaluates the result of :meth:`Filter.program`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from letterhead import _native
from letterhead._arrow_types import to_pyarrow
from letterhead._formats import format_info
from letterhead.fields import Columns, ColumnSpec, Field, native_key, normalise
from letterhead.where.conditions import ANY, DEPTH_HINT, EVERY, MAX_DEPTH, Condition, Logic, Predicate, Where
from letterhead.where.literals import literals_of, type_of_literal
from letterhead.where.parsing import as_condition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Filter",
    "Operand",
    "Program",
    "ResolvedTest",
    "Step",
    "fields_of_format",
    "filter_of",
    "resolve",
    "within_offsets",
]

Operand: TypeAlias = "ColumnSpec | str"
"""Header, as a column from :func:`letterhead.fields.normalise`, or the name of a field."""


class Step(NamedTuple):
    """A test, or ``and``, ``or``, ``not`` or ``null`` for preceding results; operands are indexes of headers, then fields."""

    name: str
    operand: int = 0
    quantifier: str = ""
    literals: Sequence[Any] = ()


class Program(NamedTuple):
    """Condition in the form of the compiled core."""

    headers: list[ColumnSpec]
    fields: list[str]
    steps: list[Step]


class ResolvedTest(NamedTuple):
    """Test of a header or of a field."""

    operand: Operand
    quantifier: str
    name: str
    literals: tuple[Any, ...]


class ResolvedLogic(NamedTuple):
    """Conditions combined by ``and``, ``or`` or ``not``."""

    name: str
    parts: tuple[Any, ...]


Node: TypeAlias = "ResolvedTest | ResolvedLogic | bool | None"
"""Condition, or its value if it is constant: true, false or null."""


@lru_cache
def fields_of_format(format: str) -> Mapping[str, str]:
    """Return the types of the message fields of a format, without the headers; empty for an unknown format."""
    info = format_info(format)
    if info is None:
        return {}
    time = "timestamp" if format.startswith("iggy") else "timestamp_ms"
    return {
        name: time if name.endswith("timestamp") else _type_of(type) for name, type in info.fields if name != "headers"
    }


def resolve(where: Where | None, fields: Mapping[str, str], headers: Columns | None = None) -> Filter | None:
    """Resolve a condition to a filter for a source with the given record fields and ``headers``.

    The type of a field is a header type, such as ``int64`` or ``timestamp_ms``. A field with type ``""`` can be tested
    only for null.
    """
    if where is None:
        return None
    specs = normalise(headers) if headers else ()
    return _resolve(where, fields, specs, format_has_types=False)


def filter_of(where: Where | Filter | None, format: str, specs: Sequence[ColumnSpec] = ()) -> Filter | None:
    """Return the filter for messages of a format; an already resolved filter is returned unchanged."""
    if where is None or isinstance(where, Filter):
        return where
    info = format_info(format)
    has_types = info is not None and info.types
    return _resolve(where, fields_of_format(format), specs, format_has_types=has_types)


def _resolve(where: Where, fields: Mapping[str, str], specs: Sequence[ColumnSpec], *, format_has_types: bool) -> Filter:
    # In formats that store types, a header that is compared with a number needs no declared type.
    columns = {spec.name: spec for spec in specs}
    return Filter(_resolve_condition(as_condition(where), fields, columns, format_has_types))


def within_offsets(where: Filter | None, start: int, end: int) -> Filter:
    """Add the condition that the offset is in [``start``, ``end``), or unknown because the message is unreadable."""
    tests = [
        ResolvedTest("offset", "", name, literals)
        for name, literals in (("is_null", ()), (">=", (start,)), ("<", (end,)))
    ]
    is_unknown, is_after, is_before = tests
    within = ResolvedLogic("or", (is_unknown, ResolvedLogic("and", (is_after, is_before))))
    return Filter(within if where is None or where.constant else ResolvedLogic("and", (where.node, within)))


class Filter:
    """Condition with operands resolved to record fields and header columns."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.node == other.node

    def __hash__(self) -> int:
        return hash(self.node)

    def bind(self, constants: Mapping[str, Any]) -> Filter:
        """Return the filter with some fields replaced by constant values."""

        def evaluate(test: ResolvedTest) -> Node:
            if isinstance(test.operand, str) and test.operand in constants:
                import pyarrow as pa

                value = pa.array([constants[test.operand]])
                decided: bool | None = Filter(test).truths({test.operand: value}, 1)[0].as_py()
                return decided
            return test

        return Filter(_fold(self.node, evaluate))

    @property
    def constant(self) -> bool | None:
        """True if all messages are selected, False if none are selected, ``None`` if it depends on the message."""
        return None if isinstance(self.node, ResolvedTest | ResolvedLogic) else bool(self.node)

    @property
    def accepts_null(self) -> bool:
        """Whether a message is selected if all operands are null, as in an unreadable message."""
        return _fold(self.node, lambda test: {"is_null": True, "exists": False}.get(test.name)) is True

    @property
    def program(self) -> Program:
        """Condition for the compiled core."""
        steps: list[Step] = []
        operands = {operand: index for index, operand in enumerate([*self.headers, *self.fields])}

        def add(node: Node) -> None:
            if isinstance(node, ResolvedLogic):
                for part in node.parts:
                    add(part)
                # Each `and` or `or` step combines two results, so more than two parts need several steps.
                steps.extend([Step(node.name)] * max(1, len(node.parts) - 1))
            elif isinstance(node, ResolvedTest):
                index = operands[node.operand]
                if node.name == "exists":
                    steps.extend([Step("is_null", index), Step("not")])
                else:
                    steps.append(Step(node.name, index, node.quantifier, node.literals))
            else:  # null; also for a false condition, because neither selects a message
                steps.append(Step("null"))

        add(self.node)
        return Program(self.headers, self.fields, steps)

    def truths(self, columns: Mapping[Operand, pa.Array], rows: int) -> pa.BooleanArray:
        """Evaluate the condition for each row; the result is null if unknown, for example without a column for an operand."""
        import pyarrow as pa

        if isinstance(self.node, bool):
            return pa.repeat(pa.scalar(self.node), rows)
        operands: list[Operand] = [*self.headers, *self.fields]
        return to_pyarrow(_native.truths(self.program, [columns.get(operand) for operand in operands], rows))

    @property
    def headers(self) -> list[ColumnSpec]:
        """Distinct headers in the condition."""
        return list(dict.fromkeys(test.operand for test in self.tests() if isinstance(test.operand, ColumnSpec)))

    @property
    def fields(self) -> list[str]:
        """Distinct fields in the condition."""
        return list(dict.fromkeys(test.operand for test in self.tests() if isinstance(test.operand, str)))

    def tests(self) -> list[ResolvedTest]:
        """Return the tests of the condition."""

        def tests_in(node: Node) -> list[ResolvedTest]:
            if isinstance(node, ResolvedTest):
                return [node]
            return [test for part in node.parts for test in tests_in(part)] if isinstance(node, ResolvedLogic) else []

        return tests_in(self.node)

    def bounds(self, field: str) -> tuple[int | None, int | None]:
        """Return lower and upper bounds of an integer field for selected messages; None means no bound."""
        return _find_implied_bounds(self.node, field, negated=False)


def _resolve_condition(
    condition: Condition,
    fields: Mapping[str, str],
    columns: Mapping[str, ColumnSpec],
    format_has_types: bool = False,
    depth: int = 0,
) -> Node:
    if isinstance(condition, Logic):
        if depth == MAX_DEPTH:
            raise ValueError(f"where: {_first_test(condition)!r} is nested too deeply: {DEPTH_HINT}")
        parts = condition.flat()
        return ResolvedLogic(
            condition.name,
            tuple([_resolve_condition(part, fields, columns, format_has_types, depth + 1) for part in parts]),
        )
    if not isinstance(condition, Predicate):
        raise TypeError(f"where: a condition is made by letterhead.col, not a {type(condition).__name__}")
    operand = condition.operand
    name, field, quantifier = operand._name, operand._field, operand._quantifier or ""
    if field is None and isinstance(name, str) and name in fields:
        if name in columns:
            raise ValueError(
                f"where: {name!r} is a record field and a column of headers=: pass col({name!r}, type) for the header "
                f"(headers['{name}']::type in SQL), or rename the column"
            )
        if quantifier:
            raise ValueError(f"where: {operand!r}: a record field has one value: leave out {quantifier}()")
        if not fields[name] and condition.name not in ("is_null", "exists"):
            raise ValueError(
                f"where: column {name!r} has a type that is only tested for null: pass col({name!r}, type) for a header of "
                f"this name (headers['{name}']::type in SQL)"
            )
        return ResolvedTest(name, "", condition.name, literals_of(condition, fields[name]))
    if field is None and name == "headers" and quantifier and name not in columns:
        spec = ColumnSpec("where", "headers", EVERY, "all")
        return ResolvedTest(spec, quantifier, condition.name, literals_of(condition, spec.type))
    if field is None and name == "headers" and fields and name not in columns:
        raise ValueError(
            "where: 'headers' are all headers of a record: name one of them, as in headers['content-type'], or test all of "
            "them, as in ANY(headers) = 'x'"
        )
    if field is None and isinstance(name, str) and "." in name and name not in columns:
        column = name.partition(".")[0]
        if fields.get(column) == "":
            nested = [each for each in fields if each.startswith(f"{column}.")]
            reason = (
                f"is no field of column {column!r}, whose fields are {', '.join(nested)}"
                if nested
                else f": parts of column {column!r} are not tested: filter the result by them"
            )
            raise ValueError(
                f"where: {name!r}{' ' if nested else ''}{reason}; col({name!r}, type) is a header of this name "
                f"(headers['{name}']::type in SQL)"
            )
    try:
        spec = _header(condition, columns, format_has_types)
    except ValueError as error:
        if field is None and fields:
            error.add_note(f"record fields: {', '.join(fields)}")
        raise
    return ResolvedTest(spec, quantifier, condition.name, literals_of(condition, spec.type))


def _first_test(condition: Condition) -> Condition:
    while isinstance(condition, Logic):
        condition = condition.parts[0]
    return condition


def _header(condition: Predicate, columns: Mapping[str, ColumnSpec], format_has_types: bool) -> ColumnSpec:
    operand = condition.operand
    name, field, quantifier = operand._name, operand._field, operand._quantifier
    if field is None and isinstance(name, str) and name in columns:
        spec = columns[name]._replace(name="where", required=False)
        if condition.name == "exists":
            # Do not read the value: a header exists even if its value is unreadable.
            return ColumnSpec("where", spec.key, "binary:exists")
        if quantifier is not None:
            return spec._replace(repeat="all", default=None)
        if spec.repeat == "all":
            raise ValueError(f"where: column {name!r} is a list: use any() or all()")
        return spec
    if condition.name == "exists" or (condition.name == "is_null" and (field is None or field.type == ANY)):
        # The type of the header is irrelevant for tests of existence and null.
        header = name if field is None or field.key is None else field.key
        return ColumnSpec("where", native_key(header), "binary:exists" if condition.name == "exists" else ANY)
    if field is None:
        field = Field(_type_of_literals(condition, format_has_types))
    if quantifier is None and field.repeat == "all":
        raise ValueError(f"where: {operand!r} is a list: use any() or all()")
    if quantifier is not None:
        field = field._replace(repeat="all", default=None)
    header = name if field.key is None else field.key
    (spec,) = normalise({"where": field._replace(key=header, required=False)})
    return spec


def _type_of_literals(condition: Predicate, format_has_types: bool) -> str:
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
    # True decides an `or` and False an `and`; the opposite value is neutral.
    decisive, neutral = (True, False) if node.name == "or" else (False, True)
    if any(part is decisive for part in parts):
        return decisive
    parts = [part for part in parts if part is not neutral]
    if all(part is None for part in parts):
        return None if parts else neutral
    return parts[0] if len(parts) == 1 else ResolvedLogic(node.name, tuple(parts))


_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _find_implied_bounds(node: Node, field: str, negated: bool) -> tuple[int | None, int | None]:
    if isinstance(node, ResolvedTest):
        if node.operand != field:
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
        return _find_implied_bounds(node.parts[0], field, not negated)
    bounds = [_find_implied_bounds(part, field, negated) for part in node.parts]
    lows, highs = [low for low, _ in bounds], [high for _, high in bounds]
    # A negated `or` equals an `and` of the negated parts.
    if (node.name == "and") != negated:
        return max(_not_none(lows), default=None), min(_not_none(highs), default=None)
    return (None if None in lows else min(_not_none(lows))), (None if None in highs else max(_not_none(highs)))


def _not_none(bounds: list[int | None]) -> list[int]:
    return [bound for bound in bounds if bound is not None]


def _type_of(arrow: str) -> str:
    return arrow if arrow in ("bool", "string", "binary") else "int64"
