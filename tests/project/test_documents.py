"""Code in the documents runs, and links lead somewhere. What needs Spark or a broker runs in their folders."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from letterhead import arrow as lha
from tests.helpers.pages import PAGES, ROOT, blocks, fences, run

MARKS = {"python", "pycon", "text", "sh", "shell", "json"}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_page_writes_topic_to_iceberg_and_delta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    pytest.importorskip("pyiceberg.catalog.sql", reason="pyiceberg[sql-sqlite] is not installed")
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    page = "docs/how-to/iceberg-and-delta.md"
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run(page, names, there={"tests/samples/orders-0": str(ROOT / "tests" / "samples" / "orders-0")})
    printed = [code for mark, code in fences(text_of(ROOT / page)) if mark == "text"]
    assert capsys.readouterr().out == "".join(printed)
    with names["orders"]() as reader:
        read = reader.read_all()
    for table in (names["iceberg"].scan().to_arrow(), deltalake.DeltaTable("warehouse/delta").to_pyarrow_table()):
        kept = table.sort_by("offset").select(["offset", "value", "tenant", "amount_cents", "route"]).to_pylist()
        assert kept == read.select(["offset", "value", "tenant", "amount_cents", "route"]).to_pylist()


def test_duckdb_polars_and_pandas_output_matches_page(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    page = "docs/how-to/arrow-columns.md"
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    run(page, names)
    assert capsys.readouterr().out == "".join(blocks(page, "text"))
    assert [row[1:] for row in names["frame"].select("tenant", "route", "error").rows()[3:4]] == [
        (["eu-2", "eu-1", "eu-2"], None)
    ]


def test_scan_page_reads_file_in_parts(samples: Path) -> None:
    names = {"lha": lha}
    run("docs/how-to/scan-a-topic.md", names, there={"orders.parquet": str(samples / "orders-0.parquet")})
    whole = lha.scan(pq.read_table(samples / "orders-0.parquet", columns=["headers"])["headers"], "kafka")
    assert names["result"].statistics.rows == 10_000
    assert names["result"].to_dict() == whole.to_dict()


def test_every_page_with_python_is_run_by_a_test() -> None:
    """Blocks with prompts are run by doctest, all others of Python by a test that names the page."""
    tests = "".join(text_of(file) for file in (ROOT / "tests").rglob("*.py"))
    marked = {(str(page.relative_to(ROOT)), mark) for page in PAGES for mark, _ in fences(text_of(page))}
    blocks = {(page, mark) for page, mark in marked if mark.split(" ")[0] == "python"}
    assert blocks
    assert {page for page, _ in blocks if f'"{page}"' not in tests} == set()
    assert {mark for _, mark in blocks if f'{mark.removeprefix("python ")}"' not in tests} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_block_mark_matches_doctest(page: Path) -> None:
    for mark, code in fences(text_of(page)):
        assert mark.split(" ")[0] in MARKS
        assert (mark == "pycon") is (re.search(r"^ *>>> ", code, re.MULTILINE) is not None), code
        assert mark != "pycon" or page.is_relative_to(ROOT / "docs"), "doctest reads docs/ alone"
    assert "doctest: +SKIP" not in text_of(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_link_resolves(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_test_file_named_by_page_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"`((?:tests|examples)/[\w/.-]+)`", text_of(page))}
    assert named
    # The worked example in CONTRIBUTING.md is about a format that does not exist.
    assert sorted(name for name in named if not (ROOT / name).exists() and "acme" not in name) == []


def test_every_public_module_has_api_page() -> None:
    (listed,) = re.findall(r"^PUBLIC = \((.*?)^\)", text_of(ROOT / "tools" / "public-names"), re.MULTILINE | re.DOTALL)
    modules = {"letterhead", *re.findall(r'"(\w+)"', listed)}
    pages = {page.stem for page in (ROOT / "docs" / "reference" / "api").glob("*.md")}
    assert pages == modules
    site = text_of(ROOT / "mkdocs.yml")
    assert [name for name in sorted(pages) if f"reference/api/{name}.md" not in site] == []


@pytest.mark.parametrize("module", ["letterhead", "letterhead.arrow", "letterhead.spark", "letterhead.state"])
def test_module_pages_list_each_public_name_once(module: str) -> None:
    public = importlib.import_module(module)
    folder = ROOT / "docs" / "reference" / "api" / module.removeprefix("letterhead.")
    names = [name for page in folder.glob("*.md") for name in re.findall(r"^::: [\w.]+\.(\w+)$", text_of(page), re.M)]
    assert sorted(names) == sorted(
        name for name in dir(public) if not name.startswith("_") and not inspect.ismodule(getattr(public, name))
    )
