"""Exit codes, and the exception that ends a command with one line on stderr."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from letterhead.errors import HeaderError, LetterheadError

OK = 0
BAD_DATA = 1
USAGE = 2
UNREADABLE = 3
INTERRUPTED = 130
# A shell reports this code for a writer after the reader closed the pipe, as in `letterhead inspect … | head`.
BROKEN_PIPE = 141


class Failure(LetterheadError):
    """End the command with one line on stderr and an exit code."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report wrong arguments as a failure; errors in the data pass."""
    try:
        yield
    except HeaderError:
        raise
    except (ValueError, TypeError) as error:
        raise Failure(str(error)) from error


def reason(error: OSError) -> str:
    """Return the reason without Python's error number."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
