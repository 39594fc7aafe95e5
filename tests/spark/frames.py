"""From Arrow to frames and back, and columns that can be compared."""

from __future__ import annotations

import contextlib
import io
import math
import re
from typing import Any

import pyarrow as pa

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


def values_of(spark: Any, values: list[bytes | None], **others: pa.Array) -> Any:
    """Make a frame of a number, other columns, and values."""
    number = pa.array(range(len(values)), pa.int64())
    return spark.createDataFrame(pa.table({"number": number, **others, "data": pa.array(values, pa.binary())}))


def collected(df: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame, comparable."""
    table = df.toArrow()
    return {name: plain(table[name]) for name in table.column_names}


def plain(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values: times as microseconds, floats so that -0.0 is not 0.0 and NaN is NaN."""
    return [_plain(value) for value in _without_times(column).to_pylist()]


def failure(df: Any) -> str:
    """Return the error message of a query that fails."""
    from pyspark.errors import PySparkException

    try:
        df.collect()
    except PySparkException as error:
        return str(error)
    raise AssertionError("nothing was raised")


def explained(df: Any, how: str = "formatted") -> str:
    """Return the plans of a frame."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        df.explain(how)
    return text.getvalue()


class Recorder:
    """A frame that keeps what would be run on it."""

    sparkSession = None

    def __init__(self, schema: Any) -> None:
        self.schema, self.selected = schema, list[str]()

    def select(self, *columns: Any) -> Recorder:
        """Keep the names of the columns."""
        # A Column of Connect prints its name in backquotes.
        self.selected = [re.findall("'`?([^`]*)`?'", str(column))[0] for column in columns]
        return self

    def mapInArrow(self, run: Any, schema: Any) -> tuple[Any, Any]:
        """Return what would be run."""
        return run, schema


def batches_of(transform: Any, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Run what a transform would run on a batch, without Spark; return all batches that come out."""
    from pyspark.sql.types import StructField, StructType

    from letterhead.spark.schemas import spark_type

    schema = StructType([StructField(field.name, spark_type(field.type)) for field in batch.schema])
    recorder = Recorder(schema)
    run, declared = transform(recorder)
    result = list(run(iter([batch.select(recorder.selected)])))
    assert all(part.schema.names == [field.name for field in declared] for part in result)
    return result


def _without_times(column: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_list(column.type) and pa.types.is_timestamp(column.type.value_type):
        return column.cast(pa.list_(pa.int64()))
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1.0, value))
    return value
