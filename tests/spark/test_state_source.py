"""The data source ``letterhead-state``: what Spark reads is what :func:`letterhead.read.state` does."""

from __future__ import annotations

import doctest
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

import letterhead as lh
from letterhead import spark as lhs
from letterhead.state.rocksdb import RocksDBKeyValueStore, RocksDBWindowStore
from tests.spark.frames import collected, failure, plain

pytest.importorskip("rocksdict")

NEW_YEAR = 1767225600000
MINUTE = 60_000


@pytest.fixture(scope="module")
def states(spark: Any) -> Any:
    """What reads state directories."""
    lhs.register(spark)

    def load(directory: Path, **options: Any) -> Any:
        source = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
        return spark.read.format("letterhead-state").options(**source).option("path", str(directory)).load()

    return load


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Two tasks with windows of headers, in three segments each."""
    for number in range(2):
        store = RocksDBWindowStore("counts", 10 * MINUTE, 5 * MINUTE)
        store.open(tmp_path / f"0_{number}")
        for minute in range(15):
            message = lh.Message(headers=[("n", minute.to_bytes(8, "big"))], timestamp=minute, payload=b"v%d" % minute)
            stored = lh.encode(message, "streams-timestamped")
            store.put(b"k%d" % number, stored, NEW_YEAR + minute * MINUTE)
        store.close()
    return tmp_path


def test_time_out_of_spark_range_follows_errors(states, tmp_path):
    store = RocksDBKeyValueStore("latest")
    store.open(tmp_path / "0_0")
    for number, time in enumerate((1000, 1_700_000_000_000_000_000, 2000)):
        message = lh.Message(headers=[], timestamp=time, payload=b"v")
        store.put(b"k%d" % number, lh.encode(message, "streams-timestamped"))
    store.close()
    columns = ["key", "timestamp"]
    with pytest.raises(
        Exception, match=r"latest: column timestamp: the timestamp does not fit the microseconds of Spark \(key 6b31\)"
    ):
        states(tmp_path, columns=columns).collect()
    rows = states(tmp_path, columns=columns, errors="null").orderBy("key").collect()
    assert [row.timestamp is None for row in rows] == [False, True, False]
    rows = states(tmp_path, columns=columns, errors="column").orderBy("key").collect()
    assert [row.error and (row.error[0].code, row.error[0].column) for row in rows] == [
        None, ("out_of_range", "timestamp"), None,
    ]  # fmt: skip
    assert states(tmp_path, columns=["key"]).count() == 3


@pytest.mark.parametrize(("store", "count"), [("latest", 6643), ("hourly", 300), ("sessions", 300)])
def test_real_store_matches_reader(states, samples, store, count):
    directory = samples / "streams-state-0_0"
    table = lh.read.state(directory, store=store).read_all()
    result = collected(states(directory, store=store))
    assert table.num_rows == count
    assert result == {name: plain(table[name]) for name in table.schema.names}


def test_headers_are_columns_of_spark_types(states, samples):
    columns = {
        "tenant": "string",
        "amount_cents": "uint64",
        "route": {"type": "string", "repeat": "all"},
        "event": {"type": "string", "key": "ce_type"},
    }
    directory = samples / "streams-state-0_0"
    df = states(directory, store="latest", columns=["key", "timestamp"], headers=columns)
    assert df.schema.simpleString() == (
        "struct<key:binary,timestamp:timestamp,tenant:string,amount_cents:decimal(20,0),route:array<string>,event:string>"
    )
    fields = {"route": "array<string>", "event": lh.field("string", key="ce_type")}
    table = lh.read.state(directory, store="latest", columns=["key"], headers={**columns, **fields}).read_all()
    result = collected(df)
    for name in table.schema.names:
        assert [int(text) if name == "amount_cents" and text is not None else text for text in result[name]] == plain(
            table[name]
        ), name
    assert df.where("tenant = 'acme'").count() == table["tenant"].to_pylist().count("acme") > 100


@pytest.mark.spark_only
def test_each_segment_of_each_task_is_partition(states, tasks):
    df = states(tasks, columns=["task", "key", "window_start", "window_end", "value"], windowSize=MINUTE)
    assert df.rdd.getNumPartitions() == 6
    assert df.groupBy("task").count().orderBy("task").collect() == [("0_0", 15), ("0_1", 15)]
    times = df.selectExpr(
        "task", "key", "unix_millis(window_start) as window_start", "unix_millis(window_end) as window_end", "value"
    )
    [row] = times.where(f"task = '0_1' and window_start = {NEW_YEAR + 7 * MINUTE}").collect()
    assert row.asDict() == {
        "task": "0_1",
        "key": b"k1",
        "window_start": NEW_YEAR + 7 * MINUTE,
        "window_end": NEW_YEAR + 8 * MINUTE,
        "value": b"v7",
    }


def test_option_names_ignore_case(states, tasks):
    assert states(tasks, COLUMNS=["key"], HEADers={"n": "int64"}).columns == ["key", "n"]


def test_path_may_be_file_url(spark, states, tasks):
    load = spark.read.format("letterhead-state").load
    assert load(f"file://{tasks}/0_1").columns == load(f"{tasks}/0_1").columns == states(tasks / "0_1").columns
    assert load(f"file:{tasks}/0_1").columns[0] == "key"


def test_damaged_row_names_store_and_key_or_is_error_row(states, tasks):
    store = RocksDBKeyValueStore("latest")
    store.open(tasks / "0_0")
    store.put(b"bad", bytes.fromhex("0402057f00"))
    store.put(b"good", bytes.fromhex("00") + bytes(8) + b"v")
    store.close()
    message = "store 0_0/latest: timestamp takes 8 bytes and 2 are left (key 626164, byte 3)"
    assert message in failure(states(tasks / "0_0", store="latest"))
    rows = states(tasks / "0_0", store="latest", errors="column").orderBy("key").collect()
    assert [(bytes(row.key), row.error and (row.error[0].code, row.error[0].byte_offset)) for row in rows] == [
        (b"bad", ("truncated", 3)),
        (b"good", None),
    ]
    assert [row.value for row in states(tasks / "0_0", store="latest", errors="null").orderBy("key").collect()] == [
        None,
        b"v",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stor": "counts"}, "unknown option 'stor': did you mean 'store'?"),
        ({"store": "count"}, "there is no store count in"),
        ({"columns": "value, kay"}, "unknown column 'kay': did you mean 'key'?"),
        ({"columns": ["kay"]}, "unknown column 'kay': did you mean 'key'?"),
        ({"columns": " , "}, "no columns were asked for"),
        (
            {"columns": [1]},
            """option columns must be names such as "key,value", or a JSON list such as ["key", "value"]""",
        ),
        ({"headers": ["n"]}, "option headers must be a JSON object of columns"),
        ({"headers": {"n": {"key": "n"}}}, "option headers: column 'n' has no type"),
        ({"headers": {"n": {"type": "int64", "kay": "n"}}}, "unknown headers field 'kay': did you mean 'key'?"),
        ({"windowSize": "minute"}, "option windowSize must be a whole number, not 'minute'"),
        ({"errors": "drop"}, "unknown errors value 'drop'"),
    ],
)
def test_invalid_options_are_rejected_on_load(states, tasks, options, message):
    with pytest.raises(PySparkException) as raised:
        states(tasks, **options).schema  # noqa: B018
    assert message in str(raised.value)


def test_directory_is_required_and_schema_rejected(spark, states, tasks):
    with pytest.raises(PySparkException, match="pass the state directory"):
        spark.read.format("letterhead-state").load().schema  # noqa: B018
    reader = spark.read.format("letterhead-state").schema("key string")
    assert "letterhead-state has a schema of its own, struct<task:string,key:binary," in failure(
        reader.load(str(tasks))
    )


def test_state_source_examples_run(spark, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    lhs.register(spark)
    module = importlib.import_module("letterhead.spark.sources.state")
    result = doctest.testmod(module, extraglobs={"spark": spark})
    assert (result.failed, result.attempted > 0) == (0, True)


def test_option_examples_run():
    result = doctest.testmod(importlib.import_module("letterhead.spark.sources.options"))
    assert (result.failed, result.attempted > 0) == (0, True)
