"""``letterhead.iggy`` against everything that the crates of Iggy said, and against what was seen between real servers.

Where this package answers otherwise on purpose, both answers are held: ours, and that of the crate through the named
view that gives it. ``DIFFERENCES`` counts those lines; a line that differs in another way fails.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import DecodeError, EncodeError, HeaderError
from letterhead.iggy import (
    HeaderKey,
    HeaderKind,
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

Line = dict[str, Any]
Format = Any

LINES = {
    "iggy_seed_headers": 218,
    "iggy_tlv_headers": 359,
    "iggy_seed_malformed": 352,
    "iggy_tlv_malformed": 501,
    "iggy_seed_construct": 1175,
    "iggy_tlv_construct": 804,
    "iggy_seed_json": 232,
    "iggy_tlv_json": 236,
    "iggy_seed_messages": 72,
    "iggy_tlv_messages": 48,
    "iggy_limits": 18,
    "iggy_wire_capture": 4,
}

DIFFERENCES = {
    # Keys are case-sensitive; the crate put them into lower case. View: HeaderKey.lower.
    ("iggy_seed_construct", "lower case"): 9,
    # The crate made keys that grow beyond 255 bytes in lower case. View: HeaderKey.lower(validate=False).
    ("iggy_seed_construct", "too long in lower case"): 1,
    # The crate read the first byte of a bool or uint8 of several. View: as_bool/as_uint8(validate=False).
    ("iggy_seed_construct", "first byte"): 10,
    # The crate panics, here it is an error.
    ("iggy_seed_construct", "panic"): 2,
    ("iggy_seed_malformed", "panic"): 66,
    # Bytes that are no headers at all are no headers to the crate, with a line in its log; here they are an error.
    ("iggy_tlv_malformed", "passed over"): 157,
    # Kinds without a name pass; the crate refuses them. View: strict_types=True.
    ("iggy_tlv_malformed", "unknown kind"): 14,
    # The crate does not look at what JSON brings. View: from_json(validate=False).
    ("iggy_seed_json", "not validated"): 4,
    ("iggy_tlv_json", "not validated"): 39,
    # The crate sorts. View: canonical().
    ("iggy_tlv_json", "sorted"): 2,
    # The crate does not look at the checksum. View: from_bytes(validate=False).
    ("iggy_seed_messages", "checksum"): 24,
}


def format_of(line: Line) -> Format:
    return "iggy-2023" if line["id"].startswith("seed_") else "iggy"


def field_of(cls: Any, source: Line) -> Any:
    return cls.from_kind_bytes(source["kind"], bytes.fromhex(source["hex"]), validate=False)


def map_of(entries: list[Line] | None) -> HeaderMap | None:
    if entries is None:
        return None
    return HeaderMap([(field_of(HeaderKey, entry["key"]), field_of(HeaderValue, entry["value"])) for entry in entries])


def refused(line: Line, call: Callable[[], Any], expected: Line | None = None) -> HeaderError:
    """Make sure of an error, and of its number in the crate where there is one."""
    with pytest.raises(HeaderError) as raised:
        call()
    if expected is not None:
        assert iggy_code(raised.value, format_of(line)) == expected["code"], raised.value.code
    return raised.value


def check_made(line: Line, make: Callable[[], Any]) -> None:
    """Compare a key, value or kind with what the crate made, or did not."""
    expect = line["expect"]
    if "error" in expect:
        refused(line, make, expect["error"])
        return
    result = make()
    assert (str(result.kind), result.value.hex()) == (expect["ok"]["kind"], expect["ok"]["hex"])
    if "utf8" in expect["ok"]:
        assert result.as_str() == expect["ok"]["utf8"]
    if "display" in expect:
        assert result.to_string_value() == expect["display"]
    assert type(result)._from_value(result._typed) == result


def check_key(line: Line) -> str | None:
    text, expect = line["input"], line["expect"]
    assert len(text.encode()) == line["input_bytes"]
    if format_of(line) == "iggy" or "error" in expect:
        check_made(line, lambda: HeaderKey(text))
        if "error" in expect:
            refused(line, lambda: HeaderKey.lower(text), expect["error"])
        return None
    assert HeaderKey(text).as_str() == text
    crates = HeaderKey.lower(text, validate=False)
    assert crates.as_str() == expect["ok"]
    assert len(crates.value) == expect["ok_bytes"]
    if expect["ok_bytes"] > 255:
        assert refused(line, lambda: HeaderKey.lower(text)).code == "too_long"
        return "too long in lower case"
    assert HeaderKey.lower(text) == crates
    return "lower case" if expect["ok"] != text else None


def check_value_from_str(line: Line) -> None:
    check_made(line, lambda: HeaderValue.from_str(line["input"]))


def check_value_from_raw(line: Line) -> None:
    check_made(line, lambda: HeaderValue.from_raw(bytes.fromhex(line["input_hex"])))


def check_key_from_raw(line: Line) -> None:
    check_made(line, lambda: HeaderKey.from_raw(bytes.fromhex(line["input_hex"])))


def check_value_from_kind_bytes(line: Line) -> None:
    data = bytes.fromhex(line["input_hex"])
    check_made(line, lambda: HeaderValue.from_kind_bytes(line["kind"], data))
    check_made(line, lambda: HeaderValue(HeaderKind.parse(line["kind"]), data))


def check_parse(line: Line) -> None:
    check_made(line, lambda: HeaderValue.from_kind_str_and_value_str(line["kind"], line["input"]))


def check_parse_kind(line: Line) -> None:
    if "error" in line["expect"]:
        refused(line, lambda: HeaderKind.parse(line["input"]), line["expect"]["error"])
    else:
        assert HeaderKind.parse(line["input"]).as_code() == line["expect"]["ok"]


def check_kind_from_code(line: Line) -> None:
    if "error" in line["expect"]:
        refused(line, lambda: HeaderKind.from_code(line["input"]), line["expect"]["error"])
    else:
        assert str(HeaderKind.from_code(line["input"])) == line["expect"]["ok"]


def check_as(line: Line) -> str | None:
    value, expect, name = field_of(HeaderValue, line["value"]), line["expect"], line["as"]
    read = getattr(value, f"as_{'str' if name == 'string' else name}")
    if "error" in expect:
        refused(line, read, expect["error"])
        return None
    if "panic" in expect:
        assert refused(line, read).code == "wrong_size"
        assert refused(line, lambda: read(validate=False)).code == "wrong_size"
        return "panic"
    differs = name in ("bool", "uint8") and len(value.value) > 1
    if differs:
        assert refused(line, read).code == "wrong_size"
    check_read(read(validate=False) if differs else read(), name, value, expect["ok"])
    return "first byte" if differs else None


def check_read(got: Any, name: str, value: HeaderValue, ok: Line) -> None:
    if "utf8" in ok:
        assert got == ok["utf8"]
    elif "hex" in ok:
        assert got.hex() == ok["hex"]
    elif "bits" in ok:
        assert value._typed.bits.hex() == ok["bits"]
        code = ">f" if name == "float32" else ">d"
        # Through a Python float only the quiet bit of a NaN can change.
        assert struct.pack(code, got).hex() == ok["bits"] or got != got
    else:
        assert str(got).lower() == ok["text"]


def check_headers(line: Line) -> None:
    format, data = format_of(line), bytes.fromhex(line["bytes"])
    headers = map_of(line["entries"])
    assert headers is not None
    assert headers.to_bytes(format) == data
    assert HeaderMap.from_bytes(data, format) == HeaderMap.from_bytes(data) == headers
    assert list(HeaderMap.from_bytes(data)) == list(headers)
    if "input" in line:
        unsorted = map_of(line["input"])
        assert unsorted is not None
        assert unsorted.to_bytes(format, canonical=True) == data
    if "display" in line:
        [value] = headers.values()
        assert value.to_string_value() == line["display"]


def check_decode(line: Line) -> str | None:
    format, data, expect = format_of(line), bytes.fromhex(line["bytes"]), line["expect"]
    if "ok" in expect:
        assert HeaderMap.from_bytes(data, format) == map_of(expect["ok"])
        return None
    if "error" not in expect:
        refused(line, lambda: HeaderMap.from_bytes(data, format))
        return "panic" if "panic" in expect else "passed over"
    if format == "iggy" and expect["error"]["code"] == 4040:
        refused(line, lambda: HeaderMap.from_bytes(data, format, strict_types=True), expect["error"])
        assert not all(field.kind._is_named for item in HeaderMap.from_bytes(data, format).items() for field in item)
        return "unknown kind"
    refused(line, lambda: HeaderMap.from_bytes(data, format), expect["error"])
    return None


def check_to_json(line: Line) -> None:
    headers = map_of(line["entries"])
    assert headers is not None
    format = format_of(line)
    assert headers.to_json(format) == line["json"]
    assert HeaderMap.from_json(line["json"], format) == headers
    assert list(HeaderMap.from_json(line["json"])) == list(headers)
    if format == "iggy":
        backwards = HeaderMap(reversed(list(headers.items())))
        assert backwards.to_json("iggy", canonical=True) == line["json"]


def check_from_json(line: Line) -> str | None:
    format, text, expect = format_of(line), line["json"], line["expect"]
    if "json_error" in expect:
        assert iggy_code(refused(line, lambda: HeaderMap.from_json(text, format)), format) in (None, 209)
        refused(line, lambda: HeaderMap.from_json(text, format, validate=False))
        return None
    crates = HeaderMap.from_json(text, format, validate=False)
    expected = map_of(expect["ok"])
    assert crates == expected
    try:
        ours = HeaderMap.from_json(text, format)
    except DecodeError as error:
        assert error.code in ("empty_key", "empty_value", "too_long", "wrong_size")
        check_not_written(line, crates)
        return "not validated"
    assert ours == crates
    if format == "iggy-2023":
        assert HeaderMap.from_bytes(ours.to_bytes(), "iggy-2023") == ours
        return None
    assert expect["to_wire_then_domain"] == "ok"
    assert ours.to_bytes("iggy", canonical=True).hex() == expect["to_wire"]
    assert list(ours._sorted()) == list(expected or ())
    return "sorted" if list(ours) != list(expected or ()) else None


def check_not_written(line: Line, crates: HeaderMap) -> None:
    """What the crate takes from JSON and its own reader refuses is written by nobody here."""
    refused(line, lambda: crates.to_bytes(format_of(line)))
    if format_of(line) == "iggy":
        assert line["expect"]["to_wire_then_domain"] != "ok"
        refused(line, lambda: HeaderMap.from_bytes(bytes.fromhex(line["expect"]["to_wire"]), "iggy"))


def check_message(line: Line) -> None:
    headers, data = map_of(line["headers"]), bytes.fromhex(line["bytes"])
    message = Message(int(line["message_id"]), bytes.fromhex(line["payload"]), headers)
    assert message.to_bytes() == data
    assert message.size_bytes == len(data)
    assert message.to_json() == line["json"]
    assert Message.from_json(line["json"]) == message
    read = Message.from_bytes(data)
    assert (read.id, read.payload, read.headers or {}) == (message.id, message.payload, headers or {})
    assert read.to_bytes() == data
    assert lh.encode(lh.decode(data, "iggy-message-2023"), "iggy-message-2023") == data


def polled_message(line: Line, **fields: Any) -> PolledMessage:
    """Return the message of a line; ``fields`` are those that only some lines have."""
    return PolledMessage(
        offset=line["offset"],
        timestamp=line["timestamp"],
        id=int(line["message_id"]),
        payload=bytes.fromhex(line["payload"]),
        checksum=line["checksum"],
        **fields,
    )


def check_polled(line: Line) -> str:
    data = bytes.fromhex(line["bytes"])
    message = polled_message(line, headers=map_of(line["headers"]), state=MessageState(line["state"]))
    assert MessageState(line["state"]).as_code() == line["state_code"]
    assert message.to_bytes() == data
    assert message.to_json() == line["json"]
    assert PolledMessage.from_json(line["json"]) == message
    crates = PolledMessage.from_bytes(data, validate=False)
    message.headers = message.headers or None
    assert crates == message
    refused(line, lambda: PolledMessage.from_bytes(data))
    return "checksum"


def check_send_messages(line: Line) -> None:
    data = bytes.fromhex(line["bytes"])
    request = request_of(line)
    assert request.to_bytes() == data
    assert request.to_json() == line["json"]
    where = {"stream_id": request.stream_id, "topic_id": request.topic_id}
    assert SendMessages.from_json(line["json"], **where) == request
    assert SendMessages.from_bytes(data).to_bytes() == data


def check_message64(line: Line) -> None:
    data = bytes.fromhex(line["bytes"])
    headers = map_of(line["headers"]) or None
    message = polled_message(line, headers=headers, origin_timestamp=line["origin_timestamp"])
    assert message.to_bytes("iggy") == data
    assert PolledMessage.from_bytes(data, "iggy") == message
    assert message.to_json("iggy") == line["json"]
    assert PolledMessage.from_json(line["json"]) == message
    assert len((message.headers or HeaderMap()).to_bytes("iggy")) == line["user_headers_length"]


def check_send_messages_batch(line: Line) -> None:
    data = bytes.fromhex(line["bytes"])
    request = request_of(line)
    assert request.to_bytes("iggy") == data
    assert [(m.headers or HeaderMap()).to_bytes("iggy").hex() for m in request.messages] == [
        source["headers_bytes"] for source in line["messages"]
    ]
    read = SendMessages.from_bytes(data, "iggy")
    assert read.to_bytes("iggy") == data
    assert [m.origin_timestamp for m in read.messages] == [m["origin_timestamp"] for m in line["messages"]]
    # The body begins with the length of what stands before the batch.
    assert list(lh.messages(data[line["batch_at"] :], "iggy-batch"))


def request_of(line: Line) -> SendMessages:
    [[how, value]] = line["partitioning"].items()
    partitioning = {
        "balanced": lambda: Partitioning.balanced(),
        "partition_id": lambda: Partitioning.partition_id(value),
        "messages_key": lambda: Partitioning.messages_key(bytes.fromhex(value)),
    }[how]()
    messages = [
        Message(
            int(source["message_id"]),
            bytes.fromhex(source["payload"]),
            map_of(source["headers"]),
            origin_timestamp=source.get("origin_timestamp"),
        )
        for source in line["messages"]
    ]
    return SendMessages(identifier_of(line["stream"]), identifier_of(line["topic"]), partitioning, messages)


def identifier_of(source: Line) -> Identifier:
    return Identifier.numeric(source["numeric"]) if "numeric" in source else Identifier.named(source["named"])


def recipe(lengths: list[int]) -> HeaderMap:
    return HeaderMap(
        (f"k{i:05}", HeaderValue.from_raw(bytes((i * 7 + j) & 255 for j in range(length))))
        for i, length in enumerate(lengths)
    )


def in_parts(headers: HeaderMap, format: Format) -> bytes:
    """Write more headers than a message may have: blocks written one after the other are one block."""
    items = list(headers.items())
    return b"".join(HeaderMap(items[at : at + 100]).to_bytes(format) for at in range(0, len(items), 100))


def check_seed_limit(line: Line) -> None:
    headers = recipe([line["value_len"]] * (line["n"] - 1) + [line["last_value_len"]])
    block = in_parts(headers, "iggy-2023")
    assert hashlib.sha256(block).hexdigest() == line["sha256_in_recipe_order"]
    assert (headers._value_bytes(), headers.size_bytes("iggy-2023")) == (
        line["value_bytes_per_message"],
        line["header_bytes_per_message"],
    )
    assert len(HeaderMap.from_bytes(block)) == line["decoded_headers"]
    messages = [Message(None, b"x", headers) for _ in range(line["messages"])]
    request = SendMessages(1, 1, Partitioning.balanced(), messages)
    check_limit(line["send_messages_validate"], request, headers, "iggy-2023")


def check_tlv_limit(line: Line) -> None:
    lengths = line.get("value_lens") or [line["value_len"]] * (line["n"] - 1) + [line["last_value_len"]]
    headers = recipe(lengths)
    assert len(lengths) == line["n"]
    block = in_parts(headers, "iggy")
    assert hashlib.sha256(block).hexdigest() == line["sha256"]
    assert headers.size_bytes("iggy") == len(block) == line["header_bytes"]
    assert HeaderMap.from_bytes(block) == headers  # readers take more than writers may give
    request = SendMessages(1, 1, Partitioning.balanced(), [Message(None, b"x", headers)])
    check_limit(line["build"], request, headers, "iggy")


def check_limit(verdict: Any, request: SendMessages, headers: HeaderMap, format: Format) -> None:
    if verdict == "ok":
        request.validate(format)
        assert len(request.to_bytes(format)) > headers.size_bytes(format)
        return
    for call in (request.validate, request.to_bytes):
        with pytest.raises(EncodeError) as raised:
            call(format)
        assert raised.value.code == "too_large"
        assert iggy_code(raised.value, format) == verdict["error"]["code"]


def check_send_messages_tcp(line: Line) -> None:
    format, body = body_of(line, "request")
    request = SendMessages.from_bytes(body, format)
    assert request.to_bytes(format) == body
    if format == "iggy-2023":
        assert [len(message.headers or ()) for message in request.messages] == [1, 15, 0, 1, 0]
        [first, _, _, wrong, _] = request.messages
        assert isinstance(first.headers, HeaderMap)
        assert first.headers["key 1"].as_str() == "value1"
        assert isinstance(wrong.headers, HeaderMap)
        assert refused(line, wrong.headers["k"].as_int32).code == "wrong_size"
        return
    assert [len(message.headers or ()) for message in request.messages] == [15, 8, 0]
    every = request.messages[0].headers
    assert isinstance(every, HeaderMap)
    assert [header.key.kind for header in every] == list(HeaderKind) == [value.kind for value in every.values()]
    assert list(every._sorted()) == list(every)


def check_poll_messages_tcp(line: Line) -> None:
    format, body = body_of(line, "response")
    reply = PolledMessages.from_bytes(body, format)
    assert [message.offset for message in reply.messages] == list(range(len(reply.messages)))
    assert PolledMessages.from_json(reply.to_json(format)) == reply
    assert reply.to_bytes(format) == body
    _, sent = body_of(line, "request")
    request = PollMessages.from_bytes(sent, format)
    assert request.to_bytes(format) == sent
    if format == "iggy-2023":
        assert request == PollMessages(1, 1, "sample", 1, PollingStrategy.offset(0), 5)
        assert (reply.partition_id, reply.current_offset, len(reply.messages)) == (1, 6, 5)
        assert all(message.state is MessageState.AVAILABLE for message in reply.messages)
        assert PolledMessages.from_bytes(body, validate=False) == reply
        return
    assert request == PollMessages(1, "s1", "t1", 0, PollingStrategy.first(), 10)
    assert (reply.partition_id, reply.current_offset, len(reply.messages)) == (0, 5, 6)
    first, second = reply.messages[:3], reply.messages[3:]
    assert [m.headers for m in first] == [m.headers for m in second]


def body_of(line: Line, which: str) -> tuple[Format, bytes]:
    """Strip the frame of the protocol: 8 bytes in the old one, 256 in the new one."""
    data = bytes.fromhex(line[which])
    return ("iggy-2023", data[8:]) if line["layout"] == "seed" else ("iggy", data[256:])


CHECKS: dict[str, Callable[[Line], str | None]] = {
    "key": check_key,
    "key_from_raw": check_key_from_raw,
    "value_from_str": check_value_from_str,
    "value_from_raw": check_value_from_raw,
    "value_from_kind_bytes": check_value_from_kind_bytes,
    "parse": check_parse,
    "parse_kind": check_parse_kind,
    "kind_from_code": check_kind_from_code,
    "as": check_as,
    "as_wrong_size": check_as,
    "headers": check_headers,
    "decode": check_decode,
    "to_json": check_to_json,
    "from_json": check_from_json,
    "message": check_message,
    "polled": check_polled,
    "send_messages": check_send_messages,
    "message64": check_message64,
    "send_messages_batch": check_send_messages_batch,
    "seed_limit": check_seed_limit,
    "tlv_limit": check_tlv_limit,
    "tlv_limit_exact": check_tlv_limit,
    "send_messages_tcp": check_send_messages_tcp,
    "poll_messages_tcp": check_poll_messages_tcp,
}


@pytest.mark.parametrize("name", LINES)
def test_every_vector_matches(vectors: Path, name: str) -> None:
    lines = [json.loads(line) for line in (vectors / f"{name}.jsonl").read_text().splitlines()]
    assert len(lines) == LINES[name]
    failures: list[str] = []
    differences: Counter[str] = Counter()
    for line in lines:
        try:
            difference = CHECKS[line["op"]](line)
        except (AssertionError, HeaderError, pytest.fail.Exception) as error:
            failures.append(f"{line['id']}: {error!r}")
            continue
        if difference is not None:
            differences[difference] += 1
    assert not failures, f"{len(failures)} of {len(lines)} lines:\n" + "\n".join(failures[:20])
    assert differences == {subject: count for (file, subject), count in DIFFERENCES.items() if file == name}
