"""Format values and keys as text for errors and losses: ``int32:3``, ``binary:00ff``; :func:`text_of_key` for keys.

:func:`parse_value` parses the text of a value; :func:`parse_hex` and :func:`parse_base64` parse bytes written as text.
"""

from __future__ import annotations

import base64
import binascii
import re

from letterhead._header_edits import text_or_value
from letterhead._names import unknown_name
from letterhead.errors import HeaderError
from letterhead.headers import GivenKey
from letterhead.one_message import decode, encode, select
from letterhead.types import type_name
from letterhead.values import UNNAMED, VALUE_TYPES, Binary, Char, String, Value, value_from_message

__all__ = [
    "BYTES", "UNNAMED", "check_type", "parse_base64", "parse_hex", "parse_number", "parse_value", "text_of", "text_of_key",
    "text_with_type",
]  # fmt: skip

# Separators and prefixes in hex: `0x02 0x06`, `02:06`, `\x02\x06`, a dump over several lines.
_HEX_NOISE = re.compile(r"0[xX]|\\x|[\s,:]+")
_NOT_HEX = re.compile(r"[^0-9a-fA-F]")

BYTES = frozenset({"binary", *UNNAMED})
"""Types whose values have no text form."""


def text_of_key(key: GivenKey) -> str:
    """Format a key for errors: a text key unchanged, a typed key as type, colon, and text or hex."""
    key = Binary(key) if isinstance(key, bytes) else key
    plain = text_or_value(key) if isinstance(key, Value) else key
    return _with_type(plain, text_of(plain, exact=False)) if isinstance(plain, Value) else str(plain)


def text_with_type(value: Value) -> str:
    """Format a value as type, colon, and text or hex, from which it can be restored exactly."""
    return _with_type(value, text_of(value))


def text_of(value: Value, *, exact: bool = True) -> str | None:
    """Return a value as text; None if it has none or, with ``exact``, if parsing yields other bits (an unusual NaN)."""
    if value.type in BYTES:
        return None
    try:
        plain = value.value
    except HeaderError:
        return None
    if isinstance(plain, float):
        text = str(select(encode([("", value)], "kafka", types="text"), {"": "string"})[""])
        return text if not exact or parse_number(value.type, text) == value else None
    if isinstance(value, Char):
        return None if "\ud800" <= str(plain) <= "\udfff" else str(plain)
    return plain if isinstance(plain, str) else str(plain).lower()


def _with_type(value: Value, text: str | None) -> str:
    return f"{value.type}:{value.bits.hex() if text is None else text}"


def parse_number(type: str, text: str) -> Value:
    """Parse a number or boolean with the core, which accepts every spelling."""
    message = encode([("k", text)], "iggy", types={"k": f"{type}:text"})
    value = decode(message, "iggy")["k"]
    return value if isinstance(value, Value) else value_from_message(type, value or b"")


def parse_value(type: str, text: str) -> Value:
    """Parse a value of a type from text, as UTF-8 for byte types. Raises ValueError for invalid text."""
    type = check_type(type)
    try:
        if type == "char":
            return Char(text)
        if type in BYTES or type == "string":
            return value_from_message(type, String(text).bits)
        return parse_number(type, text)
    except HeaderError as error:
        raise ValueError(error.message) from error


def check_type(type: str) -> str:
    """Return the canonical name of a value type; raise ValueError for other names."""
    if type in UNNAMED:
        return type
    name = type_name(type)
    if name not in VALUE_TYPES:
        raise unknown_name("type", type, [*VALUE_TYPES, "type-16", "…", "type-255"])
    return name


def parse_hex(text: str, name: str) -> bytes:
    """Parse hex; separators and prefixes are skipped. ``name`` describes the text in errors."""
    digits = _HEX_NOISE.sub("", text)
    wrong = _NOT_HEX.search(digits)
    if wrong:
        raise ValueError(f"{name}: {wrong.group()!r} is not a hex digit")
    if len(digits) % 2:
        raise ValueError(f"{name}: {len(digits)} digits; bytes have two each")
    return bytes.fromhex(digits)


def parse_base64(text: str, name: str) -> bytes:
    """Parse base64 in either alphabet. ``name`` describes the text in errors."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        digits = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(digits, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{name}: {str(error).lower()}") from error
