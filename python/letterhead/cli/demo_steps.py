"""The steps of `letterhead demo`: each reads, works, writes Parquet, is timed, and is checked."""

from __future__ import annotations

import importlib.metadata
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.cli.damage import Damage, count_headers, damage_cells
from letterhead.cli.demo_formats import in_every_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

FORMAT = "streams-timestamped"
COLUMNS: dict[str, str | lh.Field] = {
    "tenant": "string",
    "retry": "int32",
    "amount_cents": "int64",
    "traceparent": "string",
    "route": lh.All("string"),
}


class Steps:
    """One run of the demo; `report` grows with every step."""

    def __init__(self, spark: SparkSession, topic: Path, store: Path, out: Path, say: Callable[[str], None]) -> None:
        self.spark = spark
        self.topic_path = topic
        self.store_path = store
        self.out = out
        self.say = say
        self.report: dict[str, Any] = {
            "letterhead": importlib.metadata.version("letterhead"),
            "spark": spark.version,
            "data": str(topic.parent),
            "out": str(out),
            "times": [],
            "files": {},
            "failures": [],
        }

    def run(self, bad_share: float, *, start_seconds: float) -> dict[str, Any]:
        """Take every step in turn and give the report."""
        self._time_taken("start Spark and its Python workers", start_seconds, None)
        topic = self.spark.read.parquet(str(self.topic_path))
        self._typed_topic(topic)
        damage = self._damage(bad_share)
        self._typed_store(damage)
        self._there_and_back(topic)
        self._without_spark()
        self._tenants()
        self._every_format()
        return self.report

    def _typed_topic(self, topic: DataFrame) -> None:
        """Step 1: the list column of a topic to typed columns."""
        from pyspark.sql import functions as f

        self.say("step 1: headers of the topic to typed columns")
        size = f.coalesce(f.size("headers"), f.lit(0))
        records, headers, without = _row(topic.agg(f.count("*"), f.sum(size), f.count_if(size == 0)))
        with self._timed("topic: list of headers → typed columns", headers):
            typed = topic.transform(
                lhs.select_headers("headers", "kafka", COLUMNS, keep=["offset", "key", "timestamp"], errors="column")
            )
            written = self._write(typed, "topic-typed")
        faults = written.where("error is not null").count()
        sample = self._sample(written)
        raw = _row(topic.where(f.col("offset") == sample[0]["offset"]))
        self._check(written.count() == records, f"{records:,} records went in, {written.count():,} came out")
        self._check(faults == 0, f"{faults:,} records of the topic have faults, where there should be none")
        self.report["topic"] = {
            "records": records,
            "headers": headers,
            "without_headers": without,
            "faults": faults,
            "raw": {"offset": raw["offset"], "headers": [_spelt(header) for header in raw["headers"]]},
            "sample": sample,
        }

    def _sample(self, typed: DataFrame) -> list[dict[str, Any]]:
        """Pick a few rows which show what there is: repeats, text outside ASCII, a record without headers."""
        plain = typed.where("size(route) = 1").orderBy("offset").limit(1)
        repeats = typed.where("size(route) > 1").orderBy("offset").limit(2)
        other_script = typed.where("tenant rlike '[^ -~]'").orderBy("offset").limit(1)
        none = typed.where("tenant is null").orderBy("offset").limit(1)
        rows = plain.union(repeats).union(other_script).union(none).select("offset", *COLUMNS).collect()
        return [row.asDict() for row in sorted({row["offset"]: row for row in rows}.values(), key=lambda r: r.offset)]

    def _damage(self, share: float) -> list[Damage]:
        """Break a known share of the store's cells before anything reads them."""
        self.say("damaging some cells of the store")
        store = pq.read_table(self.store_path)
        whole = store.column("value").to_pylist()
        self.cells, damage = damage_cells(whole, share)
        damaged = store.set_column(store.schema.names.index("value"), "value", pa.array(self.cells, pa.binary()))
        path = self.out / "store-damaged.parquet"
        pq.write_table(damaged, path)
        self.report["files"]["store-damaged"] = str(path)
        self.keys = store.column("key").to_pylist()
        hurt = {each.row for each in damage}
        self.whole_headers = sum(count_headers(cell) for row, cell in enumerate(whole) if row not in hurt)
        return damage

    def _typed_store(self, damage: list[Damage]) -> None:
        """Step 2: stored bytes to typed columns; the rows that do not decode are set aside."""
        self.say("step 2: cells of the store to typed columns, bad ones set aside")
        store = self.spark.read.parquet(self.report["files"]["store-damaged"])
        with self._timed("store: bytes → typed columns and quarantine", self.whole_headers):
            # Kept in memory between the two writes, so that the bytes are decoded once.
            typed = store.transform(
                lhs.select_headers("value", FORMAT, COLUMNS, keep=["key", "value"], errors="column")
            ).persist()
            whole = self._write(typed.where("error is null").drop("value", "error"), "store-typed")
            aside = self._write(typed.where("error is not null").select("key", "value", "error"), "quarantine")
            typed.unpersist()
        self._compare_with_damage(whole.count(), aside, damage)

    def _compare_with_damage(self, whole: int, aside: DataFrame, damage: list[Damage]) -> None:
        """Hold what was set aside against what was damaged: the same rows, the same faults, the same bytes."""
        found = {bytes(row["key"]): row for row in aside.collect()}
        expected = {self.keys[each.row]: each for each in damage}
        missed = sorted(each.row for key, each in expected.items() if key not in found)
        unexpected = sorted(self.keys.index(key) for key in found if key not in expected)
        exact: Counter[str] = Counter()
        examples: dict[str, Any] = {}
        for key, each in expected.items():
            if key not in found:
                continue
            row = found[key]
            fault = row["error"][0]
            place = (fault["code"], fault["byte"], fault["header"], fault["column"])
            if (
                place == (each.code, each.byte, each.header, each.column)
                and bytes(row["value"]) == self.cells[each.row]
            ):
                exact[each.kind] += 1
                examples.setdefault(each.kind, {"row": each.row, **fault.asDict()})
        cells = Counter(each.kind for each in damage)
        kinds = []
        for kind in dict.fromkeys(each.kind for each in damage):
            code = next(each.code for each in damage if each.kind == kind)
            kinds.append(
                {
                    "kind": kind,
                    "code": code,
                    "damaged": cells[kind],
                    "found": exact[kind],
                    "example": examples.get(kind),
                }
            )
        self._check(not missed, f"{len(missed):,} damaged cells were not found, the first in row {missed[:1]}")
        self._check(
            not unexpected, f"{len(unexpected):,} whole cells were set aside, the first in row {unexpected[:1]}"
        )
        self._check(exact == cells, "some damaged cells were found with another code, place or bytes than expected")
        self._check(whole + len(found) == len(self.cells), "rows of the store were lost or doubled")
        self.report["store"] = {
            "cells": len(self.cells),
            "headers_in_whole_cells": self.whole_headers,
            "whole": whole,
            "set_aside": len(found),
            "damaged": len(damage),
            "missed": missed,
            "unexpected": unexpected,
            "kinds": kinds,
        }

    def _there_and_back(self, topic: DataFrame) -> None:
        """Step 3: the topic's headers to stored bytes and back, and nothing is lost."""
        from pyspark.sql import functions as f

        self.say("step 3: headers of the topic to bytes, and back")
        records = topic.select(
            "offset", "headers", f.unix_millis("timestamp").alias("timestamp"), f.col("value").alias("payload")
        )
        size = f.coalesce(f.size("headers"), f.lit(0))
        tombstone = f.col("payload").isNull()
        headers, on_tombstones = _row(records.agg(f.sum(f.when(~tombstone, size)), f.sum(f.when(tombstone, size))))
        with self._timed("topic: headers, timestamp, value → bytes", headers):
            # A null payload has no cell, so its headers are lost: that is what is to be reported.
            encode = lhs.encode_headers("headers", FORMAT, into="cell", keep=["offset"], on_loss="report")
            cells = self._write(records.transform(encode), "topic-cells")
        with self._timed("bytes → headers, timestamp, value", headers):
            back = self._write(cells.transform(lhs.decode_headers("cell", FORMAT, keep=["offset"])), "topic-back")
        self._compare_back(records, cells, back)
        self.report["there_and_back"]["tombstone_headers"] = on_tombstones

    def _compare_back(self, records: DataFrame, cells: DataFrame, back: DataFrame) -> None:
        """Hold what came back against what went, record by record."""
        from pyspark.sql import functions as f

        before, after = records.alias("before"), back.alias("after")
        tombstone = f.col("before.payload").isNull()
        none = f.col("before.headers").isNull()
        expected = f.coalesce("before.headers", f.array().cast(records.schema["headers"].dataType))
        same = (
            f.col("after.headers").eqNullSafe(expected)
            & f.col("after.timestamp").eqNullSafe(f.col("before.timestamp"))
            & f.col("after.payload").eqNullSafe(f.col("before.payload"))
        )
        null = f.col("cells.cell").isNull() & f.col("after.headers").isNull() & f.col("after.payload").isNull()
        compared = before.join(after, "offset").join(cells.alias("cells"), "offset")
        figures = {
            "records": f.count("*"),
            "with_value": f.count_if(~tombstone),
            "equal": f.count_if(~tombstone & ~none & same),
            "without_headers": f.count_if(~tombstone & none),
            "without_headers_as_empty": f.count_if(~tombstone & none & same),
            "tombstones": f.count_if(tombstone),
            "tombstones_as_null": f.count_if(tombstone & null),
            "tombstones_with_headers": f.count_if(tombstone & (f.size("before.headers") > 0)),
            "losses_reported": f.count_if(f.col("cells.losses").isNotNull()),
        }
        counts = _row(compared.agg(*[figure.alias(name) for name, figure in figures.items()])).asDict()
        total = self.report["topic"]["records"]
        read_as_expected = counts["equal"] + counts["without_headers_as_empty"] + counts["tombstones_as_null"]
        counts["different"] = total - read_as_expected
        self._check(counts["records"] == total, f"{total:,} records went out, {counts['records']:,} came back")
        lossy, reported = counts["tombstones_with_headers"], counts["losses_reported"]
        self._check(lossy == reported, f"{lossy:,} tombstones lose headers, {reported:,} are reported")
        self._check(counts["different"] == 0, f"{counts['different']:,} records came back otherwise than they went")
        self.report["there_and_back"] = counts

    def _without_spark(self) -> None:
        """Do step 2's work once more on one thread without Spark, to show whose time the steps' times are."""
        cells = pa.array(self.cells, pa.binary())
        seconds = []
        for _ in range(5):
            # A few milliseconds: the first time, and any other process, would be most of what is measured.
            began = time.perf_counter()
            lha.select(cells, FORMAT, COLUMNS, errors="column")
            seconds.append(time.perf_counter() - began)
        self._time_taken("the same without Spark: letterhead.arrow", min(seconds), self.whole_headers)

    def _tenants(self) -> None:
        from pyspark.sql import functions as f

        rows = (
            self.spark.read.parquet(self.report["files"]["store-typed"])
            .groupBy("tenant")
            .agg(f.count("*").alias("orders"), f.sum("amount_cents").alias("amount_cents"))
            .orderBy(f.col("orders").desc(), "tenant")
            .collect()
        )
        self.report["tenants"] = [row.asDict() for row in rows]

    def _every_format(self) -> None:
        """Step 6: the topic's messages in every format and back, and what each cannot carry; without Spark."""
        self.say("step 6: the topic in every format, and back")
        found = in_every_format(self.topic_path)
        self.report["formats"] = found.report
        self.report["failures"] += found.failures
        step = f"the topic in {len(found.report['rows'])} formats and back, without Spark"
        self._time_taken(step, found.seconds, found.headers)

    def _write(self, frame: DataFrame, name: str) -> DataFrame:
        """Write Parquet under the output directory and give it back as it was written."""
        path = str(self.out / name)
        frame.write.mode("overwrite").parquet(path)
        self.report["files"][name] = path
        return self.spark.read.parquet(path)

    def _check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.report["failures"].append(otherwise)

    @contextmanager
    def _timed(self, step: str, headers: int) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._time_taken(step, time.perf_counter() - began, headers)

    def _time_taken(self, step: str, seconds: float, headers: int | None) -> None:
        rate = None if headers is None else headers / seconds
        self.report["times"].append({"step": step, "seconds": seconds, "headers": headers, "headers_per_second": rate})


def _row(frame: DataFrame) -> Row:
    """Give the one row of a frame that has one."""
    return frame.collect()[0]


def _spelt(header: Row) -> dict[str, Any]:
    return {"key": header["key"], "value": None if header["value"] is None else bytes(header["value"]).hex()}
