"""``select_headers`` by Spark's expressions and by Arrow: the same columns, and what Spark does with conditions behind them."""

from __future__ import annotations

import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException

import letterhead as lh
from letterhead import spark as lhs
from letterhead.operations import DecodeOptions, Select
from letterhead.spark.frame import HEADERS as HEADERS_IN_SPARK
from tests.reference.text_forms import TEXT_FORMS
from tests.spark.frames import HEADERS, collected, explained, plain
from tests.spark.sample_values import TYPES, headers, many_rows, values
from tests.spark.settings import configured

pytestmark = pytest.mark.spark_only

ROWS = 4_000
GROUPS = [TYPES[start : start + 12] for start in range(0, len(TYPES), 12)]
ZONES = ["UTC", "America/St_Johns", "Asia/Kathmandu"]


def columns_of(types: list[str]) -> dict[str, lh.Field]:
    """Return a column of each type, and of the first one in every way."""
    ways = {
        "first": lh.field(types[0], key="k", repeat="first"),
        "once": lh.field(types[0], key="k", repeat="error"),
        "all": lh.field(types[0], key="k", repeat="all"),
        "required": lh.field(types[0], key="κ", required=True),
        "absent": lh.field("int32", default=-7),
        "split": lh.field("array<string>", key="k", split=","),
        "needed": lh.field("array<string>", key="κ", required=True, split=","),
        "either": lh.field("int32 | int32:text", key="k", default=5),
    }
    return {**{f"column {n}": lh.field(type, key="k") for n, type in enumerate(types)}, **ways}


def frame(spark: Any, rows: list[Any]) -> Any:
    return spark.createDataFrame(pa.table({"row": range(len(rows)), "headers": pa.array(rows, HEADERS)}))


def by(engine: str, df: Any, columns: Any, **options: Any) -> Any:
    return lhs.select_headers(df, columns, engine=engine, **options)


@pytest.mark.full
@pytest.mark.hypothesis
@pytest.mark.parametrize("errors", ["null", "column"])
@pytest.mark.parametrize("types", GROUPS, ids=lambda types: types[0])
def test_engines_agree(spark: Any, types: list[str], errors: str) -> None:
    keys = ("k", "κ", "") if errors == "null" else ("k", "κ", "", None)

    @many_rows
    @given(st.lists(st.sampled_from(types).flatmap(lambda type: headers(type, keys)), min_size=20, max_size=60))
    def agree(rows: list[Any]) -> None:
        df, columns = frame(spark, rows), columns_of(types)
        assert collected(by("spark", df, columns, errors=errors)) == collected(by("arrow", df, columns, errors=errors))

    agree()


def random_rows(seed: int) -> list[Any]:
    """Return messages that are mostly regular: null, empty, without a key, with repeats, and values of other types."""
    draw = random.Random(seed)

    def value() -> bytes | None:
        kind = draw.randrange(8)
        if kind == 0:
            return None
        number = draw.randrange(-(10**9), 10**9)
        if kind == 1:
            return draw.randbytes(draw.randrange(10))
        return [str(number).encode(), number.to_bytes(8, "big", signed=True), b"2026-01-31T09:30:00+01:00", b"true"][
            kind % 4
        ]

    def header() -> dict[str, Any] | None:
        key = draw.choice(["k", "k", "other", "", "κ", *([None] if draw.randrange(20) == 0 else [])])
        return None if draw.randrange(200) == 0 else {"key": key, "value": value()}

    return [None if draw.randrange(50) == 0 else [header() for _ in range(draw.randrange(6))] for _ in range(ROWS)]


RANDOM = {
    "text": lh.field("string", key="k"), "number": lh.field("int64", key="k", repeat="first"),
    "digits": lh.field("int32:text | int64", key="k", default=-1), "time": lh.field("timestamp:iso", key="k"),
    "millis": lh.field("timestamp_ms", key="k"), "flag": lh.field("bool:text", key="κ", required=True),
    "once": lh.field("binary", key="k", repeat="error"), "every": lh.field("array<string>", key="k"),
    "empty": lh.field("string", key=""), "double": lh.field("float64:text", key="other"),
}  # fmt: skip


