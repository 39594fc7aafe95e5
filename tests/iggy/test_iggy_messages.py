"""``letterhead.iggy``: messages as they are sent and polled, in bytes and JSON."""

from __future__ import annotations

import itertools
import re
import struct
import uuid
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import ConversionError, DecodeError, EncodeError
from letterhead.iggy import (
    Consumer,
    HeaderKey,
    HeaderMap,
    HeaderValue,
    Identifier,
    Message,
    MessageState,
    Partitioning,
    PolledMessage,
    PolledMessages,
    PollingStrategy,
    PollMessages,
    SendMessages,
    iggy_code,
)
from letterhead.iggy.partitioning import partition_of
from tests.helpers import strategies
from tests.reference import ops

HEADERS = HeaderMap({"key 1": "value1", "key-2": True, "key_3": lh.UInt64(123456)})
TYPED = HeaderMap([(HeaderKey.from_int32(3), "x"), ("a", lh.Float64(0.5))])
ENCRYPTED = b"\x00no headers at all"
KEY = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def request(*messages: Message, stream: int | str = 1, topic: int | str = "sample") -> SendMessages:
    return SendMessages(stream, topic, Partitioning.messages_key(b"key"), messages)


def polled(**changes: Any) -> PolledMessage:
    source: dict[str, Any] = {
        "offset": 5,
        "timestamp": 1767225600000000,
        "id": 7,
        "payload": b"hello",
        "headers": HEADERS,
    }
    return PolledMessage(**{**source, **changes})


def test_message_id_is_128_bit_number() -> None:
    assert [Message().id, Message(7).id, Message(KEY).id] == [0, 7, KEY.int]
    for wrong in (-1, 1 << 128):
        with pytest.raises(EncodeError, match="the id does not fit uint128"):
            Message(wrong)
    source: Any
    for source in ("7", 7.0, True):
        with pytest.raises(TypeError):
            Message(source)


def test_json_id_is_number_digits_or_uuid() -> None:
    for text, number in (
        ('{"payload":""}', 0),
        ('{"id":7,"payload":""}', 7),
        ('{"id":"7","payload":""}', 7),
        (f'{{"id":{KEY.int},"payload":""}}', KEY.int),
        (f'{{"id":"{KEY.int}","payload":""}}', KEY.int),
        (f'{{"id":"{KEY}","payload":""}}', KEY.int),
        (f'{{"id":"{KEY.hex}","payload":""}}', KEY.int),
    ):
        assert Message.from_json(text).id == number
    for wrong in ("null", "-1", "1.5", "true", '"x"', '""', str(1 << 128), f'"{1 << 128}"', '"-1"', "[]"):
        with pytest.raises(DecodeError):
            Message.from_json(f'{{"id":{wrong},"payload":""}}')


def test_id_over_64_bits_is_text_in_newer_json() -> None:
    message = Message(KEY, b"x")
    assert message.to_json() == f'{{"id":{KEY.int},"payload":"eA==","headers":null}}'
    assert message.to_json("iggy") == f'{{"id":"{KEY.int}","payload":"eA=="}}'
    assert Message.from_json(message.to_json("iggy")) == message


def test_absent_headers_are_null_in_older_json_only() -> None:
    none, empty = Message(1, b"x"), Message(1, b"x", {})
    assert [none.to_json(), empty.to_json()] == [
        '{"id":1,"payload":"eA==","headers":null}',
        '{"id":1,"payload":"eA==","headers":{}}',
    ]
    assert none.to_json("iggy") == empty.to_json("iggy") == '{"id":1,"payload":"eA=="}'
    assert none.to_bytes() == empty.to_bytes()
    assert Message.from_bytes(empty.to_bytes()).headers is None


def test_headers_of_other_format_raise_instead_of_being_ignored() -> None:
    older, newer = Message(1, b"x", HEADERS).to_json(), Message(1, b"x", HEADERS).to_json("iggy")
    assert Message.from_json(older) == Message.from_json(newer) == Message(1, b"x", HEADERS)
    both = older[:-1] + "," + newer[newer.index('"user_headers"') :]
    for text, format in ((older, "iggy"), (newer, "iggy-2023"), (both, "iggy-auto")):
        with pytest.raises(DecodeError, match="by its format"):
            Message.from_json(text, format)


def test_newer_json_payload_needs_padding() -> None:
    assert Message.from_json('{"payload":"eA"}', "iggy-2023").payload == b"x"
    with pytest.raises(DecodeError, match="the field payload of a message is not base64"):
        Message.from_json('{"payload":"eA"}', "iggy")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"payload":1}',
        '{"payload":"eA==","payload":"eA=="}',
        '{"payload":"eA==","headers":3}',
        '{"payload":"eA==","user_headers":{}}',
        '{"payload":"eA==","user_headers":[3]}',
    ],
)
def test_malformed_message_json_raises(text: str) -> None:
    with pytest.raises(DecodeError) as raised:
        Message.from_json(text)
    assert raised.value.code == "bad_text"


def test_unreadable_headers_are_kept_as_bytes() -> None:
    message = Message(1, b"x", ENCRYPTED)
    assert Message.from_json(message.to_json("iggy")) == message
    assert '"user_headers":"AG5v' in message.to_json("iggy")
    for write in (message.to_bytes, message.to_json):
        with pytest.raises(ConversionError, match="headers as bytes are not carried") as raised:
            write()
        assert raised.value.code == "field_not_carried"
    body = request(message, Message(2, b"y", TYPED)).to_bytes("iggy")
    with pytest.raises(DecodeError, match="message 0: "):
        SendMessages.from_bytes(body, "iggy")
    read = SendMessages.from_bytes(body, "iggy", validate=False)
    assert [source.headers for source in read.messages] == [ENCRYPTED, TYPED]
    assert read.to_bytes("iggy") == body
    # A text that does read as headers is headers, as it is to a server.
    assert Message.from_json('{"payload":"eA==","user_headers":"AgEAAABhAgEAAABi"}').headers == HeaderMap({"a": "b"})


