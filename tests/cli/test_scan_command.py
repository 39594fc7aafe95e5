"""`letterhead scan`: output on a pipe and on a terminal, JSON, page, code, and rejected usage."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers.extras import spelled_out
from tests.helpers.terminal import read_to_end

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
MAIN = "import sys; from letterhead.cli import main; sys.exit(main())"
# The terminal's code for "clear the screen", markup, and an element that would run.
HOSTILE = '\x1b[2J\u202e[red]<script src="https://example.com/x.js">'


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(rows: list[Any], **others: pa.Array) -> Path:
        path = tmp_path / "some.parquet"
        lists = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
        pq.write_table(pa.table({"headers": pa.array(lists, HEADERS), **others}), path)
        return path

    return write


def rows_of(count: int) -> list[Any]:
    return [
        [
            ("tenant", b"acme" if n % 2 else b"globex"),
            ("retry", (n % 4).to_bytes(4, "big")),
            ("route", b"a"),
            ("route", None),
        ]
        for n in range(count)
    ] + [None]


def terminal(*args: str | Path, columns: int) -> tuple[int, str]:
    """Run the command in a process of its own on a pseudo-terminal."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "scan", *map(str, args)],
        stdin=follower, stdout=follower, stderr=follower, env=environment,
    )  # fmt: skip
    os.close(follower)
    printed = read_to_end(leader)
    return process.wait(timeout=300), printed.decode().replace("\r\n", "\n")


class Page(HTMLParser):
    """What is in a page, which has to be well formed."""

    VOID = ("meta", "line", "rect")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


# On a pipe and on a terminal. ------------------------------------------------------------------------------------------


def test_scan_table_has_one_row_per_key(run, written):
    result = run("scan", written(rows_of(100)))
    assert result.lines == [
        "Scan of 101 rows in kafka: 3 keys",
        "1 of 101 rows have no headers",
        "key      count   null   distinct   suggested type   example",
        "─" * 59,
        'tenant     100      0          2   string           "acme"',
        "retry      100      0          4   int32            0",
        'route      200    100          1   array<string>?   "a"',
        "? other types fit as well: --explain prints the evidence",
    ]
    assert (result.code, result.err) == (0, "")


def test_tied_type_has_question_mark(run, written):
    result = run("scan", written([[("balance", bytes(8))]] * 100))
    assert any(line.startswith("balance") and " int64? " in line for line in result.lines)
    assert result.lines[-1] == "? other types fit as well: --explain prints the evidence"


def test_explain_prints_the_evidence_for_each_type(run, written):
    result = run("scan", written(rows_of(100)), "--explain")
    assert result.lines[2:5] == [
        "tenant: in 99 % of rows, 4-6 bytes (500 in total), position 0",
        "  string             likely    all 100 values are UTF-8; only 2 distinct",
        "  binary             possible  reads any bytes: values of 4 to 6 bytes",
    ]
    assert "route: in 99 % of rows, repeated in 100 %, 50 % null, 1 byte (100 in total), position 2-3" in result.lines
    assert "unlikely" not in result.out
    assert "unlikely" in run("scan", written(rows_of(100)), "--explain", "--all").out


@pytest.mark.parametrize("surface", ["python", "arrow"])
def test_code_prints_code_that_reads_the_column(run, written, surface):
    path = written(rows_of(100))
    result = run("scan", path, "--code", surface)
    column = pq.read_table(path)["headers"]
    variables: dict[str, Any] = {"column": column, "data": lh.encode(rows_of(1)[0], "kafka")}
    exec(result.out, variables)
    headers = variables["headers"]
    row = headers if surface == "python" else headers.to_pylist()[0]
    assert (row["tenant"], row["retry"]) == ("globex", 0)


def test_code_for_spark_selects_the_scanned_column(run, written):
    result = run("scan", written(rows_of(100)), "--code", "spark")
    assert result.out.startswith("import letterhead as lh\nfrom letterhead import spark as lhs\n\ncolumns = {\n")
    assert 'lhs.select_headers(df, columns, errors="column")' in result.out


@pytest.mark.parametrize("columns", [80, 160])
def test_table_fits_terminal_of_any_width(samples, columns):
    code, printed = terminal(samples / "orders-0.parquet", columns=columns)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", printed[printed.index("Scan of") :])
    assert code == 0
    assert max(map(len, plain.splitlines())) <= columns
    assert all(key in plain for key in ("traceparent", "__value_schema_id", "amount_cents", "señal-📦"))
    assert re.search(r"amount_cents +9,700 +0 +~9,700 +int64 +40,229", plain)


def test_control_characters_in_key_or_value_are_escaped(run, written, tmp_path):
    path = written([[(HOSTILE, HOSTILE.encode())]] * 3)
    result = run("scan", path, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for text in (result.out, page):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)
    assert "\\x1b[2J\\u202e[red]<script" in result.out
    assert "\\x1b[2J\\u202e[red]<script" in Page(page).text
    assert [tag for tag, _ in Page(page).tags if tag == "script"] == []


# JSON and the page. ----------------------------------------------------------------------------------------------------


def test_json_equals_library_scan(run, samples):
    result = run("scan", samples / "orders-0.parquet", "--json")
    whole = lha.scan(pq.read_table(samples / "orders-0.parquet")["headers"], "kafka")
    assert json.loads(result.out) == whole.to_dict()
    assert (result.code, result.err) == (0, "")


