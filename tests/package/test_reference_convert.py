"""Keys, losses and conversions of the reference implementation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import CODES, ConversionError, DecodeError, EncodeError, ErrorDetail
from tests.helpers.reference_cases import WRITTEN, headers_for, kip82, places, raised
from tests.reference import keys, ops, types
from tests.reference.formats import FORMATS
from tests.reference.value_types import VALUE_TYPES

# --- keys ------------------------------------------------------------------------------------------------------------


NEEDS_A_TYPE = (
    'iggy values need a type: pass types={"retry": "int32"} (--types retry=int32) or types="binary" (--types binary)'
)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("tenant", "tenant"),
        (3, "3"),
        (keys.as_key(lh.Int32(3)), "int32:3"),
        (keys.as_key(lh.Bool(True)), "bool:true"),
        (keys.as_key(lh.Float64(1.5)), "float64:1.5"),
        (keys.as_key(lh.String("a")), "a"),
        (keys.as_key(b"\0\xff"), "binary:00ff"),
        (("type-200", b"\1"), "type-200:01"),
        (("bool", b"\2"), "bool:02"),
        (("string", b"\xff"), "string:ff"),
        (("int32", b"\1"), "int32:01"),
    ],
)
def test_key_as_text_shows_text_or_type_and_bytes(key: keys.Key, text: str) -> None:
    assert keys.spell(key) == text


IGGY_KEYS = ops.encode(
    [("a", "string", b"1"), (("int32", b"\0\0\0\3"), "int32", b"\0\0\0\5"), (("binary", b"x"), "bool", b"\1")], "iggy"
)


def test_select_finds_keys_of_every_form() -> None:
    assert IGGY_KEYS is not None
    columns = {
        "a": "string",
        "three": lh.field("int32:le", key=lh.Int32(3)),
        "x": lh.field("bool", key=b"x", repeat="all"),
        "none": lh.field("int32", key=lh.Int64(3)),
        "same": lh.field("string", key=lh.String("a")),
    }
    assert ops.select(IGGY_KEYS, "iggy", columns) == {"a": "1", "three": 5, "x": [True], "none": None, "same": "1"}
    ints = ops.encode([(7, b"\0\1"), (7, b"\0\2")], "kip82-int")
    assert ints is not None
    assert ops.select(ints, "kip82-int", {"n": lh.field("int16", key=7)}) == {"n": 2}
    out = ops.select_rows([ints], "kip82-int", {"n": lh.field("int16", key=7, repeat="error")}, errors="column")
    assert places(out["error"][0]) == [("repeated_key", 18, 1, "7")]
    missing = ops.select_rows([ints], "kip82-int", {"n": lh.field("int16", key=8, required=True)}, errors="column")
    assert places(missing["error"][0]) == [("missing_key", None, None, "8")]


@pytest.mark.parametrize(
    ("format", "key", "message"),
    [
        ("kafka", 3, "key 3: kafka has text keys"),
        ("kafka", lh.Int32(3), "key int32:3: kafka has text keys"),
        ("kip82-int", "tenant", "key tenant: kip82-int has integer keys"),
        ("iggy", 3, "key 3: iggy has typed keys: give lh.Int32(3)"),
        ("iggy-message", 3, "key 3: iggy-message has typed keys: give lh.Int32(3)"),
    ],
)
def test_key_impossible_in_format_is_rejected(format: str, key: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message.replace('(', '.').replace(')', '.')}$"):
        ops.select_rows([], format, {"out": lh.field("string", key=key)})


def test_wire_type_decides_how_value_is_read() -> None:
    assert IGGY_KEYS is not None
    out = ops.select_rows([IGGY_KEYS], "iggy", {"a": lh.field("int8")}, errors="column")
    assert places(out["error"][0]) == [("wrong_type", 11, 0, "a")]
    short = bytes.fromhex(
        "0100000061" + "06" + "03000000" + "010203"
    )  # an int32 of three bytes passes in the older one
    assert ops.decode(short, "iggy-2023") == [("a", "int32", b"\3\2\1")]
    assert ops.encode([("a", "int32", b"\3\2\1")], "iggy-2023") == short
    assert places(ops.select_rows([short], "iggy-2023", {"a": "int32"}, errors="column")["error"][0]) == [
        ("wrong_size", 10, 0, "a")
    ]


def test_text_keys_are_returned_or_rejected() -> None:
    assert IGGY_KEYS is not None
    error = raised(lambda: ops.decode(IGGY_KEYS, "iggy", text_keys=True), DecodeError, "wrong_type")
    assert str(error) == "iggy: the key is int32 and text keys were requested (header 1)"
    [row] = ops.decode_rows([IGGY_KEYS], "iggy", errors="column", text_keys=True)
    assert row["headers"] is None
    assert [(detail.code, detail.header) for detail in row["error"]] == [("wrong_type", 1), ("wrong_type", 2)]
    not_utf8 = ops.encode([(("string", b"\xff"), "bool", b"\1")], "iggy")
    assert not_utf8 is not None
    raised(lambda: ops.decode(not_utf8, "iggy", text_keys=True), DecodeError, "key_not_utf8")
    # Other formats have no other keys.
    assert ops.decode(b"\0\0\0\7\xff\xff\xff\xff", "kip82-int", text_keys=True) == [(7, None, None)]


def test_structs_of_headers_have_fields_of_their_format() -> None:
    struct_row = [
        {"key_type": "int32", "key": b"\0\0\0\3", "type": "bool", "value": b"\1"},
        {"key_type": "string", "key": b"a", "type": "string", "value": b"x"},
    ]
    plain = [(("int32", b"\0\0\0\3"), "bool", b"\1"), ("a", "string", b"x")]
    assert ops.encode(struct_row, "iggy") == ops.encode(plain, "iggy")
    assert ops.select_rows([struct_row], "iggy", {"n": lh.field("bool", key=lh.Int32(3))}) == {"n": [True]}
    for field, code in (("key", "null_key"), ("key_type", "null_key")):
        raised(lambda field=field: ops.encode([{**struct_row[0], field: None}], "iggy"), EncodeError, code)
    bad = {**struct_row[0], "key_type": "nonsense"}
    raised(lambda: ops.encode([bad], "iggy"), EncodeError, "unknown_type")
    assert ops.validate_rows([[bad]], "iggy") == [
        [ErrorDetail("unknown_type", "the name of the type is unknown", None, 0)]
    ]


# --- losses: the gate ------------------------------------------------------------------------------------------------


def report(headers: list[Any], format: str, types: Any = None) -> tuple[Any, list[tuple[Any, ...]]]:
    """Write headers, and give what is read back and the losses."""
    [row] = ops.encode_rows([headers], format, types=types, on_loss="report")
    return ops.decode(row["data"], format), [tuple(loss) for loss in row["losses"] or ()]


INT8_KEY, BINARY_KEY = ("int8", b"\5"), ("binary", b"\5")


@pytest.mark.parametrize(
    ("key", "format", "written", "message", "how"),
    [
        (7, "kafka", "7", "the key is int32", "text"),
        (INT8_KEY, "kafka", "5", "the key is int8", "text"),
        (("float64", b"\x3f\xf8" + bytes(6)), "kafka", "1.5", "the key is float64", "text"),
        (BINARY_KEY, "kafka", None, "the key is binary and has no text form", None),
        (("string", b"\xff"), "kafka", None, "the key is string and has no text form", None),
        ("7", "kip82-int", 7, None, None),
        ("-2147483648", "kip82-int", -(2**31), None, None),
        (("int32", b"\0\0\0\7"), "kip82-int", 7, None, None),
        (INT8_KEY, "kip82-int", 5, "the key is int8", "int32"),
        (("uint64", b"\xff" * 8), "kip82-int", None, "the key is no decimal int32", None),
        (BINARY_KEY, "kip82-int", None, "the key is no decimal int32", None),
        ("+7", "kip82-int", None, "the key is no decimal int32", None),
        ("007", "kip82-int", None, "the key is no decimal int32", None),
        ("-0", "kip82-int", None, "the key is no decimal int32", None),
        ("2147483648", "kip82-int", None, "the key is no decimal int32", None),
        ("\u0667", "kip82-int", None, "the key is no decimal int32", None),
    ],
)
def test_keys_take_form_of_target(
    key: keys.Key, format: str, written: Any, message: str | None, how: str | None
) -> None:
    read, losses = report([(key, b"x")], format)
    assert read == ([] if written is None else [(written, None, b"x")])
    lost = [] if message is None else [("key_not_carried", message, 0, keys.spell(key), None, how)]
    assert losses == lost


def test_keys_of_every_form_become_typed_without_loss() -> None:
    read, losses = report([("a", "bool", b"\1"), (7, "bool", b"\1"), (BINARY_KEY, "bool", b"\1")], "iggy")
    assert [key for key, _, _ in read] == ["a", ("int32", b"\0\0\0\7"), BINARY_KEY]
    assert losses == []
    # Iggy has no char, for a key as for a value.
    read, losses = report([(("char", b"\0a"), "bool", b"\1"), (("char", b"\xd8\0"), "bool", b"\1")], "iggy")
    assert [key for key, _, _ in read] == ["a"]
    assert [(loss[1], loss[5]) for loss in losses] == [
        ("the key is char", "string"), ("the key is char and has no text form", None)
    ]  # fmt: skip
    raised(lambda: ops.encode([(("int32", b"\1"), "bool", b"\1")], "iggy"), EncodeError, "wrong_size")


@pytest.mark.parametrize(
    ("header", "format", "types", "value", "loss"),
    [
        (("a", None, b""), "iggy", "binary", None, ("empty_value", "the value has no bytes", None, None)),
        (("a", None, bytes(256)), "iggy", "binary", None,
         ("too_long", "value of 256 bytes is longer than 255", None, None)),
        (("a", None, None), "iggy", None, None, ("null_not_carried", "the value is null", None, None)),
        (("", "bool", b"\1"), "iggy-2023", None, None, ("empty_key", "the key has no bytes", None, None)),
        (("a" * 256, "bool", b"\1"), "iggy-2023", None, None,
         ("too_long", "key of 256 bytes is longer than 255", None, None)),
        (("a", "int32", None), "kip82-typed", None, (None, None), None),
        (("a", "int16", b"\1\2"), "kafka", "be", (None, b"\1\2"),
         ("type_not_carried", "the type int16 is not carried", "int16", "big-endian")),
        (("a", "int16", b"\1\2"), "kafka", "le", (None, b"\2\1"),
         ("type_not_carried", "the type int16 is not carried", "int16:le", "little-endian")),
        (("a", "int16", b"\1\2"), "kafka", "text", (None, b"258"),
         ("type_not_carried", "the type int16 is not carried", "int16:text", "text")),
        (("a", "string", b"x"), "kafka", "le", (None, b"x"),
         ("type_not_carried", "the type string is not carried", "string", "as it is")),
        (("a", "type-200", b"x"), "kafka", "text", (None, b"x"),
         ("type_not_carried", "the type type-200 is not carried", "type-200", "as it is")),
        (("a", "char", b"\0\xe9"), "iggy", None, ("string", b"\xc3\xa9"),
         ("type_not_carried", "the type char is not carried", "char:text", "string")),
        (("a", "char", b"\xd8\0"), "iggy", None, None,
         ("out_of_range", "half of a surrogate pair is no character", None, None)),
        (("a", "uint16", b"\1\2"), "kip82-typed", None, ("binary", b"\1\2"),
         ("type_not_carried", "the type uint16 is not carried", "uint16", "binary")),
        (("a", "type-200", b"x"), "iggy-2023", None, ("binary", b"x"),
         ("type_not_carried", "the type type-200 is not carried", "type-200", "binary")),
        (("a", "type-200", b"x"), "iggy", None, ("type-200", b"x"), None),
        (("a", None, b"x"), "iggy", None, None, ("unknown_type", NEEDS_A_TYPE, None, None)),
        (("a", None, b"x"), "kip82-typed", "binary", ("binary", b"x"), None),
        (("a", None, b"\2\1"), "kip82-typed", {"a": "int16:le"}, ("int16", b"\1\2"), None),
        (("a", None, b"258"), "iggy", {"a": "int16:text"}, ("int16", b"\1\2"), None),
        (("a", "string", b"258"), "iggy", {"a": "int16:text"}, ("int16", b"\1\2"), None),
        (("a", "binary", b"\1\2"), "iggy", {"a": "int16"}, ("int16", b"\1\2"), None),
        (("a", "int16", b"\1\2"), "iggy", {"a": "int16:text"}, ("int16", b"\1\2"), None),
        (("a", "int16", b"\1\2"), "iggy", {"a": "int32"}, None,
         ("wrong_type", "the value is int16 and int32 was requested", None, None)),
        (("a", None, b"x"), "iggy", {"a": "int16"}, None, ("wrong_size", "1 byte where int16 takes 2", None, None)),
        (("a", None, b"x"), "iggy", {"a": "int16:text"}, None,
         ("bad_text", "the text does not spell int16", None, None)),
        (("a", None, b"\xff"), "iggy", {"a": "string"}, None, ("value_not_utf8", "the value is not UTF-8", None, None)),
        (("a", None, b"\1"), "iggy", {"a": "type-200"}, ("type-200", b"\1"), None),
        (("a", None, b"1" + b"0" * 38), "iggy", {"a": "uint128:text"}, ("uint128", (10**38).to_bytes(16, "big")), None),
        (("a", None, b"1.5"), "iggy", {"a": "float32:text"}, ("float32", b"\x3f\xc0\0\0"), None),
        (("a", None, "é".encode()), "kip82-typed", {"a": "char:text"}, ("char", b"\0\xe9"), None),
        (("a", None, b"\xd8\0"), "kip82-typed", {"a": "char"}, ("char", b"\xd8\0"), None),
        (("a", None, b"true"), "kip82-typed", {"a": "bool:text"}, ("bool", b"\1"), None),
    ],
)  # fmt: skip
def test_value_takes_type_of_target(
    header: Any, format: str, types: Any, value: Any, loss: tuple[Any, ...] | None
) -> None:
    read, losses = report([header], format, types)
    assert read == ([] if value is None else [("a", *value)])
    assert losses == ([] if loss is None else [(*loss[:2], 0, header[0], *loss[2:])])


@pytest.mark.parametrize(
    ("format", "header", "code"),
    [
        ("kip82-typed", ("a", "int32", b"\1"), "wrong_size"),
        ("kip82-typed", ("a", "bool", b"\2"), "bad_bool"),
        ("kip82-typed", ("a", "string", b"\xff"), "value_not_utf8"),
        ("iggy", ("a", "int32", b"\1"), "wrong_size"),
    ],
)
def test_bits_invalid_for_reader_are_rejected_by_writer(format: str, header: Any, code: str) -> None:
    raised(lambda: ops.encode([header], format, on_loss="drop"), EncodeError, code)


def test_types_of_key_match_its_values_in_order() -> None:
    headers = [("a", b"\1"), ("a", None), ("a", b"\0\2"), ("a", b"x")]
    read, losses = report(headers, "kip82-typed", {"a": ["int8", "int16"]})
    assert read == [("a", "int8", b"\1"), ("a", None, None), ("a", "int16", b"\0\2")]
    assert [loss[0] for loss in losses] == ["unknown_type"]


@pytest.mark.parametrize(
    ("format", "types", "message"),
    [
        ("iggy", "be", 'types="be", "le" and "text" write values without their types, and iggy has types'),
        ("kafka", "binary", "and kafka carries none"),
        ("kafka", {"a": "int32"}, "and kafka carries none"),
        ("iggy", "nonsense", "unknown types 'nonsense'"),
        ("iggy", {"a": "uuid"}, "unknown type 'uuid'"),
        ("iggy", {"a": "int33"}, "unknown type 'int33'"),
    ],
)
def test_options_unsuitable_for_target_are_rejected(format: str, types: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ops.encode([], format, types=types)


def test_accepted_losses_are_reported_and_not_raised() -> None:
    headers = [("a", "int16", b"\1\2")]
    assert ops.encode(headers, "kafka", types="be") == ops.encode([("a", b"\1\2")], "kafka")
    raised(lambda: ops.encode(headers, "kafka"), ConversionError, "type_not_carried")
    raised(lambda: ops.encode([(7, "int16", b"\1\2")], "kafka", types="be"), ConversionError, "key_not_carried")


# --- convert ---------------------------------------------------------------------------------------------------------


def into(target: str, message: Any, format: str, **options: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Convert a message, and give what the target reads and what was lost."""
    data = ops.encode(message, format)
    assert data is not None
    result = ops.convert(data, format, target=target, on_loss="report", **options)
    assert isinstance(result, ops.Converted)
    losses = [(loss.code, loss.message) for loss in result.losses]
    return None if result.data is None else ops.decode(result.data, target), losses