def test_messages_accept_same_headers_as_maps() -> None:
    assert Message(1, b"x", [("a", "b")]) == Message(1, b"x", lh.Headers([("a", lh.String("b"))]))
    with pytest.raises(ConversionError, match="iggy values need a type"):
        Message(1, b"x", lh.Headers([("a", b"b")]))
    wrong: Any
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError, match="the payload must be bytes"):
            Message(1, wrong)
    with pytest.raises(EncodeError, match="the origin timestamp does not fit int64"):
        Message(1, b"x", origin_timestamp=-1)


def test_requests_survive_bytes_and_json() -> None:
    source = request(Message(1, b"x", HEADERS, origin_timestamp=5), Message(KEY, b"y", origin_timestamp=3))
    plain = request(Message(1, b"x", HEADERS), Message(KEY, b"y"))
    assert SendMessages.from_bytes(source.to_bytes()) == plain
    assert SendMessages.from_bytes(source.to_bytes("iggy"), "iggy") == source
    where = {"stream_id": source.stream_id, "topic_id": "sample"}
    for format in ("iggy-2023", "iggy"):
        text = source.to_json(format)
        assert SendMessages.from_json(text, **where) == plain
    typed = request(Message(1, b"x", TYPED, origin_timestamp=0))
    assert SendMessages.from_bytes(typed.to_bytes("iggy"), "iggy") == typed
    with pytest.raises(ConversionError, match="the key is int32"):
        typed.to_bytes()


def test_truncated_request_raises_or_has_fewer_messages() -> None:
    messages = [Message(1, b"first", HEADERS, origin_timestamp=1), Message(2, b"second", origin_timestamp=2)]
    older, newer = request(*messages).to_bytes(), request(*messages).to_bytes("iggy")
    whole = 0
    for end in range(len(older)):
        try:
            read = SendMessages.from_bytes(older[:end])
        except DecodeError as error:
            assert error.code == "truncated", end
            assert error.byte_offset is not None
            assert error.byte_offset <= end
        else:
            assert read.messages == SendMessages.from_bytes(older).messages[: len(read.messages)]
            whole += 1
    assert whole == 2  # before the first message, and after it
    for end in range(len(newer)):
        for validate in (True, False):
            with pytest.raises(DecodeError):
                SendMessages.from_bytes(newer[:end], "iggy", validate=validate)


def test_message_error_names_message_and_request_byte() -> None:
    body = bytearray(request(Message(1, b"first"), Message(2, b"second", {"k": "v"})).to_bytes())
    kind = body.index(b"k\2") + 1
    body[kind] = 99
    with pytest.raises(DecodeError) as raised:
        SendMessages.from_bytes(bytes(body))
    error = raised.value
    assert (error.code, error.byte_offset, error.header, error.format) == ("unknown_type", kind, 0, "iggy-2023")
    assert error.message == "message 1: value type code 99 is unknown"
    assert iggy_code(error) == 3


def test_wrong_checksum_is_rejected_unless_unvalidated() -> None:
    body = bytearray(request(Message(1, b"first", origin_timestamp=0)).to_bytes("iggy"))
    body[-1] ^= 1
    with pytest.raises(DecodeError) as raised:
        SendMessages.from_bytes(bytes(body), "iggy")
    assert raised.value.code == "bad_crc"
    assert raised.value.byte_offset is not None
    assert raised.value.byte_offset > 256
    assert SendMessages.from_bytes(bytes(body), "iggy", validate=False).messages[0].payload == b"firsu"


def test_request_lengths_must_match_content() -> None:
    body = request(Message(1, b"x", origin_timestamp=0)).to_bytes("iggy")
    metadata = int.from_bytes(body[:4], "little")
    longer = (metadata + 1).to_bytes(4, "little") + body[4:]
    with pytest.raises(DecodeError, match=f"metadata of {metadata + 1} bytes has {metadata}"):
        SendMessages.from_bytes(longer, "iggy")
    more = body[:metadata] + (2).to_bytes(4, "little") + body[metadata + 4 :]
    with pytest.raises(DecodeError, match="2 messages are announced and 1 are there") as raised:
        SendMessages.from_bytes(more, "iggy")
    assert raised.value.byte_offset == metadata


def test_requests_that_servers_reject_are_rejected() -> None:
    cases: list[tuple[SendMessages, str, str, int]] = [
        (request(), "iggy-2023", "empty_value", 4009),
        (request(), "iggy", "empty_value", 4009),
        (request(Message(1, b"")), "iggy-2023", "empty_value", 4024),
        (request(Message(1, b"x"), Message(1, b"")), "iggy", "empty_value", 4025),
        (request(Message(1, bytes(5_000_000)), Message(1, bytes(5_000_001))), "iggy-2023", "too_large", 4022),
        (request(Message(1, bytes(64_000_001))), "iggy", "too_large", 4022),
        (request(Message(1, b"x", bytes(100_001))), "iggy", "too_large", 4017),
        (request(Message(1, b"x"), stream=0), "iggy-2023", "out_of_range", 6),
        (request(Message(1, b"x"), topic=0), "iggy-2023", "out_of_range", 6),
    ]
    format: Any
    for sent, format, code, number in cases:
        for call in (sent.validate, sent.to_bytes):
            with pytest.raises(EncodeError) as raised:
                call(format)
            assert (raised.value.code, iggy_code(raised.value, format)) == (code, number)
    request(Message(1, b"x"), Message(1, b"")).validate("iggy-2023")
    request(Message(1, b"x"), stream=0).validate("iggy")
    assert request(Message(1, b"")).to_bytes(validate=False)
    assert request(Message(1, bytes(5_000_000)), Message(1, bytes(5_000_001))).to_bytes("iggy")


