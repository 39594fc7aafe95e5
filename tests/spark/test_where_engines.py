"""``where_headers`` by Spark's expressions and by Arrow: the same rows and errors, and plans that let other conditions through."""

from __future__ import annotations

import random
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.fields import normalise
from letterhead.operations import DecodeOptions, Select, Where
from letterhead.types import base_type
from letterhead.where.program import filter_of
from tests.reference.text_forms import TEXT_FORMS
from tests.spark.frames import HEADERS, collected, explained
from tests.spark.sample_values import TYPES, headers, many_rows
from tests.spark.settings import configured
from tests.spark.test_select_engines import random_rows

pytestmark = pytest.mark.spark_only

ALL_TYPES = [
    *TYPES,
    *TEXT_FORMS,
    "int32 | int32:text",
    "timestamp_ms | timestamp:iso",
    "timestamp_ms | timestamp_ms:le",
]
GROUPS = [ALL_TYPES[start : start + 8] for start in range(0, len(ALL_TYPES), 8)]
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
PATTERNS = [
    "^a", "a$", "^$", ".", "^.$", "é", "[a-c]b?", "a|^b", "(?i)K", "(?i)[^s]", "(?s)^a.$", "x{2,3}", r"\.", "[^0-9]", "-", "1+$",
]  # fmt: skip


def frame(spark: Any, rows: list[Any]) -> Any:
    return spark.createDataFrame(pa.table({"row": range(len(rows)), "headers": pa.array(rows, HEADERS)}))


def conditions_of(type: str, rows: list[Any], draw: random.Random) -> list[Any]:
    """Return conditions on values of a type, whose literals are some of these values and others near them."""
    options = DecodeOptions(errors="null")
    column = Select("kafka", {"k": lh.field(type, key="k", repeat="all")}, options)(pa.array(rows, HEADERS)).field("k")
    values = [value for value in column.flatten().to_pylist() if value is not None]
    if pa.types.is_timestamp(column.type.value_type):
        values = [value.as_py() for value in column.flatten().cast(pa.int64()) if value.is_valid]
        # In milliseconds, or in microseconds.
        values = [value for value in values if _fits_time(type, value)]
    literals = [draw.choice(values) for _ in range(3) if values] + _others(type)
    operand = lh.col("k", type)
    others = [
        lh.col("k", type).any(),
        lh.col("k", type).all(),
        lh.col("κ", type, repeat="first"),
        lh.col("k", type, repeat="error"),
    ]
    found = [operand.is_null(), lh.col("k", type).any().isin([])]
    for literal in literals:
        for tested in (operand, draw.choice(others)):
            found.append(getattr(tested, draw.choice(COMPARISONS))(literal))
            found.append(tested.isin([literal, *draw.sample(literals, 1)]))
    if base_type(type) in ("string", "char", "binary"):
        parts = ["a", "", "é", "b"]
        found += [operand.starts_with(part) | others[0].contains(part) for part in parts]
    if base_type(type) in ("string", "char"):
        found += [draw.choice([operand, *others]).matches(pattern) for pattern in draw.sample(PATTERNS, 4)]
    found = draw.sample(found, min(8, len(found)))
    return [*found, found[1] & ~found[2] | found[3]]


def _fits_time(type: str, value: int) -> bool:
    return abs(value) < 1 << 60


def _others(type: str) -> list[Any]:
    base = base_type(type)
    if base.startswith(("int", "uint")):
        return [0, -1, 10**38, -(1 << 127)]
    if base.startswith("float"):
        return [0.0, -0.0, float("nan"), float("inf")]
    if base.startswith("decimal"):
        return [0]
    texts: dict[str, list[Any]] = {
        "string": ["", "a"], "char": ["a", ""], "binary": [b"", b"\xff"], "bool": [True, False], "date": ["2026-01-31"],
        "uuid": ["00000000-0000-0000-0000-000000000000"],
    }  # fmt: skip
    return texts.get(base, [0, -1])


def truths_of_core(condition: Any, rows: pa.Array) -> list[bool | None]:
    """Return whether a condition is true, false or null of each list."""
    options = DecodeOptions(errors="null")
    yes, no = (Where("kafka", part, options)(rows).field("selected").to_pylist() for part in (condition, ~condition))
    return [True if is_true else False if is_false else None for is_true, is_false in zip(yes, no, strict=True)]


