"""Readers and writers of Iggy with servers that send invalid replies: only documented exceptions, and little memory."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import letterhead as lh
from letterhead.errors import OffsetsGone, ProtocolError
from letterhead.iggy.address import Address
from letterhead.iggy.client import IggyClient, IggyTopic
from letterhead.iggy.connection import ServerError, TooLarge
from letterhead.offsets.partition_log import TopicPartition
from tests.iggy.lying_server import HEADER_LEN, REPLIES, Lie, LyingServer, read, write

POLL = HEADER_LEN
BATCH = POLL + 16
"""Bytes of a reply at which the reply to a poll begins, and its first batch."""

DOCUMENTED = {
    ProtocolError, TooLarge, ServerError, OffsetsGone, PermissionError, ConnectionError, TimeoutError, ValueError, lh.DecodeError,
}  # fmt: skip
"""What readers and writers raise; the classes are compared exactly, as KeyError and UnicodeDecodeError are none of them."""


def at(position: int, value: bytes) -> Callable[[bytes], bytes]:
    """Replace bytes of a reply."""
    return lambda reply: reply[:position] + value + reply[position + len(value) :]


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def resized(body: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Change the body of a reply, and its size in the header."""

    def change(reply: bytes) -> bytes:
        new = body(reply[HEADER_LEN:])
        return reply[:48] + u32(HEADER_LEN + len(new)) + reply[52:HEADER_LEN] + new

    return change


def lies_about(request: str, change: Callable[[bytes], bytes]) -> Lie:
    """Change the replies to requests whose key begins so."""
    return lambda key, reply: change(reply) if key.startswith(request) else reply


def overlapping(reply: bytes) -> bytes:
    """Give the second batch of a reply the offset of the first message."""
    second = BATCH + int.from_bytes(reply[BATCH + 32 : BATCH + 40], "little")
    return at(second + 8, u64(1))(reply)


LOGIN, TOPIC, ANY_POLL, ACKNOWLEDGEMENT, ME = "1 ", "2 300", "2 100", "160", "2 20 "
LAST_POLLS = "2 100 010104010000000205746573747302046c696573010000000004"
DATA_POLLS = "2 100 010104010000000205746573747302046c696573010000000001"


