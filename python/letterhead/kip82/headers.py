"""Headers with text keys and typed values: the first draft's ``Headers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from letterhead.errors import DecodeError, EncodeError
from letterhead.headers import HeaderValue
from letterhead.kip82.block import DraftHeaders
from letterhead.kip82.layouts import BLOCKS
from letterhead.kip82.typed import TYPES, Typed
from letterhead.values import Value

__all__ = ["Headers"]

_Given = TypeVar("_Given")


def _putter(type: str, of: type[_Given]) -> Callable[[Headers, str, _Given], None]:
    """Make the method that adds a value of a type of the draft."""

    def put(self: Headers, key: str, value: _Given) -> None:
        self.put_typed(key, type, value)

    put.__doc__ = f"Add a value of the type ``{type}``, a Python {of.__name__}."
    return put


class Headers(DraftHeaders[str]):
    """Headers with text keys and typed values, parsed on first access.

    Parameters
    ----------
    headers : bytes-like, mapping or pairs, optional
        The headers as they are on the wire (format ``kip82-typed``), or keys and values as :meth:`put` takes them.
    serializers : mapping of str to HeaderSerializer, optional
        For the keys whose values are to be other objects than those of the draft's types.
    errors : {"raise", "null"}, default "raise"
        What the first access does if the bytes are not headers: raise, or read them as no headers. ``error`` tells
        why.

    Raises
    ------
    DecodeError
        On every access, if the bytes are not headers and ``errors="raise"``.

    Examples
    --------
    >>> from letterhead.kip82 import Headers, Typed
    >>> headers = Headers()
    >>> headers.put_string("tenant", "acme")
    >>> headers.put_integer("retry", 3)
    >>> headers.put("retry", Typed("long", 4))
    >>> headers.get_all("retry"), headers.keys()
    ([3, 4], ['tenant', 'retry'])
    >>> read = Headers(headers.as_bytes())
    >>> read.parsed, read["tenant"], read.parsed
    (False, 'acme', True)
    >>> damaged = Headers(headers.as_bytes()[:-1], errors="null")
    >>> damaged.keys(), damaged.error.code
    ([], 'truncated')
    """

    __slots__ = ()
    _format = BLOCKS["typed"]

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
        """Add a value of a type, whatever serializer the key has.

        Parameters
        ----------
        key : str
            The key.
        type : str
            The type, by the draft's name.
        value : bool, int, float, str or bytes
            What the type takes.

        Raises
        ------
        TypeError
            If the value is not of the Python type that goes with the type, or these headers are immutable.
        EncodeError
            If the value does not fit its type.
        ValueError
            If there is no such type.
        """
        with self._placed(key):
            typed = Typed(type, value)
        self.put(key, typed)

    def put(self, key: str, value: Any) -> None:
        """Add a header at the end; headers with the same key stay.

        Parameters
        ----------
        key : str
            The key.
        value : Typed, Value, bool, str, bytes or None
            The value; ``None`` is null. Of numbers the type has to be said: ``Typed("long", 4)``, or
            :meth:`put_long`. Where the key has a serializer, what that takes, or a value with its type.

        Raises
        ------
        TypeError
            If the key or the value is none of these, or these headers are immutable.
        EncodeError
            If the key has no UTF-8 form (``key_not_utf8``), the draft has no such type (``unknown_type``), or the value
            does not fit.
        """
        super().put(key, value)

    def get_typed(self, key: str) -> list[Typed | None]:
        """Give all values of a key with their types.

        Parameters
        ----------
        key : str
            The key.

        Returns
        -------
        list of Typed or None
            The values in order, not deserialized; ``None`` is null.

        Examples
        --------
        >>> from letterhead.kip82 import Headers
        >>> Headers({"ok": True, "note": None}).get_typed("ok")
        [Typed('boolean', True)]
        """
        return [Typed.from_value(value) if isinstance(value, Value) else None for value in self._all(key)]

    def _of_form(self, key: Any) -> str:
        if not isinstance(key, str):
            if isinstance(key, int):
                message = f"the key {key} is a number, and those of this layout are text"
                raise EncodeError(message, format=self._format, code="key_not_carried", key=str(key))
            raise TypeError(f"a key must be str, not {type(key).__name__}")
        try:
            key.encode()
        except UnicodeEncodeError:
            message = "a key with half of a surrogate pair has no UTF-8 form"
            raise EncodeError(message, format=None, code="key_not_utf8") from None
        return key

    def _to_held(self, key: str, value: Any) -> HeaderValue:
        serializer = self._serializers.get(key)
        if serializer is not None and not isinstance(value, Typed | Value):
            return Value.from_bits(TYPES[serializer.type], serializer.to_bytes(key, value))
        return self._held_as(value)

    def _held_as(self, value: Any) -> HeaderValue:
        if isinstance(value, Typed):
            return value.to_value()
        if isinstance(value, Value):
            return Typed.from_value(value).to_value()
        if isinstance(value, bool):
            return Value("bool", value)
        if isinstance(value, str):
            return Value("string", value)
        if isinstance(value, bytes | bytearray | memoryview):
            return Value("binary", value)
        hint = f" (say which type: Typed('long', {value!r}))" if isinstance(value, int | float) else ""
        raise TypeError(f"a value must be Typed, Value, bool, str, bytes or None, not {type(value).__name__}{hint}")

    def _from_held(self, key: str, value: Any) -> Any:
        serializer = self._serializers.get(key)
        if serializer is None:
            return value.value
        type = Typed.from_value(value).type
        if type != serializer.type:
            message = f"the value is of the type {type} and the serializer of its key takes {serializer.type}"
            raise DecodeError(message, format=self._format, code="wrong_type", key=key)
        return serializer.deserialize(value.bits)
