"""What a conversion could not carry, on the screen, and the options that say what to do about it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

import letterhead as lh
from letterhead._formatting import printable
from letterhead.cli.exits import Failure
from letterhead.cli.formats import row_of
from letterhead.cli.headers import key_text
from letterhead.cli.render import console, counted, table

KEEP = "without --on-loss, the error says how to keep them"

# Rows of a summary; there may be as many keys as there are headers.
ROWS = 20


def types_option(types: str | None, pairs: list[str] | None) -> Any:
    """Read --types WORD and --type KEY=TYPE, which may stand more than once, into what `types=` takes.

    A key is written as faults and losses write it. One that is given more than once has a type for each time it stands.
    """
    if not pairs:
        return types
    if types is not None:
        raise Failure("--types and --type exclude each other: give one of them")
    by_key: dict[str, list[str]] = {}
    for pair in pairs:
        key, equals, name = pair.rpartition("=")
        if not equals:
            raise Failure(f"--type: {pair!r} is not KEY=TYPE, as in retry=int32")
        by_key.setdefault(key, []).append(name)
    return {key: each[0] if len(each) == 1 else each for key, each in by_key.items()}


def header_count(message: Any) -> int:
    """Count the headers of a message, or of headers by themselves."""
    headers = message if isinstance(message, lh.Headers) else message.headers
    return len(headers or ())


def warn_if_emptied(count: int, written: bytes | None, target: str) -> None:
    """Say on stderr that a message had so many headers and has none left."""
    left = 0
    if written is not None:
        try:
            left = header_count(lh.decode(written, target))
        except lh.errors.HeaderError:  # longer than a limit of this process: it has headers
            return
    if count and not left:
        print(f"letterhead: {target}: all headers were left out ({count} of {count}): {KEEP}", file=sys.stderr)


def show_losses(losses: lh.Losses, source: str, target: str) -> None:
    """Show the losses of one message on stderr, one a line, and how the types come back."""
    screen = console(sys.stderr)
    if not losses:
        screen.print(Text(f"{source} to {target}: nothing was lost", style="bold green"))
        return
    screen.print(Text(f"{source} to {target}: {counted(len(losses), 'loss', 'losses')}", style="bold"))
    view = table("header", "key", "not carried", "written", "code", right=("header",))
    for loss in losses:
        header = "" if loss.header is None else str(loss.header)
        view.add_row(header, printable(loss.key or ""), printable(loss.message), _written(loss.written), loss.code)
    screen.print(view)
    _way_back(losses.types, source, target)


@dataclass
class _Group:
    """One loss of a key, wherever it is in a column."""

    row: int
    loss: Mapping[str, Any]
    times: int = 0


class Summary:
    """The losses of a column, added up."""

    def __init__(self) -> None:
        self.rows = 0
        self.groups: dict[tuple[Any, ...], _Group] = {}
        self.types: dict[str, set[str]] = {}

    def add(self, row: int, losses: Iterable[Mapping[str, Any]]) -> None:
        """Count the losses of one row."""
        self.rows += 1
        for loss in losses:
            # Lengths differ from row to row, and are the same loss.
            what = re.sub(r"\d+", "", loss["message"])
            group = self.groups.setdefault((loss["code"], loss["key"], loss["written"], what), _Group(row, loss))
            group.times += 1
            if loss["type"] is not None and loss["key"] is not None:
                self.types.setdefault(loss["key"], set()).add(loss["type"])

    def show(self, source: str, target: str, rows: int) -> None:
        """Show them on stderr: how often, what, and where first."""
        screen = console(sys.stderr)
        if not self.groups:
            screen.print(Text(f"{source} to {target}: nothing was lost", style="bold green"))
            return
        screen.print(Text(f"{source} to {target}: {self.rows:,} of {counted(rows, 'row')} with losses", style="bold"))
        view = table("times", "key", "not carried", "written", "first row", "code", right=("times", "first row"))
        groups = sorted(self.groups.values(), key=lambda group: -group.times)
        for group in groups[:ROWS]:
            loss = group.loss
            key, message = printable(loss["key"] or ""), printable(loss["message"])
            view.add_row(f"{group.times:,}", key, message, _written(loss["written"]), f"{group.row:,}", loss["code"])
        screen.print(view)
        if len(groups) > ROWS:
            screen.print(Text(f"… {len(groups) - ROWS:,} more", style="dim"))
        # Where the target has types, values that kept theirs are not in the losses.
        if not row_of(target)["types"] and all(len(types) == 1 for types in self.types.values()):
            _way_back({key: next(iter(types)) for key, types in self.types.items()}, source, target)


def _written(written: str | None) -> Text:
    return Text("left out", style="red") if written is None else Text(written)


def _way_back(types: Mapping[Any, str | list[str]], source: str, target: str) -> None:
    """Print the command that gives the values their types again."""
    if not types or not row_of(source)["is_target"]:
        return
    words = ["letterhead", "convert", "-f", target, "--to", source]
    for key, given in types.items():
        for name in [given] if isinstance(given, str) else given:
            words += ["--type", f"{key_text(key)}={name}"]
    # On one line, whatever the width: it is there to be copied.
    screen = console(sys.stderr)
    screen.print(Text("The way back, with the types that they had:", style="dim"))
    screen.print(Text("  " + printable(" ".join(map(shlex.quote, words))), style="cyan"), soft_wrap=True)
