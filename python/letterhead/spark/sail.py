"""Differences on Sail, a Rust engine that implements Spark Connect; :func:`is_sail` detects it.

Its expressions return other results than Spark's for some bytes and wide integers (0.7.2: ``is_valid_utf8`` of null
is false, ``conv`` of more than 63 bits is null). There, Arrow UDFs read and write values instead.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from letterhead.errors import EncodeError
from letterhead.spark.expressions import FLOATS, RANGES
from letterhead.spark.frame import HEADERS
from letterhead.values import Value

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

__all__ = ["active_is_sail", "is_sail", "not_on_sail", "unfiltered", "with_arrow_schema", "written_values"]

_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def is_sail(spark: Any) -> bool:
    """Return whether a session is one of Sail; the first call for a session of Connect asks the server."""
    if not type(spark).__module__.startswith("pyspark.sql.connect."):
        return False
    if spark not in _known:
        # Sail reports a version of Spark, except in SQL.
        _known[spark] = not spark.sql("select version()").first()[0].startswith(spark.version)
    return _known[spark]


def active_is_sail() -> bool:
    """Return whether the active session is one of Sail, for functions that make a Column and have no frame."""
    spark = SparkSession.getActiveSession() if is_remote() else None
    return spark is not None and is_sail(spark)


def not_on_sail(spark: Any, feature: str, remedy: str) -> None:
    """Raise ``ValueError`` on Sail, where a feature does not run."""
    if is_sail(spark):
        raise ValueError(f"{feature} does not run on Sail: {remedy}")


def with_arrow_schema(source: type[DataSource]) -> type[DataSource]:
    """Return a data source for Sail: its columns are declared in Arrow's types, as times with a zone need it there."""

    class ArrowSchemaSource(source):  # type: ignore[misc]
        def schema(self) -> pa.Schema:
            return self.arrow_schema()

    return ArrowSchemaSource


def unfiltered(headers: Column) -> Column:
    """Return the same headers, by a function that Sail does not push down.

    It cannot evaluate a filter with a lambda, such as `filter(headers, h -> …)`, while it reads Parquet.
    """
    return F.arrow_udf(_unchanged, HEADERS).asNondeterministic()(headers)


def _unchanged(values: pa.Array) -> pa.Array:
    return values


# Values to write ------------------------------------------------------------------------------------------------------


def written_values(values: pa.Array, key: str, type: str) -> pa.Array:
    """Write a column as the bytes of a type ``name[:be|le|text]``, with the rules of :mod:`letterhead.spark.writing`."""
    name, _, order = type.partition(":")
    if name == "timestamp_ms":
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    write = _text if order == "text" else _bytes
    written = [None if value is None else write(name, _checked(key, name, value)) for value in values.to_pylist()]
    if order == "le":
        written = [None if data is None else data[::-1] for data in written]
    return pa.array(written, pa.binary())


def _checked(key: str, name: str, value: Any) -> Any:
    """Return a value in the range of its type; raise ``EncodeError`` for any other."""
    if name == "timestamp_ms":
        return value // 1000
    if name in RANGES:
        low, high = RANGES[name]
        if not low <= value <= high:
            raise _error(key, f"the number does not fit {name}", "out_of_range")
        return int(value)
    if name in _SPELLINGS and not _SPELLINGS[name].fullmatch(value):
        raise _error(key, f"the text does not spell {name}", "bad_text")
    return value


def _error(key: str, message: str, code: str) -> EncodeError:
    return EncodeError(f"header {key}: {message} ({code})", format=None, code=code, key=key)


def _bytes(name: str, value: Any) -> bytes:
    if name == "uuid":
        return bytes.fromhex(value.replace("-", ""))
    return Value("int64" if name == "timestamp_ms" else name, value).bits


def _text(name: str, value: Any) -> bytes:
    if name in FLOATS and not math.isfinite(value):
        return b"NaN" if math.isnan(value) else b"Infinity" if value > 0 else b"-Infinity"
    text = str(value)
    return (text.lower() if name in ("bool", "uuid") else text).encode()


_HEX = "[0-9a-fA-F]"
_SPELLINGS = {
    "char": re.compile(r"[\0-\uffff]"),
    "uuid": re.compile(rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"),
}
