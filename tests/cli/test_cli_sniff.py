"""`--format auto`: over all vectors, the right format is found or among those that are named, and none is guessed."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.cli.sniff import sniff

VECTORS = Path(__file__).parents[1] / "vectors"

BLOCK = lh.encode([("tenant", "acme"), ("retry", "3")], "kafka")


def cases() -> Iterator[tuple[str, str, bytes]]:
    """Return the vectors of bytes that are whole: an id, their format, the bytes."""
    for path in sorted(VECTORS.glob("kip82_*.jsonl")):
        for line in map(json.loads, path.open()):
            if line["op"] != "encode" and not {"error", "errors", "lenient"} & set(line):
                yield line["id"], line["format"], bytes.fromhex(line["bytes"])
    for name, format in (
        ("headers", "kafka"),
        ("value_timestamp_headers", "streams-timestamped"),
        ("aggregation_with_headers", "streams"),
    ):
        for line in map(json.loads, (VECTORS / f"{name}.jsonl").open()):
            if line.get("hex"):
                yield line["id"], format, bytes.fromhex(line["hex"])
    for name, format in (("iggy_seed_headers", "iggy-2023"), ("iggy_tlv_headers", "iggy")):
        for line in map(json.loads, (VECTORS / f"{name}.jsonl").open()):
            yield line["id"], format, bytes.fromhex(line["bytes"])
    for name in ("iggy_seed_messages", "iggy_tlv_messages"):
        for line in map(json.loads, (VECTORS / f"{name}.jsonl").open()):
            data = bytes.fromhex(line["bytes"])
            if line["op"] == "message":
                yield line["id"], "iggy-message-2023", data
            elif line["op"] == "polled":
                yield line["id"], "iggy-polled-2023", with_checksum(data)
            elif line["op"] == "message64":
                yield line["id"], "iggy-message", data
            elif line["op"] == "send_messages_batch":
                yield line["id"], "iggy-batch", data[line["batch_at"] :]

    for line in map(json.loads, (VECTORS / "record_batches.jsonl").open()):
        whole = sum(batch["size_in_bytes"] for batch in line["batches"])
        if any(batch["records"] for batch in line["batches"]) and all(batch["valid"] for batch in line["batches"]):
            yield line["id"], "record-batch", bytes.fromhex(line["hex"])[:whole]


def with_checksum(polled: bytes) -> bytes:
    """Return a polled message with the checksum of its payload; that of the vectors is any number."""
    headers_len = int.from_bytes(polled[37:41], "little")
    payload = polled[41 + headers_len + 4 :]
    return polled[:33] + zlib.crc32(payload).to_bytes(4, "little") + polled[37:]


def test_vector_format_is_detected_or_among_candidates():
    outcomes: Counter[str] = Counter()
    for name, format, data in cases():
        formats = sniff([data])
        # A set of one message that is not compressed is that message.
        single = format.replace("-messages", "-message")
        if formats == [format]:
            outcomes["found"] += 1
        elif format in formats or single in formats:
            outcomes["among"] += 1
        else:
            # A timestamp of 1 ms after 1970 and no payload are just what an integer header with one zero is.
            assert (name, formats) == ("grid-80", ["kip82-int"])
            outcomes["wrong"] += 1
    assert outcomes["wrong"] == 1
    assert outcomes["found"] > 950


@pytest.mark.parametrize(
    "format",
    ["kip82-typed", "kip82-int", "iggy", "iggy-2023", "kafka", "iggy-message", "iggy-message-2023", "iggy-batch"],
)
def test_most_vectors_match_only_their_format(format):
    matches = [sniff([data]) == [format] for _, case_format, data in cases() if case_format == format and data]
    assert sum(matches) > 0.9 * len(matches) > 0


def test_record_batches_match_only_older_formats_besides():
    matches = [(sniff([data]), data[16]) for _, case_format, data in cases() if case_format == "record-batch"]
    assert all(formats == ["record-batch"] for formats, magic in matches if magic == 2)
    # The drafts read the message formats before theirs as well.
    assert all("record-batch" in formats and len(formats) > 1 for formats, magic in matches if magic < 2)
    assert Counter(magic for _, magic in matches).keys() == {0, 1, 2}


def test_two_iggy_layouts_are_never_confused():
    for _, format, data in cases():
        if format in ("iggy", "iggy-2023") and data:
            assert set(sniff([data])) & {"iggy", "iggy-2023"} == {format}


def test_checksum_outranks_other_evidence():
    message = lh.encode(lh.Message(value=b"v", headers=[("n", lh.Int32(1))], timestamp=1), "kip82-message")
    assert sniff([message]) == ["kip82-message"]
    assert sniff([message + message]) == ["kip82-messages"]
    damaged = message[:12] + bytes(4) + message[16:]
    assert "kip82-message" not in sniff([damaged])


def test_layouts_differing_only_in_headers_all_match_without_any():
    message = lh.encode(lh.Message(value=b"v", timestamp=1), "kip82-message")
    assert sniff([message]) == ["kip82-message", "kip82-message-int"]


def test_streams_timestamped_message_also_fits_streams():
    message = lh.encode(lh.Message(headers=[("a", b"b")], timestamp=1767225600000, payload=b"p"), "streams-timestamped")
    assert sniff([message]) == ["streams", "streams-timestamped"]


def test_empty_input_fits_every_format():
    assert {"kafka", "kip82-typed", "kip82-int", "iggy", "iggy-2023"} <= set(sniff([b""]))


def test_garbage_fits_no_format():
    assert sniff([b"\xff" * 5]) == []


def test_damaged_value_does_not_hide_column_format():
    messages = [
        lh.encode(lh.Message(offset=n, value=b"v", headers={"n": lh.Int8(n)}), "kip82-message") for n in range(4)
    ]
    messages[2] = messages[2][:-1] + b"w"
    assert sniff(messages) == ["kip82-message"]


def test_detected_format_is_printed_to_stderr(run):
    for command in ("inspect", "decode"):
        result = run(command, "-f", "auto", "--hex", BLOCK.hex())
        assert result.err == "letterhead: these bytes are kafka\n"
        assert result.out.startswith("kafka: ")
        assert result.code == 0


def test_format_is_detected_from_whole_column(run, tmp_path):
    path = tmp_path / "blocks.parquet"
    pq.write_table(pa.table({"value": pa.array([None, BLOCK, b""], pa.binary())}), path)
    result = run("decode", path, "-c", "value", "-f", "auto", "--json")
    assert (result.code, result.err) == (0, "letterhead: these bytes are kafka\n")
    assert len(result.lines) == 3


@pytest.mark.parametrize("command", [["inspect"], ["decode"], ["convert", "--to", "iggy", "--as", "hex"]])
def test_ambiguous_format_is_not_picked(run, command):
    message = lh.encode(lh.Message(headers=[("a", b"b")], payload=b"0123456789"), "streams")
    result = run(*command, "-f", "auto", "--hex", message.hex())
    assert result.err == "letterhead: these bytes fit streams and streams-timestamped: name one of them\n"
    assert (result.code, result.out) == (2, "")


def test_undetected_format_exits_1(run):
    result = run("inspect", "-f", "auto", "--hex", "ffffffffff")
    message = "no format fits these bytes: name one to see what is wrong with them"
    assert result.err == f"letterhead: {message}\n"
    assert (result.code, result.out) == (1, "")


def test_auto_is_rejected_as_a_target(run):
    result = run("encode", "-f", "auto", "--as", "hex", stdin=b'{"headers": []}')
    assert result.err.startswith("letterhead: unknown format 'auto'")
    assert result.code == 2
