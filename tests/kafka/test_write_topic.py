"""``lh.write.topic`` against a broker."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers import pages
from tests.kafka.topics import PARTITIONS, consume, create, orders, place, produce

pytestmark = pytest.mark.broker

numbers = itertools.count()


@pytest.fixture
def topic(broker: str) -> str:
    name = f"write-{next(numbers)}"
    create(broker, name)
    return name


def read(broker: str, topic: str, **options: object) -> pa.Table:
    with lh.read.topic(topic, bootstrap_servers=broker, **options) as reader:
        return reader.read_all()


def test_topic_that_was_read_is_written_unchanged(broker, topic, samples):
    records = orders(samples, 500)
    produce(broker, topic, records)
    table = read(broker, topic)
    copy = f"{topic}-copy"
    create(broker, copy)
    written = lh.write.topic(table, copy, bootstrap_servers=[broker], partition="partition")
    assert written.rows == len(records)
    assert sum(batch.rows for batch in written.batches) == len(records)
    again = read(broker, copy)
    kept = ["partition", "offset", "timestamp", "key", "value", "headers"]
    assert again.select(kept).equals(table.select(kept))
    assert list(consume(broker, copy).values()) == [
        records[number] for number in sorted(range(len(records)), key=place)
    ]


def test_page_masks_topic_header_and_keeps_rest(broker, samples):
    create(broker, "orders-unmasked", "orders-masked")
    produce(broker, "orders-unmasked", orders(samples, 500))
    there = {"127.0.0.1:9092": broker, '"orders"': '"orders-unmasked"', '"orders-clean"': '"orders-masked"'}
    pages.run("docs/how-to/write-headers-back.md", {"pa": pa, "lh": lh, "lha": lha}, "python copy", there)
    order = [("partition", "ascending"), ("offset", "ascending")]
    before, after = (read(broker, topic).sort_by(order) for topic in ("orders-unmasked", "orders-masked"))
    others = ["partition", "timestamp", "key", "value"]
    assert before.num_rows > 500
    assert after.select(others).equals(before.select(others))
    for old, new in zip(before["headers"].to_pylist(), after["headers"].to_pylist(), strict=True):
        expected = [{**header, "value": _masked(header)} for header in old]
        assert new == expected


def _masked(header: dict) -> bytes | None:
    value = header["value"]
    return value if header["key"] != "tenant" or value is None else hashlib.sha256(value).hexdigest().encode()


def test_typed_headers_are_written_as_types_option_selects(broker, topic):
    headers = pa.array(
        [[{"key": "retry", "type": "int32", "value": b"\0\0\0\3"}]],
        pa.list_(pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())])),
    )
    lh.write.topic(pa.table({"value": ["v"], "headers": headers}), topic, bootstrap_servers=broker, types="text")
    assert read(broker, topic)["headers"].to_pylist() == [[{"key": "retry", "value": b"3"}]]


def test_undelivered_rows_are_named(broker, topic):
    table = pa.table({"value": ["a", "b" * 2_000_000, "c", "d"], "to": [0, 0, PARTITIONS + 5, 1]})
    with pytest.raises(lh.write.DeliveryError, match="row 1 and 1 more not delivered") as raised:
        lh.write.topic(table, topic, bootstrap_servers=broker, partition="to", timeout_ms=5000)
    assert sorted(raised.value.errors) == [1, 2]
    assert sorted(read(broker, topic)["value"].to_pylist()) == [b"a", b"d"]


def test_unknown_column_is_rejected(broker, topic):
    with pytest.raises(ValueError, match="unknown column 'tenant'"):
        lh.write.topic(pa.table({"value": ["a"], "tenant": ["b"]}), topic, bootstrap_servers=broker)


def test_adjacent_offset_ranges_of_partitions_are_not_merged(broker, topic):
    rows = pa.table({"value": ["a", "b"]})
    assert lh.write.topic(rows, topic, bootstrap_servers=broker, partition=1).batches == [(1, 0, 2)]
    more = pa.table({"value": ["c", "d", "e"], "to": [0, 0, 1]})
    written = lh.write.topic(more, topic, bootstrap_servers=broker, partition="to")
    assert written == (3, [(0, 0, 2), (1, 2, 1)])


def test_first_writable_timestamp_is_1970(broker, topic):
    def write(time: int) -> None:
        times = pa.array([time], pa.timestamp("ms", "UTC"))
        lh.write.topic(pa.table({"value": ["a"], "timestamp": times}), topic, bootstrap_servers=broker)

    with pytest.raises(lh.EncodeError, match=r"the timestamp is before 1970.*row 0"):
        write(-1)
    write(0)
    assert read(broker, topic)["timestamp"].cast(pa.int64()).to_pylist() == [0]


def test_chunks_before_unwritable_one_are_written(broker, topic):
    times = pa.chunked_array([[1], [-1]]).cast(pa.timestamp("ms", "UTC"))
    table = pa.table({"value": pa.chunked_array([["a"], ["b"]]), "timestamp": times})
    with pytest.raises(lh.EncodeError, match="the timestamp is before 1970"):
        lh.write.topic(table, topic, bootstrap_servers=broker)
    assert read(broker, topic)["value"].to_pylist() == [b"a"]


def test_headers_error_names_table_row(broker, topic):
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = [{"value": b"v", "headers": [{"key": key, "value": b"h"}]} for key in ("a", "b", "c", None)]
    table = pa.Table.from_pylist(rows, schema=pa.schema([("value", pa.binary()), ("headers", headers)]))
    with pytest.raises(lh.EncodeError) as raised:
        lh.write.topic(pa.Table.from_batches(table.to_batches(max_chunksize=2)), topic, bootstrap_servers=broker)
    assert raised.value.row == 3


@pytest.mark.parametrize(
    ("times", "error", "message"),
    [
        (pa.array([1000, 2001], pa.timestamp("us", "UTC")), lh.EncodeError, r"no exact timestamp\[ms, tz=UTC\].*row 1"),
        (pa.array([1, 2], pa.timestamp("ms")), TypeError, "without a time zone.*assume_timezone"),
    ],
)
def test_times_outside_record_range_are_rejected(broker, topic, times, error, message):
    table = pa.table({"value": ["a", "b"], "timestamp": times})
    with pytest.raises(error, match=message):
        lh.write.topic(table, topic, bootstrap_servers=broker)


# Writes for seconds, and is interrupted by its own timer, wherever it is; also in a function that librdkafka calls.
INTERRUPTED = """
import os, random, signal, sys, threading
import letterhead as lh, pyarrow as pa

table = pa.table({"value": [b"x"] * 300_000, "headers": [[{"key": "k", "value": b"v"}]] * 300_000})
lh.write.topic(table.slice(0, 1), "interrupted", bootstrap_servers=sys.argv[1])
for number in range(int(sys.argv[2])):
    random.seed(number)
    threading.Timer(random.uniform(0.02, 1.5), os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        lh.write.topic(table, "interrupted", bootstrap_servers=sys.argv[1])
        signal.pause()
        print("ended")
    except BaseException as error:
        print(type(error).__name__)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_interrupted_writer_raises_keyboard_interrupt(broker: str) -> None:
    create(broker, "interrupted")
    command = [sys.executable, "-c", INTERRUPTED, broker, "12"]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()
    assert lines == ["KeyboardInterrupt"] * 12 + ["True"]
