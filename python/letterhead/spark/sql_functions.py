"""Functions of Spark SQL that read one header, such as ``header_bigint(headers, 'retry')``: :func:`register_functions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from letterhead import _native
from letterhead.errors import HeaderError, replaced
from letterhead.fields import field
from letterhead.operations import ReadOptions, Select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FUNCTIONS", "register_functions"]

FUNCTIONS: dict[str, tuple[str, str]] = {
    "string": ("string", "string"),
    "strings": ("array<string>", "array<string>"),
    "binary": ("binary", "binary"),
    "boolean": ("boolean", "bool"),
    "int": ("int", "int32"),
    "bigint": ("bigint", "int64"),
    "double": ("double", "float64"),
    "timestamp": ("timestamp", "timestamp_ms"),
    "date": ("date", "date:text"),
}
"""What follows ``header_`` and ``try_header_``; the type of the result; and the type that is read without a third argument."""


def register_functions(spark: SparkSession) -> None:
    """Register ``header_string(headers, key[, type])`` and so on, and ``try_header_string``, which returns null on errors."""
    for name, (result, type) in FUNCTIONS.items():
        policies: list[tuple[str, Literal["raise", "null"]]] = [("", "raise"), ("try_", "null")]
        for prefix, errors in policies:
            function = _ReadHeader(f"{prefix}header_{name}", result, type, errors)
            spark.udf.register(function.name, F.arrow_udf(function.read, result))


@dataclass(frozen=True)
class _ReadHeader:
    """Read the header of each row that a key names, by the native module."""

    name: str
    result: str
    type: str
    errors: Literal["raise", "null"]

    def read(self, headers: pa.Array, keys: pa.Array, types: pa.Array = None) -> pa.Array:
        """Return the values of a batch; the key and the type are the same in all its rows."""
        key, type = self._constant("key", keys), self.type if types is None else self._constant("type", types)
        columns = {"value": field(type, key=key)}
        returned = _native.check_type(columns["value"].type)
        if columns["value"].repeat == "all":
            returned = f"array<{returned}>"
        if returned != self.result:
            raise ValueError(f"{self.name} returns {self.result}, and a header of type '{type}' is {returned}")
        try:
            selected: Any = Select("kafka", columns, ReadOptions(errors=self.errors), dialect="spark").run(headers)
        except HeaderError as error:
            # Rows are counted in a batch, so the number does not identify a row of the query.
            raise replaced(error, row=None) from None
        return selected.field("value")

    def _constant(self, parameter: str, values: pa.Array) -> str:
        distinct = pc.unique(values).to_pylist()
        if len(distinct) != 1 or not isinstance(distinct[0], str):
            raise ValueError(f"{self.name}: the {parameter} must be one string, such as 'tenant', in all rows")
        return distinct[0]
