"""Conditions: `where=` returns what reading everything and filtering with pyarrow returns."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead.where.program import fields_of_format, resolve
from letterhead.where.row_filter import RowFilter
from tests.helpers.strategies import few

COLUMNS = {"tenant": "string", "retry": "int32", "ratio": "float64", "flag": "bool", "blob": "binary"}
LISTS = {f"{name}s": lh.field(f"array<{type}>", key=name) for name, type in COLUMNS.items()}
FIELDS = ["offset", "timestamp", "key", "value"]

_VALUES = {
    "tenant": st.sampled_from(["acme", "acme-eu", "", "ß", "zoo"]),
    "retry": st.integers(-3, 3),
    "ratio": st.sampled_from([-0.5, 0.0, 1.5, math.nan]),
    "flag": st.booleans(),
    "blob": st.sampled_from([b"", b"a", b"a\xff", b"b" * 70]),
    "offset": st.integers(-1, 140),
    "timestamp": st.integers(995, 1140),
    "key": st.sampled_from([b"k1", b"k", b"zz"]),
    "value": st.sampled_from([b"", b"v"]),
}
_TEXTS = ("tenant", "blob", "key", "value")
_COMPARISONS = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


_OPERATORS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


_BYTES: dict[str, Any] = {
    "tenant": str.encode,
    "retry": lambda value: value.to_bytes(4, "big", signed=True),
    "ratio": lambda value: lh.Float64(value).bits,
    "flag": lambda value: bytes([value]),
    "blob": bytes,
}


def headers_of(valid: bool) -> st.SearchStrategy[list[tuple[str, bytes | None]]]:
    def value(key: str) -> Any:
        values = _VALUES[key].map(_BYTES[key]) | st.none()
        return values if valid else values | st.sampled_from([b"\xff", b"\0\0\0\0\0"])

    pair = st.sampled_from(list(COLUMNS)).flatmap(lambda key: st.tuples(st.just(key), value(key)))
    return st.lists(pair | st.just(("other", b"o" * 9)), max_size=6)


def conditions(names: list[str]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Draw a condition, and a function of the columns that computes its truth with pyarrow."""

    def operand(name: str) -> lh.where.Operand:
        return lh.col(name) if name in FIELDS else lh.col(name, COLUMNS[name])

    def comparison(name: str, symbol: str, value: Any) -> tuple[Any, Any]:
        where = {
            "==": operand(name) == value, "!=": operand(name) != value, "<": operand(name) < value,
            "<=": operand(name) <= value, ">": operand(name) > value, ">=": operand(name) >= value,
        }[symbol]  # fmt: skip
        return where, lambda table: _COMPARISONS[symbol](table[name], pa.scalar(value, table[name].type))

    def member(name: str, values: list[Any]) -> tuple[Any, Any]:
        def mask(table: pa.Table) -> Any:
            # is_in of pyarrow finds NaN.
            matches = pc.if_else(pc.is_valid(table[name]), False, pa.scalar(None, pa.bool_()))
            for value in values:
                matches = pc.or_(matches, pc.equal(table[name], pa.scalar(value, table[name].type)))
            return matches

        return operand(name).isin(values), mask

    def quantified(name: str, symbol: str, value: Any, every: bool) -> tuple[Any, Any]:
        operand = lh.col(name, COLUMNS[name])
        where = _OPERATORS[symbol](operand.all() if every else operand.any(), value)

        def truth(values: list[Any] | None) -> bool | None:
            truths = [None if element is None else _OPERATORS[symbol](element, value) for element in values or ()]
            if (not every) in truths:
                return not every
            return None if None in truths or not truths else every

        return where, lambda table: pa.array([truth(row) for row in table[f"{name}s"].to_pylist()], pa.bool_())

    def prefix(name: str, value: Any) -> tuple[Any, Any]:
        return operand(name).starts_with(value), lambda table: pc.starts_with(table[name], value)

    def condition_on(name: str) -> Any:
        tests = [
            st.builds(comparison, st.just(name), st.sampled_from(list(_COMPARISONS)), _VALUES[name]),
            st.builds(member, st.just(name), st.lists(_VALUES[name], max_size=3)),
            st.just((operand(name).is_null(), lambda table: pc.is_null(table[name]))),
        ]
        if name in _TEXTS:
            tests.append(st.builds(prefix, st.just(name), _VALUES[name]))
        if name in COLUMNS:
            symbols = st.sampled_from(list(_OPERATORS))
            tests.append(st.builds(quantified, st.just(name), symbols, _VALUES[name], st.booleans()))
        return st.one_of(tests)

    def combined(parts: Any) -> Any:
        both = st.tuples(parts, parts)
        return st.one_of(
            both.map(lambda two: (two[0][0] & two[1][0], lambda t: pc.and_kleene(two[0][1](t), two[1][1](t)))),
            both.map(lambda two: (two[0][0] | two[1][0], lambda t: pc.or_kleene(two[0][1](t), two[1][1](t)))),
            parts.map(lambda part: (~part[0], lambda t: pc.invert(part[1](t)))),
        )

    return st.recursive(st.sampled_from(names).flatmap(condition_on), combined, max_leaves=5)


