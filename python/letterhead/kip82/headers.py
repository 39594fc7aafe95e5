"""Headers with text keys and typed values: ``Headers`` of the first draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from letterhead.errors import DecodeError, EncodeError
from letterhead.headers import HeaderValue
from letterhead.kip82.draft_headers import DraftHeaders
from letterhead.kip82.header_formats import HEADERS_FORMATS
from letterhead.kip82.serializers import HeaderSerializer
from letterhead.kip82.typed import TYPES, Typed
from letterhead.values import Value

__all__ = ["Headers"]

_Python = TypeVar("_Python")


def _putter(type: str, python_type: type[_Python]) -> Callable[[Headers, str, _Python], None]:
    """Create a method that adds a value of one of the draft's types."""

    def put(self: Headers, key: str, value: _Python) -> None:
        self.put_typed(key, type, value)

    put.__doc__ = f"Add a value of the type ``{type}``, from a Python {python_type.__name__}."
    return put


class Headers(DraftHeaders[str]):
    """Headers with text keys and typed values, parsed on first access.

    A value is a :class:`Typed`, a :class:`letterhead.Value`, bool, str, bytes, or ``None`` for null. Numbers need a
    type: ``Typed("long", 4)`` or :meth:`put_long`. A key with a serializer accepts objects for it, or a typed value.

    Parameters
    ----------
    headers : bytes-like, mapping or pairs, optional
        Encoded headers (format ``kip82-typed``), or keys and values.
    serializers : mapping of str to HeaderSerializer, optional
        Serializers by key, for values of other types.
    errors : {"raise", "null"}, default "raise"
        What to do if the bytes cannot be parsed on first access: raise, or behave as if there were no headers. The
        reason is in ``error``.

    Raises
    ------
    TypeError
        If a key or a value has a wrong type.
    EncodeError
        If a key has no UTF-8 form (``key_not_utf8``), the draft does not have a type (``unknown_type``), or a value
        does not fit its type.
    DecodeError
        On every access, if the bytes cannot be parsed and ``errors="raise"``.

    Examples
    --------
    >>> from letterhead.kip82 import Headers, Typed
    >>> headers = Headers()
    >>> headers.put_string("tenant", "acme")
    >>> headers.put_integer("retry", 3)
    >>> headers.put("retry", Typed("long", 4))
    >>> headers.get_all("retry"), headers.keys()
    ([3, 4], ['tenant', 'retry', 'retry'])
    >>> read = Headers(headers.as_bytes())
    >>> read.parsed, read["tenant"], read.parsed
    (False, 'acme', True)
    >>> damaged = Headers(headers.as_bytes()[:-1], errors="null")
    >>> damaged.keys(), damaged.error.code
    ([], 'truncated')
    """

    __slots__ = ()
    _format = HEADERS_FORMATS["typed"]

    put_boolean = _putter("boolean", bool)
    put_byte = _putter("byte", int)
    put_char = _putter("char", str)
    put_short = _putter("short", int)
    put_integer = _putter("int", int)
    put_long = _putter("long", int)
    put_float = _putter("float", float)
    put_double = _putter("double", float)
    put_string = _putter("string", str)
    put_bytes = _putter("byte[]", bytes)

    def put_typed(self, key: str, type: str, value: Any) -> None:
        """Add a value of one of the draft's types, even if the key has a serializer.

        Raises the errors of :class:`Typed`, and ``TypeError`` if these headers are immutable.
        """
        with self._locate_errors(key):
            typed = Typed(type, value)
        self.put(key, typed)

    def get_typed(self, key: str) -> list[Typed | None]:
        """Return all values of a key as typed values, without its serializer; ``None`` is null.

        Examples
        --------
        >>> from letterhead.kip82 import Headers
        >>> Headers({"ok": True, "note": None}).get_typed("ok")
        [Typed('boolean', True)]
        """
        return [Typed._from_value(value) if isinstance(value, Value) else None for value in self._values_of(key)]

    def _check_key(self, key: Any) -> str:
        if not isinstance(key, str):
            if isinstance(key, int):
                message = f"the key {key} is a number, and this header format has text keys"
                raise EncodeError(message, format=self._format, code="key_not_carried", key=str(key))
            raise TypeError(f"a key must be str, not {type(key).__name__}")
        try:
            key.encode()
        except UnicodeEncodeError:
            raise EncodeError(
                "a key with a lone surrogate has no UTF-8 form", format=None, code="key_not_utf8"
            ) from None
        return key

    def _check_value(self, value: Any) -> HeaderValue:
        if isinstance(value, Typed):
            return value._value
        if isinstance(value, Value):
            return Typed._from_value(value)._value
        if isinstance(value, bool):
            return Value("bool", value)
        if isinstance(value, str):
            return Value("string", value)
        if isinstance(value, bytes | bytearray | memoryview):
            return Value("binary", value)
        hint = ": numbers need a type, as in Typed('long', 3)" if isinstance(value, int | float) else ""
        raise TypeError(f"a value must be Typed, Value, bool, str, bytes or None, not {type(value).__name__}{hint}")

    def _plain(self, value: Any) -> Any:
        return value.value

    def _serialize(self, serializer: HeaderSerializer, key: str, value: Any) -> HeaderValue:
        if isinstance(value, Typed | Value):
            return self._check_value(value)
        return Value.from_bits(TYPES[serializer.type], serializer._to_bytes(key, value))

    def _deserialize(self, serializer: HeaderSerializer, key: str, value: Any) -> Any:
        type = Typed._from_value(value).type
        if type != serializer.type:
            message = f"the value has the type {type}, and the serializer of its key reads {serializer.type}"
            raise DecodeError(message, format=self._format, code="wrong_type", key=key)
        return serializer.deserialize(value.bits)
