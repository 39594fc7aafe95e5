"""Values with their timestamps and headers, and the serdes that make bytes of them."""

from __future__ import annotations

import copy
import json
import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead import _native
from letterhead.errors import DamagedRowError, DecodeError, EncodeError, SerdeError
from letterhead.state import serdes
from letterhead.state.serdes import (
    AggregationWithHeadersSerde,
    BytesSerde,
    Int64Serde,
    Serde,
    StateSerdes,
    StringSerde,
    ValueAndTimestampSerde,
    ValueTimestampHeadersSerde,
)
from letterhead.state.values import (
    AggregationWithHeaders,
    LazyHeaders,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    VersionedRecord,
    VersionedRecordWithHeaders,
)

TOPIC = "app-store-changelog"
NONE = lh.Headers()
VALUES = ValueTimestampHeadersSerde(BytesSerde())
AGGREGATIONS = AggregationWithHeadersSerde(BytesSerde())


def headers_of(line: list[dict[str, Any]]) -> lh.Headers:
    return lh.Headers([(h["key"], None if h["value"] is None else bytes.fromhex(h["value"])) for h in line])


def lines(vectors: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (vectors / f"{name}.jsonl").read_text().splitlines()]


# --- values ----------------------------------------------------------------------------------------------------------


def test_make_returns_none_for_null_value() -> None:
    assert ValueTimestampHeaders.make(None, 5, NONE) is None
    assert AggregationWithHeaders.make(None, None) is None
    assert ValueAndTimestamp.make(None, 5) is None
    assert ValueTimestampHeaders.make_allow_nullable(None, 5, NONE).value is None
    assert AggregationWithHeaders.make_allow_nullable(None, NONE).aggregation is None


def test_get_value_or_null_returns_none_for_none() -> None:
    assert ValueTimestampHeaders.get_value_or_null(None) is None
    assert ValueTimestampHeaders.get_value_or_null(ValueTimestampHeaders.make("v", 5)) == "v"
    assert AggregationWithHeaders.get_aggregation_or_null(None) is None
    assert AggregationWithHeaders.get_aggregation_or_null(AggregationWithHeaders.make(3, NONE)) == 3
    assert ValueAndTimestamp.get_value_or_null(ValueAndTimestamp("v", 5)) == "v"


def test_value_headers_may_be_null_but_not_aggregation_headers() -> None:
    assert ValueTimestampHeaders.make("v", 5, None).headers == NONE
    for make in (AggregationWithHeaders.make, AggregationWithHeaders.make_allow_nullable):
        with pytest.raises(TypeError, match="headers must not be null"):
            make(3, None)


def test_headers_are_not_copied() -> None:
    headers = lh.Headers({"a": b"1"})
    assert ValueTimestampHeaders.make("v", 5, headers).headers is headers
    assert AggregationWithHeaders.make("v", headers).headers is headers
    assert VersionedRecordWithHeaders("v", 5, headers).headers is headers


def test_values_are_equal_by_all_fields() -> None:
    value = ValueTimestampHeaders.make("v", 5, {"a": b"1", "b": None})
    assert value == ValueTimestampHeaders("v", 5, [("a", b"1"), ("b", None)])
    assert value != ValueTimestampHeaders("v", 5, [("b", None), ("a", b"1")])
    assert value != ValueTimestampHeaders("v", 6, [("a", b"1"), ("b", None)])
    assert value != ValueTimestampHeaders("w", 5, [("a", b"1"), ("b", None)])
    assert AggregationWithHeaders(3, {"a": b"1"}) == AggregationWithHeaders(3, {"a": b"1"})
    assert AggregationWithHeaders(3, {"a": b"1"}) != AggregationWithHeaders(3, {"a": b"2"})
    assert VersionedRecord("v", 5, 7) == VersionedRecord("v", 5, 7) != VersionedRecord("v", 5)
    assert VersionedRecord("v", 5) != VersionedRecordWithHeaders("v", 5)
    assert VersionedRecordWithHeaders("v", 5, {"a": b"1"}) != VersionedRecordWithHeaders("v", 5)
    assert len({VersionedRecord("v", 5), VersionedRecord("v", 5), ValueAndTimestamp("v", 5)}) == 2


