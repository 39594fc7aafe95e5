"""The list of codes is closed, every one has a case, and an exception says what, then where."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import _native, errors, kip82, read, state
from letterhead import arrow as lha
from letterhead._names import unknown_name
from letterhead.errors import (
    CODES,
    ConversionError,
    DecodeError,
    EncodeError,
    ErrorDetail,
    HeaderError,
    LogTruncated,
    as_error,
)
from letterhead.offsets.partition_log import TopicPartition
from tests.helpers.batch_bytes import message, reseal
from tests.helpers.implementations import NATIVE, REFERENCE, Implementation, headers_type
from tests.reference.formats import FORMATS

FIELDS = {name: [field for field, _ in row.fields] for name, row in FORMATS.items()}

WHOLE = {"byte_offset": 57, "row": 7, "header": 9, "key": "amount", "column": "amount_cents"}


def test_error_codes_match_core() -> None:
    assert list(CODES.items()) == _native.codes()


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "kafka: 4 bytes where int64 takes 8"),
        ({"header": 3}, "kafka: 4 bytes where int64 takes 8 (header 3)"),
        ({"byte_offset": 41}, "kafka: 4 bytes where int64 takes 8 (byte 41)"),
        ({"row": 7}, "kafka: 4 bytes where int64 takes 8 (row 7)"),
        ({"header": 0, "byte_offset": 0, "row": 0}, "kafka: 4 bytes where int64 takes 8 (header 0, byte 0, row 0)"),
        (WHOLE, "kafka: column amount_cents: 4 bytes where int64 takes 8 (header 9, byte 57, row 7)"),
    ],
)
def test_text_names_problem_then_position(place: dict[str, Any], text: str) -> None:
    error = DecodeError("4 bytes where int64 takes 8", format="kafka", code="wrong_size", **place)
    assert str(error) == text
    assert error.args == (text,)
    assert error.message == "4 bytes where int64 takes 8"
    for name in ("byte_offset", "row", "header", "key", "column"):
        assert getattr(error, name) == place.get(name)


def test_value_outside_any_format_has_no_format() -> None:
    error = EncodeError("a number outside int8", format=None, code="out_of_range")
    assert str(error) == "a number outside int8"
    assert error.format is None


@pytest.mark.parametrize("cls", [HeaderError, DecodeError, EncodeError, ConversionError])
def test_exception_survives_pickling(cls: type[HeaderError]) -> None:
    error = cls("too short", format="kafka", code="truncated", **WHOLE)
    error.add_note("seen in Spark")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(error, protocol))
        assert type(other) is cls
        assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))
    assert vars(copy.copy(error)) == vars(error)


def test_all_exceptions_are_header_errors_and_value_errors() -> None:
    for cls in (DecodeError, EncodeError, ConversionError):
        assert issubclass(cls, HeaderError)
        assert issubclass(cls, ValueError)
        assert getattr(lh, cls.__name__) is cls
    assert lh.errors is errors


def test_every_exception_has_common_root_and_builtin_base() -> None:
    for name in errors.__all__:
        exception = getattr(errors, name)
        if isinstance(exception, type) and issubclass(exception, Exception) and not issubclass(exception, Warning):
            assert issubclass(exception, errors.LetterheadError), name
    assert issubclass(errors.StateStoreError, RuntimeError)
    assert issubclass(errors.MessageLogError, RuntimeError)
    assert issubclass(errors.RequestError, RuntimeError)


def test_packages_share_exceptions_defined_in_errors_module() -> None:
    assert lh.LetterheadError is errors.LetterheadError
    for package in (lh, kip82, read, state):
        for name in package.__all__:
            exported = getattr(package, name)
            if isinstance(exported, type) and issubclass(exported, BaseException):
                assert getattr(errors, name) is exported


def test_error_converts_to_matching_exception() -> None:
    detail = ErrorDetail("truncated", "too short", 57, 9, "amount", "amount_cents")
    error = as_error(detail, EncodeError, "kafka", row=7)
    assert type(error) is EncodeError
    assert vars(error) == {"message": "too short", "format": "kafka", "code": "truncated", **WHOLE}


def test_dissimilar_name_gets_no_suggestion() -> None:
    assert str(unknown_name("format", "protobuf", ["kafka"])) == "unknown format 'protobuf' (formats: kafka)"


# --- every code has a case -------------------------------------------------------------------------------------------

MESSAGE = message("kip82-message", value=b"x")


def with_attributes(bits: int) -> bytes:
    return reseal("kip82-message", MESSAGE[:17] + bytes([bits]) + MESSAGE[18:])


READING: dict[str, tuple[str, bytes | str]] = {
    "truncated": ("streams", "02"),
    "varint_too_long": ("kafka", "ffffffffff"),
    "varint_lost_bits": ("kafka", "8080808070"),
    "negative_length": ("kip82-typed", "ffffffff"),
    "negative_count": ("kafka", "01"),
    "count_too_large": ("kafka", "c801"),
    "trailing_bytes": ("kip82-wrapper", "00" + "00000000" + "ffffffff" + "00"),
    "key_not_utf8": ("kafka", "0202ff01"),
    "empty_key": ("iggy-2023", "00000000" + "02" + "01000000" + "61"),
    "empty_value": ("iggy-2023", "01000000" + "61" + "02" + "00000000"),
    "too_long": ("iggy", "02" + "00010000" + "6b" * 256 + "02" + "01000000" + "61"),
    "unknown_type": ("iggy-2023", "01000000" + "61" + "10" + "01000000" + "61"),
    "wrong_size": ("kip82-typed", "00000001" + "61" + "00000002" + "0400"),
    "bad_bool": ("kip82-typed", "00000001" + "61" + "00000002" + "0002"),
    "value_not_utf8": ("kip82-typed", "00000001" + "61" + "00000002" + "08ff"),
    "out_of_range": ("iggy-message", bytes(24) + b"\xff" * 8 + bytes(32)),
    "bad_magic": ("kip82-wrapper", "01"),
    "bad_crc": ("kip82-message", MESSAGE[:12] + bytes(4) + MESSAGE[16:]),
    "bad_attributes": ("kip82-message", with_attributes(0x20)),
}
"""Bytes that do not decode."""

SETS: dict[str, bytes] = {
    "unknown_codec": with_attributes(4),
    "bad_compression": with_attributes(1),
    # Bare snappy that announces one byte more than a set may have.
    "decompressed_too_large": message("kip82-message", attributes=2, value=bytes.fromhex("8180802000")),
}
"""Message sets that do not decode."""

SELECTING: dict[str, tuple[str, lh.Field]] = {
    "wrong_size": ("02026104" + "0000", lh.field("int32")),
    "bad_bool": ("02026102" + "02", lh.field("bool")),
    "bad_text": ("02026102" + b"x".hex(), lh.field("int32:text")),
    "out_of_range": ("02026106" + b"300".hex(), lh.field("int8:text")),
    "value_not_utf8": ("02026102" + "ff", lh.field("string")),
    "repeated_key": ("040261010261" + "01", lh.field("string", repeat="error")),
    "missing_key": ("", lh.field("string", required=True)),
}
"""Blocks that decode, with headers that are not what they are asked for."""

INT8 = [("a", "int8", b"\1")]

WRITING: dict[str, tuple[type[HeaderError], str, Any]] = {
    "null_field": (EncodeError, "streams-timestamped", {"headers": [], "timestamp": None, "payload": b""}),
    "too_large": (EncodeError, "iggy", [(f"k{n}", "binary", b"x" * 250) for n in range(400)]),
    "wrong_size": (EncodeError, "iggy", [("a", "int8", b"\0\1")]),
    "out_of_range": (EncodeError, "iggy-message", {**dict.fromkeys(FIELDS["iggy-message"]), "offset": -1}),
    "bad_magic": (EncodeError, "kip82-message", {**dict.fromkeys(FIELDS["kip82-message"]), "magic": 3}),
    "null_not_carried": (ConversionError, "streams", {"headers": [("a", None, b"")], "payload": None}),
    "empty_value": (ConversionError, "iggy", [("a", "string", b"")]),
    "too_long": (ConversionError, "iggy-2023", [("a", "binary", bytes(256))]),
}
"""Messages that cannot be written, or would lose something."""

CONVERTING: dict[str, tuple[str, Any, str, Any]] = {
    "type_not_carried": ("kip82-typed", INT8, "kafka", None),
    "unknown_type": ("kafka", [("a", None, b"x")], "iggy", None),
    "wrong_type": ("iggy", INT8, "kip82-typed", {"a": "bool"}),
    "bad_text": ("kafka", [("a", None, b"x")], "iggy", {"a": "int8:text"}),
    "key_not_carried": ("kip82-int", [(5, None, b"x")], "kafka", None),
    "field_not_carried": ("streams", {"headers": [], "payload": b"x"}, "kafka", None),
    "empty_key": ("kafka", [("", None, b"x")], "iggy", "binary"),
}
"""What cannot be carried from one format to another."""

ONLY_LISTS = ("null_key", "wrong_type", "unknown_type")
"""A list column can hold what neither bytes nor `Headers` can."""

LIMITED = ("limit_exceeded",)
"""What an operation gives that is told to read less."""

CLASSES_ONLY = ("not_in_order",)
"""Codes that only KIP-82's classes raise: their own tests have these."""

