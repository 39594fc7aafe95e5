"""The functions of one job have the same parameters on every surface, as the page of names says."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "names.md"
MODULES = {"lh": "letterhead", "lha": "letterhead.arrow", "lhs": "letterhead.spark"}
CHOICES = {"errors": {"raise", "null", "column"}, "nulls": {"keep", "skip", "raise"}}


def rows(number: int) -> list[list[str]]:
    table = re.findall(r"(?:^\|.*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[number]
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]


def function(name: str) -> Any:
    module, *path = name.strip("`").split(".")
    return reduce(getattr, path, importlib.import_module(MODULES[module]))


def functions_of_job(cells: list[str]) -> dict[str, Any]:
    return {cell: function(cell) for cell in cells[1:4] if cell}


@pytest.fixture(autouse=True)
def _extras() -> None:
    pytest.importorskip("pyspark")


@pytest.mark.parametrize("cells", rows(0), ids=lambda cells: cells[0])
def test_parameter_has_one_default_on_every_surface(cells: list[str]) -> None:
    found: dict[str, dict[str, Any]] = {}
    for name, value in functions_of_job(cells).items():
        for parameter in inspect.signature(value).parameters.values():
            if parameter.default is not inspect.Parameter.empty:
                found.setdefault(parameter.name, {})[name] = parameter.default
    assert {name: uses for name, uses in found.items() if len({repr(default) for default in uses.values()}) > 1} == {}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_have_one_vocabulary(name: str) -> None:
    words = {
        word
        for cells in rows(0)
        for value in functions_of_job(cells).values()
        if (parameter := inspect.signature(value).parameters.get(name)) is not None
        for word in re.findall(r"'([^']*)'", re.sub(r"OnError", "'raise'", str(parameter.annotation)))
    }
    assert words
    assert words <= CHOICES[name]


def test_commands_and_options_of_page_exist() -> None:
    public = (ROOT / "docs" / "reference" / "public-names.txt").read_text(encoding="utf-8")
    commands = [cells[4].strip("`").split() for cells in rows(0) if cells[4]]
    assert [words for words in commands if f"letterhead {words[0]} " not in public] == []
    assert [words for words in commands if words[1:] and f"letterhead {words[0]} {words[1]}" not in public] == []
    for _, _, command, option in rows(1):
        for flag in re.findall(r"`(--[\w-]+)`", command):
            assert f"letterhead read {flag}" in public
        for name in re.findall(r"`(\w+)`", option):
            assert re.search(rf"^letterhead-\w+ {name}$", public, re.MULTILINE), name
