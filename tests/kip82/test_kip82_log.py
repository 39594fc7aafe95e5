"""``MessageLog``: append, read, files, locks."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import letterhead as lh
from letterhead.errors import LogClosedError, LogLockedError, MessageLogError
from letterhead.kip82 import ConsumerRecord, MessageLog, ProducerRecord
from letterhead.kip82.header_formats import BATCH_FORMATS
from tests.helpers.log_samples import HEADER_FORMATS, encoded, sample, samples


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def on_disk(path: Path) -> dict[str, bytes]:
    """Return the content of the segments by name."""
    return {file.name: file.read_bytes() for file in sorted(path.glob("*.log"))}


# What goes in comes out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_messages_round_trip(path, header_format):
    source = samples(30, header_format)
    with MessageLog(path, header_format) as log:
        assert log.append(source[:10]) == range(10)
        assert log.append(source[10:]) == range(10, 30)
        assert log.append([]) == range(30, 30)
        assert log.next_offset == 30
        read = list(log.scan())
    assert [message.offset for message in read] == list(range(30))
    for message, before in zip(read, source, strict=True):
        assert message.key == before.key
        assert message.value == before.value
        assert message.timestamp == before.timestamp
        assert message.headers == before.headers
        assert message.tombstone == (bool(before.tombstone) or before.value is None)


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_segment_is_a_batch_of_its_messages(path, header_format):
    """So that other readers of the format can read the file."""
    source = samples(12, header_format)
    with MessageLog(path, header_format) as log:
        log.append(source)
        read = list(log.scan())
    assert on_disk(path) == {"00000000000000000000.log": b"".join(encoded(source, header_format))}
    assert list(lh.messages(b"".join(encoded(source, header_format)), BATCH_FORMATS[header_format])) == read


def test_messages_persist_after_reopening(path):
    with MessageLog(path, "int") as log:
        log.append(samples(5, "int"))
    with MessageLog(path) as log:
        assert (log.header_format, log.topic, log.partition, log.next_offset, log.truncated_tail) == (
            "int",
            "orders",
            0,
            5,
            None,
        )
        assert log.append(samples(2, "int", 5)) == range(5, 7)
        assert [message.headers.get(5) for message in log.scan(3)] == [b"3", None, b"5", b"6"]


def test_headers_take_four_bytes_and_their_encoding(path):
    """Magic 1 precedes the draft; without headers, magic 2 has the same fields."""
    headers = lh.Headers([("tenant", lh.String("acme"))])
    fields = {"key": b"k", "value": b"v", "timestamp": 1}
    before = lh.encode({**fields, "magic": 1, "offset": 0}, "kip82-message")
    with MessageLog(path) as log:
        log.append([fields])
        without = log._files._total_bytes()
        log.append([{**fields, "headers": headers}])
        grown = log._files._total_bytes() - without - len(before)
    assert without == len(before)
    data = on_disk(path)["00000000000000000000.log"]
    assert data[12 + 6 : without] == before[12 + 6 :]  # all but checksum and magic, byte for byte
    assert grown == 4 + len(lh.encode(headers, "kip82-typed"))


def test_append_accepts_mappings_and_fills_defaults(path, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 42_000_000_000)
    with MessageLog(path) as log:
        log.append([{"key": b"k"}, {"value": b"", "timestamp": -1}])
        first, second = log.scan()
    assert (first.key, first.value, first.headers, first.timestamp) == (b"k", None, lh.Headers(), 42_000)
    assert (second.key, second.value, second.timestamp) == (None, b"", -1)


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_records_round_trip(path, header_format):
    headers = {"tenant": "acme"} if header_format == "typed" else {5: b"acme"}
    with MessageLog(path, header_format) as log:
        log.append([ProducerRecord("orders", b"k", b"v", headers=headers, header_format=header_format, timestamp=7)])
        for wrong in (
            {"topic": "payments"},
            {"partition": 3},
            {"header_format": "int" if header_format == "typed" else "typed"},
        ):
            record = ProducerRecord(**{"topic": "orders", "header_format": header_format, **wrong})
            with pytest.raises(ValueError, match=f"this log is orders-0 as {header_format}: a record is for"):
                log.append([record])
        (message,) = log.scan()
        (record,) = ConsumerRecord.read(
            on_disk(path)["00000000000000000000.log"], topic="orders", header_format=header_format
        )
        assert record == ConsumerRecord.from_message(message, topic="orders", header_format=header_format)
        assert (record.offset, record.key, record.value, record.timestamp) == (0, b"k", b"v", 7)
        assert message.headers.keys() == list(headers)


def test_append_time_replaces_the_timestamp(path, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 42_000_000_000)
    with MessageLog(path, timestamps="append") as log:
        log.append([sample(0, timestamp=7)])
        (message,) = log.scan()
    assert (message.timestamp, message.attributes & 0x08) == (42_000, 0x08)


# Nothing is half appended ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"key": b"k", "headers": [("n", b"no type")]}, lh.ConversionError, "type"),
        ({"key": b"k", "valeu": b"v"}, ValueError, "did you mean 'value'"),
        ({"key": "k"}, TypeError, "key must be bytes"),
        (
            {"key": b"k", "value": b"\x1f\x8b", "attributes": 1},
            lh.EncodeError,
            "a compressed set is not a single message",
        ),
        ({"key": b"k", "attributes": 0x40}, lh.EncodeError, "attribute bits 0x40 are not defined"),
        ({"key": b"k", "value": bytes(1000)}, lh.EncodeError, "1035 bytes, and the log takes 500"),
    ],
)
def test_append_of_an_invalid_message_appends_nothing(path, wrong, error, text):
    with MessageLog(path, max_message_bytes=500) as log:
        log.append([sample(0)])
        before = on_disk(path)
        with pytest.raises(error, match=text):
            log.append([sample(1), wrong, sample(2)])
        assert on_disk(path) == before
        assert log.append([sample(1)]) == range(1, 2)
        assert len(list(log.scan())) == 2


def test_partial_append_on_a_full_disk_is_truncated(path, monkeypatch):
    write = os.write

    def half(descriptor, data):
        if len(data) > 100:
            return write(descriptor, bytes(data[:100]))
        raise OSError(28, "No space left on device")

    with MessageLog(path) as log:
        log.append([sample(0)])
        before = on_disk(path)
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space left"):
            log.append([sample(1, value=bytes(98))])
        monkeypatch.setattr(os, "write", write)
        assert on_disk(path) == before
        assert log.append([sample(1)]) == range(1, 2)
        assert [message.offset for message in log.scan()] == [0, 1]


def test_interrupted_append_is_truncated_by_the_next(path, monkeypatch):
    """Ctrl-C may interrupt a write, and the code between the write and its bookkeeping."""
    write = os.write

    def interrupted(part):
        def interrupting(descriptor, data):
            write(descriptor, bytes(data)[:part])
            raise KeyboardInterrupt

        return interrupting

    with MessageLog(path) as log:
        for part in (1, 40, 1000):
            before = on_disk(path)
            monkeypatch.setattr(os, "write", interrupted(part))
            with pytest.raises(KeyboardInterrupt):
                log.append([sample(9)])
            monkeypatch.setattr(os, "write", write)
            assert on_disk(path) != before
            log.append([sample(log.next_offset)])
        assert [message.timestamp for message in log.scan()] == [1_000_000, 1_000_001, 1_000_002]
    assert b"".join(on_disk(path).values()) == b"".join(encoded(samples(3)))


def test_failed_sync_closes_the_log(path, monkeypatch):
    """Only opening the log again shows what is on disk then."""

    def fails(descriptor):
        raise OSError(5, "Input/output error")

    log = MessageLog(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="Input/output"):
            log.append([sample(0)])
    with pytest.raises(LogClosedError, match=r"closed after a failed sync.*open it again"):
        log.append([sample(0)])
    with MessageLog(path) as log:
        assert log.next_offset == 1


def test_sync_option_determines_when_the_log_is_flushed(path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(1) or fsync(descriptor))
    with MessageLog(path, sync="append") as log:
        synced.clear()
        log.append([sample(0)])
        log.append([sample(1)])
        assert len(synced) == 2
    with MessageLog(path, sync="flush") as log:
        synced.clear()
        log.append([sample(2)])
        assert not synced
        log.flush()
        assert len(synced) == 1


# Files -------------------------------------------------------------------------------------------------------------


def test_new_segment_begins_before_segment_bytes_are_exceeded(path):
    lengths = [len(value) for value in encoded(samples(9))]
    with MessageLog(path, segment_bytes=sum(lengths[:3])) as log:
        for message in samples(9):
            log.append([message])
        assert len(next(iter(on_disk(path).values()))) == sum(lengths[:3])
        assert list(on_disk(path)) == [f"{segment.base:020}.log" for segment in log._files.segments]
        assert len(on_disk(path)) >= 3
        assert [message.offset for message in log.scan()] == list(range(9))
        assert [message.offset for message in log.scan(5)] == [5, 6, 7, 8]
    with MessageLog(path) as log:
        assert log.next_offset == 9
        assert [message.offset for message in log.scan(5)] == [5, 6, 7, 8]
    assert b"".join(on_disk(path).values()) == b"".join(encoded(samples(9)))


def test_append_larger_than_segment_bytes_gets_its_own_segment(path):
    with MessageLog(path, segment_bytes=100) as log:
        log.append(samples(20))
        log.append(samples(20, start=20))
        assert [segment.base for segment in log._files.segments] == [0, 20]
        assert [message.offset for message in log.scan()] == list(range(40))


def test_message_larger_than_a_chunk_is_read(path):
    large = os.urandom(3 << 20)
    with MessageLog(path, max_message_bytes=4 << 20) as log:
        log.append([sample(0), sample(1, value=large), sample(2), sample(3)])
        assert [len(message.value or b"") for message in log.scan()] == [2, 3 << 20, 0, 2]
        assert [message.offset for message in log.scan(2)] == [2, 3]
    with MessageLog(path, readonly=True) as log:
        assert log.next_offset == 4
        assert [message.offset for message in log.scan(3)] == [3]


def test_scan_starts_at_any_offset(path):
    """With more messages than between two index entries, and than in one chunk."""
    with MessageLog(path, sync="flush") as log:
        log.append([{"key": b"%d" % number, "value": bytes(200)} for number in range(12_000)])
        warm = [next(log.scan(start)).key for start in (0, 1, 4_321, 11_999)]
    with MessageLog(path) as log:
        assert [next(log.scan(start)).key for start in (11_999, 4_321, 1, 0)] == warm[::-1]
        assert warm == [b"0", b"1", b"4321", b"11999"]
        assert sum(1 for _ in log.scan(7_000)) == 5_000
        assert list(log.scan(12_000)) == []


def test_scan_ends_where_log_ended_when_it_began(path):
    with MessageLog(path) as log:
        log.append(samples(3))
        reading = log.scan()
        assert next(reading).offset == 0
        log.append(samples(3, start=3))
        assert [message.offset for message in reading] == [1, 2]
        assert [message.offset for message in log.scan()] == list(range(6))


def test_threads_can_share_a_log(path):
    with MessageLog(path, sync="flush", segment_bytes=20_000) as log, ThreadPoolExecutor(6) as pool:
        stop = threading.Event()

        def read():
            while not stop.is_set():
                offsets = [message.offset for message in log.scan()]
                assert offsets == list(range(len(offsets)))

        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(lambda: [log.append(samples(10)) for _ in range(30)]) for _ in range(4)]
        ranges = [offsets for writer in writers for offsets in writer.result()]
        stop.set()
        for reader in readers:
            reader.result()
        assert sorted(offset for offsets in ranges for offset in offsets) == list(range(1200))
        assert [message.offset for message in log.scan()] == list(range(1200))


# Who may open it ---------------------------------------------------------------------------------------------------


def test_log_without_locks_is_read_only(path, monkeypatch):
    with MessageLog(path) as log:
        log.append([sample(0)])
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(NotImplementedError, match=r"cannot be locked on this system.*: open it with readonly=True"):
        MessageLog(path)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    with MessageLog(path, readonly=True) as log:
        assert len([*log.scan()]) == 1


def test_second_writer_is_rejected(path):
    with MessageLog(path) as log:
        log.append([sample(0)])
        with pytest.raises(
            LogLockedError, match="another object of this process: close it there, or open it here with"
        ):
            MessageLog(path)
        requested = "import sys; from letterhead.kip82 import MessageLog; MessageLog(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", requested, str(path)], capture_output=True, text=True, check=False
        )
        assert f"LogLockedError: {path} is being written by process {os.getpid()}" in other.stderr
        with MessageLog(path, readonly=True) as reader:
            assert [message.offset for message in reader.scan()] == [0]
            with pytest.raises(LogClosedError, match="read only"):
                reader.append([sample(1)])
    with MessageLog(path) as log:
        assert log.next_offset == 1


def test_forked_child_cannot_use_the_log(path):
    with MessageLog(path) as log:
        log.append([sample(0)])

        def child(messages_of_child):
            try:
                log.append([sample(1)])
            except LogClosedError as error:
                messages_of_child.put(str(error))
            log.close()

        context = multiprocessing.get_context("fork")
        messages_of_child = context.Queue()
        process = context.Process(target=child, args=(messages_of_child,))
        process.start()
        assert "opened in another process" in messages_of_child.get(timeout=300)
        process.join(30)
        with pytest.raises(LogLockedError):  # the child closed its own, and not this one
            MessageLog(path)
        assert log.append([sample(1)]) == range(1, 2)


def test_operations_on_a_closed_log_are_rejected(path):
    log = MessageLog(path)
    log.append([sample(0)])
    reading = log.scan()
    log.close()
    log.close()
    for use in (lambda: log.append([sample(1)]), log.flush, log.compact, lambda: next(reading), log.verify):
        with pytest.raises(LogClosedError, match="is closed: open it again"):
            use()
    assert repr(log) == f"<MessageLog {path}: typed, next offset 1, 1 segments, closed>"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"header_format": "int"}, "has the header format 'typed', and not 'int'"),
        ({"topic": "payments"}, "has the topic 'orders', and not 'payments'"),
        ({"partition": 3}, "has the partition 0, and not 3"),
    ],
)
def test_properties_that_contradict_log_are_rejected(path, options, text):
    MessageLog(path).close()
    with pytest.raises(MessageLogError, match=text):
        MessageLog(path, **options)
    MessageLog(path).close()  # the lock is free again


def test_topic_and_partition_come_from_the_directory_name(tmp_path):
    with pytest.raises(MessageLogError, match="'log' is not a topic and a partition"):
        MessageLog(tmp_path / "log")
    with MessageLog(tmp_path / "log", topic="orders", partition=7) as log:
        assert (log.topic, log.partition) == ("orders", 7)
    with MessageLog(tmp_path / "a-b-12") as log:
        assert (log.topic, log.partition) == ("a-b", 12)
    with MessageLog(tmp_path / "log") as log:
        assert (log.topic, log.partition) == ("orders", 7)


def test_directories_without_a_log_are_rejected(tmp_path):
    with pytest.raises(MessageLogError, match=r"is not a message log: it has no log\.json"):
        MessageLog(tmp_path, readonly=True)
    (tmp_path / "kafka-0").mkdir()
    (tmp_path / "kafka-0" / "00000000000000000000.log").write_bytes(b"of somebody else")
    with pytest.raises(MessageLogError, match="is not a message log"):
        MessageLog(tmp_path / "kafka-0")
    MessageLog(tmp_path / "bad-0").close()
    good = json.loads((tmp_path / "bad-0" / "log.json").read_text())
    for content in (
        "",
        "[1]",
        "{",
        json.dumps({**good, "header_format": "typo"}),
        json.dumps({**good, "partition": "0"}),
    ):
        (tmp_path / "bad-0" / "log.json").write_text(content)
        with pytest.raises(MessageLogError, match=r"log\.json does not describe a log"):
            MessageLog(tmp_path / "bad-0")


@pytest.mark.parametrize("name", ["header_format", "sync", "timestamps", "errors", "on_loss"])
def test_unknown_options_are_rejected(path, name):
    with pytest.raises(ValueError, match="unknown"):
        MessageLog(path, **{name: "typo"})
    assert not path.exists()


def test_log_needs_neither_pyarrow_nor_pyspark(path):
    code = (
        "import sys; from letterhead.kip82 import MessageLog\n"
        "with MessageLog(sys.argv[1]) as log: log.append([{'key': b'k'}]); log.compact(); print(len(list(log.scan())))\n"
        "print(sorted({'pyarrow', 'pyspark', 'rocksdict'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n[]\n"
