"""Options that every command has: `--quiet` and `--no-color`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from letterhead.cli.options import flag, grouped
from letterhead.cli.render import SETTINGS

__all__ = ["add_common_options", "restore_settings"]

Quiet = Annotated[bool, flag("--quiet -q", "Print no progress and no notes: results, warnings and errors only.")]
NoColor = Annotated[bool, flag("--no-color", "Print no colours and no bold text.")]


def add_common_options(app: typer.Typer) -> None:
    """Add the options to all commands of an app, and to the app itself: they may be before or after a command's name."""
    for command in [*app.registered_commands, app.registered_callback]:
        if command is not None and command.callback is not None:
            if command.callback.__doc__:
                command.help = _flowing(command.callback.__doc__)
            command.callback = grouped(common=_apply)(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_common_options(group.typer_instance)


@contextmanager
def restore_settings() -> Iterator[None]:
    """Restore the process-wide settings that --quiet and --no-color changed."""
    quiet, no_color = SETTINGS.quiet, os.environ.get("NO_COLOR")
    try:
        yield
    finally:
        SETTINGS.quiet = quiet
        if no_color is None:
            os.environ.pop("NO_COLOR", None)


def _flowing(help: str) -> str:
    """Return help without the line ends inside of paragraphs, so that each screen breaks them at its width.

    Paragraphs that begin with a backspace keep theirs.
    """
    paragraphs = inspect.cleandoc(help).split("\n\n")
    return "\n\n".join(text if text.startswith("\b") else text.replace("\n", " ") for text in paragraphs)


def _apply(quiet: Quiet = False, no_color: NoColor = False) -> None:
    SETTINGS.quiet |= quiet
    if no_color:
        os.environ["NO_COLOR"] = "1"
