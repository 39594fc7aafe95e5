"""A run of the command, and what becomes of what goes wrong in it: a line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from letterhead._formatting import printable
from letterhead.cli.commands import app
from letterhead.cli.exits import BROKEN_PIPE, FAULTS, INTERRUPTED, OK, USAGE, Failure
from letterhead.cli.formats import row_of
from letterhead.errors import ConversionError, HeaderError

# typer below 0.16 uses the package click, later ones carry their own copy: the base of usage errors is
# taken from whichever one this typer has.
UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command; every foreseen failure is one line on stderr and an exit code."""
    # Python has none where it was closed by whoever started the command.
    if sys.stdout is None:
        return _say("standard output is closed: give it a file, a pipe, or /dev/null", USAGE)
    command = typer.main.get_command(app)
    args = sys.argv[1:] if argv is None else list(argv)
    try:
        # No command is wrong usage all the same: the exit code says so, the help says what there is.
        code = command.main(args=args or ["--help"], prog_name="letterhead", standalone_mode=False)
        sys.stdout.flush()
        if not args:
            return USAGE
        return code if isinstance(code, int) else OK
    except Failure as failure:
        return _say(str(failure), failure.exit_code)
    except ConversionError as error:
        return _say(f"{error}; {_lossless(error)}or leave it out with --on-loss drop ({error.code})", FAULTS)
    except HeaderError as error:
        return _say(str(error), FAULTS)
    except UsageError as error:
        return _say(_usage_message(error), USAGE)
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as leaving:
        # What typer makes of a broken pipe.
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        return _reader_gone()
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted", INTERRUPTED)


def _lossless(error: ConversionError) -> str:
    """Name what keeps a value that cannot be converted as it is."""
    if error.code == "unknown_type":
        return ""  # the message names it
    wrong_type = error.code in ("wrong_type", "wrong_size", "bad_bool", "bad_text", "value_not_utf8")
    if wrong_type and error.format is not None and row_of(error.format)["types"]:
        return "pass the type that fits (--type KEY=TYPE), --types binary for the bytes as they are, "
    return "choose a format that carries it, "


def _reader_gone() -> int:
    # Python flushes stdout once more at exit; give it somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def _usage_message(error: Any) -> str:
    message = error.format_message().rstrip(".").replace("\n", " ")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "letterhead"
    return f"{message} (see {path} --help)"


def _say(message: str, code: int) -> int:
    print(f"letterhead: {printable(message)}", file=sys.stderr)
    return code
