"""The data source ``letterhead-kafka``: topics, with the options and columns of Spark's own source ``kafka``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from letterhead.errors import check_name, unknown_name
from letterhead.read.kafka_options import java_settings
from letterhead.spark.sources.options import LIMITS, header_columns, integer, limits, names
from letterhead.spark.sources.schema import check_schema, spark_schema

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2 there are no limits, and a trigger reads all there is
    ReadAllAvailable = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from letterhead.read.fetched import Span
    from letterhead.read.kafka_client import Client, Place

__all__ = ["KafkaSource"]

# What needs kafka-python and pyarrow is imported by what runs: a session that never reads a topic needs neither.

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
"""Columns by Spark's names, and what :data:`letterhead.read.record_sets.FIELDS` calls them."""

USUAL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

_TOPICS = ("assign", "subscribe", "subscribePattern")
_POINTS = {
    "start": ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
    "end": ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"),
}
OPTIONS = (
    *_TOPICS,
    *_POINTS["start"],
    *_POINTS["end"],
    "columns",
    "errors",
    "failOnDataLoss",
    "headerColumns",
    "includeHeaders",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "minPartitions",
    "startingOffsetsByTimestampStrategy",
    *LIMITS,
)
"""Options beside those that begin with ``kafka.``."""

_WITHOUT_MEANING = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
)
"""Of Spark's own source; they tune a Java consumer, so they are taken and left alone."""

_REFUSED = {
    "minOffsetsPerTrigger": "a trigger does not wait for records here; use a longer processing time",
    "maxTriggerDelay": "a trigger does not wait for records here; use a longer processing time",
}
_BATCH_BYTES = 1 << 20


