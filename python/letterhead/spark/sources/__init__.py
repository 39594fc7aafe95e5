"""Data sources of Spark for log segments, state directories and topics of Kafka and Iggy: :func:`register`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from letterhead.spark.sail import is_sail, with_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Register the data sources of letterhead with a session; needs Spark 4.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect. Afterwards ``spark.read.format(...)`` accepts ``"letterhead-segments"``,
        ``"letterhead-state"``, ``"letterhead-kafka"`` and ``"letterhead-iggy"``.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.register(spark)
    >>> spark.read.format("letterhead-segments").load("/var/kafka/orders-0")  # doctest: +SKIP
    """
    from letterhead.spark.sources.iggy import IggySource
    from letterhead.spark.sources.kafka import KafkaSource
    from letterhead.spark.sources.segments import SegmentsSource
    from letterhead.spark.sources.state import StateSource

    on_sail = is_sail(spark)
    for source in (SegmentsSource, StateSource, KafkaSource, IggySource):
        spark.dataSource.register(with_arrow_schema(source) if on_sail else source)
