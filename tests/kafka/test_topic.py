"""A topic read straight into Arrow, next to what librdkafka reads."""

from __future__ import annotations

import datetime
import os
import pickle
import ssl
import subprocess
import sys
import threading
import types
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.protocol.consumer import FetchRequest

import letterhead as lh
from letterhead.errors import OffsetsGone
from letterhead.kafka import tls
from letterhead.kafka.client import LATEST_TIME, KafkaClient
from letterhead.kafka.settings import reader_settings, spark_settings
from letterhead.kafka.transport import LargeReads
from letterhead.offsets.partition_log import TopicPartition as Partition
from tests.helpers.extras import spelled_out
from tests.kafka import secured
from tests.kafka.broker import Broker
from tests.kafka.topics import Record
from tests.kafka.written import EMPTY, TOPICS, Row, create_with, ends, numbered, producer, read, send

pytestmark = pytest.mark.broker

ISOLATIONS = ("read_uncommitted", "read_committed")


def rows(table: pa.Table) -> list[Row]:
    """Rows of a topic, as librdkafka's are given."""
    at = table.schema.get_field_index("timestamp")
    return [
        Row(**(row | {"headers": [(header["key"], header["value"]) for header in row["headers"]]}))
        for row in table.set_column(at, "timestamp", table["timestamp"].cast("int64")).select(Row._fields).to_pylist()
    ]


# --- without a broker ------------------------------------------------------------------------------------------------


def test_used_parts_of_kafka_python_exist():
    # None of them is promised. Where one is gone or is called otherwise, kafka/broker_connections.py and kafka/transport.py must be looked through.
    from inspect import iscoroutinefunction, signature

    from kafka import errors
    from kafka.cluster import ClusterMetadata
    from kafka.future import Future
    from kafka.net.connection import KafkaConnection
    from kafka.net.inet import KafkaNetSocket
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.sasl import register_sasl_mechanism
    from kafka.net.sasl.abc import SaslMechanism
    from kafka.net.selector import NetworkSelector
    from kafka.protocol.consumer import FetchResponse, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
    from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataRequest, MetadataResponse

    def parameters(function) -> list[str]:
        return [name for name in signature(function).parameters if name != "self"]

    assert parameters(NetworkSelector.run) == ["coro", "args"]
    assert parameters(NetworkSelector.sleep) == ["delay"]
    assert parameters(NetworkSelector.start) == parameters(NetworkSelector.close) == []
    assert parameters(KafkaConnectionManager.call_soon) == ["coro", "args"]
    assert parameters(KafkaConnectionManager.wait_for) == ["future", "timeout_ms"]
    assert iscoroutinefunction(KafkaConnectionManager.wait_for)
    assert {"node_id", "refresh_metadata_on_err"} <= set(parameters(KafkaConnectionManager.get_connection))
    assert hasattr(KafkaConnection, "__await__")
    assert parameters(KafkaNetSocket.socket) == ["family", "sock_type", "proto"]
    assert parameters(Future.success) == ["value"]
    assert parameters(Future.succeeded) == []
    assert parameters(KafkaConnection.send_request)[0] == "request"
    assert {"ssl_context", "sasl_plain_password", "receive_message_max_bytes"} <= set(
        KafkaConnectionManager.DEFAULT_CONFIG
    )
    assert KafkaConnectionManager.DEFAULT_CONFIG.keys() > {"bootstrap_servers", "request_timeout_ms", "client_id"}
    assert errors.for_code(1) is errors.OffsetOutOfRangeError
    assert errors.KafkaConnectionError.retriable
    assert errors.NotLeaderForPartitionError.retriable
    assert not errors.SaslAuthenticationFailedError.retriable

    fetch = FetchRequest(
        replica_id=-1, max_wait_ms=1, min_bytes=1, max_bytes=1, isolation_level=1, session_id=0, session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[FetchRequest.FetchTopic.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=5, last_fetched_epoch=-1, log_start_offset=-1,
            partition_max_bytes=1,
        )])],
        forgotten_topics_data=[], rack_id="", min_version=4, max_version=12,
    )  # fmt: skip
    fetch.API_VERSION = 12
    fetch.with_header(correlation_id=1, client_id="c")
    assert bytes(fetch.encode(framed=True, header=True))[4:8] == b"\x00\x01\x00\x0c"
    assert ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[], min_version=2, max_version=7)
    assert MetadataRequest(topics=None, allow_auto_topic_creation=False, max_version=9)
    assert hasattr(MetadataResponse, "MetadataResponseBroker")
    assert FindCoordinatorRequest(key="g", key_type=CoordinatorType.GROUP, min_version=0, max_version=3)
    assert parameters(ClusterMetadata.add_coordinator)[:3] == ["response", "key_type", "key"]
    assert OffsetFetchRequest(group_id="g", topics=[], min_version=2, max_version=7)
    assert OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, member_id="", group_instance_id=None, retention_time_ms=-1,
        topics=[], min_version=2, max_version=8,
    )  # fmt: skip
    assert parameters(register_sasl_mechanism) == ["name", "klass", "overwrite"]
    assert SaslMechanism.__abstractmethods__ == {"__init__", "auth_bytes", "receive", "is_done", "is_authenticated"}

    # Record sets come back as they were sent, with the aborted transactions beside them.
    of_partition = FetchResponse.FetchableTopicResponse.PartitionData
    answer = FetchResponse(
        throttle_time_ms=0, error_code=0, session_id=0, version=12,
        responses=[FetchResponse.FetchableTopicResponse(topic="t", version=12, partitions=[of_partition(
            partition_index=0, error_code=0, high_watermark=9, last_stable_offset=8, log_start_offset=0,
            aborted_transactions=[of_partition.AbortedTransaction(producer_id=7, first_offset=3, version=12)],
            preferred_read_replica=-1, records=b"as they are", version=12,
            diverging_epoch=of_partition.EpochEndOffset(epoch=3, end_offset=6, version=12),
        )])],
    )  # fmt: skip
    partition = FetchResponse.decode(answer.encode(version=12), version=12).responses[0].partitions[0]
    assert bytes(partition.records) == b"as they are"
    assert [(transaction.producer_id, transaction.first_offset) for transaction in partition.aborted_transactions] == [
        (7, 3)
    ]
    assert (partition.high_watermark, partition.last_stable_offset) == (9, 8)
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (3, 6)


