"""Writing record batches: what Kafka wrote is written again, and what cannot be written says why."""

from __future__ import annotations

from typing import Any

import pytest

import letterhead as lh
from letterhead import _native
from vector_checks import read_lines

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def whole_batches(vectors: Any) -> list[tuple[dict[str, Any], dict[str, Any], bytes]]:
    """Give the batches of format 2 with their lines and bytes."""
    found = []
    for line in read_lines(vectors, "record_batches"):
        data, at = bytes.fromhex(line["hex"]), 0
        for batch in line["batches"]:
            size = batch["size_in_bytes"]
            if batch["magic"] == 2:
                found.append((line, batch, data[at : at + size]))
            at += size
    return found


def test_batches_of_kafka_are_written_again_byte_by_byte(vectors):
    written = 0
    for line, batch, data in whole_batches(vectors):
        messages = list(lh.messages(data, "record-batch"))
        assert len(messages) == batch["count"], line["id"]
        if not messages:
            continue
        made = lh.batch(messages, codec=batch["compression"])
        assert list(lh.messages(made, "record-batch")) == messages, line["id"]
        # Some things of a batch are in none of its messages: the leader's epoch, the times that the log replaced by its
        # own, and of a compacted one its first offset and the time until which its tombstones stay. Compressed bytes
        # depend on the compressor.
        plain = batch["compression"] == "none" and batch["delete_horizon_ms"] is None
        plain = plain and batch["timestamp_type"] == "CreateTime"
        last = int(batch["last_offset"]) == messages[-1].offset and int(batch["base_offset"]) == messages[0].offset
        largest = max(message.timestamp for message in messages) == int(batch["max_timestamp"])
        if plain and last and largest:
            epoch = batch["partition_leader_epoch"].to_bytes(4, "big", signed=True)
            assert made[:12] + epoch + made[16:] == data, line["id"]
            written += 1
    assert written >= 5


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_back(codec):
    given = [
        lh.Envelope(
            offset=5 + 3 * n, timestamp=1_767_225_600_000 - n, key=None, value=b"v" * n, headers=[("n", None)] * n
        )
        for n in range(40)
    ]
    data = lh.batch(given, codec=codec)
    fields = ("offset", "timestamp", "key", "value", "headers")
    read = list(lh.messages(data, "record-batch"))
    assert [[getattr(message, name) for name in fields] for message in read] == [
        [getattr(message, name) for name in fields] for message in given
    ]
    assert {(message.timestamp_type, message.producer_id, message.sequence) for message in read} == {(0, None, None)}


def test_a_producer_its_sequence_and_flags_are_those_of_the_batch():
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
def test_what_no_batch_can_hold_is_refused(messages, code, row, text):
    with pytest.raises(lh.EncodeError, match=text) as caught:
        lh.batch(messages)
    assert (caught.value.code, caught.value.row, caught.value.format) == (code, row, "record-batch")


def test_values_with_kinds_need_a_spelling():
    message = {"headers": [("retry", lh.Int32(3))]}
    with pytest.raises(lh.ConversionError, match=r"to write int32 values"):
        lh.batch([message])
    data = lh.batch([message], kinds="be")
    assert next(lh.messages(data, "record-batch")).headers["retry"] == b"\0\0\0\3"


def test_arguments_that_make_no_sense():
    with pytest.raises(ValueError, match="one record at least"):
        lh.batch([])
    with pytest.raises(ValueError, match="unknown codec 'lz5': did you mean 'lz4'"):
        lh.batch([{}], codec="lz5")
    with pytest.raises(ValueError, match="iggy-batch is read only"):
        lh.batch([{}], "iggy-batch")
    with pytest.raises(ValueError, match="kafka is no batch but a block: write it with encode"):
        lh.batch([{}], "kafka")
    with pytest.raises(ValueError, match="did you mean 'offset'"):
        lh.batch([{"ofset": 1}])


def test_headers_of_batches_are_found_in_any_buffer():
    log = lh.batch([{"offset": 5}, {"offset": 9}]) + lh.batch([{"offset": 12, "producer_id": 3}], codec="lz4")
    first = len(lh.batch([{"offset": 5}, {"offset": 9}]))
    found, end = _native.record_batches(log)
    assert [(head[0], *head[2:4], *head[7:]) for head in found] == [(0, 5, 9, -1, 2), (first, 12, 12, 3, 1)]
    assert end == len(log)
    for buffer in (bytearray(log), memoryview(log), memoryview(b"?" + log)[1:]):
        assert _native.record_batches(buffer) == (found, end)
    assert _native.record_batches(log, first) == (found[1:], end)
    assert _native.record_batches(log, 0, 1) == (found[:1], first)
    assert _native.record_batches(log, len(log) + 7) == ([], len(log))
    assert _native.record_batches(log[:-1]) == (found[:1], first)
    assert _native.record_batches(b"") == ([], 0)
    with pytest.raises((ValueError, BufferError), match="contiguous"):
        _native.record_batches(memoryview(log)[::2])
