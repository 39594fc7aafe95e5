"""The Spark examples of the README and of the documentation run as they stand there."""

from __future__ import annotations

import pytest

import readme

ROOT = readme.README.parent


@pytest.mark.parametrize(
    ("page", "info", "count"),
    [("README.md", "python spark", 1), ("docs/spark.md", "python", 5), ("docs/state-spark.md", "python", 3)],
)
def test_the_spark_examples_run(spark, monkeypatch: pytest.MonkeyPatch, page, info, count) -> None:
    monkeypatch.setattr(readme, "README", ROOT / page)
    monkeypatch.chdir(ROOT)
    sources = readme.blocks(info)
    assert len(sources) == count
    names = {"spark": spark}
    for source in sources:
        exec(compile(source, page, "exec"), names)
