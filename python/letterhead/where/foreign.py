"""Translate expressions of pyarrow and polars: :func:`of_pyarrow` and :func:`of_polars`.

Neither library has an interface to walk an expression: Substrait needs the types of all columns beforehand, which only the
condition determines here. So this module reads what the libraries serialize: pyarrow's form of an expression in pickles,
and polars' JSON. Both may change with a release: a form or a part that is not known raises ``ValueError``.
"""

from __future__ import annotations

import ctypes
import json
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from letterhead.where.conditions import SWAPPED, Condition, Logic, Operand, col

__all__ = ["of_polars", "of_pyarrow"]

_NAMES = {
    **dict.fromkeys(("equal", "Eq"), "=="), **dict.fromkeys(("not_equal", "NotEq"), "!="),
    **dict.fromkeys(("less", "Lt"), "<"), **dict.fromkeys(("less_equal", "LtEq"), "<="),
    **dict.fromkeys(("greater", "Gt"), ">"), **dict.fromkeys(("greater_equal", "GtEq"), ">="),
    **dict.fromkeys(("and_kleene", "And", "LogicalAnd"), "and"), **dict.fromkeys(("or_kleene", "Or", "LogicalOr"), "or"),
    "invert": "not",
}  # fmt: skip
_TESTS = (*SWAPPED, "is_null", "is_in", "starts_with")


class _Literal(NamedTuple):
    """A literal, or a list of literals for ``is_in``."""

    value: Any


class _Call(NamedTuple):
    """A function and its arguments. A part that has no counterpart is a call without arguments."""

    name: str
    arguments: tuple[Any, ...] = ()


_Node: TypeAlias = _Call | _Literal | Operand


def of_pyarrow(expression: Any) -> Condition:
    """Translate a ``pyarrow.compute.Expression``.

    In a pickle it is an IPC file: the expression is in the metadata of the schema, and its literals are in the row.
    """
    with _reject_unknown_form("pyarrow"):
        batch = pa.ipc.open_file(expression.__reduce__()[1][0]).get_batch(0)
        node = _pyarrow_node(deque(_metadata(batch.schema)), batch)
    return _condition(node, "pyarrow")


def of_polars(expression: Any) -> Condition:
    """Translate a ``polars.Expr``."""
    # polars warns that the form may change.
    with _reject_unknown_form("polars"), warnings.catch_warnings(action="ignore"):
        node = _polars_node(json.loads(expression.meta.serialize(format="json")))
    return _condition(node, "polars")


@contextmanager
def _reject_unknown_form(source: str) -> Iterator[None]:
    try:
        yield
    except (AttributeError, LookupError, TypeError, pa.ArrowException) as error:
        raise ValueError(
            f"where: this version of {source} writes expressions in another form ({type(error).__name__}): use letterhead.col"
        ) from error


def _condition(node: _Node, source: str) -> Condition:
    name, arguments = node if isinstance(node, _Call) else ("", ())
    match name, arguments:
        case (("and" | "or"), (left, right)):
            return Logic("and" if name == "and" else "or", _condition(left, source), _condition(right, source))
        case "not", (negated,):
            return ~_condition(negated, source)
        case _, (Operand() as operand, _Literal(value)) if name in SWAPPED:
            return operand._compared(name, value)
        case _, (_Literal(value), Operand() as operand) if name in SWAPPED:
            return operand._compared(SWAPPED[name], value)
        case "is_null", (Operand() as operand,):
            return operand.is_null()
        case "is_in", (Operand() as operand, _Literal(values)):
            return operand.isin(values)
        case "starts_with", (Operand() as operand, _Literal(prefix)):
            return operand.starts_with(prefix)
    # The innermost part without a counterpart is named.
    inner = next((argument for argument in arguments if isinstance(argument, _Call)), None)
    if name in _TESTS and inner is not None:
        _condition(inner, source)
    part = node.name if isinstance(node, _Call) else node.value if isinstance(node, _Literal) else node
    raise ValueError(
        f"where: {part!r} of the {source} expression cannot be translated without loss: use letterhead.col, or filter the "
        "result"
    )