def truths_of_spark(df: Any, conditions: list[Any]) -> dict[str, list[bool | None]]:
    from letterhead.spark.conditions import HeaderCondition, check_tested_by_spark
    from letterhead.spark.header_column import HeaderLists
    from letterhead.spark.selection import _project
    from letterhead.spark.sql_text import column_by_name

    lists, columns = HeaderLists(column_by_name("headers"), "kafka", "null", is_tested=True), {}
    for number, condition in enumerate(conditions):
        resolved = filter_of(condition, "kafka")
        check_tested_by_spark(resolved)
        columns[f"c{number}"] = HeaderCondition(resolved, lists).truth
    return collected(_project(df, [], columns))


@pytest.mark.full
@pytest.mark.hypothesis
@pytest.mark.parametrize("types", GROUPS, ids=lambda types: types[0])
def test_conditions_are_true_for_same_rows(spark: Any, types: list[str]) -> None:
    @many_rows
    @given(
        st.lists(st.sampled_from(types).flatmap(lambda type: headers(type, ("k", "κ", ""))), min_size=20, max_size=60),
        st.randoms(),
    )
    def agree(rows: list[Any], draw: random.Random) -> None:
        for type in types:
            conditions = conditions_of(type, rows, draw)
            read = truths_of_spark(frame(spark, rows), conditions)
            for number, condition in enumerate(conditions):
                expected = truths_of_core(condition, pa.array(rows, HEADERS))
                assert list(zip(read[f"c{number}"], rows, strict=True)) == list(zip(expected, rows, strict=True)), (
                    condition
                )

    agree()


CONDITIONS = [
    lh.col("k") == "true",
    (lh.col("k", "int64", repeat="first") > 0) & ~(lh.col("k", "int32:text | int64") >= 5),
    (lh.col("k", "timestamp:iso") > "2026-01-31T08:00:00Z") | lh.col("κ").is_null(),
    (lh.col("k", "timestamp_ms") < datetime.fromisoformat("2026-01-31T08:00:00+00:00")) | lh.col("other").exists(),
    (lh.col("k").any() == "true") | (lh.col("").all() != "true"),
    ~(lh.col("k", "float64:text").isin([1.0, float("nan")])) & (lh.col("k", "binary", repeat="error") != b""),
    lh.col("k").starts_with("2026") | (lh.col("other").matches("(?i)^T.*E$") & lh.col("k", "date:text").is_not_null()),
    lh.col("headers").any().contains("26-0"),
]  # fmt: skip


