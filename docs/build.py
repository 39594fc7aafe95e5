"""Hooks of mkdocs: pages as the site shows them.

``CONTRIBUTING.md`` and ``CHANGELOG.md`` become pages. Images in SVG are inlined, so that they follow the colors of the theme. What only tests of the
examples need is removed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

DOCS = Path(__file__).parent
ROOT_FILES = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
BOOSTS = {
    "tutorial": 2,
    "how-to": 3,
    "reference/api": 0.2,
}  # in the search, by folder: tasks before lists of names
ROLE = re.compile(
    r":(?:func|class|meth|mod|attr|data|exc):<code>~?(?P<name>[\w.]+)</code>"
)
HEADING = re.compile(r'<h\d id="(?P<id>letterhead[\w.]*)"')
PUBLIC = frozenset(
    re.findall(
        r"^letterhead[\w.]*",
        (DOCS / "reference" / "public-names.txt").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
IMAGE = re.compile(
    r'<p>\s*<img alt="(?P<alt>[^"]*)" src="(?P<source>[^"]+\.svg)"\s*/?>\s*</p>'
)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the marks of a page, and drop what only the tests of its examples need."""
    for folder, boost in BOOSTS.items():
        if page.file.src_uri.startswith(folder):
            page.meta["search"] = {"boost": boost}
    markdown = markdown.replace(
        "\n\n```\n", "\n```\n"
    )  # the empty line that ends an example of doctest
    markdown = re.sub(
        r"^(```\w+)(?: \w+)+$", r"\1", markdown, flags=re.MULTILINE
    )  # the test that runs a block
    markdown = re.sub(r"  # doctest: .*$", "", markdown, flags=re.MULTILINE)
    if page.file.src_uri in ROOT_FILES:
        return root_file(ROOT_FILES[page.file.src_uri])
    return markdown


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Put SVG images into the page itself, turn the roles of docstrings into links, and refuse an unread code block."""
    if "```" in content:
        raise PluginError(f"{page.file.src_uri}: a code block is not recognized")
    folder = Path(page.url).parent

    def inline(match: re.Match[str]) -> str:
        source = Path(os.path.normpath(DOCS / folder / match["source"]))
        svg = source.read_text(encoding="utf-8")
        svg = svg[svg.index("<svg") :].replace(
            "<svg ", f'<svg role="img" aria-label="{match["alt"]}" ', 1
        )
        kind = "drawing"
        if "plots/" in match["source"]:
            kind += " chart" if source.stem == "speed" else " plot"
        return f'<figure class="{kind}">{svg}</figure>'

    return link_roles(IMAGE.sub(inline, content))


def link_roles(content: str) -> str:
    """Turn the roles of docstrings into links; a short name belongs to the object, or to the module, of the heading above it."""
    headings = [(match.start(), match["id"]) for match in HEADING.finditer(content)]

    def link(match: re.Match[str]) -> str:
        name = match["name"]
        above = [heading for start, heading in headings if start < match.start()]
        heading = above[-1] if above else "letterhead"
        scopes = (heading, heading.rpartition(".")[0], "letterhead")
        known = (f"{scope}.{name}" for scope in scopes if f"{scope}.{name}" in PUBLIC)
        identifier = name if name.startswith("letterhead") else next(known, name)
        return (
            f'<autoref identifier="{identifier}" optional><code>{name}</code></autoref>'
        )

    return ROLE.sub(link, content)


def root_file(name: str) -> str:
    """Return the text of a file of the repository, with links that lead from the site."""
    return (DOCS.parent / name).read_text(encoding="utf-8").replace("](docs/", "](")