STREAMS = {"headers": [("a", b"1")], "timestamp": 1500, "payload": b"p"}
IGGY = {
    "checksum": 9, "id": bytes(15) + b"\7", "offset": 3, "timestamp": 1_500_001, "origin_timestamp": 1_000_000,
    "headers": [("a", "string", b"1")], "payload": b"p",
}  # fmt: skip
DRAFT = {
    "offset": 3, "magic": 2, "attributes": 8, "timestamp": 1500, "key": b"k", "headers": [("a", "string", b"1")],
    "value": b"p",
}  # fmt: skip
AGREED = ("type_not_carried", "the type string is not carried")


def lost(*names: str) -> list[tuple[str, str]]:
    return [("field_not_carried", f"{name} is not carried") for name in names]


def test_fields_are_matched_by_meaning() -> None:
    read, losses = into("streams-timestamped", IGGY, "iggy-message", types="be")
    assert read == STREAMS | {"headers": [("a", None, b"1")]}
    assert losses == [AGREED, *lost("id", "offset"), ("field_not_carried", "timestamp has parts of a millisecond"),
                      *lost("origin_timestamp")]  # fmt: skip
    read, losses = into("iggy-message", STREAMS, "streams-timestamped", types={"a": "string"})
    nothing = {"checksum": 0, "id": bytes(16), "offset": 0, "timestamp": 1_500_000, "origin_timestamp": 0}
    assert (read, losses) == ({**IGGY, **nothing}, [])
    read, losses = into("iggy-message", DRAFT, "kip82-message")
    assert (read["offset"], read["timestamp"], read["payload"]) == (3, 1_500_000, b"p")
    assert losses == lost("key")
    read, losses = into("kip82-message", IGGY, "iggy-message")
    assert {name: read[name] for name in DRAFT} == DRAFT | {"key": None, "attributes": 0x10}
    assert losses == [*lost("id"), ("field_not_carried", "timestamp has parts of a millisecond"),
                      *lost("origin_timestamp")]  # fmt: skip