def test_messages_of_batch_span_at_most_71_minutes() -> None:
    most = (1 << 32) - 1
    fits = request(Message(1, b"x", origin_timestamp=most), Message(1, b"x", origin_timestamp=0))
    assert SendMessages.from_bytes(fits.to_bytes("iggy"), "iggy") == fits
    fits.messages[0].origin_timestamp = most + 1
    with pytest.raises(EncodeError, match="message 0: its time is too far") as raised:
        fits.to_bytes("iggy")
    assert raised.value.code == "out_of_range"


def test_identifiers_are_numbers_or_names() -> None:
    assert Identifier.numeric(4294967295).to_bytes().hex() == "0104ffffffff"
    assert Identifier.named("é").to_bytes().hex() == "0202c3a9"
    assert Identifier.numeric(0) == Identifier(0)
    for make, code in (
        (lambda: Identifier.numeric(-1), "out_of_range"),
        (lambda: Identifier.numeric(1 << 32), "out_of_range"),
        (lambda: Identifier.named(""), "empty_value"),
        (lambda: Identifier.named("é" * 128), "too_long"),
        (lambda: Identifier.named("\ud800"), "value_not_utf8"),
    ):
        with pytest.raises(EncodeError) as raised:
            make()
        assert raised.value.code == code
        assert iggy_code(raised.value) == (81 if code == "value_not_utf8" else 6)
    wrong: Any
    for wrong in ("1", 1.0, True, None):
        with pytest.raises(TypeError):
            Identifier.numeric(wrong)
    for wrong in (1, b"x"):
        with pytest.raises(TypeError):
            Identifier.named(wrong)


def test_partitioning_value_matches_its_kind() -> None:
    assert Partitioning.balanced().to_bytes() == b"\1\0"
    assert Partitioning.messages_key("é") == Partitioning.messages_key(b"\xc3\xa9")
    for make, code in (
        (lambda: Partitioning.partition_id(1 << 32), "out_of_range"),
        (lambda: Partitioning.messages_key(b""), "empty_value"),
        (lambda: Partitioning.messages_key(bytes(256)), "too_long"),
        (lambda: Partitioning("balanced", b"x"), "wrong_size"),
        (lambda: Partitioning("partition_id", b"x"), "wrong_size"),
        (lambda: Partitioning("other"), "unknown_type"),
    ):
        with pytest.raises(EncodeError) as raised:
            make()
        assert raised.value.code == code
    wrong: Any
    for wrong in (5, None):
        with pytest.raises(TypeError):
            Partitioning.messages_key(wrong)


@pytest.mark.parametrize(
    ("routing", "code", "byte"),
    [
        ("030401000000", "unknown_type", 0),
        ("0103010000", "wrong_size", 1),
        ("0200", "empty_value", 1),
        ("0202c328", "value_not_utf8", 2),
        ("0104010000000201610900", "unknown_type", 9),
        ("010401000000020161010161", "wrong_size", 10),
        ("010401000000020161020361", "truncated", 11),
        ("0104010000000201610300", "empty_value", 10),
    ],
)
def test_request_without_destination_is_rejected(routing: str, code: str, byte: int) -> None:
    data = bytes.fromhex(routing)
    with pytest.raises(DecodeError) as raised:
        SendMessages.from_bytes(data)
    assert (raised.value.code, raised.value.byte_offset) == (code, byte)
    with pytest.raises(DecodeError) as raised:
        SendMessages.from_bytes(len(data).to_bytes(4, "little") + data, "iggy")
    assert (raised.value.code, raised.value.byte_offset) == (code, byte + 4)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"messages":[]}',
        '{"partitioning":{"kind":"balanced","value":""}}',
        '{"partitioning":{"kind":"other","value":""},"messages":[]}',
        '{"partitioning":{"kind":"partition_id","value":"AA=="},"messages":[]}',
        '{"partitioning":{"kind":"balanced","value":""},"messages":{}}',
        '{"partitioning":{"kind":"balanced","value":""},"messages":[{}]}',
    ],
)
def test_malformed_request_json_raises(text: str) -> None:
    with pytest.raises(DecodeError) as raised:
        SendMessages.from_json(text, stream_id=1, topic_id=1)
    assert raised.value.code == "bad_text"
    assert raised.value.message.startswith("message 0: ") == text.endswith("[{}]}")


