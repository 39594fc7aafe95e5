"""The README's examples run as they stand there. Those marked `spark` run in `tests/spark/test_readme.py`."""

from __future__ import annotations

from readme import blocks


def test_the_examples_of_the_readme_run() -> None:
    sources = blocks("python")
    assert len(sources) == 1
    for source in sources:
        exec(compile(source, "README.md", "exec"), {})
