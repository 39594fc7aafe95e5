"""Panics of the core: each is an exception of Python with its text and location, and stderr stays empty."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from letterhead import _native

PROVOKED = """
from letterhead import _native
for _ in range(2):
    try:
        _native._provoke_panic()
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.skipif(not hasattr(_native, "_provoke_panic"), reason="only a debug build can be made to panic")
@pytest.mark.parametrize("backtrace", ["0", "1"])
def test_a_caught_panic_prints_nothing(backtrace: str) -> None:
    environment = {**os.environ, "RUST_BACKTRACE": backtrace}
    command = [sys.executable, "-c", PROVOKED]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert ran.stderr == ""
    first, second = ran.stdout.splitlines()
    assert first == second
    assert first.startswith("letterhead failed inside: provoked (src/python/gil.rs:")
