"""A header's value with its type, as the draft with text keys has it."""

from __future__ import annotations

from typing import Any

from letterhead.errors import EncodeError, check_name
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
"""The draft's name of each type, in the order of their codes from 0 on, and the name that it has everywhere else here."""

_CODES = {type: code for code, type in enumerate(TYPES)}
_DRAFT = {ours: type for type, ours in TYPES.items()}


class Typed:
    """A value and its type. It is immutable; two are equal when their types and their bits are.

    Parameters
    ----------
    type : {"boolean", "byte", "char", "short", "int", "long", "float", "double", "string", "byte[]"}
        The type, by the draft's name.
    value : bool, int, float, str or bytes
        What the type takes; of ``char`` one UTF-16 unit.

    Raises
    ------
    TypeError
        If the value is not of the Python type that goes with the type.
    EncodeError
        If the value does not fit (``out_of_range``, ``wrong_size``, ``value_not_utf8``).
    ValueError
        If there is no such type.

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

    __slots__ = ("_held",)
    _held: Value

    def __init__(self, type: str, value: Any) -> None:
        check_name("type", type, TYPES)
        self._held = Value(TYPES[type], value)

    @classmethod
    def from_value(cls, value: Value) -> Typed:
        """Make one of a value that has its type.

        Parameters
        ----------
        value : Value
            The value.

        Returns
        -------
        Typed
            The same value.

        Raises
        ------
        EncodeError
            If the draft has no such type (``unknown_type``).

        Examples
        --------
        >>> import letterhead as lh
        >>> Typed.from_value(lh.Int64(3))
        Typed('long', 3)
        """
        if value.type not in _DRAFT:
            message = f"the draft has no type for {value.type}"
            raise EncodeError(message, format="kip82-typed", code="unknown_type")
        made = cls.__new__(cls)
        made._held = value
        return made

    @property
    def type(self) -> str:
        """The type, by the draft's name."""
        return _DRAFT[self._held.type]

    @property
    def code(self) -> int:
        """The byte that stands for the type before the value."""
        return _CODES[self.type]

    @property
    def value(self) -> PythonValue:
        """The value as Python has it."""
        return self._held.value

    def to_value(self) -> Value:
        """Give the value as every other part of this package has it."""
        return self._held

    def __eq__(self, other: object) -> bool:
        return self._held == other._held if isinstance(other, Typed) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._held)

    def __repr__(self) -> str:
        return f"Typed({self.type!r}, {self.value!r})"
