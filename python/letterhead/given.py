"""What the verbs for one message are given, as the compiled core takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from letterhead.envelope import Envelope
from letterhead.errors import EncodeError, unknown_name
from letterhead.headers import GivenKey, GivenValue, Header, Headers

__all__ = ["Data", "GivenHeaders", "bytes_of", "fields_of", "pairs_of"]

Data: TypeAlias = bytes | bytearray | memoryview
GivenHeaders: TypeAlias = Headers | Mapping[Any, GivenValue] | Iterable[tuple[GivenKey, GivenValue]]


def bytes_of(data: object, name: str = "data") -> bytes:
    """Give the bytes of what is bytes-like."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"{name} must be bytes, not {type(data).__name__}")


def pairs_of(headers: GivenHeaders) -> list[Header]:
    """Give the headers that someone gave in one form or another."""
    return (headers if isinstance(headers, Headers) else Headers(headers))._list()


def fields_of(given: object, format: str, types: dict[str, str]) -> dict[str, Any]:
    """Give every field of an envelope, checked by its Arrow type; what is not given is null."""
    if isinstance(given, Envelope):
        fields = given._asdict()
    elif isinstance(given, Mapping) and not isinstance(given, Headers):
        fields = dict(given)
    else:
        takes = "is an envelope and takes an Envelope or a mapping of its fields"
        raise TypeError(f"{format} {takes}, not {type(given).__name__}")
    for name in fields:
        if name not in types:
            raise unknown_name(f"{format} field", name, types)
    return {name: _field(name, fields.get(name), of, format) for name, of in types.items()}


# What a field takes, by its Arrow type: the least and the first number above it.
_RANGES = {"int8": (-(1 << 7), 1 << 7), "int64": (-(1 << 63), 1 << 63), "decimal128(20, 0)": (0, 1 << 64)}


def _field(name: str, value: Any, of: str, format: str) -> Any:
    if value is None:
        return None
    if name == "headers":
        return pairs_of(value)
    if of == "binary":
        return bytes_of(value, name)
    wanted = {"bool": bool, "string": str}.get(of)
    if wanted is not None:
        if not isinstance(value, wanted):
            raise TypeError(f"{name} must be {wanted.__name__}, not {type(value).__name__}")
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")
    low, high = _RANGES[of]
    if not low <= value < high:
        shown = "uint64" if low == 0 else of
        raise EncodeError(f"{name} does not fit {shown}", format=format, code="out_of_range")
    return value