def test_field_missing_in_source_gets_default_of_target() -> None:
    for target, none in (
        ("streams", {"payload": b""}),
        ("streams-timestamped", {"timestamp": -1, "payload": b""}),
        ("kip82-wrapper", {"value": b""}),
        (
            "kip82-message-int",
            {"offset": 0, "timestamp": -1, "key": None, "magic": 2, "value": b"", "tombstone": False},
        ),
        ("iggy-message-2023", {"id": bytes(16), "payload": b""}),
        ("iggy-message", {"id": bytes(16), "offset": 0, "timestamp": 0, "origin_timestamp": 0, "payload": b""}),
    ):
        read, losses = into(target, [], "kafka")
        assert {name: read[name] for name in none} == none
        assert losses == []


def test_headers_format_loses_fields() -> None:
    assert into("kafka", STREAMS, "streams-timestamped") == ([("a", None, b"1")], lost("timestamp", "payload"))
    # What says how a message lies in its format says nothing of the message.
    _, losses = into("kip82-typed", DRAFT, "kip82-message")
    assert losses == lost("offset", "timestamp", "key", "value")
    empty = {**DRAFT, "timestamp": None, "key": None, "value": None, "magic": 0, "attributes": 0, "headers": []}
    assert into("kip82-typed", empty, "kip82-message") == ([], lost("offset"))


