"""Parse structured values into columns: AMQP primitives, traces, schema ids, times.

Each function is an Arrow UDF around the function of the same name in :mod:`letterhead.arrow`; ``traceparent`` is an
expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column

from letterhead import arrow as lha
from letterhead._arrow_types import OnError
from letterhead._names import check_name
from letterhead.conventions.columns import ParseAmqp
from letterhead.conventions.trace_links import PARENT_FORM
from letterhead.limits import Limits
from letterhead.operations.remedies import KEEP_ROWS
from letterhead.spark.checks import Check, check, error_expression, raise_expression, value_unless_failed
from letterhead.spark.frame import check_column, check_names
from letterhead.spark.runner import ArrowFunction
from letterhead.spark.sail import active_is_sail
from letterhead.spark.schemas import spark_type
from letterhead.spark.sql_text import F, Sql, attribute
from letterhead.types import ValueType

__all__ = ["amqp", "rfc3339", "schema_id", "trace_links", "traceparent"]


def amqp(column: str | Column, type: ValueType, *, identify: Sequence[str] = (), errors: OnError = "raise") -> Column:
    """Parse AMQP 1.0 primitives, as Azure Event Hubs and IoT Hub write them into headers; needs Spark 4.1.

    :func:`letterhead.spark.select_headers` parses headers without this function: request the type ``"int64:amqp"``.

    Parameters
    ----------
    column : str or Column
        One value per row: binary.
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        Type of the values, one of those that :func:`letterhead.arrow.amqp` lists; a value of another type is an error.
    identify : sequence of str, optional
        Columns of the DataFrame that identify a row and contain nothing confidential, such as ``["partition",
        "offset"]``. A raised error quotes their values.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with invalid values: raise an error with row, byte and reason; return null; or return a struct
        ``value, error``, in which an invalid value is null.

    Returns
    -------
    Column
        The values: ``uint8`` as short, ``uint16`` as int, ``uint32`` as long, ``uint64`` as decimal(20,0),
        ``timestamp_ms`` as timestamp, ``uuid`` and ``char`` as string, all others as their own type.

    Raises
    ------
    TypeError, ValueError
        If a name is misspelt, or Spark is older than 4.1.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from letterhead import spark as lhs
    >>> spark.range(1).select(lhs.amqp(F.unhex(F.lit("a10461636d65")), "string").alias("tenant")).first()
    Row(tenant='acme')
    """
    return _parse("amqp", ParseAmqp(type, errors, dialect="spark"), column, identify)


def traceparent(column: str | Column, *, identify: Sequence[str] = (), errors: OnError = "raise") -> Column:
    """Parse W3C's ``traceparent``, as :func:`letterhead.arrow.traceparent` does.

    It is an expression of Spark SQL, which runs no Python and needs nothing installed on executors. With ``identify``, and
    on Sail, it is an Arrow UDF, which needs Spark 4.1.

    Parameters
    ----------
    column : str or Column
        The values: string or binary; null stays null.
    identify, errors
        As in :func:`letterhead.spark.amqp`.

    Returns
    -------
    Column
        A struct of ``version``, ``trace_id``, ``parent_id``, ``flags`` and ``sampled``.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from letterhead import spark as lhs
    >>> trace = lhs.traceparent(F.lit("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")).alias("trace")
    >>> spark.range(1).select(trace).select("trace.parent_id", "trace.sampled").first()
    Row(parent_id='b7ad6b7169203331', sampled=True)
    """
    if identify or active_is_sail():
        return _parse("traceparent", partial(lha.traceparent, errors=errors), column, identify)
    check_column("column", column)
    check_name("errors value", errors, ("raise", "null", "column"))
    read = _traceparent(attribute(column), errors).column
    return read.alias(f"traceparent({column})" if isinstance(column, str) else "traceparent")


def trace_links(
    column: str | Column,
    format: str = "kafka",
    *,
    baggage: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: Literal["raise", "null"] = "raise",
    limits: Limits | None = None,
) -> Column:
    """Return the span link of each message, as :func:`letterhead.arrow.trace_links` does; needs Spark 4.1.

    It works on batch and streaming DataFrames. A how-to page shows how to add the links to the span of a batch.

    Parameters
    ----------
    column : str or Column
        Headers as Spark's Kafka source returns them with ``includeHeaders``, or in bytes of ``format``.
    format : str, default "kafka"
        Name of a format with text keys.
    baggage : sequence of str, optional
        Keys of the baggage to return as attributes; by default all. Baggage may be confidential, and attributes are
        exported.
    identify : sequence of str, optional
        Columns of the DataFrame that identify a row and contain nothing confidential, such as ``["partition",
        "offset"]``. A raised error quotes their values.
    errors : {"raise", "null"}, default "raise"
        What to do with a message whose headers are damaged: raise an error, or return null. An invalid ``traceparent``
        is always null.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

    Returns
    -------
    Column
        A struct of ``trace_id``, ``span_id``, ``trace_flags``, ``trace_state`` and ``attributes``.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> links = orders.select(lhs.trace_links("headers").alias("link")).where("link is not null")
    >>> links.count(), orders.count()
    (9700, 10000)
    """
    links = partial(lha.trace_links, format=format, baggage=baggage, errors=errors, limits=limits)
    return _parse("trace_links", links, column, identify)


def schema_id(column: str | Column, *, identify: Sequence[str] = (), errors: OnError = "raise") -> Column:
    """Parse Confluent's schema ids, as :func:`letterhead.arrow.schema_id` does; needs Spark 4.1.

    Parameters
    ----------
    column : str or Column
        Values of ``__key_schema_id`` or ``__value_schema_id``: binary.
    identify, errors
        As in :func:`letterhead.spark.amqp`.

    Returns
    -------
    Column
        A struct of ``id``, ``guid`` and ``message_indexes``.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from letterhead import spark as lhs
    >>> spark.range(1).select(lhs.schema_id(F.unhex(F.lit("0000000007"))).alias("schema")).select("schema.id").first()
    Row(id=7)
    """
    return _parse("schema_id", partial(lha.schema_id, errors=errors), column, identify)


def rfc3339(column: str | Column, *, identify: Sequence[str] = (), errors: OnError = "raise") -> Column:
    """Parse times such as ``ce_time`` of CloudEvents, as :func:`letterhead.arrow.rfc3339` does; needs Spark 4.1.

    Unlike Spark's cast, it rejects a date without a time, and a time without an offset.

    Parameters
    ----------
    column : str or Column
        The values: string or binary; null stays null.
    identify, errors
        As in :func:`letterhead.spark.amqp`.

    Returns
    -------
    Column
        A timestamp. Digits beyond the microsecond are dropped.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from letterhead import spark as lhs
    >>> time = lhs.rfc3339(F.lit("2026-01-01T01:00:00+01:00"))
    >>> spark.range(1).select(time.cast("long").alias("seconds")).first()
    Row(seconds=1767225600)
    """
    return _parse("rfc3339", partial(lha.rfc3339, unit="us", errors=errors), column, identify)


def _parse(name: str, parse: Callable[[pa.Array], pa.Array], column: str | Column, identify: Sequence[str]) -> Column:
    """Return the result of a function on a column."""
    check_column("column", column)
    # A call without rows returns the type, and rejects misspelt names before a job runs.
    type = parse(pa.array([], pa.binary())).type
    return ArrowFunction(name, parse).column(column, spark_type(type), identify=check_names("identify", identify) or ())


def _traceparent(column: Sql, errors: OnError) -> Sql:
    """Parse ``traceparent`` into a struct; ``errors`` is the policy for invalid values."""
    text = column.cast("binary").cast("string")
    parts = {"version": (1, 2), "trace_id": (4, 32), "parent_id": (37, 16), "flags": (54, 2)}
    version, trace, parent, flags = (F.substring(text, start, length) for start, length in parts.values())
    checks = {
        0: [
            check(~text.rlike(_PARENT), "bad_text", "the text is not of the form version-traceid-parentid-flags"),
            check(version == "ff", "bad_text", "version ff is invalid"),
        ],
        55: [check((version == "00") & (F.length(text) > 55), "bad_text", "version 00 ends after the flags")],
        3: [check(trace == "0" * 32, "bad_text", "the trace id has only zeros")],
        36: [check(parent == "0" * 16, "bad_text", "the parent id has only zeros")],
    }
    byte_of = {check: byte for byte, checks_at in checks.items() for check in checks_at}
    sampled = F.substring(flags, 2, 1).isin(*"13579bdf")
    value = F.struct(version=version, trace_id=trace, parent_id=parent, flags=flags, sampled=sampled)
    value = F.when(text.is_not_null(), value).otherwise(None)
    column_type = F.typeof(column)
    wrong_type = F.raise_error(
        F.concat(F.lit("column is "), column_type, F.lit(", and traceparent is read from binary or string"))
    )

    def fail(check: Check) -> Sql:
        if errors == "raise":
            return raise_expression(
                "traceparent: ", check._replace(code=f"{check.code}, byte {byte_of[check]}"), f": {KEEP_ROWS}"
            )
        return F.lit(None)

    result = value_unless_failed([*byte_of], value, fail)
    if errors == "column":
        reports = value_unless_failed(
            [*byte_of],
            F.lit(None),
            lambda check: F.array(error_expression(check.code, check.message, byte=byte_of[check])),
        )
        result = F.struct(value=result, error=reports)
    return F.when(column_type.rlike("^(string|binary)"), result).otherwise(wrong_type)


_PARENT = re.sub(r"\?P<\w+>", "", rf"(?s)\A{PARENT_FORM}\z")
