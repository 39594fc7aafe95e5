"""Headers of every kind, between letterhead, the Python client of Iggy, and the server's JSON."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.iggy import HeaderKey, HeaderMap, HeaderValue
from tests.iggy.server import PASSWORD, USER, Server

pytestmark = pytest.mark.iggy_server

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
    header_values = {header["key"].decode(): (header["type"], header["value"]) for header in row["headers"]}
    # Columns have the most significant byte first.
    numbers = {name: data if name in ("raw", "string") else data[::-1] for name, _, _, data in KINDS}
    assert header_values == {name: (TYPES[name], numbers[name]) for name in NAMES}
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

    identity, payload, client_headers = asyncio.run(poll())
    assert (identity, payload) == (7, b"payload")
    assert client_headers == {name: value for name, value, *_ in KINDS}
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


EXTREMES: dict[str, list[Any]] = {
    "raw": [b"\x00", b"\xff" * 255],
    "string": ["\x00", "é" + "x" * 253],
    "bool": [False, True],
    **{f"int{bits}": [-(1 << bits - 1), (1 << bits - 1) - 1] for bits in (8, 16, 32, 64, 128)},
    **{f"uint{bits}": [0, (1 << bits) - 1] for bits in (8, 16, 32, 64, 128)},
    "float32": [-0.0, 3.4028234663852886e38, 1.401298464324817e-45, float("nan"), float("-inf")],
    "float64": [-0.0, 1.7976931348623157e308, 5e-324, float("nan"), float("inf")],
}
ROWS, FINITE = 5, 3
"""Messages, and how many of them the client writes and reads: it refuses floats that are not finite."""

CLASSES = {name: theirs for name, _, theirs, _ in KINDS}


def extremes(row: int) -> list[tuple[str, Any, bytes]]:
    """Return a value of each type and its bytes; a key has the same."""
    chosen = [(name, values[row % len(values)]) for name, values in EXTREMES.items()]
    return [(name, value, stored(name, value)) for name, value in chosen]


def stored(name: str, value: Any) -> bytes:
    if name in ("raw", "string"):
        return value if name == "raw" else value.encode()
    if name.startswith("float"):
        return struct.pack("<f" if name == "float32" else "<d", value)
    bits = 8 if name == "bool" else int(name.removeprefix("u").removeprefix("int"))
    return int(value).to_bytes(bits // 8, "little", signed=name.startswith("int"))


def test_extremes_and_keys_of_every_kind_from_client_are_read(server: Server, create: Callable[..., str]) -> None:
    topic = create()

    async def send() -> None:
        client = await connected(server)
        messages = []
        for row in range(FINITE):
            pairs = [
                (
                    getattr(apache_iggy.HeaderKey, CLASSES[name])(value),
                    getattr(apache_iggy.HeaderValue, CLASSES[name])(value),
                )
                for name, value, _ in extremes(row)
            ]
            messages.append(apache_iggy.SendMessage("payload", user_headers=dict(pairs)))
        await client.send_messages(stream="tests", topic=topic, partitioning=0, messages=messages)

    asyncio.run(send())
    with lh.read.iggy(server.address, stream="tests", topic=topic) as reader:
        rows = reader.read_all().to_pylist()
    assert len(rows) == FINITE
    for row, row_read in enumerate(rows):
        # Columns have the most significant byte first.
        expected = []
        for name, _, data in extremes(row):
            column = data if name in ("raw", "string") else data[::-1]
            expected.append((TYPES[name], column, TYPES[name], column))
        headers = [
            (header["key_type"], header["key"], header["type"], header["value"]) for header in row_read["headers"]
        ]
        assert sorted(headers) == sorted(expected)


def test_client_and_json_read_our_extreme_values_and_keys(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    blocks = []
    for row in range(ROWS):
        headers = HeaderMap({key_of(name, value): ours(name, value) for name, value, _ in extremes(row)})
        blocks.append(headers.to_bytes("iggy"))
    rows = pa.table({"payload": ["payload"] * ROWS, "headers": lh.arrow.decode(pa.array(blocks), "iggy")})
    lh.write.iggy(rows, server.address, stream="tests", topic=topic)

    async def poll() -> list[Any]:
        client = await connected(server)
        messages = await client.poll_messages(
            stream="tests", topic=topic, consumer=apache_iggy.Consumer.Single("c1"), partition_id=0,
            polling_strategy=apache_iggy.PollingStrategy.First(), count=FINITE, auto_commit=False,
        )  # fmt: skip
        return [message.user_headers() for message in messages]

    names = {theirs: name for name, theirs in CLASSES.items()}
    query = "consumer_id=1&partition_id=0&kind=offset&value=0&count=10"
    messages = server.call("GET", f"/streams/tests/topics/{topic}/messages?{query}")["messages"]
    assert len(messages) == ROWS
    for row, message in enumerate(messages):
        as_json = [
            tuple(
                text
                for part in (header["key"], header["value"])
                for text in (part["kind"], base64.b64decode(part["value"]))
            )
            for header in message["user_headers"]
        ]
        assert sorted(as_json) == sorted((name, data, name, data) for name, _, data in extremes(row))
    polled = asyncio.run(poll())
    assert len(polled) == FINITE
    for row, headers in enumerate(polled):
        read = []
        for key, value in headers.items():
            kinds = [names[type(part).__name__.rpartition("_")[2]] for part in (key, value)]
            read.append((kinds[0], stored(kinds[0], key.value), kinds[1], stored(kinds[1], value.value)))
        assert sorted(read) == sorted((name, data, name, data) for name, _, data in extremes(row))


def key_of(name: str, value: Any) -> HeaderKey:
    return getattr(HeaderKey, f"from_{ {'string': 'str'}.get(name, name) }")(value)
