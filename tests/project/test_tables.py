"""Tables and output of commands in the pages are those of the package."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from tests.helpers.pages import ROOT

TOOL = ROOT / "tools" / "tables"


@pytest.mark.slow
def test_pages_have_tables_and_output_of_package() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_tool_fills_new_marks_and_replaces_old_contents(tmp_path: Path) -> None:
    loader = SourceFileLoader("tables", str(TOOL))
    spec = importlib.util.spec_from_loader("tables", loader)
    assert spec
    tables = importlib.util.module_from_spec(spec)
    loader.exec_module(tables)
    tables.TABLES = {"one": lambda: "| 1 |"}
    filled = "<!-- table: one -->\n\n| 1 |\n\n<!-- end -->\n"
    assert tables.filled("a\n\n<!-- table: one -->\n\nb\n") == f"a\n\n{filled}\nb\n"
    assert tables.filled(f"a\n\n{filled.replace('1', '2')}\nb\n") == f"a\n\n{filled}\nb\n"
    two = "<!-- table: one -->\n\n<!-- table: one -->\n\n| 0 |\n\n<!-- end -->\n"
    assert tables.filled(two) == f"{filled}\n{filled}"
