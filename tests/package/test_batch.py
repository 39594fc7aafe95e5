"""Writing batches: what Kafka wrote is written again, and what cannot be written is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest

import letterhead as lh
from letterhead import _native
from letterhead.kip82.header_formats import BATCH_FORMATS, MESSAGE_FORMATS
from letterhead.kip82.header_formats import CODECS as SET_CODECS
from tests.helpers.log_samples import HEADER_FORMATS, samples
from tests.helpers.vector_checks import read_lines
from tests.reference import codecs as reference_codecs

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def whole_batches(vectors: Any) -> list[tuple[dict[str, Any], dict[str, Any], bytes]]:
    """Return the batches of format 2 with their lines and bytes."""
    batches = []
    for line in read_lines(vectors, "record_batches"):
        data, at = bytes.fromhex(line["hex"]), 0
        for batch in line["batches"]:
            size = batch["size_in_bytes"]
            if batch["magic"] == 2:
                batches.append((line, batch, data[at : at + size]))
            at += size
    return batches


def test_kafka_batches_are_rewritten_byte_for_byte(vectors):
    written = 0
    for line, batch, data in whole_batches(vectors):
        messages = list(lh.messages(data, "record-batch"))
        assert len(messages) == batch["count"], line["id"]
        if not messages:
            continue
        result = lh.batch(messages, codec=batch["compression"])
        assert list(lh.messages(result, "record-batch")) == messages, line["id"]
        # Some things of a batch are in none of its messages: the leader's epoch, the times that the log replaced by its
        # own, and of a compacted one its first offset and the time until which its tombstones stay. Compressed bytes
        # depend on the compressor.
        plain = batch["compression"] == "none" and batch["delete_horizon_ms"] is None
        plain = plain and batch["timestamp_type"] == "CreateTime"
        last = int(batch["last_offset"]) == messages[-1].offset and int(batch["base_offset"]) == messages[0].offset
        largest = max(message.timestamp for message in messages) == int(batch["max_timestamp"])
        if plain and last and largest:
            epoch = batch["partition_leader_epoch"].to_bytes(4, "big", signed=True)
            assert result[:12] + epoch + result[16:] == data, line["id"]
            written += 1
    assert written >= 5


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_round_trips(codec):
    source = [
        lh.Message(
            offset=5 + 3 * n, timestamp=1_767_225_600_000 - n, key=None, value=b"v" * n, headers=[("n", None)] * n
        )
        for n in range(40)
    ]
    data = lh.batch(source, codec=codec)
    fields = ("offset", "timestamp", "key", "value", "headers")
    read = list(lh.messages(data, "record-batch"))
    assert [[getattr(message, name) for name in fields] for message in read] == [
        [getattr(message, name) for name in fields] for message in source
    ]
    assert {(message.timestamp_type, message.producer_id, message.sequence) for message in read} == {(0, None, None)}


def test_producer_sequence_and_flags_come_from_batch():
    first = {"offset": 1, "producer_id": 9, "producer_epoch": 2, "sequence": 2**31 - 1, "transactional": True}
    shared = {name: value for name, value in first.items() if name not in ("offset", "sequence")}
    data = lh.batch([first, {"offset": 2, **shared}, {"offset": 4, **shared}])
    read = list(lh.messages(data, "record-batch"))
    assert [(m.offset, m.producer_id, m.producer_epoch, m.sequence, m.transactional) for m in read] == [
        (1, 9, 2, 2**31 - 1, True),
        (2, 9, 2, 0, True),
        (4, 9, 2, 2, True),
    ]


@pytest.mark.parametrize(
    ("messages", "code", "row", "text"),
    [
        ([{"offset": 3}, {"offset": 3}], "out_of_range", 1, "offset 3 is not after 3"),
        ([{"offset": 0}, {"offset": 1 << 31}], "out_of_range", 1, "too far from the first"),
        ([{}, {"producer_id": 4}], "field_not_carried", 1, "not those of the batch's first record"),
        (
            [{"timestamp_type": 1, "timestamp": 5}, {"timestamp_type": 1, "timestamp": 6}],
            "field_not_carried",
            1,
            "one timestamp",
        ),
        ([{"producer_epoch": 1 << 15}], "out_of_range", None, "16 bits"),
        ([{"sequence": 1 << 31}], "out_of_range", None, "32 bits"),
    ],
)
def test_messages_that_no_batch_can_hold_are_rejected(messages, code, row, text):
    with pytest.raises(lh.EncodeError, match=text) as caught:
        lh.batch(messages)
    assert (caught.value.code, caught.value.row, caught.value.format) == (code, row, "record-batch")


def test_typed_values_need_types_option():
    message = {"headers": [("retry", lh.Int32(3))]}
    with pytest.raises(lh.ConversionError, match=r"to write int32 values"):
        lh.batch([message])
    data = lh.batch([message], types="be")
    assert next(lh.messages(data, "record-batch")).headers["retry"] == b"\0\0\0\3"


def test_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match="record-batch needs at least one message"):
        lh.batch([])
    with pytest.raises(ValueError, match="unknown codec 'lz5': did you mean 'lz4'"):
        lh.batch([{}], codec="lz5")
    with pytest.raises(ValueError, match="iggy-batch is read only"):
        lh.batch([{}], "iggy-batch")
    with pytest.raises(ValueError, match="kafka is not a batch format but a headers format: write it with encode"):
        lh.batch([{}], "kafka")
    with pytest.raises(ValueError, match="did you mean 'offset'"):
        lh.batch([{"ofset": 1}])


def test_batch_headers_are_found_in_any_buffer():
    log = lh.batch([{"offset": 5}, {"offset": 9}]) + lh.batch([{"offset": 12, "producer_id": 3}], codec="lz4")
    first = len(lh.batch([{"offset": 5}, {"offset": 9}]))
    heads, end = _native.record_batches(log)
    assert [(head[0], *head[2:4], *head[7:]) for head in heads] == [(0, 5, 9, -1, 2), (first, 12, 12, 3, 1)]
    assert end == len(log)
    for buffer in (bytearray(log), memoryview(log), memoryview(b"?" + log)[1:]):
        assert _native.record_batches(buffer) == (heads, end)
    assert _native.record_batches(log, first) == (heads[1:], end)
    assert _native.record_batches(log, 0, 1) == (heads[:1], first)
    assert _native.record_batches(log, len(log) + 7) == ([], len(log))
    assert _native.record_batches(log[:-1]) == (heads[:1], first)
    assert _native.record_batches(b"") == ([], 0)
    # The beginning of a log has the headers of batches that end in the rest.
    assert _native.record_batches(log[:61], 0, None, len(log) - 61) == (heads[:1], first)
    assert _native.record_batches(log[:61], 0, None, first - 62) == ([], 0)
    assert _native.record_batches(log[: first + 61], 0, None, len(log) - first - 61) == (heads, end)
    assert _native.record_batches(log[:60], 0, None, len(log) - 60) == ([], 0)
    with pytest.raises((ValueError, BufferError), match="contiguous"):
        _native.record_batches(memoryview(log)[::2])


# Message sets ------------------------------------------------------------------------------------------------------


def outer_and_content(data: bytes, format: str = "kip82-message") -> tuple[dict[str, Any], bytes]:
    """Return the fields of the message that holds a compressed set, and the decompressed set."""
    outer = lh.decode(data, format)._asdict()
    content = reference_codecs.decompress(outer["attributes"] & 7, outer.pop("value"), legacy=outer["magic"] == 0)
    outer.pop("crc")
    return outer, content


def test_compressed_kafka_sets_are_rewritten(vectors):
    """All but the compressed bytes themselves, which depend on the compressor, is what Kafka wrote."""
    written = set()
    for line in read_lines(vectors, "record_batches"):
        data = bytes.fromhex(line["hex"])
        magic = line["batches"][0]["magic"] if line["batches"] else 2
        if magic == 2:
            continue
        codec = line["batches"][0]["compression"]
        messages = list(lh.messages(data, "kip82-messages"))
        result = lh.batch(messages, "kip82-messages", codec=codec)
        if codec == "none":
            assert result == data, line["id"]
        else:
            assert outer_and_content(result) == outer_and_content(data), line["id"]
        assert list(lh.messages(result, "record-batch")) == list(lh.messages(data, "record-batch")), line["id"]
        written.add((magic, codec))
    assert written == {(magic, codec) for magic in (0, 1) for codec in SET_CODECS}


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_compressed_sets_of_vectors_are_rewritten(vectors, header_format):
    written = 0
    for line in read_lines(vectors, BATCH_FORMATS[header_format].replace("-", "_")):
        data = bytes.fromhex(line["bytes"])
        if not line.get("messages") or len(data) != 12 + int.from_bytes(data[8:12]):
            continue  # an error, or several messages and sets in one message
        outer = lh.decode(data, MESSAGE_FORMATS[header_format])
        messages = list(lh.messages(data, BATCH_FORMATS[header_format]))
        # The messages of a set with log append time keep attributes of their own, from which a set is written.
        source = [message._replace(attributes=message.attributes | outer.attributes & 8) for message in messages]
        result = lh.batch(source, BATCH_FORMATS[header_format], codec=SET_CODECS[outer.attributes & 7])
        assert [message._replace(crc=None) for message in lh.messages(result, BATCH_FORMATS[header_format])] == [
            message._replace(crc=None) for message in source
        ], line["id"]
        written += outer.attributes & 7 > 0
    assert written >= 15


@pytest.mark.parametrize("timed", [0, 8])
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", SET_CODECS)
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_set_messages_round_trip(header_format, codec, magic, timed):
    source = []
    for number, message in enumerate(samples(7, header_format)):
        fields = {"offset": 1000 + 3 * number, "magic": magic, "attributes": timed if magic else 0}
        if magic < 2:
            fields |= {"headers": None, "tombstone": None}
        fields |= {} if magic else {"timestamp": None}
        fields |= {"timestamp": 5000} if timed and magic else {}
        source.append(lh.Message(**{**message._asdict(), **fields}))
    data = lh.batch(source, BATCH_FORMATS[header_format], codec=codec)
    # What a single message is read back as: with its checksum, bit 4 and headers that are none.
    assert list(lh.messages(data, BATCH_FORMATS[header_format])) == [
        lh.decode(lh.encode(message, MESSAGE_FORMATS[header_format]), MESSAGE_FORMATS[header_format])
        for message in source
    ]
    if codec != "none":
        outer = lh.decode(data, MESSAGE_FORMATS[header_format])
        assert (outer.offset, outer.magic, outer.key) == (1018, magic, None)
        largest = max(message.timestamp or 0 for message in source)
        assert outer.timestamp == (largest if magic else None)
        assert outer.attributes == SET_CODECS.index(codec) | (timed if magic else 0)
        _, content = outer_and_content(data, MESSAGE_FORMATS[header_format])
        assert int.from_bytes(content[:8], "big") == (0 if magic else 1000)


@pytest.mark.parametrize(
    ("messages", "code", "row", "text"),
    [
        ([{"offset": 3}, {"offset": 3}], "out_of_range", 1, "offset 3 is not after 3"),
        ([{"offset": (1 << 63) - 1}, {}], "out_of_range", 1, "is not after"),
        ([{"magic": 1}, {"magic": 2}], "bad_magic", 1, "magic 2 inside a set of magic 1"),
        ([{"magic": 3}], "bad_magic", 0, "magic 3 is unknown"),
        ([{}, {"attributes": 1}], "bad_attributes", 1, "a compressed set is no message of a set"),
        ([{"attributes": 8}, {}], "field_not_carried", 1, "one timestamp type"),
        (
            [{"attributes": 8, "timestamp": 1}, {"attributes": 8, "timestamp": 2}],
            "field_not_carried",
            1,
            "one timestamp",
        ),
    ],
)
def test_messages_that_no_compressed_set_can_hold_are_rejected(messages, code, row, text):
    with pytest.raises(lh.EncodeError, match=text) as caught:
        lh.batch(messages, "kip82-messages", codec="gzip")
    assert (caught.value.code, caught.value.row) == (code, row)


def test_set_of_single_messages_may_mix_magics():
    source = [{"magic": magic, "value": b"v"} for magic in (2, 0, 1)]
    read = list(lh.messages(lh.batch(source, "kip82-messages"), "kip82-messages"))
    assert [(message.offset, message.magic) for message in read] == [(0, 2), (1, 0), (2, 1)]


def test_headers_not_carried_by_set_are_losses():
    source = [{"magic": 1, "headers": [("retry", lh.Int32(3))]}]
    with pytest.raises(lh.ConversionError, match=r"magic 1 has no headers \(row 0\)"):
        lh.batch(source, "kip82-messages", codec="gzip")
    (message,) = lh.messages(lh.batch(source, "kip82-messages", codec="gzip", on_loss="drop"), "kip82-messages")
    assert message.headers is None


def test_unknown_codecs_and_empty_sets_are_rejected():
    with pytest.raises(ValueError, match="kip82-messages-int has no codec zstd: choose one of none, gzip, snappy, lz4"):
        lh.batch([{}], "kip82-messages-int", codec="zstd")
    with pytest.raises(ValueError, match="needs at least one message"):
        lh.batch([], "kip82-messages")
