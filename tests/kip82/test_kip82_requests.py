"""Produce and fetch: bytes compared with kafka-python, and the answers of a log in each version."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import kafka.errors
import kafka.protocol.old.fetch
import kafka.protocol.old.produce
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import LogClosedError, RequestError
from letterhead.kip82 import FetchRequest, FetchResponse, MessageLog, ProduceRequest, ProduceResponse
from letterhead.kip82.header_formats import BATCH_FORMATS, MESSAGE_FORMATS
from letterhead.kip82.requests import (
    ErrorCode,
    FetchPartition,
    FetchResult,
    ProducePartition,
    ProduceResult,
    TopicPartitions,
)
from letterhead.kip82.versions import MAGIC, VERSIONS, header_format_of
from tests.helpers.log_samples import HEADER_FORMATS, encoded, sample, samples

VALUE_TYPES = (ProduceRequest, ProduceResponse, FetchRequest, FetchResponse)


@pytest.fixture
def log(tmp_path):
    with MessageLog(tmp_path / "orders-0", on_loss="drop", types_in="binary", types_out="be") as log:
        yield log


def log_of(tmp_path, header_format: str, **options) -> MessageLog:
    return MessageLog(tmp_path / f"{header_format}-0", header_format, topic="orders", partition=0, **options)


def fetched(log: MessageLog, version: int, offset: int = 0, **options) -> FetchResponse:
    """Fetch through the bytes of a request and of a response."""
    request = FetchRequest.decode(
        FetchRequest.for_partition("orders", 0, offset, version=version, **options).encode(), version
    )
    return FetchResponse.decode(log.fetch(request).encode(), version)


@pytest.mark.parametrize("readonly", [False, True])
def test_closed_or_read_only_log_rejects_append_request(tmp_path, readonly):
    log = log_of(tmp_path, "typed")
    log.append([sample(0)])
    ((_, part),) = log.fetch(FetchRequest.for_partition("orders", 0, 0, version=4)).partitions()
    request = ProduceRequest(version=4, topics=(TopicPartitions("orders", (ProducePartition(0, part.message_set),)),))
    log.close()
    if readonly:
        log = MessageLog(log.path, "typed", readonly=True)
    with pytest.raises(LogClosedError, match="read only" if readonly else "is closed"):
        log.produce(request)
    assert log.next_offset == 1
    log.close()


def produced(log: MessageLog, request: ProduceRequest) -> ProduceResponse:
    request = ProduceRequest.decode(request.encode(), request.version)
    response = log.produce(request)
    assert ProduceResponse.decode(response.encode(), response.version) == without_lost(response)
    return response


def without_lost(response: ProduceResponse) -> ProduceResponse:
    """Return a response without the fields that its version does not have."""
    if response.version >= 2:
        return response
    topics = tuple(
        TopicPartitions(
            topic.topic,
            tuple(
                ProduceResult(partition.partition, partition.error_code, partition.offset)
                for partition in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return ProduceResponse(version=response.version, topics=topics)


# Bytes -------------------------------------------------------------------------------------------------------------

TOPICS = st.text(max_size=5)
INT16, INT32, INT64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64))
PARTS = {
    ProduceRequest: (ProducePartition, (INT32, st.binary(max_size=9))),
    ProduceResponse: (ProduceResult, (INT32, INT16, INT64, INT64)),
    FetchRequest: (FetchPartition, (INT32, INT64, INT32)),
    FetchResponse: (FetchResult, (INT32, INT16, INT64, st.binary(max_size=9))),
}


def topics_of(type) -> st.SearchStrategy:
    part_type, fields = PARTS[type]
    part = st.builds(part_type, *fields)
    return st.lists(st.builds(TopicPartitions, TOPICS, st.lists(part, max_size=3).map(tuple)), max_size=3).map(tuple)


def theirs(result) -> bytes:
    """Encode the same with kafka-python, which has versions 0 to 2; versions of the drafts have the fields of 2."""
    version = min(result.version, 2)
    module = (
        kafka.protocol.old.produce if isinstance(result, ProduceRequest | ProduceResponse) else kafka.protocol.old.fetch
    )
    fields = {
        ProduceRequest: {"required_acks": -1, "timeout": 1500},
        FetchRequest: {"replica_id": -1, "max_wait_time": 0, "min_bytes": 0},
    }.get(type(result), {"throttle_time_ms": 0} if version else {})
    width = len(PARTS[type(result)][1]) - (isinstance(result, ProduceResponse) and version < 2)
    topics = [
        (topic.topic, [tuple(vars(part).values())[:width] for part in topic.partitions]) for topic in result.topics
    ]
    # Kept in a variable: its `encode` has a weak reference to it.
    oracle = getattr(module, f"{type(result).__name__}_v{version}")(topics=topics, **fields)
    return oracle.encode()


@given(data=st.data(), version=st.sampled_from(VERSIONS))
@pytest.mark.parametrize("type", VALUE_TYPES)
def test_bodies_agree_with_kafka_python(type, version, data):
    result = type(version=version, topics=data.draw(topics_of(type)))
    written = result.encode()
    assert written == theirs(result)
    read = type.decode(written, version)
    assert read == (without_lost(result) if type is ProduceResponse else result)
    assert read.encode() == written


def test_error_codes_agree_with_kafka_python():
    names = {code: kafka.errors.kafka_errors[code].message for code in ErrorCode if code}
    # kafka-python alone calls this one otherwise.
    assert names.pop(ErrorCode.MESSAGE_TOO_LARGE) == "MESSAGE_SIZE_TOO_LARGE"
    assert names == {code: code.name for code in names}
    assert len(names) == len(ErrorCode) - 2


def test_bodies_have_the_documented_bytes():
    request = ProduceRequest(
        version=2, topics=(TopicPartitions("or", (ProducePartition(7, b"set"),)),), acks=1, timeout_ms=30
    )
    assert request.encode().hex(" ", 2) == bytes.fromhex(
        "0001 0000001e 00000001 0002 6f72 00000001 00000007 00000003 736574"
    ).hex(" ", 2)
    response = FetchResponse(version=3, topics=(TopicPartitions("or", (FetchResult(7, 1, 9, b""),)),))
    assert response.encode() == bytes.fromhex(
        "00000000 00000001 0002 6f72 00000001 00000007 0001 0000000000000009 00000000"
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("type", VALUE_TYPES)
def test_truncated_body_is_rejected_at_every_byte(type, version):
    part_type, fields = PARTS[type]
    numbers = itertools.count(1)
    parts = tuple(
        part_type(*(b"abc" if "binary" in repr(field) else next(numbers) for field in fields)) for _ in range(2)
    )
    data = type(version=version, topics=(TopicPartitions("orders", parts), TopicPartitions("x", ()))).encode()
    for cut in range(len(data)):
        with pytest.raises(lh.DecodeError, match=f"{type._NAME} {version}: ") as raised:
            type.decode(data[:cut], version)
        assert raised.value.code in ("truncated", "count_too_large")
        assert raised.value.byte_offset <= cut
    with pytest.raises(lh.DecodeError, match=rf"1 bytes are left after the last field \(byte {len(data)}\)"):
        type.decode(data + b"\0", version)


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        ("0001 00000000 7fffffff", "count_too_large", r"2147483647 topics do not fit the 0 bytes .* \(byte 6\)"),
        ("0001 00000000 ffffffff", "negative_count", r"the count -1 of topics is negative \(byte 6\)"),
        ("0001 00000000 00000001 ffff 0000 0000", "negative_length", r"the length -1 of topic is negative \(byte 10\)"),
        ("0001 00000000 00000001 0001 ff 00000000", "value_not_utf8", r"topic is not UTF-8 \(byte 12\)"),
        ("0001 00000000 00000001 0000 00000001 00000000 7fffffff", "truncated", "has 2147483647 bytes, and 0 are left"),
        (
            "0001 00000000 00000001 0000 40000000 00000000 00000000",
            "count_too_large",
            "1073741824 partitions do not fit",
        ),
    ],
)
def test_invalid_lengths_and_counts_are_rejected(data, code, text):
    with pytest.raises(lh.DecodeError, match=text) as raised:
        ProduceRequest.decode(bytes.fromhex(data), 4)
    assert raised.value.code == code


@given(data=st.binary(max_size=200), version=st.sampled_from(VERSIONS))
@pytest.mark.parametrize("type", VALUE_TYPES)
def test_any_bytes_are_decoded_or_rejected(type, data, version):
    try:
        read = type.decode(data, version)
    except lh.DecodeError:
        return
    assert read.encode() == data


def test_values_out_of_range_are_rejected_when_encoded():
    with pytest.raises(lh.EncodeError, match="produce request 4: partition 2147483648 does not fit 32 bits"):
        ProduceRequest(version=4, topics=(TopicPartitions("t", (ProducePartition(1 << 31, b""),)),)).encode()
    with pytest.raises(lh.EncodeError, match="the length of topic 40000 does not fit 16 bits"):
        ProduceRequest(version=4, topics=(TopicPartitions("t" * 40_000, ()),)).encode()
    with pytest.raises(TypeError, match="partitions must be ProducePartition, not FetchPartition"):
        ProduceRequest(version=4, topics=(TopicPartitions("t", (FetchPartition(1, 2),)),)).encode()
    with pytest.raises(TypeError, match="message_set must be bytes, not str"):
        ProduceRequest(version=4, topics=(TopicPartitions("t", (ProducePartition(1, "set"),)),)).encode()
    for version in (5, -1):
        with pytest.raises(ValueError, match=f"unknown version {version}: requests have the versions 0, 1, 2, 3, 4"):
            FetchRequest.for_partition("t", 0, 0, version=version)
        with pytest.raises(ValueError, match="unknown version"):
            FetchRequest.decode(b"", version)


# Versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_own_version_returns_appended_bytes(tmp_path, header_format):
    version = 3 if header_format == "int" else 4
    source = samples(12, header_format)
    with log_of(tmp_path, header_format) as log:
        request = ProduceRequest.for_partition("orders", 0, source, version=version, header_format=header_format)
        assert produced(log, request).topics == (TopicPartitions("orders", (ProduceResult(0, 0, 0, -1),)),)
        response = fetched(log, version)
        ((_, part),) = response.partitions()
        assert part == FetchResult(0, 0, 12, b"".join(encoded(source, header_format)))
        assert list(response.messages(header_format)) == list(log.scan())


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_older_consumer_reads_everything_without_headers(tmp_path, header_format, version):
    source = samples(30, header_format)
    with log_of(tmp_path, header_format) as log:
        log.append(source)
        read = list(fetched(log, version).messages(header_format))
    assert len(read) == 30
    for offset, (message, before) in enumerate(zip(read, source, strict=True)):
        delete = before.value is None or bool(before.tombstone)
        assert (message.offset, message.magic, message.headers) == (offset, MAGIC[version], None)
        assert (message.key, message.value) == (before.key, None if delete else before.value)
        assert message.timestamp == (before.timestamp if version == 2 else None)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_new_consumer_reads_older_messages_with_empty_headers(tmp_path, header_format, version):
    source = [{"key": b"k%d" % n, "value": None if n % 3 == 2 else b"v%d" % n, "timestamp": n} for n in range(9)]
    if version < 2:
        source = [{**fields, "timestamp": None} for fields in source]
    with log_of(tmp_path, header_format) as log:
        response = produced(log, ProduceRequest.for_partition("orders", 0, source, version=version)).raise_for_error()
        assert [part.offset for _, part in response.partitions()] == [0]
        read = list(fetched(log, 3 if header_format == "int" else 4).messages(header_format))
    assert len(read) == 9
    for message, before in zip(read, source, strict=True):
        assert (message.magic, message.key, message.value) == (2, before["key"], before["value"])
        assert not message.headers
        assert message.headers == (None if header_format == "wrapper" and before["value"] is None else lh.Headers())
        assert message.tombstone == (before["value"] is None)
        assert message.timestamp == (before["timestamp"] if version == 2 else -1)


def test_older_producer_and_consumer_exchange_unchanged_message(log):
    source = [{"key": b"k", "value": b"v", "timestamp": 5}, {"key": b"k", "value": None, "timestamp": 6}]
    request = ProduceRequest.for_partition("orders", 0, source, version=2)
    produced(log, request)
    ((_, sent),) = request.partitions()
    ((_, got),) = fetched(log, 2).partitions()
    assert got.message_set == sent.message_set


def compressed_sets() -> list[dict]:
    lines = (Path(__file__).parent.parent / "vectors" / "kip82_messages.jsonl").read_text().splitlines()
    cases = [case for case in map(json.loads, lines) if case["op"] == "messages" and case.get("messages")]
    return [case for case in cases if any(codec in case["id"] for codec in ("gzip", "snappy", "lz4"))]


@pytest.mark.parametrize("case", compressed_sets(), ids=lambda case: case["id"].partition("/")[2])
def test_compressed_set_is_decompressed(log, case):
    (magic,) = {message["magic"] for message in case["messages"]}
    part = answer(log, 4 if magic == 2 else 2, bytes.fromhex(case["bytes"]))
    assert (part.error_code, part.offset) == (0, 0)
    read = list(log.scan())
    assert [message.offset for message in read] == list(range(len(case["messages"])))
    for message, expected in zip(read, case["messages"], strict=True):
        value = None if expected["value"] is None else bytes.fromhex(expected["value"])
        assert (message.magic, message.value, message.attributes & 7) == (2, value, 0)
        assert len(message.headers) == len(expected["headers"] or ())
    (data,) = [file.read_bytes() for file in log.path.glob("*.log")]
    assert len(list(lh.messages(data, "kip82-messages"))) == len(read)


def test_requests_of_another_layout_are_converted(tmp_path):
    headers = [("12", lh.Binary(b"x")), ("note", lh.Binary(b"y"))]
    with log_of(tmp_path, "typed") as log:
        log.append([{"key": b"k", "value": b"v", "headers": headers}, {"key": b"k", "headers": headers[:1]}])
        ((_, part),) = fetched(log, 3).partitions()
        assert part.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        with pytest.raises(
            RequestError, match=r"orders-0: UNSUPPORTED_FOR_MESSAGE_FORMAT: kip82-message-int: .* \(header 0\)"
        ):
            list(log.fetch(FetchRequest.for_partition("orders", 0, 0, version=3)).messages())
    with log_of(tmp_path, "typed", on_loss="drop", types_out="be") as log:
        first, second = fetched(log, 3).messages()
        assert first.headers == lh.Headers([(12, b"x")])
        assert (second.headers, second.value, second.tombstone) == (lh.Headers([(12, b"x")]), None, True)
        sent = [{"key": b"k", "value": b"v", "headers": [(5, b"z")]}]
    with log_of(tmp_path, "typed") as log:
        response = produced(log, ProduceRequest.for_partition("orders", 0, sent, version=3))
        with pytest.raises(RequestError, match=r"UNSUPPORTED_FOR_MESSAGE_FORMAT: kip82-message: .* \(header 0\)"):
            response.raise_for_error()
        assert log.next_offset == 2
    with log_of(tmp_path, "typed", on_loss="drop", types_in="binary") as log:
        produced(log, ProduceRequest.for_partition("orders", 0, sent, version=3)).raise_for_error()
        assert [message.headers for message in log.scan(2)] == [lh.Headers([("5", lh.Binary(b"z"))])]


def test_unsuitable_types_are_rejected_on_opening(tmp_path):
    with pytest.raises(ValueError, match="kip82-message has types"):
        log_of(tmp_path, "typed", types_in="be")
    with pytest.raises(ValueError, match="types"):
        log_of(tmp_path, "int", types_out="text")
    log_of(tmp_path, "typed", types_in="binary", types_out="text").close()


def test_integer_keys_convert_to_the_wrapper_and_back(tmp_path):
    """Both header formats have the same headers format; a delete is a bit in one, and a null value in the other."""
    source = [
        {"key": b"a", "value": b"v", "headers": [(5, b"x")], "timestamp": 1},
        {"key": b"b", "value": None, "headers": [(5, b"x")], "timestamp": 1},
        {"key": b"c", "value": None, "timestamp": 1},
    ]
    with log_of(tmp_path, "wrapper") as log:
        produced(log, ProduceRequest.for_partition("orders", 0, source, version=3)).raise_for_error()
        log.append([{"key": b"d", "value": b"why", "headers": [(5, b"x")], "tombstone": True, "timestamp": 1}])
        assert [message.tombstone for message in log.scan()] == [False, True, True, True]
        read = list(fetched(log, 3).messages())
        expected = [*source, {"key": b"d", "value": None, "headers": [(5, b"x")]}]
        for message, before in zip(read, expected, strict=True):
            assert (message.key, message.value) == (before["key"], before["value"])
            assert message.headers == lh.Headers(before.get("headers", ()))
        assert header_format_of(4, log.header_format) == "wrapper"
        assert next(iter(fetched(log, 4, 3).messages("wrapper"))).value == b"why"


# What a log answers ------------------------------------------------------------------------------------------------


def answer(log: MessageLog, version: int, message_set: bytes, topic: str = "orders", partition: int = 0):
    request = ProduceRequest(
        version=version, topics=(TopicPartitions(topic, (ProducePartition(partition, message_set),)),)
    )
    ((_, part),) = produced(log, request).partitions()
    return part


def test_produce_reports_why_nothing_was_appended(log):
    good = encoded(samples(3))
    bad = good[0] + good[1][:-1] + b"?"
    log._max_message_bytes = 500
    large = lh.encode({"offset": 0, "key": b"k", "value": bytes(500)}, MESSAGE_FORMATS["typed"])
    for version, sent, where, code, reason in [
        (4, bad, {}, ErrorCode.CORRUPT_MESSAGE, "message 1: the checksum is"),
        (4, b"".join(good)[:-1], {}, ErrorCode.CORRUPT_MESSAGE, "message 2: "),
        (2, good[0], {}, ErrorCode.CORRUPT_MESSAGE, "message 0 is of magic 2, which version 2 does not have"),
        (4, large, {}, ErrorCode.MESSAGE_TOO_LARGE, "535 bytes, and the log takes 500"),
        (4, good[0], {"topic": "x"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this log is orders-0"),
        (4, good[0], {"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this log is orders-0"),
    ]:
        part = answer(log, version, sent, **where)
        assert (part.error_code, part.offset, part.timestamp) == (code, -1, -1)
        assert reason in part.reason
        assert log.next_offset == 0
        with pytest.raises(RequestError, match=code.name):
            part.raise_for_error("orders")
    assert list(log.scan()) == []
    assert answer(log, 4, b"".join(good)).offset == 0


def test_error_of_one_partition_does_not_affect_another(log):
    (good,) = encoded(samples(1))
    parts = (ProducePartition(1, good), ProducePartition(0, good), ProducePartition(0, b"?"), ProducePartition(0, good))
    response = produced(
        log, ProduceRequest(version=4, topics=(TopicPartitions("x", ()), TopicPartitions("orders", parts)))
    )
    codes = [(part.error_code, part.offset) for _, part in response.partitions()]
    assert codes == [(3, -1), (0, 0), (2, -1), (0, 1)]
    with pytest.raises(RequestError, match="orders-1: UNKNOWN_TOPIC_OR_PARTITION: this log is orders-0"):
        response.raise_for_error()
    assert repr(response) == (
        "<produce response 4: orders-1: UNKNOWN_TOPIC_OR_PARTITION, orders-0: offset 0, "
        "orders-0: CORRUPT_MESSAGE, orders-0: offset 1>"
    )


def test_fetch_respects_offset_and_max_bytes(log):
    log.append(samples(10))
    parts = encoded(samples(10))
    for offset in range(11):
        for max_bytes in (0, 1, len(parts[0]), 200, 1 << 20):
            ((_, part),) = fetched(log, 4, offset, max_bytes=max_bytes).partitions()
            expected = []
            for message in parts[offset:]:
                if expected and sum(map(len, expected)) + len(message) > max_bytes:
                    break
                expected.append(message)
            assert part == FetchResult(0, 0, 10, b"".join(expected)), (offset, max_bytes)
    for offset in (-1, 11):
        ((_, part),) = log.fetch(FetchRequest.for_partition("orders", 0, offset, version=4)).partitions()
        assert (part.error_code, part.high_watermark, part.message_set) == (ErrorCode.OFFSET_OUT_OF_RANGE, 10, b"")
        assert part.reason == f"offset {offset} is not in 0 to 10"
    ((_, part),) = log.fetch(FetchRequest.for_partition("payments", 0, 0, version=4)).partitions()
    assert (part.error_code, part.reason) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this log is orders-0")


def test_fetch_returns_messages_before_damage_then_error(log):
    log.append(samples(3))
    file = log.path / "00000000000000000000.log"
    parts = encoded(samples(3))
    data = bytearray(file.read_bytes())
    data[len(parts[0]) + 30] ^= 1
    file.write_bytes(data)
    assert [message.offset for message in fetched(log, 4).messages()] == [0]
    with pytest.raises(RequestError, match=f"CORRUPT_MESSAGE: {file}: bytes {len(parts[0])} to .*the checksum is"):
        list(log.fetch(FetchRequest.for_partition("orders", 0, 1, version=4)).messages())
    assert [message.offset for message in fetched(log, 4, 2).messages()] == [2]


def test_response_has_the_append_time(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 42_000_000_000)
    with log_of(tmp_path, "typed", timestamps="append") as log:
        request = ProduceRequest.for_partition("orders", 0, [sample(0)], version=4)
        ((_, part),) = produced(log, request).partitions()
        assert part.timestamp == 42_000
        (message,) = fetched(log, 2).messages()
        assert (message.timestamp, message.attributes) == (42_000, 8)


def test_acks_minus_one_flushes_to_disk(tmp_path, monkeypatch):
    import os

    synced = []
    fsync = os.fsync
    with log_of(tmp_path, "typed", sync="flush") as log:
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(1) or fsync(descriptor))
        for acks, times in ((1, 0), (0, 0), (-1, 1)):
            synced.clear()
            produced(
                log, ProduceRequest.for_partition("orders", 0, [sample(0)], version=4, acks=acks)
            ).raise_for_error()
            assert len(synced) == times


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("headers", [{"a": b"x"}, {"a": lh.Int32(3)}, {5: b"x"}, [("a", None)]])
@pytest.mark.parametrize(("header_format", "other"), [("typed", 4), ("int", 3), ("wrapper", 4)])
def test_headers_in_older_version_name_version_that_has_them(version, headers, header_format, other):
    sent = [{"key": b"k"}, {"key": b"k", "headers": headers}]
    with pytest.raises(lh.ConversionError) as caught:
        ProduceRequest.for_partition("orders", 0, sent, version=version, header_format=header_format)
    error = caught.value
    assert (error.format, error.code) == ("kip82-message", "field_not_carried")
    assert error.message == (
        f"message 1 has headers, and version {version} writes message format {MAGIC[version]}, which carries none: "
        f"use version={other}, or remove the headers"
    )


@pytest.mark.parametrize("headers", [None, {}, []])
def test_older_version_accepts_messages_without_headers(headers):
    sent = [{"key": b"k", "value": b"v", "headers": headers}]
    ((_, part),) = ProduceRequest.for_partition("orders", 0, sent, version=2).partitions()
    [message] = part.messages(2)
    assert (message.magic, message.key, message.value, message.headers) == (1, b"k", b"v", None)


def test_headers_in_an_older_version_are_not_dropped():
    with pytest.raises(lh.ConversionError, match="message 0 has headers, and version 2 writes message format 1"):
        ProduceRequest.for_partition("orders", 0, [sample(0)], version=2)
    ((_, part),) = ProduceRequest.for_partition("orders", 0, [sample(0)], version=4).partitions()
    assert list(part.messages(4)) == list(lh.messages(part.message_set, BATCH_FORMATS["typed"]))


# Sizes at their bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_message_may_have_exactly_the_largest_size(tmp_path, header_format):
    size = len(encoded([sample(0, header_format)], header_format)[0])
    for room, code in ((0, ErrorCode.NONE), (-1, ErrorCode.MESSAGE_TOO_LARGE)):
        with MessageLog(
            tmp_path / f"orders-{-room}", header_format, max_message_bytes=size + room, topic="orders"
        ) as log:
            version = 3 if header_format == "int" else 4
            request = ProduceRequest.for_partition(
                "orders", -room, [sample(0, header_format)], version=version, header_format=header_format
            )
            ((_, part),) = log.produce(request).partitions()
            assert part.error_code == code
            if code == ErrorCode.NONE:
                assert log.append([sample(0, header_format)]) == range(1, 2)
                continue
            with pytest.raises(lh.EncodeError) as caught:
                log.append([sample(0, header_format)])
            assert caught.value.code == "too_large"


def test_fetch_returns_messages_up_to_exactly_the_requested_size(tmp_path):
    sizes = [len(data) for data in encoded(samples(3))]
    with log_of(tmp_path, "typed") as log:
        log.append(samples(3))
        for room, count in ((0, 2), (-1, 1), (sizes[2] - 1, 2), (sizes[2], 3)):
            response = fetched(log, 4, max_bytes=sizes[0] + sizes[1] + room)
            assert [message.offset for message in response.messages()] == list(range(count))
        assert [message.offset for message in fetched(log, 4, max_bytes=0).messages()] == [0]


def test_compressed_set_has_exactly_the_largest_content(tmp_path):
    sizes = [len(data) for data in encoded(samples(2))]
    for number, (room, sets) in enumerate(((0, 1), (-1, 2))):
        path = tmp_path / f"orders-{number}"
        with MessageLog(path, codec="gzip", max_message_bytes=sum(sizes) + room) as log:
            log.append(samples(2))
            assert [message.offset for message in log.scan()] == [0, 1]
        data = (path / "00000000000000000000.log").read_bytes()
        count = 0
        while data:
            count, data = count + 1, data[12 + int.from_bytes(data[8:12], "big") :]
        assert count == sets
