"""The public names of the package are those that are committed."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool() -> Any:
    loader = SourceFileLoader("public_names", str(ROOT / "tools" / "public-names"))
    spec = spec_from_loader("public_names", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_public_module_without_list_of_names_raises(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "PUBLIC", ("cli.exits",))
    with pytest.raises(SystemExit, match=r"letterhead.cli.exits has no __all__"):
        tool.python_names()


def test_member_is_listed_under_defining_class(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "PUBLIC", ("state",))
    names = tool.python_names()
    assert [name for name in names if ".reverse_range(" in name] == [
        "letterhead.state.reads.KeyValueReads.reverse_range(self, low: K | None, high: K | None) -> StoreIterator[K, V]"
    ]
    bases = "letterhead.state.layers.metered.Metered, letterhead.state.reads.KeyValueReads"
    assert any(
        name.startswith("letterhead.state.KeyValueStore(") and name.endswith(f"(class: {bases})") for name in names
    )


def test_public_names_match_committed_list() -> None:
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
