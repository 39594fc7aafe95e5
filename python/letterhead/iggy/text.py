"""Convert values of each kind to and from text."""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

from letterhead.errors import DecodeError
from letterhead.iggy.errors import refuse_bytes
from letterhead.iggy.kinds import HeaderKind
from letterhead.one_message import encode, select
from letterhead.values import VALUE_TYPES, Binary, Float32, String, Value

__all__ = ["format_value", "parse_value"]

_SIGNED = re.compile(r"[+-]?[0-9]+")
_UNSIGNED = re.compile(r"\+?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)

# Maximum number of digits, enough for 128-bit numbers. Python rejects numbers with thousands of digits.
_MAX_DIGITS = 40


def parse_value(kind: HeaderKind, text: str) -> Value:
    """Parse the text of a value of a kind as Iggy's library does.

    Integers are ASCII digits with an optional sign. Floats may also be ``inf``, ``infinity`` and ``nan`` in any case.
    Booleans are ``true`` and ``false``.
    """
    if kind is HeaderKind.RAW:
        return Binary(String(text).bits)
    if kind is HeaderKind.STRING:
        return String(text)
    if kind is HeaderKind.BOOL and text in ("true", "false"):
        return Value("bool", text == "true")
    if kind in (HeaderKind.FLOAT32, HeaderKind.FLOAT64):
        return _parse_float(kind, text)
    if not str(kind).startswith(("int", "uint")):
        _raise_invalid(kind)
    return _parse_integer(kind, text)


def format_value(value: Value) -> str:
    """Format a value as Iggy's library does."""
    if value.type == "string":
        return value.bits.decode(errors="replace")
    width = VALUE_TYPES.get(value.type)
    if width is None:
        return f'b"{"".join(map(_escape, value.bits))}"'
    if len(value.bits) != width or (value.type == "bool" and value.bits not in (b"\0", b"\1")):
        return f"<malformed {value.type}>"
    if value.type in ("float32", "float64"):
        return str(_through_core(value, "string")).replace("Infinity", "inf")
    return str(value.value).lower()


def _parse_integer(kind: HeaderKind, text: str) -> Value:
    signed = str(kind).startswith("int")
    if not (_SIGNED if signed else _UNSIGNED).fullmatch(text):
        _raise_invalid(kind)
    digits = text.lstrip("+-").lstrip("0")[:_MAX_DIGITS] or "0"
    number = -int(digits) if text.startswith("-") else int(digits)
    bits = 8 * (VALUE_TYPES[str(kind)] or 0)
    low, high = (-1 << bits - 1, 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= number < high:
        refuse_bytes("out_of_range", f"the number does not fit {kind}", None)
    return Value(str(kind), number)


def _parse_float(kind: HeaderKind, text: str) -> Value:
    if _NOT_FINITE.fullmatch(text):
        return Value(str(kind), float(text))
    if not _DECIMAL.fullmatch(text):
        _raise_invalid(kind)
    number = float(text)
    if kind is HeaderKind.FLOAT64:
        return Value("float64", number)
    try:
        # Use the core, which parses float32 in one step: parsing as float64 first would round twice.
        return Float32(_through_core(text, "float32:text"))
    except DecodeError as error:
        if error.code != "out_of_range":
            raise
        return Float32(math.copysign(math.inf, number))  # like Iggy, return infinity for numbers that are too large


def _through_core(value: str | Value, type: str) -> Any:
    """Convert a value to text and then to another type with the core."""
    return select(encode([("v", value)], "kafka", types="text"), {"v": type})["v"]


def _escape(byte: int) -> str:
    return _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}")


_ESCAPES = {0x00: "\\0", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\"}


def _raise_invalid(kind: HeaderKind) -> NoReturn:
    refuse_bytes("bad_text", f"the text is not of kind {kind}", None)