def test_missing_kafka_python_names_package_to_install():
    program = "import sys; sys.modules['kafka'] = None; import letterhead as lh; lh.read.topic"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("ImportError: ")
    assert spelled_out("pip install 'letterhead[kafka]'") in ended.stderr


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"settings": {"sasl.pasword": "hunter2"}},
            ValueError,
            "unknown setting 'sasl.pasword': did you mean 'sasl.password'",
        ),
        ({"columns": ["offst"]}, ValueError, "did you mean 'offset'"),
        ({"columns": ["offset", "offset"]}, ValueError, "two columns 'offset' would be made"),
        ({"headers": {"offset": "string"}}, ValueError, "two columns 'offset' would be made"),
        ({"errors": "column", "error_column": "offset"}, ValueError, "two columns 'offset' would be made"),
        ({"error_column": "why"}, ValueError, "error_column= names the column of errors='column'"),
        ({"start": "earlist"}, ValueError, "'earliest', 'latest', an offset, .* or a mapping"),
        ({"start": 5, "end": 4}, ValueError, "end is before start"),
        ({"start": -5, "end": -6}, ValueError, "end is before start"),
        ({"start": {0: 7}, "end": {0: 3}}, ValueError, "end is before start"),
        ({"start": "2026-01-02", "end": "@1767225600000"}, ValueError, "end is before start"),
        ({"end": datetime.datetime(2026, 1, 1)}, ValueError, "without a time zone"),
        ({"start": {0: 1.5}}, ValueError, "start must be .*, not 1.5"),
        ({"end": True}, ValueError, "end must be .*, not True"),
        ({"isolation_level": "commited"}, ValueError, "read_committed"),
        (
            {"settings": {"security.protocol": "TLS"}},
            ValueError,
            r"security\.protocol must be one of PLAINTEXT, SSL, .*",
        ),
    ],
)
def test_invalid_arguments_are_rejected_before_connecting(options, error, message):
    with pytest.raises(error, match=message) as raised:
        lh.read.topic("orders", bootstrap_servers="127.0.0.1:1", **options)
    assert "hunter2" not in str(raised.value)


