"""Every input that is refused has a test with a name, and every way into the package refuses it alike."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import ConversionError, DecodeError, EncodeError, ErrorDetail
from letterhead.fields import RepeatedColumnError
from letterhead.operations import ExplodeBatches, Select
from tests.helpers.implementations import (
    NATIVE,
    REFERENCE,
    Decoded,
    Implementation,
    binary_column,
    headers_type,
    messages,
    place,
)
from tests.helpers.strategies import BATCHES, BLOCKS, MESSAGES, ONE, WRITTEN
from tests.reference import ops
from tests.reference.formats import FORMATS

ERRORS: list[Any] = ["raise", "null", "column"]

WAYS = [REFERENCE, *NATIVE]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
every_format = pytest.mark.parametrize("format", FORMATS)
# Those of the drafts and of Iggy have a file of their own: `test_bad_formats`.
every_format_of_kafka = pytest.mark.parametrize("format", ["kafka", "streams", "streams-timestamped"])

HEADERS = [("tenant", b"acme"), ("note", None), ("señal-📦", b""), ("route", b"a" * 70), ("route", b"b")]
FIELDS = {"timestamp": 1767225600000, "payload": b"\x00\x01payload"}


def message(format: str) -> Decoded:
    return Decoded(HEADERS, {name: FIELDS[name] for name, _ in FORMATS[format].fields if name != "headers"})


def good(format: str) -> bytes:
    written = REFERENCE.encode(message(format), format)
    assert written is not None
    return written


def refused(way: Implementation, data: bytes | str, format: str = "kafka", **options: Any) -> tuple[Any, ...]:
    """Return code, byte, header and key with which bytes are refused."""
    data = bytes.fromhex(data) if isinstance(data, str) else data
    with pytest.raises(DecodeError) as caught:
        way.decode(data, format, **options)
    error = caught.value
    assert error.format == format
    details = way.validate(data, format)
    assert place(details[0]) == (error.code, error.byte_offset, error.header, error.key, None)
    return error.code, error.byte_offset, error.header, error.key


# --- bytes -----------------------------------------------------------------------------------------------------------


@every_way
@every_format_of_kafka
def test_message_truncated_in_frame_or_headers_is_rejected(format: str, way: Implementation) -> None:
    data = good(format)
    payload = FIELDS["payload"] if FORMATS[format].message else b""
    assert isinstance(payload, bytes)
    whole_from = len(data) - len(payload)  # a payload says nothing of its length
    for length in range(len(data)):
        if length >= whole_from or (format == "kafka" and length == 0):
            assert way.validate(data[:length], format) == []
            continue
        code, offset, *_ = refused(way, data[:length], format)
        assert code in ("truncated", "count_too_large")
        assert offset is not None
        assert offset <= length


@every_way
@every_format_of_kafka
def test_extra_byte_in_headers_is_rejected(format: str, way: Implementation) -> None:
    block = good("kafka") + b"\0"
    tail = good(format)[-len(FIELDS["payload"]) - (8 if format == "streams-timestamped" else 0) :]  # type: ignore[arg-type]
    data = block if format == "kafka" else bytes([0x80 | (2 * len(block)) & 0x7F, (2 * len(block)) >> 7]) + block + tail
    start = 0 if format == "kafka" else 2
    assert refused(way, data, format) == ("trailing_bytes", start + len(block) - 1, None, None)


@every_way
def test_bytes_after_zero_count_are_rejected(way: Implementation) -> None:
    assert refused(way, "0000") == ("trailing_bytes", 1, None, None)


@every_way
@pytest.mark.parametrize("data", ["01", "03ff", "ffffffff0f"])
def test_negative_count_is_rejected(data: str, way: Implementation) -> None:
    assert refused(way, data) == ("negative_count", 0, None, None)


@every_way
@pytest.mark.parametrize("data", ["02", "0200", "04000000", "c80100010001", "feffffff0f0000"])
def test_count_larger_than_bytes_is_rejected_before_allocation(data: str, way: Implementation) -> None:
    assert refused(way, data) == ("count_too_large", 0, None, None)
    assert refused(way, data, lenient=True)[0] == "count_too_large"


@every_way
@pytest.mark.parametrize(("data", "byte"), [("020100", 1), ("04000003010000", 3), ("02ffffffff0f", 1)])
def test_negative_key_length_is_rejected(data: str, byte: int, way: Implementation) -> None:
    assert refused(way, data) == ("negative_length", byte, (byte - 1) // 2, None)


@every_way
def test_key_longer_than_input_is_rejected(way: Implementation) -> None:
    assert refused(way, "020461") == ("truncated", 2, 0, None)
    assert refused(way, "02feffffff0f00") == ("truncated", 6, 0, None)


@every_way
@pytest.mark.parametrize("length", ["03", "ffffffff0f"])
def test_value_length_below_minus_one_is_rejected(length: str, way: Implementation) -> None:
    assert refused(way, "020261" + length) == ("negative_length", 3, 0, "a")


@every_way
def test_value_longer_than_input_is_rejected(way: Implementation) -> None:
    assert refused(way, "0202610461") == ("truncated", 4, 0, "a")
    assert refused(way, "020261feffffff0f") == ("truncated", 8, 0, "a")


@every_way
@pytest.mark.parametrize(
    ("data", "byte", "header", "key"),
    [("8080808080", 0, None, None), ("02ffffffffff00", 1, 0, None), ("020261ffffffff80", 3, 0, "a")],
)
def test_varint_over_five_bytes_is_rejected(
    data: str, byte: int, header: int | None, key: str | None, way: Implementation
) -> None:
    assert refused(way, data) == ("varint_too_long", byte, header, key)
    assert refused(way, data, lenient=True)[0] == "varint_too_long"


@every_way
@pytest.mark.parametrize("last", ["10", "1f", "40", "7f"])
def test_varint_overflow_is_rejected(last: str, way: Implementation) -> None:
    assert refused(way, "80808080" + last) == ("varint_lost_bits", 0, None, None)
    assert refused(way, "02" + "80808080" + last + "00") == ("varint_lost_bits", 1, 0, None)
    assert way.decode(bytes.fromhex("02" + "80808080" + "70" + "00"), "kafka", lenient=True).headers == [("", b"")]


@every_way
@pytest.mark.parametrize(
    ("key", "within"), [("ff", 0), ("61ff", 1), ("c3", 0), ("61e282", 1), ("eda080", 0), ("f4908080", 0), ("c080", 0)]
)
def test_non_utf8_key_is_rejected_at_first_bad_byte(key: str, within: int, way: Implementation) -> None:
    data = "02" + f"{len(key):02x}" + key + "01"
    assert refused(way, data) == ("key_not_utf8", 2 + within, 0, None)


@every_way
@pytest.mark.parametrize("format", ["streams", "streams-timestamped"])
def test_empty_message_is_rejected_by_message_formats(format: str, way: Implementation) -> None:
    assert refused(way, b"", format) == ("truncated", 0, None, None)
    assert refused(way, b"", format, lenient=True) == ("truncated", 0, None, None)


@every_way
@pytest.mark.parametrize("format", ["streams", "streams-timestamped"])
@pytest.mark.parametrize("size", ["01", "13", "ffffffff0f"])
def test_negative_size_is_rejected(size: str, format: str, way: Implementation) -> None:
    assert refused(way, size + "00" * 12, format) == ("negative_length", 0, None, None)
    assert refused(way, size + "00" * 12, format, lenient=True)[0] == "negative_length"


@every_way
@pytest.mark.parametrize("format", ["streams", "streams-timestamped"])
def test_size_beyond_message_is_rejected_after_size(format: str, way: Implementation) -> None:
    assert refused(way, "04ff", format) == ("truncated", 1, None, None)
    assert refused(way, "feffffff0fff", format) == ("truncated", 5, None, None)


@every_way
@pytest.mark.parametrize("left", range(8))
def test_timestamp_under_eight_bytes_is_rejected(left: int, way: Implementation) -> None:
    assert refused(way, "00" + "00" * left, "streams-timestamped") == ("truncated", 1, None, None)


# --- values ----------------------------------------------------------------------------------------------------------


@every_way
def test_bad_value_position_is_reported(way: Implementation) -> None:
    inner = REFERENCE.encode(Decoded([("x", b""), ("amount", b"\0\0\0\5")], {}), "kafka")
    assert inner is not None
    for format, before in (("kafka", 0), ("streams", 1)):
        data = inner if format == "kafka" else bytes([2 * len(inner)]) + inner
        with pytest.raises(DecodeError) as caught:
            way.select(data, format, {"amount_cents": lh.field("int64", key="amount")})
        error = caught.value
        assert (error.code, error.byte_offset, error.header) == ("wrong_size", before + len(inner) - 4, 1)
        assert (error.key, error.column) == ("amount", "amount_cents")
        assert str(error).startswith(f"{format}: column amount_cents: ")
        assert "(header 1, " in str(error)


# --- nulls -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ONE)
def test_null_message_is_null_in_every_operation(format: str) -> None:
    column = binary_column([None])
    key = 1 if FORMATS[format].traits.keys == "int" else "a"
    for errors in ERRORS:
        assert lha.decode(column, format, errors=errors).to_pylist() == [None]
        [row] = lha.select(column, {"a": lh.field("array<string>", key=key)}, format=format, errors=errors).to_pylist()
        assert set(row.values()) == {None}
        for target in WRITTEN:
            [result] = lha.convert(column, format, target=target, errors=errors).to_pylist()
            assert result is None or set(result.values()) == {None}
    assert lha.validate(column, format).to_pylist() == [None]


@pytest.mark.parametrize("format", BATCHES)
def test_null_or_empty_batch_has_no_messages(format: str) -> None:
    for errors in ERRORS:
        assert lha.messages(binary_column([None, b""]), format, errors=errors).to_pylist() == []
    assert lha.validate(binary_column([None, b""]), format).to_pylist() == [None, None]
    assert list(lh.messages(b"", format)) == []


@pytest.mark.parametrize("format", MESSAGES)
def test_null_message_encodes_to_null(format: str) -> None:
    assert lha.encode(messages([None], format), format).to_pylist() == [None]


@pytest.mark.parametrize("format", BLOCKS)
def test_null_list_is_written_as_no_headers_or_rejected(format: str) -> None:
    column = messages([None], format)
    assert lha.encode(column, format).to_pylist() == [b""]
    with pytest.raises(EncodeError) as caught:
        lha.encode(column, format, nulls="raise")
    assert (caught.value.code, caught.value.row) == ("null_not_carried", 0)


def test_null_list_yields_empty_lists_and_missing_required_keys() -> None:
    column = pa.array([None], headers_type())
    assert lha.select(column, {"a": "array<string>"}).to_pylist() == [{"a": []}]
    with pytest.raises(DecodeError) as caught:
        lha.select(column, {"a": lh.field("string", required=True)})
    assert (caught.value.code, caught.value.row) == ("missing_key", 0)


@pytest.mark.parametrize("header", [None, {"key": None, "value": b""}])
def test_null_key_in_list_is_rejected(header: Any) -> None:
    column = pa.array([[], [{"key": "a", "value": b"1"}, header]], headers_type())
    with pytest.raises(EncodeError) as caught:
        lha.encode(column, "kafka")
    assert (caught.value.code, caught.value.row, caught.value.header) == ("null_key", 1, 1)
    out = lha.select(column, {"a": "string"}, errors="column").to_pylist()[1]
    assert out["a"] == "1"
    assert [place(ErrorDetail(**detail)) for detail in out["error"]] == [("null_key", None, 1, None, None)]


@pytest.mark.parametrize(
    ("carried", "type", "code"), [("int64", "string", "wrong_type"), ("nonsense", "int32", "unknown_type")]
)
def test_wrong_requested_type_is_rejected(carried: str, type: str, code: str) -> None:
    column = pa.array([[{"key": "a", "type": carried, "value": bytes(8)}]], headers_type(types=True))
    out = lha.select(column, {"a": type}, errors="column").to_pylist()[0]
    assert out["a"] is None
    assert [detail["code"] for detail in out["error"]] == [code]


@every_way
def test_null_payload_is_tombstone_and_its_headers_are_loss(way: Implementation) -> None:
    for format in ("streams", "streams-timestamped"):
        fields = {name: None for name, _ in FORMATS[format].fields if name != "headers"}
        assert way.encode(Decoded([], fields), format) is None
        assert way.encode(Decoded(None, fields), format) is None
        assert way.encode(Decoded([("a", b"")], fields), format, on_loss="drop") is None
        with pytest.raises(lh.ConversionError):
            way.encode(Decoded([("a", b"")], fields), format)


# --- columns of the wrong type ---------------------------------------------------------------------------------------

WRONG_FOR_DECODE = [
    pa.array([1]),
    pa.array(["text"]),
    pa.array([b"abcd"], pa.binary(4)),
    pa.array([[b"a"]], pa.list_(pa.binary())),
    pa.array([[]], headers_type()),
    pa.array([None]),
]


@pytest.mark.parametrize("column", WRONG_FOR_DECODE, ids=lambda column: str(column.type))
def test_messages_are_bytes(column: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: lha.decode(column, "kafka"),
        lambda: lha.convert(column, "kafka", target="iggy"),
        lambda: lha.messages(column, "kip82-messages"),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="binary") as caught:
            call()
        assert not isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1]),
        pa.array(["text"]),
        pa.array([[b"a"]]),
        pa.array([[{"key": "a"}]]),
        pa.array([[{"key": 1, "value": b"b"}]]),
        pa.array([[{"key": "a", "value": 1}]]),
        pa.array([[{"name": "a", "key": b"b", "more": 1}]]),
        pa.array([{"key": "a", "value": b"b"}]),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("operation", ["select", "validate", "encode"])
def test_list_of_wrong_type_is_rejected_with_both_types(operation: str, column: Any) -> None:
    call: Callable[[], Any] = {
        "select": lambda: lha.select(column, {"a": "string"}),
        "validate": lambda: lha.validate(column, "kafka"),
        "encode": lambda: lha.encode(column, "kafka"),
    }[operation]
    with pytest.raises(TypeError) as caught:
        call()
    # What is no list may have been meant as bytes, where they are read.
    bytes_fit = operation != "encode" and not pa.types.is_list(column.type)
    fits = "kafka is read from binary, large_binary or binary_view" if bytes_fit else f"what fits is {headers_type()}"
    assert str(caught.value) == f"the column is {column.type}, and {fits}"


WRONG_KEYS = [
    ("kip82-int", {"key": "a", "value": b""}, "list<element: struct<key: int32, value: binary>>"),
    ("kip82-typed", {"key": 1, "value": b""}, "list<element: struct<key: string, type: string, value: binary>>"),
    ("kafka", {"key_type": "string", "key": b"a", "value": b""}, "list<element: struct<key: string, value: binary>>"),
    ("iggy", {"key_type": 2, "key": b"a", "type": "bool", "value": b""}, "struct<key_type: string, key: binary, type:"),
    ("iggy", {"key": 1, "type": "bool", "value": b""}, "struct<key_type: string, key: binary, type:"),
]


@pytest.mark.parametrize(("format", "header", "expected"), WRONG_KEYS)
def test_keys_of_another_form_are_rejected_with_both_types(format: str, header: dict[str, Any], expected: str) -> None:
    column = pa.array([[header]])
    for call in (lha.validate, lha.encode):
        with pytest.raises(TypeError) as caught:
            call(column, format)
        assert expected in str(caught.value)


def test_lists_of_text_keys_and_untyped_values_are_accepted() -> None:
    column = pa.array([[{"key": "a", "value": b"x"}]])
    assert lha.validate(column, "iggy").to_pylist() == [None]
    written = lha.encode(column, "iggy", types={"a": "string"}).to_pylist()
    assert [lh.decode(value, "iggy") for value in written] == [lh.Headers([("a", lh.String("x"))])]


def test_encode_rejects_bytes() -> None:
    with pytest.raises(TypeError, match=f"^the column is binary, and what fits is {headers_type()}$"):
        lha.encode(binary_column([b""]), "kafka")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"headers": [], "payload": b""}]),
        pa.array([[]], headers_type()),
        pa.array([{"payload": b""}]),
        pa.array([{"headers": None, "timestamp": "1", "payload": b""}]),
    ],
    ids=lambda column: str(column.type),
)
def test_unsuitable_message_format_is_rejected(column: Any) -> None:
    with pytest.raises(TypeError, match=r"^the column is .+, and what fits is .*list<element: struct<key: string, "):
        lha.encode(column, "streams-timestamped")


@pytest.mark.parametrize("column", [b"", "text", None, [b""], 1], ids=repr)
def test_non_arrow_column_is_rejected(column: Any) -> None:
    for call in (lha.decode, lha.validate, lha.encode):
        with pytest.raises(TypeError, match="__arrow_c_"):
            call(column, "kafka")
    with pytest.raises(TypeError, match="__arrow_c_"):
        lha.select(column, {"a": "string"})


# --- one message of the wrong type -----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["text", None, 1, [1, 2], pa.array([b""])], ids=lambda data: type(data).__name__)
def test_single_message_must_be_bytes(data: Any) -> None:
    for call in (lh.decode, lh.validate, lh.inspect):
        with pytest.raises(TypeError, match="data must be bytes"):
            call(data, "kafka")
    with pytest.raises(TypeError, match="data must be bytes"):
        lh.select(data, {"a": "string"})


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_single_message_accepts_any_bytes_like(wrap: Any) -> None:
    data = wrap(good("kafka"))
    assert lh.decode(data, "kafka") == lh.Headers(HEADERS)
    assert lh.select(data, {"tenant": "string"}) == {"tenant": "acme"}
    assert lh.validate(data, "kafka") == []


@pytest.mark.parametrize(
    "source", ["text", b"bytes", 1, [1], [("a", 1)], [(1.0, b"")], lh.Message(headers=[])], ids=repr
)
def test_headers_format_needs_headers(source: Any) -> None:
    with pytest.raises(TypeError):
        lh.encode(source, "kafka")


@pytest.mark.parametrize("source", [[("a", b"")], lh.Headers(), None, b"", 1], ids=repr)
def test_message_format_needs_fields(source: Any) -> None:
    with pytest.raises(TypeError, match="takes a Message"):
        lh.encode(source, "streams")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"paylaod": b""}, ValueError, "did you mean 'payload'"),
        ({"payload": "text"}, TypeError, "payload must be bytes"),
        ({"payload": b"", "timestamp": 1.5}, TypeError, "timestamp must be int"),
        ({"payload": b"", "timestamp": True}, TypeError, "timestamp must be int"),
        ({"payload": b"", "timestamp": 2**63}, EncodeError, "timestamp does not fit int64"),
        ({"payload": b"", "timestamp": 0, "headers": [(1.0, b"")]}, TypeError, "key of a header must be str"),
        ({"payload": b"", "timestamp": 0, "headers": [(1, b"")]}, ConversionError, "the key is int32"),
    ],
)
def test_unsuitable_field_is_named(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lh.encode(fields, "streams-timestamped")


@pytest.mark.parametrize(
    ("format", "field", "least", "most"),
    [("streams-timestamped", "timestamp", -(2**63), 2**63 - 1), ("iggy-message", "checksum", 0, 2**64 - 1)],
)
def test_numeric_fields_are_range_checked(format: str, field: str, least: int, most: int) -> None:
    for number in (least, most):
        data = lh.encode({field: number, "headers": [], "payload": b"p"}, format)
        assert getattr(lh.decode(data, format), field) == number
    for number in (least - 1, most + 1):
        with pytest.raises(EncodeError, match=f"{field} does not fit"):
            lh.encode({field: number, "headers": [], "payload": b"p"}, format)


def test_key_without_utf8_form_is_rejected_with_position() -> None:
    with pytest.raises(EncodeError) as caught:
        lh.encode([("a", b""), ("\ud800", b"")], "kafka")
    assert (caught.value.format, caught.value.code, caught.value.header) == ("kafka", "key_not_utf8", 1)


# --- misspelt names --------------------------------------------------------------------------------------------------

HEADERS_COLUMN = pa.array([[]], headers_type())
OPERATIONS: dict[str, Callable[..., Any]] = {
    "decode": lambda format="kafka", **options: lh.decode(b"", format, **options),
    "encode": lambda format="kafka", **options: lh.encode([], format, **options),
    "select": lambda format="kafka", **options: lh.select(b"", {"a": "string"}, format=format, **options),
    "validate": lambda format="kafka", **options: lh.validate(b"", format, **options),
    "inspect": lambda format="kafka", **options: lh.inspect(b"", format, **options),
    "arrow.decode": lambda format="kafka", **options: lha.decode(binary_column([b""]), format, **options),
    "arrow.encode": lambda format="kafka", **options: lha.encode(HEADERS_COLUMN, format, **options),
    "arrow.select": lambda format="kafka", **options: lha.select(
        binary_column([b""]), {"a": "string"}, format=format, **options
    ),
    "arrow.validate": lambda format="kafka", **options: lha.validate(binary_column([b""]), format, **options),
    "convert": lambda format="kafka", **options: lh.convert(b"", format, target="iggy", **options),
    "convert into": lambda format="kafka", **options: lh.convert(b"", "kafka", target=format, **options),
    "messages": lambda format="kip82-messages", **options: list(lh.messages(b"", format, **options)),
    "arrow.convert": lambda format="kafka", **options: lha.convert(
        binary_column([b""]), format, target="iggy", **options
    ),
    "arrow.convert into": lambda format="kafka", **options: lha.convert(
        binary_column([b""]), "kafka", target=format, **options
    ),
    "arrow.messages": lambda format="kip82-messages", **options: lha.messages(binary_column([b""]), format, **options),
    "Select": lambda format="kafka", **options: Select(format, {"a": "string"}, **options)(binary_column([b""])),
    "ExplodeBatches": lambda format="kip82-messages", **options: ExplodeBatches(format, **options)(
        binary_column([b""])
    ),
    "reference.convert": lambda format="kafka", **options: ops.convert(b"", format, target="iggy", **options),
    "reference.convert into": lambda format="kafka", **options: ops.convert(b"", "kafka", target=format, **options),
    "reference.messages": lambda format="kip82-messages", **options: ops.messages(b"", format, **options),
    "reference.decode": lambda format="kafka", **options: ops.decode_rows([b""], format, **options),
    "reference.encode": lambda format="kafka", **options: ops.encode_rows([[]], format, **options),
    "reference.select": lambda format="kafka", **options: ops.select_rows([b""], format, {"a": "string"}, **options),
    "reference.validate": lambda format="kafka", **options: ops.validate_rows([b""], format, **options),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_misspelt_format_gets_suggestion(operation: str) -> None:
    with pytest.raises(ValueError, match="unknown format 'kafak': did you mean 'kafka'") as caught:
        OPERATIONS[operation](format="kafak")
    assert str(caught.value).endswith(f"(formats: {', '.join(FORMATS)})")
    assert not isinstance(caught.value, lh.HeaderError)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_non_text_format_raises_type_error(operation: str) -> None:
    with pytest.raises(TypeError) as caught:
        OPERATIONS[operation](format=1)
    if not operation.startswith("reference"):
        assert str(caught.value) in ("format must be str, not int", "target must be str, not int")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lh.decode(3, "kafka"), "data must be bytes, not int"),
        (lambda: lh.decode(b"\0", None), "format must be str, not NoneType"),
        (lambda: lh.decode(b"\0", "kafka", lenient="yes"), "lenient must be bool, not str"),
        (lambda: lh.decode(b"\0", "kafka", strict_types=1), "strict_types must be bool, not int"),
        (lambda: lh.encode([], "iggy", canonical="yes"), "canonical must be bool, not str"),
        (lambda: lh.encode([], "kafka", nulls=3), "nulls must be str, not int"),
        (lambda: lh.encode(3, "kafka"), "headers must be pairs of key and value, not int"),
        (lambda: lh.convert(b"\0", "kafka", target=3), "target must be str, not int"),
        (lambda: lh.convert(b"\0", "kafka", target="iggy", on_loss=3), "on_loss must be str, not int"),
        (lambda: lh.batch([], codec=3), "codec must be str, not int"),
        (lambda: lh.batch(3), "messages must be an iterable of messages, not int"),
        (lambda: lha.decode(pa.array([b"\0"]), "kafka", errors=3), "errors must be str, not int"),
        (lambda: lha.decode(pa.array([b"\0"]), "kafka", text_keys="yes"), "text_keys must be bool, not str"),
        (lambda: Select("kafka", {"a": "string"}, dialect=3)(pa.array([b"\0"])), "dialect must be str, not int"),
    ],
)
def test_argument_of_wrong_type_is_named_with_accepted_types(call: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


def test_duplicate_column_names_are_rejected() -> None:
    values, batches = pa.array([b"\0"]), pa.array([lh.batch([{"value": b"x"}])])
    output = "two columns 'error' would be made: give error_column= another name"
    with pytest.raises(ValueError, match=output):
        lha.select(values, {"error": "string"}, errors="column")
    with pytest.raises(ValueError, match=output):
        lha.messages(batches, "record-batch", headers={"error": "string"}, errors="column")
    with pytest.raises(RepeatedColumnError, match="two columns 'offset' would be made: rename one of them") as caught:
        lha.messages(batches, "record-batch", columns=["offset"], headers={"offset": "string"})
    assert pickle.loads(pickle.dumps(caught.value)).column == "offset"
    assert lha.select(values, {"error": "string"}).to_pylist() == [{"error": None}]
    columns = {"why": lh.field("string", key="error")}
    assert lha.select(values, columns, errors="column").to_pylist() == [{"why": None, "error": None}]


def test_error_column_has_requested_name() -> None:
    values, batches = pa.array([b"\1", b"\0"]), pa.array([lh.batch([{"value": b"x"}])])
    options: Any = {"errors": "column", "error_column": "problem"}
    for result in (
        lha.decode(values, "kafka", **options),
        lha.select(values, {"error": "string"}, **options),
        lha.convert(values, "kafka", target="iggy", on_loss="report", **options),
        lha.decode(pa.chunked_array([values]), "kafka", **options).combine_chunks(),
        lha.decode(values, "kafka", threads=2, **options),
    ):
        result.validate(full=True)
        assert result.type.names[-1] == "problem"
        assert [details and details[0]["code"] for details in result.field("problem").to_pylist()] == [
            "negative_count",
            None,
        ]
    assert lha.messages(batches, "record-batch", headers={"error": "string"}, **options).type.names[-2:] == [
        "error", "problem"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="two columns 'headers' would be made: give error_column= another name"):
        lha.decode(values, "kafka", errors="column", error_column="headers")
    with pytest.raises(ValueError, match="two columns 'offset' would be made"):
        lha.messages(batches, "record-batch", errors="column", error_column="offset")
    with pytest.raises(ValueError, match="error_column= names the column of errors='column'"):
        lha.decode(values, "kafka", error_column="problem")
    with pytest.raises(TypeError, match="error_column must be str, not int"):
        lha.decode(values, "kafka", errors="column", error_column=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operation", "options", "near"),
    [
        ("arrow.decode", {"errors": "rais"}, "raise"),
        ("arrow.select", {"errors": "colum"}, "column"),
        ("Select", {"dialect": "sparc"}, "spark"),
        ("arrow.encode", {"on_loss": "dorp"}, "drop"),
        ("arrow.encode", {"types": "txt"}, "text"),
        ("arrow.encode", {"nulls": "skipp"}, "skip"),
        ("arrow.convert", {"errors": "colum"}, "column"),
        ("arrow.convert", {"on_loss": "reprot"}, "report"),
        ("arrow.convert", {"types": "binray"}, "binary"),
        ("arrow.messages", {"errors": "nul"}, "null"),
        ("ExplodeBatches", {"dialect": "sparc"}, "spark"),
        ("arrow.messages", {"columns": ["offest"]}, "offset"),
        ("convert", {"on_loss": "reprot"}, "report"),
        ("convert", {"types": "binray"}, "binary"),
        ("convert", {"types": {"a": "itn32"}}, "int32"),
        ("convert", {"nulls": "skipp"}, "skip"),
        ("reference.convert", {"on_loss": "reprot"}, "report"),
        ("reference.convert", {"types": {"a": "itn32"}}, "int32"),
        ("encode", {"on_loss": "dorp"}, "drop"),
        ("encode", {"types": "txt"}, "text"),
        ("encode", {"nulls": "skipp"}, "skip"),
        ("reference.decode", {"errors": "rais"}, "raise"),
        ("reference.select", {"dialect": "sparc"}, "spark"),
        ("reference.encode", {"on_loss": "dorp"}, "drop"),
        ("reference.encode", {"types": "txt"}, "text"),
        ("reference.encode", {"nulls": "skipp"}, "skip"),
    ],
)
def test_misspelt_option_gets_suggestion(operation: str, options: dict[str, Any], near: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{near}'"):
        OPERATIONS[operation](**options)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
@pytest.mark.parametrize("type", ["itn64", "int64:bee", "string:be", "decimal"])
def test_misspelt_type_is_rejected_before_reading(type: str, way: Implementation) -> None:
    with pytest.raises(ValueError, match="column 'a': "):
        way.select(b"\xff", "kafka", {"a": type})


@pytest.mark.parametrize(
    ("target", "types"), [("iggy", "be"), ("kip82-typed", "text"), ("kafka", "binary"), ("kip82-int", {5: "int32"})]
)
def test_types_unsuitable_for_target_are_rejected(target: str, types: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: lh.convert(b"", "kafka", target=target, types=types),
        lambda: lha.convert(binary_column([b""]), "kafka", target=target, types=types),
        lambda: ops.convert(b"", "kafka", target=target, types=types),
        lambda: lh.encode([], target, types=types),
        lambda: ops.encode([], target, types=types),
    ]
    output = set()
    for call in calls:
        with pytest.raises(ValueError, match=f"and {target} (has|carries)") as caught:
            call()
        output.add(str(caught.value))
    assert len(output) == 1


@pytest.mark.parametrize("format", [name for name in WRITTEN if FORMATS[name].traits.canonical is None])
def test_unsupported_order_is_rejected(format: str) -> None:
    source: Any = {"headers": []} if FORMATS[format].message else []
    for encode in (lh.encode, ops.encode):
        with pytest.raises(ValueError, match=f"^canonical=True: {format} has no order of its own for headers$"):
            encode(source, format, canonical=True)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("format", "key"), [("kafka", 3), ("kafka", b"a"), ("kip82-int", "a"), ("iggy", 3), ("streams", lh.Int32(3))]
)
def test_key_impossible_in_format_is_rejected(format: str, key: Any) -> None:
    requested = {"a": lh.field("string", key=key)}
    output = set()
    for call in (
        lambda: lh.select(b"", requested, format=format),
        lambda: lha.select(binary_column([b""]), requested, format=format),
        lambda: ops.select(b"", format, requested),
    ):
        with pytest.raises(ValueError, match=f": {format} has (text|integer|typed) keys") as caught:
            call()
        output.add(str(caught.value))
    assert len(output) == 1


@pytest.mark.parametrize("format", BATCHES)
def test_operations_for_one_message_name_one_for_many(format: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: lh.decode(b"", format),
        lambda: lh.select(b"", {"a": "string"}, format=format),
        lambda: lha.decode(binary_column([b""]), format),
        lambda: lha.select(binary_column([b""]), {"a": "string"}, format=format),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"^{format} is a batch: read it with messages$"):
            call()
    with pytest.raises(ValueError, match=f"^{format} is a batch: encode its messages one by one$"):
        lh.encode({"headers": []}, format)


@pytest.mark.parametrize("format", ONE)
def test_messages_operation_names_decode_for_single_message(format: str) -> None:
    output = f"^{format} is not a batch: read it with decode$"
    for call in (lambda: list(lh.messages(b"", format)), lambda: lha.messages(binary_column([b""]), format)):
        with pytest.raises(ValueError, match=output):
            call()


def test_unknown_option_raises_type_error() -> None:
    for operation in OPERATIONS.values():
        with pytest.raises(TypeError, match=r"(unexpected keyword argument|unknown option) '?strict'?"):
            operation(strict=True)


@pytest.mark.parametrize(
    ("wrong", "right"), [("strict_type", "strict_types"), ("error", "errors"), ("limit", "limits")]
)
def test_unknown_parse_option_suggests_nearest_name(wrong: str, right: str) -> None:
    options: Any = {wrong: None}
    with pytest.raises(TypeError, match=rf"^unknown option '{wrong}': did you mean '{right}'\?"):
        lha.select(binary_column([b""]), {"k": "int8"}, **options)


def test_unknown_parse_option_suggests_no_argument_of_other_functions() -> None:
    options: Any = {"targt": "iggy", "limit": None}
    with pytest.raises(TypeError, match=r"^unknown option 'targt' \("):
        lha.decode(binary_column([b""]), **options)


def test_columns_argument_must_be_list() -> None:
    with pytest.raises(TypeError, match=r"^columns must be a list of column names, not str$"):
        lha.messages(binary_column([b""]), "kip82-messages", columns="offset")
