"""The examples in the docstrings of ``letterhead.spark`` run, on the samples."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ["__init__", "columns", "expressions", "frame", "runner", "schemas", "transforms"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(spark, samples, name):
    module = importlib.import_module("letterhead.spark" if name == "__init__" else f"letterhead.spark.{name}")
    orders = spark.read.parquet(str(samples / "orders-0.parquet"))
    frames = {
        "spark": spark,
        "orders": orders,
        "state": spark.read.parquet(str(samples / "store-latest-0.parquet")),
        "frame": orders.selectExpr("key", "headers", "unix_millis(timestamp) as ts_ms", "value"),
    }
    result = doctest.testmod(module, extraglobs=frames)
    assert result.failed == 0
    assert result.attempted > 0 or name in ("frame", "runner", "schemas")