SECOND = ("incomplete",)
"""Codes that only follow another error of the same row: tests of unread headers have these."""


def test_every_code_has_a_case() -> None:
    cases = {*READING, *SETS, *SELECTING, *WRITING, *CONVERTING, *ONLY_LISTS, *LIMITED, *CLASSES_ONLY, *SECOND}
    assert sorted(cases) == sorted(CODES)


every_way = pytest.mark.parametrize("way", [REFERENCE, *NATIVE], ids=lambda way: way.name)


@every_way
@pytest.mark.parametrize("code", READING)
def test_bad_bytes_raise_decode_error(code: str, way: Implementation) -> None:
    format, source = READING[code]
    data = bytes.fromhex(source) if isinstance(source, str) else source
    raises(DecodeError, code, lambda: way.read(data, format))
    assert way.validate(data, format)[0].code == code


@every_way
@pytest.mark.parametrize("code", SETS)
def test_bad_message_set_raises_decode_error(code: str, way: Implementation) -> None:
    raises(DecodeError, code, lambda: way.messages(SETS[code], "kip82-messages"))
    assert [detail.code for detail in way.validate(SETS[code], "kip82-messages")] == [code]


@every_way
@pytest.mark.parametrize("code", SELECTING)
def test_bad_value_raises_decode_error(code: str, way: Implementation) -> None:
    digits, column = SELECTING[code]
    data = bytes.fromhex(digits)
    assert way.validate(data, "kafka") == []
    error = raises(DecodeError, code, lambda: way.select(data, "kafka", {"a": column}))
    assert (error.column, error.key) == ("a", "a")


