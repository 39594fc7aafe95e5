"""A session of Spark Connect, one at a time on this machine: its local server always listens on the same port."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PORT = 15002
_until_exit = contextlib.ExitStack()


def local_session(builder: Any) -> Any:
    """Return the session of a local server; this process keeps the port until it ends."""
    _until_exit.enter_context(held_port())
    return builder.remote("local[2]").getOrCreate()


@contextlib.contextmanager
def held_port() -> Iterator[None]:
    """Keep the servers of other processes from the port, after theirs have ended."""
    with (Path(tempfile.gettempdir()) / "spark-connect-port.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        deadline = time.monotonic() + 120  # the server of the last process may still be stopping
        while _is_used() and time.monotonic() < deadline:
            time.sleep(0.2)
        yield


def _is_used() -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", PORT))
        except OSError:
            return True
    return False