@pytest.mark.parametrize(
    ("timestamp", "written", "code"),
    [(-1, 0, None), (-2, 0, "out_of_range"), (2**63 - 1, 0, "out_of_range"), (0, 0, None), (5, 5000, None)],
)
def test_times_are_carried_by_value(timestamp: int, written: int, code: str | None) -> None:
    read, losses = into("iggy-message", {**STREAMS, "headers": [], "timestamp": timestamp}, "streams-timestamped")
    assert read["timestamp"] == written
    assert [loss[0] for loss in losses] == ([] if code is None else [code])


@pytest.mark.parametrize("value", [b"v", None])
def test_tombstone_is_copied_lost_or_redundant(value: bytes | None) -> None:
    marked = {"offset": 0, "headers": [(7, b"x")], "value": value, "tombstone": True}
    reported = [] if value is None else lost("tombstone")
    for target in ("streams", "kip82-message-int", "kip82-wrapper"):
        _, losses = into(target, marked, "kip82-message-wrapper")
        assert [loss for loss in losses if "tombstone" in loss[1]] == reported
    read, losses = into("kip82-message-wrapper", marked, "kip82-message-wrapper")
    assert (read["tombstone"], read["value"], losses) == (True, value, [])
    # Without the mark headers would keep the value of a deleted key alive.
    plain = {**marked, "value": None, "tombstone": None}
    read, losses = into("kip82-message-wrapper", plain, "kip82-message-int")
    assert (read["tombstone"], read["value"], losses) == (True, None, [])


