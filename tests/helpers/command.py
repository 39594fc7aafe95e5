"""Runs of the command in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from letterhead.cli import main


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


def runner(capfdbinary: Any, monkeypatch: Any) -> Callable[..., Result]:
    """Make what runs the command, with bytes on standard input, and with tables of the width of a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*args: str | Path, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(arg) for arg in args])
        sys.stdout.flush()
        return Result(code, *capfdbinary.readouterr())

    return run