def test_html_page_is_well_formed_and_loads_nothing(run, samples, tmp_path):
    file = tmp_path / "page.html"
    assert run("scan", samples / "orders-0.parquet", "--html", file, "--json").code == 0
    text = file.read_text()
    page = Page(text)
    tags = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "object"} & set(tags)
    assert not re.search(r"https?:|url\((?!#)|@import|\bon[a-z]+=", re.sub(r' xmlns(:\w+)?="[^"]+"', "", text))
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    places = [f"#{attributes['id']}" for tag, attributes in page.tags if tag == "section"]
    assert links == places
    assert len(links) == 15
    # Sizes and positions of each key; note has no more than one size, and it is 0.
    assert sum(tag == "svg" for tag in tags) == 30
    assert sum(tag == "meter" for tag in tags) > 45
    assert "all 9,700 values are 8 bytes; as int64 516 to 4,999,974" in page.text
    assert '"amount_cents": "int64",  # strong' in page.text
    assert "Headers of orders-0.parquet" in page.text


# What is scanned. ------------------------------------------------------------------------------------------------------


def test_message_bytes_are_read_and_format_detected(run, samples):
    store = samples / "store-latest-0.parquet"
    named = run("scan", store, "--column", "value", "--format", "streams-timestamped", "--json")
    assert json.loads(named.out)["rows"] == pq.read_metadata(store).num_rows
    assert run("scan", store, "-c", "value", "-f", "auto").code == 2
    blocks = run("scan", store, "-c", "value", "-f", "auto").err
    assert "these bytes fit streams and streams-timestamped: name one of them" in blocks


def test_damaged_rows_are_counted_and_the_exit_code_is_1(run, tmp_path):
    good = lh.encode([("k", b"v")], "kafka")
    path = tmp_path / "messages.parquet"
    pq.write_table(pa.table({"message": pa.array([good, b"\x01", good], pa.binary())}), path)
    result = run("scan", path, "-c", "message")
    assert result.code == 1
    assert "1 of 3 rows are damaged (their readable headers are counted): negative_count 1" in result.out


def test_sample_is_evenly_spaced_and_reported(run, written):
    path = written([[("n", str(n).encode())] for n in range(25_000)])
    result = run("scan", path, "--sample", "50")
    assert "a sample of 25,000 rows, evenly spaced" in result.lines
    document = json.loads(run("scan", path, "--sample", "50", "--json").out)
    assert document["rows"] == 50
    [first] = [guess for guess in document["keys"][0]["guesses"] if guess["type"] == "int64:text"]
    assert "0 to 24,500" in first["evidence"]
    assert json.loads(run("scan", path, "--sample", "99999", "--json").out)["rows"] == 25_000


def test_keys_beyond_max_keys_are_counted(run, written):
    path = written([[(f"k{n}", b"v"), ("all", b"v")] for n in range(30)])
    result = run("scan", path, "--max-keys", "4")
    assert "and 27 more keys, whose 27 headers are not in the table" in result.lines
    assert "    # 27 more keys" in run("scan", path, "--max-keys", "4", "--code", "arrow").lines


def test_scan_of_no_rows_or_no_headers_is_empty(run, written):
    assert run("scan", written([])).lines == ["Scan of 0 rows in kafka: 0 keys"]
    assert run("scan", written([None, []])).lines[1] == "2 of 2 rows have no headers"


def test_help_describes_scan(run):
    assert " scan " in run("--help").out
    result = run("scan", "--help")
    assert "Examples:" in result.out
    assert "Exit codes: 0 success" in result.out
    assert all(
        option in result.out
        for option in ("--column", "--explain", "--code", "--sample", "--html", "--json", "--max-keys")
    )


# Refusals. -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--column", "nothing"], "has no column 'nothing': it has headers, number"),
        (
            ["--column", "number"],
            "column 'number' of {path} is int64: bytes (binary), or lists or maps of headers, are needed",
        ),
        (["--format", "kafak"], "unknown format 'kafak': did you mean 'kafka'?"),
        (["--format", "auto"], "holds decoded headers: name their original --format"),
        (["--format", "kip82-int"], "and what fits is list<element: struct<key: int32"),
        (["--html", "/nowhere/page.html"], "cannot write /nowhere/page.html: no such file or directory"),
        (["--sample", "0"], "Invalid value for '--sample'"),
        (["--explain", "--json"], "--explain, --code and --json exclude each other"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(run, written, args, message):
    path = written([[("k", b"v")]], number=pa.array([1], pa.int64()))
    result = run("scan", path, *args)
    assert result.code == (3 if message.startswith("cannot write") else 2)
    assert message.format(path=path) in result.err
    assert result.err.count("\n") == 1


def test_files_of_other_formats_are_rejected(run, tmp_path):
    assert "cannot read" in run("scan", tmp_path / "none.parquet").err
    (tmp_path / "text.parquet").write_text("no")
    assert "neither a log segment, nor Parquet" in run("scan", tmp_path / "text.parquet").err


def test_without_numpy_the_error_names_the_extra(written):
    path = written([[("k", b"v")]])
    code = f"import sys; sys.modules['numpy'] = None; {MAIN}"
    result = subprocess.run(
        [sys.executable, "-c", code, "scan", str(path)], capture_output=True, text=True, timeout=300
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == spelled_out("letterhead: a scan needs numpy: pip install 'letterhead[arrow]'\n")
