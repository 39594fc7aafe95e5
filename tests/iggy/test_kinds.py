"""Headers of every kind, between letterhead, the Python client of Iggy, and the server's JSON."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.iggy import HeaderMap, HeaderValue
from server import PASSWORD, USER, Server

apache_iggy = pytest.importorskip("apache_iggy", reason="the Python client apache-iggy is not installed")

# Our name, the value, the class of apache-iggy and the bytes of the value.
KINDS: list[tuple[str, Any, str, bytes]] = [
    ("raw", b"\x00\xff", "Raw", b"\x00\xff"),
    ("string", "Zoë", "String", "Zoë".encode()),
    ("bool", True, "Bool", b"\x01"),
    ("int8", -7, "Int8", b"\xf9"),
    ("int16", -300, "Int16", (-300).to_bytes(2, "little", signed=True)),
    ("int32", -70_000, "Int32", (-70_000).to_bytes(4, "little", signed=True)),
    ("int64", -(1 << 40), "Int64", (-(1 << 40)).to_bytes(8, "little", signed=True)),
    ("int128", -(1 << 100), "Int128", (-(1 << 100)).to_bytes(16, "little", signed=True)),
    ("uint8", 200, "UnsignedInt8", b"\xc8"),
    ("uint16", 60_000, "UnsignedInt16", (60_000).to_bytes(2, "little")),
    ("uint32", 4_000_000_000, "UnsignedInt32", (4_000_000_000).to_bytes(4, "little")),
    ("uint64", 1 << 63, "UnsignedInt64", (1 << 63).to_bytes(8, "little")),
    ("uint128", 1 << 120, "UnsignedInt128", (1 << 120).to_bytes(16, "little")),
    ("float32", 0.5, "Float32", b"\x00\x00\x00\x3f"),
    ("float64", 0.1, "Float64", bytes.fromhex("9a9999999999b93f")),
]
NAMES = [name for name, *_ in KINDS]
TYPES = {name: "binary" if name == "raw" else name for name in NAMES}


async def connected(server: Server) -> Any:
    client = apache_iggy.IggyClient(f"127.0.0.1:{server.port}")
    await client.connect()
    await client.login_user(USER, PASSWORD)
    return client


def ours(kind: str, value: Any) -> HeaderValue:
    return getattr(HeaderValue, f"from_{ {'string': 'str'}.get(kind, kind) }")(value)


def test_kinds_written_by_the_client_are_read(server: Server, create: Callable[..., str]) -> None:
    topic = create()

    async def send() -> None:
        client = await connected(server)
        headers = {name: getattr(apache_iggy.HeaderValue, theirs)(value) for name, value, theirs, _ in KINDS}
        message = apache_iggy.SendMessage("payload", user_headers=headers)
        await client.send_messages(stream="tests", topic=topic, partitioning=0, messages=[message])

    asyncio.run(send())
    with lh.read.iggy(server.address, stream="tests", topic=topic) as reader:
        (row,) = reader.read_all().to_pylist()
    found = {header["key"].decode(): (header["type"], header["value"]) for header in row["headers"]}
    # Columns have the most significant byte first.
    numbers = {name: data if name in ("raw", "string") else data[::-1] for name, _, _, data in KINDS}
    assert found == {name: (TYPES[name], numbers[name]) for name in NAMES}
    with lh.read.iggy(server.address, stream="tests", topic=topic, columns=[], headers=TYPES) as reader:
        (row,) = reader.read_all().to_pylist()
    for name, value, *_ in KINDS:
        assert row[name] == value, name


def test_kinds_written_here_are_read_by_the_client_and_as_json(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    data = HeaderMap({name: ours(name, value) for name, value, *_ in KINDS}).to_bytes("iggy")
    headers = lh.arrow.decode(pa.array([data]), "iggy")
    written = lh.write.iggy(
        pa.table({"payload": [b"payload"], "headers": headers, "id": [b"\x00" * 15 + b"\x07"]}),
        server.address, stream="tests", topic=topic, partition=0,
    )  # fmt: skip
    assert written == (1, [(0, 0, 1)])

    async def poll() -> Any:
        client = await connected(server)
        (message,) = await client.poll_messages(
            stream="tests", topic=topic, consumer=apache_iggy.Consumer.Single("c1"), partition_id=0,
            polling_strategy=apache_iggy.PollingStrategy.First(), count=10, auto_commit=False,
        )  # fmt: skip
        return message.id(), message.payload(), message.user_headers().to_scalar_dict()

    identity, payload, found = asyncio.run(poll())
    assert (identity, payload) == (7, b"payload")
    assert found == {name: value for name, value, *_ in KINDS}
    query = "consumer_id=1&partition_id=0&kind=offset&value=0&count=10"
    (message,) = server.call("GET", f"/streams/tests/topics/{topic}/messages?{query}")["messages"]
    as_json = {
        base64.b64decode(header["key"]["value"]).decode(): (
            header["value"]["kind"],
            base64.b64decode(header["value"]["value"]),
        )
        for header in message["user_headers"]
    }
    assert as_json == {name: (name, data) for name, _, _, data in KINDS}