MANY = 200_000

MANY_TYPES = [*TYPES, *TEXT_FORMS, "int32 | int32:text", "timestamp_ms | timestamp:iso"]

MANY_GROUPS = [MANY_TYPES[start : start + 6] for start in range(0, len(MANY_TYPES), 6)]

SETTINGS = [(zone, ansi) for ansi in (True, False) for zone in ZONES]


def pool(type: str) -> list[bytes | None]:
    """Return values for a type, mostly valid, often at an edge."""
    found: list[bytes | None] = []

    @seed(1)
    @settings(
        max_examples=20, database=None, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    @given(st.lists(values(type), min_size=20, max_size=40))
    def draw(drawn: list[bytes | None]) -> None:
        found.extend(drawn)

    draw()
    return found


def random_lists(types: list[str], null_keys: bool) -> pa.Array:
    """Return lists of up to five headers, whose keys are types, and one in five values is of another type."""
    draw, pools = random.Random(types[0]), {type: pool(type) for type in types}
    rows: list[Any] = []
    for _ in range(MANY):
        row = []
        for key in draw.choices(types, k=draw.randrange(6)):
            drawn = key if draw.randrange(5) else draw.choice(types)
            is_null = null_keys and draw.randrange(300) == 0
            row.append({"key": None if is_null else key, "value": draw.choice(pools[drawn])})
        rows.append(None if draw.randrange(100) == 0 else row)
    return pa.array(rows, HEADERS)


def ways(types: list[str]) -> dict[str, lh.Field]:
    """Return a column of each type, and some that read it in other ways."""
    first, second, third, *_ = [*types, types[0], types[0]]
    return {
        **{f"column {type}": lh.field(type, key=type) for type in types},
        "first": lh.field(first, key=first, repeat="first"), "once": lh.field(second, key=second, repeat="error"),
        "all": lh.field(third, key=third, repeat="all"), "required": lh.field(first, key=first, required=True),
        "split": lh.field("array<string>", key=second, split="-"),
    }  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("errors", ["raise", "null", "column"])
@pytest.mark.parametrize(("types", "setting"), [(types, SETTINGS[n % 6]) for n, types in enumerate(MANY_GROUPS)])
def test_engines_agree_on_many_random_rows(
    spark: Any, tmp_path: Path, types: list[str], setting: tuple[str, bool], errors: str
) -> None:
    zone, ansi = setting
    lists, columns = random_lists(types, null_keys=errors == "column"), ways(types)
    if errors == "raise":
        valid = (
            Select("kafka", columns, DecodeOptions(errors="column"), dialect="spark")(lists).field("error").is_null()
        )
        lists = lists.filter(valid)
    assert len(lists) > 100
    # Spark's optimizer evaluates a local table itself, by interpretation: that takes hours.
    pq.write_table(pa.table({"headers": lists}), tmp_path / "rows.parquet")
    df = spark.read.parquet(str(tmp_path / "rows.parquet"))
    with configured(spark, **{"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        by_spark, by_arrow = (by(engine, df, columns, errors=errors).toArrow() for engine in ("spark", "arrow"))
    assert by_spark.schema.names == by_arrow.schema.names
    for name in by_arrow.schema.names:
        is_float = "float" in str(by_arrow[name].type)
        # Arrow finds neither that NaN equals itself nor that zeros have other signs.
        if is_float or not by_spark[name].equals(by_arrow[name]):
            assert plain(by_spark[name]) == plain(by_arrow[name]), name


@pytest.mark.parametrize("errors", ["null", "column"])
@pytest.mark.parametrize(("zone", "ansi"), [(zone, ansi) for zone in ZONES for ansi in (True, False)])
def test_engines_agree_on_random_rows(spark: Any, zone: str, ansi: bool, errors: str) -> None:
    df = frame(spark, random_rows(7))
    with configured(spark, **{"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        by_spark, by_arrow = (by(engine, df, RANDOM, errors=errors) for engine in ("spark", "arrow"))
        assert by_spark.schema == by_arrow.schema
        assert collected(by_spark) == collected(by_arrow)


def test_engines_raise_same_errors(spark: Any) -> None:
    rows = [[{"key": key, "value": value} for key, value in row] for row in _BROKEN]
    rows += [row for row in random_rows(11)[:1000] if row and None not in row]
    columns = {
        "digits": lh.field("int32:text", key="k"), "once": lh.field("binary", key="k", repeat="error"),
        "first": lh.field("int32 | int32:text", key="k", repeat="first"), "needed": lh.field("string", required=True, key="k"),
    }  # fmt: skip
    errors = collected(by("arrow", frame(spark, rows), columns, errors="column"))["error"]
    whole = frame(spark, [row for row, error in zip(rows, errors, strict=True) if error is None])
    assert collected(by("spark", whole, columns)) == collected(by("arrow", whole, columns))
    by_place = {
        (error[0]["code"], error[0]["column"]): (row, error[0])
        for row, error in zip(rows, errors, strict=True)
        if error
    }
    assert len(by_place) >= 5
    for row, error in by_place.values():
        with pytest.raises(PySparkException) as raised:
            by("spark", frame(spark, [row]).selectExpr("cast(7 as bigint) offset", "headers"), columns).collect()
        column = f"column {error['column']}: " if error["column"] else ""
        header = "" if error["header"] is None or error["code"] == "null_key" else f", header {error['header']}"
        text = f"kafka: {column}{error['message']} ({error['code']}{header}) in the row with offset=7"
        assert text in str(raised.value)


_BROKEN = [
    [("k", b"1"), ("j", b""), ("k", b"2"), ("k", b"3")],
    [("j", None), ("k", b"one")],
    [("j", None), ("k", b"99999999999")],
    [("j", None)],
    [("", b""), (None, b"")],
    [("k", b"one"), ("", b""), (None, b"")],
    [(None, b"")],
    [("k", b"1")],
    [("k", None)],
]


def test_conditions_are_pushed_to_table(spark: Any, tmp_path: Any) -> None:
    headers = pa.array([[{"key": "k", "value": b"v"}], []], HEADERS)
    rows = spark.createDataFrame(pa.table({"day": ["1", "2"], "n": [1, 2], "headers": headers, "value": [b"a", b"b"]}))
    rows.write.partitionBy("day").parquet(str(tmp_path / "table"))
    table = spark.read.parquet(str(tmp_path / "table"))
    filtered = {
        engine: by(engine, table, {"k": "string"}).where("day = '2' and n > 1").select("n", "k")
        for engine in ("spark", "arrow")
    }
    assert filtered["spark"].collect() == filtered["arrow"].collect() == [(2, None)]
    by_spark, by_arrow = explained(filtered["spark"]), explained(filtered["arrow"])
    assert "PartitionFilters: [isnotnull(day" in by_spark
    assert "GreaterThan(n,1)" in by_spark
    assert "value" not in by_spark.partition("ReadSchema: ")[2].splitlines()[0].replace("value:binary", "")
    assert "PartitionFilters: []" in by_arrow or "PartitionFilters" not in by_arrow
    assert "MapInArrow" not in by_spark


def test_column_is_read_without_lambda(spark: Any) -> None:
    """Spark interprets a lambda, and compiles no stage that has one."""
    columns = {"k": "int32", "first": lh.field("string", repeat="first"), "once": lh.field("string", repeat="error")}
    df = spark.createDataFrame([], f"headers {HEADERS_IN_SPARK}")
    assert "lambda" not in explained(by("spark", df, columns, errors="null"), "extended").lower()


@pytest.mark.parametrize("repeat", ["first", "last", "error"])
def test_null_key_is_first_error(spark: Any, repeat: Any) -> None:
    df = frame(spark, [[{"key": "j", "value": b"x"}, {"key": None, "value": b""}]])
    for field in (lh.field("int32", key="j", repeat=repeat), lh.field("int32", required=True, repeat=repeat, key="k")):
        with pytest.raises(PySparkException, match=r"kafka: the key is null \(null_key\)"):
            by("spark", df, {"k": field}).collect()


def test_headers_of_one_select_are_compiled(spark: Any) -> None:
    """Java interprets a method of more than 8,000 bytes."""
    df = spark.range(2).selectExpr("array(named_struct('key', string(id), 'value', binary(string(id)))) headers")
    headers = [
        lhs.header("headers", key, type) for key, type in zip("abcde", ["string", "int64", "int32"] * 2, strict=False)
    ]
    sizes = re.findall(r"maxMethodCodeSize:([0-9]+)", explained(df.select(*headers), "codegen"))
    assert sizes
    assert max(map(int, sizes)) < 8000


@pytest.mark.parametrize("errors", ["raise", "null", "column"])
def test_plans_grow_with_number_of_columns(spark: Any, errors: str) -> None:
    """An expression that others use is bound once, or types with many steps would take all memory of the driver."""
    types = ["timestamp:iso", "decimal(20,3):text", "float64:le", "int32 | int32:text"]
    df = spark.createDataFrame([], f"headers {HEADERS_IN_SPARK}")
    sizes = {}
    for count in (20, 100):
        columns = {f"k{n}": types[n % len(types)] for n in range(count)}
        selected = by("spark", df, columns, errors=errors)
        plan = selected._jdf.queryExecution().optimizedPlan()
        sizes[count] = len(plan.toJSON())
        # Spark matches each projection with all below it, several times.
        assert plan.toString().count("Project [") <= 8
        assert selected.collect() == []
    assert sizes[100] < 6 * sizes[20]
    assert sizes[20] < 20 * 85_000


def test_non_utf8_bytes_are_split(spark: Any) -> None:
    values = [b"\xf3-\xfc", b"a-\xff-b", b"\xff\xc3\xbc\xfe", "a\u00fcb-c".encode(), None, b"-"]
    columns = {name: lh.field("array<string>", key="k", split=name) for name in ("-", "\u00fc")}
    df = frame(spark, [[{"key": "k", "value": value}, {"key": "k", "value": b"x"}] for value in values])
    for errors in ("null", "column"):
        by_spark, by_arrow = (collected(by(engine, df, columns, errors=errors)) for engine in ("spark", "arrow"))
        assert by_spark == by_arrow


def test_unnamed_column_is_read(spark: Any) -> None:
    from pyspark.sql import functions as F

    df = frame(spark, [[{"key": "k", "value": b"v"}]])
    transform = partial(
        lhs.select_headers, column=F.slice("headers", 1, 1), headers={"k": "string"}, keep=[], engine="spark"
    )
    assert df.transform(transform).collect() == [("v",)]
    assert df.select(lhs.header(F.slice("headers", 1, 1), "k", "string")).collect() == [("v",)]
    array = lhs.header(F.slice("headers", 1, 1), "k", "array<string>", split=",")
    assert df.select(array).collect() == [(["v"],)]


@pytest.mark.parametrize(
    ("options", "text"),
    [({"lenient": True}, "apply to binary columns"), ({"identify": ["row"]}, "needs engine='arrow'")],
)
def test_options_that_need_arrow_are_named(spark, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lhs.select_headers(spark.range(1), {"k": "string"}, engine="spark", **options)
    with pytest.raises(ValueError, match="type 'int64:varlen' is not read by Spark's expressions"):
        lhs.select_headers(spark.range(1), {"k": "int64:varlen"}, engine="spark")
    with pytest.raises(ValueError, match="and kip82-typed has others: omit engine="):
        lhs.select_headers(spark.range(1), {"k": "string"}, "kip82-typed", engine="spark", errors="column")
    with pytest.raises(ValueError, match="engine"):
        lhs.select_headers(spark.range(1), {"k": "string"}, engine="spork")


def test_bytes_need_arrow(spark: Any) -> None:
    with pytest.raises(
        TypeError, match="column 'headers' is binary, and kafka is read by Spark's expressions from array"
    ):
        by("spark", spark.sql("select X'00' headers"), {"k": "string"})
