"""Fill in what the package itself knows, when the documentation is built, so that the two cannot drift apart.

* `<!-- codes -->`: the table of error codes, from `letterhead.errors.CODES`;
* `<!-- formats -->`: the table of formats, from the native module;
* `<!-- run: letterhead … -->`: the command and what it prints. `<!-- run, exit 1: … -->` where it has to fail.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

RUN = re.compile(r"<!-- run(?:, exit (?P<exit>\d+))?: (?P<command>letterhead .+?) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of one page."""
    markdown = markdown.replace("<!-- codes -->", codes()) if "<!-- codes -->" in markdown else markdown
    markdown = markdown.replace("<!-- formats -->", formats()) if "<!-- formats -->" in markdown else markdown
    return RUN.sub(lambda mark: run(mark["command"], int(mark["exit"] or 0)), markdown)


def codes() -> str:
    """Make the table of error codes."""
    from letterhead.errors import CODES

    return table(["code", "meaning"], [[f"`{code}`", meaning] for code, meaning in CODES.items()])


def formats() -> str:
    """Make the table of formats."""
    from letterhead import _native

    return table(
        ["format", "is", "from", "bytes"],
        [[f"`{row['name']}`", row["is_"], row["source"], row["layout"]] for row in _native.formats()],
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def run(command: str, exit_code: int) -> str:
    """Run a command of this environment and show it with its output."""
    words = shlex.split(command)
    words[0] = str(Path(sys.executable).with_name(words[0]))
    environment = {**os.environ, "COLUMNS": "96", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120, check=False)
    if done.returncode != exit_code:
        raise PluginError(f"{command}: exit code {done.returncode} instead of {exit_code}: {done.stderr}")
    return f"```text\n$ {command}\n{(done.stdout + done.stderr).rstrip()}\n```"