@st.composite
def batches(draw: Any, valid: bool) -> pa.Array:
    drawn = draw(st.lists(headers_of(valid), min_size=1, max_size=12))
    count = draw(st.sampled_from([len(drawn), 70, 140]))
    messages = [
        lh.Message(
            offset=at, timestamp=1000 + (at * 7) % 130, headers=drawn[at * at % len(drawn)],
            key=draw(st.sampled_from([b"k1", None])) if at == 0 else [b"k1", b"zz", None][at % 3], value=b"v" * (at % 2),
        )
        for at in range(count)
    ]  # fmt: skip
    cut = draw(st.integers(1, count))
    codec = draw(st.sampled_from(["none", "lz4"]))
    sets = [lh.batch(part, "record-batch", codec=codec) for part in (messages[:cut], messages[cut:]) if part]
    return pa.array([*sets, None])


def table_of(column: pa.StructArray) -> pa.Table:
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(column)])


def same(left: pa.Table, right: pa.Table) -> bool:
    """Compare tables in which NaN is equal to itself."""

    def bits(table: pa.Table) -> pa.Table:
        for at, column in enumerate(table.columns):
            if column.type == pa.float64():
                table = table.set_column(at, table.column_names[at], column.combine_chunks().view(pa.int64()))
        return table

    return bool(bits(left).equals(bits(right)))


@few
@given(column=batches(valid=True), drawn=conditions([*COLUMNS, "offset", "timestamp", "key", "value"]))
def test_where_equals_filtering_all_messages(column: pa.Array, drawn: Any) -> None:
    where, mask = drawn
    full = table_of(lha.messages(column, "record-batch", headers=COLUMNS | LISTS))
    got = table_of(lha.messages(column, "record-batch", headers=COLUMNS, where=where))
    assert same(got, full.filter(mask(full)).drop(list(LISTS)))
    # Neither the operands nor the headers have to be columns of the result.
    assert table_of(lha.messages(column, "record-batch", columns=["offset"], where=where)).equals(
        got.select(["offset"])
    )


