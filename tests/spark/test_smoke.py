"""One test of each function and source, on whatever Spark runs this: `tools/test --long sparks`."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.state import Processor, Topology
from tests.spark.sample_values import TYPES, WIDTHS

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))

SAMPLES = Path(__file__).parents[1] / "samples"

UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def needs(*version):
    """Skip a test before a version of Spark; the report of the tests lists what a version lacks."""
    return pytest.mark.skipif(version > VERSION, reason="needs Spark {}.{}".format(*version))


@pytest.fixture(scope="module")
def orders(spark):
    return spark.read.parquet(str(SAMPLES / "orders-0.parquet")).where("offset < 500")


def test_headers_are_selected(orders):
    rows = orders.orderBy("offset").collect()
    columns = {"tenant": "string", "retry": "int32", "weight_kg": "float64", "route": "array<string>"}
    df = lhs.select_headers(orders, columns, keep=["offset"])
    assert df.columns == ["offset", *columns]
    selected = df.orderBy("offset").collect()
    assert len(selected) == 500
    for row, result in zip(rows, selected, strict=True):
        pairs = [(header.key, header.value) for header in row.headers or ()]
        last = dict(pairs)
        assert result.offset == row.offset
        assert result.tenant == (last["tenant"].decode() if "tenant" in last else None)
        assert result.retry == (int.from_bytes(last["retry"], "big", signed=True) if "retry" in last else None)
        assert result.weight_kg == (struct.unpack(">d", last["weight_kg"])[0] if "weight_kg" in last else None)
        assert result.route == [value.decode() for key, value in pairs if key == "route"]


def test_rows_are_selected_by_their_headers(orders):
    condition = (lh.col("tenant") == "acme") & (lh.col("retry", "int32") > 0)
    selected = lhs.where_headers(orders, condition)
    assert selected.columns == orders.columns
    typed = lhs.select_headers(orders, {"tenant": "string", "retry": "int32"}, keep=["offset"])
    expected = sorted(row.offset for row in typed.where("tenant = 'acme' and retry > 0").collect())
    assert sorted(row.offset for row in selected.select("offset").collect()) == expected
    assert 0 < len(expected) < 500


def test_state_is_decoded_and_written_back(spark):
    latest = spark.read.parquet(str(SAMPLES / "store-latest-0.parquet")).limit(300)
    read = lhs.decode_headers(latest, "streams-timestamped", column="value", keep=["key", "value"])
    assert read.columns == ["key", "value", "headers", "timestamp", "payload"]
    written = read.withColumnRenamed("value", "before").transform(
        lhs.encode_headers, "streams-timestamped", into="after", keep=["key", "before"]
    )
    assert written.count() == 300
    assert written.where("not (before <=> after)").count() == 0


def test_messages_are_converted_and_their_headers_selected(spark):
    """Rows multiply; keys and values have types."""
    headers = [("n", lh.Int8(7)), (lh.Int32(3), lh.UInt64(2**64 - 1))]
    inner = lh.encode(headers, "iggy")
    wrapped = [
        lh.encode(lh.Message(offset=n, value=inner, headers={"n": lh.Int8(n)}), "kip82-message") for n in range(3)
    ]
    df = spark.createDataFrame(
        [(0, wrapped[0] + wrapped[1]), (1, None), (2, wrapped[2])], "part int, value binary"
    ).repartition(1)
    messages = lhs.explode_batches(
        df, "kip82-messages", column="value", columns=["value", "offset"], headers={"n": "int8"}
    )
    assert messages.columns == ["part", "value", "offset", "n"]
    assert sorted((row.part, row.offset, row.n) for row in messages.collect()) == [(0, 0, 0), (0, 1, 1), (2, 2, 2)]

    decoded = lhs.decode_headers(messages, "iggy", column="value", keep=["offset"])
    selection = partial(
        lhs.select_headers,
        headers={"big": lh.field("uint64", key=lh.Int32(3))},
        format="iggy",
        keep=["offset", "headers"],
    )
    for row in (
        decoded.transform(selection)
        .select(
            "big",
            lhs.header("headers", "n", "int8", format="iggy", engine="spark"),
            lhs.header("headers", lh.Int32(3), "uint64", format="iggy", engine="spark").alias("again"),
        )
        .collect()
    ):
        assert (row.big, row.n, row.again) == (2**64 - 1, 7, 2**64 - 1)
    typed = lhs.explode_batches(df, "kip82-messages", column="value", columns=["headers"], keep=[])
    with pytest.raises(Exception, match="and a header of kafka is read from array<struct<key:string,value:binary>>"):
        typed.select(lhs.header("headers", "n", "int8")).collect()

    types = {"n": "int8:text", "3": "uint64:text"}
    there = partial(
        lhs.convert_headers,
        column="value",
        format="iggy",
        target="kafka",
        types="text",
        on_loss="drop",
        into="kafka",
        keep=["value"],
    )
    restored = partial(
        lhs.convert_headers, column="kafka", format="kafka", target="iggy", types=types, into="iggy", keep=[]
    )
    encoded = {bytes(row.iggy) for row in messages.transform(there).transform(restored).collect()}
    assert [lh.decode(data, "iggy") for data in encoded] == [lh.Headers([headers[0], ("3", headers[1][1])])]


def test_errors_follow_the_policy(spark):
    encoded = [(1, bytearray(lh.encode([("k", b"\0\0\0\1")], "kafka"))), (2, None), (3, bytearray(b"\x01"))]
    df = spark.createDataFrame(encoded, "id int, value binary").repartition(1)
    nulls = lhs.select_headers(df, {"k": "int32"}, column="value", errors="null")
    assert sorted((row.id, row.k) for row in nulls.collect()) == [(1, 1), (2, None), (3, None)]
    reported = lhs.decode_headers(df, "kafka", column="value", errors="column").collect()
    assert {row.id: row.error and row.error[0].code for row in reported} == {1: None, 2: None, 3: "negative_count"}
    with pytest.raises(Exception, match=r"DecodeError: kafka: .* in the row with id=3 \(byte 0\)"):
        lhs.decode_headers(df, "kafka", column="value", identify=["id"]).collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_header_is_an_expression(spark, orders, ansi):
    """Columns have the values of `select_headers`, for all types; without ANSI mode, little-endian types are left out."""
    types_of_mode = [type for type in TYPES if ansi == "true" or not type.endswith(":le")]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        texts = {"bool": "true", "char": "é", "uuid": UUID}
        encoded = {}
        for type in types_of_mode:
            name, _, order = type.partition(":")
            good = texts.get(name, "-0").encode() if order == "text" else b"\x81" * WIDTHS.get(name, 0) or "é".encode()
            encoded[type] = [
                b"\1" if name == "bool" and order != "text" else good,
                None,
                b"",
                b"\xff",
                b"9" * 41,
                b"\xff" * 16,
            ]
        rows = [
            ([(type, bytearray(values[at]) if values[at] is not None else None) for type, values in encoded.items()],)
            for at in range(6)
        ]
        df = spark.createDataFrame(rows, "headers array<struct<key:string,value:binary>>").coalesce(1)
        expected = lhs.select_headers(df, {type: lh.field(type) for type in types_of_mode}, keep=[], errors="null")
        for start in range(0, len(types_of_mode), 8):
            types = types_of_mode[start : start + 8]
            result = df.select(*[lhs.header("headers", type, type, errors="null", engine="spark") for type in types])
            # As text: times out of Python's range and NaN compare.
            as_text = [f"cast(`{type}` as string)" if type != "binary" else "hex(`binary`)" for type in types]
            assert result.selectExpr(*as_text).collect() == expected.selectExpr(*as_text).collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)

    with pytest.raises(Exception, match=r"column tenant: \d+ bytes where int64 takes 8 \(wrong_size, header \d+\)"):
        orders.select(lhs.header("headers", "tenant", "int64")).collect()


def test_headers_are_edited(orders):
    """All steps, keys by name and by function, and a value from a column for each of the ways to write one."""
    edits = partial(
        lhs.edit_headers,
        only=lambda key: ~key.startswith("ce_"),
        drop=["blob"],
        rename={"retry": "attempt"},
        append=[("at", ("offset", "int64")), ("at", ("offset", "int32:text")), ("via", b"spark"), ("none", None)],
    )
    before = {row.offset: row.headers for row in orders.collect()}
    rows = orders.transform(edits).collect()
    assert len(rows) == 500
    for row in rows:
        stay = [
            ("attempt" if header.key == "retry" else header.key, header.value)
            for header in before[row.offset] or ()
            if header.key != "blob" and not header.key.startswith("ce_")
        ]
        new = [
            ("at", row.offset.to_bytes(8, "big")),
            ("at", str(row.offset).encode()),
            ("via", b"spark"),
            ("none", None),
        ]
        assert [tuple(header) for header in row.headers] == stay + new
    with pytest.raises(Exception, match=r"header n: .* \(out_of_range\)"):
        lhs.edit_headers(orders, append={"n": ("offset", "int8")}).collect()


def test_headers_are_shown(orders, capsys):
    lhs.show_headers(orders.where("offset = 1"), keep=["offset"], width=24)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["offset", "header", "key", "value", "bytes"]
    assert lines[2].split() == ["1", "0", "traceparent", '"00-2a5067fd0af8b88cada…', "55"]
    assert lines[9].split() == ["7", "retry", "00", "00", "00", "00", "4"]


def test_headers_are_scanned(orders):
    whole = pq.read_table(SAMPLES / "orders-0.parquet", filters=[("offset", "<", 500)])["headers"]
    report = lhs.scan_headers(orders.repartition(3))
    assert report.statistics.rows == 500
    assert report.to_dict() == lha.scan(whole, "kafka").to_dict()


@pytest.mark.skipif(VERSION >= (4, 1), reason="has Arrow UDFs")
def test_header_of_bytes_names_required_version(spark):
    with pytest.raises(ValueError, match=r"came with Spark 4\.1, and this is .*: use select_headers"):
        lhs.header("value", "k", "string", format="kafka")


@needs(4, 1)
def test_header_reads_bytes_by_arrow_udf(spark):
    value = bytearray(lh.encode([("k", "first"), ("k", "last")], "kafka"))
    df = spark.createDataFrame([(value,), (None,)], "value binary").coalesce(1)
    result = df.select(lhs.header("value", "k", "string", format="kafka"))
    assert [row.k for row in result.collect()] == ["last", None]


@needs(4, 0)
@pytest.mark.parametrize("name", ["orders-0", "orders-app-latest-changelog-0"])
def test_segments_are_read(spark, name):
    lhs.register(spark)
    rows = spark.read.format("letterhead-segments").load(str(SAMPLES / name)).select("offset", "key", "headers")
    expected = spark.read.parquet(str(SAMPLES / f"{name}.parquet")).selectExpr(
        "offset", "key", "coalesce(headers, array()) as headers"
    )
    assert rows.count() == expected.count() == 10_000
    assert rows.exceptAll(expected).count() == 0


@needs(4, 0)
def test_source_reads_rows_selected_by_condition(spark):
    lhs.register(spark)
    source = spark.read.format("letterhead-segments").options(**lhs.options(headers={"tenant": "string"}))
    rows = source.option("where", "tenant = 'acme' and offset >= 9990").load(str(SAMPLES / "orders-0"))
    assert sorted(row.offset for row in rows.select("offset").collect()) == [9991, 9996]


@pytest.mark.skipif(VERSION >= (4, 0), reason="has data sources in Python")
def test_sources_name_required_version(spark):
    with pytest.raises(ValueError, match=r"data sources in Python, which came with Spark 4\.0, and this is "):
        lhs.register(spark)


@needs(4, 0)
def test_state_directory_is_read(spark):
    lhs.register(spark)
    states = spark.read.format("letterhead-state").option("store", "latest").load(str(SAMPLES / "streams-state-0_0"))
    latest = spark.read.parquet(str(SAMPLES / "store-latest-0.parquet"))
    assert states.select("key").exceptAll(latest.select("key")).count() == 0
    assert states.count() == latest.count()


@pytest.fixture
def copies():
    """Return a topology that copies a topic."""

    class Copy(Processor):
        def process(self, record):
            self.context.forward(record)

    topology = Topology().add_source("in", "orders").add_processor("copy", Copy, "in").add_sink("out", "b", "copy")
    return partial(lhs.run_topology, topology=topology, application_id="app")


@needs(4, 1)
def test_topology_runs(spark, orders, copies):
    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        written = orders.transform(copies).select("key", "value").collect()
    finally:
        spark.conf.unset(provider)
    assert sorted(map(str, written)) == sorted(map(str, orders.select("key", "value").collect()))


@pytest.mark.skipif(VERSION >= (4, 1), reason="has transformWithState")
def test_topology_names_required_version(orders, copies):
    with pytest.raises(ValueError, match=r"transformWithState, which came with Spark 4\.1, and this is "):
        orders.transform(copies)
