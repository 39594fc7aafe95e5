"""The examples in the docstrings of ``letterhead.spark`` run, on the samples."""

from __future__ import annotations

import doctest
import importlib

import pytest

import letterhead as lh

MODULES = [
    "__init__", "compaction", "conventions", "decoding", "edits", "expressions", "header_column", "header_functions", "header_sql", "show", "sources",
    "writing",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(spark, samples, name):
    module = importlib.import_module("letterhead.spark" if name == "__init__" else f"letterhead.spark.{name}")
    orders = spark.read.parquet(str(samples / "orders-0.parquet"))
    sent = [
        lh.encode(lh.Message(offset=n, key=b"k", value=b"v", headers={"n": lh.Int8(n)}), "kip82-message")
        for n in range(3)
    ]
    frames = {
        "spark": spark,
        "orders": orders,
        "fetched": spark.createDataFrame([(0, sent[0] + sent[1]), (1, sent[2])], "partition int, batch binary"),
        "state": spark.read.parquet(str(samples / "store-latest-0.parquet")),
        "frame": orders.selectExpr("key", "headers", "unix_millis(timestamp) as ts_ms", "value"),
    }
    result = doctest.testmod(module, extraglobs=frames)
    assert result.failed == 0
    assert result.attempted > 0