def _pyarrow_node(pairs: deque[tuple[str, str]], batch: pa.RecordBatch) -> _Node:
    tag, value = pairs.popleft()
    if tag == "field_ref":
        return col(value)
    if tag == "literal":
        return _Literal(batch.column(int(value))[0].as_py())
    if tag != "call":
        return _Call(f"{tag} {value}")
    arguments: list[_Node] = []
    options: Any = {}
    while pairs[0][0] != "end":
        if pairs[0][0] == "options":
            options = batch.column(int(pairs.popleft()[1]))[0].as_py()
        else:
            arguments.append(_pyarrow_node(pairs, batch))
    pairs.popleft()
    return _pyarrow_call(value, tuple(arguments), options)


def _pyarrow_call(name: str, arguments: tuple[_Node, ...], options: Any) -> _Call:
    is_null = _Call("is_null", arguments)
    if name == "is_valid":
        return _Call("not", (is_null,))
    if name == "is_null" and not options.get("nan_is_null"):
        return is_null
    if name == "is_in" and None not in options["value_set"] and isinstance(arguments[0], Operand):
        # pyarrow's is_in is false for null, and not null, so the value must be present as well.
        is_in = _Call("is_in", (*arguments, _Literal(options["value_set"])))
        return _Call("and", (is_in, _Call("not", (is_null,))))
    if name == "starts_with" and not options.get("ignore_case"):
        return _Call("starts_with", (*arguments, _Literal(options["pattern"])))
    return _Call(_NAMES.get(name, f"{name} with these options" if name in _TESTS else name), arguments)


def _polars_node(node: Any) -> _Node:
    tag, value = _single_item(node)
    if tag == "Column":
        return col(value)
    if tag == "Literal":
        return _polars_literal(value)
    if tag == "BinaryExpr":
        operator = value["op"]
        return _Call(_NAMES.get(operator, operator), (_polars_node(value["left"]), _polars_node(value["right"])))
    if tag == "Function" and set(value) <= {"input", "function", "options"}:
        function = json.dumps(value["function"])
        arguments = tuple(_polars_node(argument) for argument in value["input"])
        if function == '{"Boolean": "IsNotNull"}':
            return _Call("not", (_Call("is_null", arguments),))
        return _Call(_POLARS_FUNCTIONS.get(function, function), arguments)
    return _Call(tag)


_POLARS_FUNCTIONS = {
    '{"Boolean": "Not"}': "not", '{"Boolean": "IsNull"}': "is_null", '{"StringExpr": "StartsWith"}': "starts_with",
    '{"Boolean": {"IsIn": {"nulls_equal": false}}}': "is_in",
}  # fmt: skip


def _polars_literal(value: Any) -> _Call | _Literal:
    type, content = _single_item(value.get("Scalar", value.get("Dyn")))
    if type == "List":
        values = pa.ipc.open_stream(bytes(content)).read_all().column(0).to_pylist()
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        return _Call("a list with nulls") if None in values else _Literal(values)
    if type == "Binary":
        return _Literal(bytes(content))
    if type in ("String", "Boolean") or type.startswith(("Int", "UInt", "Float")):
        return _Literal(content)
    return _Call(f"literal {type}")


def _single_item(node: Any) -> tuple[str, Any]:
    """Return the only item of an object, or the text of anything else and None."""
    return next(iter(node.items())) if isinstance(node, dict) and len(node) == 1 else (str(node), None)


class _ArrowSchema(ctypes.Structure):
    """The first members of Arrow's C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return the metadata of a schema with repeated keys, which the dict of pyarrow loses."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata

    def number() -> int:
        nonlocal address
        address += 4
        return ctypes.c_int32.from_address(address - 4).value

    def text() -> str:
        nonlocal address
        length = number()
        address += length
        return ctypes.string_at(address - length, length).decode()

    return [(text(), text()) for _ in range(number())]
