"""Data source ``letterhead-kafka``: topics, with the options and columns of Spark's own source ``kafka``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from letterhead._names import check_name
from letterhead.kafka.record_sets import WHERE_FIELDS, KafkaRowReader
from letterhead.kafka.settings import spark_settings
from letterhead.offsets.partition_log import TopicPartition
from letterhead.offsets.specs import EARLIEST, LATEST, OffsetPoint, check_group, group_of
from letterhead.spark.schemas import check_schema
from letterhead.spark.sources.base import ReadOnly
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
    json_of,
    number,
    one_of,
    parse_options,
    text,
    timestamp,
)
from letterhead.spark.sources.pushdown import FilterPushdown, push
from letterhead.where.program import resolve

if TYPE_CHECKING:
    from letterhead.kafka.partitions import KafkaPartitions
    from letterhead.kafka.settings import Settings

__all__ = ["KafkaSource"]

_EXAMPLE = 'JSON such as {"topic": {"0": 23, "1": -2}}'
_by_partition = json_of(_EXAMPLE, dict, dict)
_ending_offsets = offsets_option(_EXAMPLE, dict)


def _starting_offsets(name: str, text: str) -> Any:
    return text if group_of(f"option {name}", text) is not None else _ending_offsets(name, text)


def _group(name: str, text: str) -> str:
    check_group(f"option {name}", text)
    return text


def _times_by_partition(name: str, value_text: str) -> Any:
    times = _by_partition(name, value_text)
    for by_partition in times.values():
        for time in by_partition.values():
            timestamp(name, str(time))
    return times


def _reject(name: str, text: str) -> None:
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
    "startingTimestamp": Option(timestamp, "Timestamp at which to start, in milliseconds since 1970."),
    "startingOffsetsByTimestamp": Option(_times_by_partition, "The same by topic and partition, JSON."),
    "startingOffsets": Option(
        _starting_offsets,
        "`earliest`, `latest`, JSON: topic to partition to offset (-2 is earliest, -1 latest), or `group:NAME`: the committed "
        "offsets of a consumer group; a partition without a committed offset starts at its earliest offset.",
    ),
    "endingTimestamp": Option(timestamp, "Timestamp at which a batch query ends, in milliseconds since 1970."),
    "endingOffsetsByTimestamp": Option(_times_by_partition, "The same by topic and partition, JSON."),
    "endingOffsets": Option(_ending_offsets, "End of a batch query, in the form of `startingOffsets`."),
    "commitGroup": Option(
        _group,
        "Consumer group to which a stream commits the offsets of each batch that Spark has committed, so that tools show its "
        "lag. A query continues from its checkpoint, not from the group.",
    ),
    "failOnDataLoss": Option(flag, "`false` skips records that were deleted before they were read."),
    "includeHeaders": Option(flag, "Whether `headers` is among the columns by default."),
    "maxOffsetsPerTrigger": Option(
        number(1),
        "Maximum number of offsets per trigger, but at least one of each partition with unread records; needs Spark 4.2.",
    ),
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
    **dict.fromkeys(("minOffsetsPerTrigger", "maxTriggerDelay"), Option(_reject, "Not supported.")),
}
"""Options of Spark's own source that are accepted without effect, or rejected."""


