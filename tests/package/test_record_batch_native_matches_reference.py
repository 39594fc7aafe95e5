"""The plain-Python reader of record batches against what Kafka reads, and what it says of bytes that are none."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import DecodeError
from tests.helpers.log_bytes import batch, record
from tests.reference import codecs, ops, varint
from tests.reference.crc32c import crc32c

Line = dict[str, Any]

TYPES = {"NoTimestampType": None, "CreateTime": 0, "LogAppendTime": 1}


@pytest.fixture(scope="module")
def lines(vectors: Path) -> dict[str, Line]:
    parsed = (json.loads(line) for line in (vectors / "record_batches.jsonl").read_text().splitlines())
    return {line["id"]: line for line in parsed}


def data_of(line: Line) -> bytes:
    return bytes.fromhex(line["hex"])


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def known(number: Any) -> int | None:
    return None if int(number) == -1 else int(number)


def as_kafka_reads(line: Line) -> list[dict[str, Any]]:
    """Return the records of a case as the format names their parts."""
    return [
        {
            "offset": int(record["offset"]),
            "timestamp": int(record["timestamp"]) if batch["magic"] else None,
            "timestamp_type": TYPES[batch["timestamp_type"]],
            "key": unhex(record["key"]),
            "value": unhex(record["value"]),
            "headers": [(header["key"], None, unhex(header["value"])) for header in record["headers"]]
            if batch["magic"] == 2
            else None,
            "producer_id": known(batch.get("producer_id", -1)),
            "producer_epoch": known(batch.get("producer_epoch", -1)),
            "sequence": known(record["sequence"]),
            "transactional": batch.get("transactional") or False,
            "control": batch.get("control") or False,
        }
        for batch in line["batches"]
        for record in batch["records"]
    ]


# --- what Kafka wrote ------------------------------------------------------------------------------------------------


def test_every_case_is_read_like_kafka(lines: dict[str, Line]) -> None:
    assert len(lines) == 57
    read = 0
    for name, line in lines.items():
        expected = as_kafka_reads(line)
        assert ops.messages(data_of(line), "record-batch", lenient=True) == expected, name
        read += len(expected)
        whole = sum(batch["size_in_bytes"] for batch in line["batches"]) == len(data_of(line))
        assert (ops.validate(data_of(line), "record-batch") == []) == whole, name
    assert read == 195


def test_trailing_bytes_of_batch_raise_unless_lenient(lines: dict[str, Line]) -> None:
    data = data_of(lines["v2-two-batches-39"])
    first = lines["v2-two-batches-39"]["batches"][0]
    whole = ops.messages(data, "record-batch")
    for cut in range(first["size_in_bytes"] + 1, len(data)):
        [detail] = ops.validate(data[:cut], "record-batch")
        assert detail.code == "truncated"
        assert detail.message.startswith("message 2: ")
        assert ops.messages(data[:cut], "record-batch", lenient=True) == whole[: first["count"]]


def test_every_changed_byte_of_batch_is_detected(lines: dict[str, Line]) -> None:
    for name in ("v2-none-idempotent-3", "v2-lz4-idempotent-15", "v2-zstd-transactional-22"):
        data = data_of(lines[name])
        expected = as_kafka_reads(lines[name])
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= 0x10
            try:
                read = ops.messages(bytes(changed), "record-batch")
            except DecodeError:
                continue
            # The checksum does not cover what a broker writes: the offset, and the epoch of the leader.
            assert at < 8 or 12 <= at < 16, at
            shift = read[0]["offset"] - expected[0]["offset"]
            assert read == [{**message, "offset": message["offset"] + shift} for message in expected]


# --- by hand ---------------------------------------------------------------------------------------------------------


def only_detail(data: bytes, **options: bool) -> tuple[str, str, int | None]:
    [detail] = ops.validate(data, "record-batch", **options)
    return detail.code, detail.message, detail.byte_offset


def test_checksum_is_crc32c() -> None:
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, appendix B.4


def test_sequence_after_largest_is_0() -> None:
    numbers = (5, 1, 0x7FFF_FFFE)
    read = ops.messages(batch(record(0), record(1), record(2), record(7), producer=numbers), "record-batch")
    assert [message["sequence"] for message in read] == [0x7FFF_FFFE, 0x7FFF_FFFF, 0, 5]
    assert {(message["producer_id"], message["producer_epoch"]) for message in read} == {(5, 1)}


def test_log_append_time_applies_to_every_record() -> None:
    read = ops.messages(batch(record(time=5), record(1, time=6), attributes=8), "record-batch")
    assert [(message["timestamp"], message["timestamp_type"]) for message in read] == [(2000, 1), (2000, 1)]
    read = ops.messages(batch(record(time=5), record(1, time=-6)), "record-batch")
    assert [(message["timestamp"], message["timestamp_type"]) for message in read] == [(1005, 0), (994, 0)]


def test_record_without_header_count_is_truncated() -> None:
    data = batch(record(block=b""))
    assert only_detail(data) == ("truncated", "message 0: the record ends before its header count", len(data))


def test_record_count_larger_than_records_is_error() -> None:
    data = batch(record(), record(1), count=4)
    assert only_detail(data) == ("count_too_large", "message 2: the batch announces 4 records and has 2", 57)


def test_bytes_after_last_record_are_error() -> None:
    data = batch(record(), record(1), count=1)
    assert only_detail(data) == ("trailing_bytes", "message 1: 9 bytes left after the last record", 70)


def test_negative_record_count_is_error() -> None:
    assert only_detail(batch(count=-1)) == ("negative_count", "message 0: record count -1 is negative", 57)


def test_batch_emptied_by_compaction_has_no_records() -> None:
    assert ops.messages(batch(), "record-batch") == []
    assert ops.validate(batch(), "record-batch") == []


@pytest.mark.parametrize("codec", range(8))
def test_empty_batch_without_bytes_is_valid_in_every_codec(codec: int) -> None:
    data = batch(attributes=codec)
    following = batch(record())
    assert ops.messages(data, "record-batch") == list(lh.messages(data, "record-batch")) == []
    assert ops.validate(data, "record-batch") == lh.validate(data, "record-batch") == []
    assert len(list(lh.messages(data + following, "record-batch"))) == 1


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_bytes_in_empty_batch_are_error(codec: int) -> None:
    garbage = batch(b"\1\2\3", count=0, attributes=codec)
    assert [error.code for error in lh.validate(garbage, "record-batch")] == ["bad_compression"]
    assert [error.code for error in ops.validate(garbage, "record-batch")] == ["bad_compression"]
    plain = batch(record(), count=0)
    assert [error.code for error in lh.validate(plain, "record-batch")] == ["trailing_bytes"]


def test_unknown_magic_leaves_next_batch_readable() -> None:
    data = batch(record(), magic=3) + batch(record(), base_offset=101)
    assert only_detail(data) == ("bad_magic", "message 0: magic 3 is unknown: 0, 1 and 2 are known", 16)
    read = ops.messages_rows([data], "record-batch", columns=["offset"], errors="null")
    assert read == [{"offset": None}, {"offset": 101}]


def test_batch_too_short_for_magic_is_error() -> None:
    data = struct.pack(">qi", 0, 2) + b"ab" + batch(record())
    assert only_detail(data) == ("wrong_size", "message 0: a batch of 2 bytes has no magic", 12)


def test_batch_with_wrong_checksum_returns_no_record() -> None:
    good = batch(record(), record(1))
    bad = good[:-1] + b"\1"
    code, message, byte = only_detail(bad + good)
    assert (code, byte) == ("bad_crc", 17)
    assert message.startswith("message 0: the checksum is ")
    read = ops.messages_rows([bad + good], "record-batch", columns=["offset"], errors="null")
    assert read == [{"offset": None}, {"offset": 100}, {"offset": 101}]


def test_damaged_record_leaves_next_one_readable() -> None:
    broken = varint.write(3) + b"\0\0\0"
    data = batch(record(), broken, record(2))
    assert only_detail(data)[:2] == ("truncated", "message 1: the bytes end inside the key length")
    read = ops.messages_rows([data], "record-batch", columns=["offset"], errors="null")
    assert [message["offset"] for message in read] == [100, None, 102]


def test_damaged_headers_leave_record_readable() -> None:
    data = batch(record(block=b"\2\2a\0\0"), record(1))
    assert only_detail(data)[0] == "trailing_bytes"
    [first, second] = ops.messages_rows([data], "record-batch", errors="column")
    assert (first["offset"], first["headers"], second["headers"]) == (100, None, [])
    assert [detail.code for detail in first["error"]] == ["trailing_bytes"]


def test_wrong_record_length_ends_only_its_batch() -> None:
    data = batch(record(), varint.write(-4) + b"abc", record(2)) + batch(record(), base_offset=103)
    assert only_detail(data)[:2] == ("negative_length", "message 1: record length -4 is negative")
    read = ops.messages_rows([data], "record-batch", columns=["offset"], errors="null")
    assert [message["offset"] for message in read] == [100, None, 103]


def test_ten_byte_varint_carries_64_bits_and_no_more() -> None:
    def with_time(written: bytes) -> bytes:
        body = b"\0" + written + b"\0\1\1\0"
        return batch(varint.write(len(body)) + body, times=(0, 0))

    [read] = ops.messages(with_time(varint.write(-(1 << 63), 64)), "record-batch")
    assert read["timestamp"] == -(1 << 63)
    assert only_detail(with_time(b"\xff" * 9 + b"\2"))[0] == "varint_lost_bits"
    assert only_detail(with_time(b"\xff" * 10 + b"\1"))[0] == "varint_too_long"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_errors(codec: int) -> None:
    data = batch(record(), attributes=codec)
    assert only_detail(data) == ("unknown_codec", f"message 0: codec {codec} is unknown", 21)


def test_compressed_record_errors_point_to_records_position() -> None:
    def squeezed(content: bytes, count: int) -> bytes:
        return batch(gzip.compress(content), attributes=1, count=count)

    assert only_detail(squeezed(record(block=b""), 1))[::2] == ("truncated", 61)
    assert only_detail(squeezed(record(), 2))[::2] == ("count_too_large", 61)
    assert only_detail(squeezed(record() + b"?", 1))[::2] == ("trailing_bytes", 61)
    assert only_detail(batch(gzip.compress(record())[:-1], attributes=1))[::2] == ("bad_compression", 61)


def test_records_over_decompression_limit_are_not_created() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes((64 << 20) + 1))
    assert only_detail(batch(bomb, attributes=4))[::2] == ("decompressed_too_large", 61)


# --- zstd ------------------------------------------------------------------------------------------------------------


def test_concatenated_zstd_frames_are_one_content() -> None:
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    data = compressor.compress(b"one, ") + compressor.compress(b"two" * 1000)
    assert codecs.decompress(4, data) == b"one, " + b"two" * 1000
    assert codecs.decompress(4, data, limit=3005) == b"one, " + b"two" * 1000
    with pytest.raises(codecs.Undecodable, match="would pass 3004 bytes"):
        codecs.decompress(4, data, limit=3004)


def test_corrupt_zstd_frames_are_rejected() -> None:
    good = zstandard.ZstdCompressor(write_checksum=True).compress(b"some content, some content")
    for cut in range(len(good)):
        with pytest.raises(codecs.Undecodable, match="the zstd data is corrupt: it ends too early"):
            codecs.decompress(4, good[:cut])
    for bad in (good[:-1] + b"\0", b"no zstd at all", good + b"no zstd at all"):
        with pytest.raises(codecs.Undecodable, match="the zstd data is corrupt: a header, block or checksum is wrong"):
            codecs.decompress(4, bad)


# --- the kernel ------------------------------------------------------------------------------------------------------


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the reference implementation in the form that Arrow returns."""
    headers = row["headers"] and [{"key": key, "value": value} for key, _, value in row["headers"]]
    error = row["error"] and [detail._asdict() for detail in row["error"]]
    return {**row, "headers": headers, "error": error}


