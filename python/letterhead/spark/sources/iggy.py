"""The data source ``letterhead-iggy``: topics of Apache Iggy, read and written in batch and streaming queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from letterhead.iggy.kafka_gateway import MAPPINGS
from letterhead.spark.schemas import check_schema, spark_schema
from letterhead.spark.sources.options import COMMON, Option, flag, json_of, number, one_of, parse_options, text

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.spark.sources._iggy_query import Query

__all__ = ["IggySource"]

_EXAMPLE = 'JSON such as {"0": 23, "1": -2}'


def _offsets(name: str, given: str) -> Any:
    if given.strip().lower() in ("earliest", "latest"):
        return given.strip().lower()
    return json_of(f"earliest, latest or {_EXAMPLE}", dict, int)(name, given)


OPTIONS = {
    "address": Option(text, "The server: `iggy://user:password@host:port`, as in `lh.read.iggy`."),
    "stream": Option(text, "Name of the stream."),
    "topic": Option(text, "Name of the topic."),
    "partitions": Option(
        json_of("a JSON list of numbers", list, int), "Partitions to read, a JSON list; all by default."
    ),
    "startingOffsets": Option(
        _offsets, "`earliest`, `latest`, or JSON: partition to offset (-2 is earliest, -1 latest)."
    ),
    "startingTimestamp": Option(number(0), "Timestamp at which to start instead, in milliseconds since 1970."),
    "endingOffsets": Option(_offsets, "Where a batch query ends, as `startingOffsets`."),
    "endingTimestamp": Option(number(0), "Timestamp at which a batch query ends instead."),
    "failOnDataLoss": Option(flag, "`false` skips messages that were deleted before they were read."),
    "maxOffsetsPerTrigger": Option(number(1), "Maximum number of offsets per trigger; needs Spark 4.2."),
    "maxRecordsPerPartition": Option(number(1), "Maximum number of offsets per task."),
    "minPartitions": Option(number(1), "Minimum number of tasks."),
    "timeoutMs": Option(
        number(1), "How long to retry each request while the server does not answer; 60 000 by default."
    ),
    "mapping": Option(
        one_of(*MAPPINGS), "Read and write Kafka records, as `mapping` of `lh.read.iggy` and `lh.write.iggy`."
    ),
    "partition": Option(text, "Writing: a partition, or the column with the partition of each row."),
    "partitionKey": Option(text, "Writing: the column whose values choose partitions, as the server does."),
    **COMMON,
}


class IggySource(DataSource):  # type: ignore[misc]
    """Read and write topics of Apache Iggy: ``spark.read.format("letterhead-iggy")``.

    Columns are those of :func:`letterhead.read.iggy`. A streaming query keeps its offsets in its checkpoint: after a
    restart it reads the messages after them, so a sink that writes each batch once has each message once. A written
    batch is acknowledged before Spark commits it; a task that Spark repeats appends its rows again, with the ids of
    the column ``id``. :data:`OPTIONS` lists the options; :func:`letterhead.spark.options` writes ``columns`` and
    ``headerColumns``.

    Examples
    --------
    >>> lhs.register(spark)  # doctest: +SKIP
    >>> (
    ...     spark.read.format("letterhead-iggy")
    ...     .option("address", "iggy://iggy:iggy@127.0.0.1:8090")
    ...     .option("stream", "shop")
    ...     .option("topic", "orders")
    ...     .options(**lhs.options(columns=["offset", "payload"], headers={"tenant": "string"}))
    ...     .load()
    ... )  # doctest: +SKIP
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "letterhead-iggy"

    def schema(self) -> StructType:
        """Return the columns that the options select."""
        return spark_schema(self.arrow_schema())

    def arrow_schema(self) -> pa.Schema:
        """Return the same in Arrow's types."""
        return self._query().schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        from letterhead.spark.sources._iggy_query import BatchReader

        return BatchReader(self._query(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        from letterhead.spark.sources._iggy_query import StreamReader

        return StreamReader(self._query(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query, which appends."""
        from letterhead.spark.sources._iggy_sink import BatchWriter

        if overwrite:
            raise ValueError("letterhead-iggy only appends: use mode('append')")
        return BatchWriter(self._values())

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a streaming query."""
        from letterhead.spark.sources._iggy_sink import StreamWriter

        return StreamWriter(self._values())

    def _values(self) -> dict[str, Any]:
        # Spark adds these two to the options of a streaming sink.
        given = {name: value for name, value in self.options.items() if name.lower() not in _OF_SPARK}
        values = parse_options(given, OPTIONS)
        for name in ("address", "stream", "topic"):
            if name not in values:
                raise ValueError(f"letterhead-iggy needs the option {name}")
        return values

    def _query(self, schema: StructType | None = None) -> Query:
        from letterhead.spark.sources._iggy_query import Query

        query = Query(self._values())
        if schema is not None:
            check_schema(self.name(), query.schema, schema)
        return query


_OF_SPARK = ("path", "checkpointlocation")
