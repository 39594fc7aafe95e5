"""What a program prints on a pseudo-terminal, and what a person types there."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
import threading
import time
from collections.abc import Mapping, Sequence

CTRL_C = "\x03"
_PATIENCE = 10.0
"""Seconds after which Ctrl-C is typed again. Python misses a signal that arrives just before it waits for input."""


def read_to_end(leader: int) -> bytes:
    """Read until the last program on the other side is gone, and close this side."""
    printed = b""
    while True:
        try:
            some = os.read(leader, 65536)
        except OSError:
            # Linux reports the end of a pseudo-terminal this way.
            break
        if not some:
            break
        printed += some
    os.close(leader)
    return printed


def answer(command: Sequence[str], answers: Mapping[str, str], **variables: str) -> tuple[int, str]:
    """Run a command on a terminal of its own, type an answer after each prompt, and return exit code and screen."""
    process, leader = pty.fork()
    if process == 0:
        try:
            os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", **variables})
        finally:
            os._exit(127)
    guard = threading.Timer(120, os.kill, (process, signal.SIGKILL))
    guard.start()
    screen, left, typed = b"", dict(answers), ""
    try:
        while True:
            try:
                while typed == CTRL_C and not select.select([leader], [], [], _PATIENCE)[0]:
                    os.write(leader, typed.encode())
                some = os.read(leader, 65536)
            except OSError:
                break
            screen += some
            for prompt in [prompt for prompt in left if prompt.encode() in screen]:
                # A program discards what was typed before it turned the echo off.
                while "password" in prompt and termios.tcgetattr(leader)[3] & termios.ECHO:
                    time.sleep(0.01)
                typed = left.pop(prompt)
                os.write(leader, typed.encode())
        _, status = os.waitpid(process, 0)
    finally:
        guard.cancel()
        os.close(leader)
    return os.waitstatus_to_exitcode(status), screen.decode().replace("\r\n", "\n")
