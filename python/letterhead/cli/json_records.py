"""Parse records in JSON, one after another: :func:`json_records`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from letterhead._strict_json import STRING, JsonError, parse_json
from letterhead.cli.exits import Failure

__all__ = ["JsonRecord", "json_records"]

# Size at which an incomplete record is checked for the first time; later checks follow at each doubling.
_CHECKED_BYTES = 1 << 20


class JsonRecord(NamedTuple):
    """Record with the number of its first line, and the length of its text."""

    document: Any
    line: int
    byte_len: int


def json_records(lines: Iterable[bytes]) -> Iterator[JsonRecord]:
    """Parse records one at a time, each on one or several lines; raise Failure for text without a record."""
    text, depth, first, checked, count = bytearray(), 0, 1, _CHECKED_BYTES, 0
    for number, line in enumerate(lines, 1):
        if not text:
            if line.isspace():
                continue
            first, depth, checked = number, 0, _CHECKED_BYTES
        text += line
        # A JSON string ends on its line.
        outside = STRING.sub(b"", line)
        depth += sum(map(outside.count, (b"{", b"["))) - sum(map(outside.count, (b"}", b"]")))
        if depth <= 0:
            yield JsonRecord(_parse(text, first), first, len(text))
            text, count = bytearray(), count + 1
        elif len(text) >= checked:
            _check_beginning(text, first)
            checked *= 2
    if text or not count:
        yield JsonRecord(_parse(text, first), first, len(text))


def _check_beginning(text: bytearray, line: int) -> None:
    """Raise Failure if incomplete text is already invalid, without reading the rest of the input."""
    try:
        _parse(text, line)
    except Failure as failure:
        error = getattr(failure.__cause__, "__cause__", None)
        if not isinstance(error, json.JSONDecodeError) or error.pos < len(error.doc.rstrip()):
            raise


def _parse(text: bytearray, line: int) -> Any:
    try:
        return parse_json(text, numbers="decimal")
    except JsonError as error:
        position = f"line {line}" if error.line is None else f"line {line + error.line - 1}, column {error.column}"
        raise Failure(f"JSON: {error} ({position})") from error
