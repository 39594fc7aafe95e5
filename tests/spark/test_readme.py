"""The README's Spark examples run as they stand there."""

from __future__ import annotations

import pytest

from readme import README, blocks


def test_the_spark_examples_of_the_readme_run(spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    sources = blocks("python spark")
    assert len(sources) == 1
    for source in sources:
        exec(compile(source, "README.md", "exec"), {"spark": spark})
