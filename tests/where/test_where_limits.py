"""Conditions that are nested, long or unusual: an error names the part that is wrong, and nulls follow SQL."""

from __future__ import annotations

import functools
import operator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
import letterhead.arrow as lha
from letterhead.fields import ColumnSpec
from letterhead.where.conditions import MAX_DEPTH
from letterhead.where.program import Filter, ResolvedTest, fields_of_format, resolve

SAMPLES = Path(__file__).parents[1] / "samples"
FIELDS = fields_of_format("record-batch")


def column(*messages: Any) -> pa.Array[Any]:
    return pa.array([lh.encode(headers, "kafka") for headers in messages], pa.binary())


TENANTS = column([("tenant", b"acme")], [("tenant", b"other")], [])


def selected(where: Any, messages: pa.Array[Any] = TENANTS) -> int:
    return len(lha.decode(messages, "kafka", where=where))


def negated(where: Any, times: int) -> Any:
    for _ in range(times):
        where = ~where
    return where


TENANT = lh.col("tenant") == "acme"


@pytest.mark.parametrize(
    ("where", "part"),
    [
        ("NOT " * 300 + "tenant = 'acme'", r"NOT \(line 1, column \d+\)"),
        ("NOT (" * 300 + "tenant = 'acme'" + ")" * 300, r"(NOT|\() \(line 1, column \d+\)"),
        ("(" * 500 + "tenant = 'acme'" + ")" * 500, r"\( \(line 1, column 31\)"),
        ("tenant = " + "(" * 500 + "'acme'" + ")" * 500, r"\( \(line 1, column 40\)"),
        ("\n" + "(" * 500 + "tenant" + ")" * 500 + " = 'acme'", r"\( \(line 2, column 31\)"),
        ("tenant::int32 = " + "- " * 300 + "1", r"- \(line 1, column \d+\)"),
        ("tenant" + "[1" * 500 + "]" * 500 + " = 'acme'", r"\[ \(line 1"),
        (negated(TENANT, 300), "col\\('tenant'\\) == 'acme'"),
        (negated(TENANT, 5000), "col\\('tenant'\\) == 'acme'"),
    ],
    ids=range(9),
)
def test_condition_nested_too_deeply_raises(where: Any, part: str) -> None:
    with pytest.raises(ValueError, match=f"where: .*{part}.* nested too deeply"):
        selected(where)


def test_nesting_up_to_limit_is_read() -> None:
    half = MAX_DEPTH // 2
    assert selected("NOT " * half + "(" * half + "tenant = 'acme'" + ")" * half) == 1
    assert selected("(" * MAX_DEPTH + "tenant = 'acme'" + ")" * MAX_DEPTH) == 1
    assert selected(negated(TENANT, MAX_DEPTH)) == 1
    assert selected(negated(TENANT, MAX_DEPTH - 1)) == 1
    with pytest.raises(ValueError, match="nested too deeply"):
        selected(negated(TENANT, MAX_DEPTH + 1))


@pytest.mark.parametrize(("word", "combine", "count"), [("AND", operator.and_, 0), ("OR", operator.or_, 2)])
def test_thousands_of_conditions_can_be_combined(word: str, combine: Any, count: int) -> None:
    assert selected(f" {word} ".join(["tenant = 'acme'", *["tenant = 'other'"] * 3000])) == count
    assert selected(functools.reduce(combine, [TENANT, *[lh.col("tenant") == "other"] * 3000])) == count


def test_groups_in_chain_are_kept() -> None:
    assert selected("tenant = 'acme' or tenant = 'x' and tenant = 'y' or (tenant = 'z' or tenant = 'other')") == 2
    assert selected("tenant = 'acme' and (tenant = 'x' or tenant = 'acme') and tenant = 'acme'") == 1


