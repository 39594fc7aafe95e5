"""AMQP 1.0 primitives, for the values of headers of Azure Event Hubs and IoT Hub.

A value is a code for its type and encoding, followed by its bytes, big-endian. A type can have several encodings: a
``long`` of 7 is ``55 07`` or ``81 00 00 00 00 00 00 00 07``::

    +------+-----------------------+        +------+--------+---------+        +------+
    | code | 1, 2, 4, 8, 16 bytes  |        | code | length | payload |        | code |
    +------+-----------------------+        +------+--------+---------+        +------+
      long, uuid, timestamp, …                a1: 1 byte, b1: 4 bytes            true, uint 0, …

Only the types that header values have elsewhere in this package are read. Described types, lists, maps, arrays and
decimals are rejected with the name of their type.

Source: OASIS, AMQP Version 1.0, Part 1: Types, section 1.6.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from letterhead._formatting import count_noun
from letterhead.errors import DecodeError, ErrorDetail, as_error

FORMAT = "amqp"
"""The format in errors."""


class Constructor(NamedTuple):
    """An encoding of a type of AMQP.

    Either ``struct_format`` is the :mod:`struct` format of the bytes after the code, or ``length`` is the size of the length
    that follows it (1 or 4 bytes), or the code implies the ``value``.
    """

    type: str
    struct_format: str = ""
    length: int = 0
    value: bool | int | None = None

    @property
    def width(self) -> int:
        """Number of bytes after the code, without a payload after a length."""
        return self.length or struct.calcsize(self.struct_format)


CONSTRUCTORS: dict[int, Constructor] = {
    0x40: Constructor("null"),
    0x56: Constructor("boolean", ">B"),
    0x41: Constructor("boolean", value=True),
    0x42: Constructor("boolean", value=False),
    0x50: Constructor("ubyte", ">B"),
    0x60: Constructor("ushort", ">H"),
    0x70: Constructor("uint", ">I"),
    0x52: Constructor("uint", ">B"),
    0x43: Constructor("uint", value=0),
    0x80: Constructor("ulong", ">Q"),
    0x53: Constructor("ulong", ">B"),
    0x44: Constructor("ulong", value=0),
    0x51: Constructor("byte", ">b"),
    0x61: Constructor("short", ">h"),
    0x71: Constructor("int", ">i"),
    0x54: Constructor("int", ">b"),
    0x81: Constructor("long", ">q"),
    0x55: Constructor("long", ">b"),
    0x72: Constructor("float", ">f"),
    0x82: Constructor("double", ">d"),
    0x73: Constructor("char", ">I"),
    0x83: Constructor("timestamp", ">q"),
    0x98: Constructor("uuid", ">16s"),
    0xA0: Constructor("binary", length=1),
    0xB0: Constructor("binary", length=4),
    0xA1: Constructor("string", length=1),
    0xB1: Constructor("string", length=4),
    0xA3: Constructor("symbol", length=1),
    0xB3: Constructor("symbol", length=4),
}
"""The supported codes."""

REFUSED: dict[int, str] = {
    0x00: "described type", 0x74: "decimal32", 0x84: "decimal64", 0x94: "decimal128", 0x45: "list", 0xC0: "list",
    0xD0: "list", 0xC1: "map", 0xD1: "map", 0xE0: "array", 0xF0: "array",
}  # fmt: skip
"""Codes of AMQP that are rejected, because they are not a single value."""

READ_AS: dict[str, tuple[str, ...]] = {
    "bool": ("boolean",),
    "char": ("char",),
    "int8": ("byte",),
    "int16": ("short",),
    "int32": ("int",),
    "int64": ("long",),
    "uint8": ("ubyte",),
    "uint16": ("ushort",),
    "uint32": ("uint",),
    "uint64": ("ulong",),
    "float32": ("float",),
    "float64": ("double",),
    "timestamp_ms": ("timestamp",),
    "uuid": ("uuid",),
    "string": ("string", "symbol"),
    "binary": ("binary",),
}
"""The column types, and the AMQP types that each accepts."""


class Primitive(NamedTuple):
    """A value and its type.

    Attributes
    ----------
    type : str
        AMQP's name: ``null boolean ubyte ushort uint ulong byte short int long float double char timestamp uuid binary
        string symbol``.
    value : None, bool, int, float, str or bytes
        A timestamp is the number of milliseconds since 1970, a uuid is text.
    """

    type: str
    value: bool | int | float | str | bytes | None


def decode(data: bytes) -> Primitive:
    """Decode one AMQP primitive."""
    data = bytes(data)
    error = find_error(data)
    if error is not None:
        raise as_error(error, DecodeError, FORMAT)
    constructor = CONSTRUCTORS[data[0]]
    return Primitive(constructor.type, _value(constructor, data))


def find_error(data: bytes, type: str | None = None) -> ErrorDetail | None:
    """Return the first error of one value, or None. With a type of :data:`READ_AS`, other types are errors, too."""
    if not data:
        return ErrorDetail("truncated", "no bytes where AMQP has at least the code of a type", byte_offset=0)
    code = data[0]
    constructor = CONSTRUCTORS.get(code)
    if constructor is None:
        problem = f"is of code 0x{code:02x}, which AMQP does not have"
        if code in REFUSED:
            problem = f"is {_a(REFUSED[code])}, which is no single value"
        return ErrorDetail("unknown_type", f"the value {problem}", byte_offset=0)
    if type is not None and constructor.type != "null" and constructor.type not in READ_AS[type]:
        return ErrorDetail("wrong_type", f"the value is {constructor.type} and {type} was requested", byte_offset=0)
    end = 1 + constructor.width
    if len(data) < end:
        return ErrorDetail(
            "truncated",
            f"the bytes end inside the {'length' if constructor.length else constructor.type}",
            byte_offset=1,
        )
    if constructor.length:
        length = int.from_bytes(data[1:end], "big")
        if len(data) - end < length:
            return ErrorDetail(
                "truncated", f"{count_noun(length, 'byte')} announced and {len(data) - end} there", byte_offset=1
            )
        end += length
    if len(data) > end:
        return ErrorDetail(
            "trailing_bytes", f"{count_noun(len(data) - end, 'byte')} after the {constructor.type}", byte_offset=end
        )
    return _find_content_error(constructor, data)


def _find_content_error(constructor: Constructor, data: bytes) -> ErrorDetail | None:
    if constructor.type == "boolean" and constructor.struct_format and data[1] > 1:
        return ErrorDetail("bad_bool", "the byte is not a boolean: 0 or 1", byte_offset=1)
    if constructor.type in ("string", "symbol"):
        try:
            data[1 + constructor.width :].decode()
        except UnicodeDecodeError as error:
            return ErrorDetail(
                "value_not_utf8", "the value is not UTF-8", byte_offset=1 + constructor.width + error.start
            )
    if constructor.type == "char":
        point = int.from_bytes(data[1:], "big")
        if 0xD800 <= point <= 0xDFFF or point > 0x10FFFF:
            return ErrorDetail("out_of_range", "the number is no character of Unicode", byte_offset=1)
    return None


def _value(constructor: Constructor, data: bytes) -> bool | int | float | str | bytes | None:
    if constructor.length:
        payload = data[1 + constructor.width :]
        return payload if constructor.type == "binary" else payload.decode()
    if not constructor.struct_format:
        return constructor.value
    [value] = struct.unpack_from(constructor.struct_format, data, 1)
    if constructor.type == "boolean":
        return bool(value)
    if constructor.type == "char":
        return chr(value)
    if constructor.type == "uuid":
        import uuid  # rarely needed, and an import of this package should be fast

        return str(uuid.UUID(bytes=value))
    return value  # type: ignore[no-any-return]


def _a(name: str) -> str:
    return f"{'an' if name[0] == 'a' else 'a'} {name}"
