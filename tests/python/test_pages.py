"""Every block of Python in the documentation is run, and this says by which test."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from letterhead import arrow as lha
from pages import ROOT, fences, run

RUN_BY = {
    ("README.md", "python"): (1, "tests/python/test_readme.py::test_the_examples_of_the_readme_run"),
    ("README.md", "python spark"): (1, "tests/spark/test_readme.py::test_the_spark_examples_run"),
    ("docs/cluster.md", "python classic"): (
        1,
        "tests/spark/test_shipping.py::test_a_session_that_is_there_is_given_the_package",
    ),
    ("docs/cluster.md", "python cluster"): (
        1,
        "tests/spark/test_shipping.py::test_a_standalone_cluster_is_shipped_the_wheel",
    ),
    ("docs/cluster.md", "python connect"): (
        1,
        "tests/spark/test_shipping.py::test_a_session_of_spark_connect_is_given_the_package",
    ),
    ("docs/cluster.md", "python doctor"): (
        1,
        "tests/spark/test_shipping.py::test_a_session_of_spark_connect_is_given_the_package",
    ),
    ("docs/cluster.md", "python pack"): (
        1,
        "tests/spark/test_shipping.py::test_a_session_of_spark_connect_is_given_the_package",
    ),
    ("docs/comparison.md", "python iggy"): (
        1,
        "tests/python/test_readme.py::test_the_comparison_with_iggys_client_holds",
    ),
    # The first block, and two of each of eight queries.
    ("docs/from-your-query.md", "python"): (
        17,
        "tests/spark/test_from_your_query.py::test_the_page_begins_with_a_look",
    ),
    ("docs/limits.md", "python"): (
        1,
        "tests/spark/test_readme.py::test_the_page_about_limits_holds_both_ways_of_reading_to_its_limit",
    ),
    ("docs/message-log.md", "python"): (1, "tests/spark/test_readme.py::test_the_page_about_the_log_compacts_it"),
    # A driver that can be killed runs the first, which makes a session.
    ("docs/pipeline.md", "python"): (
        8,
        "tests/kafka/test_pipeline.py::test_a_batch_edits_what_it_names_and_the_quarantine_gives_back_what_came",
    ),
    ("docs/profiles.md", "python"): (
        2,
        "tests/spark/test_readme.py::test_the_page_about_conventions_selects_what_connect_and_iot_hub_wrote",
    ),
    ("docs/read-state.md", "python"): (
        1,
        "tests/spark/test_readme.py::test_the_page_about_state_directories_reads_a_store",
    ),
    ("docs/scan.md", "python"): (1, "tests/python/test_pages.py::test_the_page_about_scans_reads_a_file_in_parts"),
    ("docs/segments.md", "python"): (1, "tests/spark/test_readme.py::test_the_page_about_segments_reads_a_partition"),
    ("docs/spark.md", "python"): (5, "tests/spark/test_readme.py::test_the_spark_examples_run"),
    ("docs/state-spark.md", "python"): (3, "tests/spark/test_readme.py::test_the_spark_examples_run"),
    ("docs/topic.md", "python"): (2, "tests/kafka/test_kafka_source.py::test_the_page_says_what_works"),
}
"""The blocks of a page that are marked so: how many there are, and the test that runs them."""

MARKS = {"python", "pycon", "text", "sh", "shell", "json"}
"""What a block may be. Of these `python` is run as above, and `pycon` by `make test-doc`."""


def texts() -> dict[str, str]:
    """Give the pages by their paths: those of the documentation, and those in front of it."""
    pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    return {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages}


def counted(texts: dict[str, str]) -> dict[tuple[str, str], int]:
    """Count the blocks of Python of every page, by how they are marked."""
    marked = ((page, mark) for page, text in texts.items() for mark, _ in fences(text))
    return dict(Counter((page, mark) for page, mark in marked if mark.split(" ")[0] == "python"))


def test_every_block_of_python_is_run_by_a_test() -> None:
    assert counted(texts()) == {block: count for block, (count, _) in RUN_BY.items()}


def test_a_block_that_nobody_runs_is_noticed() -> None:
    more = "Text.\n\n```python\nx = 1\n```\n\n* a list\n\n  ```python spark\n  x = 1\n  ```\n"
    assert counted({"docs/new.md": more}) == {("docs/new.md", "python"): 1, ("docs/new.md", "python spark"): 1}


@pytest.mark.parametrize(("page", "mark"), RUN_BY)
def test_the_test_is_there_and_names_the_page(page: str, mark: str) -> None:
    file, _, name = RUN_BY[page, mark][1].partition("::")
    source = (ROOT / file).read_text(encoding="utf-8")
    assert name in {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert page in source


def test_a_block_is_marked_as_what_it_is() -> None:
    marks = {(page, mark) for page, text in texts().items() for mark, _ in fences(text)}
    assert {(page, mark) for page, mark in marks if mark.split(" ")[0] not in MARKS} == set()


def test_examples_with_prompts_are_where_doctest_looks() -> None:
    """Of a page outside `docs/`, and of one that says to skip it, nothing would be run."""
    assert "--doctest-glob='*.md' docs\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = {page for page, text in texts().items() if ">>> " in text}
    assert {page for page in shown if not page.startswith("docs/")} == set()
    assert len(shown) > 20
    for page, text in texts().items():
        assert "doctest: +SKIP" not in text, page
        for mark, code in fences(text):
            assert (mark == "pycon") is (re.search(r"^ *>>> ", code, re.MULTILINE) is not None), (page, code)


def test_the_page_about_scans_reads_a_file_in_parts(samples: Path) -> None:
    names = {"lha": lha}
    run("docs/scan.md", names, there={"orders.parquet": str(samples / "orders-0.parquet")})
    whole = lha.scan(pq.read_table(samples / "orders-0.parquet", columns=["headers"])["headers"], "kafka")
    assert names["found"].statistics.rows == 10_000
    assert names["found"].to_dict() == whole.to_dict()
