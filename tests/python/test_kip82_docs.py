"""The page on KIP-82 names every class and method of the drafts, what it is here, and the test that shows it."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import letterhead.kip82 as kip82

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "kip82.md"

PUTS = ("Boolean", "Byte", "Char", "Short", "Integer", "Long", "Float", "Double", "String", "Bytes")

NAMES = {
    "Headers()",
    "Headers(byte[])",
    *(f"put{kind}" for kind in PUTS),
    "put<T>",
    "get(String)",
    "keys()",
    "asBytes()",
    "Typed",
    "ProducerRecord.getHeaders()",
    "ConsumerRecord.getHeaders()",
    "ProducerRecord.setHeader(int, byte[])",
    "ProducerRecord.getHeader(int)",
    "ConsumerRecord.getHeader(int)",
    "Map<int, byte[]>",
    "Record<K, V>",
    "MessageWrapper(Map, V)",
    "MessageWrapper.getHeaders()",
    "MessageWrapper.getValue()",
    "MessageAndOffset",
    "ProduceRequest",
    "ProduceResponse",
    "FetchRequest",
    "FetchResponse",
    "shouldRetainMessage",
}
"""What the three drafts name, typed by hand."""


def rows() -> list[list[str]]:
    table = PAGE.read_text(encoding="utf-8").split("<!-- the drafts' names -->")[1]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return cells[2:]


@functools.cache
def shown() -> frozenset[str]:
    files = [*(ROOT / "tests").glob("*/test_kip82_*.py"), *(ROOT / "tests").glob("*/test_compact*.py")]
    return frozenset(
        name for file in files for name in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE)
    )


def test_the_table_has_every_name_of_the_drafts() -> None:
    named = {name for _, there, _, _ in rows() for name in re.findall(r"`([^`]+)`", there)}
    assert NAMES - named == set()
    assert named - NAMES == set(), "a name that this test does not know of"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[2].strip("`"))
def test_what_the_table_says_is_there_and_shown_by_a_test(row: list[str]) -> None:
    draft, _, here, test = row
    assert set(draft.split(", ")) <= {"typed", "int", "wrapper", "all"}
    found = kip82
    for part in here.strip("`").split("."):
        assert hasattr(found, part), here
        found = getattr(found, part)
    assert test.strip("`") in shown()


def test_the_drafts_clients_need_nothing_that_not_everyone_has() -> None:
    program = (
        "import sys, letterhead.kip82 as k; k.ProducerRecord('t', headers={'a': 'b'}).to_bytes(); "
        "print({'pyarrow', 'pyspark', 'pandas', 'numpy', 'rocksdict', 'cryptography', 'letterhead.kip82.log'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"


def test_every_public_name_is_there_and_documented() -> None:
    for name in kip82.__all__:
        assert getattr(kip82, name).__doc__, name
    assert set(kip82.__all__) <= set(dir(kip82))
    with pytest.raises(AttributeError, match="has no attribute 'MesageLog'"):
        _ = kip82.MesageLog
