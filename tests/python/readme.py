"""The code of the README."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def blocks(info: str) -> list[str]:
    """Give the fenced blocks that are marked with exactly this."""
    return re.findall(rf"^```{re.escape(info)}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
