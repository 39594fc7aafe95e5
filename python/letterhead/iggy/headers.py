"""Headers of a message as a map with unique keys, as in Iggy's library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeAlias

import letterhead.iggy.json_transport as transport
from letterhead._invariants import instance
from letterhead.errors import ConversionError, DecodeError, EncodeError, HeaderError
from letterhead.headers import Header, Headers
from letterhead.iggy.errors import refuse_value
from letterhead.iggy.fields import HeaderField, HeaderKey, HeaderValue
from letterhead.iggy.formats import Format, ReadFormat, check_format, check_header_bytes
from letterhead.iggy.kinds import HeaderKind
from letterhead.message import Data
from letterhead.one_message import decode, encode
from letterhead.results import Types
from letterhead.values import Value

__all__ = ["KeyLike", "HeadersLike", "ValueLike", "HeaderMap"]

KeyLike: TypeAlias = HeaderKey | str
ValueLike: TypeAlias = HeaderValue | Value | str | bytes | bool
HeadersLike: TypeAlias = "HeaderMap | Mapping[Any, ValueLike] | Iterable[tuple[KeyLike, ValueLike]]"


class HeaderMap(transport.JsonModel):
    """Map of headers, in the order in which the keys were first set.

    A key is a :class:`HeaderKey`, or a str for a key of kind ``string``. Two keys are equal if their kinds and bytes are
    equal: ``uint8`` 1, ``int8`` 1 and ``bool`` true are three keys. The map contains the last value of a repeated key; use
    :func:`letterhead.decode` to read all values.

    In JSON, headers are an object ``{"key": {"kind": …, "value": …}}`` in ``iggy-2023``. In ``iggy``, they are a list of
    ``{"key": {"kind": …, "value": …}, "value": {…}}``, or base64 of the encoded headers if a kind has no name.

    Parameters
    ----------
    headers : mapping or iterable of (key, value), optional
        A value is a :class:`HeaderValue`, a :class:`letterhead.Value`, or a str, bytes or bool, which become ``string``,
        ``raw`` and ``bool``. Numbers need a kind.

    Raises
    ------
    TypeError
        If a key or value has another type.
    EncodeError
        If a key or value is empty or has more than 255 bytes.

    Examples
    --------
    >>> from letterhead.iggy import HeaderMap, HeaderValue
    >>> headers = HeaderMap({"tenant": "acme", "retry": HeaderValue.from_int32(3)})
    >>> headers["retry"].as_int32(), list(map(str, headers.keys()))
    (3, ['tenant', 'retry'])
    """

    __slots__ = ("_items",)
    _items: dict[HeaderKey, HeaderValue]

    def __init__(self, headers: HeadersLike = ()) -> None:
        self._items = {}
        if isinstance(headers, str | bytes | Headers):
            hint = ": use HeaderMap.from_headers" if isinstance(headers, Headers) else ""
            raise TypeError(f"headers must be a mapping or pairs, not {type(headers).__name__}{hint}")
        for key, value in headers.items() if isinstance(headers, Mapping | HeaderMap) else headers:
            self[key] = value

    @classmethod
    def from_bytes(cls, data: Data, format: ReadFormat = "iggy-auto", *, strict_types: bool = False) -> Self:
        """Decode the headers of a message; ``format`` is as in :mod:`letterhead.iggy`.

        Parameters
        ----------
        data : bytes-like
            The encoded headers of one message.
        strict_types : bool, default False
            Whether to reject unnamed kinds, which later releases may define.

        Raises
        ------
        DecodeError
            If the bytes are not headers in this format.
        """
        check_format(format, read=True)
        return cls.from_headers(instance(decode(data, format, strict_types=strict_types), Headers))

    @classmethod
    def from_headers(cls, headers: Headers, *, types: Types | None = None) -> Self:
        """Return a map from headers of any format, with the last value of a repeated key.

        Parameters
        ----------
        headers : Headers
            The headers.
        types : "binary" or mapping of key to type, optional
            Types of untyped values, as in :func:`letterhead.encode`.

        Raises
        ------
        EncodeError
            If Iggy cannot represent a header: its value is null (``null_not_carried``), or Iggy does not support its type
            (``unknown_type``).
        ConversionError
            If a value has no type, and ``types`` does not contain its key.

        Examples
        --------
        >>> import letterhead as lh
        >>> from letterhead.iggy import HeaderMap
        >>> HeaderMap.from_headers(lh.Headers([("retry", lh.Int32(3))]))
        HeaderMap({HeaderKey('retry'): HeaderValue.from_int32(3)})
        """
        if types is not None:
            headers = instance(decode(encode(headers, "iggy", types=types) or b"", "iggy"), Headers)
        header_map = cls()
        for index, (key, value) in enumerate(headers):
            header_map._items[_key_from(key, index)] = _value_from(value, index)
        return header_map

    def to_bytes(self, format: Format = "iggy-2023", *, canonical: bool = False) -> bytes:
        """Encode the headers, empty headers as no bytes; ``format`` and ``canonical`` are as in :mod:`letterhead.iggy`.

        Raises
        ------
        EncodeError
            If the headers exceed 100,000 bytes (``too_large``): the values in ``iggy-2023``, the encoded headers in ``iggy``.
        ConversionError
            If the format does not support a key or a kind.

        Examples
        --------
        >>> from letterhead.iggy import HeaderMap
        >>> HeaderMap({"a": "xyz"}).to_bytes().hex(), HeaderMap({"a": "xyz"}).to_bytes("iggy").hex()
        ('0100000061020300000078797a', '020100000061020300000078797a')
        """
        check_format(format)
        return encode((self._sorted() if canonical else self).to_headers(), format) or b""

    def to_headers(self) -> Headers:
        """Return the headers as :class:`letterhead.Headers`: ``string`` keys as str, all other keys and values with a type."""
        return Headers([(key._typed, value._typed) for key, value in self._items.items()])

    def _sorted(self) -> HeaderMap:
        """Return a new map in the order in which Iggy's library has written headers since 0.10.0.

        Headers are sorted by the code of the key's kind, then by the key's bytes on the wire; these are little-endian, so
        integers are not in numeric order.
        """
        ordered = HeaderMap()
        ordered._items = dict(sorted(self._items.items(), key=lambda item: (item[0].kind.as_code(), item[0].value)))
        return ordered

    def size_bytes(self, format: Format = "iggy-2023") -> int:
        """Return the size of the encoded headers in bytes."""
        check_format(format)
        frame = 9 if format == "iggy-2023" else 10  # kinds and lengths; keys have no kind in "iggy-2023"
        return sum(frame + len(key.value) + len(value.value) for key, value in self._items.items())

    def _value_bytes(self) -> int:
        """Return the total size of the values in bytes; releases before 0.8.2 limit it for a request."""
        return sum(len(value.value) for value in self._items.values())

    def validate(self, format: Format = "iggy-2023") -> None:
        """Raise EncodeError if servers would reject the headers because of their size (``too_large``); see :meth:`to_bytes`."""
        check_format(format)
        check_header_bytes(self._value_bytes() if format == "iggy-2023" else self.size_bytes(format), format)

    def __getitem__(self, key: KeyLike) -> HeaderValue:
        value = self._items.get(_as_key(key))
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: KeyLike, value: ValueLike) -> None:
        if not isinstance(key, HeaderKey | str):
            raise TypeError(f"a key must be a HeaderKey or a str, not {type(key).__name__}")
        self._items[HeaderKey(key) if isinstance(key, str) else key] = _as_value(value)

    def __delitem__(self, key: KeyLike) -> None:
        if self._items.pop(_as_key(key), None) is None:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, HeaderKey | str) and _as_key(key) in self._items

    def __iter__(self) -> Iterator[Any]:
        return map(Header._make, self._items.items())

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HeaderMap):
            return self._items == other._items
        return self._items == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def get(self, key: KeyLike, default: Any = None) -> Any:
        """Return the value of a key, or a default if no header has it."""
        return self._items.get(_as_key(key), default)

    def get_all(self, key: KeyLike) -> list[HeaderValue]:
        """Return a list with the value of a key, or an empty list if no header has it."""
        value = self._items.get(_as_key(key))
        return [] if value is None else [value]

    def keys(self) -> list[HeaderKey]:
        """Return the keys, in order."""
        return list(self._items)

    def values(self) -> list[HeaderValue]:
        """Return the values, in order."""
        return list(self._items.values())

    def items(self) -> list[tuple[HeaderKey, HeaderValue]]:
        """Return the keys and values, in order."""
        return list(self._items.items())

    def __repr__(self) -> str:
        return f"HeaderMap({self._items!r})" if self._items else "HeaderMap()"

    @classmethod
    def _from_tree(cls, tree: Any, format: ReadFormat, *, validate: bool) -> Self:
        detected: Format = "iggy-2023" if isinstance(tree, transport.Pairs) else "iggy"
        if format not in ("iggy-auto", detected) or not isinstance(tree, transport.Pairs | list | str):
            expected = {"iggy-2023": "an object", "iggy": "a list or base64", "iggy-auto": "an object or a list"}
            transport.refuse(f"the headers are not {expected[format]}", format)
        if isinstance(tree, str):
            block = transport.read_base64(tree, "the headers are a text that", "iggy", padded=True)
            return cls.from_bytes(block, "iggy")
        header_map = cls()
        for index, entry in enumerate(transport.read_entries(tree, detected)):
            header_map._add_entry(entry, index, detected, validate=validate)
        return header_map

    def _add_entry(self, entry: transport.HeaderEntry, index: int, format: Format, *, validate: bool) -> None:
        try:
            kind, data = entry.key if isinstance(entry.key, tuple) else (HeaderKind.STRING, entry.key.encode())
            key = HeaderKey.from_kind_bytes(kind, data, validate=False)
            value = HeaderValue.from_kind_bytes(entry.kind, entry.value, validate=False)
            if validate:
                # The decoder of "iggy-2023" does not check sizes.
                for field in (key, value):
                    field._with_length()
                    if format == "iggy":
                        field._with_size()
        except UnicodeEncodeError:
            message = "a key with half of a surrogate pair has no UTF-8 form"
            raise DecodeError(message, format=format, code="key_not_utf8", header=index) from None
        except HeaderError as error:
            raise DecodeError(error.message, format=format, code=error.code, header=index) from None
        self._items[key] = value

    def _to_tree(self, format: Format, *, canonical: bool = False) -> Any:
        ordered = self._sorted() if canonical else self
        if format == "iggy-2023":
            return {_text_key(key, index): _field_tree(value) for index, (key, value) in enumerate(ordered.items())}
        if not all(field.kind._is_named for item in ordered.items() for field in item):
            return transport.to_base64(ordered.to_bytes("iggy"))
        return [{"key": _field_tree(key), "value": _field_tree(value)} for key, value in ordered.items()]


def _as_key(key: KeyLike) -> HeaderKey:
    """Return the key to look up, without validating its text: a map does not contain invalid keys."""
    if not isinstance(key, HeaderKey | str):
        raise TypeError(f"headers are indexed by a HeaderKey or a str, not by {type(key).__name__}")
    if isinstance(key, str):
        return HeaderKey.from_kind_bytes(HeaderKind.STRING, key.encode(errors="surrogatepass"), validate=False)
    return key


def _as_value(value: ValueLike) -> HeaderValue:
    for types, convert in _CONVERTERS:
        if isinstance(value, types):
            return convert(value)
    hint = ": pass a kind, as in HeaderValue.from_int32(3)" if isinstance(value, int | float) else ""
    raise TypeError(f"a value must be a HeaderValue, Value, str, bytes or bool, not {type(value).__name__}{hint}")


_CONVERTERS: tuple[tuple[Any, Callable[[Any], HeaderValue]], ...] = (
    (HeaderValue, lambda value: value),
    (Value, HeaderValue._from_value),
    (str, HeaderValue.from_str),
    (bytes | bytearray | memoryview, HeaderValue.from_raw),
    (bool, HeaderValue.from_bool),
)


def _key_from(key: object, index: int) -> HeaderKey:
    """Return the key of a header of any format."""
    if isinstance(key, Value):
        return HeaderKey._from_typed(_with_type_of_iggy(key, "key", index))._with_length()
    return HeaderKey.from_int32(key) if isinstance(key, int) else HeaderKey(str(key))


def _value_from(value: object, index: int) -> HeaderValue:
    if value is None:
        raise EncodeError("the value is null", format="iggy", code="null_not_carried", header=index)
    if isinstance(value, Value):
        return HeaderValue._from_typed(_with_type_of_iggy(value, "value", index))._with_length()
    message = 'iggy values need a type: pass types={"retry": "int32"} or types="binary" to HeaderMap.from_headers'
    raise ConversionError(message, format="iggy", code="unknown_type", header=index)


def _with_type_of_iggy(value: Value, part: str, index: int) -> Value:
    if HeaderKind._of_value(value.type) is None:
        message = f"{part} kind {value.type} is unknown to Iggy"
        raise EncodeError(message, format="iggy", code="unknown_type", header=index)
    return value


def _text_key(key: HeaderKey, index: int) -> str:
    if key.kind is HeaderKind.STRING:
        return key.as_str()
    message = f"the key is {key.kind}"
    raise ConversionError(message, format="iggy-2023", code="key_not_carried", header=index)


def _field_tree(field: HeaderField) -> dict[str, str]:
    if not field.kind._is_named:
        refuse_value("unknown_type", f"{field._part} kind {field.kind} has no name in JSON")
    return {"kind": str(field.kind), "value": transport.to_base64(field.value)}
