"""The scripts in tools/ explain themselves and refuse what they do not know; a release's files have distinct names."""

from __future__ import annotations

import subprocess
import sys
import zipfile
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


def test_jobs_of_one_release_name_their_files_apart(tmp_path):
    # All go into one directory. A bill of materials is named after its wheel, or after the platform.
    names = set()
    for tag in ("manylinux_2_17_x86_64", "manylinux_2_17_aarch64"):
        with zipfile.ZipFile(tmp_path / f"letterhead-0.1.0-cp311-abi3-{tag}.whl", "w") as archive:
            archive.writestr("letterhead-0.1.0.dist-info/sboms/letterhead.cyclonedx.json", tag)
        subprocess.run([sys.executable, ROOT / "tests/wheels/bill.py", tmp_path], check=True, timeout=300)
        names.add(tag)
    bills = {path.read_text(): path.name for path in tmp_path.glob("*.cdx.json")}
    assert bills == {tag: f"letterhead-0.1.0-cp311-abi3-{tag}.cdx.json" for tag in names}
