"""Shell completion of commands: the script, and completed names."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from letterhead._formats import format_table
from letterhead.cli.command_table import VARIABLE
from letterhead.cli.exits import OK
from letterhead.cli.sniff import AUTO
from letterhead.errors import LetterheadError

__all__ = ["complete_formats", "complete_stores", "complete_targets", "completion_command", "prepare_completion"]

PROGRAM = "letterhead"

Shell = StrEnum("Shell", {"bash": "bash", "zsh": "zsh", "fish": "fish"})


def completion_command(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)],
) -> int:
    """Print a script that completes commands, options, formats and stores.

    \b
    Examples:
      eval "$(letterhead completion bash)"
      letterhead completion zsh > "${fpath[1]}/_letterhead"
      letterhead completion fish > ~/.config/fish/completions/letterhead.fish
    """
    from typer import completion

    script = completion.get_completion_script(  # type: ignore[attr-defined]
        prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value
    )
    print(script)
    return OK


def prepare_completion() -> bool:
    """Enable completion if the shell's completion function started this process; return whether it did."""
    if VARIABLE not in os.environ:
        return False
    from typer import completion

    completion.completion_init()  # type: ignore[attr-defined]
    return True


def complete_formats(incomplete: str) -> list[tuple[str, str]]:
    """Return the formats that can be read, with their descriptions."""
    return _beginning(incomplete, [(AUTO, "the format that fits"), *_formats(writable=False)])


def complete_targets(incomplete: str) -> list[tuple[str, str]]:
    """Return the formats that can be written, with their descriptions."""
    return _beginning(incomplete, _formats(writable=True))


def complete_stores(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the names of the stores in the directory on the command line."""
    from letterhead.state.reading.directory import find_stores

    # An option without its value stops the parsing of a command line, so the words after the command are in `args`.
    directory = next((Path(word) for word in ctx.args if Path(word).is_dir()), Path())
    try:
        stores = find_stores(directory, None)
    except (OSError, LetterheadError):
        return []
    return _beginning(incomplete, sorted({(store.name, "") for store in stores}))


def _formats(*, writable: bool) -> list[tuple[str, str]]:
    rows = format_table().values()
    return [(row.name, row.source) for row in rows if row.is_target or not writable]


def _beginning(incomplete: str, names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, description) for name, description in names if name.startswith(incomplete)]
