"""Nothing from data reaches a terminal or HTML unescaped: control characters and marks of direction are escaped."""

from __future__ import annotations

import html
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
import letterhead.arrow as lha
from letterhead._formatting import printable
from letterhead.conventions import columns
from letterhead.scan.report import Scan, remarks

SAMPLES = Path(__file__).parents[1] / "samples"
# Codes that clear the screen and set its title, a mark that reverses text, and a line end of old terminals.
HOSTILE = "k\x1b[2J\x1b]0;t\x07\u202e\x85"


def check_printable(text: str) -> None:
    assert [char for char in text if not char.isprintable() and char != "\n"] == []


@pytest.mark.parametrize("char", ["\x1b", "\x85", "\u202e", "\U000e0001"])
def test_escape_matches_python(char: str) -> None:
    escape = printable(f"{char}1")
    check_printable(escape)
    assert escape.encode("ascii").decode("unicode_escape") == f"{char}1"


def headers(*values: bytes) -> bytes:
    return lh.encode([(HOSTILE, value) for value in values], "kafka")


def scan() -> Scan:
    return lha.scan(pa.array([headers(b"\x1b[2J", b"2")]), "kafka")


TEXTS: dict[str, Callable[[], object]] = {
    "str of a scan": lambda: str(scan()),
    "repr of a scan": lambda: repr(scan()),
    "remarks": lambda: remarks(scan()),
    "code": lambda: scan().code(),
    "page": lambda: scan().html(title=HOSTILE),
    "key of a scan": lambda: scan().keys[0],
    "headers": lambda: lh.decode(headers(b"\x1b"), "kafka"),
    "message": lambda: lh.Message(headers=[(HOSTILE, b"\x1b")], payload=b"\x1b"),
    "losses": lambda: lh.convert(headers(b"1"), "kafka", target="iggy", types="binary", on_loss="report"),
    "inspection": lambda: lh.inspect(headers(b"1"), "kafka"),
    "condition": lambda: lh.col(HOSTILE) == HOSTILE,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_printed_data_has_no_control_characters(text: Callable[[], object]) -> None:
    check_printable(str(text()))
    check_printable(repr(text()))


ERRORS: dict[str, Callable[[], object]] = {
    "column": lambda: lha.select(pa.array([headers(b"1")]), {HOSTILE: "int32"}),
    "required column": lambda: lh.select(headers(b"1"), {HOSTILE: lh.field("binary", key="x", required=True)}),
    "struct": lambda: lha.decode(pa.array([{HOSTILE: 1}]), "kafka"),
    "table": lambda: lha.decode(pa.table({HOSTILE: [1]}), "kafka"),
    "convention": lambda: columns.rfc3339(pa.array([{HOSTILE: 1}])),
    "condition": lambda: lh.where.parse(f"\"{HOSTILE}\" + 1 = 'x'"),
    "format": lambda: lh.decode(b"", HOSTILE),
    "store": lambda: lh.read.state(SAMPLES / "streams-state-0_0", store=HOSTILE),
    "state directory": lambda: lh.read.state(f"/tmp/no-{HOSTILE}"),
    "segments": lambda: lh.read.segments(f"/tmp/no-{HOSTILE}"),
}


@pytest.mark.parametrize("fails", ERRORS.values(), ids=ERRORS)
def test_names_in_errors_are_escaped(fails: Callable[[], object]) -> None:
    with pytest.raises((ValueError, TypeError, OSError, lh.errors.LetterheadError)) as raised:
        fails()
    check_printable(str(raised.value))


def test_names_of_topics_are_escaped_in_errors_and_warnings(tmp_path: Path) -> None:
    folder = tmp_path / "o\x1b[2J-0"
    shutil.copytree(SAMPLES / "orders-0", folder)
    [log] = folder.glob("*.log")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    with pytest.raises(lh.DecodeError) as raised:
        lh.read.segments(folder).read_all()
    check_printable(str(raised.value))
    log.write_bytes(data[:1000])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reader = lh.read.segments(folder)
        reader.read_all()
    check_printable(str(caught[0].message))
    check_printable(str(reader.truncated[0]))


def test_error_keeps_its_lines() -> None:
    assert str(lh.errors.LetterheadError("one\ntwo\x1b")) == "one\ntwo\\x1b"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "args",
    [["decode", "-f", "kafka"], ["convert", "-f", "kafka", "-t", "streams"], ["scan", "-f", "kafka"],
     ["decode", "-f", "kafka", "--json"], ["decode", "-f", "kafka", "--prefix", HOSTILE]],
    ids=" ".join,
)  # fmt: skip
def test_names_of_columns_in_files_are_escaped(args: list[str], terminal: bool, run: Any, tmp_path: Path) -> None:
    names = [HOSTILE, *(f"{HOSTILE}{number}" for number in range(8))]
    values = pa.array([headers(b"\x1b[2J")], pa.binary())
    for count in (2, 9):
        pq.write_table(pa.table(dict.fromkeys(names[:count], values)), tmp_path / "x.parquet")
        result = run(*args, tmp_path / "x.parquet", "-c", HOSTILE)
        assert result.code == 0
        check_printable(result.out + result.err)
        wrong = run(*args, tmp_path / "x.parquet", "-c", "absent")
        check_printable(wrong.out + wrong.err)


def test_html_page_escapes_markup_in_data() -> None:
    pytest.importorskip("matplotlib")
    name = "<script>alert(1)</script>"
    page = lha.scan(pa.array([lh.encode([(name, name.encode())], "kafka")]), "kafka").html(title=name)
    assert "<script" not in page
    assert html.escape(name) in page