@pytest.mark.parametrize("name", ["value", "timestamp", "headers"])
def test_values_are_immutable(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(ValueTimestampHeaders("v", 5), name, None)


def test_version_value_must_not_be_null() -> None:
    for make in (VersionedRecord, VersionedRecordWithHeaders):
        with pytest.raises(TypeError, match=r"value cannot be null\."):
            make(None, 5)


# --- headers that wait -----------------------------------------------------------------------------------------------


def lazy(*headers: tuple[str, bytes | None]) -> LazyHeaders:
    read = AGGREGATIONS._decode(TOPIC, lh.encode(lh.Message(headers=headers, payload=b"v"), "streams"))
    assert isinstance(read.headers, LazyHeaders)
    return read.headers


def test_value_is_read_without_parsing_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    data = VALUES.serialize(TOPIC, NONE, ValueTimestampHeaders(b"v", 5, {"tenant": b"acme"}))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a header was parsed")

    monkeypatch.setattr("letterhead.state.values.decode", refuse)
    monkeypatch.setattr("letterhead.state.storage.raw.decode", refuse)
    read = [VALUES.deserialize(TOPIC, NONE, data), AGGREGATIONS.deserialize(TOPIC, NONE, data)]
    assert read[0].value == b"v"
    assert read[0].timestamp == 5
    assert not read[0].headers.parsed
    assert not read[1].headers.parsed
    with pytest.raises(AssertionError, match="a header was parsed"):
        read[0].headers["tenant"]


@pytest.mark.parametrize(
    "ask",
    [
        len,
        list,
        repr,
        lh.Headers,
        copy.copy,
        pickle.dumps,
        lambda h: h["a"],
        lambda h: h[0],
        lambda h: h[:1],
        lambda h: "a" in h,
        lambda h: h == NONE,
        lambda h: h.get("a"),
        lambda h: h.get_all("a"),
        lambda h: h.keys(),
        lambda h: list(h),
        lambda h: h.unique(),
        lambda h: h.frozen(),
        lambda h: h.add("b", b"2"),
        lambda h: h.remove("a"),
        lambda h: lh.encode(h, "kafka"),
    ],
)
def test_lazy_headers_behave_like_headers(ask: Any) -> None:
    waiting = lazy(("a", b"1"), ("b", None), ("a", b""))
    read = lh.Headers([("a", b"1"), ("b", None), ("a", b"")])
    assert not waiting.parsed
    assert ask(waiting) == ask(read)
    assert waiting.parsed
    assert waiting == read


def test_lazy_headers_pickle_as_headers() -> None:
    waiting = lazy(("a", b"1"))
    assert type(pickle.loads(pickle.dumps(waiting))) is lh.Headers
    assert type(waiting[:1]) is lh.Headers
    assert type(waiting.frozen()) is lh.FrozenHeaders
    with pytest.raises(AttributeError):
        _ = waiting.nothing


DAMAGED = bytes.fromhex("06020161" + "00" * 8 + "76")  # the key's length is -1


def test_damaged_headers_do_not_hide_value() -> None:
    read = VALUES.deserialize(TOPIC, NONE, DAMAGED)
    assert (read.value, read.timestamp) == (b"v", 0)
    with pytest.raises(DecodeError) as raised:
        len(read.headers)
    assert (raised.value.code, raised.value.byte_offset) == ("negative_length", 2)
    with pytest.raises(DecodeError):  # and again: nothing half-read stays
        len(read.headers)


def test_damaged_headers_name_store_key_byte_and_reason() -> None:
    read = VALUES._decode(TOPIC, DAMAGED, ("latest", b"acme"))
    with pytest.raises(DamagedRowError) as raised:
        len(read.headers)
    assert str(raised.value) == "store latest: key length -1 is negative (key 61636d65, header 0, byte 2)"
    assert (raised.value.store, raised.value.key, raised.value.code, raised.value.byte_offset) == (
        "latest",
        b"acme",
        "negative_length",
        2,
    )
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.key, again.reason) == (str(raised.value), b"acme", raised.value.reason)


