"""Topics on three brokers, while leaders change, brokers are killed and logs are truncated."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException
from kafka.protocol.consumer import FetchRequest

import letterhead as lh
from letterhead import spark as lhs
from letterhead._row_request import RowRequest
from letterhead.errors import LogTruncated, OffsetsGone
from letterhead.kafka.client import LATEST_TIME, KafkaClient
from letterhead.kafka.groups import GroupOffsets
from letterhead.kafka.partitions import KafkaPartitions
from letterhead.kafka.record_sets import KafkaRowReader
from letterhead.kafka.settings import reader_settings
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from letterhead.offsets.reading import read_ranges
from tests.kafka.cluster import LIMIT, NODES, Cluster
from tests.kafka.test_kafka_source import Stream, expected, send_both
from tests.kafka.topics import Record
from tests.kafka.written import Row, numbered, producer, read, send

pytestmark = [pytest.mark.broker, pytest.mark.full]

ISOLATIONS = ("read_uncommitted", "read_committed")
COLUMNS = ("partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
KILLS = int(os.environ.get("LETTERHEAD_KILLS", "17"))  # and three in other tests here


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(autouse=True)
def whole(cluster: Cluster) -> Iterator[None]:
    """Leave a cluster to the next test in which all brokers run."""
    yield
    cluster.repair()


def rows(table: pa.Table) -> list[Row]:
    """Rows of a topic, as librdkafka's are given."""
    at = table.schema.get_field_index("timestamp")
    return [
        Row(**(row | {"headers": [(header["key"], header["value"]) for header in row["headers"]]}))
        for row in table.set_column(at, "timestamp", table["timestamp"].cast("int64")).select(Row._fields).to_pylist()
    ]


def opened(address: str, topic: str, **options: Any) -> Any:
    """A reader that fetches little at a time, so that much can happen in between."""
    options = {"columns": COLUMNS, "fetch_bytes": 2_000, "timeout_ms": 120_000} | options
    return lh.read.topic(topic, bootstrap_servers=address, **options)


def large(count: int, name: bytes) -> list[Record]:
    """Records that fill several segments of a MiB."""
    draw = random.Random(count)
    return [Record(b"%s %d" % (name, number), draw.randbytes(20_000), [("n", name)]) for number in range(count)]


def test_reader_follows_leader(cluster: Cluster) -> None:
    cluster.create("led", 2)
    for partition in range(2):
        send(producer(cluster.address, batch_num_messages=20), "led", numbered(1000), partition)
    expected = read(cluster.address, "led")
    leaders = itertools.cycle([2, 3, 1])
    batches = []
    with opened(cluster.address, "led") as reader:
        for count, batch in enumerate(reader):
            batches.append(batch)
            if count in (3, 20, 40):
                for partition in range(2):
                    cluster.move("led", next(leaders), partition)
    assert count > 60
    assert rows(pa.Table.from_batches(batches)) == expected


def test_returning_leader_is_fetched_in_new_epoch(cluster: Cluster) -> None:
    cluster.create("back")
    send(producer(cluster.address), "back", numbered(50))
    place = TopicPartition("back", 0)
    with KafkaClient(reader_settings(cluster.address, {}, timeout_ms=60_000, fetch_bytes=1 << 20)) as client:
        for ask in (
            lambda: client.offsets({place: LATEST_TIME}, "read_committed")[place],
            lambda: client.fetched(client.fetch(place, 0, "read_committed", last_epoch=0)).end,
        ):
            assert client.offsets({place: LATEST_TIME}, "read_committed") == {place: 57}
            epoch = client._epochs[place]
            cluster.move("back", 2)
            cluster.move("back", 1)
            # The same broker leads again, and would answer a request that names no epoch.
            assert (client._leaders[place], client._epochs[place]) == (1, epoch)
            assert ask() == 57
            assert (client._leaders[place], client._epochs[place]) == (1, epoch + 2)


def test_reader_continues_when_leader_hangs(cluster: Cluster) -> None:
    cluster.create("hung")
    send(producer(cluster.address, batch_num_messages=20), "hung", numbered(1000))
    expected = read(cluster.address, "hung")
    with opened(cluster.address, "hung", settings={"request.timeout.ms": 2_000}) as reader:
        first = [next(reader) for _ in range(3)]
        cluster.pause(1)
        try:
            table = pa.Table.from_batches([*first, *reader])
        finally:
            cluster.resume(1)
    assert rows(table) == expected
    cluster.wait_until_in_sync("hung")


