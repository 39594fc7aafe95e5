"""Values and keys as text, as errors and losses write them: ``int32:3``, ``binary:00ff``; :func:`text_of_key` writes a key."""

from __future__ import annotations

from letterhead.errors import HeaderError
from letterhead.header_edits import text_or_value
from letterhead.headers import GivenKey
from letterhead.one_message import decode, encode, select
from letterhead.values import UNNAMED, Binary, Char, Value, of_message

__all__ = ["BYTES", "UNNAMED", "parse_number", "text_of", "text_of_key", "text_with_type"]

BYTES = frozenset({"binary", *UNNAMED})
"""Types whose values have no text form."""


def text_of_key(key: GivenKey) -> str:
    """Return a key as errors write it: a text key as it is, a typed key as its type, a colon, and its text or hex."""
    key = Binary(key) if isinstance(key, bytes) else key
    plain = text_or_value(key) if isinstance(key, Value) else key
    return _with_type(plain, text_of(plain, exact=False)) if isinstance(plain, Value) else str(plain)


def text_with_type(value: Value) -> str:
    """Return a value as its type, a colon, and its text or hex; it can be read back without loss."""
    return _with_type(value, text_of(value))


def text_of(value: Value, *, exact: bool = True) -> str | None:
    """Return a value as text; None if it has none or, with ``exact``, if its text has other bits, as for an unusual NaN."""
    if value.type in BYTES:
        return None
    try:
        plain = value.value
    except HeaderError:
        return None
    if isinstance(plain, float):
        text = str(select(encode([("", value)], "kafka", types="text"), "kafka", {"": "string"})[""])
        return text if not exact or parse_number(value.type, text) == value else None
    if isinstance(value, Char):
        return None if "\ud800" <= str(plain) <= "\udfff" else str(plain)
    return plain if isinstance(plain, str) else str(plain).lower()


def _with_type(value: Value, text: str | None) -> str:
    return f"{value.type}:{value.bits.hex() if text is None else text}"


def parse_number(type: str, text: str) -> Value:
    """Parse a number or boolean as the core does, which knows all spellings."""
    message = encode([("k", text)], "iggy", types={"k": f"{type}:text"})
    value = decode(message, "iggy")["k"]
    return value if isinstance(value, Value) else of_message(type, value or b"")
