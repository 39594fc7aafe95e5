"""Progress bar on standard error: :func:`progress`."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from letterhead._formatting import printable
from letterhead.cli.render import SETTINGS, count_text, screen_width

if TYPE_CHECKING:
    from letterhead.sources.base import Source

__all__ = ["progress"]

TIME_WIDTH = 9
"""Width of the remaining time next to a bar; a narrow terminal shows the numbers without the bar."""

MIN_DESCRIPTION = 16
WIDE_ENOUGH_FOR_BAR = 110
PIPE_DELAY = 1.0
"""Delay of the bar in seconds if standard output is a pipe."""


@contextmanager
def progress(
    total: int | None, description: str, *, prints: bool, noun: str = "row", source: Source | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr if that is a terminal; `prints` states that rows are printed to stdout at the same time.

    Yields a function that is called with the number of additional rows. Without `total`, the `source` reports the
    amount read. If rows are printed to a terminal, there is no bar: the rows show the progress, and a bar would be
    drawn between them.
    """
    if SETTINGS.quiet or not sys.stderr.isatty() or (prints and sys.stdout.isatty()):
        yield lambda rows: None
        return
    # rich takes time to import, and only a terminal needs it.
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    from letterhead.cli.screen import console

    rows, started = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal rows
        rows += count
        size, done, unit = total, rows, noun
        if total is None and source is not None and source.total is not None:
            size, done, unit = source.total, source.done, source.unit
        rate = f"{rows / max(time.monotonic() - started, 0.001):,.0f}/s"
        amount = f"{_amount(rows, noun, size, done, unit)}, {rate}"
        # The end of a path is more informative than its beginning.
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
    # The program that reads a pipe may print to the same terminal. The delay avoids a bar for short commands.
    delay = PIPE_DELAY if prints and _is_pipe(sys.stdout) else 0
    task = bar.add_task("", total=total, amount="")
    try:
        advance(0)
        yield advance
        advance(0)  # the source has reached its end, so the bar is full
    finally:
        bar.stop()


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _amount(rows: int, noun: str, size: int | None, done: int, unit: str) -> str:
    """Return the amount read and the total as text."""
    if size is None:
        return count_text(rows, noun)
    if unit == "byte":
        return f"{count_text(rows, noun)}, {done / 1e6:,.1f} of {size / 1e6:,.1f} MB"
    of = f"of {count_text(size, unit)}"
    return f"{rows:,} {of}" if unit == noun else f"{count_text(rows, noun)}, {done:,} {of}"
