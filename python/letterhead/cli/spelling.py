"""How values and keys with a type are spelt on the command line, and read again: `int32:3`, `binary:00ff`.

It is the text that faults and losses have. A value is its type, a colon, and what it spells: `bool:true`, `float64:1.5`,
`string:acme`. Bytes that spell nothing (types `binary` and `type-200`, bits that are no value of their type) are in hex.
A key that is text is just that text; one that would look like a value with a type has `string:` before it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import letterhead as lh
from letterhead.cli.exits import Failure
from letterhead.cli.source import parse_hex
from letterhead.errors import HeaderError, unknown_name
from letterhead.headers import HeaderKey
from letterhead.types import type_name
from letterhead.values import VALUE_TYPES, Char, String, Value, of_message

KeyForm: TypeAlias = Literal["text", "int", "typed"]

UNNAMED = {f"type-{code}" for code in range(16, 256)}
# What they hold spells nothing that the command could know.
BYTES = {"binary", *UNNAMED}


def text_of(value: Value) -> str | None:
    """Give what a value spells, a number, true or false, text; None where only its bits can be shown.

    Reading the text gives the same bits: a NaN other than the usual one has none.
    """
    if value.type in BYTES:
        return None
    try:
        plain = value.value
    except HeaderError:
        return None
    if isinstance(plain, float):
        block = lh.encode([("", value)], "kafka", types="text") or b""
        text = str(lh.select(block, "kafka", {"": "string"})[""])
        return text if of_text(value.type, text) == value else None
    if isinstance(value, Char):
        return None if "\ud800" <= str(plain) <= "\udfff" else str(plain)
    return plain if isinstance(plain, str) else str(plain).lower()


def of_text(type: str, text: str) -> Value:
    """Read what a value of a type spells; for a type of bytes, their UTF-8."""
    type = check_type(type)
    try:
        if type == "char":
            return Char(text)
        if type in BYTES or type == "string":
            return of_message(type, String(text).bits)
        # The core reads numbers and booleans, as it reads those of a column of text.
        block = lh.encode([("k", text)], "iggy", types={"k": f"{type}:text"}) or b""
        headers: Any = lh.decode(block, "iggy")
        value: Value = headers["k"]
        return value
    except HeaderError as error:
        raise Failure(error.message) from error


def spell(value: Value) -> str:
    """Spell a value with its type."""
    text = text_of(value)
    return f"{value.type}:{value.bits.hex() if text is None else text}"


def looks_typed(text: str) -> bool:
    """Tell whether text begins with the name of a type and a colon."""
    type, colon, _ = text.partition(":")
    return bool(colon) and (type in VALUE_TYPES or type in UNNAMED)


def read_value(text: str) -> Value | None:
    """Read a value that is spelt with its type; None where no type stands before a colon."""
    if not looks_typed(text):
        return None
    type, _, rest = text.partition(":")
    return of_message(type, parse_hex(rest, type)) if type in BYTES else of_text(type, rest)


def spell_key(key: HeaderKey, form: KeyForm) -> str:
    """Spell a key of a format whose keys have this form."""
    if isinstance(key, Value):
        return spell(key)
    return f"string:{key}" if form == "typed" and looks_typed(str(key)) else str(key)


def read_key(text: str, form: KeyForm) -> HeaderKey:
    """Read a key of a format whose keys have this form."""
    if form == "int":
        return int.from_bytes(of_text("int32", text).bits, "big", signed=True)
    value = read_value(text) if form == "typed" else None
    return text if value is None else as_key(value)


def as_key(value: Value) -> HeaderKey:
    """Give a typed key as headers have it: a string that is UTF-8 as str."""
    return lh.Headers([(value, None)])[0].key


def check_type(type: str) -> str:
    """Return the name that a type has here; refuse what is not the name of one."""
    if type in UNNAMED:
        return type
    try:
        name = type_name(type)
    except (TypeError, ValueError) as error:
        raise Failure(str(error)) from None
    if name not in VALUE_TYPES:
        raise Failure(str(unknown_name("type", type, [*VALUE_TYPES, "type-16", "…", "type-255"])))
    return name
