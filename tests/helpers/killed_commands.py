"""Commands that are killed some times, and then run to their end: :func:`run_with_kills`."""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path


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
