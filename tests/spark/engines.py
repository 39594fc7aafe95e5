"""The same cases in one engine: `python engines.py spark|connect|polars|duckdb SAMPLES`; prints the answers as JSON.

Every engine reads the Parquet files itself and has its own way to make a column of bytes. What is asked is the same for all.
polars and DuckDB are run where no pyarrow is; nanoarrow takes the one column out of the rows that DuckDB gives.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import letterhead as lh

COLUMNS = {
    "tenant": "string",
    "amount_cents": "int64",
    "weight_kg": "float64",
    "route": "array<string>",
    "event": lh.field("string", key="ce_type"),
    "absent": "uuid",
}
ROWS = 400
ORDERS, STORE = "orders-0.parquet", "store-latest-0.parquet"
MESSAGES = [
    lh.encode([("k", b"v"), ("k", None), ("é", b"")], "kafka"),
    b"",
    b"\x02\x06key",
    lh.encode([("k", "again")], "kafka") + b"\0",
    b"\x01",
]
TYPED = [
    lh.encode([("n", lh.Int8(-7)), (lh.Int32(3), lh.Float64(-0.0)), ("n", lh.String("x"))], "iggy"),
    lh.encode([], "iggy"),
]


class Spark:
    """Transforms of DataFrames; the rows are numbered, as they have no order of their own."""

    def __init__(self, samples: Path, *, connect: bool) -> None:
        from pyspark.sql import SparkSession

        from tests.spark.connect import local_session as connect_session

        builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        self.spark = connect_session(builder) if connect else builder.master("local[2]").getOrCreate()
        self.samples = samples

    def file(self, name: str, column: str, order: str) -> Any:
        frame = self.spark.read.parquet(str(self.samples / name)).orderBy(order).limit(ROWS)
        return self.numbered(
            [row[0] for row in frame.select(column).collect()], frame.select(column).schema[0].dataType
        )

    def messages(self, messages: list[bytes]) -> Any:
        return self.numbered(messages, "binary")

    def numbered(self, values: list[Any], data_type: Any) -> Any:
        from pyspark.sql.types import LongType, StructType

        schema = StructType().add("number", LongType()).add("value", data_type)
        return self.spark.createDataFrame(list(enumerate(values)), schema).repartition(3)

    def run(self, operation: str, column: Any, format: str, *more: Any, **options: Any) -> list[dict[str, Any]]:
        from letterhead import spark as lhs

        if operation in ("encode", "convert"):
            options["into"] = "data"
        function = getattr(lhs, f"{operation}_headers")
        result = function(column, *more, format=format, column="value", keep=["number"], **options)
        rows = result.orderBy("number").drop("number").collect()
        return [row.asDict(recursive=True) for row in rows]


class Polars:
    def __init__(self, samples: Path) -> None:
        self.samples = samples

    def file(self, name: str, column: str, order: str) -> Any:
        import polars as pl

        return pl.read_parquet(self.samples / name).sort(order).head(ROWS)[column]

    def messages(self, messages: list[bytes]) -> Any:
        import polars as pl

        return pl.Series(messages, dtype=pl.Binary)

    def run(self, operation: str, column: Any, format: str, *more: Any, **options: Any) -> list[dict[str, Any]]:
        import polars as pl

        from letterhead import arrow as lha

        return pl.Series(getattr(lha, operation)(column, *more, format=format, **options)).to_list()


class DuckDB:
    def __init__(self, samples: Path) -> None:
        import duckdb

        self.samples, self.duckdb = samples, duckdb.connect()

    def file(self, name: str, column: str, order: str) -> Any:
        return self.column(
            f"select {column} from read_parquet('{self.samples / name}') order by \"{order}\" limit {ROWS}"
        )

    def messages(self, messages: list[bytes]) -> Any:
        values = ", ".join(f"({number}, from_hex('{message.hex()}'))" for number, message in enumerate(messages))
        return self.column(f"select value from (values {values}) as t(number, value) order by number")

    def column(self, query: str) -> Any:
        import nanoarrow as na

        return na.Array(self.duckdb.sql(query)).child(0)

    def run(self, operation: str, column: Any, format: str, *more: Any, **options: Any) -> list[dict[str, Any]]:
        from letterhead import arrow as lha

        rows = self.duckdb.from_arrow(getattr(lha, operation)(column, *more, format=format, **options))
        return [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]


def answers(engine: Any) -> dict[str, Any]:
    """Ask an engine everything."""
    headers = engine.file(ORDERS, "headers", "offset")
    store = engine.file(STORE, "value", "key")
    messages, typed = engine.messages(MESSAGES), engine.messages(TYPED)
    return {
        "select from headers": engine.run("select", headers, "kafka", COLUMNS),
        "encode": engine.run("encode", headers, "kafka", on_loss="report"),
        "encode with types": engine.run("encode", headers, "iggy", on_loss="report", types={"amount_cents": "int64"}),
        "decode": engine.run("decode", store, "streams-timestamped"),
        "convert": engine.run("convert", store, "streams-timestamped", target="streams", on_loss="report"),
        "what is bad": engine.run("decode", messages, "kafka", errors="column"),
        "select from what is bad": engine.run("select", messages, "kafka", {"k": "string"}, errors="column"),
        "typed": engine.run("decode", typed, "iggy", errors="column"),
        "select typed": engine.run("select", typed, "iggy", {"n": lh.field("int8", repeat="first")}),
    }


def plain(value: Any) -> Any:
    """Return what JSON can hold: bytes as hex, and floats with all their bits."""
    if isinstance(value, dict):
        return {name: plain(element) for name, element in value.items()}
    if isinstance(value, list | tuple):
        return [plain(element) for element in value]
    if isinstance(value, bytes | bytearray):
        return f"0x{value.hex()}"
    return value.hex() if isinstance(value, float) else value


if __name__ == "__main__":
    # Before the test gives up on it.
    faulthandler.dump_traceback_later(510, exit=True)
    name, samples = sys.argv[1], Path(sys.argv[2])
    engines = {"polars": Polars, "duckdb": DuckDB}
    engine = engines[name](samples) if name in engines else Spark(samples, connect=name == "connect")
    print(
        json.dumps({
            "answers": plain(answers(engine)),
            "pyarrow": importlib.util.find_spec("pyarrow") is not None,
            "letterhead": lh.__file__,
        })
    )  # fmt: skip
