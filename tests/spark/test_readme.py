"""The Spark examples of the README and of the documentation run as they stand there, and give what the data hold.

What a page takes for granted is given to it, and a path that it names is replaced by that of a sample.
"""

from __future__ import annotations

import runpy
import shlex
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import letterhead as lh
from letterhead import cli
from letterhead import spark as lhs
from letterhead.kip82 import MessageLog
from tests.helpers.pages import ROOT, blocks, run
from tests.spark.frames import failure

HEADERS = "array<struct<key:string,value:binary>>"
QUARANTINE = """\
+--------+--------+-----------------+
|  tenant|count(1)|sum(amount_cents)|
+--------+--------+-----------------+
|    NULL|     187|             NULL|
|    acme|     927|       2331831736|
|  globex|     907|       2252923365|
|   hooli|     875|       2177489251|
| initech|     912|       2233056979|
|umbrella|     935|       2281522173|
|  ørsted|     904|       2284947334|
|株式会社|     924|       2274262263|
+--------+--------+-----------------+

72 rows are set aside
+-----------+---------------------------------------------+
|key        |error[0].message                             |
+-----------+---------------------------------------------+
|order-00000|headers block takes 709 bytes and 38 are left|
|order-00200|headers block takes 334 bytes and 38 are left|
|order-00500|headers block takes 332 bytes and 38 are left|
+-----------+---------------------------------------------+
only showing top 3 rows
"""


@pytest.mark.parametrize(
    ("page", "info"),
    [
        ("docs/how-to/kafka-in-spark.md", "python"),
        ("docs/how-to/set-bad-rows-aside.md", "python spark"),
        ("docs/how-to/write-headers-back.md", "python"),
        ("docs/how-to/columns-to-headers.md", "python"),
        ("docs/how-to/json-base64-lists.md", "python"),
        ("docs/how-to/iggy-server.md", "python convert"),
        ("docs/how-to/run-a-topology-in-spark.md", "python"),
    ],
)
def test_readme_spark_examples_run(spark, monkeypatch: pytest.MonkeyPatch, page, info) -> None:
    monkeypatch.chdir(ROOT)
    run(page, {"spark": spark}, info)


def test_tutorial_output_matches(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    page = "docs/tutorial.md"
    monkeypatch.chdir(ROOT)
    there = {f'"orders-{name}"': repr(str(tmp_path / name)) for name in ("good", "bad")}
    run(page, {}, there=there)
    assert capsys.readouterr().out == "".join(blocks(page, "text"))


def test_quarantine_example_prints_totals_and_reasons(spark, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # the session is that of all tests
    runpy.run_path(str(ROOT / "examples" / "spark_quarantine.py"))
    assert capsys.readouterr().out.strip() == QUARANTINE.strip()


def test_sql_page_output_matches(spark, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    page = "docs/how-to/spark-sql.md"
    monkeypatch.chdir(ROOT)
    names = {"spark": spark}
    run(page, names)
    assert capsys.readouterr().out == "".join(block for block in blocks(page, "text") if block.startswith("+"))

    [command] = blocks(page, "sh")
    assert cli.main(shlex.split(command.partition(">>")[0])[1:]) == 0
    [model, test] = [block for block in blocks(page, "text") if "{{" in block]
    names["topic"].write.saveAsTable("raw_orders_table")
    try:
        model = model.replace("<the printed lines>", capsys.readouterr().out)
        model = model.replace("{{ ref('raw_orders') }}", "raw_orders_table")
        spark.sql(f"create view orders_model as {model}")
        rows = spark.newSession().table("orders_model")
        assert rows.exceptAll(names["typed"]).count() == 0
        assert rows.count() == 10_000
        assert spark.sql(test.replace("{{ ref('orders') }}", "orders_model")).count() == 0
    finally:
        spark.sql("drop view if exists orders_model")
        spark.sql("drop table raw_orders_table")


def test_data_sources_page_reads_partition_and_store(spark, samples: Path) -> None:
    names = {"spark": spark}
    partition, state = samples / "orders-0", samples / "streams-state-0_0"
    there = {"/var/lib/kafka/data/orders-0": str(partition), "/tmp/kafka-streams/orders-app": str(state)}
    run("docs/reference/data-sources.md", names, there=there)

    orders = names["orders"]
    assert orders.columns == ["partition", "offset", "timestamp", "tenant", "amount_cents"]
    topic = spark.read.parquet(str(samples / "orders-0.parquet"))
    expected = lhs.select_headers(topic, {"tenant": "string", "amount_cents": "int64"}, keep=["offset"])
    same = orders.select("offset", "tenant", "amount_cents")
    assert (same.count(), same.exceptAll(expected.select(same.columns)).count()) == (10_000, 0)

    latest = names["latest"]
    assert latest.count() == 6_643
    stored = spark.read.parquet(str(samples / "store-latest-0.parquet"))
    expected = lhs.select_headers(
        stored, {"tenant": "string"}, column="value", format="streams-timestamped", keep=["key"]
    )
    tenants = latest.select("key", lhs.header("headers", "tenant", "string"))
    assert tenants.exceptAll(expected.select("key", "tenant")).count() == 0


@pytest.mark.parametrize("limit", [1000, 2])
def test_limits_page_applies_limit_to_both_ways_of_reading(spark, samples: Path, limit: int) -> None:
    lhs.register(spark)
    store = samples / "store-sessions-0.parquet"
    counts = [len(lh.decode(value, "streams").headers) for value in pq.read_table(store)["value"].to_pylist()]
    frame = spark.read.parquet(str(store))
    names = {"spark": spark, "lh": lh, "lhs": lhs, "frame": frame, "columns": {"tenant": "string"}}
    there = {"1000": str(limit), "/var/lib/kafka/data/orders-0": str(samples / "orders-0")}
    run("docs/reference/limits.md", names, there=there)
    errors = names["rows"].selectExpr("error[0].code as code").where("code is not null").collect()
    assert [row.code for row in errors] == ["limit_exceeded"] * sum(count > limit for count in counts)
    if limit == 2:
        assert len(errors) == 292
        assert "11 headers declared, over the limit of 2" in failure(names["records"])
    else:
        assert names["records"].count() == 10_000


def test_log_page_compacts_log(spark, tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    with MessageLog(tmp_path / "orders-0") as log:
        log.append(
            [
                {"key": b"k1", "value": b"a hat", "timestamp": now},
                {"key": b"k2", "value": None, "timestamp": now - 2 * 86_400_000},
                {"key": b"k3", "value": None, "timestamp": now},
                {"key": b"k1", "value": b"a coat", "timestamp": now},
            ]
        )
    names = {"spark": spark}
    run("docs/explanation/message-log.md", names, there={"orders-0/*.log": f"{tmp_path}/orders-0/*.log"})
    assert names["messages"].count() == 4
    kept = [(row.offset, bytes(row.key)) for row in names["latest"].orderBy("offset").collect()]
    assert kept == [(2, b"k3"), (3, b"k1")]


def test_conventions_page_selects_iot_hub_properties(spark) -> None:
    device = [("iothub-connection-device-id", bytes.fromhex("a10764657669636531"))]
    telemetry = spark.createDataFrame([(device,), ([(key, b"plain") for key, _ in device],)], f"headers {HEADERS}")
    names = {"lh": lh, "telemetry": telemetry}
    run("docs/reference/conventions.md", names)
    good, bad = names["typed"].collect()
    assert (good.device_id, good.error) == ("device1", None)
    assert (bad.device_id, [error.column for error in bad.error]) == (None, ["device_id"])
