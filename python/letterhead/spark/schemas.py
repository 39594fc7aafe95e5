"""Types of the columns that operations take and return, in Arrow and in Spark; :func:`declared` is the entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.types import DataType, StructField, StructType

from letterhead import arrow as lha
from letterhead.conventions.schemas import decode_struct

Operation: TypeAlias = Literal["decode", "select", "encode", "convert", "messages", "where", "decode_by_schema"]

__all__ = [
    "Declared",
    "Operation",
    "check_case",
    "check_schema",
    "declared",
    "header_lists",
    "operation_of",
    "same_but_for_case",
    "spark_schema",
    "spark_type",
    "spelled",
]


class Declared(NamedTuple):
    """The columns that an operation returns, in Arrow a struct or a single type, which in Spark has the operation's name."""

    arrow: pa.DataType
    spark: list[StructField]


def declared(operation: Operation, format: str, **options: Any) -> Declared:
    """Run an operation on no rows: return the columns that workers will make, or raise what they would raise."""
    given = declared("decode", format).arrow if operation == "encode" else pa.binary()
    made = operation_of(operation)(pa.array([], given), format, **options).type
    columns = list(made) if pa.types.is_struct(made) else [pa.field(operation, made)]
    return Declared(made, [StructField(column.name, spark_type(column.type)) for column in columns])


def operation_of(name: str) -> Callable[..., Any]:
    """Return the function of :mod:`letterhead.arrow` with a name, or the one that does the same for the columns of a frame."""
    if name == "decode_by_schema":
        return decode_struct
    function: Callable[..., Any] = getattr(lha, "_matches" if name == "where" else name)
    return function


def header_lists(format: str) -> tuple[str, ...]:
    """Return the accepted types of a column of headers of a format, as :func:`spelled` writes them.

    The first is the format's own. Typed keys may also be text; ``type`` may be present where the format stores no types,
    and absent where values are to be given one.
    """
    has_types = "type" in _header_type(format, text_keys=False).names
    type = T.StructField("type", T.StringType())
    lists = []
    for text_keys, types in product((False, True), (has_types, not has_types)):
        *keys, value = (field for field in _header_type(format, text_keys) if field.name != "type")
        lists.append(spelled(T.ArrayType(T.StructType([*keys, *([type] if types else []), value]))))
    return tuple(dict.fromkeys(lists))


def spelled(type: DataType) -> str:
    """Write a type of Spark as DDL does, without its nullability."""
    spelling: str = type.simpleString()
    return spelling


def _header_type(format: str, text_keys: bool) -> Any:
    # errors="column" returns a struct of columns for a headers format too.
    columns = declared("decode", format, errors="column", text_keys=text_keys).spark
    return next(column.dataType.elementType for column in columns if column.name == "headers")


def spark_type(of: pa.DataType) -> DataType:
    """Return Spark's type for a type of Arrow; raise ``TypeError`` if there is none."""
    plain = {
        pa.bool_(): T.BooleanType, pa.int8(): T.ByteType, pa.int16(): T.ShortType, pa.int32(): T.IntegerType,
        pa.int64(): T.LongType, pa.float32(): T.FloatType, pa.float64(): T.DoubleType, pa.utf8(): T.StringType,
        pa.binary(): T.BinaryType, pa.timestamp("us", "UTC"): T.TimestampType,
    }  # fmt: skip
    if of in plain:
        return plain[of]()
    if pa.types.is_decimal(of):
        return T.DecimalType(of.precision, of.scale)
    if pa.types.is_list(of):
        return T.ArrayType(spark_type(of.value_type))
    if pa.types.is_struct(of):
        return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in of])
    raise TypeError(f"Spark has no type for {of}")


def spark_schema(of: pa.Schema) -> StructType:
    """Return Spark's schema for one of Arrow's; raise ``ValueError`` if two names differ only by case."""
    check_case(of.names)
    return spark_type(pa.struct(list(of)))


def check_case(names: Iterable[str]) -> None:
    """Raise ``ValueError`` if two names differ only by case."""
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(name.lower(), name)
        if other != name:
            raise same_but_for_case(other, name)


def same_but_for_case(one: str, other: str) -> ValueError:
    """Return the error for two columns that Spark cannot tell apart."""
    return ValueError(
        f"two columns {one!r} and {other!r} would be made, and Spark ignores the case of names: rename one of them; "
        f"lh.field(..., key={other!r}) reads a header into a column of another name"
    )


def check_schema(source: str, own: pa.Schema, given: StructType | pa.Schema) -> None:
    """Raise ``ValueError`` if a user-specified schema differs from that of a data source, which does not cast."""
    own = spark_schema(own)
    if isinstance(given, pa.Schema):  # on Sail
        given = spark_schema(given)
    if given.simpleString() != own.simpleString():
        raise ValueError(
            f"{source} has a schema of its own, {own.simpleString()}: leave out .schema(...), and set the option columns"
        )