def test_null_payload_becomes_null_message_or_empty() -> None:
    deleted = {"offset": 0, "headers": [("a", "string", b"1")], "value": None, "timestamp": 0}
    read, losses = into("streams-timestamped", deleted, "kip82-message", types="be")
    assert read is None
    assert losses[-1] == ("null_not_carried", "the payload is null, so its headers cannot be written (1)")
    read, losses = into("iggy-message-2023", deleted, "kip82-message")
    assert read["payload"] == b""
    assert losses == [*lost("offset", "timestamp"), ("null_not_carried", "the payload is null")]


def test_null_headers_become_none_or_are_rejected() -> None:
    older = kip82(0, magic=1, timestamp=5)
    assert ops.convert(older, "kip82-message", target="kip82-message-int") == older
    raised(
        lambda: ops.convert(older, "kip82-message", target="kip82-message-int", nulls="raise"),
        EncodeError,
        "null_not_carried",
    )


def test_invalid_bits_are_loss_when_read() -> None:
    data = bytes.fromhex("0100000061" + "06" + "03000000" + "010203" + "0100000062" + "03" + "01000000" + "02")
    for target, requested, expected in (
        ("iggy", None, ["wrong_size"]),
        ("kip82-typed", None, ["wrong_size", "bad_bool"]),
        ("kafka", "text", ["wrong_size", "bad_bool"]),
        ("kafka", "be", ["wrong_size", "bad_bool"]),
        ("iggy-2023", None, []),
    ):
        result = ops.convert(data, "iggy-2023", target=target, types=requested, on_loss="report")
        assert isinstance(result, ops.Converted)
        assert [loss.code for loss in result.losses] == expected


