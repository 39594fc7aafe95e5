"""The producer of ``lh.write.topic``: batches as Java's, partitions as librdkafka's, and each record once."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from tests.kafka.broker import Broker
from tests.kafka.lying_broker import INIT_PRODUCER_ID, PRODUCE, LyingBroker, RelayingBroker, write
from tests.kafka.topics import Place, Record, consume, orders
from tests.kafka.written import CODECS, create_with, producer

VECTORS = Path(__file__).parents[1] / "vectors" / "record_batches.jsonl"

UNLIMITED = {"batch_bytes": 1 << 30, "batch_rows": 1 << 30, "record_bytes": 1 << 30}


def table_of(records: list[Record]) -> pa.Table:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.table({
        "key": pa.array([record.key for record in records], pa.binary()),
        "value": pa.array([record.value for record in records], pa.binary()),
        "headers": pa.array([[{"key": k, "value": v} for k, v in record.headers] for record in records], headers),
    })  # fmt: skip


# Batches --------------------------------------------------------------------------------------------------------------


def java_batches() -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """Yield batches of Java that a producer could send: of contiguous records with times of their own."""
    for line in VECTORS.read_text().splitlines():
        case = json.loads(line)
        data, [batch, *others] = bytes.fromhex(case["hex"]), case["batches"] or [{}]
        is_sent = (
            not others
            and batch.get("size_in_bytes") == len(data)
            and batch.get("magic") == 2
            and batch["valid"]
            and batch["timestamp_type"] == "CreateTime"
        )
        if is_sent and not batch["control"] and not batch["transactional"] and batch["records"]:
            offsets = [int(record["offset"]) for record in batch["records"]]
            if offsets == [*range(offsets[0], offsets[0] + len(offsets))] and offsets[0] == int(batch["base_offset"]):
                yield case["id"], data, batch


def test_batches_match_java() -> None:
    same: dict[str, int] = {}
    for name, data, batch in java_batches():
        if any(int(record["timestamp"]) < 0 for record in batch["records"]):
            continue
        rows = lha.messages(pa.array([data]), "record-batch", columns=["timestamp", "key", "value", "headers"])
        columns = dict(zip(rows.type.names, rows.flatten(), strict=True))
        columns["headers"] = lha.encode(columns["headers"], "kafka")
        columns["timestamp"] = columns["timestamp"].cast(pa.timestamp("ms", "UTC"))
        codec = batch["compression"]
        arguments = {"partitioner": "random", "keyless": 0, "codec": codec, "level": None} | UNLIMITED
        [(partition, numbers, made)] = _native.partition_batches(pa.RecordBatch.from_pydict(columns), 1, **arguments)
        assert (partition, [*memoryview(numbers).cast("i")]) == (0, [*range(len(rows))])
        made = _native.with_producer(made, int(batch["producer_id"]), batch["producer_epoch"], batch["base_sequence"])
        # A broker sets the offset and the epoch of the leader.
        made = data[:8] + made[8:12] + data[12:16] + made[16:]
        if codec not in ("none", "lz4", "snappy"):  # other compressors find other matches
            made, data = (_native.with_checksum(_native.uncompressed(content)) for content in (made, data))
        if codec in ("none", "gzip", "zstd"):
            assert made == data, name
        same[codec] = same.get(codec, 0) + 1
        assert lha.messages(pa.array([made]), "record-batch").equals(lha.messages(pa.array([data]), "record-batch"))
    assert same.keys() == set(CODECS)


def test_rows_are_split_by_bytes_rows_and_partitions() -> None:
    records = pa.RecordBatch.from_pydict({
        "value": [b"x" * 100] * 10,
        "timestamp": pa.array([0] * 10, pa.timestamp("ms", "UTC")),
        "partition": pa.array([0, 1] * 5, pa.int32()),
    })  # fmt: skip
    arguments: dict[str, Any] = {"partitioner": "random", "keyless": 0, "codec": "none", "level": None}

    def divided(**limits: int) -> list[tuple[int, list[int], int | None]]:
        batches = _native.partition_batches(records, 2, **arguments, **UNLIMITED | limits)
        return [(number, [*memoryview(rows).cast("i")], data and len(data)) for number, rows, data in batches]

    assert [(number, rows) for number, rows, _ in divided()] == [(0, [0, 2, 4, 6, 8]), (1, [1, 3, 5, 7, 9])]
    assert [rows for _, rows, _ in divided(batch_rows=2)] == [[0, 2], [4, 6], [8], [1, 3], [5, 7], [9]]
    sizes = divided(batch_bytes=61 + 3 * 120 + 31)
    assert [len(rows) for _, rows, _ in sizes] == [3, 2, 3, 2]
    assert all(size <= 61 + 3 * 120 + 31 for _, _, size in sizes)
    assert divided(record_bytes=99) == [(row % 2, [row], None) for row in (*range(0, 10, 2), *range(1, 10, 2))]


@pytest.mark.parametrize("size", [0, 60])
def test_bytes_shorter_than_batch_get_no_producer(size: int) -> None:
    with pytest.raises(ValueError, match="a record batch has at least 61 bytes"):
        _native.with_producer(bytes(size), 1, 0, 0)


# A broker -------------------------------------------------------------------------------------------------------------


@pytest.mark.broker
@pytest.mark.parametrize(
    "partitioner", ["murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a"]
)
def test_partitions_match_librdkafka(partitioner: str, broker: str) -> None:
    chance = random.Random(partitioner)
    keys = [chance.randbytes(size) for size in (*range(1, 40), 1000)] * 3
    if partitioner != "consistent_random":
        keys.append(b"")
    if "random" not in partitioner:
        keys.append(None)
    records = [Record(key, b"%d" % number, []) for number, key in enumerate(keys)]
    found = []
    for name in ("theirs", "ours"):
        topic = f"partitioned-{partitioner}-{name}"
        create_with(broker, topic, 7)
        if name == "theirs":
            sender = producer(broker, partitioner=partitioner)
            for record in records:
                sender.produce(topic, key=record.key, value=record.value)
            assert sender.flush(300) == 0
        else:
            lh.write.topic(table_of(records), topic, bootstrap_servers=broker, settings={"partitioner": partitioner})
        found.append(lh.open(f"kafka://{broker}/{topic}").read_all().select(["partition", "value"]).sort_by("value"))
    assert found[0].equals(found[1])


@pytest.mark.broker
def test_rows_without_key_spread_over_all_partitions(broker: str) -> None:
    create_with(broker, "keyless", 3)
    lh.write.topic(pa.table({"value": ["v"] * 9000}), "keyless", bootstrap_servers=broker)
    partitions = lh.open(f"kafka://{broker}/keyless").read_all()["partition"].value_counts().to_pylist()
    assert sorted(count["counts"] for count in partitions) == [3000] * 3


@pytest.mark.broker
def test_java_reads_batches_of_each_codec(broker: str, samples: Path) -> None:
    create_with(broker, "java-reads", len(CODECS))
    records = orders(samples, 300)
    for partition, codec in enumerate(CODECS):
        settings = {"compression.type": codec, "compression.level": 1, "batch.num.messages": 100}
        lh.write.topic(
            table_of(records), "java-reads", bootstrap_servers=broker, partition=partition, settings=settings
        )
    assert consume(broker, "java-reads") == {
        Place(partition, offset): record for partition in range(len(CODECS)) for offset, record in enumerate(records)
    }


@pytest.mark.broker
def test_batches_rejected_by_topic_are_split(broker: str) -> None:
    create_with(broker, "small-batches", 2, max_message_bytes="20000")
    table = pa.table({"value": [b"%05d" % number + b"." * 1000 for number in range(3000)], "to": [0, 1, 1] * 1000})
    written = lh.write.topic(table, "small-batches", bootstrap_servers=broker, partition="to")
    assert written == (3000, [(0, 0, 1000), (1, 0, 2000)])
    found = lh.open(f"kafka://{broker}/small-batches").read_all()
    for partition in (0, 1):
        values = [
            value
            for value, to in zip(table["value"].to_pylist(), table["to"].to_pylist(), strict=True)
            if to == partition
        ]
        mask = pa.compute.equal(found["partition"], partition)
        assert found.filter(mask)["value"].to_pylist() == values


@pytest.mark.broker
@pytest.mark.parametrize("gapless", [False, True])
def test_records_rejected_by_topic_are_named_and_others_written(gapless: bool, broker: str) -> None:
    topic = f"compacted-{gapless}"
    create_with(broker, topic, 1, cleanup_policy="compact")
    keys = [None if number in (5, 6, 9) else b"%d" % number for number in range(12)]
    with pytest.raises(lh.write.DeliveryError, match=r"row 5 and .* more not delivered: .*key") as raised:
        lh.write.topic(
            pa.table({"key": pa.array(keys, pa.binary())}),
            topic,
            bootstrap_servers=broker,
            settings={"enable.gapless.guarantee": gapless},
        )
    present = lh.open(f"kafka://{broker}/{topic}").read_all()["key"].to_pylist()
    assert sorted(raised.value.errors) == ([*range(5, 12)] if gapless else [5, 6, 9])
    assert present == (keys[:5] if gapless else [key for key in keys if key is not None])


@pytest.mark.broker
def test_row_with_rejected_timestamp_is_named(broker: str) -> None:
    create_with(broker, "timely", 1, message_timestamp_after_max_ms="60000")
    now = time.time_ns() // 1_000_000
    times = pa.array([now, now + 10**9, None], pa.timestamp("ms", "UTC"))
    with pytest.raises(lh.write.DeliveryError, match=r"row 1 not delivered: .*[Tt]imestamp"):
        lh.write.topic(pa.table({"value": ["a", "b", "c"], "timestamp": times}), "timely", bootstrap_servers=broker)
    assert lh.open(f"kafka://{broker}/timely").read_all()["value"].to_pylist() == [b"a", b"c"]


@pytest.mark.broker
def test_writing_without_idempotence_has_no_producer_id(broker: str) -> None:
    create_with(broker, "plain", 1)
    for acks in ("all", "1"):
        settings = {"enable.idempotence": False, "acks": acks}
        lh.write.topic(pa.table({"value": ["a"]}), "plain", bootstrap_servers=broker, settings=settings)
    found = lh.open(f"kafka://{broker}/plain").read_all()
    assert found["producer_id"].to_pylist() == [None, None]


# Errors of connections ------------------------------------------------------------------------------------------------


@pytest.mark.broker
def test_records_with_lost_acknowledgement_are_written_once(running_broker: Broker) -> None:
    create_with(running_broker.address, "unacknowledged", 3)
    table = pa.table({"value": [b"%d" % number for number in range(20_000)]})
    requests = 0

    def relay(request: bytes, response: bytes) -> bytes | None:
        nonlocal requests
        if int.from_bytes(request[:2], "big") != PRODUCE:
            return response
        requests += 1
        return response if requests % 3 == 0 else None

    with RelayingBroker(int(running_broker.address.partition(":")[2]), relay) as relaying:
        settings = {"batch.size": 5000}
        written = lh.write.topic(table, "unacknowledged", bootstrap_servers=relaying.place, settings=settings)
    assert requests > 20
    found = lh.open(f"kafka://{running_broker.address}/unacknowledged").read_all()
    assert sorted(found["value"].to_pylist()) == sorted(table["value"].to_pylist())
    assert sum(appended.rows for appended in written.batches) == len(table)
    assert min(appended.offset for appended in written.batches) == 0


def test_producer_forgotten_by_broker_is_replaced() -> None:
    """An error that says that the batch is not in the log, and that is not an answer to a repeated request."""
    asked: list[int] = []

    def lie(api_key: int, frame: bytes) -> bytes:
        asked.append(api_key)
        if api_key == PRODUCE and asked.count(PRODUCE) == 1:
            return with_code(frame, 45)
        return frame

    with LyingBroker(lie) as broker:
        assert write(broker.address, timeout_ms=60_000) == (2, [(1, 4, 2)])
    assert asked.count(INIT_PRODUCER_ID) == 2


def test_possibly_written_records_are_not_resent_by_new_producer() -> None:
    asked: list[int] = []

    def lie(api_key: int, frame: bytes) -> bytes:
        asked.append(api_key)
        if api_key != PRODUCE:
            return frame
        if asked.count(PRODUCE) == 1:
            raise ConnectionError  # ends the connection
        return with_code(frame, 45)

    message = "row 0 and 1 more not delivered: .*Whether the record is written is not known"
    with LyingBroker(lie) as broker, pytest.raises(lh.write.DeliveryError, match=message):
        write(broker.address, timeout_ms=60_000)


def with_code(frame: bytes, code: int) -> bytes:
    """Replace the error code of the acknowledgement of the only batch."""
    where = frame.index(b"lies") + len(b"lies") + 1 + 4
    return frame[:where] + code.to_bytes(2, "big") + frame[where + 2 :]


@pytest.mark.broker
@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.full)])
def test_killed_broker_still_writes_rows_once(kills: int, tmp_path: Path) -> None:
    kills = int(os.environ.get("LETTERHEAD_KILLS", kills))
    own = Broker(tmp_path / "broker")
    own.start()
    try:
        create_with(own.address, "written", 3)
        chance = random.Random(kills)
        killed = threading.Event()
        count = 0

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal count
            while not killed.is_set() or count < 200_000:
                values = [b"%d" % number for number in range(count, count + 2000)]
                yield pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
                count += len(values)
                time.sleep(0.01)

        def kill() -> None:
            for _ in range(kills):
                time.sleep(chance.uniform(0.5, 3.0))
                own.kill()
                own.start_again()
            killed.set()

        killer = threading.Thread(target=kill)
        killer.start()
        reader = pa.RecordBatchReader.from_batches(pa.schema([("value", pa.binary())]), batches())
        written = lh.write.topic(reader, "written", bootstrap_servers=own.address, timeout_ms=300_000)
        killer.join()
        assert written.rows == count
        found = lh.open(f"kafka://{own.address}/written").read_all()["value"].combine_chunks()
        assert found.sort().equals(pa.array([b"%d" % number for number in range(count)]).sort())
    finally:
        own.stop()
