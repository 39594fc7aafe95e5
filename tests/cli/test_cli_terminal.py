"""Output goes where it was sent: a progress bar on a terminal never touches standard output, and rows stream."""

from __future__ import annotations

import functools
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.cli import main
from tests.helpers.terminal import read_to_end

SAMPLES = Path(__file__).parents[1] / "samples"
ORDERS = str(SAMPLES / "orders-0.parquet")
STATE = str(SAMPLES / "streams-state-0_0")
CHANGELOG = str(SAMPLES / "orders-app-latest-changelog-0")
BLOCK = "040c74656e616e740861636d650a726f75746501"
BATCH = (lh.encode(lh.Message(offset=0, key=b"k", value=b"v", headers={"n": lh.Int8(1)}), "kip82-message") or b"").hex()
BLOCKS = ["-c", "value", "-f", "streams-timestamped"]
STORE = str(SAMPLES / "store-latest-0.parquet")

COMMANDS = {
    "inspect": ["inspect", "--hex", BLOCK, "-f", "kafka"],
    "inspect-json": ["inspect", "--hex", BLOCK, "-f", "kafka", "--json"],
    "decode": ["decode", "--hex", BLOCK, "-f", "kafka"],
    "decode-json": ["decode", "--hex", BLOCK, "-f", "kafka", "--json"],
    "decode-column": ["decode", STORE, *BLOCKS, "--limit", "5"],
    "decode-column-json": ["decode", STORE, *BLOCKS, "--json", "--limit", "5"],
    "decode-lists-json": ["decode", ORDERS, "-c", "headers", "-f", "kafka", "--json", "--limit", "5"],
    "convert": ["convert", "--hex", BLOCK, "-f", "kafka", "-t", "streams", "--as", "hex"],
    "convert-column": ["convert", ORDERS, "-c", "headers", "-f", "kafka", "-t", "streams", "--limit", "5"],
    "convert-column-json": [
        "convert",
        ORDERS,
        "-c",
        "headers",
        "-f",
        "kafka",
        "-t",
        "streams",
        "--json",
        "--limit",
        "5",
    ],
    "scan": ["scan", ORDERS],
    "scan-json": ["scan", ORDERS, "--json"],
    "scan-code": ["scan", ORDERS, "--code", "arrow"],
    "read": ["read", str(SAMPLES / "orders-0"), "-n", "3"],
    "read-json": ["read", str(SAMPLES / "orders-0"), "--json", "-n", "3"],
    "formats": ["formats"],
    "formats-json": ["formats", "--json"],
    "doctor": ["doctor"],
    "ls": ["state", "ls", STATE],
    "ls-json": ["state", "ls", STATE, "--json"],
    "inspect-batch": ["inspect", "--hex", BATCH, "-f", "kip82-messages"],
    "decode-batch-json": ["decode", "--hex", BATCH, "-f", "kip82-messages", "--json"],
    "encode-hex": ["encode", "-f", "kafka", "--as", "hex"],
    "get": ["state", "get", STATE, "--store", "latest", "order-00000"],
    "get-found-json": ["state", "get", STATE, "--store", "latest", "order-00000", "--json"],
    "get-json": ["state", "get", STATE, "--store", "latest", "missing", "--json"],
    "read-store": ["read", STATE, "--store", "latest", "--limit", "3"],
    "read-store-json": ["read", STATE, "--store", "latest", "--limit", "3", "--json"],
    "upgrade": ["state", "upgrade", STATE, "--dry-run"],
    "verify": ["state", "verify", STATE],
    "verify-json": ["state", "verify", STATE, "--json"],
    "diff": ["state", "diff", f"{STATE}/rocksdb/latest", CHANGELOG],
    "diff-json": ["state", "diff", f"{STATE}/rocksdb/latest", CHANGELOG, "--json"],
}


