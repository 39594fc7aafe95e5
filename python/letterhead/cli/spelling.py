"""The text form of typed values and keys on the command line: `int32:3`, `binary:00ff`; and of times.

Errors and losses use the same form. A value is its type, a colon, and its text: `bool:true`, `float64:1.5`, `string:acme`.
Bytes without a text form (types `binary` and `type-200`, bits that are not valid for their type) are written in hex.
A text key is that text; one that looks like a typed value has `string:` before it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import letterhead as lh
from letterhead._names import unknown_name
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.message_input import parse_hex
from letterhead.errors import HeaderError
from letterhead.headers import HeaderKey
from letterhead.offsets.specs import epoch_milliseconds, is_compact_date, read_iso_time
from letterhead.types import type_name
from letterhead.value_text import BYTES, UNNAMED, parse_number
from letterhead.values import VALUE_TYPES, Char, String, Value, of_message

KeyForm: TypeAlias = Literal["text", "int", "typed"]


def of_text(type: str, text: str) -> Value:
    """Read a value of a type from text; for a type of bytes, return their UTF-8."""
    type = check_type(type)
    try:
        if type == "char":
            return Char(text)
        if type in BYTES or type == "string":
            return of_message(type, String(text).bits)
        return parse_number(type, text)
    except HeaderError as error:
        raise Failure(error.message) from error


def looks_typed(text: str) -> bool:
    """Return whether text begins with the name of a type and a colon."""
    type, colon, _ = text.partition(":")
    return bool(colon) and (type in VALUE_TYPES or type in UNNAMED)


def read_value(text: str) -> Value | None:
    """Read a value written as `type:text`; None if no type precedes a colon."""
    if not looks_typed(text):
        return None
    type, _, rest = text.partition(":")
    return of_message(type, parse_hex(rest, type)) if type in BYTES else of_text(type, rest)


def read_key(text: str, form: KeyForm) -> HeaderKey:
    """Read a key of a format whose keys have this form."""
    if form == "int":
        return int.from_bytes(of_text("int32", text).bits, "big", signed=True)
    value = read_value(text) if form == "typed" else None
    return text if value is None else as_key(value)


def as_key(value: Value) -> HeaderKey:
    """Return a typed key as headers have it: UTF-8 strings as str."""
    return lh.Headers([(value, None)])[0].key


def check_type(type: str) -> str:
    """Return the canonical name of a value type; refuse other names."""
    if type in UNNAMED:
        return type
    with usage_errors():
        name = type_name(type)
    if name not in VALUE_TYPES:
        raise Failure(str(unknown_name("type", type, [*VALUE_TYPES, "type-16", "…", "type-255"])))
    return name


def read_time(option: str, text: str | None) -> int | None:
    """Read a time: milliseconds since 1970, also after an @, or an ISO 8601 date, in UTC unless it names a zone."""
    if text is not None and is_compact_date(text):
        date = f"{text[:4]}-{text[4:6]}-{text[6:]}"
        raise Failure(f"{option}: {text} milliseconds are a time on 1 January 1970: write {date} for the date")
    if text is None:
        return None
    digits = text.removeprefix("@")
    if digits.removeprefix("-").isdecimal():
        return int(digits)
    try:
        return epoch_milliseconds(read_iso_time(text))
    except ValueError:
        raise Failure(
            f"{option}: {text!r} is neither milliseconds since 1970 nor a time like 2026-01-01T08:30:00Z"
        ) from None
