"""Scans: counts, merging of parts, and suggested types with their evidence."""

from __future__ import annotations

import doctest
import importlib
import itertools
import json
import random
import re
import struct
import uuid
import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead.scan import Scan
from letterhead.scan.column import _pieces
from letterhead.scan.costs import _floats_cost
from letterhead.scan.guesses import CONFIDENCES
from letterhead.scan.key import find_tied_types, percent, select_type
from letterhead.scan.readings import CANDIDATE_TYPES
from letterhead.scan.sketch import Histogram, Sample
from letterhead.scan.statistics import Statistics

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
ROWS = 400

TRUE_TYPES = {
    "traceparent": "string", "tracestate": "string", "ce_id": "string", "ce_type": "string", "ce_source": "string",
    "ce_specversion": "string", "__value_schema_id": "binary", "tenant": "string", "retry": "int32",
    "amount_cents": "int64", "weight_kg": "float64", "route": "string", "note": "string", "blob": "binary",
    "señal-📦": "string",
}  # fmt: skip


@pytest.fixture(scope="module")
def orders(samples) -> Any:
    return pq.read_table(samples / "orders-0.parquet")["headers"]


@pytest.fixture(scope="module")
def topic_scan(orders) -> Scan:
    return lha.scan(orders, "kafka")


def scan_of(values: list[bytes | None]) -> Any:
    """Scan messages with one header each."""
    return lha.scan(pa.array([[{"key": "k", "value": value}] for value in values], HEADERS), "kafka")["k"]