class Terminal:
    """A pseudo-terminal as a text file."""

    def __init__(self) -> None:
        self._leader, follower = pty.openpty()
        self.file = io.TextIOWrapper(io.FileIO(follower, "w"), write_through=True)
        self._printed = b""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        self._printed = read_to_end(self._leader)

    def close(self) -> str:
        """Return what was printed."""
        self.file.close()
        self._thread.join()
        return self._printed.decode().replace("\r\n", "\n")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "96")
    monkeypatch.setenv("TERM", "xterm-256color")
    # On a terminal the header of a table may be bold, but rows are the same.
    monkeypatch.setenv("NO_COLOR", "1")


def run(monkeypatch: pytest.MonkeyPatch, args: list[str], out: Any, err: Any) -> int:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"headers": [{"key": "k", "value": "v"}]}')))
        code = main(args)
        out.flush()
    return code


@pytest.fixture(scope="module")
def plain() -> Callable[[list[str], Path], tuple[int, str]]:
    """Run a command without a terminal; each only once."""
    results: dict[tuple[str, ...], tuple[int, str]] = {}

    def run_plain(args: list[str], folder: Path) -> tuple[int, str]:
        if tuple(args) not in results:
            with pytest.MonkeyPatch.context() as patch, (folder / "plain").open("w+") as out, io.StringIO() as err:
                code = run(patch, args, out, err)
                out.seek(0)
                results[tuple(args)] = code, out.read()
        return results[tuple(args)]

    return run_plain


@pytest.mark.parametrize("args", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("sink", ["file", "pipe"])
def test_output_to_file_or_pipe_ignores_terminal(
    args: list[str], sink: str, plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, expected = plain(args, tmp_path)
    screen = Terminal()
    if sink == "file":
        with (tmp_path / "out").open("w") as out:
            assert run(monkeypatch, args, out, screen.file) == code
        printed = (tmp_path / "out").read_text()
    else:
        reading, writing = os.pipe()
        chunks: list[bytes] = []
        reader = threading.Thread(target=lambda: chunks.extend(iter(lambda: os.read(reading, 65536), b"")))
        reader.start()
        with os.fdopen(writing, "w") as out:
            assert run(monkeypatch, args, out, screen.file) == code
        reader.join()
        os.close(reading)
        printed = b"".join(chunks).decode()
    screen.close()
    assert printed == expected


@pytest.mark.parametrize("args", COMMANDS.values(), ids=COMMANDS)
def test_output_to_terminal_is_complete(
    args: list[str], plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, expected = plain(args, tmp_path)
    screen, errors = Terminal(), io.StringIO()
    assert run(monkeypatch, args, screen.file, errors) == code
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.close())
    assert "\x1b" not in shown
    assert [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in expected.splitlines()]


def test_progress_bar_is_not_drawn_between_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    assert run(monkeypatch, COMMANDS["read-json"], screen.file, screen.file) == 0
    lines = screen.close().splitlines()
    assert [line[:1] for line in lines] == ["{"] * 3


def test_progress_bar_is_drawn_while_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    with (tmp_path / "stdout").open("w") as out:
        code = run(
            monkeypatch, ["read", str(SAMPLES / "orders-0"), "-o", str(tmp_path / "o.parquet")], out, screen.file
        )
    assert code == 0
    assert "reading" in screen.close()
    assert (tmp_path / "stdout").read_text() == ""


@pytest.mark.parametrize(
    ("source", "amount"),
    [
        ("orders-0", r"10,000 records, 1\.8 of 1\.8 MB, [0-9,]+/s"),
        ("orders-0.parquet", r"10,000 of 10,000 rows, [0-9,]+/s"),
        ("orders-0.parquet --limit 500", r"500 of 500 rows, [0-9,]+/s"),
        ("orders.jsonl", r"10,000 rows, 8\.4 of 8\.4 MB, [0-9,]+/s"),
        ("streams-state-0_0 -s latest", r"6,643 rows, [0-9,]+/s"),
    ],
)
@pytest.mark.parametrize("columns", ["80", "200"])
def test_progress_bar_shows_share_read(
    source: str, amount: str, columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Any
) -> None:
    name, *options = source.split()
    path = SAMPLES / name
    if name == "orders.jsonl":
        path = tmp_path / name
        path.write_text(plain(["read", ORDERS.removesuffix(".parquet"), "--json"], tmp_path)[1])
    monkeypatch.setenv("COLUMNS", columns)
    screen = Terminal()
    with (tmp_path / "stdout").open("w") as out:
        assert run(monkeypatch, ["read", str(path), *options, "--csv"], out, screen.file) == 0
    assert re.search(amount, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.close()))


def test_progress_bar_escapes_markup_in_column_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"[/x]": pa.array([bytes(1)], pa.binary())}), tmp_path / "x.parquet")
    screen = Terminal()
    with (tmp_path / "stdout").open("w") as out:
        args = ["decode", str(tmp_path / "x.parquet"), "-c", "[/x]", "-f", "kafka", "--json"]
        assert run(monkeypatch, args, out, screen.file) == 0
    assert "decoding [/x]" in screen.close()