@every_way
@pytest.mark.parametrize("code", WRITING)
def test_unwritable_raises_encode_error_and_loss_conversion(code: str, way: Implementation) -> None:
    cls, format, source = WRITING[code]
    raises(cls, code, lambda: way.write(source, format))


@every_way
@pytest.mark.parametrize("code", CONVERTING)
def test_uncarried_field_raises_conversion_error(code: str, way: Implementation) -> None:
    format, source, target, types = CONVERTING[code]
    data = way.write(source, format)
    assert data is not None
    raises(ConversionError, code, lambda: way.convert(data, format, target=target, types=types))


@every_way
@pytest.mark.parametrize("code", LIMITED)
def test_exceeded_limit_raises_decode_error(code: str, way: Implementation) -> None:
    for limits in (lh.Limits(headers=0), lh.Limits(message_bytes=3)):
        call = partial(way.convert, bytes.fromhex("02026101"), "kafka", target="kafka", limits=limits)
        raises(DecodeError, code, call)


@pytest.mark.parametrize("code", ONLY_LISTS)
def test_bad_list_raises(code: str) -> None:
    header = {"key": "a", "type": "int8", "value": b"\1"}
    header |= {"null_key": {"key": None}, "wrong_type": {}, "unknown_type": {"type": "nonsense"}}[code]
    column = pa.array([[header]], headers_type(types=True))
    raises(DecodeError, code, lambda: lha.select(column, {"a": "string"}))
    if code != "wrong_type":
        raises(EncodeError, code, lambda: lha.encode(column, "kafka"))


