"""Print the values and types that a conversion lost."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

import letterhead as lh
from letterhead._formatting import printable
from letterhead.cli.formats import row_of
from letterhead.cli.render import count_text, warn
from letterhead.cli.screen import console, table
from letterhead.cli.spelling import key_text

KEEP_HINT = "without --on-loss, the error names how to keep them"

# Maximum number of rows in a summary; there may be as many keys as headers.
ROWS = 20


def header_count(message: Any) -> int:
    """Return the number of headers of a message, or in a list of headers."""
    headers = message if isinstance(message, lh.Headers) else message.headers
    return len(headers or ())


def warn_if_emptied(count: int, written: bytes | None, target: str) -> None:
    """Warn if a message had `count` headers and the written message has none."""
    left = 0
    if written is not None:
        try:
            left = header_count(lh.decode(written, target))
        except lh.errors.HeaderError:  # the message is too large to read again here, so it still has headers
            return
    if count and not left:
        warn(f"{target}: all headers were left out ({count} of {count}): {KEEP_HINT}")


def show_losses(losses: lh.Losses, source: str, target: str) -> None:
    """Print the losses of one message to stderr, and the command that restores the types."""
    if not _show_count(source, target, count_text(len(losses), "loss", "losses") if losses else ""):
        return
    view = table("header", "key", "not carried", "written", "code", right=("header",))
    for loss in losses:
        header = "" if loss.header is None else str(loss.header)
        view.add_row(
            header, printable(loss.key or ""), printable(loss.message), _format_written(loss.written), loss.code
        )
    console(sys.stderr).print(view)
    _show_way_back(losses.types, source, target)


class LossSummary:
    """Losses of a column."""

    def __init__(self) -> None:
        self.rows = 0
        # For each loss: its first row, the loss itself, and its number of occurrences.
        self.groups: dict[tuple[Any, ...], tuple[int, Mapping[str, Any], int]] = {}
        self.types: dict[str, set[str]] = {}

    def add(self, row: int, losses: Iterable[Mapping[str, Any]]) -> None:
        """Count the losses of one row."""
        self.rows += 1
        for loss in losses:
            # Losses whose messages differ only in numbers are counted together.
            message = re.sub(r"\d+", "", loss["message"])
            group = (loss["code"], loss["key"], loss["written"], message)
            first, example, times = self.groups.get(group, (row, loss, 0))
            self.groups[group] = (first, example, times + 1)
            if loss["type"] is not None and loss["key"] is not None:
                self.types.setdefault(loss["key"], set()).add(loss["type"])

    def show(self, source: str, target: str, rows: int) -> None:
        """Print each loss to stderr, with its number of occurrences and its first row."""
        count = f"{self.rows:,} of {count_text(rows, 'row')} with losses" if self.groups else ""
        if not _show_count(source, target, count):
            return
        view = table("times", "key", "not carried", "written", "first row", "code", right=("times", "first row"))
        groups = sorted(self.groups.values(), key=lambda group: -group[2])
        for row, loss, times in groups[:ROWS]:
            key, message = printable(loss["key"] or ""), printable(loss["message"])
            view.add_row(f"{times:,}", key, message, _format_written(loss["written"]), f"{row:,}", loss["code"])
        console(sys.stderr).print(view)
        if len(groups) > ROWS:
            console(sys.stderr).print(Text(f"… {len(groups) - ROWS:,} more", style="dim"))
        # A typed target reports no losses for values that kept their types.
        if not row_of(target).types and all(len(types) == 1 for types in self.types.values()):
            _show_way_back({key: next(iter(types)) for key, types in self.types.items()}, source, target)


def _show_count(source: str, target: str, count: str) -> bool:
    style = "bold" if count else "bold green"
    console(sys.stderr).print(Text(f"{source} to {target}: {count or 'nothing was lost'}", style=style))
    return bool(count)


def _format_written(written: str | None) -> Text:
    return Text("left out", style="red") if written is None else Text(written)


def _show_way_back(types: Mapping[Any, str | list[str]], source: str, target: str) -> None:
    """Print the command that converts back and restores the types."""
    if not types or not row_of(source).is_target:
        return
    words = ["letterhead", "convert", "-f", target, "--to", source]
    for key, key_types in types.items():
        for name in [key_types] if isinstance(key_types, str) else key_types:
            words += ["--types", f"{key_text(key)}={name}"]
    screen = console(sys.stderr)
    screen.print(Text("To convert back and restore the types:", style="dim"))
    # The command is printed on one line regardless of the width, because users copy it.
    screen.print(Text("  " + printable(" ".join(map(shlex.quote, words))), style="cyan"), soft_wrap=True)