def test_long_key_is_shown_by_its_first_bytes() -> None:
    error = DecodeError("it is", format=None, code="truncated")
    assert str(DamagedRowError("s", b"k" * 40, error)) == f"store s: it is (key {'6b' * 32}… (40 bytes))"


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_values_match_bytes_of_kafka_streams(vectors: Path) -> None:
    for line in lines(vectors, "value_timestamp_headers"):
        if line["hex"] is None:
            null = ValueTimestampHeaders.make_allow_nullable(None, 5, NONE) if line["id"] == "null-value" else None
            assert VALUES.serialize(TOPIC, NONE, null) is None
            continue
        data = bytes.fromhex(line["hex"])
        value = ValueTimestampHeaders(bytes.fromhex(line["value"]), int(line["timestamp"]), headers_of(line["headers"]))
        if "decoded_headers" in line:
            # Java writes a question mark for half of a surrogate pair.
            with pytest.raises(EncodeError):
                VALUES.serialize(TOPIC, NONE, value)
            value = ValueTimestampHeaders(value.value, value.timestamp, headers_of(line["decoded_headers"]))
        assert VALUES.serialize(TOPIC, NONE, value) == data, line["id"]
        assert VALUES.deserialize(TOPIC, NONE, data) == value, line["id"]


def test_aggregations_match_bytes_of_kafka_streams(vectors: Path) -> None:
    for line in lines(vectors, "aggregation_with_headers"):
        if "error" in line:
            continue  # null headers, which the value refuses
        if line["hex"] is None:
            assert AGGREGATIONS.serialize(TOPIC, NONE, None) is None
            assert AGGREGATIONS.serialize(TOPIC, NONE, AggregationWithHeaders(None, NONE)) is None
            continue
        headers = headers_of(line.get("decoded_headers", line["headers"]))
        value = AggregationWithHeaders(bytes.fromhex(line["aggregation"]), headers)
        assert AGGREGATIONS.serialize(TOPIC, NONE, value) == bytes.fromhex(line["hex"]), line["id"]
        assert AGGREGATIONS.deserialize(TOPIC, NONE, bytes.fromhex(line["hex"])) == value, line["id"]


class Marking(Serde[bytes]):
    """Adds a header when it writes, and tells which it sees when it reads."""

    def serialize(self, topic: str, headers: lh.Headers, data: bytes | None) -> bytes | None:
        headers.add("topic", topic)
        return data

    def deserialize(self, topic: str, headers: lh.Headers, data: bytes | None) -> bytes | None:
        return None if data == b"" else data + headers.get("topic", b"?")


@pytest.mark.parametrize("stored", ["value", "aggregation"])
def test_headers_added_by_serializer_reach_deserializer(stored: str) -> None:
    headers = lh.Headers({"tenant": b"acme"})
    if stored == "value":
        data = ValueTimestampHeadersSerde(Marking()).serialize("t", NONE, ValueTimestampHeaders(b"v", 5, headers))
        read = ValueTimestampHeadersSerde(Marking()).deserialize("t", NONE, data)
        assert read.value == b"vt"
    else:
        data = AggregationWithHeadersSerde(Marking()).serialize("t", NONE, AggregationWithHeaders(b"v", headers))
        read = AggregationWithHeadersSerde(Marking()).deserialize("t", NONE, data)
        assert read.aggregation == b"vt"
    assert headers.keys() == read.headers.keys() == ["tenant", "topic"]
    assert lh.Headers() == NONE