def test_bad_message_follows_error_policy_and_loss_is_raised() -> None:
    good = ops.encode([("a", "int16", b"\1\2")], "iggy")
    rows = [good, None, b"\0"]
    error = raised(lambda: ops.convert_rows(rows, "iggy", target="kafka", types="be"), DecodeError, "unknown_type")
    assert (error.format, error.row) == ("iggy", 2)
    messages = ops.convert_rows(rows, "iggy", target="kafka", types="be", errors="null")
    assert messages == [ops.encode([("a", b"\1\2")], "kafka"), None, None]
    result = ops.convert_rows(rows, "iggy", target="kafka", types="be", errors="column", on_loss="report")
    assert [list(row) for row in result] == [["data", "losses", "error"]] * 3
    assert [(row["losses"] is None, row["error"] is None) for row in result] == [
        (False, True),
        (True, True),
        (True, False),
    ]
    error = raised(lambda: ops.convert_rows(rows, "iggy", target="kafka", errors="null"), ConversionError,
                   "type_not_carried")  # fmt: skip
    assert (error.format, error.row, error.header, error.key) == ("kafka", 0, 0, "a")


BETWEEN = [name for name in WRITTEN if FORMATS[name].message is None]


@given(st.data(), st.sampled_from(BETWEEN), st.sampled_from(BETWEEN), st.sampled_from(["be", "le", "text"]))
def test_converted_messages_are_read_and_types_restored(
    data: st.DataObject, format: str, target: str, spelling: str
) -> None:
    headers = data.draw(headers_for(format))
    source = ops.encode(headers, format)
    assert source is not None
    untyped = FORMATS[target].traits.types is None
    result = ops.convert(source, format, target=target, types=spelling if untyped else "binary", on_loss="report")
    assert isinstance(result, ops.Converted)
    assert result.data is not None
    assert ops.validate(result.data, target) == []
    assert all(loss.code in CODES for loss in result.losses)
    only_types = all(loss.code == "type_not_carried" for loss in result.losses)
    if not only_types or FORMATS[format].traits.types is None or FORMATS[format].traits.keys != "text":
        return
    if untyped:
        types: Any = result.losses.types
    else:
        types = result.losses.types or None
    restored = ops.convert(result.data, target, target=format, types=types, on_loss="drop")
    assert restored is not None
    assert not isinstance(restored, ops.Converted)
    # A NaN is spelled as one word, whatever its payload.
    if spelling != "text" or not untyped:
        assert ops.decode(restored, format) == headers


