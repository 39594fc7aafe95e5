"""The code of the documentation, for tests to run it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def fences(text: str) -> list[tuple[str, str]]:
    """Return every fenced block of a page: how it is marked, and its lines."""
    blocks = re.findall(r"^( *)(`{3,}|~{3,})([^\n]*)\n(.*?)^\1\2 *$", text, re.MULTILINE | re.DOTALL)
    return [(info.strip(), code) for _, _, info, code in blocks]


def blocks(page: str, info: str = "python") -> list[str]:
    """Return the fenced blocks of a page that are marked with exactly this."""
    return [code for mark, code in fences((ROOT / page).read_text(encoding="utf-8")) if mark == info]


def run(page: str, names: dict[str, Any], info: str = "python", there: Mapping[str, str] | None = None) -> None:
    """Run the blocks of a page, one after the other.

    Parameters
    ----------
    page : str
        Its path from the root.
    names : dict of str to Any
        What the page takes for granted; afterwards, what it has defined as well.
    info : str
        How the blocks are marked.
    there : mapping of str to str, optional
        What the page says to what stands for it here. All of it has to be in the page.
    """
    code = blocks(page, info)
    assert code, f"{page} has no block that is marked {info}"
    for output, real in (there or {}).items():
        assert any(output in block for block in code), f"{page} does not say {output}"
        code = [block.replace(output, real) for block in code]
    for block in code:
        exec(compile(block, page, "exec"), names)
