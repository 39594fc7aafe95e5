"""``timeout_ms`` limits requests of Iggy's reader and writer as a whole, and an interrupt ends them.

Each test fails at its limit if a part of a request has none.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import pyarrow as pa
import pytest

import letterhead as lh
from tests.iggy.lying_server import LyingServer
from tests.iggy.server import Server
from tests.silent import SilentServer, interrupted, without_a_name_server

TOPIC = {"stream": "tests", "topic": "lies", "timeout_ms": 400}
ACTIONS = {
    "reader": lambda address: lh.read.iggy(address, **TOPIC).read_all(),
    "writer": lambda address: lh.write.iggy(pa.table({"payload": ["x"]}), address, **TOPIC),
}
HALF_A_REPLY = bytes(48) + struct.pack("<I8xB", 4000, 8) + bytes(147) + b"\1" + bytes(47)


@pytest.fixture(params=ACTIONS)
def action(request: pytest.FixtureRequest) -> Callable[[str], object]:
    return ACTIONS[request.param]


@pytest.mark.parametrize(("begin", "drips"), [(b"", False), (b"", True), (HALF_A_REPLY, False), (HALF_A_REPLY, True)])
def test_server_with_incomplete_reply_times_out(action: Callable[[str], object], begin: bytes, drips: bool) -> None:
    with (
        SilentServer(begin, drips=drips) as server,
        pytest.raises(TimeoutError, match=rf"127\.0\.0\.1:{server.port} did not answer in 0\.4 s"),
    ):
        action(f"iggy://u:p@127.0.0.1:{server.port}")


def test_server_without_tls_times_out(action: Callable[[str], object]) -> None:
    with SilentServer() as server, pytest.raises(TimeoutError, match=r"did not answer in 0\.4 s"):
        action(f"iggy://u:p@127.0.0.1:{server.port}?tls=true")


def test_unresolved_host_lookup_times_out() -> None:
    program = """
import letterhead as lh
try:
    lh.read.iggy("iggy://u:p@iggy.test:8090", stream="s", topic="t", timeout_ms=400).read_all()
except TimeoutError as error:
    print(error)
"""
    assert without_a_name_server(program) == (
        "iggy.test:8090 did not answer in 0.4 s: the address of iggy.test is not known yet\n"
    )


def test_missing_acknowledgement_times_out_and_warns_of_append() -> None:
    """The server takes the batch, and answers no question about it afterwards."""
    sent = []

    def lie(key: str, reply: bytes) -> bytes:
        if key.startswith("160"):
            sent.append(key)
        return b"" if sent else reply

    with (
        LyingServer(lie) as server,
        pytest.raises(TimeoutError, match=r"did not acknowledge a batch in 3 s, and can still append it"),
    ):
        lh.write.iggy(pa.table({"payload": ["x"]}), server.address, **TOPIC | {"timeout_ms": 3000})
    assert len(sent) == 1


# It failed once in eight runs beside other processes.
@pytest.mark.full
def test_interrupt_ends_waiting_reader() -> None:
    program = "import sys, letterhead as lh; lh.read.iggy(sys.argv[1], stream='s', topic='t').read_all()"
    with SilentServer() as server:
        ended = interrupted(program, f"iggy://u:p@127.0.0.1:{server.port}", server=server)
    assert ended == "KeyboardInterrupt"


def test_request_after_interrupt_gets_own_reply(server: Server, create: Callable[..., str]) -> None:
    from letterhead.iggy.address import Address
    from letterhead.iggy.client import IggyClient, IggyTopic
    from letterhead.iggy.connection import Connection
    from letterhead.offsets.partition_log import TopicPartition

    topic = create()
    lh.write.iggy(pa.table({"payload": ["a", "b"]}), server.address, stream="tests", topic=topic)
    with IggyClient(Address.parse(server.address), 5000) as client:
        place = TopicPartition(IggyTopic("tests", topic), 0)
        assert client.first_offset(place) == 0

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "receive", interrupt)
            with pytest.raises(KeyboardInterrupt):
                client.first_offset(place)
        assert client.end_offset(place) == 2


def test_interrupt_while_connecting_closes_socket(
    action: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets = []

    def interrupt(client: socket.socket, _: object) -> None:
        sockets.append(client)
        raise KeyboardInterrupt

    monkeypatch.setattr(socket.socket, "connect", interrupt)
    with pytest.raises(KeyboardInterrupt):
        action("iggy://u:p@127.0.0.1:1")
    assert [client.fileno() for client in sockets] == [-1]
