"""How values and keys with a kind are spelt on the command line, and read again: `int32:3`, `binary:00ff`.

It is the text that faults and losses have. A value is its kind, a colon, and what it spells: `bool:true`, `float64:1.5`,
`string:acme`. Bytes that spell nothing (kinds `binary` and `kind-200`, bits that are no value of their kind) are in hex.
A key that is text is just that text; one that would look like a value with a kind has `string:` before it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import letterhead as lh
from letterhead.cli.exits import Failure
from letterhead.cli.source import parse_hex
from letterhead.errors import HeaderError, unknown_name
from letterhead.headers import HeaderKey
from letterhead.values import KINDS, Char, String, Value, of_message

KeyForm: TypeAlias = Literal["text", "int", "typed"]

UNNAMED = {f"kind-{code}" for code in range(16, 256)}
# What they hold spells nothing that the command could know.
BYTES = {"binary", *UNNAMED}


def text_of(value: Value) -> str | None:
    """Give what a value spells, a number, true or false, text; None where only its bits can be shown.

    Reading the text gives the same bits: a NaN other than the usual one has none.
    """
    if value.kind in BYTES:
        return None
    try:
        plain = value.value
    except HeaderError:
        return None
    if isinstance(plain, float):
        block = lh.encode([("", value)], "kafka", kinds="text") or b""
        text = str(lh.select(block, "kafka", {"": "string"})[""])
        return text if of_text(value.kind, text) == value else None
    if isinstance(value, Char):
        return None if "\ud800" <= str(plain) <= "\udfff" else str(plain)
    return plain if isinstance(plain, str) else str(plain).lower()


def of_text(kind: str, text: str) -> Value:
    """Read what a value of a kind spells; for a kind of bytes, their UTF-8."""
    check_kind(kind)
    try:
        if kind == "char":
            return Char(text)
        if kind in BYTES or kind == "string":
            return of_message(kind, String(text).bits)
        # The core reads numbers and booleans, as it reads those of a column of text.
        block = lh.encode([("k", text)], "iggy", kinds={"k": f"{kind}:text"}) or b""
        headers: Any = lh.decode(block, "iggy")
        value: Value = headers["k"]
        return value
    except HeaderError as error:
        raise Failure(error.message) from error


def spell(value: Value) -> str:
    """Spell a value with its kind."""
    text = text_of(value)
    return f"{value.kind}:{value.bits.hex() if text is None else text}"


def looks_typed(text: str) -> bool:
    """Tell whether text begins with the name of a kind and a colon."""
    kind, colon, _ = text.partition(":")
    return bool(colon) and (kind in KINDS or kind in UNNAMED)


def read_value(text: str) -> Value | None:
    """Read a value that is spelt with its kind; None where no kind stands before a colon."""
    if not looks_typed(text):
        return None
    kind, _, rest = text.partition(":")
    return of_message(kind, parse_hex(rest, kind)) if kind in BYTES else of_text(kind, rest)


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


def check_kind(kind: str) -> None:
    """Refuse what is not the name of a kind."""
    if kind not in KINDS and kind not in UNNAMED:
        raise Failure(str(unknown_name("kind", kind, [*KINDS, "kind-16", "…", "kind-255"])))
