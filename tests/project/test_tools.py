"""The scripts in tools/ explain themselves and refuse what they do not know."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "script", sorted(path.name for path in (ROOT / "tools").iterdir() if path.is_file() and not path.suffix)
)
def test_tool_prints_help_and_rejects_unknown_argument(script):
    def call(argument):
        return subprocess.run([ROOT / "tools" / script, argument], capture_output=True, text=True, timeout=300)

    printed = call("--help")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert f"tools/{script} " in printed.stdout
    assert call("nothing-of-this-name").returncode == 2


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
def test_every_command_has_manual_page_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    subprocess.run([sys.executable, ROOT / "tools" / "man", "--out", tmp_path], check=True)
    pages = sorted((tmp_path / "man1").iterdir())
    assert {"letterhead.1", "letterhead-decode.1", "letterhead-state.1", "letterhead-state-ls.1"} <= {
        page.name for page in pages
    }
    for page in pages:
        arguments = ["man", "--warnings", "--encoding=UTF-8", "--local-file", page]
        read = subprocess.run(
            arguments, capture_output=True, text=True, check=True, env=os.environ | {"MANWIDTH": "78"}
        )
        assert read.stderr == ""
        assert "--help" in read.stdout
        assert "\b" not in read.stdout