def test_unreachable_broker_is_reported_in_time():
    reader = lh.read.topic("orders", bootstrap_servers="127.0.0.1:1", timeout_ms=300)
    with pytest.raises(TimeoutError, match=r"^no answer from 127\.0\.0\.1:1 in 0\.3 s: "):
        next(reader)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("kafka-io")]


# --- with one --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("topic", TOPICS)
def test_every_record_matches_librdkafka(broker, written, topic, isolation):
    expected = read(broker, written + topic, isolation)
    assert len(expected) > (5 if topic == "compacted" else 50)
    # So little at a time that batches are truncated, and that every fetch and every part has its bounds in the middle.
    with lh.read.topic(
        written + topic, bootstrap_servers=broker, isolation_level=isolation, fetch_bytes=3000, batch_bytes=1000
    ) as reader:
        assert reader.schema.names == [
            "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "producer_id",
            "producer_epoch", "sequence", "transactional",
        ]  # fmt: skip
        table = reader.read_all()
    assert rows(table) == expected
    assert set(table["topic"].to_pylist()) == {written + topic}


def test_aborted_records_are_skipped_and_open_transaction_ends(broker, written):
    topic = f"{written}transactions"
    uncommitted, committed = (read(broker, topic, isolation) for isolation in ISOLATIONS)
    keys = {row.key for row in committed}
    assert {row.key for row in uncommitted} - keys >= {b"key 1000", b"key 2500", b"key 9100", b"key 9500"}
    assert keys >= {b"key 0", b"key 500", b"key 800", b"key 1500", b"key 2000", b"key 2700", b"key 9000"}
    # From the middle of an aborted transaction, too.
    for start in range(0, committed[-1].offset, 17):
        result = lh.read.topic(
            topic, bootstrap_servers=broker, columns=["offset"], start={0: start}, isolation_level="read_committed"
        ).read_all()
        assert result["offset"].to_pylist() == [row.offset for row in committed if row.offset >= start]


def test_offsets_apply_in_middle_of_batch(broker, written):
    topic = f"{written}codecs"
    expected = read(broker, topic)
    ranges = {partition: (7 + partition, 60 - partition) for partition in range(EMPTY)} | {EMPTY: (0, 0)}
    result = lh.read.topic(
        topic,
        bootstrap_servers=broker,
        start={partition: start for partition, (start, _) in ranges.items()},
        end={partition: end for partition, (_, end) in ranges.items()},
    ).read_all()
    assert rows(result) == [row for row in expected if row.offset in range(*ranges[row.partition])]
    single = lh.read.topic(topic, bootstrap_servers=broker, partitions=[3], start={3: 105}, end="latest").read_all()
    assert single["offset"].to_pylist() == [105, 106]
    assert single["partition"].to_pylist() == [3, 3]


def test_time_selects_first_record_not_older(broker):
    create_with(broker, "times", 1)
    sender = producer(broker)
    zero = 1_700_000_000_000
    for number in range(20):
        sender.produce("times", value=b"%d" % number, timestamp=zero + number * 1000)
    assert sender.flush(30) == 0

    def offsets(**points) -> list[int]:
        table = lh.read.topic("times", bootstrap_servers=broker, columns=["offset"], **points).read_all()
        return table["offset"].to_pylist()

    assert offsets(start=f"@{zero + 5000}", end=f"@{zero + 8001}") == [5, 6, 7, 8]
    utc = datetime.datetime.fromtimestamp(zero / 1000 + 17.5, datetime.UTC)
    assert offsets(start=utc) == [18, 19]
    assert offsets(start="2023-11-14T22:13:37.500Z") == offsets(start="2023-11-14 22:13:37.5") == [18, 19]
    assert offsets(start=f"@{zero + 60_000}") == []
    assert offsets(start="1960-01-01", end=2) == [0, 1]
    assert offsets(start=17) == offsets(start=-3) == offsets(start={0: -3}) == offsets(start="17") == [17, 18, 19]
    assert offsets(start=-100, end=-18) == [0, 1]
    assert offsets(start=18, end=1000) == [18, 19]
    with pytest.raises(ValueError, match=f"start is after .* ends at offset 20; for a time .* '@{zero}'"):
        offsets(start=zero)
    assert offsets(start={0: utc}, end={0: 19}) == [18]
    assert offsets(start="latest") == []
    assert offsets(end="earliest") == []


