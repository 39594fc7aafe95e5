"""Output goes where it was sent: a progress bar on a terminal never touches standard output, and rows stream."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.cli import main
from terminal import read_to_end

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
    "convert": ["convert", "--hex", BLOCK, "-f", "kafka", "-t", "streams", "--to-hex"],
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
    "encode-hex": ["encode", "-f", "kafka", "--hex"],
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
def test_output_to_a_file_or_pipe_does_not_depend_on_the_terminal(
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
def test_output_to_a_terminal_is_whole(
    args: list[str], plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, expected = plain(args, tmp_path)
    screen, errors = Terminal(), io.StringIO()
    assert run(monkeypatch, args, screen.file, errors) == code
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.close())
    assert "\x1b" not in shown
    assert [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in expected.splitlines()]


def test_no_bar_is_drawn_between_rows_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    assert run(monkeypatch, COMMANDS["read-json"], screen.file, screen.file) == 0
    lines = screen.close().splitlines()
    assert [line[:1] for line in lines] == ["{"] * 3


def test_a_bar_is_drawn_while_a_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    with (tmp_path / "stdout").open("w") as out:
        code = run(
            monkeypatch, ["read", str(SAMPLES / "orders-0"), "-o", str(tmp_path / "o.parquet")], out, screen.file
        )
    assert code == 0
    assert "reading" in screen.close()
    assert (tmp_path / "stdout").read_text() == ""


def test_a_column_name_is_no_markup_in_the_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"[/x]": pa.array([bytes(1)], pa.binary())}), tmp_path / "x.parquet")
    screen = Terminal()
    with (tmp_path / "stdout").open("w") as out:
        args = ["decode", str(tmp_path / "x.parquet"), "-c", "[/x]", "-f", "kafka", "--json"]
        assert run(monkeypatch, args, out, screen.file) == 0
    assert "decoding [/x]" in screen.close()


@pytest.mark.parametrize("sink", ["file", "terminal"])
def test_restore_prints_its_result_where_stdout_is(sink: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.full  # on a busy machine, the command can end before the signal arrives
def test_an_interrupt_leaves_no_partial_file(tmp_path: Path) -> None:
    schema = pa.schema({"value": pa.binary()})
    with pq.ParquetWriter(tmp_path / "in.parquet", schema) as writer:
        for _ in range(200):
            writer.write_table(pa.table({"value": pa.array([bytes(1)] * 10_000, pa.binary())}, schema))
    out = tmp_path / "out" / "out.parquet"
    out.parent.mkdir()
    args = ["decode", str(tmp_path / "in.parquet"), "-c", "value", "-f", "kafka", "-o", str(out)]
    screen = Terminal()
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from letterhead.cli import main; sys.exit(main())", *args],
        stdin=screen.file, stdout=screen.file, stderr=screen.file,
    )  # fmt: skip
    partial = out.with_name("out.parquet.part")
    while process.poll() is None and not (partial.exists() and partial.stat().st_size > 1000):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert screen.close().rstrip().endswith("letterhead: interrupted")
    assert list(out.parent.iterdir()) == []


def test_all_rows_of_a_large_file_are_shown_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
