"""The data source ``letterhead-kafka``: topics, with the options and columns of Spark's own source ``kafka``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from letterhead.errors import check_name
from letterhead.read.kafka_options import java_settings
from letterhead.spark.sources.options import (
    COMMON,
    Option,
    flag,
    json_of,
    limits,
    number,
    on_error,
    one_of,
    parse_options,
    text,
)
from letterhead.spark.sources.schema import check_schema, spark_schema

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2 there are no limits, and a trigger reads all available records
    ReadAllAvailable = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from letterhead.read.fetched import Span
    from letterhead.read.kafka_client import Client, Place

__all__ = ["KafkaSource"]

# kafka-python and pyarrow are imported when a query runs: a session that never reads a topic needs neither.

Offsets: TypeAlias = dict[str, dict[str, int]]
"""Offsets by topic and partition, as Spark's own source writes them into a checkpoint."""

COLUMNS = {
    "key": "key",
    "value": "value",
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestampType": "timestamp_type",
    "headers": "headers",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "sequence": "sequence",
    "transactional": "transactional",
}
"""Columns by Spark's names, and their names in :data:`letterhead.read.record_sets.FIELDS`."""

USUAL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

_TOPICS = ("assign", "subscribe", "subscribePattern")
_POINTS = {
    "start": ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
    "end": ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"),
}


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

_OF_SPARK = {
    "fetchOffset.numRetries": Option(text, "Without effect: tunes a Java consumer."),
    "fetchOffset.retryIntervalMs": Option(text, "Without effect: tunes a Java consumer."),
    "groupIdPrefix": Option(text, "Without effect: tunes a Java consumer."),
    "kafkaConsumer.pollTimeoutMs": Option(text, "Without effect: tunes a Java consumer."),
    "minOffsetsPerTrigger": Option(_rejected, "Not supported."),
    "maxTriggerDelay": Option(_rejected, "Not supported."),
}
"""Options of Spark's own source that are accepted without effect, or rejected."""

_BATCH_BYTES = 1 << 20


