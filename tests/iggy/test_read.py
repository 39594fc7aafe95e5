"""``lh.read.iggy`` against a server."""

from __future__ import annotations

import contextlib
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.errors import OffsetsGone
from letterhead.iggy import HeaderMap, HeaderValue, Message, Partitioning, SendMessages
from letterhead.iggy.address import Address
from letterhead.iggy.client import IggyClient, IggyTopic
from letterhead.offsets.partition_log import TopicPartition
from tests.iggy.server import Server

pytestmark = pytest.mark.iggy_server


def fill(server: Server, topic: str, partition: int, messages: list[Message], at_once: int = 100) -> None:
    """Append messages to a partition, some in each request."""
    with IggyClient(Address.parse(server.address), 5000) as client:
        for first in range(0, len(messages), at_once):
            part = messages[first : first + at_once]
            body = SendMessages("tests", topic, Partitioning.partition_id(partition), part).to_bytes("iggy")
            batch = body[4 + int.from_bytes(body[:4], "little") :]
            client.send(TopicPartition(IggyTopic("tests", topic), partition), batch, len(part))


def numbered(count: int) -> list[Message]:
    return [
        Message(
            index + 1,
            b"payload %d" % index,
            HeaderMap({"tenant": HeaderValue.from_str(f"tenant {index % 3}"), "retry": HeaderValue.from_int32(index)}),
        )
        for index in range(count)
    ]


def read(server: Server, topic: str, **options: object) -> pa.Table:
    with lh.read.iggy(server.address, stream="tests", topic=topic, **options) as reader:
        return reader.read_all()


def test_rows_are_ordered_by_partition_and_offset(server: Server, create: Callable[..., str]) -> None:
    topic = create(2)
    fill(server, topic, 0, numbered(700), 90)
    fill(server, topic, 1, numbered(50))
    table = read(server, topic, headers={"tenant": "string", "retry": "int32"})
    assert table.column_names == [
        "stream", "topic", "partition", "offset", "timestamp", "origin_timestamp", "id", "payload", "tenant", "retry",
    ]  # fmt: skip
    assert table["partition"].to_pylist() == [0] * 700 + [1] * 50
    assert table["offset"].to_pylist() == [*range(700), *range(50)]
    assert table["retry"].to_pylist() == [*range(700), *range(50)]
    assert table["payload"][699].as_py() == b"payload 699"
    assert int.from_bytes(table["id"][699].as_py(), "big") == 700
    assert table["topic"].unique().to_pylist() == [topic]
    assert table["timestamp"].type == pa.timestamp("us", "UTC")


def test_headers_are_a_column_by_default(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(1))
    (row,) = read(server, topic).to_pylist()
    assert [(header["key"], header["type"]) for header in row["headers"]] == [
        (b"tenant", "string"),
        (b"retry", "int32"),
    ]


