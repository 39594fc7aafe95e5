"""``letterhead.testing``: what is drawn fits its format, and a difference is told so that it can be seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead import testing
from tests.helpers import environments
from tests.helpers.strategies import BATCHES, BLOCKS, WRITTEN, few

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


# What is drawn. --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", WRITTEN)
@few
@given(data=st.data())
def test_drawn_messages_round_trip(format: str, data: st.DataObject) -> None:
    message = data.draw(testing.messages(format))
    read = lh.decode(lh.encode(message, format), format)
    if isinstance(message, lh.Headers):
        testing.assert_headers_equal(read, message)
        return
    # A message of the drafts that has no value and no headers has null headers.
    testing.assert_headers_equal(read.headers or lh.Headers(), message.headers)
    for name in ("key", "value", "payload", "timestamp", "offset", "id"):
        assert getattr(read, name, None) == getattr(message, name, None), name


@pytest.mark.parametrize("format", WRITTEN)
@few
@given(data=st.data())
def test_encoded_messages_are_valid(format: str, data: st.DataObject) -> None:
    assert lh.validate(data.draw(testing.encoded(format)), format) == []


@pytest.mark.parametrize("format", BLOCKS)
@few
@given(data=st.data())
def test_single_header_of_drawn_key_and_value_round_trips(format: str, data: st.DataObject) -> None:
    header = (data.draw(testing.keys(format)), data.draw(testing.values(format)))
    assert lh.decode(lh.encode([header], format), format) == lh.Headers([header])


def test_known_problem_headers_are_drawn() -> None:
    drawn = testing.headers("kafka")
    unshrunk = settings(max_examples=2_000, phases=[Phase.generate])
    for is_drawn in (
        lambda headers: len(headers.unique()) < len(headers) > 2,
        lambda headers: None in [value for _, value in headers] and b"" in [value for _, value in headers],
        lambda headers: any(not key.isascii() for key, _ in headers),
        lambda headers: len(headers) == 0,
    ):
        assert is_drawn(find(drawn, is_drawn, settings=unshrunk))
    types = [
        find(testing.values("iggy"), lambda value, type=type: value.type == type, settings=unshrunk)
        for type in ("int8", "uint128")
    ]
    assert [value.type for value in types] == ["int8", "uint128"]


@pytest.mark.parametrize("strategy", [testing.headers, testing.keys, testing.values, testing.messages, testing.encoded])
def test_invalid_strategy_arguments_are_rejected(strategy) -> None:
    with pytest.raises(ValueError, match="unknown format 'kafak': did you mean 'kafka'"):
        strategy("kafak")
    for format in [*BATCHES, "iggy-auto"]:
        with pytest.raises(ValueError, match=format):
            strategy(format)


def test_missing_hypothesis_names_package_to_install(tmp_path: Path) -> None:
    python = environments.environment(tmp_path / "poor", lambda name: not name.startswith("hypothesis"))
    environments.install(environments.packed(tmp_path), tmp_path / "poor")
    program = (
        "from letterhead import testing\n"
        "testing.assert_headers_equal([('k', b'v')], [('k', b'v')])\n"
        "try:\n    testing.headers\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [python, "-c", program], env=environments.clean(), capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "letterhead.testing.headers needs hypothesis: pip install hypothesis\n"
    program = "import sys; from letterhead.testing import assert_headers_equal; print('hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "False\n"


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'heders'"):
        _ = testing.heders
    assert set(testing.__all__) <= set(dir(testing))


# A comparison. ---------------------------------------------------------------------------------------------------------


def told(left, right) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        testing.assert_headers_equal(left, right)
    return str(caught.value).splitlines()


def test_equal_headers_pass() -> None:
    headers = [("k", b"v"), ("k", None), ("é", b""), ("n", lh.Int8(1))]
    testing.assert_headers_equal(lh.Headers(headers), headers)
    testing.assert_headers_equal(lh.Headers(headers).frozen(), headers)
    testing.assert_headers_equal({"k": b"v"}, [("k", "v")])
    testing.assert_headers_equal(None, None)
    testing.assert_headers_equal([], lh.Headers())


@given(testing.headers("iggy"), testing.headers("iggy"))
def test_assertion_passes_exactly_if_headers_are_equal(left: lh.Headers, right: lh.Headers) -> None:
    testing.assert_headers_equal(left, lh.Headers(left))
    if left != right:
        assert told(left, right)[0] == "headers differ (left -, right +)"


@pytest.mark.parametrize(
    ("left", "right", "lines"),
    [
        ([("k", None)], [("k", b"")], ["- 0  'k' = null", "+ 0  'k' = empty",
                                       "header 0: the value is null, and on the right empty"]),
        ([("k", b"ab")], [("k", b"a\xff")], ["- 0  'k' = 'ab'", "+ 0  'k' = 61ff",
                                             "header 0: the values differ from byte 1 on"]),
        ([("k", b"ab")], [("k", b"abc")], ["- 0  'k' = 'ab'", "+ 0  'k' = 'abc'",
                                           "header 0: the values differ from byte 2 on (2 and 3 bytes)"]),
        ([("k", lh.Int32(3))], [("k", b"\0\0\0\3")], ["- 0  'k' = int32:00000003", "+ 0  'k' = 00000003",
                                                      "header 0: the type is int32, and on the right no type"]),
        ([("k", lh.Int32(3))], [("k", lh.UInt32(3))], ["- 0  'k' = int32:00000003", "+ 0  'k' = uint32:00000003",
                                                       "header 0: the type is int32, and on the right uint32"]),
        ([("k", lh.Float64(0.0))], [("k", lh.Float64(-0.0))],
         ["- 0  'k' = float64:0000000000000000", "+ 0  'k' = float64:8000000000000000",
          "header 0: the values differ from byte 0 on"]),
        ([("a", b"1"), ("b", b"2")], [("b", b"2"), ("a", b"1")],
         ["+ 0  'b' = '2'", "  1  'a' = '1'", "- 1  'b' = '2'",
          "the headers are the same, in another order"]),
        ([("a", b"1"), ("a", b"2")], [("a", b"2")], ["- 0  'a' = '1'", "  0  'a' = '2'",
         "the last value of every key is the same: repeated headers are missing"]),
        ([("a", b"1")], [("a", b"1"), ("b", b"2")], ["  0  'a' = '1'", "+ 1  'b' = '2'"]),
        ([(3, b"1")], [("3", b"1")], ["- 0  3 = '1'", "+ 0  '3' = '1'"]),
        ([(lh.Int32(3), b"1")], [(lh.Int64(3), b"1")],
         ["- 0  int32:00000003 = '1'", "+ 0  int64:0000000000000003 = '1'"]),
        ([("k", "é")], [("k", "e\u0301")], ["- 0  'k' = 'é' (c3a9)", "+ 0  'k' = 'e\u0301' (65cc81)",
         "header 0: the values differ from byte 0 on (2 and 3 bytes)"]),
        ([("k", b"a" * 70)], [], ["- 0  'k' = '" + "a" * 64 + "'… 70 bytes"]),
        ([("k", b"\1" * 40)], [("k", b"\1" * 39 + b"\2")],
         ["- 0  'k' = " + "01" * 32 + "… 40 bytes", "+ 0  'k' = " + "01" * 32 + "… 40 bytes",
          "header 0: the values differ from byte 39 on"]),
    ],
)  # fmt: skip
def test_difference_is_reported(left, right, lines) -> None:
    assert told(left, right) == ["headers differ (left -, right +)", *lines]


def test_null_headers_differ_from_empty() -> None:
    assert told(None, []) == ["headers differ (left -, right +)", "- null", "+ no headers, not null"]
    assert told([("a", b"")], None) == ["headers differ (left -, right +)", "- 1 headers", "+ null"]


def test_columns_are_compared_row_by_row() -> None:
    left = pa.array([[{"key": "k", "value": b"v"}], None, [], [{"key": "k", "value": None}]], HEADERS)
    right = pa.array([[{"key": "k", "value": b"v"}], [], [], [{"key": "k", "value": b""}]], HEADERS)
    testing.assert_headers_equal(left, pa.chunked_array([left[:1], left[1:]]))
    assert told(left, right) == [
        "headers differ in 2 of 4 rows (left -, right +)",
        "row 1:", "- null", "+ no headers, not null",
        "row 3:", "- 0  'k' = null", "+ 0  'k' = empty", "header 0: the value is null, and on the right empty",
    ]  # fmt: skip
    assert told(left, left[:2]) == ["the left has 4 rows, the right 2"]
    many = pa.array([[{"key": "k", "value": bytes([n])}] for n in range(9)], HEADERS)
    assert told(many, many[::-1])[-1] == "and 3 more rows"


def test_columns_of_every_form_and_library_are_compared() -> None:
    import polars as pl

    headers = [("n", lh.Int8(7)), (lh.Int32(3), lh.UInt64(2**64 - 1)), ("n", lh.String("x"))]
    messages = pa.array([lh.encode(headers, "iggy"), lh.encode([], "iggy")])
    typed = lha.decode(messages, "iggy")
    testing.assert_headers_equal(typed, pl.Series(typed))
    testing.assert_headers_equal(typed, lha.decode(pl.Series(messages), "iggy"))
    other = lha.decode(pa.array([lh.encode([*headers[:2], ("n", lh.String("y"))], "iggy"), b""]), "iggy")
    assert told(typed, other)[-3:] == [
        "- 2  'n' = string:78", "+ 2  'n' = string:79", "header 2: the values differ from byte 0 on",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (pa.array([[]], HEADERS), [("k", b"v")], "one side has the headers of one message, and the other of many"),
        ([("k", b"v")], pa.array([[]], HEADERS), "one side has the headers of one message, and the other of many"),
        (pa.array([[]], HEADERS), None, "one side has many rows, and the other is None"),
        (pa.array([b""]), pa.array([b""]), "a column of headers is a list of structs with key and value, not binary"),
        (
            [("k", 1)],
            [],
            "the value of a header must be bytes, str, None or a Value, not int: a number is lh.Int32(3) in a format with types, and lh.Int32(3).bits or '3' in one without",
        ),
    ],
)
def test_non_headers_raise_type_error(left, right, message) -> None:
    with pytest.raises(TypeError) as caught:
        testing.assert_headers_equal(left, right)
    assert str(caught.value) == message