def test_polled_messages_of_all_older_releases_are_read() -> None:
    first = [polled(), polled(offset=6, headers=None)]
    later = [polled(state=MessageState.AVAILABLE, checksum=zlib.crc32(b"hello")), polled(offset=6, headers=None)]
    later[1].state, later[1].checksum = MessageState.POISONED, zlib.crc32(b"hello")
    for messages in (first, later):
        body = b"".join(message.to_bytes() for message in messages)
        short, long = (2).to_bytes(4, "little"), struct.pack("<IQI", 3, 6, 2)
        assert PolledMessages.from_bytes(short + body) == PolledMessages(messages)
        assert PolledMessages.from_bytes(long + body) == PolledMessages(messages, 3, 6)
        for wrong in (struct.pack("<IQI", 3, 6, 1), (3).to_bytes(4, "little")):
            with pytest.raises(DecodeError):
                PolledMessages.from_bytes(wrong + body)
        for end in range(4, len(body)):
            with pytest.raises(DecodeError):
                PolledMessages.from_bytes(long + body[:end])
    assert PolledMessages.from_bytes(struct.pack("<IQI", 3, 6, 0)) == PolledMessages([], 3, 6)
    for announced, data, count_at in ((2, struct.pack("<IQI", 3, 6, 2) + polled().to_bytes(), 12), (1, b"\1\0\0\0", 0)):
        with pytest.raises(DecodeError, match=f"{announced} messages are announced and {announced - 1} are") as raised:
            PolledMessages.from_bytes(data)
        assert (raised.value.code, raised.value.byte_offset) == ("wrong_size", count_at)
    for end in range(4):
        with pytest.raises(DecodeError, match="messages count takes 4 bytes"):
            PolledMessages.from_bytes(bytes(end))


@pytest.mark.parametrize("prefix", [struct.pack("<I", 2), struct.pack("<IQI", 3, 6, 2)])
@pytest.mark.parametrize("state", [None, MessageState.POISONED])
def test_polled_messages_with_or_without_state_skip_validation(prefix: bytes, state: MessageState | None) -> None:
    checksum = None if state is None else zlib.crc32(b"hello")
    messages = [polled(state=state, checksum=checksum), polled(offset=6, headers=None, state=state, checksum=checksum)]
    body = b"".join(message.to_bytes() for message in messages)
    assert PolledMessages.from_bytes(prefix + body, validate=False) == PolledMessages.from_bytes(prefix + body)
    assert PolledMessages.from_bytes(prefix + body, validate=False).messages == messages
    assert PolledMessage.from_bytes(messages[0].to_bytes(), validate=False) == messages[0]


def test_wrong_checksum_is_kept_without_validation() -> None:
    messages = [polled(state=MessageState.AVAILABLE, checksum=number, headers=None) for number in (1, 2)]
    body = struct.pack("<I", 2) + b"".join(message.to_bytes() for message in messages)
    assert PolledMessages.from_bytes(body, validate=False).messages == messages


def test_message_has_state_only_if_checksum_matches() -> None:
    without = polled(timestamp=MessageState.AVAILABLE.as_code(), headers=None, payload=bytes(5))
    for validate in (True, False):
        assert PolledMessage.from_bytes(without.to_bytes(), validate=validate) == without


@settings(max_examples=20)
@given(strategies.polls(), st.sampled_from(["<I", "<IQI"]))
def test_replies_are_read_equally_with_and_without_validation(data: bytes, prefix: str) -> None:
    count = sum(1 for _ in lh.messages(data, "iggy-polled-2023"))
    body = struct.pack(prefix, *[count] * (len(prefix) - 1)) + data
    reply = PolledMessages.from_bytes(body)
    assert PolledMessages.from_bytes(body, validate=False) == reply
    assert PolledMessages.from_bytes(reply.to_bytes()) == reply


@pytest.mark.parametrize("validate", [True, False])
@pytest.mark.parametrize("prefix", [struct.pack("<I", 1), struct.pack("<IQI", 3, 6, 1)])
@pytest.mark.parametrize("state", [None, MessageState.AVAILABLE])
def test_error_byte_counts_from_start_of_reply(state: MessageState | None, prefix: bytes, validate: bool) -> None:
    body = bytearray(prefix + polled(state=state).to_bytes())
    body[body.index(b"key 1") + 5] = 99
    with pytest.raises(DecodeError) as raised:
        PolledMessages.from_bytes(bytes(body), validate=validate)
    assert raised.value.byte_offset == body.index(b"key 1") + 5
    assert raised.value.message == "message 0: value type code 99 is unknown"


def test_missing_checksum_is_computed() -> None:
    message = polled(state=MessageState.AVAILABLE)
    assert PolledMessage.from_bytes(message.to_bytes()).checksum == zlib.crc32(b"hello")
    assert f'"checksum":{zlib.crc32(b"hello")}' in message.to_json()
    wrong = polled(state=MessageState.AVAILABLE, checksum=1)
    with pytest.raises(DecodeError):
        PolledMessage.from_bytes(wrong.to_bytes())
    assert PolledMessage.from_bytes(wrong.to_bytes(), validate=False) == wrong


def test_unknown_state_is_rejected() -> None:
    data = bytearray(polled(state=MessageState.AVAILABLE).to_bytes())
    data[8] = 2
    with pytest.raises(DecodeError, match="message 0: state 2 is unknown") as raised:
        PolledMessage.from_bytes(bytes(data), validate=False)
    assert (raised.value.code, raised.value.byte_offset) == ("bad_attributes", 8)


def test_zero_or_several_messages_where_one_expected_raise() -> None:
    for data in (b"", polled().to_bytes() * 2):
        with pytest.raises(DecodeError, match="messages where one was expected"):
            PolledMessage.from_bytes(data)


def test_replies_survive_bytes() -> None:
    state, checksum = MessageState.AVAILABLE, zlib.crc32(b"hello")
    for messages in (
        [],
        [polled(), polled(offset=6, headers=None)],
        [polled(state=state, checksum=checksum), polled(offset=6, headers=None, state=state, checksum=checksum)],
    ):
        for reply in (PolledMessages(messages), PolledMessages(messages, 3, 6)):
            for validate in (True, False):
                assert PolledMessages.from_bytes(reply.to_bytes(), validate=validate) == reply
            assert PolledMessages.from_json(reply.to_json()) == reply
    assert PolledMessages([], None, 6).to_bytes() == PolledMessages([], 0, 6).to_bytes()


