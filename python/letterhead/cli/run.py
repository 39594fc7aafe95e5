"""Run the command: every expected failure becomes one line on stderr and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from letterhead.cli.commands import app_for
from letterhead.cli.common import restore_settings
from letterhead.cli.completion import prepare_completion
from letterhead.cli.exits import BAD_DATA, INTERRUPTED, OK, USAGE, Failure, as_options
from letterhead.cli.formats import row_of
from letterhead.cli.output import end_of_output, prepare_streams
from letterhead.cli.render import warn
from letterhead.cli.signals import Terminated, termination
from letterhead.errors import ConversionError, DecodeError, HeaderError

# typer below 0.16 uses the package click, later versions bundle a copy: this finds the base class of usage errors in
# either.
UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    # Python sets `sys.stdout` to None if the parent process closed it.
    if sys.stdout is None:
        return _fail("standard output is closed: give it a file, a pipe, or /dev/null", USAGE)
    prepare_streams()
    args = sys.argv[1:] if argv is None else list(argv)
    command: Any = None
    try:
        with restore_settings(), warnings.catch_warnings(), termination():
            command = typer.main.get_command(app_for(None if prepare_completion() else args))
            code = command.main(args=args, prog_name="letterhead", standalone_mode=False)
            sys.stdout.flush()
        if code == INTERRUPTED:
            return _fail("interrupted", INTERRUPTED)  # typer returns an exit code for an interrupt
        return code if isinstance(code, int) else OK
    except Failure as failure:
        return _fail(str(failure), failure.exit_code)
    except ConversionError as error:
        return _fail(f"{as_options(str(error))}{_drop(error, command, args)}", BAD_DATA)
    except HeaderError as error:
        return _fail(f"{as_options(str(error))}{_keep_rows(error, command, args)}", BAD_DATA)
    except UsageError as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "letterhead")
        message = error.format_message().rstrip(".").replace("\n", " ").replace("\t", "").replace("Value error, ", "")
        return _fail(f"{message} (see {path} --help)", USAGE)
    except OSError as error:
        return end_of_output(error)
    except SystemExit as leaving:
        # typer turns a broken pipe into SystemExit.
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return end_of_output(leaving.__context__)
    except Terminated as signal:
        return _fail("terminated", signal.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)


def _called(app: Any, args: Sequence[str]) -> tuple[str, set[str]]:
    """Return the name of the invoked command, and its options."""
    name = next((word for word in args if word in app.commands), "")
    options = app.commands[name].params if name else ()
    return name, {text for option in options for text in option.opts}


def _drop(error: ConversionError, app: Any, args: Sequence[str]) -> str:
    """Return the remedies for a value that the target cannot hold, if the command has options for it."""
    if "--on-loss" not in _called(app, args)[1]:
        return f" ({error.code})"
    return f"; {_lossless(error)}or leave it out with --on-loss drop ({error.code})"


def _lossless(error: ConversionError) -> str:
    """Return the remedy that keeps the value unchanged."""
    if error.code == "unknown_type":
        return ""  # the message already names the remedy
    wrong_type = error.code in ("wrong_type", "wrong_size", "bad_bool", "bad_text", "value_not_utf8")
    if wrong_type and error.format is not None and row_of(error.format).types:
        return "pass the type that fits (--types KEY=TYPE), --types binary for the bytes as they are, "
    return "choose a format that carries it, "


def _keep_rows(error: HeaderError, app: Any, args: Sequence[str]) -> str:
    """Return the option that shows all rows despite an error, if the command has it."""
    is_one_of_many = isinstance(error, DecodeError) and (error.row, error.offset, error.column) != (None,) * 3
    name, options = _called(app, args)
    if not is_one_of_many:
        return ""
    words = {word.partition("=")[0] for word in args}
    # --errors of copy concerns typed columns: no record is dropped.
    if name == "diff" or (name == "copy" and ("--where" in words or error.column is None)):
        from letterhead.operations.remedies import bytes_remedy

        same = " and ".join(option for option in ("--where", "--headers") if option in words)
        needed = f"the same {same}, and --errors only" if same else "--errors only"
        return f"; to see such records, run letterhead read with {needed}{bytes_remedy(error)}"
    if "--errors" not in options:
        return ""
    return "; to see all rows, with their errors, pass --errors column"


def _fail(message: str, code: int) -> int:
    warn(message)
    return code
