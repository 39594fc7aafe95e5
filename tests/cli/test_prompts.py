"""Passwords that neither an argument, nor settings, nor the environment has are asked for, on a terminal only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.terminal import CTRL_C, answer

COMMAND = [sys.executable, "-m", "letterhead", "read", "--timeout", "1"]
# Nothing listens on port 1, so each login ends in a refused connection.
KAFKA = [*COMMAND, "kafka://127.0.0.1:1/orders"]
for setting in ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=alice"):
    KAFKA += ["-X", setting]
IGGY = [*COMMAND, "iggy://127.0.0.1:1/stream/topic"]
SECRET = "hunter2"
NO_LOGIN = {"IGGY_USERNAME": "", "IGGY_PASSWORD": "", "IGGY_TOKEN": ""}


def test_kafka_password_prompt_hides_input() -> None:
    code, screen = answer(KAFKA, {"password of alice: ": f"{SECRET}\n"})
    assert (code, SECRET in screen) == (3, False), screen
    assert screen.startswith("password of alice: \nletterhead: no ")


def test_iggy_prompt_shows_user_and_hides_password() -> None:
    code, screen = answer(IGGY, {"user of Iggy: ": "alice\n", "\npassword: ": f"{SECRET}\n"}, **NO_LOGIN)
    assert (code, SECRET in screen) == (3, False), screen
    assert screen.startswith("user of Iggy: alice\npassword: \nletterhead: ")


@pytest.mark.parametrize("key", [CTRL_C, "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_ctrl_c_and_ctrl_d_end_a_prompt(key: str) -> None:
    code, screen = answer(KAFKA, {"password of alice: ": key})
    assert code == 130
    assert screen.splitlines()[-1] == "letterhead: interrupted"


def test_prompt_is_not_written_to_stdout(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, screen = answer(["sh", "-c", f'exec "$@" > {out}', "sh", *KAFKA], {"password of alice: ": f"{SECRET}\n"})
    assert (code, out.read_text(), "password of alice" in screen) == (3, "", True)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (IGGY, 2, "no login is known: set IGGY_USERNAME and IGGY_PASSWORD"),
        (KAFKA, 2, "PLAIN needs user name and password"),
    ],
    ids=["iggy", "kafka"],
)
def test_prompt_needs_terminal(command: list[str], code: int, message: str) -> None:
    ended = subprocess.run(
        command, env=os.environ | NO_LOGIN, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in ended.stderr
