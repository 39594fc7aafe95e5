"""Sockets in tests of clients and servers."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class LoopbackServer:
    """Serves every connection to a free port of this machine in a thread of its own."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._clients: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections, and refuse new ones."""
        if self._listener.fileno() >= 0:
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts
            self._listener.close()
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return len(self._clients)

    @property
    def place(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                threading.Thread(target=self._run, args=(client,), daemon=True).start()

    def _run(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        raise NotImplementedError


def receive_exactly(source: socket.socket, size: int) -> bytes:
    """Receive a number of bytes; raise ConnectionError if the connection ends before."""
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data
