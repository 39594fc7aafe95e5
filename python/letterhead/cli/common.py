"""Options of every command: `--quiet`, `--no-color` and `--tz`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from letterhead._times import zone_named
from letterhead.cli.command_table import NO_COLOR_HELP, QUIET_HELP, ZONE_HELP
from letterhead.cli.exits import usage_errors
from letterhead.cli.options import flag, group_options, option
from letterhead.cli.render import SETTINGS

__all__ = ["add_common_options", "restore_settings"]

Quiet = Annotated[bool, flag("--quiet -q", QUIET_HELP)]
NoColor = Annotated[bool, flag("--no-color", NO_COLOR_HELP)]
Zone = Annotated[str | None, option("--tz", ZONE_HELP, "ZONE")]


def add_common_options(app: typer.Typer) -> None:
    """Add the options to all commands of an app, and to the app itself: they may precede or follow a command."""
    for command in [*app.registered_commands, app.registered_callback]:
        if command is not None and command.callback is not None:
            if command.callback.__doc__:
                command.help = _flowing(command.callback.__doc__)
            command.callback = group_options(common=_apply)(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_common_options(group.typer_instance)


@contextmanager
def restore_settings() -> Iterator[None]:
    """Restore the process-wide settings that these options changed."""
    quiet, zone, no_color = SETTINGS.quiet, SETTINGS.zone, os.environ.get("NO_COLOR")
    try:
        yield
    finally:
        SETTINGS.quiet, SETTINGS.zone = quiet, zone
        if no_color is None:
            os.environ.pop("NO_COLOR", None)


def _flowing(text: str) -> str:
    """Join the lines of paragraphs in help, because each terminal wraps them at its own width.

    Paragraphs that begin with a backspace are unchanged.
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(text if text.startswith("\b") else text.replace("\n", " ") for text in paragraphs)


def _apply(quiet: Quiet = False, no_color: NoColor = False, tz: Zone = None) -> None:
    SETTINGS.quiet |= quiet
    if tz is not None:
        with usage_errors():
            SETTINGS.zone = zone_named(tz)
    if no_color:
        os.environ["NO_COLOR"] = "1"
