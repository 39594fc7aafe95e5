"""Translate expressions of pyarrow and polars: :func:`of_pyarrow` and :func:`of_polars`."""

from __future__ import annotations

import ctypes
import json
import warnings
from collections import deque
from typing import Any

import pyarrow as pa

from letterhead.where.conditions import Condition, Logic, Operand, col

__all__ = ["of_polars", "of_pyarrow"]

_NAMES = {
    **dict.fromkeys(("equal", "Eq"), "=="), **dict.fromkeys(("not_equal", "NotEq"), "!="),
    **dict.fromkeys(("less", "Lt"), "<"), **dict.fromkeys(("less_equal", "LtEq"), "<="),
    **dict.fromkeys(("greater", "Gt"), ">"), **dict.fromkeys(("greater_equal", "GtEq"), ">="),
}  # fmt: skip
_SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def of_pyarrow(expression: Any) -> Condition:
    """Translate a ``pyarrow.compute.Expression``.

    Its serialized form, that of pickle, is an IPC file: the expression is in the metadata, its literals in the row.
    """
    batch = pa.ipc.open_file(expression.__reduce__()[1][0]).get_batch(0)
    condition: Condition = _condition(_pyarrow_node(deque(_metadata(batch.schema)), batch), "pyarrow")
    return condition


def of_polars(expression: Any) -> Condition:
    """Translate a ``polars.Expr``."""
    with warnings.catch_warnings(action="ignore"):  # the JSON form is not stable between versions: unknown parts raise
        node = json.loads(expression.meta.serialize(format="json"))
    condition: Condition = _condition(_polars_node(node), "polars")
    return condition


class _Call(tuple[Any, ...]):
    """The name of a function, and its arguments: calls, operands and :class:`_Literal`."""

    __slots__ = ()


class _Literal(tuple[Any]):
    """A literal, in a tuple."""

    __slots__ = ()


def _condition(node: Any, source: str) -> Any:
    name: Any
    name, *arguments = node if isinstance(node, _Call) else ("",)
    if name in ("and", "or") and len(arguments) == 2:
        return Logic(name, *(_condition(argument, source) for argument in arguments))
    if name == "not" and len(arguments) == 1:
        return ~_condition(arguments[0], source)
    if name in _SWAPPED and len(arguments) == 2:
        left, right = arguments
        if isinstance(left, _Literal):
            name, left, right = _SWAPPED[name], right, left
        if isinstance(left, Operand) and isinstance(right, _Literal):
            return left._compared(name, right[0])
    elif arguments and isinstance(arguments[0], Operand):
        operand, *literals = arguments
        if name == "is_null" and not literals:
            return operand.is_null()
        if name in ("is_in", "starts_with") and len(literals) == 1 and isinstance(literals[0], _Literal):
            return operand.is_in(literals[0][0]) if name == "is_in" else operand.starts_with(literals[0][0])
    # The part that has no counterpart is the innermost one.
    known = (*_SWAPPED, "is_null", "is_in", "starts_with")
    unknown = next((argument for argument in arguments if isinstance(argument, _Call)), None) if name in known else None
    if unknown is not None:
        _condition(unknown, source)
    part = node[0] if isinstance(node, _Call | _Literal) else node
    raise ValueError(
        f"where: {part!r} of the {source} expression cannot be translated without loss: use letterhead.col, or filter the "
        "result"
    )


def _pyarrow_node(pairs: deque[tuple[str, str]], batch: pa.RecordBatch) -> Any:
    tag, value = pairs.popleft()
    if tag == "field_ref":
        return col(value)
    if tag == "literal":
        return _Literal((batch.column(int(value))[0].as_py(),))
    if tag != "call":
        return _Call((f"{tag} {value}",))
    arguments: list[Any] = []
    options: Any = {}
    while pairs[0][0] != "end":
        if pairs[0][0] == "options":
            options = batch.column(int(pairs.popleft()[1]))[0].as_py()
        else:
            arguments.append(_pyarrow_node(pairs, batch))
    pairs.popleft()
    return _pyarrow_call(value, arguments, options)


def _pyarrow_call(name: str, arguments: list[Any], options: Any) -> _Call:
    if name in ("and_kleene", "or_kleene"):
        return _Call((name.partition("_")[0], *arguments))
    if name == "invert":
        return _Call(("not", *arguments))
    if name == "is_valid":
        return _Call(("not", _Call(("is_null", *arguments))))
    if name == "is_null" and not options.get("nan_is_null"):
        return _Call(("is_null", *arguments))
    # is_in of pyarrow is false for null, and so a condition on the value and its presence.
    if name == "is_in":
        values = options["value_set"]
        if None not in values and isinstance(arguments[0], Operand):
            present = _Call(("not", _Call(("is_null", *arguments))))
            return _Call(("and", _Call(("is_in", *arguments, _Literal((values,)))), present))
    if name == "starts_with" and not options.get("ignore_case"):
        return _Call(("starts_with", *arguments, _Literal((options["pattern"],))))
    return _Call((_NAMES.get(name, name), *arguments))


def _polars_node(node: Any) -> Any:
    tag, value = _only(node)
    if tag == "Column":
        return col(value)
    if tag == "Literal":
        return _polars_literal(value)
    if tag == "BinaryExpr":
        names = {"And": "and", "Or": "or", "LogicalAnd": "and", "LogicalOr": "or"}
        name = _NAMES.get(value["op"]) or names.get(value["op"], value["op"])
        return _Call((name, _polars_node(value["left"]), _polars_node(value["right"])))
    if tag == "Function" and set(value) <= {"input", "function", "options"}:
        function = json.dumps(value["function"])
        arguments = [_polars_node(node) for node in value["input"]]
        known = {
            '{"Boolean": "Not"}': "not", '{"Boolean": "IsNull"}': "is_null", '{"StringExpr": "StartsWith"}': "starts_with",
            '{"Boolean": {"IsIn": {"nulls_equal": false}}}': "is_in",
        }  # fmt: skip
        if function == '{"Boolean": "IsNotNull"}':
            return _Call(("not", _Call(("is_null", *arguments))))
        return _Call((known.get(function, function), *arguments))
    return _Call((tag,))


def _polars_literal(value: Any) -> Any:
    scalar = value.get("Scalar", value.get("Dyn"))
    type, content = _only(scalar)
    if type == "List":
        values = pa.ipc.open_stream(bytes(content)).read_all().column(0).to_pylist()
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        return _Call(("a list with nulls",)) if None in values else _Literal((values,))
    if type == "Binary":
        return _Literal((bytes(content),))
    if type in ("String", "Boolean", "Int", "Float") or type.startswith(("Int", "UInt", "Float")):
        return _Literal((content,))
    return _Call((f"literal {type}",))


def _only(node: Any) -> tuple[str, Any]:
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
