"""A session of Spark Connect, one at a time on this machine: its local server always listens on the same port."""

from __future__ import annotations

import fcntl
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

PORT = 15002
_held: list[Any] = []


def local_session(builder: Any) -> Any:
    """Return the session of a local server, after those of other processes have ended; this process keeps the port."""
    lock = (Path(tempfile.gettempdir()) / "spark-connect-port.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    _held.append(lock)  # open, and so locked, until the process ends
    deadline = time.monotonic() + 120  # the server of the last process may still be stopping
    while _is_used() and time.monotonic() < deadline:
        time.sleep(0.2)
    return builder.remote("local[2]").getOrCreate()


def _is_used() -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", PORT))
        except OSError:
            return True
    return False