class KafkaSource(ReadOnly):
    """Read topics in batch and streaming queries: ``spark.read.format("letterhead-kafka")``.

    Options, columns and types are the same as for Spark's source ``kafka``: to switch a query, change only the name of the
    format. :data:`OPTIONS` lists the options; :func:`letterhead.spark.options` writes ``columns`` and ``headers``.

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

    format_name = "letterhead-kafka"
    instead = "write to Kafka by Spark's own format kafka"

    def arrow_schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""
        return self._query().schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        if any(name.lower() == "commitgroup" for name in self.options):
            raise ValueError(
                "option commitGroup needs a stream, spark.readStream: Spark does not tell a source when a batch query has ended"
            )
        return KafkaBatchReader(self._query(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        return OffsetStreamReader(self._query(schema))

    def _query(self, schema: StructType | None = None) -> KafkaQuery:
        of_kafka = {name: value for name, value in self.options.items() if name.lower().startswith("kafka.")}
        others = {name: value for name, value in self.options.items() if name not in of_kafka}
        settings = spark_settings({name.lower().removeprefix("kafka."): value for name, value in of_kafka.items()})
        query = KafkaQuery(settings, parse_options(others, OPTIONS | _OF_SPARK))
        if schema is not None:
            check_schema(self.name(), query.schema, schema)
        return query


# Queries --------------------------------------------------------------------------------------------------------------

DEFAULT_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

COLUMNS = (*DEFAULT_COLUMNS, "headers", "producerId", "producerEpoch", "sequence", "transactional")
"""Columns by Spark's names; :data:`letterhead.kafka.record_sets.FIELDS` has the same names in snake case."""

# Spark evaluates conditions on timestampType, because the column has a number where the field is null.
_WHERE_FIELDS = {
    re.sub("_([a-z])", lambda match: match[1].upper(), name): field
    for name, field in WHERE_FIELDS.items()
    if name != "timestamp_type"
}

_POINT_OPTIONS = {
    "start": ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
    "end": ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"),
}


class KafkaBatchReader(FilterPushdown, OffsetBatchReader):
    """Reads a batch query, and applies Spark's filters."""

    _query: KafkaQuery

    def push(self, filters: list[Any]) -> list[Any]:
        """Apply the filters that can be evaluated on records."""
        return self._query.push(filters)


