"""Logs with messages of Kafka 0.8 to 0.10: directories that Kafka wrote, and the format versions and codecs of a log."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
from kafka.record import MemoryRecords

import letterhead as lh
from letterhead.errors import MessageLogError, TruncatedTailWarning
from letterhead.kip82 import FetchRequest, FetchResponse, MessageLog, ProduceRequest
from letterhead.kip82.header_formats import BATCH_FORMATS, CODECS
from letterhead.kip82.requests import ErrorCode
from letterhead.kip82.versions import MAGIC, VERSIONS
from tests.helpers.log_samples import HEADER_FORMATS, frame, sample, samples
from tests.helpers.vector_checks import read_lines

FIRST = "00000000000000000000.log"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def kafka_sets(vectors: Path) -> dict[str, bytes]:
    """Return message sets of magic 0 and 1 that Kafka wrote, by name."""
    lines = read_lines(vectors, "record_batches")
    return {line["id"]: bytes.fromhex(line["hex"]) for line in lines if line["id"][:2] in ("v0", "v1")}


def written_by_kafka(path: Path, segments: dict[int, bytes]) -> Path:
    """Write a directory as Kafka 0.10 does, with index files."""
    path.mkdir()
    for base, data in segments.items():
        (path / f"{base:020}.log").write_bytes(data)
        (path / f"{base:020}.index").write_bytes(bytes(8))
        (path / f"{base:020}.timeindex").write_bytes(bytes(12))
    return path


def fetched(log: MessageLog, version: int, offset: int = 0) -> FetchResponse:
    return FetchResponse.decode(
        log.fetch(FetchRequest.for_partition("orders", 0, offset, version=version)).encode(), version
    )


def message_set(log: MessageLog, version: int, offset: int = 0) -> bytes:
    ((_, part),) = fetched(log, version, offset).partitions()
    return part.message_set


def on_disk(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.glob("*.*")) if file.name != ".lock"}


# Directories of Kafka ----------------------------------------------------------------------------------------------


def test_kafka_directories_are_opened(tmp_path, vectors):
    sets = kafka_sets(vectors)
    assert len(sets) == 16
    for name, data in sets.items():
        expected = list(lh.messages(data, "kip82-messages"))
        path = written_by_kafka(tmp_path / f"{name}-3", {expected[0].offset: data})
        before = on_disk(path)
        with MessageLog(path, readonly=True) as log:
            assert (log.topic, log.partition, log.next_offset) == (name, 3, expected[-1].offset + 1)
            assert list(log.scan()) == expected
            assert list(log.scan(expected[-1].offset)) == expected[-1:]
        assert on_disk(path) == before
        with MessageLog(path) as log:
            assert list(log.scan()) == expected
            assert log.append([{"key": b"k", "value": b"v"}]).start == expected[-1].offset + 1
        with MessageLog(path) as log:
            assert [*log.scan()][:-1] == expected
            assert log.verify() == []
        assert on_disk(path)[f"{expected[0].offset:020}.log"].startswith(data)


def test_kafka_log_may_have_offset_gaps(path, vectors):
    """Retention deletes whole files at the beginning, and the cleaner messages anywhere, also inside compressed sets."""
    sets = kafka_sets(vectors)
    cleaned = lh.batch([{"offset": 20, "magic": 1}, {"offset": 25, "magic": 1}], "kip82-messages", codec="lz4")
    written_by_kafka(path, {7: sets["v1-gzip-52"], 15: cleaned + frame(31, 2, magic=1) + frame(40, 1, magic=0)})
    with MessageLog(path) as log:
        assert [message.offset for message in log.scan()] == [10, 11, 20, 25, 31, 32, 40]
        assert [message.offset for message in log.scan(21)] == [25, 31, 32, 40]
        assert log.append([{}]) == range(41, 42)
        assert log.verify() == []


def test_compressed_set_without_last_message_names_end_offset(path):
    with MessageLog(path) as log:
        log.append([{}])
    # The offsets in a set of format 0 are not relative to its own.
    three = lh.batch([{"offset": offset, "magic": 0} for offset in (1, 2, 3)], "kip82-messages", codec="gzip")
    (path / f"{0:020}.log").open("ab").write(struct.pack(">q", 5) + three[8:])
    with MessageLog(path, readonly=True) as log:
        [error] = log.verify()
    assert error.reason == "a compressed set ends with offset 3, and its own is 5"


def test_truncated_tail_of_kafka_log_is_cut(path):
    whole = frame(0, 3, magic=1, codec="gzip") + frame(3, 2, magic=0)
    for truncated in (frame(5, 1, magic=0), frame(9, 4, magic=1, codec="snappy")):
        for cut in (1, 11, 13, 17, 19, len(truncated) - 1):
            directory = written_by_kafka(path.with_name(f"{len(truncated)}-{cut}"), {0: whole + truncated[:cut]})
            with pytest.warns(TruncatedTailWarning), MessageLog(directory, errors="move") as log:
                assert log.next_offset == 5
            assert set(on_disk(directory)) == {FIRST, "log.json"}
            assert on_disk(directory)[FIRST] == whole


def test_record_batches_are_rejected_and_not_cut(path):
    batches = lh.batch([{"offset": 5, "value": b"v"}, {"offset": 6}], codec="gzip")
    for before in (b"", frame(0, 5, magic=1)):
        for after in (b"", batches[:-1]):
            directory = written_by_kafka(path.with_name(f"{len(before)}-{len(after)}"), {0: before + batches + after})
            state = on_disk(directory)
            for options in ({}, {"errors": "move"}, {"readonly": True}):
                with pytest.raises(MessageLogError, match=r"record batches of Kafka 0\.11 or later .*read\.segments"):
                    MessageLog(directory, **options)
            assert on_disk(directory) == state


def test_files_without_message_are_rejected_and_not_cut(path):
    written_by_kafka(path, {0: b"of somebody else, and much longer than any frame"})
    before = on_disk(path)
    for options in ({}, {"errors": "move"}, {"readonly": True}):
        with pytest.raises(MessageLogError, match="is not a message log"):
            MessageLog(path, **options)
    assert on_disk(path) == before


def test_unfinished_kafka_replacement_is_rejected(path):
    written_by_kafka(path, {0: frame(0, 1, magic=1)})
    (path / f"{FIRST}.swap").write_bytes(frame(0, 1, magic=1))
    with pytest.raises(MessageLogError, match="Kafka was stopped while it replaced a file"):
        MessageLog(path)


def test_index_files_are_deleted_when_their_segment_changes(path):
    segments = {0: frame(0, 3, magic=1), 3: frame(3, 1, magic=1)}
    written_by_kafka(path, segments)
    with MessageLog(path) as log:
        assert len(list(path.glob("*index"))) == 4
        log.append([{}])
        assert [file.stem for file in path.glob("*index")] == [FIRST[:-4]] * 2
        log.compact(keyless="drop")
        assert list(path.glob("*index")) == []


# Format versions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_log_writes_its_message_format_version(path, header_format, version, codec):
    source = samples(9, header_format)
    with MessageLog(path, header_format, message_format_version=version, codec=codec, on_loss="drop") as log:
        assert log.append(source[:4]) == range(4)
        assert log.append(source[4:]) == range(4, 9)
        read = list(log.scan())
        assert [next(log.scan(start)).offset for start in range(9)] == list(range(9))
    assert {message.magic for message in read} == {version}
    for offset, (message, before) in enumerate(zip(read, source, strict=True)):
        deleted = version < 2 and (before.value is None or before.tombstone)
        assert (message.offset, message.key) == (offset, before.key)
        assert message.value == (None if deleted else before.value)
        assert message.timestamp == (before.timestamp if version else None)
        assert message.headers == (before.headers if version == 2 else None)
    data = on_disk(path)[FIRST]
    assert list(lh.messages(data, BATCH_FORMATS[header_format])) == read
    if codec != "none":
        assert (data[17] & 7, int.from_bytes(data[:8], "big")) == (CODECS.index(codec), 3)
    with MessageLog(path, readonly=True) as log:
        assert (log.message_format_version, log.next_offset) == (version, 9)
        assert list(log.scan()) == read


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("version", [0, 1])
def test_kafka_python_reads_an_older_log(path, version, codec):
    """kafka-python has readers of its own for magic 0 and 1."""
    source = [{"key": b"k%d" % n, "value": b"v" * n, "timestamp": 1000 + n} for n in range(5)]
    with MessageLog(path, message_format_version=version, codec=codec) as log:
        log.append(source)
        served = message_set(log, 2)
    assert served == on_disk(path)[FIRST]
    records = MemoryRecords(served)
    read: list[Any] = []
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        read += batch
    assert [(record.offset, record.key, record.value) for record in read] == [
        (n, fields["key"], fields["value"]) for n, fields in enumerate(source)
    ]
    assert [record.timestamp for record in read] == [1000 + n if version else None for n in range(5)]


def test_message_format_version_is_kept_until_changed(path):
    written_by_kafka(path, {0: frame(0, 1, magic=0)})
    with MessageLog(path, message_format_version=1) as log:
        log.append([{}])
    assert json.loads((path / "log.json").read_text())["message_format_version"] == 1
    with MessageLog(path) as log:
        log.append([{}])
    with MessageLog(path, message_format_version=2) as log:
        log.append([{}])
    with MessageLog(path) as log:
        assert log.message_format_version == 2
        assert [message.magic for message in log.scan()] == [0, 1, 1, 2]


@pytest.mark.parametrize("version", [3, -1, True, "0.10.0", 1.0])
def test_unknown_versions_are_rejected(path, version):
    with pytest.raises(ValueError, match="unknown message_format_version"):
        MessageLog(path, message_format_version=version)
    assert not path.exists()


def test_headers_are_not_dropped_silently_by_an_older_version(path):
    with MessageLog(path, message_format_version=1) as log:
        with pytest.raises(
            lh.ConversionError, match=r"magic 1 has no headers: open the log with .*version=2"
        ) as caught:
            log.append([sample(0)])
        assert caught.value.code == "field_not_carried"
        response = log.produce(ProduceRequest.for_partition("orders", 0, [sample(0)], version=4))
        ((_, part),) = response.partitions()
        assert part.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        assert log.next_offset == 0
    wrapped = MessageLog(path.with_name("w-0"), "wrapper", message_format_version=1)
    with wrapped as log, pytest.raises(lh.ConversionError, match="magic 1 has no value of a delete"):
        log.append([{"key": b"k", "value": b"why", "tombstone": True}])


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_produced_messages_get_magic_of_log(path, version, magic):
    """As in KIP-32: a message converted up has the timestamp -1, and one converted down to magic 0 loses it."""
    source = [{"key": b"k", "value": b"v", "timestamp": 7 if magic else None}, {"key": b"k", "value": None}]
    with MessageLog(path, message_format_version=version) as log:
        log.produce(ProduceRequest.for_partition("orders", 0, source, version=2 if magic else 1)).raise_for_error()
        first, second = log.scan()
    assert (first.magic, second.magic, first.value, second.value) == (version, version, b"v", None)
    assert first.timestamp == {0: None, 1: 7 if magic else -1, 2: 7 if magic else -1}[version]


def test_append_time_is_written_by_the_versions_that_have_it(path, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 42_000_000_000)
    for version in (0, 1, 2):
        for codec in CODECS:
            options = {"message_format_version": version, "codec": codec, "timestamps": "append"}
            with MessageLog(path.with_name(f"{codec}-{version}"), **options) as log:
                log.append([{"timestamp": 1}, {"timestamp": 2}])
                assert [message.timestamp for message in log.scan()] == ([42_000] * 2 if version else [None] * 2)
            data = on_disk(log.path)[FIRST]
            assert data[17] == CODECS.index(codec) | (8 if version else 0)


# What is served ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_fetch_converts_messages_for_every_version(path, header_format, version):
    """Newer messages are converted down and sets stay sets; older messages are returned as stored."""
    parts = [frame(4 * n, 4, header_format, magic=n % 3, codec=CODECS[n // 3]) for n in range(12)]
    written_by_kafka(path, {0: b"".join(parts)})
    with MessageLog(
        path, header_format, on_loss="drop", types_out={"typed": "be", "int": "binary", "wrapper": None}[header_format]
    ) as log:
        served = message_set(log, version)
        stored = list(log.scan())
        read = list(fetched(log, version).messages(header_format))
    assert [(message.offset, message.key) for message in read] == [(message.offset, message.key) for message in stored]
    for message, before in zip(read, stored, strict=True):
        assert message.magic == min(MAGIC[version], before.magic)
        if message.magic == before.magic < 2:
            assert message == before
        if message.magic < 2:
            assert message.headers is None
            assert message.value == (None if before.tombstone else before.value)
            assert message.timestamp == (before.timestamp if message.magic else None)
    native = {"typed": 4, "wrapper": 4, "int": 3}[header_format]
    if version == native:
        assert served == b"".join(parts)
    at, codecs = 0, []
    while at < len(served):
        codecs.append(served[at + 17] & 7)
        at += 12 + int.from_bytes(served[at + 8 : at + 12])
    assert codecs == [0] * 12 + [1] * 3 + [2] * 3 + [3] * 3


def test_fetch_from_inside_a_set_returns_the_whole_set(path):
    """As Kafka does: a client skips the messages before its offset."""
    with MessageLog(path, codec="gzip") as log:
        log.append(samples(5))
        log.append(samples(5, start=5))
        assert [message.offset for message in fetched(log, 4, 7).messages()] == [5, 6, 7, 8, 9]
        assert [message.offset for message in log.scan(7)] == [7, 8, 9]
        assert fetched(log, 4, 10).topics[0].partitions[0].message_set == b""


def test_requests_carry_compressed_sets(path):
    for version, header_format in ((0, "typed"), (1, "int"), (2, "wrapper"), (3, "int"), (4, "typed"), (4, "wrapper")):
        source = [
            message if version > 2 else {"key": message.key, "value": message.value}
            for message in samples(6, header_format)
        ]
        for codec in CODECS[1:]:
            request = ProduceRequest.for_partition(
                "orders", 0, source, version=version, header_format=header_format, codec=codec
            )
            ((_, sent),) = request.partitions()
            assert sent.message_set[17] & 7 == CODECS.index(codec)
            assert len(sent.message_set) == 12 + int.from_bytes(sent.message_set[8:12])
            directory = path.with_name(f"{version}-{header_format}-{codec}")
            with MessageLog(directory, header_format, topic="orders", partition=0, codec=codec) as log:
                log.produce(request).raise_for_error()
                assert [message.key for message in log.scan()] == [message.key for message in samples(6, header_format)]
                read = list(fetched(log, version).messages(header_format))
            assert [message.value for message in read] == [
                dict(message)["value"] if isinstance(message, dict) else message.value for message in source
            ]


def test_set_has_at_most_max_message_bytes(path):
    with MessageLog(path, codec="lz4", max_message_bytes=1000) as log:
        log.append([{"value": bytes(300), "timestamp": 1}] * 7)
        assert [message.offset for message in log.scan()] == list(range(7))
        with pytest.raises(lh.EncodeError, match="the log takes 1000"):
            log.append([{"value": bytes(1000)}])
    data = on_disk(path)[FIRST]
    lasts = []
    while data:
        lasts.append(int.from_bytes(data[:8], "big"))
        data = data[12 + int.from_bytes(data[8:12]) :]
    assert lasts == [1, 3, 5, 6]


# Compaction --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_set_that_loses_messages_is_compressed_again(path, header_format, magic):
    whole = frame(0, 3, header_format, magic=magic, codec="gzip", key=b"a", value=b"old")
    kept = frame(3, 2, header_format, magic=magic, codec="snappy")
    partly = lh.batch(
        [{"offset": 5 + n, "magic": magic, "key": b"a" if n else b"b", "value": b"new"} for n in range(3)],
        BATCH_FORMATS[header_format],
        codec="lz4",
    )
    written_by_kafka(path, {0: whole + kept + partly})
    with MessageLog(path, header_format) as log:
        before = {message.offset: message for message in log.scan()}
        done = log.compact()
        assert (done.kept, done.removed) == (4, 4)
        assert list(log.scan()) == [before[offset] for offset in (3, 4, 5, 7)]
        assert log.append([{}]) == range(8, 9)
    data = on_disk(path)[FIRST]
    assert data.startswith(kept)
    assert (data[len(kept) + 17] & 7, int.from_bytes(data[len(kept) :][:8], "big")) == (3, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with MessageLog(path) as log:
            assert log.verify() == []
