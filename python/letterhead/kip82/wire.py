"""What requests and responses are made of: fixed-size integers, strings, bytes and arrays, in Kafka's big-endian order.

::

    int16 int32 int64    big-endian, two's complement
    string               int16 length, UTF-8
    bytes                int32 length, bytes; here a set of messages
    array                int32 count, elements

A schema is a tuple of fields, each a name and a type; an array has the schema of its elements. No length and no count is
believed before the bytes are there that it announces.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from letterhead.errors import DecodeError, EncodeError

__all__ = ["BYTES", "INT16", "INT32", "INT64", "STRING", "Array", "Integer", "Schema", "Sized", "read", "write"]


class Integer(NamedTuple):
    """An integer of a fixed size."""

    size: int


class Sized(NamedTuple):
    """Bytes or text behind their length."""

    length: Integer
    text: bool


class Array(NamedTuple):
    """A counted list of structs."""

    of: type[Any]
    schema: Schema


Type: TypeAlias = Integer | Sized | Array
Schema: TypeAlias = tuple[tuple[str, Type], ...]

INT16, INT32, INT64 = Integer(2), Integer(4), Integer(8)
STRING, BYTES = Sized(INT16, text=True), Sized(INT32, text=False)


def write(format: str, schema: Schema, given: object) -> bytes:
    """Write the fields of an object."""
    parts: list[bytes] = []
    _write_fields(parts, format, schema, given)
    return b"".join(parts)


def read(format: str, schema: Schema, data: bytes) -> dict[str, Any]:
    """Read fields, up to the last byte."""
    reader = _Reader(format, data)
    fields = reader.fields(schema)
    if reader.at < len(data):
        raise reader.error("trailing_bytes", f"{len(data) - reader.at} bytes are left after the last field", reader.at)
    return fields


class _Reader:
    def __init__(self, format: str, data: bytes) -> None:
        self.format = format
        self.data = data
        self.at = 0

    def fields(self, schema: Schema) -> dict[str, Any]:
        return {name: self.value(name, type) for name, type in schema}

    def value(self, name: str, type: Type) -> Any:
        if isinstance(type, Integer):
            return int.from_bytes(self.take(name, type.size), "big", signed=True)
        return self.sized(name, type) if isinstance(type, Sized) else self.array(name, type)

    def sized(self, name: str, type: Sized) -> bytes | str:
        at = self.at
        length = self.value(f"the length of {name}", type.length)
        if length < 0:
            raise self.error("negative_length", f"the length {length} of {name} is negative", at)
        if length > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise self.error("truncated", f"{name} has {length} bytes, and {left} are left", at)
        taken = self.take(name, length)
        if not type.text:
            return taken
        try:
            return taken.decode()
        except UnicodeDecodeError as error:
            raise self.error("value_not_utf8", f"{name} is not UTF-8", at + type.length.size + error.start) from None

    def array(self, name: str, type: Array) -> tuple[Any, ...]:
        at = self.at
        count = self.value(f"the count of {name}", INT32)
        if count < 0:
            raise self.error("negative_count", f"the count {count} of {name} is negative", at)
        left = len(self.data) - self.at
        if count * _least(type.schema) > left:
            raise self.error("count_too_large", f"{count} {name} do not fit the {left} bytes that are left", at)
        return tuple(type.of(**self.fields(type.schema)) for _ in range(count))

    def take(self, name: str, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise self.error("truncated", f"the bytes end inside {name}", self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def error(self, code: str, message: str, at: int) -> DecodeError:
        return DecodeError(message, format=self.format, code=code, byte_offset=at)


def _write_fields(parts: list[bytes], format: str, schema: Schema, given: object) -> None:
    for name, type in schema:
        value = getattr(given, name)
        if isinstance(type, Integer):
            parts.append(_integer(format, name, type, value))
        elif isinstance(type, Sized):
            data = _data(name, type, value)
            parts += [_integer(format, f"the length of {name}", type.length, len(data)), data]
        else:
            parts.append(_integer(format, f"the count of {name}", INT32, len(value)))
            for element in _elements(name, type, value):
                _write_fields(parts, format, type.schema, element)


def _integer(format: str, name: str, type: Integer, value: Any) -> bytes:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {value.__class__.__name__}")
    try:
        return struct.pack({2: ">h", 4: ">i", 8: ">q"}[type.size], value)
    except struct.error:
        bits = 8 * type.size
        raise EncodeError(f"{name} {value} does not fit {bits} bits", format=format, code="out_of_range") from None


def _data(name: str, type: Sized, value: Any) -> bytes:
    wanted = str if type.text else bytes
    if not isinstance(value, wanted):
        raise TypeError(f"{name} must be {wanted.__name__}, not {value.__class__.__name__}")
    return value.encode() if isinstance(value, str) else value


def _elements(name: str, type: Array, value: Any) -> Sequence[Any]:
    for element in value:
        if not isinstance(element, type.of):
            raise TypeError(f"{name} must be of {type.of.__name__}, not {element.__class__.__name__}")
    elements: Sequence[Any] = value
    return elements


def _least(schema: Schema) -> int:
    """Give how many bytes an element has at least."""
    return sum(
        type.size if isinstance(type, Integer) else type.length.size if isinstance(type, Sized) else INT32.size
        for _, type in schema
    )
