"""Documentation, docstrings, comments and messages use the field's words, not private ones."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What a reader would have to learn first, and what the field says instead.
BANNED = {
    r"cells?": "value, message or row",
    r"envelopes?": "message or message format",
    r"faults?": "error",
    r"held (to|by)": "verified by",
    r"kinds?": "type",
    r"twins?": "reference implementation",
    r"verbs?": "function or operation",
    r"what (is here|there is)": "available",
}
PATTERNS = {re.compile(rf"\b{word}\b", re.IGNORECASE): instead for word, instead in BANNED.items()}

# Iggy's own interface has kinds of headers and of identifiers.
IGGY_WORDS = re.compile(r"kinds?", re.IGNORECASE)

PAGES = [
    path
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    if not path.is_relative_to(ROOT / "docs/benchmarks")
]
MODULES = sorted((ROOT / "python/letterhead").rglob("*.py"))


def prose_of_page(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a page with their numbers, without code and the targets of links."""
    is_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)


def prose_of_module(path: Path) -> Iterator[tuple[int, str]]:
    """Return comments, docstrings and messages of a module with their lines; of messages, those of several words."""
    with tokenize.open(path) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            for number, line in enumerate(node.value.split("\n"), node.lineno):
                if not line.lstrip().startswith((">>>", "...")):
                    yield number, re.sub(r"`[^`]*`", "", line)


@pytest.mark.parametrize("path", [*PAGES, *MODULES], ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_has_no_private_words(path: Path) -> None:
    is_iggy = "iggy" in path.stem or "iggy" in path.parent.name
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}: write {instead}"
        for number, line in (prose_of_page if path.suffix == ".md" else prose_of_module)(path)
        for pattern, instead in PATTERNS.items()
        for match in pattern.finditer(line)
        if not (is_iggy and IGGY_WORDS.fullmatch(match.group()))
    ]
    assert not found, "\n".join(found)
