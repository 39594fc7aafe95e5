"""Parsers of text, and functions of many keys, take time in proportion to their input; tests/load/growth.py measures all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "load" / "growth.py"

CASES = (
    "columns as text of blanks before a type", "columns as text of an unclosed type", "columns as text of many columns",
    "where with many or as text", "where with many literals as text", "unclosed references of a setting",
    "properties of many continuations", "jaas of blanks", "headers get of many keys", "headers edit of many keys",
    "select of many columns of lists",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind counts the instructions")
def test_doubled_input_takes_about_double_work() -> None:
    measured = subprocess.run([sys.executable, SCRIPT, *CASES], capture_output=True, text=True, check=False)
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert [name for name in CASES if name not in measured.stdout] == []
