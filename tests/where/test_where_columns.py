"""Conditions on columns select the rows that the evaluation row by row selects."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.column_filter import ColumnFilter
from letterhead.errors import DecodeError
from letterhead.operations import Encode
from letterhead.row_filter import RowFilter
from letterhead.where.program import RecordField

TYPES = {
    "n": (pa.int64(), "int64"), "small": (pa.int8(), "int64"), "u": (pa.uint64(), "int64"), "f": (pa.float64(), "float64"),
    "f32": (pa.float32(), "float64"), "text": (pa.string(), "string"), "large": (pa.large_string(), "string"),
    "data": (pa.binary(), "binary"), "flag": (pa.bool_(), "bool"), "at": (pa.timestamp("ms", "UTC"), "timestamp_ms"),
    "fine": (pa.timestamp("us", "UTC"), "timestamp"),
}  # fmt: skip
FIELDS = {name: RecordField(kind) for name, (_, kind) in TYPES.items()}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
INTEGERS = [-(1 << 63), -129, -3, -1, 0, 1, 2, 127, 128, (1 << 63) - 1]
FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.5, 2.0]
TEXTS = ["", "a", "ab", "b", "é", "\U0001f600", "\uffff"]
MOMENTS = [
    datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
]
VALUES: dict[str, list[Any]] = {
    "n": INTEGERS, "small": [-128, -1, 0, 1, 127], "u": [0, 1, 127, 1 << 63, (1 << 64) - 1], "f": FLOATS, "f32": FLOATS,
    "text": TEXTS, "large": TEXTS, "data": [b"", b"a", b"ab", b"\0", b"\xff"], "flag": [True, False], "at": MOMENTS,
    "fine": MOMENTS,
}  # fmt: skip
HEADER_VALUES = {
    "retry": [struct.pack(">i", number) for number in (-1, 0, 1, 2)],
    "tenant": [text.encode() for text in TEXTS],
    "weight": [struct.pack(">d", number) for number in FLOATS],
    "sent": [struct.pack(">q", number) for number in (0, 1_767_225_600_000)],
}
OPERANDS = {
    "retry": ("int32", [-1, 0, 1, 1 << 40]), "tenant": ("string", TEXTS), "weight": ("float64", FLOATS),
    "sent": ("timestamp_ms", MOMENTS),
}  # fmt: skip
COMPARISONS = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]


def headers(*, wrong: bool) -> st.SearchStrategy[Any]:
    pairs = [(key, value) for key, values in HEADER_VALUES.items() for value in [*values, None]]
    if wrong:
        pairs += [("retry", b"123"), ("tenant", b"\xff")]
    header = st.sampled_from(pairs).map(lambda pair: {"key": pair[0], "value": pair[1]})
    return st.none() | st.lists(header, max_size=4)


def batches(*, wrong: bool = False) -> st.SearchStrategy[pa.RecordBatch]:
    row = st.fixed_dictionaries(
        {name: st.none() | st.sampled_from(values) for name, values in VALUES.items()}
        | {"headers": headers(wrong=wrong)}
    )
    schema = pa.schema([*((name, type) for name, (type, _) in TYPES.items()), ("headers", HEADERS)])
    return st.lists(row, max_size=12).map(lambda rows: pa.RecordBatch.from_pylist(rows, schema=schema))


@st.composite
def conditions_on_one_operand(draw: st.DrawFn) -> Any:
    """A test of a column, or of a header."""
    name = draw(st.sampled_from([*TYPES, *OPERANDS]))
    if name in OPERANDS:
        type, values = OPERANDS[name]
        operand = lh.col(name, lh.field(type, repeat=draw(st.sampled_from(["first", "last"]))))
        quantified = draw(st.booleans())
        if quantified:
            operand = draw(st.sampled_from([lh.col(name, type).any, lh.col(name, type).all]))()
        kind = "float" if type == "float64" else "text" if type == "string" else "other"
    else:
        operand, values, kind, quantified = lh.col(name), VALUES[name], TYPES[name][1], False
        if kind == "int":
            values = [*INTEGERS, 1 << 64, 1 << 100, -(1 << 100)]
        elif kind == "float":
            values = [*FLOATS, 1, -7]
    literal = draw(st.sampled_from(values))
    choices = ["is_in", *COMPARISONS, *([] if quantified else ["is_null"])]
    if kind in ("text", "binary"):
        choices += ["starts_with", "contains"]
    choice = draw(st.sampled_from(choices))
    if choice == "is_null":
        return operand.is_null()
    if choice == "is_in":
        return operand.isin(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))
    return getattr(operand, choice)(literal)


CONDITIONS = st.recursive(
    conditions_on_one_operand(),
    lambda inner: st.one_of(
        inner.map(lambda condition: ~condition),
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
    ),
    max_leaves=6,
)


def plain(column: pa.Array) -> list[Any]:
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


def selected_by_rows(batch: pa.RecordBatch, row_filter: RowFilter) -> list[int]:
    columns = {name: plain(batch.column(name)) for name in TYPES}
    data = Encode("kafka").run(batch.column("headers")).to_pylist()
    return [
        row
        for row in range(len(batch))
        if row_filter.selects({name: values[row] for name, values in columns.items()}, data[row])
    ]


def selected(batch: pa.RecordBatch, where: Any) -> tuple[Any, Any]:
    """The rows that both select, or their errors; and the headers that both did not see."""
    by_rows, by_columns = (kind(where, FIELDS, None, "kafka") for kind in (RowFilter, ColumnFilter))
    numbered = batch.append_column("row", pa.array(range(len(batch)), pa.int64()))
    outcomes: list[Any] = []
    for read in (lambda: selected_by_rows(batch, by_rows), lambda: by_columns(numbered)[0]["row"].to_pylist()):
        try:
            outcomes.append(read())
        except DecodeError as error:
            outcomes.append((error.code, error.message, error.column))
    if all(isinstance(outcome, list) for outcome in outcomes):
        assert sorted(map(str, by_rows.unseen_headers)) == sorted(map(str, by_columns.unseen_headers))
    return outcomes[0], outcomes[1]


@pytest.mark.slow
@given(batches(), CONDITIONS)
def test_the_rows_of_valid_headers_are_the_same(batch: pa.RecordBatch, where: Any) -> None:
    by_rows, by_columns = selected(batch, where)
    assert isinstance(by_rows, list)
    assert by_columns == by_rows


@pytest.mark.slow
@given(batches(wrong=True), CONDITIONS)
def test_the_rows_or_the_error_of_wrong_headers_are_the_same(batch: pa.RecordBatch, where: Any) -> None:
    by_rows, by_columns = selected(batch, where)
    assert by_columns == by_rows


@pytest.mark.parametrize("literal", [-(1 << 63) - 1, -(1 << 63), (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64])
@pytest.mark.parametrize("name", ["n", "small", "u"])
def test_literals_at_and_beyond_the_bounds_of_a_type_compare_as_numbers(name: str, literal: int) -> None:
    schema = pa.schema([*((name, type) for name, (type, _) in TYPES.items()), ("headers", HEADERS)])
    batch = pa.RecordBatch.from_pylist([{name: value} for value in [*VALUES[name], None]], schema=schema)
    for comparison in COMPARISONS:
        by_rows, by_columns = selected(batch, getattr(lh.col(name), comparison)(literal))
        assert by_columns == by_rows == [
            row for row, value in enumerate(VALUES[name]) if getattr(value, comparison)(literal)
        ]  # fmt: skip


def test_rows_that_columns_exclude_have_no_errors_of_headers() -> None:
    rows = [
        {"n": 1, "headers": [{"key": "retry", "value": b"x"}]},
        {"n": 2, "headers": [{"key": "retry", "value": bytes(4)}]},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema([("n", pa.int64()), ("headers", HEADERS)]))
    fields = {"n": RecordField("int64")}
    assert len(ColumnFilter("n = 2 and retry::int32 = 0", fields, None, "kafka")(batch)[0]) == 1
    with pytest.raises(DecodeError, match="where"):
        ColumnFilter("n = 1 and retry::int32 = 0", fields, None, "kafka")(batch)


def test_an_error_of_a_value_is_in_the_column_where_and_an_error_of_a_message_in_none() -> None:
    row_filter = RowFilter(lh.col("retry", "int32") > 1, [], None, "kafka")
    for data, column in ((lh.encode([("retry", b"123")], "kafka"), "where"), (b"\x02", None)):
        with pytest.raises(DecodeError) as raised:
            row_filter.selects({}, data)
        assert raised.value.column == column