@few
@given(column=batches(valid=False), drawn=conditions(list(COLUMNS)))
def test_values_of_wrong_type_are_null_or_kept(column: pa.Array, drawn: Any) -> None:
    where, mask = drawn
    full = table_of(lha.messages(column, "record-batch", headers=COLUMNS | LISTS, errors="null"))
    got = table_of(lha.messages(column, "record-batch", headers=COLUMNS, errors="null", where=where))
    assert same(got, full.filter(mask(full)).drop(list(LISTS)))
    tested = {test.operand[1] for test in resolve(where, fields_of_format("record-batch")).tests()}  # type: ignore[union-attr]
    operands: dict[str, Any] = {name: type for name, type in COLUMNS.items() if name in tested}
    operands |= {name: operand for name, operand in LISTS.items() if operand.key in tested}
    full = table_of(lha.messages(column, "record-batch", headers=operands, errors="column"))
    kept = table_of(lha.messages(column, "record-batch", headers=operands, errors="column", where=where))
    expected = full.filter(pc.or_kleene(mask(full), pc.is_valid(full["error"])))
    drop = ["error", *operands.keys() & LISTS.keys()]
    assert same(kept.drop(drop), expected.drop(drop))
    assert pc.is_valid(kept["error"]).equals(pc.is_valid(expected["error"]))
    if pc.any(pc.is_valid(full["error"])).as_py():
        with pytest.raises(lh.DecodeError):
            lha.messages(column, "record-batch", columns=["offset"], where=where)


@pytest.mark.parametrize("errors", ["null", "column"])
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_mostly_selected_messages_equal_filtered_ones(codec: Any, errors: Any) -> None:
    # Headers of such messages are decoded while they are tested; those of rejected ones are removed again.
    def headers(at: int) -> list[tuple[str, bytes | None]]:
        number = b"\0" if at % 211 == 0 else at.to_bytes(4, "big")
        rest = [("k" * (at % 70), None if at % 3 == 0 else b"v" * (at % 90)) for _ in range(at % 4)]
        return [*rest, ("n", number), ("m", b"m")] if at % 59 else []

    messages = [
        lh.Message(offset=at, timestamp=at, headers=headers(at), key=b"key", value=b"v" * (at % 5))
        for at in range(2000)
    ]
    column = pa.array([lh.batch(messages[at : at + 500], "record-batch", codec=codec) for at in range(0, 2000, 500)])
    requested: Any = {"n": "int32", "m": "string"}
    full = table_of(lha.messages(column, "record-batch", headers=requested, errors=errors))
    number = lh.col("n", "int32")
    conditions: list[tuple[Any, Callable[[int], bool]]] = [
        (number >= 0, lambda n: True),
        (~number.isin([70, 71, 300, 900]), lambda n: n not in {70, 71, 300, 900}),
        ((number < 700) | (number > 1300), lambda n: not 700 <= n <= 1300),
    ]
    for where, holds in conditions:
        is_kept = [n is not None and holds(n) for n in full["n"].to_pylist()]
        if errors == "column":
            is_kept = [
                kept or error is not None for kept, error in zip(is_kept, full["error"].to_pylist(), strict=True)
            ]
        expected = full.filter(pa.array(is_kept))
        got = table_of(lha.messages(column, "record-batch", headers=requested, errors=errors, where=where))
        # Errors of the condition are in the column, too.
        names = [name for name in expected.column_names if name != "error"]
        assert got.select(names).equals(expected.select(names))
        part = lha.messages(column, "record-batch", columns=["offset", "headers"], errors=errors, where=where)
        assert table_of(part).select(["offset", "headers"]).equals(expected.select(["offset", "headers"]))
        assert got.num_rows > 1000


@few
@given(
    rows=st.lists(headers_of(False) | st.binary(max_size=12) | st.none(), max_size=80), drawn=conditions(list(COLUMNS))
)
def test_where_equals_filtering_column_of_headers(rows: list[Any], drawn: Any) -> None:
    where, mask = drawn
    column = pa.array(
        [row if isinstance(row, bytes) or row is None else lh.encode(row, "kafka") for row in rows], pa.binary()
    )
    full = table_of(lha.select(column, COLUMNS | LISTS, errors="null"))
    got = table_of(lha.select(column, COLUMNS, errors="null", where=where))
    selected = mask(full)
    assert same(got, full.filter(selected).drop(list(LISTS)))
    assert lha.decode(column, "kafka", errors="null", where=where) == lha.decode(column, "kafka", errors="null").filter(
        selected.combine_chunks() if isinstance(selected, pa.ChunkedArray) else selected
    )
    broken = lha.validate(column, "kafka")
    kept = lha.decode(column, "kafka", errors="column", where=where)
    with_error = pc.sum(pc.is_valid(kept.field("error"))).as_py() or 0
    assert with_error >= (pc.sum(pc.is_valid(broken)).as_py() or 0)


