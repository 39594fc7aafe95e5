"""Values read by Spark's own expressions are those that the native module reads, with the same errors in the same words."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.operations import DecodeOptions, Select
from tests.reference.text_forms import TEXT_FORMS
from tests.spark.frames import HEADERS, collected, plain
from tests.spark.sample_values import TYPES, many_rows, values

GROUPS = [TYPES[start : start + 6] for start in range(0, len(TYPES), 6)] + [
    TEXT_FORMS[start : start + 6] for start in range(0, len(TEXT_FORMS), 6)
]


def read_by_spark(spark, type: str, messages: list[bytes | None]) -> tuple[list, list]:
    """Return the values, and the errors as code and message."""
    table = pa.table({"row": range(len(messages)), type: pa.array(messages, pa.binary())})
    result = collected(spark.createDataFrame(table).select(*read_columns(type)))
    return result[f"value {type}"], result[f"error {type}"]


def read_columns(type: str):
    from letterhead.spark.checks import value_unless_failed
    from letterhead.spark.expressions import parser
    from letterhead.spark.sql_text import F, column_by_name

    read = parser(type)(column_by_name(type))
    value = value_unless_failed(read.checks, read.value, lambda check: F.lit(None))
    error = value_unless_failed(
        read.checks, F.lit(None), lambda check: F.concat(F.lit(f"{check.code}: "), check.message)
    )
    return value.column.alias(f"value {type}"), error.cast("string").column.alias(f"error {type}")


def read_by_native(type: str, messages: list[bytes | None]) -> tuple[list, list]:
    rows = pa.array([[{"key": "k", "value": message}] for message in messages], HEADERS)
    selected = Select("kafka", {"k": type}, DecodeOptions(errors="column"), dialect="spark")(rows)
    errors = [error and f"{error[0]['code']}: {error[0]['message']}" for error in selected.field("error").to_pylist()]
    return plain(selected.field("k")), errors


@pytest.mark.hypothesis
@pytest.mark.parametrize("types", GROUPS, ids=lambda types: types[0])
def test_values_and_errors_match_native_module(spark, types):
    @many_rows
    @given(st.lists(st.tuples(*map(values, types)), min_size=30, max_size=90))
    def agree(rows):
        messages = {type: [row[place] for row in rows] for place, type in enumerate(types)}
        table = pa.table({type: pa.array(column, pa.binary()) for type, column in messages.items()})
        result = collected(spark.createDataFrame(table).select(*[c for type in types for c in read_columns(type)]))
        for type, column in messages.items():
            expected_values, expected_errors = read_by_native(type, column)
            got = list(zip(column, result[f"value {type}"], result[f"error {type}"], strict=True))
            expected = list(zip(column, expected_values, expected_errors, strict=True))
            assert got == expected, type

    agree()


def test_null_value_of_every_type_is_null(spark) -> None:
    types = [type for group in GROUPS for type in group]
    table = pa.table({type: pa.array([None], pa.binary()) for type in types})
    result = collected(spark.createDataFrame(table).select(*[c for type in types for c in read_columns(type)]))
    assert result.keys() == {f"{part} {type}" for part in ("value", "error") for type in types}
    assert {name: column for name, column in result.items() if column != [None]} == {}


def test_floats_are_exact_at_every_exponent(spark):
    """Of both signs and widths, with the mantissas where rounding would show."""
    for type, code, number, mantissa_bits, exponents in (
        ("float32", ">I", ">f", 23, 256),
        ("float64", ">Q", ">d", 52, 2048),
    ):
        mantissas = (0, 1, (1 << mantissa_bits) - 1, 1 << (mantissa_bits - 1), 0x5555555555555 >> (52 - mantissa_bits))
        bits = [
            sign * exponents << mantissa_bits | exponent << mantissa_bits | mantissa
            for sign in (0, 1)
            for exponent in range(exponents)
            for mantissa in mantissas
        ]
        messages = [struct.pack(code, pattern_bits) for pattern_bits in bits]
        expected = plain(pa.array([struct.unpack(number, message)[0] for message in messages], pa.float64()))
        for spelled, written in ((type, messages), (f"{type}:le", [message[::-1] for message in messages])):
            values_read, errors = read_by_spark(spark, spelled, written)
            assert values_read == expected
            assert set(errors) == {None}


def test_digits_rounding_to_infinity_are_out_of_range(spark):
    numbers = [b"1e400", b"-69203120e780", b"3.5e38", b"1e308", b"1e-400", b"-1e-46", b"9" * 400, b"Infinity", b"1e"]
    numbers += [b"340282356779733661637539395458142568447", b"340282356779733661637539395458142568448", b"NaN"]
    for type, count in (("float64:text", 3), ("float32:text", 6)):
        result = read_by_spark(spark, type, numbers)
        assert result == read_by_native(type, numbers)
        assert sum(error is not None and error.startswith("out_of_range") for error in result[1]) == count


def test_every_utf16_unit_is_character_or_surrogate(spark):
    messages = [unit.to_bytes(2, "big") for unit in range(1 << 16)]
    values_read, errors = read_by_spark(spark, "char", messages)
    halves = range(0xD800, 0xE000)
    assert values_read == [None if unit in halves else chr(unit) for unit in range(1 << 16)]
    assert [error is not None for error in errors] == [unit in halves for unit in range(1 << 16)]


def test_every_boolean_byte_is_checked(spark):
    values_read, errors = read_by_spark(spark, "bool", [bytes([byte]) for byte in range(256)])
    assert values_read == [False, True] + [None] * 254
    assert errors == [None, None] + ["bad_bool: the byte is not a boolean: 0 or 1"] * 254


def test_utf8_check_matches_native_module(spark):
    """Each lead byte with the tails at which the rule changes."""
    tails = [b"", b"\x7f", b"\x80", b"\x8f", b"\x90", b"\x9f", b"\xa0", b"\xbf", b"\xc0"]
    messages = [
        bytes([lead]) + second + rest
        for lead in range(256)
        for second in tails
        for rest in (b"", b"\x80", b"\x80\xbf", b"\xbf\x80\x80")
    ]
    assert read_by_spark(spark, "string", messages) == read_by_native("string", messages)


def test_every_type_has_an_expression():
    from letterhead.spark.expressions import parser

    for type in TYPES:
        assert callable(parser(type))
    assert lh.field("int64").type in TYPES
