"""A broker that repeats recorded responses, some of them changed; and the recording of them from a real broker.

``python -m tests.kafka.lying_broker`` records ``responses.json`` again.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

import letterhead as lh
from tests.sockets import LoopbackServer, receive_exactly

RESPONSES = Path(__file__).with_name("responses.json")
TOPIC = "lies"
HOST = b"127.0.0.1"

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 2, 3, 18, 22

Lie: TypeAlias = Callable[[int, bytes], bytes]
"""Returns the response to send, without its size, instead of the response to a request with an API key."""

Relay: TypeAlias = Callable[[bytes, bytes], bytes | None]
"""Returns the response to pass on, of a request and a response; without one the connection ends."""


def read(address: str, **options: object) -> pa.Table:
    """Read the recorded topic, in two fetches for each partition."""
    with lh.read.topic(TOPIC, bootstrap_servers=address, fetch_bytes=100, **options) as reader:
        return reader.read_all()


def write(address: str, **options: object) -> lh.write.Written:
    """Append to the recorded topic."""
    table = pa.table({"value": ["x", "y"]})
    settings = {"client.id": "letterhead"}
    return lh.write.topic(table, TOPIC, bootstrap_servers=address, partition=1, settings=settings, **options)


def request_key(frame: bytes) -> str:
    """Name a request by what it asks for."""
    api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    body = frame[10 + int.from_bytes(frame[8:10], "big") :] if api_key in (FETCH, LIST_OFFSETS, METADATA) else b""
    if api_key == FETCH:
        body = body[:5] + body[9:]  # without the time to wait for records, which follows the time limit
    return f"{api_key} {version} {body.hex()}"


class LyingBroker(LoopbackServer):
    """Answers requests that were recorded, and those of ``more``; other ones end the connection."""

    def __init__(self, lie: Lie | None = None, more: Mapping[str, bytes] | None = None) -> None:
        super().__init__()
        recorded = json.loads(RESPONSES.read_text())
        there, here = (HOST + port.to_bytes(4, "big") for port in (recorded["port"], self.port))
        responses = recorded["responses"].items()
        self._responses = {key: bytes.fromhex(response).replace(there, here) for key, response in responses}
        self._responses |= more or {}
        self._lie = lie

    @property
    def address(self) -> str:
        """The address for a client."""
        return self.place

    def _serve(self, client: socket.socket) -> None:
        while True:
            request = frame_of(client)
            response = self._responses.get(request_key(request))
            if response is None:
                return
            response = request[4:8] + response[4:]
            framed = len(response).to_bytes(4, "big") + response
            if self._lie is not None:
                framed = self._lie(int.from_bytes(request[:2], "big"), framed)
            client.sendall(framed)


def frame_of(source: socket.socket) -> bytes:
    """Receive a request or a response, without its size."""
    return receive_exactly(source, int.from_bytes(receive_exactly(source, 4), "big"))


class RelayingBroker(LoopbackServer):
    """Passes requests to a broker, and its responses back through a function, as if it were the broker."""

    def __init__(self, port: int, relay: Relay) -> None:
        super().__init__()
        self._upstream_port = port
        self._relay = relay

    def _serve(self, client: socket.socket) -> None:
        there, here = (HOST + number.to_bytes(4, "big") for number in (self._upstream_port, self.port))
        with socket.create_connection(("127.0.0.1", self._upstream_port)) as upstream:
            while True:
                request = frame_of(client)
                upstream.sendall(len(request).to_bytes(4, "big") + request)
                response = self._relay(request, frame_of(upstream))
                if response is None:
                    return
                response = response.replace(there, here)
                client.sendall(len(response).to_bytes(4, "big") + response)


def record(directory: Path) -> None:
    """Record what a real broker answers to the requests of this module."""
    from tests.kafka.broker import Broker
    from tests.kafka.written import create_with, numbered, producer, send

    broker = Broker(directory)
    broker.start()
    port = int(broker.address.partition(":")[2])
    responses: dict[str, str] = {}

    def note(request: bytes, response: bytes) -> bytes:
        responses[request_key(request)] = response.hex()
        return response

    try:
        create_with(broker.address, TOPIC, 2)
        for partition in range(2):
            for first in (0, 2):
                send(producer(broker.address), TOPIC, numbered(2, first)[:2], partition)
        with RelayingBroker(port, note) as relaying:
            read(relaying.place)
            write(relaying.place)
    finally:
        broker.stop()
    RESPONSES.write_text(json.dumps({"port": port, "responses": responses}, indent=1) + "\n")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        record(Path(directory))
