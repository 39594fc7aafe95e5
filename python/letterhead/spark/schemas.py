"""What the kernels take and give, as Arrow declares it and as Spark does."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructField

Verb: TypeAlias = Literal["decode", "select", "encode", "convert", "messages"]

__all__ = ["Declared", "Verb", "declared", "header_lists", "spark_type", "spelled"]


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
    """Run a verb on no rows: what a worker will make is known by that, and what it would refuse is refused here.

    Parameters
    ----------
    verb : {"decode", "select", "encode", "convert", "messages"}
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
    TypeError, ValueError
        If a name is misspelt, the format has no such verb, or an option makes no sense for it.
    """
    import pyarrow as pa
    from pyspark.sql.types import StructField

    from letterhead import arrow as lha

    given = declared("decode", format).arrow if verb == "encode" else pa.binary()
    made = getattr(lha, verb)(pa.array([], given), format, **options).type
    columns = list(made) if pa.types.is_struct(made) else [pa.field(verb, made)]
    return Declared(made, [StructField(column.name, spark_type(column.type)) for column in columns])


def header_lists(format: str) -> tuple[str, ...]:
    """Give the types of lists that headers of a format can be in, as :func:`spelled` spells them.

    The first is the format's own. Typed keys may be text, too; and a type beside each value may be there, where the
    format has none to be written, and may be missing, where values are to be given one.

    Parameters
    ----------
    format : str
        Name of the format.

    Returns
    -------
    tuple of str
        The types.
    """
    from pyspark.sql import types as T

    own = _headers_of(format, text_keys=False)
    has_types = "type" in own.names
    type = T.StructField("type", T.StringType())
    lists = []
    for text_keys, types in product((False, True), (has_types, not has_types)):
        *keys, value = (field for field in _headers_of(format, text_keys) if field.name != "type")
        lists.append(spelled(T.ArrayType(T.StructType([*keys, *([type] if types else []), value]))))
    return tuple(dict.fromkeys(lists))


def spelled(type: DataType) -> str:
    """Spell a type of Spark as DDL does; whether nulls are allowed in it is left out."""
    spelling: str = type.simpleString()
    return spelling


def _headers_of(format: str, text_keys: bool) -> Any:
    """Give the struct that a header is."""
    # With errors="column" a block gives a struct of columns, too.
    columns = declared("decode", format, errors="column", text_keys=text_keys).spark
    return next(column.dataType.elementType for column in columns if column.name == "headers")


def spark_type(of: pa.DataType) -> DataType:
    """Give Spark's type for one of Arrow's.

    Raises
    ------
    TypeError
        If Spark has none.
    """
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
        return T.ArrayType(spark_type(of.value_type))
    if pa.types.is_struct(of):
        return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in of])
    raise TypeError(f"Spark has no type for {of}")
