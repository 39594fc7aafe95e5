"""Conditions on columns of every type, and on headers, select the rows that a plain evaluation in Python selects."""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import DecodeError
from letterhead.where.row_filter import Examined, RowFilter, field_type

Truth: TypeAlias = "bool | None"
Row: TypeAlias = dict[str, Any]
Drawn: TypeAlias = tuple[Any, Callable[[Row], Truth]]
"""A condition, and its evaluation for a row of plain values."""

INTEGERS = [-(1 << 63), -129, -3, -1, 0, 1, 2, 127, 128, (1 << 63) - 1]
FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.5, 2.0]
TEXTS = ["", "a", "ab", "b", "é", "\U0001f600", "\uffff"]
BYTES = [b"", b"a", b"ab", b"\0", b"\xff"]
PAIRS = [b"ab", b"zz", b"\0\xff"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = [
    EPOCH - timedelta(seconds=1),
    EPOCH,
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
]
DAYS = [date(1969, 12, 31), date(1970, 1, 1), date(2026, 1, 1)]
DECIMALS = [Decimal("-1.25"), Decimal("0.00"), Decimal("1.20"), Decimal("9999999.99")]

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), INTEGERS),
    "small": (pa.int8(), [-128, -1, 0, 1, 127]),
    "u": (pa.uint64(), [0, 1, 127, 1 << 63, (1 << 64) - 1]),
    "f": (pa.float64(), FLOATS),
    "f32": (pa.float32(), FLOATS),
    "f16": (pa.float16(), FLOATS),
    "text": (pa.string(), TEXTS),
    "large": (pa.large_string(), TEXTS),
    "view": (pa.string_view(), [*TEXTS, "longer than twelve bytes"]),
    "data": (pa.binary(), BYTES),
    "data_view": (pa.binary_view(), BYTES),
    "pair": (pa.binary(2), PAIRS),
    "flag": (pa.bool_(), [True, False]),
    "s": (pa.timestamp("s", "UTC"), MOMENTS),
    "ms": (pa.timestamp("ms", "UTC"), MOMENTS),
    "us": (pa.timestamp("us", "UTC"), MOMENTS),
    "ns": (pa.timestamp("ns", "UTC"), MOMENTS),
    "local": (pa.timestamp("us"), MOMENTS),
    "day": (pa.date32(), DAYS),
    "day64": (pa.date64(), DAYS),
    "price": (pa.decimal128(9, 2), DECIMALS),
    "price32": (pa.decimal32(9, 2), DECIMALS),
    "price64": (pa.decimal64(12, 2), DECIMALS),
    "word": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    "coded": (pa.dictionary(pa.int32(), pa.decimal128(9, 2)), DECIMALS),
    "list": (pa.list_(pa.int32()), [[], [1]]),
    "none": (pa.null(), [None]),
}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema([*((name, type) for name, (type, _) in COLUMNS.items()), ("headers", HEADERS)])
FIELDS = {name: field_type(type) for name, (type, _) in COLUMNS.items()}
OPAQUE = ("list", "none")
"""Columns that are only tested for null."""