class KafkaSource(DataSource):  # type: ignore[misc]
    """Read topics by the record sets that a broker stores: for batch and streaming queries.

    Options, columns and types are those of Spark's source ``kafka``, so that a query moves over by the name of its
    format. Beyond them, ``columns`` says what to build, and ``headerColumns`` gives headers as typed columns;
    :func:`letterhead.spark.options` writes both. ``errors`` is as in :func:`letterhead.spark.explode_batches`, and ``maxMessageBytes``,
    ``maxHeaders``, ``maxDecompressedBytes``, ``maxRecords`` and ``maxOutputBytes`` are the limits of
    :class:`letterhead.Limits`.

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
        """Give what Spark knows it by."""
        return "letterhead-kafka"

    def schema(self) -> StructType:
        """Give the columns."""
        return _Job(self.options).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of a batch query."""
        return _BatchReader(self._job(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Make the reader of a streaming query."""
        return _StreamReader(self._job(schema))

    def _job(self, schema: StructType) -> _Job:
        job = _Job(self.options)
        check_schema(self.name(), job.schema(), schema)
        return job


class _Job:
    """What the options say.

    Attributes
    ----------
    settings : Settings
        How to reach the brokers.
    loss : bool
        Whether to go on where records were deleted before they were read.
    limit : int or None
        Offsets a trigger.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        given = _known(options)
        self.settings = java_settings(
            {name.lower().removeprefix("kafka."): value for name, value in options.items() if _is_java(name)}
        )
        self.isolation: Any = self.settings.isolation_level or "read_uncommitted"
        check_name("kafka.isolation.level", self.isolation, ("read_uncommitted", "read_committed"))
        self.errors: Any = given.get("errors", "raise")
        check_name("errors", self.errors, ("raise", "null", "column"))
        self.headers = header_columns(given)
        self.limits = limits(given)
        usual = [*USUAL, *(["headers"] if _flag(given, "includeHeaders", False) else [])]
        asked_for = names(given)
        self.columns = usual if asked_for is None else asked_for
        for name in self.columns:
            check_name("column", name, COLUMNS)
        self.loss = not _flag(given, "failOnDataLoss", True)
        self.limit = _count(given, "maxOffsetsPerTrigger")
        self._most = _count(given, "maxRecordsPerPartition")
        self._parts = _count(given, "minPartitions")
        named = [name for name in _TOPICS if name in given]
        if len(named) != 1:
            raise ValueError(
                f"exactly one of the options {', '.join(_TOPICS)} is needed, not {' and '.join(named) or 'none'}"
            )
        self._how, self._which = named[0], given[named[0]]
        self._points = {
            side: next(((name, _point(name, given[name])) for name in names if name in given), None)
            for side, names in _POINTS.items()
        }
        self._strategy = given.get("startingOffsetsByTimestampStrategy", "error")
        check_name("startingOffsetsByTimestampStrategy", self._strategy, ("error", "latest"))

    def schema(self) -> StructType:
        return spark_schema(self._arrow())

    def connect(self) -> Client:
        from letterhead.read.kafka_client import Client

        return Client(self.settings)

    def places(self, client: Client) -> list[Place]:
        """Find the partitions that are meant."""
        from letterhead.read.kafka_client import Place

        if self._how == "assign":
            wanted = [
                Place(topic, number) for topic, numbers in _object("assign", self._which).items() for number in numbers
            ]
            there = set(client.partitions(dict.fromkeys(place.topic for place in wanted)))
            missing = [str(place) for place in wanted if place not in there]
            if missing:
                raise ValueError(f"assign: there is no partition {missing[0]}")
            return wanted
        if self._how == "subscribe":
            topics = [topic.strip() for topic in self._which.split(",") if topic.strip()]
        else:
            topics = [topic for topic in client.topics() if re.fullmatch(self._which, topic)]
        return client.partitions(dict.fromkeys(topics)) if topics else []

    def batch_spans(self, client: Client) -> list[Span]:
        """Find what a batch query reads."""
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
        """Find the offsets at which to begin or to end."""
        from letterhead.read.kafka_client import EARLIEST, LATEST

        words = {"earliest": EARLIEST, "latest": LATEST}
        option, point = self._points[side] or (f"{side}ingOffsets", usual)
        is_time = "imestamp" in option
        if isinstance(point, dict):
            given = _by_place(option, point, places)
        else:
            given = {place: words[point] if isinstance(point, str) else point for place in places}
        if not is_time and refused is not None and words[refused] in given.values():
            raise ValueError(f"{option} cannot be {refused} in a batch query")
        asked = {place: offset for place, offset in given.items() if is_time or offset < 0}
        # The latest offset depends on what may be read; by their times all records count.
        found = given | client.offsets(asked, "read_uncommitted" if is_time else self.isolation)
        late = [place for place in asked if found[place] < 0]
        if late and side == "start" and self._strategy == "error":
            raise ValueError(
                f"{option}: {late[0]} has no record at {given[late[0]]} or later; to begin with the next one, set "
                "startingOffsetsByTimestampStrategy to latest"
            )
        return found | self.latest(client, late) if late else found

    def parts(self, spans: Iterable[Span]) -> list[_Part]:
        """Share spans out to tasks: one each, or more where that was asked for."""
        spans = [span for span in spans if span.start < span.end]
        total = sum(span.end - span.start for span in spans)
        parts = []
        for span in spans:
            size = span.end - span.start
            count = 1
            if self._parts is not None and self._parts > len(spans):
                count = max(1, round(size / total * self._parts))
            if self._most is not None:
                count = max(count, -(-size // self._most))
            bounds = [span.start + size * number // count for number in range(count + 1)]
            parts += [_Part(*span.place, start, end) for start, end in pairwise(bounds) if start < end]
        return parts

    def read(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what a task was given."""
        import pyarrow as pa

        from letterhead.read.fetched import Span, rows_of
        from letterhead.read.kafka_client import Place

        if not isinstance(part, _Part):  # where there are no parts, Spark makes one of its own
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
        return Rows(names, self.headers, errors=self.errors, dialect="spark", limits=self.limits)

    def _arrow(self) -> pa.Schema:
        import pyarrow as pa

        made = self._rows().schema
        names = [*self.columns, *made.names[len(self.columns) :]]
        types = {"timestampType": pa.int32()}
        return pa.schema([(name, types.get(name, made.field(at).type)) for at, name in enumerate(names)])


@dataclass
class _Part(InputPartition):  # type: ignore[misc]
    """A span that a task reads."""

    topic: str
    partition: int
    start: int
    end: int


class _BatchReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, job: _Job) -> None:
        self._job = job

    def partitions(self) -> list[_Part]:
        with self._job.connect() as client:
            return self._job.parts(self._job.batch_spans(client))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._job.read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Offsets are all that is kept: a query that starts again from its checkpoint reads what is after them."""

    def __init__(self, job: _Job) -> None:
        if job.limit is not None and ReadMaxRows is None:
            raise ValueError("maxOffsetsPerTrigger needs Spark 4.2: without it a trigger reads all there is")
        self._job = job
        self._client: Client | None = None
        self._target: dict[Place, int] | None = None

    def initialOffset(self) -> Offsets:
        client = self._connected()
        return _written(self._job.offsets(client, self._job.places(client), "start", usual="latest"))

    def getDefaultReadLimit(self) -> Any:
        return ReadAllAvailable() if self._job.limit is None else ReadMaxRows(self._job.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        client = self._connected()
        self._target = self._job.latest(client, self._job.places(client))

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:
        client = self._connected()
        ends = dict(self._target) if self._target is not None else self._job.latest(client, self._job.places(client))
        starts = _read(start or {})
        ends = self._never_back(starts, ends)
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            new = [place for place in ends if place not in starts]
            starts |= self._job.earliest(client, new) if new else {}
            ends = _limited(limit.max_rows, starts, ends)
        return _written(ends)

    def reportLatestOffset(self) -> Offsets:
        client = self._connected()
        return _written(self._job.latest(client, self._job.places(client)))

    def partitions(self, start: Offsets, end: Offsets) -> list[_Part]:
        from letterhead.read.fetched import Span

        starts, ends = _read(start), _read(end)
        new = [place for place in ends if place not in starts]
        # A partition that was added is read from its beginning.
        starts |= self._job.earliest(self._connected(), new) if new else {}
        return self._job.parts(Span(place, starts[place], ends[place]) for place in ends)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._job.read(partition)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def __getstate__(self) -> dict[str, Any]:
        # A task has connections of its own.
        return self.__dict__ | {"_client": None}

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._job.connect()
        return self._client

    def _never_back(self, starts: dict[Place, int], ends: dict[Place, int]) -> dict[Place, int]:
        """Refuse partitions that are gone or became shorter: what was written to them since would be left out."""
        from letterhead.errors import OffsetsGone

        for place, start in starts.items():
            if ends.get(place, -1) >= start:
                continue
            if not self._job.loss:
                why = f"the partition ends at {ends[place]}" if place in ends else "there is no such partition any more"
                raise OffsetsGone(place, start, f"{why}; {_REMEDIES}")
            if place in ends:
                ends[place] = start
        return ends


# What loses nothing comes first. Skipping also leaves out what a topic that was made anew holds below the old offsets.
_REMEDIES = (
    "check that kafka.bootstrap.servers names the cluster of the checkpoint; to read a topic that was made anew, start "
    "with a new checkpointLocation and startingOffsets=earliest; failOnDataLoss=false skips the records that are gone"
)


def _as_spark(name: str, column: pa.Array) -> pa.Array:
    """Make a column what Spark's own source makes of it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name == "timestampType":
        return pc.fill_null(column.cast(pa.int32()), -1)
    if name == "headers":  # there, no headers are null
        return pc.if_else(pc.equal(pc.list_value_length(column), 0), pa.scalar(None, column.type), column)
    return column


def _limited(most: int, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> dict[Place, int]:
    """Share out how many offsets a trigger takes, by how many wait in each partition."""
    waiting = {place: max(0, end - starts[place]) for place, end in ends.items()}
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    shares = {place: most * size / total for place, size in waiting.items()}
    # Less than one is rounded up, or a small partition would never move.
    return {
        place: min(end, starts[place] + (-int(-share // 1) if share < 1 else int(share)))
        for (place, end), share in zip(ends.items(), shares.values(), strict=True)
    }


def _read(offsets: Offsets) -> dict[Place, int]:
    from letterhead.read.kafka_client import Place

    return {
        Place(topic, int(number)): offset
        for topic, partitions in offsets.items()
        for number, offset in partitions.items()
    }


def _written(offsets: Mapping[Place, int]) -> Offsets:
    made: Offsets = {}
    for place, offset in sorted(offsets.items()):
        made.setdefault(place.topic, {})[str(place.partition)] = offset
    return made


def _is_java(name: str) -> bool:
    return name.lower().startswith("kafka.")


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """Give the options that are not Kafka's, by their names as they are spelled here."""
    spelled = {name.lower(): name for name in (*OPTIONS, *_WITHOUT_MEANING, *_REFUSED)}
    known = {}
    for name, value in options.items():
        if _is_java(name):
            continue
        own = spelled.get(name.lower())
        if own is None:
            raise unknown_name("option", name, OPTIONS)
        if own in _REFUSED:
            raise ValueError(f"the option {own} cannot be set: {_REFUSED[own]}")
        known[own] = value
    return known


def _flag(given: Mapping[str, str], name: str, usual: bool) -> bool:
    value = given.get(name, str(usual)).lower()
    if value not in ("true", "false"):
        raise ValueError(f"the option {name} must be true or false, not {given[name]!r}")
    return value == "true"


def _count(given: Mapping[str, str], name: str) -> int | None:
    number = integer(given, name)
    if number is not None and number <= 0:
        raise ValueError(f"option {name} is {number}, and a number above 0 is meant")
    return number


def _point(name: str, text: str) -> Any:
    """Read an option that says where to begin or to end."""
    if "Offsets" not in name:
        if not text.strip().isdecimal():
            raise ValueError(f"the option {name} must be milliseconds since 1970, not {text!r}")
        return int(text)
    if name in ("startingOffsets", "endingOffsets") and text.strip().lower() in ("earliest", "latest"):
        return text.strip().lower()
    return _object(name, text)


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        made = json.loads(text)
    except ValueError:
        made = None
    if isinstance(made, dict) and all(isinstance(value, list if name == "assign" else dict) for value in made.values()):
        return made
    like = '{"topic": [0, 1]}' if name == "assign" else '{"topic": {"0": 23, "1": -2}}'
    words = " or earliest or latest" if name in ("startingOffsets", "endingOffsets") else ""
    raise ValueError(f"the option {name} must be JSON as {like}{words}, not {text!r}")


def _by_place(option: str, point: Offsets, places: Sequence[Place]) -> dict[Place, int]:
    given = _read(point)
    for one, other, how in ((places, given, "names no offset for"), (given, places, "names what is not read:")):
        missing = [str(place) for place in one if place not in other]
        if missing:
            raise ValueError(f"the option {option} {how} {', '.join(missing)}")
    return {place: given[place] for place in places}
