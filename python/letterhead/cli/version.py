"""`letterhead --version`, without importing other modules of the command."""

from __future__ import annotations

import sys

from letterhead import _native
from letterhead.cli.exits import OK
from letterhead.cli.output import end_of_output

__all__ = ["print_version"]


def print_version() -> int:
    """Print the version, and return the exit code."""
    try:
        print(f"letterhead {_native.__version__}")
        sys.stdout.flush()
    except OSError as error:
        return end_of_output(error)
    return OK