def test_reply_of_2023_without_partition_starts_with_count() -> None:
    first, second = polled(), polled(offset=6)
    assert PolledMessages([first, second]).to_bytes() == struct.pack("<I", 2) + first.to_bytes() + second.to_bytes()
    assert PolledMessages([first, second]).to_json() == f"[{first.to_json()},{second.to_json()}]"


@pytest.mark.parametrize("timestamp", [0, 1 << 32])
def test_reply_of_2023_without_partition_may_have_zero_count(timestamp: int) -> None:
    reply = PolledMessages([polled(timestamp=timestamp)])
    assert PolledMessages.from_bytes(reply.to_bytes()) == reply


def test_messages_of_same_time_and_next_offset_share_batch() -> None:
    def at(offset: int, timestamp: int, origin: int | None = None) -> PolledMessage:
        return polled(offset=offset, timestamp=timestamp, origin_timestamp=origin, headers=TYPED)

    for messages, batches in (
        ([], 0),
        ([at(5, 100), at(6, 100), at(7, 100)], 1),
        ([at(5, 100), at(6, 101)], 2),
        ([at(5, 100), at(7, 100)], 2),
        ([at(6, 100), at(5, 100)], 2),
        ([at(5, 100, 1 << 32), at(6, 100, 1), at(7, 100, (1 << 32) + 1)], 2),
        ([at(5, 100, 1 << 32), at(6, 100, 0)], 2),
    ):
        body = PolledMessages(messages, 3, 9).to_bytes("iggy")
        frames = sum(48 + len(message.payload) + TYPED.size_bytes("iggy") for message in messages)
        assert len(body) == 16 + 256 * batches + frames
        for validate in (True, False):
            reply = PolledMessages.from_bytes(body, "iggy", validate=validate)
            assert (reply.partition_id, reply.current_offset) == (3, 9)
            assert [(m.offset, m.timestamp, m.origin_timestamp, m.headers) for m in reply.messages] == [
                (m.offset, m.timestamp, m.origin_timestamp or 0, TYPED) for m in messages
            ]
            assert reply.to_bytes("iggy") == body


def test_reply_with_headers_as_bytes_is_rewritten_exactly() -> None:
    for data in (stored(), stored(ENCRYPTED)):
        assert PolledMessages.from_bytes(data, "iggy", validate=False).to_bytes("iggy") == data


@pytest.mark.parametrize("format", ["iggy-2023", "iggy"])
def test_partition_or_current_offset_out_of_range_is_not_written(format: Any) -> None:
    for wrong in (PolledMessages([], 1 << 32, 0), PolledMessages([], 0, 1 << 64), PolledMessages([], -1, 0)):
        with pytest.raises(EncodeError) as raised:
            wrong.to_bytes(format)
        assert raised.value.code == "out_of_range"


def test_reply_with_state_in_only_some_messages_is_rejected() -> None:
    reply = PolledMessages([polled(state=MessageState.AVAILABLE), polled()])
    with pytest.raises(EncodeError, match="all or none") as raised:
        reply.to_bytes()
    assert raised.value.code == "bad_attributes"


def stored(headers: Any = TYPED, *, prefix: int = 16) -> bytes:
    """Make a reply of today: the batch of a request, stamped by a server and behind the prefix of a reply."""
    sent = request(Message(1, b"x", headers, origin_timestamp=50), Message(2, b"yy", origin_timestamp=30)).to_bytes(
        "iggy"
    )
    batch = bytearray(sent[4 + int.from_bytes(sent[:4], "little") :])
    struct.pack_into("<QQQ", batch, 0, 3, 100, 7000)
    frames, sums = 256, b""
    while frames < len(batch):
        sums += batch[frames : frames + 8]
        frames += 48 + sum(struct.unpack_from("<II", batch, frames + 32))
    from letterhead._native import xxh3_64

    struct.pack_into("<Q", batch, 40, xxh3_64(bytes(batch[:40] + batch[48:52]) + sums))
    return struct.pack("<IQI", 3, 101, 2) + bytes(prefix - 16) + bytes(batch)


@pytest.mark.parametrize("validate", [True, False])
@pytest.mark.parametrize("prefix", [16, 40])
def test_current_replies_are_read(prefix: int, validate: bool) -> None:
    reply = PolledMessages.from_bytes(stored(prefix=prefix), "iggy", validate=validate)
    assert (reply.partition_id, reply.current_offset) == (3, 101)
    assert [(m.offset, m.id, m.payload, m.headers) for m in reply.messages] == [
        (100, 1, b"x", TYPED),
        (101, 2, b"yy", None),
    ]
    assert [m.origin_timestamp for m in reply.messages] == [50, 30]
    assert all(m.checksum for m in reply.messages)
    assert PolledMessages.from_bytes(struct.pack("<IQI", 3, 101, 0) + bytes(prefix - 16), "iggy").messages == []


@pytest.mark.parametrize("validate", [True, False])
def test_every_message_in_batch_has_server_receive_time(validate: bool) -> None:
    reply = PolledMessages.from_bytes(stored(), "iggy", validate=validate)
    assert [message.timestamp for message in reply.messages] == [7000, 7000]


