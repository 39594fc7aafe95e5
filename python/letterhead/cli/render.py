"""Print bytes, text and tables: control characters are escaped, and colours appear on a terminal only."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

from rich import box
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from letterhead._formatting import as_text, iso_time, printable, quoted, spaced_hex

if TYPE_CHECKING:
    from letterhead.sources.base import Source

# An address with a user and a password. An invalid password may contain any characters; a path has one slash.
_ADDRESS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*:/+).*@([^\s?]*)(?:\?[^\s:]*)?")
# The width of tables in a pipe or a file.
PLAIN_WIDTH = 96
# Eight bytes are shown as a number below this one: larger ones are rarely numbers.
MAX_LIKELY = 1 << 53
# The width of the time left beside a progress bar; a narrow screen shows the numbers without the bar.
TIME_WIDTH = 9
MIN_DESCRIPTION = 16
WIDE_ENOUGH_FOR_BAR = 110
# Rows on a screen, if neither --limit nor --all is given.
ROWS_ON_SCREEN = 20
# Seconds until a bar is drawn beside a pipe.
PIPE_DELAY = 1.0
# Rows in one table: all rows may not fit in memory.
ROWS_IN_TABLE = 1000


@dataclass
class TerminalSettings:
    """Settings that the common options of all commands change."""

    quiet: bool = False


SETTINGS = TerminalSettings()


def console(stream: TextIO | None = None) -> Console:
    """Return a console that prints text without markup, highlighting and emoji names, and escapes control characters."""
    stream = stream or sys.stdout
    screen = Console(
        file=stream,
        width=screen_width(stream),
        markup=False,
        highlight=False,
        emoji=False,
        force_terminal=stream.isatty(),
        # rich leaves out colours alone.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )
    screen.push_render_hook(_Escaping())
    return screen


def screen_width(stream: TextIO) -> int:
    """Return the width of tables: COLUMNS, the width of the terminal, or a constant without a terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or PLAIN_WIDTH
    except (OSError, ValueError):
        return PLAIN_WIDTH


def styled(text: str, style: Literal["bold", "dim"], stream: TextIO) -> str:
    """Return text with codes of a terminal, if the stream is one and they are wanted."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown"):
        return text
    return f"\x1b[{1 if style == 'bold' else 2}m{text}\x1b[0m"


class _Escaping(RenderHook):
    """Escapes control characters in whatever a console prints, also where text was not escaped before."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(renderable) for renderable in renderables]


class _Escaped:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, screen: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in screen.render(self._renderable, options):
            if segment.control is None:
                segment = Segment("\n".join(map(printable, segment.text.split("\n"))), segment.style)
            yield segment


def table(*columns: str, right: tuple[str, ...] = (), head: bool = True, fold: bool = False) -> Table:
    """Return an empty table; columns named in `right` hold numbers and never wrap, and with `fold` no word is cut."""
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=head, header_style="bold")
    for name in columns:
        view.add_column(
            Text(printable(name)),
            justify="right" if name in right else "left",
            no_wrap=name in right,
            overflow="fold" if fold else "ellipsis",
        )
    return view


def warn(message: str) -> None:
    """Print one line to stderr."""
    print(f"letterhead: {without_secrets(printable(message))}", file=sys.stderr)


def note(message: str) -> None:
    """Print one line to stderr that --quiet leaves out."""
    if not SETTINGS.quiet:
        print(printable(message), file=sys.stderr)


def without_secrets(text: str) -> str:
    """Replace users and passwords in addresses, such as one that was passed as a file, and leave out their options."""
    return _ADDRESS.sub(r"\1***@\2", text)


