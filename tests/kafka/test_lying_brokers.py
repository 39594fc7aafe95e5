"""Readers and writers of Kafka with brokers that send invalid responses: only documented exceptions, and little memory."""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
from collections.abc import Callable

import pytest

import letterhead as lh
from letterhead.errors import LogTruncated, OffsetsGone, ProtocolError
from letterhead.kafka.client import EARLIEST_TIME, KafkaClient
from letterhead.kafka.groups import GroupOffsets
from letterhead.kafka.settings import reader_settings
from letterhead.kafka.transport import ResponseFrames
from letterhead.offsets.partition_log import TopicPartition
from tests.kafka.lying_broker import (
    API_VERSIONS,
    FETCH,
    HOST,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    RESPONSES,
    TOPIC,
    Lie,
    LyingBroker,
    read,
    write,
)
from tests.reference.crc32c import crc32c

DOCUMENTED = {
    ProtocolError, OffsetsGone, LogTruncated, PermissionError, ConnectionError, TimeoutError, ValueError, RuntimeError,
    lh.DecodeError, lh.write.DeliveryError,
}  # fmt: skip
"""What readers and writers raise; the classes are compared exactly, as KeyError and UnicodeDecodeError are none of them."""

Change = Callable[[bytes], bytes]


@pytest.fixture(autouse=True)
def no_log_of_libraries(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "kafka")


def at(position: int, value: bytes) -> Change:
    """Replace bytes of a response; it begins with its size and the number of its request, of 4 bytes each."""
    return lambda frame: frame[:position] + value + frame[position + len(value) :]


def after_topic(position: int, value: bytes) -> Change:
    """Replace bytes after the name of the topic."""

    def change(frame: bytes) -> bytes:
        return at(frame.index(TOPIC.encode()) + len(TOPIC) + position, value)(frame)

    return change


def resized(change: Change) -> Change:
    """Correct the size of a response after a change."""

    def resize(frame: bytes) -> bytes:
        changed = change(frame[4:])
        return len(changed).to_bytes(4, "big") + changed

    return resize


def lies_about(api_key: int, change: Change) -> Lie:
    return lambda key, frame: change(frame) if key == api_key else frame


def i32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def other_topic(frame: bytes) -> bytes:
    return frame.replace(TOPIC.encode(), b"laws")


def broker_port(port: int) -> Change:
    """Change the port of the broker in metadata."""

    def change(frame: bytes) -> bytes:
        return at(frame.index(HOST) + len(HOST), i32(port))(frame)

    return change


def one_partition_twice(frame: bytes) -> bytes:
    """Give the first of two partitions in metadata the number of the other."""
    number = frame.index(TOPIC.encode()) + len(TOPIC) + 20
    return at(number, i32(1 - int.from_bytes(frame[number : number + 4], "big")))(frame)


FIRST_BATCH, FIRST_BATCH_LEN = bytes.fromhex("000000660000000002"), 114
"""Size, leader epoch and format of the first record batch of a partition, after its offset."""


def with_records(change: Change) -> Change:
    """Replace the record set of responses with the first records of a partition."""

    def replace(frame: bytes) -> bytes:
        if FIRST_BATCH not in frame:
            return frame
        start = frame.index(FIRST_BATCH) - 8
        records = change(frame[start : start + FIRST_BATCH_LEN])
        size = len(records) + 1
        length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        changed = frame[4 : start - 1] + length + records + frame[start + FIRST_BATCH_LEN :]
        return len(changed).to_bytes(4, "big") + changed

    return replace


def ends_before_it_begins(batch: bytes) -> bytes:
    """Give a batch the base offset 1 and the last offset 0, and its checksum."""
    changed = at(23, i32(-1))(at(0, bytes(7) + b"\1")(batch))
    return at(17, crc32c(changed[21:]).to_bytes(4, "big"))(changed)


def truncated_before_reading(frame: bytes) -> bytes:
    """Add the epoch from which on the leader has other records, to a response to the first request."""
    tagged = b"\1\0\x0d" + i32(3) + (1).to_bytes(8, "big") + b"\0"
    return resized(lambda body: body[:-3] + tagged + b"\0\0")(frame)


PARTITION = 1
"""Bytes after the name of a topic to the number of its first partition, in responses to ListOffsets and Fetch."""