class KafkaQuery(OffsetQuery["KafkaPartitions"]):
    """Query of topics, with the settings of its connection."""

    # If lost records were skipped, new records of a recreated topic below the old offsets would be skipped, too.
    remedies = (
        "check that kafka.bootstrap.servers names the cluster of the checkpoint; to read a recreated topic, start "
        "with a new checkpointLocation and startingOffsets=earliest; failOnDataLoss=false skips the records that are gone"
    )

    def __init__(self, settings: Settings, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.settings = settings
        self.isolation: Any = settings.isolation_level or "read_uncommitted"
        check_name("kafka.isolation.level", self.isolation, ("read_uncommitted", "read_committed"))
        default = [*DEFAULT_COLUMNS, *(["headers"] if values.get("includeHeaders") else [])]
        self._columns = values.get("columns", default)
        for name in self._columns:
            check_name("column", name, COLUMNS)
        named = [name for name in ("assign", "subscribe", "subscribePattern") if name in values]
        if len(named) != 1:
            raise ValueError(
                "exactly one of the options assign, subscribe, subscribePattern is needed, "
                f"not {' and '.join(named) or 'none'}"
            )
        self._how, self._subscription = named[0], values[named[0]]

    @property
    def schema(self) -> pa.Schema:
        """Schema of the record batches."""
        schema = self.reader().schema
        names = [*self._columns, *schema.names[len(self._columns) :]]
        types = {"timestampType": pa.int32()}
        return pa.schema([(name, types.get(name, schema.field(index).type)) for index, name in enumerate(names)])

    def open_log(self) -> KafkaPartitions:
        """Connect to the cluster; this requires kafka-python."""
        from letterhead.kafka.client import KafkaClient
        from letterhead.kafka.partitions import KafkaPartitions

        return KafkaPartitions(KafkaClient(self.settings), self.reader(), self.isolation)

    def partitions(self, log: KafkaPartitions) -> list[TopicPartition]:
        """Return the partitions to read."""
        if self._how == "assign":
            assigned = [
                TopicPartition(topic, number) for topic, numbers in self._subscription.items() for number in numbers
            ]
            existing = set(log.client.partitions(dict.fromkeys(partition.topic for partition in assigned)))
            missing = [str(partition) for partition in assigned if partition not in existing]
            if missing:
                raise ValueError(f"option assign: partition {missing[0]} does not exist")
            return assigned
        if self._how == "subscribe":
            topics = [topic.strip() for topic in self._subscription.split(",") if topic.strip()]
        else:
            topics = [topic for topic in log.client.topics() if re.fullmatch(self._subscription, topic)]
        return log.client.partitions(dict.fromkeys(topics)) if topics else []

    def points(
        self, log: KafkaPartitions, partitions: Sequence[TopicPartition], side: Side, *, is_batch: bool
    ) -> dict[TopicPartition, OffsetPoint]:
        """Return the start or the end of a query from the options."""
        option = next((name for name in _POINT_OPTIONS[side] if name in self.values), f"{side}ingOffsets")
        default = "latest" if side == "end" or not is_batch else "earliest"
        value = self.values.get(option, default)
        group = group_of(f"option {option}", value)
        if group is not None:
            from letterhead.kafka.groups import GroupOffsets

            is_new = group == self.values.get("commitGroup")
            return GroupOffsets(log.client, group).start_points(partitions, f"option {option}", can_be_new=is_new)
        by_partition: Mapping[TopicPartition, Any] = dict.fromkeys(partitions, value)
        if isinstance(value, dict):
            offsets = {
                TopicPartition(topic, partition_number(f"option {option}", number)): offset
                for topic, numbers in value.items()
                for number, offset in numbers.items()
            }
            by_partition = self.points_by_partition(option, offsets, partitions)
        if "imestamp" in option:
            times = {partition: OffsetPoint("time", time) for partition, time in by_partition.items()}
            if side == "start" and self.values.get("startingOffsetsByTimestampStrategy") != "latest":
                self._check_times(log, option, by_partition)
            return times
        points = {partition: offset_point(offset) for partition, offset in by_partition.items()}
        rejected = LATEST if side == "start" else EARLIEST
        if is_batch and rejected in points.values():
            raise ValueError(f"{option} cannot be {rejected.kind} in a batch query")
        return points

    def commit(self, log: KafkaPartitions, offsets: Mapping[TopicPartition, int]) -> None:
        """Write offsets to the group of the option ``commitGroup``."""
        group = self.values.get("commitGroup")
        if group is not None and offsets:
            from letterhead.kafka.groups import GroupOffsets

            GroupOffsets(log.client, group).commit(offsets)

    def topic_named(self, name: str) -> str:
        """Return the name unchanged, because a query can have several topics."""
        return name

    def as_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the columns of Spark's own source."""
        schema = self.schema
        columns = [_as_spark(name, column) for name, column in zip(schema.names, batch.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def push(self, filters: Iterable[Any]) -> list[Any]:
        """Add filters of Spark to the condition; return the filters that Spark has to evaluate."""
        self.request, left = push(
            filters, self.request, lambda pushed: resolve(pushed.where, _WHERE_FIELDS, pushed.headers)
        )
        return left

    def _check_times(self, log: KafkaPartitions, option: str, times: Mapping[TopicPartition, int]) -> None:
        for partition, offset in log.offsets_since(times).items():
            if offset is None:
                raise ValueError(
                    f"{option}: {partition} has no record at {times[partition]} or later; to begin with the next one, "
                    "set startingOffsetsByTimestampStrategy to latest"
                )

    def reader(self) -> KafkaRowReader:
        """Return the reader of rows."""
        names = [re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name) for name in self._columns]
        # Conditions use Spark's names of the columns.
        request = replace(self.request, columns=tuple(names))
        return KafkaRowReader(request, dialect="spark", where_fields=_WHERE_FIELDS)


def _as_spark(name: str, column: pa.Array) -> pa.Array:
    """Convert a column to the type and the values of Spark's own source."""
    if name == "timestampType":
        return pc.fill_null(column.cast(pa.int32()), -1)
    if name == "headers":  # Spark's own source returns null for a message without headers
        return pc.if_else(pc.equal(pc.list_value_length(column), 0), pa.scalar(None, column.type), column)
    return column
