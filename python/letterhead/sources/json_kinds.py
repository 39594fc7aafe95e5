"""Infer column types of JSON lines: :func:`merge_types` finds the type of values, :func:`convert_value` checks them.

A value that its column cannot hold exactly is an error: no integer becomes a different double, and no field
is dropped. Commands print numbers that JSON does not represent portably as text: integers beyond 2^53 - 1, NaN and
infinities. In a column of numbers, such text is a number, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from letterhead._strict_json import JsonError
from letterhead.sources.json_values import bytes_or_value, json_type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Kind",
    "ListKind",
    "Misfit",
    "StructKind",
    "arrow_type",
    "convert_value",
    "describe_type",
    "is_bytes",
    "merge_types",
]

BASE64 = "base64"
_EXACT = 1 << 53
"""Largest integer up to which doubles represent all integers."""

_NAMES = {
    "bool": "true or false", "int": "an integer", "uint": "an integer beyond 63 bits", "float": "a fraction", "text": "text",
    "bytes": "bytes", "digits": "text", "long digits": "text", "no number": "text",
}  # fmt: skip
_WIDENED = {
    ("int", "uint"): "uint", ("int", "float"): "float", ("uint", "float"): "float",
    ("int", "digits"): "int", ("int", "long digits"): "uint", ("uint", "digits"): "uint", ("uint", "long digits"): "uint",
    ("int", "no number"): "float", ("float", "no number"): "float", ("digits", "long digits"): "long digits",
}  # fmt: skip
_OF_TEXT = frozenset({"digits", "long digits", "no number", "text"})
"""Types of text, which remain text unless the column has numbers."""

_DIGITS = re.compile(r"-?[1-9][0-9]{15,19}")
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})


class ListKind:
    """Type of lists with a common element type."""

    def __init__(self, element: Kind | None = None) -> None:
        self.element = element


class StructKind:
    """Type of objects with typed fields."""

    def __init__(self, fields: dict[str, Kind | None] | None = None) -> None:
        self.fields = fields or {}


Kind: TypeAlias = "str | ListKind | StructKind"
"""Type of a column, or of a value in it: a name for scalars."""


class Misfit(ValueError):
    """Error for a value that does not fit the type of its column; ``path`` is the nested field, as in ``.a[].b``."""

    def __init__(self, path: str, value: str, column: str) -> None:
        super().__init__(f"{value}, and {column} in other lines")
        self.path = path
        self.value = value
        self.column = column


def is_bytes(value: Any) -> bool:
    """Return whether a value is an object that represents bytes."""
    return isinstance(value, dict) and value.keys() == {BASE64}


def describe_type(kind: Kind) -> str:
    """Return a description of a type's values, for errors."""
    return _NAMES[kind] if isinstance(kind, str) else "a list" if isinstance(kind, ListKind) else "an object"


def merge_types(kind: Kind | None, value: Any, path: str = "") -> Kind | None:
    """Return the common type of ``kind`` and a value; raise Misfit if no type holds both exactly."""
    if value is None:
        return kind
    if isinstance(value, list):
        lists = ListKind() if kind is None else kind
        if not isinstance(lists, ListKind):
            raise Misfit(path, "a list", describe_type(lists))
        for element in value:
            lists.element = merge_types(lists.element, element, f"{path}[]")
        return lists
    if isinstance(value, dict) and not is_bytes(value):
        struct = StructKind() if kind is None else kind
        if not isinstance(struct, StructKind):
            raise Misfit(path, "an object", describe_type(struct))
        for name, field in value.items():
            struct.fields[name] = merge_types(struct.fields.get(name), field, f"{path}.{name}")
        return struct
    own = _scalar(value, path)
    if kind is None or kind == own:
        return own
    widened = _widen(kind, own) if isinstance(kind, str) else None
    if widened is None:
        raise Misfit(path, describe_type(own), describe_type(kind))
    return widened


def _widen(kind: str, own: str) -> str | None:
    """Return the common type of two types; None if there is none."""
    numbers = _WIDENED.get((kind, own)) or _WIDENED.get((own, kind))
    if numbers is not None:
        return numbers
    if kind in _OF_TEXT and own in _OF_TEXT:
        return "text"
    return "bytes" if {kind, own} <= _OF_TEXT | {"bytes"} else None


def convert_value(kind: Kind | None, value: Any, path: str = "") -> Any:
    """Return a value in the form that pyarrow accepts for a type; raise Misfit if the type cannot hold it exactly."""
    if value is None:
        return None
    if kind is None:
        raise Misfit(path, json_type(value), "null")
    if isinstance(kind, ListKind):
        if not isinstance(value, list):
            raise Misfit(path, _describe_value(value, path), describe_type(kind))
        return [convert_value(kind.element, element, f"{path}[]") for element in value]
    if isinstance(kind, StructKind):
        if not isinstance(value, dict) or is_bytes(value):
            raise Misfit(path, _describe_value(value, path), describe_type(kind))
        for name in value:
            if name not in kind.fields:
                raise Misfit(path, "an object with a further field", "others")
        return {name: convert_value(kind.fields[name], field, f"{path}.{name}") for name, field in value.items()}
    own = None if isinstance(value, list) or (isinstance(value, dict) and not is_bytes(value)) else _scalar(value, path)
    if own in _OF_TEXT and kind in _OF_TEXT:
        return value
    if kind in ("int", "uint") and own in ("digits", "long digits"):
        value = int(value)
        own = _scalar(value, path)
    if own == kind or (own == "int" and kind == "uint" and value >= 0):
        return _bytes(value, path) if own == "bytes" else value
    if kind == "float" and (own == "no number" or (own == "int" and abs(value) <= _EXACT)):
        return float(value)
    if kind == "bytes" and own in _OF_TEXT:
        return _bytes(value, path)
    raise Misfit(path, _describe_value(value, path), describe_type(kind))


def arrow_type(kind: Kind | None) -> pa.DataType:
    """Return the Arrow type of a column."""
    import pyarrow as pa

    if kind is None:
        return pa.null()
    if isinstance(kind, ListKind):
        return pa.list_(arrow_type(kind.element))
    if isinstance(kind, StructKind):
        return pa.struct([(name, arrow_type(field)) for name, field in kind.fields.items()])
    if kind in _OF_TEXT:
        return pa.string()
    scalars = {
        "bool": pa.bool_, "int": pa.int64, "uint": pa.uint64, "float": pa.float64, "bytes": pa.binary,
    }  # fmt: skip
    return scalars[kind]()


def _scalar(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise Misfit(path, "an integer of more than 64 bits, which should be text", "shorter ones")
        return "int" if value < 1 << 63 else "uint"
    if isinstance(value, str):
        return _infer_text_type(value)
    return "float" if isinstance(value, float) else "bytes"


def _infer_text_type(text: str) -> str:
    """Return the type of a text; in columns of numbers, some texts stand for numbers."""
    if text in _NO_NUMBERS:
        return "no number"
    if _DIGITS.fullmatch(text) and abs(number := int(text)) >= _EXACT:
        return "digits" if -(1 << 63) <= number < 1 << 63 else "long digits" if 0 < number < 1 << 64 else "text"
    return "text"


def _describe_value(value: Any, path: str) -> str:
    if isinstance(value, list | dict) and not is_bytes(value):
        return json_type(value)
    return describe_type(_scalar(value, path))


def _bytes(value: Any, path: str) -> Any:
    try:
        return bytes_or_value(value, "the value")
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(str(error)) from error
