"""Commands that pages show exist, and have the options that they use; where a page shows output, another test compares it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.helpers.pages import PAGES, ROOT, fences

PUBLIC = (ROOT / "docs" / "reference" / "public-names.txt").read_text(encoding="utf-8")
GENERAL = {"--help", "-h", "--version", "-V", "--quiet", "-q", "--no-color", "--tz"}


def commands(page: Path) -> list[str]:
    """Return the commands of a page: those of blocks, and those in a line of text or a cell."""
    text = page.read_text(encoding="utf-8")
    blocks = [code.replace("\\\n", " ") for mark, code in fences(text) if mark == "sh"]
    inline = re.findall(r"`(letterhead [^`]*)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))
    lines = [line for block in blocks for line in block.splitlines()] + inline
    parts = [part.strip() for line in lines for part in re.split(r" \| |; ", line)]
    return [part for part in parts if part.startswith("letterhead ")]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_page_commands_exist_with_their_options(page: Path) -> None:
    for line in commands(page):
        first, *words = shlex.split(line.replace("...", "").replace("…", ""), comments=True)[1:] or ["--help"]
        if first.startswith("-"):
            assert first in GENERAL, line
            continue
        names = [first, *words[:1]] if first in ("state", "group") else [first]
        own = [
            entry.split()[len(names) + 1 :] for entry in re.findall(rf"^letterhead {' '.join(names)} .*$", PUBLIC, re.M)
        ]
        assert own or not words or names == ["doctor"] or names == ["formats"], line
        options = {option.split("=")[0] for option in words if re.fullmatch(r"-[A-Za-z]|--[a-z][a-z-]*(=.*)?", option)}
        assert options <= {option for entry in own for option in entry} | GENERAL, line


def test_pages_show_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 50