@pytest.mark.parametrize("sink", ["file", "terminal"])
def test_restore_prints_result_to_stdout(sink: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rocksdict")
    screen = Terminal()
    with (tmp_path / "stdout").open("w") as file:
        args = ["state", "restore", CHANGELOG, str(tmp_path / "app"), "--store", "latest", "--json"]
        assert run(monkeypatch, args, file if sink == "file" else screen.file, screen.file) == 0
    shown = screen.close()
    printed = (tmp_path / "stdout").read_text() if sink == "file" else shown[shown.index("[\n") :]
    [partition] = json.loads(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed))
    assert partition["offset"] == 9999
    assert sink == "terminal" or '"offset"' not in shown


COMMAND = [sys.executable, "-m", "letterhead"]


@pytest.fixture
def many_rows(tmp_path: Path) -> Path:
    """Write a file that takes longer to decode than a signal to arrive."""
    schema = pa.schema({"value": pa.binary()})
    with pq.ParquetWriter(tmp_path / "in.parquet", schema) as writer:
        for _ in range(200):
            writer.write_table(pa.table({"value": pa.array([bytes(1)] * 10_000, pa.binary())}, schema))
    return tmp_path / "in.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl", "csv.gz"])
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_signal_leaves_no_partial_file(ending: str, number: int, code: int, word: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{ending}"
    program = (
        "import os, sys, letterhead.cli.column as column; from letterhead.cli import main; write = column.open_writer\n"
        "def open_writer(*arguments):\n"
        "    writer = write(*arguments); write_rows = writer.write\n"
        f"    writer.write = lambda batch: (write_rows(batch), os.kill(os.getpid(), {int(number)}))\n"
        "    return writer\n"
        "column.open_writer = open_writer; sys.exit(main())"
    )
    args = ["decode", STORE, *BLOCKS, "-o", str(out)]
    ended = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, f"letterhead: {word}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("form", [["--json"], []])
def test_closed_pipe_ends_command_silently(form: list[str], many_rows: Path) -> None:
    args = ["decode", str(many_rows), "-c", "value", "-f", "kafka", "--limit", "2000000", *form]
    process = subprocess.Popen([*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == b""
    process.stderr.close()


ASCII = ("PYTHONIOENCODING", "ascii")
LOCALES = [("LC_ALL", "C"), ("PYTHONIOENCODING", "latin-1"), ASCII]


@functools.cache
def output(command: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command without variables of a locale but these."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONIO"))}
    return subprocess.run([*COMMAND, *COMMANDS[command]], env=environment | variables, capture_output=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "variable", "value"),
    [
        *(("read", *locale) for locale in LOCALES),
        *((name, *ASCII) for name in ("read-json", "decode", "decode-column", "scan", "ls", "inspect", "diff")),
    ],
)
def test_every_terminal_type_shows_all_output(command: str, variable: str, value: str) -> None:
    expected, shown = output(command, PYTHONUTF8="1"), output(command, **{variable: value})
    assert (shown.returncode, shown.stderr) == (expected.returncode, expected.stderr)
    assert shown.stdout.count(b"\n") == expected.stdout.count(b"\n")
    shown.stdout.decode("utf-8" if value == "C" else value)
    if command == "read-json":
        assert list(map(json.loads, shown.stdout.splitlines())) == list(map(json.loads, expected.stdout.splitlines()))


