"""Typed value of a header with a text key, as defined by the first draft."""

from __future__ import annotations

from typing import Any

from letterhead._names import check_name
from letterhead.errors import EncodeError
from letterhead.values import PythonValue, Value

__all__ = ["TYPES", "Typed"]

TYPES: dict[str, str] = {
    "boolean": "bool",
    "byte": "int8",
    "char": "char",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "byte[]": "binary",
}
"""Types of the draft in the order of their codes (from 0), with the names of these types in the rest of the package."""

_DRAFT_NAMES = {ours: type for type, ours in TYPES.items()}


class Typed:
    """Immutable value with its type. Two values are equal if their types and bits are equal.

    Parameters
    ----------
    type : {"boolean", "byte", "char", "short", "int", "long", "float", "double", "string", "byte[]"}
        The draft's name of the type.
    value : bool, int, float, str or bytes
        A value of that type; for ``char`` one UTF-16 code unit.

    Raises
    ------
    TypeError
        If the value has another Python type.
    EncodeError
        If the value does not fit (``out_of_range``, ``wrong_size``, ``value_not_utf8``).
    ValueError
        If the type is unknown.

    Examples
    --------
    >>> from letterhead.kip82 import Typed
    >>> retry = Typed("int", 3)
    >>> retry.type, retry.value, retry.code
    ('int', 3, 4)
    >>> retry == Typed("long", 3)
    False
    >>> Typed("byte", 300)
    Traceback (most recent call last):
        ...
    letterhead.errors.EncodeError: a number outside int8 (-128 to 127)
    """

    __slots__ = ("_value",)
    _value: Value

    def __init__(self, type: str, value: Any) -> None:
        check_name("type", type, TYPES)
        self._value = Value(TYPES[type], value)

    @classmethod
    def _from_value(cls, value: Value) -> Typed:
        """Convert a :class:`letterhead.Value`; raise ``EncodeError`` if the draft has no such type (``unknown_type``)."""
        if value.type not in _DRAFT_NAMES:
            message = f"the draft has no type for {value.type}"
            raise EncodeError(message, format="kip82-typed", code="unknown_type")
        typed = cls.__new__(cls)
        typed._value = value
        return typed

    @property
    def type(self) -> str:
        """The draft's name of the type."""
        return _DRAFT_NAMES[self._value.type]

    @property
    def code(self) -> int:
        """The code of the type: the byte before the value."""
        return list(TYPES).index(self.type)

    @property
    def value(self) -> PythonValue:
        """The value as a Python object."""
        return self._value.value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Typed) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"Typed({self.type!r}, {self.value!r})"