# --- the nearest replica ---------------------------------------------------------------------------------------------


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The brokers that sent records, in order; other answers are not counted."""
    nodes: list[int] = []
    send = KafkaClient.send

    async def noted(self: KafkaClient, node: Any, request: Any, *rest: Any) -> Any:
        answer = await send(self, node, request, *rest)
        if isinstance(request, FetchRequest) and answer.responses[0].partitions[0].records:
            nodes.append(node)
        return answer

    monkeypatch.setattr(KafkaClient, "send", noted)
    return nodes


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_client_with_rack_reads_from_its_replica(cluster: Cluster, fetches: list[int], isolation: str) -> None:
    topic = f"near-{isolation}"
    cluster.create(topic)
    send(producer(cluster.address, batch_num_messages=20, acks="all"), topic, numbered(1000))
    expected = read(cluster.address, topic)
    for rack, node in (("rack-1", 1), ("rack-2", 2), ("rack-3", 3), ("rack-4", 1), ("", 1)):
        fetches.clear()
        settings = {"client.rack": rack}
        assert rows(opened(cluster.address, topic, settings=settings, isolation_level=isolation).read_all()) == expected
        # What a follower may return lags a little: the last records can come from the leader.
        assert len(fetches) > 10
        assert fetches.count(node) >= len(fetches) - 2


def test_replica_that_hangs_or_ends_loses_and_repeats_nothing(
    cluster: Cluster, fetches: list[int], caplog: Any
) -> None:
    cluster.create("faults")
    send(producer(cluster.address, batch_num_messages=20, acks="all"), "faults", numbered(3000))
    expected = read(cluster.address, "faults")
    settings = {"client.rack": "rack-2"}
    batches = []

    def read_some(reader: Any, count: int) -> list[int]:
        fetches.clear()
        batches.extend(next(reader) for _ in range(count))
        return [*fetches]

    with opened(cluster.address, "faults", settings=settings, timeout_ms=30_000) as reader:
        assert set(read_some(reader, 10)) == {2}
        cluster.pause(2)
        assert read_some(reader, 10)[-1] == 1
        assert "replica at broker 2 cannot be read" in caplog.text
        cluster.wait_until_in_sync("faults", [1, 3])
        cluster.move("faults", 3)  # while the replica is fenced
        assert read_some(reader, 10)[-1] == 3
        cluster.resume(2)
        cluster.wait_until_in_sync("faults")
        time.sleep(30)  # until replicas are tried again
        assert read_some(reader, 10)[-1] == 2
        cluster.brokers[2].kill()
        assert read_some(reader, 10)[-1] == 3
        cluster.launch(2)
        cluster.wait_until_in_sync("faults")
        cluster.move("faults", 2)
        batches.extend(reader)
    assert rows(pa.Table.from_batches(batches)) == expected
    cluster.move("faults", 1)


def test_offsets_are_committed_while_coordinator_is_replaced(cluster: Cluster) -> None:
    cluster.create("committed")
    send(producer(cluster.address, batch_num_messages=20, acks="all"), "committed", numbered(1000))

    def replace_coordinator() -> None:
        node = cluster.leader("__consumer_offsets")
        cluster.brokers[node].kill()
        cluster.wait("there is another one", lambda: cluster.leader("__consumer_offsets") not in (-1, node))
        cluster.launch(node)
        cluster.wait_until_in_sync("__consumer_offsets")

    with opened(cluster.address, "committed", commit_group="replaced") as reader:
        for count, _ in enumerate(reader):
            if count in (10, 25):
                replace_coordinator()
    assert count > 40
    with KafkaClient(reader_settings(cluster.address)) as client:
        place = TopicPartition("committed", 0)
        assert GroupOffsets(client, "replaced").committed([place]) == {place: 1007}


def test_truncated_follower_segments_match_leader(cluster: Cluster) -> None:
    cluster.create("cut", segment_bytes="1048576")
    send(producer(cluster.address, acks="all"), "cut", large(80, b"kept"))
    for other in (2, 3):
        cluster.pause(other)
    time.sleep(1)  # until no fetch of theirs waits for records
    alone = cluster.brokers[1].address
    send(producer(alone, acks=1), "cut", large(170, b"lost"))
    # Nobody else has these records, so nobody may read them; the files have them.
    assert len(opened(alone, "cut").read_all()) == 80
    segments = sorted(cluster.directory(1, "cut").glob("*.log"))
    with lh.read.segments(cluster.directory(1, "cut"), columns=["offset"]) as reader:
        assert len(reader.read_all()) == 250
    cluster.brokers[1].kill()
    for other in (2, 3):
        cluster.resume(other)
    cluster.wait("there is another leader", lambda: cluster.leader("cut") in (2, 3))
    send(producer(cluster.address, acks="all"), "cut", large(20, b"instead"))
    cluster.launch(1)
    cluster.wait_until_in_sync("cut")
    expected = read(cluster.address, "cut", "read_committed")
    assert [row.key.split()[0] for row in expected] == [b"kept"] * 80 + [b"instead"] * 20
    assert rows(opened(cluster.address, "cut").read_all()) == expected
    for node in NODES:
        assert segment_rows(cluster, node, "cut") == expected
    assert len(segments) > len(sorted(cluster.directory(1, "cut").glob("*.log"))) > 1


def segment_rows(cluster: Cluster, node: int, topic: str) -> list[Row]:
    """Rows in the files of a broker."""
    with lh.read.segments(cluster.directory(node, topic), columns=COLUMNS, isolation_level="read_committed") as reader:
        return rows(reader.read_all())


def read_on(reader: Any, position: dict[str, int], name: str, until: int | None = None) -> None:
    """Read to an offset, by default to the end; keep the offset after the last one under a name."""
    for batch in reader:
        position[name] = batch["offset"][-1].as_py() + 1
        if until is not None and position[name] >= until:
            return


def test_replaced_records_raise(cluster: Cluster, caplog: Any) -> None:
    cluster.create("unclean", nodes=(1, 2), min_insync_replicas="1", unclean_leader_election_enable="true")
    send(producer(cluster.address, acks="all", batch_num_messages=5), "unclean", numbered(23))
    cluster.pause(2)
    cluster.wait_until_in_sync("unclean", [1])
    alone = cluster.brokers[1].address
    send(producer(alone, acks="all", batch_num_messages=5), "unclean", numbered(33, 100))
    assert len(read(alone, "unclean")) == 70

    place = TopicPartition("unclean", 0)
    readers = {
        isolation: opened(alone, "unclean", isolation_level=isolation, fetch_bytes=100) for isolation in ISOLATIONS
    }
    client = KafkaClient(reader_settings(alone, {}, timeout_ms=120_000, fetch_bytes=100))
    log = KafkaPartitions(client, KafkaRowReader(RowRequest(("offset", "key"))), "read_committed", batch_bytes=1)
    lossy = read_ranges(log, [OffsetRange(place, 0, 70)], skip_lost=True)
    position, first = {}, []
    for isolation, reader in readers.items():
        read_on(reader, position, isolation, until=45)
    while not first or first[-1]["offset"] < 45:
        first += next(lossy).to_pylist()

    # The follower, which lacks 40 records, becomes the leader.
    cluster.brokers[1].kill()
    cluster.resume(2)
    cluster.wait_for_leader("unclean", 2)
    send(producer(cluster.address, acks="all", batch_num_messages=5), "unclean", numbered(63, 500))
    for isolation, reader in readers.items():
        with reader, pytest.raises(LogTruncated, match="election removed the records from 30 to") as raised:
            read_on(reader, position, isolation)
        assert (raised.value.topic_partition, raised.value.offset) == (place, position[isolation])
        assert raised.value.truncated_to == 30
        again = pickle.loads(pickle.dumps(raised.value))
        assert isinstance(again, OffsetsGone)
        assert (str(again), again.truncated_to) == (str(raised.value), 30)

    expected = read(cluster.address, "unclean")
    assert [row.offset for row in expected] == list(range(100))
    with client, caplog.at_level("WARNING", "letterhead"):
        returned = [*first, *(row for batch in lossy for row in batch.to_pylist())]
    assert [row["offset"] for row in returned] == list(range(70))
    assert {row["key"] for row in returned[-10:]} <= {row.key for row in expected}
    assert [record.message for record in caplog.records if "unclean leader election" in record.message]

    assert rows(opened(cluster.address, "unclean").read_all()) == expected
    cluster.launch(1)
    cluster.wait_until_in_sync("unclean", [1, 2])
    assert segment_rows(cluster, 1, "unclean") == segment_rows(cluster, 2, "unclean") == expected


def test_stream_follows_leaders(cluster: Cluster, spark: Any, tmp_path: Path) -> None:
    lhs.register(spark)
    cluster.create("moving", 2)
    send_both(cluster.address, "moving", 0, 300)
    stream = Stream(spark, tmp_path, servers=cluster.address, subscribe="moving", startingOffsets="earliest")
    assert stream.run(maxOffsetsPerTrigger=400) == [400, 200]
    send_both(cluster.address, "moving", 300, 300)
    moves = threading.Timer(1, cluster.move, ("moving", 3))
    moves.start()
    assert stream.run(maxOffsetsPerTrigger=100) == [100] * 6
    moves.join()
    cluster.brokers[3].kill()
    assert stream.run() == []
    cluster.wait("there is another leader", lambda: cluster.leader("moving") in (1, 2))
    send_both(cluster.address, "moving", 600, 100)
    assert stream.run() == [200]
    assert stream.rows() == expected(0, 700)
    cluster.launch(3)
    cluster.wait_until_in_sync("moving")


# --- kills -----------------------------------------------------------------------------------------------------------


class Writer(threading.Thread):
    """Writes until :meth:`finish` stops it; that and :meth:`check` raise what went wrong."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.stopped = threading.Event()
        self._failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.write()
        except BaseException as error:
            self._failure = error

    def write(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def finish(self) -> None:
        self.stopped.set()
        self.join(LIMIT)
        assert not self.is_alive()
        self.check()


class Plain(Writer):
    """Writes to both partitions without transactions; a record is written when all brokers in sync have it."""

    def __init__(self, address: str) -> None:
        self.acknowledged: dict[bytes, tuple[int, int | None]] = {}
        super().__init__(address)

    def write(self) -> None:
        sender = producer(self._address, acks="all", enable_idempotence=True, message_timeout_ms=300_000, linger_ms=50)
        failed = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error)
            self.acknowledged[message.value()] = message.partition(), message.offset()

        for number in itertools.count():
            sender.produce("plain", b"%d" % number, partition=number % 2, headers=[("n", b"")], on_delivery=delivered)
            sender.poll(0.02)
            if self.stopped.is_set():
                break
        assert sender.flush(LIMIT) == 0
        assert not failed
        assert len(self.acknowledged) == number + 1