@few
@given(
    rows=st.lists(headers_of(False) | st.none(), max_size=20),
    drawn=conditions([*COLUMNS, "key", "timestamp"]),
    fields=st.fixed_dictionaries({name: _VALUES[name] | st.none() for name in ("key", "timestamp")}),
)
def test_store_rows_are_selected_like_column_rows(rows: list[Any], drawn: Any, fields: dict[str, Any]) -> None:
    where, mask = drawn
    blocks = [row if row is None else lh.encode(row, "kafka") for row in rows]
    types = {"key": "binary", "timestamp": "timestamp_ms"}
    columns = {"key": pa.array([fields["key"]] * len(rows), pa.binary())}
    columns["timestamp"] = pa.array([fields["timestamp"]] * len(rows), pa.int64())
    of_store = RowFilter(where, types, None, "kafka", errors="null")
    selected = of_store.examine(columns, pa.array(blocks, pa.binary()), len(rows)).selected
    full = table_of(lha.select(pa.array(blocks, pa.binary()), COLUMNS | LISTS, errors="null"))
    for name, type in (("key", pa.binary()), ("timestamp", pa.int64())):
        full = full.append_column(name, pa.array([fields[name]] * len(rows), type))
    expected = mask(full)
    expected = expected.combine_chunks() if isinstance(expected, pa.ChunkedArray) else expected
    assert selected.equals(pc.fill_null(expected, False))


def selects(where: Any, block: bytes) -> bool:
    """Whether a row of a store is selected."""
    selected: bool = RowFilter(where, {}, None, "kafka").examine({}, pa.array([block]), 1).selected[0].as_py()
    return selected


@pytest.mark.parametrize("number", [1.5, math.nan])
def test_nan_is_unordered_in_columns_and_stores(number: float) -> None:
    block = lh.encode([("ratio", lh.Float64(number).bits)], "kafka")
    ratio = lh.col("ratio", "float64")
    for literal in (1.5, math.nan):
        expected = [compare(number, literal) for compare in _OPERATORS.values()]
        conditions = [compare(ratio, literal) for compare in _OPERATORS.values()]
        of_store = [selects(where, block) for where in conditions]
        of_column = [len(lha.decode(pa.array([block]), "kafka", where=where)) == 1 for where in conditions]
        assert of_store == of_column == expected
        assert selects(ratio.isin([literal]), block) == (number == literal)


def test_float32_compares_by_exact_value() -> None:
    column = _column([("f", lh.Float32(0.1).bits)])
    ratio = lh.col("f", "float32")
    for where, count in ((ratio == 0.10000000149011612, 1), (ratio > 0.1, 1), (ratio < 0.2, 1), (ratio < math.inf, 1)):
        assert len(lha.decode(column, "kafka", where=where)) == count


def _column(*headers: list[tuple[str, Any]]) -> pa.Array:
    return pa.array([lh.encode(pairs, "kafka") for pairs in headers])


def test_repeated_keys_are_tested_by_last_any_or_all_values() -> None:
    column = _column([("r", "a"), ("r", "b")], [("r", "b"), ("r", "a")], [("r", "a"), ("r", "a")], [])
    rows = lha.select(column, {"r": "array<string>"}).field("r").to_pylist()

    def selected(where: Any) -> list[Any]:
        return lha.select(column, {"r": "array<string>"}, where=where).field("r").to_pylist()

    assert selected(lh.col("r", "string") == "a") == rows[1:3]
    assert selected(lh.col("r", "string", repeat="first") == "a") == [rows[0], rows[2]]
    assert selected(lh.col("r").any() == "b") == rows[:2]
    assert selected(lh.col("r").all() == "a") == rows[2:3]
    # A header that is missing is null, which nothing is equal or unequal to.
    assert selected(~(lh.col("r").any() == "b")) == rows[2:3]
    assert selected(lh.col("r", "string").is_null()) == [[]]
    with pytest.raises(lh.DecodeError, match="second time"):
        selected(lh.col("r", "string", repeat="error") == "a")


