"""Offsets of consumer groups: ``commit_group=`` and ``start="group:NAME"``, seen by Kafka's own clients."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

import letterhead as lh
from letterhead import spark as lhs
from letterhead.errors import OffsetsGone
from letterhead.kafka.client import KafkaClient
from letterhead.kafka.groups import GroupOffsets
from letterhead.kafka.settings import reader_settings
from letterhead.offsets.partition_log import TopicPartition as Partition
from letterhead.spark.sources.kafka import KafkaSource
from tests.kafka.test_kafka_source import Stream, send_both
from tests.kafka.written import create_with, numbered, producer, send

pytestmark = pytest.mark.broker


def committed(broker: str, group: str, topic: str, partitions: int = 1) -> list[int]:
    """The committed offsets of a group, as lag tools see them; -1001 if there is none."""
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 3})
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number) for number in range(partitions)])
    [answer] = admin.list_consumer_group_offsets([request]).values()
    result = answer.result(timeout=60).topic_partitions
    return [place.offset for place in sorted(result, key=lambda place: place.partition)]


def opened(broker: str, topic: str, **options: Any) -> lh.read.Reader:
    return lh.read.topic(topic, bootstrap_servers=broker, columns=["partition", "offset"], **options)


def offsets(broker: str, topic: str, **options: Any) -> list[int]:
    with opened(broker, topic, **options) as reader:
        return reader.read_all()["offset"].to_pylist()


def test_group_commits_all_partition_ends_and_next_run_resumes(broker):
    create_with(broker, "groups-ends", 3)
    for partition in (0, 1):
        send(producer(broker), "groups-ends", numbered(20 * partition), partition)
    options = {"start": "group:ends", "commit_group": "ends"}
    assert len(offsets(broker, "groups-ends", **options)) == 7 + 27
    assert committed(broker, "ends", "groups-ends", 3) == [7, 27, 0]
    assert offsets(broker, "groups-ends", **options) == []
    send(producer(broker), "groups-ends", numbered(1), 2)
    assert offsets(broker, "groups-ends", **options) == [*range(8)]
    assert committed(broker, "ends", "groups-ends", 3) == [7, 27, 8]


def test_offsets_are_committed_only_after_their_rows_were_read(broker):
    create_with(broker, "groups-early", 1)
    send(producer(broker, batch_num_messages=10), "groups-early", numbered(93))
    rows: list[int] = []
    with opened(broker, "groups-early", commit_group="early", fetch_bytes=1, batch_bytes=1) as reader:
        for batch in reader:
            [stored] = committed(broker, "early", "groups-early")
            assert stored <= (rows[-1] + 1 if rows else 0)
            rows += batch["offset"].to_pylist()
            if len(rows) > 40:
                break
    [stored] = committed(broker, "early", "groups-early")
    assert 0 < stored <= rows[-1] + 1
    rest = offsets(broker, "groups-early", start="group:early")
    assert sorted({*rows, *rest}) == [*range(100)]


def test_early_end_commits_completed_batches_and_used_rows(broker):
    create_with(broker, "groups-used", 2)
    for partition in (0, 1):
        send(producer(broker, batch_num_messages=10), "groups-used", numbered(93), partition)
    reader = opened(broker, "groups-used", commit_group="used", fetch_bytes=1, batch_bytes=1)
    first, second = next(reader), next(reader)
    assert {*first["partition"].to_pylist(), *second["partition"].to_pylist()} == {0}
    reader.close()
    assert committed(broker, "used", "groups-used", 2) == [first["offset"][-1].as_py() + 1, 0]
    reader = opened(broker, "groups-used", start="group:used", commit_group="used")
    batch = next(reader)
    reader.close_after(3)
    assert committed(broker, "used", "groups-used", 2) == [batch["offset"][2].as_py() + 1, 0]


def test_position_columns_are_not_returned(broker):
    create_with(broker, "groups-columns", 1)
    send(producer(broker), "groups-columns", numbered(1))
    with lh.read.topic("groups-columns", bootstrap_servers=broker, columns=["key"], commit_group="columns") as reader:
        assert reader.schema.names == reader.read_all().column_names == ["key"]
    assert committed(broker, "columns", "groups-columns") == [8]


def test_row_error_leaves_its_offset_uncommitted(broker):
    create_with(broker, "groups-bad", 1)
    for retry in (b"\0\0\0\1", b"bad"):
        sender = producer(broker)
        sender.produce("groups-bad", b"", headers=[("retry", retry)])
        assert sender.flush(60) == 0
    with pytest.raises(lh.DecodeError):
        offsets(broker, "groups-bad", headers={"retry": "int32:be"}, commit_group="bad", fetch_bytes=1)
    assert committed(broker, "bad", "groups-bad")[0] <= 1


def test_records_excluded_by_condition_count_as_read(broker):
    create_with(broker, "groups-where", 2)
    for partition in (0, 1):
        send(producer(broker), "groups-where", numbered(10), partition)
    where = (lh.col("partition") == 1) & (lh.col("offset") < 5)
    assert offsets(broker, "groups-where", where=where, commit_group="where") == [*range(5)]
    assert committed(broker, "where", "groups-where", 2) == [17, 17]
    assert offsets(broker, "groups-where", end=9, partitions=[0], commit_group="part") == [*range(9)]
    assert committed(broker, "part", "groups-where", 2) == [9, -1001]


def test_reading_starts_at_offsets_of_another_clients_group(broker):
    create_with(broker, "groups-other", 2)
    send(producer(broker), "groups-other", numbered(20))
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "other", "log_level": 3})
    consumer.commit(offsets=[TopicPartition("groups-other", 0, 15)], asynchronous=False)
    consumer.close()
    # The other partition is new to the group, so its records are read from the first one on.
    send(producer(broker), "groups-other", numbered(0), 1)
    assert offsets(broker, "groups-other", start="group:other") == [*range(15, 27), *range(7)]
    assert committed(broker, "other", "groups-other", 2) == [15, -1001]


def test_group_without_offset_or_with_deleted_one_raises(broker):
    create_with(broker, "groups-wrong", 1)
    send(producer(broker), "groups-wrong", numbered(20))
    with pytest.raises(
        ValueError, match="start: group 'nobody' has no committed offset of groups-wrong: check its name"
    ):
        offsets(broker, "groups-wrong", start="group:nobody", commit_group="somebody")
    offsets(broker, "groups-wrong", end=5, commit_group="old")
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 3})
    for done in admin.delete_records([TopicPartition("groups-wrong", 0, 9)]).values():
        done.result(timeout=60)
    with pytest.raises(OffsetsGone, match="groups-wrong-0: offset 5 cannot be read: it was deleted"):
        offsets(broker, "groups-wrong", start="group:old")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_with_active_consumers_raises(broker, protocol):
    topic = f"groups-{protocol}"
    create_with(broker, topic, 1)
    send(producer(broker), topic, numbered(20))
    settings = {"bootstrap.servers": broker, "group.id": topic, "group.protocol": protocol, "log_level": 3}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    until = time.monotonic() + 300
    while not consumer.assignment():
        assert time.monotonic() < until, "no partition was assigned in 300 s"
        consumer.poll(0.1)
    with pytest.raises(ValueError, match=rf"group '{topic}' has active consumers, .* name another"):
        offsets(broker, topic, commit_group=topic)
    consumer.close()
    assert offsets(broker, topic, commit_group=topic) == [*range(27)]
    assert committed(broker, topic, topic) == [27]


def test_invalid_group_names_are_rejected(broker):
    with pytest.raises(ValueError, match="start names no consumer group: its name is empty"):
        opened(broker, "any", start="group:")
    with pytest.raises(ValueError, match="commit_group names no consumer group"):
        opened(broker, "any", commit_group="")
    with pytest.raises(TypeError, match="commit_group must be the name of a consumer group, not list"):
        opened(broker, "any", commit_group=["a"])
    with pytest.raises(ValueError, match="end must be"):
        opened(broker, "any", end="group:a")


def test_offsets_of_several_topics_are_committed_at_once(broker):
    for topic in ("groups-a", "groups-b"):
        create_with(broker, topic, 2)
    places = {Partition(topic, number): 3 + number for topic in ("groups-a", "groups-b") for number in range(2)}
    with KafkaClient(reader_settings(broker)) as client:
        group = GroupOffsets(client, "several")
        assert group.committed(places) == {}
        group.commit(places)
        assert group.committed(places) == places
    assert committed(broker, "several", "groups-b", 2) == [3, 4]


def test_stream_commits_batches_and_another_resumes_from_group(broker, spark, tmp_path):
    lhs.register(spark)
    create_with(broker, "groups-stream", 2)
    send_both(broker, "groups-stream", 0, 50)
    stream = Stream(
        spark,
        tmp_path / "first",
        servers=broker,
        subscribe="groups-stream",
        startingOffsets="earliest",
        commitGroup="lag",
    )
    assert stream.run(maxOffsetsPerTrigger=60) == [60, 40]
    assert committed(broker, "lag", "groups-stream", 2) == [50, 50]
    send_both(broker, "groups-stream", 50, 10)
    other = Stream(spark, tmp_path / "other", servers=broker, subscribe="groups-stream", startingOffsets="group:lag")
    assert other.run() == [20]
    assert committed(broker, "lag", "groups-stream", 2) == [50, 50]
    reader = spark.read.format("letterhead-kafka").option("kafka.bootstrap.servers", broker)
    reader = reader.option("subscribe", "groups-stream").option("startingOffsets", "group:lag")
    assert reader.load().count() == 20
    with pytest.raises(
        Exception, match="option startingOffsets: group 'nobody' has no committed offset of groups-stream"
    ):
        reader.option("startingOffsets", "group:nobody").load().count()


def test_batch_query_cannot_commit(broker):
    source = KafkaSource({"kafka.bootstrap.servers": broker, "subscribe": "any", "commitGroup": "a"})
    with pytest.raises(ValueError, match=r"commitGroup needs a stream, spark\.readStream"):
        source.reader(source.schema())
