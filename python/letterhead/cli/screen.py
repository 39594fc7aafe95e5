"""Print tables and styled text on a rich console, which escapes control characters."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TextIO

from rich import box
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from letterhead._formatting import as_text, printable, quote, space_hex
from letterhead.cli.render import as_integer, count_text, screen_width, zoned_time


def console(stream: TextIO | None = None) -> Console:
    """Return a console that prints text without markup and emoji names, and escapes control characters."""
    stream = stream or sys.stdout
    screen = Console(
        file=stream,
        width=screen_width(stream),
        markup=False,
        highlight=False,
        emoji=False,
        force_terminal=stream.isatty(),
        # By itself, rich drops only colours, not other styles.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )
    screen.push_render_hook(_Escaping())
    return screen


class _Escaping(RenderHook):
    """Escapes control characters in all output of a console, even in unescaped text."""

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


def table(*columns: str, right: tuple[str, ...] = (), fold: bool = False) -> Table:
    """Return an empty table; columns in `right` are for numbers and never wrap; `fold` wraps long words instead of cutting them."""
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        view.add_column(
            Text(printable(name)),
            justify="right" if name in right else "left",
            no_wrap=name in right,
            overflow="fold" if fold else "ellipsis",
        )
    return view


def value_text(data: bytes | None, *, limit: int | None = None) -> Text:
    """Return a value as null, quoted text or hex; beyond about `limit` characters, with the number of omitted bytes."""
    if data is None:
        return Text("null", style="dim italic")
    text = as_text(data)
    if text is not None:
        if limit is not None and len(text) > limit:
            return Text.assemble(quote(text[:limit]), (f" … {len(text) - limit:,} more characters", "dim"))
        return Text(quote(text))
    shown = max(8, limit // 3) if limit is not None else len(data)
    number = as_integer(data)
    folded = Text("" if number is None else f"{number} = ").append(space_hex(data[:shown]), style="cyan")
    if len(data) > shown:
        folded.append(f" … {len(data) - shown:,} more bytes", style="dim")
    return folded


def short(data: bytes | None, limit: int | None) -> Text:
    """Return a value for a table, shortened to about `limit` characters; complete without a limit."""
    text = None if data is None else as_text(data)
    if data is None or limit is None or len(data if text is None else text) <= limit:
        return value_text(data)
    if text is not None:
        return Text(quote(text[: limit - 1]) + "…")
    return value_text(data[: limit // 3]).append("…")


def time_text(time: int, *, microseconds: bool = False) -> Text:
    """Return a timestamp as a number, followed by its date."""
    date = zoned_time(time, microseconds=microseconds)
    return Text.assemble(str(time), (f"  ({date})" if date else "", "dim"))


def format_with_size(data: bytes | None, limit: int | None) -> Text:
    """Return a value followed by its size."""
    size = "" if data is None else f"  ({count_text(len(data), 'byte')})"
    return Text.assemble(value_text(data, limit=limit), (size, "dim"))
