"""The same columns by Spark's own source of Kafka and by ours, in one session of two cores.

* `letterhead`: the format `letterhead-kafka`, told which columns to build.
* `letterhead, segments`: the format `letterhead-segments`, on the broker's files.
* `Spark's source kafka`: three headers by `filter(headers, …)[0].value`. That gives their bytes, as it is the least one
  can ask for; `letterhead` gives numbers and text.
* `Spark's source kafka, typed`: the same, with the bytes made text and numbers, which is what `letterhead` gives.

All columns are the eight that Spark's source gives with `includeHeaders`; segments have the same eight, with types of
their own for times.
"""

from __future__ import annotations

import math
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benches.direct import records
from benches.spark.session import time_limit

THREE, ALL = "three typed headers", "all columns"
SOURCE = "topic of five headers"
OURS, SEGMENTS, THEIRS, THEIRS_TYPED = (
    "letterhead",
    "letterhead, segments",
    "Spark's source kafka",
    "Spark's source kafka, typed",
)
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]

BYTES = "filter(headers, h -> h.key = '{}')[0].value"
NUMBER = "cast(conv(hex({}), 16, 10) as {})"  # right for what is not negative
SQL_TYPES = {"int32": "int", "int64": "bigint"}


def jobs(spark: Any, directory: Path, address: str | None) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return frames by job and side."""
    from letterhead import spark as lhs

    lhs.register(spark)

    def source(name: str, **options: str) -> Any:
        reader = spark.read.format(name).options(**options)
        if name == "letterhead-segments":
            return reader.load(str(directory))
        return reader.option("kafka.bootstrap.servers", address).option("subscribe", records.TOPIC).load()

    three = lhs.options(columns=["offset"], headers=records.typed())
    in_segments = [{"timestampType": "timestamp_type"}.get(name, name) for name in COLUMNS]
    sides: dict[str, dict[str, Callable[[], Any]]] = {
        THREE: {SEGMENTS: lambda: source("letterhead-segments", **three)},
        ALL: {SEGMENTS: lambda: source("letterhead-segments", **lhs.options(columns=in_segments))},
    }
    if address is None:
        return sides
    values = {name.replace("-", "_"): BYTES.format(name) for name in records.TYPED}
    typed = {
        name: f"cast({values[name]} as string)" if type == "string" else NUMBER.format(values[name], SQL_TYPES[type])
        for name, type in zip(values, records.TYPED.values(), strict=True)
    }

    def theirs(columns: Mapping[str, str]) -> Any:
        frame = source("kafka", includeHeaders="true")
        return frame.selectExpr("offset", *(f"{expression} as {name}" for name, expression in columns.items()))

    sides[THREE] = {
        OURS: lambda: source("letterhead-kafka", **three),
        **sides[THREE],
        THEIRS: lambda: theirs(values),
        THEIRS_TYPED: lambda: theirs(typed),
    }
    sides[ALL] = {
        OURS: lambda: source("letterhead-kafka", includeHeaders="true"),
        **sides[ALL],
        THEIRS: lambda: source("kafka", includeHeaders="true"),
    }
    return sides


def measure(
    job: str, sink: str, sides: Mapping[str, Callable[[], Any]], rounds: int, target: Path
) -> list[dict[str, Any]]:
    """Run the sides of a job in turns, into the noop sink or into Parquet."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        # There and back, so that no side always follows the same other one.
        for name in list(sides)[:: -1 if number % 2 else 1]:
            shutil.rmtree(target, ignore_errors=True)
            with time_limit(f"{job}, {sink}: {name}"):
                started = time.perf_counter()
                write = sides[name]().write.mode("overwrite")
                write.format("noop").save() if sink == "noop" else write.parquet(str(target))
                seconds[name].append(time.perf_counter() - started)
            print(f"{job}, {sink} round {number}: {name} {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
    shutil.rmtree(target, ignore_errors=True)
    for taken in seconds.values():
        del taken[0]  # the first round is for the JIT, the page cache and the start of the workers
    return compared(f"{job} in Spark, {sink} sink", seconds)


def compared(job: str, seconds: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    """Print the time of every side as a share of each of ours."""

    def times(taken: list[float], ours: str) -> float:
        # Pairs of the same round: a slow minute of the machine is in both.
        pairs = zip(taken, seconds.get(ours, ()), strict=False)
        return statistics.median([mine / our for mine, our in pairs] or [math.nan])

    return [
        {
            "job": job,
            "source": SOURCE,
            "side": name,
            "rows": records.ROWS,
            "seconds": taken,
            "ratio": times(taken, OURS),
            "ratio_to_segments": times(taken, SEGMENTS),
        }
        for name, taken in seconds.items()
    ]


def check(job: str, name: str, frame: Any) -> None:
    """Add up the columns of a side and compare."""
    answer = records.answer()
    if job == THREE:
        assert frame.columns == ["offset", "tenant", "schema_id", "amount"], (name, frame.columns)
        types = dict(frame.dtypes)
        number = "conv(hex({0}), 16, 10)" if types["amount"] == "binary" else "{0}"
        expressions = {
            "rows": "count(*)",
            "offsets": "sum(offset)",
            "tenant_bytes": "sum(octet_length(tenant))",
            "schemas": f"sum(cast({number.format('schema_id')} as bigint))",
            "amounts": f"sum(cast({number.format('amount')} as bigint))",
        }
    else:
        assert [{"timestamp_type": "timestampType"}.get(column, column) for column in frame.columns] == COLUMNS, name
        times = "timestamp" if dict(frame.dtypes)["timestamp"] == "bigint" else "unix_millis(timestamp)"
        amount = f"conv(hex({BYTES.format('amount')}), 16, 10)"
        expressions = {
            "rows": f"count_if(topic = '{records.TOPIC}' and size(headers) = {records.HEADERS})",
            "offsets": "sum(offset)",
            "numbers": f"sum(cast(cast(key as string) as bigint) * {records.PARTITIONS}) - sum(cast(substr(cast(value as string), 11, 8) as bigint))",
            "timestamps": f"sum({times})",
            "trace_bytes": f"sum(octet_length({BYTES.format('traceparent')})) + count({BYTES.format('n')})",
            "amounts": f"sum(cast({amount} as bigint))",
        }
    with time_limit(f"{job}: {name}: answer"):
        got = (
            frame.selectExpr(*(f"{expression} as {field}" for field, expression in expressions.items()))
            .first()
            .asDict()
        )
    assert got == {field: getattr(answer, field) for field in expressions}, (job, name, got, answer)