def test_unreadable_message_does_not_hide_others() -> None:
    with pytest.raises(DecodeError, match="message 0: "):
        PolledMessages.from_bytes(stored(ENCRYPTED), "iggy")
    reply = PolledMessages.from_bytes(stored(ENCRYPTED), "iggy", validate=False)
    assert [message.headers for message in reply.messages] == [ENCRYPTED, None]
    again = PolledMessages.from_json(reply.to_json("iggy"))
    assert again == reply


def test_truncated_current_reply_raises() -> None:
    data = stored()
    for end in range(len(data)):
        for validate in (True, False):
            with pytest.raises(DecodeError):
                PolledMessages.from_bytes(data[:end], "iggy", validate=validate)


def test_batch_longer_than_reply_names_byte_of_its_length() -> None:
    data = bytearray(stored())
    start = next(at for at in range(len(data)) if data[at + 32 : at + 40] == (len(data) - at).to_bytes(8, "little"))
    data[start + 32] += 1
    with pytest.raises(DecodeError, match=r"the batch takes \d+ bytes and \d+ are left") as raised:
        PolledMessages.from_bytes(bytes(data), "iggy", validate=False)
    assert (raised.value.code, raised.value.byte_offset) == ("truncated", start + 32)


def test_messages_with_64_byte_header_are_read_and_written() -> None:
    message = polled(headers=TYPED, checksum=1 << 63, origin_timestamp=4)
    assert PolledMessage.from_bytes(message.to_bytes("iggy"), "iggy") == message
    assert len(message.to_bytes("iggy")) == 64 + len(b"hello") + TYPED.size_bytes("iggy")
    assert PolledMessage.from_json(message.to_json("iggy")) == message
    assert PolledMessage.from_json(polled().to_json()) == polled()


def test_polled_messages_survive_json() -> None:
    for format, messages in (
        ("iggy-2023", [polled(), polled(offset=6, headers=None)]),
        ("iggy", [polled(checksum=1, origin_timestamp=2, headers=TYPED)]),
    ):
        reply = PolledMessages(messages, 3, 6)
        assert PolledMessages.from_json(reply.to_json(format)) == reply
    for text in (
        "{}",
        "null",
        "[1]",
        '{"messages":{}}',
        '{"partition_id":"1","messages":[]}',
        '{"messages":[{"offset":-1}]}',
    ):
        with pytest.raises(DecodeError):
            PolledMessages.from_json(text)
    with pytest.raises(DecodeError, match="none of available"):
        PolledMessage.from_json('{"offset":1,"state":"gone","timestamp":1,"id":1,"checksum":1,"payload":""}')


def test_polled_json_without_a_partition_is_read() -> None:
    messages = [polled(), polled(offset=6, headers=None)]
    objects = ",".join(message.to_json() for message in messages)
    assert PolledMessages.from_json(f"[{objects}]") == PolledMessages(messages)
    assert PolledMessages.from_json(f'{{"messages":[{objects}]}}') == PolledMessages(messages)
    assert PolledMessages.from_json(f'{{"partition_id":3,"messages":[{objects}]}}') == PolledMessages(messages, 3)
    nulls = f'{{"partition_id":null,"current_offset":null,"messages":[{objects}]}}'
    assert PolledMessages.from_json(nulls) == PolledMessages(messages)
    assert PolledMessages.from_json("[]", "iggy") == PolledMessages([])


def test_numbers_out_of_field_range_are_rejected() -> None:
    for changes in (
        {"offset": -1},
        {"timestamp": 1 << 64},
        {"id": 1 << 128},
        {"checksum": 1 << 32, "state": MessageState.AVAILABLE},
        {"origin_timestamp": 1 << 64},
    ):
        with pytest.raises(EncodeError) as raised:
            polled(**changes)
        assert raised.value.code == "out_of_range"


@pytest.mark.parametrize(
    ("field", "bits"), [("offset", 63), ("timestamp", 63), ("origin_timestamp", 63), ("checksum", 64)]
)
def test_json_numbers_out_of_field_range_are_rejected(field: str, bits: int) -> None:
    text = polled(origin_timestamp=1, checksum=1).to_json("iggy")
    assert f'"{field}":' in text

    def read(number: int) -> PolledMessage:
        return PolledMessage.from_json(re.sub(f'"{field}":[0-9]+', f'"{field}":{number}', text), "iggy")

    assert getattr(read((1 << bits) - 1), field) == (1 << bits) - 1
    with pytest.raises(DecodeError):
        read(1 << bits)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"I want an unsigned 32-bit seed!", 0xF7A35AF8),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_keys_of_any_length_have_the_published_hash(key: bytes, expected: int) -> None:
    assert partition_of(key, 1 << 32) == expected
    assert partition_of(key, 7) == expected % 7


INT64_MAX = (1 << 63) - 1


@pytest.mark.parametrize("state", [None, MessageState.AVAILABLE], ids=["0.0.30", "0.0.40"])
def test_largest_written_offset_and_timestamp_are_read(state: MessageState | None) -> None:
    message = polled(offset=INT64_MAX, timestamp=INT64_MAX, state=state, checksum=None)
    data = message.to_bytes()
    if state is not None:
        message = polled(offset=INT64_MAX, timestamp=INT64_MAX, state=state, checksum=zlib.crc32(message.payload))
    for validate in (True, False) if state else (True,):
        assert PolledMessage.from_bytes(data, validate=validate) == message
    assert [read["offset"] for read in ops.messages(data, "iggy-polled-2023")] == [INT64_MAX]
    assert PolledMessage.from_json(message.to_json()) == message


