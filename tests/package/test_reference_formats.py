"""Reference formats of the KIP-82 drafts and of Iggy: every vector, and the rules that no vector covers.

The cases of Iggy were made by its crates and by live servers, those of Kafka's message formats 0 and 1 by Kafka, those of
the drafts by hand. Where a crate answers otherwise on purpose, its reading and ours are both held; ``DIFFERENCES`` counts
such lines, and one that differs in another way fails.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letterhead.errors import CODES, ConversionError, EncodeError, HeaderError
from letterhead.results import Loss
from tests.helpers.reference_cases import WRITTEN, Line, codes, id_bytes, kip82, messages_for, places, raised
from tests.reference import keys, ops
from tests.reference.formats import FORMATS
from tests.reference.value_types import turned

DIFFERENCES = {
    # A map of the crate keeps one value of a key; ours keeps them all, and reads the last of each key.
    ("iggy_seed_malformed", "collapsed"): 2,
    ("iggy_tlv_malformed", "collapsed"): 2,
    # The crate panics; ours says what is wrong.
    ("iggy_seed_malformed", "panic"): 66,
    # The crate takes types without a name where it checks the bytes, and refuses them where it makes a map of them.
    ("iggy_tlv_malformed", "type without a name"): 14,
    # The crate takes values and keys of another size than their type where it checks the bytes, and refuses them where
    # it makes a map; ours refuses them in both.
    ("iggy_tlv_malformed", "wrong size"): 209,
    # The crate sorts what it writes; ours does so where it is asked.
    ("iggy_tlv_headers", "sorted"): 59,
    # The crate accepts a checksum that does not match; the package reads such a message only where errors become nulls.
    ("iggy_seed_messages", "checksum"): 24,
}

IGGY_ERRORS = {
    "InvalidHeaderKey": {"empty_key", "too_long", "key_not_utf8", "wrong_size"},
    "InvalidHeaderValue": {"empty_value", "too_long", "wrong_size"},
    "InvalidCommand": {"unknown_type"},
    "UnexpectedEof": {"truncated"},
    "length": {"empty_key", "empty_value", "too_long"},
    "kind": {"unknown_type"},
    "odd number": {"truncated"},
}
"""What the crates say is wrong, and our codes for it."""


def lines(vectors: Path, name: str) -> list[Line]:
    return [json.loads(line) for line in (vectors / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def differences(name: str) -> dict[str, int]:
    return {why: count for (file, why), count in DIFFERENCES.items() if file == name}


def value(line: Line) -> bytes:
    return bytes.fromhex(line["bytes"])


def hex_or_none(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


# --- Iggy's header blocks --------------------------------------------------------------------------------------------


def typed(field: Line) -> tuple[str, bytes]:
    """Return a key or value of a vector as a type and bits; vectors have them as they lie on the wire."""
    type = {"raw": "binary"}.get(field["kind"], field["kind"])
    return type, turned(type, bytes.fromhex(field["hex"]))


def triples(entries: list[Line] | None) -> list[Any]:
    return [(keys.plain(*typed(entry["key"])), *typed(entry["value"])) for entry in entries or ()]


def last_of_each(headers: list[Any]) -> dict[Any, Any]:
    return {key: (type, bits) for key, type, bits in headers}


def test_every_seed_headers_vector_matches_crate(vectors: Path) -> None:
    cases = lines(vectors, "iggy_seed_headers")
    assert len(cases) == 218
    for line in cases:
        headers = triples(line["entries"])
        for format in ("iggy-2023", "iggy-auto"):
            assert ops.decode(value(line), format) == headers, line["id"]
        assert ops.encode(headers, "iggy-2023") == value(line), line["id"]


def test_every_typed_headers_vector_matches_crate(vectors: Path) -> None:
    cases = lines(vectors, "iggy_tlv_headers")
    assert len(cases) == 359
    differing = 0
    for line in cases:
        headers, unsorted = triples(line["entries"]), triples(line.get("input", line["entries"]))
        for format in ("iggy", "iggy-auto"):
            assert ops.decode(value(line), format) == headers, line["id"]
            assert ops.decode(value(line), format, strict_types=True) == headers, line["id"]
        assert ops.encode(headers, "iggy") == value(line), line["id"]
        assert ops.encode(unsorted, "iggy", canonical=True) == value(line), line["id"]
        as_given = ops.encode(unsorted, "iggy")
        assert as_given is not None
        assert ops.decode(as_given, "iggy") == unsorted, line["id"]
        differing += as_given != value(line)
    assert differing == DIFFERENCES["iggy_tlv_headers", "sorted"]


def test_bad_bytes_fail_like_in_seed_crate(vectors: Path) -> None:
    counts: Counter[str] = Counter()
    for line in lines(vectors, "iggy_seed_malformed"):
        details, expect = ops.validate(value(line), "iggy-2023"), line["expect"]
        if "ok" in expect:
            assert not details, line["id"]
            headers = ops.decode(value(line), "iggy-2023")
            counts["collapsed"] += len(headers) > len(expect["ok"])
            assert last_of_each(headers) == last_of_each(triples(expect["ok"])), line["id"]
        elif "error" in expect:
            assert details[0].code in IGGY_ERRORS[expect["error"]["name"]], line["id"]
        else:
            assert codes(details)[-1] == "truncated", line["id"]
            counts["panic"] += 1
    assert counts == differences("iggy_seed_malformed")


def test_bad_bytes_fail_like_in_typed_crate(vectors: Path) -> None:
    counts: Counter[str] = Counter()
    for line in lines(vectors, "iggy_tlv_malformed"):
        data, wire, expect = value(line), line["expect_wire"], line["expect"]
        details, strict = ops.validate(data, "iggy"), ops.validate(data, "iggy", strict_types=True)
        if "ok" not in wire:
            error = wire["wire_error"]
            text = error["text"]
            variant = next(
                (variant for variant in ("odd number", "length", "kind") if variant in text), error["variant"]
            )
            assert details[0].code in IGGY_ERRORS[variant], line["id"]
            assert strict, line["id"]
        elif "ok" in expect:
            assert details == strict == [], line["id"]
            headers = ops.decode(data, "iggy")
            counts["collapsed"] += len(headers) > len(expect["ok"])
            assert last_of_each(headers) == last_of_each(triples(expect["ok"])), line["id"]
        elif expect["error"]["name"].startswith("InvalidHeaderKind"):
            assert details == [], line["id"]
            assert strict[0].code == "unknown_type", line["id"]
            counts["type without a name"] += 1
        else:
            assert details[0].code in IGGY_ERRORS[expect["error"]["name"]], line["id"]
            assert codes(details)[0] == codes(strict)[0] == "wrong_size", line["id"]
            counts["wrong size"] += 1
    assert counts == differences("iggy_tlv_malformed")


def test_total_limits_match_releases(vectors: Path) -> None:
    for line in lines(vectors, "iggy_limits"):
        lengths = line.get("value_lens") or [line["value_len"]] * (line["n"] - 1) + [line["last_value_len"]]
        headers = [
            (f"k{index:05}", "binary", bytes((place * 7 + index) & 255 for place in range(length)))
            for index, length in enumerate(lengths)
        ]
        format = "iggy-2023" if line["op"] == "seed_limit" else "iggy"
        # The older limit is one of a request; ours is one of a message, which is the most a message of it can have.
        verdict = line.get("send_messages_validate") or line["build"]
        if verdict == "ok" or line.get("messages", 1) > 1:
            assert ops.encode(headers, format) is not None, line["id"]
        else:
            raised(lambda headers=headers, format=format: ops.encode(headers, format), EncodeError, "too_large")


# --- Iggy's messages -------------------------------------------------------------------------------------------------


def test_every_sent_message_is_read_and_written_like_crate(vectors: Path) -> None:
    cases = [line for line in lines(vectors, "iggy_seed_messages") if line["op"] == "message"]
    assert len(cases) == 24
    for line in cases:
        message = {
            "id": id_bytes(line["message_id"]),
            "headers": triples(line["headers"]),
            "payload": bytes.fromhex(line["payload"]),
        }
        assert ops.decode(value(line), "iggy-message-2023") == message, line["id"]
        assert ops.encode(message, "iggy-message-2023") == value(line), line["id"]


def test_every_polled_message_is_read_like_crate(vectors: Path) -> None:
    cases = [line for line in lines(vectors, "iggy_seed_messages") if line["op"] == "polled"]
    assert len(cases) == 24
    for line in cases:
        data, payload = value(line), bytes.fromhex(line["payload"])
        checksum = zlib.crc32(payload)
        # The checksums of these cases are made up. That is an error, and it is all that is wrong.
        assert checksum != line["checksum"], line["id"]
        assert places(ops.validate(data, "iggy-polled-2023")) == [("bad_crc", 33, None, None)], line["id"]
        message = {
            "offset": line["offset"],
            "state": line["state"],
            "timestamp": line["timestamp"],
            "id": id_bytes(line["message_id"]),
            "checksum": line["checksum"],
            "headers": triples(line["headers"]),
            "payload": payload,
        }
        [nulled] = ops.messages_rows([data], "iggy-polled-2023", errors="null")
        assert nulled == {"row": 0, **dict.fromkeys(message)}, line["id"]
        [source] = ops.messages_rows([data], "iggy-polled-2023", errors="column")
        del source["error"]
        assert source == {"row": 0, **message}, line["id"]
        right = data[:33] + checksum.to_bytes(4, "little") + data[37:]
        assert ops.messages(right, "iggy-polled-2023") == [{**message, "checksum": checksum}], line["id"]
        # As the seed has it: neither a state nor a checksum.
        earlier = ops.messages(data[:8] + data[9:33] + data[37:], "iggy-polled-2023")
        assert earlier == [{**message, "state": None, "checksum": None}], line["id"]
    assert len(cases) == DIFFERENCES["iggy_seed_messages", "checksum"]


def test_every_message_with_64_byte_header_matches_crate(vectors: Path) -> None:
    cases = [line for line in lines(vectors, "iggy_tlv_messages") if line["op"] == "message64"]
    assert len(cases) == 24
    for line in cases:
        message = {
            "checksum": line["checksum"],
            "id": id_bytes(line["message_id"]),
            "offset": line["offset"],
            "timestamp": line["timestamp"],
            "origin_timestamp": line["origin_timestamp"],
            "headers": triples(line["headers"]),
            "payload": bytes.fromhex(line["payload"]),
        }
        assert ops.decode(value(line), "iggy-message") == message, line["id"]
        assert ops.encode(message, "iggy-message") == value(line), line["id"]


def test_every_sent_batch_is_read(vectors: Path) -> None:
    cases = [line for line in lines(vectors, "iggy_tlv_messages") if line["op"] == "send_messages_batch"]
    assert len(cases) == 24
    for line in cases:
        batch = value(line)[line["batch_at"] :]
        assert ops.validate(batch, "iggy-batch") == [], line["id"]
        messages = ops.messages(batch, "iggy-batch")
        assert len(messages) == len(line["messages"]), line["id"]
        for number, (message, sent) in enumerate(zip(messages, line["messages"], strict=True)):
            del message["checksum"]
            assert message == {
                "offset": number,
                "timestamp": 0,  # what the server stamps, it has not stamped yet
                "origin_timestamp": sent["origin_timestamp"],
                "id": id_bytes(sent["message_id"]),
                "headers": triples(sent["headers"]),
                "payload": bytes.fromhex(sent["payload"]),
            }, line["id"]


# --- what was seen between real servers ------------------------------------------------------------------------------

PLAIN_POLL = struct.Struct("<IQI")


def captures(vectors: Path) -> dict[tuple[str, str], Line]:
    return {(line["op"], line["layout"]): line for line in lines(vectors, "iggy_wire_capture")}


def test_captured_batch_is_polled_as_sent(vectors: Path) -> None:
    sent_line = captures(vectors)["send_messages_tcp", "tlv"]
    body = bytes.fromhex(sent_line["request"])[256:]
    sent = body[4 + int.from_bytes(body[:4], "little") :]
    reply = bytes.fromhex(captures(vectors)["poll_messages_tcp", "tlv"]["response"])[256:]
    assert PLAIN_POLL.unpack_from(reply) == (0, 5, 6)
    for prefix in (reply[:16], b"", reply[:16] + bytes(range(24))):
        assert ops.validate(prefix + reply[16:], "iggy-batch") == []
        polled = ops.messages(prefix + reply[16:], "iggy-batch")
        assert [message["offset"] for message in polled] == list(range(6))
    # A batch is stamped once: what the frames add to is the time of origin, and nothing else.
    assert [message["timestamp"] for message in polled] == [1795224282751844] * 3 + [1795224288772680] * 3
    deltas = (0, 20, 21)
    assert [message["origin_timestamp"] for message in polled] == [
        base + delta for base in (1795224282751347, 1795224288772111) for delta in deltas
    ]
    once = ops.messages(sent, "iggy-batch")
    stamped = [{**message, "offset": message["offset"] + 3, "timestamp": 1795224288772680} for message in once]
    assert polled[3:] == stamped
    assert len(polled[0]["headers"]) == 15
    assert polled[2]["headers"] == []


def sent_messages_2023(body: bytes) -> list[bytes]:
    """Cut the messages out of a request of the older era: behind a stream, a topic and a partitioning."""
    for _ in range(3):
        body = body[2 + body[1] :]
    messages = []
    while body:
        headers_len = int.from_bytes(body[16:20], "little")
        size = 24 + headers_len + int.from_bytes(body[20 + headers_len :][:4], "little")
        messages.append(body[:size])
        body = body[size:]
    return messages


def test_captured_older_messages_are_polled_as_sent(vectors: Path) -> None:
    request = bytes.fromhex(captures(vectors)["send_messages_tcp", "seed"]["request"])
    assert struct.unpack_from("<II", request) == (len(request) - 4, 101)
    sent = [ops.decode(message, "iggy-message-2023") for message in sent_messages_2023(request[8:])]
    assert len(sent) == 5
    reply = bytes.fromhex(captures(vectors)["poll_messages_tcp", "seed"]["response"])
    assert struct.unpack_from("<II", reply) == (0, len(reply) - 8)
    _, _, count = PLAIN_POLL.unpack_from(reply, 8)
    assert ops.validate(reply[24:], "iggy-polled-2023") == []
    polled = ops.messages(reply[24:], "iggy-polled-2023")
    assert len(polled) == count
    for number, message in enumerate(polled):
        assert (message["offset"], message["state"]) == (number, "available")
        assert message["checksum"] == zlib.crc32(message["payload"])
        same = next(message_sent for message_sent in sent if message_sent["payload"] == message["payload"])
        assert last_of_each(message["headers"]) == last_of_each(same["headers"])
        assert message["id"] == same["id"] or not any(same["id"])
    # One of them holds an int32 of another size, which shows where it is read as one.
    odd = [
        header for message in polled for header in message["headers"] if header[1] == "int32" and len(header[2]) != 4
    ]
    assert odd


# --- Kafka's message formats 0 and 1 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["kip82-messages", "kip82-messages-int", "kip82-messages-wrapper"])
def test_kafka_message_sets_are_read_like_kafka(vectors: Path, format: str) -> None:
    cases = [line for line in lines(vectors, "record_batches") if line["id"].startswith(("v0", "v1"))]
    assert len(cases) == 16
    for line in cases:
        data = bytes.fromhex(line["hex"])
        assert ops.validate(data, format) == [], line["id"]
        expected = [
            (int(record["offset"]), batch["magic"], record["timestamp"], record["key"], record["value"])
            for batch in line["batches"]
            for record in batch["records"]
        ]
        read = ops.messages(data, format)
        assert [
            (
                message["offset"],
                message["magic"],
                str(-1 if message["timestamp"] is None else message["timestamp"]),
                None if message["key"] is None else message["key"].hex(),
                None if message["value"] is None else message["value"].hex(),
            )
            for message in read
        ] == expected, line["id"]
        assert all(message["headers"] is None for message in read)
        assert [message["tombstone"] for message in read] == [message["value"] is None for message in read]


def test_lenient_reader_drops_truncated_set(vectors: Path) -> None:
    [line] = [line for line in lines(vectors, "record_batches") if line["id"] == "v0-none-41"]
    data = bytes.fromhex(line["hex"])
    whole = ops.messages(data, "kip82-messages")
    for cut in range(1, 56):
        assert codes(ops.validate(data[:-cut], "kip82-messages")) == ["truncated"]
        assert ops.messages(data[:-cut], "kip82-messages", lenient=True) == whole[:-1]


# --- the drafts of KIP-82, by hand -----------------------------------------------------------------------------------

KIP82 = ["typed", "int", "wrapper", "message", "message_int", "message_wrapper", "messages", "messages_int"]
KIP82 += ["messages_wrapper"]


def as_type(text: str | None) -> str | None:
    """Return a name, code or message of the vectors, whose word for a type is `kind`, in the words of this package."""
    return text and text.replace("kind", "type")


def plain_message(message: Line) -> Line:
    headers = message["headers"] and [
        (header["key"], as_type(header["kind"]), hex_or_none(header["value"])) for header in message["headers"]
    ]
    in_bytes = {name: hex_or_none(message[name]) for name in ("key", "value") if name in message}
    return {**message, **in_bytes, "headers": headers}


def check_draft(line: Line) -> None:
    """Check one case of a draft."""
    format, lenient = line["format"], line.get("lenient", False)
    errors = line.get("errors", [line["error"]] if "error" in line else [])
    message = plain_message(line["message"]) if "message" in line else {}
    source = message["headers"] if message.keys() == {"headers"} else message
    if line["op"] == "encode":
        error = raised(lambda: ops.encode(source, format), HeaderError, as_type(errors[0]["code"]))
        assert error.header == errors[0]["header"]
        return
    details = [detail[:4] for detail in ops.validate(value(line), format, lenient=lenient)]
    assert details == [
        (as_type(error["code"]), as_type(error["message"]), error["byte"], error["header"]) for error in errors
    ]
    if line["op"] == "messages" and not errors:
        messages = [plain_message(encoded) for encoded in line["messages"]]
        assert ops.messages(value(line), format, lenient=lenient) == messages
    elif not errors:
        assert ops.decode(value(line), format, lenient=lenient) == source
        assert line["op"] == "decode" or ops.encode(source, format) == value(line)


@pytest.mark.parametrize("name", KIP82)
def test_every_draft_case_matches(vectors: Path, name: str) -> None:
    failures = []
    for line in lines(vectors, f"kip82_{name}"):
        try:
            check_draft(line)
        except (AssertionError, HeaderError) as error:
            failures.append(f"{line['id']}: {error!r}")
    assert not failures, "\n".join(failures[:20])


# --- writing ---------------------------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(WRITTEN))
def test_written_messages_are_read_back(data: st.DataObject, format: str) -> None:
    message = data.draw(messages_for(format))
    written = ops.encode(message, format)
    assert written is not None
    assert ops.validate(written, format) == []
    read = ops.decode(written, format)
    if isinstance(message, dict):
        assert isinstance(read, dict)
        for name in message.keys() - {"crc", "tombstone", "attributes", "headers"}:
            assert read[name] == message[name]
        assert (read["headers"] or []) == message["headers"]
    else:
        assert read == message
    assert ops.encode(read, format) == written


@given(st.data(), st.sampled_from(WRITTEN))
def test_truncated_message_is_always_rejected(data: st.DataObject, format: str) -> None:
    """A block alone may end after any of its headers; everything else says where it ends."""
    message = data.draw(messages_for(format))
    written = ops.encode(message, format)
    assert written is not None
    for cut in range(len(written)):
        details = ops.validate(written[:cut], format)
        if not details:
            read = ops.decode(written[:cut], format)
            headers = read["headers"] if isinstance(read, dict) else read
            assert format.startswith("streams") or headers == message[: len(headers)]
        else:
            assert all(
                detail.code in CODES and (detail.byte_offset is None or detail.byte_offset <= cut) for detail in details
            )


@given(st.sampled_from(sorted(FORMATS)), st.binary(max_size=80), st.booleans())
def test_validation_of_any_bytes_reports_valid_errors(format: str, data: bytes, lenient: bool) -> None:
    for detail in ops.validate(data, format, lenient=lenient):
        assert detail.code in CODES
        assert detail.byte_offset is not None
        assert 0 <= detail.byte_offset <= len(data)


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"magic": 3}, EncodeError, "bad_magic"),
        ({"attributes": 0x20}, EncodeError, "bad_attributes"),
        ({"magic": 1, "attributes": 0x08 | 0x20}, EncodeError, "bad_attributes"),
        ({"magic": 0, "attributes": 0x08}, EncodeError, "bad_attributes"),
        ({"attributes": 1, "headers": [("a", "bool", b"\1")]}, EncodeError, "bad_attributes"),
        ({"magic": 1, "headers": [("a", "bool", b"\1")]}, ConversionError, "field_not_carried"),
        ({"timestamp": 2**63}, EncodeError, "out_of_range"),
    ],
)
def test_message_invalid_for_its_reader_is_not_written(fields: Line, error: type[HeaderError], code: str) -> None:
    raised(lambda: kip82(0, **fields), error, code)


def test_computed_fields_are_not_taken_from_caller() -> None:
    headers = [("a", "bool", b"\1")]
    written = kip82(5, crc=1, tombstone=True, attributes=0x18, headers=headers, value=b"v")
    read = ops.decode(written, "kip82-message")
    assert isinstance(read, dict)
    assert read["crc"] == zlib.crc32(written[16:])
    assert (read["attributes"], read["tombstone"], read["headers"]) == (0x18, False, headers)
    assert ops.decode(kip82(5, attributes=0x10), "kip82-message")["attributes"] == 0  # type: ignore[call-overload]
    wrapped = {**read, "headers": [(1, b"x")], "tombstone": True, "attributes": 0}
    again = ops.decode(ops.encode(wrapped, "kip82-message-wrapper") or b"", "kip82-message-wrapper")
    assert isinstance(again, dict)
    assert (again["attributes"], again["tombstone"], again["value"]) == (0x10, True, b"v")


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"id": b"abc"}, "wrong_size"), ({"offset": -1}, "out_of_range"), ({"checksum": 2**64}, "out_of_range")],
)
def test_iggy_numbers_and_ids_must_have_their_size(fields: Line, code: str) -> None:
    message = dict.fromkeys(name for name, _ in FORMATS["iggy-message"].fields)
    raised(lambda: ops.encode({**message, "payload": b"", **fields}, "iggy-message"), EncodeError, code)
    nothing = ops.encode({**message, "payload": b""}, "iggy-message")
    assert nothing == bytes(64)
    raised(lambda: ops.encode(message, "iggy-message"), ConversionError, "null_not_carried")
    [row] = ops.encode_rows([message], "iggy-message", on_loss="report")
    assert row == {"data": bytes(64), "losses": [Loss("null_not_carried", "the payload is null", written="empty")]}


def test_id_is_parsed_like_uuid() -> None:
    id = uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
    written = ops.encode({"id": id.bytes, "headers": [], "payload": b""}, "iggy-message-2023")
    assert written is not None
    assert int.from_bytes(written[:16], "little") == id.int
    read = ops.decode(written, "iggy-message-2023")
    assert isinstance(read, dict)
    assert uuid.UUID(bytes=read["id"]) == id


def test_canonical_order_exists_only_where_crate_sorts() -> None:
    headers = [(("int32", b"\0\0\1\0"), "bool", b"\1"), (("int32", b"\0\0\0\1"), "bool", b"\1"), ("b", "bool", b"\0")]
    written = ops.encode(headers, "iggy", canonical=True)
    assert written is not None
    # String before int32; of the two numbers the one whose lowest byte is less.
    assert [key for key, _, _ in ops.decode(written, "iggy")] == ["b", ("int32", b"\0\0\1\0"), ("int32", b"\0\0\0\1")]
    with pytest.raises(ValueError, match=r"^canonical=True: kafka has no order of its own for headers$"):
        ops.encode([], "kafka", canonical=True)