class Transactions(Writer):
    """Writes to both partitions in transactions, of which it aborts every third."""

    def __init__(self, address: str) -> None:
        self.committed: set[bytes] = set()
        self.aborted: set[bytes] = set()
        super().__init__(address)

    def write(self) -> None:
        sender = producer(self._address, transactional_id="t", transaction_timeout_ms=300_000, linger_ms=1)
        self._insisting(sender.init_transactions)
        for number in itertools.count():
            name = b"%d" % number
            sender.begin_transaction()
            try:
                for row in range(6):
                    sender.produce("transactions", b"%d" % row, name, partition=row % 2, headers=[("n", name)])
                if number % 3 < 2:
                    self._insisting(sender.commit_transaction)
                    self.committed.add(name)
                else:
                    sender.flush(LIMIT)
            except KafkaException:  # if it is not one that an abort mends, the abort fails, too
                pass
            if name not in self.committed:
                self._insisting(sender.abort_transaction)
                self.aborted.add(name)
            if self.stopped.wait(0.1):
                break

    def _insisting(self, do: Callable[[float], Any]) -> None:
        """Do something until it is done, or cannot be done by doing it again."""
        until = time.monotonic() + LIMIT
        while True:
            try:
                do(30)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise


class Readers(Writer):
    """Reads both topics from the beginning again and again, slowly, so that leaders change in between."""

    def __init__(self, address: str, plain: Plain) -> None:
        self._plain = plain
        self.readings: list[tuple[str, str, int, list[tuple[int, int, bytes, bytes]]]] = []
        super().__init__(address)

    def write(self) -> None:
        for topic, isolation in itertools.cycle(itertools.product(("plain", "transactions"), ISOLATIONS)):
            before = len(self._plain.acknowledged) if topic == "plain" else 0
            batches = []
            with opened(self._address, topic, isolation_level=isolation, fetch_bytes=10_000) as reader:
                for batch in reader:
                    batches.append(batch)
                    time.sleep(0.02)
            table = pa.Table.from_batches(batches, reader.schema) if batches else reader.schema.empty_table()
            self.readings.append((topic, isolation, before, short(rows(table))))
            if self.stopped.wait(0.3):
                return