class KafkaSource(DataSource):  # type: ignore[misc]
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

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "letterhead-kafka"

    def schema(self) -> StructType:
        """Return the columns that the options select."""
        return _Query(self.options).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        return _BatchReader(self._query(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        return _StreamReader(self._query(schema))

    def _query(self, schema: StructType) -> _Query:
        query = _Query(self.options)
        check_schema(self.name(), query.schema(), schema)
        return query


class _Query:
    """A query with its options, on the driver and in tasks.

    Attributes
    ----------
    settings : Settings
        How to connect to the brokers.
    loss : bool
        Whether to continue if records were deleted before they were read.
    limit : int or None
        Maximum number of offsets per trigger.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        of_kafka = {name: value for name, value in options.items() if name.lower().startswith("kafka.")}
        self.settings = java_settings({name.lower().removeprefix("kafka."): value for name, value in of_kafka.items()})
        self.isolation: Any = self.settings.isolation_level or "read_uncommitted"
        check_name("kafka.isolation.level", self.isolation, ("read_uncommitted", "read_committed"))
        others = {name: value for name, value in options.items() if name not in of_kafka}
        self._values = values = parse_options(others, OPTIONS | _OF_SPARK)
        usual = [*USUAL, *(["headers"] if values.get("includeHeaders") else [])]
        self.columns = values.get("columns", usual)
        for name in self.columns:
            check_name("column", name, COLUMNS)
        self.loss = not values.get("failOnDataLoss", True)
        self.limit = values.get("maxOffsetsPerTrigger")
        named = [name for name in _TOPICS if name in values]
        if len(named) != 1:
            raise ValueError(
                f"exactly one of the options {', '.join(_TOPICS)} is needed, not {' and '.join(named) or 'none'}"
            )
        self._how, self._which = named[0], values[named[0]]

    def schema(self) -> StructType:
        return spark_schema(self._arrow())

    def connect(self) -> Client:
        from letterhead.read.kafka_client import Client

        return Client(self.settings)

    def places(self, client: Client) -> list[Place]:
        """Find the partitions to read."""
        from letterhead.read.kafka_client import Place

        if self._how == "assign":
            wanted = [Place(topic, number) for topic, numbers in self._which.items() for number in numbers]
            there = set(client.partitions(dict.fromkeys(place.topic for place in wanted)))
            missing = [str(place) for place in wanted if place not in there]
            if missing:
                raise ValueError(f"option assign: there is no partition {missing[0]}")
            return wanted
        if self._how == "subscribe":
            topics = [topic.strip() for topic in self._which.split(",") if topic.strip()]
        else:
            topics = [topic for topic in client.topics() if re.fullmatch(self._which, topic)]
        return client.partitions(dict.fromkeys(topics)) if topics else []

    def batch_spans(self, client: Client) -> list[Span]:
        """Find the offsets that a batch query reads."""
        from letterhead.read.fetched import Span

        places = self.places(client)
        starts = self.offsets(client, places, "start", usual="earliest", refused="latest")
        ends = self.offsets(client, places, "end", usual="latest", refused="earliest")
        last = self.latest(client, places)
        for place in places:
            if ends[place] > last[place] and not self.loss:
                raise ValueError(f"{place}: endingOffsets is {ends[place]}, and the partition ends at {last[place]}")
        return [Span(place, starts[place], min(ends[place], last[place])) for place in places]

    def latest(self, client: Client, places: Iterable[Place]) -> dict[Place, int]:
        from letterhead.read.kafka_client import LATEST

        return client.offsets(dict.fromkeys(places, LATEST), self.isolation)

    def earliest(self, client: Client, places: Iterable[Place]) -> dict[Place, int]:
        from letterhead.read.kafka_client import EARLIEST

        return client.offsets(dict.fromkeys(places, EARLIEST), "read_uncommitted")

    def offsets(
        self,
        client: Client,
        places: Sequence[Place],
        side: Literal["start", "end"],
        *,
        usual: str,
        refused: str | None = None,
    ) -> dict[Place, int]:
        """Find the offsets at which to start or to end."""
        from letterhead.read.kafka_client import EARLIEST, LATEST

        words = {"earliest": EARLIEST, "latest": LATEST}
        option = next((name for name in _POINTS[side] if name in self._values), f"{side}ingOffsets")
        point = self._values.get(option, usual)
        is_time = "imestamp" in option
        if isinstance(point, dict):
            given = _of_places(option, point, places)
        else:
            given = {place: words[point] if isinstance(point, str) else point for place in places}
        if not is_time and refused is not None and words[refused] in given.values():
            raise ValueError(f"{option} cannot be {refused} in a batch query")
        asked = {place: offset for place, offset in given.items() if is_time or offset < 0}
        # The latest offset depends on the isolation level; timestamps are those of all records.
        found = given | client.offsets(asked, "read_uncommitted" if is_time else self.isolation)
        late = [place for place in asked if found[place] < 0]
        if late and side == "start" and self._values.get("startingOffsetsByTimestampStrategy") != "latest":
            raise ValueError(
                f"{option}: {late[0]} has no record at {given[late[0]]} or later; to begin with the next one, set "
                "startingOffsetsByTimestampStrategy to latest"
            )
        return found | self.latest(client, late) if late else found

    def parts(self, spans: Iterable[Span]) -> list[_Part]:
        """Divide spans among tasks: one each, or more as the options request."""
        spans = [span for span in spans if span.start < span.end]
        total = sum(span.end - span.start for span in spans)
        minimum, most = self._values.get("minPartitions", 0), self._values.get("maxRecordsPerPartition")
        parts = []
        for span in spans:
            size = span.end - span.start
            count = 1
            if minimum > len(spans):
                count = max(1, round(size / total * minimum))
            if most is not None:
                count = max(count, -(-size // most))
            bounds = [span.start + size * number // count for number in range(count + 1)]
            parts += [_Part(*span.place, start, end) for start, end in pairwise(bounds) if start < end]
        return parts

    def read(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the part of a task."""
        import pyarrow as pa

        from letterhead.read.fetched import Span, rows_of
        from letterhead.read.kafka_client import Place

        if not isinstance(part, _Part):  # without parts, Spark makes one of its own
            return
        schema = self._arrow()
        span = Span(Place(part.topic, part.partition), part.start, part.end)
        with self.connect() as client:
            for rows in rows_of(
                client, [span], self._rows(), isolation=self.isolation, batch_bytes=_BATCH_BYTES, loss=self.loss
            ):
                columns = [_as_spark(name, column) for name, column in zip(schema.names, rows.columns, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _rows(self) -> Any:
        from letterhead.read.record_sets import Rows

        names = [COLUMNS[name] for name in self.columns]
        return Rows(
            names,
            self._values.get("headerColumns"),
            dialect="spark",
            limits=limits(self._values),
            **on_error(self._values),  # type: ignore[arg-type]
        )

    def _arrow(self) -> pa.Schema:
        import pyarrow as pa

        made = self._rows().schema
        names = [*self.columns, *made.names[len(self.columns) :]]
        types = {"timestampType": pa.int32()}
        return pa.schema([(name, types.get(name, made.field(at).type)) for at, name in enumerate(names)])


@dataclass
class _Part(InputPartition):  # type: ignore[misc]
    """A range of offsets that a task reads."""

    topic: str
    partition: int
    start: int
    end: int


class _BatchReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, query: _Query) -> None:
        self._query = query

    def partitions(self) -> list[_Part]:
        with self._query.connect() as client:
            return self._query.parts(self._query.batch_spans(client))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Its only state is offsets: a query restarted from its checkpoint reads the records after them."""

    def __init__(self, query: _Query) -> None:
        if query.limit is not None and ReadMaxRows is None:
            raise ValueError("maxOffsetsPerTrigger needs Spark 4.2: before it a trigger reads all available records")
        self._query = query
        self._client: Client | None = None
        self._target: dict[Place, int] | None = None

    def initialOffset(self) -> Offsets:
        client = self._connected()
        return _offsets_of(self._query.offsets(client, self._query.places(client), "start", usual="latest"))

    def getDefaultReadLimit(self) -> Any:
        return ReadAllAvailable() if self._query.limit is None else ReadMaxRows(self._query.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        client = self._connected()
        self._target = self._query.latest(client, self._query.places(client))

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:
        client = self._connected()
        ends = (
            dict(self._target) if self._target is not None else self._query.latest(client, self._query.places(client))
        )
        starts = _places_of(start or {})
        ends = self._never_back(starts, ends)
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            new = [place for place in ends if place not in starts]
            starts |= self._query.earliest(client, new) if new else {}
            ends = _limited(limit.max_rows, starts, ends)
        return _offsets_of(ends)

    def reportLatestOffset(self) -> Offsets:
        client = self._connected()
        return _offsets_of(self._query.latest(client, self._query.places(client)))

    def partitions(self, start: Offsets, end: Offsets) -> list[_Part]:
        from letterhead.read.fetched import Span

        starts, ends = _places_of(start), _places_of(end)
        new = [place for place in ends if place not in starts]
        # A new partition is read from its beginning.
        starts |= self._query.earliest(self._connected(), new) if new else {}
        return self._query.parts(Span(place, starts[place], ends[place]) for place in ends)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.read(partition)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def __getstate__(self) -> dict[str, Any]:
        # Each task opens its own connection.
        return self.__dict__ | {"_client": None}

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._query.connect()
        return self._client

    def _never_back(self, starts: dict[Place, int], ends: dict[Place, int]) -> dict[Place, int]:
        """Reject partitions that were deleted or truncated: records written to them since would be skipped."""
        from letterhead.errors import OffsetsGone

        for place, start in starts.items():
            if ends.get(place, -1) >= start:
                continue
            if not self._query.loss:
                why = f"the partition ends at {ends[place]}" if place in ends else "there is no such partition any more"
                raise OffsetsGone(place, start, f"{why}; {_REMEDIES}")
            if place in ends:
                ends[place] = start
        return ends


# The remedies that lose no data come first. Skipping also skips records of a recreated topic below the old offsets.
_REMEDIES = (
    "check that kafka.bootstrap.servers names the cluster of the checkpoint; to read a recreated topic, start "
    "with a new checkpointLocation and startingOffsets=earliest; failOnDataLoss=false skips the records that are gone"
)


def _as_spark(name: str, column: pa.Array) -> pa.Array:
    """Convert a column to that of Spark's own source."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name == "timestampType":
        return pc.fill_null(column.cast(pa.int32()), -1)
    if name == "headers":  # a message without headers has null there
        return pc.if_else(pc.equal(pc.list_value_length(column), 0), pa.scalar(None, column.type), column)
    return column


def _limited(most: int, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> dict[Place, int]:
    """Divide the maximum number of offsets among the partitions, in proportion to their unread offsets."""
    waiting = {place: max(0, end - starts[place]) for place, end in ends.items()}
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    shares = {place: most * size / total for place, size in waiting.items()}
    # Less than one is rounded up, or a small partition would never be read.
    return {
        place: min(end, starts[place] + (-int(-share // 1) if share < 1 else int(share)))
        for (place, end), share in zip(ends.items(), shares.values(), strict=True)
    }


def _places_of(offsets: Offsets) -> dict[Place, int]:
    from letterhead.read.kafka_client import Place

    return {
        Place(topic, int(number)): offset
        for topic, partitions in offsets.items()
        for number, offset in partitions.items()
    }


def _offsets_of(offsets: Mapping[Place, int]) -> Offsets:
    made: Offsets = {}
    for place, offset in sorted(offsets.items()):
        made.setdefault(place.topic, {})[str(place.partition)] = offset
    return made


def _of_places(option: str, point: Offsets, places: Sequence[Place]) -> dict[Place, int]:
    given = _places_of(point)
    for one, other, how in ((places, given, "names no offset for"), (given, places, "names partitions not read:")):
        missing = [str(place) for place in one if place not in other]
        if missing:
            raise ValueError(f"option {option} {how} {', '.join(missing)}")
    return {place: given[place] for place in places}
