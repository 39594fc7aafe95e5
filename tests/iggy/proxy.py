"""A proxy before a server, which cuts off clients after they sent a batch and passes the batch on later."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from letterhead.iggy.connection import SEND
from tests.iggy.lying_server import frame_of

OPERATION_AT = 176


class Proxy:
    """Passes requests to a server and replies back, but for some batches.

    Parameters
    ----------
    port : int
        Where the server is.
    cut : set of int
        Which batches to hold, counted from 1.
    delay : float
        For how many seconds; negative: they never arrive.
    """

    def __init__(self, port: int, cut: set[int], delay: float) -> None:
        self._server, self._cut, self._delay = ("127.0.0.1", port), cut, delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.sent = 0
        self.late = 0
        """How many batches were passed on later."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=_replies, args=(server, client), daemon=True).start()
        with contextlib.suppress(OSError):
            while True:
                frame = frame_of(client)
                if frame[OPERATION_AT] == SEND:
                    self.sent += 1
                    if self.sent in self._cut:
                        client.shutdown(socket.SHUT_RDWR)
                        if self._delay >= 0:
                            time.sleep(self._delay)
                            server.sendall(frame)
                            self.late += 1
                            time.sleep(0.1)  # for the reply, which nobody gets
                        break
                server.sendall(frame)
        for sock in (client, server):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _replies(server: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := server.recv(1 << 16):
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)