@pytest.mark.parametrize("digits", [40, 400, 5000])
@pytest.mark.parametrize("type", ["int32", "int128", "float32", "float64"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_number_too_large_is_named(sign: str, type: str, digits: int) -> None:
    if type.startswith("float") and digits == 40:
        pytest.skip("a double has it")
    with pytest.raises(
        ValueError, match=r"where: .*(9{20}|bits).*(too many digits|too large|does not fit|no exact)"
    ) as raised:
        selected(f"n::{type} = {sign}{'9' * digits}")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("type", ["int32", "float32", "float64"])
def test_python_number_too_large_is_named(type: Any) -> None:
    for number in (10**400, 10**5000, -(10**5000)):
        with pytest.raises(ValueError, match=r"where: col\('n'.*(does not fit|no exact)"):
            selected(lh.col("n", type) == number)


@pytest.mark.parametrize("text", ["1e400", "1e999", "-1e400"])
def test_text_of_infinite_double_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"where: 1e.* too large"):
        selected(f"n::float64 < {text}")


SURROGATES = [
    lambda: selected("tenant = '\ud800'"),
    lambda: selected("\"\udfff\" = 'x'"),
    lambda: selected("headers['\ud800'] = 'x'"),
    lambda: selected("tenant LIKE '\ud800%'"),
    lambda: selected("'\ud800' = ANY(tenant)"),
    lambda: selected(lh.col("tenant") == "\ud800"),
    lambda: selected(lh.col("tenant", "binary") == "\ud800"),
    lambda: selected(lh.col("tenant").starts_with("\ud800")),
    lambda: selected(lh.col("tenant").isin(["x", "\ud800"])),
    lambda: selected(lh.col("\ud800") == "x"),
    lambda: selected(lh.col("tenant", lh.field("string", key="\ud800")) == "x"),
    lambda: lh.read.segments(SAMPLES / "orders-0", where=lh.col("topic") == "\ud800"),
    lambda: lh.read.segments(SAMPLES / "orders-0", where=lh.col("key") == "\ud800"),
    lambda: lh.select(b"\0", {"\ud800": "string"}),
    lambda: lh.select(b"\0", {"a": lh.field("string", key="\ud800")}),
]


@pytest.mark.parametrize("use", SURROGATES, ids=range(len(SURROGATES)))
def test_lone_surrogate_raises_and_is_named(use: Any) -> None:
    with pytest.raises(ValueError, match=r"\\ud(800|fff).* has half a surrogate pair"):
        use()


def test_odd_hex_digits_raise_and_are_named() -> None:
    with pytest.raises(ValueError, match=r"where: x'f' \(line 1, column 5\)"):
        selected("a = x'f'")


# Nulls ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "accepts"),
    [
        (TENANT, False),
        (~TENANT, False),
        (lh.col("tenant", "string").is_null(), True),
        (~lh.col("tenant", "string").is_null(), False),
        (~(TENANT & ~lh.col("tenant", "string").is_null()), True),
        (~(TENANT | lh.col("tenant", "string").is_null()), False),
        (TENANT | lh.col("offset").is_null(), True),
        (~(lh.col("tenant", "string").any() == "a"), False),
        (lh.col("tenant").exists(), False),
        (~lh.col("tenant").exists(), True),
    ],
)
def test_unreadable_message_is_selected_as_null(where: Any, accepts: bool) -> None:
    resolved = resolve(where, FIELDS)
    assert resolved is not None
    assert resolved.accepts_null is accepts
    damaged = pa.array([b"\xff"], pa.binary())
    kept = lha.decode(damaged, "kafka", errors="null", where=where) if "offset" not in repr(where) else [1] * accepts
    assert len(kept) == accepts


@pytest.mark.parametrize("quantifier", ["any", "all"])
@pytest.mark.parametrize("negate", [False, True])
def test_quantified_test_of_absent_header_is_null(quantifier: str, negate: bool) -> None:
    operand = getattr(lh.col("absent", "string"), quantifier)()
    where = ~(operand == "x") if negate else operand == "x"
    assert selected(where) == 0
    pytest.importorskip("rocksdict")
    assert lh.read.state(SAMPLES / "streams-state-0_0", store="latest", where=where).read_all().num_rows == 0


def test_truth_of_lists_follows_sql() -> None:
    for quantifier, expected in (("any", (None, True, None, False)), ("all", (None, False, None, False))):
        header = ColumnSpec("w", "k", "string", "all")
        test = ResolvedTest(header, quantifier, "==", ("x",))
        lists: list[Any] = [[], ["x", "y"], ["x", None] if quantifier == "all" else ["y", None], ["y"], None]
        column = pa.array(lists, pa.list_(pa.string()))
        assert Filter(test).truths({header: column}, len(lists)).to_pylist() == [*expected, None]
        null_with_values = pa.ListArray.from_arrays([0, 2, 3], pa.array(["x", "x", "x"]), mask=pa.array([True, False]))
        assert Filter(test).truths({header: null_with_values}, 2).to_pylist() == [None, True]


@pytest.mark.parametrize(("field", "micros"), [("timestamp_ms", 1), ("timestamp_ms", 999), ("timestamp", 0)])
def test_time_between_two_stored_times_raises(field: str, micros: int) -> None:
    fields = {"t": field}
    exact = datetime(2026, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    resolved = resolve(lh.col("t") == exact, fields)
    assert resolved is not None
    assert resolved.tests()[0].literals == (1767225600005 if field == "timestamp_ms" else 1767225600005000,)
    between = exact.replace(microsecond=5000 + micros)
    if micros:
        with pytest.raises(ValueError, match="between two of the times"):
            resolve(lh.col("t") == between, fields)


@pytest.mark.parametrize("name", ["<", "<=", ">", ">=", "==", "!="])
def test_records_at_bound_of_condition_are_read(name: str) -> None:
    with lh.read.segments(SAMPLES / "orders-0", columns=["offset"]) as reader:
        batches = [batch.column(0) for batch in reader]
    edges = {chunk[at].as_py() for chunk in batches for at in (0, -1)} | {0, 9_999}
    compare = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
    }
    for edge in edges:
        for where in (f"offset {name} {edge}", f"not not offset {name} {edge}"):
            rows = (
                lh.read.segments(SAMPLES / "orders-0", columns=["offset"], where=where).read_all().column(0).to_pylist()
            )
            assert rows == [offset for offset in range(10_000) if compare[name](offset, edge)]