def test_value_deserialized_to_null_is_null_unlike_aggregation() -> None:
    assert ValueTimestampHeadersSerde(Marking()).deserialize("t", NONE, bytes(9)) is None
    assert ValueAndTimestampSerde(Marking()).deserialize("t", NONE, bytes(8)) is None
    assert AggregationWithHeadersSerde(Marking()).deserialize("t", NONE, b"\0").aggregation is None


class Null(Serde[bytes]):
    def serialize(self, topic: str, headers: lh.Headers, data: bytes | None) -> bytes | None:
        return None


def test_serializer_may_return_null_for_value() -> None:
    assert ValueTimestampHeadersSerde(Null()).serialize("t", NONE, ValueTimestampHeaders(b"v", 5)) is None
    assert ValueAndTimestampSerde(Null()).serialize("t", NONE, ValueAndTimestamp(b"v", 5)) is None
    assert AggregationWithHeadersSerde(Null()).serialize("t", NONE, AggregationWithHeaders(b"v", NONE)) is None


def test_value_too_short_for_timestamp_is_rejected() -> None:
    serde = ValueAndTimestampSerde(BytesSerde())
    assert serde.deserialize("t", NONE, bytes(7) + b"\5v") == ValueAndTimestamp(b"v", 5)
    with pytest.raises(DecodeError) as raised:
        serde.deserialize("t", NONE, bytes(7))
    assert raised.value.code == "truncated"


# --- serdes of keys and values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (serdes.BytesSerde(), b"v", b"v"),
        (serdes.StringSerde(), "é", "é".encode()),
        (serdes.BoolSerde(), True, b"\1"),
        (serdes.Int16Serde(), -2, b"\xff\xfe"),
        (serdes.Int32Serde(), 258, b"\0\0\1\2"),
        (serdes.Int64Serde(), -1, b"\xff" * 8),
        (serdes.Float32Serde(), 1.5, bytes.fromhex("3fc00000")),
        (serdes.Float64Serde(), 1.5, bytes.fromhex("3ff8000000000000")),
        (serdes.UuidSerde(), uuid.UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
    ],
)
def test_serde_writes_what_it_reads(serde: Serde[Any], value: object, data: bytes) -> None:
    assert serde.serialize(TOPIC, NONE, value) == data
    assert serde.deserialize(TOPIC, NONE, data) == value
    assert serde.serialize(TOPIC, NONE, None) is None
    assert serde.deserialize(TOPIC, NONE, None) is None
    with pytest.raises(TypeError):
        serde.serialize(TOPIC, NONE, [])


def test_number_out_of_range_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"^the number does not fit Int16Serde, which has 16 bits$"):
        serdes.Int16Serde().serialize(TOPIC, NONE, 1 << 15)
    with pytest.raises(ValueError, match="5 bytes where Int32Serde takes 4"):
        serdes.Int32Serde().deserialize(TOPIC, NONE, bytes(5))
    with pytest.raises(ValueError, match="a boolean is one byte"):
        serdes.BoolSerde().deserialize(TOPIC, NONE, b"\2")
    with pytest.raises(TypeError):
        serdes.Int32Serde().serialize(TOPIC, NONE, True)


def test_state_serdes_pass_headers_on() -> None:
    headers = lh.Headers()
    state = StateSerdes("t", Marking(), Marking())
    assert state.raw_key(b"k", headers) == b"k"
    assert state.raw_value(b"v", headers) == b"v"
    assert headers.get_all("topic") == [b"t", b"t"]
    assert (state.key_from(b"k", headers), state.value_from(b"v", headers)) == (b"kt", b"vt")


def test_state_serdes_without_headers_are_deprecated() -> None:
    state = StateSerdes("t", Marking(), Marking())
    for method, result in (("raw_key", b"x"), ("raw_value", b"x"), ("key_from", b"x?"), ("value_from", b"x?")):
        with pytest.warns(DeprecationWarning, match=f"StateSerdes.{method} without headers is deprecated") as warned:
            assert getattr(state, method)(b"x") == result
        assert warned[0].filename == __file__