def test_only_requested_columns_are_built(broker, written):
    table = lh.read.topic(
        f"{written}codecs",
        bootstrap_servers=broker,
        columns=["value"],
        headers={"tenant": "string", "number": lh.field("int32", key="retry"), "route": "array<string>"},
        partitions=[4],
        start={4: 3},
        end={4: 6},
    ).read_all()
    assert table.to_pylist() == [
        {"value": b"value 3 ...", "tenant": "acme", "number": 3, "route": ["a"]},
        {"value": b"value 4 ....", "tenant": "acme", "number": 4, "route": ["a", None]},
        {"value": b"value 5 .....", "tenant": None, "number": None, "route": []},
    ]
    result = lh.read.topic(
        f"{written}transactions",
        bootstrap_servers=broker,
        columns=["transactional", "producer_id", "producer_epoch", "sequence", "offset"],
        end={0: 60},
    ).read_all()
    plain = result.filter(pc.invert(result["transactional"]))
    assert 0 < len(plain) < len(result)
    assert set(plain["producer_id"].to_pylist()) == set(plain["sequence"].to_pylist()) == {None}
    assert result.filter(result["transactional"])["sequence"].to_pylist()[:3] == [0, 1, 2]


def test_short_header_value_error_names_partition_and_offset(broker):
    create_with(broker, "damaged", 2)
    records = [Record(b"%d" % number, b"", [("retry", bytes(4 - number % 2))]) for number in range(4)]
    send(producer(broker), "damaged", records, 1)
    arguments = {"bootstrap_servers": broker, "columns": ["offset"], "headers": {"retry": "int32"}}
    with pytest.raises(lh.DecodeError, match=r"column retry: .*3 bytes where int32 takes 4") as raised:
        lh.read.topic("damaged", **arguments).read_all()
    error = raised.value
    assert (error.topic, error.partition, error.offset, error.row) == ("damaged", 1, 1, None)
    assert "(topic damaged, partition 1, offset 1, header 0, byte " in str(error)
    assert lh.read.topic("damaged", errors="null", **arguments).read_all()["retry"].to_pylist() == [0, None, 0, None]
    errors = lh.read.topic("damaged", errors="column", **arguments).read_all()
    assert errors.column_names == ["offset", "retry", "error"]
    assert [error and error[0]["code"] for error in errors["error"].to_pylist()] == [None, "wrong_size"] * 2


@pytest.mark.parametrize("options", [{}, {"last": 40}])
def test_topic_batches_are_bounded(broker, written, options):
    def batches(limits: lh.Limits | None = None) -> list[pa.RecordBatch]:
        columns = ["offset", "value", "headers"]
        topic = f"{written}codecs"
        with lh.read.topic(topic, bootstrap_servers=broker, columns=columns, limits=limits, **options) as reader:
            return list(reader)

    whole = batches()
    parts = batches(lh.Limits(arrow_batch_bytes=1000))
    assert pa.Table.from_batches(parts) == pa.Table.from_batches(whole)
    assert len(parts) > len(whole)
    assert all(part.nbytes <= 1000 or len(part) == 1 for part in parts)


def test_missing_topic_or_partition_lists_existing_ones(broker, written):
    def reading(topic: str, **points) -> pa.Table:
        return lh.read.topic(topic, bootstrap_servers=broker, **points).read_all()

    with pytest.raises(ValueError, match=f"there is no topic 'nothing' at {broker}"):
        reading("nothing")
    with pytest.raises(ValueError, match=f"topic '{written}headless' has no partition 3: it has 1"):
        reading(f"{written}headless", partitions=[3])
    with pytest.raises(ValueError, match="start has no entry for partition 1"):
        reading(f"{written}codecs", start={0: 0})
    with pytest.raises(ValueError, match=f"end names partition 7, and topic '{written}headless' has only partition 0"):
        reading(f"{written}headless", end={0: 1, 7: 3})
    with pytest.raises(ValueError, match=f"{written}headless-0: end is offset 5000, but the partition ends at 107"):
        reading(f"{written}headless", end={0: 5000})
    with pytest.raises(OffsetsGone, match=f"^{written}headless-0: offset 3 cannot be read: .* the first one is 50$"):
        reading(f"{written}headless", start={0: 3})


