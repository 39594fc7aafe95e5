"""The data source ``letterhead-iggy``: topics of Apache Iggy, read and written in batch and streaming queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from letterhead.iggy.address import Address
from letterhead.iggy.client import TIMEOUT_MS, IggyClient, IggyTopic
from letterhead.iggy.kafka_gateway import MAPPINGS
from letterhead.iggy.kafka_rows import MappedRowReader
from letterhead.iggy.partitions import IggyPartitions
from letterhead.iggy.rows import IggyRowReader
from letterhead.offsets.partition_log import TopicPartition
from letterhead.offsets.ranges import choose_partitions
from letterhead.offsets.specs import OffsetPoint
from letterhead.spark.schemas import check_schema
from letterhead.spark.sources.base import ArrowSource
from letterhead.spark.sources.offset_queries import (
    OffsetBatchReader,
    OffsetQuery,
    OffsetStreamReader,
    Side,
    offset_point,
    offsets_option,
    partition_number,
)
from letterhead.spark.sources.options import (
    COMMON,
    Option,
    flag,
    number,
    number_list,
    one_of,
    parse_options,
    text,
    timestamp,
)

try:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
except ImportError:  # before Spark 4.1
    DataSourceArrowWriter = DataSourceStreamArrowWriter = object

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["IggySource"]

_EXAMPLE = 'JSON such as {"0": 23, "1": -2}'

OPTIONS = {
    "address": Option(text, "The server: `iggy://user:password@host:port`, as in `lh.read.iggy`."),
    "stream": Option(text, "Name of the stream."),
    "topic": Option(text, "Name of the topic."),
    "partitions": Option(number_list, "Partitions to read, as in `0,2`, or a JSON list; all by default."),
    "startingOffsets": Option(
        offsets_option(_EXAMPLE, int), "`earliest`, `latest`, or JSON: partition to offset (-2 is earliest, -1 latest)."
    ),
    "startingTimestamp": Option(timestamp, "Timestamp at which to start instead, in milliseconds since 1970."),
    "endingOffsets": Option(offsets_option(_EXAMPLE, int), "End of a batch query, in the form of `startingOffsets`."),
    "endingTimestamp": Option(timestamp, "Timestamp at which a batch query ends instead."),
    "failOnDataLoss": Option(flag, "`false` skips messages that were deleted before they were read."),
    "maxOffsetsPerTrigger": Option(
        number(1),
        "Maximum number of offsets per trigger, but at least one of each partition with unread records; needs Spark 4.2.",
    ),
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


class IggySource(ArrowSource):
    """Read and write topics of Apache Iggy: ``spark.read.format("letterhead-iggy")``.

    Columns are those of :func:`letterhead.read.iggy`. A streaming query keeps its offsets in its checkpoint: after a
    restart it reads the messages after these offsets, so a sink that writes each batch once contains each message once.
    A written batch is acknowledged before Spark commits it; a task that Spark repeats appends its rows again, with the
    ids of the column ``id``. :data:`OPTIONS` lists the options; :func:`letterhead.spark.options` writes ``columns`` and
    ``headers``.

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

    format_name = "letterhead-iggy"

    def arrow_schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""
        return self._query().schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        return OffsetBatchReader(self._query(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        return OffsetStreamReader(self._query(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query, which appends."""
        if overwrite:
            raise ValueError("letterhead-iggy only appends: use mode('append')")
        _check_writers()
        return IggyBatchWriter(self._values())

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a streaming query."""
        _check_writers()
        return IggyStreamWriter(self._values())

    def _values(self) -> dict[str, Any]:
        options = {name: value for name, value in self.options.items() if name.lower() not in _SPARK_OPTIONS}
        values = parse_options(options, OPTIONS)
        for name in ("address", "stream", "topic"):
            if name not in values:
                raise ValueError(f"letterhead-iggy needs the option {name}")
        return values

    def _query(self, schema: StructType | None = None) -> IggyQuery:
        query = IggyQuery(self._values())
        if schema is not None:
            check_schema(self.name(), query.schema, schema)
        return query


_SPARK_OPTIONS = ("path", "checkpointlocation")
"""Options that Spark adds for a streaming sink, in lower case."""

# Queries --------------------------------------------------------------------------------------------------------------


class IggyQuery(OffsetQuery[IggyPartitions]):
    """Query of a topic."""

    remedies = (
        "check that address names the server of the checkpoint; to read a purged topic, start with a new "
        "checkpointLocation and startingOffsets=earliest; failOnDataLoss=false skips the messages that are gone"
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._address = Address.parse(values["address"])
        self.topic = IggyTopic(values["stream"], values["topic"])

    def open_log(self) -> IggyPartitions:
        """Connect to the server."""
        return IggyPartitions(IggyClient(self._address, self.values.get("timeoutMs")), self.reader())

    def partitions(self, log: IggyPartitions) -> list[TopicPartition]:
        """Return the partitions to read."""
        return choose_partitions(log.client.partitions(self.topic), self.topic, self.values.get("partitions"))

    def points(
        self, log: IggyPartitions, partitions: Sequence[TopicPartition], side: Side, *, is_batch: bool
    ) -> dict[TopicPartition, OffsetPoint]:
        """Return the start or the end of a query from the options."""
        time = self.values.get(f"{side}ingTimestamp")
        if time is not None:
            return dict.fromkeys(partitions, OffsetPoint("time", time))
        option = f"{side}ingOffsets"
        value = self.values.get(option, "latest" if side == "end" or not is_batch else "earliest")
        if isinstance(value, str):
            return dict.fromkeys(partitions, offset_point(value))
        offsets = {
            TopicPartition(self.topic, partition_number(f"option {option}", number)): offset
            for number, offset in value.items()
        }
        by_partition = self.points_by_partition(option, offsets, partitions)
        return {partition: offset_point(offset) for partition, offset in by_partition.items()}

    def topic_named(self, name: str) -> IggyTopic:
        """Return the topic of the query; raise ValueError if the checkpoint has another topic."""
        if name != str(self.topic):
            raise ValueError(f"the checkpoint is of topic {name}, not {self.topic}: use a new checkpointLocation")
        return self.topic

    def reader(self) -> IggyRowReader | MappedRowReader:
        """Return the reader of rows."""
        reader = MappedRowReader if "mapping" in self.values else IggyRowReader
        return reader(self.request, dialect="spark")


# Writers --------------------------------------------------------------------------------------------------------------


def _check_writers() -> None:
    if DataSourceArrowWriter is object:
        raise ImportError("writing to letterhead-iggy needs Spark 4.1 or later, which passes rows as Arrow")


class _IggyWriter:
    def __init__(self, values: Mapping[str, Any]) -> None:
        partition = values.get("partition")
        self._address = values["address"]
        self._arguments: dict[str, Any] = {
            "stream": values["stream"], "topic": values["topic"],
            "partition": int(partition) if partition is not None and partition.isdecimal() else partition,
            "partition_key": values.get("partitionKey"), "mapping": values.get("mapping"),
            "timeout_ms": values.get("timeoutMs", TIMEOUT_MS),
        }  # fmt: skip

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Append the rows of a task."""
        from letterhead.iggy.topic_writer import IggySink

        sink = None
        try:
            for batch in iterator:
                sink = sink or IggySink(self._address, batch.schema, **self._arguments)
                sink.write(batch)
        finally:
            if sink is not None:
                sink.close()
        return WriterCommitMessage()


class IggyBatchWriter(_IggyWriter, DataSourceArrowWriter):  # type: ignore[misc]
    """Append the rows of a batch query."""


class IggyStreamWriter(_IggyWriter, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Append the rows of a streaming query."""
