"""The data source ``letterhead-kafka``: topics, with the options and columns of Spark's own source ``kafka``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from letterhead.kafka.settings import java_settings
from letterhead.spark.schemas import check_schema, spark_schema
from letterhead.spark.sources.base import ReadOnly
from letterhead.spark.sources.options import COMMON, Option, flag, json_of, number, one_of, parse_options, text
from letterhead.spark.sources.pushdown import reader_class

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.spark.sources._kafka_query import Query

__all__ = ["KafkaSource"]

_EXAMPLE = 'JSON such as {"topic": {"0": 23, "1": -2}}'
_by_partition = json_of(_EXAMPLE, dict, dict)


def _offsets(name: str, given: str) -> Any:
    if given.strip().lower() in ("earliest", "latest"):
        return given.strip().lower()
    return json_of(f"earliest, latest or {_EXAMPLE}", dict, dict)(name, given)


def _timestamp(name: str, given: str) -> int:
    if not given.strip().isdecimal():
        raise ValueError(f"option {name} must be milliseconds since 1970, not {given!r}")
    return int(given)


def _rejected(name: str, given: str) -> None:
    raise ValueError(
        f"option {name} cannot be set: a trigger does not wait for records here; use a longer processing time"
    )


OPTIONS = {
    "assign": Option(
        json_of('JSON such as {"topic": [0, 1]}', dict, list),
        "Partitions to read, JSON: topic to a list of partitions.",
    ),
    "subscribe": Option(text, "Topics to read, separated by commas."),
    "subscribePattern": Option(text, "Topics to read, a regular expression."),
    "startingTimestamp": Option(_timestamp, "Timestamp at which to start, in milliseconds since 1970."),
    "startingOffsetsByTimestamp": Option(_by_partition, "The same by topic and partition, JSON."),
    "startingOffsets": Option(
        _offsets, "`earliest`, `latest`, or JSON: topic to partition to offset (-2 is earliest, -1 latest)."
    ),
    "endingTimestamp": Option(_timestamp, "Timestamp at which a batch query ends, in milliseconds since 1970."),
    "endingOffsetsByTimestamp": Option(_by_partition, "The same by topic and partition, JSON."),
    "endingOffsets": Option(_offsets, "Where a batch query ends, as `startingOffsets`."),
    "failOnDataLoss": Option(flag, "`false` skips records that were deleted before they were read."),
    "includeHeaders": Option(flag, "Whether `headers` is among the columns by default."),
    "maxOffsetsPerTrigger": Option(number(1), "Maximum number of offsets per trigger; needs Spark 4.2."),
    "maxRecordsPerPartition": Option(number(1), "Maximum number of offsets per task."),
    "minPartitions": Option(number(1), "Minimum number of tasks."),
    "startingOffsetsByTimestampStrategy": Option(
        one_of("error", "latest"), "What to do if a partition has no record at the timestamp or later."
    ),
    **COMMON,
}
"""Options, except those that begin with ``kafka.``."""

_IGNORED = ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs")

_OF_SPARK = {
    **dict.fromkeys(_IGNORED, Option(text, "Without effect: tunes a Java consumer.")),
    **dict.fromkeys(("minOffsetsPerTrigger", "maxTriggerDelay"), Option(_rejected, "Not supported.")),
}
"""Options of Spark's own source that are accepted without effect, or rejected."""


class KafkaSource(ReadOnly, DataSource):  # type: ignore[misc]
    """Read topics in batch and streaming queries: ``spark.read.format("letterhead-kafka")``.

    Options, columns and types are those of Spark's source ``kafka``, so that only the name of the format changes in a
    query. :data:`OPTIONS` lists the options; :func:`letterhead.spark.options` writes ``columns`` and ``headerColumns``.

    Examples
    --------
    >>> lhs.register(spark)  # doctest: +SKIP
    >>> (
    ...     spark.read.format("letterhead-kafka")
    ...     .option("kafka.bootstrap.servers", "127.0.0.1:9092")
    ...     .option("subscribe", "orders")
    ...     .options(**lhs.options(columns=["offset"], headers={"tenant": "string"}))
    ...     .load()
    ... )  # doctest: +SKIP
    """

    instead = "write to Kafka by Spark's own format kafka"

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "letterhead-kafka"

    def schema(self) -> StructType:
        """Return the columns that the options select."""
        return spark_schema(self.arrow_schema())

    def arrow_schema(self) -> pa.Schema:
        """Return the same in Arrow's types."""
        return self._query().schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        from letterhead.spark.sources._kafka_query import BatchReader

        return reader_class(BatchReader)(self._query(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        from letterhead.spark.sources._kafka_query import StreamReader

        return StreamReader(self._query(schema))

    def _query(self, schema: StructType | None = None) -> Query:
        # It needs kafka-python, which a session that never reads a topic does not.
        from letterhead.spark.sources._kafka_query import Query

        of_kafka = {name: value for name, value in self.options.items() if name.lower().startswith("kafka.")}
        others = {name: value for name, value in self.options.items() if name not in of_kafka}
        settings = java_settings({name.lower().removeprefix("kafka."): value for name, value in of_kafka.items()})
        query = Query(settings, parse_options(others, OPTIONS | _OF_SPARK))
        if schema is not None:
            check_schema(self.name(), query.schema, schema)
        return query
