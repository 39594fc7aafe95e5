"""JSON lines of record batches: what the core writes equals what `json` writes of the same rows, and every value is kept."""

from __future__ import annotations

import base64
import datetime
import json
import math
import struct
import unicodedata
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from letterhead import _native

EXACT = 2**53 - 1
INVISIBLE = ("Cc", "Cf", "Zl", "Zp", "Zs", "Co")
LATER_INVISIBLE = frozenset(map(chr, range(0x13439, 0x13440)))
"""Characters of category Cf that are not in Unicode 14, the version of Python 3.11."""

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPED_HEADERS = pa.list_(
    pa.struct([("key_type", pa.string()), ("key", pa.binary()), ("type", pa.string()), ("value", pa.binary())])
)
PLAIN = pa.list_(pa.struct([("code", pa.string()), ("header", pa.int32())]))


def lines(column: pa.Array, **options: bool) -> list[Any]:
    """Write a column of one name, and return its values as `json` reads them."""
    text = _native.json_lines(pa.RecordBatch.from_arrays([column], names=["x"]), **options).decode()
    rows = text.split("\n")
    assert rows.pop() == ""
    assert len(rows) == len(column)
    values = [json.loads(row) for row in rows]
    assert [list(value) for value in values] == [["x"]] * len(column)
    return [value["x"] for value in values]


def of_bytes(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if any((char < " " and char not in "\t\r\n") or char == "\x7f" for char in text):
        return {"base64": base64.b64encode(data).decode()}
    return text


def of_integer(number: int | None) -> Any:
    return number if number is None or abs(number) <= EXACT else str(number)


def of_float(number: float | None) -> Any:
    if number is None or math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"


texts = st.none() | st.text()
some_bytes = st.none() | st.binary() | st.text().map(str.encode)


@given(st.lists(texts), st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
def test_text_is_a_string(values: list[str | None], type: pa.DataType) -> None:
    assert lines(pa.array(values, type)) == values


@given(st.lists(some_bytes), st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]))
def test_bytes_are_text_if_utf8_else_base64(values: list[bytes | None], type: pa.DataType) -> None:
    assert lines(pa.array(values, type)) == [of_bytes(value) for value in values]


# The name of an Arrow column ends at a zero character.
@given(st.text(st.characters(blacklist_categories=("Cs", "Cn"), blacklist_characters="\0")))
def test_invisible_characters_are_escaped(text: str) -> None:
    line = _native.json_lines(pa.RecordBatch.from_pydict({text: [text]})).decode()
    assert json.loads(line) == {text: text}
    assert [char for char in line[:-1] if char != " " and unicodedata.category(char) in INVISIBLE] == []


def test_no_other_characters_are_escaped() -> None:
    categories = {char: unicodedata.category(char) for char in map(chr, range(0x80, 0xE0000))}
    chars = {char for char, category in categories.items() if category not in ("Cs", "Cn")} | LATER_INVISIBLE
    line = _native.json_lines(pa.RecordBatch.from_pydict({"x": ["".join(chars)]})).decode()
    invisible = {char for char in chars if categories[char] in INVISIBLE}
    assert chars.difference(line) == invisible | LATER_INVISIBLE


@pytest.mark.parametrize("size", range(1, 18))
def test_every_character_is_escaped_in_every_position(size: int) -> None:
    texts = [f"{'a' * place}{chr(code)}{'a' * (size - place - 1)}" for place in range(size) for code in range(256)]
    for column in (pa.array(texts), pa.array([text.encode() for text in texts])):
        printed = _native.json_lines(pa.RecordBatch.from_arrays([column], ["x"])).decode()
        assert [char for char in printed if not char.isprintable() and char != "\n"] == []
        values = [json.loads(line)["x"] for line in printed.splitlines()]
        expected = texts if column.type == pa.string() else [of_bytes(text.encode()) for text in texts]
        assert values == expected


