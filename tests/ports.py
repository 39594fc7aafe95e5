"""Ports for servers of the tests, which start after their port was chosen."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

# Systems number the other end of a connection from 32768 on (Linux) or 49152 on. Below them, no client of another test takes
# a port before the server listens on it, or while a server is down that will start again.
_FIRST, _LAST = 15_000, 32_000
# Several processes of tests choose at the same time, so a seed of one test must not repeat the ports of another.
_draw = random.SystemRandom()

_LOCKS = Path(tempfile.gettempdir()) / f"letterhead-test-ports-{os.getuid()}"
_reserved: list[IO[str]] = []
"""Locked files of the ports that this process chose: until its end, no other process of tests chooses them."""


def free_ports(count: int) -> list[int]:
    """Return ports of loopback on which no program listens, and which no other process of tests has chosen."""
    ports: list[int] = []
    while len(ports) < count:
        port = _draw.randint(_FIRST, _LAST)
        if _is_free(port) and _reserve(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _reserve(port: int) -> bool:
    _LOCKS.mkdir(exist_ok=True)
    lock = (_LOCKS / str(port)).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return False
    _reserved.append(lock)
    return True
