"""Commands and programs that are killed: :func:`run_with_kills`, and :func:`start_program` for one that tells how far it is."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO


def run_with_kills(command: Sequence[str | Path], kills: int, seconds: tuple[float, float], seed: str | int) -> None:
    """Start a command again and again, kill it after some seconds, and let the last run end.

    A run that ended before it was killed must have succeeded, as must the last one.
    """
    chance = random.Random(seed)
    for kill in (True,) * kills + (False,):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            process.wait(chance.uniform(*seconds) if kill else 300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), errors
    assert process.returncode == 0


def start_program(program: str, *arguments: str | Path) -> tuple[subprocess.Popen[str], IO[str], IO[str]]:
    """Start a program of Python; return its process, input and output."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    return process, process.stdin, process.stdout
