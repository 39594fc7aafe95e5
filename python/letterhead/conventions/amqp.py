"""AMQP 1.0 primitives, which Azure Event Hubs and IoT Hub write into the values of Kafka headers.

A value is a code for its type and encoding, followed by its bytes, big-endian. A type can have several encodings: a
``long`` of 7 is ``55 07`` or ``81 00 00 00 00 00 00 00 07``::

    +------+-----------------------+        +------+--------+---------+        +------+
    | code | 1, 2, 4, 8, 16 bytes  |        | code | length | payload |        | code |
    +------+-----------------------+        +------+--------+---------+        +------+
      long, uuid, timestamp, …                a1: 1 byte, b1: 4 bytes            true, uint 0, …

The compiled core parses values, as ``select`` does with types such as ``"int64:amqp"``. This module contains the names
of AMQP's types, and :func:`decode`, which decodes one value of any type. Only types that header values of other formats
can have are supported. Described types, lists, maps, arrays and decimals are rejected with the name of their type.

Source: OASIS, AMQP Version 1.0, Part 1: Types, section 1.6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from letterhead.errors import DecodeError
from letterhead.one_message import encode, select
from letterhead.types import ValueType, type_name

__all__ = ["CODES", "READ_AS", "Primitive", "check_amqp_type", "decode"]

CODES: dict[int, str] = {
    0x40: "null",
    **dict.fromkeys((0x56, 0x41, 0x42), "boolean"),
    0x50: "ubyte",
    0x60: "ushort",
    **dict.fromkeys((0x70, 0x52, 0x43), "uint"),
    **dict.fromkeys((0x80, 0x53, 0x44), "ulong"),
    0x51: "byte",
    0x61: "short",
    **dict.fromkeys((0x71, 0x54), "int"),
    **dict.fromkeys((0x81, 0x55), "long"),
    0x72: "float",
    0x82: "double",
    0x73: "char",
    0x83: "timestamp",
    0x98: "uuid",
    **dict.fromkeys((0xA0, 0xB0), "binary"),
    **dict.fromkeys((0xA1, 0xB1), "string"),
    **dict.fromkeys((0xA3, 0xB3), "symbol"),
}
"""Supported codes, with their types."""

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
"""Column types, with the AMQP types that each accepts."""

_COLUMN_TYPES = {type: column_type for column_type, types in READ_AS.items() for type in types}


class Primitive(NamedTuple):
    """Value with its type.

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
    """Decode one AMQP primitive, the value of a header. For a column there is :func:`letterhead.arrow.amqp`.

    Raises
    ------
    DecodeError
        If the bytes are not a primitive: ``truncated``, ``trailing_bytes``, ``unknown_type`` (described and compound
        types, decimals, codes that AMQP does not have), ``bad_bool``, ``value_not_utf8``, ``out_of_range``.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.conventions.amqp.decode(bytes.fromhex("a10461636d65"))
    Primitive(type='string', value='acme')
    >>> lh.conventions.amqp.decode(bytes.fromhex("5507")), lh.conventions.amqp.decode(bytes.fromhex("83 0000018bcfe56800"))
    (Primitive(type='long', value=7), Primitive(type='timestamp', value=1700000000000))
    >>> lh.conventions.amqp.decode(bytes.fromhex("c10100"))
    Traceback (most recent call last):
    letterhead.errors.DecodeError: amqp: the value is a map, which is no single value (byte 0)
    """
    data = bytes(data)
    type = CODES.get(data[0], "") if data else ""
    # Null fits any type. An unknown code fits none, so the core names it.
    column_type = _COLUMN_TYPES.get(type, "binary")
    headers = encode([("", data)], "kafka") or b""
    try:
        value: Any = select(headers, {"": f"{column_type}:amqp"})[""]
    except DecodeError as error:
        byte = None if error.byte_offset is None else error.byte_offset - (len(headers) - len(data))
        raise DecodeError(error.message, format="amqp", code=error.code, byte_offset=byte) from None
    return Primitive(type, value)


def check_amqp_type(type: ValueType, *, sql: bool = False) -> str:
    """Return the canonical name of a type; raise if AMQP has no primitive for it."""
    name, colon, _ = type_name(type, sql=sql).partition(":")
    if colon and name in READ_AS:
        raise ValueError(f"type {type!r}: numbers of AMQP are big-endian, so {name!r} takes no suffix")
    if name not in READ_AS:
        raise ValueError(f"type {type!r}: AMQP has no {name}")
    return name
