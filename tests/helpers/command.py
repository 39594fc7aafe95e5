"""Runs of the command in this process."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from letterhead.cli import main


def bytes_of(value: Any) -> bytes | None:
    """Return the bytes of a value that a command printed as JSON."""
    return value.encode() if isinstance(value, str) else value and base64.b64decode(value["base64"])


def milliseconds(time: str) -> int:
    """Return a time that a command printed as JSON in milliseconds since 1970."""
    return (datetime.fromisoformat(time) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


class Result:
    """What one run of the command gave."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.raw = out
        # `encode` and `convert` write bytes; they are looked at as `raw`.
        self.out = out.decode(errors="replace")
        self.err = err.decode()

    @property
    def lines(self) -> list[str]:
        """What was printed, without empty lines and the ends that pad a table."""
        return [line.rstrip() for line in self.out.splitlines() if line.strip()]


def rows_of(result: Result) -> list[dict[str, Any]]:
    """Return the rows that a command printed as JSON lines; it must have ended well."""
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.lines]


def runner(capfdbinary: Any, monkeypatch: Any) -> Callable[..., Result]:
    """Make what runs the command, with bytes on standard input, and with tables of the width of a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*args: str | Path, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(arg) for arg in args])
        sys.stdout.flush()
        return Result(code, *capfdbinary.readouterr())

    return run