@pytest.mark.parametrize(
    ("api_key", "change", "message"),
    [
        (API_VERSIONS, at(4, i32(77)), r"Correlation IDs do not match"),
        (API_VERSIONS, resized(lambda body: body[:20]), r"sent an invalid response"),
        (API_VERSIONS, resized(lambda body: body[:3]), r"sent an invalid response"),
        (METADATA, other_topic, r"sent metadata of other topics than the requested ones"),
        (METADATA, lambda frame: frame.replace(b"\x05lies", b"\0lies"), r"sent an invalid response|without a name"),
        (METADATA, after_topic(20, i32(-2)), r"sent metadata with invalid partitions of topic lies"),
        (METADATA, one_partition_twice, r"sent metadata with invalid partitions of topic lies"),
        (METADATA, broker_port(0), r"sent metadata with a broker that has no valid address"),
        (METADATA, broker_port(-1), r"sent metadata with a broker that has no valid address"),
        (METADATA, broker_port(1 << 16), r"sent metadata with a broker that has no valid address"),
        (METADATA, resized(lambda body: body[:-30]), r"sent an invalid response: "),
        (METADATA, at(0, i32(200 << 20)), r"a response of 209715200 bytes, where at most \d+ are expected"),
        (METADATA, at(0, i32(-1)), r"a response of -1 bytes"),
        (LIST_OFFSETS, other_topic, r"sent offsets of other partitions than the requested ones \(lies-0, lies-1\)"),
        (LIST_OFFSETS, after_topic(PARTITION, i32(7)), r"sent offsets of other partitions than the requested ones"),
        (LIST_OFFSETS, after_topic(PARTITION + 4 + 2 + 8, b"\xff" * 7 + b"\xfe"), r"sent a negative offset"),
        (LIST_OFFSETS, resized(lambda body: body[:-9]), r"sent an invalid response: "),
        (FETCH, other_topic, r"sent records of other partitions than lies-0"),
        (FETCH, after_topic(PARTITION, i32(1)), r"sent records of other partitions than lies-0"),
        (FETCH, after_topic(0, b"\1"), r"sent an invalid response|sent records of other partitions"),
        (FETCH, resized(lambda body: body[:-2]), r"sent an invalid response: "),
        (FETCH, truncated_before_reading, r"reports that records of lies-0 were removed, of which none was read"),
        (
            FETCH,
            with_records(lambda batch: batch * 2),
            r"sent record batches of lies-0 from offset 0 on .* not in order",
        ),
        (
            FETCH,
            with_records(lambda batch: batch + at(0, bytes(7) + b"\1")(batch)),
            r"from offset 0 on .* not in order",
        ),
        (FETCH, with_records(ends_before_it_begins), r"from offset 0 on .* not in order"),
        (FETCH, at(4, i32(1)), r"Correlation IDs do not match"),
    ],
)
def test_invalid_response_raises_and_names_broker(api_key: int, change: Change, message: str) -> None:
    with LyingBroker(lies_about(api_key, change)) as broker:
        with pytest.raises(ProtocolError, match=message) as raised:
            read(broker.address, timeout_ms=60_000)
        assert str(raised.value).startswith(broker.address)


def test_topic_without_describe_permission_raises() -> None:
    # The error of a topic has two bytes, before its name and the length of that.
    refused = lies_about(METADATA, after_topic(-len(TOPIC) - 3, (29).to_bytes(2, "big")))
    with LyingBroker(refused) as broker, pytest.raises(PermissionError, match="lies; the user needs"):
        read(broker.address, timeout_ms=60_000)


@pytest.mark.parametrize("change", [at(0, i32(-1)), at(0, i32(2 << 20)), lambda frame: b"HTTP/1.1 400 Bad Request\r\n"])
def test_non_kafka_server_raises_and_names_setting(change: Change) -> None:
    with LyingBroker(lies_about(API_VERSIONS, change)) as broker:
        with pytest.raises(ConnectionError, match="does not speak Kafka's protocol over PLAINTEXT") as raised:
            read(broker.address, timeout_ms=60_000)
        assert str(raised.value).startswith(broker.address)


def recorded(api_key: int) -> list[bytes]:
    """Responses to requests with an API key, as frames."""
    responses = json.loads(RESPONSES.read_text())["responses"].items()
    frames = [bytes.fromhex(response) for key, response in responses if key.startswith(f"{api_key} ")]
    return [len(frame).to_bytes(4, "big") + frame for frame in frames]


def test_offsets_keep_order_of_requested_partitions() -> None:
    # The broker of the recorded responses answers for partition 1 first.
    places = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]
    with LyingBroker() as broker, KafkaClient(reader_settings(broker.address, {}, timeout_ms=60_000)) as client:
        assert list(client.offsets(dict.fromkeys(places, EARLIEST_TIME), "read_uncommitted")) == places


def test_records_before_requested_offset_raise() -> None:
    first, second, *_ = recorded(FETCH)

    def repeat(frame: bytes) -> bytes:
        return first[:4] + frame[4:8] + first[8:] if frame[8:] == second[8:] else frame

    with LyingBroker(lies_about(FETCH, repeat)) as broker:
        with pytest.raises(ProtocolError, match="sent records of lies-0 before offset 2") as raised:
            read(broker.address, timeout_ms=60_000)
        assert str(raised.value).startswith(broker.address)