@pytest.mark.parametrize(
    ("source", "argument"),
    [
        ((None, BytesSerde(), BytesSerde()), "topic"),
        (("t", None, BytesSerde()), "key serde"),
        (("t", BytesSerde(), None), "value serde"),
    ],
)
def test_state_serdes_reject_null_arguments(source: Any, argument: str) -> None:
    with pytest.raises(TypeError, match=f"{argument} cannot be null"):
        StateSerdes(*source)


def test_serializer_of_wrong_type_is_named() -> None:
    state = StateSerdes("t", StringSerde(), Int64Serde())
    with pytest.raises(SerdeError) as raised:
        state.raw_key(5, NONE)
    assert str(raised.value) == (
        "A serializer (letterhead.state.serdes.StringSerde) is not compatible to the actual key type (key type: int). "
        "Change the default Serdes in StreamConfig or provide correct Serdes via method parameters."
    )
    with pytest.raises(SerdeError, match=r"to the actual value type \(value type: str\)"):
        state.raw_value("v", NONE)
    with pytest.raises(SerdeError, match=r"Int64Serde\) is not compatible to the actual value type"):
        ValueTimestampHeadersSerde(Int64Serde()).serialize("t", NONE, ValueTimestampHeaders("v", 5))


# --- the native way in and out ---------------------------------------------------------------------------------------

MANY = [
    [],
    [("tenant", b"acme")],
    [("route", b"a"), ("tenant", None), ("route", b""), ("ключ", b"\xff"), ("", b"v" * 64), ("k" * 70, b"")],
    [(f"key-{number}", bytes(number)) for number in range(300)],
    [("long", bytes(1 << 17))],
]


@pytest.mark.parametrize("headers", MANY, ids=len)
def test_values_are_joined_and_split_like_formats(headers: list[tuple[str, bytes | None]]) -> None:
    for timestamp, format in ((-(1 << 63), "streams-timestamped"), (5, "streams-timestamped"), (None, "streams")):
        source = {"headers": list(headers), "timestamp": timestamp, "payload": b"v"}
        if timestamp is None:
            del source["timestamp"]
        whole = _native.encode(source, format)
        assert whole is not None
        assert _native.join_value(lh.Headers(headers)._items, timestamp, b"v") == whole
        payload, at, start, end = _native.split_value(whole, timestamp is not None)  # type: ignore[call-overload]
        assert (payload, at) == (b"v", timestamp)
        assert whole[start:end] == lh.encode(headers, "kafka")
        assert end + (0 if timestamp is None else 8) + 1 == len(whole)


def test_unwritable_value_is_rejected_with_header_number() -> None:
    half = lh.Headers([("a", b"1"), ("\ud800", b"2")])
    with pytest.raises(lh.EncodeError) as refused:
        VALUES.serialize(TOPIC, NONE, ValueTimestampHeaders(b"v", 5, half))
    assert (refused.value.code, refused.value.header) == ("key_not_utf8", 1)
    typed = lh.Headers([("a", b"1"), ("retry", lh.Int32(3))])
    with pytest.raises(lh.ConversionError) as lost:
        VALUES.serialize(TOPIC, NONE, ValueTimestampHeaders(b"v", 5, typed))
    assert (lost.value.code, lost.value.header, lost.value.key) == ("type_not_carried", 1, "retry")


class Text(serdes.Serde[bytes]):
    def serialize(self, topic: str, headers: lh.Headers, data: bytes | None) -> Any:
        return None if data is None else data.decode()


def test_serializer_not_returning_bytes_is_named() -> None:
    with pytest.raises(SerdeError, match=r"a serializer must return bytes: .*\.Text returned str"):
        ValueTimestampHeadersSerde(Text()).serialize("t", NONE, ValueTimestampHeaders(b"v", 5))
