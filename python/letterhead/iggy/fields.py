"""Keys and values of headers: a kind, and 1 to 255 bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

import letterhead.values as values
from letterhead._formatting import count_noun
from letterhead._invariants import require
from letterhead.errors import DecodeError, EncodeError
from letterhead.iggy.errors import refuse_bytes, refuse_value
from letterhead.iggy.formats import MAX_FIELD_LEN
from letterhead.iggy.kinds import HeaderKind
from letterhead.iggy.text import format_value, parse_value
from letterhead.message import bytes_of
from letterhead.values import VALUE_TYPES, String, Value, value_from_message

__all__ = ["HeaderField", "HeaderKey", "HeaderValue"]

_Python = TypeVar("_Python")
_Field = TypeVar("_Field", bound="HeaderField")


class _Maker(Generic[_Python]):
    """Descriptor of a class method that converts a Python value to a header key or value."""

    def __init__(self, make: Callable[[_Python], Value]) -> None:
        self._make = make

    def __get__(self, field: object, owner: type[_Field]) -> Callable[[_Python], _Field]:
        return lambda value: owner._checked(self._make(value))


def _reader(type: Callable[[Any], _Python], kind: str) -> Callable[[HeaderField], _Python]:
    """Return a method that parses numbers of a kind."""

    def read(self: HeaderField) -> _Python:
        self._bits(kind)
        return type(self._typed.value)

    read.__doc__ = f"Return the value of kind ``{kind}``."
    read.__annotations__ = {"return": type.__name__}
    return read


class HeaderField:
    """Common base of keys and values, with a ``from_*`` and an ``as_*`` method for each kind.

    ``from_*`` raises EncodeError for 0 bytes (``empty_key``, ``empty_value``), for more than 255 bytes (``too_long``), and for
    a number outside the range of its kind (``out_of_range``). ``as_*`` raises DecodeError for another kind (``wrong_type``),
    a wrong size (``wrong_size``), a boolean other than 0 and 1 (``bad_bool``) and invalid UTF-8 (``value_not_utf8``).
    """

    __slots__ = ("_typed",)
    _typed: Value
    _part: ClassVar[str]

    @classmethod
    def _from_value(cls, value: Value) -> Self:
        """Return a key or value from a typed value of any type except ``char``, which Iggy does not support.

        Raises
        ------
        EncodeError
            If Iggy does not support the type (``unknown_type``), or the value is empty or too long.
        """
        if not isinstance(value, Value):
            raise TypeError(f"a Value such as Int32(3) is needed, not {type(value).__name__}")
        if HeaderKind._of_value(value.type) is None:
            refuse_value("unknown_type", f"{cls._part} kind {value.type} is unknown to Iggy")
        return cls._checked(value)

    @classmethod
    def from_kind_bytes(cls, kind: HeaderKind | str | int, value: bytes, *, validate: bool = True) -> Self:
        """Return a key or value from its kind and its bytes on the wire.

        Parameters
        ----------
        kind : HeaderKind, str or int
            The kind, its name or its code.
        value : bytes-like
            The bytes; numbers are little-endian.
        validate : bool, default True
            Whether to reject bytes of a wrong size. If False, all bytes that JSON can contain are accepted.

        Raises
        ------
        EncodeError
            If the bytes are empty, too long, or of the wrong size for the kind.
        DecodeError
            If the kind is unknown.

        Examples
        --------
        >>> from letterhead.iggy import HeaderValue
        >>> HeaderValue.from_kind_bytes("int16", b"\\x00\\x01")
        HeaderValue.from_int16(256)
        """
        kind = _kind(kind)
        data = bytes_of(value, f"the bytes of a {cls._part}")
        typed = value_from_message(kind._value_type, _reorder(kind._value_type, data))
        return cls._checked(typed) if validate else cls._from_typed(typed)

    @classmethod
    def from_kind_str_and_value_str(cls, kind: str, value: str) -> Self:
        """Return a key or value from the name of its kind and its text.

        Parameters
        ----------
        kind : str
            Name of the kind.
        value : str
            Digits for integers, ``true`` or ``false``, a decimal number, ``inf`` or ``nan`` for floats.

        Raises
        ------
        DecodeError
            If the kind is unknown (``unknown_type``), or the text is not a value of the kind (``bad_text``, ``out_of_range``).
        """
        return cls._checked(parse_value(HeaderKind.parse(kind), value))

    @classmethod
    def from_str(cls, value: str) -> Self:
        """Return a key or value of kind ``string``."""
        try:
            return cls._checked(String(value))
        except EncodeError as error:
            if error.code == "value_not_utf8" and cls._part == "key":
                refuse_value("key_not_utf8", "a key with half of a surrogate pair has no UTF-8 form")
            raise

    from_raw = _Maker(values.Binary)
    from_bool = _Maker(values.Bool)
    from_int8 = _Maker(values.Int8)
    from_int16 = _Maker(values.Int16)
    from_int32 = _Maker(values.Int32)
    from_int64 = _Maker(values.Int64)
    from_int128 = _Maker(values.Int128)
    from_uint8 = _Maker(values.UInt8)
    from_uint16 = _Maker(values.UInt16)
    from_uint32 = _Maker(values.UInt32)
    from_uint64 = _Maker(values.UInt64)
    from_uint128 = _Maker(values.UInt128)
    from_float32 = _Maker(values.Float32)
    from_float64 = _Maker(values.Float64)

    @property
    def kind(self) -> HeaderKind:
        """The kind."""
        return require(HeaderKind._of_value(self._typed.type), "the kind of a field")

    @property
    def value(self) -> bytes:
        """The bytes on the wire; numbers are little-endian."""
        return _reorder(self._typed.type, self._typed.bits)

    def as_str(self) -> str:
        """Return the text of a ``string``."""
        bits = self._bits("string")
        try:
            return bits.decode()
        except UnicodeDecodeError:
            refuse_bytes("value_not_utf8", f"the {self._part} is not UTF-8", None)

    def as_raw(self) -> bytes:
        """Return the bytes of a ``raw``."""
        return self._bits("raw")

    def as_bool(self, *, validate: bool = True) -> bool:
        """Return the value of kind ``bool``.

        Parameters
        ----------
        validate : bool, default True
            Whether to reject more than one byte. Releases before 0.8.2 read only the first byte.
        """
        return bool(self._whole_or_first("bool", validate).value)

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
        """Return the value of kind ``uint8``; ``validate`` is as in :meth:`as_bool`."""
        return int(self._whole_or_first("uint8", validate).value)

    def to_string_value(self) -> str:
        """Return the value as text; this works for all kinds."""
        return format_value(self._typed)

    def __str__(self) -> str:
        return self.to_string_value()

    def __eq__(self, other: object) -> bool:
        return self._typed == other._typed if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._typed)

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            maker = _MAKERS[self.kind]
            return f"{name}.from_{maker}({getattr(self, f'as_{maker}')()!r})"
        except (DecodeError, KeyError):
            return f"{name}.from_kind_bytes({str(self.kind)!r}, {self.value!r}, validate=False)"

    @classmethod
    def _from_typed(cls, typed: Value) -> Self:
        field = object.__new__(cls)
        field._typed = typed
        return field

    @classmethod
    def _checked(cls, typed: Value) -> Self:
        return cls._from_typed(typed)._with_length()._with_size()

    def _with_length(self) -> Self:
        """Return the field; raise EncodeError if it is empty or too long."""
        size = len(self._typed.bits)
        if size == 0:
            refuse_value(f"empty_{self._part}", f"the {self._part} has no bytes")
        if size > MAX_FIELD_LEN:
            refuse_value("too_long", f"{self._part} of {size} bytes is longer than {MAX_FIELD_LEN}")
        return self

    def _with_size(self) -> Self:
        """Return the field; raise DecodeError if the size is wrong for the kind."""
        width = VALUE_TYPES.get(self._typed.type)
        size = len(self._typed.bits)
        if width is not None and size != width:
            prefix = "key of " if self._part == "key" else ""
            refuse_value("wrong_size", f"{prefix}{count_noun(size, 'byte')} where {self._typed.type} takes {width}")
        return self

    def _bits(self, kind: str) -> bytes:
        """Return the bytes of the value after checking its kind."""
        if str(self.kind) != kind:
            refuse_bytes("wrong_type", f"the {self._part} is {self.kind} and {kind} was requested", None)
        return self._typed.bits

    def _whole_or_first(self, kind: str, validate: bool) -> Value:
        """Return the value after checking its kind; without ``validate``, use only its first byte."""
        self._bits(kind)
        return self._typed if validate or not self.value else value_from_message(kind, self.value[:1])


class HeaderKey(HeaderField):
    """A header key: text of 1 to 255 bytes, or in the format ``iggy`` a value of any kind.

    Keys are case-sensitive. ``HeaderKey("name")`` is the same as ``HeaderKey.from_str("name")``.

    Raises
    ------
    EncodeError
        If the text is empty (``empty_key``), has more than 255 bytes (``too_long``), or has no UTF-8 form
        (``key_not_utf8``).

    Examples
    --------
    >>> from letterhead.iggy import HeaderKey
    >>> HeaderKey("key 1"), HeaderKey.from_int32(3)
    (HeaderKey('key 1'), HeaderKey.from_int32(3))
    >>> HeaderKey("Key") == HeaderKey("key"), HeaderKey.lower("Key") == HeaderKey("key")
    (False, True)
    """

    __slots__ = ()
    _part = "key"

    def __init__(self, name: str) -> None:
        self._typed = HeaderKey.from_str(name)._typed

    @classmethod
    def lower(cls, name: str, *, validate: bool = True) -> Self:
        """Return a key in lower case, as releases before 0.8.2 create all keys.

        Parameters
        ----------
        name : str
            The text.
        validate : bool, default True
            Whether to check the length in lower case too. These releases checked only the original text. As a few letters
            take more bytes in lower case, they could write keys that they could not read.
        """
        lowered = String(cls.from_str(name).as_str().lower())
        return cls._checked(lowered) if validate else cls._from_typed(lowered)

    def __repr__(self) -> str:
        return super().__repr__().replace("HeaderKey.from_str(", "HeaderKey(", 1)


class HeaderValue(HeaderField):
    """A header value with its kind, created by a ``from_*`` method and read by the ``as_*`` method of its kind.

    Parameters
    ----------
    kind : HeaderKind, str or int
        The kind, its name or its code.
    value : bytes-like
        The bytes on the wire; numbers are little-endian.

    Raises
    ------
    EncodeError
        If the value is empty (``empty_value``), too long (``too_long``), or of the wrong size for the kind
        (``wrong_size``).
    DecodeError
        If the kind is unknown (``unknown_type``).

    Examples
    --------
    >>> from letterhead.iggy import HeaderKind, HeaderValue
    >>> value = HeaderValue.from_float64(123.45)
    >>> value.kind, value.as_float64()
    (<HeaderKind.FLOAT64: 15>, 123.45)
    >>> value.as_str()
    Traceback (most recent call last):
        ...
    letterhead.errors.DecodeError: the value is float64 and string was requested
    >>> HeaderValue(HeaderKind.INT16, b"\\x00\\x01").as_int16()
    256
    """

    __slots__ = ()
    _part = "value"

    def __init__(self, kind: HeaderKind | str | int, value: bytes) -> None:
        self._typed = HeaderValue.from_kind_bytes(kind, value)._typed


_MAKERS = {kind: {"string": "str"}.get(str(kind), str(kind)) for kind in HeaderKind}


def _reorder(type: str, data: bytes) -> bytes:
    """Convert bytes on the wire to big-endian or back; types of variable width are returned unchanged."""
    return data if VALUE_TYPES.get(type) is None else data[::-1]


def _kind(kind: HeaderKind | str | int) -> HeaderKind:
    if isinstance(kind, str):
        return HeaderKind.parse(kind)
    return HeaderKind(kind) if 16 <= kind <= 255 else HeaderKind.from_code(kind)
