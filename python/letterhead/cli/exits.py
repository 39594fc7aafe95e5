"""Exit codes, and the exception that ends a command with one line on stderr."""

from __future__ import annotations

from letterhead.errors import LetterheadError

OK = 0
BAD_DATA = 1
USAGE = 2
INTERRUPTED = 130
# What a shell reports for a writer whose reader has closed the pipe, as in `letterhead inspect … | head`.
BROKEN_PIPE = 141


class Failure(LetterheadError):
    """End the command with one line on stderr and an exit code."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code
