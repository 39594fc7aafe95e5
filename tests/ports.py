"""Ports for servers of the tests, which start after their port was chosen."""

from __future__ import annotations

import random
import socket

# Systems number the other end of a connection from 32768 on (Linux) or 49152 on. Below them, no client of another test takes
# a port before the server listens on it, or while a server is down that will start again.
_FIRST, _LAST = 15_000, 32_000
# Several processes of tests choose at the same time, so a seed of one test must not repeat the ports of another.
_draw = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Return ports of loopback on which no program listens."""
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            try:
                sockets.append(socket.create_server(("127.0.0.1", _draw.randint(_FIRST, _LAST))))
            except OSError:
                continue
        return [listener.getsockname()[1] for listener in sockets]
    finally:
        for listener in sockets:
            listener.close()
