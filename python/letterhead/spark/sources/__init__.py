"""Data sources of Spark for log segments, state directories and topics of Kafka and Iggy: :func:`register`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import functions

from letterhead.spark.sail import is_sail, with_arrow_schema
from letterhead.spark.sql_functions import register_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Register the data sources and SQL functions of letterhead with a session; needs Spark 4, and 4.1 for functions.

    ``header_string(headers, 'tenant')`` reads a header of Spark's Kafka source in SQL. There are ``header_string``,
    ``strings`` (an array of all values), ``binary``, ``boolean``, ``int``, ``bigint``, ``double``, ``timestamp`` and ``date``;
    a third argument is the type of the bytes, as in ``header_int(headers, 'retry', 'int32:text')``. ``try_header_string``
    and so on return null for a value of another type. ``header_pack(struct(tenant, retry))`` makes headers of the fields that
    are not null, each in its own type, and ``header_pack(map('tenant', tenant))`` of all entries. The native module reads and
    writes the values, whole batches at a time. Sail has no such functions.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect. Afterwards ``spark.read.format("letterhead").load(source)`` reads a topic, log segments or state
        stores, and ``"letterhead-kafka"``, ``"letterhead-iggy"``, ``"letterhead-segments"`` and ``"letterhead-state"`` are
        formats for one type of source each.

    Raises
    ------
    ValueError
        If Spark is too old.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.register(spark)
    >>> spark.read.format("letterhead").load("/var/kafka/orders-0")  # doctest: +SKIP
    >>> spark.read.format("letterhead").load("kafka://broker:9092/orders")  # doctest: +SKIP
    """
    if find_spec("pyspark.sql.datasource") is None:
        raise ValueError(
            f"this needs data sources in Python, which came with Spark 4.0, and this is {pyspark.__version__}: "
            "read with letterhead.read, which returns Arrow tables"
        )
    from letterhead.spark.sources.iggy import IggySource
    from letterhead.spark.sources.kafka import KafkaSource
    from letterhead.spark.sources.named import NamedSource
    from letterhead.spark.sources.segments import SegmentsSource
    from letterhead.spark.sources.state import StateSource

    on_sail = is_sail(spark)
    for source in (NamedSource, SegmentsSource, StateSource, KafkaSource, IggySource):
        spark.dataSource.register(with_arrow_schema(source) if on_sail else source)
    if hasattr(functions, "arrow_udf") and not on_sail:
        register_functions(spark)
