"""Bounds of addresses, names, batches and rows at their exact values, without a server or with recorded replies."""

from __future__ import annotations

import ssl
import types
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import EncodeError, OffsetsGone, ProtocolError
from letterhead.iggy import connection as iggy_connection
from letterhead.iggy.address import Address
from letterhead.iggy.batches import BATCH_BYTES, BATCH_ROWS, MAX_DELTA, MessageFields, batches_of
from letterhead.iggy.client import IggyClient, IggyTopic
from letterhead.iggy.topic_writer import IggySink
from letterhead.offsets.partition_log import TopicPartition
from tests.iggy.lying_server import HEADER_LEN, LyingServer
from tests.iggy.test_lying_servers import BATCH, at, lies_about, u32
from tests.silent import SilentServer

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LyingServer() as server:
        yield server.address


def write(address: str, table: pa.Table, **options: object) -> lh.write.Written:
    return lh.write.iggy(table, address, stream="tests", topic="lies", timeout_ms=60_000, **options)


# --- addresses and names ---------------------------------------------------------------------------------------------


def test_address_port_defaults_to_8090() -> None:
    assert Address.parse("iggy://u:p@h").port == 8090
    assert Address.parse("iggy+tcp://u:p@h:1").port == 1


def test_connection_is_encrypted_only_on_request() -> None:
    assert Address.parse("iggy://u:p@h?tls=TRUE").tls is True
    assert Address.parse("iggy://u:p@h?tls=false").tls is Address.parse("iggy://u:p@h").tls is False
    with pytest.raises(ValueError, match="the option tls of the address must be true or false"):
        Address.parse("iggy://u:p@h?tls=yes")


