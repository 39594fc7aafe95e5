"""Text form of typed values, keys and times on the command line, such as `int32:3` and `binary:00ff`.

Errors and losses use the same form. A value is its type, a colon, and its text: `bool:true`, `float64:1.5`,
`string:acme`. Bytes without a text form (types `binary` and `type-200`, invalid bytes of a type) are written in hex.
A text key is written as it is, preceded by `string:` if it looks like a typed value.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import letterhead as lh
from letterhead._times import TIME_FORMS, check_unit, epoch_milliseconds, is_compact_date, read_time
from letterhead._value_text import BYTES, UNNAMED, parse_hex, parse_value, text_with_type
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.render import SETTINGS
from letterhead.headers import HeaderKey
from letterhead.values import VALUE_TYPES, Value, value_from_message

KeyForm: TypeAlias = Literal["text", "int", "typed"]


def looks_typed(text: str) -> bool:
    """Return whether text begins with the name of a type and a colon."""
    type, colon, _ = text.partition(":")
    return bool(colon) and (type in VALUE_TYPES or type in UNNAMED)


def read_value(text: str) -> Value | None:
    """Parse a value written as `type:text`; None if no type precedes a colon."""
    if not looks_typed(text):
        return None
    type, _, rest = text.partition(":")
    with usage_errors():
        return value_from_message(type, parse_hex(rest, type)) if type in BYTES else parse_value(type, rest)


def read_key(text: str, form: KeyForm) -> HeaderKey:
    """Parse a key for formats with this form of keys."""
    if form == "int":
        with usage_errors():
            return int.from_bytes(parse_value("int32", text).bits, "big", signed=True)
    value = read_value(text) if form == "typed" else None
    return text if value is None else as_key(value)


def key_text(key: HeaderKey) -> str:
    """Return a key as errors show it, which :func:`read_key` parses."""
    return text_with_type(key) if isinstance(key, Value) else str(key)


def as_key(value: Value) -> HeaderKey:
    """Return a typed key in the form of headers: UTF-8 strings as str."""
    return lh.Headers([(value, None)])[0].key


def read_time_option(option: str, text: str | None) -> int | None:
    """Parse a time: milliseconds since 1970, with or without an @, an ISO 8601 date, or one before now."""
    if text is not None and is_compact_date(text):
        date = f"{text[:4]}-{text[4:6]}-{text[6:]}"
        raise Failure(f"{option}: {text} milliseconds are a time on 1 January 1970: write {date} for the date")
    if text is None:
        return None
    digits = text.removeprefix("@")
    if digits.removeprefix("-").isdecimal():
        with usage_errors():
            check_unit(option, int(digits))
        return int(digits)
    try:
        return epoch_milliseconds(read_time(text, SETTINGS.zone))
    except ValueError:
        raise Failure(f"{option}: {text!r} is neither milliseconds since 1970 nor a time like {TIME_FORMS}") from None
