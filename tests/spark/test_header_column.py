"""``header``: one header as a column, by Spark's expressions and by Arrow, which return the same."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.fields import REPEATS, Repeat
from letterhead.operations import DecodeOptions, Select
from letterhead.types import SELECT_TYPES
from tests.spark.frames import HEADERS, collected, explained, plain
from tests.spark.sample_values import TYPES, headers, many_rows, typed_headers

WAYS: list[tuple[Repeat, bool]] = [
    (repeat, required) for required in (False, True) for repeat in ("last", "all", "first", "error")
]
"""What to do with repeats, and whether a header is required. The first two read one value and all."""
IN_THE_LONG_TIER = bool(os.environ.get("LETTERHEAD_RANDOM"))
GROUPS = [TYPES[start : start + 8] for start in range(0, len(TYPES), 8)]


def frame_of(spark, rows, type=HEADERS):
    return spark.createDataFrame(pa.table({"headers": pa.array(rows, type)}))


def list_of(format: str) -> pa.DataType:
    """Return the type of the headers of a format."""
    return lha.decode(pa.array([], pa.binary()), format).type


def message(rows, spark, key="k", row_type=HEADERS, **options) -> str:
    """Read the rows with errors="raise", and return the error message."""
    with pytest.raises(PySparkException) as raised:
        frame_of(spark, rows, row_type).select(lhs.header("headers", key, **options)).collect()
    return str(raised.value)


def check_columns(df, rows, expected, fields, key, format, engine):
    """Read a header as columns of several types, and compare them with those of the kernel row by row."""
    columns = [
        lhs.header(
            "headers", key, field.type, repeat=field.repeat, required=field.required, errors="null", format=format,
            engine=engine,
        ).alias(name)
        for name, field in fields.items()
    ]  # fmt: skip
    result = collected(df.select(*columns))
    for name in fields:
        read = list(zip(rows, result[name], strict=True))
        assert read == list(zip(rows, plain(expected.field(name)), strict=True)), (engine, name, key)


def fields_of(types: list[str], ways: list[tuple[Repeat, bool]], few: int) -> dict[str, lh.Field]:
    """Return fields that read a header as one of the types in all ways, and as the others in the first few of them.

    A value is converted alike in all ways, and Spark compiles each column. The long tier reads each type in all ways.
    """
    return {
        f"{type} {repeat} {required}": lh.field(type, key="k", repeat=repeat, required=required)
        for type in types
        for repeat, required in (ways if IN_THE_LONG_TIER or type == types[0] else ways[:few])
    }


@pytest.mark.hypothesis
@pytest.mark.parametrize("types", GROUPS, ids=lambda types: types[0])
def test_engines_agree_with_each_other_and_kernel(spark, engines, types):
    @many_rows
    @given(st.lists(st.sampled_from(types).flatmap(lambda type: headers(type, ("k", "κ"))), min_size=20, max_size=60))
    def agree(rows):
        fields = fields_of(types, WAYS, few=2)
        expected = Select("kafka", fields, DecodeOptions(errors="null"), dialect="spark")(pa.array(rows, HEADERS))
        df = frame_of(spark, rows)
        for engine in engines:
            check_columns(df, rows, expected, fields, "k", "kafka", engine)

    agree()


@pytest.mark.hypothesis
@pytest.mark.parametrize("repeat", REPEATS)
@pytest.mark.parametrize(
    "type", ["string", "int64", "uint64:le", "float64", "uuid:text", "timestamp_ms", "char", "bool"]
)
def test_engines_fail_at_same_rows(spark, engines, type, repeat):
    """Rows that are whole are read; each type of bad row stops either engine."""

    @many_rows
    @given(st.lists(headers(type, ("k", "other")), min_size=40, max_size=80))
    def agree(rows):
        fields = {"k": lh.field(type, repeat=repeat)}
        errors = Select("kafka", fields, DecodeOptions(errors="column"), dialect="spark")(pa.array(rows, HEADERS))
        found_errors = errors.field("error").to_pylist()
        whole = [row for row, found_error in zip(rows, found_errors, strict=True) if found_error is None]
        read = collected(
            frame_of(spark, whole).select(
                *[lhs.header("headers", "k", type, repeat=repeat, engine=engine).alias(engine) for engine in engines]
            )
        )
        values = [
            value
            for value, found_error in zip(plain(errors.field("k")), found_errors, strict=True)
            if found_error is None
        ]
        assert read == dict.fromkeys(engines, values)
        by_code = {
            found_error[0]["code"]: (row, found_error[0])
            for row, found_error in zip(rows, found_errors, strict=True)
            if found_error
        }
        for code, (row, found_error) in by_code.items():
            if "spark" in engines:
                output = message([row], spark, type=type, repeat=repeat)
                column = f"column {found_error['column']}: " if found_error["column"] else ""
                place = (
                    ""
                    if found_error["header"] is None or code == "null_key" or repeat == "all"
                    else f", header {found_error['header']}"
                )
                assert f"kafka: {column}{found_error['message']} ({code}{place})" in output
            assert found_error["message"] in message([row], spark, type=type, repeat=repeat, engine="arrow")

    agree()


WANTED = {"kip82-typed": ["k"], "kip82-int": [7], "iggy": ["k", lh.Int8(ord("k")), b"k"]}
"""Keys that are asked for where there are more than text, or types."""


def read_both(spark, rows, format, key, fields, engines):
    """Read lists of headers by the kernel and by Spark, and compare them column by column."""
    row_type = list_of(format)
    requested = {name: field._replace(key=key) for name, field in fields.items()}
    expected = Select(format, requested, DecodeOptions(errors="null"), dialect="spark")(pa.array(rows, row_type))
    df = frame_of(spark, rows, row_type)
    for engine in engines:
        check_columns(df, rows, expected, requested, key, format, engine)


@pytest.mark.spark_only
@pytest.mark.hypothesis
@pytest.mark.parametrize("types", GROUPS, ids=lambda types: types[0])
def test_value_type_decides_for_every_type(spark, types):
    """Types that fit and others, none, and names that are no types."""

    @many_rows
    @given(
        st.lists(
            st.sampled_from(types).flatmap(lambda type: typed_headers("kip82-typed", type)), min_size=30, max_size=60
        )
    )
    def agree(rows):
        fields = fields_of(types, WAYS[:2], few=1)
        read_both(spark, rows, "kip82-typed", "k", fields, ["spark"])

    agree()


@pytest.mark.hypothesis
@pytest.mark.parametrize("format", WANTED)
def test_engines_agree_for_any_keys_and_types(spark, engines, format):
    types = st.lists(st.sampled_from(TYPES), min_size=3, max_size=3, unique=True)

    @many_rows
    @given(st.data(), types, st.sampled_from(WANTED[format]))
    def agree(data, types, key):
        fields = fields_of(types, WAYS, few=2)
        row = st.sampled_from(types).flatmap(lambda type: typed_headers(format, type))
        rows = data.draw(st.lists(row, min_size=30, max_size=60))
        read_both(spark, rows, format, key, fields, engines)

    agree()


@pytest.mark.spark_only
@pytest.mark.hypothesis
@pytest.mark.parametrize("type", ["int64:le", "uuid", "string"])
@pytest.mark.parametrize("format", ["kip82-typed", "iggy"])
def test_type_errors_stop_both_engines_at_same_rows(spark, format, type):
    key, row_type = WANTED[format][-1], list_of(format)

    @many_rows
    @given(st.lists(typed_headers(format, type), min_size=40, max_size=80))
    def agree(rows):
        fields = {"k": lh.field(type, key=key)}
        read = Select(format, fields, DecodeOptions(errors="column"), dialect="spark")(pa.array(rows, row_type))
        found_errors = read.field("error").to_pylist()
        whole = [row for row, found_error in zip(rows, found_errors, strict=True) if found_error is None]
        column = lhs.header("headers", key, type, format=format, engine="spark").alias("k")
        values = [
            value
            for value, found_error in zip(plain(read.field("k")), found_errors, strict=True)
            if found_error is None
        ]
        assert collected(frame_of(spark, whole, row_type).select(column)) == {"k": values}
        by_code = {
            found_error[0]["code"]: (row, found_error[0])
            for row, found_error in zip(rows, found_errors, strict=True)
            if found_error
        }
        for code, (row, found_error) in by_code.items():
            options = {"key": key, "row_type": row_type, "type": type, "format": format}
            output = message([row], spark, engine="spark", **options)
            assert f"({code})" in output
            assert code == "null_key" or found_error["message"] in output
            assert found_error["message"] in message([row], spark, **options)

    agree()


def test_every_format_has_its_list_type(spark):
    from letterhead import _native
    from letterhead.spark.header_column import _header_list_type
    from letterhead.spark.schemas import header_lists

    for row in _native.formats():
        if row["is_"] != "batch":
            assert _header_list_type(row["name"]).type == header_lists(row["name"])[0], row["name"]


@pytest.mark.parametrize(
    ("key", "name"),
    [("k", "k"), (7, "7"), (lh.String("k"), "k"), (lh.Int32(-3), "int32:-3"), (lh.Bool(True), "bool:true"),
     (b"\xff", "binary:ff"), (lh.Value("type-200", b"k"), "type-200:6b"), (lh.Float64(1.5), "float64:1.5")],
)  # fmt: skip
def test_column_is_named_as_errors_name_key(spark, engines, key, name):
    format = "kip82-int" if isinstance(key, int) else "iggy"
    df = frame_of(spark, [None], list_of(format))
    for engine in engines:
        column = lhs.header("headers", key, "binary", format=format, engine=engine)
        assert df.select(column).columns == [name]
    if "spark" in engines:
        needed = lhs.header("headers", key, "binary", format=format, engine="spark", required=True)
        with pytest.raises(PySparkException, match=rf"column {name}: the header is required and absent"):
            df.select(needed).collect()


@pytest.mark.spark_only
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("kip82-typed", "a header of kafka is read from array<struct<key:string,value:binary>>"),
        ("iggy", None),
        ("kip82-int", "a header of kafka is read from array<struct<key:string,value:binary>>"),
    ],
)
def test_list_of_another_layout_is_not_misread(spark, format, text):
    """Its values have types that would not be looked at."""
    if text is not None:
        assert text in message([[]], spark, row_type=list_of(format), type="string", engine="spark")
        assert text in message([[]], spark, row_type=list_of(format), type="string", errors="null")
    assert "the column is array" in message([[]], spark, type="string", format="kip82-typed", engine="spark") or (
        "FIELD_NOT_FOUND" in message([[]], spark, type="string", format="kip82-typed", engine="spark")
    )


@pytest.mark.spark_only
@pytest.mark.parametrize("engine", ["spark", "arrow"])
def test_default_collation_is_ignored_and_others_rejected(spark, engine):
    """Where it is named, as on Spark Connect; of another one `=` would find other keys."""
    df = frame_of(spark, [[{"key": "k", "value": b"v"}]])
    cast = "cast(headers as array<struct<key:string collate {},value:binary>>) as headers"
    k = lhs.header("headers", "k", "string", engine=engine)
    assert collected(df.selectExpr(cast.format("UTF8_BINARY")).select(k)) == {"k": ["v"]}
    if engine == "spark":
        with pytest.raises(PySparkException, match="the column is array<struct<key:string collate UTF8_LCASE,value"):
            df.selectExpr(cast.format("UTF8_LCASE")).select(k).collect()


@pytest.mark.spark_only
def test_layout_check_is_optimized_away(spark):
    df = spark.range(1).selectExpr("cast(null as array<struct<key:string,value:binary>>) headers", "id").where("id > 0")
    plan = explained(df.select(lhs.header("headers", "k", "string")), "extended")
    optimized = plan.partition("== Optimized Logical Plan ==")[2]
    assert "typeof" in plan
    assert "typeof" not in optimized
    assert "format=" not in optimized


@pytest.mark.spark_only
@pytest.mark.parametrize(
    ("rows", "options", "text"),
    [
        ([[("k", b"abcd")]], {"type": "int64"}, "kafka: column k: 4 bytes where int64 takes 8 (wrong_size, header 0)"),
        (
            [[("k", b"a")]],
            {"type": "int64", "repeat": "all"},
            "kafka: column k: 1 byte where int64 takes 8 (wrong_size)",
        ),
        (
            [[("k", b"\x02")]],
            {"type": "bool"},
            "kafka: column k: the byte is not a boolean: 0 or 1 (bad_bool, header 0)",
        ),
        ([[("k", b"\xff")]], {"type": "string"}, "kafka: column k: the value is not UTF-8 (value_not_utf8, header 0)"),
        (
            [[("k", b"one")]],
            {"type": "int8:text"},
            "kafka: column k: the text does not spell int8 (bad_text, header 0)",
        ),
        (
            [[("k", b"300")]],
            {"type": "int8:text"},
            "kafka: column k: the number does not fit int8 (out_of_range, header 0)",
        ),
        (
            [[("k", b"")], []],
            {"type": "binary", "required": True},
            "kafka: column k: the header is required and absent (missing_key)",
        ),
        (
            [None],
            {"type": "binary", "required": True},
            "kafka: column k: the header is required and absent (missing_key)",
        ),
        (
            [[("k", None), ("k", b"")]],
            {"type": "binary", "repeat": "error"},
            "kafka: column k: the key occurs a second time (repeated_key, header 1)",
        ),
        ([[(None, b"")]], {"type": "binary"}, "kafka: the key is null (null_key)"),
    ],
)
def test_error_names_expression(spark, rows, options, text):
    rows = [row and [dict(zip(("key", "value"), header, strict=True)) for header in row] for row in rows]
    assert text in message(rows, spark, **options)


@pytest.mark.parametrize("repeat", REPEATS)
def test_unknown_type_header_replaces_only_what_it_could_replace(spark, engines, repeat):
    good, bad = {"key": "k", "type": "string", "value": b"good"}, {"key": "k", "type": "nonsense", "value": b"bad"}
    rows = [[good, bad], [bad, good], [bad], [good]]
    expected = {"last": [None, "good", None, "good"], "first": ["good", None, None, "good"],
                "error": [None, None, None, "good"], "all": [None, None, None, ["good"]]}[repeat]  # fmt: skip
    for engine in engines:
        options = {"format": "kip82-typed", "engine": engine, "errors": "null", "repeat": repeat}
        frame = frame_of(spark, rows, list_of("kip82-typed"))
        assert [row[0] for row in frame.select(lhs.header("headers", "k", "string", **options)).collect()] == expected


def test_null_value_of_unknown_type_nulls_list(spark, engines):
    null, unknown = ({"key": "k", "type": type, "value": None} for type in ("string", "type-016"))
    rows = [[null, unknown], [unknown], [null, {**null, "type": None}], [null]]
    frame = frame_of(spark, rows, list_of("kip82-typed"))
    for engine in engines:
        options = {"format": "kip82-typed", "engine": engine, "errors": "null", "repeat": "all"}
        result = [row[0] for row in frame.select(lhs.header("headers", "k", "string", **options)).collect()]
        assert result == [None, None, [None, None], [None]], engine


@pytest.mark.parametrize("errors", ["raise", "null"])
def test_null_key_fails_whole_list_only_if_errors_are_raised(spark, engines, errors):
    rows = [[{"key": None, "value": b"a"}, {"key": "k", "value": b"b"}], [None, {"key": "k", "value": b"c"}]]
    for engine in engines:
        if errors == "raise":
            assert "key" in message(rows, spark, type="string", engine=engine)
        else:
            column = lhs.header("headers", "k", "string", errors="null", engine=engine)
            assert collected(frame_of(spark, rows).select(column)) == {"k": ["b", "c"]}


@pytest.mark.spark_only
@pytest.mark.parametrize("type", TYPES)
def test_expression_has_declared_type(spark, type):
    """No job runs; a chosen null or a raised error has no type of its own that could win."""
    from letterhead.spark.schemas import output_schema

    cases = [(repeat, errors) for repeat in REPEATS for errors in ("raise", "null")]
    columns = [
        lhs.header("headers", "k", type, repeat=repeat, errors=errors, required=True) for repeat, errors in cases
    ]
    for (repeat, errors), result in zip(cases, frame_of(spark, []).select(*columns).schema, strict=True):
        field_type = output_schema(Select("kafka", {"k": lh.field(type, repeat=repeat)}, dialect="spark")).spark[0]
        expected = ("k", field_type.dataType.simpleString())
        assert (result.name, result.dataType.simpleString()) == expected, (repeat, errors)


@pytest.mark.spark_only
def test_headers_are_read_without_python(spark):
    # Of a frame whose rows Spark does not know yet: it would evaluate others while it plans.
    df = spark.range(1).selectExpr("cast(null as array<struct<key:string,value:binary>>) headers", "id").where("id > 0")
    columns = [
        lhs.header("headers", "k", type, repeat=repeat).alias(f"{type} {repeat}")
        for type in SELECT_TYPES
        for repeat in REPEATS
    ]
    plan = explained(df.where(lhs.header("headers", "k", "string") == "a").select(*columns), "extended")
    assert "Python" not in plan
    assert "Arrow" not in plan
    assert "ArrowEvalPython" in explained(df.select(lhs.header("headers", "k", "string", engine="arrow")))


@pytest.mark.parametrize("engine", ["spark", "arrow"])
def test_header_is_usable_in_where_and_join(spark, samples, engine):
    from pyspark.sql import functions as F

    orders = spark.read.parquet(str(samples / "orders-0.parquet")).where("offset < 2000")
    retry = lhs.header("headers", "retry", "int32", engine=engine)
    rows = orders.select("offset", "headers").collect()
    last = {row.offset: {header.key: header.value for header in row.headers or ()} for row in rows}
    again = {
        offset for offset, headers in last.items() if int.from_bytes(headers.get("retry", b""), "big", signed=True) > 0
    }
    assert {row.offset for row in orders.where(retry > 0).select("offset").collect()} == again
    assert 0 < len(again) < 2000

    tenants = sorted({headers["tenant"].decode() for headers in last.values() if "tenant" in headers})
    names = spark.createDataFrame(
        [(tenant, number) for number, tenant in enumerate(tenants)], "name string, number int"
    )
    tenant = lhs.header("headers", "tenant", "string", engine=engine)
    joined = orders.join(F.broadcast(names), tenant == names["name"]).select("offset", "number")
    assert {(row.offset, row.number) for row in joined.collect()} == {
        (offset, tenants.index(headers["tenant"].decode())) for offset, headers in last.items() if "tenant" in headers
    }


def test_real_topic_headers_match_kernel(spark, samples):
    """10,000 records of a Kafka broker, as Spark's source reads them."""
    import pyarrow.parquet as pq

    fields = {
        "tenant": "string", "retry": "int32", "amount_cents": "int64", "weight_kg": "float64", "route": "array<string>",
        "note": "string", "blob": "binary", "señal-📦": "binary", "absent": "array<uuid>",
    }  # fmt: skip
    fields = {name: field if isinstance(field, lh.Field) else lh.field(field) for name, field in fields.items()}
    orders = spark.read.parquet(str(samples / "orders-0.parquet"))
    result = collected(
        orders.select(*[lhs.header("headers", name, field.type, repeat=field.repeat) for name, field in fields.items()])
    )
    column = pq.read_table(samples / "orders-0.parquet")["headers"].combine_chunks()
    expected = Select("kafka", fields, dialect="spark")(column)
    for name in fields:
        assert result[name] == plain(expected.field(name)), name
    assert len(result["tenant"]) == 10_000