def test_errors_count_only_in_messages_not_excluded_by_fields() -> None:
    messages = [
        lh.Message(offset=at, timestamp=1, headers=[("retry", b"xx" if at == 1 else b"\0\0\0\1")]) for at in range(3)
    ]
    column = pa.array([lh.batch(messages, "record-batch")])
    retry = lh.col("retry", "int32") == 1
    with pytest.raises(lh.DecodeError, match=r"column where.*2 bytes where int32 takes 4"):
        lha.messages(column, "record-batch", where=retry & (lh.col("offset") < 2))
    got = lha.messages(column, "record-batch", columns=["offset"], where=retry & (lh.col("offset") > 1))
    assert got.field("offset").to_pylist() == [2]


@pytest.mark.parametrize("errors", ["raise", "column"])
def test_errors_of_rows_excluded_by_field_are_omitted(errors: Any) -> None:
    rows = [(1, b"x"), (1, b"y"), (2, bytes(4)), (2, b"z"), (1, b"w")]
    messages = [{"timestamp": at, "headers": {"retry": retry}, "payload": b""} for at, retry in rows]
    column = pa.array([lh.encode(message, "streams-timestamped") for message in messages])

    def selected(rows: pa.Array, timestamp: int) -> pa.Array:
        where = (lh.col("timestamp") == timestamp) & (lh.col("retry", "int32") == 0)
        return lha.select(rows, {"tenant": "string"}, format="streams-timestamped", where=where, errors=errors)

    assert len(selected(column[:3], 2)) == 1
    if errors == "column":
        assert len(selected(column, 2)) == 2
    else:
        with pytest.raises(lh.DecodeError, match="column where") as caught:
            selected(column, 2)
        assert caught.value.row == 3


def test_error_and_message_rows_count_all_rows() -> None:
    column = _column([("t", "b")], [("t", "a")], [("t", "a"), ("n", b"x")])
    with pytest.raises(lh.DecodeError) as error:
        lha.select(column, {"n": "int32"}, where=lh.col("t") == "a")
    assert error.value.row == 2
    with pytest.raises(lh.DecodeError) as error:
        lha.select(pa.chunked_array([column[:2], column[:0], column]), {"n": "int32"}, where=lh.col("t") == "a")
    assert error.value.row == 4
    sets = [lh.batch([lh.Message(timestamp=1, headers=[("t", name)])], "record-batch") for name in "bab"]
    assert lha.messages(pa.array(sets), "record-batch", where=lh.col("t") == "a").field("row").to_pylist() == [1]


def test_stream_returns_chunk_for_each_chunk() -> None:
    column = _column([("t", "a")], [("t", "b")])
    chunks = pa.chunked_array([column, column.slice(1), column])
    got = lha.decode(chunks, "kafka", where=lh.col("t") == "a", threads=2)
    assert [len(chunk) for chunk in got.chunks] == [1, 0, 1]


def test_name_of_field_and_header_is_ambiguous() -> None:
    data = lh.encode(lh.Message(headers={"timestamp": b"1"}, timestamp=5, payload=b""), "streams-timestamped")
    with pytest.raises(ValueError, match="'timestamp' is a record field and a column of headers=: pass col"):
        lha.select(pa.array([data]), {"timestamp": "string"}, "streams-timestamped", where="timestamp = 5")