def raises(cls: type[HeaderError], code: str, call: Callable[[], Any]) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        call()
    assert type(caught.value) is cls
    assert caught.value.code == code
    assert caught.value.message in str(caught.value)
    return caught.value


def test_removed_records_end_before_requested_offset() -> None:
    assert "removed the records from 20 to 40 after" in str(LogTruncated(TopicPartition("orders", 0), 41, 20))


def test_damage_names_bytes_and_remedy_if_any() -> None:
    damage = errors.Damage("log", 68, 136, 1, "the checksum is wrong", "bad_crc")
    assert str(errors.DamagedLogError(damage)) == str(damage) == "log: bytes 68 to 136: offset 1: the checksum is wrong"
    assert str(damage._replace(end=68)).startswith("log: byte 68: ")
    assert str(errors.DamagedLogError(damage, "delete it")) == f"{damage}: delete it"


def noted(call: Callable[[], Any]) -> list[str]:
    with pytest.raises(DecodeError) as caught:
        call()
    return getattr(caught.value, "__notes__", [])


def test_row_error_names_option_that_keeps_other_rows() -> None:
    bad, column = pa.array([b"\x01"]), 'errors="column" returns all rows, and the errors of each in a column'
    chunked = pa.chunked_array([bad])
    calls: list[Callable[..., Any]] = [
        partial(lha.decode, format="kafka"), partial(lha.select, format="kafka", headers={"a": "string"}),
        partial(lha.edit, format="kafka", drop=["a"]), partial(lha.convert, format="kafka", target="kafka"),
        partial(lha.messages, format="kip82-messages"), lha.rfc3339, lha.traceparent, lha.schema_id,
        partial(lha.amqp, type="string"),
    ]  # fmt: skip
    for call in calls:
        for source in (bad, chunked):
            assert noted(lambda call=call, source=source: call(source)) == [column], call
            kept = call(source, errors="column")
            assert kept.type.field(kept.type.num_fields - 1).name == "error"
    null = 'errors="null" returns null for such a row'
    assert noted(lambda: lha.trace_links(bad)) == [null]
    assert lha.trace_links(bad, errors="null").to_pylist() == [None]
    groups = 'errors="null" leaves such a value out of all groups'
    assert noted(lambda: lha.by_schema_id(pa.array([b""]))) == [groups]
    # One message has no other rows.
    assert noted(lambda: lh.decode(b"\x01", "kafka")) == []


def test_copied_error_keeps_notes_and_adds_preceding_rows() -> None:
    error = DecodeError("wrong", format="kafka", code="bad_text", row=2)
    error.add_note("a note")
    copied = errors.after_rows(error, 5)
    assert (copied.row, copied.__notes__, str(copied)) == (7, ["a note"], "kafka: wrong (row 7)")
    assert errors.after_rows(error, 0) is error
    assert errors.after_rows(DecodeError("wrong", format="kafka", code="bad_text"), 5).row is None