def test_arrow_reads_bytes(spark):
    values = [lh.encode([("k", b"\0\0\0\1"), ("other", b"")], "kafka"), None, b"", b"\x01"]
    df = spark.createDataFrame(pa.table({"value": pa.array(values, pa.binary())}))
    k = lhs.header("value", "k", "int32", format="kafka", errors="null")
    assert collected(df.select(k)) == {"k": [1, None, None, None]}
    assert collected(df.where(k == 1).select((k + 1).alias("next"))) == {"next": [2]}


def test_udf_error_names_no_batch_row(spark):
    df = spark.createDataFrame(pa.table({"value": pa.array([b"", b"\x02\x02k\x02a"], pa.binary())}))
    with pytest.raises(Exception, match="DecodeError: kafka: column k: 1 byte where int32 takes 4") as raised:
        df.select(lhs.header("value", "k", "int32", format="kafka")).collect()
    assert ", row " not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("k", "itn32"), {}, ValueError, "did you mean 'int32'"),
        (("k", "int32:big"), {}, ValueError, "suffix"),
        (("k", "string"), {"repeat": "frist"}, ValueError, "did you mean 'first'"),
        (("k", "string"), {"errors": "column"}, ValueError, "use select_headers"),
        (("k", "string"), {"errors": "nul"}, ValueError, "did you mean 'null'"),
        (("k", "string"), {"engine": "rust"}, ValueError, "unknown engine"),
        (("k", "string"), {"format": "kafak"}, ValueError, "did you mean 'kafka'"),
        (("k", "string"), {"format": "iggy-batch"}, ValueError, "iggy-batch is a batch: read it with messages"),
        ((3, "string"), {}, ValueError, "key 3: kafka has text keys"),
        (("3", "string"), {"format": "kip82-int"}, ValueError, "key 3: kip82-int has integer keys"),
        (
            (b"k", "string"),
            {"format": "kip82-typed", "engine": "spark"},
            ValueError,
            "key binary:6b: kip82-typed has text",
        ),
        ((3.5, "string"), {}, TypeError, "key must be str, int, bytes or a Value, not float"),
        (("k", int), {}, TypeError, "a type such as 'int64'"),
        (("k", "string"), {"required": 1}, TypeError, "required must be bool"),
    ],
)
def test_wrong_arguments_are_rejected_before_job(spark, arguments, options, error, message):
    with pytest.raises(error, match=message):
        lhs.header("headers", *arguments, **options)


