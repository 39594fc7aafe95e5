"""Format differing values and headers as text, side by side."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.headers import header_text
from letterhead.cli.screen import short
from letterhead.cli.spelling import key_text
from letterhead.headers import Header, HeaderKey

__all__ = ["excerpt_text", "header_difference_text", "header_differences"]

# Size of the alignment matrix above which headers are compared by position, because alignment takes quadratic time.
ALIGNED = 1_000_000

# Number of bytes shown before the first difference.
BEFORE_DIFFERENCE = 8


def header_differences(first: list[Header], second: list[Header]) -> Iterator[tuple[list[Header], list[Header]]]:
    """Yield differing headers; headers at the same position are yielded together."""
    if len(first) * len(second) > ALIGNED:
        for header, other in itertools.zip_longest(first, second):
            if header != other:
                yield [header] if header is not None else [], [other] if other is not None else []
        return
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for operation, start, end, other_start, other_end in matcher.get_opcodes():
        if operation != "equal":
            yield first[start:end], second[other_start:other_end]


def header_difference_text(key: HeaderKey, value: Any, other_value: Any, limit: int | None) -> Text:
    """Return a header as text; a long value is reduced to the part that differs from the other side."""
    if isinstance(value, bytes):
        return Text.assemble(printable(key_text(key)), "=", excerpt_text(value, other_value, limit))
    return header_text(key, value, limit)


def excerpt_text(value: bytes | None, other_value: Any, limit: int | None) -> Text:
    """Return a value as text; if the difference from the other value is far in, text before it is omitted."""
    if limit is None or value is None or not isinstance(other_value, bytes) or len(value) <= limit:
        return short(value, limit)
    pairs = enumerate(zip(value, other_value, strict=False))
    same = next((byte_index for byte_index, (byte, other) in pairs if byte != other), min(len(value), len(other_value)))
    begin = max(0, same - BEFORE_DIFFERENCE)
    while begin and value[begin] & 0xC0 == 0x80:
        begin -= 1  # do not begin inside a UTF-8 character
    if not begin:
        return short(value, limit)
    return Text.assemble((f"… byte {begin:,}: ", "dim"), short(value[begin:], limit))