@pytest.mark.parametrize(
    ("request_key", "change", "message"),
    [
        (LOGIN, at(48, u32(0xFFFFFFFF)), "announces a reply of 4294967039 bytes, where at most 4096 are expected"),
        (LOGIN, at(48, u32(HEADER_LEN + 4097)), "announces a reply of 4097 bytes, where at most 4096 are expected"),
        (LOGIN, at(48, u32(3)), "does not answer as a server of Iggy"),
        (LOGIN, lambda _: b"HTTP/1.1 400 Bad Request\r\n".ljust(300), "does not answer as a server of Iggy"),
        (LOGIN, resized(lambda body: body[:5]), "sent a reply to the login that ends too early"),
        (LOGIN, at(208, b"\2"), "sent the reply to another request"),
        (TOPIC, at(200, u64(7)), "sent the reply to another request"),
        (TOPIC, at(48, u32(0xFFFFFFFF)), "announces a reply of 4294967039 bytes"),
        (TOPIC, at(HEADER_LEN + 12, u32(3)), "announces 3 partitions of tests/lies and sent 80 bytes of them"),
        (TOPIC, at(HEADER_LEN + 12, u32(0xFFFFFFFF)), "announces 4294967295 partitions of tests/lies"),
        (TOPIC, at(HEADER_LEN + 50, b"x"), "sent another topic than tests/lies"),
        (TOPIC, at(HEADER_LEN + 54, u32(0x7FFFFFFF)), "sent a reply that ends inside of the topic"),
        (TOPIC, resized(lambda body: body[:9]), "sent a reply that ends inside of the topic"),
        (TOPIC, lambda reply: at(len(reply) - 40, reply[-80:-76])(reply), "sent a partition of tests/lies twice"),
        (ANY_POLL, at(48, u32(0xFFFFFFFF)), "announces a reply of 4294967039 bytes, where at most 67108864"),
        (ANY_POLL, resized(lambda body: body[:11]), "sent a reply that ends inside of the poll"),
        (ANY_POLL, resized(lambda body: body[:99]), "sent a reply that ends inside of the poll"),
        (ANY_POLL, at(POLL, u32(1)), "sent messages of partition 1 instead of tests/lies-0"),
        (ANY_POLL, at(BATCH, u64(1)), "sent batches that are not the next messages of tests/lies-0"),
        (ANY_POLL, at(POLL + 12, u32(0xFFFFFFFF)), "sent 4294967295 messages of tests/lies-0 instead of 1"),
        (ANY_POLL, at(POLL + 12, u32(0)), "sent batches that are not the next messages of tests/lies-0"),
        (ANY_POLL, at(BATCH + 32, u64((1 << 64) - 1)), "sent batches that are not the next messages"),
        (ANY_POLL, at(BATCH + 32, u64(0)), "sent batches that are not the next messages"),
        (ANY_POLL, at(BATCH + 32, u64(HEADER_LEN + 1)), "sent batches that are not the next messages"),
        (ANY_POLL, at(BATCH + 48, u32(0)), "sent batches that are not the next messages"),
        (ANY_POLL, at(BATCH + 8, u64((1 << 64) - 1)), "which cannot exist"),
        (LAST_POLLS, resized(lambda body: body[:4] + u64((1 << 64) - 1) + u32(0)), "which cannot exist"),
        (DATA_POLLS, at(POLL + 12, u32(3)), "sent batches that are not the next messages of tests/lies-0"),
        (DATA_POLLS, at(BATCH + 48, u32(1)), "announces 4 messages of tests/lies-0 and sent 3"),
        (DATA_POLLS, overlapping, "sent batches that are not the next messages of tests/lies-0"),
        # The messages before the requested ones, which were read before.
        (DATA_POLLS, at(BATCH + HEADER_LEN + 24, u32(0)), "sent batches that are not the next messages of tests/lies-0"),
    ],
)  # fmt: skip
def test_invalid_reply_raises_and_names_server(
    request_key: str, change: Callable[[bytes], bytes], message: str
) -> None:
    with LyingServer(lies_about(request_key, change)) as server:
        with pytest.raises(ProtocolError, match=message) as raised:
            read(server.address, timeout_ms=60_000)
        assert str(raised.value).startswith(server.place)


@pytest.mark.parametrize(
    ("request_key", "change", "message"),
    [
        (ACKNOWLEDGEMENT, at(48, u32(1 << 20)), "announces a reply of 1048320 bytes, where at most 4096 are expected"),
        (ACKNOWLEDGEMENT, resized(lambda body: body[:16]), "ends inside of the acknowledgement"),
        (ACKNOWLEDGEMENT, resized(lambda body: b""), "ends inside of the acknowledgement"),
        (ACKNOWLEDGEMENT, at(HEADER_LEN, u32(2)), "sent the acknowledgement of another batch than one of tests/lies-1"),
        (ACKNOWLEDGEMENT, at(HEADER_LEN + 12, u32(0)), "sent the acknowledgement of another batch"),
        (ACKNOWLEDGEMENT, at(HEADER_LEN + 16, u64((1 << 63) - 1)), "sent the acknowledgement of another batch"),
        (ACKNOWLEDGEMENT, at(208, b"\2"), "sent the reply to another request"),
        (ME, at(48, u32(0xFFFFFFFF)), "announces a reply of 4294967039 bytes"),
    ],
)
def test_invalid_acknowledgement_raises_and_names_server(
    request_key: str, change: Callable[[bytes], bytes], message: str
) -> None:
    with LyingServer(lies_about(request_key, change)) as server:
        with pytest.raises(ProtocolError, match=message) as raised:
            write(server.address, timeout_ms=60_000)
        assert str(raised.value).startswith(server.place)


def test_partitions_are_sorted_in_any_reply_order() -> None:
    swap = resized(lambda body: body[:-80] + body[-40:] + body[-80:-40])
    with LyingServer(lies_about(TOPIC, swap)) as server, IggyClient(Address.parse(server.address), 60_000) as client:
        assert [place.partition for place in client.partitions(IggyTopic("tests", "lies"))] == [0, 1]


