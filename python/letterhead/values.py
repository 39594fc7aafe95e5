"""Typed header values: :class:`Value`, and a class for each type, such as :class:`Int32`.

A value is a type and bits. The format that it is written in determines the byte order. The bits are stored big-endian, so
two values are equal if and only if their types and bits are, including NaN payloads and negative zero.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, NoReturn, Self, TypeAlias, TypeVar

from letterhead._formatting import count_noun
from letterhead._names import unknown_name
from letterhead.errors import DecodeError, EncodeError
from letterhead.types import VALUE_CLASSES, type_name

__all__ = [
    "VALUE_TYPES",
    "Binary",
    "Bool",
    "Char",
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "String",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "Value",
]

VALUE_TYPES: dict[str, int | None] = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "int128": 16,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "uint128": 16,
    "float32": 4,
    "float64": 8,
    "char": 2,
    "string": None,
    "binary": None,
}
"""Named types, with the size of their values in bytes; ``None`` if it varies."""

_Value = TypeVar("_Value", bound="Value")

PythonValue: TypeAlias = bool | int | float | str | bytes

_CLASSES: dict[str, type[Value]] = {}

UNNAMED = frozenset(f"type-{code}" for code in range(16, 256))
"""Iggy's types that have no name yet."""


class _ValueType(type):
    """Metaclass of values: all classes except :class:`Value` have empty slots."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: str) -> _ValueType:
        return super().__new__(cls, name, bases, {"__slots__": (), **namespace}, **options)


class Value(metaclass=_ValueType):
    """A value with its type.

    ``Value("int32", 3)`` and ``Int32(3)`` are equal. Values are immutable and hashable.

    Parameters
    ----------
    type : str
        One of :data:`VALUE_TYPES`, or ``type-16`` to ``type-255`` for a code without a name.
    value : bool, int, float, str or bytes
        The value, of the Python type that corresponds to ``type``; bytes for a type without a name.

    Raises
    ------
    TypeError
        If the value is of another Python type.
    ValueError
        If the type is unknown.
    EncodeError
        If the value does not fit its type (``out_of_range``, ``wrong_size``, ``value_not_utf8``).

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.Value("int32", 3)
    Int32(3)
    >>> lh.Value("int32", 3).bits
    b'\\x00\\x00\\x00\\x03'
    >>> lh.Value("int32", 3) == lh.Int32(3), lh.Int32(3) == lh.Int64(3)
    (True, False)
    >>> lh.Value("type-200", b"raw")
    Value('type-200', b'raw')
    """

    __slots__ = ("_bits", "_type")
    _type: str
    _bits: bytes
    _name: ClassVar[str] = ""

    def __new__(cls, type: str, value: Any) -> Value:
        known = _class_of(type)
        return value_from_message(known._name or type, _bytes(value, type) if known is Value else known._to_bits(value))

    def __init_subclass__(cls, type: str = "") -> None:
        cls._name = type
        if type:
            _CLASSES[type] = cls
            VALUE_CLASSES[cls] = type

    @classmethod
    def from_bits(cls, type: str, bits: bytes | bytearray | memoryview) -> Value:
        """Return the value with these bits, most significant byte first.

        Raises
        ------
        EncodeError
            If the bits are not a value of the type (``wrong_size``, ``bad_bool``, ``value_not_utf8``).

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Value.from_bits("int16", b"\\x01\\x00")
        Int16(256)
        """
        known = _class_of(type)
        name = known._name or type
        bits = _bytes(bits, name)
        known._check(name, bits)
        return value_from_message(name, bits)

    @property
    def type(self) -> str:
        """Name of the type."""
        return self._type

    @property
    def bits(self) -> bytes:
        """The bits, most significant byte first."""
        return self._bits

    @property
    def value(self) -> PythonValue:
        """The value as a Python object.

        Raises
        ------
        DecodeError
            If the bits, as read from a message, are not a value of the type (``wrong_size``, ``bad_bool``,
            ``value_not_utf8``).
        """
        return self._read()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value):
            return NotImplemented
        return self._type == other._type and self._bits == other._bits

    def __hash__(self) -> int:
        return hash((self._type, self._bits))

    def __repr__(self) -> str:
        try:
            shown = repr(self.value)
        except DecodeError:
            shown = f"<bits {self._bits.hex()}>"
        return f"{type(self).__name__}({shown})" if type(self) is not Value else f"Value({self._type!r}, {shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Uses bits, because a Python float may change the payload of a NaN.
        return value_from_message, (self._type, self._bits)

    def _read(self) -> bytes:
        """Return the bits after checking them, because bits from a message may not be a value of the type."""
        try:
            self._check(self._type, self._bits)
        except EncodeError as error:
            raise DecodeError(error.message, format=None, code=error.code) from None
        return self._bits

    @classmethod
    def _to_bits(cls, value: Any) -> bytes:
        raise NotImplementedError

    @classmethod
    def _check(cls, type: str, bits: bytes) -> None:
        """Raise if the bits are not a value of the type."""
        width = VALUE_TYPES.get(type)
        if width is not None and len(bits) != width:
            _refuse("wrong_size", f"{count_noun(len(bits), 'byte')} where {type} takes {width}")
        cls._check_bits(bits)

    @classmethod
    def _check_bits(cls, bits: bytes) -> None:
        """Raise if bits of the right size are not a value; most types accept all bits."""


class Bool(Value, type="bool"):
    """True or false, one byte."""

    def __new__(cls, value: bool) -> Self:
        return _from_python(cls, value)

    @property
    def value(self) -> bool:
        """The value as a Python object."""
        return self._read() == b"\1"

    @classmethod
    def _to_bits(cls, value: Any) -> bytes:
        if not isinstance(value, bool):
            _wrong_type(cls, "a bool", value)
        return b"\1" if value else b"\0"

    @classmethod
    def _check_bits(cls, bits: bytes) -> None:
        if bits not in (b"\0", b"\1"):
            _refuse("bad_bool", "a boolean is neither 0 nor 1")


# Format codes of `struct`, which does not support 128-bit integers.
_CODES = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}


class _Number(Value):
    _pack: ClassVar[Callable[[Any], bytes]]
    """Function that packs an int or a float, but not an instance of a subclass."""

    def __init_subclass__(cls, type: str = "") -> None:
        super().__init_subclass__(type=type)
        if type:
            cls._pack = struct.Struct(">" + _CODES[type]).pack if type in _CODES else cls._to_bits


class _Integer(_Number):
    def __new__(cls, value: int) -> Self:
        instance = _new(cls)
        instance._type = cls._name
        try:
            instance._bits = cls._pack(value) if type(value) is int else cls._to_bits(value)
        except struct.error:
            instance._bits = cls._to_bits(value)  # raises an error that names the range
        return instance

    @property
    def value(self) -> int:
        """The value as a Python object."""
        return int.from_bytes(self._read(), "big", signed=self._signed())

    @classmethod
    def _signed(cls) -> bool:
        return cls._name.startswith("int")

    @classmethod
    def _to_bits(cls, value: Any) -> bytes:
        # In Python True is an int, but here it is more likely to be an error than a 1.
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            _wrong_type(cls, "an int", value)
        width = VALUE_TYPES[cls._name] or 0
        try:
            return operator.index(value).to_bytes(width, "big", signed=cls._signed())
        except OverflowError:
            low = -1 << 8 * width - 1 if cls._signed() else 0
            _refuse("out_of_range", f"a number outside {cls._name} ({low} to {low + (1 << 8 * width) - 1})")


class Int8(_Integer, type="int8"):
    """A signed integer of 8 bits."""


class Int16(_Integer, type="int16"):
    """A signed integer of 16 bits."""


class Int32(_Integer, type="int32"):
    """A signed integer of 32 bits."""


class Int64(_Integer, type="int64"):
    """A signed integer of 64 bits."""


class Int128(_Integer, type="int128"):
    """A signed integer of 128 bits."""


class UInt8(_Integer, type="uint8"):
    """An unsigned integer of 8 bits."""


class UInt16(_Integer, type="uint16"):
    """An unsigned integer of 16 bits."""


class UInt32(_Integer, type="uint32"):
    """An unsigned integer of 32 bits."""


class UInt64(_Integer, type="uint64"):
    """An unsigned integer of 64 bits."""


class UInt128(_Integer, type="uint128"):
    """An unsigned integer of 128 bits."""


class _Float(_Number):
    def __new__(cls, value: float) -> Self:
        instance = _new(cls)
        instance._type = cls._name
        try:
            instance._bits = cls._pack(value) if type(value) is float else cls._to_bits(value)
        except OverflowError:
            instance._bits = cls._to_bits(value)  # raises an error that names the range
        return instance

    @property
    def value(self) -> float:
        """The value as a Python object."""
        return float(struct.unpack(">" + _CODES[self._name], self._read())[0])

    @classmethod
    def _to_bits(cls, value: Any) -> bytes:
        if isinstance(value, bool) or not isinstance(value, Real):
            _wrong_type(cls, "a float", value)
        try:
            bits = struct.pack(">" + _CODES[cls._name], float(value))
        except OverflowError:
            _refuse("out_of_range", f"a number too large for {cls._name}")
        if math.isinf(float(value)) and value not in (math.inf, -math.inf):
            _refuse("out_of_range", f"a number too large for {cls._name}")  # such as a long double
        return bits


class Float32(_Float, type="float32"):
    """An IEEE 754 number of 32 bits, the nearest to a Python float."""


class Float64(_Float, type="float64"):
    """An IEEE 754 number of 64 bits."""


class Char(Value, type="char"):
    """One UTF-16 code unit, as a ``char`` of Java: a character up to U+FFFF, or half of a surrogate pair."""

    def __new__(cls, value: str) -> Self:
        return _from_python(cls, value)

    @property
    def value(self) -> str:
        """The value as a Python object."""
        return chr(int.from_bytes(self._read(), "big"))

    @classmethod
    def _to_bits(cls, value: Any) -> bytes:
        if not isinstance(value, str):
            _wrong_type(cls, "a str", value)
        if len(value) != 1:
            _refuse("wrong_size", f"{len(value)} characters where char takes one")
        if value > "\uffff":
            _refuse("out_of_range", "a character above U+FFFF, which takes two UTF-16 units, where char takes one")
        return ord(value).to_bytes(2, "big")


class String(Value, type="string"):
    """Text, as UTF-8."""

    def __new__(cls, value: str) -> Self:
        return _from_python(cls, value)

    @property
    def value(self) -> str:
        """The value as a Python object."""
        return self._read().decode()

    @classmethod
    def _to_bits(cls, value: Any) -> bytes:
        if not isinstance(value, str):
            _wrong_type(cls, "a str", value)
        return utf8(value)

    @classmethod
    def _check_bits(cls, bits: bytes) -> None:
        try:
            bits.decode()
        except UnicodeDecodeError:
            _refuse("value_not_utf8", "a string is not UTF-8")


class Binary(Value, type="binary"):
    """Bytes of any content."""

    def __new__(cls, value: bytes | bytearray | memoryview) -> Self:
        return _from_python(cls, value)

    @property
    def value(self) -> bytes:
        """The value as a Python object."""
        return self._bits

    @classmethod
    def _to_bits(cls, value: Any) -> bytes:
        return _bytes(value, cls._name)


def utf8(text: str) -> bytes:
    """Encode a string; half of a surrogate pair raises EncodeError."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        _refuse("value_not_utf8", "a string with half of a surrogate pair has no UTF-8 form")


def _class_of(type: str) -> type[Value]:
    known = _CLASSES.get(type) if isinstance(type, str) else None
    if known is not None:
        return known
    if type in UNNAMED:
        return Value
    known = _CLASSES.get(type_name(type))
    if known is None:
        raise unknown_name("type", type, VALUE_TYPES)
    return known


def value_from_message(type: str, bits: bytes) -> Value:
    """Return a value with bits from a message; reading it raises if they are not a value of the type."""
    value: Value = object.__new__(_CLASSES.get(type, Value))
    value._type = type
    value._bits = bits
    return value


_new = object.__new__


def _from_python(cls: type[_Value], value: Any) -> _Value:
    instance = _new(cls)
    instance._type = cls._name
    instance._bits = cls._to_bits(value)
    return instance


def _bytes(value: Any, name: str) -> bytes:
    if type(value) is bytes:
        return value
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{name} takes bytes, not {type(value).__name__}")
    return bytes(value)


def _wrong_type(cls: type[Value], takes: str, value: object) -> NoReturn:
    raise TypeError(f"{cls.__name__} takes {takes}, not {type(value).__name__}")


def _refuse(code: str, message: str) -> NoReturn:
    raise EncodeError(message, format=None, code=code)