def value_text(data: bytes | None, *, limit: int | None = None) -> Text:
    """Return a value as null, quoted text or hex; beyond about `limit` characters, the number of the rest."""
    if data is None:
        return Text("null", style="dim italic")
    text = as_text(data)
    if text is not None:
        if limit is not None and len(text) > limit:
            return Text.assemble(quoted(text[:limit]), (f" … {len(text) - limit:,} more characters", "dim"))
        return Text(quoted(text))
    shown = max(8, limit // 3) if limit is not None else len(data)
    number = as_integer(data)
    folded = Text("" if number is None else f"{number} = ").append(spaced_hex(data[:shown]), style="cyan")
    if len(data) > shown:
        folded.append(f" … {len(data) - shown:,} more bytes", style="dim")
    return folded


def short(data: bytes | None, limit: int | None) -> Text:
    """Return a value in about `limit` characters at most, for a table; all of it without a limit."""
    text = None if data is None else as_text(data)
    if data is None or limit is None or len(data if text is None else text) <= limit:
        return value_text(data)
    if text is not None:
        return Text(quoted(text[: limit - 1]) + "…")
    return value_text(data[: limit // 3]).append("…")


def bytes_text(data: bytes, limit: int | None) -> str:
    """Return bytes as quoted text or hex on one line; ``limit`` shortens it to about that many characters, never fewer."""
    part = data if limit is None else data[: 4 * limit]
    text = as_text(part)
    if text is None and len(part) < len(data):
        # The part may end inside of a character.
        text = next(filter(None, (as_text(part[:-cut]) for cut in (1, 2, 3))), None)
    if text is not None:
        return quoted(text)
    number = as_integer(data)
    return f"{'' if number is None else f'{number} = '}{spaced_hex(part)}"


def as_integer(data: bytes, sizes: Collection[int] = (8,)) -> int | None:
    """Return bytes as a big-endian integer, as Kafka's serializers write it, if they have one of the sizes and it is likely."""
    number = int.from_bytes(data, "big", signed=True)
    return number if len(data) in sizes and abs(number) < MAX_LIKELY else None


def moment(time: int, *, microseconds: bool = False) -> str:
    """Format milliseconds or microseconds since 1970 as ISO 8601; empty for times before 1970 and after 9999."""
    return "" if time < 0 else iso_time(time, "microseconds" if microseconds else "milliseconds") or ""


def time_text(time: int, *, microseconds: bool = False) -> Text:
    """Return a timestamp as a number, followed by its date."""
    date = moment(time, microseconds=microseconds)
    return Text.assemble(str(time), (f"  ({date})" if date else "", "dim"))


def sized_text(data: bytes | None, limit: int | None) -> Text:
    """Return a value followed by its size."""
    size = "" if data is None else f"  ({counted(len(data), 'byte')})"
    return Text.assemble(value_text(data, limit=limit), (size, "dim"))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON that is safe on a terminal and keeps printable non-ASCII text."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Everything that json does not escape, except line ends, is inside a string, where \u may replace it.
    return re.sub(r"[^\n -~]", lambda match: _json_char(match.group()), text)


def print_json(value: Any) -> None:
    """Print one indented JSON document."""
    print(json_text(value, indent=2))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return `1 header`, `2 headers`; pass a plural that is not the singular and an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


@contextmanager
def progress(
    total: int | None, description: str, *, prints: bool, noun: str = "row", source: Source | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr if that is a terminal; with `prints`, rows are printed to stdout meanwhile.

    It yields a function that is called with the number of further rows. Without `total`, the `source` tells how much of it
    was read. If rows are printed to a terminal, there is no bar: the rows show the progress, and a bar would be drawn
    between them.
    """
    if SETTINGS.quiet or not sys.stderr.isatty() or (prints and sys.stdout.isatty()):
        yield lambda rows: None
        return
    rows, started = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal rows
        rows += count
        size, done, unit = total, rows, noun
        if total is None and source is not None and source.total is not None:
            size, done, unit = source.total, source.done, source.unit
        rate = f"{rows / max(time.monotonic() - started, 0.001):,.0f}/s"
        amount = f"{_amount(rows, noun, size, done, unit)}, {rate}"
        # The end of a path tells more than its beginning.
        room = max(MIN_DESCRIPTION, width - len(amount) - TIME_WIDTH - 21 * len(bars))
        text = description if len(description) <= room else f"…{description[1 - room :]}"
        bar.update(task, description=text, total=size, completed=done, amount=amount)
        if time.monotonic() - started >= delay:
            bar.start()

    width = screen_width(sys.stderr)
    bars = [BarColumn(bar_width=20)] if width >= WIDE_ENOUGH_FOR_BAR else []
    columns = (
        TextColumn("{task.description}", markup=False),
        *bars,
        TextColumn("{task.fields[amount]}", markup=False, table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True),
    )
    description = printable(description)
    # By default, the bar replaces sys.stdout and redirects prints to stderr.
    bar = Progress(*columns, console=console(sys.stderr), transient=True, redirect_stdout=False)
    # The program that reads a pipe may print to the same terminal. A delay keeps the bar of a short command out of its lines.
    delay = PIPE_DELAY if prints and _is_pipe(sys.stdout) else 0
    task = bar.add_task("", total=total, amount="")
    try:
        advance(0)
        yield advance
        advance(0)  # the source is read to its end
    finally:
        bar.stop()


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _amount(rows: int, noun: str, size: int | None, done: int, unit: str) -> str:
    """Return how much was read, and of how much."""
    if size is None:
        return counted(rows, noun)
    if unit == "byte":
        return f"{counted(rows, noun)}, {done / 1e6:,.1f} of {size / 1e6:,.1f} MB"
    of = f"of {counted(size, unit)}"
    return f"{rows:,} {of}" if unit == noun else f"{counted(rows, noun)}, {done:,} {of}"


def _json_char(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]
