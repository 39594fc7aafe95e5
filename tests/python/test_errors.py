"""The list of codes is closed, every one has a case, and an exception says what, then where."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import letterhead as lh
from implementations import NATIVE, REFERENCE, Decoded, Implementation
from letterhead import _native, errors
from letterhead.errors import CODES, ConversionError, DecodeError, EncodeError, Fault, HeaderError, unknown_name

WHOLE = {"offset": 57, "row": 7, "header": 9, "key": "amount", "column": "amount_cents"}


def test_the_list_of_codes_is_the_one_of_the_core() -> None:
    assert list(CODES.items()) == _native.codes()


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "kafka: 4 bytes where int64 takes 8"),
        ({"header": 3}, "kafka: header 3: 4 bytes where int64 takes 8"),
        ({"offset": 41}, "kafka: 4 bytes where int64 takes 8 (byte 41)"),
        ({"row": 7}, "kafka: 4 bytes where int64 takes 8 (row 7)"),
        ({"header": 0, "offset": 0, "row": 0}, "kafka: header 0: 4 bytes where int64 takes 8 (byte 0, row 0)"),
        (WHOLE, "kafka: column amount_cents: header 9: 4 bytes where int64 takes 8 (byte 57, row 7)"),
    ],
)
def test_the_text_says_what_then_where(place: dict[str, Any], text: str) -> None:
    error = DecodeError("4 bytes where int64 takes 8", format="kafka", code="wrong_size", **place)
    assert str(error) == text
    assert error.args == (text,)
    assert error.message == "4 bytes where int64 takes 8"
    for name in ("offset", "row", "header", "key", "column"):
        assert getattr(error, name) == place.get(name)


def test_a_value_that_is_in_no_format_yet_has_no_format() -> None:
    error = EncodeError("a number outside int8", format=None, code="out_of_range")
    assert str(error) == "a number outside int8"
    assert error.format is None


@pytest.mark.parametrize("cls", [HeaderError, DecodeError, EncodeError, ConversionError])
def test_an_exception_survives_the_way_to_another_process(cls: type[HeaderError]) -> None:
    error = cls("too short", format="kafka", code="truncated", **WHOLE)
    error.add_note("seen in Spark")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(error, protocol))
        assert type(other) is cls
        assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))
    assert vars(copy.copy(error)) == vars(error)


def test_all_of_them_are_header_errors_and_value_errors() -> None:
    for cls in (DecodeError, EncodeError, ConversionError):
        assert issubclass(cls, HeaderError)
        assert issubclass(cls, ValueError)
        assert getattr(lh, cls.__name__) is cls
    assert lh.errors is errors


def test_a_fault_makes_the_exception_that_shows_it() -> None:
    fault = Fault("truncated", "too short", 57, 9, "amount", "amount_cents")
    error = fault.as_error(EncodeError, "kafka", row=7)
    assert type(error) is EncodeError
    assert vars(error) == {"message": "too short", "format": "kafka", "code": "truncated", **WHOLE}


def test_a_name_near_nothing_gets_no_suggestion() -> None:
    assert str(unknown_name("format", "protobuf", ["kafka"])) == "unknown format 'protobuf': (formats: kafka)"


# --- every code has a case -------------------------------------------------------------------------------------------

COLUMN = {"a": "int32"}
BLOCK = {
    "truncated": "02",
    "varint_too_long": "ffffffffff",
    "varint_lost_bits": "8080808070",
    "negative_length": "02010000",
    "negative_count": "01",
    "count_too_large": "c801",
    "trailing_bytes": "0000",
    "key_not_utf8": "0202ff01",
}
"""Blocks that do not decode. A count alone is too large before its first header can be truncated."""

VALUES: dict[str, tuple[str, Any]] = {
    "wrong_size": ("02026104" + "0000", COLUMN),
    "bad_bool": ("02026102" + "02", {"a": "bool"}),
    "bad_text": ("02026102" + b"x".hex(), {"a": "int32:text"}),
    "out_of_range": ("02026106" + b"300".hex(), {"a": "int8:text"}),
    "value_not_utf8": ("02026102" + "ff", {"a": "string"}),
    "repeated_key": ("040261010261" + "01", {"a": lh.field("string", repeat="error")}),
    "missing_key": ("", {"a": lh.field("string", required=True)}),
}
"""Blocks that decode, with headers that are not what they are asked for."""

IN_COLUMNS_ONLY = {"null_key", "wrong_kind", "unknown_kind"}
"""A list column can hold what neither these bytes nor `Headers` can."""

LATER = {
    "empty_key": "of the formats of Iggy",
    "empty_value": "of the formats of Iggy",
    "bad_magic": "of formats with a magic byte",
    "bad_crc": "of formats with a checksum",
    "bad_attributes": "of formats with attributes",
    "unknown_codec": "of compressed batches",
    "decompressed_too_large": "of compressed batches",
    "limit_exceeded": "of readers with a limit",
    "too_long": "of formats whose lengths are small; here a key of 2 GiB",
    "too_large": "of formats with a limit in all; here a message of 2 GiB",
}
"""Codes that no format there is yet can give at a size that a test can have."""


def test_every_code_has_a_case_or_belongs_to_a_format_to_come() -> None:
    cases = [*BLOCK, *VALUES, *WRITING, *IN_COLUMNS_ONLY, *LATER]
    assert sorted(cases) == sorted(CODES)


every_way = pytest.mark.parametrize("way", [REFERENCE, *NATIVE], ids=lambda way: way.name)


@every_way
@pytest.mark.parametrize("code", BLOCK)
def test_a_bad_block_is_a_decode_error(code: str, way: Implementation) -> None:
    data = bytes.fromhex(BLOCK[code])
    if code == "truncated":
        _raises(DecodeError, code, lambda: way.decode(data, "streams"))
    else:
        _raises(DecodeError, code, lambda: way.decode(data, "kafka"))
        assert [fault.code for fault in way.validate(data, "kafka")] == [code]


@every_way
@pytest.mark.parametrize("code", VALUES)
def test_a_bad_value_is_a_decode_error(code: str, way: Implementation) -> None:
    digits, columns = VALUES[code]
    data = bytes.fromhex(digits)
    assert way.validate(data, "kafka") == []
    error = _raises(DecodeError, code, lambda: way.select(data, "kafka", columns))
    assert (error.column, error.key) == ("a", "a")


WRITING: dict[str, tuple[type[HeaderError], Callable[[Implementation], Any]]] = {
    "null_field": (
        EncodeError,
        lambda way: way.encode(Decoded([], {"timestamp": None, "payload": b""}), "streams-timestamped"),
    ),
    "null_not_carried": (ConversionError, lambda way: way.encode(Decoded([("a", b"")], {"payload": None}), "streams")),
    "kind_not_carried": (ConversionError, lambda _: lh.encode([("a", lh.Int32(3))], "kafka")),
}


@every_way
@pytest.mark.parametrize("code", WRITING)
def test_what_cannot_be_written_is_an_encode_error_and_what_is_lost_a_conversion_error(
    code: str, way: Implementation
) -> None:
    cls, write = WRITING[code]
    _raises(cls, code, lambda: write(way))


def _raises(cls: type[HeaderError], code: str, call: Callable[[], Any]) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        call()
    assert type(caught.value) is cls
    assert caught.value.code == code
    assert caught.value.message in str(caught.value)
    return caught.value
