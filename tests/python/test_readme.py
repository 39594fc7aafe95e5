"""The README runs as it stands there and claims what tests hold; pages are where they are looked for.

What is marked `spark` runs in `tests/spark/test_readme.py`.
"""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from benches import instructions
from letterhead import _native
from pages import ROOT, claims, fences, run

README = ROOT / "README.md"
DOCS = ROOT / "docs"

DEPTHS = {"python": 3, "src": 2, "tests": 2, "benches": 2, "docs": 2}
"""How many levels of a folder the page for contributors names; of others, the folder alone."""


def test_the_examples_of_the_readme_run() -> None:
    run("README.md", {})


@cache
def names_in(file: Path) -> frozenset[str]:
    """Give the names of the tests that a file has."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in functions if name.startswith("test_"))


@pytest.mark.parametrize(("claim", "file", "name"), claims())
def test_a_claim_of_the_readme_names_a_test_that_exists(claim: str, file: str, name: str) -> None:
    assert (ROOT / file).is_file(), claim
    assert name in names_in(ROOT / file), claim


def test_every_claim_of_the_readme_names_a_test() -> None:
    table = README.read_text(encoding="utf-8").split("| claim | held by |\n| --- | --- |\n")[1].split("\n\n")[0]
    named = [claim for claim, _, _ in claims()]
    assert [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()] == named
    assert len(set(named)) == len(named) > 20


def test_a_claim_whose_test_is_gone_is_noticed() -> None:
    assert "test_nothing_of_that_name" not in names_in(Path(__file__))
    assert "test_a_claim_whose_test_is_gone_is_noticed" in names_in(Path(__file__))


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_format_has_a_page() -> None:
    titles = {
        page.name: page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split(", ")
        for page in (DOCS / "formats").glob("*.md")
    }
    named = [name for names in titles.values() for name in names]
    assert sorted(named) == sorted(row["name"] for row in _native.formats())


@pytest.mark.parametrize("page", sorted(DOCS.glob("formats/*.md")), ids=lambda page: page.stem)
def test_the_page_of_a_format_draws_it_shows_it_and_says_its_limits(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections[:3] == ["Bytes", "Example", "Limits"]
    assert re.match(r"What .+ (does otherwise|leaves? open)$", sections[3])
    assert sections[4:] == ["Errors of its own", "Source"]
    assert ">>> " in text
    drawn = text.split("\n## Bytes\n")[1].split("\n## ")[0]
    assert any(mark == "text" and "┌" in picture and "└" in picture for mark, picture in fences(drawn))
    names = text.splitlines()[0].removeprefix("# ").split(", ")
    if len(names) > 1:
        assert [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", drawn)] == []


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


def test_the_comparison_with_iggys_client_holds() -> None:
    pytest.importorskip("apache_iggy", reason="apache-iggy is not installed: make bench-quick brings it")
    run("docs/comparison.md", {}, "python iggy")


@pytest.mark.parametrize(
    ("variables", "arguments", "code"),
    [({}, [], 0), ({"LETTERHEAD_INSTRUCTIONS": "required"}, [], 1), ({}, ["--record"], 1)],
)
def test_instructions_that_nobody_counted_pass_at_home_alone(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    arguments: list[str],
    code: int,
) -> None:
    monkeypatch.delenv("LETTERHEAD_INSTRUCTIONS", raising=False)
    monkeypatch.setenv("PATH", "")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert instructions.main(arguments) == code
    assert capsys.readouterr().err.startswith("NO INSTRUCTIONS ARE COUNTED")


def test_the_page_for_contributors_says_where_unsafe_code_is() -> None:
    rules = re.split(r"^\* ", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (rule,) = (rule for rule in rules if rule.startswith("`unsafe` only"))
    named = re.findall(r"`(src/[\w/]+(?:\.rs|/))`", rule)
    unsafe = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "src").rglob("*.rs"))
        if re.search(r"^(?! *//).*\bunsafe\b", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert [file for file in unsafe if not file.startswith(tuple(named))] == []
    assert [place for place in named if not any(file.startswith(place) for file in unsafe)] == []


def test_the_page_for_contributors_names_the_tree_as_it_is() -> None:
    """Every path in its tables is there, and every folder is in them: as deep as :data:`DEPTHS` says."""
    named = re.findall(r"^\| `([^`]+/)` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [path for path in named if not (ROOT / path).is_dir()] == []
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    if kept.returncode:
        pytest.skip("what is kept, git knows, and this is no clone")
    folders = set()
    for parts in (path.split("/")[:-1] for path in kept.stdout.splitlines()):
        depth = DEPTHS.get(parts[0], 1) if parts else 0
        folders |= {"/".join(parts[: length + 1]) + "/" for length in range(min(depth, len(parts)))}
    assert sorted(folders - set(named)) == []