def test_minimum_tls_version_is_1_2_on_lenient_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters that are built for the suites of their system have other defaults."""
    contexts = []

    def lenient(**options: object) -> ssl.SSLContext:
        context = ssl.create_default_context(**options)
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        contexts.append(context)
        return context

    monkeypatch.setattr(
        iggy_connection, "ssl", types.SimpleNamespace(**vars(ssl) | {"create_default_context": lenient})
    )
    with SilentServer() as server, pytest.raises(TimeoutError):
        lh.read.iggy(f"iggy://u:p@127.0.0.1:{server.port}?tls=true", stream="s", topic="t", timeout_ms=200).read_all()
    assert {context.minimum_version for context in contexts} == {ssl.TLSVersion.TLSv1_2}


@pytest.mark.parametrize("place", ["{}:p", "u:{}", "{}"])
def test_names_and_passwords_have_at_most_255_bytes(place: str) -> None:
    assert Address.parse(f"iggy://{place.format('x' * 255)}@h").host == "h"
    with pytest.raises(ValueError, match="is longer than 255 bytes"):
        Address.parse(f"iggy://{place.format('x' * 256)}@h")


@pytest.mark.parametrize("value", ["", "x" * 256, "é" * 128, True, -1, 1 << 32, 1.0])
def test_invalid_stream_is_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="stream"):
        lh.read.iggy("iggy://u:p@h", stream=value, topic="t")


def test_longest_names_and_largest_numbers_identify_topic() -> None:
    assert IggyTopic("x" * 255, (1 << 32) - 1).identifiers == b"\2\xff" + b"x" * 255 + b"\1\4\xff\xff\xff\xff"


@pytest.mark.parametrize("fetch_bytes", [0, -1])
def test_fetch_bytes_is_at_least_1(fetch_bytes: int) -> None:
    with pytest.raises(ValueError, match="fetch_bytes must be at least 1"):
        lh.read.iggy("iggy://u:p@h", stream="s", topic="t", fetch_bytes=fetch_bytes)


# --- batches ---------------------------------------------------------------------------------------------------------


def message(origin: int = 0, size: int = 1) -> MessageFields:
    return MessageFields(bytes(16), origin, b"", bytes(size))


def rows_of(*messages: MessageFields) -> list[int]:
    return [len(batch.checksums) for batch in batches_of(messages)]


def test_batch_ends_at_row_byte_or_time_limit() -> None:
    assert rows_of(*[message()] * (2 * BATCH_ROWS + 1)) == [BATCH_ROWS, BATCH_ROWS, 1]
    assert rows_of(message(0, BATCH_BYTES - 1), message(), message()) == [2, 1]
    assert rows_of(message(0, BATCH_BYTES), message()) == [1, 1]
    assert rows_of(message(5), message(5 + MAX_DELTA)) == [2]
    assert rows_of(message(5), message(6 + MAX_DELTA)) == [1, 1]
    assert rows_of(message(6 + MAX_DELTA), message(5), message(6)) == [1, 2]
    assert rows_of() == []


# --- rows ------------------------------------------------------------------------------------------------------------


def test_headers_have_at_most_100_000_bytes(address: str) -> None:
    def headers(size: int) -> pa.Array:
        names = [f"key {number:4}" for number in range(410)]
        lengths = [200] * len(names)
        missing = size - encoded_size(names, lengths)
        for index in range(len(names)):
            step = max(-199, min(55, missing))
            lengths[index] += step
            missing -= step
        column = headers_of(names, lengths)
        assert encoded_size(names, lengths) == size
        return column

    def headers_of(names: list[str], lengths: list[int]) -> pa.Array:
        entries = [(name, "string", b"x" * length) for name, length in zip(names, lengths, strict=True)]
        return pa.array([entries], HEADERS)

    def encoded_size(names: list[str], lengths: list[int]) -> int:
        return len(lha.encode(headers_of(names, lengths), "iggy")[0].as_py())

    table = pa.table({"payload": ["x"], "headers": headers(100_000)})
    assert write(address, table, partition=1).rows == 1
    with pytest.raises(EncodeError, match=r"the headers take 100001 bytes, more than 100000 \(row 0\)"):
        write(address, pa.table({"payload": ["x"], "headers": headers(100_001)}), partition=1)


def test_payload_has_at_most_64_000_000_bytes(address: str) -> None:
    with pytest.raises(EncodeError, match=r"the payload has more than 64000000 bytes.*row 1"):
        write(address, pa.table({"payload": [b"x", bytes(64_000_001)]}))


def test_row_number_counts_over_all_chunks(address: str) -> None:
    chunks = pa.chunked_array([["a", "b", "c"], ["d", None]])
    with pytest.raises(EncodeError, match=r"the payload is null or empty.*row 4"):
        write(address, pa.table({"payload": chunks}), partition=1)


def test_message_time_is_1970_or_later(address: str) -> None:
    def table(time: int) -> pa.Table:
        return pa.table({"payload": ["x"], "origin_timestamp": pa.array([time], pa.timestamp("us", "UTC"))})

    assert write(address, table(0), partition=1).rows == 1
    with pytest.raises(EncodeError, match=r"the origin timestamp is before 1970.*row 0"):
        write(address, table(-1), partition=1)


def test_partition_and_key_exclude_each_other(address: str) -> None:
    with pytest.raises(ValueError, match="partition and partition_key exclude each other"):
        write(address, pa.table({"payload": ["x"], "key": ["k"]}), partition=1, partition_key="key")


def parts(address: str, table: pa.Table, **options: object) -> list[tuple[int, list[bytes]]]:
    """The partitions of the rows of a table, in the order in which they are sent."""
    batch = table.combine_chunks().to_batches()[0]
    with IggySink(address, batch.schema, stream="tests", topic="lies", **options) as sink:
        divided = sink._by_partition(batch, sink._messages(batch))
        return [(place.partition, part.column("payload").to_pylist()) for place, part in divided]


def test_partitions_are_written_in_order(address: str) -> None:
    table = pa.table({"payload": ["a", "b", "c"], "to": [1, 0, 1]})
    assert parts(address, table, partition="to") == [(0, [b"b"]), (1, [b"a", b"c"])]


def test_rows_without_key_rotate_over_partitions(address: str) -> None:
    table = pa.table({"payload": ["a", "b", "c", "d"], "key": pa.array([None] * 4, pa.string())})
    assert parts(address, table, partition_key="key") == [(0, [b"a", b"c"]), (1, [b"b", b"d"])]


def test_large_rows_become_objects_one_at_a_time(address: str) -> None:
    from letterhead.iggy.topic_writer import _yield_messages

    large = pa.record_batch([[None] * 3, [0] * 3, [b""] * 3, [bytes(BATCH_BYTES)] * 3], MessageFields._fields)
    assert [len(objects) for objects in _yield_messages(large)] == [1, 1, 1]


# --- offsets ---------------------------------------------------------------------------------------------------------

FIRST_POLLS = "2 100 010104010000000205746573747302046c696573010000000003"


def read(address: str, **options: object) -> list[int]:
    with lh.read.iggy(address, stream="tests", topic="lies", timeout_ms=60_000, **options) as reader:
        return reader.read_all()["offset"].to_pylist()


def test_start_before_first_message_raises() -> None:
    later = at(BATCH + HEADER_LEN + 24, u32(2))
    with (
        LyingServer(lies_about(FIRST_POLLS, later)) as server,
        pytest.raises(OffsetsGone, match=r"tests/lies-0: offset 1 cannot be read: .* the first one is 2"),
    ):
        read(server.address, partitions=[0], start={0: 1})


def test_offset_may_equal_end_but_not_exceed_it(address: str) -> None:
    assert read(address, partitions=[0], start={0: 5}) == []
    for option in ("start", "end"):
        with pytest.raises(ValueError, match=f"tests/lies-0: {option} is offset 6, but the partition ends at 5"):
            read(address, partitions=[0], **{"start": {0: 5}, option: {0: 6}})
    with pytest.raises(ValueError, match="has no partition 2: it has 2, counted from 0"):
        read(address, partitions=[2])
    assert TopicPartition(IggyTopic("tests", "lies"), 0) < TopicPartition(IggyTopic("tests", "lies"), 1)


def test_messages_appended_while_opening_do_not_move_end(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end is looked up after the first message, and before the message of a time, which can be after it."""
    later = at(BATCH + HEADER_LEN + 24, u32(6))
    error = pytest.raises(ProtocolError, match="tests/lies-0 begins at offset 6 and ends at 5")
    with LyingServer(lies_about(FIRST_POLLS, later)) as server, error:
        read(server.address, partitions=[0], start={0: 5})
    monkeypatch.setattr(IggyClient, "offset_since", lambda *_: 9)
    assert read(address, partitions=[0], start=datetime(2026, 1, 1, tzinfo=UTC)) == []
