"""What the kernels give, as Arrow declares it and as Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructField

Verb: TypeAlias = Literal["decode", "select", "encode"]

__all__ = ["Declared", "declared", "spelled"]


class Declared(NamedTuple):
    """The columns that a verb makes.

    Attributes
    ----------
    arrow : pyarrow.DataType
        As they leave the kernel: a struct of the columns, or the type of the only one.
    spark : list of pyspark.sql.types.StructField
        As Spark takes them, all nullable; an only column is named after the verb.
    """

    arrow: pa.DataType
    spark: list[StructField]


def declared(verb: Verb, format: str, **options: Any) -> Declared:
    """Ask the native module what a verb makes of a format; this is where misspelt names are found.

    Parameters
    ----------
    verb : {"decode", "select", "encode"}
        What is done.
    format : str
        Name of the format.
    **options
        Those of the verb.

    Returns
    -------
    Declared
        The columns.

    Raises
    ------
    ValueError
        If a name is misspelt.
    """
    import pyarrow as pa
    from pyspark.sql.types import StructField

    from letterhead import _native

    arrow = pa.field(_native.schema(verb, format, **options)).type
    columns = list(arrow) if pa.types.is_struct(arrow) else [pa.field(verb, arrow)]
    return Declared(arrow, [StructField(column.name, _spark_type(column.type)) for column in columns])


def spelled(type: DataType) -> str:
    """Spell a type of Spark as DDL does; whether nulls are allowed in it is left out."""
    spelling: str = type.simpleString()
    return spelling


def _spark_type(of: pa.DataType) -> DataType:
    import pyarrow as pa
    from pyspark.sql import types as T

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
        return T.ArrayType(_spark_type(of.value_type))
    if pa.types.is_struct(of):
        return T.StructType([T.StructField(field.name, _spark_type(field.type)) for field in of])
    raise TypeError(f"Spark has no type for {of}")
