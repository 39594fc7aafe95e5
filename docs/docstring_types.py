"""An extension of griffe that shows the types of parameters as docstrings name them, and the defaults that the code has."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTIONS = {
    griffe.DocstringSectionKind.attributes,
    griffe.DocstringSectionKind.parameters,
    griffe.DocstringSectionKind.raises,
}
ENTRY = re.compile(r"^ *(?P<names>\w+(?:, \w+)*) : (?P<type>.+)$", re.MULTILINE)


class DocstringTypes(griffe.Extension):
    """Show the types that are no expressions of Python as text."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Adjust the parameters of a loaded function."""
        restore(func.docstring, func.parameters)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Adjust the parameters of a loaded class."""
        restore(cls.docstring, cls.parameters)


def restore(docstring: griffe.Docstring | None, parameters: griffe.Parameters) -> None:
    """Replace types that griffe has changed by the text of the docstring, and defaults that it has guessed."""
    if docstring is None:
        return
    types = {
        name: text(entry["type"])
        for entry in ENTRY.finditer(docstring.value)
        for name in entry["names"].split(", ")
    }
    for section in docstring.parsed:
        if section.kind in SECTIONS:
            for item in section.value:
                if section.kind is griffe.DocstringSectionKind.raises:
                    item.annotation = str(item.annotation).strip("()")
                elif item.name in types and types[item.name] != str(item.annotation):
                    item.annotation = types[item.name]
                if (
                    section.kind is griffe.DocstringSectionKind.parameters
                    and item.name in parameters
                ):
                    item.value = parameters[item.name].default
                    if item.name not in types:
                        # griffe gives parameters of one entry the type of the first.
                        item.annotation = parameters[item.name].annotation


def text(type: str) -> str:
    """Return a type without its default, and choices without their braces."""
    type = re.sub(r", (?:optional|default:? .*)$", "", type)
    return type[1:-1] if type.startswith("{") and type.endswith("}") else type
