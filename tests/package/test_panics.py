"""Panics of the core: each is an exception of Python with its text and location, and stderr stays empty."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from letterhead import _native

PROVOKED = """
import sys
from letterhead import _native
for _ in range(2):
    try:
        _native._provoke_panic(sys.argv[1])
    except RuntimeError as error:
        print(error)
"""

PLACES = ("argument", "body", "core")
"""Where a panic may be: in the conversion of an argument, in the body of a function, or in work of the core."""


@pytest.mark.skipif(not hasattr(_native, "_provoke_panic"), reason="only a debug build can be made to panic")
@pytest.mark.parametrize("backtrace", ["0", "1"])
@pytest.mark.parametrize("place", PLACES)
def test_caught_panic_prints_nothing(place: str, backtrace: str) -> None:
    environment = {**os.environ, "RUST_BACKTRACE": backtrace}
    command = [sys.executable, "-c", PROVOKED, place]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert ran.stderr == ""
    first, second = ran.stdout.splitlines()
    assert first == second
    assert first.partition("letterhead failed inside: provoked (")[2].startswith("src/python/provoke.rs:")