@given(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")))
def test_ascii_output_has_only_ascii(text: str) -> None:
    line = _native.json_lines(pa.RecordBatch.from_pydict({text: [text]}), ascii_only=True)
    assert line.isascii()
    assert json.loads(line) == {text: text}


@pytest.mark.parametrize(
    ("type", "low", "high"),
    [
        (pa.int8(), -(2**7), 2**7),
        (pa.int16(), -(2**15), 2**15),
        (pa.int32(), -(2**31), 2**31),
        (pa.int64(), -(2**63), 2**63),
        (pa.uint8(), 0, 2**8),
        (pa.uint16(), 0, 2**16),
        (pa.uint32(), 0, 2**32),
        (pa.uint64(), 0, 2**64),
    ],
)
@given(data=st.data())
def test_integers_beyond_double_are_strings(type: pa.DataType, low: int, high: int, data: st.DataObject) -> None:
    near = st.sampled_from([low, high - 1, *(n for n in (EXACT, EXACT + 1, -EXACT, -EXACT - 1) if low <= n < high)])
    values = data.draw(st.lists(st.none() | near | st.integers(low, high - 1)))
    assert lines(pa.array(values, type)) == [of_integer(value) for value in values]


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)))
def test_decimals_without_a_fraction_are_integers(values: list[int | None]) -> None:
    column = pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(38, 0))
    assert lines(column) == [of_integer(value) for value in values]


@given(st.lists(st.none() | st.floats()))
def test_floats_keep_every_bit_except_nan(values: list[float | None]) -> None:
    written = lines(pa.array(values, pa.float64()))
    assert [json.dumps(value) for value in written] == [json.dumps(of_float(value)) for value in values]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_has_digits_of_its_width(value: float) -> None:
    [number] = lines(pa.array([value], pa.float32()))
    assert struct.pack(">f", number) == struct.pack(">f", value)
    assert len(significant_digits(number)) <= len(significant_digits(value))


def significant_digits(number: float) -> tuple[int, ...]:
    return Decimal(repr(number)).normalize().as_tuple().digits


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@given(data=st.data())
def test_times_are_iso_with_the_digits_of_their_unit(unit: str, data: st.DataObject) -> None:
    moments = data.draw(st.lists(st.none() | st.datetimes(timezones=st.just(datetime.UTC))))
    column = pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC"), safe=False)
    digits = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}[unit]
    expected = [
        None if moment is None else moment.isoformat(timespec=digits).replace("+00:00", "Z")
        for moment in column.to_pylist()
    ]
    # A cast rounds to zero, and Python's clock starts in the year 1.
    assert lines(column) == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**52)), st.sampled_from(["s", "ms", "us", "ns"]))
def test_epoch_ms_is_exact_for_every_time(times: list[int], unit: str) -> None:
    text = _native.json_lines(pa.RecordBatch.from_arrays([pa.array(times, pa.timestamp(unit))], ["x"]), epoch_ms=True)
    scale = {"s": 3, "ms": 0, "us": -3, "ns": -6}[unit]
    expected = [Decimal(time).scaleb(scale) for time in times]
    for line, number in zip(text.splitlines(), expected, strict=True):
        assert Decimal(json.loads(line, parse_float=Decimal)["x"]) == number
        as_read = json.loads(line)["x"]
        assert isinstance(as_read, str) or round(Decimal(as_read).scaleb(-scale)) == number.scaleb(-scale)


@pytest.mark.parametrize("time", [253_402_300_800_000, -62_135_596_800_001, 2**63 - 1, -(2**63)])
def test_times_outside_four_digit_years_are_milliseconds(time: int) -> None:
    assert lines(pa.array([time], pa.timestamp("ms", "UTC"))) == [of_integer(time)]


def test_times_without_a_zone_are_written_without_one() -> None:
    assert lines(pa.array([0], pa.timestamp("ms"))) == ["1970-01-01T00:00:00.000"]


