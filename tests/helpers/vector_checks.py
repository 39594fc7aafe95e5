"""What every implementation has to make of the vectors. Each check takes one line of a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from letterhead.errors import ConversionError, DecodeError, EncodeError
from tests.helpers.implementations import Decoded, Implementation, Pairs

Line = dict[str, Any]

MODELS = {
    "HeadersDeserializer.deserialize": "kafka",
    "AggregationWithHeadersDeserializer.deserialize": "streams",
    "ValueTimestampHeadersDeserializer.deserialize": "streams-timestamped",
    "Utils.headers": "streams",
}
"""The readers of Kafka that check what they read, and the format each reads."""

NO_MODELS = {
    "Utils.rawAggregation",
    "Utils.rawPlainValue",
    "Utils.rawTimestampedValue",
    "Utils.timestamp",
    "TimestampedToHeadersWindowStoreAdapter.rawTimestampedValue",
}
"""Helpers of Kafka that do not check: what they do with bad bytes is no rule for anyone."""


DRAFTS = (
    "kip82_typed",
    "kip82_int",
    "kip82_wrapper",
    "kip82_message",
    "kip82_message_int",
    "kip82_message_wrapper",
    "kip82_messages",
    "kip82_messages_int",
    "kip82_messages_wrapper",
)
"""Files of cases worked out from the drafts."""

IGGY_BYTES = {
    "iggy_seed_headers": ("iggy-2023", "iggy-auto"),
    "iggy_seed_malformed": ("iggy-2023", "iggy-auto"),
    "iggy_tlv_headers": ("iggy", "iggy-auto"),
    "iggy_tlv_malformed": ("iggy", "iggy-auto"),
}
"""Files whose lines have the bytes of a block, and the formats that read them."""

IGGY = (
    *IGGY_BYTES,
    "iggy_seed_construct",
    "iggy_tlv_construct",
    "iggy_seed_json",
    "iggy_tlv_json",
    "iggy_seed_messages",
    "iggy_tlv_messages",
    "iggy_limits",
    "iggy_wire_capture",
)
"""Files that the crates of Iggy made: the tests of ``letterhead.iggy`` read all of them."""

STATE = (
    "trace_kv",
    "trace_window",
    "trace_session",
    "trace_upgrade",
    "trace_versioned",
    "queries",
    "queries_window",
    "queries_session",
    "versioned_segments",
    "rocksdb_fixtures",
    "dsl",
)
"""Files that the stores of Kafka Streams made: the tests of ``letterhead.state`` read all of them."""


def check_file(vectors: Path, name: str, implementation: Implementation) -> None:
    """Run the check of a file over every line of it, and tell of all that fail."""
    lines = read_lines(vectors, name)
    assert len(lines) == listed_lines(vectors)[name]
    failures = []
    for number, line in enumerate(lines, 1):
        try:
            CHECKS[name](implementation, line)
        except (AssertionError, DecodeError, EncodeError, ConversionError) as error:
            failures.append(f"{name}.jsonl:{number} ({line.get('id', '')}): {error!r}")
    assert not failures, f"{len(failures)} of {len(lines)} lines:\n" + "\n".join(failures[:20])


def in_our_words(error: Line) -> Line:
    """Return an error of the vectors, whose word for a type is `kind`, with our word for it."""
    output = {name: error[name].replace("kind", "type") for name in ("code", "message") if name in error}
    return {**error, **output}


def read_lines(vectors: Path, name: str) -> list[Line]:
    """Read one of the files."""
    return [json.loads(line) for line in (vectors / f"{name}.jsonl").read_text().splitlines()]


def listed_lines(vectors: Path) -> dict[str, int]:
    """Read from the manifest how many lines each file has."""
    files = json.loads((vectors / "manifest.json").read_text())["files"]
    return {file["file"].removesuffix(".jsonl"): file["lines"] for file in files if "lines" in file}


def listed_differences(vectors: Path) -> dict[tuple[str, str], int]:
    """Read how often the strict reading of a format refuses what Java reads, and with which code."""
    listed = json.loads((vectors / "strict.json").read_text())["malformed"]
    return {(format, code): len(lines) for format, codes in listed.items() for code, lines in codes.items()}


def refusal(implementation: Implementation, data: bytes, format: str, *, lenient: bool) -> str | None:
    """Return the code with which bytes are refused, or nothing."""
    try:
        implementation.decode(data, format, lenient=lenient)
    except DecodeError as error:
        return error.code
    return None


# --- varints ---------------------------------------------------------------------------------------------------------


def check_varint(implementation: Implementation, line: Line) -> None:
    """A varint of 32 bits is a count that stands alone, or the length of a key."""
    if line["kind"] != "varint":
        return  # headers have no other numbers: those are checked where they are read and written
    if "hex" in line:
        _check_varint_written(implementation, int(line["value"]), bytes.fromhex(line["hex"]))
        data, value, lost = bytes.fromhex(line["hex"]), int(line["value"]), False
    elif "value" in line:
        data = bytes.fromhex(line["decode_hex"])
        value, lost = int(line["value"]), line["consumed"] == 5 and data[4] > 0x0F
        data = data[: line["consumed"]]
    else:
        data = bytes.fromhex(line["decode_hex"])
        # An empty block is no headers; the varint that cannot be read is then the size of a `streams` message.
        code = "varint_too_long" if line["error"]["message"] else "truncated"
        for lenient in (False, True):
            assert refusal(implementation, data, "streams", lenient=lenient) == code
        return
    strict = "varint_lost_bits" if lost else _refusal_of_lone_count(value)
    assert refusal(implementation, data, "kafka", lenient=False) == strict
    assert refusal(implementation, data, "kafka", lenient=True) == ("count_too_large" if value > 0 else None)


def _refusal_of_lone_count(count: int) -> str | None:
    if count < 0:
        return "negative_count"
    return "count_too_large" if count else None


def _check_varint_written(implementation: Implementation, value: int, data: bytes) -> None:
    if 0 <= value <= 1 << 16:
        key = "k" * value
        written = implementation.encode(Decoded([(key, None)], {}), "kafka")
        assert written == b"\x02" + data + key.encode() + b"\x01"


# --- blocks and messages --------------------------------------------------------------------------------------------


def check_headers(implementation: Implementation, line: Line) -> None:
    """A block is written and read as Java's serializer and deserializer do."""
    if line["id"].startswith("raw-key-"):
        return _check_raw_key(implementation, line)
    if line.get("headers_null"):
        assert implementation.encode(Decoded(None, {}), "kafka") == bytes.fromhex(line["hex"])
        return None
    data = bytes.fromhex(line["hex"])
    assert len(data) == line["size"]
    _check_written(implementation, _pairs(line["headers"]), {}, "kafka", data)
    _check_read(implementation, data, "kafka", Decoded(_pairs(line.get("decoded", line["headers"])), {}))
    return None


