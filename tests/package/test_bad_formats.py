"""Every rejection of the formats of the drafts and of Iggy by its name: what, where, and that every way says it alike."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import DecodeError, ErrorDetail
from tests.helpers.batch_bytes import HEADER_LEN, batch, frame, message, reseal, squeeze
from tests.helpers.implementations import NATIVE, REFERENCE, Implementation

every_way = pytest.mark.parametrize("way", [REFERENCE, *NATIVE], ids=lambda way: way.name)

Place = tuple[str, str, int | None, int | None, str | None]
"""A code, the message, the byte, the header and its key."""


def places(details: list[ErrorDetail]) -> list[Place]:
    return [tuple(detail)[:5] for detail in details]


def check(way: Implementation, format: str, data: bytes | str, *expected: Place) -> None:
    data = bytes.fromhex(data) if isinstance(data, str) else data
    assert places(way.validate(data, format)) == list(expected)
    with pytest.raises(DecodeError) as caught:
        way.messages(data, format) if format in BATCHES else way.read(data, format)
    error = caught.value
    assert (error.code, error.message, error.byte_offset, error.header, error.key) == expected[0]


BATCHES = ("kip82-messages", "kip82-messages-int", "kip82-messages-wrapper", "iggy-polled-2023", "iggy-batch")

# --- blocks ----------------------------------------------------------------------------------------------------------

TYPED_A = "00000001" + "61"
BLOCKS: dict[str, tuple[str, str, Place]] = {
    "a typed draft's key length that is negative": (
        "kip82-typed", "ffffffff", ("negative_length", "key length -1 is negative", 0, 0, None),
    ),
    "a typed draft's key that is cut": (
        "kip82-typed", "00000005" + "61", ("truncated", "key takes 5 bytes and 1 is left", 4, 0, None),
    ),
    "a typed draft's key that is not UTF-8": (
        "kip82-typed", "00000002" + "61ff" + "00000000", ("key_not_utf8", "the key is not UTF-8", 5, 0, None),
    ),
    "a typed draft's value length that is negative": (
        "kip82-typed", TYPED_A + "ffffffff", ("negative_length", "value length -1 is negative", 5, 0, "a"),
    ),
    "a typed draft's value length that is missing": (
        "kip82-typed", TYPED_A, ("truncated", "value length takes 4 bytes and 0 are left", 5, 0, "a"),
    ),
    "a typed draft's value that is cut": (
        "kip82-typed", TYPED_A + "00000003" + "0300", ("truncated", "value takes 3 bytes and 2 are left", 9, 0, "a"),
    ),
    "a typed draft's type that is unknown": (
        "kip82-typed", TYPED_A + "00000001" + "0a", ("unknown_type", "value type code 10 is unknown", 9, 0, "a"),
    ),
    "a typed draft's number of another size": (
        "kip82-typed", TYPED_A + "00000002" + "0400", ("wrong_size", "1 byte where int32 takes 4", 10, 0, "a"),
    ),
    "a typed draft's boolean without its byte": (
        "kip82-typed", TYPED_A + "00000001" + "00",
        ("wrong_size", "a boolean without its byte holds no value", 10, 0, "a"),
    ),
    "a typed draft's boolean that is neither 0 nor 1": (
        "kip82-typed", TYPED_A + "00000002" + "0002", ("bad_bool", "the byte is not a boolean: 0 or 1", 10, 0, "a"),
    ),
    "a typed draft's string that is not UTF-8": (
        "kip82-typed", TYPED_A + "00000003" + "0861ff", ("value_not_utf8", "the value is not UTF-8", 11, 0, "a"),
    ),
    "an integer key that is cut": (
        "kip82-int", "000000", ("truncated", "key takes 4 bytes and 3 are left", 0, 0, None),
    ),
    "a value length below -1 beside an integer key": (
        "kip82-int", "00000007" + "fffffffe", ("negative_length", "value length -2 is negative", 4, 0, "7"),
    ),
    "a value that is cut beside an integer key": (
        "kip82-int", "fffffff9" + "00000002" + "61", ("truncated", "value takes 2 bytes and 1 is left", 8, 0, "-7"),
    ),
    "a typed key of type 0": (
        "iggy", "00" + "01000000" + "61" + "03" + "01000000" + "01",
        ("unknown_type", "key type code 0 is unknown", 0, 0, None),
    ),
    "a typed key without bytes": (
        "iggy", "02" + "00000000" + "03" + "01000000" + "01", ("empty_key", "the key has no bytes", 1, 0, None),
    ),
    "a typed key that is too long": (
        "iggy", "02" + "00010000" + "61" * 256 + "03" + "01000000" + "01",
        ("too_long", "key of 256 bytes is longer than 255", 1, 0, None),
    ),
    "a typed key of another size": (
        "iggy", "06" + "03000000" + "010203" + "03" + "01000000" + "01",
        ("wrong_size", "key of 3 bytes where int32 takes 4", 5, 0, None),
    ),
    "a typed key that is cut": (
        "iggy", "06" + "04000000" + "0102", ("truncated", "key takes 4 bytes and 2 are left", 5, 0, None),
    ),
    "a value of type 0 beside a typed key": (
        "iggy", "06" + "04000000" + "05000000" + "00" + "01000000" + "01",
        ("unknown_type", "value type code 0 is unknown", 9, 0, "int32:5"),
    ),
    "a value without bytes beside a typed key": (
        "iggy", "01" + "01000000" + "ff" + "02" + "00000000", ("empty_value", "the value has no bytes", 7, 0, "binary:ff"),
    ),
    "a value that is too long beside a typed key": (
        "iggy", "02" + "01000000" + "61" + "02" + "00010000" + "61" * 256,
        ("too_long", "value of 256 bytes is longer than 255", 7, 0, "a"),
    ),
    "a value of another size beside a typed key": (
        "iggy", "02" + "01000000" + "61" + "06" + "03000000" + "010203",
        ("wrong_size", "3 bytes where int32 takes 4", 11, 0, "a"),
    ),
    "a typed key without a value": (
        "iggy", "02" + "01000000" + "61", ("truncated", "value type takes 1 byte and 0 are left", 6, 0, "a"),
    ),
    "an older key that is not UTF-8": (
        "iggy-2023", "01000000" + "ff" + "03" + "01000000" + "01", ("key_not_utf8", "the key is not UTF-8", 4, 0, None),
    ),
    "an older key without bytes": (
        "iggy-2023", "00000000" + "03" + "01000000" + "01", ("empty_key", "the key has no bytes", 0, 0, None),
    ),
    "an older key that is too long": (
        "iggy-2023", "00010000" + "61" * 256 + "03" + "01000000" + "01",
        ("too_long", "key of 256 bytes is longer than 255", 0, 0, None),
    ),
    "an older type without a name": (
        "iggy-2023", "01000000" + "61" + "10" + "01000000" + "01",
        ("unknown_type", "value type code 16 is unknown", 5, 0, "a"),
    ),
    "an older value without bytes": (
        "iggy-2023", "01000000" + "61" + "03" + "00000000", ("empty_value", "the value has no bytes", 6, 0, "a"),
    ),
    "an older value that is cut": (
        "iggy-2023", "01000000" + "61" + "03" + "02000000" + "01",
        ("truncated", "value takes 2 bytes and 1 is left", 10, 0, "a"),
    ),
    "the second byte tells the older layout": (
        "iggy-auto", "00000000" + "03" + "01000000" + "01", ("empty_key", "the key has no bytes", 0, 0, None),
    ),
    "and the newer one": (
        "iggy-auto", "0001000000", ("unknown_type", "key type code 0 is unknown", 0, 0, None),
    ),
}  # fmt: skip
"""One header that is refused: format, bytes, and the first error."""


@every_way
@pytest.mark.parametrize("name", BLOCKS)
def test_bad_header_is_rejected(name: str, way: Implementation) -> None:
    format, digits, first = BLOCKS[name]
    data = bytes.fromhex(digits)
    assert places(way.validate(data, format))[0] == first
    with pytest.raises(DecodeError) as caught:
        way.read(data, format)
    assert (caught.value.format, caught.value.code, caught.value.message) == (format, *first[:2])
    assert (caught.value.byte_offset, caught.value.header, caught.value.key) == first[2:]


@every_way
def test_headers_after_rejected_one_are_checked_too(way: Implementation) -> None:
    bad = "00000001" + "61" + "00000002" + "0002"
    check(
        way, "kip82-typed", bad + "00000001" + "62" + "00000000" + bad,
        ("bad_bool", "the byte is not a boolean: 0 or 1", 10, 0, "a"),
        ("bad_bool", "the byte is not a boolean: 0 or 1", 30, 2, "a"),
    )  # fmt: skip


def test_types_without_name_are_rejected_on_request() -> None:
    data = bytes.fromhex("c8" + "01000000" + "61" + "c9" + "01000000" + "01")
    for format in ("iggy", "iggy-auto"):
        assert lh.decode(data, format) == lh.Headers([(lh.Value("type-200", b"a"), lh.Value("type-201", b"\1"))])
        codes = [(error.code, error.byte_offset) for error in lh.validate(data, format, strict_types=True)]
        assert codes == [("unknown_type", 0), ("unknown_type", 6)]


# --- message formats -------------------------------------------------------------------------------------------------


@every_way
def test_wrapper_of_unknown_magic_is_rejected(way: Implementation) -> None:
    check(way, "kip82-wrapper", "01", ("bad_magic", "magic 1 is unknown: a wrapper has 0", 0, None, None))


@every_way
def test_negative_wrapper_length_is_rejected(way: Implementation) -> None:
    check(way, "kip82-wrapper", "00" + "ffffffff", ("negative_length", "headers length -1 is negative", 1, None, None))
    check(
        way, "kip82-wrapper", "00" + "00000000" + "fffffffe",
        ("negative_length", "value length -2 is negative", 5, None, None),
    )  # fmt: skip


@every_way
def test_byte_after_wrapper_is_rejected(way: Implementation) -> None:
    check(
        way, "kip82-wrapper", "00" + "00000000" + "ffffffff" + "00",
        ("trailing_bytes", "1 byte left after the value", 9, None, None),
    )  # fmt: skip


MESSAGES = ("kip82-message", "kip82-message-int", "kip82-message-wrapper")
every_message = pytest.mark.parametrize("format", MESSAGES)


def changed(format: str, data: bytes, at: int, new: bytes, *, reseals: bool = True) -> bytes:
    result = data[:at] + new + data[at + len(new) :]
    return reseal(format, result) if reseals else result


@every_way
@every_message
def test_message_of_unknown_magic_is_rejected(format: str, way: Implementation) -> None:
    data = changed(format, message(format, value=b"v"), 16, b"\3")
    check(way, format, data, ("bad_magic", "magic 3 is unknown: 0, 1 and 2 are known", 16, None, None))


@every_way
@every_message
def test_wrong_message_checksum_is_rejected(format: str, way: Implementation) -> None:
    data = changed(format, message(format, key=b"k"), 12, bytes(4), reseals=False)
    result = zlib.crc32(data[16:])
    check(way, format, data, ("bad_crc", f"the checksum is 00000000 and the bytes give {result:08x}", 12, None, None))


@every_way
@pytest.mark.parametrize(("magic", "bits", "undefined"), [(0, 0x08, 0x08), (1, 0x10, 0x10), (2, 0xA0, 0xA0)])
@every_message
def test_undefined_attribute_bits_are_rejected(
    format: str, magic: int, bits: int, undefined: int, way: Implementation
) -> None:
    data = changed(format, message(format, magic=magic), 17, bytes([bits]))
    output = f"attribute bits 0x{undefined:02x} are not defined"
    check(way, format, data, ("bad_attributes", output, 17, None, None))


@every_way
@pytest.mark.parametrize("format", MESSAGES[:2])
def test_header_bit_without_header_bytes_is_rejected(format: str, way: Implementation) -> None:
    whole = message(format)
    data = whole[:17] + b"\x10" + whole[18:30] + bytes(4) + whole[30:]
    data = reseal(format, data[:8] + struct.pack(">i", len(data) - 12) + data[12:])
    output = "bit 4 says that headers follow, and they have no bytes"
    check(way, format, data, ("bad_attributes", output, 30, None, None))


@every_way
@every_message
def test_negative_message_length_is_rejected(format: str, way: Implementation) -> None:
    data = message(format, key=b"k", value=b"v")
    check(
        way, format, changed(format, data, 8, b"\xff" * 4),
        ("negative_length", "message size -1 is negative", 8, None, None),
    )  # fmt: skip
    check(
        way, format, changed(format, data, 26, b"\xff\xff\xff\xfe"),
        ("negative_length", "key length -2 is negative", 26, None, None),
    )  # fmt: skip
    check(
        way, format, changed(format, data, 31, b"\xff\xff\xff\xfe"),
        ("negative_length", "value length -2 is negative", 31, None, None),
    )  # fmt: skip


@every_way
@every_message
def test_bytes_after_message_are_rejected(format: str, way: Implementation) -> None:
    data = message(format, key=b"k", value=b"v")
    end = len(data)
    check(way, format, data + b"\0\0", ("trailing_bytes", "2 bytes left after the message", end, None, None))
    longer = reseal(format, data[:8] + struct.pack(">i", end - 11) + data[12:] + b"\0")
    check(way, format, longer, ("trailing_bytes", "1 byte left after the value", end, None, None))


@every_way
def test_value_without_required_wrapper_is_rejected(way: Implementation) -> None:
    format = "kip82-message-wrapper"
    data = changed(format, message(format, value=b"v"), 34, b"\1")
    check(way, format, data, ("bad_magic", "magic 1 is unknown: a wrapper has 0", 34, None, None))


ID = bytes(range(16))


@every_way
def test_truncated_payload_is_rejected(way: Implementation) -> None:
    data = ID + struct.pack("<II", 0, 3) + b"ab"
    check(way, "iggy-message-2023", data, ("truncated", "payload takes 3 bytes and 2 are left", 24, None, None))


@every_way
def test_bytes_after_payload_are_rejected(way: Implementation) -> None:
    data = ID + struct.pack("<II", 0, 1) + b"ab"
    check(way, "iggy-message-2023", data, ("trailing_bytes", "1 byte left after the payload", 25, None, None))


@every_way
def test_message_with_64_byte_header_reports_all_errors(way: Implementation) -> None:
    head = struct.pack("<Q", 0) + ID + struct.pack("<QQQIIQ", 2**63, 2**64 - 1, 0, 0, 1, 5)
    check(
        way, "iggy-message", head + b"p!",
        ("out_of_range", "offset does not fit int64", 24, None, None),
        ("out_of_range", "timestamp does not fit int64", 32, None, None),
        ("bad_attributes", "the reserved bytes are not 0", 56, None, None),
        ("trailing_bytes", "1 byte left after the headers", 65, None, None),
    )  # fmt: skip


@every_way
@pytest.mark.parametrize(
    ("headers_len", "payload_len", "field", "byte"), [(0, 2, "payload", 64), (2, 0, "headers block", 64)]
)
def test_truncated_message_with_64_byte_header_is_rejected(
    headers_len: int, payload_len: int, field: str, byte: int, way: Implementation
) -> None:
    data = bytes(48) + struct.pack("<IIQ", headers_len, payload_len, 0) + b"p"
    check(way, "iggy-message", data, ("truncated", f"{field} takes 2 bytes and 1 is left", byte, None, None))


# --- batches ---------------------------------------------------------------------------------------------------------


def in_set(*messages: bytes, codec: int = 1, **fields: Any) -> bytes:
    return message("kip82-message", attributes=codec, value=squeeze(codec, b"".join(messages)), **fields)


@every_way
def test_unknown_codec_is_rejected_at_attributes(way: Implementation) -> None:
    whole = message("kip82-message", value=b"v")
    data = whole + message("kip82-message", attributes=4, value=b"v") + whole
    byte = len(whole) + 17
    check(way, "kip82-messages", data, ("unknown_codec", "message 1: codec 4 is unknown", byte, None, None))


@every_way
@pytest.mark.parametrize(
    ("codec", "value", "why"),
    [
        (1, gzip.compress(b"", mtime=0)[:-1], "the gzip data is corrupt: it ends too early"),
        (1, gzip.compress(b"", mtime=0) + b"!", "the gzip data is corrupt: bytes are left after its end"),
        (2, b"", "the snappy data is corrupt: it ends too early"),
        (2, b"\1\0", "the snappy data is corrupt: a block is wrong"),
        (3, b"no lz4", "the lz4 data is corrupt: it does not begin with the magic of a frame"),
        (3, squeeze(3, b"x")[:-1], "the lz4 data is corrupt: it ends too early"),
    ],
)
def test_unreadable_compressed_data_is_rejected_at_set(codec: int, value: bytes, why: str, way: Implementation) -> None:
    data = message("kip82-message", attributes=codec, value=value)
    check(way, "kip82-messages", data, ("bad_compression", f"message 0: {why}", 34, None, None))


@every_way
def test_set_larger_than_limit_is_rejected(way: Implementation) -> None:
    data = message("kip82-message", attributes=2, value=bytes.fromhex("8180802000"))
    output = "message 0: decompressed data would pass 67108864 bytes"
    check(way, "kip82-messages", data, ("decompressed_too_large", output, 34, None, None))


@every_way
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_nested_set_is_rejected(codec: int, way: Implementation) -> None:
    data = in_set(in_set(message("kip82-message")), codec=codec)
    output = "message 0: a compressed set inside a compressed set"
    check(way, "kip82-messages", data, ("bad_attributes", output, 34, None, None))


@every_way
def test_set_with_other_magic_than_its_message_is_rejected(way: Implementation) -> None:
    data = in_set(message("kip82-message", magic=1))
    check(way, "kip82-messages", data, ("bad_magic", "message 0: magic 1 inside a set of magic 2", 34, None, None))


@every_way
def test_truncated_inner_set_ends_only_itself(way: Implementation) -> None:
    whole = message("kip82-message", value=b"v")
    data = in_set(whole + whole[:-1]) + whole[:-1]
    check(
        way, "kip82-messages", data,
        ("truncated", "message 1: message takes 23 bytes and 22 are left", 34, None, None),
        ("truncated", "message 2: message takes 23 bytes and 22 are left", len(data) - 22, None, None),
    )  # fmt: skip
    with pytest.raises(DecodeError, match="message 1"):
        way.messages(data, "kip82-messages", lenient=True)
    assert len(way.messages(whole + whole[:-1], "kip82-messages", lenient=True)) == 1


POLLED = struct.pack("<QBQ", 7, 1, 9) + ID + struct.pack("<III", zlib.crc32(b"pp"), 0, 2) + b"pp"


@every_way
def test_unknown_state_is_rejected(way: Implementation) -> None:
    data = POLLED + POLLED[:8] + b"\2" + POLLED[9:]
    byte = len(POLLED) + 8
    check(way, "iggy-polled-2023", data, ("bad_attributes", "message 1: state 2 is unknown", byte, None, None))


@every_way
def test_wrong_payload_checksum_is_rejected(way: Implementation) -> None:
    data = POLLED[:33] + bytes(4) + POLLED[37:]
    output = f"message 0: the checksum is 00000000 and the bytes give {zlib.crc32(b'pp'):08x}"
    check(way, "iggy-polled-2023", data, ("bad_crc", output, 33, None, None))


@every_way
def test_truncated_polled_message_ends_read(way: Implementation) -> None:
    at = len(POLLED)
    output = "message 1: payload takes 2 bytes and 1 is left"
    check(way, "iggy-polled-2023", POLLED + POLLED[:-1], ("truncated", output, 2 * at - 2, None, None))
    output = "message 1: offset takes 8 bytes and 3 are left"
    check(way, "iggy-polled-2023", POLLED + bytes(3), ("truncated", output, at, None, None))


GOOD = batch(frame(0, b"p"))


@every_way
@pytest.mark.parametrize(
    ("at", "new", "code", "message", "byte"),
    [
        (32, struct.pack("<Q", 5), "wrong_size", "batch of 5 bytes where its header takes 256", 32),
        (32, struct.pack("<Q", 999), "truncated", "the batch takes 999 bytes and 305 are left", 32),
        (52, b"\2", "bad_attributes", "producer flag 2 is unknown", 52),
        (60, b"\1", "bad_attributes", "the reserved bytes are not 0", 52),
        (100, b"\1", "bad_attributes", "the reserved bytes are not 0", 72),
        (HEADER_LEN + 40, b"\1", "bad_attributes", "the reserved bytes are not 0", HEADER_LEN + 40),
        (HEADER_LEN + 36, b"\2", "truncated", "payload takes 2 bytes and 1 is left", HEADER_LEN + 48),
    ],
)
def test_batch_is_validated_completely(
    at: int, new: bytes, code: str, message: str, byte: int, way: Implementation
) -> None:
    data = GOOD[:at] + new + GOOD[at + len(new) :]
    assert (code, f"message 0: {message}", byte, None, None) in places(way.validate(data, "iggy-batch"))
    with pytest.raises(DecodeError, match=r"^iggy-batch: message 0: "):
        way.messages(data, "iggy-batch")


@every_way
@pytest.mark.parametrize("at", [40, HEADER_LEN])
def test_wrong_batch_checksum_is_rejected(at: int, way: Implementation) -> None:
    data = GOOD[:at] + bytes(8) + GOOD[at + 8 :]
    source = GOOD[at : at + 8][::-1].hex()
    output = f"message 0: the checksum is {bytes(8).hex()} and the bytes give {source}"
    assert ("bad_crc", output, at, None, None) in places(way.validate(data, "iggy-batch"))


@every_way
def test_batch_with_wrong_message_count_is_rejected(way: Implementation) -> None:
    data = batch(frame(0), count=3) + GOOD
    output = "message 1: the batch announces 3 messages and has 1"
    check(way, "iggy-batch", data, ("count_too_large", output, 48, None, None))


@every_way
def test_offset_out_of_column_range_is_rejected(way: Implementation) -> None:
    data = batch(frame(0), frame(1), base=2**63 - 1)
    byte = HEADER_LEN + len(frame(0))
    check(way, "iggy-batch", data, ("out_of_range", "message 1: offset does not fit int64", byte, None, None))
