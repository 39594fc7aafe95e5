"""Records of the three header formats: headers, bytes, and older and newer clients."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pickle
import pydoc
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import ConversionError, DecodeError, EncodeError
from letterhead.kip82 import (
    RESERVED,
    ConsumerRecord,
    Headers,
    HeaderSerializer,
    IntHeaders,
    MessageWrapper,
    ProducerRecord,
    Serialized,
    Serializer,
    Typed,
)
from letterhead.kip82.header_formats import BATCH_FORMATS, HEADERS_FORMATS, MESSAGE_FORMATS, HeaderFormat
from tests.reference import ops as reference

HEADER_FORMATS: list[HeaderFormat] = ["typed", "int", "wrapper"]
every_header_format = pytest.mark.parametrize("header_format", HEADER_FORMATS)
every_flagged_layout = pytest.mark.parametrize("header_format", ["typed", "int"])

KEY: dict[HeaderFormat, Any] = {"typed": "tenant", "int": 5, "wrapper": 5}
"""A key for each header format."""


def message(
    attributes: int,
    headers: bytes | None,
    value: bytes | None,
    *,
    key: bytes = b"k",
    timestamp: int = 7,
    magic: int = 2,
) -> bytes:
    """Encode a message at offset 3 as the drafts specify it; without headers, as Kafka wrote it before."""

    def sized(data: bytes | None) -> bytes:
        return struct.pack(">i", -1 if data is None else len(data)) + (data or b"")

    body = struct.pack(">bbq", magic, attributes, timestamp) + sized(key)
    body += (b"" if headers is None else sized(headers)) + sized(value)
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 3, len(body)) + body


def read_one(data: bytes, header_format: HeaderFormat, **options: Any) -> ConsumerRecord:
    [record] = ConsumerRecord.read(data, topic="t", header_format=header_format, **options)
    return record


# The bytes -----------------------------------------------------------------------------------------------------------


@every_flagged_layout
def test_headers_follow_the_key_and_set_bit_4(header_format: HeaderFormat) -> None:
    record = ProducerRecord(
        "t", b"k", b"v", timestamp=7, headers={KEY[header_format]: b"acme"}, header_format=header_format
    )
    assert record.to_bytes(3) == message(0x10, record.get_headers().as_bytes(), b"v")


@every_flagged_layout
def test_message_without_headers_has_its_old_size_and_no_flag(header_format: HeaderFormat) -> None:
    record = ProducerRecord("t", b"k", b"v", timestamp=7, header_format=header_format)
    before = message(0, None, b"v", magic=1)
    assert record.to_bytes(3) == message(0, None, b"v")
    assert len(record.to_bytes(3)) == len(before)
    # But for the number of the format and the checksum they are the same bytes.
    assert record.to_bytes(3)[:12] == before[:12]
    assert record.to_bytes(3)[17:] == before[17:]


@every_flagged_layout
@pytest.mark.parametrize("count", [1, 2, 10])
def test_headers_take_four_bytes_and_their_encoding(header_format: HeaderFormat, count: int) -> None:
    bare = ProducerRecord("t", b"k", b"v", header_format=header_format)
    pairs = [(KEY[header_format], b"x" * n) for n in range(count)]
    record = ProducerRecord("t", b"k", b"v", headers=pairs, header_format=header_format)
    assert len(record.to_bytes()) == len(bare.to_bytes()) + 4 + len(record.get_headers().as_bytes())


def test_wrapper_layout_has_wrapper_value_and_bit_4_as_tombstone() -> None:
    wrapper = MessageWrapper({5: b"acme"}, b"v")
    record = ProducerRecord("t", b"k", wrapper, timestamp=7, header_format="wrapper")
    assert record.to_bytes(3) == message(0, None, wrapper.to_bytes())
    delete = ProducerRecord("t", b"k", wrapper, timestamp=7, header_format="wrapper", tombstone=True)
    assert delete.to_bytes(3) == message(0x10, None, wrapper.to_bytes())
    assert (record.tombstone, delete.tombstone) == (False, True)
    assert read_one(delete.to_bytes(), "wrapper").value == b"v"


def test_delete_in_wrapper_layout_has_headers() -> None:
    record = ProducerRecord("t", b"k", headers={5: b"acme"}, header_format="wrapper")
    read = read_one(record.to_bytes(), "wrapper")
    assert (read.tombstone, read.value, read.get_header(5)) == (True, None, b"acme")
    kept = ProducerRecord("t", b"k", headers={5: b"acme"}, header_format="wrapper", tombstone=False)
    assert read_one(kept.to_bytes(), "wrapper").tombstone is False


@every_flagged_layout
def test_delete_in_other_layouts_is_null_value_with_headers(header_format: HeaderFormat) -> None:
    record = ProducerRecord("t", b"k", headers={KEY[header_format]: b"acme"}, header_format=header_format)
    read = read_one(record.to_bytes(), header_format)
    assert (read.tombstone, read.value, read.get_header(KEY[header_format])) == (True, None, b"acme")
    with pytest.raises(EncodeError, match="is a message without a value: leave out tombstone=") as caught:
        ProducerRecord("t", b"k", b"v", header_format=header_format, tombstone=True)
    assert (caught.value.format, caught.value.code) == (MESSAGE_FORMATS[header_format], "field_not_carried")


# Old and new clients -------------------------------------------------------------------------------------------------


@every_header_format
@pytest.mark.parametrize("magic", [0, 1])
def test_older_messages_have_empty_headers(header_format: HeaderFormat, magic: int) -> None:
    old = lh.Message(offset=3, key=b"k", value=b"v", timestamp=7 if magic else None, magic=magic)
    read = read_one(lh.encode(old, MESSAGE_FORMATS[header_format]) or b"", header_format)
    assert (read.key, read.value, read.offset, len(read.get_headers())) == (b"k", b"v", 3, 0)
    assert read.timestamp == (7 if magic else None)
    assert read.get_header(KEY[header_format]) is None


def test_older_format_rejects_headers() -> None:
    record = ProducerRecord("t", b"k", b"v", headers={"tenant": "acme"})
    with pytest.raises(ConversionError, match="magic 1 has no headers"):
        lh.encode(lh.Message(**record.to_message()._asdict(), magic=1), "kip82-message")


@every_header_format
def test_null_value_without_headers_is_read_with_empty_headers(header_format: HeaderFormat) -> None:
    read = read_one(ProducerRecord("t", b"k", header_format=header_format).to_bytes(), header_format)
    assert (read.value, read.tombstone, len(read.get_headers())) == (None, True, 0)


def test_null_value_without_a_wrapper_is_a_delete() -> None:
    for attributes in (0, 0x10):
        assert read_one(message(attributes, None, None), "wrapper").tombstone is True


# Headers of records --------------------------------------------------------------------------------------------------


@every_header_format
def test_consumer_reads_producer_headers(header_format: HeaderFormat) -> None:
    key = KEY[header_format]
    record = ProducerRecord("t", b"k", b"v", header_format=header_format)
    record.set_header(key, b"one")
    record.set_header(key, b"two")
    assert (record.get_header(key), record.get_headers().get_all(key)) == (b"two", [b"two"])
    read = read_one(record.to_bytes(), header_format)
    assert read.get_header(key) == b"two"
    assert isinstance(read.get_headers(), Headers if header_format == "typed" else IntHeaders)


@every_header_format
def test_consumed_record_is_immutable(header_format: HeaderFormat) -> None:
    key = KEY[header_format]
    read = read_one(
        ProducerRecord("t", b"k", b"v", headers={key: b"a"}, header_format=header_format).to_bytes(), header_format
    )
    with pytest.raises(TypeError, match=r"immutable: use with_header\(\.\.\.\)"):
        read.set_header(key, b"b")
    with pytest.raises(TypeError, match="immutable"):
        read.get_headers().put(key, b"b")  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.value = b"w"  # type: ignore[misc]
    other = read.with_header(key, b"b").without_headers().replace(value=b"w")
    assert (read.get_header(key), other.get_header(key), other.value) == (b"a", b"b", b"w")
    with pytest.raises(TypeError, match="immutable"):
        other.get_headers().remove(key)  # type: ignore[arg-type]


def test_get_header_returns_last_value_of_repeated_key() -> None:
    record = ProducerRecord("t", headers=[(5, b"a"), (6, b""), (5, b"b")], header_format="int")
    read = read_one(record.to_bytes(), "int")
    assert (read.get_header(5), read.get_headers().get_all(5)) == (b"b", [b"a", b"b"])


def test_null_header_differs_from_a_missing_one() -> None:
    record = ProducerRecord("t", headers={5: None}, header_format="int")
    assert (record.get_header(5), 5 in record.headers, record.get_header(6), 6 in record.headers) == (
        None,
        True,
        None,
        False,
    )


@pytest.mark.parametrize(("header_format", "key"), [("typed", 5), ("int", "tenant"), ("wrapper", "tenant")])
def test_keys_of_another_layout_are_rejected(header_format: HeaderFormat, key: Any) -> None:
    record = ProducerRecord("t", header_format=header_format)
    for use in (
        lambda: record.set_header(key, b"x"),
        lambda: record.get_header(key),
        lambda: ProducerRecord("t", headers={key: b"x"}, header_format=header_format),
    ):
        with pytest.raises(EncodeError) as caught:
            use()
        assert (caught.value.format, caught.value.code, caught.value.key) == (
            HEADERS_FORMATS[header_format],
            "key_not_carried",
            str(key),
        )


def test_keys_outside_writer_range_are_rejected() -> None:
    record = ProducerRecord("t", headers=IntHeaders(writes=RESERVED["in-house"]), header_format="int")
    record.set_header(1_000_000_001, b"ours")
    with pytest.raises(EncodeError, match="key 7 is outside the range of its writer"):
        record.set_header(7, b"theirs")
    assert record.get_headers().keys() == [1_000_000_001]


@every_header_format
def test_serializers_apply_to_headers_of_records(header_format: HeaderFormat) -> None:
    key = KEY[header_format]
    long = {key: HeaderSerializer.for_type("long")}
    record = ProducerRecord("t", header_format=header_format)._with_serializers(long)
    record.set_header(key, 82)
    data = record.to_bytes()
    assert read_one(data, header_format, serializers=long).get_header(key) == 82
    assert read_one(data, header_format)._with_serializers(long).get_header(key) == 82
    assert read_one(data, header_format).get_header(key) == (82 if header_format == "typed" else struct.pack(">q", 82))


def test_record_parses_encoded_headers_on_first_access() -> None:
    block = Headers({"tenant": "acme"}).as_bytes()
    record = ConsumerRecord("t", headers=block)
    again = record.replace(value=b"v")._with_serializers({})
    assert not record.get_headers().parsed
    assert not again.get_headers().parsed
    assert again.get_headers().as_bytes() == block
    assert again.get_header("tenant") == "acme"
    assert again.get_headers().parsed


def test_sorted_headers_are_written_sorted_and_read_partially() -> None:
    headers = IntHeaders({70_000: b"b", 1: b"a"}).sorted()
    record = ProducerRecord("t", b"k", b"v", headers=headers, header_format="int")
    read = read_one(record.to_bytes(), "int").get_headers()
    assert isinstance(read, IntHeaders)
    assert read.keys() == [1, 70_000]
    assert IntHeaders(read.as_bytes(), in_order=True).up_to(9_999).keys() == [1]
    [sent] = lh.messages(record.to_bytes(), "kip82-messages-int")
    assert lh.encode(sent.headers, "kip82-int") == headers.as_bytes()


# Serializers of keys and values -----------------------------------------------------------------------------------------

TEXT = Serializer(str.encode, bytes.decode)
AS_JSON: Serializer[Any] = Serializer(lambda value: json.dumps(value).encode(), json.loads)
SERIALIZERS: dict[str, Any] = {"key_serializer": TEXT, "value_serializer": AS_JSON}


@every_header_format
def test_serializers_convert_keys_and_values(header_format: HeaderFormat) -> None:
    record = ProducerRecord("t", "ké", {"qty": 42}, header_format=header_format, **SERIALIZERS)
    assert (record.key, record.value, record.tombstone) == ("ké", {"qty": 42}, False)
    assert (record.serialized_key(), record.serialized_value()) == ("ké".encode(), b'{"qty": 42}')
    plain = ProducerRecord("t", "ké".encode(), b'{"qty": 42}', header_format=header_format)
    assert record.to_bytes(3) == plain.to_bytes(3)
    read = read_one(record.to_bytes(3), header_format, **SERIALIZERS)
    assert (read.key, read.value) == ("ké", {"qty": 42})
    assert read.value is read.value
    assert read_one(record.to_bytes(3), header_format).value == b'{"qty": 42}'
    [message] = lh.messages(record.to_bytes(3), BATCH_FORMATS[header_format])
    assert ConsumerRecord.from_message(message, topic="t", header_format=header_format, **SERIALIZERS) == read


@every_header_format
def test_null_is_not_passed_to_serializers(header_format: HeaderFormat) -> None:
    record = ProducerRecord("t", header_format=header_format, **SERIALIZERS)
    assert (record.serialized_key(), record.serialized_value(), record.tombstone) == (None, None, True)
    read = read_one(record.to_bytes(), header_format, **SERIALIZERS)
    assert (read.key, read.value, read.tombstone) == (None, None, True)
    # A value that is deserialized to None is not a delete.
    none = read_one(
        ProducerRecord("t", value=b"null", header_format=header_format).to_bytes(), header_format, **SERIALIZERS
    )
    assert (none.value, none.tombstone) == (None, False)


def test_value_that_cannot_be_deserialized_fails_on_access_only() -> None:
    sent = [ProducerRecord("t", b"k", value, headers={"h": "x"}) for value in (b"{", b"1")]
    bad, good = ConsumerRecord.read(b"".join(record.to_bytes() for record in sent), topic="t", value_serializer=AS_JSON)
    with pytest.raises(json.JSONDecodeError) as caught:
        _ = bad.value
    assert caught.value.__notes__ == ["in the value of a record of t"]
    assert (bad.key, bad.get_header("h"), bad.serialized_value(), bad.tombstone) == (b"k", "x", b"{", False)
    assert "value=b'{'" in repr(bad)
    assert good.value == 1


def test_forward_does_not_deserialize() -> None:
    [read] = ConsumerRecord.read(ProducerRecord("t", b"k", b'{"qty":42}').to_bytes(), topic="t", **SERIALIZERS)
    assert read.value == {"qty": 42}
    on = read.forward("u")
    assert (on.value, on.serialized_value()) == ({"qty": 42}, b'{"qty":42}')
    assert on.replace(value={"qty": 43}).serialized_value() == b'{"qty": 43}'
    assert on.replace(value=Serialized(b"[]")).value == []
    assert read.replace(topic="u", value=None).tombstone is True


def test_record_takes_the_serializer_of_its_wrapper() -> None:
    wrapper = MessageWrapper({5: b"acme"}, {"qty": 42}, serializer=AS_JSON)
    assert wrapper.to_bytes() == MessageWrapper({5: b"acme"}, b'{"qty": 42}').to_bytes()
    assert MessageWrapper.from_bytes(wrapper.to_bytes(), serializer=AS_JSON) == wrapper
    record = ProducerRecord("t", b"k", wrapper, header_format="wrapper")
    assert (record.value, record.serialized_value(), record.wrapper) == ({"qty": 42}, b'{"qty": 42}', wrapper)
    assert read_one(record.to_bytes(), "wrapper", value_serializer=AS_JSON).wrapper == wrapper


def test_help_describes_the_classes_of_records() -> None:
    assert "A record to be produced" in pydoc.render_doc(ProducerRecord)
    assert hasattr(ConsumerRecord, "value")


def test_serializer_must_return_bytes() -> None:
    record = ProducerRecord("t", 3, value_serializer=AS_JSON, key_serializer=Serializer(str, int))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the key serializer must return bytes, not str"):
        record.to_bytes()
    with pytest.raises(
        TypeError, match="the key must be bytes or None, not int: pass key_serializer= for other objects"
    ):
        record.replace(key_serializer=None)


# Headers that cannot be parsed -----------------------------------------------------------------------------------------

BAD: dict[HeaderFormat, bytes] = {
    "typed": bytes.fromhex("00000001 61 00000002 ff 00"),
    "int": bytes.fromhex("00000005 fffffffe"),
    "wrapper": bytes.fromhex("00000005 00000009 61"),
}
"""Headers with an unknown type, with a negative length, and cut off."""


def message_with(header_format: HeaderFormat, block: bytes, value: bytes = b"v") -> bytes:
    """Encode a message at offset 3 with these bytes as its headers."""
    if header_format == "wrapper":
        wrapper = b"\0" + struct.pack(">i", len(block)) + block + struct.pack(">i", len(value)) + value
        return message(0, None, wrapper)
    return message(0x10, block, value)


@every_header_format
def test_headers_are_parsed_on_first_access(header_format: HeaderFormat) -> None:
    sent = ProducerRecord("t", b"k", b"v", headers={KEY[header_format]: b"x"}, header_format=header_format)
    read = read_one(sent.to_bytes(), header_format)
    assert not read.get_headers().parsed
    assert (read.key, read.value, read.get_headers().as_bytes()) == (b"k", b"v", sent.get_headers().as_bytes())
    assert not read.get_headers().parsed
    assert read.get_header(KEY[header_format]) == b"x"
    assert read.get_headers().parsed


@every_header_format
def test_damaged_headers_leave_value_and_later_records_readable(header_format: HeaderFormat) -> None:
    good = ProducerRecord("t", b"k", b"w", headers={KEY[header_format]: b"x"}, header_format=header_format).to_bytes(4)
    bad, last = ConsumerRecord.read(
        message_with(header_format, BAD[header_format]) + good, topic="t", header_format=header_format
    )
    assert (bad.key, bad.value, bad.offset, bad.tombstone) == (b"k", b"v", 3, False)
    assert (last.value, last.get_header(KEY[header_format])) == (b"w", b"x")
    assert bad.get_headers().as_bytes() == BAD[header_format]
    for access in (lambda: bad.get_header(KEY[header_format]), lambda: len(bad.headers), lambda: bad.headers.keys()):
        with pytest.raises(DecodeError) as caught:
            access()
        error = caught.value
        assert (error.format, error.header) == (HEADERS_FORMATS[header_format], 0)
        assert str(bad.get_headers().error) == str(error)
    assert last.get_headers().error is None
    assert bad == read_one(message_with(header_format, BAD[header_format]), header_format)


@every_header_format
def test_errors_null_reads_damaged_headers_as_none(header_format: HeaderFormat) -> None:
    read = read_one(message_with(header_format, BAD[header_format]), header_format, errors="null")
    assert (read.value, read.get_header(KEY[header_format]), len(read.get_headers())) == (b"v", None, 0)
    error = read.get_headers().error
    assert error is not None
    assert error.format == HEADERS_FORMATS[header_format]
    assert read.get_headers().as_bytes() == BAD[header_format]
    again = pickle.loads(pickle.dumps(read._with_serializers({})))
    assert (str(again.headers.error), again.headers.keys()) == (str(error), [])
    with pytest.raises(ValueError, match="unknown errors 'nul': did you mean 'null'"):
        read_one(b"", header_format, errors="nul")


@every_flagged_layout
def test_damaged_headers_in_compressed_set_leave_others_readable(header_format: HeaderFormat) -> None:
    inner = message_with(header_format, BAD[header_format]) + ProducerRecord(
        "t", b"k", b"w", header_format=header_format
    ).to_bytes(4)
    read = list(ConsumerRecord.read(message(1, None, gzip.compress(inner)), topic="t", header_format=header_format))
    assert [record.value for record in read] == [b"v", b"w"]
    assert [record.get_headers().error is None for record in read] == [False, True]


@every_header_format
@given(data=st.data())
def test_lazy_headers_agree_with_the_reference(header_format: HeaderFormat, data: st.DataObject) -> None:
    cut = data.draw(st.binary(max_size=24) | st.just(BAD[header_format]))
    read = read_one(message_with(header_format, cut or BAD[header_format]), header_format)
    try:
        expected = [
            (key, value)
            for key, _, value in reference.decode(cut or BAD[header_format], HEADERS_FORMATS[header_format])
        ]
    except DecodeError as error:
        assert read.get_headers().error is not None
        assert (read.get_headers().error.code, read.value) == (error.code, b"v")
    else:
        assert [key for key, _ in expected] == [key for key, _ in read.get_headers().to_headers().items()]


# Fields --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ProducerRecord("t", "k"), "the key must be bytes or None, not str"),  # type: ignore[arg-type]
        (lambda: ProducerRecord("t", b"k", 42), "the value must be bytes or None, not int"),
        (lambda: ProducerRecord("t", value=MessageWrapper({}, b"v")), "needs header_format='wrapper', not 'typed'"),
        (
            lambda: ProducerRecord("t", value=MessageWrapper({}, b"v"), headers={5: b""}, header_format="wrapper"),
            "a MessageWrapper has headers of its own",
        ),
    ],
)
def test_field_of_wrong_type_raises_type_error(make: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        make()


def test_unknown_layout_is_rejected() -> None:
    with pytest.raises(ValueError, match="unknown header format 'wraper': did you mean 'wrapper'"):
        ProducerRecord("t", header_format="wraper")  # type: ignore[arg-type]


def test_record_wrapper_has_its_headers_and_value() -> None:
    headers = IntHeaders({5: b"a"})
    record = ProducerRecord("t", b"k", MessageWrapper(headers, b"v"), header_format="wrapper")
    record.set_header(6, b"b")
    assert record.wrapper == MessageWrapper({5: b"a", 6: b"b"}, b"v")
    assert record.get_headers() is headers
    assert ProducerRecord("t", header_format="int").wrapper is None


@every_header_format
def test_forward_keeps_everything_but_the_topic(header_format: HeaderFormat) -> None:
    sent = ProducerRecord("a", b"k", b"v", timestamp=7, headers={KEY[header_format]: b"x"}, header_format=header_format)
    read = read_one(sent.to_bytes(3), header_format)
    on = read.forward("b")
    assert (on.topic, on.to_bytes(3)) == ("b", sent.to_bytes(3))
    on.set_header(KEY[header_format], b"y")
    assert read.get_header(KEY[header_format]) == b"x"


@every_header_format
def test_tombstone_follows_the_value_unless_it_is_marked(header_format: HeaderFormat) -> None:
    record = ProducerRecord("t", b"k", header_format=header_format)
    assert record.replace(value=b"v").tombstone is (header_format == "wrapper")
    assert record.replace(value=b"v", tombstone=False).tombstone is False


def test_records_are_equal_by_their_fields_and_can_be_pickled() -> None:
    record = read_one(ProducerRecord("t", b"k", b"v", headers={"n": Typed("int", 3)}).to_bytes(3), "typed")
    assert pickle.loads(pickle.dumps(record)) == record
    assert record != record.replace(offset=4)


@every_header_format
def test_damaged_message_raises_after_the_records_before_it(header_format: HeaderFormat) -> None:
    good = ProducerRecord("t", b"k", b"v", headers={KEY[header_format]: b"x"}, header_format=header_format).to_bytes()
    bad = bytearray(good)
    bad[-1] ^= 1
    records = ConsumerRecord.read(good + bytes(bad), topic="t", header_format=header_format)
    assert next(records).value == b"v"
    with pytest.raises(DecodeError, match="message 1: the checksum is") as caught:
        next(records)
    error = caught.value
    assert (error.format, error.code, error.byte_offset) == (
        f"kip82-messages{MESSAGE_FORMATS[header_format][13:]}",
        "bad_crc",
        len(good) + 12,
    )
