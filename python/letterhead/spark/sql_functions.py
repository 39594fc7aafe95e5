"""Functions of Spark SQL that read a header, ``header_bigint(headers, 'retry')``, or make headers: :func:`register_functions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from letterhead import _native
from letterhead._arrow_types import has_headers, is_text, to_pyarrow
from letterhead._formatting import count_noun
from letterhead.errors import HeaderError, copy_error
from letterhead.fields import field
from letterhead.operations import DecodeOptions, Pack, Select
from letterhead.spark.frame import HEADERS
from letterhead.spark.writing import GIVE_ZONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FUNCTIONS", "pack_headers", "register_functions"]

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
"""Suffixes of ``header_`` and ``try_header_``, with the result type, and the type read without a third argument."""


def register_functions(spark: SparkSession) -> None:
    """Register ``header_string(headers, key[, type])`` and so on, ``try_header_string``, and ``header_pack``."""
    for name, (result, type) in FUNCTIONS.items():
        policies: list[tuple[str, Literal["raise", "null"]]] = [("", "raise"), ("try_", "null")]
        for prefix, errors in policies:
            function = _ReadHeader(f"{prefix}header_{name}", result, type, errors)
            spark.udf.register(function.name, F.arrow_udf(function.read, result))
    spark.udf.register("header_pack", F.arrow_udf(pack_headers, HEADERS))


@dataclass(frozen=True)
class _ReadHeader:
    """Reads the header with a key in each row, by the core."""

    name: str
    result: str
    type: str
    errors: Literal["raise", "null"]

    def read(self, *arguments: pa.Array) -> pa.Array:
        """Return the values of a batch, in which key and type are constant."""
        usage = f"{self.name}(headers, 'key') or {self.name}(headers, 'key', 'type')"
        if len(arguments) not in (2, 3):
            raise TypeError(f"{self.name} has {count_noun(len(arguments), 'argument')}: write {usage}")
        headers, keys, *types = arguments
        if not has_headers(headers.type, drops_fields=True):
            raise TypeError(f"{self.name} reads headers, not {headers.type}: write {usage}")
        key, type = self._constant("key", keys), self._constant("type", types[0]) if types else self.type
        columns = {"value": field(type, key=key)}
        returned = _native.check_type(columns["value"].type)[1]
        if columns["value"].repeat == "all":
            returned = f"array<{returned}>"
        if returned != self.result:
            raise ValueError(
                f"{self.name} returns {self.result}, and a header of type '{type}' is {returned}: {self._remedy(returned)}"
            )
        try:
            options = DecodeOptions(errors=self.errors)
            selected = to_pyarrow(Select("kafka", columns, options, dialect="spark").apply(headers))
        except HeaderError as error:
            # The error omits the row number, which counts within a batch, and the column, which has no name in the query.
            message = f"header {key}: {error.message}: try_{self.name} returns null"
            raise copy_error(error, message, row=None, column=None) from None
        return selected.field("value")

    def _remedy(self, returned: str) -> str:
        names = [name for name, (result, _) in FUNCTIONS.items() if result == returned]
        prefix = self.name.partition("header_")[0]
        return f"write {prefix}header_{names[0]}" if names else "lhs.header reads every type"

    def _constant(self, parameter: str, values: pa.Array) -> str:
        distinct = pc.unique(values).to_pylist() if is_text(values.type) else []
        if len(distinct) != 1 or distinct[0] is None:
            given = f"{values.type}" if not is_text(values.type) else "several, or null"
            raise TypeError(
                f"{self.name}: the {parameter} must be one string, such as 'tenant', in all rows, and is {given}"
            )
        return str(distinct[0])


def pack_headers(*arguments: pa.Array) -> pa.Array:
    """Return lists of headers: from the non-null fields of a struct, or from all entries of a map."""
    usage = "header_pack(struct(tenant, retry)) or header_pack(map('tenant', tenant))"
    if len(arguments) != 1:
        raise TypeError(f"header_pack has {count_noun(len(arguments), 'argument')}: write {usage}")
    [values] = arguments
    try:
        if pa.types.is_struct(values.type):
            return _pack_structs(values)
        if pa.types.is_map(values.type) and is_text(values.type.key_type):
            return _pack_maps(values)
    except HeaderError as error:
        # The error omits the row number, which counts within a batch.
        raise copy_error(error, f"header_pack: {error.message}", row=None) from None
    raise TypeError(
        f"header_pack takes a struct, or a map whose keys are strings, and not {values.type}: write {usage}"
    )


def _pack_structs(structs: pa.StructArray) -> pa.Array:
    for child in structs.type:
        _check_zone(child.name, child.type)
    lists = Pack("kafka")(structs)
    return pc.if_else(structs.is_valid(), lists, pa.scalar(None, lists.type))


def _pack_maps(maps: pa.MapArray) -> pa.Array:
    """Write the values of maps as one column; a null value becomes a header with a null value."""
    _check_zone("value", maps.type.item_type)
    column = pa.RecordBatch.from_arrays([maps.items], ["value"])
    written = Pack("kafka", nulls="keep")(column).flatten().field("value")
    headers = pa.StructArray.from_arrays([maps.keys, written], ["key", "value"])
    return pa.ListArray.from_arrays(maps.offsets, headers, mask=maps.is_null())


def _check_zone(name: str, type: pa.DataType) -> None:
    type = type.value_type if pa.types.is_list(type) else type
    if pa.types.is_timestamp(type) and type.tz is None:
        raise TypeError(f"header_pack: {name} is timestamp_ntz, and headers have points in time: {GIVE_ZONE}")
