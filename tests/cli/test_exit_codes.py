"""Exit codes, and the ways in which a command ends early: each row of the table in the documentation."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import cli
from tests.helpers.command import Result

Run = Callable[..., Result]

SAMPLES = Path(__file__).parents[1] / "samples"
ORDERS = SAMPLES / "orders-0"
STATE = SAMPLES / "streams-state-0_0"
COMMAND = [sys.executable, "-c", "import sys; from letterhead.cli import main; sys.exit(main())"]
FULL = Path("/dev/full")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["read", ORDERS, "-n", "1"], 0),
        (["read", ORDERS, "--start", "20000000000"], 2),
        (["decode", "-f", "kafka", "--hex", "02"], 1),
        (["read", ORDERS, "--headers", "retry:int16", "--errors", "null"], 1),
        (["inspect", "-f", "kafka", "--hex", "0202610276", "--headers", "a:int64"], 1),
        (["inspect", ORDERS, "--offset", "10000"], 1),
        (["read", ORDERS, "--no-such-option"], 2),
        (["read", ORDERS, "--columns", "no such column"], 2),
        ([], 2),
        (["read", "no such file"], 3),
        (["scan", "no such file"], 3),
        (["inspect", "no such file", "-f", "kafka"], 3),
        (["decode", "no such file", "-f", "kafka"], 3),
        (["convert", "no such file", "-f", "kafka", "-t", "iggy"], 3),
        (["encode", "no such file", "-f", "kafka"], 3),
        (["state", "ls", "no such directory"], 3),
        (["state", "verify", "no such directory"], 3),
        (["state", "ls", SAMPLES / "orders-0"], 3),
        (["read", STATE, "--store", "no such store"], 3),
        (["read", STATE], 2),
        (["read", "kafka://127.0.0.1:9/orders"], 3),
    ],
    ids=str,
)
def test_exit_codes_match_outcomes(run: Run, arguments: list[Any], code: int) -> None:
    result = run(*arguments)
    assert (result.code, "Traceback" in result.err) == (code, False)


def test_unwritable_output_exits_like_unreadable_source(run: Run, tmp_path: Path) -> None:
    result = run("read", ORDERS, "-o", tmp_path / "no such directory" / "orders.parquet")
    assert (result.code, "cannot write" in result.err) == (3, True)


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"], ["--help"], ["read", "--help"], ["read", ORDERS], ["read", ORDERS, "--json"], ["read", ORDERS, "--csv"],
        ["read", ORDERS, "-o", "-"], ["read", ORDERS, "--count-by", "tenant"], ["read", ORDERS, "--batches"],
        ["scan", SAMPLES / "orders-0.parquet"], ["formats"], ["doctor"], ["inspect", ORDERS, "--offset", "1"],
        ["decode", "-f", "kafka", "--hex", "00"], ["convert", "-f", "kafka", "-t", "kafka", "--hex", "00", "--as", "hex"],
        ["completion", "bash"], ["state", "ls", STATE],
    ],
    ids=str,
)  # fmt: skip
def test_full_device_prints_one_line(arguments: list[Any]) -> None:
    with FULL.open("wb") as full:
        ended = subprocess.run(
            [*COMMAND, *map(str, arguments)], check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        3, "letterhead: cannot write standard output: no space left on device",
    )  # fmt: skip
    assert "Traceback" not in ended.stderr


def test_closed_pipe_ends_silently() -> None:
    process = subprocess.Popen(
        [*COMMAND, "read", str(ORDERS), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(120), process.stderr.read()) == (141, "")
    process.stderr.close()


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_signal_ends_command_with_its_code(number: int, code: int, word: str) -> None:
    process = subprocess.Popen([*COMMAND, "read", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin is not None
    # The command waits for the first bytes once it has read these.
    process.stdin.write("{")
    process.stdin.flush()
    while not _is_waiting_for_input(process.pid):
        pass
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (code, f"letterhead: {word}\n")


def _is_waiting_for_input(pid: int) -> bool:
    call = Path(f"/proc/{pid}/syscall").read_text().split()
    return call[:2] == ["0", "0x0"]  # read(0, ...)


def test_interrupt_during_imports_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("letterhead.cli.run.run", interrupt)
    assert cli.main(["formats"]) == 130
    assert capsys.readouterr().err == "letterhead: interrupted\n"


# Counts that had no kernel of pyarrow --------------------------------------------------------------------------------


def test_headers_and_arrays_are_counted_as_json(run: Run, tmp_path: Path) -> None:
    result = run("read", SAMPLES / "orders-0.parquet", "--count-by", "headers", "-n", "1", "--csv")
    assert (result.code, result.lines[1]) == (0, ",300")
    result = run("read", ORDERS, "--headers", "tenant:array<string>", "--count-by", "tenant", "--csv")
    assert (result.code, result.lines[-1]) == (0, '"[]",300')
    out = tmp_path / "counts.parquet"
    counting = ["--headers", "route:array<string>", "--count-by", "route,partition", "-n", "3"]
    result = run("read", ORDERS, *counting, "--json")
    rows = [json.loads(line) for line in result.lines]
    assert rows[0]["route"] == []
    result = run("read", ORDERS, *counting, "-o", out)
    assert result.err == f"10,000 records with 85 values written to {out}\n"
    assert pq.read_table(out).to_pylist() == rows


def test_times_beyond_the_year_9999_are_counted(run: Run, tmp_path: Path) -> None:
    times = pa.array([0, 10**15, 10**15], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"at": times}), tmp_path / "times.parquet")
    result = run("read", tmp_path / "times.parquet", "--count-by", "at", "--json")
    assert (result.code, result.lines) == (
        0, ['{"at":1000000000000000,"count":2}', '{"at":"1970-01-01T00:00:00.000Z","count":1}'],
    )  # fmt: skip
    assert run("read", tmp_path / "times.parquet", "--count-by", "at:1h,max(at)").code == 0
    log = tmp_path / "late-0"
    log.mkdir()
    messages = [lh.Message(offset=0, timestamp=10**15, headers=[])]
    (log / "00000000000000000000.log").write_bytes(lh.batch(messages, "record-batch"))
    assert run("read", log, "--count-by", "timestamp").code == 0
