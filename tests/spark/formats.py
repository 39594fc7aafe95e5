"""One message of each format: its bytes, what its columns are, and what is in them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import letterhead as lh

UNTYPED = "array<struct<key:string,value:binary>>"
TYPED = "array<struct<key:string,type:string,value:binary>>"
NUMBERED = "array<struct<key:int,value:binary>>"
TYPED_KEYS = "array<struct<key_type:string,key:binary,type:string,value:binary>>"

ERROR = "array<struct<code:string,message:string,byte_offset:bigint,header:int,key:string,column:string>>"
LOSSES = "array<struct<code:string,message:string,header:int,key:string,type:string,written:string>>"


class Example(NamedTuple):
    """A message.

    Attributes
    ----------
    value : bytes
        Its bytes.
    types : dict
        The columns that decoding makes, and their types.
    row : dict
        What is in them.
    columns : dict
        Some columns that ``select`` can be asked for.
    selected : dict
        What is in them; times as microseconds.
    """

    value: bytes
    types: dict[str, str]
    row: dict[str, Any]
    columns: dict[str, Any]
    selected: dict[str, Any]


def _example(value: str, types: dict[str, str], row: dict[str, Any], type: tuple[list, dict, dict]) -> Example:
    headers, columns, selected = type
    return Example(bytes.fromhex(value), types, {**row, "headers": headers}, columns, selected)


_plain = (
    [
        {"key": "tenant", "value": b"acme"},
        {"key": "route", "value": b"a"},
        {"key": "route", "value": b"b"},
        {"key": "note", "value": None},
    ],
    {"tenant": "string", "route": "array<string>", "note": "int32", "absent": "int128"},
    {"tenant": "acme", "route": ["a", "b"], "note": None, "absent": None},
)
_plain_hex = "080c74656e616e740861636d650a726f75746502610a726f7574650262086e6f746501"

_typed = (
    [
        {"key": "tenant", "type": "string", "value": b"acme"},
        {"key": "retry", "type": "int32", "value": b"\0\0\0\3"},
        {"key": "at", "type": "int64", "value": bytes.fromhex("0000019b76daa800")},
        {"key": "raw", "type": "binary", "value": b"\0\1"},
    ],
    {"tenant": "string", "retry": "int32", "at": "timestamp_ms", "raw": "array<binary>"},
    {"tenant": "acme", "retry": 3, "at": 1767225600000000, "raw": [b"\0\1"]},
)
_typed_hex = (
    "00000006 74656e616e74 00000005 08 61636d65  00000005 7265747279 00000005 04 00000003"
    "00000002 6174 00000009 05 0000019b76daa800  00000003 726177 00000003 09 0001"
)
_typed_iggy_hex = (
    "06000000 74656e616e74 02 04000000 61636d65  05000000 7265747279 06 04000000 03000000"
    "02000000 6174 07 08000000 00a8da769b010000  03000000 726177 01 02000000 0001"
)

_numbered = (
    [{"key": 7, "value": b"\0\0\0\3"}, {"key": 1000001, "value": b"acme"}, {"key": 7, "value": None}],
    {
        "first": lh.field("int32", key=7, repeat="first"),
        "last": lh.field("int32", key=7),
        "tenant": lh.field("string", key=1000001),
    },
    {"first": 3, "last": None, "tenant": "acme"},
)
_numbered_hex = "00000007 00000004 00000003  000f4241 00000004 61636d65  00000007 ffffffff"

_typed_keys = (
    [
        {"key_type": "string", "key": b"tenant", "type": "string", "value": b"acme"},
        {"key_type": "int32", "key": b"\0\0\0\3", "type": "uint64", "value": b"\xff" * 8},
        {"key_type": "binary", "key": b"\xff", "type": "int128", "value": b"\xff" * 16},
        {"key_type": "string", "key": b"flag", "type": "type-200", "value": b"x"},
    ],
    {
        "tenant": "string",
        "big": lh.field("uint64", key=lh.Int32(3)),
        "wide": lh.field("int128", key=b"\xff"),
        "three": lh.field("uint64", key="3"),
    },
    {"tenant": "acme", "big": Decimal(2**64 - 1), "wide": Decimal(-1), "three": None},
)
_typed_keys_hex = (
    "02 06000000 74656e616e74 02 04000000 61636d65"
    "06 04000000 03000000 0c 08000000 ffffffffffffffff"
    "01 01000000 ff 08 10000000 ffffffffffffffffffffffffffffffff"
    "02 04000000 666c6167 c8 01000000 78"
)

_message = {
    "offset": "bigint", "crc": "bigint", "magic": "tinyint", "attributes": "tinyint", "timestamp": "bigint",
    "key": "binary", "headers": TYPED, "value": "binary", "tombstone": "boolean",
}  # fmt: skip

_ID = bytes(range(16))
_ID_HEX = _ID[::-1].hex()


def _message_row(crc: int, attributes: int) -> dict[str, Any]:
    return {
        "offset": 41, "crc": crc, "magic": 2, "attributes": attributes, "timestamp": 1767225600000, "key": b"k",
        "value": b"v", "tombstone": False,
    }  # fmt: skip


EXAMPLES: dict[str, Example] = {
    "kafka": _example(_plain_hex, {"headers": UNTYPED}, {}, _plain),
    "kip82-typed": _example(_typed_hex, {"headers": TYPED}, {}, _typed),
    "kip82-int": _example(_numbered_hex, {"headers": NUMBERED}, {}, _numbered),
    "iggy": _example(_typed_keys_hex, {"headers": TYPED_KEYS}, {}, _typed_keys),
    "iggy-2023": _example(_typed_iggy_hex, {"headers": TYPED}, {}, _typed),
    "iggy-auto": _example(_typed_keys_hex, {"headers": TYPED_KEYS}, {}, _typed_keys),
    "streams": _example(f"46 {_plain_hex} 70", {"headers": UNTYPED, "payload": "binary"}, {"payload": b"p"}, _plain),
    "streams-timestamped": _example(
        f"46 {_plain_hex} 0000000000000005 70",
        {"headers": UNTYPED, "timestamp": "bigint", "payload": "binary"},
        {"timestamp": 5, "payload": b"p"},
        _plain,
    ),
    "kip82-wrapper": _example(
        f"00 00000020 {_numbered_hex} 00000001 76", {"headers": NUMBERED, "value": "binary"}, {"value": b"v"}, _numbered
    ),
    "kip82-message": _example(
        f"0000000000000029 00000062 ce7e4a27 02 10 0000019b76daa800 00000001 6b 00000046 {_typed_hex} 00000001 76",
        _message,
        _message_row(0xCE7E4A27, 16),
        _typed,
    ),
    "kip82-message-int": _example(
        f"0000000000000029 0000003c 2d122286 02 10 0000019b76daa800 00000001 6b 00000020 {_numbered_hex} 00000001 76",
        {**_message, "headers": NUMBERED},
        _message_row(0x2D122286, 16),
        _numbered,
    ),
    "kip82-message-wrapper": _example(
        "0000000000000029 00000041 8d51f581 02 00 0000019b76daa800 00000001 6b 0000002a"
        f"00 00000020 {_numbered_hex} 00000001 76",
        {**_message, "headers": NUMBERED},
        _message_row(0x8D51F581, 0),
        _numbered,
    ),
    "iggy-message-2023": _example(
        f"{_ID_HEX} 46000000 {_typed_iggy_hex} 01000000 70",
        {"id": "binary", "headers": TYPED, "payload": "binary"},
        {"id": _ID, "payload": b"p"},
        _typed,
    ),
    "iggy-message": _example(
        f"ffffffffffffffff {_ID_HEX} 0900000000000000 0a00000000000000 0b00000000000000 54000000 01000000"
        f"0000000000000000 70 {_typed_keys_hex}",
        {
            "checksum": "decimal(20,0)", "id": "binary", "offset": "bigint", "timestamp": "bigint",
            "origin_timestamp": "bigint", "headers": TYPED_KEYS, "payload": "binary",
        },
        {
            "checksum": Decimal(2**64 - 1), "id": _ID, "offset": 9, "timestamp": 10, "origin_timestamp": 11,
            "payload": b"p",
        },
        _typed_keys,
    ),
}  # fmt: skip
"""Every format of one message. That of ``iggy-auto`` is in the later of its two layouts."""

BATCHES = [
    "kip82-messages",
    "kip82-messages-int",
    "kip82-messages-wrapper",
    "iggy-polled-2023",
    "iggy-batch",
    "record-batch",
]
