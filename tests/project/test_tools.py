"""The scripts in tools/ explain themselves and refuse what they do not know."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "tools").iterdir() if not path.suffix))
def test_a_tool_explains_itself_and_refuses_what_it_does_not_know(script):
    def call(argument):
        return subprocess.run([ROOT / "tools" / script, argument], capture_output=True, text=True, timeout=300)

    printed = call("--help")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert f"tools/{script} " in printed.stdout
    assert call("nothing-of-this-name").returncode == 2
