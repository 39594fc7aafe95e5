"""Values as text: what a kind and a text make, and how a value is shown."""

from __future__ import annotations

import re
from typing import NoReturn

from letterhead.iggy.faults import refuse_bytes
from letterhead.iggy.kinds import HeaderKind
from letterhead.operations import encode, select
from letterhead.values import VALUE_TYPES, Binary, Float32, String, Value

__all__ = ["parse_value", "spell_value"]

_SIGNED = re.compile(r"[+-]?[0-9]+")
_UNSIGNED = re.compile(r"\+?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)

# No number of 128 bits has more digits, and Python refuses to read thousands of them.
_MOST_DIGITS = 40


def parse_value(kind: HeaderKind, text: str) -> Value:
    """Read a text as a value of a kind, as Iggy's library reads it.

    Integers are ASCII digits with a sign that may be ``+``; floats may also be ``inf``, ``infinity`` and ``nan`` in
    any case; booleans are ``true`` and ``false``.
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
        _misspelt(kind)
    return _parse_integer(kind, text)


def spell_value(value: Value) -> str:
    """Show a value as Iggy's library shows it."""
    if value.type == "string":
        return value.bits.decode(errors="replace")
    width = VALUE_TYPES.get(value.type)
    if width is None:
        return f'b"{"".join(map(_spell_byte, value.bits))}"'
    if len(value.bits) != width or (value.type == "bool" and value.bits not in (b"\0", b"\1")):
        return f"<malformed {value.type}>"
    if value.type in ("float32", "float64"):
        return _spell_float(value)
    return str(value.value).lower()


def _parse_integer(kind: HeaderKind, text: str) -> Value:
    signed = str(kind).startswith("int")
    if not (_SIGNED if signed else _UNSIGNED).fullmatch(text):
        _misspelt(kind)
    digits = text.lstrip("+-").lstrip("0")[:_MOST_DIGITS] or "0"
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
        _misspelt(kind)
    if kind is HeaderKind.FLOAT64:
        return Value("float64", float(text))
    # Going through 64 bits would round twice; the core reads a text as 32 bits in one step.
    return Float32(select(_block(text), "kafka", {"v": "float32:text"})["v"])


def _block(value: str | Value) -> bytes:
    return encode([("v", value)], "kafka", types="text") or b""


def _spell_float(value: Value) -> str:
    spelt = select(_block(value), "kafka", {"v": "string"})["v"]
    return str(spelt).replace("Infinity", "inf")


def _spell_byte(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


_ESCAPES = {0x00: "\\0", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x22: '\\"', 0x5C: "\\\\"}


def _misspelt(kind: HeaderKind) -> NoReturn:
    refuse_bytes("bad_text", f"the text does not spell {kind}", None)