@given(st.lists(st.none() | st.lists(st.fixed_dictionaries({"key": st.text(), "value": some_bytes}))))
def test_headers_keep_their_order_and_repeats(rows: list[list[dict[str, Any]] | None]) -> None:
    expected = [
        None if headers is None else [{"key": header["key"], "value": of_bytes(header["value"])} for header in headers]
        for headers in rows
    ]
    assert lines(pa.array(rows, HEADERS)) == expected


@pytest.mark.parametrize(
    ("type", "bits", "expected"),
    [
        ("string", b"acme", "acme"),
        ("string", b"\xff", {"type": "string", "base64": "/w=="}),
        ("int32", b"\0\0\0\3", {"type": "int32", "value": 3}),
        ("int32", b"\0\0\3", {"type": "int32", "base64": "AAAD"}),
        ("int64", b"\x7f" + b"\xff" * 7, {"type": "int64", "value": str(2**63 - 1)}),
        ("uint64", b"\xff" * 8, {"type": "uint64", "value": str(2**64 - 1)}),
        ("int128", b"\xff" * 16, {"type": "int128", "value": -1}),
        ("uint128", b"\xff" * 16, {"type": "uint128", "value": str(2**128 - 1)}),
        ("bool", b"\1", {"type": "bool", "value": True}),
        ("bool", b"\2", {"type": "bool", "base64": "Ag=="}),
        ("char", b"\0a", {"type": "char", "value": "a"}),
        ("char", b"\xd8\0", {"type": "char", "base64": "2AA="}),
        ("float32", struct.pack(">f", 0.1), {"type": "float32", "value": 0.1}),
        ("float64", struct.pack(">d", -math.inf), {"type": "float64", "value": "-Infinity"}),
        ("float64", struct.pack(">d", math.nan), {"type": "float64", "value": "NaN"}),
        ("float64", b"\x7f\xf8\0\0\0\0\0\1", {"type": "float64", "base64": "f/gAAAAAAAE="}),
        ("binary", b"acme", {"type": "binary", "value": "acme"}),
        ("binary", b"\0\xff", {"type": "binary", "base64": "AP8="}),
        ("type-200", b"acme", {"type": "type-200", "base64": "YWNtZQ=="}),
        ("uuid", bytes(3), {"type": "uuid", "base64": "AAAA"}),
        (None, b"acme", {"base64": "YWNtZQ=="}),
        ("int32", None, None),
    ],
)
def test_typed_keys_and_values_name_their_type(type: str | None, bits: bytes | None, expected: Any) -> None:
    header = {"key_type": type, "key": bits, "type": type, "value": bits}
    assert lines(pa.array([[header]], TYPED_HEADERS)) == [[{"key": expected, "value": expected}]]


@given(st.lists(st.none() | st.lists(st.none() | st.fixed_dictionaries({"code": texts, "header": st.none()}))))
def test_other_lists_and_structs_keep_their_fields(rows: list[Any]) -> None:
    assert lines(pa.array(rows, PLAIN)) == rows


def test_null_values_of_every_type_are_null() -> None:
    types = [pa.null(), pa.bool_(), pa.int8(), pa.float64(), pa.timestamp("ns"), pa.struct([("a", pa.int8())]), HEADERS]
    batch = pa.RecordBatch.from_arrays([pa.nulls(1, type) for type in types], names=[str(type) for type in types])
    assert set(json.loads(_native.json_lines(batch)).values()) == {None}


@given(st.lists(some_bytes, min_size=1), st.data())
def test_slice_has_own_rows(values: list[bytes | None], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    column = pa.array([[{"key": "k", "value": value}] for value in values], HEADERS)
    assert lines(column.slice(start)) == lines(column)[start:]


def test_type_without_json_form_is_rejected_by_name() -> None:
    with pytest.raises(TypeError, match="a column is duration"):
        lines(pa.array([1], pa.duration("s")))


def test_stream_is_rejected() -> None:
    with pytest.raises(TypeError, match="an array is needed, not a stream"):
        _native.json_lines(pa.table({"x": [1]}))