@pytest.mark.parametrize("field", ["offset", "timestamp", "origin_timestamp"])
def test_offset_or_timestamp_over_int64_is_not_written(field: str) -> None:
    for wrong in (INT64_MAX + 1, (1 << 64) - 1):
        with pytest.raises(EncodeError, match=f"the {field.replace('_', ' ')} does not fit int64") as raised:
            polled(**{field: wrong})
        assert raised.value.code == "out_of_range"
        message = polled()
        setattr(message, field, wrong)
        for write in (message.to_bytes, PolledMessages([message]).to_bytes):
            for format in ("iggy-2023", "iggy"):
                with pytest.raises(EncodeError, match=f"the {field.replace('_', ' ')} does not fit int64"):
                    write(format)
    with pytest.raises(EncodeError, match="the origin timestamp does not fit int64"):
        Message(1, b"x", origin_timestamp=INT64_MAX + 1)


@pytest.mark.parametrize(("field", "byte"), [("offset", 0), ("timestamp", 9)])
def test_offset_or_timestamp_over_int64_is_not_read(field: str, byte: int) -> None:
    data = bytearray(polled(state=MessageState.AVAILABLE).to_bytes())
    data[byte + 7] |= 0x80
    expected = ("out_of_range", f"message 0: {field} does not fit int64", byte)
    for read in (
        lambda: list(lh.messages(data, "iggy-polled-2023")),
        lambda: ops.messages(bytes(data), "iggy-polled-2023"),
        lambda: PolledMessage.from_bytes(data),
        lambda: PolledMessage.from_bytes(data, validate=False),
    ):
        with pytest.raises(DecodeError) as raised:
            read()
        assert (raised.value.code, raised.value.message, raised.value.byte_offset) == expected
    text = polled().to_json().replace(f'"{field}":{getattr(polled(), field)}', f'"{field}":{1 << 63}')
    with pytest.raises(DecodeError, match=f"the field {field} of a message does not fit 63 bits"):
        PolledMessage.from_json(text)


@pytest.mark.parametrize(("field", "at"), [("offset", 8), ("timestamp", 16), ("origin timestamp", 24)])
def test_batch_sums_over_int64_are_not_read(field: str, at: int) -> None:
    data = bytearray(stored())
    data[16 + at + 7] |= 0x80
    with pytest.raises(DecodeError, match=f"message 0: {field} does not fit int64") as raised:
        PolledMessages.from_bytes(data, "iggy", validate=False)
    assert (raised.value.code, raised.value.byte_offset) == ("out_of_range", 16 + 256)


def test_unnamed_kinds_are_base64_in_message_json() -> None:
    headers = HeaderMap({"a": HeaderValue(200, b"b")})
    message = Message(1, b"x", headers)
    assert '"user_headers":"AgEAAABhyAEAAABi"' in message.to_json("iggy")
    assert Message.from_json(message.to_json("iggy")) == message


CONSUMERS = [Consumer.new(1), Consumer.new("app"), Consumer.group(4294967295), Consumer.group("é")]
STRATEGIES = [
    PollingStrategy.offset(5),
    PollingStrategy.timestamp((1 << 64) - 1),
    PollingStrategy.first(),
    PollingStrategy.last(),
    PollingStrategy.next(),
]


@pytest.mark.parametrize("format", ["iggy-2023", "iggy"])
def test_poll_requests_survive_bytes(format: Any) -> None:
    for consumer, strategy, partition, commit in itertools.product(CONSUMERS, STRATEGIES, (None, 7), (True, False)):
        request = PollMessages(consumer, 1, "sample", partition, strategy, 100, auto_commit=commit)
        assert PollMessages.from_bytes(request.to_bytes(format), format) == request


@pytest.mark.parametrize("format", ["iggy-2023", "iggy"])
def test_poll_requests_of_single_consumers_survive_json(format: Any) -> None:
    for consumer, strategy, partition in itertools.product(CONSUMERS[:2], STRATEGIES, (None, 7)):
        request = PollMessages(consumer, 1, "sample", partition, strategy, 100, auto_commit=True)
        text = request.to_json(format)
        for reading in (format, "iggy-auto"):
            assert PollMessages.from_json(text, stream_id=1, topic_id="sample", format=reading) == request


def test_poll_requests_are_written_for_each_release() -> None:
    # Bytes that client 0.9.0 sent to server 0.9.0-edge.5, and which the server answered.
    request = PollMessages(Consumer.new("c1"), "s", "t", 1, PollingStrategy.offset(2), 10, auto_commit=True)
    assert request.to_bytes("iggy").hex() == "010202633102017302017401010000000102000000000000000a00000001"
    none = PollMessages(Consumer.new("c1"), "s", "t", None, PollingStrategy.last(), 10)
    assert none.to_bytes("iggy").hex() == "010202633102017302017400000000000400000000000000000a00000000"
    # What the crate 0.6.210 writes: there is no flag before the partition, and 0 is none.
    assert none.to_bytes().hex() == "0102026331020173020174000000000400000000000000000a00000000"
    group = PollMessages(Consumer.group("app"), 3, "t", 7, PollingStrategy.next(), 9, auto_commit=True)
    assert group.to_bytes().hex() == "020203617070010403000000020174070000000500000000000000000900000001"
    assert none.to_json() == '{"id":"c1","partition_id":null,"kind":"last","value":"0","count":10,"auto_commit":false}'
    assert none.to_json("iggy") == none.to_json().replace('"id"', '"consumer_id"', 1)


