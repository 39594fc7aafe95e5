"""Time limits that show where a test hung: before a test is ended, the stacks of Python and of its JVMs are printed.

pytest-timeout ends the test. What it prints is lost where several processes share the tests, so stacks are printed here.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key  # standard error before it was captured


@contextmanager
def watched(item: pytest.Item) -> Iterator[None]:
    """Print the stacks of Python and of the JVMs shortly before pytest-timeout ends the test."""
    marker = item.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker else item.config.getoption("timeout") or item.config.getini("timeout"))
    screen = item.config.stash[fault_handler_stderr_fd_key]
    watch = threading.Timer(max(limit - 10, 1), print_stacks, [item.nodeid, screen])
    watch.daemon = True
    watch.start()
    # Where no thread of Python gets to run, as in C code that never lets go, this still ends the process.
    faulthandler.dump_traceback_later(limit + 60, exit=True, file=screen)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        watch.cancel()


def print_stacks(test: str, screen: int) -> None:
    """Print what every thread of this process is doing, and of every Java process below it."""
    import psutil

    os.write(screen, f"\n{test} is at its time limit; Python:\n".encode())
    faulthandler.dump_traceback(screen)

    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() != "java":
                continue
            stacks = subprocess.run(
                ["jstack", str(process.pid)], check=False, capture_output=True, text=True, timeout=8
            ).stdout
        except (OSError, psutil.Error, subprocess.SubprocessError) as error:
            stacks = repr(error)
        os.write(screen, f"\n{test} is at its time limit; JVM {process.pid}:\n{stacks}\n".encode())
