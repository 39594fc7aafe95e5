"""How bytes and text are put on a screen: escaped, folded, in tables; colours on a terminal only."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from letterhead._formatting import as_text, quoted, spaced_hex

# Tables for a pipe or a file have this width, whatever terminal the reader has.
PLAIN_WIDTH = 96


def console(stream: TextIO | None = None, *, width: int | None = None) -> Console:
    """Make a console which prints text as it is: no markup, no highlighting, no emoji names."""
    stream = stream or sys.stdout
    if width is None and not stream.isatty():
        width = PLAIN_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, force_terminal=stream.isatty())


def table(*columns: str, right: tuple[str, ...] = (), head: bool = True) -> Table:
    """Make an empty table in the house's form; columns named in `right` are numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=head, header_style="bold")
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=name in right)
    return made


def value_text(data: bytes | None, *, limit: int | None = None) -> Text:
    """Show a value: null, quoted text, or hex, folded to about `limit` characters with a count of the rest."""
    if data is None:
        return Text("null", style="dim italic")
    text = as_text(data)
    if text is not None:
        if limit is not None and len(text) > limit:
            return Text.assemble(quoted(text[:limit]), (f" … {len(text) - limit:,} more characters", "dim"))
        return Text(quoted(text))
    shown = max(1, limit // 3) if limit is not None else len(data)
    folded = Text(spaced_hex(data[:shown]), style="cyan")
    if len(data) > shown:
        folded.append(f" … {len(data) - shown:,} more bytes", style="dim")
    return folded


def short(data: bytes | None, limit: int) -> Text:
    """Show a value in at most about `limit` characters, for a cell of a table."""
    text = None if data is None else as_text(data)
    if data is None or len(data if text is None else text) <= limit:
        return value_text(data)
    if text is not None:
        return Text(quoted(text[: limit - 1]) + "…")
    return value_text(data[: limit // 3]).append("…")


def moment(time: int, *, microseconds: bool = False) -> str:
    """Write milliseconds or microseconds since 1970 as a date; those that are none, or before 1970, give nothing."""
    try:
        date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time if microseconds else time * 1000)
    except OverflowError:
        return ""
    digits = f"{date.microsecond:06}" if microseconds else f"{date.microsecond // 1000:03}"
    return "" if time < 0 else f"{date:%Y-%m-%d %H:%M:%S}.{digits} UTC"


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Write JSON that is safe on a terminal and still readable where the text is not ASCII."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Whatever json leaves as it is beyond line ends stands inside a string, where \u may replace it.
    return re.sub(r"[^\n -~]", lambda found: _json_char(found.group()), text)


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """Write `1 header`, `2 headers`; `2 losses` where the plural is not the singular and an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def _json_char(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]
