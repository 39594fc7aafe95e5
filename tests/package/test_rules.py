"""The rules of reading, writing and selecting headers, one test for each rule."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import ConversionError, DecodeError, EncodeError, ErrorDetail
from tests.helpers import core_ops as ops


def block(*headers: str, count: int | None = None) -> bytes:
    return bytes([2 * (len(headers) if count is None else count)]) + bytes.fromhex("".join(headers))


def places(details: list[ErrorDetail]) -> list[tuple[str, int | None, int | None, str | None]]:
    return [(detail.code, detail.byte_offset, detail.header, detail.key) for detail in details]


# --- headers of a block ------------------------------------------------------------------------------------------


def test_no_bytes_and_zero_count_mean_no_headers() -> None:
    assert ops.decode(b"", "kafka") == ops.decode(b"\0", "kafka") == []


def test_null_differs_from_empty() -> None:
    assert ops.decode(block("026101", "026100"), "kafka") == [("a", None, None), ("a", None, b"")]


def test_empty_key_is_valid() -> None:
    assert ops.decode(block("0000"), "kafka") == [("", None, b"")]


def test_overlong_varint_is_read() -> None:
    assert ops.decode(bytes.fromhex("82808000" + "8200" + "61" + "8100"), "kafka") == [("a", None, None)]


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        ("80", ("truncated", 0, None, None)),
        ("8080808080", ("varint_too_long", 0, None, None)),
        ("80808080f0", ("varint_too_long", 0, None, None)),
        ("8080808070", ("varint_lost_bits", 0, None, None)),
        ("01", ("negative_count", 0, None, None)),
        ("0102", ("negative_count", 0, None, None)),
        ("0000", ("trailing_bytes", 1, None, None)),
        ("02", ("count_too_large", 0, None, None)),
        ("0200", ("count_too_large", 0, None, None)),
        ("04000001", ("count_too_large", 0, None, None)),
        ("020180", ("negative_length", 1, 0, None)),
        ("028080", ("truncated", 1, 0, None)),
        ("020461", ("truncated", 2, 0, None)),
        ("02026180", ("truncated", 3, 0, "a")),
        ("02026103", ("negative_length", 3, 0, "a")),
        ("0202610461", ("truncated", 4, 0, "a")),
        ("02026100ff", ("trailing_bytes", 4, None, None)),
        ("040000026104", ("truncated", 6, 1, "a")),
    ],
)
def test_byte_of_hard_error_is_start_of_its_field(data: str, detail: tuple[Any, ...]) -> None:
    assert places(ops.validate(bytes.fromhex(data), "kafka")) == [detail]


def test_non_utf8_key_is_skipped_and_reading_continues() -> None:
    data = block("0661ff62" + "0278", "026100", "02fe01")
    assert places(ops.validate(data, "kafka")) == [("key_not_utf8", 3, 0, None), ("key_not_utf8", 11, 2, None)]
    assert ops.select_rows([data], "kafka", {"a": "string"}, errors="null") == {"a": [""]}


def test_soft_error_precedes_following_hard_error() -> None:
    data = block("02ff01", "03")
    assert places(ops.validate(data, "kafka")) == [("key_not_utf8", 2, 0, None), ("negative_length", 4, 1, None)]


@pytest.mark.parametrize(
    ("data", "read"),
    [
        ("01ff", []),
        ("00ff", []),
        ("8080808070", []),
        ("02026101ff", [("a", None, None)]),
        ("0202ff01", [("\ufffd", None, None)]),
        ("0206eda08001", [("\ufffd", None, None)]),
        ("0204eda001", [("\ufffd", None, None)]),
        ("0206e2824101", [("\ufffdA", None, None)]),
        ("0206f09f9201", [("\ufffd", None, None)]),
        ("0206e080af01", [("\ufffd" * 3, None, None)]),
    ],
)
def test_lenient_reads_what_java_reads(data: str, read: list[Any]) -> None:
    assert ops.decode(bytes.fromhex(data), "kafka", lenient=True) == read


@pytest.mark.parametrize("data", ["80", "8080808080", "0200", "0201", "02026103", "020461"])
def test_lenient_rejects_what_java_cannot_read(data: str) -> None:
    with pytest.raises(DecodeError):
        ops.decode(bytes.fromhex(data), "kafka", lenient=True)


# --- message formats -------------------------------------------------------------------------------------------------


def test_empty_message_is_valid_only_in_headers_format() -> None:
    assert ops.decode(b"", "kafka") == []
    for format in ("streams", "streams-timestamped"):
        assert places(ops.validate(b"", format)) == [("truncated", 0, None, None)]


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        ("80", ("truncated", 0, None, None)),
        ("01", ("negative_length", 0, None, None)),
        ("04ff", ("truncated", 1, None, None)),
        ("8080808070", ("varint_lost_bits", 0, None, None)),
        ("ffffffffff", ("varint_too_long", 0, None, None)),
    ],
)
def test_bad_size_ends_message_format(data: str, detail: tuple[Any, ...]) -> None:
    message = bytes.fromhex(data)
    for format in ("streams", "streams-timestamped"):
        assert places(ops.validate(message, format)) == [detail]
        [row] = ops.decode_rows([message], format, errors="column")
        assert row["headers"] is row["payload"] is None


def test_short_timestamp_leaves_headers_readable() -> None:
    [row] = ops.decode_rows([bytes.fromhex("08" + "02026101" + "0000")], "streams-timestamped", errors="column")
    assert row["headers"] == [("a", None, None)]
    assert row["timestamp"] is row["payload"] is None
    assert places(row["error"]) == [("truncated", 5, None, None)]


def test_bad_headers_leave_other_fields_readable() -> None:
    [row] = ops.decode_rows(
        [bytes.fromhex("04" + "02ff" + "0000000000000005" + "78")], "streams-timestamped", errors="column"
    )
    assert (row["headers"], row["timestamp"], row["payload"]) == (None, 5, b"x")
    assert places(row["error"]) == [("count_too_large", 1, None, None)]


def test_frame_errors_precede_header_errors() -> None:
    errors = ops.validate(bytes.fromhex("02" + "01" + "00"), "streams-timestamped")
    assert places(errors) == [("truncated", 2, None, None), ("negative_count", 1, None, None)]


def test_bytes_between_headers_and_their_size_are_trailing() -> None:
    assert places(ops.validate(bytes.fromhex("04" + "0000" + "ff"), "streams")) == [("trailing_bytes", 2, None, None)]


# --- writing ---------------------------------------------------------------------------------------------------------


def test_empty_headers_are_no_bytes_or_size_zero_in_message() -> None:
    assert ops.encode([], "kafka") == b""
    assert ops.encode({"headers": [], "payload": b"x"}, "streams") == b"\0x"
    assert ops.encode({"headers": None, "timestamp": 1, "payload": b""}, "streams-timestamped") == bytes(8) + b"\1"


def test_null_headers_become_none_or_are_rejected() -> None:
    assert ops.encode(None, "kafka") == b""
    with pytest.raises(EncodeError, match="list of headers is null"):
        ops.encode(None, "kafka", nulls="raise")


def test_null_payload_is_tombstone_and_its_headers_are_loss() -> None:
    headers = [("a", b"1")]
    assert ops.encode({"headers": [], "payload": None}, "streams") is None
    assert ops.encode({"headers": headers, "payload": None}, "streams", on_loss="drop") is None
    with pytest.raises(ConversionError) as caught:
        ops.encode({"headers": headers, "timestamp": None, "payload": None}, "streams-timestamped")
    assert caught.value.code == "null_not_carried"
    [row] = ops.encode_rows([{"headers": headers, "payload": None}], "streams", on_loss="report")
    assert row["data"] is None
    assert [loss.code for loss in row["losses"]] == ["null_not_carried"]


def test_null_message_encodes_to_null() -> None:
    assert ops.encode_rows([None], "streams") == [None]
    assert ops.encode_rows([None], "kafka") == [b""]


def test_payload_without_timestamp_is_rejected() -> None:
    with pytest.raises(EncodeError) as caught:
        ops.encode({"headers": [], "timestamp": None, "payload": b""}, "streams-timestamped")
    assert caught.value.code == "null_field"


def test_null_key_is_rejected_and_named() -> None:
    with pytest.raises(EncodeError) as caught:
        ops.encode_rows([[("a", b"")], [("a", b""), (None, b"")]], "kafka")
    assert (caught.value.code, caught.value.row, caught.value.header) == ("null_key", 1, 1)


@pytest.mark.parametrize(
    ("value", "be", "le", "text"),
    [
        (lh.Int32(-2), "fffffffe", "feffffff", "-2"),
        (lh.UInt128(2**128 - 1), "ff" * 16, "ff" * 16, str(2**128 - 1)),
        (lh.Bool(True), "01", "01", "true"),
        (lh.Char("é"), "00e9", "e900", "é"),
        (lh.Float64(0.1), "3fb999999999999a", "9a9999999999b93f", "0.1"),
        (lh.Float32(0.1), "3dcccccd", "cdcccc3d", "0.1"),
        (lh.Float64(1e300), None, None, "1" + "0" * 300),
        (lh.Float64(-0.0), None, None, "-0"),
        (lh.Float64(-math.inf), None, None, "-Infinity"),
        (lh.Float32(math.nan), None, None, "NaN"),
        (lh.String("é"), "c3a9", "c3a9", "é"),
        (lh.Binary(b"\1\2"), "0102", "0102", "\1\2"),
        (lh.Value("type-200", b"\1\2"), "0102", "0102", "\1\2"),
    ],
)
def test_typed_value_is_written_as_types_option_selects(
    value: lh.Value, be: str | None, le: str | None, text: str
) -> None:
    for types, digits in (("be", be), ("le", le), ("text", text.encode().hex())):
        if digits is not None:
            assert ops.spelled(value.type, value.bits, types) == bytes.fromhex(digits)


def test_typed_value_without_types_option_is_loss() -> None:
    headers = [("a", "int32", lh.Int32(3).bits), ("b", None, b"x"), ("c", "int32", None)]
    with pytest.raises(ConversionError) as caught:
        ops.encode(headers, "kafka")
    assert (caught.value.code, caught.value.header, caught.value.key) == ("type_not_carried", 0, "a")
    dropped = ops.encode(headers, "kafka", on_loss="drop")
    assert dropped is not None
    assert ops.decode(dropped, "kafka") == [("b", None, b"x"), ("c", None, None)]


def test_lone_surrogate_char_is_not_written_as_text() -> None:
    with pytest.raises(EncodeError) as caught:
        ops.encode([("a", "char", b"\xd8\0")], "kafka", types="text")
    assert (caught.value.code, caught.value.header) == ("out_of_range", 0)


# --- reading values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "data", "value"),
    [
        ("string", b"\xc3\xa9", "é"),
        ("binary", b"\xff", b"\xff"),
        ("bool", b"\1", True),
        ("bool:text", b"false", False),
        ("char", b"\0\xe9", "é"),
        ("char:le", b"\xe9\0", "é"),
        ("char:text", b"\xc3\xa9", "é"),
        ("int8", b"\xff", -1),
        ("uint8", b"\xff", 255),
        ("int32:le", b"\3\0\0\0", 3),
        ("int64:text", b"-0007", -7),
        ("uint8:text", b"-0", 0),
        ("int64:text", b"0" * 99 + b"5", 5),
        ("int128", b"\xff" * 16, -1),
        ("int128:text", b"-" + b"9" * 38, -(10**38) + 1),
        ("float32", b"\x3f\xc0\0\0", 1.5),
        ("float64:text", b"1e5", 1e5),
        ("float64:text", b".5", 0.5),
        ("float64:text", b"-1.", -1.0),
        ("float64:text", b"+1E-2", 0.01),
        ("float64:text", b"-Infinity", -math.inf),
        ("float64:text", b"1.7976931348623158e308", 1.7976931348623157e308),
        ("float32:text", b"340282356779733661637539395458142568447", 3.4028234663852886e38),
        ("float32:text", b"Infinity", math.inf),
        ("float32:text", b"-1e-99", -0.0),
        ("float32:text", b"0.1", struct.unpack(">f", struct.pack(">f", 0.1))[0]),
        ("uuid", bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ("uuid:guid", bytes(range(16)), "03020100-0504-0706-0809-0a0b0c0d0e0f"),
        ("uuid:reversed", bytes(range(16)), "0f0e0d0c-0b0a-0908-0706-050403020100"),
        ("uuid:text", b"00010203-0405-0607-0809-0A0B0C0D0E0F", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        ("timestamp_ms", b"\0" * 7 + b"\5", 5),
        ("timestamp_ms:text", b"-5", -5),
    ],
)
def test_bytes_are_read_by_type(type: str, data: bytes, value: Any) -> None:
    assert ops.read_value(type, data) == value


@pytest.mark.parametrize(
    ("type", "data", "code", "within"),
    [
        ("string", b"ab\xff", "value_not_utf8", 2),
        ("string", b"\xed\xa0\x80", "value_not_utf8", 0),
        ("bool", b"", "wrong_size", 0),
        ("bool", b"\2", "bad_bool", 0),
        ("bool:text", b"tRUE", "bad_text", 0),
        ("char", b"a", "wrong_size", 0),
        ("char", b"\xd8\0", "out_of_range", 0),
        ("char:le", b"\0\xdc", "out_of_range", 0),
        ("char:text", b"ab", "bad_text", 0),
        ("char:text", b"", "bad_text", 0),
        ("char:text", b"\xff", "bad_text", 0),
        ("char:text", b"a\xff", "bad_text", 0),
        ("char:text", "📦".encode(), "bad_text", 0),
        ("int64", b"\0" * 4, "wrong_size", 0),
        ("int64", b"\0" * 9, "wrong_size", 0),
        ("int8:text", b"128", "out_of_range", 0),
        ("int8:text", b"-129", "out_of_range", 0),
        ("uint8:text", b"-1", "out_of_range", 0),
        ("int64:text", b"9" * 9999, "out_of_range", 0),
        ("float64:text", b"1e400", "out_of_range", 0),
        ("float64:text", b"-69203120e780", "out_of_range", 0),
        ("float64:text", b"1e999999999", "out_of_range", 0),
        ("float64:text", b"9" * 400, "out_of_range", 0),
        ("float64:text", b"1.7976931348623159e308", "out_of_range", 0),
        ("float32:text", b"3.5e38", "out_of_range", 0),
        ("float32:text", b"-1e99", "out_of_range", 0),
        ("float32:text", b"340282356779733661637539395458142568448", "out_of_range", 0),
        ("int64:text", b"", "bad_text", 0),
        ("int64:text", b"-", "bad_text", 0),
        ("int64:text", b"+1", "bad_text", 0),
        ("int64:text", b" 1", "bad_text", 0),
        ("int64:text", b"1\n", "bad_text", 0),
        ("int64:text", b"1_0", "bad_text", 0),
        ("int64:text", "\u0661".encode(), "bad_text", 0),
        ("int64:text", b"\xff", "bad_text", 0),
        ("int128", b"\x7f" + b"\xff" * 15, "out_of_range", 0),
        ("uint128:text", b"1" + b"0" * 38, "out_of_range", 0),
        ("float32", b"\0" * 8, "wrong_size", 0),
        ("float64:text", b".", "bad_text", 0),
        ("float64:text", b"1e", "bad_text", 0),
        ("float64:text", b"nan", "bad_text", 0),
        ("float64:text", b"+Infinity", "bad_text", 0),
        ("float64:text", b"1_0.5", "bad_text", 0),
        ("uuid", b"\0" * 15, "wrong_size", 0),
        ("uuid:text", b"0001020304050607-0809-0a0b0c0d0e0f", "bad_text", 0),
        ("uuid:text", b"{0010203-0405-0607-0809-0a0b0c0d0e0f", "bad_text", 0),
        ("timestamp_ms", b"\0", "wrong_size", 0),
    ],
)
def test_bytes_of_wrong_size_for_type_raise(type: str, data: bytes, code: str, within: int) -> None:
    with pytest.raises(DecodeError) as caught:
        ops.read_value(type, data)
    assert (caught.value.code, caught.value.byte_offset) == (code, ops.value_at(data) + within)


def _float32(text: str) -> float:
    number: float = ops.read_value("float32:text", text.encode())
    return number


def test_decimal_is_rounded_to_float32_once() -> None:
    # Just above halfway between 1 and the next number: by way of 64 bits it would be halfway, and become 1.
    above = "1.00000005960464477539062500000000000000000001"
    assert _float32(above) == 1 + 2**-23
    assert _float32(above[:-1] + "0") == 1.0
    below_infinity = str(2**128 - 2**103 - 1)
    assert _float32(below_infinity) == 2.0**128 - 2.0**104
    with pytest.raises(DecodeError, match="does not fit float32"):
        _float32(str(2**128 - 2**103))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_written_as_text_is_read_back(number: float) -> None:
    for type in ("float32", "float64"):
        bits = struct.pack(">f" if type == "float32" else ">d", number)
        text = ops.spelled(type, bits, "text")
        assert text is not None
        assert struct.pack(">d", ops.read_value(f"{type}:text", text)) == struct.pack(">d", number)


# --- select ----------------------------------------------------------------------------------------------------------

ROUTES = block("02610231", "02620232", "02610233", "026101")  # a=1 b=2 a=3 a=null


@pytest.mark.parametrize(
    ("requested", "value"),
    [
        (lh.field("string", key="a", repeat="first"), "1"),
        (lh.field("string", key="a", repeat="last"), None),
        (lh.field("string", key="a", repeat="all"), ["1", "3", None]),
        (lh.field("string", key="b", repeat="error"), "2"),
        (lh.field("string", key="c"), None),
        (lh.field("array<string>", key="c"), []),
    ],
)
def test_repeated_key_follows_repeat_option(requested: lh.Field, value: Any) -> None:
    assert ops.select(ROUTES, "kafka", {"out": requested}) == {"out": value}


def test_forbidden_repeat_is_reported_at_second_occurrence() -> None:
    columns = {"a": lh.field("string", repeat="error")}
    out = ops.select_rows([ROUTES], "kafka", columns, errors="column")
    assert out["a"] == [None]
    [[detail]] = out["error"]
    assert detail[2:] == (12, 2, "a", "a")


def test_unselected_values_are_not_read() -> None:
    data = block("026102ff", "02610231")
    assert ops.select(data, "kafka", {"a": "string"}) == {"a": "1"}
    with pytest.raises(DecodeError):
        ops.select(data, "kafka", {"a": lh.field("string", repeat="first")})


def test_bad_value_nulls_list_and_each_is_reported() -> None:
    data = block("026102ff", "02610231", "026102fe")
    out = ops.select_rows([data], "kafka", {"a": "array<string>"}, errors="column")
    assert out["a"] == [None]
    assert places(out["error"][0]) == [("value_not_utf8", 4, 0, "a"), ("value_not_utf8", 12, 2, "a")]


def test_required_header_may_be_null_but_not_absent() -> None:
    columns = {"out": lh.field("string", key="a", required=True)}
    assert ops.select(block("026101"), "kafka", columns) == {"out": None}
    with pytest.raises(DecodeError) as caught:
        ops.select(b"", "kafka", columns)
    assert caught.value.code == "missing_key"
    assert (caught.value.byte_offset, caught.value.header, caught.value.key) == (None, None, "a")
    assert caught.value.column == "out"


def test_required_header_is_not_missing_after_damage() -> None:
    out = ops.select_rows([b"\x01"], "kafka", {"a": lh.field("string", required=True)}, errors="column")
    assert places(out["error"][0]) == [("negative_count", 0, None, None)]


def test_null_list_means_no_headers_and_null_message_no_message() -> None:
    columns = {"a": lh.field("string", required=True), "b": "array<string>"}
    message = ops.select_rows([None], "kafka", columns, errors="column")
    assert message == {"a": [None], "b": [None], "error": [None]}
    column = ops.select_rows([None], "kafka", columns, errors="column", lists=True)
    assert column["b"] == [[]]
    assert places(column["error"][0]) == [("missing_key", None, None, "a")]


def test_values_before_damage_are_kept_only_with_errors_column() -> None:
    data = block("02610231", "03")
    columns = {
        "a": "string",
        "b": "string",
        "all": lh.field("array<string>", key="a"),
        "none": lh.field("array<string>", key="c"),
    }
    kept = ops.select_rows([data], "kafka", columns, errors="column")
    # Half of a list would pass for a whole one.
    assert (kept["a"], kept["b"], kept["all"], kept["none"]) == (["1"], [None], [None], [None])
    assert ops.select_rows([data], "kafka", columns, errors="null") == {name: [None] for name in columns}


def test_errors_list_message_first_then_columns_in_order() -> None:
    data = block("026102ff", "02ff01", "026200", "02620278")
    columns = {"b": lh.field("string", repeat="error"), "a": "string", "c": lh.field("string", required=True)}
    [details] = ops.select_rows([data], "kafka", columns, errors="column")["error"]
    assert [(detail.code, detail.column) for detail in details] == [
        ("key_not_utf8", None),
        ("repeated_key", "b"),
        ("value_not_utf8", "a"),
        ("missing_key", "c"),
    ]


def test_value_error_byte_counts_from_message_start() -> None:
    inner = block("02610661ff62")
    message = bytes([2 * len(inner)]) + inner + b"payload"
    [details] = ops.select_rows([message], "streams", {"a": "string"}, errors="column")["error"]
    assert details[0].byte_offset == 6
    assert message[6] == 0xFF


def test_list_error_has_no_byte_offset() -> None:
    [details] = ops.select_rows([[("a", b"\xff")]], "kafka", {"a": "string"}, errors="column")["error"]
    assert details[0][2:] == (None, 0, "a", "a")


def test_errors_raise_names_first_error_of_first_bad_row() -> None:
    with pytest.raises(DecodeError, match=r"^kafka: column a: .* \(header 0, byte 4, row 2\)\n"):
        ops.select_rows([b"", None, block("026102ff"), b"\x01"], "kafka", {"a": "string"})
    with pytest.raises(DecodeError, match=r"\(byte 0, row 1\)\n"):
        ops.decode_rows([b"", b"\x01"], "kafka")


def test_errors_null_nulls_whole_message() -> None:
    good = bytes.fromhex("00") + b"x"
    assert ops.decode_rows([good, b"\x01", None], "streams", errors="null") == [
        {"headers": [], "payload": b"x"},
        None,
        None,
    ]


def test_typed_list_determines_how_values_are_read() -> None:
    row = [{"key": "a", "type": "int32", "value": b"\0\0\0\3"}, {"key": "b", "type": "binary", "value": bytes(16)}]
    assert ops.select_rows([row], "kafka", {"a": "int32:le", "b": "uuid"}) == {
        "a": [3],
        "b": ["00000000-0000-0000-0000-000000000000"],
    }
    assert ops.select_rows([row], "kafka", {"a": "int64"}) == {"a": [3]}
    out = ops.select_rows([row], "kafka", {"a": "string"}, errors="column")
    assert places(out["error"][0]) == [("wrong_type", None, 0, "a")]
