"""Fill in what the package itself knows, when the documentation is built, so that the two cannot drift apart.

* `<!-- codes -->`: the table of error codes, from `letterhead.errors.CODES`;
* `<!-- formats -->`: the table of formats, from the native module, each with a link to the page whose title names it;
  `<!-- carries -->`: what each of them carries;
* `<!-- types -->`: the table of types and their codes, from the native module;
* `<!-- profiles -->`: the headers of every convention, from `letterhead.conventions`;
* `<!-- contributing -->`: `CONTRIBUTING.md`, which stands where contributors look for it, without its title;
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

DOCS = Path(__file__).parent
WIDTH = 96  # what a page shows of a line without scrolling
RUN = re.compile(r"<!-- run(?:, exit (?P<exit>\d+))?: (?P<command>letterhead .+?) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of one page. The empty line that ends an example is for doctest, and not for readers."""
    markdown = markdown.replace("\n\n```\n", "\n```\n")
    # A second word says which test runs a block; the renderer knows of one.
    markdown = re.sub(r"^(```\w+) \w+$", r"\1", markdown, flags=re.MULTILINE)
    marks = {
        "codes": codes,
        "formats": formats,
        "carries": carries,
        "types": types,
        "profiles": profiles,
        "contributing": contributing,
    }
    for mark, made in marks.items():
        markdown = markdown.replace(f"<!-- {mark} -->", made()) if f"<!-- {mark} -->" in markdown else markdown
    return RUN.sub(lambda mark: run(mark["command"], int(mark["exit"] or 0)), markdown)


def codes() -> str:
    """Make the table of error codes."""
    from letterhead.errors import CODES

    return table(["code", "meaning"], [[f"`{code}`", meaning] for code, meaning in CODES.items()])


def profiles() -> str:
    """Make a table for each convention."""
    from letterhead.conventions import PROFILES

    parts = []
    for made in PROFILES.values():
        rows = [[f"`{row.column}`", f"`{row.header}`", f"`{row.type}`", row.note] for row in made.rows]
        head = f"### {made.name}\n\n{made.title}. Source: {made.source}."
        parts.append(f"{head}\n\n{table(['column', 'header', 'type', 'value'], rows)}")
    return "\n\n".join(parts)


def formats() -> str:
    """Make the table of formats."""
    from letterhead import _native

    pages = format_pages()
    return table(
        ["format", "is", "from", "bytes"],
        [
            [f"[`{row['name']}`]({pages[row['name']]})", row["is_"], row["source"], row["layout"]]
            for row in _native.formats()
        ],
    )


def format_pages() -> dict[str, str]:
    """Say on which page each format is: the title of a page is the names of its formats."""
    pages = {}
    for page in sorted((DOCS / "formats").glob("*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        pages |= dict.fromkeys(title.split(", "), f"formats/{page.name}")
    return pages


def contributing() -> str:
    """Give the page for contributors without its title."""
    return (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n")[2]


def carries() -> str:
    """Make the table of what formats carry: those that hold one message, and are not read only."""
    from letterhead import _native

    keys = {"text": "text", "int": "int32", "typed": "any type"}
    rows = []
    for row in _native.formats():
        if row["is_target"]:
            least, most = row["part_len"]
            lengths = "any" if (least, most) == (0, 2**31 - 1) else f"{least} to {most} bytes"
            has = [
                each["name"]
                for each in _native.types()
                if each["iggy" if "iggy" in row["name"] else "kip82"] is not None
            ]
            types = f"{len(has)}" if row["types"] else "–"
            fields = ", ".join(f"`{name}`" for name, _ in row["fields"] if name != "headers") or "–"
            rows.append(
                [f"`{row['name']}`", keys[row["keys"]], types, "yes" if row["nulls"] else "no", lengths, fields]
            )
    return table(
        ["format", "keys", "types", "null values", "length of a key or value", "fields beside the headers"], rows
    )


def types() -> str:
    """Make the table of types."""
    from letterhead import _native

    def code(number: int | None) -> str:
        return "–" if number is None else str(number)

    return table(
        ["type", "KIP-82", "Iggy", "bytes", "Arrow", "Spark"],
        [
            [
                f"`{row['name']}`",
                code(row["kip82"]),
                code(row["iggy"]),
                str(row["width"] or "any"),
                row["arrow"],
                row["spark"],
            ]
            for row in _native.types()
        ],
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def run(command: str, exit_code: int) -> str:
    """Run a command of this environment and show it with its output."""
    words = shlex.split(command)
    words[0] = str(Path(sys.executable).with_name(words[0]))
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120, check=False)
    if done.returncode != exit_code:
        raise PluginError(f"{command}: exit code {done.returncode} instead of {exit_code}: {done.stderr}")
    shown = command if len(command) < WIDTH else command.replace(" --hex ", " \\\n    --hex ")
    return f"```text\n$ {shown}\n{(done.stdout + done.stderr).rstrip()}\n```"
