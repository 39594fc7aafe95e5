"""The packages of extras, as pyproject.toml has them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def packages(*extras: str) -> list[str]:
    """Return the requirements of extras, and of the extras that these include, in the order of the file."""
    found: dict[str, None] = {}
    for extra in (name for name in _EXTRAS if name in extras):
        for requirement in _EXTRAS[extra]:
            nested = re.fullmatch(r"letterhead\[(.*)\]", requirement)
            found |= dict.fromkeys(packages(*nested[1].split(",")) if nested else [requirement])
    return list(found)


def spelled_out(message: str) -> str:
    """Return a message with ``'letterhead[...]'`` spelled as packages, as errors have it."""

    def quoted(match: re.Match[str]) -> str:
        return " ".join(f"'{package}'" for package in packages(*match[1].split(",")))

    return re.sub(r"'letterhead\[([a-z0-9,-]*)\]'", quoted, message)
