"""What type checkers are told is what happens: `make check` checks tests/typing, and here it is run."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from letterhead import _native, types

ROOT = Path(__file__).parents[2]
TYPING = ROOT / "tests" / "typing"


@pytest.mark.parametrize("name", sorted(path.name for path in TYPING.glob("*.py")))
def test_values_have_the_documented_types(name: str) -> None:
    runpy.run_path(str(TYPING / name))


@pytest.mark.parametrize(
    ("is_", "message"),
    [("headers", types.HeadersFormat), ("message", types.MessageFormat), ("batch", types.BatchFormat)],
)
def test_names_in_type_hints_match_table(is_: str, message: object) -> None:
    assert list(get_args(message)) == [row["name"] for row in _native.formats() if row["is_"] == is_]


def test_headers_format_encodes_null_to_no_bytes() -> None:
    targets = [row["name"] for row in _native.formats() if row["is_"] == "headers" and row["is_target"]]
    assert [_native.encode(None, name) for name in targets] == [b""] * len(targets)


def test_stub_matches_native_module(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # Names and parameters are compared; `make check` checks the types that the stub imports, which takes ten times as long.
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy.stubtest", "letterhead._native", "--mypy-config-file", str(settings)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