def test_result_columns_may_name_condition_headers() -> None:
    column = _column([("x-retry", b"\0\0\0\5")], [("x-retry", b"\0\0\0\1")])
    columns = {"retry": lh.field("int32", key="x-retry")}
    assert lha.select(column, columns, where=lh.col("retry") > 2).to_pylist() == [{"retry": 5}]


def test_typed_formats_compare_values_of_type() -> None:
    column = pa.array([lh.encode({"n": lh.Int32(value)}, "iggy") for value in (1, 5)])
    assert len(lha.decode(column, "iggy", where=lh.col("n", "int32") > 2)) == 1
    assert len(lha.decode(column, "iggy", where=lh.col("n") == lh.Int32(5))) == 1
    assert len(lha.decode(column, "iggy", where=lh.col("n", "int64") > 2)) == 1
    with pytest.raises(lh.DecodeError, match="string was requested"):
        lha.decode(column, "iggy", where=lh.col("n", "string") == "2")


PRESENCE = _column([("tenant", b"acme"), ("content-type", b"x")], [("tenant", None)], [])


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("tenant is not null", [0]),
        ("tenant is null", [1, 2]),
        ("headers['content-type'] is not null", [0]),
        (lh.col("tenant").is_not_null(), [0]),
        (lh.col("tenant").exists(), [0, 1]),
        (~lh.col("tenant").exists(), [2]),
        (lh.col("tenant").exists() & lh.col("tenant").is_null(), [1]),
        ("tenant like '%cm%'", [0]),
        (lh.col("tenant").contains("cm"), [0]),
        (lh.col("tenant").contains("acmee"), []),
        (lh.col("tenant").isin(["acme"]), [0]),
    ],
)
def test_presence_and_substrings_are_tested(where: Any, rows: list[int]) -> None:
    selected = lha.decode(PRESENCE, "kafka", where=where).to_pylist()
    assert selected == [lha.decode(PRESENCE, "kafka").to_pylist()[row] for row in rows]


def test_presence_needs_no_type_in_typed_formats() -> None:
    column = pa.array([lh.encode([("n", value)], "iggy") for value in (lh.Int32(1), lh.String("x"))] + [b""])
    assert len(lha.decode(column, "iggy", where="n is not null")) == 2
    assert len(lha.decode(column, "iggy", where=~lh.col("n").exists())) == 1