HEADER_VALUES: dict[str, tuple[str, dict[bytes, Any]]] = {
    "retry": ("int32", {struct.pack(">i", number): number for number in (-1, 0, 1, 2)}),
    "tenant": ("string", {text.encode(): text for text in TEXTS}),
    "weight": ("float64", {struct.pack(">d", number): number for number in FLOATS}),
    "sent": ("timestamp_ms", {struct.pack(">q", (moment - EPOCH) // timedelta(milliseconds=1)): moment for moment in MOMENTS}),
}  # fmt: skip
WRONG = [b"123", b"\xff"]
"""Values that are not of the types of their headers."""

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
TEXT_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "starts_with": lambda value, part: bool(value.startswith(part)),
    "contains": lambda value, part: part in value,
}


def headers(*, wrong: bool) -> st.SearchStrategy[Any]:
    pairs = [(key, value) for key, (_, values) in HEADER_VALUES.items() for value in [*values, None]]
    if wrong:
        pairs += [("retry", WRONG[0]), ("tenant", WRONG[1])]
    header = st.sampled_from(pairs).map(lambda pair: {"key": pair[0], "value": pair[1]})
    return st.none() | st.lists(header, max_size=4)


def tables(*, wrong: bool = False) -> st.SearchStrategy[list[Row]]:
    row: Any = st.fixed_dictionaries(
        {name: st.none() | st.sampled_from(values) for name, (_, values) in COLUMNS.items()}
        | {"headers": headers(wrong=wrong)}
    )
    return st.lists(row, max_size=12) | st.lists(row, min_size=60, max_size=70)


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = []
    for field in SCHEMA:
        values = [row[field.name] for row in rows]
        if pa.types.is_dictionary(field.type):
            columns.append(pa.array(values, field.type.value_type).dictionary_encode().cast(field.type))
        elif field.name == "local":
            columns.append(pa.array(values, pa.timestamp("us", "UTC")).cast(pa.int64()).cast(field.type))
        else:
            columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def values_of_header(row: Row, key: str) -> list[Any]:
    values = HEADER_VALUES[key][1]
    return [values.get(header["value"]) for header in row["headers"] or () if header["key"] == key]


@st.composite
def column_conditions(draw: st.DrawFn) -> Drawn:
    name = draw(st.sampled_from([*COLUMNS]))
    test, holds = draw(one_test(COLUMNS[name][1], FIELDS[name], with_null=True))
    return test(lh.col(name)), lambda row: holds(row[name])


@st.composite
def header_conditions(draw: st.DrawFn) -> Drawn:
    key = draw(st.sampled_from([*HEADER_VALUES]))
    type, values = HEADER_VALUES[key]
    kind = draw(st.sampled_from(["first", "last", "any", "all"]))
    test, holds = draw(one_test([*values.values()], type, with_null=kind in ("first", "last")))

    def truth(row: Row) -> Truth:
        found = values_of_header(row, key)
        if kind in ("first", "last"):
            return holds(None if not found else found[0 if kind == "first" else -1])
        if any(header["key"] == key and header["value"] in WRONG for header in row["headers"] or ()):
            return None  # one of the values cannot be read
        truths = [holds(value) for value in found]
        decisive = kind == "any"
        return decisive if decisive in truths else None if None in truths or not truths else not decisive

    operand = lh.col(key, lh.field(type, repeat=kind)) if kind in ("first", "last") else getattr(lh.col(key, type), kind)()  # fmt: skip
    return test(operand), truth


@st.composite
def one_test(draw: st.DrawFn, values: list[Any], type: str, *, with_null: bool) -> Any:
    """A test of an operand, and of one value."""
    choices = ["is_null", "exists"] if with_null else []
    if type:
        choices += ["compare", "is_in", "is_in"] + (["starts_with", "contains", "matches"] if type == "string" else [])
    choice = draw(st.sampled_from(choices))
    if choice in ("is_null", "exists"):
        return operator.methodcaller(choice), lambda value: (value is None) == (choice == "is_null")
    literals = values
    if type.startswith("int"):
        literals = [*INTEGERS, 1 << 64, 1 << 100, -(1 << 100)]
    elif type == "float64":
        literals = [*FLOATS, 1, -7]
    if choice == "is_in":
        several = draw(st.lists(st.sampled_from(literals), max_size=3))
        return operator.methodcaller(
            "isin", several
        ), lambda value: None if value is None else any(value == literal for literal in several)
    literal = draw(st.sampled_from(literals))
    if choice == "compare":
        compare = draw(st.sampled_from(COMPARISONS))
        return (
            lambda operand: compare(operand, literal),
            lambda value: None if value is None else bool(compare(value, literal)),
        )
    if choice == "matches":
        return operator.methodcaller(
            "matches", f"^{re.escape(literal)}"
        ), lambda value: None if value is None else value.startswith(literal)
    return operator.methodcaller(
        choice, literal
    ), lambda value: None if value is None else TEXT_TESTS[choice](value, literal)


def negated(drawn: Drawn) -> Drawn:
    where, truth = drawn
    return ~where, lambda row: None if (of_row := truth(row)) is None else not of_row


def joined(pair: tuple[Drawn, Drawn], *, decisive: bool) -> Drawn:
    (left, of_left), (right, of_right) = pair

    def truth(row: Row) -> Truth:
        truths = of_left(row), of_right(row)
        return decisive if decisive in truths else None if None in truths else not decisive

    return (left | right if decisive else left & right), truth


CONDITIONS = st.recursive(
    st.one_of(column_conditions(), header_conditions()),
    lambda inner: st.one_of(
        inner.map(negated),
        st.tuples(inner, inner).map(lambda pair: joined(pair, decisive=False)),
        st.tuples(inner, inner).map(lambda pair: joined(pair, decisive=True)),
    ),
    max_leaves=6,
)


def examined(rows: list[Row], where: Any, **options: Any) -> Examined:
    batch = batch_of(rows)
    condition = RowFilter(where, FIELDS, None, "kafka", **options)
    columns = {name: batch[name] for name in condition.fields}
    return condition.examine(columns, batch["headers"] if condition.has_headers else None, len(rows))


def selected(rows: list[Row], where: Any, **options: Any) -> list[int]:
    mask = examined(rows, where, **options).selected
    return [number for number, is_selected in enumerate(mask.to_pylist()) if is_selected]


@pytest.mark.slow
@given(tables(), CONDITIONS)
def test_selected_rows_match_plain_evaluation(rows: list[Row], drawn: Drawn) -> None:
    where, truth = drawn
    assert selected(rows, where) == [number for number, row in enumerate(rows) if truth(row)]


@pytest.mark.slow
@given(tables(wrong=True), CONDITIONS)
def test_unreadable_header_is_null_if_errors_allow(rows: list[Row], drawn: Drawn) -> None:
    where, truth = drawn
    expected = [number for number, row in enumerate(rows) if truth(row)]
    assert selected(rows, where, errors="null") == expected
    mask, errors = examined(rows, where, errors="column")
    assert [number for number, is_selected in enumerate(mask.to_pylist()) if is_selected] == expected
    for number, found in enumerate([] if errors is None else errors.to_pylist()):
        # Column "where" says that the errors leave the condition undecided.
        assert not found or {error["column"] for error in found} == {None if number in expected else "where"}


@pytest.mark.parametrize("literal", [-(1 << 63) - 1, -(1 << 63), (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64])
@pytest.mark.parametrize("name", ["n", "small", "u"])
def test_literals_at_and_beyond_type_bounds_compare_as_numbers(name: str, literal: int) -> None:
    values = COLUMNS[name][1]
    rows = [dict.fromkeys(SCHEMA.names) | {name: value} for value in [*values, None]]
    for compare in COMPARISONS:
        expected = [number for number, value in enumerate(values) if compare(value, literal)]
        assert selected(rows, compare(lh.col(name), literal)) == expected


def test_nanoseconds_compare_exactly() -> None:
    column = pa.array([1_000, 1_001, 999], pa.timestamp("ns", "UTC"))
    batch = pa.record_batch({"at": column})
    fields = {"at": field_type(column.type)}
    for compare, expected in ((operator.eq, [1000]), (operator.gt, [1001]), (operator.lt, [999])):
        where = compare(lh.col("at"), EPOCH + timedelta(microseconds=1))
        kept, _ = RowFilter(where, fields, None, "kafka")(batch)
        assert kept["at"].cast(pa.int64()).to_pylist() == expected


def test_incomparable_column_is_not_taken_for_header() -> None:
    fields = {
        "d": field_type(pa.decimal256(50, 2)),
        "l": field_type(pa.list_(pa.int8())),
        "t": field_type(pa.time32("s")),
    }
    for name in fields:
        with pytest.raises(ValueError, match=f"column '{name}' has a type that is only tested for null"):
            RowFilter(lh.col(name) == "1", fields, None, "kafka")
    for where in ('"l.x" = 3', lh.col("l.x") == "a", '"l.x" is null'):
        with pytest.raises(ValueError, match="parts of column 'l' are not tested"):
            RowFilter(where, fields, None, "kafka")
    RowFilter(lh.col("l.x", "string") == "a", fields, None, "kafka")
    batch = pa.record_batch({"l": pa.array([[1], None, []], pa.list_(pa.int8()))})
    assert RowFilter("l is null", fields, None, "kafka")(batch)[0].num_rows == 1
    assert RowFilter("l is present", fields, None, "kafka")(batch)[0].num_rows == 2


def test_rows_excluded_by_columns_have_no_header_errors() -> None:
    rows = [
        {"n": 1, "headers": [{"key": "retry", "value": b"x"}]},
        {"n": 2, "headers": [{"key": "retry", "value": bytes(4)}]},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema([("n", pa.int64()), ("headers", HEADERS)]))
    fields = {"n": "int64"}
    assert len(RowFilter("n = 2 and retry::int32 = 0", fields, None, "kafka")(batch)[0]) == 1
    with pytest.raises(DecodeError, match="where"):
        RowFilter("n = 1 and retry::int32 = 0", fields, None, "kafka")(batch)


def test_value_error_names_column_where_and_message_error_none() -> None:
    row_filter = RowFilter(lh.col("retry", "int32") > 1, {}, None, "kafka")
    valid = lh.encode([("retry", bytes(4))], "kafka")
    for data, column in ((lh.encode([("retry", b"123")], "kafka"), "where"), (b"\x02", None)):
        with pytest.raises(DecodeError) as raised:
            row_filter.examine({}, pa.array([valid, None, data]), 3)
        assert (raised.value.column, raised.value.row) == (column, 2)


def test_dictionary_may_be_empty_and_have_null_values() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), pa.array(["a", None]))
    fields = {"w": field_type(values.type)}
    word = lh.col("w")
    for where, expected in (
        (word == "a", [0]),
        (word != "b", [0]),
        (word.is_null(), [1, 2, 3]),
        (word.isin([]), []),
        (~word.isin([]), [0]),
    ):
        mask, _ = RowFilter(where, fields, None, "kafka").examine({"w": values}, None, 4)
        assert [row for row, is_selected in enumerate(mask.to_pylist()) if is_selected] == expected
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    assert RowFilter("w = 'a'", fields, None, "kafka").examine({"w": empty}, None, 2).selected.to_pylist() == [
        False,
        False,
    ]


# --- as DuckDB selects them -------------------------------------------------------------------------------------------

SQL_LITERALS: dict[str, list[str]] = {
    **{key: ["0", "-1", "127", "128", "9223372036854775807"] for key in ["n", "small", "u"]},
    **{key: ["0.5", "0", "-1", "2"] for key in ["f", "f32"]},
    **{key: ["'a'", "''", "'é'", "'b'"] for key in ["text", "large", "view"]},
    **{key: ["'1970-01-01T00:00:00Z'", "'2026-01-01T00:00:00Z'", "'2026-01-01T01:00:01+01:00'"] for key in ["s", "ms", "us", "ns"]},
    "day": ["'1970-01-01'", "'2026-01-01'"],
    **{key: ["1.2", "0", "-1.25", "9999999.99"] for key in ["price", "price32", "price64"]},
    "flag": ["true", "false"],
}  # fmt: skip


@st.composite
def sql_tests(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from([*SQL_LITERALS]))
    literal = st.sampled_from(SQL_LITERALS[name])
    choice = draw(st.sampled_from(["compare", "compare", "in", "between", "null", "like"]))
    if choice == "in":
        return f"{name} IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=3)))})"
    if choice == "between":
        return f"{name} BETWEEN {draw(literal)} AND {draw(literal)}"
    if choice == "null":
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if choice == "like" and SQL_LITERALS[name][0] == "'a'":
        return f"{name} LIKE {draw(st.sampled_from(['a%', '%b%', '%b', '_', '']))!r}"
    return f"{name} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {draw(literal)}"


SQL = st.recursive(
    sql_tests(),
    lambda inner: st.one_of(
        inner.map("NOT ({})".format),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: "({} {} {})".format(*parts)),
    ),
    max_leaves=5,
)


@pytest.mark.slow
@given(tables(), SQL)
def test_selected_rows_match_duckdb(rows: list[Row], text: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    # NaN is equal to NaN in DuckDB, and greater than all numbers.
    rows = [{name: None if value != value else value for name, value in row.items()} for row in rows]
    batch = batch_of(rows).append_column("row", pa.array(range(len(rows)), pa.int64()))
    known = pa.table(batch.select([*SQL_LITERALS, "row"]))
    found = duckdb.from_arrow(known).filter(text).fetchall()
    assert selected(rows, text) == [row[-1] for row in found]


def test_decimal_literal_keeps_all_digits() -> None:
    number = Decimal("12345678901234567890123456789012345.678")
    batch = pa.RecordBatch.from_pydict(
        {"d": [number, Decimal("12345678901234567890123456789012345.679")]}, pa.schema([("d", pa.decimal128(38, 3))])
    )
    selected, _ = RowFilter(lh.col("d") == number, {"d": "decimal(38,3)"}, None, "kafka")(batch)
    assert selected["d"].to_pylist() == [number]
