"""Print text lines with control characters escaped; colours only appear on a terminal.

:mod:`letterhead.cli.screen` prints tables, but takes longer to import.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Literal, TextIO

from letterhead._formatting import as_text, iso_time, printable, quote, space_hex

# Address with a user and a password. An invalid password may contain any characters; a path has one slash.
_ADDRESS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*:/+).*@([^\s?]*)(?:\?[^\s:]*)?")
# Width of tables in a pipe or a file.
PLAIN_WIDTH = 96
# Limit below which eight bytes are shown as a number; larger ones are rarely numbers.
MAX_LIKELY = 1 << 53

# Default number of rows on a terminal, without --limit and --all.
ROWS_ON_SCREEN = 20
# Maximum number of rows in one table, because all rows may not fit in memory.
ROWS_IN_TABLE = 1000


@dataclass
class TerminalSettings:
    """Settings that the common options of all commands change."""

    quiet: bool = False
    zone: tzinfo = UTC


SETTINGS = TerminalSettings()


def screen_width(stream: TextIO) -> int:
    """Return the width of tables: COLUMNS, the width of the terminal, or a constant."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or PLAIN_WIDTH
    except (OSError, ValueError):
        return PLAIN_WIDTH


def style(text: str, style: Literal["bold", "dim"], stream: TextIO) -> str:
    """Return text with terminal codes if the stream is a terminal and colours are enabled."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown"):
        return text
    return f"\x1b[{1 if style == 'bold' else 2}m{text}\x1b[0m"


def warn(message: str) -> None:
    """Print one line to stderr."""
    print(f"letterhead: {without_secrets(printable(message))}", file=sys.stderr)


def note(message: str) -> None:
    """Print one line to stderr unless --quiet is set."""
    if not SETTINGS.quiet:
        print(printable(message), file=sys.stderr)


def without_secrets(text: str) -> str:
    """Replace users and passwords in addresses, and drop the options after ``?``; file names may be addresses, too."""
    return _ADDRESS.sub(r"\1***@\2", text)


def bytes_text(data: bytes, limit: int | None) -> str:
    """Return bytes as quoted text or hex on one line; ``limit`` shortens it to about that many characters."""
    part = data if limit is None else data[: 4 * limit]
    text = as_text(part)
    if text is None and len(part) < len(data):
        # The part may end within a character.
        text = next(filter(None, (as_text(part[:-cut]) for cut in (1, 2, 3))), None)
    if text is not None:
        return quote(text)
    number = as_integer(data)
    return f"{'' if number is None else f'{number} = '}{space_hex(part)}"


def as_integer(data: bytes, sizes: Collection[int] = (8,)) -> int | None:
    """Parse bytes as a big-endian integer of Kafka's serializers, if size and value are plausible."""
    number = int.from_bytes(data, "big", signed=True)
    return number if len(data) in sizes and abs(number) < MAX_LIKELY else None


def zoned_time(time: int, *, microseconds: bool = False) -> str:
    """Format milliseconds or microseconds since 1970 as ISO 8601 in the zone of --tz; empty outside 1970 to 9999."""
    return "" if time < 0 else iso_time(time, "microseconds" if microseconds else "milliseconds", SETTINGS.zone) or ""


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON that is safe on a terminal and keeps printable non-ASCII text."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Except for line ends, these characters occur only in JSON strings, where \u may replace them.
    return re.sub(r"[^\n -~]", lambda match: _json_char(match.group()), text)


def print_json(value: Any) -> None:
    """Print one indented JSON document."""
    print(json_text(value, indent=2))


def count_text(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count and its noun, such as `1 header` or `1,234 headers`; pass irregular plurals."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _json_char(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]
