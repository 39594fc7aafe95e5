"""Keys and values: a kind, and 1 to 255 bytes that are a value of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

from letterhead.errors import DecodeError, EncodeError, counted
from letterhead.iggy.faults import need_bytes, refuse_bytes, refuse_value
from letterhead.iggy.kinds import HeaderKind
from letterhead.iggy.limits import LONGEST
from letterhead.iggy.text import parse_value, spell_value
from letterhead.values import (
    VALUE_TYPES,
    Binary,
    Bool,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    String,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
    Value,
    of_message,
)

__all__ = ["HeaderField", "HeaderKey", "HeaderValue"]

_Given = TypeVar("_Given")
_Field = TypeVar("_Field", bound="HeaderField")


class _Maker(Generic[_Given]):
    """A class method that makes a field of a Python value."""

    def __init__(self, make: Callable[[_Given], Value]) -> None:
        self._make = make

    def __get__(self, field: object, owner: type[_Field]) -> Callable[[_Given], _Field]:
        return lambda value: owner._checked(self._make(value))


def _reader(type: Callable[[Any], _Given], kind: str) -> Callable[[HeaderField], _Given]:
    """Make the method that returns the value of a kind of number."""

    def read(self: HeaderField) -> _Given:
        self._bits(kind)
        return type(self._held.value)

    read.__doc__ = f"Return the value of kind ``{kind}``."
    return read


class HeaderField:
    """What keys and values have in common: every ``from_*`` and ``as_*``.

    A ``from_*`` refuses what no header may hold: 0 bytes (``empty_key``, ``empty_value``) and more than 255
    (``too_long``), a number outside its kind (``out_of_range``). An ``as_*`` refuses another kind (``wrong_type``), a
    number of bytes that its kind does not have (``wrong_size``), a boolean that is neither 0 nor 1 (``bad_bool``) and
    text that is not UTF-8 (``value_not_utf8``).
    """

    __slots__ = ("_held",)
    _held: Value
    _what: ClassVar[str]

    @classmethod
    def from_value(cls, value: Value) -> Self:
        """Make a field of a typed value.

        Parameters
        ----------
        value : Value
            A value of any kind but ``char``, which Iggy does not have.

        Returns
        -------
        HeaderKey or HeaderValue
            The field.

        Raises
        ------
        EncodeError
            If Iggy has no such kind (``unknown_type``), or the value has no bytes or too many.

        Examples
        --------
        >>> import letterhead as lh
        >>> from letterhead.iggy import HeaderValue
        >>> HeaderValue.from_value(lh.Int32(3))
        HeaderValue.from_int32(3)
        """
        if not isinstance(value, Value):
            raise TypeError(f"a Value such as Int32(3) is needed, not {type(value).__name__}")
        if HeaderKind.of_value(value.type) is None:
            refuse_value("unknown_type", f"{cls._what} kind {value.type} is unknown to Iggy")
        return cls._checked(value)

    @classmethod
    def from_kind_bytes(cls, kind: HeaderKind | str | int, value: bytes, *, validate: bool = True) -> Self:
        """Make a field of its kind and its bytes as they are on the wire.

        Parameters
        ----------
        kind : HeaderKind, str or int
            The kind, its name or its code.
        value : bytes-like
            The bytes, least significant first where they are a number.
        validate : bool, default True
            Whether to refuse bytes of another size than the kind has; without, whatever came over JSON can be held.

        Returns
        -------
        HeaderKey or HeaderValue
            The field.

        Raises
        ------
        EncodeError
            If there are no bytes, too many, or another number than the kind has.
        DecodeError
            If there is no such kind.

        Examples
        --------
        >>> from letterhead.iggy import HeaderValue
        >>> HeaderValue.from_kind_bytes("int16", b"\\x00\\x01")
        HeaderValue.from_int16(256)
        """
        kind = _kind(kind)
        data = need_bytes(value, f"the bytes of a {cls._what}")
        held = of_message(kind.value_type, _turned(kind.value_type, data))
        return cls._checked(held) if validate else cls._of(held)

    @classmethod
    def from_kind_str_and_value_str(cls, kind: str, value: str) -> Self:
        """Make a field of the name of a kind and a text that spells a value of it.

        Parameters
        ----------
        kind : str
            Name of the kind.
        value : str
            The text: digits for integers, ``true`` or ``false``, a decimal number, ``inf`` or ``nan`` for floats.

        Returns
        -------
        HeaderKey or HeaderValue
            The field.

        Raises
        ------
        DecodeError
            If there is no such kind (``unknown_type``), or the text spells no value of it (``bad_text``,
            ``out_of_range``).

        Examples
        --------
        >>> from letterhead.iggy import HeaderValue
        >>> HeaderValue.from_kind_str_and_value_str("uint64", "123456")
        HeaderValue.from_uint64(123456)
        """
        return cls._checked(parse_value(HeaderKind.parse(kind), value))

    @classmethod
    def from_str(cls, value: str) -> Self:
        """Make a ``string``."""
        if not isinstance(value, str):
            raise TypeError(f"a str is needed, not {type(value).__name__}")
        try:
            return cls._checked(String(value))
        except EncodeError as error:
            if error.code == "value_not_utf8" and cls._what == "key":
                refuse_value("key_not_utf8", "a key with half of a surrogate pair has no UTF-8 form")
            raise

    from_raw = _Maker(Binary)
    from_bool = _Maker(Bool)
    from_int8 = _Maker(Int8)
    from_int16 = _Maker(Int16)
    from_int32 = _Maker(Int32)
    from_int64 = _Maker(Int64)
    from_int128 = _Maker(Int128)
    from_uint8 = _Maker(UInt8)
    from_uint16 = _Maker(UInt16)
    from_uint32 = _Maker(UInt32)
    from_uint64 = _Maker(UInt64)
    from_uint128 = _Maker(UInt128)
    from_float32 = _Maker(Float32)
    from_float64 = _Maker(Float64)

    @property
    def kind(self) -> HeaderKind:
        """The kind."""
        kind = HeaderKind.of_value(self._held.type)
        assert kind is not None, "no field is made of a kind that Iggy does not have"
        return kind

    @property
    def value(self) -> bytes:
        """The bytes as they are on the wire, least significant first where they are a number."""
        return _turned(self._held.type, self._held.bits)

    def to_value(self) -> Value:
        """Give the typed value that every other part of this package knows."""
        return self._held

    def as_str(self) -> str:
        """Give the text of a ``string``."""
        bits = self._bits("string")
        try:
            return bits.decode()
        except UnicodeDecodeError:
            refuse_bytes("value_not_utf8", f"the {self._what} is not UTF-8", None)

    def as_raw(self) -> bytes:
        """Give the bytes of a ``raw``."""
        return self._bits("raw")

    def as_bool(self, *, validate: bool = True) -> bool:
        """Give a ``bool``.

        Parameters
        ----------
        validate : bool, default True
            Whether more than one byte is refused. Releases before 0.8.2 read the first one.

        Returns
        -------
        bool
            The value.

        Raises
        ------
        DecodeError
            If it is no boolean.
        """
        byte = self._byte("bool", validate)
        if byte > 1:
            refuse_bytes("bad_bool", f"{byte} is not a boolean: 0 or 1", None)
        return byte == 1

    as_int8 = _reader(int, "int8")
    as_int16 = _reader(int, "int16")
    as_int32 = _reader(int, "int32")
    as_int64 = _reader(int, "int64")
    as_int128 = _reader(int, "int128")
    as_uint16 = _reader(int, "uint16")
    as_uint32 = _reader(int, "uint32")
    as_uint64 = _reader(int, "uint64")
    as_uint128 = _reader(int, "uint128")
    as_float32 = _reader(float, "float32")
    as_float64 = _reader(float, "float64")

    def as_uint8(self, *, validate: bool = True) -> int:
        """Give a ``uint8``.

        Parameters
        ----------
        validate : bool, default True
            Whether more than one byte is refused. Releases before 0.8.2 read the first one.

        Returns
        -------
        int
            The value.

        Raises
        ------
        DecodeError
            If it is none.
        """
        return self._byte("uint8", validate)

    def to_string_value(self) -> str:
        """Give a text that shows the value, whatever its kind."""
        return spell_value(self._held)

    def __str__(self) -> str:
        return self.to_string_value()

    def __eq__(self, other: object) -> bool:
        return self._held == other._held if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._held)

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            return f"{name}.from_{_MAKERS[self.kind]}({self._shown()!r})"
        except (DecodeError, KeyError):
            return f"{name}.from_kind_bytes({str(self.kind)!r}, {self.value!r}, validate=False)"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.kind, self.value)

    @classmethod
    def _of(cls, held: Value) -> Self:
        made = object.__new__(cls)
        made._held = held
        return made

    @classmethod
    def _checked(cls, held: Value) -> Self:
        return cls._of(held)._with_length()._with_size()

    def _with_length(self) -> Self:
        """Refuse what has no bytes or too many."""
        size = len(self._held.bits)
        if size == 0:
            refuse_value(f"empty_{self._what}", f"the {self._what} has no bytes")
        if size > LONGEST:
            refuse_value("too_long", f"{self._what} of {size} bytes is longer than {LONGEST}")
        return self

    def _with_size(self) -> Self:
        """Refuse what has another number of bytes than its kind."""
        width = VALUE_TYPES.get(self._held.type)
        size = len(self._held.bits)
        if width is not None and size != width:
            given = counted(size, "byte")
            whose = "key of " if self._what == "key" else ""
            refuse_value("wrong_size", f"{whose}{given} where {self._held.type} takes {width}")
        return self

    def _bits(self, asked: str) -> bytes:
        """Give the bits of a value that has to be of a kind, and a whole one."""
        kind = self.kind
        if str(kind) != asked:
            refuse_bytes("wrong_type", f"the {self._what} is {kind} and {asked} was asked for", None)
        bits = self._held.bits
        width = VALUE_TYPES.get(kind.value_type)
        if width is not None and len(bits) != width:
            refuse_bytes("wrong_size", f"{counted(len(bits), 'byte')} where {asked} takes {width}", None)
        return bits

    def _byte(self, asked: str, validate: bool) -> int:
        if not validate and str(self.kind) == asked and self.value:
            return self.value[0]
        return self._bits(asked)[0]

    def _shown(self) -> object:
        maker = _MAKERS[self.kind]
        return getattr(self, f"as_{maker}")()


class HeaderKey(HeaderField):
    """A key: a text of 1 to 255 bytes, or in the format ``iggy`` a value of any kind.

    Keys are case-sensitive. ``HeaderKey("name")`` is short for ``HeaderKey.from_str("name")``.

    Parameters
    ----------
    name : str
        The text.

    Raises
    ------
    EncodeError
        If the text has no bytes (``empty_key``), more than 255 (``too_long``), or no UTF-8 form (``key_not_utf8``).

    Examples
    --------
    >>> from letterhead.iggy import HeaderKey
    >>> HeaderKey("key 1"), HeaderKey.from_int32(3)
    (HeaderKey('key 1'), HeaderKey.from_int32(3))
    >>> HeaderKey("Key") == HeaderKey("key"), HeaderKey.lower("Key") == HeaderKey("key")
    (False, True)
    """

    __slots__ = ()
    _what = "key"

    def __init__(self, name: str) -> None:
        self._held = HeaderKey.from_str(name)._held

    @classmethod
    def lower(cls, name: str, *, validate: bool = True) -> Self:
        """Make a key in lower case, as releases before 0.8.2 made every key.

        Parameters
        ----------
        name : str
            The text.
        validate : bool, default True
            Whether the key in lower case is checked too. Those releases checked the text as it was given, and a few
            letters take more bytes in lower case: they wrote keys that they could not read.

        Returns
        -------
        HeaderKey
            The key.

        Raises
        ------
        EncodeError
            If there is no such key.

        Examples
        --------
        >>> from letterhead.iggy import HeaderKey
        >>> HeaderKey.lower("Content-Type")
        HeaderKey('content-type')
        """
        lowered = String(cls.from_str(name).as_str().lower())
        return cls._checked(lowered) if validate else cls._of(lowered)

    def __repr__(self) -> str:
        return super().__repr__().replace("HeaderKey.from_str(", "HeaderKey(", 1)


class HeaderValue(HeaderField):
    """A value with its kind; made by one of the ``from_*``, read by the ``as_*`` of its kind.

    Parameters
    ----------
    kind : HeaderKind, str or int
        The kind, its name or its code.
    value : bytes-like
        The bytes as they are on the wire.

    Raises
    ------
    EncodeError
        If the bytes are none (``empty_value``), too many (``too_long``), or another number than the kind has
        (``wrong_size``).
    DecodeError
        If there is no such kind (``unknown_type``).

    Examples
    --------
    >>> from letterhead.iggy import HeaderKind, HeaderValue
    >>> value = HeaderValue.from_float64(123.45)
    >>> value.kind, value.as_float64()
    (<HeaderKind.FLOAT64: 15>, 123.45)
    >>> value.as_str()
    Traceback (most recent call last):
        ...
    letterhead.errors.DecodeError: the value is float64 and string was asked for
    >>> HeaderValue(HeaderKind.INT16, b"\\x00\\x01").as_int16()
    256
    """

    __slots__ = ()
    _what = "value"

    def __init__(self, kind: HeaderKind | str | int, value: bytes) -> None:
        self._held = HeaderValue.from_kind_bytes(kind, value)._held


_MAKERS = {kind: {"string": "str"}.get(str(kind), str(kind)) for kind in HeaderKind}


def _turned(kind: str, data: bytes) -> bytes:
    """Turn bytes on the wire into bits or back; kinds of a fixed width have an order, whatever size a value has."""
    return data if VALUE_TYPES.get(kind) is None else data[::-1]


def _kind(given: HeaderKind | str | int) -> HeaderKind:
    if isinstance(given, HeaderKind):
        return given
    if isinstance(given, str):
        return HeaderKind.parse(given)
    return HeaderKind(given) if 16 <= given <= 255 else HeaderKind.from_code(given)


def _rebuild(cls: type[HeaderField], kind: HeaderKind, value: bytes) -> HeaderField:
    return cls.from_kind_bytes(kind, value, validate=False)