@pytest.mark.parametrize("module", ["scan", "scan.key", "scan.report", "scan.costs"])
def test_scan_examples_run(module):
    result = doctest.testmod(importlib.import_module(f"letterhead.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


# What is counted. ------------------------------------------------------------------------------------------------------


def test_sample_topic_counts_match_plain_python(orders, topic_scan):
    rows = orders.to_pylist()
    assert (topic_scan.statistics.rows, topic_scan.statistics.bad_rows) == (len(rows), 0)
    assert topic_scan.statistics.null_rows == sum(row is None for row in rows)
    assert topic_scan.statistics.empty_rows == sum(row == [] for row in rows)
    for key in {header["key"] for row in rows for header in row or []}:
        headers = [
            (place, header["value"]) for row in rows for place, header in enumerate(row or []) if header["key"] == key
        ]
        values = [value for _, value in headers if value is not None]
        per_row = [count for row in rows if (count := sum(header["key"] == key for header in row or []))]
        sizes, places = sorted(map(len, values)), sorted(place for place, _ in headers)
        seen = topic_scan[key].statistics
        assert (seen.headers, seen.rows, seen.nulls) == (len(headers), len(per_row), len(headers) - len(values)), key
        assert (seen.repeated, seen.most) == (sum(count > 1 for count in per_row), max(per_row)), key
        assert (seen.sizes.low, seen.sizes.high, seen.sizes.total) == (sizes[0], sizes[-1], sum(sizes)), key
        middle = sizes[(len(sizes) - 1) // 2]
        assert middle / 1.07 <= seen.sizes.median() <= middle, key
        assert (seen.positions.low, seen.positions.median()) == (places[0], places[(len(places) - 1) // 2]), key
        assert seen.distinct == pytest.approx(len(set(values)), rel=0.3), key
        times = Counter(values)
        assert all(times[value.head] == value.count for value in seen.sample.values.values() if value.whole), key


@pytest.mark.parametrize("format", ["kafka", "kip82-typed", "kip82-int", "iggy", "iggy-2023"])
def test_bytes_and_decoded_lists_scan_equally(format):
    key = 7 if format == "kip82-int" else "k"
    value = lh.Int32(3) if format != "kafka" and format != "kip82-int" else b"\x00\x00\x00\x03"
    messages = pa.array([lh.encode([(key, value), (key, value)], format), None])
    of_bytes, of_lists = lha.scan(messages, format), lha.scan(lha.decode(messages, format), format)
    assert of_bytes.to_dict() == of_lists.to_dict()
    seen = of_bytes[key].statistics
    assert (seen.headers, seen.rows, seen.repeated, of_bytes.statistics.null_rows) == (2, 1, 1, 1)
    assert of_bytes[key].guesses[0].type == "int32"


def test_polars_chunks_and_slices_scan_equally(orders, topic_scan):
    assert lha.scan(pl.Series(orders), "kafka").to_dict() == topic_scan.to_dict()
    halves = pa.chunked_array([orders.chunk(0).slice(0, 3000), orders.chunk(0).slice(3000)])
    assert lha.scan(halves, "kafka").to_dict() == topic_scan.to_dict()
    tail = orders.chunk(0).slice(9990)
    assert lha.scan(tail, "kafka").to_dict() == lha.scan(pa.array(tail.to_pylist(), HEADERS), "kafka").to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["bytes", "list"])
def test_iterator_of_arrays_is_scanned_like_whole_column(orders, form):
    column = orders if form == "list" else lha.encode(orders, "kafka")
    parts = [column.slice(0, 3000), pl.Series(column.slice(3000, 4000)), column.slice(7000).combine_chunks()]
    assert lha.scan(iter(parts), "kafka").to_dict() == lha.scan(column, "kafka").to_dict()
    assert lha.scan(na.c_array_stream(column), "kafka").to_dict() == lha.scan(column, "kafka").to_dict()
    # What the operations make of a stream that is not of pyarrow.
    blocks = pl.Series(lha.encode(orders, "kafka"))
    assert lha.scan(lha.decode(blocks, "kafka"), "kafka").to_dict() == lha.scan(blocks, "kafka").to_dict()
    assert lha.scan(iter([]), "kafka").statistics.rows == 0


@pytest.mark.parametrize("form", ["bytes", "list"])
def test_arrays_of_an_iterator_are_released_after_reading(form):
    blocks: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def array_of(data: Any) -> Any:
        places = pa.array(np.arange(0, len(data) + 1, 4, np.int32)).buffers()[1]
        return pa.Array.from_buffers(pa.binary(), len(data) // 4, [None, places, pa.py_buffer(data)])

    def arrays() -> Any:
        for _ in range(30):
            alive.append(sum(block() is not None for block in blocks))
            # A block of one header with an empty value, over and over; or four bytes as a value each time.
            data = np.frombuffer(bytes.fromhex("02026b00") * 30_000, np.uint8).copy()
            blocks.append(weakref.ref(data))
            array = array_of(data)
            del data
            if form == "list":
                keys = pa.array(["k"] * len(array))
                headers = pa.StructArray.from_arrays([keys, array], fields=list(HEADERS.value_type))
                array = pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), headers, type=HEADERS)
                del headers
            yield array
            del array

    topic_scan = lha.scan(arrays(), "kafka")["k"].statistics
    assert (topic_scan.headers, topic_scan.sizes.total) == (900_000, 0 if form == "bytes" else 3_600_000)
    assert alive[0] == 0
    # Small arrays are scanned together.
    assert max(alive) <= 3


def test_iterator_row_numbers_continue_over_arrays():
    good, bad = pa.array([lh.encode([("k", b"v")], "kafka")] * 3), pa.array([b"", b"\x01"])
    with pytest.raises(lh.DecodeError, match="row 4") as raised:
        lha.scan(iter([good, bad]), "kafka", errors="raise")
    assert (raised.value.code, raised.value.row) == ("negative_count", 4)


@pytest.mark.parametrize("column", [b"\x00", [b"\x00"], iter([b"\x00"]), None])
def test_non_columns_are_rejected(column):
    with pytest.raises(TypeError, match=r"a column is any Arrow array or stream .*, and this is "):
        lha.scan(column, "kafka")


def test_damaged_messages_are_counted_or_raised():
    good = lh.encode([("k", b"v")], "kafka")
    messages = pa.array([good, b"\x01", good, b"\x02\x02"])
    seen = lha.scan(messages, "kafka").statistics
    assert (seen.rows, seen.bad_rows, sum(seen.errors.values())) == (4, 2, 2)
    assert seen.errors["negative_count"] == 1
    with pytest.raises(lh.DecodeError, match="row 1") as raised:
        lha.scan(messages, "kafka", errors="raise")
    assert raised.value.code == "negative_count"


@pytest.mark.parametrize("form", ["bytes", "list", "batch"])
def test_errors_name_column_row(form):
    good = lh.encode([("k", b"v")], "kafka")
    if form == "bytes":
        column, format = pa.array([good] * 10_007 + [b"\x01"], pa.binary()), "kafka"
    elif form == "list":
        column, format = (
            pa.array([[{"key": "k", "value": b"v"}]] * 10_007 + [[{"key": None, "value": b""}]], HEADERS),
            "kafka",
        )
    else:
        message = lh.encode(lh.Message(offset=1, key=None, value=b"v", headers={"n": lh.Int8(1)}), "kip82-message")
        column, format = pa.array([message * 2] * 10_007 + [message + b"\x00"], pa.binary()), "kip82-messages"
    with pytest.raises(lh.DecodeError) as raised:
        lha.scan(column, format, errors="raise")
    assert (raised.value.row, raised.value.format) == (10_007, format)


def test_header_without_key_raises():
    column = pa.array([[{"key": None, "value": b"x"}, {"key": "k", "value": b"y"}, None], []], HEADERS)
    seen = lha.scan(column, "kafka").statistics
    assert (seen.bad_rows, seen.errors, list(seen.keys)) == (1, {"null_key": 2}, ["k"])
    assert seen.keys["k"].positions.counts == {1: 1}
    with pytest.raises(lh.DecodeError, match="row 0"):
        lha.scan(column, "kafka", errors="raise")


def test_columns_of_other_types_are_rejected():
    with pytest.raises(TypeError, match="what fits is list<element: struct<key: string, value: binary>>"):
        lha.scan(pa.array([[{"key": "k", "v": b""}]]), "kafka")
    with pytest.raises(ValueError, match="unknown format 'kafak'"):
        lha.scan(pa.array([b""]), "kafak")
    with pytest.raises(ValueError, match="errors"):
        lha.scan(pa.array([b""]), "kafka", errors="count")
    with pytest.raises(ValueError, match="max_keys"):
        lha.scan(pa.array([b""]), "kafka", max_keys=0)


# Parts add up. ---------------------------------------------------------------------------------------------------------

PART = st.lists(
    st.none()
    | st.lists(
        st.tuples(st.sampled_from("abc"), st.none() | st.binary(max_size=9) | st.binary(min_size=60, max_size=90)),
        max_size=4,
    ),
    max_size=8,
)


def scan_rows(rows: list[Any]) -> Scan:
    lists = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    return lha.scan(pa.array(lists, HEADERS), "kafka")


@given(PART, PART, PART)
def test_parts_add_up_to_whole_in_any_order(first, two, three):
    whole = scan_rows(first + two + three)
    a, b, c = map(scan_rows, (first, two, three))
    assert a.merge(b).merge(c).statistics == whole.statistics
    assert c.merge(a.merge(b)).statistics == whole.statistics
    assert a.statistics == scan_rows(first).statistics


@pytest.mark.slow
def test_parts_of_topic_add_up(orders, topic_scan):
    parts = [lha.scan(orders.slice(row, 700), "kafka") for row in range(0, len(orders), 700)]
    random.Random(1).shuffle(parts)
    whole = Scan("kafka", Statistics())
    for part in parts:
        whole = whole.merge(part)
    assert whole.to_dict() == topic_scan.to_dict()


def test_scans_of_different_formats_do_not_add_up():
    with pytest.raises(ValueError, match="a scan of kafka and one of iggy do not add up"):
        Scan("kafka", Statistics()).merge(Scan("iggy", Statistics()))


@given(st.lists(st.integers(0, 1 << 31), min_size=1))
def test_histogram_is_bounded_and_close(numbers):
    result = Histogram()
    result.add(Counter(numbers))
    assert (result.low, result.high, result.total, result.count) == (
        min(numbers),
        max(numbers),
        sum(numbers),
        len(numbers),
    )
    middle = sorted(numbers)[(len(numbers) - 1) // 2]
    assert middle / 1.07 <= result.median() <= middle


def test_sample_keeps_exact_counts_and_estimates_rest():
    result = Sample()
    values = pa.array([b"%d" % n for n in range(50_000)])
    result.add(values, np.arange(50_000) % 5 + 1)
    result.add(values, np.ones(50_000, int))
    assert len(result.values) == result.max_values
    assert all(value.count == int(value.head) % 5 + 2 for value in result.values.values())
    assert result.distinct == pytest.approx(50_000, rel=0.3)


def test_dropped_keys_are_counted():
    rows = [[("often", b"v"), (f"key-{n}", b"v")] for n in range(300)]
    lists = [[{"key": key, "value": value} for key, value in row] for row in rows]
    result = Scan("kafka", Statistics(max_keys=5))
    for row in range(0, 300, 50):
        result = result.merge(lha.scan(pa.array(lists[row : row + 50], HEADERS), "kafka", max_keys=5))
    assert len(result.statistics.keys) == 5
    seen = result["often"].statistics
    assert (seen.headers, seen.rows, seen.exact) == (300, 300, True)
    assert not any(counts.exact for key, counts in result.statistics.keys.items() if key != "often")
    counted = sum(counts.headers for counts in result.statistics.keys.values())
    assert counted + result.statistics.more_headers == 600
    assert result.more_keys == pytest.approx(296, rel=0.2)
    assert f"and about {result.more_keys} more keys, whose {result.statistics.more_headers} headers" in repr(result)
    assert "# 5 keys" not in result.code()
    assert "more keys" in result.code()


def test_statistics_have_a_bounded_size():
    import pickle

    values = [random.Random(n).randbytes(5000) for n in range(2000)]
    result = lha.scan(pa.array([[{"key": "k", "value": value}] for value in values], HEADERS), "kafka")
    assert len(pickle.dumps(result.statistics)) < 40_000


# Guesses. --------------------------------------------------------------------------------------------------------------


def test_true_type_of_every_sample_key_is_first(topic_scan):
    assert {key.key: key.guesses[0].type for key in topic_scan.keys} == TRUE_TYPES


def test_evidence_covers_all_rows(topic_scan):
    first = topic_scan["amount_cents"].guesses[0]
    assert (first.type, first.confidence, first.fits, first.values) == ("int64", "strong", 9700, 9700)
    assert first.evidence.startswith(
        "all 9,700 values are 8 bytes; as int64 516 to 4,999,974; as float64 all 9,700 are subnormal, NaN, or beyond"
    )
    assert "as float64 0.104 to 39.999" in topic_scan["weight_kg"].guesses[0].evidence
    assert "with the shape of a W3C traceparent" in topic_scan["traceparent"].guesses[0].evidence
    assert "with the shape of a schema id" in topic_scan["__value_schema_id"].guesses[0].evidence


Make = Callable[[random.Random], bytes]


def uuid_of(version: int, draw: random.Random) -> bytes:
    random_bits = draw.getrandbits(128) & ~(0xF << 76 | 0x3 << 62)
    return (random_bits | version << 76 | 0b10 << 62).to_bytes(16, "big")


def big(least: int, end: int, width: int) -> Make:
    return lambda draw: draw.randrange(least, end).to_bytes(width, "big", signed=least < 0)


CLEAR: dict[str, tuple[Make, str]] = {
    "long": (big(0, 10**6, 8), "int64"),
    "negative long": (big(-1000, 1000, 8), "int64"),
    "long of 52 bits": (big(0, 2**52, 8), "int64"),
    "snowflake": (lambda draw: (1 << 60 | draw.getrandbits(50)).to_bytes(8, "big"), "int64"),
    "nanoseconds": (big(1767225600 * 10**9, 1767312000 * 10**9, 8), "int64"),
    "little-endian": (lambda draw: draw.randrange(1000).to_bytes(4, "little"), "int32:le"),
    "int of 23 bits": (big(0, 2**23, 4), "int32"),
    "short": (big(0, 300, 2), "int16"),
    "int128": (big(0, 10**12, 16), "int128"),
    "double": (lambda draw: struct.pack(">d", draw.gauss(0, 100)), "float64"),
    "little-endian double": (lambda draw: struct.pack("<d", draw.gauss(0, 100)), "float64:le"),
    "whole double": (lambda draw: struct.pack(">d", draw.randrange(1000)), "float64"),
    "float": (lambda draw: struct.pack(">f", draw.uniform(0, 100)), "float32"),
    **{f"uuid of version {version}": (partial(uuid_of, version), "uuid") for version in range(1, 9)},
    "hex text": (lambda draw: draw.randbytes(16).hex().encode(), "string"),
    "hex text of 16 bytes": (lambda draw: draw.randbytes(8).hex().encode(), "string"),
    "hex text of 8 bytes": (lambda draw: draw.randbytes(4).hex().encode(), "string"),
    "digits with zeros in front": (lambda draw: b"%05d" % draw.randrange(10**5), "string"),
    "digits in quotes": (lambda draw: b'"%02d"' % draw.randrange(100), "string"),
    "a letter and digits": (lambda draw: b"A%03d" % draw.randrange(1000), "string"),
    "short of one character": (big(48, 58, 2), "int16"),
    "JSON": (lambda draw: b'{"n": %d}' % draw.randrange(1000), "string"),
}


@pytest.mark.parametrize("name", CLEAR)
def test_true_type_is_strong_if_bytes_show_it(name):
    make, type = CLEAR[name]
    draw = random.Random(name)
    guesses = scan_of([make(draw) for _ in range(ROWS)]).guesses
    assert (guesses[0].type, guesses[0].confidence, guesses[0].fits) == (type, "strong", ROWS)


TIES: dict[str, tuple[Make, set[str]]] = {
    "random 8 bytes": (lambda draw: draw.randbytes(8),
                       {"binary", "int64", "uint64", "int64:le", "uint64:le", "float64", "float64:le"}),
    "random 4 bytes": (lambda draw: draw.randbytes(4),
                       {"binary", "int32", "uint32", "int32:le", "uint32:le", "float32", "float32:le"}),
    "a hash of 16 bytes": (lambda draw: draw.randbytes(16), {"binary", "uuid", "int128", "int128:le"}),
    "8 zero bytes": (lambda draw: bytes(8), {"int64", "int64:le", "float64", "float64:le"}),
    "one byte, 0 or 1": (lambda draw: bytes([draw.randrange(2)]), {"bool", "int8"}),
    "one byte, always 1": (lambda draw: b"\x01", {"bool", "int8"}),
    "true and false": (lambda draw: draw.choice([b"true", b"false"]), {"string", "bool:text"}),
    "digits": (lambda draw: b"%d" % draw.randrange(1, 10**4), {"string", "int64:text"}),
    "8 digits": (lambda draw: b"%d" % draw.randrange(10**7, 10**8), {"string", "int64:text"}),
    "decimals": (lambda draw: b"%.2f" % draw.uniform(1, 100), {"string", "float64:text"}),
    "milliseconds as text": (lambda draw: b"%d" % (1767225600000 + draw.randrange(10**6)),
                             {"string", "int64:text", "timestamp:ms"}),
    "seconds as text": (lambda draw: b"%d" % (1767225600 + draw.randrange(10**6)), {"string", "int64:text", "timestamp:s"}),
    "RFC 3339": (lambda draw: b"2026-01-%02dT08:30:00Z" % draw.randrange(1, 29), {"string", "timestamp:iso"}),
    "dates": (lambda draw: b"2026-01-%02d" % draw.randrange(1, 29), {"string", "date:text"}),
    "uuid as text": (lambda draw: str(uuid.UUID(int=draw.getrandbits(128))).encode(), {"string", "uuid:text"}),
    "empty": (lambda draw: b"", {"string", "binary"}),
}  # fmt: skip


@pytest.mark.parametrize("name", TIES)
def test_types_explaining_values_equally_are_tied(name):
    make, types = TIES[name]
    draw = random.Random(name)
    key = scan_of([make(draw) for _ in range(ROWS)])
    guesses = key.guesses
    assert {guess.type for guess in guesses if guess.confidence == "tie"} == types
    assert all(guess.confidence in ("tie", "possible", "unlikely") for guess in guesses)
    assert [guess.confidence for guess in guesses[: len(types)]] == ["tie"] * len(types)
    assert find_tied_types(key) == [guess.type for guess in guesses[: len(types)]]


@pytest.mark.parametrize("order", ["big", "little"])
def test_digits_among_numbers_are_mixed(order):
    numbers = range(-100, ROWS)
    key = scan_of([b"%d" % number if number % 3 else number.to_bytes(4, order, signed=True) for number in numbers])
    guess = key.guesses[0]
    type = "int32:text | int32" + ("" if order == "big" else ":le")
    assert (guess.type, guess.confidence, guess.fits) == (type, "mixed", len(numbers))
    assert select_type(key) == type
    assert {other.confidence for other in key.guesses[1:]} <= {"possible", "unlikely"}
    column = [lh.encode([("k", b"7")], "kafka"), lh.encode([("k", (7).to_bytes(4, order))], "kafka")]
    assert lha.select(pa.array(column), {"k": type}).field("k").to_pylist() == [7, 7]


def test_words_of_four_letters_among_numbers_are_not_mixed():
    assert scan_of([b"1234", b"abcd"] * ROWS).guesses[0].type == "string"


@pytest.mark.parametrize("code", [">f", ">d"])
def test_negative_floats_cost_as_much_as_positive_ones(code):
    draw = random.Random(code)
    numbers = [draw.gauss(0, 100) for _ in range(ROWS)]
    costs = [_floats_cost([struct.pack(code, sign * number) for number in numbers]) for sign in (1, -1)]
    assert costs[0] == pytest.approx(costs[1])


def test_columns_are_scanned_in_bounded_pieces():
    assert [len(piece) for piece in _pieces(pa.array([b""] * 150_000, pa.binary()))] == [65_536, 65_536, 18_928]
    small = iter([pa.array([b""] * 30_000, pa.binary())] * 5)
    assert [len(piece) for piece in _pieces(small)] == [60_000, 60_000, 30_000]
    large = pa.array([bytes(6 << 20)] * 5, pa.binary())
    assert [len(piece) for piece in _pieces(large)] == [2, 2, 1]


def test_short_arrays_are_scanned_together():
    column = lha.encode(pa.array([[{"key": f"k{n}", "value": b"v"}] for n in range(30)], HEADERS), "kafka")
    single = [column.slice(n, 1) for n in range(len(column))]
    assert [len(piece) for piece in _pieces(iter(single))] == [30]
    assert [len(piece) for piece in _pieces(iter([*single, pa.array([b""], pa.large_binary())]))] == [30, 1]
    assert [len(piece) for piece in _pieces(pa.chunked_array(single * 2500))] == [65_536, 9464]
    large = [pa.array([bytes(6 << 20)], pa.binary())] * 5
    assert [len(piece) for piece in _pieces(iter(large))] == [2, 2, 1]
    assert lha.scan(iter(single), "kafka").to_dict() == lha.scan(column, "kafka").to_dict()


def test_time_is_at_most_likely_and_its_number_stays_possible():
    guesses = scan_of([(1767225600000 + 37 * n).to_bytes(8, "big") for n in range(ROWS)]).guesses
    assert [(guess.type, guess.confidence) for guess in guesses[:2]] == [
        ("timestamp_ms", "likely"),
        ("int64", "possible"),
    ]
    assert "2026-01-01 00:00:00 to 2026-01-01 00:00:14" in guesses[0].evidence


def test_close_doubles_are_likely_and_their_longs_possible():
    guesses = scan_of([struct.pack(">d", 48.1 + n / 1e9 + n**0.5 / 1e6) for n in range(ROWS)]).guesses
    assert [(guess.type, guess.confidence) for guess in guesses[:2]] == [("float64", "likely"), ("int64", "possible")]


@pytest.mark.parametrize("value", [(5).to_bytes(8, "big"), struct.pack(">d", 12.34), struct.pack(">f", 0.1)])
def test_one_distinct_number_is_never_strong(value):
    guesses = scan_of([value] * ROWS).guesses
    assert guesses[0].confidence in ("weak", "likely")
    assert "only 1 distinct" in guesses[0].evidence


@pytest.mark.parametrize(
    ("good", "type"), [(big(0, 4, 4), "int32"), (lambda draw: draw.choice([b"acme", b"globex"]), "string")]
)
def test_damaged_values_do_not_hide_type_of_others(good, type):
    draw = random.Random(9)
    values = [draw.randbytes(draw.randrange(1, 12)) if n % 50 == 0 else good(draw) for n in range(3000)]
    first = scan_of(values).guesses[0]
    assert first.type == type
    assert 2940 <= first.fits < first.values == 3000


@pytest.mark.parametrize("shift", [0, 1])
def test_fits_counts_values_that_select_reads(shift):
    draw = random.Random(shift)
    alphabet = b"0123456789-+.eE truefalsNaN\x00\x01\xd8\xff"
    values = [draw.randbytes(size) for size in (1, 2, 3, 4, 8, 8, 16, 16, 17) for _ in range(12)]
    values += [bytes(draw.choices(alphabet, k=draw.randrange(0, 9))) for _ in range(300)]
    values += [
        b"true",
        b"false",
        b"1",
        b"-12",
        b"007",
        b"1e5",
        b".5",
        b"5.",
        b"+1",
        b"a\n",
        str(uuid.UUID(int=7)).encode(),
    ]
    column = pa.array([[{"key": "k", "value": value}] for value in values], HEADERS)
    tallies = lha.scan(column, "kafka")["k"].statistics.readings
    for reading in CANDIDATE_TYPES:
        name = reading.type
        result = lha.select(column, {"k": name}, errors="column")
        reads = sum(error is None for error in result.field("error").to_pylist())
        fits = tallies[name].fits if name in tallies else 0
        if name == "float64:text":
            # These are not taken for numbers, though select reads them.
            assert fits == reads - sum(value in (b"NaN", b"Infinity", b"-Infinity") for value in values)
        elif name not in ("uint128", "uint128:le", "int128", "int128:le"):
            assert fits == reads, name
        else:
            assert fits <= reads, name


def test_types_of_typed_format_are_stated():
    messages = [lh.encode([("n", lh.Int32(n)), ("m", lh.String("x") if n else lh.Int8(1))], "iggy") for n in range(9)]
    result = lha.scan(pa.array(messages), "iggy")
    [only] = result["n"].guesses
    assert (only.type, only.confidence, only.fits) == ("int32", "stated", 9)
    assert only.evidence == "stated by all 9 values; 0 to 8"
    assert [(guess.type, guess.fits) for guess in result["m"].guesses] == [("string", 8), ("int8", 1)]
    assert "stated, but so are int8: rows with those are errors; 1 of 9 values are not of this type" in result.code()


STATED = [
    (lh.Int8, range(-128, 128)), (lh.Int16, range(-(1 << 15), 1 << 15, 999)), (lh.Int32, (-(1 << 31), (1 << 31) - 1)),
    (lh.Int64, (-(1 << 63), (1 << 63) - 1)), (lh.UInt8, range(256)), (lh.UInt16, (0, 65535)),
    (lh.UInt32, (0, (1 << 32) - 1)), (lh.Float32, (0.5, -2.0)), (lh.Float64, (0.1, 1e300)),
]  # fmt: skip


@pytest.mark.parametrize("classes", [*itertools.combinations(range(len(STATED)), 2), (0, 1, 3), (0, 4, 7), (2, 6, 8)])
def test_type_of_several_stated_numbers_reads_all(classes):
    values = [STATED[number][0](value) for number in classes for value in STATED[number][1]]
    column = pa.array([lh.encode([("n", value)], "iggy") for value in values])
    first, *others = lha.scan(column, "iggy")["n"].guesses
    selected = lha.select(column, {"n": first.type}, format="iggy", errors="column")
    readable = len(values) - sum(error is not None for error in selected.field("error").to_pylist())
    assert first.fits == readable
    has_wide_integers = {3, 6} & {*classes} and {7, 8} & {*classes} and 3 in classes
    assert bool(others) == bool(has_wide_integers)


def test_every_confidence_is_explained(topic_scan):
    assert {guess.confidence for key in topic_scan.keys for guess in key.guesses} <= set(CONFIDENCES)


SHAPED: dict[str, tuple[Make, str, str]] = {
    "an AMQP 1.0 primitive": (lambda draw: b"\xa0\x05" + draw.randbytes(5), "binary", "amqp"),
    "an AMQP 1.0 primitive: long": (lambda draw: b"\x81" + draw.randbytes(8), "binary", "amqp"),
    "an AMQP 1.0 primitive: long binary": (lambda draw: b"\xb0\x00\x00\x01\x02" + draw.randbytes(258), "binary", "amqp"),
    "a schema id": (lambda draw: b"\x00" + draw.randrange(1, 1 << 31).to_bytes(4, "big"), "binary", "schema_id"),
    "an RFC 3339 time": (lambda draw: b"2026-01-01T00:00:%02d.5Z" % draw.randrange(60), "string", "rfc3339"),
    "an RFC 3339 time: no seconds": (lambda draw: b"2026-01-01T00:%02dZ" % draw.randrange(60), "string", "rfc3339"),
    "a W3C traceparent": (lambda draw: f"00-{draw.randbytes(16).hex()}-{draw.randbytes(8).hex()}-01".encode(), "string", "traceparent"),
    "a JSON object, array or string": (lambda draw: b'"%d"' % draw.randrange(100), "string", ""),
}  # fmt: skip


def test_histogram_axes_end_at_extreme_values_and_largest_count():
    pytest.importorskip("matplotlib")
    sizes = [10, 700, *[5000] * 7]
    column = pa.array([[{"key": "k", "value": b"v" * size}] for size in sizes], HEADERS)
    page = lha.scan(column, "kafka").html()
    assert {"10", "5,000", "7"} < set(re.findall(r"<text[^>]*>([0-9,]+)</text>", page))


def test_float_range_keeps_fractions_and_decimal_range_is_whole():
    def readings_of(values):
        column = pa.array([[{"key": "k", "value": value}] for value in values], HEADERS)
        return lha.scan(column, "kafka")["k"].statistics.readings

    floats = readings_of([struct.pack(">d", 0.5), struct.pack(">d", 2.25)])["float64"]
    assert (floats.low, floats.high) == (0.5, 2.25)
    decimals = readings_of([(1 << 70).to_bytes(16, "big"), (1 << 71).to_bytes(16, "big")])["int128"]
    assert (repr(decimals.low), repr(decimals.high)) == (str(1 << 70), str(1 << 71))


@pytest.mark.parametrize(("magic", "more"), [(b"\0", 3), (b"\0", 5), (b"\0", 16), (b"\1", 4), (b"\2", 4), (b"\2", 16)])
def test_bytes_of_wrong_size_or_magic_are_no_schema_ids(magic, more):
    draw = random.Random(more)
    column = pa.array([[{"key": "k", "value": magic + draw.randbytes(more)}] for _ in range(ROWS)], HEADERS)
    assert not any("schema id" in guess.evidence for guess in lha.scan(column, "kafka")["k"].guesses)


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_and_their_readers_are_named(name):
    make, type, function = SHAPED[name]
    draw = random.Random(name)
    column = pa.array([[{"key": "k", "value": make(draw)}] for _ in range(ROWS)], HEADERS)
    result = lha.scan(column, "kafka")
    first = result["k"].guesses[0]
    assert first.type == type
    assert f"all 400 with the shape of {name.partition(': ')[0]}" in first.evidence
    assert (f"; lha.{function} reads its parts" in result.code("arrow")) == bool(function)
    if function and function != "amqp":
        read = getattr(lha, function)(lha.select(column, {"k": type}).field("k"))
        assert read.null_count == 0


# Code, text, JSON. -----------------------------------------------------------------------------------------------------


def run(result: Scan, column: Any) -> list[dict[str, Any]]:
    variables: dict[str, Any] = {"column": column}
    exec(result.code("arrow"), variables)
    rows: list[dict[str, Any]] = variables["headers"].to_pylist()
    return rows


def test_generated_code_reads_topic_without_errors(orders, topic_scan):
    rows = run(topic_scan, orders)
    assert {row["error"] is None for row in rows} == {True}
    assert [row["amount_cents"] for row in rows] == [
        row["amount_cents"] for row in lha.select(orders, {"amount_cents": "int64"}).to_pylist()
    ]
    assert max(len(row["route"]) for row in rows) == topic_scan["route"].statistics.most == 3


@pytest.mark.parametrize(
    ("format", "headers"),
    [
        ("kip82-int", [(7, b"\x00\x00\x00\x05"), (-1, b"x"), (-1, b"y")]),
        (
            "iggy",
            [(lh.Int32(7), lh.Int8(5)), (lh.Binary(b"\xff'\""), lh.String("x")), (lh.Float64(0.5), lh.Bool(True))],
        ),
        ("kafka", [('"); import os #', b"v"), ("two\nlines\\", b"v"), ("it's", b"v"), ("", b"v"), ("\u202e", b"v")]),
    ],
)
def test_generated_code_finds_keys_of_every_form(format, headers):
    column = pa.array([lh.encode(headers, format)] * 20)
    result = lha.scan(column, format)
    rows = run(result, column)
    assert len(result.keys) == len({str(key) for key, _ in headers})
    assert rows[0].pop("error") is None
    assert all(value not in (None, []) for value in rows[0].values())
    assert len(result.code("arrow").splitlines()) == len(result.keys) + 6


@pytest.mark.parametrize("surface", ["arrow", "python"])
def test_generated_code_for_batch_format_reads_messages(surface):
    messages = [lh.Message(headers=[("retry", n.to_bytes(4, "big"))], value=b"") for n in range(3)]
    batch = lh.batch(messages, "record-batch")
    result = lha.scan(pa.array([batch]), "record-batch")
    variables: dict[str, Any] = {"column": pa.array([batch]), "data": batch}
    exec(result.code(surface), variables)
    assert pa.array(variables["headers"]).field("retry").to_pylist() == [0, 1, 2]


def test_json_has_all_counts(topic_scan):
    result = json.loads(json.dumps(topic_scan.to_dict()))
    assert (result["rows"], result["null_rows"] + result["empty_rows"], result["more_keys"]) == (10_000, 300, 0)
    keys = {key["key"]: key for key in result["keys"]}
    route = keys["route"]
    assert (route["headers"], route["rows"], route["repeated_rows"], route["most_in_a_row"]) == (3824, 1928, 1279, 3)
    assert route["bytes"] == {"min": 4, "median": 4, "max": 4, "total": 15_296}
    assert keys["note"]["share_null"] == pytest.approx(502 / 940, abs=1e-6)
    assert keys["retry"]["examples"][0] == {
        "hex": "00000000",
        "text": "\x00\x00\x00\x00",
        "read": "0",
        "bytes": 4,
        "count": 8395,
    }
    assert result["code"] == topic_scan.code()


def test_text_is_table(topic_scan):
    lines = repr(topic_scan).splitlines()
    assert lines[0] == "Scan of 10,000 rows in kafka: 15 keys"
    assert lines[1].split() == ["key", "rows", "null", "repeated", "bytes", "position", "type"]
    assert lines[-2] == "300 of 10,000 rows have no headers"
    assert lines[-1].endswith(": opentelemetry, cloudevents, confluent")
    assert any(line.startswith("retry") and line.endswith("4      7         int32, strong") for line in lines)


def test_empty_column_is_scanned():
    result = lha.scan(pa.array([], pa.binary()), "kafka")
    assert repr(result) == "Scan of 0 rows in kafka: 0 keys"
    assert result.code().count("\n") == 6
    assert result.to_dict()["keys"] == []
    assert "<h2>Keys</h2>" in result.html()


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 9, "0 %"), (9, 9, "100 %"), (1, 3, "33 %"), (1, 250, "0.4 %"), (1, 9999, "<0.1 %"), (9998, 9999, ">99.9 %"),
     (997, 1000, "99.7 %"), (0, 0, "-")],
)  # fmt: skip
def test_share_is_never_rounded_to_none_or_all(part, whole, text):
    assert percent(part, whole) == text
