"""Topics with what is hard to read: every codec, transactions, gaps, deleted heads, and times that the broker gives."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.kafka.topics import ODD, Record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
EMPTY = len(CODECS)
"""The partition of ``codecs`` after those that hold records, which holds none."""


class Row(NamedTuple):
    """A record, and where and when it was written."""

    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def numbered(count: int, first: int = 0) -> list[Record]:
    """Records that differ, and the odd ones behind them."""
    result = [
        Record(
            b"key %d" % number,
            b"value %d " % number + b"." * (number % 50),
            [("tenant", b"acme"), ("retry", number.to_bytes(4, "big")), ("route", b"a"), ("route", None)][: number % 5],
        )
        for number in range(first, first + count)
    ]
    return result + ODD


def create_with(address: str, topic: str, partitions: int, **settings: str) -> None:
    """Create a topic with settings, and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
    config = {name.replace("_", "."): value for name, value in settings.items()}
    for done in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
        done.result(timeout=300)


def send(producer: Producer, topic: str, records: Sequence[Record], partition: int = 0) -> None:
    """Send records, and wait until they are there."""
    for record in records:
        producer.produce(topic, key=record.key, value=record.value, headers=record.headers, partition=partition)
        producer.poll(0)
    assert producer.flush(300) == 0


def producer(address: str, **settings: Any) -> Producer:
    """A producer; ``linger_ms`` is its ``linger.ms``."""
    source = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": address, "linger.ms": 20, "log_level": 3, **source})


def write_codecs(address: str, topic: str, count: int) -> None:
    """A partition for every codec, and an empty one."""
    create_with(address, topic, len(CODECS) + 1)
    for partition, codec in enumerate(CODECS):
        # A request that is repeated, because the broker was slow, appends no record twice: offsets are the numbers of records.
        sender = producer(address, compression_type=codec, batch_num_messages=100, enable_idempotence=True)
        send(sender, topic, numbered(count), partition)


def write_transactions(address: str, topic: str, count: int) -> Producer:
    """Two producers whose transactions lie in one another, some aborted, and between them one without transactions.

    The last one is open as long as the producer that comes back lives.
    """
    create_with(address, topic, 1)
    a, b = (
        producer(address, transactional_id=f"{topic}-{name}", transaction_timeout_ms=21_600_000, batch_num_messages=10)
        for name in "ab"
    )
    plain = producer(address)
    for transactional in (a, b):
        transactional.init_transactions(30)
    for turn in range(4):
        a.begin_transaction()
        b.begin_transaction()
        send(a, topic, numbered(count, 1000 * turn))
        send(b, topic, numbered(count, 1000 * turn + 500))
        send(plain, topic, numbered(3, 1000 * turn + 700))
        (a.abort_transaction if turn % 2 else a.commit_transaction)(30)
        send(b, topic, numbered(3, 1000 * turn + 800))
        (b.abort_transaction if turn // 2 else b.commit_transaction)(30)
    send(plain, topic, numbered(3, 9000))
    b.begin_transaction()
    send(b, topic, numbered(count, 9100))
    send(plain, topic, numbered(3, 9500))
    return b


def write_compacted(address: str, topic: str, count: int) -> None:
    """A topic from which most records were taken away again; it waits until they are gone."""
    create_with(
        address, topic, 1, cleanup_policy="compact", segment_ms="200", min_cleanable_dirty_ratio="0.001",
        min_compaction_lag_ms="0", max_compaction_lag_ms="200", segment_bytes="1048576",
    )  # fmt: skip
    sender = producer(address, batch_num_messages=50)
    before = 0
    for turn in range(5):
        records = [Record(b"%d" % (number % 7), b"%d" % (turn * count + number), []) for number in range(count)]
        send(sender, topic, records)
        before += count
        time.sleep(0.3)  # the segment that is written to is never compacted, so it must be over
    send(sender, topic, [Record(b"last", b"", [])])
    until = time.monotonic() + 300
    while len(read(address, topic)) > before // 2:
        assert time.monotonic() < until, "nothing was compacted in 300 s"
        time.sleep(0.2)


def write_headless(address: str, topic: str, count: int, first: int) -> None:
    """A topic whose first records were deleted, in the middle of a batch."""
    create_with(address, topic, 1)
    send(producer(address), topic, numbered(count))
    admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
    for done in admin.delete_records([TopicPartition(topic, 0, first)]).values():
        done.result(timeout=300)


def write_appended(address: str, topic: str, count: int) -> None:
    """A topic whose records have the time at which the broker took them."""
    create_with(address, topic, 1, message_timestamp_type="LogAppendTime")
    send(producer(address, batch_num_messages=20), topic, numbered(count))


def write_all(address: str, prefix: str, count: int) -> list[Producer]:
    """All of these topics; what comes back keeps a transaction open."""
    write_codecs(address, f"{prefix}codecs", count)
    write_headless(address, f"{prefix}headless", count, count // 2)
    write_appended(address, f"{prefix}appended", count)
    write_compacted(address, f"{prefix}compacted", count)
    return [write_transactions(address, f"{prefix}transactions", count // 5)]


TOPICS = ("codecs", "headless", "appended", "compacted", "transactions")


def read(address: str, topic: str, isolation: str = "read_uncommitted") -> list[Row]:
    """Read a topic with librdkafka, in the order of partitions and offsets."""
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False, "enable.partition.eof": True,
        "isolation.level": isolation, "auto.offset.reset": "earliest", "log_level": 3,
    })  # fmt: skip
    try:
        partitions = list(consumer.list_topics(topic, 30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        rows, ended = [], set()
        until = time.monotonic() + 300
        while len(ended) < len(partitions):
            assert time.monotonic() < until, f"{topic} was not read in 300 s"
            for message in consumer.consume(500, 0.2):
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    ended.add(message.partition())
                    continue
                time_type, at = message.timestamp()
                rows.append(
                    Row(
                        message.partition(),
                        message.offset(),
                        at,
                        time_type - 1,
                        message.key(),
                        message.value(),
                        message.headers() or [],
                    )
                )
    finally:
        consumer.close()
    return sorted(rows)


def ends(address: str, topic: str, partition: int = 0) -> int:
    """The offset after the last record."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
    [listed] = admin.list_offsets({TopicPartition(topic, partition): OffsetSpec.latest()}).values()
    return listed.result(timeout=300).offset