def test_spark_without_arrow_udf_raises_with_alternative(spark, monkeypatch):
    from pyspark.sql import functions as F

    monkeypatch.delattr(F, "arrow_udf")
    with pytest.raises(ValueError, match=r"came with Spark 4\.1, and this is .*: use select_headers"):
        lhs.header("value", "k", "string", format="kafka")


@pytest.mark.parametrize(
    ("type", "data", "value"),
    [
        ("string:json", b'"text/plain"', "text/plain"),
        ("double:json", b'"Infinity"', float("inf")),
        ("int:varlen", b"\3", 3),
    ],
)
def test_arrow_only_encoding_is_read_by_arrow(spark, type, data, value):
    headers = pa.array(
        [[{"key": "k", "value": data}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    df = spark.createDataFrame(pa.table({"headers": headers}))
    assert df.select(lhs.header("headers", "k", type)).first().k == value
    with pytest.raises(ValueError, match="is not read by Spark's expressions"):
        lhs.header("headers", "k", type, engine="spark")


def test_required_list_is_null_if_header_is_absent(spark, engines):
    df = spark.createDataFrame(
        [([("k", bytearray(b"v"))],), ([],), (None,)], "headers array<struct<key:string,value:binary>>"
    )
    for engine in engines:
        column = lhs.header("headers", "k", "array<string>", required=True, errors="null", engine=engine)
        assert [row.k for row in df.select(column).collect()] == [["v"], None, None]
    columns = {"k": lh.field("array<string>", required=True)}
    selected = lhs.select_headers(df, columns, errors="null")
    assert [row.k for row in selected.collect()] == [["v"], None, None]


@pytest.mark.spark_only
@pytest.mark.parametrize(
    ("type", "format", "remedy"),
    [
        (
            "array<struct<key:string,value:string>>",
            None,
            "transform(headers, h -> struct(h.key as key, cast(h.value as binary) as value))",
        ),
        ("array<struct<key:string,type:string,value:binary>>", None, "pass format='kip82-typed'"),
        ("array<struct<key:int,value:binary>>", None, "pass format='kip82-int'"),
        ("array<struct<key:string,value:binary>>", "kip82-int", "pass format='kafka'"),
        ("array<struct<key:string,value:binary,more:int>>", None, None),
    ],
)
def test_wrong_column_type_suggests_working_remedy(spark, type, format, remedy):
    df = spark.createDataFrame([([],)], f"headers {type}")
    with pytest.raises(Exception, match="the column is array<struct") as caught:
        df.select(lhs.header("headers", 1 if format else "k", "string", format=format, engine="spark")).collect()
    message = str(caught.value)
    assert ("format=" in message) == (remedy is not None and "format=" in remedy)
    if remedy is None:
        return
    assert remedy in message
    if "transform(" in remedy:
        df = df.selectExpr(f"{remedy} as headers")
    named = remedy.partition("format='")[2].rstrip("'") or None
    key = 1 if named == "kip82-int" else "k"
    assert df.select(lhs.header("headers", key, "string", format=named, engine="spark").alias("k")).first().k is None
