"""Documentation, docstrings, comments, messages and names of tests use the field's words, not private ones."""

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
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "benches").rglob("*.py")])
SCRIPTS = sorted([*(ROOT / "tools").iterdir(), *(ROOT / ".github").rglob("*.yml")])

# Words of a third party, and of the table above, by the file that quotes them.
ALLOWED = {
    "benches/limits/report.py": {"faults"},  # page faults
    "python/letterhead/where/sql.py": {"kind"},  # a part of an expression of sqlglot
    "tests/python/test_words.py": {"kinds", "faults"},
}


def prose_of_page(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a page with their numbers, without code and the targets of links."""
    is_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Return the comments of a module with their lines."""
    with tokenize.open(path) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], without_code(token.string)


def without_code(line: str) -> str:
    """Return a line without its code in backticks."""
    return re.sub(r"`[^`]*`", "", line)


def prose_of_module(path: Path) -> Iterator[tuple[int, str]]:
    """Return comments, docstrings and messages of a module with their lines; of messages, those of several words."""
    yield from comments(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            for number, line in enumerate(node.value.split("\n"), node.lineno):
                if not line.lstrip().startswith((">>>", "...")):
                    yield number, without_code(line)


def prose_of_test(path: Path) -> Iterator[tuple[int, str]]:
    """Return comments and docstrings of a test or benchmark, and the words of the names of its functions."""
    yield from comments(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number, line in enumerate(node.value.value.split("\n"), node.lineno):
                yield number, without_code(line)
        elif isinstance(node, ast.FunctionDef):
            yield node.lineno, node.name.replace("_", " ")


def prose_of_script(path: Path) -> Iterator[tuple[int, str]]:
    """Return the comments of a shell script or a workflow."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("#"):
            yield number, without_code(line)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Return the prose of a file with its lines."""
    if path.suffix == ".md":
        return prose_of_page(path)
    if path in SCRIPTS:
        return prose_of_script(path)
    return prose_of_test(path) if path in TESTS else prose_of_module(path)


@pytest.mark.parametrize("path", [*PAGES, *MODULES, *TESTS, *SCRIPTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_has_no_private_words(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    is_iggy = "iggy" in path.stem or "iggy" in path.parent.name
    found = [
        f"{name}:{number}: {match.group()}: write {instead}"
        for number, line in prose(path)
        for pattern, instead in PATTERNS.items()
        for match in pattern.finditer(line)
        if not (is_iggy and IGGY_WORDS.fullmatch(match.group()))
        if match.group().lower() not in ALLOWED.get(name, ())
    ]
    assert not found, "\n".join(found)