def _check_raw_key(implementation: Implementation, line: Line) -> None:
    data = bytes.fromhex(line["decode_hex"])
    # Some of these keys look wrong and are UTF-8: Java reads and writes them unchanged.
    strict = None if line["reencoded"] == line["decode_hex"] else "key_not_utf8"
    assert refusal(implementation, data, "kafka", lenient=False) == strict
    read = implementation.decode(data, "kafka", lenient=True)
    assert read.headers == _pairs(line["decoded"])
    assert implementation.encode(read, "kafka") == bytes.fromhex(line["reencoded"])


def check_timestamped(implementation: Implementation, line: Line) -> None:
    """A `streams-timestamped` message is written and read as Java does."""
    format = "streams-timestamped"
    if line["hex"] is None:
        assert implementation.encode(Decoded([], {"timestamp": 0, "payload": None}), format) is None
        return
    data = bytes.fromhex(line["hex"])
    fields = {"timestamp": int(line["timestamp"]), "payload": bytes.fromhex(line["value"])}
    _check_written(implementation, _pairs(line["headers"]), fields, format, data)
    read = Decoded(_pairs(line.get("decoded_headers", line["headers"])), fields)
    _check_read(implementation, data, format, read)
    assert (data[0] == 0) == line["has_empty_headers"] == (not read.headers)
    # The older form of the same value is the message's end.
    assert data.endswith(bytes.fromhex(line["timestamped_hex"]))
    older = implementation.encode(Decoded([], fields), format)
    assert older == b"\0" + bytes.fromhex(line["timestamped_hex"])


def check_aggregation(implementation: Implementation, line: Line) -> None:
    """A `streams` message is written and read as Java does."""
    if "error" in line:
        message = Decoded(None, {"payload": b""})
        try:
            implementation.encode(message, "streams", nulls="raise")
        except EncodeError as error:
            assert error.code == "null_not_carried"
        else:
            raise AssertionError("headers that are null were written")
        assert implementation.encode(message, "streams") == b"\0"
        return
    if line["hex"] is None:
        assert implementation.encode(Decoded([], {"payload": None}), "streams") is None
        return
    data = bytes.fromhex(line["hex"])
    fields = {"payload": bytes.fromhex(line["aggregation"])}
    _check_written(implementation, _pairs(line["headers"]), fields, "streams", data)
    _check_read(implementation, data, "streams", Decoded(_pairs(line.get("decoded_headers", line["headers"])), fields))