@pytest.mark.parametrize("offset", [4, 5000])
def test_records_after_partition_end_raise(offset: int) -> None:
    moved = with_records(at(0, offset.to_bytes(8, "big")))
    message = f"sent records of lies-0 from offset {offset} on, but reports the end offset 4"
    with LyingBroker(lies_about(FETCH, moved)) as broker, pytest.raises(ProtocolError, match=message):
        read(broker.address, timeout_ms=60_000)


def test_throttled_empty_response_is_not_end_of_partition() -> None:
    withheld = []

    def throttle(frame: bytes) -> bytes:
        if withheld:
            return frame
        withheld.append(frame)
        return with_records(lambda batch: b"")(at(9, i32(50))(frame))

    with LyingBroker(lies_about(FETCH, throttle)) as broker:
        assert read(broker.address, timeout_ms=60_000)["offset"].to_pylist() == [0, 1, 2, 3] * 2


def test_records_withheld_by_broker_are_detected() -> None:
    withheld = lies_about(FETCH, with_records(lambda batch: b""))
    message = "lies-0: offset 0 cannot be read: no records are sent from it on, although the partition ends at 4"
    topic = bytes([2, len(TOPIC) + 1]) + TOPIC.encode() + b"\2" + i32(0)
    offsets = {
        f"2 7 00ffffffff00{topic.hex()}00000000ffffffffffffff{time}000000": bytes(9)
        + topic + bytes(2) + b"\xff" * 8 + offset.to_bytes(8, "big") + bytes(7)
        for time, offset in (("fe", 0), ("ff", 4))
    }  # fmt: skip
    with LyingBroker(withheld, offsets) as broker, pytest.raises(OffsetsGone, match=message):
        read(broker.address, timeout_ms=1500)


def test_final_error_of_one_broker_raises_without_trying_others() -> None:
    # CLUSTER_AUTHORIZATION_FAILED, and no versions.
    rejects = lies_about(API_VERSIONS, resized(lambda body: body[:4] + (31).to_bytes(2, "big") + bytes(4)))
    with LyingBroker(rejects) as first, LyingBroker(rejects) as second:
        with pytest.raises(PermissionError, match="does not allow it"):
            read(f"{first.address},{second.address}", timeout_ms=60_000)
        assert first.connections + second.connections == 1


def test_known_broker_that_refuses_connections_is_retried() -> None:
    """It may be restarting; of one that never answered, the settings are more likely wrong."""

    def stop(api_key: int, frame: bytes) -> bytes:
        if api_key != LIST_OFFSETS:
            return frame
        broker.close()
        return b""

    with LyingBroker(stop) as broker, pytest.raises(TimeoutError, match=f"no answer from {broker.address}"):
        read(broker.address, timeout_ms=4000)


