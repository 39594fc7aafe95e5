"""How far a long piece of work is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from letterhead._formatting import printable
from letterhead.cli.render import console


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr if that is a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(printable(what), total=total)
        yield lambda rows: bar.advance(task, rows)