@pytest.mark.parametrize("where", ["before", "after"])
def test_quiet_omits_progress_and_notes(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = ["read", str(SAMPLES / "orders-0"), "-o", str(tmp_path / "o.parquet")]
    screen = Terminal()
    with (tmp_path / "stdout").open("w") as out:
        quiet = ["-q", *args] if where == "before" else [*args, "--quiet"]
        assert run(monkeypatch, quiet, out, screen.file) == 0
    assert screen.close() == ""
    with (tmp_path / "stdout").open("w") as out, io.StringIO() as err:
        assert run(monkeypatch, args, out, err) == 0
        assert "10,000 records written" in err.getvalue()


def test_no_color_prints_no_codes_on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    codes = {}
    for option in ([], ["--no-color"]):
        screen = Terminal()
        assert run(monkeypatch, [*COMMANDS["read"], *option], screen.file, io.StringIO()) == 0
        codes[bool(option)] = "\x1b" in screen.close()
        assert "NO_COLOR" not in os.environ
    assert codes == {False: True, True: False}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_calls_command(shell: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "script").open("w+") as out:
        assert run(monkeypatch, ["completion", shell], out, io.StringIO()) == 0
        out.seek(0)
        assert f"complete_{shell}" in out.read()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("letterhead de", ["decode"]),
        ("letterhead decode --format kaf", ["kafka"]),
        ("letterhead decode -f aut", ["auto"]),
        ("letterhead convert -f iggy --to iggy-mess", ["iggy-message-2023", "iggy-message"]),
        ("letterhead encode -f iggy-a", []),
        (f"letterhead state get {STATE} -s ", ["hourly", "latest", "sessions"]),
        (f"letterhead state get {STATE} key --store h", ["hourly"]),
        ("letterhead state get /nowhere -s ", []),
        (f"letterhead read {STATE} -s ", ["hourly", "latest", "sessions"]),
        ("letterhead convert --on-loss d", ["drop"]),
    ],
)
def test_completion_offers_commands_formats_and_stores(line: str, words: list[str]) -> None:
    variables = {"_LETTERHEAD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    completed = subprocess.run(COMMAND, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert (completed.stdout.split(), completed.stderr) == (words, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_works_in_bash(tmp_path: Path) -> None:
    (tmp_path / "letterhead").write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    (tmp_path / "letterhead").chmod(0o755)
    program = (
        'eval "$(letterhead completion bash)"; COMP_WORDS=(letterhead decode --format kip82-t); COMP_CWORD=3; '
        '_letterhead_completion letterhead; echo "${COMPREPLY[@]}"; complete -p letterhead'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", program], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    assert result.stdout.split("\n")[0] == "kip82-typed"


def test_package_runs_as_program() -> None:
    for option in ("--version", "-V"):
        result = subprocess.run([*COMMAND, option], capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("letterhead ")


@pytest.mark.parametrize("args", [COMMANDS["read-json"], COMMANDS["decode-column-json"]])
def test_command_starts_without_pandas(args: list[str]) -> None:
    program = "import sys; from letterhead.cli import main; code = main(); sys.exit(code or 'pandas' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_all_rows_of_large_file_are_shown_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"value": pa.array([bytes(1)] * 2500, pa.binary())}), tmp_path / "in.parquet")
    with (tmp_path / "out").open("w") as out, io.StringIO() as err:
        args = ["decode", str(tmp_path / "in.parquet"), "-c", "value", "-f", "kafka", "--all"]
        args += ["--limit", "2500"]
        assert run(monkeypatch, args, out, err) == 0
    lines = (tmp_path / "out").read_text().splitlines()
    assert sum(line.split()[:1] == ["row"] for line in lines) == 1
    assert [int(line.split()[0]) for line in lines if line.split() and line.split()[0].isdigit()][:2500] == [
        *range(2500)
    ]
