"""Hooks of mkdocs: insert what the package itself provides, so that pages and code cannot diverge.

Marks in a page are replaced:

* ``<!-- codes -->``: the table of error codes, from ``letterhead.errors.CODES``
* ``<!-- formats -->``: the table of formats, from the native module, each linked to its page; ``<!-- carries -->``: what each of
  them can hold
* ``<!-- types -->``: the table of types and their codes, from the native module
* ``<!-- store versions -->``: which version of Kafka Streams opens which directory, from ``store-versions.json``, which a test
  writes
* ``<!-- state api -->``: what the stores of Kafka Streams have and ours do not, from ``state-api.json``, which a test writes
* ``<!-- profiles -->``: the headers of every convention, from ``letterhead.conventions``
* ``<!-- contributing -->``: ``CONTRIBUTING.md`` without its title
* ``<!-- run: letterhead ... -->``: the command and its output; ``<!-- run, exit 1: ... -->`` where it must fail

Images in SVG are inlined, so that they follow the colors of the theme.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

DOCS = Path(__file__).parent
BOOSTS = {"tutorial": 2, "how-to": 3, "reference/api": 0.2}  # in the search, by folder: tasks before lists of names
WIDTH = 96  # characters of a line that a page shows without scrolling
RUN = re.compile(r"<!-- run(?:, exit (?P<exit>\d+))?: (?P<command>letterhead .+?) -->")
ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):<code>~?(?P<name>[\w.]+)</code>")
IMAGE = re.compile(r'<p>\s*<img alt="(?P<alt>[^"]*)" src="(?P<source>[^"]+\.svg)"\s*/?>\s*</p>')


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the marks of a page, and drop what only the tests of its examples need."""
    for folder, boost in BOOSTS.items():
        if page.file.src_uri.startswith(folder):
            page.meta["search"] = {"boost": boost}
    markdown = markdown.replace("\n\n```\n", "\n```\n")  # the empty line that ends an example of doctest
    markdown = re.sub(r"^(```\w+) \w+$", r"\1", markdown, flags=re.MULTILINE)  # the test that runs a block
    markdown = re.sub(r"  # doctest: .*$", "", markdown, flags=re.MULTILINE)
    tables = {
        "codes": codes,
        "formats": formats,
        "carries": carries,
        "types": types,
        "store versions": store_versions,
        "state api": state_api,
        "profiles": profiles,
        "contributing": contributing,
    }
    for mark, make_table in tables.items():
        if f"<!-- {mark} -->" in markdown:
            markdown = markdown.replace(f"<!-- {mark} -->", make_table())
    return RUN.sub(lambda mark: run(mark["command"], int(mark["exit"] or 0)), markdown)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Put SVG images into the page itself, and turn the roles of docstrings into links."""
    folder = Path(page.url).parent

    def inline(match: re.Match[str]) -> str:
        source = Path(os.path.normpath(DOCS / folder / match["source"]))
        svg = source.read_text(encoding="utf-8")
        svg = svg[svg.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{match["alt"]}" ', 1)
        kind = "drawing plot" if "plots/" in match["source"] else "drawing"
        return f'<figure class="{kind}">{svg}</figure>'

    link = r'<autoref identifier="\g<name>" optional><code>\g<name></code></autoref>'
    return ROLE.sub(link, IMAGE.sub(inline, content))


def codes() -> str:
    """Return the table of error codes."""
    from letterhead.errors import CODES

    return table(["code", "meaning"], [[f"`{code}`", meaning] for code, meaning in CODES.items()])


def profiles() -> str:
    """Return a table for each convention."""
    from letterhead.conventions import PROFILES

    parts = []
    for profile in PROFILES.values():
        rows = [[f"`{row.column}`", f"`{row.header}`", f"`{row.type}`", row.note] for row in profile.headers]
        head = f"### {profile.name}\n\n{profile.title}. Source: {profile.source}."
        parts.append(f"{head}\n\n{table(['column', 'header', 'type', 'value'], rows)}")
    return "\n\n".join(parts)


def formats() -> str:
    """Return the table of formats."""
    from letterhead import _native

    pages = format_pages()
    return table(
        ["format", "class", "source", "bytes"],
        [
            [f"[`{row['name']}`]({pages[row['name']]})", row["is_"], row["source"], row["layout"]]
            for row in _native.formats()
        ],
    )


def format_pages() -> dict[str, str]:
    """Return the page of each format: the title of a page lists its formats."""
    pages = {}
    for page in sorted((DOCS / "reference" / "formats").glob("*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        pages |= dict.fromkeys(title.split(", "), f"formats/{page.name}")
    return pages


def contributing() -> str:
    """Return the text for contributors, with links that lead from the site."""
    text = (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n")[2]
    return text.replace("](docs/", "](")


def carries() -> str:
    """Return the table of what the formats of one message that can be written hold."""
    from letterhead import _native

    keys = {"text": "text", "int": "int32", "typed": "any type"}
    rows = []
    for row in _native.formats():
        if row["is_target"]:
            least, most = row["part_len"]
            lengths = "any" if (least, most) == (0, 2**31 - 1) else f"{least} to {most} bytes"
            system = "iggy" if "iggy" in row["name"] else "kip82"
            count = sum(type[system] is not None for type in _native.types())
            fields = ", ".join(f"`{name}`" for name, _ in row["fields"] if name != "headers") or "–"
            nulls = "yes" if row["nulls"] else "no"
            rows.append(
                [f"`{row['name']}`", keys[row["keys"]], f"{count}" if row["types"] else "–", nulls, lengths, fields]
            )
    return table(["format", "keys", "types", "null values", "length of a key or value", "other fields"], rows)


def types() -> str:
    """Return the table of types."""
    from letterhead import _native

    def code(number: int | None) -> str:
        return "–" if number is None else str(number)

    return table(
        ["type", "KIP-82 code", "Iggy code", "bytes", "Arrow", "Spark"],
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


def store_versions() -> str:
    """Return the table of directories, by layout and by the program that opens them."""
    results = json.loads((DOCS / "store-versions.json").read_text(encoding="utf-8"))
    columns: dict[str, None] = {}
    rows = []
    for store, by_stored in results.items():
        for stored, by_opened in by_stored.items():
            for opened, by_writer in by_opened.items():
                outcomes: dict[str, set[str]] = {}
                for readers in by_writer.values():
                    for reader, outcome in readers.items():
                        outcomes.setdefault(reader, set()).add(outcome)
                columns |= dict.fromkeys(outcomes)
                cells = [
                    "yes" if seen == {"yes"} else f"no: `{'`, `'.join(sorted(seen))}`" for seen in outcomes.values()
                ]
                rows.append([store, stored, opened, *cells])
    return table(["store", "written as", "opened as", *columns], rows)


def state_api() -> str:
    """Return the table of public methods of Kafka Streams' stores that have no counterpart."""
    missing = json.loads((DOCS / "state-api.json").read_text(encoding="utf-8"))
    return table(
        ["class", "methods"], [[f"`{name}`", f"`{'`, `'.join(methods)}`"] for name, methods in missing.items()]
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(value.replace("|", "\\|") for value in line) + " |" for line in lines)


def run(command: str, exit_code: int) -> str:
    """Run a command of this environment and return it with its output."""
    words = shlex.split(command)
    words[0] = str(Path(sys.executable).with_name(words[0]))
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120, check=False)
    if done.returncode != exit_code:
        raise PluginError(f"{command}: exit code {done.returncode} instead of {exit_code}: {done.stderr}")
    shown = command if len(command) < WIDTH else command.replace(" --hex ", " \\\n    --hex ")
    return f"```text\n$ {shown}\n{(done.stdout + done.stderr).rstrip()}\n```"
