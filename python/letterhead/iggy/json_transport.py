"""JSON of Iggy's HTTP interface: strict parsing, compact writing, base64.

The parser accepts and rejects the same texts as Iggy's library: a repeated field is an error, the last value of a
repeated map key applies, and unknown fields are ignored.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

from letterhead._strict_json import JsonError, parse_json
from letterhead.errors import DecodeError
from letterhead.iggy.errors import refuse_bytes, shift_errors
from letterhead.iggy.formats import Format, ReadFormat, check_format
from letterhead.iggy.kinds import HeaderKind

__all__ = [
    "HeaderEntry",
    "Fields",
    "JsonModel",
    "dump",
    "fields_of",
    "load",
    "read_base64",
    "read_digits",
    "read_entries",
    "refuse",
    "to_base64",
]

_Choice = TypeVar("_Choice", bound=str)

_BASE64 = re.compile(r"[A-Za-z0-9+/]*")
_DIGITS = re.compile(r"\+?[0-9]{1,4000}")
_UUID = re.compile(r"[0-9a-fA-F]{32}")


class JsonModel(ABC):
    """Base class with methods that read and write JSON of the HTTP interface; each class documents its JSON."""

    __slots__ = ()

    @classmethod
    def from_json(cls, text: str | bytes, format: ReadFormat = "iggy-auto", *, validate: bool = True) -> Self:
        """Read the JSON of the HTTP interface.

        Parameters
        ----------
        text : str or bytes
            The JSON, in the form documented in the class.
        format : {"iggy-auto", "iggy-2023", "iggy"}, default "iggy-auto"
            The expected format. Headers in the other format are an error, although Iggy's servers ignore them.
        validate : bool, default True
            Whether to check headers as strictly as in bytes. Iggy's servers do not, and store headers that no client can
            read.

        Raises
        ------
        DecodeError
            If the text is not the JSON of this class in this format.

        Examples
        --------
        >>> from letterhead.iggy import HeaderMap, Message
        >>> HeaderMap.from_json('{"key_1":{"kind":"string","value":"dmFsdWU="}}')
        HeaderMap({HeaderKey('key_1'): HeaderValue.from_str('value')})
        >>> Message.from_json('{"payload": "aGVsbG8="}')
        Message(id=0, payload=b'hello', headers=None, origin_timestamp=None)
        """
        check_format(format, read=True)
        return cls._from_tree(load(text), format, validate=validate)

    def to_json(self, format: Format = "iggy-2023", *, canonical: bool = False) -> str:
        """Return the JSON of the HTTP interface, without spaces; options are as in :mod:`letterhead.iggy`.

        Raises
        ------
        ConversionError
            If the format does not support a key or a kind.

        Examples
        --------
        >>> from letterhead.iggy import HeaderMap, Message
        >>> print(HeaderMap({"key_1": "value"}).to_json())
        {"key_1":{"kind":"string","value":"dmFsdWU="}}
        >>> print(Message(7, b"hello").to_json(), Message(7, b"hello").to_json("iggy"))
        {"id":7,"payload":"aGVsbG8=","headers":null} {"id":7,"payload":"aGVsbG8="}
        """
        check_format(format)
        return dump(self._to_tree(format, canonical=canonical))

    @classmethod
    def _list_from_trees(cls, fields: Fields, format: ReadFormat, *, validate: bool) -> list[Self]:
        """Read the field ``messages``."""
        trees = fields.need("messages")
        if not isinstance(trees, list) or isinstance(trees, Pairs):
            refuse("the field messages is not a list", format)
        models = []
        for index, tree in enumerate(trees):
            with shift_errors(0, f"message {index}: "):
                models.append(cls._from_tree(tree, format, validate=validate))
        return models

    @classmethod
    @abstractmethod
    def _from_tree(cls, tree: Any, format: ReadFormat, *, validate: bool) -> Self: ...

    @abstractmethod
    def _to_tree(self, format: Format, *, canonical: bool = False) -> Any: ...


class Pairs(list[tuple[str, Any]]):
    """Members of a JSON object in order, including repeated members."""


class HeaderEntry(NamedTuple):
    """Parsed header of a JSON text."""

    key: str | tuple[HeaderKind, bytes]
    kind: HeaderKind
    value: bytes


class Fields(dict[str, Any]):
    """Known fields of a JSON object; the methods return them after checking their types."""

    def __init__(self, members: dict[str, Any], owner: str, format: str | None) -> None:
        super().__init__(members)
        self.owner = owner
        self.format = format

    def need(self, name: str) -> Any:
        """Return a required field."""
        if name not in self:
            refuse(f"{self.owner} has no field {name}", self.format)
        return self[name]

    def number(self, name: str, bits: int, default: int | None = None) -> int:
        """Return a numeric field, which must be an unsigned number."""
        number = self.need(name) if default is None else self.get(name, default)
        if isinstance(number, bool) or not isinstance(number, int):
            refuse(f"the field {name} of {self.owner} is not an integer", self.format)
        if not 0 <= number < 1 << bits:
            refuse_bytes("out_of_range", f"the field {name} of {self.owner} does not fit {bits} bits", self.format)
        return number

    def identity(self) -> int:
        """Return the id of a message: a number, digits or a UUID; 0 if it is absent."""
        value = self.get("id", 0)
        if not isinstance(value, str):
            return self.number("id", 128, 0)
        number = read_digits(value, 128)
        if number is not None:
            return number
        digits = value.replace("-", "")
        if not _UUID.fullmatch(digits):
            refuse(f"the field id of {self.owner} is neither digits nor a UUID", self.format)
        return uuid.UUID(digits).int

    def digits(self, name: str, bits: int, default: int) -> int:
        """Return an unsigned number from a text field."""
        value = self.get(name, str(default))
        number = read_digits(value, bits) if isinstance(value, str) else None
        if number is None:
            refuse(f"the field {name} of {self.owner} is not a text of digits that fits {bits} bits", self.format)
        return number

    def base64(self, name: str, *, padded: bool = False) -> bytes:
        """Return the bytes of a base64 field."""
        return read_base64(self.need(name), f"the field {name} of {self.owner}", self.format, padded=padded)

    def one_of(self, name: str, choices: Iterable[_Choice]) -> _Choice:
        """Return a text field that must be one of the choices."""
        value, choices = self.need(name), list(choices)
        if value not in choices:
            refuse(f"the field {name} of {self.owner} is none of {', '.join(choices)}", self.format)
        return choices[choices.index(value)]


def load(text: str | bytes) -> Any:
    """Parse JSON; objects become :class:`Pairs`."""
    if not isinstance(text, str | bytes | bytearray):
        raise TypeError(f"JSON must be str or bytes, not {type(text).__name__}")
    try:
        return parse_json(text, members=Pairs)
    except JsonError as error:
        message = f"the text is not JSON: {error}"
        raise DecodeError(message, format=None, code="bad_text", byte_offset=error.byte) from None


def dump(tree: Any) -> str:
    """Return compact JSON without unnecessary escapes, as Iggy's library writes it."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def to_base64(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