def short(rows_read: list[Row]) -> list[tuple[int, int, bytes, bytes]]:
    return [(row.partition, row.offset, row.key or b"", row.value or b"") for row in rows_read]


@pytest.mark.timeout(900)
def test_killed_brokers_lose_and_repeat_nothing(cluster: Cluster) -> None:
    for topic in ("plain", "transactions"):
        cluster.create(topic, 2)
    plain, transactions = Plain(cluster.address), Transactions(cluster.address)
    readers = Readers(cluster.address, plain)
    places = [(topic, partition) for topic in ("plain", "transactions") for partition in range(2)]
    killed = []

    def aborted(before: int) -> bool:
        for worker in (plain, transactions, readers):
            worker.check()
        return len(transactions.aborted) > before

    try:
        for number in range(KILLS):
            # A client that waits longer after each failure would otherwise do nothing between two kills.
            cluster.wait("another transaction is aborted", partial(aborted, number))
            time.sleep(0.3)
            node = cluster.leader(*places[number % len(places)])
            cluster.brokers[node].kill()
            killed.append(node)
            cluster.launch(node)
            for topic, partition in places:
                cluster.wait_until_in_sync(topic, partition=partition)
    finally:
        for worker in (plain, transactions, readers):
            worker.stopped.set()
    for worker in (plain, transactions, readers):
        worker.finish()
    assert len(killed) == KILLS
    assert set(killed) == set(NODES) or KILLS < 17

    expected = {
        (topic, isolation): read(cluster.address, topic, isolation)
        for topic in ("plain", "transactions")
        for isolation in ISOLATIONS
    }
    for (topic, isolation), expected_rows in expected.items():
        assert (
            rows(opened(cluster.address, topic, isolation_level=isolation, fetch_bytes=50_000).read_all())
            == expected_rows
        )
    # What was acknowledged is there, once, where the broker said; where it recognized a repeated request, it says nothing.
    offsets_by_value = {row.value: (row.partition, row.offset) for row in expected["plain", "read_committed"]}
    assert len(expected["plain", "read_committed"]) == len(offsets_by_value)
    assert offsets_by_value.keys() == plain.acknowledged.keys()
    elsewhere = {
        value: (at, offsets_by_value[value])
        for value, at in plain.acknowledged.items()
        if at[1] is not None and at[1] >= 0 and at != offsets_by_value[value]
    }
    assert not elsewhere
    assert len(offsets_by_value) > 20 * KILLS
    by_name = defaultdict(list)
    for row in expected["transactions", "read_committed"]:
        by_name[row.key].append(row.value)
    assert by_name.keys() == transactions.committed
    assert {tuple(sorted(values)) for values in by_name.values()} == {(b"0", b"1", b"2", b"3", b"4", b"5")}
    uncommitted = {row.key for row in expected["transactions", "read_uncommitted"]}
    assert len(transactions.aborted & uncommitted) > KILLS / 4

    # A reading in between is the beginning of each partition.
    assert len(readers.readings) > 4
    for topic, isolation, before, rows_read in readers.readings:
        expected_rows = short(expected[topic, isolation])
        ends = {partition: sum(row[0] == partition for row in rows_read) for partition in range(2)}
        assert rows_read == [
            row
            for partition in range(2)
            for row in [expected_row for expected_row in expected_rows if expected_row[0] == partition][
                : ends[partition]
            ]
        ]
        assert len(rows_read) >= before
