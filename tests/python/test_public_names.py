"""The public names of the package are those that are committed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_public_names_are_the_committed_ones() -> None:
    for extra in ("pyspark", "hypothesis", "typer"):
        pytest.importorskip(extra)
    command = [sys.executable, ROOT / "tools" / "public-names"]
    printed = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True).stdout.splitlines()
    committed = (ROOT / "docs" / "reference" / "public-names.txt").read_text().splitlines()
    added = sorted(set(printed) - set(committed))
    removed = sorted(set(committed) - set(printed))
    changes = [*(f"- {line}" for line in removed), *(f"+ {line}" for line in added)]
    assert printed == committed, "\n".join(
        ["public names changed: run tools/public-names > docs/reference/public-names.txt", *changes]
    )
