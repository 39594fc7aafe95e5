"""Rows of two sources are compared by partition and offset, whatever the order and the size of their batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.reader import Reader
from letterhead.sources import comparison as module
from letterhead.sources.comparison import Comparison, compare

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary()), ("headers", HEADERS)])


def reader(rows: Sequence[dict[str, Any]], sizes: Sequence[int] = (1000,), schema: pa.Schema = SCHEMA) -> Reader:
    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        while start < len(rows):
            for size in sizes:
                yield pa.RecordBatch.from_pylist(list(rows[start : start + size]), schema)
                start += size

    return Reader(schema, batches)


def differences(first: Reader, second: Reader, **options: Any) -> tuple[Comparison, list[dict[str, Any]]]:
    counts, _, batches = compare(first, second, **options)
    found = [row for batch in batches for row in batch.to_pylist()]
    assert counts.differences == len(found)
    assert counts.equal + counts.changed == counts.rows[0] - counts.missing[1] == counts.rows[1] - counts.missing[0]
    return counts, found


def row(partition: int, offset: int, value: bytes | None = b"v", headers: Any = ()) -> dict[str, Any]:
    pairs = None if headers is None else [{"key": key, "value": content} for key, content in headers]
    return {"partition": partition, "offset": offset, "value": value, "headers": pairs}


values = st.sampled_from([b"", b"a", None])
logs = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 12)),
    st.tuples(values, st.none() | st.lists(st.tuples(st.sampled_from("ab"), values), max_size=2)),
    max_size=20,
)


@given(logs, logs, st.lists(st.integers(1, 5), min_size=1, max_size=3), st.booleans(), st.sampled_from([0, 1 << 20]))
def test_every_difference_is_found_once(
    first: dict[Any, Any], second: dict[Any, Any], sizes: list[int], by_partition: bool, held: int
) -> None:
    keys = [sorted(first), sorted(second, key=lambda key: key if by_partition else key[::-1])]
    readers = [
        reader([row(*key, *log[key]) for key in order], sizes) for order, log in zip(keys, (first, second), strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_HELD_BYTES", held)
        _, found = differences(*readers)
    expected = {}
    for key in {*first, *second}:
        sides = [row(*key, log[key][0], log[key][1] or ()) if key in log else None for log in (first, second)]
        if sides[0] != sides[1]:
            names = [name for name in ("value", "headers") if all(sides) and sides[0][name] != sides[1][name]]
            expected[key] = (names, *[side and {name: side[name] for name in ("value", "headers")} for side in sides])
    assert len(found) == len(expected)
    assert {(it["partition"], it["offset"]): (it["differs"], it["first"], it["second"]) for it in found} == expected


def test_rows_are_matched_by_position_across_offset_gaps() -> None:
    first = [row(0, 0), row(0, 5, b"x"), row(1, 9)]
    second = [row(1, 0), row(0, 1), row(0, 2, b"y"), row(0, 3)]
    counts, found = differences(reader(first), reader(second), order="position")
    assert [(it["partition"], it["position"], it["differs"]) for it in found] == [(0, 1, ["value"]), (0, 2, [])]
    assert (counts.equal, counts.changed, counts.missing) == (2, 1, [1, 0])


def test_rows_without_offset_are_matched_by_position() -> None:
    schema = pa.schema([("a", pa.float64()), ("b", pa.int8())])
    first = reader([{"a": float("nan"), "b": 1}, {"a": 0.0, "b": 2}], schema=schema)
    second = reader([{"a": float("nan"), "b": 1}, {"a": -0.0, "b": 2}], schema=schema)
    _, found = differences(first, second)
    assert [(it["position"], it["differs"]) for it in found] == [(1, ["a"])]


def test_columns_of_different_types_compare_as_common_type() -> None:
    first = pa.schema([("n", pa.int32()), ("t", pa.timestamp("ms", "UTC")), ("s", pa.string()), ("headers", HEADERS)])
    text = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    second = pa.schema(
        [("n", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("s", pa.large_binary()), ("headers", text)]
    )
    rows = [{"n": 1, "t": 5000, "s": "é", "headers": [{"key": "k", "value": "v"}]}]
    others = [{**rows[0], "t": 5_000_000, "s": "é".encode()}]
    rows[0]["headers"] = [{"key": "k", "value": b"v"}]
    assert differences(reader(rows, schema=first), reader(others, schema=second))[1] == []
    others[0]["n"] = 1 << 40
    assert differences(reader(rows, schema=first), reader(others, schema=second))[1][0]["differs"] == ["n"]


def test_spark_kafka_source_table_equals_topic_log(samples: Path) -> None:
    """Spark returns null for a message without headers, and writes times of UTC without a zone."""
    with lh.diff(samples / "orders-0", samples / "orders-0.parquet") as differences:
        assert differences.read_all().num_rows == 0


def test_types_of_headers_are_compared() -> None:
    fields = [("key_type", pa.string()), ("key", pa.binary()), ("type", pa.string()), ("value", pa.binary())]
    typed = pa.schema([("headers", pa.list_(pa.struct(fields)))])
    plain = pa.schema([("headers", HEADERS)])
    header = {"key_type": "string", "key": b"k", "type": "int8", "value": b"1"}
    rows = [[{"headers": [{**header, "type": type}]}] for type in ("int8", "uint8")]
    assert differences(*(reader(own, schema=typed) for own in rows))[1][0]["differs"] == ["headers"]
    pairs = reader([{"headers": [{"key": "k", "value": b"1"}]}], schema=plain)
    assert differences(reader(rows[0], schema=typed), pairs)[1][0]["differs"] == ["headers"]


def test_columns_of_one_source_only_are_named() -> None:
    first = pa.schema([("a", pa.int8()), ("b", pa.int8())])
    second = pa.schema([("c", pa.int8()), ("a", pa.int8())])
    counts, _ = differences(reader([], schema=first), reader([], schema=second))
    assert (counts.columns, counts.only_first, counts.only_second) == (("a",), ("b",), ("c",))
    with pytest.raises(ValueError, match="the second source has no column 'b': it has c, a"):
        compare(reader([], schema=first), reader([], schema=second), columns=["b"])
    with pytest.raises(ValueError, match="no column is in both sources"):
        compare(reader([], schema=pa.schema([("x", pa.int8())])), reader([], schema=second))


def test_columns_without_common_type_raise() -> None:
    first, second = (pa.schema([("a", type)]) for type in (pa.int8(), pa.list_(pa.int8())))
    with pytest.raises(ValueError, match="column 'a' is int8 in the first source and list"):
        compare(reader([], schema=first), reader([], schema=second))


@pytest.mark.parametrize("offsets", [[1, 0], [3, 3], [0, None]])
def test_non_ascending_offsets_raise(offsets: list[Any]) -> None:
    rows = [row(0, offset) for offset in offsets]
    for sizes in ([2], [1]):
        with pytest.raises(ValueError, match=r"offset.* of partition 0 .*compare by position"):
            differences(reader(rows, sizes), reader([row(0, 0)]))
    assert differences(reader(rows), reader(rows), order="position")[1] == []


def test_range_of_offsets_is_compared(samples: Path) -> None:
    orders = samples / "orders-0"
    other = lh.open(orders, start=100).read_all()
    with lh.diff(orders, orders, start=9000, end={0: 9500}) as reader:
        assert reader.read_all().num_rows == 0
    with pytest.raises(ValueError, match="start= is for topics and log segments, not for the Arrow table"):
        lh.diff(orders, other, start=100)
    with pytest.raises(ValueError, match="no columns were asked for"):
        lh.diff(orders, other, columns=[])


def test_whole_numbers_meet_decimals_exactly() -> None:
    first, second = pa.table({"n": [1, 2]}), pa.table({"n": [Decimal("1.0"), Decimal("2.5")]})
    assert [row["position"] for row in lh.diff(first, second).read_all().to_pylist()] == [1]
    smallest = pa.table({"n": pa.array([-(2**63), 2**63 - 1])})
    assert lh.diff(smallest, smallest.cast(pa.schema([("n", pa.decimal128(30, 5))]))).read_all().num_rows == 0


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"offset": [1], "v": [2**53 + 1]}, {"offset": [1], "v": [1.5]}, "'v' cannot be compared as double, which "),
        ({"offset": [2**63], "v": [1]}, {"offset": [1], "v": [1]}, "an offset is larger than Kafka's largest one"),
        (
            {"partition": [0, 1], "offset": [5, 5], "v": [1, 2]},
            {"offset": [5], "v": [1]},
            "from 5 to 5: only the first source has a column 'partition': select one of its partitions",
        ),
    ],
)
def test_errors_of_comparison_name_no_values(first: Any, second: Any, message: str) -> None:
    types = {"offset": pa.uint64()} if first["offset"] == [2**63] else {}
    tables = [
        pa.table({name: pa.array(column, types.get(name)) for name, column in columns.items()})
        for columns in (first, second)
    ]
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        lh.diff(*tables).read_all()
    assert "9007199254740993" not in str(raised.value)
    assert not isinstance(raised.value, pa.ArrowInvalid)
