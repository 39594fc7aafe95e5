"""Types of the columns that operations read and return, in Arrow and in Spark: :func:`output_schema`."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from itertools import product
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from letterhead.operations import ColumnOperation, Decode, DecodeOptions

__all__ = [
    "Declared",
    "arrow_schema",
    "check_case",
    "check_schema",
    "output_schema",
    "header_lists",
    "message_fields",
    "same_but_for_case",
    "spark_schema",
    "spark_type",
    "ddl",
]


class Declared(NamedTuple):
    """Columns that an operation returns: in Arrow a struct or the type of a single column, in Spark always columns."""

    arrow: pa.DataType
    spark: list[StructField]


def output_schema(operation: ColumnOperation) -> Declared:
    """Return the columns that workers will return; raises any error that does not depend on rows."""
    result = operation.result_type()
    columns = list(result) if pa.types.is_struct(result) else [pa.field(type(operation).__name__.lower(), result)]
    return Declared(result, [StructField(column.name, spark_type(column.type)) for column in columns])


def header_lists(format: str) -> tuple[str, ...]:
    """Return the accepted types for a column of a format's headers, as :func:`ddl` writes them.

    The first type is the format's own. Typed keys may also be text; ``type`` may be present where the format stores no
    types, and absent where the operation adds types.
    """
    has_types = "type" in _header_type(format, text_keys=False).names
    type = T.StructField("type", T.StringType())
    lists = []
    for text_keys, types in product((False, True), (has_types, not has_types)):
        *keys, value = (field for field in _header_type(format, text_keys) if field.name != "type")
        lists.append(ddl(T.ArrayType(T.StructType([*keys, *([type] if types else []), value]))))
    return tuple(dict.fromkeys(lists))


def ddl(type: DataType) -> str:
    """Write a Spark type as DDL, without its nullability."""
    spelling: str = type.simpleString()
    return spelling


def message_fields(format: str, *, text_keys: bool = False) -> dict[str, pa.DataType]:
    """Return the fields of a message format with their types; a headers format has the single field ``headers``."""
    # errors="column" returns a struct for a headers format too, and the error as its last field.
    *fields, _ = Decode(format, DecodeOptions(errors="column", text_keys=text_keys)).result_type()
    return {field.name: field.type for field in fields}


def _header_type(format: str, text_keys: bool) -> Any:
    return spark_type(message_fields(format, text_keys=text_keys)["headers"]).elementType


def spark_type(type: pa.DataType) -> DataType:
    """Return the Spark type for an Arrow type; raise ``TypeError`` if there is none."""
    plain = {
        pa.bool_(): T.BooleanType, pa.int8(): T.ByteType, pa.int16(): T.ShortType, pa.int32(): T.IntegerType,
        pa.int64(): T.LongType, pa.float32(): T.FloatType, pa.float64(): T.DoubleType, pa.utf8(): T.StringType,
        pa.binary(): T.BinaryType, pa.date32(): T.DateType,
    }  # fmt: skip
    if type in plain:
        return plain[type]()
    if pa.types.is_timestamp(type):
        return T.TimestampNTZType() if type.tz is None else T.TimestampType()
    if pa.types.is_map(type):
        return T.MapType(spark_type(type.key_type), spark_type(type.item_type))
    if pa.types.is_decimal(type):
        return T.DecimalType(type.precision, type.scale)
    if pa.types.is_list(type):
        return T.ArrayType(spark_type(type.value_type))
    if pa.types.is_struct(type):
        return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in type])
    raise TypeError(f"Spark has no type for {type}")


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema for an Arrow schema; raise ``ValueError`` if two names differ only by case."""
    check_case(schema.names)
    return spark_type(pa.struct(list(schema)))


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of the batches that Spark passes to a function; times are always UTC."""
    # Spark 4 requires a zone for times; Spark 3.5 has no such parameter.
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


def check_case(names: Iterable[str]) -> None:
    """Raise ``ValueError`` if two names differ only by case."""
    taken: dict[str, str] = {}
    for name in names:
        earlier = taken.setdefault(name.lower(), name)
        if earlier != name:
            raise same_but_for_case(earlier, name)


def same_but_for_case(name: str, later: str) -> ValueError:
    """Return the error for two columns that Spark cannot distinguish."""
    return ValueError(
        f"two columns {name!r} and {later!r} would be made, and Spark ignores the case of names: rename one of them; "
        f"lh.field(..., key={later!r}) reads a header into a column of another name"
    )


def check_schema(source: str, schema: pa.Schema, requested: StructType | pa.Schema) -> None:
    """Raise ``ValueError`` if the requested schema differs from the schema of the data source, because columns are not cast."""
    own = spark_schema(schema)
    if isinstance(requested, pa.Schema):  # on Sail
        requested = spark_schema(requested)
    if requested.simpleString() != own.simpleString():
        raise ValueError(
            f"{source} has a schema of its own, {own.simpleString()}: leave out .schema(...), and set the option columns"
        )
