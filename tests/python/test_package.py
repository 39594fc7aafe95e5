"""The package as it is imported: fast, with nothing that not everyone has, and all names in their place."""

from __future__ import annotations

import subprocess
import sys

import pytest

import letterhead as lh


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True
    ).stdout.strip()


def test_import_brings_neither_arrow_nor_spark() -> None:
    loaded = "{'pyarrow', 'pyspark', 'pandas', 'numpy', 'rocksdict', 'letterhead.arrow', 'letterhead.spark'}"
    program = f"import sys, letterhead; from letterhead import *; print(sorted({loaded} & set(sys.modules)))"
    assert run(program) == "[]"


def test_submodules_are_loaded_when_they_are_asked_for() -> None:
    assert run("import letterhead as lh; print(lh.arrow.__name__, lh.errors.__name__)") == (
        "letterhead.arrow letterhead.errors"
    )


def test_every_public_name_is_there_and_documented() -> None:
    for name in lh.__all__:
        assert getattr(lh, name).__doc__, name
    assert {"arrow", "spark", *lh.__all__} <= set(dir(lh))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'arow'"):
        _ = lh.arow


def test_an_import_starts_no_thread() -> None:
    program = "import letterhead, threading; letterhead.decode(b'', 'kafka'); print(threading.active_count())"
    assert run(program) == "1"