def test_records_deleted_before_read_raise(broker):
    create_with(broker, "deleted", 1)
    send(producer(broker, batch_num_messages=10), "deleted", numbered(200))
    with lh.read.topic("deleted", bootstrap_servers=broker, fetch_bytes=100) as reader:
        first = next(reader)
        admin = AdminClient({"bootstrap.servers": broker, "log_level": 3})
        for done in admin.delete_records([TopicPartition("deleted", 0, ends(broker, "deleted"))]).values():
            done.result(timeout=300)
        with pytest.raises(OffsetsGone, match=r"it was deleted, and the first one is 207$") as raised:
            reader.read_all()
    assert first["offset"].to_pylist() == list(range(len(first)))
    assert pickle.loads(pickle.dumps(raised.value)).topic_partition == Partition("deleted", 0)


def test_reader_closes_its_connections(broker, written):
    before = set(threading.enumerate())
    with lh.read.topic(f"{written}codecs", bootstrap_servers=broker, fetch_bytes=1000) as reader:
        assert set(threading.enumerate()) <= before
        next(reader)
        assert len(set(threading.enumerate()) - before) == 1
    # Threads of others may have ended meanwhile.
    assert not set(threading.enumerate()) - before
    with pytest.raises(ValueError, match="closed"):
        next(reader)


def test_fetch_is_received_in_few_pieces(broker, monkeypatch):
    create_with(broker, "large", 1)
    send(producer(broker), "large", [Record(b"key", bytes(100_000), [])] * 8)
    received: list[int] = []
    recv = LargeReads.recv

    def counted(self, size: int, flags: int = 0) -> bytes:
        data = recv(self, size, flags)
        received.append(len(data))
        return data

    monkeypatch.setattr(LargeReads, "recv", counted)
    assert len(lh.read.topic("large", bootstrap_servers=broker).read_all()) == 8
    # kafka-python asks for 4096 bytes at a time.
    assert sum(received) > 800_000
    assert len(received) < 100


def test_former_leader_is_looked_up_again(broker, written):
    place = Partition(f"{written}headless", 0)
    with KafkaClient(reader_settings(broker, {}, timeout_ms=20_000, fetch_bytes=1 << 20)) as client:
        # As if the partition had moved away from a broker that left the cluster since.
        client._leaders[place] = 99
        assert client.offsets({place: LATEST_TIME}, "read_committed") == {place: 107}
        client._leaders[place] = 99
        assert client.fetched(client.fetch(place, 50, "read_committed")).end == 107
        assert client._leaders[place] == 1


def test_leader_of_older_epoch_is_ignored(broker, written):
    place = Partition(f"{written}headless", 0)
    with KafkaClient(reader_settings(broker, {}, timeout_ms=2000, fetch_bytes=1 << 20)) as client:
        assert client.offsets({place: LATEST_TIME}, "read_committed") == {place: 107}
        client._epochs[place] += 1
        for leaders in (client._leaders.copy(), {}):  # the epoch is one that the broker does not know
            client._leaders = leaders
            with pytest.raises(TimeoutError, match=r"in 2 s: \[Error (75|5)\]"):
                client.fetched(client.fetch(place, 50, "read_committed"))
        client._topic_ids[place.topic] = None  # another topic of the same name
        assert client.fetched(client.fetch(place, 50, "read_committed")).end == 107
        assert client._epochs[place] == 0


def test_unreadable_replica_is_replaced_by_leader(broker, written, monkeypatch, caplog):
    """The leader names a broker that the cluster does not have; test_cluster.py has real replicas."""
    send = KafkaClient.send
    racks = []

    async def naming_another(self, node, request, *rest):
        answer = await send(self, node, request, *rest)
        if isinstance(request, FetchRequest):
            racks.append(request.rack_id)
            if request.rack_id:
                [partition] = answer.responses[0].partitions
                partition.preferred_read_replica, partition.records = 99, b""
        return answer

    monkeypatch.setattr(KafkaClient, "send", naming_another)
    topic = f"{written}codecs"
    options = {
        "bootstrap_servers": broker,
        "settings": {"client.rack": "here"},
        "fetch_bytes": 2_000,
        "partitions": [0],
    }
    with lh.read.topic(topic, **options) as reader:
        assert rows(reader.read_all()) == [row for row in read(broker, topic) if row.partition == 0]
    assert racks[:2] == ["here", ""]
    assert racks.count("here") == 1  # it is not asked for again at once
    [record] = [record for record in caplog.records if record.name.startswith("letterhead")]
    assert f"{topic}-0: the replica at broker 99 cannot be read" in record.message


