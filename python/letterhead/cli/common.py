"""Options that every command has: `--quiet` and `--no-color`."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from letterhead.cli.options import flag
from letterhead.cli.render import SETTINGS

__all__ = ["add_common_options", "common_options"]

Quiet = Annotated[bool, flag("--quiet -q", "Print no progress and no notes: results, warnings and errors only.")]
NoColor = Annotated[bool, flag("--no-color", "Print no colours and no bold text.")]


def add_common_options(app: typer.Typer) -> None:
    """Add the options to all commands of an app, and to the app itself: they may be before or after a command's name."""
    for command in [*app.registered_commands, app.registered_callback]:
        if command is not None and command.callback is not None:
            command.callback = _with_common_options(command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_common_options(group.typer_instance)


@contextmanager
def common_options() -> Iterator[None]:
    """Undo what the options of a command set, after it."""
    quiet, no_color = SETTINGS.quiet, os.environ.get("NO_COLOR")
    try:
        yield
    finally:
        SETTINGS.quiet = quiet
        if no_color is None:
            os.environ.pop("NO_COLOR", None)


def _with_common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def run(*, quiet: bool, no_color: bool, **arguments: Any) -> Any:
        SETTINGS.quiet |= quiet
        if no_color:
            os.environ["NO_COLOR"] = "1"
        return command(**arguments)

    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in (("quiet", Quiet), ("no_color", NoColor))
    ]
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
    ]
    run.__signature__ = inspect.Signature([*parameters, *common])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*parameters, *common]}
    return run
