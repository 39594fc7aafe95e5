"""Differences on Sail, a Rust engine that implements Spark Connect; :func:`is_sail` detects it.

For some bytes and wide integers, its expressions return other results than Spark's (0.7.2: ``is_valid_utf8`` of null is
false, ``conv`` of more than 63 bits is null). There, Arrow UDFs read and write values instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from letterhead.fields import Field
from letterhead.operations import Pack
from letterhead.spark.frame import HEADERS

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

__all__ = ["active_is_sail", "is_sail", "not_on_sail", "block_pushdown", "with_arrow_schema", "write_values"]

_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def is_sail(spark: Any) -> bool:
    """Return whether a session runs on Sail; the first call for a Connect session queries the server."""
    if not type(spark).__module__.startswith("pyspark.sql.connect."):
        return False
    if spark not in _known:
        try:
            # Sail reports a version of Spark, except in SQL.
            _known[spark] = not spark.sql("select version()").first()[0].startswith(spark.version)
        except PySparkException as error:
            # Declarative pipelines, which Sail lacks, cannot run a query while they are defined.
            if "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION" not in str(error):
                raise
            _known[spark] = False
    return _known[spark]


def active_is_sail() -> bool:
    """Return whether the active session runs on Sail, for functions that return a Column without a DataFrame."""
    spark = SparkSession.getActiveSession() if is_remote() else None
    return spark is not None and is_sail(spark)


def not_on_sail(spark: Any, feature: str, remedy: str) -> None:
    """Raise ``ValueError`` on Sail for an unsupported feature."""
    if is_sail(spark):
        raise ValueError(f"{feature} does not run on Sail: {remedy}")


def with_arrow_schema(source: type[DataSource]) -> type[DataSource]:
    """Return a data source for Sail. It declares its columns in Arrow's types, as times with a zone require."""

    class ArrowSchemaSource(source):  # type: ignore[misc]
        def schema(self) -> pa.Schema:
            return self.arrow_schema()

    return ArrowSchemaSource


def block_pushdown(headers: Column) -> Column:
    """Return the same headers, through a function that Sail does not push down.

    While it reads Parquet, Sail cannot evaluate a filter with a lambda, such as `filter(headers, h -> …)`.
    """
    return F.arrow_udf(_return_values, HEADERS).asNondeterministic()(headers)


def _return_values(values: pa.Array) -> pa.Array:
    return values


def write_values(values: pa.Array, key: str, type: str, truncate: bool) -> pa.Array:
    """Write a column as the bytes of a type with the core."""
    rows = pa.RecordBatch.from_arrays([values], ["value"])
    lists = Pack("kafka", {"value": Field(type, key)}, "keep", truncate)(rows)
    return lists.flatten().field("value")
