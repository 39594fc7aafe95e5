"""Parameters of public functions: each has an entry in the docstring, with its type and its default."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import one_message


def functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    members = ((name, getattr(module, name)) for name in module.__all__)
    return {f"{module.__name__}.{name}": member for name, member in members if inspect.isfunction(member)}


def entries(docstring: str) -> Iterator[tuple[str, str, str | None]]:
    """Return the names, the type and the default of each entry of the section of parameters."""
    sections = re.split(r"^(\w[\w ]*)\n-+\n", docstring, flags=re.MULTILINE)
    for title, text in zip(sections[1::2], sections[2::2], strict=True):
        if title == "Parameters":
            for head, body in re.findall(r"^(\S.*)\n((?: .*\n?|\n)*)", text, re.MULTILINE):
                names, _, type = head.partition(" : ")
                # Parameters of another function are documented there.
                type = type or " ".join(re.findall(r"^ +(As in :func:.*)", body))
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
        check(function)
