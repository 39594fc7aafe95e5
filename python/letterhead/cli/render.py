"""How bytes and text are put on a screen: escaped, folded, in tables; colours on a terminal only."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Tables for a pipe or a file have this width, whatever terminal the reader has.
PLAIN_WIDTH = 96


def console(stream: TextIO | None = None, *, width: int | None = None) -> Console:
    """Make a console which prints text as it is: no markup, no highlighting, no emoji names."""
    stream = stream or sys.stdout
    if width is None and not stream.isatty():
        width = PLAIN_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, force_terminal=stream.isatty())


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Make an empty table in the house's form; columns named in `right` are numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=name in right)
    return made


def printable(text: str) -> str:
    """Escape every character which is not visible, so that no control character reaches a terminal."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def quoted(text: str) -> str:
    """Quote text so that it cannot be taken for hex, for null, or for something it is not."""
    # JSON is the commonest text that has quotes of its own; single ones around it leave it readable.
    mark = "'" if '"' in text and "'" not in text else '"'
    return mark + printable(text.replace("\\", "\\\\").replace(mark, "\\" + mark)) + mark


def spaced_hex(data: bytes) -> str:
    """Write bytes as pairs of hex digits."""
    return data.hex(" ")


def as_text(data: bytes) -> str | None:
    """Give the text of bytes which are UTF-8 and visible throughout, else None."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


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


def moment(milliseconds: int) -> str:
    """Write milliseconds since 1970 as a date; -1 and times that are none give nothing."""
    try:
        date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return ""
    return "" if milliseconds < 0 else f"{date:%Y-%m-%d %H:%M:%S}.{date.microsecond // 1000:03} UTC"


def json_value(data: bytes | None) -> dict[str, str] | None:
    """Spell bytes for JSON without loss: hex always, and text as well where they are UTF-8."""
    if data is None:
        return None
    spelt = {"hex": data.hex()}
    with contextlib.suppress(UnicodeDecodeError):
        spelt["text"] = data.decode("utf-8")
    return spelt


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Write JSON that is safe on a terminal and still readable where the text is not ASCII."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Whatever json leaves as it is beyond line ends stands inside a string, where \u may replace it.
    return re.sub(r"[^\n -~]", lambda found: _json_char(found.group()), text)


def counted(number: int, noun: str) -> str:
    """Write `1 header`, `2 headers`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_char(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]
