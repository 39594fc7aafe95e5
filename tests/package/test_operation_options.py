"""Options that several operations share are checked and have the same effect in each of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers.operations_by_name import apply

Call = Callable[..., Any]

OLD = lh.encode({"magic": 1, "value": b"v"}, "kip82-message") or b""
"""A message without a headers field."""

LISTS = pa.array([None], lha.decode(pa.array([b""]), "kafka").type)

WRITING: dict[str, Call] = {
    "encode": lambda **options: lh.encode(None, "kafka", **options),
    "batch": lambda **options: lh.batch([{"headers": None}], **options),
    "batch of a set": lambda **options: lh.batch([{"headers": None}], "kip82-messages", **options),
    "convert": lambda **options: lh.convert(OLD, "kip82-message", target="kip82-message", **options),
    "column encode": lambda **options: lha.encode(LISTS, "kafka", **options),
    "column convert": lambda **options: lha.convert(
        pa.array([OLD]), "kip82-message", target="kip82-message", **options
    ),
}

REPORTING = ("convert", "column encode", "column convert")
"""Operations whose result has a place for losses."""

READING: dict[str, Call] = {
    "decode": lambda **options: lha.decode(pa.array([b"\x01"]), "kafka", **options),
    "select": lambda **options: lha.select(pa.array([b"\x01"]), {"a": "string"}, **options),
    "convert": lambda **options: lha.convert(pa.array([b"\x01"]), "kafka", target="kafka", **options),
    "messages": lambda **options: lha.messages(pa.array([b"\x01"]), "record-batch", **options),
}

every_writer = pytest.mark.parametrize("name", WRITING)


@every_writer
@pytest.mark.parametrize("option", ["on_loss", "nulls", "types"])
def test_unknown_option_value_is_rejected(name: str, option: str) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        WRITING[name](**{option: "nonsense"})


@every_writer
def test_losses_are_reported_or_the_option_is_rejected(name: str) -> None:
    if name in REPORTING:
        WRITING[name](on_loss="report")
        return
    with pytest.raises(ValueError, match="on_loss"):
        WRITING[name](on_loss="report")


@every_writer
def test_null_headers_are_rejected_on_request(name: str) -> None:
    WRITING[name](nulls="skip")
    with pytest.raises(lh.EncodeError) as caught:
        WRITING[name](nulls="raise")
    assert caught.value.code == "null_not_carried"


@pytest.mark.parametrize("name", READING)
def test_unknown_error_policy_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        READING[name](errors="nonsense")
    with pytest.raises(lh.DecodeError):
        READING[name]()
    for errors in ("null", "column"):
        assert len(READING[name](errors=errors)) == 1


CONVENTIONS: dict[str, Call] = {
    "edit": lambda **options: lha.edit(pa.array([b"\0"]), "kafka", drop=["a"], **options),
    "amqp": lambda **options: lha.amqp(pa.array([b"\xa1\x01a"]), "string", **options),
    "rfc3339": lambda **options: lha.rfc3339(pa.array(["2026-01-31T09:00:00Z"]), **options),
    "traceparent": lambda **options: lha.traceparent(pa.array([b""]), **options),
    "trace_links": lambda **options: lha.trace_links(LISTS, **options),
    "schema_id": lambda **options: lha.schema_id(pa.array([b"\0\0\0\0\1"]), **options),
    "by_schema_id": lambda **options: lha.by_schema_id(pa.array([b"\0\0\0\0\1"]), **options),
    "decode_by_schema": lambda **options: lha.decode_by_schema(
        pa.array([None], pa.binary()), list, pa.schema([("a", pa.int32())]), **options
    ),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_unknown_error_policy_is_rejected_by_conventions(name: str) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        CONVENTIONS[name](errors="nonsense")


@pytest.mark.parametrize("call", [READING["decode"], READING["select"], READING["messages"], CONVENTIONS["edit"],
                                  CONVENTIONS["by_schema_id"], CONVENTIONS["decode_by_schema"]])  # fmt: skip
def test_wrong_limits_type_is_rejected(call: Call) -> None:
    with pytest.raises(TypeError, match=r"limits must be letterhead\.Limits, not int"):
        call(limits=5)


def test_unknown_nulls_option_is_rejected() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        CONVENTIONS["edit"](nulls="nonsense")
    with pytest.raises(ValueError, match="nonsense"):
        lha.pack(pa.record_batch({"a": ["x"]}), nulls="nonsense")


def test_struct_without_fields_is_rejected_as_message_column() -> None:
    for options in ({"drop": ["a"]}, {"set": {"a": pa.array([b"x"])}}):
        with pytest.raises(TypeError, match=r"the column is struct<>"):
            lha.edit(pa.array([{}], pa.struct([])), "kafka", **options)


def test_conversion_report_lists_losses() -> None:
    converted = lh.convert(lh.encode([("a", None)], "kafka") or b"", "kafka", target="iggy", on_loss="report")
    assert [(loss.code, loss.key) for loss in converted.losses] == [("null_not_carried", "a")]
    column = pa.array([lh.encode([("a", None)], "kafka")])
    [row] = lha.convert(column, "kafka", target="iggy", on_loss="report").to_pylist()
    assert [(loss["code"], loss["key"]) for loss in row["losses"]] == [("null_not_carried", "a")]


# Times and limits at their bounds --------------------------------------------------------------------------------------


def test_kafka_timestamp_minus_one_is_no_loss_unlike_others() -> None:
    for timestamp, codes in ((-1, []), (-2, ["out_of_range"]), (0, [])):
        message = lh.encode(lh.Message(headers=[], timestamp=timestamp, payload=b"v"), "streams-timestamped") or b""
        converted = lh.convert(message, "streams-timestamped", target="iggy-message", on_loss="report")
        assert [loss.code for loss in converted.losses] == codes
        assert lh.decode(converted.data, "iggy-message").timestamp == 0


def test_offset_minus_one_is_no_loss_unlike_others() -> None:
    for offset, codes in ((-1, []), (-2, ["out_of_range"]), (0, []), (7, [])):
        message = lh.encode({"offset": offset, "value": b"v"}, "kip82-message") or b""
        converted = lh.convert(message, "kip82-message", target="iggy-message", on_loss="report")
        assert [loss.code for loss in converted.losses] == codes
        assert lh.decode(converted.data, "iggy-message").offset == max(offset, 0)


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_set_append_time_applies_since_magic_1(magic: int) -> None:
    source = [{"offset": number, "magic": magic, "timestamp": 5 + number, "value": b"v"} for number in range(2)]
    data = bytearray(lh.batch(source, "kip82-messages", codec="gzip"))
    assert [message.timestamp for message in lh.messages(bytes(data), "kip82-messages")] == [
        None if magic == 0 else 5 + number for number in range(2)
    ]
    # Attribute bit 3 is not defined in magic 0: it is an error there, and gives no message a time.
    data[17] |= 8
    data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    [*rows] = lha.messages(pa.array([bytes(data)]), "kip82-messages", errors="column").to_pylist()
    assert {row["timestamp"] for row in rows} == {None if magic == 0 else 6}
    assert [bool(row["error"]) for row in rows] == [magic == 0, False]


def test_column_may_have_bytes_up_to_exact_limit() -> None:
    def select(*lengths: int) -> Any:
        column = pa.array([lh.encode([("a", bytes(length))], "kafka") for length in lengths])
        return apply(
            "select", column, "kafka", columns=[("a", "a", "binary", "last", False, None, None)], max_offset=20
        )

    for lengths in ((10, 10), (20,), (20, 0)):
        assert len(pa.array(select(*lengths))) == len(lengths)
    for lengths, row in (((10, 11), 1), ((21,), 0), ((20, 1), 1)):
        with pytest.raises(lh.DecodeError) as caught:
            select(*lengths)
        assert (caught.value.code, caught.value.row) == ("too_large", row)


def test_condition_on_null_field_is_undecided() -> None:
    data = lh.batch([{"offset": 0, "key": None, "value": b"v"}, {"offset": 1, "key": b"k", "value": b"v"}])
    for where, offsets in (("key = 'k'", [1]), ("NOT key = 'k'", []), ("key IS NULL", [0]), ("NOT key IS NULL", [1])):
        rows = lha.messages(pa.array([data]), "record-batch", columns=["offset"], where=where).to_pylist()
        assert [row["offset"] for row in rows] == offsets


def test_condition_on_absent_header_is_undecided() -> None:
    messages = [[("r", b"a")], [("r", b"b")], [], [("other", b"a")], [("r", None)]]
    rows = pa.array([lh.encode(headers, "kafka") for headers in messages])
    batches = pa.array([lh.batch([{"offset": at, "headers": headers} for at, headers in enumerate(messages)])])
    header = lh.col("r")
    for condition, matching in (
        (header == "a", [0]),
        (~(header == "a"), [1]),
        (header.any() == "a", [0]),
        (~(header.any() == "a"), [1]),
        (header.all() == "a", [0]),
        (~(header.all() == "a"), [1]),
        (~(header.all() == "a") | (header.any() == "a"), [0, 1]),
    ):
        for column in (rows, lha.decode(rows, "kafka")):
            selected = lha.select(column, {"r": "string"}, where=condition).field("r").to_pylist()
            assert selected == [messages[at][0][1].decode() for at in matching]
        offsets = lha.messages(batches, "record-batch", columns=["offset"], where=condition).field("offset")
        assert offsets.to_pylist() == matching
