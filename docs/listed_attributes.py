"""An extension of griffe: the attributes that a class lists in its docstring are not shown a second time as members."""

from __future__ import annotations

from typing import Any

import griffe

LISTS = {griffe.DocstringSectionKind.attributes, griffe.DocstringSectionKind.parameters}


class ListedAttributes(griffe.Extension):
    """Hide attributes without a docstring of their own if a section of their class has them, as attributes or as parameters."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Hide them when the class has been loaded with its members."""
        sections = cls.docstring.parse("numpy", warnings=False) if cls.docstring else []
        listed = [
            item.name
            for section in sections
            if section.kind in LISTS
            for item in section.value
        ]
        for name in ", ".join(listed).split(", "):
            member = cls.members.get(name)
            if isinstance(member, griffe.Attribute) and not member.has_docstring:
                cls.del_member(name)
