"""Encoding of request bodies: fixed-size integers, strings, bytes and arrays, big-endian as in Kafka's protocol.

A schema is a tuple of fields, each a name and a type; the elements of an array have their own schema. Lengths and
counts are compared with the number of remaining bytes before anything is read.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from letterhead.errors import DecodeError, EncodeError

__all__ = [
    "BYTES",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "ArrayType",
    "IntegerType",
    "Schema",
    "SizedType",
    "Type",
    "read",
    "write",
]


class IntegerType(NamedTuple):
    """Integer of a fixed size in bytes."""

    size: int


class SizedType(NamedTuple):
    """Bytes or text preceded by their length."""

    length: IntegerType
    text: bool


class ArrayType(NamedTuple):
    """Structs preceded by their count; each is decoded to an object of a class."""

    element_class: type[Any]
    schema: Schema


Type: TypeAlias = IntegerType | SizedType | ArrayType
Schema: TypeAlias = tuple[tuple[str, Type], ...]

INT16, INT32, INT64 = IntegerType(2), IntegerType(4), IntegerType(8)
STRING, BYTES = SizedType(INT16, text=True), SizedType(INT32, text=False)


def write(format: str, schema: Schema, body: object) -> bytes:
    """Encode the attributes of an object by a schema."""
    parts: list[bytes] = []
    for name, type in schema:
        value = getattr(body, name)
        if isinstance(type, IntegerType):
            parts.append(_integer(format, name, type, value))
        elif isinstance(type, SizedType):
            _check_type(name, value, str if type.text else bytes)
            data = value.encode() if type.text else value
            parts += [_integer(format, f"the length of {name}", type.length, len(data)), data]
        else:
            parts.append(_integer(format, f"the count of {name}", INT32, len(value)))
            for element in value:
                _check_type(name, element, type.element_class)
                parts.append(write(format, type.schema, element))
    return b"".join(parts)


def _integer(format: str, name: str, type: IntegerType, value: Any) -> bytes:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {value.__class__.__name__}")
    try:
        return value.to_bytes(type.size, "big", signed=True)
    except OverflowError:
        bits = 8 * type.size
        raise EncodeError(f"{name} {value} does not fit {bits} bits", format=format, code="out_of_range") from None


def _check_type(name: str, value: object, expected: type[Any]) -> None:
    if not isinstance(value, expected):
        raise TypeError(f"{name} must be {expected.__name__}, not {value.__class__.__name__}")


def read(format: str, schema: Schema, data: bytes) -> dict[str, Any]:
    """Decode the fields of a schema; raise if bytes are left."""
    reader = _BodyDecoder(format, data)
    fields = reader.fields(schema)
    if reader.left:
        raise reader.error("trailing_bytes", f"{reader.left} bytes are left after the last field", reader.at)
    return fields


class _BodyDecoder:
    def __init__(self, format: str, data: bytes) -> None:
        self.format = format
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def fields(self, schema: Schema) -> dict[str, Any]:
        return {name: self.value(name, type) for name, type in schema}

    def value(self, name: str, type: Type) -> Any:
        if isinstance(type, IntegerType):
            return int.from_bytes(self.take(name, type.size), "big", signed=True)
        return self.sized(name, type) if isinstance(type, SizedType) else self.array(name, type)

    def sized(self, name: str, type: SizedType) -> bytes | str:
        at = self.at
        length = self.value(f"the length of {name}", type.length)
        if length < 0:
            raise self.error("negative_length", f"the length {length} of {name} is negative", at)
        if length > self.left:
            raise self.error("truncated", f"{name} has {length} bytes, and {self.left} are left", at)
        data = self.take(name, length)
        if not type.text:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.error("value_not_utf8", f"{name} is not UTF-8", at + type.length.size + error.start) from None

    def array(self, name: str, type: ArrayType) -> tuple[Any, ...]:
        at = self.at
        count = self.value(f"the count of {name}", INT32)
        if count < 0:
            raise self.error("negative_count", f"the count {count} of {name} is negative", at)
        if count * _min_size(type.schema) > self.left:
            raise self.error("count_too_large", f"{count} {name} do not fit the {self.left} bytes that are left", at)
        return tuple(type.element_class(**self.fields(type.schema)) for _ in range(count))

    def take(self, name: str, size: int) -> bytes:
        if size > self.left:
            raise self.error("truncated", f"the bytes end inside {name}", self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def error(self, code: str, message: str, at: int) -> DecodeError:
        return DecodeError(message, format=self.format, code=code, byte_offset=at)


def _min_size(schema: Schema) -> int:
    """Return the minimum size of an array element with this schema in bytes."""
    return sum(
        type.size if isinstance(type, IntegerType) else type.length.size if isinstance(type, SizedType) else INT32.size
        for _, type in schema
    )
