"""Sockets in tests of clients and servers."""

from __future__ import annotations

import socket


def receive_exactly(source: socket.socket, size: int) -> bytes:
    """Receive a number of bytes; raise ConnectionError if the connection ends before."""
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data
