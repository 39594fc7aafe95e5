"""One message: its headers and the other fields of its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from letterhead._names import unknown_name
from letterhead.errors import EncodeError
from letterhead.headers import Headers, pairs_of

__all__ = ["Data", "Message", "bytes_of", "fields_of"]

Data: TypeAlias = bytes | bytearray | memoryview


class Message:
    """The fields of one message, by name.

    The format determines the fields: ``streams`` has ``headers`` and ``payload``, ``streams-timestamped`` has
    ``timestamp`` between them. Missing fields are written as null.

    Parameters
    ----------
    **fields : object
        The fields. ``headers`` accepts what :class:`~letterhead.Headers` accepts.

    Attributes
    ----------
    _fields : tuple of str
        Names of the fields, in order.

    Examples
    --------
    >>> import letterhead as lh
    >>> message = lh.Message(headers={"tenant": b"acme"}, timestamp=1767225600000, payload=b"42")
    >>> message
    Message(headers=Headers([('tenant', b'acme')]), timestamp=1767225600000, payload=b'42')
    >>> message.headers["tenant"], message._fields
    (b'acme', ('headers', 'timestamp', 'payload'))
    >>> message._replace(payload=b"43") == message
    False
    """

    def __init__(self, **fields: Any) -> None:
        headers = fields.get("headers")
        if headers is not None and not isinstance(headers, Headers):
            fields["headers"] = Headers(headers)
        self.__dict__.update(fields)

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self.__dict__)

    def _asdict(self) -> dict[str, Any]:
        """Return the fields as a new dict."""
        return dict(self.__dict__)

    def _replace(self, **fields: Any) -> Message:
        """Return a copy with other values for some fields."""
        for name in fields:
            if name not in self.__dict__:
                raise unknown_name("field", name, self.__dict__)
        return Message(**{**self.__dict__, **fields})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            self.__getattr__(name)
        if name == "headers" and value is not None and not isinstance(value, Headers):
            value = Headers(value)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        # Called for missing fields only, and by `__setattr__`: a misspelt field would be set and never written. The method
        # also tells type checkers that there are fields, which depend on the format.
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(str(unknown_name("field", name, self.__dict__)))

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if isinstance(other, Message) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Message({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def bytes_of(data: object, name: str = "data") -> bytes:
    """Return bytes-like data as bytes."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"{name} must be bytes, not {type(data).__name__}")


def fields_of(message: object, format: str, types: dict[str, str]) -> dict[str, Any]:
    """Return all fields of a message as the compiled core accepts them, checked by Arrow type; unset fields are null."""
    if isinstance(message, Message):
        fields = message._asdict()
    elif isinstance(message, Mapping) and not isinstance(message, Headers):
        fields = dict(message)
    else:
        expected = "is a message format and takes a Message or a mapping of its fields"
        raise TypeError(f"{format} {expected}, not {type(message).__name__}")
    for name in fields:
        if name not in types:
            raise unknown_name(f"{format} field", name, types)
    if fields.get("tombstone") is False:
        # Null headers mean that there is no wrapper, and that a null value is a delete. Any other message needs a list.
        fields.setdefault("headers", ())
    return {name: _field(name, fields.get(name), arrow_type, format) for name, arrow_type in types.items()}


# The range of an integer field by Arrow type: the smallest number, and the first number above the range.
_RANGES = {"int8": (-(1 << 7), 1 << 7), "int64": (-(1 << 63), 1 << 63), "decimal128(20, 0)": (0, 1 << 64)}


def _field(name: str, value: Any, arrow_type: str, format: str) -> Any:
    if value is None:
        return None
    if name == "headers":
        return pairs_of(value)
    if arrow_type == "binary":
        return bytes_of(value, name)
    expected: type[Any] = {"bool": bool, "string": str}.get(arrow_type, int)
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is int):
        raise TypeError(f"{name} must be {expected.__name__}, not {type(value).__name__}")
    if expected is not int:
        return value
    low, high = _RANGES[arrow_type]
    if not low <= value < high:
        type_name = "uint64" if low == 0 else arrow_type
        raise EncodeError(f"{name} does not fit {type_name}", format=format, code="out_of_range")
    return value
