"""Import commands on demand, because importing all of them would double the start time."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from typing import Annotated

import typer

from letterhead.cli.command_table import COMMANDS, DESCRIPTION, EXAMPLES, GROUPS, VERSION_HELP
from letterhead.cli.common import add_common_options
from letterhead.cli.exits import EXIT_CODES, OK
from letterhead.cli.options import option
from letterhead.cli.version import print_version

__all__ = ["app_for"]


def app_for(words: Collection[str] | None) -> typer.Typer:
    """Return the app with the listed commands (None for all), and with placeholders for the names of all others."""
    app = typer.Typer(
        name="letterhead",
        help=f"{DESCRIPTION}\n\n\b\nExamples:\n{EXAMPLES}",
        epilog=EXIT_CODES,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name, command in COMMANDS.items():
        if words is not None and name not in words:
            app.command(name, help=command.summary, epilog=EXIT_CODES)(_not_imported)
            continue
        loaded = getattr(importlib.import_module(f"letterhead.cli.{command.module}"), command.name)
        if name in GROUPS:
            app.add_typer(loaded)
        else:
            app.command(name, epilog=EXIT_CODES)(loaded)
    add_common_options(app)
    return app


def _version(is_requested: bool) -> None:
    if is_requested:
        print_version()
        raise typer.Exit(OK)


def _root(
    version: Annotated[bool, option("--version -V", VERSION_HELP, callback=_version, is_eager=True)] = False,
) -> None:
    pass


def _not_imported() -> int:
    raise AssertionError("a command that is run is imported")
