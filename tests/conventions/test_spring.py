"""Values of headers as Spring Kafka writes and reads them: JSON with and without quotes, and integers of any length.

The tables were made by ``DefaultKafkaHeaderMapper`` of Spring Kafka 3.3.10 and ``JsonKafkaHeaderMapper`` of 4.0.1, which
agree but for text after a JSON value: the former drops it, the latter returns the bytes as they are.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead.operations import DecodeOptions, Select
from letterhead.types import READ_SUFFIXES, SELECT_TYPES
from tests.reference import types

WRITTEN = [
    ("java.lang.String", "acme", "acme"),
    ("java.lang.String", '"text/plain"', "text/plain"),
    ("java.lang.String", "", ""),
    ("org.springframework.util.MimeType", '"text/plain"', "text/plain"),
    ("java.lang.Integer", "3", 3),
    ("java.lang.Long", "4", 4),
    ("java.lang.Byte", "-1", -1),
    ("java.lang.Short", "7", 7),
    ("java.lang.Float", "1.5", 1.5),
    ("java.lang.Double", "1.0E300", 1e300),
    ("java.lang.Double", '"NaN"', math.nan),
    ("java.lang.Double", '"Infinity"', math.inf),
    ("java.lang.Float", '"-Infinity"', -math.inf),
    ("java.lang.Float", '"NaN"', math.nan),
    ("java.lang.Double", "1.0E-5", 1e-5),
    ("java.lang.Boolean", "true", True),
    ("java.lang.Character", '"x"', "x"),
    ("java.util.UUID", '"00010203-0405-0607-0809-0a0b0c0d0e0f"', "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ("java.net.URI", '"http://x"', "http://x"),
    ("java.math.BigDecimal", "1.10", "1.10"),
    ("java.util.Date", '"1970-01-01T00:00:00.000Z"', '"1970-01-01T00:00:00.000Z"'),
    ("java.util.ArrayList", "[1,2]", "[1,2]"),
]
"""Java class, the header that Spring writes for an object of it, and the value."""

READ = [
    ("java.lang.String", '"a\\u0041\\n\\/"', "aA\n/"),
    ("java.lang.String", '"a" ', "a"),
    ("java.lang.String", ' "a"', ' "a"'),
    ("java.lang.String", '"\\ud83d\\ude00"', "\U0001f600"),
    ("java.lang.String", "null", "null"),
    ("java.lang.String", "'a'", "'a'"),
    ("java.lang.Integer", " 3 ", 3),
    ("java.lang.Integer", '"3"', 3),
    ("java.lang.Integer", '""', None),
    ("java.lang.Integer", '" 4 "', 4),
    ("java.lang.Integer", "null", None),
    ("java.lang.Integer", '"null"', None),
    ("java.lang.Integer", "-2147483648", -(1 << 31)),
    ("java.lang.Long", '"9223372036854775807"', (1 << 63) - 1),
    ("java.lang.Boolean", '"TRUE"', True),
    ("java.lang.Boolean", '"True"', True),
    ("java.lang.Boolean", '" true "', True),
    ("java.lang.Boolean", "null", None),
    ("java.lang.Double", '"INF"', math.inf),
    ("java.lang.Double", '"-INF"', -math.inf),
    ("java.lang.Double", '"1.5"', 1.5),
    ("java.lang.Double", '".5"', 0.5),
    ("java.lang.Double", '"5."', 5.0),
    ("java.lang.Double", '"+1"', 1.0),
    ("java.lang.Double", "null", None),
    ("java.lang.Character", '""', None),
    ("java.util.UUID", '"00010203-0405-0607-0809-0A0B0C0D0E0F"', "00010203-0405-0607-0809-0a0b0c0d0e0f"),
]
"""The same for what Spring reads, and does not write."""

BYTES = [
    ("java.lang.String", '"'),
    ("java.lang.String", '"a\nb"'),
    ("java.lang.String", '"\\x"'),
    ("java.lang.String", '"\\u00"'),
    ("java.lang.String", '"\\\'"'),
    ("java.lang.String", '"a"x'),
    ("java.lang.String", '"a""b"'),
    ("java.lang.Integer", "2147483648"),
    ("java.lang.Integer", "+3"),
    ("java.lang.Integer", "007"),
    ("java.lang.Integer", '"3.5"'),
    ("java.lang.Integer", ""),
    ("java.lang.Integer", "[3]"),
    ("java.lang.Integer", "3 x"),
    ("java.lang.Long", "9223372036854775808"),
    ("java.lang.Byte", "256"),
    ("java.lang.Short", "32768"),
    ("java.lang.Boolean", '"tRue"'),
    ("java.lang.Double", ".5"),
    ("java.lang.Double", "5."),
    ("java.lang.Double", "NaN"),
    ("java.lang.Double", '"+Infinity"'),
    ("java.lang.Double", '"1.5f"'),
    ("java.lang.Double", '"nan"'),
    ("java.lang.Character", '"xy"'),
    ("java.util.UUID", '"x"'),
]
"""What Spring returns as bytes, as it is no JSON of the class."""


def read(java: str, value: str, **options: Any) -> Any:
    columns = lh.spring_columns(f'{{"x": "{java}"}}')
    return lha.select(pa.array([lh.encode([("x", value)], "kafka")]), columns, **options)


def same(left: Any, right: Any) -> bool:
    return left == right or (isinstance(left, float) and math.isnan(left) and math.isnan(right))


@pytest.mark.parametrize(("java", "value", "expected"), [*WRITTEN, *READ])
def test_java_class_header_is_read_as_spring_does(java: str, value: str, expected: Any) -> None:
    assert same(read(java, value).field("x")[0].as_py(), expected)


@pytest.mark.parametrize(("java", "value"), BYTES)
def test_invalid_json_is_text_for_string_and_error_for_number(java: str, value: str) -> None:
    row = read(java, value, errors="column")[0].as_py()
    if java == "java.lang.String":
        assert row == {"x": value, "error": None}
    else:
        assert (row["x"], row["error"][0]["code"]) == (None, row["error"][0]["code"])
        assert row["error"][0]["code"] in ("bad_text", "out_of_range")


@pytest.mark.parametrize(
    ("java", "value"),
    [("java.lang.Integer", "3.7"), ("java.lang.Byte", "255"), ("java.lang.Boolean", "2"), ("java.lang.Integer", "1e2")],
)
def test_value_that_jackson_would_change_raises(java: str, value: str) -> None:
    with pytest.raises(lh.DecodeError) as raised:
        read(java, value)
    assert raised.value.code in ("bad_text", "out_of_range")


JSON = st.one_of(
    st.sampled_from([value for _, value, *_ in [*WRITTEN, *READ, *BYTES]]),
    st.text('"\\/u0dae ntrf1.-+EN', max_size=12),
    st.text(max_size=4).map(lambda text: f'"{text}"'),
).map(str.encode) | st.binary(max_size=4)


LISTS = st.lists(st.integers(-130, 260) | st.integers(-128, 127), max_size=5).map(lambda numbers: str(numbers).encode())
LISTS |= st.text("[]0123456789-, .", max_size=10).map(str.encode)


@pytest.mark.parametrize("name", SELECT_TYPES)
@given(data=JSON | LISTS)
def test_json_decodes_like_reference(name: str, data: bytes) -> None:
    compare(f"{name}:json", data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[65, -61]", b"A\xc3"),
        ("[65,195]", b"A\xc3"),
        (" [ ] ", b""),
        ("[-128, 127]", b"\x80\x7f"),
        ('"Qcs="', b"A\xcb"),
        ('""', b""),
        ("null", None),
        ("[195, -61]", "bad_text"),
        ("[256]", "bad_text"),
        ("[-129]", "bad_text"),
        ("[1.0]", "bad_text"),
        ("[1,]", "bad_text"),
        ("[true]", "bad_text"),
        ("[null]", "bad_text"),
        ("[65] x", "bad_text"),
        ("65", "bad_text"),
        ('"?"', "bad_text"),
        ("", "bad_text"),
    ],
)
def test_bytes_are_read_from_json_lists(text: str, expected: Any) -> None:
    row = lha.select(pa.array([lh.encode([("x", text)], "kafka")]), {"x": "binary:json"}, errors="column")[0].as_py()
    if isinstance(expected, str):
        assert (row["x"], row["error"][0]["code"]) == (None, expected)
        assert "195" not in row["error"][0]["message"]
    else:
        assert (row["x"], row["error"]) == (expected, None)


INTEGERS = [name for name in SELECT_TYPES if name in types.INTEGERS]


@pytest.mark.parametrize("name", INTEGERS)
@given(data=st.binary(max_size=18) | st.integers(-(1 << 70), 1 << 70).map(lambda n: n.to_bytes(17, "big", signed=True)))
def test_integers_of_any_length_decode_like_reference(name: str, data: bytes) -> None:
    compare(f"{name}:varlen", data)


def compare(type: str, data: bytes) -> None:
    column = pa.array([lh.encode([("x", data)], "kafka")])
    for dialect in ("arrow", "spark"):
        row = Select("kafka", {"x": type}, DecodeOptions(errors="column"), dialect=dialect)(column)
        try:
            expected, code = types.read(type, data, dialect=dialect), None
        except types.Misfit as misfit:
            expected, code = None, misfit.code
        values = row.field("x")
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        assert (row.field("error")[0].as_py() or [{"code": None}])[0]["code"] == code
        value = values[0].as_py()
        if isinstance(value, float) and type.startswith("float32") and math.isfinite(value):
            assert value == pytest.approx(expected, rel=1e-6, abs=1e-44)
        else:
            assert same(value, expected)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("018bcfe5687b", 1_700_000_000_123),  # BigInteger.valueOf(…).toByteArray()
        ("0000018bcfe5687b", 1_700_000_000_123),
        ("00", 0),
        ("ff", -1),
        ("00ff", 255),
        ("ffffffffffffffffffff", -1),
    ],
)
def test_retry_topic_time_has_java_byte_length(data: str, expected: int) -> None:
    block = lh.encode([("retry_topic-original-timestamp", bytes.fromhex(data))], "kafka")
    column = lha.select(pa.array([block]), lh.profile("spring-retry")).field("first_timestamp")
    assert column.cast(pa.int64())[0].as_py() == expected


@pytest.mark.parametrize(("data", "code"), [("", "wrong_size"), ("7fffffffffffffff00", "out_of_range")])
def test_number_of_any_length_fits_its_type(data: str, code: str) -> None:
    block = lh.encode([("x", bytes.fromhex(data))], "kafka")
    with pytest.raises(lh.DecodeError) as raised:
        lh.select(block, {"x": "int64:varlen"})
    assert raised.value.code == code


@pytest.mark.parametrize("data", ["03", "00000003"])
def test_retry_topic_attempts_have_one_or_four_bytes(data: str) -> None:
    block = lh.encode([("retry_topic-attempts", bytes.fromhex(data))], "kafka")
    assert lh.select(block, lh.profile("spring-retry"))["attempts"] == 3


@pytest.mark.parametrize("suffix", READ_SUFFIXES)
def test_read_only_encodings_are_not_converted(suffix: str) -> None:
    with pytest.raises(ValueError, match="values are read so, and not converted from it"):
        lh.convert(lh.encode([("x", b"3")], "kafka"), "kafka", target="iggy", types={"x": f"int64:{suffix}"})


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("float64:varlen", "only integers and times have a variable length"),
        ("uuid:varlen", "only integers and times have a variable length"),
        ("string:varlen", "only integers and times have a variable length"),
        ("int64:jsn", "did you mean 'json'"),
    ],
)
def test_types_without_encoding_are_rejected(type: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lh.field(type)
    if "did you mean" not in message:
        with pytest.raises(ValueError, match=message):
            types.parse(type)