@pytest.mark.parametrize(
    ("where", "remedy"),
    [
        ('tenant = "acme"', "write text in single quotes: 'acme'"),
        ("`content-type` = 'x'", "write names in double quotes, not in backticks"),
        ("content-type = 'x'", 'write a name with a hyphen in double quotes, "content-type"'),
    ],
)
def test_errors_name_required_quotes(where: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=re.escape(remedy)):
        lha.decode(PRESENCE, "kafka", where=where)
    assert len(lha.decode(PRESENCE, "kafka", where="tenant = '`'")) == 0


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (lh.col("retry") > 2, "the header needs a type"),
        (lh.col("retry", "int32") > 2.5, "2.5 is not a whole number"),
        (lh.col("retry", "int32") < math.inf, "inf is not a whole number"),
        (lh.col("retry", "int32") != math.nan, "nan is not a whole number"),
        (lh.col("ratio", "float32") == 0.1, "0.1 has no exact float32: the nearest is 0.10000000149011612"),
        (lh.col("ratio", "float32").isin([0.5, 1e300]), r"1e\+300 has no exact float32"),
        (lh.col("ratio", "float64") > 2**53 + 1, "9007199254740993 has no exact float64"),
        (lh.col("ratio", "float64") < 10**400, "has no exact float64"),
        (lh.col("retry", "int32") == "2", "int32 is not compared with text: pass a number"),
        (lh.col("retry", "array<int32>") == 2, r"use any\(\) or all\(\)"),
        (lh.col("at", "timestamp_ms") > datetime(2026, 1, 1), "no time zone"),
        (lh.col("retry", "int32").starts_with("a"), "starts_with is for text and bytes"),
        (lh.col("offset").any() == 5, "a record field has one value"),
    ],
)
def test_ambiguous_conditions_are_rejected_with_remedy(where: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        lha.messages(pa.array([], pa.binary()), "record-batch", where=where)


def test_conditions_cannot_be_used_as_bools() -> None:
    with pytest.raises(TypeError, match="combine conditions with &"):
        bool(lh.col("a") == "x")
    with pytest.raises(TypeError, match="compare it with a literal"):
        bool(lh.col("a"))
    with pytest.raises(TypeError, match="use is_null"):
        lh.col("a") == None  # noqa: B015, E711
    with pytest.raises(TypeError, match="put comparisons in parentheses"):
        (lh.col("a", "int32") > 1) & 5  # type: ignore[operator]


@pytest.mark.parametrize(
    ("where", "offsets"),
    [
        (lh.col("offset") >= 5, (5, None)),
        (lh.col("offset") > 5, (6, None)),
        (lh.col("offset") <= 5, (None, 5)),
        (lh.col("offset") < 5, (None, 4)),
        (lh.col("offset") == 5, (5, 5)),
        (lh.col("offset") != 5, (None, None)),
        (lh.col("offset").isin([7, 5, 9]), (5, 9)),
        (~(lh.col("offset") >= 5), (None, 4)),
        (~(lh.col("offset") > 5), (None, 5)),
        (~(lh.col("offset") <= 5), (6, None)),
        (~(lh.col("offset") < 5), (5, None)),
        (~(lh.col("offset") == 5), (None, None)),
        (~(lh.col("offset") != 5), (5, 5)),
        (~lh.col("offset").isin([5, 9]), (None, None)),
        ((lh.col("offset") > 5) & (lh.col("t") == "a") & (lh.col("offset") <= 9), (6, 9)),
        ((lh.col("offset") == 5) | (lh.col("offset").isin([7, 9])), (5, 9)),
        ((lh.col("offset") == 5) | (lh.col("t") == "a"), (None, None)),
        (~(lh.col("offset") < 0), (0, None)),
        (~((lh.col("offset") < 3) | (lh.col("offset") > 8)), (3, 8)),
        (lh.col("offset").isin([]), (None, None)),
    ],
)
def test_offset_bounds_follow_from_condition(where: Any, offsets: tuple[int | None, int | None]) -> None:
    resolved = resolve(where, fields_of_format("record-batch"))
    assert resolved is not None
    assert resolved.bounds("offset") == offsets


def test_times_compare_with_datetimes_and_text() -> None:
    messages = [lh.Message(offset=at, timestamp=1000 * at, headers=[]) for at in range(3)]
    column = pa.array([lh.batch(messages, "record-batch")])
    for time in (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "1970-01-01T00:00:01Z", 1000):
        got = lha.messages(column, "record-batch", columns=["offset"], where=lh.col("timestamp") >= time)
        assert got.field("offset").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("written", "selected"),
    [
        ("(pyarrow.compute.field('t') == 'a') | pyarrow.compute.field('t').is_null()", ["a", None]),
        ("~(polars.col('t') == 'b')", ["a"]),
    ],
)
def test_expression_of_another_library_is_rejected_with_remedy(written: str, selected: list[Any]) -> None:
    library = written.strip("(~").partition(".")[0]
    names = {library: pytest.importorskip(library), "letterhead": lh}
    column = _column([("t", "a")], [("t", "b")], [])
    with pytest.raises(TypeError, match=r"where must be .* or SQL text, not Expr") as raised:
        lha.select(column, {"t": "string"}, where=eval(written, names))
    advice = re.search(r"write (\S+) in place of (\S+), with the same operators", str(raised.value))
    assert advice is not None
    where = eval(written.replace(advice[2], advice[1]), names)
    assert lha.select(column, {"t": "string"}, where=where).field("t").to_pylist() == selected


