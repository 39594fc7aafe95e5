"""Run the transforms and ``header`` in a session of another type: `python other_sessions.py connect|cluster SAMPLES`.

A process of its own, because a process has one type of session. It compares values with the kernel called here, and
prints ``whole`` and where the workers ran.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import sys
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.operations import Select
from tests.spark import connect
from tests.spark.frames import collected, plain

COLUMNS = {"tenant": "string", "amount_cents": "int64", "weight_kg": "float64", "route": "array<string>"}


def session(type: str):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").config(
        "spark.sql.shuffle.partitions", "2"
    )
    if type == "connect":
        return connect.local_session(builder)
    builder = builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    return builder.getOrCreate()


def check(spark, samples: Path) -> None:
    orders = spark.read.parquet(str(samples / "orders-0.parquet")).where("offset < 3000").repartition(4)
    table = pq.read_table(samples / "orders-0.parquet").slice(0, 3000)
    expected = Select("kafka", COLUMNS, dialect="spark")(table["headers"].combine_chunks())
    expected = {"offset": table["offset"].to_pylist()} | {name: plain(expected.field(name)) for name in COLUMNS}

    by_batch = lhs.select_headers(orders, COLUMNS, keep=["offset"]).orderBy("offset")
    assert collected(by_batch) == expected

    fields = {name: type if isinstance(type, lh.Field) else lh.field(type) for name, type in COLUMNS.items()}
    for engine in ("spark", "arrow"):
        columns = [
            lhs.header("headers", name, type.type, repeat=type.repeat, engine=engine) for name, type in fields.items()
        ]
        assert collected(orders.select("offset", *columns).orderBy("offset")) == expected, engine
        acme = orders.where(lhs.header("headers", "tenant", "string", engine=engine) == "acme")
        assert acme.count() == expected["tenant"].count("acme"), engine

    check_edits(orders)
    assert lhs.scan_headers(orders).to_dict() == lha.scan(table["headers"], "kafka").to_dict()

    latest = spark.read.parquet(str(samples / "store-latest-0.parquet"))
    restored = (
        lhs.decode_headers(latest, "streams-timestamped", column="value", keep=["key", "value"])
        .withColumnRenamed("value", "before")
        .transform(lhs.encode_headers, "streams-timestamped", into="after", keep=["key", "before"])
    )
    assert restored.count() == latest.count() > 100
    assert restored.where("not (before <=> after)").count() == 0

    check_messages(spark)

    bad = latest.limit(1).selectExpr("1L offset", "X'01' value")
    assert raised(lhs.decode_headers(bad, "kafka", column="value").collect).count("in the row with offset=1 (byte 0)")
    assert "unknown column 'valeu': did you mean 'value'?" in raised(
        lambda: lhs.decode_headers(bad, "kafka", column="valeu")
    )
    text = raised(
        bad.selectExpr("array(struct('k' key, value))").toDF("h").select(lhs.header("h", "k", "int32")).collect
    )
    assert "kafka: column k: 1 byte where int32 takes 4 (wrong_size, header 0)" in text


def check_edits(orders) -> None:
    """Headers that go and come, and what is shown of them."""
    edits = partial(
        lhs.edit_headers, drop=lambda key: key.startswith("ce_"), append={"n": ("offset", "int64"), "via": b"spark"}
    )
    edited = orders.transform(edits)
    many = lhs.edit_headers(edited, set={f"k{number}": b"v" for number in range(24)}).limit(1).first()
    assert [header.key for header in many["headers"][-24:]] == [f"k{number}" for number in range(24)]
    assert edited.where(lhs.header("headers", "n", "int64") == edited["offset"]).count() == 3000
    assert edited.where("exists(headers, h -> startswith(h.key, 'ce_'))").count() == 0
    with contextlib.redirect_stdout(io.StringIO()) as screen:
        lhs.show_headers(edited.where("offset = 1"), keep=[])
    assert [line.split()[1:3] for line in screen.getvalue().splitlines()[-2:]] == [["n", "00"], ["via", '"spark"']]


def check_messages(spark) -> None:
    """Rows that multiply, keys of every type, and a conversion there and back."""
    headers = [("n", lh.Int8(7)), (lh.Int32(3), lh.UInt64(2**64 - 1))]
    value = lh.encode(lh.Message(id=bytes(16), headers=headers, payload=b"p"), "iggy-message")
    sets = [
        (part, b"".join(lh.encode(lh.Message(offset=n, value=value, headers={"n": lh.Int8(n)}), "kip82-message") for n in range(part)))
        for part in range(4)
    ]  # fmt: skip
    kept = ["part", "offset", "n"]
    messages = (
        spark.createDataFrame(sets, "part int, value binary")
        .repartition(3)
        .transform(lhs.explode_batches, "kip82-messages", column="value", columns=["offset", "value"], headers={"n": "int8"})
        .transform(lhs.convert_headers, "iggy-message", column="value", target="streams", types="text", on_loss="drop", keep=kept)
        .transform(lhs.decode_headers, "streams", column="value", keep=kept)
        .transform(lhs.encode_headers, "iggy", types={"n": "int8:text", "3": "uint64:text"}, keep=[*kept, "payload"])
        .transform(lhs.decode_headers, "iggy")
    )  # fmt: skip
    result = collected(
        messages.select(
            *kept, "payload", *(
                lhs.header("headers", key, type, format="iggy", engine=engine).alias(f"{key} {engine}")
                for key, type in (("n", "int8"), ("3", "uint64"))
                for engine in ("spark", "arrow")
            )
        ).orderBy("part", "offset")
    )  # fmt: skip
    assert result == {
        "part": [1, 2, 2, 3, 3, 3], "offset": [0, 0, 1, 0, 1, 2], "n": [0, 0, 1, 0, 1, 2], "payload": [b"p"] * 6,
        "n spark": [7] * 6, "n arrow": [7] * 6, "3 spark": [2**64 - 1] * 6, "3 arrow": [2**64 - 1] * 6,
    }, result  # fmt: skip


def raised(call) -> str:
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("nothing was raised")


def executors(spark) -> set[int]:
    """Return the processes above the Python workers: the JVMs of the executors."""

    def parents(batches):
        import psutil
        import pyarrow as pa

        for _ in batches:
            java = next(parent.pid for parent in psutil.Process().parents() if parent.name() == "java")
            yield pa.record_batch({"pid": pa.array([java], pa.int64())})

    return {row.pid for row in spark.range(8).repartition(8).mapInArrow(parents, "pid long").collect()}


if __name__ == "__main__":
    # Before the test gives up on it.
    faulthandler.dump_traceback_later(510, exit=True)
    spark = session(sys.argv[1])
    check(spark, Path(sys.argv[2]))
    print("whole", type(spark).__module__, len(executors(spark)))
    spark.stop()
