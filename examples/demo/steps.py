"""Steps 1 to 5: what letterhead does in Spark, and how it is checked."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from damage import FORMAT, Damage, damage_messages
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from report import Report

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs

COLUMNS = {"tenant": "string", "retry": "int32", "amount_cents": "int64", "traceparent": "string"}
COLUMNS |= {"route": "array<string>"}


class Steps:
    """One run over the topic and the store of a directory."""

    def __init__(self, spark: SparkSession, samples: Path, report: Report) -> None:
        self.spark = spark
        topic = spark.read.parquet(str(samples / "orders-0.parquet"))
        # Sail reads these times, which are INT96, without their zone.
        self.topic = topic.withColumn("timestamp", f.col("timestamp").cast("timestamp"))
        self.store = pq.read_table(samples / "store-latest-0.parquet")
        self.log = samples / "orders-0"
        self.report = report

    def typed_topic(self) -> None:
        """Step 1: the headers of a topic become typed columns."""
        size = f.coalesce(f.size("headers"), f.lit(0))
        records, headers = self.topic.agg(f.count("*"), f.sum(size)).collect()[0]
        with self.report.timed("topic: list of headers to typed columns", headers):
            kept = ["offset", "key", "timestamp"]
            typed = lhs.select_headers(self.topic, COLUMNS, keep=kept, errors="column")
            typed = self.write(typed, "topic-typed")
        sample = typed.where("size(route) = 1").limit(1).union(typed.where("size(route) > 1").limit(2))
        sample = sample.union(typed.where("tenant rlike '[^ -~]'").limit(1)).union(
            typed.where("tenant is null").limit(1)
        )
        self.report.step(
            "1  headers become typed columns",
            f"The topic `orders` as Spark's Kafka source returns it: {records:,} records, {headers:,} headers. "
            "`route` repeats, and is a list.",
            ["offset", *COLUMNS],
            [list(row) for row in sample.select("offset", *COLUMNS).collect()],
        )
        self.report.figures["topic"] = {"records": records, "headers": headers}
        self.report.check(typed.count() == records, f"{records:,} records went in, as many came out")
        self.report.check(typed.where("error is not null").count() == 0, "no record has an error")

    def typed_store(self, bad_share: float) -> None:
        """Step 2: stored bytes become typed columns; rows that do not decode are set aside."""
        messages, damage = damage_messages(self.store["value"].to_pylist(), bad_share)
        damaged = self.store.set_column(1, "value", pa.array(messages, pa.binary()))
        pq.write_table(damaged, self.report.out / "store-damaged.parquet")
        whole = lha.decode(damaged["value"].combine_chunks(), FORMAT, errors="null").field("headers")
        headers = pc.sum(pc.list_value_length(whole)).as_py()
        store = self.spark.read.parquet(str(self.report.out / "store-damaged.parquet"))
        with self.report.timed("store: bytes to typed columns and quarantine", headers):
            typed = lhs.select_headers(store, COLUMNS, FORMAT, column="value", keep=["key", "value"], errors="column")
            typed.persist()  # decoded once for both tables
            good = self.write(typed.where("error is null").drop("value", "error"), "store-typed")
            aside = self.write(typed.where("error is not null").select("key", "value", "error"), "quarantine")
            typed.unpersist()
        with self.report.timed("the same without Spark: letterhead.arrow", headers):
            lha.select(damaged["value"], COLUMNS, format=FORMAT, errors="column")
        self.compare_with_damage(damaged.to_pylist(), damage, good.count(), aside)

    def compare_with_damage(self, store: list[Any], damage: list[Damage], good: int, aside: DataFrame) -> None:
        """Check that exactly the damaged messages are set aside, each with its error at the damaged byte."""
        reported = {bytes(row["key"]): row for row in aside.collect()}
        expected = {store[entry.row]["key"]: entry for entry in damage}
        done, exact, examples = Counter(entry.kind for entry in damage), Counter(), {}
        for key in expected.keys() & reported.keys():
            entry, error = expected[key], reported[key]["error"][0]
            place = error["code"], error["byte_offset"], error["header"], error["column"]
            if place == entry[2:] and bytes(reported[key]["value"]) == store[entry.row]["value"]:
                exact[entry.kind] += 1
                examples[entry.kind] = f"{error['code']}: {error['message']} (byte {error['byte_offset']})"
        self.report.step(
            "2  broken bytes are set aside, with what is wrong and where",
            f"A Kafka Streams store (KIP-1271) of {len(store):,} rows, {len(damage):,} of them damaged on purpose: "
            f"{good:,} became rows, {len(reported):,} went to a quarantine table. The job went on.",
            ["damage", "done", "reported", "for example"],
            [[kind, done[kind], exact[kind], examples.get(kind)] for kind in done],
        )
        self.report.figures["store"] = {"rows": len(store), "damaged": len(damage), "exact": exact}
        self.report.check(expected.keys() <= reported.keys(), "every damaged row is set aside")
        self.report.check(reported.keys() <= expected.keys(), "no other row is set aside")
        self.report.check(exact == done, "each has the expected error code, byte, header and column, and its bytes")
        self.report.check(good + len(reported) == len(store), "no row is lost or doubled")

    def there_and_back(self) -> None:
        """Step 3: the headers of the topic to stored bytes and back."""
        records = self.topic.selectExpr("offset", "headers", "unix_millis(timestamp) timestamp", "value payload")
        headers = self.report.figures["topic"]["headers"]
        with self.report.timed("topic: headers, timestamp and value to bytes", headers):
            # A null payload has no message to keep headers in: that loss is reported.
            stored = lhs.encode_headers(records, FORMAT, into="value", keep=["offset"], on_loss="report")
            stored = self.write(stored, "topic-values")
        with self.report.timed("bytes to headers, timestamp and value", headers):
            back = self.write(lhs.decode_headers(stored, FORMAT, column="value", keep=["offset"]), "topic-back")
        tombstone, none = f.col("before.payload").isNull(), f.col("before.headers").isNull()
        empty = f.array().cast(records.schema["headers"].dataType)
        same = (
            f.col("after.headers").eqNullSafe(f.coalesce("before.headers", empty))
            & f.col("after.timestamp").eqNullSafe(f.col("before.timestamp"))
            & f.col("after.payload").eqNullSafe(f.col("before.payload"))
        )
        null = f.col("stored.value").isNull() & f.col("after.headers").isNull() & f.col("after.payload").isNull()
        compared = records.alias("before").join(back.alias("after"), "offset").join(stored.alias("stored"), "offset")
        counts = {
            "records": f.lit(True),
            "with headers": ~tombstone & ~none,
            "with headers, equal": ~tombstone & ~none & same,
            "without headers": ~tombstone & none,
            "without headers, an empty list": ~tombstone & none & same,
            "tombstones": tombstone,
            "tombstones, null": tombstone & null,
            "tombstones with headers": tombstone & (f.size("before.headers") > 0),
            "losses reported": f.col("stored.losses").isNotNull(),
        }
        row = compared.agg(*[f.count_if(holds).alias(name) for name, holds in counts.items()]).collect()[0]
        self.report.figures["there_and_back"] = n = row.asDict()
        rows = [
            ["with headers", n["with headers"], "the same headers, timestamp and value", n["with headers, equal"]],
            ["without headers", n["without headers"], "an empty list", n["without headers, an empty list"]],
            ["tombstones (null value)", n["tombstones"], "null, as a store deletes", n["tombstones, null"]],
        ]
        self.report.step(
            "3  headers become bytes, and come back",
            "The topic written as Kafka Streams stores it, read again, and compared record by record.",
            ["records", "written", "expected back", "right"],
            rows,
        )
        total = self.report.figures["topic"]["records"]
        self.report.check(n["records"] == total, f"{total:,} records went out, as many came back")
        self.report.check(all(row[1] == row[3] for row in rows), "every record came back as expected")
        lossy = n["tombstones with headers"]
        self.report.check(n["losses reported"] == lossy, f"the loss of headers on {lossy:,} tombstones is reported")

    def tenants(self) -> None:
        """Step 4: plain SQL over the columns."""
        typed = self.spark.read.parquet(str(self.report.out / "store-typed"))
        amounts = typed.groupBy("tenant").agg(f.count("*").alias("orders"), f.sum("amount_cents").alias("cents"))
        rows = amounts.orderBy(f.desc("orders"), "tenant").collect()
        self.report.figures["tenants"] = [row.asDict() for row in rows]
        meaning = "Orders and amount by tenant: a group-by over two headers of the store."
        self.report.step("4  and then it is plain SQL", meaning, ["tenant", "orders", "cents"], rows)

    def exact_copy(self) -> None:
        """Step 5: a log of a broker becomes a table, which is queried and has every record of the log."""
        target = self.report.out / "orders-copy"
        shutil.rmtree(target, ignore_errors=True)
        with self.report.timed("log: exact copy with typed columns", self.report.figures["topic"]["headers"]):
            copied = lh.copy(self.log, target, headers={"tenant": "string", "amount_cents": "int64"})
        with lh.diff(self.log, target) as differences:
            differing = sum(batch.num_rows for batch in differences)
        amounts = self.spark.read.parquet(str(target)).groupBy("tenant").agg(f.sum("amount_cents").alias("cents"))
        rows = amounts.where("tenant is not null").orderBy(f.desc("cents")).limit(3).collect()
        self.report.figures["copy"] = {"records": copied.rows, "differing": differing}
        self.report.step(
            "5  a log is copied, exactly, and is a table",
            f"Segments of a broker as Parquet: {copied.rows:,} records with keys, values, headers and timestamps, and "
            "two headers as columns. `letterhead copy` makes a topic of it again.",
            ["tenant", "cents"],
            [list(row) for row in rows],
        )
        total = self.report.figures["topic"]["records"]
        self.report.check(copied.rows == total and differing == 0, f"{total:,} records were copied, and none differs")

    def write(self, frame: DataFrame, name: str) -> DataFrame:
        """Write Parquet under the output directory, and read it."""
        path = str(self.report.out / name)
        frame.write.mode("overwrite").parquet(path)
        return self.spark.read.parquet(path)