@pytest.mark.parametrize("key", [None, b"k"])
@given(rows=st.lists(st.tuples(st.booleans(), st.sampled_from([None, b"\0\0\0\1", b"\0\0\0\2", b"\0\1"])), max_size=80))
def test_messages_with_errors_are_selected_by_known_fields(key: bytes | None, rows: list[Any]) -> None:
    messages = [
        lh.Message(offset=offset, key=b"k" if has_key else key, headers=[] if retry is None else [("retry", retry)])
        for offset, (has_key, retry) in enumerate(rows)
    ]
    column = pa.array([lh.batch(messages, "record-batch")] if messages else [], pa.binary())
    for word in ("and", "or"):
        where = f"key is not null {word} retry::int32 = 1"
        expected: dict[str, list[int]] = {"null": [], "column": []}
        for message, (_, retry) in zip(messages, rows, strict=True):
            has_key, is_one = message.key is not None, retry == b"\0\0\0\1"
            is_bad = retry is not None and len(retry) != 4
            if (has_key and is_one) if word == "and" else (has_key or is_one):
                expected["null"].append(message.offset or 0)
                expected["column"].append(message.offset or 0)
            elif is_bad and (has_key or word == "or"):
                expected["column"].append(message.offset or 0)
        for errors in ("null", "column"):
            read = lha.messages(column, "record-batch", columns=["offset"], where=where, errors=errors)
            assert read.field("offset").to_pylist() == expected[errors]


def test_presence_does_not_depend_on_header_column() -> None:
    column = _column([("note", b"a")], [("note", None)], [("note", b"\xff")], [])
    lists = lha.decode(column, "kafka")
    columns: dict[str, Any] = {"note": "string", "n": lh.field("string", key="note")}
    for where, count in (
        ("note present", 3),
        ("exists(n)", 3),
        ("not (note present)", 1),
        ("note present and note is null", 2),
    ):
        for source in (column, lists):
            assert len(lha.select(source, columns, where=where, errors="null")) == count


@given(
    rows=st.lists(
        st.tuples(st.booleans(), *[st.sampled_from([None, b"\0\0\0\1", b"\0\0\0\2", b"\0\1"])] * 2), max_size=70
    )
)
def test_errors_raise_for_selected_or_undecided_records(rows: list[Any]) -> None:
    messages = []
    for offset, (other_first, retry, other) in enumerate(rows):
        headers = [(key, value) for key, value in (("retry", retry), ("other", other)) if value is not None]
        messages.append(lh.Message(offset=offset, headers=headers[::-1] if other_first else headers))
    column = pa.array([lh.batch(messages, "record-batch")] if messages else [], pa.binary())
    is_bad = lambda value: value is not None and len(value) != 4  # noqa: E731
    selected = [at for at, (_, retry, _) in enumerate(rows) if retry == b"\0\0\0\1"]
    wrong = [at for at, (_, retry, other) in enumerate(rows) if is_bad(retry) or (at in selected and is_bad(other))]

    def read() -> Any:
        headers = {"other": "int32"}
        return lha.messages(column, "record-batch", columns=["offset"], headers=headers, where="retry::int32 = 1")

    if wrong:
        with pytest.raises(lh.DecodeError, match=f"message {wrong[0]}: "):
            read()
    else:
        assert read().field("offset").to_pylist() == selected


def test_value_replaceable_by_unread_header_leaves_undecided() -> None:
    broken = (lh.encode([("tenant", "acme"), ("zz", "QQQQ")], "kafka") or b"").replace(b"\x08QQQQ", b"\x7eQQQQ")
    column = pa.array([broken], pa.binary())
    operations: list[Callable[[str], Any]] = [
        lambda where: lha.decode(column, "kafka", where=where, errors="column"),
        lambda where: lha.select(column, {"n": "string"}, where=where, errors="column"),
    ]
    for operation in operations:
        for where in ("tenant = 'acme'", "tenant = 'other'", "not (tenant = 'acme')"):
            [found] = operation(where).field("error").to_pylist()
            assert "where" in [error["column"] for error in found]
