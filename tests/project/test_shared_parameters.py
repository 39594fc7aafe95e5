"""Parameters that many functions share: every docstring has an entry of its own for each, as `help()` and the site show it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import one_message
from letterhead._shared_parameters import insert

ROOT = Path(__file__).parents[2]


def functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    members = ((name, getattr(module, name)) for name in module.__all__)
    return {f"{module.__name__}.{name}": member for name, member in members if inspect.isfunction(member)}


def entries(docstring: str) -> Iterator[tuple[str, str, str | None]]:
    """Return the names, the type and the default of each entry of the section of parameters."""
    sections = re.split(r"^(\w[\w ]*)\n-+\n", docstring, flags=re.MULTILINE)
    for title, text in zip(sections[1::2], sections[2::2], strict=True):
        if title == "Parameters":
            for head in re.findall(r"^\S.*$", text, re.MULTILINE):
                names, _, type = head.partition(" : ")
                type, _, default = type.partition(", default ")
                yield names, type, default or None


def check(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    documented = []
    for names, type, default in entries(inspect.getdoc(function) or ""):
        assert type, f"{names} has no type"
        named = names.split(", ")
        defaults = [None] * len(named) if default is None else default.split(" and ")
        defaults = defaults * len(named) if len(defaults) == 1 else defaults
        for name, default in zip(named, defaults, strict=True):
            documented.append(name)
            assert default is None or parameters[name].default == eval(default), (name, default)
            if "optional" in type or default is not None:
                assert parameters[name].default is not inspect.Parameter.empty, name
    assert sorted(documented) == sorted(parameters)


FUNCTIONS = functions(one_message) | functions(lha) | functions(lh.read) | functions(lh.write)
FUNCTIONS |= {f"letterhead.{name}": getattr(lh, name) for name in ("open", "copy", "diff")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_has_type_and_default(name: str) -> None:
    check(FUNCTIONS[name])


def test_every_spark_parameter_has_type_and_default() -> None:
    pytest.importorskip("pyspark")
    from letterhead import spark as lhs

    for function in functions(lhs).values():
        if "documented" in function.__globals__:
            check(function)


def test_entries_keep_indentation_and_following_text() -> None:
    docstring = (
        "Decode.\n\n    Parameters\n    ----------\n    {lenient} {nulls}\n        Only here.\n    other : int\n"
    )
    lines = insert(docstring).splitlines()
    assert lines[4] == "    lenient : bool, default False"
    assert lines[-4] == '    nulls : {"skip", "raise"}, default "skip"'
    assert lines[-2:] == ["        Only here.", "    other : int"]


def test_unknown_parameter_name_raises() -> None:
    with pytest.raises(KeyError, match="lenint"):
        insert("    {lenint}\n")


def test_site_shows_same_docstrings() -> None:
    griffe = pytest.importorskip("griffe", reason="griffe, which reads the sources for the site, is not installed")
    extensions = griffe.load_extensions(str(ROOT / "docs" / "shared_parameters.py"))
    package = griffe.load("letterhead", search_paths=[str(ROOT / "python")], extensions=extensions)
    for name, function in FUNCTIONS.items():
        module = inspect.getmodule(function)
        assert module is not None
        shown = package[f"{module.__name__}.{function.__name__}".removeprefix("letterhead.")].docstring
        assert shown.value == inspect.getdoc(function), name
        for section in shown.parse("numpy", warnings=False):
            if section.kind is griffe.DocstringSectionKind.parameters:
                assert all(parameter.annotation for parameter in section.value), name
