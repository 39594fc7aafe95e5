"""Values that are more than one type says, as columns: AMQP primitives, ``traceparent``, ids of schemas, times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from letterhead.conventions.amqp import checked_type
from letterhead.errors import check_name

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import Column

    from letterhead.conventions.readers.column import Reader
    from letterhead.types import ValueType

__all__ = ["amqp", "rfc3339", "schema_id", "traceparent"]


def amqp(column: str | Column, type: ValueType, *, errors: Literal["raise", "null", "column"] = "raise") -> Column:
    """Read AMQP 1.0 primitives, as Azure Event Hubs and IoT Hub have them in headers.

    An Arrow UDF of the native reader; Spark 4.1 is needed. Values of headers need not be selected first: the type
    ``"int64:amqp"`` of :func:`letterhead.spark.select_headers` reads them where they are.

    Parameters
    ----------
    column : str or Column
        One value a row: binary.
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        What the values are, as in :func:`letterhead.arrow.amqp`; a value of another type is an error.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a value that cannot be read: an error; null; or null in a struct ``value, error``.

    Returns
    -------
    Column
        The values: ``uint8`` as short, ``uint16`` as int, ``uint32`` as long, ``uint64`` as decimal(20,0),
        ``timestamp_ms`` as timestamp, ``uuid`` and ``char`` as string, the others as themselves.

    Raises
    ------
    TypeError, ValueError
        If a name is misspelt, or Spark is too old for it.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from letterhead import spark as lhs
    >>> spark.range(1).select(lhs.amqp(F.unhex(F.lit("a10461636d65")), "string").alias("tenant")).first()
    Row(tenant='acme')
    """
    name = checked_type(type, sql=True)
    check_name("errors value", errors, ("raise", "null", "column"))
    import pyarrow as pa

    from letterhead import arrow as lha
    from letterhead.spark.runner import ArrowFunction

    options: dict[str, Any] = {"type": name, "errors": errors, "_dialect": "spark"}
    made = lha.amqp(pa.array([], pa.binary()), **options).type
    return _udf(ArrowFunction(lha.amqp, options).read, made)(column)


def traceparent(column: str | Column, *, errors: Literal["raise", "null", "column"] = "raise") -> Column:
    """Take W3C's ``traceparent`` apart, as :func:`letterhead.arrow.traceparent` does; Spark 4.1 is needed.

    Parameters
    ----------
    column : str or Column
        One ``traceparent`` a row: string or binary.
    errors : {"raise", "null", "column"}, default "raise"
        As in :func:`amqp`.

    Returns
    -------
    Column
        A struct of ``version``, ``trace_id``, ``parent_id``, ``flags`` and ``sampled``.
    """
    from letterhead.conventions.readers.traceparent import TraceparentReader

    return _column(column, TraceparentReader(), errors)


def schema_id(column: str | Column, *, errors: Literal["raise", "null", "column"] = "raise") -> Column:
    """Take Confluent's ids of schemas apart, as :func:`letterhead.arrow.schema_id` does; Spark 4.1 is needed.

    Parameters
    ----------
    column : str or Column
        Values of ``__key_schema_id`` or ``__value_schema_id``: binary.
    errors : {"raise", "null", "column"}, default "raise"
        As in :func:`amqp`.

    Returns
    -------
    Column
        A struct of ``id``, ``guid`` and ``message_indexes``.
    """
    from letterhead.conventions.readers.schema_id import SchemaIdReader

    return _column(column, SchemaIdReader(), errors)


def rfc3339(column: str | Column, *, errors: Literal["raise", "null", "column"] = "raise") -> Column:
    """Read times that are spelt out, as :func:`letterhead.arrow.rfc3339` does; Spark 4.1 is needed.

    Unlike a cast of Spark's, it takes no date without a time, and no time without an offset.

    Parameters
    ----------
    column : str or Column
        One time a row: string or binary.
    errors : {"raise", "null", "column"}, default "raise"
        As in :func:`amqp`.

    Returns
    -------
    Column
        A timestamp. Digits beyond the microsecond are left out.
    """
    from letterhead.conventions.readers.rfc3339 import Rfc3339Reader

    return _column(column, Rfc3339Reader("us"), errors)


def _column(column: str | Column, reader: Reader, errors: Literal["raise", "null", "column"]) -> Column:
    from letterhead.conventions.readers.column import result_type, run
    from letterhead.spark.runner import ArrowFunction

    check_name("errors value", errors, ("raise", "null", "column"))
    return _udf(ArrowFunction(run, {"reader": reader, "errors": errors}).read, result_type(reader.type, errors))(column)


def _udf(read: Callable[[pa.Array], pa.Array], made: pa.DataType) -> Callable[[str | Column], Column]:
    import pyspark
    from pyspark.sql import functions as F

    from letterhead.spark.schemas import spark_type

    if not hasattr(F, "arrow_udf"):
        raise ValueError(f"this needs Arrow UDFs, which came with Spark 4.1, and this is {pyspark.__version__}")
    return F.arrow_udf(read, spark_type(made))  # type: ignore[no-any-return]
