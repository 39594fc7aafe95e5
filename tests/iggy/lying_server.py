"""A server that repeats recorded replies, some of them changed; and the recording of them from a real server.

``IGGY_SERVER=... python -m tests.iggy.lying_server`` records ``replies.json`` again.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

import letterhead as lh
from tests.sockets import LoopbackServer, receive_exactly

REPLIES = Path(__file__).with_name("replies.json")
HEADER_LEN = 256
USER = "iggy:p%40ss%2Fword"

Lie: TypeAlias = Callable[[str, bytes], bytes]
"""Returns what to send instead of the reply to a request."""


def read(address: str, **options: object) -> pa.Table:
    """Read the recorded topic."""
    with lh.read.iggy(address, stream="tests", topic="lies", start={0: 1, 1: "earliest"}, **options) as reader:
        return reader.read_all()


def write(address: str, **options: object) -> lh.write.Written:
    """Append to the recorded topic."""
    return lh.write.iggy(pa.table({"payload": ["x"]}), address, stream="tests", topic="lies", partition=1, **options)


def request_key(frame: bytes) -> str:
    """Name a request by what it asks for."""
    operation, command = frame[176], struct.unpack_from("<I", frame, 196)[0]
    return f"{operation} {command} {frame[HEADER_LEN:].hex() if operation == 2 else ''}"


class LyingServer(LoopbackServer):
    """Answers requests that were recorded; other ones end the connection."""

    def __init__(self, lie: Lie | None = None) -> None:
        self._replies = {key: bytes.fromhex(reply) for key, reply in json.loads(REPLIES.read_text()).items()}
        self._lie = lie
        super().__init__()

    @property
    def address(self) -> str:
        """The address for a client."""
        return f"iggy://{USER}@{self.place}"

    def _serve(self, client: socket.socket) -> None:
        while True:
            key = request_key(frame_of(client))
            reply = self._replies.get(key)
            if reply is None:
                return
            told = reply if self._lie is None else self._lie(key, reply)
            client.sendall(told)
            if told != reply:
                # The client does not wait for bytes that a changed size announces.
                client.shutdown(socket.SHUT_WR)


def frame_of(source: socket.socket) -> bytes:
    """Receive a request or a reply."""
    header = receive_exactly(source, HEADER_LEN)
    return header + receive_exactly(source, struct.unpack_from("<I", header, 48)[0] - HEADER_LEN)


def record(directory: Path) -> None:
    """Record what a real server answers to the requests of this module."""
    from letterhead.iggy.address import Address
    from letterhead.iggy.client import IggyClient
    from tests.iggy.server import Server
    from tests.iggy.test_read import fill, numbered

    server = Server(directory)
    server.start()
    replies: dict[str, str] = {}

    def serve(client: socket.socket) -> None:
        upstream = socket.create_connection(("127.0.0.1", server.port))
        with client, upstream, contextlib.suppress(OSError):
            while True:
                request = frame_of(client)
                upstream.sendall(request)
                reply = frame_of(upstream)
                replies[request_key(request)] = reply.hex()
                client.sendall(reply)

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    try:
        server.create("tests", "lies", 2)
        fill(server, "lies", 0, numbered(5), 3)
        fill(server, "lies", 1, numbered(2))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=accept, args=(listener,), daemon=True).start()
            address = f"iggy://{USER}@127.0.0.1:{listener.getsockname()[1]}"
            read(address)
            write(address)
            with IggyClient(Address.parse(address), 5000) as client:
                client.lists(b"")
    finally:
        server.stop()
    REPLIES.write_text(json.dumps(replies, indent=1) + "\n")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        record(Path(directory))