@pytest.mark.parametrize(("fetch_bytes", "count"), [(1, 400), (1000, 400), (20_000, 2000)])
def test_batches_follow_fetch_bytes(server: Server, create: Callable[..., str], fetch_bytes: int, count: int) -> None:
    topic = create()
    fill(server, topic, 0, numbered(count), 37)
    with lh.read.iggy(
        server.address, stream="tests", topic=topic, columns=["offset"], fetch_bytes=fetch_bytes
    ) as reader:
        batches = list(reader)
    assert [offset for batch in batches for offset in batch.column(0).to_pylist()] == list(range(count))
    assert len(batches) > 6
    assert all(len(batch) <= max(1, fetch_bytes // 100) for batch in batches[2:])


def test_start_and_end_accept_offsets_or_times(server: Server, create: Callable[..., str]) -> None:
    topic = create(2)
    fill(server, topic, 0, numbered(10))
    fill(server, topic, 1, numbered(10))
    columns = ["partition", "offset"]
    some = read(server, topic, columns=columns, start={0: 3, 1: "latest"}, end={0: 5, 1: "latest"})
    assert some.to_pylist() == [{"partition": 0, "offset": 3}, {"partition": 0, "offset": 4}]
    assert read(server, topic, columns=columns, partitions=[1], start={1: 9}).num_rows == 1
    times = read(server, topic, columns=["timestamp"], partitions=[0])["timestamp"]
    since = times[0].as_py().replace(microsecond=0)
    assert read(server, topic, columns=columns, start=since).num_rows == 20
    assert read(server, topic, columns=columns, start=datetime(2100, 1, 1, tzinfo=UTC)).num_rows == 0
    assert read(server, topic, columns=columns, end=since).num_rows == 0
    assert read(server, topic, columns=columns, start=datetime(1960, 1, 1, tzinfo=UTC)).num_rows == 20


def test_empty_topic_has_no_rows(server: Server, create: Callable[..., str]) -> None:
    table = read(server, create(2), columns=["offset", "id"])
    assert (table.num_rows, table.column_names) == (0, ["offset", "id"])


def test_numbered_stream_is_read(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(2))
    number = next(
        topic_info["id"] for topic_info in server.call("GET", "/streams/tests/topics") if topic_info["name"] == topic
    )
    with lh.read.iggy(server.address, stream="tests", topic=number, columns=["topic"]) as reader:
        assert reader.read_all()["topic"].to_pylist() == [str(number)] * 2


def test_offset_after_end_is_rejected(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(2))
    with pytest.raises(ValueError, match=r"start is offset 3, but the partition ends at 2"):
        read(server, topic, start={0: 3})


def test_missing_stream_topic_or_partition_is_named(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    with pytest.raises(ValueError, match="stream 'nowhere' does not exist"):
        lh.read.iggy(server.address, stream="nowhere", topic=topic).read_all()
    with pytest.raises(ValueError, match="stream 'tests' has no topic 'nothing'"):
        read(server, "nothing")
    with pytest.raises(ValueError, match="has no partition 7: it has 1, counted from 0"):
        read(server, topic, partitions=[7])
    with pytest.raises(ValueError, match=r"start names partition 7, and topic .* has only partition 0"):
        read(server, topic, start={0: 0, 7: 3})


def test_wrong_credentials_are_rejected_at_once(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    for address in (f"iggy://iggy:wrong@127.0.0.1:{server.port}", f"iggy://token@127.0.0.1:{server.port}"):
        with pytest.raises(PermissionError, match="wrong") as raised:
            lh.read.iggy(address, stream="tests", topic=topic).read_all()
        assert "iggy:wrong" not in str(raised.value)


def test_personal_access_token_authenticates(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(3))
    token = server.call("POST", "/personal-access-tokens", {"name": "reader", "expiry": 0})["token"]
    with lh.read.iggy(f"iggy://{quote(token, safe='')}@127.0.0.1:{server.port}", stream="tests", topic=topic) as reader:
        assert reader.read_all().num_rows == 3


@pytest.mark.parametrize(
    "address", ["http://u:p@h", "iggy://h:8090", "iggy://u:secret/word@h:1", "iggy://u:secret@h:x", ""]
)
def test_invalid_address_is_rejected_without_its_password(address: str) -> None:
    with pytest.raises(ValueError, match="the address of an Iggy server is iggy://user:password@host:port") as raised:
        lh.read.iggy(address, stream="s", topic="t")
    assert "secret" not in str(raised.value)


def test_unresponsive_server_times_out(server: Server) -> None:
    with pytest.raises(TimeoutError, match=r"127\.0\.0\.1:1 did not answer in 0\.3 s"):
        lh.read.iggy("iggy://u:p@127.0.0.1:1", stream="s", topic="t", timeout_ms=300).read_all()


def test_server_that_accepts_and_is_silent_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"iggy://u:p@127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimeoutError, match=r"did not answer in 0\.3 s"):
            lh.read.iggy(address, stream="s", topic="t", timeout_ms=300).read_all()


def test_unresponsive_server_times_out_and_reading_resumes(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(1000))
    options = {"stream": "tests", "topic": topic, "columns": ["offset"], "fetch_bytes": 1000}
    with lh.read.iggy(server.address, **options, timeout_ms=5000) as reader:
        offsets = next(reader).column(0).to_pylist()
        with server.paused():
            try:
                for batch in reader:
                    offsets += batch.column(0).to_pylist()
                error = ""
            except TimeoutError as raised:
                error = str(raised)
    assert "did not answer in 5 s" in error
    assert 0 < len(offsets) < 1000
    with lh.read.iggy(server.address, **options, start={0: len(offsets)}) as reader:
        offsets += reader.read_all()["offset"].to_pylist()
    assert offsets == list(range(1000))


@pytest.mark.full
def test_partition_with_only_expired_messages_looks_empty(server: Server, tmp_path: Path) -> None:
    """No reply of the server tells the next offset, so the reader takes the smaller one and skips nothing."""
    other = Server(tmp_path / "server", {"IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL": "1 s"})
    other.start()
    try:
        other.create("tests", "expiring", 1, {"segment_size": "1 MiB"}, expiry=1_000_000)
        options = {"stream": "tests", "topic": "expiring"}
        lh.write.iggy(pa.table({"payload": [b"x" * 1_200_000]}), other.address, **options)
        with IggyClient(Address.parse(other.address), 5000) as client:
            place = TopicPartition(IggyTopic("tests", "expiring"), 0)
            until = time.monotonic() + 40
            while client.end_offset(place) == 1 and time.monotonic() < until:
                time.sleep(0.1)
            assert (client.first_offset(place), client.end_offset(place)) == (0, 0)
        lh.write.iggy(pa.table({"payload": [b"y" * 10]}), other.address, **options)
        assert lh.read.iggy(other.address, **options, columns=["offset"]).read_all()["offset"].to_pylist() == [1]
    finally:
        other.stop()


def test_purged_messages_are_gone(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(300))
    with lh.read.iggy(server.address, stream="tests", topic=topic, timeout_ms=60_000, fetch_bytes=100) as reader:
        next(reader)
        next(reader)
        server.call("DELETE", f"/streams/tests/topics/{topic}/purge")
        with pytest.raises(OffsetsGone):
            reader.read_all()


def test_reading_continues_on_a_new_connection(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(1200))
    from letterhead.iggy import client as iggy_client

    opened = []

    class Kept(iggy_client.Connection):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            opened.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iggy_client, "Connection", Kept)
        with lh.read.iggy(server.address, stream="tests", topic=topic, fetch_bytes=5000, columns=["offset"]) as reader:
            offsets = []
            for batch in reader:
                offsets += batch.column(0).to_pylist()
                with contextlib.suppress(OSError):  # closed already
                    opened[-1]._socket.shutdown(2)
    assert offsets == list(range(1200))
    assert len(opened) > 3


def test_threads_read_at_the_same_time(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(2000))
    row_counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: row_counts.append(read(server, topic, columns=["offset"]).num_rows))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert row_counts == [2000] * 4


def test_tls_checks_the_certificate(server: Server, tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path, "iggy.test")
    other = Server(
        tmp_path / "server",
        {
            "IGGY_TCP_TLS_ENABLED": "true", "IGGY_TCP_TLS_SELF_SIGNED": "false",
            "IGGY_TCP_TLS_CERT_FILE": str(certificate), "IGGY_TCP_TLS_KEY_FILE": str(key),
        },
    )  # fmt: skip
    other.start()
    try:
        other.create("tests", "secret")
        options = {"stream": "tests", "topic": "secret", "timeout_ms": 60_000}
        trusted = f"{other.address}?tls=true&tls_ca_file={certificate}"
        address = f"{trusted}&tls_domain=iggy.test"
        assert lh.write.iggy(pa.table({"payload": ["x"]}), address, **options).rows == 1
        assert lh.read.iggy(address, **options).read_all()["payload"].to_pylist() == [b"x"]
        for untrusted in (f"{other.address}?tls=true", trusted):
            with pytest.raises(ConnectionError, match=r"is not trusted: .*; set tls_ca_file or tls_domain"):
                lh.read.iggy(untrusted, **options).read_all()
    finally:
        other.stop()


def write_certificate(directory: Path, name: str) -> tuple[Path, Path]:
    """Write a certificate that signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = directory / "certificate.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@pytest.mark.full
def test_reader_killed_twenty_times_skips_and_repeats_nothing(
    server: Server, create: Callable[..., str], tmp_path: Path
) -> None:
    """A process that stores rows and the next offset together, as a consumer does."""
    topic = create()
    fill(server, topic, 0, numbered(8000))
    program = """
import os, pickle, sys, time
import letterhead as lh
address, topic, file = sys.argv[1:]
done, rows = pickle.load(open(file, "rb")) if os.path.exists(file) else (0, [])
with lh.read.iggy(
    address, stream="tests", topic=topic, columns=["offset"], headers={"retry": "int32"}, start={0: done}, fetch_bytes=2000
) as reader:
    for batch in reader:
        rows += batch.column("retry").to_pylist()
        with open(file + ".new", "wb") as new:
            pickle.dump((batch.column("offset")[-1].as_py() + 1, rows), new)
        os.replace(file + ".new", file)
        time.sleep(0.005)
"""
    file = tmp_path / "state"
    arguments = [sys.executable, "-c", program, server.address, topic, str(file)]
    kills = 0
    while True:
        process = subprocess.Popen(arguments)
        size = file.stat().st_size if file.exists() else 0
        while process.poll() is None and (kills == 20 or not file.exists() or file.stat().st_size == size):
            time.sleep(0.001)
        if process.poll() is not None:
            break
        process.kill()
        process.wait()
        kills += 1
    assert (process.returncode, kills) == (0, 20)
    assert pickle.loads(file.read_bytes()) == (8000, list(range(8000)))


@pytest.mark.parametrize(
    "where",
    [
        "tenant = 'tenant 1' and retry > 400",
        "offset >= 690 or tenant = 'tenant 2'",
        "partition = 1 and retry::int32 < 5",
        "payload = 'payload 7' or not partition < 9",
        "stream = 'other'",
    ],
)
def test_condition_selects_same_rows_as_filtering_whole_topic(
    server: Server, create: Callable[..., str], where: str
) -> None:
    topic = create(2)
    fill(server, topic, 0, numbered(700), 90)
    fill(server, topic, 1, numbered(50))
    headers = {"tenant": "string", "retry": "int32"}
    rows = read(server, topic, headers=headers).to_pylist()
    matches = {
        "tenant = 'tenant 1' and retry > 400": lambda row: row["tenant"] == "tenant 1" and row["retry"] > 400,
        "offset >= 690 or tenant = 'tenant 2'": lambda row: row["offset"] >= 690 or row["tenant"] == "tenant 2",
        "partition = 1 and retry::int32 < 5": lambda row: row["partition"] == 1 and row["retry"] < 5,
        "payload = 'payload 7' or not partition < 9": lambda row: row["payload"] == b"payload 7",
        "stream = 'other'": lambda row: False,
    }[where]
    assert read(server, topic, headers=headers, where=where).to_pylist() == [row for row in rows if matches(row)]


def test_condition_on_offsets_or_times_limits_polls(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    fill(server, topic, 0, numbered(500))
    time.sleep(0.01)
    since = datetime.now(UTC)
    fill(server, topic, 0, numbered(20))
    polled: list[int] = []
    begin = IggyClient.begin_poll

    def counting(self: IggyClient, place: TopicPartition, offset: int, count: int) -> bytes:
        polled.append(offset)
        return begin(self, place, offset, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IggyClient, "begin_poll", counting)
        assert read(server, topic, where=lh.col("timestamp") >= since).num_rows == 20
        assert read(server, topic, where=(lh.col("offset") >= 510) & (lh.col("offset") < 515)).num_rows == 5
    assert min(polled) == 500


def test_sudden_large_messages_are_polled_in_smaller_parts(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    payloads = [b"small"] * 300 + [b"x" * 20_000] * 50 + [b"x" * 3_000_000] + [b"small"] * 10
    lh.write.iggy(pa.table({"payload": payloads}), server.address, stream="tests", topic=topic)
    with lh.read.iggy(server.address, stream="tests", topic=topic, columns=["payload"], fetch_bytes=65_536) as reader:
        batches = list(reader)
    assert pa.Table.from_batches(batches)["payload"].to_pylist() == payloads
    assert max(batch.nbytes for batch in batches if len(batch) > 1) < 5 * 65_536


def test_topic_larger_than_one_reply_is_read(server: Server, create: Callable[..., str]) -> None:
    topic = create()
    payloads = [b"%d" % row for row in range(300)] + [b"x" * 1_000_000] * 90
    lh.write.iggy(pa.table({"payload": payloads}), server.address, stream="tests", topic=topic)
    assert read(server, topic, columns=["payload"], timeout_ms=20_000)["payload"].to_pylist() == payloads