def test_unlistable_connections_are_unknown() -> None:
    unauthorized = resized(lambda body: b"")
    with (
        LyingServer(lies_about("2 22", lambda reply: at(216, u32(41))(unauthorized(reply)))) as server,
        IggyClient(Address.parse(server.address), 60_000) as client,
    ):
        assert client.has_session(b"any") is None
    with LyingServer() as server, IggyClient(Address.parse(server.address), 60_000) as client:
        assert client.has_session(b"any") is False
        assert client.has_session(bytes(client._read(22, b"", 1000))) is True


def evicted(reason: int) -> Callable[[bytes], bytes]:
    """End the session for a reason; the server accepts the protocol from 0.12 to 0.13."""
    versions = u32(13 << 10) + u32(12 << 10)
    return lambda reply: at(144, versions)(at(60, b"\x0d")(at(255, bytes([reason]))(reply)))[:HEADER_LEN]


@pytest.mark.parametrize(
    ("reason", "error", "message"),
    [
        (9, PermissionError, "the user name or the password is wrong"),
        (10, PermissionError, "the personal access token is wrong"),
        (11, PermissionError, "the user is not active"),
        (
            14,
            ServerError,
            r"accepts the protocol from 0\.12\.0 to 0\.13\.0, and the login has 0\.11\.0: this version of letterhead writes "
            r"frames of 0\.11; update it, or if these frames are the same, add \?protocol_version=0\.12\.0 to the address",
        ),
        (15, ServerError, r"cannot read the login of protocol 0\.11\.0$"),
        (3, TimeoutError, r"did not answer in 3 s: 127.* ended the session \(reason 3\)"),
    ],
)
def test_rejected_authentication_reports_reason(reason: int, error: type[Exception], message: str) -> None:
    with LyingServer(lies_about(LOGIN, evicted(reason))) as server, pytest.raises(error, match=message):
        read(server.address, timeout_ms=3000)


@pytest.mark.parametrize("status", [57, 58])
def test_request_not_yet_accepted_is_repeated(status: int) -> None:
    refused = []

    def lie(key: str, reply: bytes) -> bytes:
        if not key.startswith(TOPIC) or len(refused) == 2:
            return reply
        refused.append(key)
        return at(216, u32(status))(reply[:HEADER_LEN].replace(reply[48:52], u32(HEADER_LEN)))

    with LyingServer(lie) as server:
        assert read(server.address, timeout_ms=60_000).num_rows == 6
    assert len(refused) == 2


def test_server_error_is_raised_at_once_with_its_number() -> None:
    refused = []

    def lie(key: str, reply: bytes) -> bytes:
        if not key.startswith(TOPIC):
            return reply
        refused.append(key)
        return resized(lambda body: b"")(at(216, u32(1234))(reply))

    with LyingServer(lie) as server, pytest.raises(ServerError, match="refuses the request with error 1234") as raised:
        read(server.address, timeout_ms=60_000)
    assert (raised.value.status, len(refused)) == (1234, 1)


def test_empty_poll_reply_ends_after_last_offset() -> None:
    """The reply to a poll without messages names the last offset, and 0 in a partition that never had one."""
    for current, end in ((0, 0), (7, 8)):
        empty = resized(lambda body, current=current: body[:4] + u64(current) + u32(0))
        with (
            LyingServer(lies_about(LAST_POLLS, empty)) as server,
            IggyClient(Address.parse(server.address), 60_000) as client,
        ):
            assert client.end_offset(TopicPartition(IggyTopic("tests", "lies"), 0)) == end


def test_recorded_replies_are_read_and_rewritten_unchanged() -> None:
    with LyingServer() as server:
        table = read(server.address)
        assert table["offset"].to_pylist() == [1, 2, 3, 4, 0, 1]
        assert table["payload"].to_pylist() == [b"payload %d" % number for number in (1, 2, 3, 4, 0, 1)]
        assert write(server.address) == (1, [(1, 2, 1)])
        with IggyClient(Address.parse(server.address), 60_000) as client:
            assert [place.partition for place in client.partitions(IggyTopic("tests", "lies"))] == [0, 1]
            assert client.end_offset(TopicPartition(IggyTopic("tests", "lies"), 0)) == 5