# --- malformed, conversions ------------------------------------------------------------------------------------------


def check_malformed(implementation: Implementation, line: Line) -> None:
    """A lenient reading gives what Java gives; a strict one gives the same or refuses."""
    data = bytes.fromhex(line["input"])
    assert set(line["targets"]) == set(MODELS) | NO_MODELS
    for model, format in MODELS.items():
        java = line["targets"][model]
        if "ok" not in java:
            assert refusal(implementation, data, format, lenient=True), f"{model} throws and lenient {format} does not"
            assert refusal(implementation, data, format, lenient=False), f"{model} throws and {format} does not"
            continue
        read = implementation.decode(data, format, lenient=True)
        assert read.headers == _pairs(java["ok"]["headers"]), model
        if model != "Utils.headers":
            assert read.fields == _fields(java["ok"]), model
        if refusal(implementation, data, format, lenient=False) is None:
            assert implementation.decode(data, format) == read, model


def count_differences(implementation: Implementation, lines: list[Line]) -> dict[tuple[str, str], int]:
    """Count where the strict reading refuses what Java's deserializers read, by format and code."""
    counts: dict[tuple[str, str], int] = {}
    for line in lines:
        for model, format in MODELS.items():
            if "ok" in line["targets"][model] and model != "Utils.headers":
                code = refusal(implementation, bytes.fromhex(line["input"]), format, lenient=False)
                if code:
                    counts[format, code] = counts.get((format, code), 0) + 1
    return counts


def check_conversion(implementation: Implementation, line: Line) -> None:
    """Older stored values and changelog records become messages as Kafka's converters make them."""
    if line["kind"] == "format":
        payload = _bytes(line["input"])
        plain = implementation.encode(Decoded([], {"payload": payload}), "streams")
        assert plain == _bytes(line["HeadersBytesStore.convertToHeaderFormat"])
        fields = {"timestamp": -1, "payload": payload}
        stamped = implementation.encode(Decoded([], fields), "streams-timestamped")
        assert stamped == _bytes(line["HeadersBytesStore.convertFromPlainToHeaderFormat"])
        older = None if stamped is None else stamped[1:]
        assert older == _bytes(line["TimestampedBytesStore.convertToTimestampedFormat"])
        return
    headers, value = _pairs(line["headers"]), _bytes(line["value"])
    fields = {"timestamp": int(line["timestamp"]), "payload": value}
    stamped = Decoded(headers, fields)
    session = Decoded(headers, {"payload": value})
    for message, format, name in (
        (stamped, "streams-timestamped", "rawValueToHeadersValue"),
        (session, "streams", "rawValueToSessionHeadersValue"),
    ):
        assert implementation.encode(message, format, on_loss="drop") == _bytes(line[name])
        try:
            raised = implementation.encode(message, format)
        except ConversionError as error:
            assert error.code == "null_not_carried"
            assert value is None
            assert headers
        else:
            assert raised == _bytes(line[name])
    older = implementation.encode(Decoded([], fields), "streams-timestamped")
    assert (older if older is None else older[1:]) == _bytes(line["rawValueToTimestampedValue"])
    assert value == _bytes(line["identity"])


CHECKS: dict[str, Callable[[Implementation, Line], None]] = {
    "varints": check_varint,
    "headers": check_headers,
    "value_timestamp_headers": check_timestamped,
    "aggregation_with_headers": check_aggregation,
    "malformed": check_malformed,
    "conversions": check_conversion,
}


def _check_written(
    implementation: Implementation, headers: Pairs, fields: dict[str, Any], format: str, data: bytes
) -> None:
    if any(_has_lone_surrogate(key) for key, _ in headers):
        # Java writes a question mark; that is another key.
        try:
            implementation.encode(Decoded(headers, fields), format)
        except (EncodeError, UnicodeEncodeError) as error:
            assert getattr(error, "code", "key_not_utf8") == "key_not_utf8"
        else:
            raise AssertionError("a key without a UTF-8 form was written")
    else:
        assert implementation.encode(Decoded(headers, fields), format) == data


def _check_read(implementation: Implementation, data: bytes, format: str, expected: Decoded) -> None:
    assert implementation.decode(data, format) == expected
    assert implementation.decode(data, format, lenient=True) == expected


def _has_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= unit <= "\udfff" for unit in text)


def _fields(ok: Line) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "timestamp" in ok:
        fields["timestamp"] = int(ok["timestamp"])
    for name in ("value", "aggregation"):
        if name in ok:
            fields["payload"] = _bytes(ok[name])
    return fields


def _pairs(headers: list[Line]) -> Pairs:
    return [(header["key"], _bytes(header["value"])) for header in headers]


def _bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)
