"""Escape or quote text and bytes, or format them as hex, so that no control character reaches a terminal."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

__all__ = ["as_text", "count_noun", "iso_time", "printable", "quote", "quote_if_needed", "space_hex"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
# Spaces other than U+0020, line separators, and marks such as those that join emoji.
_CATEGORIES_OF_TEXT = ("Zs", "Zl", "Zp", "Cf")


def printable(text: str) -> str:
    """Escape every character that is not printable."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def quote(text: str) -> str:
    """Quote text to distinguish it from hex and null."""
    # Text that contains double quotes is usually JSON, which stays readable in single quotes.
    mark = "'" if '"' in text and "'" not in text else '"'
    return mark + printable(text.replace("\\", "\\\\").replace(mark, "\\" + mark)) + mark


def quote_if_needed(text: str) -> str:
    """Quote text for a table if it is empty, contains blanks or quotes, or equals ``null``."""
    is_plain = text.isprintable() and text.split() == [text] and text != "null" and '"' not in text
    return text if is_plain else quote(text)


def space_hex(data: bytes) -> str:
    """Write bytes as pairs of hex digits."""
    return data.hex(" ")


def as_text(data: bytes) -> str | None:
    """Decode UTF-8 text of one or more lines; None for other data, such as a number."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if text.isprintable():
        return text
    # Bytes that are all tabs and line breaks are more likely a number.
    return text if text.strip() and all(map(_is_in_text, set(text))) else None


def _is_in_text(char: str) -> bool:
    return char.isprintable() or char in _ESCAPES or unicodedata.category(char) in _CATEGORIES_OF_TEXT


def count_noun(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 byte``, ``2 bytes``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def iso_time(
    time: int, unit: Literal["milliseconds", "microseconds"] = "milliseconds", zone: tzinfo = UTC
) -> str | None:
    """Format a time since 1970 as ISO 8601; None if its year does not have four digits."""
    try:
        date = (_EPOCH + timedelta(**{unit: time})).astimezone(zone)
    except OverflowError:
        return None
    return date.isoformat(timespec=unit).replace("+00:00", "Z")


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
