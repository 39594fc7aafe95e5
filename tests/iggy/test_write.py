"""``lh.write.iggy`` against a server."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.errors import EncodeError
from letterhead.iggy import client as iggy_client
from letterhead.iggy.connection import SEND
from tests.iggy.proxy import Proxy
from tests.iggy.server import Server

pytestmark = pytest.mark.iggy_server

NO_RIGHTS = dict.fromkeys(
    [
        "manage_servers", "read_servers", "manage_users", "read_users", "manage_streams", "read_streams", "manage_topics",
        "read_topics", "poll_messages", "send_messages",
    ],
    False,
)  # fmt: skip
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())]))


def table(count: int) -> pa.Table:
    headers = [[("tenant", "string", b"acme"), ("retry", "int32", row.to_bytes(4, "big"))] for row in range(count)]
    return pa.table(
        {
            "payload": [b"payload %d" % row for row in range(count)],
            "headers": pa.array(headers, HEADERS),
            "key": [f"key {row % 10}" for row in range(count)],
        }
    )


def read(server: Server, topic: str, **options: object) -> pa.Table:
    with lh.read.iggy(server.address, stream="tests", topic=topic, **options) as reader:
        return reader.read_all()


def test_rows_are_appended_in_order(server: Server, create: Callable[..., str]) -> None:
    topic = create(2)
    written = lh.write.iggy(table(2500).drop_columns("key"), server.address, stream="tests", topic=topic, partition=1)
    assert written == (2500, [(1, 0, 1000), (1, 1000, 1000), (1, 2000, 500)])
    result = read(server, topic, headers={"tenant": "string", "retry": "int32"})
    assert result["retry"].to_pylist() == list(range(2500))
    assert result["payload"].to_pylist() == table(2500)["payload"].to_pylist()
    assert len(result["id"].unique()) == 2500


def test_table_that_was_read_is_written_unchanged(server: Server, create: Callable[..., str]) -> None:
    first, second = create(3), create(3)
    lh.write.iggy(table(3000).drop_columns("key"), server.address, stream="tests", topic=first)
    result = read(server, first)
    assert set(result["partition"].to_pylist()) == {0, 1, 2}
    lh.write.iggy(result, server.address, stream="tests", topic=second, partition="partition")
    again = read(server, second)
    kept = ["partition", "offset", "id", "origin_timestamp", "headers", "payload"]
    assert again.select(kept).equals(result.select(kept))


def test_key_selects_partition_that_server_would(server: Server, create: Callable[..., str]) -> None:
    from letterhead.iggy import Partitioning

    ours, theirs = create(5), create(5)
    lh.write.iggy(table(100), server.address, stream="tests", topic=ours, partition_key="key")
    for row in table(10).to_pylist():
        body = {
            "partitioning": Partitioning.messages_key(row["key"])._to_tree(),
            "messages": [{"id": 0, "payload": "eA=="}],
        }
        server.call("POST", f"/streams/tests/topics/{theirs}/messages", body)
    ten = read(server, theirs, columns=["partition"])["partition"].value_counts().to_pylist()
    assert read(server, ours, columns=["partition"])["partition"].value_counts().to_pylist() == [
        {"values": batch["values"], "counts": 10 * batch["counts"]} for batch in ten
    ]


def test_times_further_apart_than_batch_span_are_kept(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    times = pa.array([0, 10**15, 5, None, 10**15 + 1], pa.timestamp("us", "UTC"))
    data = pa.table({"payload": ["a", "b", "c", "d", "e"], "origin_timestamp": times})
    lh.write.iggy(data, server.address, stream="tests", topic=topic)
    times_read = read(server, topic)["origin_timestamp"]
    assert times_read.take([0, 1, 2, 4]).to_pylist() == times.take([0, 1, 2, 4]).to_pylist()
    assert times_read[3].as_py().year >= 2024


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"payload": ["a", ""]}, EncodeError, "row 1"),
        ({"payload": ["a", None]}, EncodeError, "the payload is null or empty"),
        ({"payload": ["a", "b"], "id": [b"1", None]}, EncodeError, "16 bytes"),
        ({"payload": ["a", "b"], "tenant": ["x", "y"]}, ValueError, "unknown column 'tenant'"),
        ({"headers": [[], []]}, ValueError, "the table has no column 'payload'"),
        ({"payload": [1, 2]}, TypeError, "must be binary or string, not int64"),
        ({"payload": ["a", "b"], "partition": [0, 9]}, ValueError, "has no partition 9: it has 1"),
    ],
)
def test_invalid_rows_are_rejected_before_sending(
    server: Server, create: Callable[..., str], columns: dict[str, list[object]], error: type[Exception], message: str
) -> None:
    topic = create()
    with pytest.raises(error, match=message):
        lh.write.iggy(
            pa.table(columns), server.address, stream="tests", topic=topic,
            partition="partition" if "partition" in columns else None,
        )  # fmt: skip
    assert read(server, topic).num_rows == 0


def test_batch_with_lost_acknowledgement_is_not_repeated(server: Server, create: Callable[..., str]) -> None:
    class Cut(iggy_client.Connection):
        """Ends after each second batch was sent, or instead."""

        sent = 0

        def send(self, operation: int, *arguments: object) -> None:
            if operation == SEND:
                Cut.sent += 1
                if Cut.sent % 4 == 2:
                    self.close()
            super().send(operation, *arguments)
            if operation == SEND and Cut.sent % 4 == 0:
                self._socket.shutdown(2)

    topic = create()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iggy_client, "Connection", Cut)
        written = lh.write.iggy(table(8000).drop_columns("key"), server.address, stream="tests", topic=topic)
    assert Cut.sent > 8
    result = read(server, topic, headers={"retry": "int32"})
    assert result["retry"].to_pylist() == list(range(8000))
    assert sum(batch.rows for batch in written.batches) == 8000


def test_unacknowledged_batch_is_found_among_another_writers(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    others = pa.table({"payload": [f"other {number}" for number in range(50)]})

    class Cut(iggy_client.Connection):
        """Ends after its first batch was sent, before which another writer sends some."""

        sent = 0

        def send(self, operation: int, *arguments: object) -> None:
            Cut.sent += operation == SEND
            is_first = operation == SEND and Cut.sent == 1
            if is_first:
                lh.write.iggy(others, server.address, stream="tests", topic=topic)
            super().send(operation, *arguments)
            if is_first:
                self._socket.shutdown(2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iggy_client, "Connection", Cut)
        written = lh.write.iggy(pa.table({"payload": ["ours"]}), server.address, stream="tests", topic=topic)
    assert [(batch.offset, batch.rows) for batch in written.batches] == [(50, 1)]
    assert read(server, topic)["payload"].to_pylist()[50:] == [b"ours"]


@pytest.mark.parametrize("delay", [-1, 0, 0.5, pytest.param(3, marks=pytest.mark.full)])
def test_late_batch_is_not_sent_again(server: Server, create: Callable[..., str], delay: float) -> None:
    topic = create()
    proxy = Proxy(server.port, {2, 3}, delay)
    address = server.address.replace(str(server.port), str(proxy.port))
    try:
        written = lh.write.iggy(
            table(4000).drop_columns("key"), address, stream="tests", topic=topic, timeout_ms=20_000
        )
    finally:
        proxy.close()
    assert (proxy.late, proxy.sent) == ((2, 4) if delay >= 0 else (0, 6))
    assert read(server, topic, headers={"retry": "int32"})["retry"].to_pylist() == list(range(4000))
    assert [batch.offset for batch in written.batches] == [0, 1000, 2000, 3000]


# The proxy has to pass the batch on before the writer has waited for two seconds.
@pytest.mark.full
def test_writer_waits_two_seconds_if_connections_are_unlistable(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    server.call(
        "POST", "/users", {"username": "writer", "password": "password", "status": "active", "permissions": None}
    )
    streams = {stream["name"]: stream["id"] for stream in server.call("GET", "/streams")}
    rights = dict.fromkeys(
        ["manage_stream", "read_stream", "manage_topics", "read_topics", "poll_messages", "send_messages"], True
    )
    server.call(
        "PUT",
        "/users/writer/permissions",
        {"permissions": {"global": NO_RIGHTS, "streams": {str(streams["tests"]): rights}}},
    )
    proxy = Proxy(server.port, {1}, 1)
    try:
        written = lh.write.iggy(
            pa.table({"payload": ["x"]}), f"iggy://writer:password@127.0.0.1:{proxy.port}", stream="tests", topic=topic
        )
    finally:
        proxy.close()
    assert written == (1, [(0, 0, 1)])
    assert (proxy.sent, read(server, topic).num_rows) == (1, 1)


def test_batch_that_can_still_arrive_is_reported(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    proxy = Proxy(server.port, {1}, 600)
    address = server.address.replace(str(server.port), str(proxy.port))
    try:
        with pytest.raises(TimeoutError, match=r"did not acknowledge a batch in 5 s, and can still append it"):
            lh.write.iggy(pa.table({"payload": ["x"]}), address, stream="tests", topic=topic, timeout_ms=5000)
    finally:
        proxy.close()
