"""The code of the README, and what it claims."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def blocks(info: str, page: Path | None = None) -> list[str]:
    """Give the fenced blocks that are marked with exactly this."""
    text = (page or README).read_text(encoding="utf-8")
    return re.findall(rf"^```{re.escape(info)}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def claims() -> list[tuple[str, str, str]]:
    """Give what the README claims, with the file and the name of the test that it names beside it."""
    text = README.read_text(encoding="utf-8")
    return re.findall(r"^\| (.+) \| `(tests/[\w/]+\.py)::(test_\w+)` \|$", text, re.MULTILINE)