def test_reported_types_restore_key_with_several_types() -> None:
    headers = [("a", "int32", b"\0\0\0\5"), ("a", None, None), ("a", "char", b"\0x"), ("b", "char", b"\0y")]
    source = ops.encode(headers, "kip82-typed")
    assert source is not None
    for target, requested, expected in (
        ("kafka", "le", {"a": ["int32:le", "char:le"], "b": "char:le"}),
        ("kafka", "text", {"a": ["int32:text", "char:text"], "b": "char:text"}),
    ):
        result = ops.convert(source, "kip82-typed", target=target, types=requested, on_loss="report")
        assert isinstance(result, ops.Converted)
        assert result.losses.types == expected
        assert result.data is not None
        assert ops.convert(result.data, target, target="kip82-typed", types=result.losses.types) == source
    # Where only some of them lost it, the others are named as well, or the way back would ask them for it.
    without_null = ops.encode([headers[0], *headers[2:]], "kip82-typed")
    assert without_null is not None
    result = ops.convert(without_null, "kip82-typed", target="iggy", on_loss="report")
    assert isinstance(result, ops.Converted)
    assert result.losses.types == {"a": ["int32", "char:text"], "b": "char:text"}
    assert result.data is not None
    assert ops.convert(result.data, "iggy", target="kip82-typed", types=result.losses.types) == without_null


@pytest.mark.parametrize("type", [row.name for row in VALUE_TYPES])
def test_value_written_without_type_is_read_back(type: str) -> None:
    width = next(row.width for row in VALUE_TYPES if row.name == type)
    bits = b"\0" * (width - 1) + b"\1" if width else b"a"
    for spelling in types.SUFFIXES if width else ("be",):
        assert types.typed(type, types.untyped(type, bits, spelling), spelling) == bits
    headers = [("a", type, bits)]
    assert ops.encode(headers, "kafka", types="be") is not None