def fields_of(tree: Any, owner: str, names: Iterable[str], format: str) -> Fields:
    """Return the named fields of an object; other members are ignored, repeated fields raise."""
    if not isinstance(tree, Pairs):
        refuse(f"{owner} is not an object", format)
    members: dict[str, Any] = {}
    names = set(names)
    for name, value in tree:
        if name in names and name in members:
            refuse(f"{owner} has the field {name} twice", format)
        if name in names:
            members[name] = value
    return Fields(members, owner, format)


def read_entries(tree: Any, format: str) -> list[HeaderEntry]:
    """Parse headers of either format, without checking the lengths of keys and values."""
    if isinstance(tree, Pairs):
        return [HeaderEntry(key, *_read_field(value, "a value", format)) for key, value in tree]
    entries = []
    for item in tree:
        entry = fields_of(item, "a header", ("key", "value"), format)
        key = _read_field(entry.need("key"), "a key", format)
        entries.append(HeaderEntry(key, *_read_field(entry.need("value"), "a value", format)))
    return entries


def read_base64(value: Any, owner: str, format: str | None, *, padded: bool) -> bytes:
    """Parse strict base64: the standard alphabet, no other characters, no unused bits."""
    if not isinstance(value, str):
        refuse(f"{owner} is not base64", format)
    body = value.rstrip("=")
    padding, needed = len(value) - len(body), -len(body) % 4
    is_padded_right = padding == needed if padded else padding <= needed
    if not _BASE64.fullmatch(body) or needed == 3 or not is_padded_right:
        refuse(f"{owner} is not base64", format)
    data = base64.b64decode(body + "=" * needed)
    if to_base64(data).rstrip("=") != body:
        refuse(f"{owner} is not base64: bits are left over", format)
    return data


def read_digits(text: str, bits: int) -> int | None:
    """Parse an unsigned number; return None if the text is not a number, or the number is too large."""
    number = int(text) if _DIGITS.fullmatch(text) else None
    return number if number is not None and number < 1 << bits else None


def refuse(message: str, format: str | None) -> NoReturn:
    """Raise DecodeError for JSON with unexpected content."""
    refuse_bytes("bad_text", message, format)


def _read_field(tree: Any, owner: str, format: str) -> tuple[HeaderKind, bytes]:
    if isinstance(tree, list) and not isinstance(tree, Pairs) and len(tree) == 2:
        tree = Pairs(zip(("kind", "value"), tree, strict=True))
    field = fields_of(tree, owner, ("kind", "value"), format)
    name = field.need("kind")
    if not isinstance(name, str):
        refuse(f"the field kind of {owner} is not text", format)
    try:
        kind = HeaderKind.parse(name)
    except DecodeError as error:
        refuse_bytes(error.code, error.message, format)
    return kind, field.base64("value")
