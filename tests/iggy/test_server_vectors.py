"""The vectors of Iggy's crates against a server: what it takes, and what comes back."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import DecodeError
from letterhead.iggy.address import Address
from letterhead.iggy.batches import MessageFields, batches_of
from letterhead.iggy.client import IggyClient, IggyTopic
from letterhead.offsets.partition_log import TopicPartition
from tests.iggy.server import Server

pytestmark = pytest.mark.iggy_server

VECTORS = Path(__file__).parents[1] / "vectors"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture
def sent(server: Server, create: Callable[..., str]) -> Callable[[list[bytes]], str]:
    """Send blocks of headers as they are, one in each message, and return the topic."""

    def sent(blocks: list[bytes]) -> str:
        topic = create()
        messages = [MessageFields(row.to_bytes(16, "big"), 1, block, b"x") for row, block in enumerate(blocks)]
        with IggyClient(Address.parse(server.address), 10_000) as client:
            for batch in batches_of(messages):
                client.send(TopicPartition(IggyTopic("tests", topic), 0), batch.data, len(batch.checksums))
        assert list(polled(server, topic, len(blocks))) == blocks, "the server stores blocks as they were sent"
        return topic

    return sent


def polled(server: Server, topic: str, count: int) -> Iterator[bytes]:
    """Cut the blocks out of the frames of a reply, without the reader."""
    with IggyClient(Address.parse(server.address), 10_000) as client:
        place = TopicPartition(IggyTopic("tests", topic), 0)
        data = bytes(client.end_poll(client.begin_poll(place, 0, count)).data)
    at = 16
    while at < len(data):
        end = at + struct.unpack_from("<Q", data, at + 32)[0]
        at += 256
        while at < end:
            headers, payload = struct.unpack_from("<II", data, at + 32)
            at += 48 + payload
            yield data[at : at + headers]
            at += headers


def read(server: Server, topic: str, **options: Any) -> pa.Table:
    with lh.read.iggy(server.address, stream="tests", topic=topic, **options) as reader:
        return reader.read_all()


def as_json(entries: list[dict[str, Any]]) -> list[Any]:
    return [
        [
            (part["kind"], base64.b64encode(bytes.fromhex(part["hex"])).decode())
            for part in (entry["key"], entry["value"])
        ]
        for entry in entries
    ]


def test_crate_headers_round_trip_and_match_server_json(server: Server, sent: Callable[[list[bytes]], str]) -> None:
    cases = lines("iggy_tlv_headers")
    blocks = [bytes.fromhex(case["bytes"]) for case in cases]
    topic = sent(blocks)
    expected = lha.decode(pa.array(blocks), "iggy")
    assert read(server, topic)["headers"].combine_chunks().equals(expected)
    query = f"consumer_id=1&partition_id=0&kind=offset&value=0&count={len(cases)}"
    messages = server.call("GET", f"/streams/tests/topics/{topic}/messages?{query}")["messages"]
    assert len(messages) == len(cases)
    for case, message in zip(cases, messages, strict=True):
        decoded = [
            [(part["kind"], part["value"]) for part in (header["key"], header["value"])]
            for header in message["user_headers"] or []
        ]
        assert decoded == as_json(case["entries"]), case["id"]


def test_malformed_headers_are_stored_and_become_row_errors(server: Server, sent: Callable[[list[bytes]], str]) -> None:
    """The server checks no headers: what a client sends reaches readers."""
    blocks = [bytes.fromhex(case["bytes"]) for case in lines("iggy_tlv_malformed")]
    topic = sent(blocks)
    table = read(server, topic, columns=["offset", "payload", "headers"], errors="column")
    assert table["offset"].to_pylist() == list(range(len(blocks)))
    expected = []
    for block in blocks:
        try:
            lh.decode(block, "iggy")
            expected.append(None)
        except DecodeError as error:
            expected.append(error.code)
    codes = [errors[0]["code"] if errors else None for errors in table["error"].to_pylist()]
    assert codes == expected
    assert 0 < codes.count(None) < len(codes)
    good = [row for row, code in enumerate(codes) if code is None]
    kept = table["headers"].combine_chunks().take(good)
    assert kept.equals(lha.decode(pa.array([blocks[row] for row in good]), "iggy"))


def test_crate_batches_are_appended_unchanged(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    cases = [case for case in lines("iggy_tlv_messages") if case["op"] == "send_messages_batch"]
    expected = [message for case in cases for message in case["messages"]]
    with IggyClient(Address.parse(server.address), 10_000) as client:
        offset = 0
        for case in cases:
            count = len(case["messages"])
            batch = bytes.fromhex(case["bytes"])[case["batch_at"] :]
            assert client.send(TopicPartition(IggyTopic("tests", topic), 0), batch, count) == offset
            offset += count
    table = read(server, topic)
    blocks = [bytes.fromhex(message["headers_bytes"]) for message in expected]
    assert list(polled(server, topic, offset)) == blocks
    for name, field in (("payload", "payload"), ("origin_timestamp", "origin_timestamp")):
        expected_values = [message[field] for message in expected]
        column = table[name]
        values = column.cast(pa.int64()) if name == "origin_timestamp" else column
        assert values.to_pylist() == (
            [bytes.fromhex(text) for text in expected_values] if name == "payload" else expected_values
        )
    # An id of 0 is replaced by the server or kept; the others are kept.
    ids = [int.from_bytes(id, "big") for id in table["id"].to_pylist()]
    assert ids == [int(message["message_id"]) for message in expected]
    assert table["headers"].combine_chunks().equals(lha.decode(pa.array(blocks), "iggy"))


def test_headers_over_crate_limit_are_stored(server: Server, sent: Callable[[list[bytes]], str]) -> None:
    """The server has no limit of its own; letterhead writes what the crates build."""
    cases = [case for case in lines("iggy_limits") if case["op"].startswith("tlv")]
    blocks = [recipe(case) for case in cases]
    topic = sent(blocks)
    table = read(server, topic, columns=["headers"])
    expected = lha.decode(pa.array(blocks), "iggy")
    assert table["headers"].combine_chunks().equals(expected)
    built = [case["build"] == "ok" for case in cases]
    target = {"stream": "tests", "topic": topic}
    rows = pa.table({"payload": ["x"] * len(cases), "headers": expected})
    assert lh.write.iggy(rows.filter(built), server.address, **target).rows == sum(built)
    first = built.index(False)
    with pytest.raises(lh.EncodeError, match=r"the headers take 100001 bytes, more than 100000 \(row 0\)"):
        lh.write.iggy(rows.slice(first, 1), server.address, **target)


def recipe(case: dict[str, Any]) -> bytes:
    lengths = case.get("value_lens") or [case["value_len"]] * (case["n"] - 1) + [case["last_value_len"]]
    block = b""
    for number, length in enumerate(lengths):
        key, value = b"k%05d" % number, bytes((7 * number + at) & 255 for at in range(length))
        block += struct.pack("<BI", 2, len(key)) + key + struct.pack("<BI", 1, length) + value
    assert (len(block), hashlib.sha256(block).hexdigest()) == (case["header_bytes"], case["sha256"])
    return block
