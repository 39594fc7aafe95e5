"""Batches of the reference implementation: checksums, codecs, and the errors of batches."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import CODES, DecodeError, ErrorDetail
from tests.helpers.batch_bytes import batch, frame
from tests.helpers.reference_cases import BATCHES, READ_AS_ONE, codes, kip82, places, raised
from tests.reference import codecs, ops
from tests.reference.xxh3 import xxh3_64, xxh32

# --- checksums and codecs --------------------------------------------------------------------------------------------


def pattern(size: int) -> bytes:
    return bytes(place * 7 + 1 & 255 for place in range(size))


@pytest.mark.parametrize(
    ("size", "xxh3", "half"),
    [
        (0, 0x2D06800538D394C2, 0x02CC5D05),
        (1, 0xE12EF9D2EB86CEEB, 0x3892F731),
        (3, 0x5C83885A0FB5D516, 0x17E09E36),
        (4, 0x244F36DE481E7522, 0x7330C2CD),
        (8, 0x96CC97A6768FD7A9, 0x167654B4),
        (9, 0x4781D83B8E99D495, 0x1A0FFF83),
        (16, 0x913BD4A8038027A7, 0x91134ED9),
        (17, 0x2BF6F66973A6179D, 0x88B6AD35),
        (128, 0xC4399C7829D0628F, 0xF756CB9F),
        (129, 0x8433489056750B32, 0x879D52C4),
        (240, 0x3C0BB96864E543A1, 0x57BCD09C),
        (241, 0xBFF7215089202D8F, 0xE20FF369),
        (1024, 0xAC8E32E4EA3BA062, 0xCE1A3CB1),
        (1025, 0xC856C953BBDBC807, 0x1FC337CA),
        (2049, 0x036BBE6219DFCCDA, 0x688D536F),
    ],
)
def test_checksums_of_every_length_class_match_xxhash(size: int, xxh3: int, half: int) -> None:
    assert (xxh3_64(pattern(size)), xxh32(pattern(size))) == (xxh3, half)


SNAPPY = bytes.fromhex("10") + b"\x08abc" + b"\x0d\x03" + b"\x16\x06\x00"


def test_overlapping_snappy_copies_repeat() -> None:
    # Three literals, a copy of 7 from 3 bytes back, a copy of 6 from 6 bytes back.
    assert codecs.decompress(2, SNAPPY) == b"abcabcabca" + b"bcabca"
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(SNAPPY)) + SNAPPY
    assert codecs.decompress(2, framed + framed[16:]) == b"abcabcabcabcabca" * 2


def lz4(blocks: bytes, *, flags: int = 0x60, legacy: bool = False) -> bytes:
    header = bytes([flags, 0x40])
    check = xxh32((b"\x04\x22\x4d\x18" if legacy else b"") + header) >> 8 & 0xFF
    return b"\x04\x22\x4d\x18" + header + bytes([check]) + blocks


def test_legacy_header_checksum_is_valid_only_in_format_0() -> None:
    stored = struct.pack("<I", 3 | 1 << 31) + b"abc" + bytes(4)
    assert codecs.decompress(3, lz4(stored)) == codecs.decompress(3, lz4(stored), legacy=True) == b"abc"
    assert codecs.decompress(3, lz4(stored, legacy=True), legacy=True) == b"abc"
    with pytest.raises(codecs.Undecodable, match="checksum of the header"):
        codecs.decompress(3, lz4(stored, legacy=True))


def test_linked_lz4_blocks_refer_to_previous_block() -> None:
    first = struct.pack("<I", 4) + b"\x30abc"
    second = struct.pack("<I", 5) + b"\x02\x03\x00" + b"\x10z"  # a copy of 6 from 3 bytes back, then a literal
    assert codecs.decompress(3, lz4(first + second + bytes(4), flags=0x40)) == b"abcabcabcz"
    with pytest.raises(codecs.Undecodable, match="a block is wrong"):
        codecs.decompress(3, lz4(first + second + bytes(4)))


@pytest.mark.parametrize(
    ("codec", "data", "code"),
    [
        (1, gzip.compress(bytes(1001), mtime=0), "decompressed_too_large"),
        (1, gzip.compress(bytes(500), mtime=0) + gzip.compress(bytes(501), mtime=0), "decompressed_too_large"),
        (1, gzip.compress(b"x", mtime=0)[:-1], "bad_compression"),
        (1, gzip.compress(b"x", mtime=0) + b"\0", "bad_compression"),
        (1, b"", "bad_compression"),
        (2, b"\xe9\x07" + b"\xfa" * 40, "decompressed_too_large"),
        (2, b"", "bad_compression"),
        (2, b"\x05\x08abc", "bad_compression"),
        (2, b"\x04\x00a\x0d\x03", "bad_compression"),
        (2, b"\xff\xff\xff\xff\x1f\0", "bad_compression"),
        (2, b"\x82SNAPPY\0" + bytes(8), "bad_compression"),
        (3, lz4(struct.pack("<I", 1001 | 1 << 31) + bytes(1001) + bytes(4)), "decompressed_too_large"),
        (3, lz4(struct.pack("<I", 11) + b"\x1fz\x01\x00" + b"\xff" * 6 + b"\0"), "decompressed_too_large"),
        (3, lz4(struct.pack("<I", 3 | 1 << 31) + b"abc"), "bad_compression"),
        (3, lz4(bytes(5)), "bad_compression"),
        (3, b"no lz4", "bad_compression"),
    ],
)
def test_bad_or_unbounded_data_is_rejected(codec: int, data: bytes, code: str) -> None:
    with pytest.raises(codecs.Undecodable) as caught:
        codecs.decompress(codec, data, limit=1000)
    assert caught.value.code == code
    assert code in CODES


# --- batches: what else can be wrong ---------------------------------------------------------------------------------


def test_empty_poll_has_no_messages() -> None:
    assert ops.messages(b"", "iggy-batch") == []
    assert ops.messages(bytes(16), "iggy-batch") == ops.messages(bytes(40), "iggy-batch") == []
    # A reply that announces messages and has none is cut off.
    assert codes(ops.validate(bytes(12) + b"\1" + bytes(3), "iggy-batch")) == ["truncated"]


def test_batch_checksum_covers_producer() -> None:
    producer = b"\1\0\0\0" + struct.pack("<QHHI", 9, 1, 0, 5)
    assert ops.validate(batch(frame(0), producer=producer), "iggy-batch") == []
    wrong = bytearray(batch(frame(0), producer=producer))
    wrong[68] ^= 1
    assert codes(ops.validate(bytes(wrong), "iggy-batch")) == ["bad_crc"]
    for at, value in ((52, 2), (53, 1), (66, 1)):
        wrong = bytearray(batch(frame(0), producer=producer))
        wrong[at] = value
        assert places(ops.validate(bytes(wrong), "iggy-batch"))[0] == ("bad_attributes", 52, None, None)


def test_batch_errors_are_reported_with_its_first_message() -> None:
    good, bad = batch(frame(0), frame(1)), bytearray(batch(frame(2), frame(3)))
    bad[40] ^= 1
    bad[100] = 1
    messages = good + bytes(bad)
    assert [detail.message.partition(":")[0] for detail in ops.validate(messages, "iggy-batch")] == ["message 2"] * 2
    read = ops.messages_rows([messages], "iggy-batch", errors="column")
    reported = [codes(message["error"] or []) for message in read]
    assert reported == [[], [], ["bad_attributes", "bad_crc"], []]
    assert [message["offset"] for message in read] == [0, 1, 2, 3]


def test_errors_of_batch_without_messages_are_reported() -> None:
    assert ops.messages(batch(), "iggy-batch") == []
    bad = bytearray(batch())
    bad[40] ^= 1
    read = ops.messages_rows([bytes(bad) + batch(frame(0))], "iggy-batch", errors="null")
    assert set(read[0].values()) == {None, 0}
    assert read[1]["id"] == bytes(16)
    assert codes(ops.validate(bytes(bad), "iggy-batch")) == ["bad_crc"]


def test_wrong_message_count_in_batch_ends_value() -> None:
    details = ops.validate(batch(frame(0), count=2) + batch(frame(1)), "iggy-batch")
    assert [detail.message for detail in details] == ["message 1: the batch announces 2 messages and has 1"]
    assert places(details) == [("count_too_large", 48, None, None)]


@pytest.mark.parametrize(
    ("at", "value", "place"),
    [
        (256, 0xFF, ("bad_crc", 256)),
        (256 + 40, 1, ("bad_attributes", 296)),
        (256 + 36, 200, ("truncated", 304)),
        (33, 0, ("wrong_size", 32)),
        (33, 9, ("truncated", 32)),
    ],
)
def test_bad_frame_is_reported_at_its_byte(at: int, value: int, place: tuple[str, int]) -> None:
    data = bytearray(batch(frame(0)))
    data[at] = value
    assert place in [(detail.code, detail.byte_offset) for detail in ops.validate(bytes(data), "iggy-batch")]


def test_sums_out_of_column_range_are_null_and_reported_at_frame() -> None:
    data = batch(frame(0), frame(1), base=2**63 - 1)
    read = ops.messages_rows([data], "iggy-batch", errors="column")
    assert [message["offset"] for message in read] == [2**63 - 1, None]
    assert places(read[1]["error"]) == [("out_of_range", 256 + 49, None, None)]


def polled(offset: int, payload: bytes, state: int = 1, block: bytes = b"") -> bytes:
    head = struct.pack("<QBQ", offset, state, 5) + bytes(16) + struct.pack("<I", zlib.crc32(payload))
    return head + struct.pack("<I", len(block)) + block + struct.pack("<I", len(payload)) + payload


def test_later_unknown_state_is_error_and_not_older_layout() -> None:
    read = ops.messages_rows([polled(0, b"a") + polled(1, b"b", state=2)], "iggy-polled-2023", errors="column")
    assert [message["state"] for message in read] == ["available", None]
    assert read[1]["error"] == [ErrorDetail("bad_attributes", "state 2 is unknown", 54)]


def earlier(offset: int, payload: bytes) -> bytes:
    return struct.pack("<QQ", offset, 5) + bytes(20) + struct.pack("<I", len(payload)) + payload


def test_layout_is_the_one_whose_messages_fill_value() -> None:
    for messages, states in (
        (earlier(0, b"a") + earlier(1, b""), [None, None]),
        (polled(0, b"a") + polled(1, b""), ["available"] * 2),
        # A state could be the lowest byte of a time.
        (earlier(0, b"a")[:8] + b"\x0a" + earlier(0, b"a")[9:], [None]),
    ):
        assert [message["state"] for message in ops.messages(messages, "iggy-polled-2023")] == states
    for cut in range(1, 40):
        read = ops.messages_rows([(polled(0, b"a") + polled(1, b"b"))[:-cut]], "iggy-polled-2023", errors="column")
        assert read[0]["state"] == "available"
        assert codes(read[1]["error"]) == ["truncated"]


def test_damaged_headers_leave_next_message_readable() -> None:
    messages = polled(0, b"a", block=b"\xff") + polled(1, b"b")
    read = ops.messages_rows([messages], "iggy-polled-2023", errors="column")
    assert [(message["headers"], message["payload"]) for message in read] == [(None, b"a"), ([], b"b")]
    nulled = ops.messages_rows([None, messages], "iggy-polled-2023", errors="null")
    assert nulled == [
        {**{name: value for name, value in message.items() if name != "error"}, "row": 1} for message in read
    ]
    error = raised(lambda: ops.messages_rows([b"", messages], "iggy-polled-2023"), DecodeError, "truncated")
    assert str(error).startswith("iggy-polled-2023: message 0: key length takes 4 bytes")
    assert (error.row, error.header) == (1, 0)


def test_truncated_payload_leaves_preceding_fields() -> None:
    read = ops.messages_rows([polled(0, b"a") + polled(1, b"bcd")[:-1]], "iggy-polled-2023", errors="column")
    assert [message["offset"] for message in read] == [0, 1]
    assert read[1]["payload"] is None
    assert codes(read[1]["error"]) == ["truncated"]


def test_outer_message_errors_are_reported_with_first_inner_one() -> None:
    inside = kip82(0) + kip82(1)
    outer = bytearray(kip82(11, attributes=1, value=gzip.compress(inside)))
    outer[12] ^= 1
    read = ops.messages_rows([kip82(3) + bytes(outer)], "kip82-messages", errors="column")
    reported = [(message["offset"], codes(message["error"] or [])) for message in read]
    assert reported == [(3, []), (10, ["bad_crc"]), (11, [])]
    [detail] = read[1]["error"]
    assert detail.message.startswith("the checksum is ")
    assert detail.byte_offset == len(kip82(3)) + 12
    empty = bytearray(kip82(11, attributes=1, value=gzip.compress(b"")))
    assert ops.messages(bytes(empty), "kip82-messages") == []
    empty[12] ^= 1
    assert codes(ops.validate(bytes(empty), "kip82-messages")) == ["bad_crc"]


def test_damaged_message_in_set_leaves_next_ones_readable() -> None:
    inside = bytearray(kip82(0) + kip82(1) + kip82(2))
    inside[len(kip82(0)) + 16] = 9
    outer = kip82(12, attributes=1, value=gzip.compress(bytes(inside)))
    read = ops.messages_rows([outer + kip82(13)], "kip82-messages", errors="null")
    assert [message["offset"] for message in read] == [10, None, 12, 13]
    [detail] = ops.validate(outer + kip82(13), "kip82-messages")
    assert detail == ErrorDetail("bad_magic", "message 1: magic 9 inside a set of magic 2", 34)


def test_message_headers_are_selected_beside_requested_fields() -> None:
    messages = [kip82(0, headers=[("n", "int8", b"\1")]), None, kip82(5, headers=[("n", "bool", b"\1")]) + kip82(6)]
    requested: dict[str, Any] = {
        "columns": ["offset", "row"],
        "headers": {"n": "int8", "all": lh.field("array<int8>", key="n")},
    }
    read = ops.messages_rows(messages, "kip82-messages", errors="column", **requested)
    assert [list(message) for message in read] == [["offset", "row", "n", "all", "error"]] * 3
    assert [tuple(message.values())[:4] for message in read] == [(0, 0, 1, [1]), (5, 2, None, None), (6, 2, None, [])]
    assert codes(read[1]["error"]) == ["wrong_type", "wrong_type"]
    error = raised(lambda: ops.messages_rows(messages, "kip82-messages", **requested), DecodeError, "wrong_type")
    assert (error.row, error.header, error.column) == (2, 0, "n")
    with pytest.raises(ValueError, match="unknown column 'offest': did you mean 'offset'"):
        ops.messages_rows([], "kip82-messages", columns=["offest"])


# --- one message and many --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", BATCHES)
def test_operations_for_one_message_name_one_for_batch(format: str) -> None:
    calls = (
        lambda: ops.decode(b"", format),
        lambda: ops.decode_rows([], format),
        lambda: ops.select(b"", format, {"a": "string"}),
        lambda: ops.select_rows([], format, {"a": "string"}),
        lambda: ops.encode({"headers": []}, format),
        lambda: ops.encode_rows([], format),
    )
    for call in calls:
        with pytest.raises(ValueError, match=f"^{format} is a batch: read it with messages$"):
            call()
    with pytest.raises(ValueError, match=f"^{format} is a batch: convert its messages one by one$"):
        ops.convert(b"", format, target="kafka")
    with pytest.raises(ValueError, match=f"^{format} is a batch and no target$"):
        ops.convert(b"", "kafka", target=format)
    assert ops.validate(b"", format) == []
    assert ops.messages_rows([None, b""], format) == []


@pytest.mark.parametrize("format", READ_AS_ONE)
def test_messages_are_read_from_batches_only(format: str) -> None:
    with pytest.raises(ValueError, match=f"^{format} is not a batch: read it with decode$"):
        ops.messages(b"", format)


def test_format_of_several_layouts_is_no_conversion_target() -> None:
    message = "^iggy-auto reads either layout and is no target: name iggy or iggy-2023$"
    for call in (lambda: ops.encode([], "iggy-auto"), lambda: ops.convert(b"", "kafka", target="iggy-auto")):
        with pytest.raises(ValueError, match=message):
            call()
    assert ops.decode(b"", "iggy-auto") == []
    assert codes(ops.validate(b"\1", "iggy-auto")) == ["truncated"]