def vague(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out why compressed data are corrupt: what two decoders stumble over first is their own."""
    for detail in row["error"] or ():
        if detail["code"] == "bad_compression":
            detail["message"], _, _ = detail["message"].partition(" corrupt: ")
    return row


def resealed(data: bytes) -> bytes:
    """Make the checksum of the first batch hold again, so that what is behind it is read."""
    end = 12 + int.from_bytes(data[8:12], "big")
    return data[:17] + struct.pack(">I", crc32c(data[21:end])) + data[21:]


def check_alike(messages: list[bytes], *, lenient: bool) -> None:
    column = pa.array(messages, pa.binary())
    result = lha.messages(column, "record-batch", errors="column", lenient=lenient).to_pylist()
    expected = ops.messages_rows(messages, "record-batch", errors="column", lenient=lenient)
    for row_read, expected_row in zip(map(vague, result), (vague(plain(row)) for row in expected), strict=True):
        assert row_read == expected_row


@pytest.mark.slow
@pytest.mark.parametrize("lenient", [False, True])
def test_kernel_reads_changed_bytes_like_reference(lines: dict[str, Line], lenient: bool) -> None:
    messages = []
    for number, line in enumerate(lines.values()):
        data = data_of(line)
        messages += [data, data[: number * 7 % len(data)]]
        for at in range(number % 5, len(data), 5):
            changed = bytearray(data)
            changed[at] ^= 1 << (at * 3 + number) % 8
            messages.append(bytes(changed))
            if data[16] == 2 and at >= 21:
                messages.append(resealed(bytes(changed)))
    assert len(messages) > 3500
    check_alike(messages, lenient=lenient)


def test_older_set_with_append_time_gives_it_to_all_messages() -> None:
    # What a broker stamps is the outer message alone.
    def message(offset: int, attributes: int, time: int, value: bytes) -> bytes:
        covered = struct.pack(">bbqii", 1, attributes, time, -1, len(value)) + value
        body = struct.pack(">I", zlib.crc32(covered)) + covered
        return struct.pack(">qi", offset, len(body)) + body

    data = message(11, 9, 5000, gzip.compress(message(0, 0, 1000, b"a") + message(1, 0, 2000, b"b")))
    read = ops.messages(data, "record-batch")
    assert [(record["offset"], record["timestamp"], record["timestamp_type"]) for record in read] == [
        (10, 5000, 1),
        (11, 5000, 1),
    ]
    check_alike([data], lenient=False)
