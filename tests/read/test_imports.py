"""Imports point one way: storage below readers and stores, stores below nothing but topologies and the command line."""

from __future__ import annotations

import ast
from pathlib import Path

import letterhead

ROOT = Path(letterhead.__file__).parent


def imported(folder: str) -> set[tuple[str, str]]:
    """Return each module below a folder with each package of ours that it imports anywhere."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            module = path.relative_to(ROOT).as_posix()
            found |= {(module, name.split(".")[1]) for name in names if name.startswith("letterhead.")}
    return found


def test_storage_and_readers_import_no_stores() -> None:
    assert {package for _, package in imported("storage")}.isdisjoint({"read", "spark", "state", "cli"})
    assert {package for _, package in imported("read")}.isdisjoint({"spark", "state", "cli"})
    assert {package for _, package in imported("state")}.isdisjoint({"read", "spark", "cli"})


def test_only_topologies_on_spark_import_stores() -> None:
    of_state = {module for module, package in imported("spark") if package == "state"}
    assert {module for module in of_state if not module.startswith("spark/topology/")} == set()