# --- with brokers of their own ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def safe(safe):
    """The broker with logins, and a topic for the tests here."""
    create_with(safe.plain, "numbered", 1)
    send(producer(safe.plain), "numbered", numbered(50))
    return safe


def login(safe: secured.Secured, mechanism: str, **more: str) -> dict:
    user, password = (
        (secured.PLAIN_USER, secured.PLAIN_PASSWORD) if mechanism == "PLAIN" else (secured.USER, secured.PASSWORD)
    )
    settings = {
        "security.protocol": "SASL_SSL", "ssl.truststore.location": str(safe.authority), "sasl.mechanism": mechanism,
        "sasl.username": user, "sasl.password": password,
    }  # fmt: skip
    changed = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap_servers": safe.secure, "timeout_ms": 20_000, "settings": settings | changed}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_password_over_tls_opens_topic(safe, mechanism):
    with lh.read.topic("numbered", **login(safe, mechanism)) as reader:
        assert rows(reader.read_all()) == read(safe.plain, "numbered")


def test_certificate_from_files_or_text_opens_topic(safe):
    trusted = {"security.protocol": "SSL", "ssl.truststore.location": str(safe.authority)}
    with lh.read.topic(
        "numbered", bootstrap_servers=safe.mutual, settings=trusted | {"ssl.keystore.location": str(safe.client)}
    ) as reader:
        assert len(reader.read_all()) == 57
    key, _, chain = safe.client.read_text().partition("-----BEGIN CERT")
    settings = spark_settings({
        "bootstrap.servers": safe.mutual, "security.protocol": "SSL", "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": safe.authority.read_text(), "ssl.keystore.type": "PEM", "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": f"-----BEGIN CERT{chain}",
    })  # fmt: skip
    with KafkaClient(settings) as client:
        assert "numbered" in client.topics()
    with pytest.raises((ConnectionError, TimeoutError)):
        lh.read.topic("numbered", bootstrap_servers=safe.mutual, timeout_ms=1000, settings=trusted).read_all()


def test_wrong_password_is_rejected_at_once_and_hidden(safe, caplog):
    wrong = "never-to-be-seen"
    reader = lh.read.topic("numbered", **login(safe, "SCRAM-SHA-512", sasl_password=wrong))
    with pytest.raises(
        PermissionError, match=f"^{safe.secure} rejected the authentication by SCRAM-SHA-512: "
    ) as raised:
        reader.read_all()
    printed = [str(raised.value), repr(reader), *(repr(error) for error in _causes(raised.value)), caplog.text]
    assert not any(word in text for text in printed for word in (wrong, secured.PASSWORD))


def test_untrusted_client_certificate_is_rejected_at_once(safe):
    settings = login(safe, "PLAIN", ssl_truststore_location=str(safe.stranger))
    with pytest.raises(
        ConnectionError,
        match=f"certificate of {safe.secure} is not trusted: .*; name the file .* ssl.truststore.location",
    ):
        lh.read.topic("numbered", **settings).read_all()


def test_revoked_certificate_is_rejected(safe):
    with lh.read.topic("numbered", **login(safe, "PLAIN", ssl_crl_location=str(safe.none_revoked))) as reader:
        assert len(reader.read_all()) == 57
    with pytest.raises(ConnectionError, match=f"certificate of {safe.secure} is not trusted: .*revoked"):
        lh.read.topic("numbered", **login(safe, "PLAIN", ssl_crl_location=str(safe.revoked))).read_all()


def test_minimum_tls_version_is_1_2_on_lenient_interpreters(safe, monkeypatch):
    """Interpreters that are built for the suites of their system have other defaults."""
    contexts = []

    def lenient(protocol):
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        contexts.append(context)
        return context

    monkeypatch.setattr(tls, "ssl", types.SimpleNamespace(**vars(ssl) | {"SSLContext": lenient}))
    with lh.read.topic("numbered", **login(safe, "PLAIN")) as reader:
        assert len(reader.read_all()) == 57
    assert [context.minimum_version for context in contexts] == [ssl.TLSVersion.TLSv1_2]