def test_requests_share_a_connection() -> None:
    with LyingServer() as server:
        read(server.address)
        assert server.connections == 1


def test_outstanding_reply_is_not_used_for_another_request() -> None:
    topic = IggyTopic("tests", "lies")
    with LyingServer() as server, IggyClient(Address.parse(server.address), 60_000) as client:
        place = TopicPartition(topic, 0)
        end = client.end_offset(place)
        client.begin_poll(place, 1, 4)
        assert client.end_offset(place) == end
        assert server.connections == 2


def test_short_reply_over_fetch_bytes_is_not_requested_again() -> None:
    # The server has no other replies.
    with LyingServer() as server:
        assert read(server.address, fetch_bytes=1, timeout_ms=60_000)["offset"].to_pylist() == [1, 2, 3, 4, 0, 1]


def changed_replies(values: Callable[[int], Iterator[int]]) -> list[tuple[str, int, int]]:
    """Each byte of each recorded reply that has a meaning, with other values."""
    places = []
    for key, reply in json.loads(REPLIES.read_text()).items():
        size = len(reply) // 2
        meaningful = [*range(48, 64), *range(200, 224), HEADER_LEN - 1, *range(HEADER_LEN, size)]
        places += [(key, position, value) for position in meaningful for value in values(position)]
    return places


def outcomes(changes: list[tuple[str, int, int]]) -> list[str]:
    """Read and write with each change; return what is neither the recorded result nor a documented error."""
    wrong = []
    current = ("", 0, 0)

    def lie(key: str, reply: bytes) -> bytes:
        changed, position, value = current
        if key != changed:
            return reply
        return at(position, bytes([reply[position] ^ value]))(reply)

    with LyingServer() as honest, LyingServer(lie) as server:
        expected = {read: read(honest.address).drop_columns(["timestamp"]), write: write(honest.address).rows}
        for current in changes:  # the server reads it
            for action, result in expected.items():
                try:
                    value = action(server.address, timeout_ms=150)
                    # The server chooses times and the offsets of written messages, and no checksum covers them.
                    value = value.drop_columns(["timestamp"]) if action is read else value.rows
                    if value != result:
                        wrong.append(f"{current}: {value}")
                except Exception as error:
                    if type(error) not in DOCUMENTED or not str(error):
                        wrong.append(f"{current}: {type(error).__name__}: {error}")
    return wrong


def test_sampled_byte_changes_yield_rows_or_documented_error() -> None:
    changes = changed_replies(lambda position: iter([0xFF, 0x80, 0x01]))
    assert outcomes(random.Random(35).sample(changes, 250)) == []


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_all_byte_changes_yield_rows_or_documented_error() -> None:
    assert outcomes(changed_replies(lambda position: iter([0xFF, 0x80, 0x01, 0x10]))) == []


def test_reply_takes_memory_of_received_bytes_not_claimed_length() -> None:
    """In a process of its own, which may not have more than 256 MiB more."""
    program = """
import resource
import letterhead as lh
from letterhead.errors import ProtocolError
from tests.iggy.lying_server import LyingServer, read
from tests.iggy import test_lying_servers as lies
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
with LyingServer() as server:
    read(server.address)
before = peak()
for request, size in ((lies.LOGIN, 0xFFFFFFFF), (lies.TOPIC, 16 << 20), (lies.ANY_POLL, 64 << 20), (lies.ME, 16 << 20)):
    with LyingServer(lies.lies_about(request, lies.at(48, lies.u32(size)))) as server:
        for action in (read, lies.write):
            try:
                action(server.address, timeout_ms=200)
            except (ProtocolError, TimeoutError):
                pass
print(peak() - before)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=540, check=True)
    assert int(ran.stdout) < 8, f"{ran.stdout} MiB"
