"""Exit codes, and the exception that ends a command with one line on stderr."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from letterhead.errors import HeaderError, LetterheadError
from letterhead.fields import RepeatedColumnError

OK = 0
BAD_DATA = 1
USAGE = 2
UNREADABLE = 3
INTERRUPTED = 130
# Exit code that a shell reports for a writer after the reader closed the pipe, as in `letterhead inspect … | head`.
BROKEN_PIPE = 141


EXIT_CODES = "Exit codes: 0 success; 1 errors in the data, or a failed check; 2 wrong usage; 3 a source does not exist, or cannot be reached or read, or the output cannot be written; 130 interrupted, 141 the reader of a pipe is gone, 143 terminated."

# Parameter in an error, as in "pass retention=, as the application does", "use mapping='lossless'", or "start is after
# the end".
_PARAMETER = re.compile(
    r"(?<![\w.])(?:([a-z][a-z_]+)=(?=[ ,.:;)]|$)|([a-z][a-z_]+)='(?P<value>[\w@-]+)'|(start|end)(?= (?:is|must|has|names) )|^(start|end)(?=: )|(?<=leave out )(end)$|(?<=is before )(start)$)"
)

# Options whose names differ from the names of the parameters.
_OPTIONS = {
    "partitions": "partition",
    "isolation_level": "committed",
    "settings": "config",
    "timeout_ms": "timeout",
    "subject": "value-subject",
    "schema": "value-schema",
}


class Failure(LetterheadError):
    """Error that ends the command with one line on stderr and an exit code."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report wrong arguments as a failure; errors in the data pass through."""
    try:
        yield
    except HeaderError:
        raise
    except (ValueError, TypeError) as error:
        raise Failure(usage_message(error)) from error


def usage_message(error: Exception) -> str:
    """Return the message of an error about arguments, in terms of the command line."""
    if isinstance(error, RepeatedColumnError):
        name = error.column
        return f"two columns {name!r} would be made: rename the one of --headers, as in header_{name}={name}:string"
    return as_options(str(error))


def as_options(message: str) -> str:
    """Replace the names of parameters in an error by the names of options."""
    return _PARAMETER.sub(_option, message).replace("a mapping of partition to one of these", "0=POINT,1=POINT")


def _option(match: re.Match[str]) -> str:
    value = match["value"]
    name = next(group for group in match.groups() if group)
    option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
    return option if value is None else f"{option} {value}"


def reason(error: OSError) -> str:
    """Return the reason without Python's error number."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def describe(error: OSError) -> str:
    """Return the path that could not be read and the reason, or the message of a connection error."""
    if error.errno is None or error.strerror is None:
        return str(error)
    return f"cannot read {error.filename}: {reason(error)}" if error.filename is not None else reason(error)