def test_metadata_broker_that_refuses_connections_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has an address, so that ``advertised.listeners`` is not what is wrong."""
    monkeypatch.setattr("letterhead.kafka.reachability._UNKNOWN_SECONDS", 0.5)
    refused = lies_about(METADATA, broker_port(1))
    with LyingBroker(refused) as broker, pytest.raises(TimeoutError, match="ECONNREFUSED"):
        read(broker.address, timeout_ms=4000)


@pytest.mark.parametrize("size", [1, 3, 5, 4096])
def test_fragmented_responses_are_read(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    receive = ResponseFrames.__call__

    def in_pieces(frames: ResponseFrames, data: bytes) -> None:
        for start in range(0, len(data), size):
            receive(frames, data[start : start + size])

    monkeypatch.setattr(ResponseFrames, "__call__", in_pieces)
    with LyingBroker() as broker:
        assert read(broker.address)["offset"].to_pylist() == [0, 1, 2, 3] * 2


@pytest.mark.parametrize(
    ("host", "port", "error"),
    [
        (HOST, 0, ProtocolError), (HOST, 1 << 16, ProtocolError), (HOST, -1, ProtocolError), (b"", 1, ProtocolError),
        (HOST, 1, TimeoutError), (HOST, (1 << 16) - 1, TimeoutError),
    ],
)  # fmt: skip
def test_group_coordinator_address_must_be_valid(host: bytes, port: int, error: type[Exception]) -> None:
    address = bytes([len(host) + 1]) + host + i32(port)
    found = bytes(4) + bytes(1) + i32(0) + bytes(2) + b"\0" + i32(1) + address + b"\0"
    with (
        LyingBroker(more={"10 3 ": found}) as broker,
        KafkaClient(reader_settings(broker.address, {}, timeout_ms=2000)) as client,
        pytest.raises(error, match="a coordinator that has no valid address" if error is ProtocolError else None),
    ):
        GroupOffsets(client, "g").committed([TopicPartition(TOPIC, 0)])


def test_recorded_responses_are_read_and_rewritten_unchanged() -> None:
    with LyingBroker() as broker:
        table = read(broker.address)
        assert table["offset"].to_pylist() == [0, 1, 2, 3] * 2
        assert [bytes(value[:7]) for value in table["value"].to_pylist()] == [b"value %d" % n for n in range(4)] * 2
        assert write(broker.address) == (2, [(1, 4, 2)])


def test_rows_without_returned_offset_count_as_written() -> None:
    """A broker that recognizes a repeated request has the rows, and may not know their offsets any more."""
    unknown = after_topic(PARTITION + 4 + 2, (-1).to_bytes(8, "big", signed=True))
    with LyingBroker(lies_about(PRODUCE, unknown)) as broker:
        assert write(broker.address, timeout_ms=60_000) == (2, [(1, -1, 2)])


def outcomes(changes: list[tuple[int, int, int]], *actions: Callable[..., object]) -> list[str]:
    """Read or write with each change; return what is neither the recorded result nor a documented error."""
    wrong = []
    current = (0, 0, 0)

    def lie(api_key: int, frame: bytes) -> bytes:
        changed, position, value = current
        if api_key != changed or position >= len(frame):
            return frame
        return at(position, bytes([frame[position] ^ value]))(frame)

    with LyingBroker() as honest, LyingBroker(lie) as broker:
        expected = {action: action(honest.address) for action in actions}
        for current in changes:  # the broker reads it
            for action, result in expected.items():
                try:
                    value = action(broker.address, timeout_ms=200)
                    if value != result:
                        wrong.append(f"{current}: {value}")
                except Exception as error:
                    if type(error) not in DOCUMENTED or not str(error):
                        wrong.append(f"{current}: {type(error).__name__}: {error}")
    return wrong


def changes_of(api_keys: list[int], values: list[int]) -> list[tuple[int, int, int]]:
    return [
        (api_key, position, value)
        for api_key in api_keys
        for position in range(max(map(len, recorded(api_key))))
        for value in values
    ]


def test_sampled_byte_changes_yield_rows_or_documented_error() -> None:
    changes = changes_of([METADATA, LIST_OFFSETS, FETCH], [0xFF, 0x80, 0x01])
    changes = random.Random(35).sample(changes, 120)
    changes += random.Random(36).sample(changes_of([API_VERSIONS], [0xFF, 0x80, 0x01]), 20)
    assert outcomes(changes, read) == []


@pytest.mark.full
@pytest.mark.timeout(3000)
def test_all_byte_changes_yield_rows_or_documented_error() -> None:
    assert outcomes(changes_of([METADATA, LIST_OFFSETS, FETCH, API_VERSIONS], [0xFF, 0x80, 0x01]), read) == []


@pytest.mark.full
@pytest.mark.timeout(3000)
def test_byte_changes_give_writer_documented_error() -> None:
    changes = changes_of([PRODUCE, INIT_PRODUCER_ID], [0xFF, 0x01])
    assert outcomes(changes, lambda address, timeout_ms=2000: write(address, timeout_ms=2000).rows) == []


def test_response_takes_memory_of_received_bytes_not_claimed() -> None:
    program = """
import logging, resource
logging.disable()
from tests.kafka.lying_broker import LyingBroker, read
from tests.kafka import test_lying_brokers as lies
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
with LyingBroker() as broker:
    read(broker.address)
before = peak()
for key, size in ((lies.API_VERSIONS, 0x7FFFFFFF), (lies.METADATA, 128 << 20), (lies.LIST_OFFSETS, 128 << 20)):
    with LyingBroker(lies.lies_about(key, lies.at(0, lies.i32(size)))) as broker:
        try:
            read(broker.address, timeout_ms=500)
        except (ConnectionError, TimeoutError):
            pass
print(peak() - before)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert int(ran.stdout) < 8, f"{ran.stdout} MiB"


def test_leader_of_outdated_epoch_is_not_fetched() -> None:
    """A broker that has not heard of the newest election names the leader before it."""
    asked = []

    def note(api_key: int, frame: bytes) -> bytes:
        asked.append(api_key)
        return frame

    place = TopicPartition(TOPIC, 0)
    settings = {"timeout_ms": 3000, "fetch_bytes": 100}
    with LyingBroker(note) as broker, KafkaClient(reader_settings(broker.address, {}, **settings)) as client:
        client._epochs[place] = 1  # that of the metadata is 0
        with pytest.raises(TimeoutError, match=r"\[Error 5\]"):
            client.fetched(client.fetch(place, 0, "read_uncommitted"))
    assert METADATA in asked
    assert FETCH not in asked