def test_unreadable_certificates_are_named(safe):
    with pytest.raises(ValueError, match=r"cannot be read \(/nowhere\.pem\): .*No such file"):
        lh.read.topic("numbered", **login(safe, "PLAIN", ssl_truststore_location="/nowhere.pem")).read_all()


def test_client_without_tls_is_told_security_protocol(safe):
    # The broker's answer may be lost with the connection; then the client asks again.
    reader = lh.read.topic("numbered", bootstrap_servers=safe.secure, timeout_ms=20_000)
    with pytest.raises(
        ConnectionError, match=f"^{safe.secure} does not speak Kafka's protocol over PLAINTEXT: set security"
    ):
        reader.read_all()


def _causes(error: BaseException | None):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.full
def test_broker_restarted_during_read_loses_nothing(tmp_path: Path):
    own = Broker(tmp_path / "broker")
    own.start()
    try:
        create_with(own.address, "orders", 2)
        for partition in range(2):
            send(producer(own.address, batch_num_messages=50), "orders", numbered(2000), partition)
        expected = read(own.address, "orders")
        with lh.read.topic("orders", bootstrap_servers=own.address, fetch_bytes=10_000) as reader:
            first = [next(reader) for _ in range(3)]
            own.stop()
            again = threading.Timer(2.0, own.start_again)
            again.start()
            table = pa.Table.from_batches([*first, *reader])
            again.join()
        assert rows(table) == expected
    finally:
        own.stop()


MEMORY = """
import resource, sys
import letterhead as lh
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
def read(**more):
    with lh.read.topic("growing", bootstrap_servers=sys.argv[1], fetch_bytes=1 << 20, **more) as reader:
        return sum(len(rows) for rows in reader)
read(end={0: 1000})
before = peak()
print(read(), peak() - before)
"""


@pytest.mark.full
def test_memory_does_not_grow_with_the_topic(broker):
    create_with(broker, "growing", 1)
    value = os.urandom(10_000)
    sender = producer(broker, queue_buffering_max_messages=100_000)
    for _ in range(12_000):
        sender.produce("growing", value=value)
    assert sender.flush(60) == 0
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY, broker], capture_output=True, text=True, timeout=300, check=True
    )
    count, grown = map(int, ran.stdout.split())
    assert count == 12_000
    assert grown < 30, f"{grown} MiB for a topic of 115 MiB"


# --- conditions ------------------------------------------------------------------------------------------------------


def test_condition_selects_records_and_limits_fetch(broker, written):
    def table(topic: str, **options) -> pa.Table:
        with lh.read.topic(written + topic, bootstrap_servers=broker, **options) as reader:
            return reader.read_all()

    for topic in TOPICS:
        headers = {"tenant": "string", "retry": "int32", "route": "array<string>"}
        full = table(topic, errors="null", headers=headers)
        if not len(full):
            continue
        selected = table(topic, where=lh.col("route").any() == "a", errors="null", headers=headers)
        expected = [row for row in full.to_pylist() if "a" in (row["route"] or ())]
        assert selected.to_pylist() == expected, topic
        time = full["timestamp"].cast("int64")[len(full) // 2].as_py()
        conditions = [
            (lh.col("offset") >= 5, pc.field("offset") >= 5),
            (
                (lh.col("partition") == 0) & (lh.col("offset") < 7),
                (pc.field("partition") == 0) & (pc.field("offset") < 7),
            ),
            (lh.col("timestamp") >= time, pc.field("timestamp").cast("int64") >= time),
            (lh.col("key").is_null(), pc.field("key").is_null()),
            (lh.col("tenant") == "acme", pc.field("tenant") == "acme"),
            (
                ~((lh.col("retry") > 0) | lh.col("tenant").is_null()),
                (pc.field("retry") <= 0) & pc.field("tenant").is_valid(),
            ),
        ]
        for where, mask in conditions:
            selected = table(topic, where=where, errors="null", headers=headers)
            assert selected.combine_chunks() == full.filter(mask).combine_chunks(), (topic, where)