def test_partition_0_means_none_in_one_based_releases() -> None:
    first = PollMessages(1, 1, 1, 0)
    assert PollMessages.from_bytes(first.to_bytes("iggy"), "iggy") == first
    for request in (first, PollMessages(0, 1, 1), PollMessages(1, 0, 1), PollMessages(1, 1, 0)):
        for write in (request.to_bytes, request.to_json):
            with pytest.raises(EncodeError) as raised:
                write()
            assert raised.value.code == "out_of_range"
        request.to_bytes("iggy")


def test_poll_request_json_defaults_match_iggy() -> None:
    where = {"stream_id": "s", "topic_id": "t"}
    for format, partition in (("iggy-2023", 1), ("iggy", 0)):
        assert PollMessages.from_json("{}", format=format, **where) == PollMessages(1, "s", "t", partition)
    assert PollMessages.from_json("{}", **where).partition_id == 1
    assert PollMessages.from_json('{"consumer_id":7}', **where) == PollMessages(7, "s", "t", 0)
    assert PollMessages.from_json('{"kind":"n","value":"+07"}', **where).strategy == PollingStrategy("next", 7)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("[]", "iggy-auto"),
        ('{"id":""}', "iggy-auto"),
        ('{"id":1}', "iggy-auto"),
        ('{"id":"1"}', "iggy"),
        ('{"consumer_id":"1"}', "iggy-2023"),
        ('{"id":"1","consumer_id":"1"}', "iggy-auto"),
        ('{"partition_id":-1}', "iggy-auto"),
        ('{"partition_id":"1"}', "iggy-auto"),
        ('{"kind":"middle"}', "iggy-auto"),
        ('{"kind":1}', "iggy-auto"),
        ('{"value":5}', "iggy-auto"),
        ('{"value":"18446744073709551616"}', "iggy-auto"),
        ('{"value":"-1"}', "iggy-auto"),
        ('{"count":4294967296}', "iggy-auto"),
        ('{"count":null}', "iggy-auto"),
        ('{"auto_commit":1}', "iggy-auto"),
        ('{"count":1,"count":1}', "iggy-auto"),
    ],
)
def test_malformed_poll_request_json_is_rejected(text: str, format: Any) -> None:
    with pytest.raises(DecodeError) as raised:
        PollMessages.from_json(text, stream_id=1, topic_id=1, format=format)
    assert raised.value.code in ("bad_text", "out_of_range")


@pytest.mark.parametrize("consumer", [Consumer.group(1), Consumer.new("7"), Consumer.new("+7")])
def test_consumer_without_json_name_is_rejected(consumer: Consumer) -> None:
    for format in ("iggy-2023", "iggy"):
        with pytest.raises(ConversionError, match="is not carried") as raised:
            PollMessages(consumer, 1, 1).to_json(format)
        assert raised.value.code == "field_not_carried"


POLL = "0101040100000002017302017401070000000100000000000000000a00000000"


@pytest.mark.parametrize(
    ("at", "byte", "code", "iggy", "message"),
    [
        (0, 3, "unknown_type", 3, "consumer kind 3 is unknown"),
        (0, 0, "unknown_type", 3, "consumer kind 0 is unknown"),
        (1, 3, "unknown_type", 6, "identifier kind 3 is unknown"),
        (13, 2, "bad_attributes", None, "partition flag 2 is neither 0 nor 1"),
        (13, 0, "bad_attributes", None, "partition 7 has the flag for no partition"),
        (18, 0, "unknown_type", 3, "polling kind 0 is unknown"),
        (18, 6, "unknown_type", 3, "polling kind 6 is unknown"),
        (31, 2, "bad_attributes", None, "auto-commit flag 2 is neither 0 nor 1"),
    ],
)
def test_poll_request_with_unknown_code_is_rejected(
    at: int, byte: int, code: str, iggy: int | None, message: str
) -> None:
    data = bytearray.fromhex(POLL)
    data[at] = byte
    with pytest.raises(DecodeError) as raised:
        PollMessages.from_bytes(bytes(data), "iggy")
    error = raised.value
    assert (error.code, error.byte_offset, error.message, iggy_code(error, "iggy")) == (code, at, message, iggy)


@pytest.mark.parametrize("format", ["iggy-2023", "iggy"])
def test_truncated_or_overlong_poll_request_is_rejected(format: Any) -> None:
    data = PollMessages(1, "s", "t", 7).to_bytes(format)
    for end in range(len(data)):
        with pytest.raises(DecodeError) as raised:
            PollMessages.from_bytes(data[:end], format)
        assert raised.value.code == "truncated"
    with pytest.raises(DecodeError) as raised:
        PollMessages.from_bytes(data + b"\0", format)
    assert (raised.value.code, raised.value.byte_offset) == ("trailing_bytes", len(data))


def test_poll_request_arguments_are_checked() -> None:
    wrong: Any
    for wrong in ("other", None):
        for kind in (Consumer, PollingStrategy):
            with pytest.raises(EncodeError) as raised:
                kind(wrong, Identifier(1) if kind is Consumer else 0)
            assert (raised.value.code, iggy_code(raised.value)) == ("unknown_type", 3)
    for make in (
        lambda: PollingStrategy.offset(1 << 64),
        lambda: PollMessages(1, 1, 1, 1 << 32),
        lambda: PollMessages(1, 1, 1, count=-1),
    ):
        with pytest.raises(EncodeError) as raised:
            make()
        assert raised.value.code == "out_of_range"
    for wrong in (1.0, "1", True):
        with pytest.raises(TypeError):
            PollMessages(1, 1, 1, wrong)
