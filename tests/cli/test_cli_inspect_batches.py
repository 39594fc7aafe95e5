"""`letterhead inspect` on record batches: attributes, control records, compressed batches and counts."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead import _native
from tests.helpers.vector_checks import read_lines

COMPRESSED = ["gzip", "snappy", "lz4", "zstd"]


def batch(codec: str = "none", **fields: Any) -> bytes:
    messages: list[Any] = [
        {"offset": at, "timestamp": 5, "value": b"v%d" % at, "headers": [("k", b"%d" % at)] * (at + 1), **fields}
        for at in range(3)
    ]
    return lh.batch(messages, codec=codec)


def control(offset: int, type: int) -> bytes:
    key, value = struct.pack(">hh", 0, type), struct.pack(">hi", 0, 0)
    marker: Any = {"offset": offset, "key": key, "value": value, "headers": [], "producer_id": 7, "producer_epoch": 0}
    return lh.batch([{**marker, "transactional": True, "control": True}])


def meaning(lines: list[str], field: str) -> list[str]:
    matches = (re.match(rf"^  [0-9a-f]+ +(?:[0-9a-f]{{2}} )+ +{field} +(.*)$", line) for line in lines)
    return [match[1] for match in matches if match]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_attributes_have_names_from_kafka(run: Any, codec: str) -> None:
    data = batch(codec, producer_id=5, producer_epoch=0, transactional=True)
    code = 1 + COMPRESSED.index(codec)
    assert meaning(run("inspect", "-f", "record-batch", "--hex", data.hex()).lines, "attributes") == [
        f"{16 + code}, {codec}, transactional"
    ]


def test_control_batches_and_their_content_are_named(run: Any) -> None:
    data = batch() + control(3, 1) + control(4, 0) + control(5, 99)
    lines = run("inspect", "-f", "record-batch", "--hex", data.hex()).lines
    assert [line.strip() for line in lines if line.startswith(("  a ", "  message "))] == [
        "a batch", "message 0", "message 1", "message 2",
        "a control batch", "message 3: commit of a transaction",
        "a control batch", "message 4: abort of a transaction",
        "a control batch", "message 5: a control record",
    ]  # fmt: skip
    assert meaning(lines, "attributes")[1:] == ["48, transactional, control"] * 3


@pytest.mark.parametrize("codec", COMPRESSED)
def test_compressed_batch_is_shown_decompressed(run: Any, codec: str) -> None:
    plain, data = batch(), batch(codec)
    lines = run("inspect", "-f", "record-batch", "--hex", data.hex()).lines
    assert lines[0] == f"record-batch: {len(data)} bytes, 3 messages, 6 headers, no errors"
    head = lines.index(f"  decompressed, {len(plain) - 61} bytes")
    expected = run("inspect", "-f", "record-batch", "--hex", plain.hex()).lines

    def without_place(rows: list[str]) -> list[str]:
        return [re.sub("^  [0-9a-f]{4}", "", row) for row in rows]

    first = expected.index("  message 0")
    assert without_place(lines[head + 1 :]) == without_place(expected[first:])
    assert lines[head + 2].startswith("  0000    ")
    document = json.loads(run("inspect", "-f", "record-batch", "--json", "--hex", (plain + data).hex()).out)
    [opened] = document["compressed"]
    assert (opened["start"], opened["bytes"]) == (len(plain), len(plain) - 61)
    assert "".join(label["hex"] for label in opened["labels"]) == plain[61:].hex()
    assert [label["message"] for label in opened["labels"] if label["field"] == "record length"] == [3, 4, 5]
    assert [label["start"] for label in opened["labels"][:2]] == [0, 1]


def test_headers_of_compressed_batches_are_counted(run: Any, samples: Path) -> None:
    log = samples / "orders-0" / f"{0:020}.log"
    with lh.read.segments(log, columns=["headers"]) as reader:
        count = sum(map(len, reader.read_all().column("headers").to_pylist()))
    data = log.read_bytes()
    heads = _native.record_batches(data)[0]
    arguments = ["inspect", "-f", "record-batch", "--hex", data[: heads[3][0]].hex()]
    result = run(*arguments, "--limits", "reports=1000000")
    assert ", at least 2,049 headers, no errors" in run(*arguments).lines[0]
    with lh.read.segments(log, columns=["headers"], end=heads[3][2]) as reader:
        first = sum(map(len, reader.read_all().column("headers").to_pylist()))
    assert f", {first:,} headers, no errors" in result.lines[0]
    assert first < count


def test_compressed_batch_shows_its_error_once(run: Any) -> None:
    data = bytearray(batch("gzip"))
    data[-1] ^= 1
    result = run("inspect", "-f", "record-batch", "--hex", data.hex())
    assert result.code == 1
    assert result.out.count("bad_crc") == 1
    assert "decompressed," not in result.out


# --- the native function ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", *COMPRESSED])
def test_decompressed_batch_equals_plain_batch(codec: str) -> None:
    assert _native.uncompressed(batch(codec)) == batch()


def test_sets_of_older_formats_are_decompressed(vectors: Any) -> None:
    opened = 0
    for line in read_lines(vectors, "record_batches"):
        if not line["id"].startswith(("v0", "v1")) or "none" in line["id"]:
            continue
        data = bytes.fromhex(line["hex"])
        [(_, size, *_), *_] = _native.record_batches(data)[0]
        inside = _native.uncompressed(data[:size])
        values = [message.value for message in lh.messages(inside, "record-batch")]
        assert values == [message.value for message in lh.messages(data[:size], "record-batch")], line["id"]
        opened += 1
    assert opened > 2


def test_batch_that_does_not_decompress_raises() -> None:
    with pytest.raises(lh.DecodeError, match="the checksum is "):
        _native.uncompressed(batch("zstd")[:-1] + b"\1")
    with pytest.raises(lh.DecodeError, match="offset takes 8 bytes"):
        _native.uncompressed(b"")
    large = lh.batch([lh.Message(value=bytes(100_000))], codec="zstd")
    with pytest.raises(lh.DecodeError) as raised:
        _native.uncompressed(large, (False, False, lh.Limits(decompressed_bytes=1000)))
    assert raised.value.code == "decompressed_too_large"


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["inspect"], ["decode"], ["convert", "--to", "iggy"]])
def test_file_over_limit_is_not_read(run: Any, tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "large.bin"
    with file.open("wb") as large:
        large.truncate(3 << 30)
    result = run(*command, "-f", "kafka", "--limits", "message_bytes=1000", file)
    assert (result.code, result.out) == (1, "")
    assert "has more than 1,000 bytes, the limit for a message: raise message_bytes in --limits" in result.err


@pytest.mark.timeout(60)
def test_device_is_not_read_as_message(run: Any) -> None:
    result = run("inspect", "-f", "kafka", "/dev/zero")
    assert (result.code, result.out) == (3, "")
    assert "cannot read /dev/zero: it is a device" in result.err


def test_pipe_is_read_like_file(run: Any, tmp_path: Path) -> None:
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(lh.encode([("k", b"v")], "kafka"),))
    writer.start()
    result = run("inspect", "-f", "kafka", pipe)
    writer.join()
    assert result.code == 0


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_named_headers_are_shown_without_others_and_typed(run: Any, codec: str) -> None:
    data = batch(codec, headers=[("n", bytes([0, 0, 0, 7])), ("other", b"x"), ("text", b"abc")])
    args = ("inspect", "-f", "record-batch", "--hex", data.hex(), "--headers", "n:int32,text,lost")
    result = run(*args)
    assert meaning(result.lines, "key  ") == ['header 0   "n"', 'header 2   "text"'] * 3
    assert meaning(result.lines, "value  ") == ["header 0   int32 7", 'header 2   string "abc"'] * 3
    assert meaning(result.lines, "offset") == []
    assert sum("message" in line for line in result.lines) >= 3
    assert result.err == 'letterhead: there is no header "lost"\n'
    document = json.loads(run(*args, "--json").out)
    labels = document["compressed"][0]["labels"] if codec != "none" else document["labels"]
    assert [label["text"] for label in labels if label["field"] == "value"] == ["int32 7", 'string "abc"'] * 3


def test_inspect_headers_of_wrong_type_shows_reason(run: Any) -> None:
    args = ("inspect", "-f", "kafka", "--hex", lh.encode({"n": b"abc"}, "kafka").hex(), "--headers")
    assert "not int32: 3 bytes where int32 takes 4" in run(*args, "n:int32").out
    assert run(*args, "n:int33").code == 2


def test_bytes_in_error_are_shown_beside_named_headers(run: Any) -> None:
    lines = run("inspect", "-f", "kafka", "--hex", "0402ff02ff026202ff", "--headers", "c").lines
    assert any(line.startswith("! ") for line in lines)