@pytest.mark.parametrize("errors", ["null", "column"])
@pytest.mark.parametrize(("zone", "ansi"), [("UTC", True), ("America/St_Johns", False), ("Asia/Kathmandu", True)])
def test_engines_select_same_rows(spark: Any, zone: str, ansi: bool, errors: str) -> None:
    df = frame(spark, random_rows(7))
    with configured(spark, **{"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        for condition in CONDITIONS:
            by_spark, by_arrow = (
                lhs.where_headers(df, condition, keep=["row"], errors=errors, engine=engine)
                for engine in ("spark", "arrow")
            )
            assert by_spark.schema == by_arrow.schema
            expected = collected(by_arrow)
            assert collected(by_spark) == expected, condition
            assert len(expected["row"]) > 0


def test_engines_raise_same_errors(spark: Any) -> None:
    rows = random_rows(11)[:600]
    for condition in CONDITIONS:
        df = frame(spark, rows)
        errors = collected(lhs.where_headers(df, condition, errors="column", engine="arrow", keep=["row"]))
        bad = {row for row, error in zip(errors["row"], errors["error"], strict=True) if error}
        whole = frame(spark, [row for index, row in enumerate(rows) if index not in bad])
        by_spark, by_arrow = (
            collected(lhs.where_headers(whole, condition, engine=engine)) for engine in ("spark", "arrow")
        )
        assert by_spark == by_arrow
        texts = {}
        for index in sorted(bad)[:6]:
            for engine in ("spark", "arrow"):
                one = frame(spark, [rows[index]]).selectExpr("cast(7 as bigint) offset", "headers")
                with pytest.raises(PySparkException) as raised:
                    lhs.where_headers(one, condition, engine=engine).collect()
                [text] = [line for line in str(raised.value).splitlines() if "kafka: " in line][-1:]
                texts[engine] = text.partition("kafka: ")[2]
            text = texts["arrow"].partition(" in the row with offset=7")[0]
            assert texts["spark"].startswith(f"{text} ("), texts
            assert ") in the row with offset=7" in texts["spark"]


@pytest.mark.parametrize("errors", ["null", "column"])
def test_select_where_returns_rows_of_core(spark: Any, errors: Any) -> None:
    rows = random_rows(7)
    df, columns = (
        frame(spark, rows),
        {"number": lh.field("int64", key="k"), "others": lh.field("string", key="κ", repeat="all")},
    )
    for condition in CONDITIONS:
        expected = lha.select(pa.array(rows, HEADERS), columns, where=condition, errors=errors)
        where = Where("kafka", filter_of(condition, "kafka", normalise(columns)), DecodeOptions(errors=errors))
        selected = where(pa.array(rows, HEADERS)).field("selected").to_pylist()
        for engine in ("spark", "arrow") if errors == "null" else ("arrow", None):
            read = collected(
                lhs.select_headers(df, columns, where=condition, keep=["row"], errors=errors, engine=engine)
            )
            assert read["row"] == [row for row, is_selected in enumerate(selected) if is_selected]
            for name in columns:
                assert read[name] == expected.field(name).to_pylist(), (condition, engine)
            if errors == "column":
                codes = [error and [detail["code"] for detail in error] for error in read["error"]]
                assert codes == [
                    error and [detail["code"] for detail in error] for error in expected.field("error").to_pylist()
                ]


@pytest.mark.parametrize("engine", ["spark", "arrow", None])
def test_select_where_ignores_values_of_other_rows(spark: Any, engine: Any) -> None:
    rows = [
        [{"key": "k", "value": b"no int"}, {"key": "tenant", "value": b"other"}],
        [{"key": "k", "value": b"7"}, {"key": "tenant", "value": b"acme"}],
    ]
    df = frame(spark, rows)
    read = lhs.select_headers(df, {"k": "int64:text"}, where="tenant = 'acme'", keep=["row"], engine=engine)
    assert read.columns == ["row", "k"]
    assert read.collect() == [(1, 7)]
    alone = lhs.select_headers(df, {"k": "int64:text"}, where="tenant = 'acme'", keep=[], engine=engine)
    assert alone.collect() == [(7,)]
    identify = ["row"] if engine == "arrow" else ()
    damaged = lhs.select_headers(df, {"k": "int64:text"}, where="tenant = 'other'", identify=identify, engine=engine)
    with pytest.raises(PySparkException, match="kafka: column k: .*row=0" if engine == "arrow" else "kafka: column k"):
        damaged.collect()


def test_select_where_of_spark_rejects_error_column(spark: Any) -> None:
    df = frame(spark, [])
    with pytest.raises(ValueError, match=r"where= with errors='column'.*omit engine="):
        lhs.select_headers(df, {"k": "int8"}, where="k = 5", errors="column", engine="spark")


def test_decode_where_keeps_columns_of_selected_rows(spark: Any) -> None:
    messages = [lh.Message(timestamp=n, payload=b"v", headers={"n": bytes([n])}) for n in range(4)]
    data = [lh.encode(message, "streams-timestamped") for message in messages]
    df = spark.createDataFrame(pa.table({"row": range(4), "value": pa.array(data, pa.binary())}))
    read = lhs.decode_headers(df, "streams-timestamped", column="value", where="timestamp > 1 and n::int8 <> 3")
    assert collected(read.select("row", "timestamp")) == {"row": [2], "timestamp": [2]}


@pytest.mark.parametrize("errors", ["raise", "null", "column"])
def test_later_conditions_are_pushed_to_table(spark: Any, tmp_path: Any, errors: Any) -> None:
    headers = pa.array([[{"key": "k", "value": b"v"}], [{"key": "k", "value": b"v"}]], HEADERS)
    rows = spark.createDataFrame(pa.table({"day": ["1", "2"], "n": [1, 2], "headers": headers, "value": [b"a", b"b"]}))
    rows.write.partitionBy("day").parquet(str(tmp_path / "table"))
    table = spark.read.parquet(str(tmp_path / "table"))
    filtered = {
        engine: lhs.where_headers(table, lh.col("k", "string") == "v", errors=errors, engine=engine)
        .where("day = '2' and n > 1")
        .select("n")
        for engine in ("spark", "arrow")
    }
    assert filtered["spark"].collect() == filtered["arrow"].collect() == [(2,)]
    by_spark, by_arrow = explained(filtered["spark"]), explained(filtered["arrow"])
    assert "PartitionFilters: [isnotnull(day" in by_spark
    assert "GreaterThan(n,1)" in by_spark
    assert "value:binary" not in by_spark.partition("ReadSchema: ")[2].splitlines()[0].replace(
        "key:string,value:binary", ""
    )
    assert "MapInArrow" not in by_spark
    assert "PartitionFilters: []" in by_arrow or "PartitionFilters" not in by_arrow


def test_plans_grow_with_condition(spark: Any) -> None:
    """A filter has a copy of every column that it reads, so that a condition of many steps would take all memory."""
    df = spark.createDataFrame([], "headers array<struct<key:string,value:binary>>")
    sizes = {}
    for count in (2, 10):
        condition = lh.col("k0", "timestamp:iso") > "2026-01-31T08:00:00Z"
        for number in range(1, count):
            condition = condition & (lh.col(f"k{number}", "decimal(20,3):text") > number)
        selected = lhs.where_headers(df, condition, engine="spark")
        sizes[count] = len(selected._jdf.queryExecution().optimizedPlan().toJSON())
        assert selected.collect() == []
    assert sizes[10] < 6 * sizes[2] < 6 * 500_000


@pytest.mark.parametrize(
    ("condition", "options", "text"),
    [
        (lh.col("k", "int64:varlen") > 1, {}, "type 'int64:varlen' is not read by Spark's expressions"),
        (lh.col("k").matches("(a|b)+"), {}, "regular expression may match other text in Java.*: omit engine="),
        (lh.col("headers").any().matches("a"), {}, "bytes are not matched by regular expressions of Spark"),
        (lh.col("k") == "v", {"lenient": True}, "apply to binary columns"),
        (lh.col("k") == "v", {"identify": ["row"]}, "needs engine='arrow'"),
        (lh.col("k") == "v", {"engine": "spork"}, "engine"),
        (lh.col("k") == "v", {"format": "kip82-typed"}, "and kip82-typed has others: omit engine="),
    ],
)
def test_options_that_need_arrow_are_named(spark, condition: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lhs.where_headers(
            spark.range(1), **{"column": "headers", "format": "kafka", "where": condition, "engine": "spark", **options}
        )


def test_condition_may_be_long(spark: Any) -> None:
    df = frame(spark, [[{"key": "k", "value": b"\0\0\0\5"}]])
    condition = lh.col("k", "int32") == 5
    for number in range(1500):
        condition = condition & (lh.col("k", "int32") != number * 10 + 7)
    assert lhs.where_headers(df, condition, engine="spark").count() == 1


@pytest.mark.parametrize(
    ("type", "count", "is_read_by_spark"),
    [
        ("int64:text", 6, True),
        ("string", 7, False),
        ("timestamp:iso", 1, False),
        ("int32 | int64", 1, False),
        ("int64:json", 1, False),
    ],
)
def test_default_engine_is_faster_one(spark: Any, type: str, count: int, is_read_by_spark: bool) -> None:
    columns = {f"k{number}": type for number in range(count)}
    condition = lh.col("k0", type).is_null()
    for key in list(columns)[1:]:
        condition = condition & lh.col(key, type).is_null()
    df = spark.createDataFrame([], "headers array<struct<key:string,value:binary>>, bytes binary")
    for transform in (partial(lhs.select_headers, headers=columns), partial(lhs.where_headers, where=condition)):
        assert ("MapInArrow" not in explained(df.transform(transform))) == is_read_by_spark
    assert "MapInArrow" in explained(lhs.select_headers(df, {"k": "string"}, column="bytes"))
    assert "MapInArrow" in explained(lhs.where_headers(df, condition, identify=["bytes"]))
